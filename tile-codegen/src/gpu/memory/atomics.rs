//! Atomic operations: each thread does its own elements, in no order between threads.
//!
//! What a block did before a release is what all its threads did: they meet at a barrier, then each orders its
//! accesses by a fence; where that says nothing of what other waves have written, or of what is copied to a tensor beside the
//! threads, these wait for it before they meet. An acquire is the same backwards. The instructions themselves are relaxed: not every target keeps the order of one.

use crate::emit::Value;
use crate::emit::atomic::Site;
use crate::gpu::fragment::Fragment;
use crate::gpu::region::Emitter;
use tile_ir::kernel::OpData;
use tile_ir::ops::{Atomic, Order, Scope};
use tile_ir::view::Source;
use tile_ir::{Op, OpId, Type, ValueId};

impl<'c> Emitter<'_, 'c> {
    pub(in crate::gpu) fn atomic(&mut self, op: OpId, data: &OpData, atomic: Atomic) {
        let scope = self.dialect.scope(atomic.scope);
        if atomic.order.releases() {
            self.ir.fence(Order::Release, scope.name);
        }
        let old = self.atomic_elements(op, data, atomic);
        if atomic.order.acquires() {
            self.ir.fence(Order::Acquire, scope.name);
            self.sync();
        }
        if let (Some(&result), Some(old)) = (data.results.first(), old) {
            let old = self.told(op, result, old);
            self.set_tile(result, old);
        }
    }

    /// Completes what this thread has written, where a release that threads meet before doesn't do so for all of them.
    pub(in crate::gpu) fn complete_before(&self, op: &Op) {
        let Op::Atomic(Atomic { order, scope, .. }) = *op else { return };
        if !order.releases() || scope == Scope::Block {
            return;
        }
        if !self.dialect.barrier_completes_stores {
            self.ir.fence(Order::Release, self.dialect.scope(scope).name);
        }
        self.complete_panels();
    }

    /// What one thread found is told to those that hold copies of the element.
    fn told(&self, op: OpId, result: ValueId, old: Fragment<'c>) -> Fragment<'c> {
        let Some(&buffer) = self.scheduled.buffers(op).first() else { return old };
        self.share(buffer, &old, &self.mapping(result));
        self.sync();
        self.take(buffer, result)
    }

    fn atomic_elements(&self, op: OpId, data: &OpData, atomic: Atomic) -> Option<Fragment<'c>> {
        let (ir, tensor) = (self.ir, data.operands[0]);
        let Type::Tensor(ty) = self.instance.ty(tensor) else { unreachable!("verified: a tensor") };
        let source = Source::of(self.instance, tensor);
        let (place, scope) = (self.place(ty, &source), self.dialect.scope(atomic.scope));
        let extents: Vec<_> = ty.extents.iter().map(|dim| self.dim(dim)).collect();
        let base = self.scalar(source.argument).into_pointer_value();
        let dtype = ty.elem.known().expect("an instance has no dtype parameters");
        let site =
            Site { kind: atomic.kind, order: Order::Relaxed, scope: scope.name, direct: scope.updates };
        let mapping = self.mapping(data.operands[1]);
        let zero = ir.compute_type(dtype).const_zero();
        let (indices, rest) = data.operands[1..].split_at(extents.len());
        let (values, mask) = rest.split_at(atomic.kind.values());
        let at = |slot| {
            let index = |&tile: &ValueId| (self.tile(tile).get(slot), self.dtype(tile));
            let indices: Vec<_> = indices.iter().map(index).collect();
            let (position, exists) = ir.gather_place(&place, &extents, &indices);
            let mask = mask.iter().map(|&mask| self.tile(mask).get(slot).into_int_value());
            let on =
                mask.chain(mapping.answers(ir, slot)).fold(exists, |on, condition| ir.and(on, condition));
            (ir.offset(ir.storage_type(dtype), base, position), on)
        };
        let together = self.scheduled.scattered(op);
        if together > 1 {
            for slot in (0..mapping.slots()).step_by(together as usize) {
                let (address, on) = at(slot);
                let neighbours: Vec<Value<'c>> =
                    (slot..slot + together).map(|slot| self.tile(values[0]).get(slot)).collect();
                ir.if_then(on, || self.scatter_row(site, dtype, address, &neighbours));
            }
            return None;
        }
        let one = |slot| -> Vec<Value<'c>> {
            let (address, on) = at(slot);
            let values: Vec<Value<'c>> = values.iter().map(|&tile| self.tile(tile).get(slot)).collect();
            ir.if_else(
                on,
                || ir.atomic(site, dtype, address, &values).into_iter().collect(),
                || if atomic.kind.has_result() { vec![zero] } else { Vec::new() },
            )
        };
        if atomic.kind.has_result() {
            return Some(self.map(data.operands[1], |slot| one(slot)[0]));
        }
        (0..mapping.slots()).for_each(|slot| drop(one(slot)));
        None
    }
}
