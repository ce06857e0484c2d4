//! Barriers in shared memory at which threads arrive and others wait, and which also count the bytes that
//! asynchronous copies bring (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").

use crate::emit::Ir;
use inkwell::values::{IntValue, PointerValue};

/// The threads among which memory is ordered: those of a block, or of its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Block,
    Cluster,
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Scope::Block => "cta",
            Scope::Cluster => "cluster",
        }
    }
}

/// Prepares a barrier that so many arrivals complete.
pub(super) fn init<'c>(ir: &Ir<'c>, barrier: PointerValue<'c>, arrivals: u64) {
    let arrivals = ir.context.i32_type().const_int(arrivals, false);
    ir.intrinsic("llvm.nvvm.mbarrier.init.shared", &[], &[barrier.into(), arrivals.into()]);
}

/// Shows barriers that were prepared to asynchronous copies.
pub(super) fn fence_init(ir: &Ir<'_>) {
    ir.intrinsic("llvm.nvvm.fence.mbarrier_init.release.cluster", &[], &[]);
}

/// Arrives once.
pub(super) fn arrive<'c>(ir: &Ir<'c>, barrier: PointerValue<'c>) {
    let one = ir.context.i32_type().const_int(1, false);
    ir.intrinsic("llvm.nvvm.mbarrier.arrive.scope.cta.space.cta", &[], &[barrier.into(), one.into()]);
}

/// Arrives once at the barrier at the same place in a block of the cluster, by its rank, an i32.
pub(super) fn arrive_in<'c>(ir: &Ir<'c>, barrier: PointerValue<'c>, rank: IntValue<'c>) {
    let there = ir.intrinsic("llvm.nvvm.mapa.shared.cluster", &[], &[barrier.into(), rank.into()]);
    let there = there.expect("an address is mapped to one");
    let one = ir.context.i32_type().const_int(1, false);
    ir.intrinsic("llvm.nvvm.mbarrier.arrive.scope.cluster.space.cluster", &[], &[there, one.into()]);
}

/// Arrives once, and says that so many bytes will come.
pub(super) fn arrive_expecting<'c>(ir: &Ir<'c>, barrier: PointerValue<'c>, bytes: u64) {
    let bytes = ir.context.i32_type().const_int(bytes, false);
    let name = "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta";
    ir.intrinsic(name, &[], &[barrier.into(), bytes.into()]);
}

/// Waits until a phase of this parity is complete, and for what arrivals in a scope hand on; that before the first has
/// parity 1.
pub(super) fn wait<'c>(ir: &Ir<'c>, barrier: PointerValue<'c>, parity: IntValue<'c>, scope: Scope) {
    ir.while_loop(ir.bool(true), &[], |_| {
        let name = format!("llvm.nvvm.mbarrier.try.wait.parity.scope.{}.space.cta", scope.name());
        let complete = ir.intrinsic(&name, &[], &[barrier.into(), parity.into()]);
        let complete = complete.expect("a test has a result").into_int_value();
        (ir.xor(complete, ir.bool(true)), Vec::new())
    });
}
