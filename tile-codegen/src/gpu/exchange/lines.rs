//! Folds and scans with a region, along the lines of an axis, through shared memory. What joins parts of lines is in
//! [`super::scan`]; how lines are sorted is in [`super::sort`].
//!
//! A region that isn't said to be associative says how an element follows what came before, not how two parts of a line are joined. So each line is one
//! thread's, which goes along it from one end to the other, at the price of idle threads where there are few lines.

use crate::emit::Value;
use crate::gpu::coordinates::{quotient, remainder};
use crate::gpu::fragment::Fragment;
use crate::gpu::region::Emitter;
use inkwell::values::IntValue;
use std::collections::HashMap;
use tile_ir::gpu::Buffer;
use tile_ir::kernel::OpData;
use tile_ir::ops::ScanMode;
use tile_ir::{DType, Op, OpId, RegionId, ValueId};
use tile_layout::shape::Lines;

/// Is given an element's place, what was folded before it, and with it.
type Visit<'f, 'c> = dyn Fn(IntValue<'c>, &[Value<'c>], &[Value<'c>]) + 'f;

/// A fold of lines that lie in shared memory.
struct Fold<'f, 'c> {
    lines: Lines,
    /// One per operand, in the operand's format.
    buffers: &'f [Buffer],
    /// Per operand, the format of partial results.
    formats: Vec<DType>,
    starts: Vec<Value<'c>>,
    /// What was folded, and then an element's values, to what is folded next.
    combine: &'f dyn Fn(&[Value<'c>]) -> Vec<Value<'c>>,
}

impl<'c> Emitter<'_, 'c> {
    /// The lines of a tile along an axis.
    pub(in crate::gpu) fn lines(&self, tile: ValueId, axis: usize) -> Lines {
        let shape: Vec<usize> = self.shape(tile).iter().map(|&extent| extent as usize).collect();
        Lines::of(&shape, axis)
    }

    /// A region of leaf ops of scalars, which may differ between threads.
    pub(in crate::gpu) fn leaf_region(&self, region: RegionId, arguments: &[Value<'c>]) -> Vec<Value<'c>> {
        let region = self.instance.region(region);
        let params = region.params.iter().copied();
        let mut values: HashMap<ValueId, Value<'c>> = params.zip(arguments.iter().copied()).collect();
        for &op in &region.ops {
            let data = self.instance.op(op);
            let value = |operand: &ValueId| match values.get(operand) {
                Some(&value) => value,
                None => self.scalar(*operand),
            };
            let operands: Vec<Value<'c>> = data.operands.iter().map(value).collect();
            if data.op == Op::Yield {
                return operands;
            }
            values.insert(data.results[0], self.leaf(data, &operands));
        }
        unreachable!("verified: a region ends with `yield`")
    }

    /// Ops [`Op::Scan`], [`Op::ReduceWith`] and [`Op::ScanWith`].
    pub(in crate::gpu) fn fold(&mut self, op: OpId, data: &OpData) {
        match (self.scheduled.scan(data), &data.op) {
            (Some(scan), _) => self.scan(op, data, &scan),
            (None, Op::ReduceWith { axis, .. }) => self.fold_in_order(op, data, *axis, None),
            (None, Op::ScanWith { axis, mode, .. }) => self.fold_in_order(op, data, *axis, Some(*mode)),
            (None, _) => unreachable!("it is asked of folds alone"),
        }
    }

    /// A fold of lines from one end to the other, or a scan for a mode.
    fn fold_in_order(&mut self, op: OpId, data: &OpData, axis: usize, mode: Option<ScanMode>) {
        let (tiles, starts) = data.operands.split_at(data.operands.len() / 2);
        let buffers = self.share_all(op, tiles);
        let fragments = {
            let fold = Fold {
                lines: self.lines(tiles[0], axis),
                buffers,
                formats: tiles.iter().map(|&tile| self.dtype(tile)).collect(),
                starts: starts.iter().map(|&start| self.scalar(start)).collect(),
                combine: &|values| self.leaf_region(data.regions[0], values),
            };
            match mode {
                None => Some(self.fold_lines(&fold, &data.results)),
                Some(mode) => {
                    self.scan_lines(&fold, mode);
                    None
                }
            }
        };
        match fragments {
            Some(fragments) => {
                data.results.iter().zip(fragments).for_each(|(&result, it)| self.set_tile(result, it));
            }
            None => self.take_from(buffers, &data.results),
        }
    }

    /// Waits for the block, and reads tiles from where they were written row-major.
    fn take_from(&mut self, buffers: &[Buffer], tiles: &[ValueId]) {
        self.sync();
        for (&buffer, &tile) in buffers.iter().zip(tiles) {
            let fragment = self.take(buffer, tile);
            self.set_tile(tile, fragment);
        }
    }

    /// Where a line's elements start; they are `inner` apart.
    pub(in crate::gpu) fn line_start(&self, lines: Lines, line: IntValue<'c>) -> IntValue<'c> {
        let ir = self.ir;
        let (extent, inner) = (lines.extent as u64, lines.inner as u64);
        let outer = quotient(ir, line, inner);
        ir.add(ir.mul(outer, self.i32(extent * inner)), remainder(ir, line, inner))
    }

    /// Folds one line, visiting each element.
    fn along_line(
        &self,
        fold: &Fold<'_, 'c>,
        line: IntValue<'c>,
        reverse: bool,
        visit: &Visit<'_, 'c>,
    ) -> Vec<Value<'c>> {
        let (ir, start) = (self.ir, self.line_start(fold.lines, line));
        let (extent, inner) = (fold.lines.extent as u64, fold.lines.inner as u64);
        let bounds = (self.i32(0), self.i32(extent), self.i32(1));
        ir.for_loop(bounds, &fold.starts, |step, folded| {
            let k = if reverse { ir.sub(self.i32(extent - 1), step) } else { step };
            let place = ir.add(start, ir.mul(k, self.i32(inner)));
            let elements = fold
                .buffers
                .iter()
                .zip(&fold.formats)
                .map(|(&buffer, &format)| ir.cast(buffer.dtype, format, self.read_shared(buffer, place)));
            let elements: Vec<Value<'c>> = elements.collect();
            let next = (fold.combine)(&[folded, &elements].concat());
            visit(place, folded, &next);
            next
        })
    }

    /// Every line's results, each in the threads that hold it.
    fn fold_lines(&self, fold: &Fold<'_, 'c>, results: &[ValueId]) -> Vec<Fragment<'c>> {
        let mapping = self.mapping(results[0]);
        let mut fragments = vec![Vec::new(); results.len()];
        for slot in 0..mapping.slots() {
            let line = mapping.or_zero(self.ir, slot, mapping.element(self.ir, slot).value(self.ir));
            let folded = self.along_line(fold, line, false, &|_, _, _| ());
            fragments.iter_mut().zip(folded).for_each(|(fragment, value)| fragment.push(value));
        }
        fragments.into_iter().map(Fragment::Slots).collect()
    }

    /// Does something to numbers `0..count`, each in one thread.
    fn deal(&self, count: u64, mut action: impl FnMut(IntValue<'c>)) {
        let bounds = (self.running_thread(), self.i32(count), self.i32(self.thread_count()));
        self.ir.for_loop(bounds, &[], |number, _| {
            action(number);
            Vec::new()
        });
    }

    /// Replaces every line in shared memory by its partial results.
    fn scan_lines(&self, fold: &Fold<'_, 'c>, mode: ScanMode) {
        let ir = self.ir;
        let keep = |place: IntValue<'c>, before: &[Value<'c>], with: &[Value<'c>]| {
            let kept = if mode.exclusive { before } else { with };
            for ((&buffer, &format), &value) in fold.buffers.iter().zip(&fold.formats).zip(kept) {
                self.write_shared(buffer, place, ir.cast(format, buffer.dtype, value));
            }
        };
        self.deal(fold.lines.count() as u64, |line| drop(self.along_line(fold, line, mode.reverse, &keep)));
    }
}
