//! A tile in shared memory as tensor copies leave it and warpgroups read it: rows of 32, 64 or 128 bytes whose 16-byte
//! pieces are swizzled; a tile with longer rows is several of these side by side, *panels*.

use super::super::access::Access;
use super::super::numbers::Numbers;
use super::obstacle::Obstacle;
use crate::analysis::divisibility::form_divisor;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::kernel::{OpId, ValueId};
use crate::tensor_map::{MOST_AXES, MOST_TILE, MapAxis, PIECE, Swizzle, TensorMap};
use crate::types::PartitionType;
use crate::view::Source;

/// The longest box of a copy, in elements along an axis.
pub(super) const MOST_ROWS: u64 = MOST_TILE as u64;

/// The rows in which the pattern of a swizzle repeats.
const PATTERN_ROWS: u64 = 8;

/// The direction of a factor whose elements follow each other in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Major {
    /// Along the depth of the product.
    Depth,
    /// Along its rows or columns.
    Other,
}

/// A tile in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedTile {
    /// Rows of every panel: places along the axis that isn't contiguous.
    pub rows: u64,
    /// Panels side by side.
    pub panels: u64,
    /// How pieces of a row change places; a row is as long as the swizzle.
    pub swizzle: Swizzle,
    /// Bytes of an element.
    pub element: u64,
}

impl SharedTile {
    /// A tile of a tensor.
    pub(super) fn of(rows: u64, columns: u64, element: u64, tensor: &str) -> Result<SharedTile, Obstacle> {
        let (bytes, tensor) = (columns * element, || tensor.to_owned());
        let swizzles = [Swizzle::Bytes128, Swizzle::Bytes64, Swizzle::Bytes32];
        let swizzle = swizzles.into_iter().find(|swizzle| bytes.is_multiple_of(swizzle.bytes()));
        let swizzle = swizzle.ok_or_else(|| Obstacle::RowBytes { tensor: tensor(), bytes })?;
        if !rows.is_multiple_of(PATTERN_ROWS) || rows > MOST_ROWS {
            return Err(Obstacle::Rows { tensor: tensor(), rows });
        }
        Ok(SharedTile { rows, panels: bytes / swizzle.bytes(), swizzle, element })
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.panels * self.panel_bytes()
    }

    /// The bytes of a panel.
    pub fn panel_bytes(&self) -> u64 {
        self.rows * self.swizzle.bytes()
    }

    /// The elements of a row of a panel.
    pub fn panel_columns(&self) -> u64 {
        self.swizzle.bytes() / self.element
    }

    /// The bytes in which the pattern of the swizzle repeats, down the rows.
    pub fn pattern_bytes(&self) -> u64 {
        PATTERN_ROWS * self.swizzle.bytes()
    }

    /// Where the part that begins at a row and a column begins, in bytes: at a row that begins a pattern, or at one that
    /// a warpgroup counts from there.
    pub fn offset(&self, row: u64, column: u64) -> u64 {
        let panel = column / self.panel_columns();
        panel * self.panel_bytes() + row * self.swizzle.bytes() + column % self.panel_columns() * self.element
    }

    /// The byte at which an element lies. It is linear over GF(2) in the bits of row and column where these are powers of
    /// two.
    pub fn place(&self, row: u64, column: u64) -> u64 {
        self.swizzle.apply(self.offset(row, column))
    }
}

/// A load or store that an instruction can do by a tensor map.
#[derive(Clone)]
pub(super) struct Copyable {
    pub(super) tile: SharedTile,
    /// Axes of the tile that are longer than 1: that whose elements follow each other, and the other.
    pub(super) inner: usize,
    pub(super) outer: usize,
    /// The axis of the view that each axis of the map is.
    pub(super) axes: Vec<usize>,
    pub(super) map: TensorMap,
}

impl Numbers<'_> {
    /// A load as a copy.
    ///
    /// # Errors
    /// Why an instruction can't do it.
    pub(super) fn copyable(&self, op: OpId) -> Result<Copyable, Obstacle> {
        let load = self.kernel.op(op).load().expect("a load");
        let view = self.kernel.ty(load.view).as_partition().expect("verified: a view");
        if view.tensor.mutable {
            return Err(Obstacle::Written(self.kernel.tensor_name(load.view)));
        }
        if load.pad.is_some_and(|pad| !self.kernel.is_zero(pad)) {
            return Err(Obstacle::Pad(self.kernel.tensor_name(load.view)));
        }
        let axes = self.long_axes(op, load.view);
        self.boxed(load.view, axes.expect("a factor that warpgroups take is long along two axes"))
    }

    /// The axes along which the tile of a load or store of a view is longer than 1, if these are two: first that whose
    /// elements follow each other in memory.
    pub(super) fn long_axes(&self, op: OpId, view: ValueId) -> Option<[usize; 2]> {
        let extents = self.extents(view);
        let order = Access::of(self, op).order;
        let long: Vec<usize> = order.into_iter().filter(|&axis| extents[axis] > 1).collect();
        long.try_into().ok()
    }

    /// The extents of a view's tiles.
    fn extents(&self, view: ValueId) -> Vec<u64> {
        let view = self.kernel.ty(view).as_partition().expect("verified: a view");
        let extents = view.tile.iter().map(Dim::as_const);
        extents.map(|extent| extent.expect("an instance's tile extents are numbers") as u64).collect()
    }

    /// The tiles of a view, which are long along these axes, as the boxes that an instruction copies.
    ///
    /// # Errors
    /// Why there are none.
    pub(super) fn boxed(&self, view: ValueId, [inner, outer]: [usize; 2]) -> Result<Copyable, Obstacle> {
        let (tensor, extents) = (self.kernel.tensor_name(view), self.extents(view));
        let cut = self.kernel.definition(view).expect("verified: a view is made by `partition`");
        let source = Source::of(self.kernel, cut.operands[0]);
        if !source.selections.is_empty() {
            return Err(Obstacle::Selected(tensor));
        }
        let argument = self.kernel.params().iter().position(|&param| param == source.argument);
        let argument = argument.expect("verified: views are of arguments");
        let view = self.kernel.ty(view).as_partition().expect("verified: a view");
        let others: Vec<usize> = (0..extents.len()).filter(|&axis| axis != inner).rev().collect();
        // What the view is, is told before what its tiles are: that may be chosen for it.
        self.has_map(view, inner, &others, &tensor)?;
        let tile = SharedTile::of(extents[outer], extents[inner], element(view).bytes() as u64, &tensor)?;
        let axes: Vec<usize> = std::iter::once(inner).chain(others).collect();
        let map = map(view, argument, &axes, outer, &tile);
        Ok(Copyable { tile, inner, outer, axes, map })
    }

    /// Whether a view's tensor has a tensor map that is known to be right.
    fn has_map(
        &self,
        view: &PartitionType,
        inner: usize,
        others: &[usize],
        tensor: &str,
    ) -> Result<(), Obstacle> {
        let elem = element(view);
        let (strided, tensor) = (view.tensor.strided(), || tensor.to_owned());
        let is_aligned = |dim: &Dim| {
            let elements = form_divisor(&self.facts.apply(dim));
            elements == 0 || (elements * elem.bytes() as u64).is_multiple_of(PIECE)
        };
        if 1 + others.len() > MOST_AXES {
            return Err(Obstacle::ManyAxes(tensor()));
        }
        if !strided.windows.iter().all(Vec::is_empty) {
            return Err(Obstacle::Windows(tensor()));
        }
        if strided.strides[inner].as_const() != Some(1) {
            return Err(Obstacle::Apart(tensor()));
        }
        let mut others = others.iter().map(|&axis| &strided.strides[axis]);
        if others.clone().any(|stride| stride.as_const() == Some(0) || !stride.is_natural()) {
            return Err(Obstacle::Repeated(tensor()));
        }
        if !is_aligned(&strided.offset) || !others.all(is_aligned) {
            return Err(Obstacle::Unaligned(tensor()));
        }
        Ok(())
    }
}

/// The format of a view's elements.
fn element(view: &PartitionType) -> DType {
    view.tensor.elem.known().expect("an instance has no dtype parameters")
}

/// The tensor map of a view that has one.
fn map(view: &PartitionType, argument: usize, axes: &[usize], outer: usize, tile: &SharedTile) -> TensorMap {
    let strided = view.tensor.strided();
    let axis = |(i, &axis): (usize, &usize)| MapAxis {
        extent: view.tensor.extents[axis].clone(),
        stride: strided.strides[axis].clone(),
        tile: match axis {
            _ if i == 0 => tile.panel_columns() as u32,
            axis if axis == outer => tile.rows as u32,
            _ => 1,
        },
    };
    TensorMap {
        argument,
        elem: element(view),
        offset: strided.offset.clone(),
        axes: axes.iter().enumerate().map(axis).collect(),
        swizzle: tile.swizzle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rows_are_panels_of_128_bytes() {
        let tile = SharedTile::of(64, 256, 2, "`x`").unwrap();
        assert_eq!((tile.panels, tile.panel_columns(), tile.bytes()), (4, 64, 32 * 1024));
        assert_eq!(tile.offset(16, 0), 2048);
        assert_eq!(tile.offset(0, 80), 8192 + 32);
        // In row 3 the second piece changes places with the third one.
        assert_eq!(tile.place(3, 72), 8192 + 3 * 128 + 32);
    }

    #[test]
    fn short_rows_have_a_narrower_swizzle() {
        assert_eq!(SharedTile::of(64, 32, 2, "`x`").unwrap().swizzle, Swizzle::Bytes64);
        assert_eq!(SharedTile::of(64, 48, 2, "`x`").unwrap().panels, 3);
        let refused = |rows, columns| SharedTile::of(rows, columns, 2, "`x`").unwrap_err();
        assert_eq!(refused(64, 8), Obstacle::RowBytes { tensor: "`x`".to_owned(), bytes: 16 });
        assert_eq!(refused(12, 64), Obstacle::Rows { tensor: "`x`".to_owned(), rows: 12 });
    }
}
