//! Atomic operations: an element at a time, in row-major order. Other blocks run on other threads, so these are
//! instructions that are atomic, with the order that was asked for.

use super::region::Emitter;
use crate::emit::Value;
use crate::emit::atomic::Site;
use tile_ir::DType;
use tile_ir::kernel::OpData;
use tile_ir::ops::Atomic;
use tile_ir::view::Source;

impl<'a, 'c> Emitter<'a, 'c> {
    pub(super) fn atomic(&mut self, data: &'a OpData, atomic: Atomic) {
        let tensor = data.operands[0];
        let source = Source::of(self.instance, tensor);
        let ty = self.tensor_type(tensor);
        let place = self.place(ty, &source);
        let dtype = ty.elem.known().expect("an instance has no dtype parameters");
        let ir = self.ir;
        let extents: Vec<_> = ty.extents.iter().map(|dim| ir.dim(dim, &|name| self.sizes[name])).collect();
        let base = self.arguments[&source.argument].into_pointer_value();
        let site = Site { kind: atomic.kind, order: atomic.order, scope: "", direct: true };
        let result = data.results.first().map(|&result| self.stored(result));
        let shape = self.shape(data.operands[1]);
        self.nest(&shape, &mut |emitter, index| {
            let elements: Vec<(Value<'c>, DType)> = data.operands[1..]
                .iter()
                .map(|&tile| (emitter.element(tile, index), emitter.dtype(tile)))
                .collect();
            let (indices, rest) = elements.split_at(extents.len());
            let (values, mask) = rest.split_at(atomic.kind.values());
            let (position, exists) = ir.gather_place(&place, &extents, indices);
            let on = mask.iter().fold(exists, |on, (mask, _)| ir.and(on, mask.into_int_value()));
            let values: Vec<Value<'c>> = values.iter().map(|&(value, _)| value).collect();
            let address = ir.offset(ir.storage_type(dtype), base, position);
            let zero = ir.compute_type(dtype).const_zero();
            let old = ir.if_else(
                on,
                || ir.atomic(site, dtype, address, &values).into_iter().collect(),
                || if atomic.kind.has_result() { vec![zero] } else { Vec::new() },
            );
            if let (Some(buffer), Some(&old)) = (&result, old.first()) {
                let at = emitter.position(index, &shape);
                emitter.buffers.store(buffer, at, old);
            }
        });
    }
}
