//! What the pool is made of. Its model test puts loom's in the place of these.

pub(super) use std::hint::spin_loop;
pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};

/// How often a thread without work looks for some before it sleeps: some 20 µs, after which waking it costs about as
/// much.
pub(super) const SPINS: usize = 2_000;
