//! Where the values of a running block live: a stack of thread-local arenas, one per block in progress.
//!
//! A [`Handle`] is a plain index, so a tile can be `Copy` as values in a kernel are. It also names the block
//! that made it: a handle that outlives its block is refused, never read as another block's value.
//! This file knows nothing of shapes, formats or ops.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tile_ir::Array;

/// A value of the block `generation`. Meaningful on one thread only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Handle {
    generation: u64,
    index: usize,
}

/// The values of one block. They are freed together when the block ends.
struct Arena {
    generation: u64,
    values: Vec<Rc<Array>>,
}

/// Values made outside any block, as in a unit test of a kernel's helper. They live as long as the thread.
const OUTSIDE: Arena = Arena { generation: 0, values: Vec::new() };

thread_local! {
    static BLOCKS: RefCell<Vec<Arena>> = const { RefCell::new(Vec::new()) };
    static GENERATION: Cell<u64> = const { Cell::new(0) };
}

/// Runs one block of a kernel; every tile that it makes is gone afterwards.
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
            blocks.push(Arena { generation, values: Vec::new() });
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

/// Stores a value for the rest of the block.
pub(super) fn keep(value: Array) -> Handle {
    BLOCKS.with_borrow_mut(|blocks| {
        if blocks.is_empty() {
            blocks.push(OUTSIDE);
        }
        let block = blocks.last_mut().expect("verified: the outside arena is at the bottom of the stack");
        block.values.push(Rc::new(value));
        Handle { generation: block.generation, index: block.values.len() - 1 }
    })
}

/// The value of a handle.
///
/// # Panics
/// If its block has ended.
pub(super) fn read(handle: Handle) -> Rc<Array> {
    let value = BLOCKS.with_borrow(|blocks| {
        let block = blocks.iter().rev().find(|block| block.generation == handle.generation)?;
        block.values.get(handle.index).cloned()
    });
    value.expect("a tile was used after its block had ended; a tile can't be kept from one block to another")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::DType;
    use tile_ir::array::Elements;

    fn scalar(value: i128) -> Array {
        Array::new(DType::I32, vec![], Elements::Int(vec![value]))
    }

    #[test]
    fn values_live_as_long_as_their_block() {
        let outside = keep(scalar(1));
        let escaped = in_block(|| {
            let outer = keep(scalar(2));
            in_block(|| assert_eq!(*read(outer), scalar(2)));
            assert_eq!(*read(outside), scalar(1));
            outer
        });
        assert_eq!(*read(outside), scalar(1));
        let refused = std::panic::catch_unwind(|| read(escaped)).unwrap_err();
        assert!(
            refused.downcast_ref::<String>().is_some_and(|text| text.contains("after its block")),
            "{refused:?}"
        );
        in_block(|| assert!(std::panic::catch_unwind(|| read(escaped)).is_err()));
    }
}
