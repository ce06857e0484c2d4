//! How threads share the blocks of a launch: in chunks that become smaller, which is **factoring** (Hummel, Schonberg and
//! Flynn, "Factoring: a method for scheduling parallel loops", 1992).
//!
//! In every round each thread is meant to take one chunk, and a round's chunks are half of the blocks that are left. So most
//! blocks are in long chunks, whose blocks find in a core's caches and scratch memory what those before them brought
//! there, and at the end threads wait for each other no longer than one short chunk takes.

use std::ops::Range;

/// The least chunk is such a part of a thread's share: what is shared out in smaller pieces evens out nothing more.
const LEAST_PART: usize = 64;

/// The chunks of so many blocks for so many threads, which whoever is free takes in order.
///
/// ```
/// use tile_ir::chunks::Chunks;
/// let chunks = Chunks::new(32, 2);
/// let ranges: Vec<_> = chunks.iter().collect();
/// assert_eq!(ranges[..4], [0..8, 8..16, 16..20, 20..24]);
/// assert_eq!((chunks.count(), chunks.get(9), chunks.get(10)), (10, Some(31..32), None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    blocks: usize,
    threads: usize,
}

impl Chunks {
    /// No threads count as one.
    pub fn new(blocks: usize, threads: usize) -> Chunks {
        Chunks { blocks, threads: threads.max(1) }
    }

    /// The blocks of a chunk; `None` behind the last one.
    pub fn get(&self, chunk: usize) -> Option<Range<usize>> {
        let (first, size) = self.rounds().nth(chunk / self.threads)?;
        let first = (chunk % self.threads).saturating_mul(size).saturating_add(first);
        (first < self.blocks).then(|| first..self.blocks.min(first.saturating_add(size)))
    }

    /// All chunks, in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<usize>> {
        (0..).map_while(|chunk| self.get(chunk))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.rounds().map(|(first, size)| (self.blocks - first).div_ceil(size).min(self.threads)).sum()
    }

    /// Blocks of the thread that has most where all blocks take equally long.
    pub fn most(&self) -> usize {
        self.iter().step_by(self.threads).map(|chunk| chunk.len()).sum()
    }

    /// Of each round the first block, and the blocks of a chunk.
    fn rounds(self) -> impl Iterator<Item = (usize, usize)> {
        let least = (self.blocks / self.threads.saturating_mul(LEAST_PART)).max(1);
        let mut next = 0;
        std::iter::from_fn(move || {
            let (first, left) = (next, self.blocks.checked_sub(next).filter(|&left| left > 0)?);
            let size = left.div_ceil(self.threads.saturating_mul(2)).max(least);
            next = size.saturating_mul(self.threads).saturating_add(next);
            Some((first, size))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_every_block_once_and_become_smaller() {
        for (blocks, threads) in [(1, 1), (2, 3), (7, 2), (100, 4), (4097, 7), (1 << 20, 64)] {
            let chunks: Vec<Range<usize>> = Chunks::new(blocks, threads).iter().collect();
            assert_eq!((chunks[0].start, chunks.last().unwrap().end), (0, blocks));
            let follow =
                |pair: &[Range<usize>]| pair[0].end == pair[1].start && pair[0].len() >= pair[1].len();
            assert_eq!(chunks.len(), Chunks::new(blocks, threads).count());
            assert!(chunks.windows(2).all(follow), "{blocks} for {threads}: {chunks:?}");
        }
        assert_eq!(Chunks::new(0, 4).count(), 0);
    }

    #[test]
    fn there_are_few_chunks_and_the_last_ones_are_short() {
        for (blocks, threads) in [(1 << 20, 2), (1 << 20, 64), (100_003, 16)] {
            let chunks = Chunks::new(blocks, threads);
            assert!(chunks.count() <= 9 * threads, "{} for {threads}", chunks.count());
            let longest_wait = blocks / (LEAST_PART * threads);
            assert!(chunks.iter().last().unwrap().len() <= longest_wait);
            assert!(chunks.most() <= blocks.div_ceil(threads) + longest_wait);
        }
    }

    /// More threads than there are, because somebody asks for all.
    #[test]
    fn any_number_of_threads_has_chunks() {
        for threads in [usize::MAX, usize::MAX / 2 + 1, usize::MAX / 128] {
            let chunks = Chunks::new(3, threads);
            assert_eq!(chunks.iter().collect::<Vec<_>>(), [0..1, 1..2, 2..3]);
            assert_eq!((chunks.count(), chunks.most()), (3, 1));
        }
        assert_eq!(Chunks::new(usize::MAX, usize::MAX).get(7), Some(7..8));
        assert_eq!(Chunks::new(usize::MAX, 2).get(0), Some(0..usize::MAX.div_ceil(4)));
    }

    #[test]
    fn a_thread_of_its_own_and_one_of_few_blocks() {
        assert_eq!(Chunks::new(10, 1).most(), 10);
        assert_eq!(Chunks::new(3, 2).most(), 2);
        assert_eq!(Chunks::new(3, 8).iter().collect::<Vec<_>>(), [0..1, 1..2, 2..3]);
    }
}
