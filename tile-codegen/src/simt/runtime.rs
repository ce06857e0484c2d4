//! The functions that rewritten code calls, and how numbers are packed into their arguments.

use super::block::{self, current};
use super::memory::{AccessKind, Space, Touch};
use super::order::{Of, Ordering, Scope};

/// Judges an access: its address, its kind, its number.
pub(super) const ACCESS: &str = "tile_simt_access";
/// A fence of an order.
pub(super) const FENCE: &str = "tile_simt_fence";
/// The address of shared memory.
pub(super) const SHARED: &str = "tile_simt_shared";
/// What a loop carries into a turn: the value's number, its address, its bytes.
pub(super) const CARRIED: &str = "tile_simt_carried";
/// Carries out an instruction: its number, the buffers of its operands and results.
pub(super) const EXECUTE: &str = "tile_simt_execute";

/// The functions' names and addresses.
pub(super) fn functions() -> [(&'static str, usize); 5] {
    [
        (ACCESS, tile_simt_access as *const () as usize),
        (FENCE, tile_simt_fence as *const () as usize),
        (SHARED, tile_simt_shared as *const () as usize),
        (CARRIED, tile_simt_carried as *const () as usize),
        (EXECUTE, tile_simt_execute as *const () as usize),
    ]
}

const SCOPES: [Scope; 6] =
    [Scope::Thread, Scope::Warp, Scope::Block, Scope::Cluster, Scope::Device, Scope::System];
const ORDERED: [Of; 2] = [Of::All, Of::Shared];
const SPACES: [Space; 4] = [Space::Global, Space::Shared, Space::Cluster, Space::Generic];

fn position<T: PartialEq>(list: &[T], item: &T) -> u64 {
    list.iter().position(|other| other == item).expect("the list is complete") as u64
}

/// An order as a word of six bits.
pub(super) fn pack_order(order: Ordering) -> u64 {
    let flags = u64::from(order.releases) << 1 | u64::from(order.acquires);
    position(&SCOPES, &order.scope) << 3 | position(&ORDERED, &order.of) << 2 | flags
}

fn unpack_order(word: u64) -> Ordering {
    let (scope, of) = (SCOPES[(word >> 3 & 7) as usize], ORDERED[(word >> 2 & 1) as usize]);
    Ordering { acquires: word & 1 == 1, releases: word >> 1 & 1 == 1, scope, of }
}

/// An access but for its address, as one word that instrumentation writes into the code.
pub(super) fn pack_access(kind: AccessKind) -> u64 {
    let order = kind.atomic.map_or(0, |order| 1 | pack_order(order) << 1);
    let flags = u64::from(kind.reads) | u64::from(kind.writes) << 1 | position(&SPACES, &kind.space) << 2;
    kind.bytes << 32 | u64::from(kind.alignment.trailing_zeros()) << 16 | order << 4 | flags
}

fn unpack_access(word: u64) -> AccessKind {
    AccessKind {
        bytes: word >> 32,
        alignment: 1 << (word >> 16 & 0xff),
        space: SPACES[(word >> 2 & 3) as usize],
        reads: word & 1 == 1,
        writes: word >> 1 & 1 == 1,
        atomic: (word >> 4 & 1 == 1).then(|| unpack_order(word >> 5)),
    }
}

extern "C" fn tile_simt_access(address: u64, kind: u64, number: u64) {
    block::access(Touch { address, kind: unpack_access(kind), number: number as u32 });
}

extern "C" fn tile_simt_fence(order: u64) {
    block::fence(unpack_order(order));
}

extern "C" fn tile_simt_carried(number: u64, value: *const u8, bytes: u64) {
    // SAFETY: generated code gives a buffer of its frame, with so many bytes.
    let value = unsafe { std::slice::from_raw_parts(value, bytes as usize) };
    current(|block| block.carries(number as u32, value));
}

extern "C" fn tile_simt_shared() -> *mut u8 {
    current(|block| block.shared_address(block.running) as *mut u8)
}

extern "C" fn tile_simt_execute(number: u64, operands: *mut u8, results: *mut u8) {
    block::execute(number as u32, [operands, results]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_what_was_packed() {
        for bits in 0..256usize {
            let flag = |i: usize| bits >> i & 1 == 1;
            let order = Ordering {
                acquires: flag(0),
                releases: flag(1),
                scope: SCOPES[bits % 6],
                of: ORDERED[bits % 2],
            };
            let kind = AccessKind {
                bytes: 1 << (bits % 5),
                alignment: 1 << (bits % 8),
                space: SPACES[bits % 4],
                reads: flag(2),
                writes: flag(3),
                atomic: flag(4).then_some(order),
            };
            assert_eq!(unpack_access(pack_access(kind)), kind);
        }
    }
}
