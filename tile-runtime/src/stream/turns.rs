//! Which of two events of a stream is behind the other, as far as that is known: threads may record on one stream at once,
//! in whatever order the driver takes them. `tests/loom` tries all orders of this file's steps on a small case.

use crate::sync::{AtomicU64, Ordering};
use std::sync::Arc;

/// Counts the events of a stream.
pub(crate) struct Turns(Arc<AtomicU64>);

/// When an event was recorded: how many of its stream had been when that began, and when it was over.
pub(crate) struct Turn {
    stream: Arc<AtomicU64>,
    begun: u64,
    over: u64,
}

impl Turns {
    pub(crate) fn new() -> Turns {
        Turns(Arc::new(AtomicU64::new(0)))
    }

    /// Records an event.
    ///
    /// # Errors
    /// What that fails with.
    pub(crate) fn take<E, F>(&self, record: impl FnOnce() -> Result<E, F>) -> Result<(E, Turn), F> {
        let begun = self.0.load(Ordering::Acquire);
        let event = record()?;
        let over = self.0.fetch_add(1, Ordering::AcqRel) + 1;
        Ok((event, Turn { stream: Arc::clone(&self.0), begun, over }))
    }
}

impl Turn {
    /// Whether it is of the same stream as another one, and began when that was over.
    pub(crate) fn is_behind(&self, other: &Turn) -> bool {
        Arc::ptr_eq(&self.stream, &other.stream) && self.begun >= other.over
    }
}
