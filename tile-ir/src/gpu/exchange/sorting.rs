//! How threads sort the lines of a tile: what an element's key is made of, and which thread has which keys of a line.
//!
//! A **key** is an integer that has the order of elements above and the element's place on its line below: no two are
//! equal, so that any way to sort them is stable. A line has keys beyond all up to a power of two, and each of its
//! threads has equally many. Invariants: `keys`, `threads` and `at_once` are powers of two; `keys · threads` are the
//! keys of a line, and `threads · at_once` the threads of the block.

use crate::dtype::DType;
use crate::gpu::Threads;

/// Registers for the keys of a thread where lines are short enough: with more of them fewer comparisons need another
/// thread's key, and with these code stays short and registers are left for other blocks.
const USUAL_WORDS: u64 = 16;

/// Instructions that read an element and make its key, about.
const MADE: u64 = 8;

/// What it costs to wait for other warps, in instructions, about.
const WAITED: u64 = 32;

/// Shared memory through which keys go to other warps, in bytes, if that is a key of every thread: what doesn't fit goes
/// later.
const MOST_EXCHANGED: u64 = 8 * 1024;

/// How the threads of a block sort the lines of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sorting {
    /// Elements of a line.
    pub extent: u64,
    /// How many of them are kept.
    pub kept: u64,
    /// Lines of the tile.
    pub lines: u64,
    /// Bits of a key: 32, 64 or 128.
    pub key_bits: u32,
    /// Bits of a place on a line.
    pub place_bits: u32,
    /// Keys that a thread has of a line.
    pub keys: u64,
    /// Threads that have keys of a line.
    pub threads: u64,
    /// Lines that the block sorts at the same time.
    pub at_once: u64,
    block: Threads,
}

/// Lines that are sorted.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Lines {
    /// How many.
    pub(in crate::gpu) lines: u64,
    /// Elements of each.
    pub(in crate::gpu) extent: u64,
    /// How many of them are kept.
    pub(in crate::gpu) kept: u64,
}

/// How many of the upper bits of an order tell elements of a format apart. Narrow floats have that of the f32 that they
/// are computed in, which has more bits of an exponent, and zeros behind their mantissa.
fn order_bits(dtype: DType) -> u32 {
    let f32_format = DType::F32.float_format().expect("a float");
    match dtype.float_format() {
        Some(format) if dtype.is_narrow_float() => 1 + f32_format.exponent_bits + format.mantissa_bits,
        _ => dtype.bits(),
    }
}

impl Sorting {
    /// How lines of a format are sorted.
    pub(in crate::gpu) fn of(sorted: Lines, dtype: DType, block: Threads) -> Sorting {
        let Lines { lines, extent, kept } = sorted;
        let padded = extent.next_power_of_two();
        let place_bits = padded.ilog2();
        let key_bits = match order_bits(dtype) {
            order if order + place_bits <= 32 => 32,
            order if order <= 32 => 64,
            _ => 128,
        };
        let usual = USUAL_WORDS * 32 / u64::from(key_bits);
        let least = (padded / block.count()).max(1);
        let shared_out = |keys: u64| {
            let threads = padded / keys;
            let at_once = block.count() / threads;
            Sorting { extent, kept, lines, key_bits, place_bits, keys, threads, at_once, block }
        };
        let most = usual.min(padded).max(least);
        let ways = (least.ilog2()..=most.ilog2()).map(|bits| shared_out(1 << bits));
        ways.min_by_key(Sorting::instructions).expect("a thread has a key at least")
    }

    /// Instructions of all warps, about: those of a network as `tile-codegen` makes it.
    fn instructions(&self) -> u64 {
        let (words, keys) = (u64::from(self.key_bits / 32), self.keys);
        // Two in order: the lesser and the greater, or comparisons and selections word by word. One of another thread's: it
        // comes, is compared, and selected.
        let (ordered, from_other) = (if words == 1 { 2 } else { 3 * words }, 3 * words);
        let depth = u64::from(keys.ilog2());
        let sorted = (depth * depth + 4 - depth) * keys / 4 - 1;
        let merged = keys / 2 * depth * ordered;
        // A merge of more threads takes a step more, unless both halves' threads keep the lesser keys.
        let steps = |merges: u64| if self.keeps_few() { merges } else { merges * (merges + 1) / 2 };
        let merges = u64::from(self.threads.ilog2());
        let crossing = u64::from((self.threads / self.block.lanes).max(1).ilog2());
        let (exchanges, through_memory) = (steps(merges), steps(crossing));
        let of_thread = MADE * keys
            + sorted * ordered
            + exchanges * keys * from_other
            + merges * merged
            + through_memory * (2 * keys * words + 2 * WAITED);
        of_thread * (self.lines * self.threads).div_ceil(self.block.lanes)
    }

    /// Whether each thread of a line can have all that is kept of it.
    pub fn keeps_few(&self) -> bool {
        self.kept <= self.keys
    }

    /// Whether a line's threads are in several warps.
    pub fn crosses_warps(&self) -> bool {
        self.threads > self.block.lanes
    }

    /// Lanes of a warp.
    pub fn lanes(&self) -> u64 {
        self.block.lanes
    }

    /// Words of shared memory that a key takes, and their format.
    pub fn words(&self) -> (u64, DType) {
        if self.key_bits == 32 { (1, DType::U32) } else { (u64::from(self.key_bits) / 64, DType::U64) }
    }

    /// Keys that every thread of the block gives to another warp at a time; 0 where none does.
    pub fn exchanged(&self) -> u64 {
        if !self.crosses_warps() {
            return 0;
        }
        let bytes = self.block.count() * u64::from(self.key_bits) / 8;
        (MOST_EXCHANGED / bytes).max(1).min(self.keys)
    }

    /// Words of shared memory for [`Self::exchanged`].
    pub(in crate::gpu) fn exchanged_words(&self) -> u64 {
        self.exchanged() * self.words().0 * self.block.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Threads = Threads { lanes: 32, warps: 4, blocks: 1 };

    #[test]
    fn keys_have_the_bits_that_an_order_and_a_place_need() {
        let bits =
            |dtype, extent| Sorting::of(Lines { lines: 1, extent, kept: extent }, dtype, BLOCK).key_bits;
        assert_eq!([DType::BF16, DType::U16, DType::I8].map(|dtype| bits(dtype, 1 << 16)), [32; 3]);
        assert_eq!([8192, 8193].map(|extent| bits(DType::F16, extent)), [32, 64]);
        assert_eq!([1, 2, 4096].map(|extent| bits(DType::F32, extent)), [32, 64, 64]);
        assert_eq!([DType::F64, DType::U64].map(|dtype| bits(dtype, 3)), [128; 2]);
    }

    #[test]
    fn threads_have_as_many_keys_as_save_instructions() {
        let share = |lines, extent, kept| {
            let sorting = Sorting::of(Lines { lines, extent, kept }, DType::F32, BLOCK);
            assert_eq!(sorting.keys * sorting.threads, extent.next_power_of_two());
            assert_eq!(sorting.threads * sorting.at_once, BLOCK.count());
            (sorting.keys, sorting.threads, sorting.exchanged())
        };
        assert_eq!(share(1, 20, 20), (1, 32, 0));
        assert_eq!(share(1, 64, 64), (2, 32, 0));
        assert_eq!(share(16, 64, 64), (8, 8, 0));
        assert_eq!(share(1, 64, 2), (2, 32, 0));
        assert_eq!(share(16, 64, 8), (8, 8, 0));
        assert_eq!(share(128, 4, 4), (4, 1, 0));
        assert_eq!(share(1, 1000, 1000), (8, 128, 8));
        assert_eq!(share(1, 4096, 3), (32, 128, 8));
    }
}
