//! The CPU device: a grid's blocks in chunks, shared by this thread and those of a pool.

mod levels;
mod pool;
mod sync;

pub(crate) use levels::supported_levels;

use crate::error::{Error, Result};
use crate::host::HostBuffer;
use pool::{Job, Pool};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tile_ir::abi::CpuEntry;
use tile_ir::grid::CPU_CHUNKS_PER_THREAD;

/// The environment variable that sets the number of threads.
const THREADS_VARIABLE: &str = "TILE_THREADS";

/// How many launches may run at once before the pool's list grows.
const LAUNCHES: usize = 64;

/// A pool and how many threads share its jobs, the one that submits included.
struct Served {
    pool: Pool,
    threads: usize,
}

static SERVED: RwLock<Option<Arc<Served>>> = RwLock::new(None);

/// The pool, made at the first launch: for as many threads as `TILE_THREADS` says, or as the machine has.
fn served() -> Arc<Served> {
    let known = SERVED.read().unwrap_or_else(PoisonError::into_inner).clone();
    known.unwrap_or_else(|| {
        let mut place = SERVED.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(place.get_or_insert_with(|| serve(threads_of_the_machine())))
    })
}

fn threads_of_the_machine() -> usize {
    let set = std::env::var(THREADS_VARIABLE).ok().and_then(|text| text.parse().ok());
    set.filter(|&count| count > 0)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

fn serve(threads: usize) -> Arc<Served> {
    let served = Arc::new(Served { pool: Pool::new(LAUNCHES), threads });
    for worker in 1..threads {
        let served = Arc::clone(&served);
        // A worker that can't be started is one less; the calling thread runs every grid to its end.
        let _ = std::thread::Builder::new().name(format!("tile-{worker}")).spawn(move || served.pool.serve());
    }
    served
}

/// How many threads run a grid on the CPU device, the calling one included: as many as the environment variable
/// `TILE_THREADS` says, or as the machine has, unless [`set_threads`] says otherwise.
pub fn threads() -> usize {
    served().threads
}

/// Sets how many threads run a grid on the CPU device, the calling one included, from the next launch on; 0 counts as 1.
///
/// ```
/// use tile_runtime::cpu;
/// cpu::set_threads(3);
/// assert_eq!(cpu::threads(), 3);
/// ```
pub fn set_threads(count: usize) {
    let new = serve(count.max(1));
    let old = SERVED.write().unwrap_or_else(PoisonError::into_inner).replace(new);
    if let Some(old) = old {
        old.pool.close();
    }
}

/// Gives this thread's scratch memory, which grows as kernels ask and is kept between launches.
fn with_scratch(bytes: usize, run: impl FnOnce(*mut u8)) -> Result<()> {
    thread_local! {
        static SCRATCH: RefCell<Option<HostBuffer>> = const { RefCell::new(None) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        let enough = scratch.as_ref().is_some_and(|buffer| buffer.len() >= bytes);
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
    let served = served();
    let threads = served.threads;
    if blocks <= 1 || threads == 1 {
        return run(0, blocks);
    }
    let failure = Mutex::new(None);
    let chunk = blocks.div_ceil(threads * CPU_CHUNKS_PER_THREAD);
    let share = |first: usize, end: usize| {
        if let Err(error) = run(first, end) {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    };
    let job = Job::new(blocks, chunk, &share);
    served.pool.run(&job, (threads - 1).min(blocks.div_ceil(chunk) - 1));
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

    /// How often a test does something: less under Miri, which takes a thousand times as long.
    const TIMES: usize = if cfg!(miri) { 5 } else { 200 };

    #[test]
    fn every_block_runs_once() {
        (0..TIMES.min(70)).chain([if cfg!(miri) { 70 } else { 4097 }]).for_each(check);
    }

    #[test]
    fn the_number_of_threads_changes_between_and_during_launches() {
        std::thread::scope(|scope| {
            scope.spawn(|| (0..TIMES).for_each(|i| check(i % 40)));
            for count in [1, 5, 2, 0, 3].into_iter().cycle().take(TIMES.min(50)) {
                set_threads(count);
                check(37);
            }
        });
        set_threads(2);
        assert_eq!(threads(), 2);
    }

    #[test]
    fn many_threads_launch_at_once() {
        std::thread::scope(|scope| {
            for _ in 0..32.min(TIMES) {
                scope.spawn(|| (0..TIMES).for_each(|i| check(i % 40)));
            }
        });
    }
}
