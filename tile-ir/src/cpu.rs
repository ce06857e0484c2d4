//! How the CPU target goes through products of tiles, and reads elements that lie apart: what its code goes by as do the cost
//! model or the passes for it; and what it makes of an instance before ([`widened_late`]).

mod late;

pub use late::widened_late;

/// Elements of a tensor that lie so far apart at most are picked out of vectors that are loaded whole: further ones would be
/// loaded faster each by itself.
pub const MOST_APART: i64 = 4;

/// Elements along K that one multiplication of several turns of a loop is to have: its sums are read and written once per
/// so many multiply-adds of each.
const DEPTH: u64 = 256;

/// Bytes that the packed factors of a multiplication are to take at most. The second cache, of 1 MiB or more, has the
/// sums as well, and the factors that come next.
const PACKED_BYTES: u64 = 1 << 18;

/// Bytes of a thread's scratch memory for what is kept of a product's left factor: less than its share of the last cache.
pub const KEPT_LEFT_BYTES: u64 = 2 << 20;

/// Bytes of a thread's scratch memory for what is kept of a product's right factor. It comes back from further away than the
/// left one, but in the order in which it is read.
pub const KEPT_RIGHT_BYTES: u64 = 16 << 20;

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

/// Bytes along K that one multiplication of tiles is to have: so many steps of a register block that its sums, which cost as
/// much as many of them, go through memory once for most products.
const BYTES_OF_TILES: u64 = 2 << 10;

/// Bytes that the packed right factor of a multiplication of tiles is to take at most, which stays in the second cache, of
/// 2 MiB on processors that have them.
const BYTES_OF_PANELS: u64 = 1 << 20;

/// [`turns_at_once`] where tiles are multiplied.
///
/// ```
/// assert_eq!(tile_ir::cpu::turns_of_tiles([256, 256, 256], 2), 4);
/// assert_eq!(tile_ir::cpu::turns_of_tiles([128, 1024, 64], 2), 8);
/// ```
pub fn turns_of_tiles([_, n, k]: [u64; 3], element_bytes: u64) -> u64 {
    let depth = (BYTES_OF_TILES / element_bytes).min(BYTES_OF_PANELS / (element_bytes * n).max(1));
    (depth / k.max(1)).max(1)
}
