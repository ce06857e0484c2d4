//! Histograms: the bins lie in shared memory, and every thread adds its elements to them by atomic instructions. Sums of
//! integers are the same in whatever order threads come.

use crate::emit::atomic::Site;
use crate::gpu::coordinates::both;
use crate::gpu::fragment::Fragment;
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use tile_ir::kernel::OpData;
use tile_ir::ops::{AtomicKind, Order, Scope};
use tile_ir::{DType, OpId};

impl Emitter<'_, '_> {
    /// Op [`tile_ir::Op::Histogram`].
    pub(in crate::gpu) fn histogram(&mut self, op: OpId, data: &OpData) {
        let (ir, operand, result) = (self.ir, data.operands[0], data.results[0]);
        let (dtype, bins) = (self.dtype(operand), self.elements(result));
        let buffer = self.scheduled.buffers(op)[0];
        let (mapping, of_bins) = (self.mapping(operand), self.mapping(result));
        let zeros = vec![self.i32(0).into(); of_bins.slots() as usize];
        self.share(buffer, &Fragment::Slots(zeros), &of_bins);
        self.sync_block();
        let scope = self.dialect.scope(Scope::Block).name;
        let site = Site { kind: AtomicKind::Add, order: Order::Relaxed, scope, direct: true };
        for slot in 0..mapping.slots() {
            let element = self.tile(operand).get(slot).into_int_value();
            // Wide enough for every bin and every element; a negative one is beyond all bins.
            let element = ir.resize(element, dtype.bits().max(32), dtype.is_signed());
            let end = element.get_type().const_int(bins, false);
            let has_bin = ir.icmp(IntPredicate::ULT, element, end);
            let bin = ir.resize(element, 32, false);
            let count = || {
                let one = [self.i32(1).into()];
                ir.atomic(site, DType::I32, self.shared_pointer(buffer, bin), &one);
            };
            self.where_it_holds(both(ir, Some(has_bin), mapping.answers(ir, slot)), count);
        }
        self.sync_block();
        let counted = self.take(buffer, result);
        self.set_tile(result, counted);
    }
}
