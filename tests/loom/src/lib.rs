//! The files of tile-runtime in which threads agree by atomics, locks and conditions, under loom, which runs threads in
//! every order that these allow, up to a bound of preemptions, and checks that what one thread writes is there for the
//! next.
#![cfg(test)]

/// Loom's atomics and locks in the place of the standard library's.
mod sync {
    pub(crate) use crate::once::OnceLock;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

    /// One look is as good as a thousand, and has fewer orders.
    pub(crate) fn look_on(_: std::time::Duration, holds: impl Fn() -> bool) -> bool {
        loom::hint::spin_loop();
        holds()
    }
}

/// What work of the host fails with.
mod error {
    pub(crate) type Result<T> = std::result::Result<T, String>;
}

#[path = "../../../tile-runtime/src/stream/completion.rs"]
mod completion;
#[path = "../../../tile-runtime/src/flight.rs"]
mod flight;
#[path = "../../../tile-runtime/src/stream/marks.rs"]
mod marks;
#[path = "../../../tile-runtime/src/cpu/pool.rs"]
mod pool;
#[path = "../../../tile-runtime/src/stream/turns.rs"]
mod turns;
#[path = "../../../tile-runtime/src/cpu/watch.rs"]
mod watch;
#[path = "../../../tile-runtime/src/gpu/work.rs"]
mod work;

mod completion_tests;
mod flight_tests;
mod marks_tests;
mod once;
mod pool_tests;
mod turns_tests;
mod work_tests;

/// Tries all orders with so many preemptions.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}
