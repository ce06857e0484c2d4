//! What the loops that are emitted read: stored tiles, rows of tensors, and the ops whose elements they compute on the way.

use super::{Fusion, Read, is_tile, keeps_place};
use tile_ir::kernel::OpData;
use tile_ir::{Op, ValueId};

impl<'a> Fusion<'a> {
    /// The stored tiles that emitting an op reads, through the operands that are computed in its loop.
    pub(in super::super) fn reads(&self, data: &'a OpData) -> Vec<Read> {
        let mut reads = Vec::new();
        for data in self.done_with(data) {
            for (i, &operand) in data.operands.iter().enumerate() {
                self.collect_reads(operand, keeps_place(&data.op, i), &mut reads);
            }
        }
        reads
    }

    /// The loads whose elements a loop that reads these operands reads from their tensors, each once.
    pub(in super::super) fn streams(&self, operands: &[ValueId]) -> Vec<&'a OpData> {
        let mut streams = Vec::new();
        operands.iter().for_each(|&operand| self.collect_streams(operand, &mut streams));
        streams
    }

    /// The loads whose elements an op's loop reads from their tensors.
    pub(in super::super) fn streams_of(&self, data: &OpData) -> Vec<&'a OpData> {
        let mut streams = Vec::new();
        let operands = self.done_with(data).into_iter().flat_map(|data| &data.operands);
        operands.for_each(|&operand| self.collect_streams(operand, &mut streams));
        match self.made_by(data) {
            Some(made) if made.op.is_load() => streams.push(made),
            Some(made) => streams.extend(self.streams(&made.operands)),
            None => {}
        }
        streams
    }

    /// The ops whose elements an op's loop computes, it among them.
    pub(in super::super) fn computed_by(&self, data: &'a OpData) -> Vec<&'a OpData> {
        let mut computed = self.done_with(data);
        computed.extend(self.made_by(data));
        let mut next = 0;
        while let Some(&op) = computed.get(next) {
            let tiles =
                op.operands.iter().filter(|&&tile| is_tile(self.instance, tile) && !self.is_stored(tile));
            for made_by in tiles.filter_map(|&tile| self.definition(tile)) {
                if !computed.iter().any(|op| std::ptr::eq(*op, made_by)) {
                    computed.push(made_by);
                }
            }
            next += 1;
        }
        computed
    }

    /// Whether element `i` of a row that an op's loop goes through needs only elements `i` of the rows that it reads.
    pub(in super::super) fn keeps_rows(&self, data: &'a OpData) -> bool {
        let keeps = |op: &Op| {
            op.is_leaf() || op.is_load() || matches!(op, Op::Broadcast(_) | Op::Splat(_) | Op::Iota { .. })
        };
        let is_own = |op: &OpData| std::ptr::eq(op, data) || op.op.is_store();
        self.computed_by(data).into_iter().all(|op| is_own(op) || keeps(&op.op))
    }

    fn collect_streams(&self, value: ValueId, streams: &mut Vec<&'a OpData>) {
        if self.is_stored(value) || !is_tile(self.instance, value) {
            return;
        }
        match self.definition(value) {
            Some(data) if streams.iter().any(|stream| std::ptr::eq(*stream, data)) => {}
            Some(data) if data.op.is_load() => streams.push(data),
            Some(data) => data.operands.iter().for_each(|&operand| self.collect_streams(operand, streams)),
            None => {}
        }
    }

    /// Whether element `i` of the op's tile, counted row-major, needs only elements `i` of stored tiles and
    /// scalars, so that its loops need not know the shape.
    pub(in super::super) fn is_flat(&self, data: &OpData) -> bool {
        let is_flat_operand = |(i, &operand): (usize, &ValueId)| {
            !is_tile(self.instance, operand)
                || (keeps_place(&data.op, i)
                    && (self.is_stored(operand)
                        || self.definition(operand).is_some_and(|data| self.is_flat(data))))
        };
        !matches!(data.op, Op::Iota { .. })
            && !data.op.is_load()
            && data.operands.iter().enumerate().all(is_flat_operand)
    }

    pub(super) fn collect_reads(&self, value: ValueId, in_place: bool, reads: &mut Vec<Read>) {
        if self.is_stored(value) {
            reads.push(Read { tile: value, in_place });
        } else if let Some(data) = self.definition(value).filter(|_| is_tile(self.instance, value)) {
            for (i, &operand) in data.operands.iter().enumerate() {
                self.collect_reads(operand, in_place && keeps_place(&data.op, i), reads);
            }
        }
    }
}
