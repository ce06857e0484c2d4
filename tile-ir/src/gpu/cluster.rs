//! Tiles that are too large for a block: the blocks of a cluster hold each together.
//!
//! A distribution then deals a tile out to the threads of all these blocks, which are numbered through, as if they were one
//! block; the last bits of a thread's number are its block's. Threads of different blocks exchange nothing but what
//! reductions join, a partial result of each block, so that is all that goes from one multiprocessor to another. A kernel
//! whose tiles would have to be exchanged otherwise keeps one block per tile, and is refused if that can't hold them.

use super::exchange::scratch;
use super::rewrites::persistent;
use super::{LaidOut, Threads, largest_tile};
use crate::kernel::{Kernel, OpId};
use crate::ops::Op;
use crate::target::TargetDesc;

/// Elements of a tile that a thread has at most before further blocks share it: as f32 they are half of its registers, so
/// that two blocks of [`BLOCK`] threads run on a multiprocessor, and one reads while the other joins what it has read.
const MOST_ELEMENTS: u64 = 64;

/// Elements of the largest tile of a thread where one block holds it; more than these spill.
const MOST_ALONE: u64 = 2 * MOST_ELEMENTS;

/// Threads of a block, where as many blocks as may be are enough.
const BLOCK: u64 = 256;

/// Blocks that every GPU which has clusters runs together (CUDA C++ Programming Guide, "Thread Block Clusters").
const MOST_BLOCKS: u64 = 8;

/// The most blocks that share a tile on a target.
pub fn most_blocks(target: &TargetDesc) -> u64 {
    if target.clusters { MOST_BLOCKS } else { 1 }
}

/// The threads that share each tile of a kernel whose largest is too large for a block, of so many threads if that is asked;
/// `None` where a block holds it, and where blocks of the target can't share it.
pub(super) fn threads(kernel: &Kernel, target: &TargetDesc, asked: Option<Threads>) -> Option<Threads> {
    let asked = asked.map(Threads::of_block);
    let (largest, least) = (largest_tile(kernel), asked.unwrap_or(BLOCK));
    if !target.clusters || largest <= least * MOST_ALONE || !may_share(kernel) {
        return None;
    }
    let blocks = largest.div_ceil(least * MOST_ELEMENTS).next_power_of_two().min(MOST_BLOCKS);
    let block = largest.div_ceil(blocks * MOST_ELEMENTS).next_power_of_two();
    let block = asked.unwrap_or(block.clamp(BLOCK, u64::from(target.max_threads)));
    let lanes = u64::from(target.warp);
    Some(Threads { lanes, warps: blocks * block / lanes, blocks })
}

/// Whether it doesn't show that several blocks have each tile, and nothing needs a block of its own.
fn may_share(kernel: &Kernel) -> bool {
    let is_of_a_block = |op: &Op| op.is_product() || matches!(op, Op::Sort { .. });
    let has_such = kernel.walk().into_iter().any(|op| is_of_a_block(&kernel.op(op).op));
    !has_such && !persistent::is_seen(kernel)
}

/// Whether blocks send each other what a reduction joins of each, and each waits for what it is sent, which an mbarrier of
/// its own counts in bytes: so nobody waits for the cluster's barrier, before whose arrivals a GPU puts a fence of all memory.
///
/// What is sent may come while a block is still at an op before, so the op's buffers are nobody else's, and it must be done
/// once. Words of 4 and 8 bytes can be sent. A barrier of the block orders what its own warps exchange.
pub(super) fn sends(laid_out: &LaidOut, op: OpId) -> bool {
    let kernel: &Kernel = &laid_out.instance;
    let data = kernel.op(op);
    if !matches!(data.op, Op::Reduce { .. }) || kernel.region_of(op) != Some(kernel.body()) {
        return false;
    }
    let reduction = laid_out.reduction(data);
    !reduction.blocks.is_empty() && !reduction.warps.is_empty() && matches!(reduction.dtype.bytes(), 4 | 8)
}

/// Whether all that threads of different blocks would exchange is what reductions join.
pub(super) fn exchanges_reductions_alone(kernel: &Kernel, scratch: &scratch::Scratch) -> bool {
    let exchanging = kernel.walk().into_iter().filter(|&op| !scratch.buffers(op).is_empty());
    exchanging.into_iter().all(|op| matches!(kernel.op(op).op, Op::Reduce { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Instance, passes};

    /// Threads of a block, and blocks, for a kernel of tiles of so many elements.
    fn shared(extent: usize, ops: &str, target: &str) -> Option<[u64; 2]> {
        let text = format!(
            "kernel @k(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {{
  %vx = partition %x [{extent}] : partition<n x f32, [{extent}]>
  %vy = partition %y [{extent}] : mut partition<n x f32, [{extent}]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%i] pad %pad : tile<{extent} x f32>
{ops}  store_masked %vy, %r
}}
"
        );
        let instance =
            passes::optimize(Instance::parse(&text, &[]).unwrap_or_else(|error| panic!("{error}")));
        let threads = threads(&instance, TargetDesc::named(target).unwrap(), None)?;
        Some([threads.of_block(), threads.blocks])
    }

    #[test]
    fn blocks_are_as_many_as_hold_a_tile() {
        let of = |extent| shared(extent, &format!("  %r = exp %t : tile<{extent} x f32>\n"), "sm_90a");
        assert_eq!(of(32768), None);
        assert_eq!(of(32769), Some([256, 4]));
        assert_eq!(of(65536), Some([256, 4]));
        assert_eq!(of(131_072), Some([256, 8]));
        assert_eq!(of(200_000), Some([512, 8]));
        assert_eq!(of(1 << 20), Some([1024, 8]));
    }

    #[test]
    fn tiles_stay_in_a_block_where_that_is_seen_and_where_no_cluster_is() {
        let plain = "  %r = exp %t : tile<65536 x f32>\n";
        for target in ["sm_80", "gfx942", "gfx1201"] {
            assert_eq!(shared(65536, plain, target), None);
        }
        let sorted = "  %r, %places = sort %t axis 0 : tile<65536 x f32>, tile<65536 x i32>\n";
        assert_eq!(shared(65536, sorted, "sm_90a"), None);
        let printed = format!("  print 0 \"{{0}}\" %i\n{plain}");
        assert_eq!(shared(65536, &printed, "sm_90a"), None);
    }
}
