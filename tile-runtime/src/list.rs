//! A list that only grows: reading it takes no lock and allocates nothing, and what is in it stays for as long as the
//! process lives.
//!
//! It holds what a launch looks for: the instances of a kernel, and an instance's code for each GPU. These are few, are
//! compared in place, and belong to a kernel's definition, which is a `static`.

use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Values that were added, the first one first.
pub(crate) struct List<T: 'static> {
    first: OnceLock<&'static Node<T>>,
    adding: Mutex<()>,
}

struct Node<T: 'static> {
    value: T,
    next: OnceLock<&'static Node<T>>,
}

impl<T> List<T> {
    pub(crate) const fn new() -> List<T> {
        List { first: OnceLock::new(), adding: Mutex::new(()) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static T> {
        std::iter::successors(self.first.get().copied(), |node| node.next.get().copied())
            .map(|node| &node.value)
    }

    /// The value that `is` accepts; where there is none, one that is made and added. What is made must be accepted. Of
    /// several threads that look for it at once, one makes it.
    pub(crate) fn find_or_add(&self, is: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> &'static T {
        if let Some(found) = self.iter().find(|value| is(value)) {
            return found;
        }
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = self.iter().find(|value| is(value)) {
            return found;
        }
        let mut end = &self.first;
        while let Some(node) = end.get() {
            end = &node.next;
        }
        let node = end.get_or_init(|| Box::leak(Box::new(Node { value: make(), next: OnceLock::new() })));
        &node.value
    }
}

impl<T> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", self.iter().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn values_are_made_once_and_stay_where_they_are() {
        static LIST: List<(usize, usize)> = List::new();
        let made = AtomicUsize::new(0);
        let get = |key: usize| {
            let make = || (key, made.fetch_add(1, Ordering::Relaxed));
            std::ptr::from_ref(LIST.find_or_add(|value| value.0 == key, make))
        };
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let get = &get;
                scope.spawn(move || {
                    for i in 0..40 {
                        get((i * 7 + thread) % 10);
                    }
                });
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 10);
        let mut keys: Vec<usize> = LIST.iter().map(|value| value.0).collect();
        assert_eq!(get(keys[0]), std::ptr::from_ref(LIST.iter().next().unwrap()));
        keys.sort_unstable();
        assert_eq!(keys, (0..10).collect::<Vec<_>>());
    }
}
