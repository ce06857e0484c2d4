//! What is computed where pieces that take turns in memory are joined, however often that loop reads it: LLVM computes once
//! what an element of each piece is made of, and reads once what lies between, as the halves of pairs do.

use super::super::elements::splits_axes;
use super::super::movement::is_one_loop;
use super::super::region::extents;
use super::{Fusion, MOST_LOOPS, Use, is_tile};
use tile_ir::kernel::{OpData, OpId};
use tile_ir::ops::Movement;
use tile_ir::{Op, ValueId};

impl<'a> Fusion<'a> {
    /// Finds the tiles all of whose elements end up in the loop of one op that joins pieces. In reverse order, so that what
    /// becomes of a tile is known before the tile.
    pub(super) fn find_joined(&mut self) {
        let instance = self.instance;
        for op in instance.walk().into_iter().rev() {
            for &result in instance.op(op).results.iter().filter(|&&result| is_tile(instance, result)) {
                if let Some(joining) = self.joining(result) {
                    self.joined.insert(result, joining);
                }
            }
        }
    }

    /// The one op that joins all that is made of a tile.
    fn joining(&self, tile: ValueId) -> Option<OpId> {
        let uses = self.uses.get(&tile).filter(|uses| uses.len() <= MOST_LOOPS)?;
        let joining = |u: &Use| {
            let data = self.instance.op(u.op);
            if self.home.get(&tile) != Some(&u.region) {
                return None;
            }
            if is_one_loop(self.instance, data) {
                return Some(u.op);
            }
            let joining = data.results.first().and_then(|result| self.joined.get(result));
            joining.copied().filter(|_| self.passes_on(data))
        };
        let first = joining(uses.first()?)?;
        uses.iter().all(|u| joining(u) == Some(first)).then_some(first)
    }

    /// Whether an element of what an op gives needs one of each operand, at a place that takes no division to find.
    fn passes_on(&self, data: &OpData) -> bool {
        match &data.op {
            Op::Movement(movement) => matches!(movement, Movement::Extract { .. }),
            Op::Reshape(_) => self.splits_axes(data),
            op => op.is_leaf(),
        }
    }

    /// Whether a tile is computed in the loop that joins what is made of it.
    pub(super) fn is_joined_with_others(&self, data: &OpData) -> bool {
        let is_joined = data.results.first().is_some_and(|result| self.joined.contains_key(result));
        is_joined && (data.op.is_load() || self.passes_on(data))
    }

    fn splits_axes(&self, data: &OpData) -> bool {
        let shape = |tile| self.shape_of(tile).map(extents).unwrap_or_default();
        splits_axes(&shape(data.operands[0]), &shape(data.results[0]))
    }
}
