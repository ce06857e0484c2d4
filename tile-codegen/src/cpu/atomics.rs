//! Atomic operations: an element at a time, in row-major order. Other blocks run on other threads, so these are
//! instructions that are atomic, with the order that was asked for.
//!
//! Relaxed stores are the exception. Processors store each aligned element of a vector at once, whatever they do with the
//! vector ("Intel 64 and IA-32 Architectures Software Developer's Manual", volume 3, 10.1.1; "Arm Architecture Reference
//! Manual for A-profile", B2.2.1), so where indices name parts of rows ([`Lines::row_of`]) a row is stored as any other.

use super::buffer::Buffer;
use super::elements::{each_index, is_short};
use super::gathered::Gathered;
use super::region::Emitter;
use crate::emit::Value;
use crate::emit::atomic::Site;
use inkwell::values::IntValue;
use tile_ir::analysis::{Divisors, Line, Lines};
use tile_ir::kernel::OpData;
use tile_ir::ops::{Atomic, AtomicKind, Order};
use tile_ir::{DType, ValueId};

/// Whether an atomic operation is a relaxed store, whose rows may be stored as a whole.
pub(super) fn is_plain_store(atomic: &Atomic) -> bool {
    atomic.kind == AtomicKind::Store && atomic.order == Order::Relaxed
}

/// The operands of an atomic operation behind the tensor.
struct Operands<'a> {
    indices: &'a [ValueId],
    values: &'a [ValueId],
    mask: Option<ValueId>,
}

impl<'a> Operands<'a> {
    fn of(data: &'a OpData, atomic: Atomic, rank: usize) -> Operands<'a> {
        let (indices, rest) = data.operands[1..].split_at(rank);
        let (values, mask) = rest.split_at(atomic.kind.values());
        Operands { indices, values, mask: mask.first().copied() }
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    pub(super) fn atomic(&mut self, data: &'a OpData, atomic: Atomic) {
        let tensor = self.gathered(data);
        let operands = Operands::of(data, atomic, tensor.extents.len());
        let (loads, gathers) = (self.fusion.streams_of(data), self.fusion.gathers_of(data));
        let result = data.results.first().map(|&result| self.stored(result));
        let row = self.stored_row(atomic, &operands);
        self.with_streams(&loads, &[], &mut |emitter, _| match row {
            Some(along) => emitter.store_rows(&tensor, atomic, (&operands, along), &gathers),
            None => emitter.each_element(&tensor, atomic, &operands, result.as_ref()),
        });
    }

    fn each_element(
        &mut self,
        tensor: &Gathered<'c>,
        atomic: Atomic,
        operands: &Operands<'a>,
        result: Option<&Buffer<'c>>,
    ) {
        let shape = self.shape(operands.indices[0]);
        self.nest(&shape, &mut |emitter, index| {
            let old = emitter.atomic_element(tensor, atomic, operands, index);
            if let (Some(buffer), Some(old)) = (result, old) {
                let at = emitter.position(index, &shape);
                emitter.buffers.store(buffer, at, old);
            }
        });
    }

    /// The tensor's axis along which a store writes parts of rows, where it may write them as a whole.
    fn stored_row(&self, atomic: Atomic, operands: &Operands<'a>) -> Option<usize> {
        if !is_plain_store(&atomic) {
            return None;
        }
        let shape = self.shape(operands.indices[0]);
        let last = shape.len().checked_sub(1).filter(|&last| !is_short(shape[last]))?;
        let divisors = Divisors::of(self.instance);
        let mut lines = Lines::of(self.instance, &divisors);
        let is_masked_by_rows = operands.mask.is_none_or(|mask| lines.along(mask, last) == Line::Constant);
        lines.row_of(operands.indices, last).filter(|_| is_masked_by_rows).map(|row| row.tensor_axis)
    }

    /// Stores row by row: as a whole where all of the row exists, element by element elsewhere.
    fn store_rows(
        &mut self,
        tensor: &Gathered<'c>,
        atomic: Atomic,
        (operands, along): (&Operands<'a>, usize),
        gathers: &[&'a OpData],
    ) {
        let ir = self.ir;
        let shape = self.shape(operands.indices[0]);
        let (&width, rows) = shape.split_last().expect("a row lies along an axis");
        let range = (ir.i64(0), ir.i64(width));
        self.each_row(rows, &mut |emitter, row| {
            let (open, exists) = emitter.named_row(tensor, (operands.indices, along), row, range);
            let mask = operands.mask.map(|mask| emitter.element(mask, &[row, &[ir.i64(0)]].concat()));
            let is_stored = mask.map_or(exists, |mask| ir.and(exists, mask.into_int_value()));
            emitter.with_gathered_rows(gathers, row, range, &mut |emitter| {
                ir.on_each_side(is_stored, |is_whole| {
                    each_index(ir, ir.i64(width), width, |place| {
                        let index = [row, &[place]].concat();
                        if is_whole {
                            let element = emitter.element(operands.values[0], &index);
                            emitter.store_in_row(tensor, open, place, element);
                        } else {
                            emitter.atomic_element(tensor, atomic, operands, &index);
                        }
                    });
                });
            });
        });
    }

    /// Does it to the element that the indices name at this place of their tiles; gives what was there, or zero where
    /// nothing was done, if the operation gives anything.
    fn atomic_element(
        &mut self,
        tensor: &Gathered<'c>,
        atomic: Atomic,
        operands: &Operands<'a>,
        index: &[IntValue<'c>],
    ) -> Option<Value<'c>> {
        let (ir, dtype) = (self.ir, tensor.dtype);
        let site = Site { kind: atomic.kind, order: atomic.order, scope: "", direct: true };
        let mut element = |tile: ValueId| (self.element(tile, index), self.dtype(tile));
        let indices: Vec<(Value<'c>, DType)> = operands.indices.iter().map(|&tile| element(tile)).collect();
        let values: Vec<Value<'c>> = operands.values.iter().map(|&tile| element(tile).0).collect();
        let mask = operands.mask.map(|mask| element(mask).0.into_int_value());
        let (position, exists) = ir.gather_place(&tensor.place, &tensor.extents, &indices);
        let on = mask.map_or(exists, |mask| ir.and(exists, mask));
        let address = ir.offset(ir.storage_type(dtype), tensor.base, position);
        let zero = ir.compute_type(dtype).const_zero();
        let nothing = || if atomic.kind.has_result() { vec![zero] } else { Vec::new() };
        let act = || ir.atomic(site, dtype, address, &values).into_iter().collect();
        ir.if_else(on, act, nothing).first().copied()
    }
}
