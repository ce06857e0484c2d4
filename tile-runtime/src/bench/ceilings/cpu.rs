//! The CPU's ceilings: `memcpy`, and multiply-adds in registers.

use super::{Ceiling, TRIES};
use crate::machine;
use std::hint::black_box;
use std::sync::{Barrier, RwLock, mpsc};
use std::time::Instant;
use tile_ir::DType;

/// What all threads together copy, in bytes: at least where there is as much memory, and at most.
const COPIED: [usize; 2] = [128 << 20, 1 << 30];

/// What they copy at least, in bytes. A rate of less is none of memory's.
const FEWEST: usize = 16 << 20;

/// The part of the memory that this process may use which both buffers of all threads take at most: whoever displays a profile
/// has use for the rest.
const SHARE: u64 = 8;

/// What a thread copies, in bytes, if there are ever so many: less takes too little time to be measured.
const LEAST: usize = 1 << 20;

/// So many threads share a last cache, or more.
const SHARE_A_CACHE: usize = 8;

/// Turns of the loop over chains of multiply-adds: some milliseconds.
const TURNS: u64 = 1 << 20;

/// The rates of all tries.
pub(super) fn measure(ceiling: Ceiling, threads: usize) -> Option<Vec<f64>> {
    match ceiling {
        Ceiling::Copy => copy(threads),
        Ceiling::MultiplyAdd(dtype) | Ceiling::Product(dtype) => {
            let is_double = match dtype {
                DType::F32 => false,
                DType::F64 => true,
                _ => return None,
            };
            multiply_adds(is_double)?;
            at_once(threads, || Some(()), |()| multiply_adds(is_double).unwrap_or(0))
        }
    }
}

/// Bytes per second that copies on all threads read and write; `None` without memory for them.
fn copy(threads: usize) -> Option<Vec<f64>> {
    let bytes = part(threads, machine::last_level_cache_bytes(), machine::usable_bytes())?;
    // Written, so that there is memory behind them.
    let own = || Some((filled(bytes, 1)?, filled(bytes, 2)?));
    at_once(threads, own, |(source, target)| {
        target.copy_from_slice(black_box(source));
        black_box(target);
        2 * bytes as u64
    })
}

/// What each of so many threads copies, in bytes, where a last cache has so many: together as much as all caches hold, so
/// that these hold half of what is read and written. `None` where that is too much of the memory that may be used.
fn part(threads: usize, cache: u64, usable: Option<u64>) -> Option<usize> {
    let caches = threads.div_ceil(SHARE_A_CACHE) as u64;
    let held = usize::try_from(caches.saturating_mul(cache)).unwrap_or(usize::MAX).min(COPIED[1]);
    let least = held.max(FEWEST).max(LEAST.saturating_mul(threads));
    // Of two buffers one; where nobody says how much memory there is, what has to be.
    let room = usable.map_or(least, |usable| usize::try_from(usable / SHARE / 2).unwrap_or(usize::MAX));
    (least <= room).then(|| least.max(COPIED[0]).min(room) / threads)
}

/// So many bytes of a value; `None` where there isn't as much memory.
fn filled(bytes: usize, value: u8) -> Option<Vec<u8>> {
    let mut filled = Vec::new();
    filled.try_reserve_exact(bytes).ok()?;
    filled.resize(bytes, value);
    Some(filled)
}

/// So many a second, try by try, of work that all threads do at once, each with something of its own, and that says how
/// much it was. Threads that the system doesn't start, and those without something of their own, are done without; this one
/// isn't.
fn at_once<T>(
    threads: usize,
    own: impl Fn() -> Option<T> + Sync,
    work: impl Fn(&mut T) -> u64 + Sync,
) -> Option<Vec<f64>> {
    // There is no barrier before it is known how many come to it.
    let barrier = RwLock::new(None::<Barrier>);
    let measure = |mut own: T| {
        let barrier = barrier.read().ok()?;
        let tries = (0..TRIES).map(|_| {
            barrier.as_ref().map(Barrier::wait);
            let start = Instant::now();
            let done = work(&mut own);
            done as f64 / start.elapsed().as_secs_f64()
        });
        Some(tries.collect::<Vec<f64>>())
    };
    let this = own()?;
    let rates: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let mut place = barrier.write().ok()?;
        let (tell, told) = mpsc::channel();
        let (own, measure) = (&own, &measure);
        let other = |_| {
            let tell = tell.clone();
            let run = move || {
                let own = own();
                let _ = tell.send(own.is_some());
                drop(tell);
                measure(own?)
            };
            std::thread::Builder::new().spawn_scoped(scope, run).ok()
        };
        let others: Vec<_> = (1..threads).map_while(other).collect();
        drop(tell);
        let ready = told.into_iter().filter(|&is_ready| is_ready).count();
        *place = Some(Barrier::new(1 + ready));
        drop(place);
        let all = [measure(this)].into_iter().chain(others.into_iter().map(|other| other.join().ok()?));
        Some(all.flatten().collect())
    })?;
    Some((0..TRIES).map(|number| rates.iter().map(|rates| rates[number]).sum()).collect())
}

/// An instruction on each of these registers, given by what stands before and behind their numbers: on as many as
/// instructions take to finish that begin twice a clock.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! on_each {
    ($before:literal, $behind:literal, $($register:literal)*) => {
        concat!($($before, $register, $behind, "\n"),*)
    };
}

/// Multiply-adds of twelve registers: how many operations were done. `None` without an instruction for them. In assembly,
/// because programs that aren't optimised are profiled, too.
#[cfg(target_arch = "x86_64")]
fn multiply_adds(is_double: bool) -> Option<u64> {
    macro_rules! turns {
        ($instruction:literal, $factors:literal) => {
            std::arch::asm!(
                "vzeroall",
                "2:",
                on_each!($instruction, $factors, 0 1 2 3 4 5 6 7 8 9 10 11),
                "dec rcx",
                "jnz 2b",
                inout("rcx") TURNS => _, clobber_abi("C"), options(nomem, nostack)
            )
        };
    }
    let lanes = crate::cpu::levels::best()?.lanes;
    // SAFETY: this machine has the instructions of the level, and what they change is named.
    unsafe {
        match (lanes, is_double) {
            (16, false) => turns!("vfmadd231ps zmm", ", zmm12, zmm13"),
            (16, true) => turns!("vfmadd231pd zmm", ", zmm12, zmm13"),
            (8, false) => turns!("vfmadd231ps ymm", ", ymm12, ymm13"),
            (8, true) => turns!("vfmadd231pd ymm", ", ymm12, ymm13"),
            _ => return None,
        }
    }
    Some(operations(4 * lanes, is_double))
}

/// Multiply-adds of twelve registers: how many operations were done. In assembly, because programs that aren't optimised
/// are profiled, too.
#[cfg(target_arch = "aarch64")]
fn multiply_adds(is_double: bool) -> Option<u64> {
    macro_rules! turns {
        ($factors:literal) => {
            std::arch::asm!(
                "movi v28.16b, #0",
                "2:",
                on_each!("fmla v", $factors, 16 17 18 19 20 21 22 23 24 25 26 27),
                "subs x9, x9, #1",
                "b.ne 2b",
                inout("x9") TURNS => _, clobber_abi("C"), options(nomem, nostack)
            )
        };
    }
    // SAFETY: every such machine has the instructions, and what they change is named.
    unsafe {
        match is_double {
            false => turns!(".4s, v28.4s, v28.4s"),
            true => turns!(".2d, v28.2d, v28.2d"),
        }
    }
    Some(operations(16, is_double))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn multiply_adds(_: bool) -> Option<u64> {
    None
}

/// Two for each element of twelve registers of so many bytes, each turn.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn operations(bytes: u64, is_double: bool) -> u64 {
    2 * 12 * TURNS * bytes / if is_double { 8 } else { 4 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn formats_of_registers_have_ceilings() {
        let rates = |dtype| measure(Ceiling::MultiplyAdd(dtype), 2);
        for dtype in [DType::F32, DType::F64] {
            // A 64-bit processor of any kind does more.
            let is_fast = |rates: Vec<f64>| rates.len() == TRIES && rates.iter().all(|&rate| rate > 1e7);
            assert!(rates(dtype).is_none_or(is_fast));
        }
        assert_eq!((rates(DType::I8), rates(DType::BF16)), (None, None));
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        assert_eq!(operations(32, false), 2 * operations(32, true));
    }

    #[test]
    fn what_is_copied_is_more_than_caches_hold_and_not_all_memory() {
        const MIB: usize = 1 << 20;
        let parts = |cache: usize, usable: Option<usize>| {
            let usable = usable.map(|usable| (usable * MIB) as u64);
            [1, 2, 64, 256, 1024]
                .map(|threads| part(threads, (cache * MIB) as u64, usable).map(|part| part / MIB))
        };
        assert_eq!(parts(32, Some(1 << 20)), [128, 64, 4, 4, 1].map(Some));
        assert_eq!(parts(260, Some(1 << 20)), [260, 130, 16, 4, 1].map(Some));
        // A sixteenth is 64 MiB: enough for 32 that are held, and for no more threads than have a mebibyte each.
        assert_eq!(parts(32, Some(1024)), [Some(64), Some(32), None, None, None]);
        assert_eq!(parts(8, Some(1024)), [Some(64), Some(32), Some(1), None, None]);
        assert_eq!(parts(260, Some(1024)), [None; 5]);
        assert_eq!(parts(2, Some(255)), [None; 5]);
        // Where nobody says how much there is, no more than has to be.
        assert_eq!(parts(32, None)[..2], [Some(32), Some(16)]);
        assert_eq!(part(usize::MAX, u64::MAX, Some(u64::MAX)), None);
        assert!(filled(usize::MAX, 1).is_none());
    }

    #[test]
    fn threads_that_can_not_be_had_are_done_without() {
        let (given, worked) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let own = || (given.fetch_add(1, Ordering::Relaxed) < 2).then_some(());
        let work = |(): &mut ()| {
            worked.fetch_add(1, Ordering::Relaxed);
            1
        };
        assert_eq!(at_once(4, own, work).map(|rates| rates.len()), Some(TRIES));
        assert_eq!(worked.load(Ordering::Relaxed), 2 * TRIES);
        assert_eq!(at_once(1, || None::<()>, |()| 1), None);
    }
}
