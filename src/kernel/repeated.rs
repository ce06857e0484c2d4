//! Waits that nothing ends: on the reference device blocks run one after the other, so what a block reads of an atomic view
//! stays as it is unless the block itself changes it.

use std::cell::RefCell;
use std::panic::Location;

/// How often an operation may find the same element as it was before that is said to be for ever. No proof, but more than a
/// kernel does for anything else: a block that reads one element so often without a change takes a minute here.
const MOST_TIMES: u32 = 1 << 24;

/// The elements that are remembered: those that a kernel looks at in one turn of a loop that waits.
const ELEMENTS: usize = 16;

/// What a block has found unchanged of a view: the first element of an operation, and how often.
#[derive(Debug, Default)]
pub(super) struct Repeated(RefCell<Vec<(usize, u32)>>);

impl Repeated {
    /// Notes an operation by its first element, and whether it changed any.
    ///
    /// # Panics
    /// If it has found the element unchanged too often.
    #[track_caller]
    pub(super) fn note(&self, first: Option<usize>, changed: bool) {
        let mut found = self.0.borrow_mut();
        if changed {
            found.clear();
            return;
        }
        let Some(first) = first else { return };
        let Some((_, times)) = found.iter_mut().find(|(element, _)| *element == first) else {
            if found.len() == ELEMENTS {
                found.clear();
            }
            found.push((first, 0));
            return;
        };
        *times += 1;
        if *times >= MOST_TIMES {
            let place = Location::caller();
            panic!(
                "it waits for ever at {place}: an atomic operation there has found an element as it was {MOST_TIMES} times. \
                 Blocks run one after the other here, so a block can wait for those with lower numbers alone; those of \
                 `Device::simulated` wait for any other"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn an_element_that_stays_as_it_is_is_told_and_one_that_changes_is_not() {
        let repeated = Repeated::default();
        for _ in 0..MOST_TIMES {
            repeated.note(Some(3), false);
            repeated.note(Some(4), false);
        }
        repeated.note(Some(5), true);
        for _ in 0..MOST_TIMES {
            repeated.note(Some(3), false);
        }
        let line = line!() + 2;
        let panic =
            catch_unwind(AssertUnwindSafe(|| repeated.note(Some(3), false))).expect_err("it is too often");
        let message = panic.downcast_ref::<String>().expect("it has a text");
        let place =
            message.find(": an").and_then(|end| message[..end].rsplit_once(':')).expect("it names a place").0;
        assert_eq!(place, format!("it waits for ever at src/kernel/repeated.rs:{line}"));
        assert!(message.ends_with(
            ": an atomic operation there has found an element as it was 16777216 times. Blocks run one after the other here, \
             so a block can wait for those with lower numbers alone; those of `Device::simulated` wait for any other"
        ));
    }
}
