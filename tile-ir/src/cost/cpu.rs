//! The time of a launch on the host processor.
//!
//! A thread runs a block after the other. It packs the tiles of a product in scratch memory, where blocks of registers
//! go through them, so that a product costs its multiply-adds, the packing (of a left factor once for all blocks of a
//! row, of a right one once for all rows of a thread), what is packed of both once more from where it is kept, and reading
//! and writing its sums once per multiplication; everything else is vectors of arithmetic over tiles, of which what L1
//! doesn't hold is gone through once more. Scratch memory beyond a core's L2 slows packing down, and reading what is kept. A
//! right factor of which few rows read each element once isn't packed.
//! Threads take blocks in chunks, so that few blocks leave threads without work, and a single one needs no other thread.
//! The constants are fitted to what `cargo xtask bench choices` measures, that of packing to a profile of products at
//! 1024³.

use super::{Limit, Prediction, operations, width};
use crate::chunks::Chunks;
use crate::counts::{Operation, ProductShape, Totals};
use crate::cpu::{KEPT_LEFT_BYTES, KEPT_RIGHT_BYTES, turns_at_once};

/// Instructions per clock on vectors.
const VECTORS: f64 = 2.0;

/// Clocks for a vector of special functions, of f32.
const SPECIAL: f64 = 16.0;

/// Bytes a clock that a thread moves between tensors or tiles and its caches.
const COPIED: f64 = 32.0;

/// Bytes of a line of the caches, which is what moves.
const LINE: u64 = 64;

/// Bytes a clock of a product's factors that a thread packs.
const PACKED: f64 = 10.0;

/// Bytes of a packed element, of most factors.
const PACKED_ELEMENT: u64 = 4;

/// Times as long that what the second cache doesn't hold takes.
const BEYOND: f64 = 3.0;

/// The part of the second cache that a multiplication has for itself: what is kept and what comes from memory goes through
/// the rest.
const OWN: f64 = 0.75;

/// By how many times that part a multiplication may want more, up to which each byte more counts.
const MOST_LOST: f64 = 2.0;

/// The same of what is read in the order in which it lies, so that the processor foresees it.
const BEYOND_IN_ORDER: f64 = 1.5;

/// Fewer rows than every register block has.
const FEW_ROWS: u64 = 4;

/// Clocks that a block costs besides its work.
const BLOCK: f64 = 50.0;

/// Clocks that a product costs besides its multiply-adds: its loops.
const PRODUCT: f64 = 100.0;

/// Seconds until other threads take part in a launch.
const OTHER_THREADS: f64 = 1e-6;

/// The host processor's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuMachine {
    /// Threads that run blocks.
    pub threads: u64,
    /// Elements of f32 in a vector.
    pub lanes: u64,
    /// Clocks per second.
    pub clock: f64,
    /// Bytes of a core's first cache.
    pub l1_bytes: u64,
    /// Bytes of a core's second cache.
    pub l2_bytes: u64,
    /// Bytes of memory per second, of all threads.
    pub memory: f64,
}

impl Default for CpuMachine {
    /// A core of a server with AVX2: 3 GHz, 32 KiB of L1, 1 MiB of L2.
    fn default() -> CpuMachine {
        CpuMachine { threads: 1, lanes: 8, clock: 3e9, l1_bytes: 1 << 15, l2_bytes: 1 << 20, memory: 12e9 }
    }
}

impl CpuMachine {
    /// Clocks for the multiply-adds of a product, of which a block does so many, and for reading its factors, of which the
    /// right one has so many bytes in a row of blocks, and reading and writing its sums.
    fn product(&self, shape: &ProductShape, of_block: u64, of_row: u64) -> [f64; 2] {
        let lanes = (self.lanes as f64 / width(shape.factor, 0.5)).max(1.0);
        // The last vector of a row is masked, and takes as long as another.
        let columns = (shape.n as f64 / lanes).ceil();
        // Fewer than four rows leave the multiply-adds waiting for each other.
        let rows = (shape.m / FEW_ROWS * FEW_ROWS) as f64 + 2.0 * (shape.m % FEW_ROWS) as f64;
        let multiplied = shape.batch as f64 * rows * columns * shape.k as f64 / VECTORS;
        let turns = turns_at_once([shape.m, shape.n, shape.k], PACKED_ELEMENT);
        let sums = 2.0 * 4.0 * (shape.batch * shape.m * shape.n) as f64 / turns as f64;
        let left = PACKED_ELEMENT * shape.batch * shape.m * shape.k;
        let kept = left.saturating_mul(of_block).min(KEPT_LEFT_BYTES);
        let left = left as f64 * if kept + wanted(shape) <= self.l2_bytes { 1.0 } else { BEYOND };
        // Each row of blocks goes through it again, but for few rows of a block from its tensor, once.
        let is_packed = shape.m >= FEW_ROWS;
        let right = if is_packed { PACKED_ELEMENT * shape.batch * shape.n * shape.k } else { 0 };
        let right = right as f64 * if of_row <= self.l2_bytes / 2 { 1.0 } else { BEYOND_IN_ORDER };
        [multiplied + PRODUCT, (sums * self.slower(shape) + left + right) / COPIED]
    }

    /// Bytes a clock at which factors are packed, or read where they are.
    fn speed(&self, shape: &ProductShape) -> f64 {
        match shape.m {
            ..FEW_ROWS => COPIED,
            _ => PACKED / ((1.0 + self.slower(shape)) / 2.0),
        }
    }

    /// Times as long that a multiplication takes to read and write what would be in a core's second cache if all that it
    /// wants had room.
    fn slower(&self, shape: &ProductShape) -> f64 {
        let lost = (wanted(shape) as f64 / (OWN * self.l2_bytes as f64) - 1.0).clamp(0.0, MOST_LOST);
        1.0 + lost * (BEYOND - 1.0)
    }

    pub(super) fn predict(&self, totals: &Totals) -> Prediction {
        let (mut arithmetic, mut special, mut moved) = (0.0, 0.0, 0.0);
        let mut speed = COPIED;
        let of_row = totals.of_row(LINE, totals.tiles);
        for (shape, &count) in &totals.products {
            let [multiplied, sums] = self.product(shape, count / totals.tiles.max(1), of_row);
            arithmetic += multiplied * count as f64;
            moved += sums * count as f64;
            speed = speed.min(self.speed(shape));
        }
        let turns = totals.tiles.saturating_add(totals.loading_turns);
        // What half of the first cache doesn't hold of a tile, beside what is made of it, comes from the second one again,
        // after a reduction, say.
        let blocks = totals.tiles.max(1);
        let packed = totals.touched_anew(LINE, |bytes, row| packed_part(self.threads, blocks, bytes, row));
        let whole = totals.touched(LINE);
        let held = turns.saturating_mul(self.l1_bytes / 2) as f64 / whole.max(1) as f64;
        let goes_again = totals.products.is_empty() && !totals.is_elementwise;
        let again = if goes_again { (1.0 - held).max(0.0) } else { 0.0 };
        moved += packed as f64 * (1.0 + again) / speed;
        for (&(operation, dtype), &count) in &totals.operations {
            let vectors = count as f64 * width(dtype, 0.5) / self.lanes as f64;
            match operation {
                Operation::Special => special += vectors * SPECIAL,
                _ => arithmetic += vectors / VECTORS,
            }
        }
        let cost_of_blocks = BLOCK * blocks as f64;
        let work = [
            (Limit::Arithmetic, arithmetic),
            (Limit::Special, special),
            (Limit::Cache, moved),
            (Limit::Blocks, cost_of_blocks),
        ];
        let all: f64 = work.iter().map(|(_, clocks)| clocks).sum();
        let busiest = work.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are kinds of work").0;

        let most = Chunks::new(blocks as usize, self.threads as usize).most();
        let shared = if blocks > 1 && self.threads > 1 { OTHER_THREADS } else { 0.0 };
        let on_chip = all / blocks as f64 * most as f64 / self.clock + shared;
        // What the caches of all threads hold needn't come from memory each time.
        let held = self.l2_bytes * self.threads;
        let by_memory = totals.compulsory_lines(LINE).saturating_sub(held) as f64 / self.memory;
        let (seconds, limit) =
            if by_memory > on_chip { (by_memory, Limit::Memory) } else { (on_chip, busiest) };
        let waves = blocks as f64 / self.threads as f64;
        let operations = operations(totals);
        Prediction { seconds, limit, on_chip, operations, at_once: self.threads, waves }
    }
}

/// Bytes of the second cache that a multiplication wants: for what is packed of its factors, as much that is packed next, and
/// its sums.
fn wanted(shape: &ProductShape) -> u64 {
    let turns = turns_at_once([shape.m, shape.n, shape.k], PACKED_ELEMENT);
    let columns = if shape.m < FEW_ROWS { 0 } else { shape.n };
    let packed = (shape.m + columns) * shape.k * turns * PACKED_ELEMENT;
    shape.batch * (2 * packed + 4 * shape.m * shape.n)
}

/// The part of a product's right factor, of so many bytes in all blocks, so many of which are a row, that threads pack: each
/// keeps what the first row of its first chunk has packed, if that has more than one, and as far as there is room.
fn packed_part(threads: u64, blocks: u64, bytes: u64, row: u64) -> f64 {
    let chunk = if threads == 1 { blocks } else { blocks.div_ceil(2 * threads) };
    if chunk <= row {
        return 1.0;
    }
    let of_row = bytes as f64 * row as f64 / blocks as f64;
    let kept = (KEPT_RIGHT_BYTES as f64 / of_row.max(1.0)).min(1.0);
    1.0 - kept * (1.0 - (threads * row) as f64 / blocks as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_pack_what_a_row_reads_once() {
        let part = |threads, bytes| packed_part(threads, 32, bytes, 4);
        assert_eq!(part(1, 1 << 20), 4.0 / 32.0);
        assert_eq!(part(2, 1 << 20), 8.0 / 32.0);
        assert_eq!(part(4, 1 << 20), 1.0, "the longest chunk is a row");
        // Of 32 MiB that a row reads half are kept.
        assert_eq!(part(1, 8 * (32 << 20)), 1.0 - 0.5 * (1.0 - 4.0 / 32.0));
    }
}
