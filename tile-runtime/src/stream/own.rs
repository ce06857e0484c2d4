//! The own queue of a device that has done a launch when it returns: what is enqueued there is done at once, by the thread
//! that enqueues it.

use super::completion::Completion;
use crate::error::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// A queue without anything in it.
#[derive(Default)]
pub(super) struct OwnQueue {
    /// The first failure that nobody has been told of by the stream.
    failure: Mutex<Option<Error>>,
}

impl OwnQueue {
    /// Does something, and says when that was over, and how.
    pub(super) fn run(&self, work: impl FnOnce() -> Result<()>) -> Arc<Completion> {
        let result = work();
        if let Err(error) = &result {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| error.clone());
        }
        let completion = Arc::new(Completion::default());
        completion.end(result);
        completion
    }

    /// Gives the first failure that wasn't given yet.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}
