//! Ops along the lines of an axis: folds with a region, scans, sorting; and histograms.
//!
//! A fold or scan goes along each line from one end to the other, its partial results in registers, so that a
//! result has the same bits as in the evaluator. A sort finds each element's rank by comparing it with its line:
//! `extent²` comparisons per line, without branches.

use super::elements::{count, hint_for};
use super::region::Emitter;
use crate::emit::Value;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::ValueId;
use tile_ir::dtype::DType;
use tile_ir::kernel::OpData;
use tile_ir::ops::{ReduceOp, ScanMode};

/// Which partial results of a line are kept: those of a scan, or for `None` the last.
type Kept = Option<ScanMode>;

impl<'a, 'c> Emitter<'a, 'c> {
    /// Ops [`tile_ir::Op::ReduceWith`] and [`tile_ir::Op::ScanWith`].
    pub(super) fn fold(&mut self, data: &'a OpData, axis: usize, kept: Kept) {
        let (tiles, starts) = data.operands.split_at(data.operands.len() / 2);
        let starts: Vec<Value<'c>> = starts.iter().map(|&start| self.scalar(start)).collect();
        let formats: Vec<DType> = tiles.iter().map(|&tile| self.dtype(tile)).collect();
        let (instance, region) = (self.instance, data.regions[0]);
        let params = &instance.region(region).params;
        self.along_lines(tiles, &data.results, (axis, kept), (&starts, &formats), &mut |emitter, values| {
            emitter.bind_scalars(params, values);
            let yielded = emitter.ops(region);
            yielded.iter().map(|&value| emitter.scalar(value)).collect()
        });
    }

    /// Op [`tile_ir::Op::Scan`].
    pub(super) fn scan(&mut self, data: &'a OpData, op: ReduceOp, axis: usize, mode: ScanMode) {
        let dtype = self.dtype(data.operands[0]);
        let partial = op.partial(dtype);
        let start = self.ir.literal(op.scan_start(partial, mode), partial);
        let along = (axis, Some(mode));
        self.along_lines(
            &data.operands,
            &data.results,
            along,
            (&[start], &[partial]),
            &mut |emitter, values| vec![emitter.ir.binary(op.combine(), partial, values[0], values[1])],
        );
    }

    /// Folds every line of tiles of one shape. `formats` are those of partial results; `combine` is given what was
    /// folded and then an element's values.
    fn along_lines(
        &mut self,
        tiles: &[ValueId],
        results: &[ValueId],
        (axis, kept): (usize, Kept),
        (starts, formats): (&[Value<'c>], &[DType]),
        combine: &mut dyn FnMut(&mut Self, &[Value<'c>]) -> Vec<Value<'c>>,
    ) {
        let (shape, results) = (self.shape(tiles[0]), results.iter().map(|&result| self.stored(result)));
        let results: Vec<_> = results.collect();
        let mut lines = shape.clone();
        lines[axis] = 1;
        self.each_row(&lines, &mut |emitter, line| {
            let (ir, extent) = (emitter.ir, shape[axis]);
            let bounds = (ir.i64(0), ir.i64(extent), ir.i64(1));
            let keep = |emitter: &mut Self, index: &[IntValue<'c>], shape: &[i64], values: &[Value<'c>]| {
                let position = emitter.position(index, shape);
                for ((buffer, &value), &format) in results.iter().zip(values).zip(formats) {
                    emitter.buffers.store(buffer, position, ir.cast(format, buffer.dtype, value));
                }
            };
            let last = ir.hinted_loop(bounds, hint_for(extent), starts, |step, folded| {
                let mut index = line.to_vec();
                let reverse = kept.is_some_and(|mode| mode.reverse);
                index[axis] = if reverse { ir.sub(ir.i64(extent - 1), step) } else { step };
                let elements = tiles.iter().zip(formats).map(|(&tile, &format)| {
                    let element = emitter.element(tile, &index);
                    ir.cast(emitter.dtype(tile), format, element)
                });
                let elements: Vec<Value<'c>> = elements.collect();
                let next = combine(emitter, &[folded, &elements].concat());
                if let Some(mode) = kept {
                    keep(emitter, &index, &shape, if mode.exclusive { folded } else { &next });
                }
                next
            });
            if kept.is_none() {
                keep(emitter, line, &lines, &last);
            }
        });
    }

    /// Op [`tile_ir::Op::Sort`].
    pub(super) fn sort(&mut self, data: &'a OpData, axis: usize, descending: bool) {
        let (tile, dtype) = (data.operands[0], self.dtype(data.operands[0]));
        let (shape, kept) = (self.shape(tile), self.shape(data.results[0]));
        let (values, positions) = (self.stored(data.results[0]), self.stored(data.results[1]));
        self.nest(&shape, &mut |emitter, index| {
            let ir = emitter.ir;
            let (own, at, extent) = (emitter.element(tile, index), index[axis], shape[axis]);
            let bounds = (ir.i64(0), ir.i64(extent), ir.i64(1));
            let rank = ir.hinted_loop(bounds, hint_for(extent), &[ir.i64(0).into()], |other, rank| {
                let mut place = index.to_vec();
                place[axis] = other;
                let element = emitter.element(tile, &place);
                let earlier = ir.icmp(IntPredicate::ULT, other, at);
                let before = ir.stands_before(dtype, descending, (element, own), earlier);
                vec![ir.add(rank[0].into_int_value(), ir.resize(before, 64, false)).into()]
            });
            let rank = rank[0].into_int_value();
            ir.if_then(ir.icmp(IntPredicate::ULT, rank, ir.i64(kept[axis])), || {
                let mut place = index.to_vec();
                place[axis] = rank;
                let position = emitter.position(&place, &kept);
                emitter.buffers.store(&values, position, own);
                emitter.buffers.store(&positions, position, ir.resize(at, 32, false).into());
            });
        });
    }

    /// Op [`tile_ir::Op::Histogram`].
    pub(super) fn histogram(&mut self, data: &'a OpData) {
        let (tile, signed) = (data.operands[0], self.dtype(data.operands[0]).is_signed());
        let (shape, result) = (self.shape(tile), self.stored(data.results[0]));
        let (ir, bins) = (self.ir, self.shape(data.results[0])[0]);
        let (zero, one) = (ir.int_type(32).const_zero(), ir.int_type(32).const_int(1, false));
        count(ir, ir.i64(bins), bins, |bin| self.buffers.store(&result, bin, zero.into()));
        self.nest(&shape, &mut |emitter, index| {
            let element = emitter.element(tile, index).into_int_value();
            // A number below zero is far above every bin when read as unsigned.
            let bin = ir.resize(element, 64, signed);
            ir.if_then(ir.icmp(IntPredicate::ULT, bin, ir.i64(bins)), || {
                let counted = emitter.buffers.load(&result, bin).into_int_value();
                emitter.buffers.store(&result, bin, ir.add(counted, one).into());
            });
        });
    }
}
