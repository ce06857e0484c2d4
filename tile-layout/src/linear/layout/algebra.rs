//! Decides how layouts combine: composition, product and its quotient, inverses, ranks. Knows nothing of what
//! dimensions mean. Invariant: dimensions are matched by name, never by position.

use alloc::vec::Vec;

use super::{Group, LinearLayout, field, locate, total_bits};
use crate::linear::{BitMatrix, Dim, LinearError, matrix::low_bits};

impl LinearLayout {
    /// The layout of first applying `inner`, then this one.
    ///
    /// # Errors
    /// [`LinearError::UnmatchedDim`] where one side of the seam has a dimension that the other lacks,
    /// [`LinearError::ExtentMismatch`] where `inner` produces larger indices than this layout accepts.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let tile = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 8)?;
    /// let memory = LinearLayout::from_modes(&[(8, 4)])?;
    /// assert_eq!(memory.compose(&tile)?.columns(Dim::Lane), [4, 8, 16]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn compose(&self, inner: &LinearLayout) -> Result<LinearLayout, LinearError> {
        for group in &inner.outputs {
            let (_, bits) =
                locate(&self.inputs, group.dim).ok_or(LinearError::UnmatchedDim { dim: group.dim })?;
            if group.bits > bits {
                let (found, expected) = (group.extent(), 1 << bits);
                return Err(LinearError::ExtentMismatch { dim: group.dim, found, expected });
            }
        }
        if let Some(group) = self.inputs.iter().find(|group| locate(&inner.outputs, group.dim).is_none()) {
            return Err(LinearError::UnmatchedDim { dim: group.dim });
        }
        let columns: Vec<u64> = inner
            .matrix
            .columns()
            .iter()
            .map(|&column| self.matrix.apply(reorder(column, &inner.outputs, &self.inputs)))
            .collect();
        let matrix = BitMatrix::new(self.matrix.rows(), &columns)?;
        LinearLayout::from_matrix(&inner.inputs, &self.outputs, matrix)
    }

    /// The direct sum: this layout on the low bits of every dimension, `other` on the bits above.
    ///
    /// Read it as "a tile of `other`'s shape, each element of which is a tile of this layout". Dimensions that
    /// only `other` has come last.
    ///
    /// # Errors
    /// [`LinearError::TooManyBits`].
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let pairs = LinearLayout::identity(Dim::Register, Dim::Axis(0), 2)?;
    /// let lanes = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 32)?;
    /// let layout = pairs.product(&lanes)?;
    /// assert_eq!(layout.apply(&[(Dim::Register, 1), (Dim::Lane, 3)])?, [(Dim::Axis(0), 7)]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn product(&self, other: &LinearLayout) -> Result<LinearLayout, LinearError> {
        let inputs = stack(&self.inputs, &other.inputs);
        let outputs = stack(&self.outputs, &other.outputs);
        // Before any shift: a side that is too large must be an error, not a lost bit.
        super::check_groups(&inputs)?;
        super::check_groups(&outputs)?;
        let mut columns = Vec::with_capacity(total_bits(&inputs) as usize);
        for group in &inputs {
            columns.extend(
                self.columns(group.dim).iter().map(|&column| reorder(column, &self.outputs, &outputs)),
            );
            columns.extend(other.columns(group.dim).iter().map(|&column| {
                let raised = outputs.iter().fold((0, 0), |(flat, start), out| {
                    let index = field(&other.outputs, out.dim, column);
                    let below = locate(&self.outputs, out.dim).map_or(0, |(_, bits)| bits);
                    (flat | (index << below) << start, start + out.bits)
                });
                raised.0
            }));
        }
        let matrix = BitMatrix::new(total_bits(&outputs), &columns)?;
        LinearLayout::from_matrix(&inputs, &outputs, matrix)
    }

    /// The layout `q` with `tile.product(&q)` equal to this one up to the order of dimensions; `None` where
    /// `tile` isn't a factor.
    ///
    /// A layout can use an instruction for every tile exactly when it can be divided by the instruction's layout.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let pairs = LinearLayout::identity(Dim::Register, Dim::Axis(0), 2)?;
    /// let lanes = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 32)?;
    /// let quotient = pairs.product(&lanes)?.divide_left(&pairs);
    /// assert_eq!(quotient.map(|q| q.columns(Dim::Lane).to_vec()), Some(vec![1, 2, 4, 8, 16]));
    /// assert_eq!(lanes.divide_left(&pairs), None);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn divide_left(&self, tile: &LinearLayout) -> Option<LinearLayout> {
        let inputs = unstack(&self.inputs, &tile.inputs)?;
        let outputs = unstack(&self.outputs, &tile.outputs)?;
        let mut columns = Vec::with_capacity(total_bits(&inputs) as usize);
        for group in &inputs {
            let (low, high) = self.columns(group.dim).split_at(tile.input_bits(group.dim) as usize);
            let expected =
                tile.columns(group.dim).iter().map(|&column| reorder(column, &tile.outputs, &self.outputs));
            if !expected.eq(low.iter().copied()) {
                return None;
            }
            for &column in high {
                let (mut lowered, mut start) = (0, 0);
                for out in &outputs {
                    let index = field(&self.outputs, out.dim, column);
                    let below = tile.output_bits(out.dim);
                    if index & low_bits(below) != 0 {
                        return None;
                    }
                    lowered |= index >> below << start;
                    start += out.bits;
                }
                columns.push(lowered);
            }
        }
        let matrix = BitMatrix::new(total_bits(&outputs), &columns).ok()?;
        LinearLayout::from_matrix(&inputs, &outputs, matrix).ok()
    }

    /// The inverse layout.
    ///
    /// # Errors
    /// [`LinearError::NotInvertible`] where the layout isn't a permutation.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::from_modes(&[(4, 2), (2, 1)])?.invert()?;
    /// assert_eq!(layout.apply(&[(Dim::Offset, 5)])?, [(Dim::Axis(0), 2), (Dim::Axis(1), 1)]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn invert(&self) -> Result<LinearLayout, LinearError> {
        LinearLayout::from_matrix(&self.outputs, &self.inputs, self.matrix.inverse()?)
    }

    /// A layout from outputs to inputs that finds, for every output that the layout reaches, one input that
    /// reaches it: the one with zero in every free input bit (see [`BitMatrix::pseudo_inverse`]).
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let copies = LinearLayout::zeros(Dim::Register, Dim::Axis(0), 4)?;
    /// let lanes = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 8)?;
    /// let owner = copies.product(&lanes)?.pseudo_invert();
    /// assert_eq!(owner.apply(&[(Dim::Axis(0), 6)])?, [(Dim::Register, 0), (Dim::Lane, 6)]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    #[must_use]
    pub fn pseudo_invert(&self) -> LinearLayout {
        LinearLayout {
            inputs: self.outputs.clone(),
            outputs: self.inputs.clone(),
            matrix: self.matrix.pseudo_inverse(),
        }
    }

    /// The number of output bits that the inputs really choose: `2^rank` distinct outputs.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// assert_eq!(LinearLayout::zeros(Dim::Lane, Dim::Axis(0), 8)?.rank(), 0);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn rank(&self) -> u32 {
        self.matrix.rank()
    }

    /// Whether no two inputs have the same output.
    ///
    /// ```
    /// use tile_layout::linear::LinearLayout;
    /// assert!(LinearLayout::from_modes(&[(4, 2)])?.is_injective());
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn is_injective(&self) -> bool {
        self.rank() == total_bits(&self.inputs)
    }

    /// Whether every output is reached.
    ///
    /// ```
    /// use tile_layout::linear::LinearLayout;
    /// assert!(!LinearLayout::from_modes(&[(4, 2)])?.is_surjective());
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn is_surjective(&self) -> bool {
        self.rank() == total_bits(&self.outputs)
    }

    /// Whether every output is reached exactly once.
    ///
    /// ```
    /// use tile_layout::linear::LinearLayout;
    /// assert!(LinearLayout::from_swizzle("Sw<2,0,2>".parse()?, 4)?.is_permutation());
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn is_permutation(&self) -> bool {
        self.is_injective() && self.is_surjective()
    }

    /// A mask of the bits of an input dimension that choose nothing new: their column is a xor of columns of
    /// lower bits and earlier dimensions. Only the holders with zero in all free bits need store or be counted.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::new(&[(Dim::Lane, &[[1], [0], [2], [3]])], [(Dim::Axis(0), 4)])?;
    /// assert_eq!(layout.free_mask(Dim::Lane), 0b1010);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn free_mask(&self, dim: Dim) -> u64 {
        field(&self.inputs, dim, self.matrix.free_columns())
    }
}

/// The flat index with the indices of `from` at the places that `to` gives them; `to` has room for them.
pub(in crate::linear) fn reorder(flat: u64, from: &[Group], to: &[Group]) -> u64 {
    let mut start = 0;
    let mut moved = 0;
    for group in to {
        moved |= field(from, group.dim, flat) << start;
        start += group.bits;
    }
    moved
}

/// The groups of a product: bits of a dimension that both have add up.
fn stack(low: &[Group], high: &[Group]) -> Vec<Group> {
    let mut groups = low.to_vec();
    for group in high {
        match groups.iter_mut().find(|known| known.dim == group.dim) {
            Some(known) => known.bits += group.bits,
            None => groups.push(*group),
        }
    }
    groups
}

/// The groups that `stack(low, _)` makes into `whole`; `None` where `low` has more than the whole.
fn unstack(whole: &[Group], low: &[Group]) -> Option<Vec<Group>> {
    if low.iter().any(|group| locate(whole, group.dim).is_none()) {
        return None;
    }
    whole
        .iter()
        .map(|group| {
            let below = locate(low, group.dim).map_or(0, |(_, bits)| bits);
            Some(Group { dim: group.dim, bits: group.bits.checked_sub(below)? })
        })
        .collect()
}
