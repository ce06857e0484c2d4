//! Atomic operations: an element at a time, in row-major order. Other blocks run on other threads, so these are
//! instructions that are atomic, with the order that was asked for. Where a launch has one thread, what only other blocks
//! could see needn't be: updates are loads and stores ([`company`]).
//!
//! What goes along rows of memory is done row by row ([`rows`]). Updates of one element by a whole tile are one
//! ([`one_place`]), and those of tensors that are only updated may go elsewhere first ([`privatized`]).
//!
//! An element is looked at before it is compared and exchanged: where it differs that was the whole operation, at a tenth of
//! an exchange's time.

mod company;
pub(super) mod masked_places;
pub(super) mod one_place;
pub(super) mod privatized;
pub(super) mod rows;

use crate::cpu::memory::buffer::Buffer;
use crate::cpu::memory::gathered::Gathered;
use crate::cpu::region::Emitter;
use crate::emit::Value;
use crate::emit::atomic::Site;
use inkwell::values::{IntValue, PointerValue};
use one_place::Together;
use rows::NamedRows;
use tile_ir::kernel::OpData;
use tile_ir::ops::{Atomic, AtomicKind, Order, ReduceOp};
use tile_ir::{DType, Instance, Op, ValueId};

/// The reduction by which several updates of an element become one, whose value is what theirs amount to.
pub(in crate::cpu) fn joined(kind: AtomicKind) -> Option<ReduceOp> {
    Some(match kind {
        AtomicKind::Add | AtomicKind::Sub => ReduceOp::Sum,
        AtomicKind::Min => ReduceOp::Min,
        AtomicKind::Max => ReduceOp::Max,
        AtomicKind::And => ReduceOp::And,
        AtomicKind::Or => ReduceOp::Or,
        AtomicKind::Xor => ReduceOp::Xor,
        AtomicKind::Swap | AtomicKind::CompareExchange | AtomicKind::Load | AtomicKind::Store => return None,
    })
}

/// Whether any op reads what this one gives.
pub(in crate::cpu) fn is_used(instance: &Instance, data: &OpData) -> bool {
    let reads = |op| instance.op(op).operands.iter().any(|operand| data.results.contains(operand));
    instance.walk().into_iter().any(reads)
}

/// Whether the kernel looks at what other blocks change, or orders what it does for them.
pub(in crate::cpu) fn heeds_others(instance: &Instance) -> bool {
    instance.walk().into_iter().map(|op| instance.op(op)).any(|data| match data.op {
        Op::Atomic(atomic) => atomic.order != Order::Relaxed || is_used(instance, data),
        _ => false,
    })
}

/// Every scope is the system's here.
pub(in crate::cpu) fn site_of(atomic: Atomic) -> Site {
    Site { kind: atomic.kind, order: atomic.order, scope: "", direct: true }
}

/// An atomic operation, and what it is given.
#[derive(Clone)]
pub(in crate::cpu) struct Access<'a, 'c> {
    pub(in crate::cpu) atomic: Atomic,
    pub(in crate::cpu) tensor: Gathered<'c>,
    /// Tiles of the indices that name an element, one for each axis of the tensor.
    pub(in crate::cpu) indices: &'a [ValueId],
    /// Tiles of what is stored, added, or compared and exchanged.
    pub(in crate::cpu) values: &'a [ValueId],
    pub(in crate::cpu) mask: Option<ValueId>,
    /// Whether any op reads what it gives.
    is_used: bool,
    /// Whether nobody else comes to these elements meanwhile.
    is_alone: bool,
}

impl<'a, 'c> Access<'a, 'c> {
    fn of(data: &'a OpData, atomic: Atomic, tensor: Gathered<'c>, is_used: bool) -> Self {
        let (indices, rest) = data.operands[1..].split_at(tensor.extents.len());
        let (values, mask) = rest.split_at(atomic.kind.values());
        Access { atomic, tensor, indices, values, mask: mask.first().copied(), is_used, is_alone: false }
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    pub(in crate::cpu) fn atomic(&mut self, data: &'a OpData, atomic: Atomic) {
        let access = Access::of(data, atomic, self.gathered(data), is_used(self.instance, data));
        let (loads, gathers) = (self.fusion.streams_of(data), self.fusion.gathers_of(data));
        let result = data.results.first().filter(|_| access.is_used);
        let result = result.map(|&result| self.stored(result));
        let together = Together::of(self, &access);
        let rows = if together.is_none() { self.named_rows(&access) } else { None };
        self.with_streams(&loads, &[], &mut |emitter, _| match &together {
            Some(together) => emitter.update_together(together, result.as_ref()),
            None => emitter.in_each_company(&access, &mut |emitter, access| {
                emitter.by_rows_or_elements(access, rows, result.as_ref(), &gathers);
            }),
        });
    }

    /// Goes along rows where that pays, else from element to element.
    fn by_rows_or_elements(
        &mut self,
        access: &Access<'a, 'c>,
        rows: Option<NamedRows>,
        result: Option<&Buffer<'c>>,
        gathers: &[&'a OpData],
    ) {
        if let (Some(buffer), Some(_)) = (result, access.mask) {
            let zero = self.ir.compute_type(access.tensor.dtype).const_zero();
            self.fill(buffer, &self.shape(access.indices[0]), |_, _| zero);
        }
        match rows.and_then(|rows| Some((rows, self.way_along(access, rows)?))) {
            Some((rows, way)) => self.each_whole_row(access, rows, way, result, gathers),
            None => self.each_element(access, result),
        }
    }

    fn each_element(&mut self, access: &Access<'a, 'c>, result: Option<&Buffer<'c>>) {
        let shape = self.shape(access.indices[0]);
        self.each_place(access.mask, &shape, &mut |emitter, index| {
            let old = emitter.atomic_element(access, index);
            emitter.keep(result, &shape, index, old);
        });
    }

    /// Stores what an operation gives at a place of its tiles, if anything is made of it.
    fn keep(
        &self,
        result: Option<&Buffer<'c>>,
        shape: &[i64],
        index: &[IntValue<'c>],
        old: Option<Value<'c>>,
    ) {
        if let (Some(buffer), Some(old)) = (result, old) {
            self.buffers.store(buffer, self.position(index, shape), old);
        }
    }

    /// Does it to the element that the indices name at this place of their tiles, which the mask has; gives what was there, or
    /// zero where nothing was done, if the operation gives anything.
    fn atomic_element(&mut self, access: &Access<'a, 'c>, index: &[IntValue<'c>]) -> Option<Value<'c>> {
        let (ir, kind) = (self.ir, access.atomic.kind);
        let (site, dtype) = (site_of(access.atomic), access.tensor.dtype);
        let values: Vec<Value<'c>> = access.values.iter().map(|&tile| self.element(tile, index)).collect();
        let (address, exists) = self.named_element(&access.tensor, access.indices, index);
        let zero = ir.compute_type(dtype).const_zero();
        let nothing = || if kind.has_result() { vec![zero] } else { Vec::new() };
        let act = || match kind {
            _ if access.is_alone => vec![ir.update_alone(kind, dtype, address, &values)],
            AtomicKind::CompareExchange => vec![ir.look_and_exchange(site, dtype, address, &values)],
            _ => ir.atomic(site, dtype, address, &values).into_iter().collect(),
        };
        ir.if_else(exists, act, nothing).first().copied()
    }

    /// Whether the mask has this place of the tiles.
    pub(in crate::cpu) fn is_on(&mut self, access: &Access<'a, 'c>, index: &[IntValue<'c>]) -> IntValue<'c> {
        match access.mask {
            Some(mask) => self.element(mask, index).into_int_value(),
            None => self.ir.bool(true),
        }
    }

    /// The address of the element that indices name at a place of their tiles, and whether it exists.
    pub(in crate::cpu) fn named_element(
        &mut self,
        tensor: &Gathered<'c>,
        indices: &[ValueId],
        index: &[IntValue<'c>],
    ) -> (PointerValue<'c>, IntValue<'c>) {
        let ir = self.ir;
        let indices: Vec<(Value<'c>, DType)> =
            indices.iter().map(|&tile| (self.element(tile, index), self.dtype(tile))).collect();
        let (position, exists) = ir.gather_place(&tensor.place, &tensor.extents, &indices);
        (ir.offset(ir.storage_type(tensor.dtype), tensor.base, position), exists)
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::compiled::assembly;
    use tile_ir::Instance;

    /// A mask's places are found by counting zeros, and an element that differs isn't exchanged.
    #[test]
    fn exchanges_behind_masks_look_first() {
        let source = "kernel @k(%slots: mut tensor<c x i32>, %x: tensor<n x i32>, %y: mut tensor<n x i32>) {
  %vx = partition %x [64] : partition<n x i32, [64]>
  %vy = partition %y [64] : mut partition<n x i32, [64]>
  %i = block_index %vy : index
  %none = constant -1 : i32
  %t = load_masked %vx[%i] pad %none : tile<64 x i32>
  %empty = splat %none : tile<64 x i32>
  %on = gt %t, %empty : tile<64 x bool>
  %old = atomic compare_exchange relaxed device %slots[%t], %empty, %t mask %on : tile<64 x i32>
  store_masked %vy, %old
}
";
        let code = assembly(&Instance::parse(source, &[]).unwrap(), "x86-64-v3");
        assert!(code.contains("tzcnt"), "{code}");
        let before: Vec<&str> = code.split("lock").next().unwrap_or_default().lines().rev().take(8).collect();
        let looks = |line: &&str| line.contains("cmpl\t$-1") || line.contains("movl\t(");
        assert!(before.iter().any(looks) && before.iter().any(|line| line.contains("\tj")), "{code}");
    }
}
