//! Gathers of rows of which a part exists, as stencils have them at borders.
//!
//! The places of a tile's row whose indices follow each other are a gather's **run**. Where indices are consecutive that is all
//! of the row. Others are bounded by the ends of an axis, or wrapped around it: such an index is computed from counters and is the
//! same in every row of the tile ([`CountedRow`](tile_ir::analysis::CountedRow)), so the run is found once for a tile. Of the
//! run, the places inside are those whose elements exist. For these loops go along the tensor's row as along any other;
//! outside, elements are tested one by one.

use super::gathered::{NamedPart, OpenRow};
use crate::cpu::elements::IndexRange;
use crate::cpu::region::Emitter;
use crate::emit::{Ir, LoopHint, Value};
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::{DType, ValueId};

/// Emits what is done with the places before those inside and with those behind.
pub(super) fn each_side<'c>(
    ir: &Ir<'c>,
    all: IndexRange<'c>,
    inside: IndexRange<'c>,
    emit: impl FnOnce(IndexRange<'c>),
) {
    ir.each((ir.i64(0), ir.i64(2), ir.i64(1)), LoopHint::Rolled, |side| {
        let is_behind = ir.icmp(IntPredicate::NE, side, ir.i64(0));
        let start = ir.select_int(is_behind, inside.end, all.start);
        emit(IndexRange { start, end: ir.select_int(is_behind, all.end, inside.start) });
    });
}

/// A part of some places if it has half of them, and nothing of it otherwise: few are read better with the others, all alike.
fn if_most<'c>(ir: &Ir<'c>, part: IndexRange<'c>, all: IndexRange<'c>) -> IndexRange<'c> {
    let twice = ir.mul(ir.up_to(part.start, part.end), ir.i64(2));
    let is_most = ir.icmp(IntPredicate::UGE, twice, ir.up_to(all.start, all.end));
    IndexRange { start: part.start, end: ir.select_int(is_most, part.end, part.start) }
}

/// What gathers name of a row, each for the places of its run.
pub(super) struct RunParts<'c>(Vec<(ValueId, IndexRange<'c>, NamedPart<'c>)>);

impl<'c> RunParts<'c> {
    /// The rows of the tensors.
    pub(super) fn rows(&self) -> Vec<(ValueId, OpenRow<'c>)> {
        self.0.iter().map(|(tile, _, part)| (*tile, part.open)).collect()
    }

    /// Whether all that the gathers name exists.
    fn exist(&self, ir: &Ir<'c>) -> IntValue<'c> {
        ir.all(self.0.iter().map(|(_, _, part)| part.exists(ir)))
    }

    /// The places of all runs.
    fn whole(&self, ir: &Ir<'c>) -> IndexRange<'c> {
        let runs = self.0.iter().map(|&(_, run, _)| run);
        runs.reduce(|a, b| a.both(ir, b)).expect("there are some")
    }

    /// The places of all runs whose elements exist.
    fn clipped(&self, ir: &Ir<'c>) -> IndexRange<'c> {
        let inside = self.0.iter().map(|(_, run, part)| if_most(ir, part.inside(ir).both(ir, *run), *run));
        inside.reduce(|a, b| a.both(ir, b)).expect("there are some")
    }

    /// Whether all of these places belong to every run, and all of their elements exist.
    fn are_all_of(&self, ir: &Ir<'c>, places: IndexRange<'c>) -> IntValue<'c> {
        ir.and(places.is_within(ir, self.whole(ir)), self.exist(ir))
    }

    /// The places of all runs whose elements exist. Where all do, that takes no more to find out.
    pub(super) fn inside(&self, ir: &Ir<'c>) -> IndexRange<'c> {
        let ends = |IndexRange { start, end }: IndexRange<'c>| vec![start.into(), end.into()];
        let inside = ir.if_else(self.exist(ir), || ends(self.whole(ir)), || ends(self.clipped(ir)));
        let [start, end] = [inside[0], inside[1]].map(Value::into_int_value);
        IndexRange { start, end }
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Finds the runs of an op's gathers of rows among these places of its rows, for what is emitted.
    pub(in crate::cpu) fn with_runs(
        &mut self,
        data: &'a OpData,
        places: IndexRange<'c>,
        emit: &mut dyn FnMut(&mut Self),
    ) {
        let gathers = self.fusion.row_gathers_of(data);
        let runs = gathers.iter().map(|gather| (gather.results[0], self.run_of(gather, places))).collect();
        let outer = std::mem::replace(&mut self.sources.runs, runs);
        emit(self);
        self.sources.runs = outer;
    }

    /// What the gathers whose runs are known name of a row; `None` without such gathers.
    pub(super) fn parts_of_runs(&mut self, row: &[IntValue<'c>]) -> Option<RunParts<'c>> {
        let runs = self.sources.runs.clone();
        let parts: Vec<_> =
            runs.into_iter().map(|(tile, run)| (tile, run, self.part_of_run(tile, run, row))).collect();
        (!parts.is_empty()).then_some(RunParts(parts))
    }

    /// What a gather names of a row for the places of its run.
    fn part_of_run(&mut self, tile: ValueId, run: IndexRange<'c>, row: &[IntValue<'c>]) -> NamedPart<'c> {
        let found = "a run is that of a gather of rows";
        let gather = self.definition(tile).expect(found);
        let axis = self.fusion.axis_of_rows(tile).expect(found);
        let gathered = self.gathered(gather);
        self.named_part(&gathered, &gather.operands[2..], axis, row, run)
    }

    /// Emits what goes along all places of a row, which is given places: those inside, for which these rows are read, and those
    /// on both sides; where all are inside, by themselves.
    pub(super) fn along_runs(
        &mut self,
        parts: &RunParts<'c>,
        all: IndexRange<'c>,
        emit: &mut dyn FnMut(&mut Self, IndexRange<'c>),
    ) {
        let (ir, rows) = (self.ir, parts.rows());
        ir.on_each_side(parts.are_all_of(ir, all), |are_all| {
            let inside = if are_all { all } else { parts.clipped(ir) };
            self.with_open_rows(&rows, &mut |emitter| emit(emitter, inside));
            if !are_all {
                each_side(ir, all, inside, |side| emit(self, side));
            }
        });
    }

    /// Those of the places around their middle whose indices follow each other, if these are most of them. What is bounded by an
    /// axis, or wraps around it once, has its longest run there, unless both ends of the axis are among the places.
    fn run_of(&mut self, gather: &'a OpData, places: IndexRange<'c>) -> IndexRange<'c> {
        let ir = self.ir;
        let Some(row) = self.fusion.counted_row(gather.results[0]) else { return places };
        let index = gather.operands[2 + row.tensor_axis];
        let middle = ir.udiv(ir.add(places.start, places.end), ir.i64(2));
        let is_empty = ir.icmp(IntPredicate::UGE, places.start, places.end);
        let run = ir.if_else(
            is_empty,
            || vec![places.start.into(), places.end.into()],
            || {
                let IndexRange { start, end } = match row.ends_tell {
                    true => self.run_by_ends(index, places, middle),
                    false => self.run_by_steps(index, places, middle),
                };
                vec![start.into(), end.into()]
            },
        );
        let [start, end] = [run[0], run[1]].map(Value::into_int_value);
        if_most(ir, IndexRange { start, end }, places)
    }

    /// The run by halving what lies before the middle and what lies behind: a place belongs to it if its index is as far from
    /// that of the middle as it is itself.
    fn run_by_ends(
        &mut self,
        index: ValueId,
        IndexRange { start, end }: IndexRange<'c>,
        middle: IntValue<'c>,
    ) -> IndexRange<'c> {
        let ir = self.ir;
        let before = ir.add(ir.sub(middle, start), ir.i64(1));
        let first = self.farthest_of_run(index, middle, before, |distance| ir.sub(middle, distance));
        let last =
            self.farthest_of_run(index, middle, ir.sub(end, middle), |distance| ir.add(middle, distance));
        IndexRange { start: first, end: ir.add(last, ir.i64(1)) }
    }

    /// The farthest place of the run on one side of the middle, at a distance below `limit`.
    fn farthest_of_run(
        &mut self,
        index: ValueId,
        middle: IntValue<'c>,
        limit: IntValue<'c>,
        place_at: impl Fn(IntValue<'c>) -> IntValue<'c>,
    ) -> IntValue<'c> {
        let ir = self.ir;
        let there = self.index_at(index, middle);
        // The place at distance `near` belongs to the run, that at `far` doesn't.
        let is_between = |near, far| ir.icmp(IntPredicate::ULT, ir.add(near, ir.i64(1)), far);
        let first = [ir.i64(0), limit];
        let found = ir.while_loop(is_between(first[0], first[1]), &first.map(Value::from), |ends| {
            let [near, far] = [ends[0], ends[1]].map(Value::into_int_value);
            let distance = ir.udiv(ir.add(near, far), ir.i64(2));
            let place = place_at(distance);
            let apart = ir.sub(self.index_at(index, place), there);
            let belongs = ir.icmp(IntPredicate::EQ, apart, ir.sub(place, middle));
            let near = ir.select_int(belongs, distance, near);
            let far = ir.select_int(belongs, far, distance);
            (is_between(near, far), vec![near.into(), far.into()])
        });
        place_at(found[0].into_int_value())
    }

    /// The run by comparing each index with the one before it.
    fn run_by_steps(
        &mut self,
        index: ValueId,
        IndexRange { start, end }: IndexRange<'c>,
        middle: IntValue<'c>,
    ) -> IndexRange<'c> {
        let ir = self.ir;
        let range = (ir.add(start, ir.i64(1)), end, ir.i64(1));
        let run = ir.hinted_loop(range, LoopHint::Rolled, &[start.into(), end.into()], |place, run| {
            let before = self.index_at(index, ir.sub(place, ir.i64(1)));
            let breaks = ir.icmp(IntPredicate::NE, self.index_at(index, place), ir.add(before, ir.i64(1)));
            let begins = ir.and(breaks, ir.icmp(IntPredicate::ULE, place, middle));
            let ends = ir.and(breaks, ir.icmp(IntPredicate::UGT, place, middle));
            let [earlier, later] = [run[0], run[1]].map(Value::into_int_value);
            let begin = ir.greater(earlier, ir.select_int(begins, place, start));
            vec![begin.into(), ir.lesser(later, ir.select_int(ends, place, end)).into()]
        });
        IndexRange { start: run[0].into_int_value(), end: run[1].into_int_value() }
    }

    /// The number in a place of the rows of a tile of indices, which are all alike.
    fn index_at(&mut self, tile: ValueId, place: IntValue<'c>) -> IntValue<'c> {
        let ir = self.ir;
        let rank = self.shape(tile).len();
        let mut at = vec![ir.i64(0); rank];
        at[rank - 1] = place;
        ir.cast(self.dtype(tile), DType::I64, self.element(tile, &at)).into_int_value()
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;

    /// Sums of three neighbours, of those outside the nearest inside, or on the other side of the axis.
    fn code(neighbour: &str) -> String {
        let source = format!(
            "kernel @k(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {{
  %vy = partition %y [256] : mut partition<n x f32, [256]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
  %width = constant 256 : index
  %b = mul %i, %width : index
  %from = cast %b : i32
  %begin = splat %from : tile<256 x i32>
  %c = iota 0 : tile<256 x i32>
  %here = add %c, %begin : tile<256 x i32>
  %1 = constant 1 : i32
  %one = splat %1 : tile<256 x i32>
  %0 = constant 0 : i32
  %low = splat %0 : tile<256 x i32>
  %n = extent n : index
  %end = cast %n : i32
  %size = splat %end : tile<256 x i32>
  %high = sub %size, %one : tile<256 x i32>
  %before = sub %here, %one : tile<256 x i32>
  %behind = add %here, %one : tile<256 x i32>
{neighbour}
  %l = gather_load %x[%left] pad %pad : tile<256 x f32>
  %m = gather_load %x[%here] pad %pad : tile<256 x f32>
  %r = gather_load %x[%right] pad %pad : tile<256 x f32>
  %s = add %l, %m : tile<256 x f32>
  %sum = add %s, %r : tile<256 x f32>
  store_masked %vy, %sum
}}
"
        );
        assembly(&Instance::parse(&source, &[]).unwrap(), "x86-64-v4")
    }

    #[test]
    fn neighbours_inside_are_read_as_rows() {
        let bounded = "  %a = max %before, %low : tile<256 x i32>
  %left = min %a, %high : tile<256 x i32>
  %right = min %behind, %high : tile<256 x i32>";
        let wrapped = "  %a = add %before, %size : tile<256 x i32>
  %left = rem %a, %size : tile<256 x i32>
  %right = rem %behind, %size : tile<256 x i32>";
        let mirrored = "  %left = abs %before : tile<256 x i32>
  %twice = add %high, %high : tile<256 x i32>
  %back = sub %twice, %behind : tile<256 x i32>
  %right = min %behind, %back : tile<256 x i32>";
        for neighbour in [bounded, wrapped, mirrored] {
            let code = code(neighbour);
            assert!(adds_rows(&code, 2), "{code}");
        }
    }

    /// Whether there is a loop with so many additions of vectors, none of which is gathered or masked.
    fn adds_rows(code: &str, additions: usize) -> bool {
        // Straight pieces that end with a jump.
        let mut pieces = code.split("\tj").map(|piece| piece.rsplit(":\n").next().unwrap_or(piece));
        pieces.any(|piece| {
            let count = |instruction: &str| piece.matches(instruction).count();
            count("vaddps\t") == additions
                && count("vmovups\t") >= 1
                && count("gather") == 0
                && count("{%k") == 0
        })
    }

    /// Of a row whose ends have no neighbours all others are read as rows.
    #[test]
    fn neighbours_of_which_one_is_missing_are_read_as_rows() {
        let source = "kernel @k(%x: tensor<m x 512 x f32>, %y: mut tensor<m x 512 x f32>) {
  %vy = partition %y [4, 512] : mut partition<m x 512 x f32, [4, 512]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %four = constant 4 : index
  %b = mul %i, %four : index
  %from = cast %b : i32
  %begin = splat %from : tile<4 x 512 x i32>
  %r = iota 0 : tile<4 x 512 x i32>
  %rows = add %r, %begin : tile<4 x 512 x i32>
  %c = iota 1 : tile<4 x 512 x i32>
  %1 = constant 1 : i32
  %one = splat %1 : tile<4 x 512 x i32>
  %left = sub %c, %one : tile<4 x 512 x i32>
  %right = add %c, %one : tile<4 x 512 x i32>
  %above = sub %rows, %one : tile<4 x 512 x i32>
  %l = gather_load %x[%rows, %left] pad %pad : tile<4 x 512 x f32>
  %m = gather_load %x[%rows, %right] pad %pad : tile<4 x 512 x f32>
  %n = gather_load %x[%above, %c] pad %pad : tile<4 x 512 x f32>
  %s = add %l, %m : tile<4 x 512 x f32>
  %sum = add %s, %n : tile<4 x 512 x f32>
  store_masked %vy, %sum
}
";
        let code = assembly(&Instance::parse(source, &[]).unwrap(), "x86-64-v4");
        assert!(adds_rows(&code, 2), "{code}");
    }
}
