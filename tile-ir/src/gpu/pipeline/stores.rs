//! Stores that copies do: each warpgroup puts its rows into shared memory, a panel after the other, and one
//! instruction copies a panel to the tensor while the next one is written.
//!
//! Sums lie in the threads of a warpgroup such that each row of a warp's is in four lanes. Written from there, memory
//! gets pieces of 8 or 16 bytes; a panel is written in lines of 128 bytes, and what lies outside the tensor isn't. Of
//! sums that were narrowed to 16 bits matrix stores write 16 bytes of a row at once.

use super::super::products::Product;
use crate::dtype::DType;
use crate::gpu::exchange::swizzled::MatrixMove;
use crate::gpu::numbers::Numbers;
use crate::kernel::{Kernel, OpData, OpId, RegionId};
use crate::ops::Op;
use crate::target::{Fragments, TargetDesc};
use crate::tensor_map::{Swizzle, TensorMap};
use tile_layout::linear::{Distribution, Operand};

/// Bytes of a row of a panel.
pub const PANEL_ROW_BYTES: u64 = 128;

/// Shared memory of a warpgroup for its panels, in bytes: of 64 rows two, so that one is written while another is copied, of
/// the 128 rows of tensor memory one.
pub const WARPGROUP_BYTES: u64 = 2 * 64 * PANEL_ROW_BYTES;

/// A store that copies may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorStore {
    /// The tensor map, by its number among the kernel's.
    pub map: usize,
    /// The axis of the view that each axis of the map is.
    pub axes: Vec<usize>,
    /// Rows of a panel: those that a warpgroup has of an instruction's sums.
    pub panel_rows: u64,
    /// Elements of its rows.
    pub panel_columns: u64,
    /// The axis of rows.
    pub rows: usize,
    /// The axis along which elements follow each other.
    pub columns: usize,
    /// How matrix stores write a panel, if they do.
    pub matrices: Option<MatrixMove>,
}

impl TensorStore {
    /// The bytes of a panel.
    pub fn panel_bytes(&self) -> u64 {
        self.panel_rows * PANEL_ROW_BYTES
    }

    /// Panels that a warpgroup has room for.
    pub fn panels(&self) -> u64 {
        WARPGROUP_BYTES / self.panel_bytes()
    }

    /// Whether a tile lies as sums of warpgroups do, its rows in order, so that each warpgroup has whole panels.
    pub(in super::super) fn takes(&self, tile: &Distribution, product: &Product) -> bool {
        if !matches!(product.instruction.fragments, Fragments::Wgmma | Fragments::TensorMemory) {
            return false;
        }
        let shape = tile.shape();
        let sums = product.distribution(&[shape[self.rows], shape[self.columns]], Operand::Accumulator);
        let has_panels = (shape[self.columns] / product.parts()[1]).is_multiple_of(self.panel_columns);
        has_panels && self.rows < self.columns && sums.reshaped(shape).as_ref() == Some(tile)
    }

    /// Finds the matrix stores that write a tile's panels, where the target has them: such that elements that follow each
    /// other in a panel do so in a row of theirs, which is as long as what a panel's swizzle moves.
    pub(super) fn find_matrices(&mut self, tile: &Distribution, dtype: DType, target: &TargetDesc) {
        let moves = if target.matrix_stores { MatrixMove::all(tile, dtype) } else { Vec::new() };
        self.matrices = moves.into_iter().find(|one| one.runs_along(self.columns));
    }
}

/// The stores that copies may do, each with its tensor map: of whole lines, once for every tile.
pub(super) fn candidates(numbers: &Numbers<'_>, target: &TargetDesc) -> Vec<(OpId, TensorStore, TensorMap)> {
    let kernel = numbers.kernel;
    let panel_rows = target.warpgroup_matrix.first().map_or(1, |instruction| instruction.shape.m);
    let ops = once(kernel, kernel.body());
    let is_of_one_tile = |data: &OpData| data.op.is_store() && data.tile_index().is_empty();
    let stores = ops.into_iter().filter(|&op| is_of_one_tile(kernel.op(op)));
    stores
        .filter_map(|op| {
            let view = kernel.op(op).operands[0];
            let boxed = numbers.boxed(view, numbers.long_axes(op, view)?).ok()?;
            let is_whole =
                boxed.tile.swizzle == Swizzle::Bytes128 && boxed.tile.rows.is_multiple_of(panel_rows.into());
            let rows = boxed.axes.iter().position(|&axis| axis == boxed.outer)?;
            let mut map = boxed.map;
            map.axes[rows].tile = panel_rows;
            let store = TensorStore {
                map: 0,
                axes: boxed.axes,
                panel_rows: panel_rows.into(),
                panel_columns: boxed.tile.panel_columns(),
                rows: boxed.outer,
                columns: boxed.inner,
                matrices: None,
            };
            is_whole.then_some((op, store, map))
        })
        .collect()
}

/// The ops of a region that are done once at most for each tile of the grid.
fn once(kernel: &Kernel, region: RegionId) -> Vec<OpId> {
    let inside = |op: OpId| match kernel.op(op) {
        OpData { op: Op::Tiles(_) | Op::If, regions, .. } => {
            regions.iter().flat_map(|&region| once(kernel, region)).collect()
        }
        _ => vec![op],
    };
    kernel.region(region).ops.iter().copied().flat_map(inside).collect()
}
