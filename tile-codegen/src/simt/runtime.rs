//! What generated code calls in place of a GPU's instructions.
//!
//! One table, [`binding`], says what becomes of each intrinsic. What isn't in it is refused when a kernel is
//! compiled for the executor.

use super::block::{self, Touch, current};
use super::global::Ordering;
use tile_ir::Loc;

/// What becomes of an intrinsic or a statement of assembly: a call with the same operands, then the place in the
/// user's source if `place`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    /// The function, for the linker.
    pub(super) symbol: &'static str,
    /// The same, for this process.
    pub(super) address: usize,
    /// How many of the operands it takes.
    pub(super) operands: usize,
    /// Whether it takes the place.
    pub(super) place: bool,
}

/// The functions that instrumented code calls besides, by name.
pub(super) const ACCESS: &str = "tile_simt_access";
pub(super) const FENCE: &str = "tile_simt_fence";
pub(super) const SHARED: &str = "tile_simt_shared";

/// Their addresses.
pub(super) fn support() -> [(&'static str, usize); 3] {
    [
        (ACCESS, tile_simt_access as *const () as usize),
        (FENCE, tile_simt_fence as *const () as usize),
        (SHARED, tile_simt_shared as *const () as usize),
    ]
}

/// What becomes of an intrinsic, by its name, or of assembly, by its text; `None` where the executor doesn't know it.
pub(super) fn binding(instruction: &str) -> Option<Binding> {
    let number = |symbol, address| Some(Binding { symbol, address, operands: 0, place: false });
    let waits = |symbol, address, operands| Some(Binding { symbol, address, operands, place: true });
    let hints = |symbol, address, operands| Some(Binding { symbol, address, operands, place: false });
    match instruction {
        "llvm.nvvm.read.ptx.sreg.tid.x" | "llvm.amdgcn.workitem.id.x" => {
            number("tile_simt_thread", tile_simt_thread as *const () as usize)
        }
        "llvm.nvvm.read.ptx.sreg.ctaid.x" | "llvm.amdgcn.workgroup.id.x" => {
            number("tile_simt_block", tile_simt_block as *const () as usize)
        }
        "llvm.nvvm.read.ptx.sreg.nctaid.x" => {
            number("tile_simt_blocks", tile_simt_blocks as *const () as usize)
        }
        "llvm.nvvm.barrier.cta.sync.aligned.all" | "llvm.amdgcn.s.barrier" => {
            waits("tile_simt_barrier", tile_simt_barrier as *const () as usize, 0)
        }
        "llvm.amdgcn.readfirstlane.i32" => {
            waits("tile_simt_first_lane_i32", tile_simt_first_lane_i32 as *const () as usize, 1)
        }
        "llvm.amdgcn.readfirstlane.i64" => {
            waits("tile_simt_first_lane_i64", tile_simt_first_lane_i64 as *const () as usize, 1)
        }
        "llvm.nvvm.shfl.sync.bfly.i32" => waits("tile_simt_bfly", tile_simt_bfly as *const () as usize, 4),
        "llvm.amdgcn.ds.bpermute" => waits("tile_simt_bpermute", tile_simt_bpermute as *const () as usize, 2),
        "prefetch.global.L2 [$0];" => {
            hints("tile_simt_prefetch_line", tile_simt_prefetch_line as *const () as usize, 1)
        }
        "cp.async.bulk.prefetch.L2.global [$0], $1;" => {
            hints("tile_simt_prefetch_range", tile_simt_prefetch_range as *const () as usize, 2)
        }
        _ => None,
    }
}

/// A place as one word.
pub(super) fn pack_place(place: Loc) -> u64 {
    u64::from(place.line) << 32 | u64::from(place.column)
}

fn unpack_place(place: u64) -> Loc {
    Loc::new((place >> 32) as u32, place as u32)
}

/// An access but for its address, as one word that instrumentation writes into the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessKind {
    pub(super) bytes: u64,
    pub(super) alignment: u64,
    pub(super) shared: bool,
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) atomic: bool,
    pub(super) acquires: bool,
    pub(super) releases: bool,
}

impl AccessKind {
    pub(super) fn pack(self) -> u64 {
        let flags = [self.shared, self.reads, self.writes, self.atomic, self.acquires, self.releases];
        let flags = flags.iter().rev().fold(0, |word, &flag| word << 1 | u64::from(flag));
        self.bytes << 32 | u64::from(self.alignment.trailing_zeros()) << 8 | flags
    }

    fn unpack(word: u64) -> AccessKind {
        let flag = |i: u32| word >> i & 1 == 1;
        AccessKind {
            bytes: word >> 32,
            alignment: 1 << (word >> 8 & 0xff),
            shared: flag(0),
            reads: flag(1),
            writes: flag(2),
            atomic: flag(3),
            acquires: flag(4),
            releases: flag(5),
        }
    }
}

extern "C" fn tile_simt_thread() -> u32 {
    current(|block| block.running)
}

extern "C" fn tile_simt_block() -> u32 {
    current(|block| block.number as u32)
}

extern "C" fn tile_simt_blocks() -> u32 {
    current(|block| block.geometry.blocks as u32)
}

extern "C" fn tile_simt_barrier(place: u64) {
    block::barrier(unpack_place(place));
}

extern "C" fn tile_simt_first_lane_i32(value: u32, place: u64) -> u32 {
    block::first_lane(u64::from(value), unpack_place(place)) as u32
}

extern "C" fn tile_simt_first_lane_i64(value: u64, place: u64) -> u64 {
    block::first_lane(value, unpack_place(place))
}

extern "C" fn tile_simt_bfly(_mask: u32, value: u32, distance: u32, _clamp: u32, place: u64) -> u32 {
    let lane = current(|block| block.running % block.geometry.warp);
    block::exchange(u64::from(lane ^ distance) << 32 | u64::from(value), unpack_place(place)) as u32
}

extern "C" fn tile_simt_bpermute(address: u32, value: u32, place: u64) -> u32 {
    let warp = current(|block| block.geometry.warp);
    block::exchange(u64::from(address / 4 % warp) << 32 | u64::from(value), unpack_place(place)) as u32
}

extern "C" fn tile_simt_shared() -> *mut u8 {
    current(|block| block.shared_address())
}

extern "C" fn tile_simt_access(address: u64, kind: u64, place: u64) {
    let kind = AccessKind::unpack(kind);
    let order = Ordering { acquires: kind.acquires, releases: kind.releases };
    let touch = Touch {
        address,
        bytes: kind.bytes as usize,
        alignment: kind.alignment,
        reads: kind.reads,
        writes: kind.writes,
        atomic: kind.atomic.then_some(order),
        place: unpack_place(place),
    };
    block::access(touch, kind.shared);
}

extern "C" fn tile_simt_prefetch_line(address: u64) {
    current(|block| block.prefetched(address, None));
}

extern "C" fn tile_simt_prefetch_range(address: u64, bytes: u32) {
    current(|block| block.prefetched(address, Some(u64::from(bytes))));
}

extern "C" fn tile_simt_fence(acquires: u32, releases: u32) {
    block::fence(Ordering { acquires: acquires != 0, releases: releases != 0 });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_what_was_packed() {
        for bits in 0..64u64 {
            let flag = |i: u32| bits >> i & 1 == 1;
            let kind = AccessKind {
                bytes: 1 << (bits % 5),
                alignment: 1 << (bits % 8),
                shared: flag(0),
                reads: flag(1),
                writes: flag(2),
                atomic: flag(3),
                acquires: flag(4),
                releases: flag(5),
            };
            assert_eq!(AccessKind::unpack(kind.pack()), kind);
        }
        assert_eq!(unpack_place(pack_place(Loc::new(70_000, 13))), Loc::new(70_000, 13));
    }
}
