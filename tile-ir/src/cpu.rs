//! How the CPU target goes through products of tiles: what its code and the cost model both go by.

/// Elements along K that one multiplication of several turns of a loop is to have: its sums are read and written once per
/// so many multiply-adds of each.
const DEPTH: u64 = 256;

/// Bytes that the packed factors of a multiplication are to take at most. The second cache, of 1 MiB or more, has the
/// sums as well, and the factors that come next.
const PACKED_BYTES: u64 = 1 << 18;

/// How many turns of a loop that does nothing but add products to a tile are multiplied at once: `m × k` by `k × n` each,
/// in elements of so many bytes as they are packed.
///
/// ```
/// assert_eq!(tile_ir::cpu::turns_at_once([128, 128, 64], 4), 4);
/// assert_eq!(tile_ir::cpu::turns_at_once([256, 256, 64], 4), 2);
/// assert_eq!(tile_ir::cpu::turns_at_once([256, 256, 256], 4), 1);
/// ```
pub fn turns_at_once([m, n, k]: [u64; 3], element_bytes: u64) -> u64 {
    let depth = DEPTH.min(PACKED_BYTES / (element_bytes * (m + n)).max(1));
    (depth / k.max(1)).max(1)
}
