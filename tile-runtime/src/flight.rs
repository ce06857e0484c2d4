//! A value that is made when it is first asked for, once, however many threads ask: the others wait for the one that
//! makes it. Where that fails, who waited gets the same error, and who asks later tries again.
//!
//! Reading a value that is there takes no lock. Values of different flights have nothing to do with each other: one that
//! takes long keeps nobody from another. `tests/loom` tries all orders of this file's steps on small cases.

use crate::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::sync::PoisonError;

/// A value that is there, is being made, or isn't there.
pub(crate) struct Flight<T, E> {
    landed: OnceLock<T>,
    state: Mutex<State<E>>,
    changed: Condvar,
}

struct State<E> {
    /// How many times it was begun to make the value.
    attempt: u64,
    is_running: bool,
    /// What the latest attempt failed with, where it did.
    failure: Option<E>,
}

impl<T, E: Clone> Flight<T, E> {
    pub(crate) fn new() -> Flight<T, E> {
        Flight {
            landed: OnceLock::new(),
            state: Mutex::new(State { attempt: 0, is_running: false, failure: None }),
            changed: Condvar::new(),
        }
    }

    /// The value, if it is there.
    pub(crate) fn get(&self) -> Option<&T> {
        self.landed.get()
    }

    /// The value, which is made now if nobody has made it.
    ///
    /// # Errors
    /// What making it failed with, here or in the thread that this one waited for.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let mut state = self.lock();
        while state.is_running {
            let attempt = state.attempt;
            while state.is_running && state.attempt == attempt {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            match &state.failure {
                Some(failure) if state.attempt == attempt => return Err(failure.clone()),
                // Made, begun anew, or given up by a panic.
                _ => {}
            }
        }
        if let Some(value) = self.get() {
            return Ok(value);
        }
        (state.attempt, state.is_running, state.failure) = (state.attempt + 1, true, None);
        drop(state);
        let mut running = Running { flight: self, failure: None };
        match make() {
            Ok(value) => Ok(self.landed.get_or_init(|| value)),
            Err(error) => {
                running.failure = Some(error.clone());
                Err(error)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt, which ends when this is dropped, be it by a panic.
struct Running<'f, T, E: Clone> {
    flight: &'f Flight<T, E>,
    failure: Option<E>,
}

impl<T, E: Clone> Drop for Running<'_, T, E> {
    fn drop(&mut self) {
        let mut state = self.flight.lock();
        (state.is_running, state.failure) = (false, self.failure.take());
        self.flight.changed.notify_all();
    }
}
