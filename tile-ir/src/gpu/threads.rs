//! How many threads a block has, and how many hold each tile.

use super::{largest_tile, occupancy, products};
use crate::kernel::Kernel;
use crate::target::TargetDesc;

/// Tiles of more elements than this get the larger block.
const SMALL_TILE: u64 = 1024;

/// Threads of a block that has a larger tile, and of one that hasn't.
const THREADS: [u64; 2] = [256, 128];

/// The threads that hold each tile: those of a block, or of the blocks of a cluster that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Threads {
    /// Lanes that execute in lock-step: a power of two.
    pub lanes: u64,
    /// Warps of all blocks: a power of two.
    pub warps: u64,
    /// The blocks: a power of two.
    pub blocks: u64,
}

impl Threads {
    /// All of them.
    pub fn count(self) -> u64 {
        self.lanes * self.warps
    }

    /// Those of a block.
    pub fn of_block(self) -> u64 {
        self.count() / self.blocks
    }

    /// So many threads in warps of a target; fewer than a warp are its first lanes.
    ///
    /// # Panics
    /// If the number isn't a power of two.
    pub fn of(count: u64, target: &TargetDesc) -> Threads {
        assert!(count.is_power_of_two(), "a block has a power of two of threads, not {count}");
        let lanes = count.min(u64::from(target.warp));
        Threads { lanes, warps: count / lanes, blocks: 1 }
    }

    /// Whether they are whole warps of a target, which alone use its matrix instructions.
    pub(super) fn are_whole_warps(self, target: &TargetDesc) -> bool {
        self.lanes == u64::from(target.warp)
    }

    /// As many as a kernel's largest tile asks for, and no more than have work in its products.
    pub(super) fn chosen(kernel: &Kernel, target: &TargetDesc) -> Threads {
        if let Some(count) = occupancy::threads(kernel, target) {
            return Threads::of(count, target);
        }
        let [large, small] = THREADS;
        let count = if largest_tile(kernel) > SMALL_TILE { large } else { small };
        let most = products::most_warps(kernel, target).map_or(count, |warps| warps * u64::from(target.warp));
        Threads::of(count.min(most).min(u64::from(target.max_threads)), target)
    }
}
