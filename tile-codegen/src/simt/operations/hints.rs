//! Who a thread is, and instructions that change no result.

use super::is;
use crate::simt::instruction::{Operation, Then};

fn number(of: fn(&crate::simt::block::Block<'_>) -> u64) -> Option<Operation> {
    Operation::alone(move |block, call| {
        call.give_word(0, of(block));
        Ok(Then::GoOn)
    })
}

/// NVIDIA's (PTX ISA, "Special Registers", "prefetch", "griddepcontrol", "setmaxnreg").
pub(super) fn nvidia(name: &str) -> Option<Operation> {
    match name {
        "read.ptx.sreg.tid.x" => number(|block| u64::from(block.within(block.running))),
        "read.ptx.sreg.ctaid.x" => number(|block| block.block_of(block.running)),
        "read.ptx.sreg.nctaid.x" => number(|block| block.blocks),
        "read.ptx.sreg.cluster.ctarank" => number(|block| u64::from(block.rank_of(block.running))),
        "read.ptx.sreg.clusterid.x" => number(|block| block.number / u64::from(block.geometry.cluster)),
        "read.ptx.sreg.nclusterid.x" => number(|block| block.blocks / u64::from(block.geometry.cluster)),
        "read.ptx.sreg.ntid.x" => number(|block| u64::from(block.geometry.threads)),
        "read.ptx.sreg.laneid" => number(|block| u64::from(block.running % block.geometry.warp)),
        "read.ptx.sreg.tid.y" | "read.ptx.sreg.tid.z" | "read.ptx.sreg.ctaid.y" => number(|_| 0),
        "prefetch.global.L1" | "prefetch.global.L2" | "prefetch.L1" | "prefetch.L2" => Operation::nothing(),
        "griddepcontrol.wait" | "griddepcontrol.launch.dependents" => Operation::nothing(),
        // LLVM itself refuses counts that aren't legal.
        "setmaxnreg.inc.sync.aligned.u32" | "setmaxnreg.dec.sync.aligned.u32" => Operation::nothing(),
        _ if is(name, "prefetch.tensormap") => Operation::nothing(),
        _ => None,
    }
}

/// AMD's (LLVM's AMDGPU usage guide, "LLVM IR Intrinsics").
pub(super) fn amd(name: &str) -> Option<Operation> {
    match name {
        "workitem.id.x" => number(|block| u64::from(block.running)),
        "workgroup.id.x" => number(|block| block.number),
        "workitem.id.y" | "workitem.id.z" => number(|_| 0),
        "s.waitcnt"
        | "s.setprio"
        | "s.sleep"
        | "s.nop"
        | "iglp.opt"
        | "sched.barrier"
        | "sched.group.barrier" => Operation::nothing(),
        "s.wait.loadcnt" | "s.wait.storecnt" | "s.wait.dscnt" | "s.wait.kmcnt" | "s.wait.asynccnt"
        | "s.wait.tensorcnt" => Operation::nothing(),
        _ => None,
    }
}

/// The declarations that bring memory near.
pub(super) fn declared(name: &str) -> Option<Operation> {
    match name {
        "tile.prefetch.line" => Operation::alone(|block, call| {
            block.global.prefetched.push((call.word(0), None));
            Ok(Then::GoOn)
        }),
        "tile.prefetch.range" => Operation::alone(|block, call| {
            block.global.prefetched.push((call.word(0), Some(call.word(1))));
            Ok(Then::GoOn)
        }),
        _ => None,
    }
}
