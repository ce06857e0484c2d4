//! Where the values of a running block live: a stack of thread-local arenas, one per block in progress.
//!
//! A [`Handle`] is a plain index, so tiles and views can be `Copy` as values in a kernel are. It also names the
//! block that made it: a handle that outlives its block is refused, never read as another block's value.
//! This file knows nothing of shapes, formats or ops.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::marker::PhantomData;
use std::rc::Rc;

/// Where a value is: in the block `generation`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    generation: u64,
    index: usize,
}

/// A value of type `V`. Meaningful on one thread only, where the raw pointer keeps it.
pub(super) struct Handle<V> {
    pub(super) place: Place,
    value: PhantomData<*const V>,
}

impl<V> Clone for Handle<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Handle<V> {}

/// The values of one block. They are freed when the block ends, and what a turn of a loop made before the next.
struct Arena {
    generation: u64,
    /// How many values were made.
    made: usize,
    /// Those that live, each with its number, in order.
    values: Vec<(usize, Rc<dyn Any>)>,
}

/// Values made outside any block, as in a unit test of a kernel's helper. They live as long as the thread.
const OUTSIDE: Arena = Arena { generation: 0, made: 0, values: Vec::new() };

thread_local! {
    static BLOCKS: RefCell<Vec<Arena>> = const { RefCell::new(Vec::new()) };
    static GENERATION: Cell<u64> = const { Cell::new(0) };
}

/// Runs one block of a kernel; every value that it makes is gone afterwards.
pub(super) fn in_block<Output>(body: impl FnOnce() -> Output) -> Output {
    let _end = BlockEnd::begin();
    body()
}

/// Ends the innermost block when dropped, so that a panic in a kernel ends its block too.
struct BlockEnd;

impl BlockEnd {
    fn begin() -> BlockEnd {
        let generation = GENERATION.get() + 1;
        GENERATION.set(generation);
        BLOCKS.with_borrow_mut(|blocks| {
            if blocks.is_empty() {
                blocks.push(OUTSIDE);
            }
            blocks.push(Arena { generation, made: 0, values: Vec::new() });
        });
        BlockEnd
    }
}

impl Drop for BlockEnd {
    fn drop(&mut self) {
        // The arena is dropped after the borrow ends.
        let _ended = BLOCKS.with_borrow_mut(Vec::pop);
    }
}

fn in_innermost<Output>(action: impl FnOnce(&mut Arena) -> Output) -> Output {
    BLOCKS.with_borrow_mut(|blocks| {
        if blocks.is_empty() {
            blocks.push(OUTSIDE);
        }
        action(blocks.last_mut().expect("verified: the outside arena is at the bottom of the stack"))
    })
}

/// Stores a value for the rest of the block, or of the turn of a loop.
pub(super) fn keep<V: 'static>(value: V) -> Handle<V> {
    in_innermost(|block| {
        let index = block.made;
        block.made += 1;
        block.values.push((index, Rc::new(value)));
        Handle { place: Place { generation: block.generation, index }, value: PhantomData }
    })
}

/// How many values the innermost block has made.
pub(super) fn made() -> usize {
    in_innermost(|block| block.made)
}

/// Frees what the innermost block has made since it had made so many values, but for these.
pub(super) fn free(since: usize, kept: impl Iterator<Item = Place>) {
    let freed = in_innermost(|block| {
        let kept: HashSet<usize> =
            kept.filter(|place| place.generation == block.generation).map(|place| place.index).collect();
        let first = block.values.partition_point(|(index, _)| *index < since);
        let (kept, freed) =
            block.values.drain(first..).partition::<Vec<_>, _>(|(index, _)| kept.contains(index));
        block.values.extend(kept);
        freed
    });
    drop(freed);
}

/// The value of a handle.
///
/// # Panics
/// If its block has ended.
pub(super) fn read<V: 'static>(handle: Handle<V>) -> Rc<V> {
    let Place { generation, index } = handle.place;
    let value = BLOCKS.with_borrow(|blocks| {
        let block = blocks.iter().rev().find(|block| block.generation == generation)?;
        let position = block.values.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        Some(block.values[position].1.clone())
    });
    let value = value.expect(
        "a tile or view was used after its block or the turn of its loop had ended; keep it in a variable that the \
         loop assigns",
    );
    value.downcast().expect("verified: a handle is made with its value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_live_as_long_as_their_block() {
        let outside = keep(1);
        let escaped = in_block(|| {
            let outer = keep(2);
            in_block(|| assert_eq!(*read(outer), 2));
            assert_eq!(*read(outside), 1);
            outer
        });
        assert_eq!(*read(outside), 1);
        let refused = std::panic::catch_unwind(|| read(escaped)).unwrap_err();
        assert!(
            refused.downcast_ref::<String>().is_some_and(|text| text.contains("after its block")),
            "{refused:?}"
        );
        in_block(|| assert!(std::panic::catch_unwind(|| read(escaped)).is_err()));
    }

    #[test]
    fn what_is_freed_was_made_since_and_is_not_kept() {
        in_block(|| {
            let before = keep(1);
            let since = made();
            let [first, kept, last] = [2, 3, 4].map(keep);
            free(since, [kept.place].into_iter());
            let next = keep(5);
            assert_eq!([before, kept, next].map(|handle| *read(handle)), [1, 3, 5]);
            for freed in [first, last] {
                assert!(std::panic::catch_unwind(|| read(freed)).is_err());
            }
        });
    }
}
