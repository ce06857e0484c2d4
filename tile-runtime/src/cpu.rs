//! The CPU device: a persistent pool of workers that share a grid's blocks in chunks.

use crate::error::{Error, Result};
use crate::host::HostBuffer;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use tile_ir::abi::CpuEntry;

/// The environment variable that sets the number of threads.
const THREADS_VARIABLE: &str = "TILE_THREADS";

/// Chunks of blocks per thread: enough to even out blocks of different cost, few enough to cost nothing.
const CHUNKS_PER_THREAD: usize = 8;

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

/// One grid to run.
struct Work {
    entry: CpuEntry,
    slots: Vec<u64>,
    scratch_bytes: usize,
    blocks: usize,
    chunk: usize,
    next: AtomicUsize,
    /// Chunks that aren't finished, and why one couldn't be run.
    state: Mutex<State>,
    done: Condvar,
}

struct State {
    unfinished: usize,
    error: Option<Error>,
}

impl Work {
    /// Runs chunks until none is left.
    fn run(&self) {
        loop {
            let first = self.next.fetch_add(self.chunk, Ordering::Relaxed);
            if first >= self.blocks {
                return;
            }
            let end = self.blocks.min(first + self.chunk);
            let result = with_scratch(self.scratch_bytes, |scratch| {
                // SAFETY: whoever made the work checked the slots against the kernel's ABI and keeps the
                // tensors borrowed until every chunk is finished; the scratch memory is this thread's own,
                // as large and as aligned as the kernel asks for.
                unsafe { (self.entry)(self.slots.as_ptr(), first as u64, end as u64, scratch) }
            });
            self.finish(result.err());
        }
    }

    fn finish(&self, error: Option<Error>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.unfinished -= 1;
        state.error = state.error.take().or(error);
        if state.unfinished == 0 {
            self.done.notify_all();
        }
    }

    fn wait(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.unfinished > 0 {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.error.take().map_or(Ok(()), Err)
    }
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
    let threads = thread_count();
    if blocks <= 1 || threads == 1 {
        return with_scratch(scratch_bytes, |scratch| {
            // SAFETY: the caller vouches for the slots; the scratch memory is this thread's own.
            unsafe { entry(slots.as_ptr(), 0, blocks as u64, scratch) }
        });
    }
    let chunk = blocks.div_ceil(threads * CHUNKS_PER_THREAD);
    let work = Arc::new(Work {
        entry,
        slots: slots.to_vec(),
        scratch_bytes,
        blocks,
        chunk,
        next: AtomicUsize::new(0),
        state: Mutex::new(State { unfinished: blocks.div_ceil(chunk), error: None }),
        done: Condvar::new(),
    });
    let helpers = (threads - 1).min(blocks.div_ceil(chunk) - 1);
    Pool::get().submit(&work, helpers);
    work.run();
    work.wait()
}

/// Threads that wait for work as long as the process lives.
struct Pool {
    queue: Mutex<Vec<Arc<Work>>>,
    waiting: Condvar,
}

impl Pool {
    fn get() -> &'static Pool {
        static POOL: OnceLock<&'static Pool> = OnceLock::new();
        POOL.get_or_init(|| {
            let pool: &'static Pool =
                Box::leak(Box::new(Pool { queue: Mutex::default(), waiting: Condvar::new() }));
            for worker in 1..thread_count() {
                // A worker that can't be started is one less; the calling thread runs every grid to its end.
                let _ =
                    std::thread::Builder::new().name(format!("tile-{worker}")).spawn(move || pool.serve());
            }
            pool
        })
    }

    fn submit(&self, work: &Arc<Work>, helpers: usize) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.extend(std::iter::repeat_n(Arc::clone(work), helpers));
        drop(queue);
        self.waiting.notify_all();
    }

    fn serve(&self) {
        loop {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            while queue.is_empty() {
                queue = self.waiting.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            let work = queue.pop();
            drop(queue);
            if let Some(work) = work {
                work.run();
            }
        }
    }
}

/// The best instruction set level of this machine, as [`crate::embedded::EmbeddedCode::Cpu`] names it;
/// higher ones first.
pub(crate) fn supported_levels() -> &'static [&'static str] {
    #[cfg(target_arch = "x86_64")]
    {
        let v3 = std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("fma")
            && std::is_x86_feature_detected!("f16c")
            && std::is_x86_feature_detected!("bmi2");
        let v4 = v3
            && std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512cd")
            && std::is_x86_feature_detected!("avx512dq")
            && std::is_x86_feature_detected!("avx512vl");
        let v2 = std::is_x86_feature_detected!("sse4.2") && std::is_x86_feature_detected!("popcnt");
        match (v4, v3, v2) {
            (true, ..) => &["x86-64-v4", "x86-64-v3", "x86-64-v2"],
            (_, true, _) => &["x86-64-v3", "x86-64-v2"],
            (_, _, true) => &["x86-64-v2"],
            _ => &[],
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

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
