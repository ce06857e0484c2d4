//! The CPU device: a grid's blocks in chunks, shared by this thread and those of a pool, or run by this thread alone
//! where that takes less time.

mod affinity;
pub(crate) mod levels;
mod pace;
mod pool;
mod watch;

pub(crate) use pace::Pace;

use crate::environment;
use crate::error::{Error, Result};
use crate::host::HostBuffer;
use crate::process::Process;
use pace::{Handover, Way, way};
use pool::{Job, Pool};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tile_ir::abi::CpuEntry;
use tile_ir::chunks::Chunks;

/// The environment variable that sets the number of threads.
const THREADS_VARIABLE: &str = "TILE_THREADS";

/// How many launches may run at once before the pool's list grows.
const LAUNCHES: usize = 64;

/// A pool and how many threads share its jobs, the one that submits included.
struct Served {
    pool: Arc<Pool>,
    threads: usize,
    /// Where the threads are.
    process: Process,
}

static SERVED: RwLock<Option<Arc<Served>>> = RwLock::new(None);

/// The pool, made at the first launch: for as many threads as `TILE_THREADS` says, or as the machine has. That of a process
/// from which this one was forked has as many as it had.
fn served() -> Arc<Served> {
    let known = SERVED.read().unwrap_or_else(PoisonError::into_inner).clone();
    let threads = match known {
        Some(served) if !served.process.is_over() => return served,
        known => known.map(|served| served.threads),
    };
    // Outside of the lock: who is told that a variable makes no sense may ask for the pool.
    let (threads, is_pinned) = (threads.unwrap_or_else(threads_of_the_machine), affinity::is_asked());
    let mut place = SERVED.write().unwrap_or_else(PoisonError::into_inner);
    let known = place.take().filter(|served| !served.process.is_over());
    Arc::clone(place.insert(known.unwrap_or_else(|| serve(threads, is_pinned))))
}

fn threads_of_the_machine() -> usize {
    environment::said(THREADS_VARIABLE, "a number of threads from 1 on", environment::count)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

fn serve(threads: usize, is_pinned: bool) -> Arc<Served> {
    let pool = Arc::new(Pool::new(LAUNCHES));
    let places = if is_pinned { affinity::places(threads - 1) } else { Vec::new() };
    let mut places = places.into_iter();
    let started = start(threads - 1, |worker| {
        let (pool, place) = (Arc::clone(&pool), places.next());
        let serve = move || {
            place.into_iter().for_each(affinity::bind);
            pool.serve();
        };
        std::thread::Builder::new().name(format!("tile-{worker}")).spawn(serve).map(drop)
    });
    Arc::new(Served { pool, threads: 1 + started, process: Process::current() })
}

/// Starts workers, numbered from 1 on, up to the first that can't be started, and gives how many those are: the system
/// refuses those behind it as well, however many are asked for. The calling thread runs every grid to its end, with fewer
/// workers or without any.
fn start(workers: usize, mut one: impl FnMut(usize) -> std::io::Result<()>) -> usize {
    (1..=workers).take_while(|&worker| one(worker).is_ok()).count()
}

/// How many threads run a grid on the CPU device, the calling one included: as many as the environment variable
/// `TILE_THREADS` says, or as the machine has, unless [`set_threads`] says otherwise; fewer where the system starts no more.
pub fn threads() -> usize {
    served().threads
}

/// Sets how many threads run a grid on the CPU device, the calling one included, from the next launch on; 0 counts as 1, and of
/// more than the system starts there are as many as it does.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::cpu;
/// cpu::set_threads(3);
/// assert_eq!(cpu::threads(), 3);
/// ```
pub fn set_threads(count: usize) {
    let new = serve(count.max(1), affinity::is_asked());
    let old = SERVED.write().unwrap_or_else(PoisonError::into_inner).replace(new);
    // A thread that isn't here may have locked the pool.
    if let Some(old) = old.filter(|served| !served.process.is_over()) {
        old.pool.close();
    }
}

/// Sets whether the threads of the CPU device, but for those that launch, are bound to a processor each, from the next
/// launch on: on Linux, where the process may use more processors than there are such threads. Unless this says so, the
/// environment variable `TILE_PIN=on` does; without either they run where the system puts them.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::cpu;
/// cpu::set_pinned(true);
/// # cpu::set_pinned(false);
/// ```
pub fn set_pinned(pinned: bool) {
    affinity::ask(pinned);
    set_threads(threads());
}

/// Bytes of a page. Loads are checked against earlier stores by the lowest bits of their addresses, those in a page: a loop
/// that reads a row which begins a page, as rows of tensors mostly do, and stores what it makes of it doesn't come upon
/// its own stores where those begin a page as well.
const PAGE_BYTES: usize = 4096;

/// A thread's scratch memory.
struct Scratch {
    buffer: HostBuffer,
    /// The launch that had it last.
    owner: u64,
}

/// Gives this thread's scratch memory to a launch, which begins a page, grows as kernels ask and is kept between launches,
/// and says whether it is as the same launch has left it.
fn with_scratch(bytes: usize, launch: u64, run: impl FnOnce(*mut u8, bool)) -> Result<()> {
    thread_local! {
        static SCRATCH: RefCell<Option<Scratch>> = const { RefCell::new(None) };
    }
    let needed = bytes.saturating_add(PAGE_BYTES);
    // A thread that is about to end keeps none any more.
    let kept = SCRATCH.try_with(RefCell::take).ok().flatten();
    let mut scratch = match kept.filter(|kept| kept.buffer.len() >= needed) {
        Some(kept) => kept,
        None => Scratch { buffer: HostBuffer::zeroed(needed)?, owner: 0 },
    };
    let goes_on = std::mem::replace(&mut scratch.owner, launch) == launch;
    let first = scratch.buffer.as_mut_ptr();
    // SAFETY: the buffer has a page more than is needed.
    run(unsafe { first.add(first.align_offset(PAGE_BYTES)) }, goes_on);
    let _ = SCRATCH.try_with(|kept| kept.replace(Some(scratch)));
    Ok(())
}

/// A number for a launch, which no other one has, nor scratch memory that no launch had.
fn launch_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed) + 1
}

/// A grid, as far as it matters who runs it.
#[derive(Clone, Copy)]
pub(crate) struct Work<'p> {
    /// Blocks, which are numbered from 0 on.
    pub(crate) blocks: usize,
    /// Tiles that they handle together, as many each.
    pub(crate) tiles: usize,
    /// What earlier launches have shown of a tile's time.
    pub(crate) pace: &'p Pace,
}

impl Work<'_> {
    /// How many tiles so many blocks handle.
    fn tiles_of(&self, blocks: usize) -> f64 {
        self.tiles as f64 * blocks as f64 / self.blocks as f64
    }

    /// Who runs what is left after so many blocks, where a tile takes so many nanoseconds.
    fn way(&self, after: usize, served: &Served, nanoseconds: Option<f64>) -> Way {
        let tiles = self.tiles_of(self.blocks - after);
        let way = |handover| way(tiles, served.threads, nanoseconds, handover);
        // The pool's lock is looked at where it matters alone.
        if way(Handover::Asleep) != way(Handover::Awake) && served.pool.sleeps() {
            way(Handover::Asleep)
        } else {
            way(Handover::Awake)
        }
    }

    /// Notes how long so many blocks have taken.
    fn note(&self, blocks: usize, time: Duration) {
        self.pace.note(self.tiles_of(blocks), time);
    }
}

/// Runs the blocks of a kernel's grid and returns when all are finished.
///
/// # Safety
/// `slots` must be what the kernel's ABI says, with tensors that stay valid until this returns.
pub(crate) unsafe fn run(entry: CpuEntry, slots: &[u64], scratch_bytes: u64, work: Work<'_>) -> Result<()> {
    // SAFETY: the caller vouches for it.
    unsafe { run_on(&served(), entry, slots, scratch_bytes, work) }
}

/// # Safety
/// As [`run`].
unsafe fn run_on(
    served: &Served,
    entry: CpuEntry,
    slots: &[u64],
    scratch_bytes: u64,
    work: Work<'_>,
) -> Result<()> {
    let scratch_bytes = usize::try_from(scratch_bytes).map_err(|_| Error::OutOfMemory {
        device: "the host".to_owned(),
        bytes: usize::MAX,
        limit: None,
    })?;
    let launch = launch_number();
    let run = |first: usize, end: usize, way: Way| {
        with_scratch(scratch_bytes, launch, |scratch, goes_on| {
            // SAFETY: the caller vouches for the slots and keeps the tensors until every block is finished; the scratch
            // memory is this thread's own, as large and as aligned as the kernel asks for, and where it goes on nobody has
            // written it since an earlier range of this launch. No other range runs at the same time where the thread is alone.
            unsafe {
                entry(slots.as_ptr(), first as u64, end as u64, scratch, goes_on, way == Way::Alone);
            }
        })
    };
    if work.blocks <= 1 || served.threads == 1 {
        return run(0, work.blocks, Way::Alone);
    }
    let begin = match work.way(0, served, work.pace.known()) {
        Way::Shared => 0,
        Way::Alone => {
            let start = Instant::now();
            run(0, 1, Way::Alone)?;
            // Its sizes may be others than those of the launches before: its first block decides about the rest.
            let tile = pace::of(work.tiles_of(1), start.elapsed());
            if work.way(1, served, Some(tile)) == Way::Alone {
                run(1, work.blocks, Way::Alone)?;
                work.note(work.blocks, start.elapsed());
                return Ok(());
            }
            1
        }
    };
    share(served, begin, &work, &run)
}

/// Runs the blocks from `begin` on with the threads of the pool.
fn share(
    served: &Served,
    begin: usize,
    work: &Work<'_>,
    run: &(impl Fn(usize, usize, Way) -> Result<()> + Sync),
) -> Result<()> {
    let (threads, blocks) = (served.threads, work.blocks - begin);
    let failure = Mutex::new(None);
    let is_measured = AtomicBool::new(false);
    let chunks = Chunks::new(blocks, threads);
    let share = |chunk: usize| {
        let Some(Range { start: first, end }) = chunks.get(chunk) else { return };
        // The first chunk is measured, by whoever takes it.
        let start = (!is_measured.swap(true, Relaxed)).then(Instant::now);
        if let Err(error) = run(begin + first, begin + end, Way::Shared) {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
        if let Some(start) = start {
            work.note(end - first, start.elapsed());
        }
    };
    let count = chunks.count();
    served.pool.run(&Job::new(count, &share), (threads - 1).min(count - 1));
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Has so many threads of the pool each do something, with numbers from 0 on, if it has as many.
#[cfg(all(test, target_os = "linux", not(miri)))]
pub(crate) fn on_threads(count: usize, work: &(dyn Fn(usize) + Sync)) {
    served().pool.run(&Job::new(count, work), count - 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts each block in a table whose address is the only slot; writes to its scratch memory.
    unsafe extern "C" fn count_blocks(
        slots: *const u64,
        first: u64,
        end: u64,
        scratch: *mut u8,
        _: bool,
        _: bool,
    ) {
        for block in first..end {
            // SAFETY: the slot is the address of a table of counters, one per block; scratch has 64 bytes.
            unsafe {
                scratch.write(block as u8);
                (*(slots.read() as *const AtomicUsize).add(block as usize)).fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn nobody_asks_for_more_threads_than_the_system_gives() {
        let mut asked = Vec::new();
        let started = start(usize::MAX, |worker| {
            asked.push(worker);
            if worker < 3 { Ok(()) } else { Err(std::io::ErrorKind::WouldBlock.into()) }
        });
        assert_eq!((asked, started), (vec![1, 2, 3], 2));
    }

    fn check(blocks: usize) {
        let table: Vec<AtomicUsize> = (0..blocks).map(|_| AtomicUsize::new(0)).collect();
        // Nothing is known, the rest is shared after the first block, and all of it is run by this thread.
        for tile in [None, Some(1.0), Some(1e9)] {
            let pace = Pace::new();
            tile.into_iter().for_each(|nanoseconds| pace.note(1.0, Duration::from_nanos(nanoseconds as u64)));
            let work = Work { blocks, tiles: 3 * blocks, pace: &pace };
            // SAFETY: the slot is the table's address, which outlives the call.
            unsafe { run(count_blocks, &[table.as_ptr() as u64], 64, work) }.unwrap();
        }
        assert!(table.iter().all(|count| count.load(Ordering::Relaxed) == 3), "{blocks} blocks");
    }

    /// A block that takes longer than the pace says is handed to the pool with those behind it.
    #[test]
    fn the_first_block_decides_about_the_others() {
        unsafe extern "C" fn sleeps(
            slots: *const u64,
            first: u64,
            end: u64,
            _: *mut u8,
            _: bool,
            is_alone: bool,
        ) {
            // SAFETY: the slot is the address of a list under a lock.
            let seen = unsafe { &*(slots.read() as *const Mutex<Vec<(u64, u64, bool)>>) };
            std::thread::sleep(Duration::from_micros(100 * (end - first)));
            seen.lock().unwrap().push((first, end, is_alone));
        }
        let of = |served: &Served, nanoseconds: u64| {
            let (seen, pace) = (Mutex::new(Vec::<(u64, u64, bool)>::new()), Pace::new());
            pace.note(1.0, Duration::from_nanos(nanoseconds));
            let work = Work { blocks: 200, tiles: 200, pace: &pace };
            // SAFETY: the slot is the list's address, which outlives the call; no scratch memory is used.
            unsafe { run_on(served, sleeps, &[std::ptr::from_ref(&seen) as u64], 0, work) }.unwrap();
            let mut seen = seen.into_inner().unwrap();
            seen.sort_unstable();
            assert_eq!(seen.iter().map(|(first, end, _)| end - first).sum::<u64>(), 200);
            seen
        };
        let of_threads =
            |threads| Served { pool: Arc::new(Pool::new(1)), threads, process: Process::current() };
        let two = of_threads(2);
        let seen = of(&two, 1_000_000_000);
        assert!(seen[0] != (0, 1, true) && seen.len() > 2, "shared from the beginning: {seen:?}");
        assert!(seen.iter().all(|&(.., is_alone)| !is_alone), "{seen:?}");
        // A block is said to take 10 ns: 2 µs, for which nobody is asked to help.
        let seen = of(&two, 10);
        assert!(seen[0] == (0, 1, true) && seen.len() > 2, "{seen:?}");
        assert!(seen[1..].iter().all(|&(.., is_alone)| !is_alone), "{seen:?}");
        let one = of_threads(1);
        assert_eq!(of(&one, 10), [(0, 200, true)]);
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn threads_of_the_pool_are_bound_and_those_that_launch_are_not() {
        let mask = || rustix::thread::sched_getaffinity(None).unwrap();
        let own = mask();
        let served = serve(2, true);
        // Two chunks that wait for each other are run by two threads.
        let (met, masks) = (std::sync::Barrier::new(2), Mutex::new(Vec::new()));
        let look = |_: usize| {
            met.wait();
            masks.lock().unwrap().push((std::thread::current().id(), mask()));
        };
        served.pool.run(&Job::new(2, &look), 1);
        served.pool.close();
        let launches = std::thread::current().id();
        for (thread, mask) in masks.into_inner().unwrap() {
            // Where there is one processor, nobody is bound.
            let is_bound = thread != launches && own.count() > 1;
            assert_eq!(mask.count(), if is_bound { 1 } else { own.count() });
        }
        assert_eq!(mask(), own);
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
