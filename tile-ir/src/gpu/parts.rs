//! Blocks of a part of a device that has caches of its own. Such a device gives successive blocks to one part after the
//! other; there the blocks of a part take successive places of the grid, in an order in which those that run at one time
//! need few rows and columns of the factors. It isn't done where it shows which block has which place.

use super::rewrites::persistent::{banded, is_seen};
use crate::dim::Dim;
use crate::kernel::Kernel;
use crate::target::TargetDesc;
use crate::tile_order::TileOrder;

/// The order of the places of a grid in which successive ones go to blocks of one part of the device; `None` where the
/// device has no parts, or the kernel multiplies no matrices, whose factors neighbours share.
pub(super) fn order(kernel: &Kernel, target: &TargetDesc) -> Option<TileOrder<Dim>> {
    let multiplies = kernel.walk().into_iter().any(|op| kernel.op(op).op.is_product());
    if target.parts == 1 || !multiplies || is_seen(kernel) { None } else { banded(kernel) }
}
