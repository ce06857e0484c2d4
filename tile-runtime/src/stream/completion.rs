//! The end of a piece of work of the host's: threads wait for it, and tasks are told by who ends it. `tests/loom` tries all
//! orders of this file's steps on small cases.

use crate::error::Result;
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::sync::PoisonError;
use std::time::Instant;

/// A piece of work that is done, or will be.
pub(crate) struct Completion {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// When it was done, and how it ended.
    ended: Option<(Instant, Result<()>)>,
    /// Whether somebody was told how.
    is_told: bool,
    /// The numbers of those that wait.
    tasks: Vec<usize>,
}

impl Default for Completion {
    fn default() -> Completion {
        let state = State { ended: None, is_told: false, tasks: Vec::new() };
        Completion { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl Completion {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells every thread that it is over, and how, and gives the tasks that are to be woken.
    #[must_use = "tasks wait"]
    pub(crate) fn end(&self, result: Result<()>) -> Vec<usize> {
        let mut state = self.lock();
        state.ended = Some((Instant::now(), result));
        let tasks = std::mem::take(&mut state.tasks);
        drop(state);
        self.changed.notify_all();
        tasks
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

    /// Waits until it is done, and tells how it ended.
    pub(crate) fn tell(&self) -> Result<()> {
        let (_when, how) = self.wait();
        self.lock().is_told = true;
        how
    }

    /// Whether somebody was told how it ended.
    pub(crate) fn is_told(&self) -> bool {
        self.lock().is_told
    }

    /// Tells what it failed with, if it has, and nobody was told before.
    pub(crate) fn tell_failure(&self) -> Result<()> {
        let mut state = self.lock();
        let is_known = std::mem::replace(&mut state.is_told, true);
        match &state.ended {
            Some((_, how)) if !is_known => how.clone(),
            _ => Ok(()),
        }
    }

    /// How it ended; while it hasn't, the task of a number is to be woken when it does.
    pub(crate) fn poll(&self, task: usize) -> Option<Result<()>> {
        let mut state = self.lock();
        if let Some(result) = state.ended.as_ref().map(|(_, result)| result.clone()) {
            state.is_told = true;
            return Some(result);
        }
        if !state.tasks.contains(&task) {
            state.tasks.push(task);
        }
        None
    }
}
