//! The events that the users of some memory have left: those that wrote it, and those that have read it since. Memory that
//! nobody has used costs a look at a number. `tests/loom` tries all orders of this file's steps on small cases.
//!
//! Invariant: an event stays until it is done, or until a write has come that waits for it, or of a read until another has
//! come behind it. Threads may write parts of one memory at once without having waited for each other, so a write takes the
//! place of what it has waited for alone. A read takes the place of reads of its own stream that are known to be before it:
//! so there are few, however many launches read what nobody writes.

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};
use smallvec::SmallVec;
use std::sync::PoisonError;

/// What is done with memory, or with elements in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    /// Whether or not it is read as well.
    Write,
}

/// Events, of which there are few.
pub(crate) type Few<E> = SmallVec<[E; 2]>;

/// An event of a user of memory.
pub(crate) trait Mark: Clone + PartialEq {
    /// Whether the work before it is known to be done.
    fn is_over(&self) -> bool;

    /// Whether it is known to be behind another one, so that who waits for it has waited for both.
    fn is_behind(&self, other: &Self) -> bool;
}

pub(crate) struct Marks<E> {
    /// Whether there may be any. Changed under the lock.
    any: AtomicBool,
    list: Mutex<List<E>>,
}

struct List<E> {
    /// One, unless parts of the memory were written at once.
    written: Few<E>,
    /// Since it was written.
    read: Few<E>,
}

impl<E> Default for Marks<E> {
    fn default() -> Marks<E> {
        let list = List { written: Few::new(), read: Few::new() };
        Marks { any: AtomicBool::new(false), list: Mutex::new(list) }
    }
}

impl<E: Mark> Marks<E> {
    fn list(&self) -> MutexGuard<'_, List<E>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has to be done before the memory is read, or written. Nothing else is enqueued meanwhile that would have to
    /// be waited for: who is about to read or write borrows the elements, and what is done with others needn't be.
    pub(crate) fn before(&self, access: Access) -> Few<E> {
        if !self.any.load(Ordering::Acquire) {
            return Few::new();
        }
        let mut list = self.list();
        list.written.retain(|event| !event.is_over());
        let mut before = list.written.clone();
        // Who reads doesn't wait for other readers.
        if access == Access::Write {
            list.read.retain(|event| !event.is_over());
            before.extend(list.read.iter().cloned());
        }
        self.any.store(!(list.written.is_empty() && list.read.is_empty()), Ordering::Release);
        before
    }

    /// Notes what reads the memory, or writes it, and has waited for some events.
    pub(crate) fn note(&self, event: &E, access: Access, waited_for: &[E]) {
        let mut list = self.list();
        match access {
            Access::Write => {
                let stays = |other: &mut E| other != event && !waited_for.contains(other);
                list.written.retain(stays);
                list.read.retain(stays);
                list.written.push(event.clone());
            }
            Access::Read => {
                list.read.retain(|other| !(event.is_behind(other) || other.is_over()));
                list.read.push(event.clone());
            }
        }
        self.any.store(true, Ordering::Release);
    }
}
