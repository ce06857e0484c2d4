//! The ring of a region: the tiles that are copied each time that it is executed, a *turn* of it, by the ops that read them,
//! and where they lie in shared memory.

use super::{Late, Major, SharedTile};
use crate::kernel::{OpId, RegionId};

/// Bytes of an mbarrier, and its alignment.
pub(super) const BARRIER_BYTES: u64 = 8;

/// A region whose tiles are copied: the body of a loop over products, ahead of its turns, or one around such loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Turns whose tiles there is room for.
    pub stages: u64,
    /// What is copied in a turn, by the products that read it.
    pub fills: Vec<Fill>,
    /// Where the first stage begins, and how long each is, in bytes.
    pub ring: u64,
    /// Bytes of a stage.
    pub stage_bytes: u64,
    /// Where its mbarriers begin.
    pub barriers: u64,
    /// The product that is done a turn later, if there is one.
    pub late: Option<Late>,
    /// Whether two warpgroups issue the products of their turns alternately, so that one computes while the other's
    /// products run.
    pub alternates: bool,
}

/// The tiles that the same ops read of a stage: the first waits for them together, and the last leaves them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The ops of the region, in the order in which they are done: products, and loops and branches around products, which
    /// read these tiles in all their turns.
    pub readers: Vec<OpId>,
    /// The tiles.
    pub copies: Vec<TileCopy>,
    /// Whether the product goes on while the next turn's begins: nothing but that needs its sums, and both factors lie in
    /// the ring.
    pub keeps_running: bool,
}

/// The copy of a tile to shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileCopy {
    /// The load that it stands for.
    pub load: OpId,
    /// Its tensor map, by its number among the kernel's.
    pub map: usize,
    /// The axis of the view that each axis of the map is.
    pub axes: Vec<usize>,
    /// The axis of the map along which each block of a pair copies half of the tile, for both, if they share it.
    pub halves: Option<usize>,
    /// The axes of the view that may have no element where it is copied: then its boxes lie outside.
    pub may_be_empty: Vec<usize>,
    /// The tile in shared memory.
    pub tile: SharedTile,
    /// Where it begins in a stage, in bytes.
    pub offset: u64,
}

/// A factor of a product that lies in a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingFactor {
    /// The region whose ring that is.
    pub pipeline: RegionId,
    /// The fill, by its number.
    pub fill: usize,
    /// The copy, by its number in the fill.
    pub copy: usize,
    /// The direction in which its elements follow each other.
    pub major: Major,
}

impl Fill {
    /// The op before which its tiles aren't needed.
    pub fn first_reader(&self) -> OpId {
        *self.readers.first().expect("a fill is read")
    }

    /// The op after which its tiles are needed no more.
    pub fn last_reader(&self) -> OpId {
        *self.readers.last().expect("a fill is read")
    }

    /// Bytes that are copied.
    pub fn bytes(&self) -> u64 {
        self.copies.iter().map(|copy| copy.tile.bytes()).sum()
    }

    /// Whether the other block of a pair copies to it too, so that both must have left it before.
    pub fn is_shared(&self) -> bool {
        self.copies.iter().any(|copy| copy.halves.is_some())
    }
}

impl Pipeline {
    /// Whether an op of the region reads its tiles.
    pub fn is_read_by(&self, op: OpId) -> bool {
        self.fills.iter().any(|fill| fill.readers.contains(&op))
    }

    /// Whether a product goes on while the next turn's begins.
    pub fn keeps_running(&self, product: OpId) -> bool {
        self.fills.iter().any(|fill| fill.keeps_running && fill.readers.contains(&product))
    }

    /// The fills that an op waits for, as the first that reads them, by their numbers.
    pub fn awaited_by(&self, op: OpId) -> impl Iterator<Item = usize> {
        (0..self.fills.len()).filter(move |&fill| self.fills[fill].first_reader() == op)
    }

    /// The fills that an op leaves, as the last that reads them.
    pub fn left_by(&self, op: OpId) -> impl Iterator<Item = usize> {
        (0..self.fills.len()).filter(move |&fill| self.fills[fill].last_reader() == op)
    }

    /// Where the mbarrier is that a fill of stage 0 completes; those of later stages follow it.
    pub fn full(&self, fill: usize) -> u64 {
        self.barriers + 2 * fill as u64 * self.stages * BARRIER_BYTES
    }

    /// Where the mbarrier is at which consumers leave a fill of stage 0; those of later stages follow it.
    pub fn empty(&self, fill: usize) -> u64 {
        self.full(fill) + self.stages * BARRIER_BYTES
    }

    /// The end of its shared memory.
    pub(in crate::gpu) fn end(&self) -> u64 {
        self.barriers + 2 * self.fills.len() as u64 * self.stages * BARRIER_BYTES
    }
}
