//! `a` as register blocks read it: packed, or in the scratch memory where it is stored, or in its tensor.
//!
//! Register blocks broadcast single elements of `a`, so packing serves only to move rows apart that would compete for the
//! same sets of the first cache, to convert elements, and to make up elements that don't exist. If a tensor's elements have
//! the packed format, its rows don't compete, and the tile is inside of it, the tensor is read in place. So are rows that
//! do compete if they are multiplied by so few columns that packing would take longer.

use super::super::LINE_BYTES;
use super::super::region::Emitter;
use super::contraction::Contraction;
use super::factor::{Factor, InTensor};
use super::keep::{Keeping, PackedA};
use super::plan::{OrderOfA, Plan};
use super::rows::Turns;
use crate::cpu::memory::buffer::Buffer;
use crate::emit::Value;
use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::kernel::OpData;
use tile_ir::{DType, ValueId};

/// Bytes after which addresses meet in the same set of a first cache: 32 KiB of 8 lines a set, 48 KiB of 12.
const SETS_BYTES: i64 = 4096;

/// Panels of `b`, each of which goes once through `a`, for which rows that meet aren't packed.
const FEW_PANELS: i64 = 2;

/// Where register blocks read `a`.
#[derive(Clone, Copy)]
pub(super) struct Left<'c> {
    first: PointerValue<'c>,
    /// Elements from a row to the next.
    pub(super) row: IntValue<'c>,
    /// Elements from what is multiplied at once to what is next.
    column: i64,
    pub(super) dtype: DType,
    /// The buffer, if it is certain to be there.
    buffer: Option<Buffer<'c>>,
}

/// A row of `a`.
pub(super) struct LeftRow<'c> {
    address: PointerValue<'c>,
    column: i64,
    dtype: DType,
    buffer: Option<Buffer<'c>>,
}

/// The tensor's part that is `a` of a multiplication.
pub(super) struct TensorA<'c> {
    /// Whether it is read there.
    pub(super) is_read: IntValue<'c>,
    first: PointerValue<'c>,
    row: IntValue<'c>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Where the register blocks of a matrix read `a`.
    pub(super) fn left(
        &self,
        a: ValueId,
        plan: &Plan,
        matrix: IntValue<'c>,
        packed: Option<&PackedA<'c>>,
        in_tensor: Option<&TensorA<'c>>,
    ) -> Left<'c> {
        let ir = self.ir;
        let Some(PackedA { buffer, .. }) = packed else { return self.left_in_place(a, plan, matrix) };
        let [row, column] = plan.strides_of_a(self.order_of_a(a, plan));
        let (first, row, dtype) = (buffer.address, ir.i64(row), buffer.dtype);
        match in_tensor {
            None => Left { first, row, column, dtype, buffer: Some(*buffer) },
            Some(tensor) => Left {
                first: ir.select(tensor.is_read, tensor.first.into(), first.into()).into_pointer_value(),
                row: ir.select_int(tensor.is_read, tensor.row, row),
                column,
                dtype,
                buffer: None,
            },
        }
    }

    fn left_in_place(&self, a: ValueId, plan: &Plan, matrix: IntValue<'c>) -> Left<'c> {
        let (buffer, first, [row, column]) = self.in_place(a, matrix, plan);
        let buffer = self.buffers.further(&buffer, first);
        Left {
            first: buffer.address,
            row: self.ir.i64(row),
            column,
            dtype: buffer.dtype,
            buffer: Some(buffer),
        }
    }

    /// So many rows of `a`, from this one on.
    ///
    /// LLVM is kept from knowing how far they lie apart: it would add that up from row to row in every step along K, and where
    /// additions and multiply-adds share places of arithmetic, as on Intel's processors, each takes the place of another.
    pub(super) fn rows_of_left(&self, left: &Left<'c>, first: IntValue<'c>, rows: i64) -> Vec<LeftRow<'c>> {
        let (ir, ty) = (self.ir, self.buffers.element_type(left.dtype));
        let first = ir.offset(ty, left.first, ir.mul(first, left.row));
        let addresses = std::iter::successors(Some(first), |&row| Some(ir.offset(ty, row, left.row)));
        let row = |address| LeftRow {
            address: ir.of_its_own(address),
            column: left.column,
            dtype: left.dtype,
            buffer: left.buffer,
        };
        addresses.take(rows as usize).map(row).collect()
    }

    /// What of a row of `a` register blocks multiply at once, at this step along K.
    pub(super) fn load_left(
        &self,
        row: &LeftRow<'c>,
        ty: BasicTypeEnum<'c>,
        step: IntValue<'c>,
    ) -> Value<'c> {
        let ir = self.ir;
        let at = ir.mul(step, ir.i64(row.column));
        match row.buffer {
            Some(buffer) => self.buffers.load_as(&buffer.from(row.address), ty, at),
            None => {
                let address = ir.element(self.buffers.element_type(row.dtype), row.address, at);
                ir.load_at(ty, address, Some(row.dtype.bytes() as u32))
            }
        }
    }

    /// Where what register blocks multiply at once begins: in this row, at this step along K.
    pub(super) fn address_in_left(
        &self,
        left: &Left<'c>,
        [row, step]: [IntValue<'c>; 2],
    ) -> PointerValue<'c> {
        let ir = self.ir;
        let at = ir.add(ir.mul(row, left.row), ir.mul(step, ir.i64(left.column)));
        ir.element(self.buffers.element_type(left.dtype), left.first, at)
    }

    /// The part of its tensor that is `a` of the multiplication of these turns of a loop, and whether it is read there;
    /// `None` where it never is.
    pub(super) fn tensor_a(
        &mut self,
        product: &'a OpData,
        plan: &Plan,
        turns: Turns<'c>,
        keeping: Option<Keeping<'c>>,
    ) -> Option<TensorA<'c>> {
        let (ir, a) = (self.ir, product.operands[0]);
        let Turns { looped, first, last } = turns;
        let is_packed = plan.contraction.flips_signs() || self.order_of_a(a, plan) == OrderOfA::ByColumns;
        if is_packed || !self.is_known_ahead(a, looped) {
            return None;
        }
        self.emit_constants_of(a);
        let mut at = |turn: IntValue<'c>| {
            self.bind_scalars(&[looped.counter], &[turn.into()]);
            match self.factor(a, ir.i64(0), plan) {
                Factor::Strided(strided) => self.in_tensor(&strided, plan),
                Factor::Computed(_) => None,
            }
        };
        let (begin, end) = (at(first)?, at(last)?);
        let all_exist = ir.and(begin.is_whole, end.is_whole);
        let is_shared = keeping.map_or(ir.bool(false), |keeping| keeping.is_wanted(ir));
        let is_better = match plan.contraction {
            // A line that a tile has read isn't needed again soon, so that none needs to stay near.
            Contraction::Tiles(tiles) => {
                let depth = ir.mul(ir.add(ir.sub(last, first), ir.i64(1)), ir.i64(plan.k));
                ir.icmp(IntPredicate::EQ, ir.urem(depth, ir.i64(tiles.depth())), ir.i64(0))
            }
            _ if plan.panels() <= FEW_PANELS => {
                ir.select_int(is_shared, self.lies_apart(&begin), ir.bool(true))
            }
            _ => self.lies_apart(&begin),
        };
        let goes_on = self.goes_on(plan, [&begin, &end], [first, last]);
        let is_read = ir.and(all_exist, ir.and(is_better, goes_on));
        Some(TensorA { is_read, first: begin.first, row: begin.row })
    }

    /// Emits the constants that the loads of a factor are given, which the loop's body emits later.
    pub(super) fn emit_constants_of(&mut self, factor: ValueId) {
        let fusion = self.fusion;
        let given = fusion.streams(&[factor]).into_iter().flat_map(|load| &load.operands);
        given
            .filter(|&&value| fusion.is_constant(value))
            .filter_map(|&value| fusion.definition(value))
            .for_each(|data| self.op(data));
    }

    /// Whether few rows of a register block meet in the same sets of the first cache: there is a line at least between
    /// where one row and the next lie in them.
    fn lies_apart(&self, a: &InTensor<'c>) -> IntValue<'c> {
        let (ir, line) = (self.ir, i64::from(LINE_BYTES));
        let apart = ir.add(ir.mul(a.row, ir.i64(a.element_bytes)), ir.i64(line - 1));
        ir.icmp(IntPredicate::UGE, ir.urem(apart, ir.i64(SETS_BYTES)), ir.i64(2 * line - 1))
    }

    /// Whether each turn's columns come behind those of the turn before.
    fn goes_on(
        &self,
        plan: &Plan,
        [begin, end]: [&InTensor<'c>; 2],
        [first, last]: [IntValue<'c>; 2],
    ) -> IntValue<'c> {
        let ir = self.ir;
        let columns = ir.mul(ir.sub(last, first), ir.i64(plan.k * begin.element_bytes));
        ir.icmp(IntPredicate::EQ, ir.sub(ir.address(end.first), ir.address(begin.first)), columns)
    }
}
