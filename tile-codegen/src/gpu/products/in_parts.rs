//! Products that begin at zero in every turn and are added to sums besides (`promote` of the schedule), where a thread can't
//! hold both: half of the columns is multiplied, waited for and added, then the other half. Each half waits for the tensor
//! cores by itself, which costs less than registers that go to memory and back in every turn.

use super::warpgroup::is_zero;
use crate::emit::Value;
use crate::gpu::fragment::Fragment;
use crate::gpu::pipeline::roles::{MOST_REGISTERS, Role};
use crate::gpu::region::Emitter;
use tile_ir::kernel::OpData;
use tile_ir::ops::BinaryOp;
use tile_ir::{DType, Op, OpId};

impl<'c> Emitter<'_, 'c> {
    /// Whether an op is a product of a warpgroup whose sums and those that the op after it adds them to are more than a
    /// thread has registers for.
    pub(in crate::gpu) fn is_added_in_parts_by(&self, op: OpId, data: &OpData, next: OpId) -> bool {
        // In tensor memory nobody holds what a product adds up.
        if data.op != Op::Mma || self.role != Role::Consumer || self.has_tensor_memory() {
            return false;
        }
        let (pipelines, own, after) = (self.scheduled.pipelines(), data.results[0], self.instance.op(next));
        if pipelines.factors(op).is_none() || pipelines.brought_right_for(op).is_some() {
            return false;
        }
        let is_beside_late = pipelines.read_by(op).is_some_and(|region| self.late(region).is_some());
        let users =
            || self.instance.walk().into_iter().filter(|&op| self.instance.op(op).operands.contains(&own));
        after.op == Op::Binary(BinaryOp::Add)
            && after.operands[1] == own
            && after.operands[0] != own
            && self.dtype(own) == DType::F32
            && 2 * self.slots(own) > MOST_REGISTERS
            && !is_beside_late
            && self.tile(data.operands[2]).uniform().is_some_and(is_zero)
            && users().count() == 1
    }

    /// Such a product, and the op that adds it to sums.
    pub(in crate::gpu) fn product_in_parts(&mut self, op: OpId, after: &OpData) {
        let ready = self.ready(op);
        self.await_fills(op);
        let mut sums = self.tile(after.operands[0]).values(self.slots(after.results[0]));
        let mut own = ready.sums.clone();
        for part in ready.parts() {
            self.begin_products();
            self.issue_part(&ready, &part, &mut own);
            let issued: Vec<Value<'c>> = part.slots.iter().map(|&slot| own[slot]).collect();
            for (&slot, own) in part.slots.iter().zip(self.passed_by_wait(0, issued)) {
                sums[slot] = self.ir.fadd(sums[slot].into_float_value(), own.into_float_value()).into();
            }
        }
        self.set_tile(after.results[0], Fragment::Slots(sums));
        if !self.scheduled.pipelines().is_ahead(op) {
            self.leave_stage(op);
        }
    }
}
