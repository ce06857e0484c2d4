//! The CPU device: a grid's blocks in chunks, shared by this thread and those of a pool.

mod levels;
mod pool;
mod sync;

pub(crate) use levels::supported_levels;

use crate::error::{Error, Result};
use crate::host::HostBuffer;
use pool::{Job, Pool};
use std::cell::RefCell;
use std::sync::{Mutex, OnceLock, PoisonError};
use tile_ir::abi::CpuEntry;

/// The environment variable that sets the number of threads.
const THREADS_VARIABLE: &str = "TILE_THREADS";

/// Chunks of blocks per thread: enough to even out blocks of different cost, few enough to cost nothing.
const CHUNKS_PER_THREAD: usize = 8;

/// How many launches may run at once before the pool's list grows.
const LAUNCHES: usize = 64;

/// How many threads run a grid, the calling one included.
pub(crate) fn thread_count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let set = std::env::var(THREADS_VARIABLE)
            .ok()
            .and_then(|text| text.parse().ok())
            .filter(|&count| count > 0);
        set.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    })
}

/// The pool, served by a thread for each but the calling one.
fn pool() -> &'static Pool {
    static POOL: OnceLock<&'static Pool> = OnceLock::new();
    POOL.get_or_init(|| {
        let pool: &'static Pool = Box::leak(Box::new(Pool::new(LAUNCHES)));
        for worker in 1..thread_count() {
            // A worker that can't be started is one less; the calling thread runs every grid to its end.
            let _ = std::thread::Builder::new().name(format!("tile-{worker}")).spawn(move || pool.serve());
        }
        pool
    })
}

/// Gives this thread's scratch memory, which grows as kernels ask and is kept between launches.
fn with_scratch(bytes: usize, run: impl FnOnce(*mut u8)) -> Result<()> {
    thread_local! {
        static SCRATCH: RefCell<Option<HostBuffer>> = const { RefCell::new(None) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        let enough = scratch.as_ref().is_some_and(|buffer| buffer.as_bytes().len() >= bytes);
        if !enough {
            *scratch = Some(HostBuffer::zeroed(bytes.max(64))?);
        }
        if let Some(buffer) = scratch {
            run(buffer.as_mut_ptr());
        }
        Ok(())
    })
}

/// Runs blocks `0..blocks` of a kernel and returns when all are finished.
///
/// # Safety
/// `slots` must be what the kernel's ABI says, with tensors that stay valid until this returns.
pub(crate) unsafe fn run(entry: CpuEntry, slots: &[u64], scratch_bytes: u64, blocks: usize) -> Result<()> {
    let scratch_bytes = usize::try_from(scratch_bytes)
        .map_err(|_| Error::OutOfMemory { device: "the host".to_owned(), bytes: usize::MAX })?;
    let run = |first: usize, end: usize| {
        with_scratch(scratch_bytes, |scratch| {
            // SAFETY: the caller vouches for the slots and keeps the tensors until every block is finished; the scratch
            // memory is this thread's own, as large and as aligned as the kernel asks for.
            unsafe { entry(slots.as_ptr(), first as u64, end as u64, scratch) }
        })
    };
    let threads = thread_count();
    if blocks <= 1 || threads == 1 {
        return run(0, blocks);
    }
    let failure = Mutex::new(None);
    let chunk = blocks.div_ceil(threads * CHUNKS_PER_THREAD);
    let share = |first: usize, end: usize| {
        if let Err(error) = run(first, end) {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    };
    let job = Job::new(blocks, chunk, &share);
    pool().run(&job, (threads - 1).min(blocks.div_ceil(chunk) - 1));
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts each block in a table whose address is the only slot; writes to its scratch memory.
    unsafe extern "C" fn count_blocks(slots: *const u64, first: u64, end: u64, scratch: *mut u8) {
        for block in first..end {
            // SAFETY: the slot is the address of a table of counters, one per block; scratch has 64 bytes.
            unsafe {
                scratch.write(block as u8);
                (*(slots.read() as *const AtomicUsize).add(block as usize)).fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn check(blocks: usize) {
        let table: Vec<AtomicUsize> = (0..blocks).map(|_| AtomicUsize::new(0)).collect();
        // SAFETY: the slot is the table's address, which outlives the call.
        unsafe { run(count_blocks, &[table.as_ptr() as u64], 64, blocks) }.unwrap();
        assert!(table.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{blocks} blocks");
    }

    #[test]
    fn every_block_runs_once() {
        (0..70).chain([1000, 4097]).for_each(check);
    }

    #[test]
    fn many_threads_launch_at_once() {
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| (0..300).for_each(|i| check(i % 40)));
            }
        });
    }
}
