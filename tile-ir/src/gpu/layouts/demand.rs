//! Tiles that are wanted in a certain distribution.
//!
//! What has no distribution yet takes the first that is wanted, and wants the one that follows of its own operands.
//! What has another is made again where that is cheap, and converted otherwise; right after it is defined, so that
//! every later use may share the copy.

use super::{Layouts, shape_of};
use crate::kernel::{OpData, OpId, ValueId};
use crate::ops::Op;
use tile_layout::linear::Distribution;

/// How many ops on top of each other are made again rather than converted.
const CHEAP_DEPTH: usize = 4;

impl Layouts<'_> {
    /// The tile's distribution; the usual one if it has none yet.
    pub(super) fn ensure(&mut self, tile: ValueId) -> Distribution {
        if let Some(known) = self.found.get(&tile) {
            return known.clone();
        }
        let usual = self.usual(&self.shape(tile));
        self.place(tile, &usual);
        usual
    }

    /// A tile with the elements of this one in a distribution.
    pub(super) fn resolve(&mut self, tile: ValueId, wanted: &Distribution) -> ValueId {
        let tile = self.origins.get(&tile).copied().unwrap_or(tile);
        match self.found.get(&tile) {
            Some(known) if known == wanted => return tile,
            Some(_) => {}
            None => {
                self.place(tile, wanted);
                return tile;
            }
        }
        let key = (tile, wanted.clone());
        if let Some(&copy) = self.copies.get(&key) {
            return copy;
        }
        let op = match self.definitions.get(&tile).map(|&op| self.kernel.op(op).clone()) {
            Some(data) if self.is_cheap(tile, CHEAP_DEPTH) => OpData { results: Vec::new(), ..data },
            _ => {
                let (operands, regions, loc) = (vec![tile], Vec::new(), self.wanted_at);
                OpData { op: Op::ConvertLayout, operands, results: Vec::new(), regions, loc }
            }
        };
        let copy = self.copy(tile, op);
        self.copies.insert(key, copy);
        if self.kernel.op(self.definitions[&copy]).op == Op::ConvertLayout {
            self.set(copy, wanted.clone());
        } else {
            self.place(copy, wanted);
        }
        copy
    }

    /// Adds an op that gives what `tile` is, right after that is defined.
    fn copy(&mut self, tile: ValueId, mut data: OpData) -> ValueId {
        let copy = self.kernel.new_value(self.kernel.ty(tile).clone(), None);
        data.results = vec![copy];
        let op = self.kernel.new_op(data);
        let (region, at) = match self.definitions.get(&tile) {
            Some(definition) => {
                let region = self.homes[definition];
                let ops = &self.kernel.region(region).ops;
                let at = ops.iter().position(|op| op == definition).expect("an op is in its region");
                (region, at + 1)
            }
            None => (self.params[&tile], 0),
        };
        self.kernel.region_mut(region).ops.insert(at, op);
        self.homes.insert(op, region);
        self.definitions.insert(copy, op);
        self.origins.insert(copy, tile);
        copy
    }

    /// Whether to make a tile again is cheaper than to convert it.
    fn is_cheap(&self, tile: ValueId, depth: usize) -> bool {
        let Some(&op) = self.definitions.get(&tile) else { return false };
        let data = self.kernel.op(op);
        let elements = |tile: ValueId| self.shape(tile).iter().product::<u64>();
        let is_cheap = |operand: ValueId| {
            !self.is_tile(operand) || self.is_short_outside(operand, op) || self.is_cheap(operand, depth - 1)
        };
        match &data.op {
            Op::Splat(_) | Op::Iota { .. } => true,
            Op::Broadcast(_) => 2 * elements(data.operands[0]) <= elements(tile),
            Op::Binary(_) | Op::Compare(_) | Op::Select | Op::Cast(_) if depth > 0 => {
                data.operands.iter().copied().all(is_cheap)
            }
            _ => false,
        }
    }

    /// Whether a tile of few elements is defined outside of the region of an op: it is converted there, which a loop doesn't
    /// do again.
    fn is_short_outside(&self, tile: ValueId, op: OpId) -> bool {
        let home = self.definitions.get(&tile).map_or_else(|| self.params[&tile], |op| self.homes[op]);
        home != self.homes[&op] && self.shape(tile).iter().product::<u64>() <= self.basis.threads.count()
    }

    /// Puts a tile that has no distribution yet where it is wanted.
    fn place(&mut self, tile: ValueId, wanted: &Distribution) {
        self.set(tile, wanted.clone());
        let Some(&op) = self.definitions.get(&tile) else { return };
        let data = self.kernel.op(op).clone();
        match &data.op {
            Op::Broadcast(_) => self.want_repeated(op, &data, wanted),
            Op::Permute(permutation) => {
                let mut inverse = vec![0; permutation.len()];
                permutation.iter().enumerate().for_each(|(to, &from)| inverse[from] = to);
                let moved = wanted.permuted(&inverse).expect("axes in another order are a distribution");
                self.want(op, 0, &moved);
            }
            Op::Reshape(_) => match wanted.reshaped(&self.shape(data.operands[0])) {
                Some(moved) => self.want(op, 0, &moved),
                None => drop(self.ensure(data.operands[0])),
            },
            leaf if leaf.is_leaf() => {
                for operand in 0..data.operands.len() {
                    if self.is_tile(data.operands[operand]) {
                        self.want(op, operand, wanted);
                    }
                }
            }
            _ => {}
        }
    }

    /// The operand of a broadcast lies as its result does without the axes that repeat it.
    fn want_repeated(&mut self, op: OpId, data: &OpData, wanted: &Distribution) {
        let operand = shape_of(self.kernel, data.operands[0]).expect("verified: a tile");
        let repeated = (0..operand.len()).filter(|&axis| operand[axis] != wanted.shape()[axis]);
        let below = repeated.fold(wanted.clone(), |below, axis| {
            below.without_axis(axis).expect("a part of a distribution is one")
        });
        self.want(op, 0, &below);
    }
}
