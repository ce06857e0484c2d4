//! Processors that the pool's threads are bound to, one each, where that is asked for and the system can.
//!
//! A thread that launches is the program's and is never bound. The processors are among those that the process may use, and
//! the one on which the pool is made is left to who launches.

use crate::environment;
use std::sync::{Mutex, PoisonError};

/// The environment variable that says whether threads are bound.
const VARIABLE: &str = "TILE_PIN";

/// What [`ask`] said, if it was called.
static ASKED: Mutex<Option<bool>> = Mutex::new(None);

/// Whether threads are to be bound: what [`ask`] said, else `TILE_PIN=on`.
pub(super) fn is_asked() -> bool {
    let asked = *ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let by_environment = || environment::said(VARIABLE, "`on` or `off`", environment::switch);
    asked.or_else(by_environment).unwrap_or(false)
}

/// Says whether the threads of pools to come are bound.
pub(super) fn ask(pinned: bool) {
    *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = Some(pinned);
}

/// The processors that so many threads are bound to; none where they can't be.
pub(super) fn places(threads: usize) -> Vec<usize> {
    let (current, allowed) = system::processors();
    chosen(threads, current, &allowed)
}

/// So many of the processors that are allowed, but not the current one; none where these are too few, because two threads
/// on one processor would wait for each other beside others that are free.
fn chosen(threads: usize, current: usize, allowed: &[usize]) -> Vec<usize> {
    let others: Vec<usize> =
        allowed.iter().copied().filter(|&place| place != current).take(threads).collect();
    if others.len() == threads { others } else { Vec::new() }
}

/// Binds this thread to a processor. Where the system refuses, it runs wherever it may.
pub(super) fn bind(processor: usize) {
    system::bind(processor);
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// The processor on which this thread runs, and those on which it may: what `taskset`, containers and job schedulers
    /// leave of the machine. None of a machine with more than a set has room for.
    pub(super) fn processors() -> (usize, Vec<usize>) {
        let allowed = sched_getaffinity(None).unwrap_or_default();
        (sched_getcpu(), (0..CpuSet::MAX_CPU).filter(|&place| allowed.is_set(place)).collect())
    }

    pub(super) fn bind(processor: usize) {
        let mut only = CpuSet::new();
        only.set(processor);
        let _ = sched_setaffinity(None, &only);
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn processors() -> (usize, Vec<usize>) {
        (0, Vec::new())
    }

    pub(super) fn bind(_: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_launches_keeps_its_processor() {
        assert_eq!(chosen(1, 0, &[0, 1]), [1]);
        assert_eq!(chosen(1, 1, &[0, 1]), [0]);
        assert_eq!(chosen(3, 6, &[2, 4, 6, 8, 10]), [2, 4, 8]);
        assert!(chosen(0, 0, &[0]).is_empty());
        // More threads than processors that are left.
        assert!(chosen(2, 0, &[0, 1]).is_empty());
        assert!(chosen(1, 0, &[]).is_empty());
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn a_thread_that_is_bound_is_bound_alone() {
        use super::system::processors;
        let (_, before) = processors();
        for &place in &before {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    bind(place);
                    assert_eq!(processors(), (place, vec![place]));
                });
            });
        }
        // A processor that isn't there binds nothing.
        std::thread::scope(|scope| {
            let before = &before;
            scope.spawn(move || {
                bind(1000);
                assert_eq!(processors().1, *before);
            });
        });
        assert_eq!(processors().1, before);
    }
}
