//! Which axes a reduction joins: one, or several as one.

use tile_ir::Array;

/// One axis, or an array of axes: what reductions join. Several are one, with their elements in row-major order,
/// whatever the order in which they are named.
///
/// ```
/// use tile::prelude::*;
///
/// let x = Tile::<i32, 3>::iota([2, 3, 4], 2);
/// assert_eq!(x.sum(2).shape(), [2, 3, 1]);
/// assert_eq!(x.sum([0, 2]).shape(), [1, 3, 1]);
/// assert_eq!(x.max([0, 1, 2]).to_vec(), [3]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` doesn't name axes",
    label = "needs an axis or an array of axes",
    note = "write `x.sum(1)` or `x.sum([0, 1])`; `max(a, b)` is the elementwise maximum"
)]
pub trait Axes: Copy {
    #[doc(hidden)]
    fn ascending(self) -> Vec<usize>;
}

impl Axes for usize {
    fn ascending(self) -> Vec<usize> {
        vec![self]
    }
}

impl<const N: usize> Axes for [usize; N] {
    fn ascending(self) -> Vec<usize> {
        let mut axes = self.to_vec();
        axes.sort_unstable();
        axes
    }
}

/// The axes in ascending order.
///
/// # Panics
/// If there is none, or one of them is missing or named twice.
pub(super) fn checked(axes: impl Axes, rank: usize, op: &str) -> Vec<usize> {
    let axes = axes.ascending();
    assert!(!axes.is_empty(), "`{op}` needs an axis");
    for (i, &axis) in axes.iter().enumerate() {
        assert!(axis < rank, "axis {axis} of `{op}` is out of range: the tile has rank {rank}");
        assert!(i == 0 || axes[i - 1] != axis, "axis {axis} of `{op}` is named twice");
    }
    axes
}

/// An array whose axes to reduce are one.
pub(super) struct Merged {
    pub(super) array: Array,
    /// The axis to reduce.
    pub(super) axis: usize,
    /// The shape of the result, in which every reduced axis has extent 1.
    reduced: Vec<usize>,
}

impl Merged {
    /// Makes axes (ascending) one, in row-major order of their elements.
    pub(super) fn of(array: &Array, axes: &[usize]) -> Merged {
        let mut reduced = array.shape().to_vec();
        axes.iter().for_each(|&axis| reduced[axis] = 1);
        if let &[axis] = axes {
            return Merged { array: array.clone(), axis, reduced };
        }
        let kept: Vec<usize> = (0..reduced.len()).filter(|axis| !axes.contains(axis)).collect();
        let order = [kept.as_slice(), axes].concat();
        let mut shape: Vec<usize> = kept.iter().map(|&axis| array.shape()[axis]).collect();
        shape.push(axes.iter().map(|&axis| array.shape()[axis]).product());
        Merged { array: array.permute(&order).reshape(&shape), axis: kept.len(), reduced }
    }

    /// The result of a reduction of the merged array, with the axes that were merged.
    pub(super) fn split(&self, result: &Array) -> Array {
        result.reshape(&self.reduced)
    }
}
