//! The own queue of a device that has done a launch when it returns: what is enqueued there is done at once, by the thread
//! that enqueues it, which is told of its failure.

use super::completion::Completion;
use super::waiting;
use crate::error::Result;
use std::sync::Arc;

/// Does something, and says when that was over, and how.
pub(super) fn run(work: impl FnOnce() -> Result<()>) -> Arc<Completion> {
    let completion = Arc::new(Completion::default());
    waiting::due(&completion.end(work()));
    completion
}
