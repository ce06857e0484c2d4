//! Reductions. Along the last axis they have several [partial results](lanes_of), so that the loop vectorises without
//! reordering any sum and gives the same bits with every instruction set; along other axes they go row by row.
//!
//! If all elements of a row exist, its largest float is found by the processor's own comparison, which is one instruction.
//! That comparison doesn't order NaN and the signs of zero; where the result depends on them, the row is gone through again
//! with integer keys ([`NanKey`]).
//!
//! Partial results begin with the reduction's identity, so that the code of a step is emitted once. Sums and products of
//! f16 and bf16 are kept in f32 and rounded at the end.

use crate::cpu::elements::{IndexRange, Lane, hint_for};
use crate::cpu::fuse::is_reduction_of_rows;
use crate::cpu::memory::ahead::{RowTurn, is_function};
use crate::cpu::memory::buffer::Buffer;
use crate::cpu::memory::parts::{Row, RowLoop};
use crate::cpu::memory::short_rows::ShortRows;
use crate::cpu::region::Emitter;
use crate::emit::{LoopHint, NanKey, Value};
use inkwell::FloatPredicate;
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{IntValue, PointerValue, VectorValue};
use std::ops::Range;
use tile_ir::kernel::OpData;
use tile_ir::ops::{BinaryOp, ReduceOp};
use tile_ir::{DType, Op};

/// Elements of the shortest rows that are reduced in partial results: of shorter ones LLVM takes several at once.
pub(in crate::cpu) const SHORTEST: i64 = 8;

/// Lanes of the widest machines' vectors of f32.
const LANES: i64 = 16;

/// Partial results of a reduction of rows of this width: a vector, of as many lanes as shorter rows fill, and two where rows
/// are long, because to join an element with a partial result takes longer than to read it.
pub(in crate::cpu) fn lanes_of(width: i64) -> i64 {
    match width {
        _ if width >= 4 * LANES => 2 * LANES,
        _ if width >= LANES => LANES,
        _ => 1 << width.max(1).ilog2(),
    }
}

/// What the partial results of rows are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Partials {
    /// Numbers of the partial format.
    Numbers,
    /// Floats of which this comparison tells which one stays, and that of two which aren't ordered the earlier one does.
    Compared(FloatPredicate),
    /// Keys of floats, joined by an op, with the key of NaN.
    Keys(BinaryOp, NanKey),
    /// Bools, as bytes: a vector of bits is packed in memory, and its elements aren't.
    Bytes,
}

/// What is reduced, and how.
struct Reduction<'a, 'c> {
    data: &'a OpData,
    op: ReduceOp,
    axis: usize,
    shape: Vec<i64>,
    /// The format of partial results.
    partial: DType,
    result: Buffer<'c>,
    /// The tile that its loop computes and stores on the way.
    made: Option<&'a OpData>,
}

/// The partial results of a row by a reduction, a lane each.
struct Fold<'r, 'a, 'c> {
    reduction: &'r Reduction<'a, 'c>,
    partials: Partials,
    ty: BasicTypeEnum<'c>,
    /// How many lanes there are.
    count: i64,
    lanes: PointerValue<'c>,
    identity: VectorValue<'c>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Op [`tile_ir::Op::Reduce`].
    pub(in crate::cpu) fn reduce(&mut self, data: &'a OpData, op: ReduceOp, axis: usize) {
        if self.fusion.is_hosted(data) {
            return;
        }
        let reduction = self.reduction(data, op, axis);
        if is_reduction_of_rows(self.instance, data) {
            let mut reductions = vec![reduction];
            for hosted in self.fusion.hosted_by(data) {
                let Op::Reduce { op, axis } = &hosted.op else { unreachable!("reductions host reductions") };
                reductions.push(self.reduction(hosted, *op, *axis));
            }
            let shape = &reductions[0].shape;
            self.beside_store(data, shape, &mut |emitter, whole| match whole {
                true => emitter.reduce_rows(&reductions, true),
                false => emitter.with_rows(data, shape, &[], &mut |emitter, whole| {
                    emitter.reduce_rows(&reductions, whole);
                }),
            });
        } else {
            let loads = self.fusion.streams_of(data);
            self.with_streams(&loads, &[], &mut |emitter, whole| emitter.reduce_outer(&reduction, whole));
        }
    }

    fn reduction(&self, data: &'a OpData, op: ReduceOp, axis: usize) -> Reduction<'a, 'c> {
        Reduction {
            data,
            op,
            axis,
            shape: self.shape(data.operands[0]),
            partial: op.partial(self.dtype(data.operands[0])),
            result: self.stored(data.results[0]),
            made: self.fusion.made_by(data),
        }
    }

    fn join(&self, reduction: &Reduction<'a, 'c>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.ir.binary(reduction.op.combine(), reduction.partial, a, b)
    }

    fn rounded(&self, reduction: &Reduction<'a, 'c>, total: Value<'c>) -> Value<'c> {
        self.ir.cast(reduction.partial, reduction.result.dtype, total)
    }

    /// Result element by result element of all axes but the reduced, which is the outer loop; `whole` says whether all elements
    /// of what is read from tensors are known to exist.
    fn reduce_outer(&mut self, reduction: &Reduction<'a, 'c>, whole: bool) {
        let (axis, operand) = (reduction.axis, reduction.data.operands[0]);
        let mut lines = reduction.shape.clone();
        lines[axis] = 1;
        let identity = self.identity(reduction, Partials::Numbers);
        let result = &reduction.result;
        self.fill(result, &lines, |_, _| identity);
        let (outer, inner) = lines.split_at(axis);
        // Behind the reduced axis there are rows, if there is one more.
        let gathers = match inner {
            [_, _] => self.fusion.gathers_of(reduction.data),
            _ => Vec::new(),
        };
        let extent = reduction.shape[axis];
        // Along a short row there is no vector: it is along the rows' results, around straight code, also where functions
        // make that longer than LLVM would make it.
        let is_row = inner.iter().product::<i64>() == 1;
        let hint = if is_row && extent < SHORTEST { LoopHint::Unrolled } else { hint_for(extent) };
        let mut reduce_row = |emitter: &mut Self, before: &[IntValue<'c>], _: bool| {
            let ir = emitter.ir;
            ir.each((ir.i64(0), ir.i64(extent), ir.i64(1)), hint, |k| {
                let range = IndexRange::up_to(ir, ir.i64(inner[inner.len() - 1]));
                emitter.with_gathered_rows(&gathers, &[before, &[k]].concat(), range, &mut |emitter| {
                    emitter.nest(inner, &mut |emitter, after| {
                        let mut index = [before, after].concat();
                        let position = emitter.position(&index, &lines);
                        index[axis] = k;
                        let element = emitter.element(operand, &index);
                        let partial = emitter.buffers.load(result, position);
                        emitter.buffers.store(result, position, emitter.join(reduction, partial, element));
                    });
                });
            });
        };
        match is_row {
            true => {
                let rows = ShortRows { tiles: &[operand], shape: &reduction.shape, stored: &[], whole };
                self.each_short_row(rows, &mut reduce_row);
            }
            false => self.each_row(outer, &mut |emitter, before| reduce_row(emitter, before, whole)),
        }
        if reduction.partial != result.dtype {
            self.nest(&lines, &mut |emitter, index| {
                let position = emitter.position(index, &lines);
                let total = emitter.rounded(reduction, emitter.buffers.load(result, position));
                emitter.buffers.store(result, position, total);
            });
        }
    }

    /// Row by row, of reductions of the same rows; `whole` says whether all elements of what is read from tensors are known to
    /// exist.
    fn reduce_rows(&mut self, reductions: &[Reduction<'a, 'c>], whole: bool) {
        let (_, rows) = reductions[0].shape.split_last().expect("verified: the reduced axis exists");
        self.each_row(rows, &mut |emitter, index| {
            let row = Row { index, whole };
            let first = reductions.iter().map(|reduction| match emitter.comparison(reduction) {
                None => (reduction, reduction.partials()),
                Some(comparison) => (reduction, Partials::Compared(comparison)),
            });
            let totals = emitter.row_totals(&first.collect::<Vec<_>>(), row);
            for (reduction, total) in reductions.iter().zip(totals) {
                let total = emitter.decided(reduction, total, row);
                let position = emitter.position(index, rows);
                emitter.buffers.store(&reduction.result, position, emitter.rounded(reduction, total));
            }
        });
    }

    /// The comparison that a reduction of rows is tried with first; of short rows keys are as fast.
    fn comparison(&self, reduction: &Reduction<'a, 'c>) -> Option<FloatPredicate> {
        let is_long = reduction.shape[reduction.axis] >= LANES;
        reduction.comparison().filter(|_| is_long && self.is_read_again(reduction))
    }

    /// What a row amounts to; found again, where the comparison that gave `total` doesn't decide.
    fn decided(&mut self, reduction: &Reduction<'a, 'c>, total: Value<'c>, row: Row<'_, 'c>) -> Value<'c> {
        let (ir, Some(comparison)) = (self.ir, self.comparison(reduction)) else { return total };
        let decides = self.is_decided(reduction, comparison, total);
        let again = || {
            // What comes next has been asked for, what the block before left and what is made on the way have been stored.
            let (ahead, left) = (self.ahead.take(), self.take_left());
            let of_stored = Reduction { made: None, shape: reduction.shape.clone(), ..*reduction };
            let totals = self.row_totals(&[(&of_stored, reduction.partials())], row);
            self.ahead = ahead;
            self.give_left(left);
            totals
        };
        ir.if_else(decides, || vec![total], again)[0]
    }

    /// Whether a reduction may go through its rows again: they are read, from tensors or where they are stored, and not
    /// computed by functions.
    fn is_read_again(&self, reduction: &Reduction<'a, 'c>) -> bool {
        !self.fusion.computed_from(&reduction.data.operands, |_| true).into_iter().any(is_function)
    }

    /// Whether the largest or smallest number of a row, found by comparisons, is the one: zeros have signs, and where none was
    /// beyond the first number that was compared with, all may have been NaN.
    fn is_decided(
        &self,
        reduction: &Reduction<'a, 'c>,
        comparison: FloatPredicate,
        total: Value<'c>,
    ) -> IntValue<'c> {
        let (ir, total) = (self.ir, total.into_float_value());
        let first = self.identity(reduction, Partials::Compared(comparison)).into_float_value();
        let is_zero = ir.fcmp(FloatPredicate::OEQ, total, total.get_type().const_zero());
        let is_beyond = ir.fcmp(comparison, total, first);
        ir.select_int(is_zero, ir.bool(false), is_beyond)
    }

    /// What a row amounts to, by reductions of the same rows, each with what its partial results are. Those of the lanes are in
    /// registers after LLVM's optimisation. Where a row's end isn't that of a vector, the last elements are joined beside
    /// identities.
    fn row_totals(
        &mut self,
        reductions: &[(&Reduction<'a, 'c>, Partials)],
        row: Row<'_, 'c>,
    ) -> Vec<Value<'c>> {
        let (ir, first) = (self.ir, reductions[0].0);
        let width = *first.shape.last().expect("verified: the reduced axis exists");
        let lanes = lanes_of(width);
        let in_vectors = width / lanes * lanes;
        let gathers = self.fusion.gathers_of(first.data);
        let folds: Vec<Fold<'_, 'a, 'c>> =
            reductions.iter().map(|&(reduction, partials)| self.fold_of(reduction, partials)).collect();
        let over = RowLoop { data: first.data, shape: &first.shape, row, lanes };
        let range = IndexRange::up_to(ir, ir.i64(width));
        self.with_gathered_rows(&gathers, row.index, range, &mut |emitter| {
            emitter.each_part_of_row(over, &mut |emitter, part| {
                ir.each(part.by(ir.i64(lanes)), LoopHint::Rolled, |first_lane| {
                    let behind = emitter.read_behind(first_lane);
                    for fold in &folds {
                        emitter.each_lane(lanes, |emitter, lane| {
                            let i = emitter.index_of_lane(Lane { first: first_lane, lane, lanes });
                            let element = emitter.reduced(fold, row.index, i);
                            emitter.fold_lane(fold, lane, element);
                        });
                    }
                    emitter.store_behind(behind);
                    let (shape, row) = (first.shape.as_slice(), row.index);
                    emitter.prefetch_ahead(RowTurn { shape, row, first: first_lane, count: lanes }, None);
                });
            });
            for fold in folds.iter().filter(|_| in_vectors < width) {
                emitter.fold_rest(fold, row.index, in_vectors..width);
            }
        });
        folds.into_iter().map(|fold| self.total(&fold)).collect()
    }

    /// Places for the partial results of a row, which are identities at first.
    fn fold_of<'r>(&mut self, reduction: &'r Reduction<'a, 'c>, partials: Partials) -> Fold<'r, 'a, 'c> {
        let ty = self.partial_type(reduction, partials);
        let count = lanes_of(*reduction.shape.last().expect("verified: the reduced axis exists"));
        let identity = in_lanes(self.identity(reduction, partials), count);
        let lanes = self.lane_array(ty, count);
        self.ir.store(lanes, identity.into());
        Fold { reduction, partials, ty, count, lanes, identity }
    }

    /// Joins an element with a lane's partial result.
    fn fold_lane(&self, fold: &Fold<'_, 'a, 'c>, lane: IntValue<'c>, element: Value<'c>) {
        let place = self.ir.element(fold.ty, fold.lanes, lane);
        let before = self.ir.load(fold.ty, place);
        self.ir.store(place, self.join_partials(fold.reduction, fold.partials, [before, element]));
    }

    /// Joins the elements of a row behind its last whole vector.
    fn fold_rest(&mut self, fold: &Fold<'_, 'a, 'c>, row: &[IntValue<'c>], rest: Range<i64>) {
        let (ir, lanes) = (self.ir, self.lane_array(fold.ty, fold.count));
        ir.store(lanes, fold.identity.into());
        self.each_lane_below(fold.count, ir.i64(rest.end - rest.start), |emitter, lane| {
            let element = emitter.reduced(fold, row, ir.add(ir.i64(rest.start), lane));
            ir.store(ir.element(fold.ty, lanes, lane), element);
        });
        self.each_lane(fold.count, |emitter, lane| {
            emitter.fold_lane(fold, lane, ir.load(fold.ty, ir.element(fold.ty, lanes, lane)));
        });
    }

    /// What the partial results amount to.
    fn total(&mut self, fold: &Fold<'_, 'a, 'c>) -> Value<'c> {
        let (ir, total) = (self.ir, self.join_halves(fold));
        match (fold.partials, ir.compute_type(fold.reduction.partial)) {
            (Partials::Keys(..), BasicTypeEnum::FloatType(ty)) => {
                ir.float_of_key(total.into_int_value(), ty).into()
            }
            (Partials::Bytes, _) => ir.resize(total.into_int_value(), 1, false).into(),
            _ => total,
        }
    }

    /// Element `i` of a row that is reduced, as partial results are. A tile that this loop computes is stored on the way.
    fn reduced(&mut self, fold: &Fold<'_, 'a, 'c>, row: &[IntValue<'c>], i: IntValue<'c>) -> Value<'c> {
        let Fold { reduction, partials, .. } = *fold;
        let index = [row, &[i]].concat();
        if let Some(made) = reduction.made {
            let (tile, value) = (made.results[0], self.compute(made, &index));
            let position = self.position(&index, &reduction.shape);
            self.buffers.store(&self.stored(tile), position, value);
            self.sources.known.insert(tile, value);
        }
        let element = self.element(reduction.data.operands[0], &index);
        if let Some(made) = reduction.made {
            self.sources.known.remove(&made.results[0]);
        }
        match partials {
            Partials::Keys(_, nan) => self.ir.key_of_float(element.into_float_value(), nan).into(),
            Partials::Bytes => self.byte_of(element),
            _ => element,
        }
    }

    fn partial_type(&self, reduction: &Reduction<'a, 'c>, partials: Partials) -> BasicTypeEnum<'c> {
        match (partials, self.ir.compute_type(reduction.partial)) {
            (Partials::Keys(..), BasicTypeEnum::FloatType(ty)) => self.ir.int_type(ty.get_bit_width()).into(),
            (Partials::Bytes, _) => self.ir.int_type(8).into(),
            (_, ty) => ty,
        }
    }

    fn byte_of(&self, truth: Value<'c>) -> Value<'c> {
        self.ir.resize(truth.into_int_value(), 8, false).into()
    }

    /// What partial results are before the first element. Comparisons begin with an infinity, which no number is beyond.
    fn identity(&self, reduction: &Reduction<'a, 'c>, partials: Partials) -> Value<'c> {
        let identity = self.ir.literal(reduction.op.identity(reduction.partial), reduction.partial);
        match (partials, identity) {
            (Partials::Numbers, identity) => identity,
            (Partials::Bytes, identity) => self.byte_of(identity),
            (Partials::Keys(_, nan), identity) => {
                self.ir.key_of_float(identity.into_float_value(), nan).into()
            }
            (Partials::Compared(comparison), identity) => {
                let infinity = if comparison == FloatPredicate::OGT { -f64::INFINITY } else { f64::INFINITY };
                identity.into_float_value().get_type().const_float(infinity).into()
            }
        }
    }

    /// Joins a partial result with another, or with an element.
    fn join_partials(
        &self,
        reduction: &Reduction<'a, 'c>,
        partials: Partials,
        [before, next]: [Value<'c>; 2],
    ) -> Value<'c> {
        let ir = self.ir;
        match partials {
            Partials::Numbers => self.join(reduction, before, next),
            Partials::Bytes => ir.binary(reduction.op.combine(), DType::U8, before, next),
            // Keys are signed, whatever their width.
            Partials::Keys(op, _) => ir.binary(op, DType::I32, before, next),
            // The operand that an x86's instruction for it gives where neither is beyond the other is the second.
            Partials::Compared(comparison) => {
                let is_beyond = ir.fcmp(comparison, next.into_float_value(), before.into_float_value());
                ir.select(is_beyond, next, before)
            }
        }
    }

    /// Joins the lanes of one half with those of the other, then the halves of what that gives, and so on: the shortest chain
    /// of dependent ops, each of which but the last is a vector's.
    fn join_halves(&mut self, fold: &Fold<'_, 'a, 'c>) -> Value<'c> {
        let (ir, ty, lanes) = (self.ir, fold.ty, fold.lanes);
        let joined = |emitter: &Self, lane: IntValue<'c>, other: IntValue<'c>| {
            let halves = [lane, other].map(|lane| ir.load(ty, ir.element(ty, lanes, lane)));
            emitter.join_partials(fold.reduction, fold.partials, halves)
        };
        let halves = std::iter::successors(Some(fold.count / 2), |&lanes| (lanes > 2).then_some(lanes / 2));
        for half in halves {
            self.each_lane(half, |emitter, lane| {
                let joined = joined(emitter, lane, ir.add(lane, ir.i64(half)));
                ir.store(ir.element(ty, lanes, lane), joined);
            });
        }
        joined(self, ir.i64(0), ir.i64(1))
    }
}

impl Reduction<'_, '_> {
    /// What the partial results of rows are, and how they are joined, whatever the elements.
    fn partials(&self) -> Partials {
        let (op, nan) = match self.op {
            ReduceOp::Max => (BinaryOp::Max, NanKey::Least),
            ReduceOp::Min => (BinaryOp::Min, NanKey::Greatest),
            ReduceOp::Maximum => (BinaryOp::Max, NanKey::Greatest),
            ReduceOp::Minimum => (BinaryOp::Min, NanKey::Least),
            _ if self.partial == DType::Bool => return Partials::Bytes,
            _ => return Partials::Numbers,
        };
        if self.partial.is_float() { Partials::Keys(op, nan) } else { Partials::Numbers }
    }

    /// The comparison that mostly finds what keys do: where NaN is passed over.
    fn comparison(&self) -> Option<FloatPredicate> {
        let comparison = match self.op {
            ReduceOp::Max => FloatPredicate::OGT,
            ReduceOp::Min => FloatPredicate::OLT,
            _ => return None,
        };
        self.partial.is_float().then_some(comparison)
    }
}

fn in_lanes(value: Value<'_>, lanes: i64) -> VectorValue<'_> {
    match value {
        Value::FloatValue(value) => VectorType::const_vector(&vec![value; lanes as usize]),
        value => VectorType::const_vector(&vec![value.into_int_value(); lanes as usize]),
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;

    /// Powers of differences between all rows of two tiles, summed along rows of `B`.
    fn distances(columns: usize) -> Instance {
        let source = "\
kernel @distances<B>(%x: tensor<m x B x f32>, %z: tensor<n x B x f32>, %p: f32, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [16, B] : partition<m x B x f32, [16, B]>
  %vz = partition %z [16, B] : partition<n x B x f32, [16, B]>
  %vy = partition %y [16, 16] : mut partition<m x n x f32, [16, 16]>
  %i, %j = block_index %vy : index, index
  %first = constant 0 : index
  %none = constant 0.0 : f32
  %a = load_masked %vx[%i, %first] pad %none : tile<16 x B x f32>
  %b = load_masked %vz[%j, %first] pad %none : tile<16 x B x f32>
  %rows = reshape %a : tile<16 x 1 x B x f32>
  %others = reshape %b : tile<1 x 16 x B x f32>
  %left = broadcast %rows : tile<16 x 16 x B x f32>
  %right = broadcast %others : tile<16 x 16 x B x f32>
  %d = sub %left, %right : tile<16 x 16 x B x f32>
  %far = abs %d : tile<16 x 16 x B x f32>
  %ps = splat %p : tile<16 x 16 x B x f32>
  %powers = powf %far, %ps : tile<16 x 16 x B x f32>
  %s = reduce sum %powers axis 2 : tile<16 x 16 x 1 x f32>
  %r = reshape %s : tile<16 x 16 x f32>
  store_masked %vy, %r
}
";
        Instance::parse(source, &[("B", columns)]).unwrap()
    }

    /// Whether any, or all, of a row's elements are a number is found for many at once.
    #[test]
    fn bools_are_joined_in_vectors() {
        for (op, dtype, seven) in [("any", "u8", "7"), ("all", "i32", "7"), ("any", "f64", "7.0")] {
            let source = format!(
                "kernel @k(%x: tensor<n x 256 x {dtype}>, %y: mut tensor<n x 1 x bool>) {{
  %vx = partition %x [8, 256] : partition<n x 256 x {dtype}, [8, 256]>
  %vy = partition %y [8, 1] : mut partition<n x 1 x bool, [8, 1]>
  %i, %j = block_index %vy : index, index
  %7 = constant {seven} : {dtype}
  %t = load_masked %vx[%i, %j] pad %7 : tile<8 x 256 x {dtype}>
  %sevens = splat %7 : tile<8 x 256 x {dtype}>
  %is = eq %t, %sevens : tile<8 x 256 x bool>
  %r = reduce {op} %is axis 1 : tile<8 x 1 x bool>
  store_masked %vy, %r
}}
"
            );
            let text = assembly(&Instance::parse(&source, &[]).unwrap(), "x86-64-v4");
            assert!(text.contains("vpcmpeq") || text.contains("vcmpeqpd"), "{text}");
        }
    }

    /// However long a function is, it is computed in vectors: along rows, or along the results of short ones.
    #[test]
    fn functions_along_short_rows_are_computed_in_vectors() {
        for columns in [2, 3, 4, 7, 8, 16] {
            let text = assembly(&distances(columns), "x86-64-v4");
            let multiply_adds: Vec<&str> = text.lines().filter(|line| line.contains("vfmadd")).collect();
            let of_vectors = multiply_adds.iter().filter(|line| line.contains("zmm") || line.contains("ymm"));
            assert!(!multiply_adds.is_empty());
            assert_eq!(of_vectors.count(), multiply_adds.len(), "rows of {columns}: {multiply_adds:#?}");
        }
    }
}
