//! How much work a GPU's own stream has been given, and up to where another stream comes after it, so that a stream is
//! made to wait only where there is something new.
//!
//! A piece is counted when it *is* enqueued: a stream that has waited up to a number comes after all pieces that were
//! counted before. `tests/loom` tries all orders of this file's steps on small cases.

use crate::sync::{AtomicU64, Ordering};

/// Pieces of work that were enqueued.
pub(crate) struct Enqueued(AtomicU64);

/// A piece that is being enqueued, or a few, which count when this is dropped.
pub(crate) struct Enqueuing<'e>(&'e Enqueued);

/// Up to which piece a stream comes after another.
pub(crate) struct Followed(AtomicU64);

impl Enqueued {
    pub(crate) fn new() -> Enqueued {
        Enqueued(AtomicU64::new(1))
    }

    /// To be kept until what is enqueued now is in the stream.
    pub(crate) fn begin(&self) -> Enqueuing<'_> {
        Enqueuing(self)
    }
}

impl Drop for Enqueuing<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::Release);
    }
}

impl Followed {
    pub(crate) fn new() -> Followed {
        Followed(AtomicU64::new(0))
    }

    /// Has the stream wait, unless it did since the last piece was enqueued. Another thread that uses the same stream
    /// meanwhile waits itself, or finds the wait in the stream.
    ///
    /// # Errors
    /// What waiting fails with; the next one waits, then.
    pub(crate) fn follow<E>(
        &self,
        enqueued: &Enqueued,
        wait: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let count = enqueued.0.load(Ordering::Acquire);
        if self.0.load(Ordering::Acquire) < count {
            wait()?;
            self.0.fetch_max(count, Ordering::Release);
        }
        Ok(())
    }
}
