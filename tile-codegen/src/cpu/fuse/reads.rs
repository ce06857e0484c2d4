//! What the loops that are emitted read: stored tiles, rows of tensors, and the ops whose elements they compute on the way.

use super::{Fusion, Read, is_tile, keeps_place};
use std::collections::HashSet;
use tile_ir::kernel::OpData;
use tile_ir::{Op, RegionId, ValueId};

impl<'a> Fusion<'a> {
    /// The stored tiles that emitting an op reads, through the operands that are computed in its loop.
    pub(in super::super) fn reads(&self, data: &'a OpData) -> Vec<Read> {
        let operands = self.done_with(data).into_iter().flat_map(operands_of);
        self.read_from(operands.collect())
    }

    /// The stored tiles that loops read which read these, through what is computed on the way.
    pub(super) fn read_from(&self, mut tiles: Vec<Read>) -> Vec<Read> {
        let (mut reads, mut met) = (Vec::new(), HashSet::new());
        while let Some(Read { tile, in_place }) = tiles.pop() {
            if !is_tile(self.instance, tile) || !met.insert((tile, in_place)) {
                continue;
            }
            match self.definition(tile) {
                _ if self.is_stored(tile) => reads.push(Read { tile, in_place }),
                Some(data) => {
                    let of_elements = |read: Read| Read { in_place: in_place && read.in_place, ..read };
                    tiles.extend(operands_of(data).map(of_elements));
                }
                None => {}
            }
        }
        reads
    }

    /// The loads whose elements a loop that reads these operands reads from their tensors, each once.
    pub(in super::super) fn streams(&self, operands: &[ValueId]) -> Vec<&'a OpData> {
        let computed = self.computed_from(operands, |_| true).into_iter();
        computed.filter(|data| data.op.is_load()).collect()
    }

    /// The loads whose elements an op's loop reads from their tensors.
    pub(in super::super) fn streams_of(&self, data: &OpData) -> Vec<&'a OpData> {
        let operands = self.done_with(data).into_iter().flat_map(|data| data.operands.iter().copied());
        let mut streams = self.streams(&operands.collect::<Vec<_>>());
        match self.made_by(data) {
            Some(made) if made.op.is_load() => streams.push(made),
            Some(made) => streams.extend(self.streams(&made.operands)),
            None => {}
        }
        streams
    }

    /// The ops whose elements an op's loop computes, it among them.
    pub(in super::super) fn computed_by(&self, data: &'a OpData) -> Vec<&'a OpData> {
        let own: Vec<&'a OpData> = self.done_with(data).into_iter().chain(self.made_by(data)).collect();
        let operands: Vec<ValueId> = own.iter().flat_map(|op| op.operands.iter().copied()).collect();
        let mut computed = self.computed_from(&operands, |_| true);
        computed.retain(|op| !own.iter().any(|own| std::ptr::eq(*own, *op)));
        own.into_iter().chain(computed).collect()
    }

    /// The ops that compute these tiles where they are read, each once; not those that are met
    /// only beyond one that isn't entered.
    pub(in super::super) fn computed_from(
        &self,
        tiles: &[ValueId],
        is_entered: impl Fn(&OpData) -> bool,
    ) -> Vec<&'a OpData> {
        let (mut computed, mut met) = (Vec::new(), HashSet::new());
        let mut next: Vec<ValueId> = tiles.iter().rev().copied().collect();
        while let Some(tile) = next.pop() {
            let is_computed = is_tile(self.instance, tile) && !self.is_stored(tile);
            let Some(data) = self.definition(tile).filter(|_| is_computed && met.insert(tile)) else {
                continue;
            };
            computed.push(data);
            if is_entered(data) {
                next.extend(data.operands.iter().rev());
            }
        }
        computed
    }

    /// The ops that are given a tile, or what is made of it element by element, each once, and their regions.
    pub(in super::super) fn users_through_leaves(&self, tile: ValueId) -> Vec<(RegionId, &'a OpData)> {
        let (mut users, mut met, mut next) = (Vec::new(), HashSet::new(), vec![tile]);
        while let Some(tile) = next.pop() {
            for (region, user) in self.users(tile) {
                if met.insert(std::ptr::from_ref(user)) {
                    users.push((region, user));
                    next.extend(user.results.iter().filter(|_| user.op.is_leaf()));
                }
            }
        }
        users
    }

    /// Whether element `i` of a row that an op's loop goes through needs only elements `i` of the rows that it reads.
    pub(in super::super) fn keeps_rows(&self, data: &'a OpData) -> bool {
        let keeps = |op: &Op| {
            let is_by_place =
                matches!(op, Op::Broadcast(_) | Op::Splat(_) | Op::Iota { .. } | Op::GatherLoad);
            op.is_leaf() || op.is_load() || is_by_place
        };
        let is_own = |op: &OpData| std::ptr::eq(op, data) || op.op.is_store();
        self.computed_by(data).into_iter().all(|op| is_own(op) || keeps(&op.op))
    }

    /// Whether element `i` of the op's tile, counted row-major, needs only elements `i` of stored tiles and
    /// scalars, so that its loops need not know the shape.
    pub(in super::super) fn is_flat(&self, data: &OpData) -> bool {
        let is_flat = |data: &OpData| {
            let operands = data.operands.iter().enumerate();
            let mut tiles = operands.filter(|(_, operand)| is_tile(self.instance, **operand));
            let is_elsewhere = matches!(data.op, Op::Iota { .. }) || data.op.is_load();
            !is_elsewhere && tiles.all(|(i, _)| keeps_place(&data.op, i))
        };
        is_flat(data) && self.computed_from(&data.operands, |_| true).into_iter().all(is_flat)
    }
}

/// An op's operands, as it reads them.
fn operands_of(data: &OpData) -> impl Iterator<Item = Read> {
    let operands = data.operands.iter().enumerate();
    operands.map(|(i, &tile)| Read { tile, in_place: keeps_place(&data.op, i) })
}
