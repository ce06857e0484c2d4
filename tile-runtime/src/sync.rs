//! What threads agree by, for the files that `tests/loom` runs in every order of their steps: its models put loom's in the
//! place of these.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// Looks whether something holds, for so long at most, and gives whether it does. After a few microseconds, others that wait
/// for this thread's processor have it between two looks: perhaps it is one of them who is waited for.
pub(crate) fn look_on(time: Duration, holds: impl Fn() -> bool) -> bool {
    const LOOKS: usize = 32;
    const ALONE: Duration = Duration::from_micros(10);
    let start = Instant::now();
    loop {
        for _ in 0..LOOKS {
            if holds() {
                return true;
            }
            std::hint::spin_loop();
        }
        match start.elapsed() {
            elapsed if elapsed >= time => return false,
            elapsed if elapsed >= ALONE => std::thread::yield_now(),
            _ => {}
        }
    }
}
