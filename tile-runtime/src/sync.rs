//! What threads agree by, for the files that `tests/loom` runs in every order of their steps: its models put loom's in the
//! place of these.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};

/// How often a thread without work looks for some before it sleeps: some 20 µs, after which waking it costs about as
/// much.
pub(crate) const SPINS: usize = 2_000;
