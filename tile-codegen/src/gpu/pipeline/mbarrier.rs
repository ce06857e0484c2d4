//! Barriers in shared memory at which threads arrive and others wait, and which also count the bytes that
//! asynchronous copies bring (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").

use super::cluster;
use crate::emit::Ir;
use inkwell::values::{IntValue, PointerValue};

/// Prepares a barrier that so many arrivals complete.
pub(in crate::gpu) fn init<'c>(ir: &Ir<'c>, barrier: PointerValue<'c>, arrivals: u64) {
    let arrivals = ir.context.i32_type().const_int(arrivals, false);
    ir.intrinsic("llvm.nvvm.mbarrier.init.shared", &[], &[barrier.into(), arrivals.into()]);
}

/// Shows barriers that were prepared to asynchronous copies.
pub(in crate::gpu) fn fence_init(ir: &Ir<'_>) {
    ir.intrinsic("llvm.nvvm.fence.mbarrier_init.release.cluster", &[], &[]);
}

/// Arrives once.
pub(in crate::gpu) fn arrive<'c>(ir: &Ir<'c>, barrier: PointerValue<'c>) {
    let one = ir.context.i32_type().const_int(1, false);
    ir.intrinsic("llvm.nvvm.mbarrier.arrive.scope.cta.space.cta", &[], &[barrier.into(), one.into()]);
}

/// Arrives once at the barrier at the same place in a block of the cluster, by its rank, an i32. It says that products
/// have read what they read, which they have once they were waited for; no other memory is ordered across blocks, for
/// which a thread would wait for all its stores to global memory, too.
pub(in crate::gpu) fn arrive_in<'c>(ir: &Ir<'c>, barrier: PointerValue<'c>, rank: IntValue<'c>) {
    let there = cluster::counterpart(ir, barrier, rank);
    let one = ir.context.i32_type().const_int(1, false);
    ir.intrinsic("llvm.nvvm.mbarrier.arrive.scope.cta.space.cluster", &[], &[there.into(), one.into()]);
}

/// Arrives once, and says that so many bytes will come.
pub(in crate::gpu) fn arrive_expecting<'c>(ir: &Ir<'c>, barrier: PointerValue<'c>, bytes: u64) {
    let bytes = ir.context.i32_type().const_int(bytes, false);
    let name = "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta";
    ir.intrinsic(name, &[], &[barrier.into(), bytes.into()]);
}

/// Waits until a phase of this parity is complete; that before the first has parity 1.
pub(in crate::gpu) fn wait<'c>(ir: &Ir<'c>, barrier: PointerValue<'c>, parity: IntValue<'c>) {
    ir.while_loop(ir.bool(true), &[], |_| {
        let name = "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta";
        let complete = ir.intrinsic(name, &[], &[barrier.into(), parity.into()]);
        let complete = complete.expect("a test has a result").into_int_value();
        (ir.xor(complete, ir.bool(true)), Vec::new())
    });
}
