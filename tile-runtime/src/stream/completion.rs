//! The end of a piece of work of the host's: threads wait for it, and tasks are woken. `tests/loom` tries all orders of this
//! file's steps on small cases.

use crate::error::Result;
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::task::Waker;
use std::time::Instant;

/// A piece of work that is done, or will be.
pub(crate) struct Completion {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// When it was done, and how it ended.
    ended: Option<(Instant, Result<()>)>,
    wakers: Vec<Waker>,
}

impl Default for Completion {
    fn default() -> Completion {
        let state = State { ended: None, wakers: Vec::new() };
        Completion { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl Completion {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everybody that it is over, and how.
    pub(crate) fn end(&self, result: Result<()>) {
        let mut state = self.lock();
        state.ended = Some((Instant::now(), result));
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.changed.notify_all();
        wakers.into_iter().for_each(wake);
    }

    /// When it was done, and how it ended; `None` while it isn't.
    pub(crate) fn ended(&self) -> Option<(Instant, Result<()>)> {
        self.lock().ended.clone()
    }

    /// Waits until it is done.
    pub(crate) fn wait(&self) -> (Instant, Result<()>) {
        let mut state = self.lock();
        loop {
            match &state.ended {
                Some(ended) => return ended.clone(),
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// How it ended; who is to be woken when it does, while it hasn't.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Result<()>> {
        let mut state = self.lock();
        if let Some((_, result)) = &state.ended {
            return Some(result.clone());
        }
        if !state.wakers.iter().any(|known| known.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
        None
    }
}

/// Wakes a task. A waker is an executor's: one that panics doesn't end a thread that others wait for, and keeps none asleep
/// that is woken after it.
pub(crate) fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}
