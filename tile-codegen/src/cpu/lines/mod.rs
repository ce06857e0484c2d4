//! Ops along the lines of an axis: folds with a region, scans and histograms.
//!
//! A fold or scan goes along each line from one end to the other, so that a result has the same bits as in the evaluator.
//! Neighbouring lines are processed together as the lanes of vectors, one step of all of them after the other; where a line
//! has no neighbours, its partial results are in scalar registers.

pub(super) mod hosted;
pub(super) mod reduce;
pub(super) mod sort;

use crate::cpu::elements::{each_index, hint_for};
use crate::cpu::memory::ahead::is_function;
use crate::cpu::memory::buffer::Buffer;
use crate::cpu::region::Emitter;
use crate::cpu::round_up::div_ceil;
use crate::emit::{Ir, LoopHint, Value};
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::ValueId;
use tile_ir::dtype::DType;
use tile_ir::kernel::OpData;
use tile_ir::ops::{ReduceOp, ScanMode};

/// Which partial results of a line are kept: those of a scan, or for `None` the last.
type Kept = Option<ScanMode>;

/// Lines that are folded together are so many at least.
const FEWEST_LINES: i64 = 4;

/// And so many at most: their partial results stay in the first cache, or in registers.
const MOST_LINES: i64 = 64;

/// The lines of tiles along an axis, and what becomes of them.
struct Lines<'l, 'c> {
    tiles: &'l [ValueId],
    /// Of partial results.
    formats: &'l [DType],
    starts: &'l [Value<'c>],
    shape: Vec<i64>,
    axis: usize,
    kept: Kept,
    /// `None` of one that nobody reads.
    results: Vec<Option<Buffer<'c>>>,
}

impl<'c> Lines<'_, 'c> {
    /// The shape of what each line amounts to.
    fn ends(&self) -> Vec<i64> {
        let mut ends = self.shape.clone();
        ends[self.axis] = 1;
        ends
    }

    /// Where on its line the element of a step is.
    fn place(&self, ir: &Ir<'c>, step: IntValue<'c>) -> IntValue<'c> {
        let is_reverse = self.kept.is_some_and(|mode| mode.reverse);
        if is_reverse { ir.sub(ir.i64(self.shape[self.axis] - 1), step) } else { step }
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Ops [`tile_ir::Op::ReduceWith`] and [`tile_ir::Op::ScanWith`].
    pub(in crate::cpu) fn fold(&mut self, data: &'a OpData, axis: usize, kept: Kept) {
        let (tiles, starts) = data.operands.split_at(data.operands.len() / 2);
        let starts: Vec<Value<'c>> = starts.iter().map(|&start| self.scalar(start)).collect();
        let formats: Vec<DType> = tiles.iter().map(|&tile| self.dtype(tile)).collect();
        let (instance, region) = (self.instance, data.regions[0]);
        let params = &instance.region(region).params;
        let lines = self.lines_of(data, axis, kept, &starts, &formats);
        self.along_lines(data, &lines, &mut |emitter, values| {
            emitter.bind_scalars(params, values);
            let yielded = emitter.ops(region);
            yielded.iter().map(|&value| emitter.scalar(value)).collect()
        });
    }

    /// Op [`tile_ir::Op::Scan`].
    pub(in crate::cpu) fn scan(&mut self, data: &'a OpData, op: ReduceOp, axis: usize, mode: ScanMode) {
        let dtype = self.dtype(data.operands[0]);
        let partial = op.partial(dtype);
        let start = self.ir.literal(op.scan_start(partial, mode), partial);
        let (starts, formats) = ([start], [partial]);
        let lines = self.lines_of(data, axis, Some(mode), &starts, &formats);
        self.along_lines(data, &lines, &mut |emitter, values| {
            vec![emitter.ir.binary(op.combine(), partial, values[0], values[1])]
        });
    }

    /// The lines along an axis of the tiles, all of one shape, that an op folds from these starts in these formats.
    fn lines_of<'l>(
        &self,
        data: &'l OpData,
        axis: usize,
        kept: Kept,
        starts: &'l [Value<'c>],
        formats: &'l [DType],
    ) -> Lines<'l, 'c> {
        let tiles = &data.operands[..starts.len()];
        let shape = self.shape(tiles[0]);
        let is_read = |&result: &ValueId| self.fusion.use_count(result) > 0;
        let result = |result: &ValueId| is_read(result).then(|| self.stored(*result));
        let results = data.results.iter().map(result).collect();
        Lines { tiles, formats, starts, shape, axis, kept, results }
    }

    /// Folds every line of an op. `combine` is given what was folded and then an element's values.
    fn along_lines(
        &mut self,
        data: &'a OpData,
        lines: &Lines<'_, 'c>,
        combine: &mut dyn FnMut(&mut Self, &[Value<'c>]) -> Vec<Value<'c>>,
    ) {
        match self.neighbours(data, lines) {
            Some(across) => {
                let hint = self.hint_for_lines(data, lines, across);
                self.side_by_side(lines, across, hint, combine);
            }
            None => self.one_by_one(lines, combine),
        }
    }

    /// The axis along which lines lie that are folded together, if they gain by it: what they compute is one vector's
    /// where they are neighbours in memory, and where a function is worth more than to bring their elements together.
    fn neighbours(&self, data: &'a OpData, lines: &Lines<'_, 'c>) -> Option<usize> {
        let has_room = |&axis: &usize| axis != lines.axis && lines.shape[axis] >= FEWEST_LINES;
        let across = (0..lines.shape.len()).rev().find(|&axis| lines.shape[axis] > 1).filter(has_room);
        let apart = || (0..lines.axis).rev().find(has_room).filter(|_| self.folds_functions(data));
        let is_number = |&dtype: &DType| dtype != DType::Bool;
        across.or_else(apart).filter(|_| lines.formats.iter().all(is_number))
    }

    /// The hint for the loop over lines that are folded together: straight code where their partial results have room in
    /// registers all at once, so that each step leaves them there for the next.
    fn hint_for_lines(&self, data: &'a OpData, lines: &Lines<'_, 'c>, across: usize) -> LoopHint {
        let (extent, together) = (lines.shape[across], lines.shape[across].min(MOST_LINES));
        let bytes: i64 = lines.formats.iter().map(|format| together * format.bytes() as i64).sum();
        let are_lanes = together.count_ones() == 1 && extent % together == 0;
        let has_room = bytes <= self.processor.block.bytes();
        match are_lanes && has_room && !self.folds_functions(data) {
            true => LoopHint::Lanes(together as u32),
            false => LoopHint::Rolled,
        }
    }

    /// Whether a fold computes functions of many instructions, in its region or for its elements.
    fn folds_functions(&self, data: &'a OpData) -> bool {
        let regions = data.regions.iter().flat_map(|&region| &self.instance.region(region).ops);
        regions.map(|&op| self.instance.op(op)).any(is_function) || self.fusion.computes_functions(data)
    }

    /// Lines one after the other, each from one end to the other.
    fn one_by_one(
        &mut self,
        lines: &Lines<'_, 'c>,
        combine: &mut dyn FnMut(&mut Self, &[Value<'c>]) -> Vec<Value<'c>>,
    ) {
        let (axis, extent) = (lines.axis, lines.shape[lines.axis]);
        // The elements of a line that lie next to each other are a row.
        let width = if axis + 1 == lines.shape.len() { extent } else { i64::MAX };
        // Truth values would be shuffled in and out of registers of masks.
        let is_truth = lines.formats.contains(&DType::Bool);
        let hint = if is_truth { LoopHint::AsItIs } else { hint_for(extent) };
        self.each_row_of(width, &lines.ends(), &mut |emitter, line| {
            let ir = emitter.ir;
            let bounds = (ir.i64(0), ir.i64(extent), ir.i64(1));
            let last = ir.hinted_loop(bounds, hint, lines.starts, |step, folded| {
                let mut index = line.to_vec();
                index[axis] = lines.place(ir, step);
                emitter.fold_element(lines, &index, folded, combine)
            });
            emitter.keep_total(lines, line, &last);
        });
    }

    /// The lines along an axis together, by some at a time, a step of each after the other: LLVM makes vectors of them.
    fn side_by_side(
        &mut self,
        lines: &Lines<'_, 'c>,
        across: usize,
        hint: LoopHint,
        combine: &mut dyn FnMut(&mut Self, &[Value<'c>]) -> Vec<Value<'c>>,
    ) {
        let (ir, extent) = (self.ir, lines.shape[lines.axis]);
        let together = lines.shape[across].min(MOST_LINES);
        let types: Vec<_> = lines.formats.iter().map(|&format| ir.compute_type(format)).collect();
        let arrays: Vec<_> = types.iter().map(|&ty| self.lane_array(ty, together)).collect();
        let partial = |line| types.iter().zip(&arrays).map(move |(&ty, &array)| ir.element(ty, array, line));
        let put = |line, values: &[Value<'c>]| {
            partial(line).zip(values).for_each(|(to, &value)| ir.store(to, value))
        };
        let mut places = lines.ends();
        places[across] = div_ceil(places[across], together);
        self.each_row(&places, &mut |emitter, place| {
            let mut index = place.to_vec();
            let first = ir.mul(place[across], ir.i64(together));
            let rest = ir.sub(ir.i64(lines.shape[across]), first);
            let is_even = lines.shape[across] % together == 0;
            let count = if is_even { ir.i64(together) } else { ir.lesser(rest, ir.i64(together)) };
            let each = |body: &mut dyn FnMut(IntValue<'c>)| {
                ir.each((ir.i64(0), count, ir.i64(1)), hint, body);
            };
            each(&mut |line| put(line, lines.starts));
            ir.each((ir.i64(0), ir.i64(extent), ir.i64(1)), LoopHint::Rolled, |step| {
                index[lines.axis] = lines.place(ir, step);
                each(&mut |line| {
                    index[across] = ir.add(first, line);
                    let folded: Vec<Value<'c>> =
                        partial(line).zip(&types).map(|(from, &ty)| ir.load(ty, from)).collect();
                    put(line, &emitter.fold_element(lines, &index, &folded, combine));
                });
            });
            each(&mut |line| {
                let mut end = place.to_vec();
                end[across] = ir.add(first, line);
                let last: Vec<Value<'c>> =
                    partial(line).zip(&types).map(|(from, &ty)| ir.load(ty, from)).collect();
                emitter.keep_total(lines, &end, &last);
            });
        });
    }

    /// What comes of an element after those before it on its line.
    fn fold_element(
        &mut self,
        lines: &Lines<'_, 'c>,
        index: &[IntValue<'c>],
        folded: &[Value<'c>],
        combine: &mut dyn FnMut(&mut Self, &[Value<'c>]) -> Vec<Value<'c>>,
    ) -> Vec<Value<'c>> {
        let ir = self.ir;
        let elements = lines.tiles.iter().zip(lines.formats).map(|(&tile, &format)| {
            let element = self.element(tile, index);
            ir.cast(self.dtype(tile), format, element)
        });
        let elements: Vec<Value<'c>> = elements.collect();
        let next = combine(self, &[folded, &elements].concat());
        if let Some(mode) = lines.kept {
            self.keep_partial(lines, index, &lines.shape, if mode.exclusive { folded } else { &next });
        }
        next
    }

    /// Stores what a line amounts to, where that is the result.
    fn keep_total(&mut self, lines: &Lines<'_, 'c>, line: &[IntValue<'c>], last: &[Value<'c>]) {
        if lines.kept.is_none() {
            self.keep_partial(lines, line, &lines.ends(), last);
        }
    }

    /// Stores partial results at an index of tiles of this shape.
    fn keep_partial(
        &mut self,
        lines: &Lines<'_, 'c>,
        index: &[IntValue<'c>],
        shape: &[i64],
        values: &[Value<'c>],
    ) {
        let position = self.position(index, shape);
        for ((buffer, &value), &format) in lines.results.iter().zip(values).zip(lines.formats) {
            let Some(buffer) = buffer else { continue };
            self.buffers.store(buffer, position, self.ir.cast(format, buffer.dtype, value));
        }
    }

    /// Op [`tile_ir::Op::Histogram`].
    pub(in crate::cpu) fn histogram(&mut self, data: &'a OpData) {
        let (tile, signed) = (data.operands[0], self.dtype(data.operands[0]).is_signed());
        let (shape, result) = (self.shape(tile), self.stored(data.results[0]));
        let (ir, bins) = (self.ir, self.shape(data.results[0])[0]);
        let (zero, one) = (ir.int_type(32).const_zero(), ir.int_type(32).const_int(1, false));
        each_index(ir, ir.i64(bins), bins, |bin| self.buffers.store(&result, bin, zero.into()));
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

#[cfg(test)]
mod tests {
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;

    /// A linear recurrence along an axis, of which the states alone are kept.
    fn recurrence(shape: [usize; 2], axis: usize) -> String {
        let [m, n] = shape;
        let (tensor, tile) = (format!("{m} x {n} x f32"), format!("tile<{m} x {n} x f32>"));
        let source = format!(
            "kernel @k(%d: tensor<{tensor}>, %x: tensor<{tensor}>, %y: mut tensor<{tensor}>) {{
  %vd = partition %d [{m}, {n}] : partition<{tensor}, [{m}, {n}]>
  %vx = partition %x [{m}, {n}] : partition<{tensor}, [{m}, {n}]>
  %vy = partition %y [{m}, {n}] : mut partition<{tensor}, [{m}, {n}]>
  %i, %j = block_index %vy : index, index
  %decays = load %vd[%i, %j] : {tile}
  %inputs = load %vx[%i, %j] : {tile}
  %one = constant 1.0 : f32
  %zero = constant 0.0 : f32
  %p, %h = scan_with %decays, %inputs from %one, %zero axis {axis} with (%a, %b, %c, %e) : {tile}, {tile} {{
    %product = mul %a, %c : f32
    %scaled = mul %c, %b : f32
    %next = add %scaled, %e : f32
    yield %product, %next
  }}
  store %vy, %h
}}
"
        );
        assembly(&Instance::parse(&source, &[]).unwrap(), "x86-64-v4")
    }

    /// What is carried from step to step isn't in memory, and what nobody reads is computed for nobody.
    #[test]
    fn partial_results_of_neighbours_stay_in_registers() {
        let code = recurrence([32, 64], 0);
        let on_stack = code.lines().filter(|line| line.contains("zmm") && line.contains("(%rsp")).count();
        assert_eq!(on_stack, 0, "{code}");
    }
}
