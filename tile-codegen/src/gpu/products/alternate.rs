//! Two warpgroups that issue the products of their turns alternately: while one computes, the other's products run, and
//! neither waits for tensor cores that are busy with the other's while its own threads could compute.
//!
//! Each waits at a barrier of its own until the other has issued its products. The second lets the first begin, and the
//! first waits once more after the last turn, so that barriers are left as they were found. Results don't depend on it.

use crate::emit::Value;
use crate::gpu::pipeline::named_barriers::TURNS;
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::RegionId;

impl<'c> Emitter<'_, 'c> {
    fn alternates(&self, pipeline: RegionId) -> bool {
        self.late(pipeline).is_some() && self.pipeline(pipeline).alternates
    }

    /// Before the loop: the second warpgroup lets the first begin.
    pub(in crate::gpu) fn begin_alternating(&self, pipeline: RegionId) {
        let ir = self.ir;
        if self.alternates(pipeline) {
            let is_second = ir.icmp(IntPredicate::NE, self.pipelined.warpgroup, self.i32(0));
            ir.if_then(is_second, || self.let_begin(self.i32(0)));
        }
    }

    /// Waits until the other warpgroup has issued its products.
    pub(in crate::gpu) fn await_turn(&self, pipeline: RegionId) {
        if self.alternates(pipeline) {
            self.meet_at(self.running_warpgroup());
        }
    }

    /// Lets the other warpgroup issue its products.
    pub(in crate::gpu) fn pass_turn(&self, pipeline: RegionId) {
        if self.alternates(pipeline) {
            self.let_begin(self.ir.sub(self.i32(1), self.running_warpgroup()));
        }
    }

    /// After the loop: the first warpgroup waits for the second's last turn.
    pub(in crate::gpu) fn end_alternating(&self, pipeline: RegionId) {
        let ir = self.ir;
        if self.alternates(pipeline) {
            let is_first = ir.icmp(IntPredicate::EQ, self.pipelined.warpgroup, self.i32(0));
            ir.if_then(is_first, || self.meet_at(self.i32(0)));
        }
    }

    fn meet_at(&self, warpgroup: IntValue<'c>) {
        let barrier = self.ir.add(warpgroup, self.i32(TURNS));
        self.dialect.barrier_of(self.ir, barrier, self.thread_count());
    }

    /// Arrives at a warpgroup's barrier without waiting (PTX ISA, "barrier{.cta}").
    fn let_begin(&self, warpgroup: IntValue<'c>) {
        let barrier = self.ir.add(warpgroup, self.i32(TURNS));
        let operands: [Value<'c>; 2] = [barrier.into(), self.i32(self.thread_count()).into()];
        self.ir.intrinsic("llvm.nvvm.barrier.cta.arrive.aligned.count", &[], &operands);
    }
}
