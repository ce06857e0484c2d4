//! Decides what a linear layout is: named groups of input bits, named groups of output bits, and a matrix
//! between them. Knows nothing of instructions, memory banks or integer strides. Invariants: each side has at
//! most 63 bits; a dimension appears at most once on a side; the first group of a side holds its lowest bits.

mod algebra;
mod display;
mod integer;
mod modes;
mod regroup;

use core::fmt;

use alloc::vec::Vec;

pub(super) use algebra::reorder;

use super::matrix::low_bits;
use super::{BitMatrix, LinearError};

/// The most bits on one side of a [`LinearLayout`]; one fewer than 64, so that every extent fits a `u64`.
///
/// ```
/// use tile_layout::linear::{Dim, LinearLayout, MAX_LAYOUT_BITS};
/// assert!(LinearLayout::identity(Dim::Lane, Dim::Axis(0), 1 << MAX_LAYOUT_BITS).is_ok());
/// ```
pub const MAX_LAYOUT_BITS: u32 = 63;

/// What a group of bits means.
///
/// The hardware dimensions come from the inside out: a register of a lane, a lane of a warp, a warp of a block,
/// a block of a grid. A type of a few values, not a string: misspelled names don't compile and comparing is free.
///
/// ```
/// use tile_layout::linear::Dim;
/// assert_eq!((Dim::Lane.to_string(), Dim::Axis(1).to_string()), ("lane".to_owned(), "axis1".to_owned()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dim {
    /// An element held by one lane, counted in elements (not in 32-bit registers).
    Register,
    /// A lane of a warp or wavefront.
    Lane,
    /// A warp of a block.
    Warp,
    /// A block of a grid or cluster.
    Block,
    /// A position in memory, in elements.
    Offset,
    /// An axis of a tile; 0 is the row.
    Axis(u8),
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Register => f.pad("register"),
            Dim::Lane => f.pad("lane"),
            Dim::Warp => f.pad("warp"),
            Dim::Block => f.pad("block"),
            Dim::Offset => f.pad("offset"),
            Dim::Axis(axis) => write!(f, "axis{axis}"),
        }
    }
}

/// A dimension and its number of bits.
///
/// ```
/// use tile_layout::linear::{Dim, Group};
/// assert_eq!(Group { dim: Dim::Lane, bits: 5 }.extent(), 32);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// The dimension.
    pub dim: Dim,
    /// Its bits; at most 63 in a layout.
    pub bits: u32,
}

impl Group {
    /// Two to the number of bits: the number of indices. Saturates for the 64 bits that no layout has.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, Group};
    /// assert_eq!(Group { dim: Dim::Warp, bits: 0 }.extent(), 1);
    /// ```
    pub const fn extent(&self) -> u64 {
        if self.bits >= u64::BITS { u64::MAX } else { 1 << self.bits }
    }

    fn sized(dim: Dim, extent: u64) -> Result<Group, LinearError> {
        if !extent.is_power_of_two() {
            return Err(LinearError::NotPowerOfTwo { what: "an extent", value: extent });
        }
        Ok(Group { dim, bits: extent.trailing_zeros() })
    }
}

/// A map from named input bits to named output bits that is linear over GF(2): `f(x ^ y) = f(x) ^ f(y)`.
///
/// ```
/// use tile_layout::linear::{Dim, LinearLayout};
/// // Four lanes hold two neighbouring columns each of a 2 x 4 tile.
/// let layout = LinearLayout::new(
///     &[(Dim::Register, &[[0, 1]]), (Dim::Lane, &[[0, 2], [1, 0]])],
///     [(Dim::Axis(0), 2), (Dim::Axis(1), 4)],
/// )?;
/// let at = layout.apply(&[(Dim::Register, 1), (Dim::Lane, 3)])?;
/// assert_eq!(at, [(Dim::Axis(0), 1), (Dim::Axis(1), 3)]);
/// assert!(layout.is_permutation());
/// # Ok::<(), tile_layout::linear::LinearError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LinearLayout {
    inputs: Vec<Group>,
    outputs: Vec<Group>,
    matrix: BitMatrix,
}

impl LinearLayout {
    /// A layout from the images of the input bits: per input dimension, one coordinate vector a bit, lowest bit
    /// first; per output dimension, its extent. A vector of zeros is a broadcast bit.
    ///
    /// # Errors
    /// [`LinearError::NotPowerOfTwo`] for an extent, [`LinearError::IndexOutOfRange`] for a coordinate outside
    /// its extent, [`LinearError::DuplicateDim`], [`LinearError::TooManyBits`].
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::new(&[(Dim::Lane, &[[2], [1]])], [(Dim::Axis(0), 4)])?;
    /// assert_eq!(layout.apply_flat(1)?, 2);
    /// assert!(LinearLayout::new(&[(Dim::Lane, &[[4]])], [(Dim::Axis(0), 4)]).is_err());
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn new<const RANK: usize>(
        inputs: &[(Dim, &[[u64; RANK]])],
        outputs: [(Dim, u64); RANK],
    ) -> Result<LinearLayout, LinearError> {
        let outputs =
            outputs.iter().map(|&(dim, extent)| Group::sized(dim, extent)).collect::<Result<Vec<_>, _>>()?;
        check_groups(&outputs)?;
        let mut groups = Vec::with_capacity(inputs.len());
        let mut columns = Vec::new();
        for &(dim, bases) in inputs {
            groups.push(Group { dim, bits: u32::try_from(bases.len()).unwrap_or(u32::MAX) });
            for base in bases {
                columns.push(pack(&outputs, base)?);
            }
        }
        check_groups(&groups)?;
        let matrix = BitMatrix::new(total_bits(&outputs), &columns)?;
        Ok(LinearLayout { inputs: groups, outputs, matrix })
    }

    /// A layout from groups and the matrix between their flat indices.
    ///
    /// # Errors
    /// [`LinearError::BitCountMismatch`] where the groups don't have the matrix's size,
    /// [`LinearError::DuplicateDim`], [`LinearError::TooManyBits`].
    ///
    /// ```
    /// use tile_layout::linear::{BitMatrix, Dim, Group, LinearLayout};
    /// let side = [Group { dim: Dim::Offset, bits: 2 }];
    /// let layout = LinearLayout::from_matrix(&side, &side, BitMatrix::new(2, &[1, 3])?)?;
    /// assert_eq!(layout.apply_flat(2)?, 3);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn from_matrix(
        inputs: &[Group],
        outputs: &[Group],
        matrix: BitMatrix,
    ) -> Result<LinearLayout, LinearError> {
        for (groups, found) in [(inputs, matrix.columns().len() as u32), (outputs, matrix.rows())] {
            check_groups(groups)?;
            let requested = total_bits(groups);
            if requested != found {
                return Err(LinearError::BitCountMismatch { found, requested });
            }
        }
        Ok(LinearLayout { inputs: inputs.to_vec(), outputs: outputs.to_vec(), matrix })
    }

    /// The layout that takes index `i` of `input`, below `extent`, to index `i` of `output`.
    ///
    /// # Errors
    /// [`LinearError::NotPowerOfTwo`].
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 32)?;
    /// assert_eq!(layout.apply_flat(17)?, 17);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn identity(input: Dim, output: Dim, extent: u64) -> Result<LinearLayout, LinearError> {
        let bits = Group::sized(input, extent)?.bits;
        let (input, output) = (Group { dim: input, bits }, Group { dim: output, bits });
        LinearLayout::from_matrix(&[input], &[output], BitMatrix::identity(bits)?)
    }

    /// The layout that takes every index of `input`, below `extent`, to index 0 of `output`, of extent 1: a
    /// broadcast.
    ///
    /// # Errors
    /// [`LinearError::NotPowerOfTwo`].
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::zeros(Dim::Warp, Dim::Axis(0), 4)?;
    /// assert_eq!(layout.apply_flat(3)?, 0);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn zeros(input: Dim, output: Dim, extent: u64) -> Result<LinearLayout, LinearError> {
        let input = Group::sized(input, extent)?;
        let matrix = BitMatrix::zeros(0, u64::from(input.bits))?;
        LinearLayout::from_matrix(&[input], &[Group { dim: output, bits: 0 }], matrix)
    }

    /// The input dimensions, the lowest bits first.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, Group, LinearLayout};
    /// let layout = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 32)?;
    /// assert_eq!(layout.inputs(), [Group { dim: Dim::Lane, bits: 5 }]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn inputs(&self) -> &[Group] {
        &self.inputs
    }

    /// The output dimensions, the lowest bits first.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, Group, LinearLayout};
    /// let layout = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 32)?;
    /// assert_eq!(layout.outputs(), [Group { dim: Dim::Axis(0), bits: 5 }]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn outputs(&self) -> &[Group] {
        &self.outputs
    }

    /// The matrix from flat input index to flat output index.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 4)?;
    /// assert_eq!(layout.matrix().columns(), [1, 2]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn matrix(&self) -> &BitMatrix {
        &self.matrix
    }

    /// The bits of an input dimension; 0 where the layout doesn't have it.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 4)?;
    /// assert_eq!((layout.input_bits(Dim::Lane), layout.input_bits(Dim::Warp)), (2, 0));
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn input_bits(&self, dim: Dim) -> u32 {
        locate(&self.inputs, dim).map_or(0, |(_, bits)| bits)
    }

    /// The bits of an output dimension; 0 where the layout doesn't have it.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 4)?;
    /// assert_eq!(layout.output_bits(Dim::Axis(0)), 2);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn output_bits(&self, dim: Dim) -> u32 {
        locate(&self.outputs, dim).map_or(0, |(_, bits)| bits)
    }

    /// The flat outputs of an input dimension's bits, lowest bit first; empty where the layout doesn't have it.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 4)?;
    /// assert_eq!(layout.columns(Dim::Lane), [1, 2]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn columns(&self, dim: Dim) -> &[u64] {
        let (start, bits) = locate(&self.inputs, dim).unwrap_or((0, 0));
        &self.matrix.columns()[start as usize..(start + bits) as usize]
    }

    /// The output coordinates of named input indices. Input dimensions that aren't named are held at 0.
    ///
    /// # Errors
    /// [`LinearError::UnknownDim`], [`LinearError::DuplicateDim`], [`LinearError::IndexOutOfRange`].
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 4)?;
    /// assert_eq!(layout.apply(&[(Dim::Lane, 3)])?, [(Dim::Axis(0), 3)]);
    /// assert!(layout.apply(&[(Dim::Lane, 4)]).is_err());
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn apply(&self, indices: &[(Dim, u64)]) -> Result<Vec<(Dim, u64)>, LinearError> {
        let flat = self.matrix.apply(self.flat_input(indices)?);
        Ok(self.outputs.iter().map(|group| (group.dim, field(&self.outputs, group.dim, flat))).collect())
    }

    /// The flat output of a flat input. The first dimension of a side holds the lowest bits.
    ///
    /// # Errors
    /// [`LinearError::FlatIndexOutOfRange`].
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 4)?;
    /// assert_eq!(layout.apply_flat(3)?, 3);
    /// assert!(layout.apply_flat(4).is_err());
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn apply_flat(&self, index: u64) -> Result<u64, LinearError> {
        let bits = total_bits(&self.inputs);
        if index & !low_bits(bits) != 0 {
            return Err(LinearError::FlatIndexOutOfRange { index, bits });
        }
        Ok(self.matrix.apply(index))
    }

    /// The flat input of named input indices; dimensions that aren't named are 0.
    ///
    /// # Errors
    /// [`LinearError::UnknownDim`], [`LinearError::DuplicateDim`], [`LinearError::IndexOutOfRange`].
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::from_modes(&[(4, 1), (2, 8)])?;
    /// assert_eq!(layout.flat_input(&[(Dim::Axis(1), 1), (Dim::Axis(0), 3)])?, 7);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn flat_input(&self, indices: &[(Dim, u64)]) -> Result<u64, LinearError> {
        let mut flat = 0;
        for (position, &(dim, index)) in indices.iter().enumerate() {
            let (start, bits) = locate(&self.inputs, dim).ok_or(LinearError::UnknownDim { dim })?;
            if indices[..position].iter().any(|&(earlier, _)| earlier == dim) {
                return Err(LinearError::DuplicateDim { dim });
            }
            if index & !low_bits(bits) != 0 {
                return Err(LinearError::IndexOutOfRange { dim, index, extent: 1 << bits });
            }
            flat |= index << start;
        }
        Ok(flat)
    }

    /// The coordinate of one output dimension in a flat output; 0 where the layout doesn't have it.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::from_modes(&[(4, 2), (2, 1)])?.invert()?;
    /// assert_eq!(layout.output_coordinate(0b110, Dim::Axis(1)), 1);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn output_coordinate(&self, flat: u64, dim: Dim) -> u64 {
        field(&self.outputs, dim, flat)
    }
}

/// The bits of all groups together.
fn total_bits(groups: &[Group]) -> u32 {
    groups.iter().map(|group| group.bits).sum()
}

/// Where a dimension's bits start, and how many there are.
fn locate(groups: &[Group], dim: Dim) -> Option<(u32, u32)> {
    let mut start = 0;
    for group in groups {
        if group.dim == dim {
            return Some((start, group.bits));
        }
        start += group.bits;
    }
    None
}

/// One dimension's index in a flat index.
pub(super) fn field(groups: &[Group], dim: Dim, flat: u64) -> u64 {
    locate(groups, dim).map_or(0, |(start, bits)| flat >> start & low_bits(bits))
}

/// The flat index of one coordinate a group.
pub(super) fn pack(groups: &[Group], coordinates: &[u64]) -> Result<u64, LinearError> {
    let (mut flat, mut start) = (0, 0);
    for (group, &index) in groups.iter().zip(coordinates) {
        if index >= group.extent() {
            return Err(LinearError::IndexOutOfRange { dim: group.dim, index, extent: group.extent() });
        }
        // A group without bits has only index 0, so a start past the last bit shifts nothing.
        flat |= index << start;
        start += group.bits;
    }
    Ok(flat)
}

pub(super) fn check_groups(groups: &[Group]) -> Result<(), LinearError> {
    let bits = groups.iter().map(|group| u64::from(group.bits)).sum();
    if bits > u64::from(MAX_LAYOUT_BITS) {
        return Err(LinearError::TooManyBits { bits, limit: MAX_LAYOUT_BITS });
    }
    for (position, group) in groups.iter().enumerate() {
        if groups[..position].iter().any(|earlier| earlier.dim == group.dim) {
            return Err(LinearError::DuplicateDim { dim: group.dim });
        }
    }
    Ok(())
}
