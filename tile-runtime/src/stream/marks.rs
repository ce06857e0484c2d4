//! The events that the users of some memory have left: the last one that wrote it, and those that have read it since.
//! Memory that nobody has used costs a look at a number. `tests/loom` tries all orders of this file's steps on small cases.

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};
use smallvec::SmallVec;
use std::sync::PoisonError;

/// Events, of which there are few.
pub(crate) type Few<E> = SmallVec<[E; 2]>;

pub(crate) struct Marks<E> {
    /// Whether there may be any. Changed under the lock.
    any: AtomicBool,
    list: Mutex<List<E>>,
}

struct List<E> {
    written: Option<E>,
    /// Since it was written.
    read: Few<E>,
}

impl<E> Default for Marks<E> {
    fn default() -> Marks<E> {
        let list = List { written: None, read: Few::new() };
        Marks { any: AtomicBool::new(false), list: Mutex::new(list) }
    }
}

impl<E: Clone> Marks<E> {
    fn list(&self) -> MutexGuard<'_, List<E>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has to be done before the memory is read, or written. Nothing else is enqueued meanwhile that would have to
    /// be waited for: who is about to read or write borrows the memory.
    pub(crate) fn before(&self, writes: bool, is_done: impl Fn(&E) -> bool) -> Few<E> {
        if !self.any.load(Ordering::Acquire) {
            return Few::new();
        }
        let mut list = self.list();
        list.forget(is_done);
        self.any.store(list.written.is_some() || !list.read.is_empty(), Ordering::Release);
        let reads = if writes { list.read.as_slice() } else { &[] };
        list.written.iter().chain(reads).cloned().collect()
    }

    /// Notes what reads the memory, or writes it, after waiting for what was before.
    pub(crate) fn note(&self, event: &E, writes: bool, is_done: impl Fn(&E) -> bool) {
        let mut list = self.list();
        if writes {
            list.read.clear();
            list.written = Some(event.clone());
        } else {
            list.forget(is_done);
            list.read.push(event.clone());
        }
        self.any.store(true, Ordering::Release);
    }
}

impl<E> List<E> {
    fn forget(&mut self, is_done: impl Fn(&E) -> bool) {
        self.written.take_if(|event| is_done(event));
        self.read.retain(|event| !is_done(event));
    }
}
