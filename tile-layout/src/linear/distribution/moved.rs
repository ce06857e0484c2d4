//! The same elements in the same threads under other coordinates: what reductions, permutations and reshapes leave.

use alloc::vec;
use alloc::vec::Vec;

use super::{Distribution, Position, axis_dim, check_axes};
use crate::linear::{BitMatrix, Dim, Group, LinearError, LinearLayout};

impl Distribution {
    /// The same tile without its extent along an axis, as a reduction leaves it: threads that differed along it
    /// hold copies.
    ///
    /// # Errors
    /// [`LinearError::UnknownDim`] where there is no such axis.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let rows = Distribution::blocked(&[8, 64], &[1, 0], 4, 32, 2)?.without_axis(1)?;
    /// assert_eq!(rows.to_string(), "[8, 1] registers (4, 0) lanes (0, 0) (0, 0) (0, 0) (0, 0) (1, 0) warps (2, 0)");
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn without_axis(&self, axis: usize) -> Result<Distribution, LinearError> {
        check_axes(&self.shape, [axis].into_iter())?;
        let mut shape = self.shape.clone();
        shape[axis] = 1;
        self.on(&shape, |position| {
            let mut position = position.to_vec();
            position[axis] = 0;
            position
        })
    }

    /// The tile with its axes in another order: axis `i` of the result is axis `permutation[i]` of this.
    ///
    /// # Errors
    /// [`LinearError::UnknownDim`], [`LinearError::MissingDim`] and [`LinearError::DuplicateDim`] where `permutation`
    /// doesn't name each axis once.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert_eq!(tile.permuted(&[1, 0])?.place(1, 0), [1, 0]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn permuted(&self, permutation: &[usize]) -> Result<Distribution, LinearError> {
        check_axes(&self.shape, permutation.iter().copied())?;
        if let Some(axis) = (0..self.shape.len()).find(|axis| !permutation.contains(axis)) {
            return Err(LinearError::MissingDim { dim: axis_dim(axis) });
        }
        if permutation.len() > self.shape.len() {
            let is_again = |&at: &usize| permutation[..at].contains(&permutation[at]);
            let axis = (0..permutation.len()).find(is_again).map_or(0, |at| permutation[at]);
            return Err(LinearError::DuplicateDim { dim: axis_dim(axis) });
        }
        let permute =
            |position: &[u64]| -> Vec<u64> { permutation.iter().map(|&axis| position[axis]).collect() };
        self.on(&permute(&self.shape), permute)
    }

    /// The tile with the same elements in row-major order in another shape; `None` where that isn't linear, or has another
    /// number of elements.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[64], &[0], 2, 8, 2)?;
    /// let square = tile.reshaped(&[8, 8]).expect("powers of two");
    /// assert_eq!((tile.place(3, 9), square.place(3, 9)), (vec![51], vec![6, 3]));
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn reshaped(&self, shape: &[u64]) -> Option<Distribution> {
        let is_linear = |extents: &[u64]| extents.iter().all(|extent| extent.is_power_of_two());
        if is_linear(&self.shape) && is_linear(shape) {
            let bits = |extents: &[u64]| extents.iter().map(|extent| u64::from(extent.ilog2())).sum::<u64>();
            let is_same_size = bits(&self.shape) == bits(shape);
            let moved = || self.on(shape, |position| split(self.flat(position), shape)).ok();
            return is_same_size.then(moved).flatten();
        }
        let long =
            |shape: &[u64]| -> Vec<usize> { (0..shape.len()).filter(|&axis| shape[axis] > 1).collect() };
        let (from, to) = (long(&self.shape), long(shape));
        let alike = from.len() == to.len() && from.iter().zip(&to).all(|(&a, &b)| self.shape[a] == shape[b]);
        let moved = |position: &[u64]| {
            let mut moved = vec![0; shape.len()];
            from.iter().zip(&to).for_each(|(&a, &b)| moved[b] = position[a]);
            moved
        };
        alike.then(|| self.on(shape, moved).ok()).flatten()
    }

    fn on(&self, shape: &[u64], move_to: impl Fn(&[u64]) -> Position) -> Result<Distribution, LinearError> {
        let moved = |positions: &[Position]| positions.iter().map(|position| move_to(position)).collect();
        Distribution::new(shape, moved(&self.registers), moved(&self.lanes), moved(&self.warps))
    }

    /// The distribution as a linear layout `(register, lane, warp) → axes`; `None` where it has more than one piece.
    ///
    /// ```
    /// use tile_layout::linear::Distribution;
    /// let tile = Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2)?;
    /// assert!(tile.linear().is_none());
    /// assert!(Distribution::blocked(&[4, 64], &[1, 0], 4, 8, 2)?.linear().is_some());
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn linear(&self) -> Option<LinearLayout> {
        if self.shape != self.piece {
            return None;
        }
        let group = |dim, bits: &[Position]| Group { dim, bits: bits.len() as u32 };
        let inputs = [
            group(Dim::Register, &self.registers),
            group(Dim::Lane, &self.lanes),
            group(Dim::Warp, &self.warps),
        ];
        // The first output dimension has the lowest bits, as the last axis does here.
        let axes = self.piece.iter().enumerate().rev();
        let outputs: Vec<Group> =
            axes.map(|(axis, extent)| Group { dim: Dim::Axis(axis as u8), bits: extent.ilog2() }).collect();
        let columns: Vec<u64> = self.positions().map(|position| self.flat(position)).collect();
        let matrix = BitMatrix::new(self.piece_bits(), &columns).ok()?;
        LinearLayout::from_matrix(&inputs, &outputs, matrix).ok()
    }
}

/// A number's row-major position in a shape of powers of two.
fn split(flat: u64, shape: &[u64]) -> Position {
    let mut rest = flat;
    let mut position = vec![0; shape.len()];
    for (place, extent) in position.iter_mut().zip(shape).rev() {
        *place = rest & (extent - 1);
        rest >>= extent.ilog2();
    }
    position
}
