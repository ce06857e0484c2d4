//! The one loop that all uses of a tile end up in, which computes what it alone reads, however often it does: an element that
//! several need at a place is computed once there.
//!
//! Two kinds of loops do so, and differ in what passes a place on. That of stores ([`super::together`]) reads every tile at the
//! place that it stores. That of an op which joins pieces reads a tile at a place for each use, as the halves of pairs do:
//! LLVM reads once what lies between.

use super::super::elements::splits_axes;
use super::super::movement::is_one_loop;
use super::super::region::extents;
use super::{Fusion, MOST_LOOPS, Use, is_tile};
use tile_ir::kernel::{OpData, OpId};
use tile_ir::ops::Movement;
use tile_ir::{Op, ValueId};

/// A loop that computes what it alone reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Consumer {
    /// Of the op that joins pieces which take turns in memory.
    Pieces(OpId),
    /// Of stores, by its number in [`super::together::Together`].
    Stores(usize),
}

impl<'a> Fusion<'a> {
    /// Finds the tiles that one loop alone reads, and computes. In reverse order, so that what becomes of a tile is known
    /// before the tile.
    pub(super) fn find_consumers(&mut self) {
        let instance = self.instance;
        for op in instance.walk().into_iter().rev() {
            let data = instance.op(op);
            let &[tile] = data.results.as_slice() else { continue };
            let consumer = self.only_consumer(tile).filter(|_| is_tile(instance, tile));
            let is_computed = |&consumer: &Consumer| data.op.is_load() || self.passes_on(consumer, data);
            let consumer = consumer.filter(is_computed);
            self.consumers.extend(consumer.map(|consumer| (tile, consumer)));
        }
    }

    /// The loop that all uses of a tile end up in, if it is one.
    fn only_consumer(&self, tile: ValueId) -> Option<Consumer> {
        let uses = self.uses.get(&tile)?;
        let consumer = |u: &Use| self.consumer(u).filter(|_| self.home.get(&tile) == Some(&u.region));
        let first = consumer(uses.first()?)?;
        let is_few = match first {
            Consumer::Pieces(_) => uses.len() <= MOST_LOOPS,
            Consumer::Stores(_) => true,
        };
        (is_few && uses.iter().all(|u| consumer(u) == Some(first))).then_some(first)
    }

    /// The loop that a use stands in, or ends up in.
    fn consumer(&self, of: &Use) -> Option<Consumer> {
        let data = self.instance.op(of.op);
        if data.op.is_store() {
            return self.together.number(of.op).filter(|_| of.operand == 1).map(Consumer::Stores);
        }
        if is_one_loop(self.instance, data) {
            return Some(Consumer::Pieces(of.op));
        }
        let &consumer = self.consumers.get(data.results.first()?)?;
        self.passes_on(consumer, data).then_some(consumer)
    }

    /// Whether the loop computes an element of what an op gives from one of each operand: at the same place, in that of
    /// stores, and in that of pieces at one that takes no division to find.
    fn passes_on(&self, consumer: Consumer, data: &OpData) -> bool {
        match (consumer, &data.op) {
            (Consumer::Pieces(_), Op::Movement(movement)) => matches!(movement, Movement::Extract { .. }),
            (Consumer::Pieces(_), Op::Reshape(_)) => self.splits_axes(data),
            (_, op) => op.is_leaf(),
        }
    }

    /// Whether one loop alone reads a tile, and computes it.
    pub(super) fn has_one_consumer(&self, tile: ValueId) -> bool {
        self.consumers.contains_key(&tile)
    }

    fn splits_axes(&self, data: &OpData) -> bool {
        let shape = |tile| self.shape_of(tile).map(extents).unwrap_or_default();
        splits_axes(&shape(data.operands[0]), &shape(data.results[0]))
    }
}
