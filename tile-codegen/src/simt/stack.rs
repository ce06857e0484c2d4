//! Stacks of threads. Blocks use them one after the other: mapping and touching one costs more than most threads' work.

use corosensei::stack::{DefaultStack, Stack};
use std::cell::RefCell;
use std::io;

/// The least that a thread gets, in bytes; only what is touched becomes memory.
pub(super) const LEAST_BYTES: usize = 512 * 1024;

/// The most, in bytes.
pub(super) const MOST_BYTES: usize = 256 * 1024 * 1024;

/// The stacks that are kept, at most: after a launch whose blocks waited for each other there are more than the next one
/// needs.
const MOST_KEPT: usize = 2048;

thread_local! {
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

fn bytes_of(stack: &DefaultStack) -> usize {
    stack.base().get() - stack.limit().get()
}

/// So many stacks of at least so many bytes.
///
/// # Errors
/// What the system says where it has no more: it maps two ranges for each, of which Linux gives a process 65530.
pub(super) fn take(count: usize, bytes: usize) -> io::Result<Vec<DefaultStack>> {
    (0..count).map(|_| take_one(bytes)).collect()
}

fn take_one(bytes: usize) -> io::Result<DefaultStack> {
    let kept = STACKS.with_borrow_mut(|stacks| {
        let found = stacks.iter().rposition(|stack| bytes_of(stack) >= bytes)?;
        Some(stacks.swap_remove(found))
    });
    kept.map_or_else(|| DefaultStack::new(bytes), Ok)
}

/// Keeps a stack for the next block.
pub(super) fn give_back(stack: DefaultStack) {
    if bytes_of(&stack) > 2 * LEAST_BYTES {
        return;
    }
    STACKS.with_borrow_mut(|stacks| {
        if stacks.len() < MOST_KEPT {
            stacks.push(stack);
        }
    });
}

/// Whether an address lies near the running thread's frame, within a stack of so many bytes.
pub(super) fn holds(address: u64, bytes: usize) -> bool {
    let here = std::ptr::from_ref(&address) as u64;
    here.abs_diff(address) < bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_that_the_system_has_no_room_for_are_an_error() {
        assert_eq!(take(3, LEAST_BYTES).map(|stacks| stacks.len()).ok(), Some(3));
        assert!(take(1, 1 << 60).is_err());
    }
}
