//! Blocks of a cluster: how they wait for each other, and how those that share a tile join what each has of it
//! (`tile_ir::gpu::Threads::blocks`).
//!
//! A block writes its partial results to the shared memory of every block of its cluster (PTX ISA, "mapa"). Where these are
//! sent (`tile_ir::gpu::Scheduled::arrival`; PTX ISA, "st.async"), a block waits until an mbarrier of its own has counted the
//! bytes of all; elsewhere until all have come to the cluster's barrier. None may write to another's memory before that one
//! has begun and its mbarriers are made: they meet once before the first does, or before they come to the barrier again for
//! another reason.

use super::mbarrier;
use crate::emit::{Ir, Value};
use crate::gpu::coordinates::i32_const;
use crate::gpu::region::Emitter;
use crate::gpu::targets::declared;
use crate::gpu::targets::dialect::Entry;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::gpu::{Scheduled, Threads};
use tile_ir::{DType, Op, OpId};

/// Arrives at the barrier of the cluster, without ordering memory.
pub(in crate::gpu) fn begin(ir: &Ir<'_>) {
    ir.intrinsic("llvm.nvvm.barrier.cluster.arrive.relaxed", &[], &[]);
}

/// Waits until every thread of the cluster has come to its barrier.
pub(in crate::gpu) fn wait(ir: &Ir<'_>) {
    ir.intrinsic("llvm.nvvm.barrier.cluster.wait", &[], &[]);
}

/// Waits until every thread of the cluster is here, and what each did before is seen by all.
pub(in crate::gpu) fn meet(ir: &Ir<'_>) {
    ir.intrinsic("llvm.nvvm.barrier.cluster.arrive", &[], &[]);
    wait(ir);
}

/// The running block's place in its cluster, an i32.
pub(in crate::gpu) fn rank<'c>(ir: &Ir<'c>) -> IntValue<'c> {
    register(ir, "cluster.ctarank")
}

/// The number of the running block's cluster, and how many there are, i64.
pub(in crate::gpu) fn number<'c>(ir: &Ir<'c>) -> [IntValue<'c>; 2] {
    ["clusterid.x", "nclusterid.x"].map(|name| ir.resize(register(ir, name), 64, false))
}

/// The place in the shared memory of the block of a rank that a pointer leads to in the running one's.
pub(in crate::gpu) fn counterpart<'c>(
    ir: &Ir<'c>,
    place: PointerValue<'c>,
    rank: IntValue<'c>,
) -> PointerValue<'c> {
    let there = ir.intrinsic("llvm.nvvm.mapa.shared.cluster", &[], &[place.into(), rank.into()]);
    there.expect("a place in shared memory").into_pointer_value()
}

fn register<'c>(ir: &Ir<'c>, name: &str) -> IntValue<'c> {
    let number = ir.intrinsic(&format!("llvm.nvvm.read.ptx.sreg.{name}"), &[], &[]);
    number.expect("a register has a value").into_int_value()
}

/// What a kernel starts with where blocks share tiles: threads are numbered through those that hold a tile, and what counts
/// blocks counts clusters.
pub(in crate::gpu) fn entry<'c>(ir: &Ir<'c>, entry: Entry<'c>, threads: Threads) -> Entry<'c> {
    if threads.blocks == 1 {
        return entry;
    }
    let first = ir.shl(rank(ir), i32_const(ir, threads.of_block().ilog2().into()));
    let [block, blocks] = number(ir);
    Entry { thread: ir.or(first, entry.thread), block, blocks: Some(blocks), ..entry }
}

/// The op before which a block waits until all blocks of its cluster have begun, if one writes to another's memory: the first of
/// a kernel's body in which one does, or in which they wait for each other, since who has come to the cluster's barrier waits
/// there before coming again (PTX ISA, "barrier.cluster").
pub(in crate::gpu) fn first_meeting(scheduled: &Scheduled) -> Option<OpId> {
    let joins_blocks = |op: OpId| {
        let data = scheduled.op(op);
        matches!(data.op, Op::Reduce { .. }) && !scheduled.reduction(data).blocks.is_empty()
    };
    let meets = |op: OpId| joins_blocks(op) || scheduled.waits_before(op);
    let meets_within = |op: OpId| {
        let regions = scheduled.op(op).regions.iter();
        regions.flat_map(|&region| scheduled.walk_in(region)).any(meets)
    };
    if !scheduled.walk().into_iter().any(joins_blocks) {
        return None;
    }
    scheduled.region(scheduled.body()).ops.iter().copied().find(|&op| meets(op) || meets_within(op))
}

/// The declaration that sends a word of so many bits (PTX ISA, "st.async").
pub(in crate::gpu) fn send_name(bits: usize) -> String {
    format!("{SEND}{bits}")
}

/// What the names of these declarations begin with.
pub(in crate::gpu) const SEND: &str = "tile.send.b";

impl<'c> Emitter<'_, 'c> {
    /// Arrives at the cluster's barrier, by which the other blocks learn that this one has begun. Before that it prepares the
    /// mbarriers that count what the block is sent: each has one phase, of one arrival and the bytes.
    pub(in crate::gpu) fn begin_in_cluster(&self) {
        let ir = self.ir;
        let sent: Vec<OpId> =
            self.scheduled.walk().into_iter().filter(|&op| self.scheduled.arrival(op).is_some()).collect();
        if !sent.is_empty() {
            let within = self.i32(self.scheduled.threads().of_block() - 1);
            let first = ir.icmp(IntPredicate::EQ, ir.and(self.running_thread(), within), self.i32(0));
            ir.if_then(first, || {
                for &op in &sent {
                    let reduction = self.scheduled.reduction(self.scheduled.op(op));
                    let words = reduction.exchanged_by_blocks().expect("what is sent is exchanged");
                    let arrival = self.arrival_of(op).expect("it is sent");
                    mbarrier::init(ir, arrival, 1);
                    mbarrier::arrive_expecting(ir, arrival, words * reduction.dtype.bytes() as u64);
                }
                mbarrier::fence_init(ir);
            });
        }
        begin(ir);
    }

    /// The mbarrier of a reduction that is sent.
    pub(in crate::gpu) fn arrival_of(&self, op: OpId) -> Option<PointerValue<'c>> {
        self.scheduled.arrival(op).map(|buffer| self.shared_pointer(buffer, self.i32(0)))
    }

    /// Writes a value to the place of a pointer in the shared memory of every block of the cluster; sends it where an mbarrier
    /// counts what arrives. `speakers` are the bits of a lane's number that name the one block that it writes to; with 0 it
    /// writes to all.
    pub(in crate::gpu) fn write_in_cluster(
        &self,
        place: PointerValue<'c>,
        arrival: Option<PointerValue<'c>>,
        value: Value<'c>,
        dtype: DType,
        speakers: u64,
    ) {
        let (ir, bits) = (self.ir, 8 * dtype.bytes());
        let write = |rank: IntValue<'c>| {
            let there = counterpart(ir, place, rank);
            match arrival {
                Some(arrival) => {
                    let word = ir.bitcast(dtype, if bits == 32 { DType::U32 } else { DType::U64 }, value);
                    let operands = [there.into(), word, counterpart(ir, arrival, rank).into()];
                    declared::call_without_result(ir, &send_name(bits), &operands, &[("nounwind", 0)]);
                }
                None => ir.store(there, ir.value_to_storage(value, dtype)),
            }
        };
        match speakers {
            0 => (0..u64::from(self.scheduled.cluster())).for_each(|rank| write(self.i32(rank))),
            bits => write(ir.and(self.running_thread(), self.i32(bits))),
        }
    }
}
