//! Reductions. Along the last axis in [`LANES`] partial results, so that the loop vectorises without
//! reordering a single sum and gives the same bits on every instruction set; along others row by row.
//!
//! The largest of a row's floats is found by the processor's own comparison, which takes one instruction, wherever all
//! elements exist. Where NaN and the sign of zero would decide, which that comparison doesn't know, it is found again among
//! keys ([`NanKey`]).
//!
//! Partial results start as the identity of the reduction, so what is reduced is emitted once. Sums and products
//! of f16 and bf16 are kept in f32 and rounded at the end.

use super::buffer::Buffer;
use super::elements::hint_for;
use super::fuse::is_reduction_of_rows;
use super::parts::RowOf;
use super::region::Emitter;
use crate::emit::{LoopHint, NanKey, Value};
use inkwell::FloatPredicate;
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{IntValue, PointerValue, VectorValue};
use tile_ir::DType;
use tile_ir::kernel::OpData;
use tile_ir::ops::{BinaryOp, ReduceOp};

/// Partial results of a reduction along the last axis: a vector of f32 on the widest machines.
pub(super) const LANES: i64 = 16;

/// What the partial results of rows are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Partials {
    /// Numbers of the partial format.
    Numbers,
    /// Floats of which this comparison tells which one stays, and that of two which aren't ordered the earlier one does.
    Compared(FloatPredicate),
    /// Keys of floats, joined by an op, with the key of NaN.
    Keys(BinaryOp, NanKey),
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
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Op [`tile_ir::Op::Reduce`].
    pub(super) fn reduce(&mut self, data: &'a OpData, op: ReduceOp, axis: usize) {
        let dtype = self.dtype(data.operands[0]);
        let reduction = Reduction {
            data,
            op,
            axis,
            shape: self.shape(data.operands[0]),
            partial: op.partial(dtype),
            result: self.stored(data.results[0]),
        };
        if is_reduction_of_rows(self.instance, data) {
            self.beside_store(data, |emitter| {
                emitter.with_rows(data, &reduction.shape, &[], &mut |emitter, whole| {
                    emitter.reduce_rows(&reduction, whole);
                });
            });
        } else {
            let loads = self.fusion.streams_of(data);
            self.with_streams(&loads, &[], &mut |emitter, _| emitter.reduce_outer(&reduction));
        }
    }

    fn join(&self, reduction: &Reduction<'a, 'c>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.ir.binary(reduction.op.combine(), reduction.partial, a, b)
    }

    fn rounded(&self, reduction: &Reduction<'a, 'c>, total: Value<'c>) -> Value<'c> {
        self.ir.cast(reduction.partial, reduction.result.dtype, total)
    }

    /// Result element by result element of all axes but the reduced, which is the outer loop.
    fn reduce_outer(&mut self, reduction: &Reduction<'a, 'c>) {
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
        self.each_row(outer, &mut |emitter, before| {
            let (ir, extent) = (emitter.ir, reduction.shape[axis]);
            ir.hinted_loop((ir.i64(0), ir.i64(extent), ir.i64(1)), hint_for(extent), &[], |k, _| {
                let range = (ir.i64(0), ir.i64(inner[inner.len() - 1]));
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
                Vec::new()
            });
        });
        if reduction.partial != result.dtype {
            self.nest(&lines, &mut |emitter, index| {
                let position = emitter.position(index, &lines);
                let total = emitter.rounded(reduction, emitter.buffers.load(result, position));
                emitter.buffers.store(result, position, total);
            });
        }
    }

    /// Row by row; `whole` says whether all elements of what is read from tensors are known to exist.
    fn reduce_rows(&mut self, reduction: &Reduction<'a, 'c>, whole: bool) {
        let (_, rows) = reduction.shape.split_last().expect("verified: the reduced axis exists");
        let comparison = reduction.comparison().filter(|_| self.is_read_again(reduction));
        self.each_row(rows, &mut |emitter, row| {
            let (ir, partials) = (emitter.ir, reduction.partials());
            let total = match comparison {
                None => emitter.row_total(reduction, partials, (row, whole)),
                Some(comparison) => {
                    let total = emitter.row_total(reduction, Partials::Compared(comparison), (row, whole));
                    let decides = emitter.is_decided(reduction, comparison, total);
                    let again = || {
                        // What comes next has been asked for.
                        let ahead = emitter.ahead.take();
                        let total = emitter.row_total(reduction, partials, (row, whole));
                        emitter.ahead = ahead;
                        vec![total]
                    };
                    ir.if_else(decides, || vec![total], again)[0]
                }
            };
            let position = emitter.position(row, rows);
            emitter.buffers.store(&reduction.result, position, emitter.rounded(reduction, total));
        });
    }

    /// Whether a reduction may go through its rows again: they are read, not computed by functions or stored on the way.
    fn is_read_again(&self, reduction: &Reduction<'a, 'c>) -> bool {
        let data = reduction.data;
        self.fusion.made_by(data).is_none() && !self.fusion.computes_functions(data)
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

    /// What a row amounts to. The partial results of the lanes are in registers after LLVM's optimisation. Where a row's end
    /// isn't that of a vector, the last elements are joined beside identities.
    fn row_total(
        &mut self,
        reduction: &Reduction<'a, 'c>,
        partials: Partials,
        (row, whole): (&[IntValue<'c>], bool),
    ) -> Value<'c> {
        let ir = self.ir;
        let width = *reduction.shape.last().expect("verified: the reduced axis exists");
        let in_vectors = width / LANES * LANES;
        let ty = self.partial_type(reduction, partials);
        let start = lanes_of(self.identity(reduction, partials));
        let [lanes, rest] = [(); 2].map(|()| self.lane_array(ty, LANES));
        let gathers = self.fusion.gathers_of(reduction.data);
        let place = |array, lane: IntValue<'c>| ir.element(ty, array, lane);
        let joined = |emitter: &mut Self, lane: IntValue<'c>, element: Value<'c>| {
            let before = ir.load(ty, place(lanes, lane));
            ir.store(place(lanes, lane), emitter.join_partials(reduction, partials, [before, element]));
        };
        ir.store(lanes, start.into());
        let of_row = RowOf { data: reduction.data, shape: &reduction.shape, index: row, lanes: LANES, whole };
        self.with_gathered_rows(&gathers, row, (ir.i64(0), ir.i64(width)), &mut |emitter| {
            emitter.each_part_of_row(of_row, &mut |emitter, (begin, end)| {
                ir.hinted_loop((begin, end, ir.i64(LANES)), LoopHint::Rolled, &[], |first, _| {
                    emitter.prefetch_ahead(&reduction.shape, row, first, LANES);
                    emitter.each_lane(LANES, |emitter, lane| {
                        let element = emitter.reduced(reduction, partials, (row, ir.add(first, lane)));
                        joined(emitter, lane, element);
                    });
                    // Last: tensors' rows mostly begin pages, and a load waits for an earlier store whose address has the
                    // same lowest twelve bits.
                    emitter.store_behind(first);
                    Vec::new()
                });
            });
            if in_vectors < width {
                ir.store(rest, start.into());
                emitter.each_lane_below(LANES, ir.i64(width - in_vectors), |emitter, lane| {
                    let i = ir.add(ir.i64(in_vectors), lane);
                    let element = emitter.reduced(reduction, partials, (row, i));
                    ir.store(place(rest, lane), element);
                });
                emitter.each_lane(LANES, |emitter, lane| {
                    joined(emitter, lane, ir.load(ty, place(rest, lane)));
                });
            }
        });
        let total = self.join_halves(reduction, partials, (lanes, ty));
        match (partials, self.ir.compute_type(reduction.partial)) {
            (Partials::Keys(..), BasicTypeEnum::FloatType(ty)) => {
                ir.float_of_key(total.into_int_value(), ty).into()
            }
            _ => total,
        }
    }

    /// An element of a row that is reduced, as partial results are. A tile that this loop computes is stored on the way.
    fn reduced(
        &mut self,
        reduction: &Reduction<'a, 'c>,
        partials: Partials,
        (row, i): (&[IntValue<'c>], IntValue<'c>),
    ) -> Value<'c> {
        let index = [row, &[i]].concat();
        let made = self.fusion.made_by(reduction.data);
        if let Some(made) = made {
            let (tile, value) = (made.results[0], self.compute(made, &index));
            let position = self.position(&index, &reduction.shape);
            self.buffers.store(&self.stored(tile), position, value);
            self.known.insert(tile, value);
        }
        let element = self.element(reduction.data.operands[0], &index);
        if let Some(made) = made {
            self.known.remove(&made.results[0]);
        }
        match partials {
            Partials::Keys(_, nan) => self.ir.key_of_float(element.into_float_value(), nan).into(),
            _ => element,
        }
    }

    fn partial_type(&self, reduction: &Reduction<'a, 'c>, partials: Partials) -> BasicTypeEnum<'c> {
        match (partials, self.ir.compute_type(reduction.partial)) {
            (Partials::Keys(..), BasicTypeEnum::FloatType(ty)) => self.ir.int_type(ty.get_bit_width()).into(),
            (_, ty) => ty,
        }
    }

    /// What partial results are before the first element. Comparisons begin with an infinity, which no number is beyond.
    fn identity(&self, reduction: &Reduction<'a, 'c>, partials: Partials) -> Value<'c> {
        let identity = self.ir.literal(reduction.op.identity(reduction.partial), reduction.partial);
        match (partials, identity) {
            (Partials::Numbers, identity) => identity,
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
    fn join_halves(
        &mut self,
        reduction: &Reduction<'a, 'c>,
        partials: Partials,
        (lanes, ty): (PointerValue<'c>, BasicTypeEnum<'c>),
    ) -> Value<'c> {
        let ir = self.ir;
        let joined = |emitter: &Self, lane: IntValue<'c>, other: IntValue<'c>| {
            let halves = [lane, other].map(|lane| ir.load(ty, ir.element(ty, lanes, lane)));
            emitter.join_partials(reduction, partials, halves)
        };
        let halves = std::iter::successors(Some(LANES / 2), |&lanes| (lanes > 2).then_some(lanes / 2));
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

fn lanes_of(value: Value<'_>) -> VectorValue<'_> {
    match value {
        Value::FloatValue(value) => VectorType::const_vector(&[value; LANES as usize]),
        value => VectorType::const_vector(&[value.into_int_value(); LANES as usize]),
    }
}
