//! Blocks of memory that are kept for the next allocation of their size, by classes of sizes.

use std::collections::{BTreeMap, VecDeque};

/// How many classes of sizes there are between a power of two and the next: at most an eighth of a block is unused.
const CLASSES: usize = 8;

/// The size of the class that a size is of: as large or a little larger, and a multiple of `least`, a power of two.
pub(super) fn class_of(bytes: usize, least: usize) -> usize {
    let bytes = bytes.max(least);
    let step =
        ((bytes.ilog2() as usize).saturating_sub(CLASSES.ilog2() as usize)).min(usize::BITS as usize - 1);
    // A size near the end of the address space stays what it is: nobody has it.
    bytes.checked_next_multiple_of((1 << step).max(least)).unwrap_or(bytes)
}

/// Blocks by how large they are.
pub(super) struct Shelf<B> {
    /// By size, the one that was put here last at the end, each with when that was, on a clock of puts.
    kept: BTreeMap<usize, VecDeque<(u64, B)>>,
    clock: u64,
    bytes: u64,
}

impl<B> Default for Shelf<B> {
    fn default() -> Shelf<B> {
        Shelf { kept: BTreeMap::new(), clock: 0, bytes: 0 }
    }
}

impl<B> Shelf<B> {
    /// Bytes of all blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts a block here.
    pub(super) fn put(&mut self, bytes: usize, block: B) {
        self.clock += 1;
        self.bytes += bytes as u64;
        self.kept.entry(bytes).or_default().push_back((self.clock, block));
    }

    /// Takes the block of a size that was put here last.
    pub(super) fn take_last(&mut self, bytes: usize) -> Option<B> {
        let (_, block) = self.kept.get_mut(&bytes)?.pop_back()?;
        self.bytes -= bytes as u64;
        Some(block)
    }

    /// Takes the block of a size that was put here first.
    pub(super) fn take_first(&mut self, bytes: usize) -> Option<B> {
        let (_, block) = self.kept.get_mut(&bytes)?.pop_front()?;
        self.bytes -= bytes as u64;
        Some(block)
    }

    /// The block of a size that was put here first, and how many of its size there are.
    pub(super) fn first(&self, bytes: usize) -> Option<(&B, usize)> {
        let kept = self.kept.get(&bytes)?;
        Some((&kept.front()?.1, kept.len()))
    }

    /// Takes the block that was put here first, of whatever size.
    pub(super) fn take_oldest(&mut self) -> Option<B> {
        let times = self.kept.iter().filter_map(|(&bytes, kept)| Some((kept.front()?.0, bytes)));
        let (_, bytes) = times.min()?;
        self.take_first(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_waste_an_eighth_at_most() {
        let class = |bytes| class_of(bytes, 256);
        assert_eq!([0, 1, 256, 257, 512].map(class), [256, 256, 256, 512, 512]);
        for bytes in (2048..1 << 20).step_by(1009) {
            let of = class(bytes);
            assert!(of >= bytes && of - bytes <= bytes / CLASSES, "{bytes}: {of}");
            assert_eq!(class(of), of);
        }
        assert_eq!(class(usize::MAX), usize::MAX);
    }

    #[test]
    fn blocks_leave_in_the_order_that_is_asked_for() {
        let mut shelf = Shelf::default();
        let blocks = [(8, 'a'), (4, 'b'), (8, 'c'), (8, 'd'), (4, 'e')];
        blocks.into_iter().for_each(|(bytes, block)| shelf.put(bytes, block));
        assert_eq!((shelf.bytes(), shelf.first(8), shelf.first(2)), (32, Some((&'a', 3)), None));
        assert_eq!(
            (shelf.take_last(8), shelf.take_first(4), shelf.take_last(2)),
            (Some('d'), Some('b'), None)
        );
        let rest: Vec<char> = std::iter::from_fn(|| shelf.take_oldest()).collect();
        assert_eq!((rest, shelf.bytes()), (vec!['a', 'c', 'e'], 0));
    }
}
