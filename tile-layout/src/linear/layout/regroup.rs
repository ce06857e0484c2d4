//! Decides how the groups of a side are renamed, split, joined, ordered and dropped. Knows nothing of what the
//! dimensions mean. Invariant: the flat function stays the same, except where an order changes or groups are
//! dropped.

use alloc::vec::Vec;

use super::algebra::reorder;
use super::{Group, LinearLayout, locate, total_bits};
use crate::linear::{BitMatrix, Dim, LinearError};

impl LinearLayout {
    /// The layout seen only from some inputs (the others held at 0) and some outputs (the others ignored), in the
    /// orders given.
    ///
    /// # Errors
    /// [`LinearError::UnknownDim`], [`LinearError::DuplicateDim`].
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::new(
    ///     &[(Dim::Register, &[[0, 1]]), (Dim::Lane, &[[0, 2], [1, 0]])],
    ///     [(Dim::Axis(0), 2), (Dim::Axis(1), 4)],
    /// )?;
    /// let columns = layout.sublayout(&[Dim::Lane], &[Dim::Axis(1)])?;
    /// assert_eq!(columns.matrix().columns(), [2, 0]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn sublayout(&self, inputs: &[Dim], outputs: &[Dim]) -> Result<LinearLayout, LinearError> {
        let (inputs, outputs) = (select(&self.inputs, inputs)?, select(&self.outputs, outputs)?);
        let columns: Vec<u64> = inputs
            .iter()
            .flat_map(|group| self.columns(group.dim))
            .map(|&column| reorder(column, &self.outputs, &outputs))
            .collect();
        let matrix = BitMatrix::new(total_bits(&outputs), &columns)?;
        LinearLayout::from_matrix(&inputs, &outputs, matrix)
    }

    /// The same map with its input dimensions in another order.
    ///
    /// # Errors
    /// [`LinearError::UnknownDim`], [`LinearError::MissingDim`] and [`LinearError::DuplicateDim`] where `order` doesn't name
    /// each of them once.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::from_modes(&[(2, 1), (2, 4)])?;
    /// let columns = layout.transpose_inputs(&[Dim::Axis(1), Dim::Axis(0)])?;
    /// assert_eq!(columns.matrix().columns(), [4, 1]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn transpose_inputs(&self, order: &[Dim]) -> Result<LinearLayout, LinearError> {
        check_complete(&self.inputs, order)?;
        self.sublayout(order, &dims(&self.outputs))
    }

    /// The same map with its output dimensions in another order.
    ///
    /// # Errors
    /// [`LinearError::UnknownDim`], [`LinearError::MissingDim`] and [`LinearError::DuplicateDim`] where `order` doesn't name
    /// each of them once.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::new(&[(Dim::Lane, &[[0, 1]])], [(Dim::Axis(0), 2), (Dim::Axis(1), 2)])?;
    /// let swapped = layout.transpose_outputs(&[Dim::Axis(1), Dim::Axis(0)])?;
    /// assert_eq!(swapped.matrix().columns(), [1]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn transpose_outputs(&self, order: &[Dim]) -> Result<LinearLayout, LinearError> {
        check_complete(&self.outputs, order)?;
        self.sublayout(&dims(&self.inputs), order)
    }

    /// The same flat function with its input bits cut into other dimensions, the lowest bits first.
    ///
    /// # Errors
    /// [`LinearError::NotPowerOfTwo`], [`LinearError::BitCountMismatch`], [`LinearError::DuplicateDim`].
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::from_modes(&[(64, 1)])?;
    /// let split = layout.reshape_inputs(&[(Dim::Register, 2), (Dim::Lane, 32)])?;
    /// assert_eq!(split.columns(Dim::Lane), [2, 4, 8, 16, 32]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn reshape_inputs(&self, extents: &[(Dim, u64)]) -> Result<LinearLayout, LinearError> {
        LinearLayout::from_matrix(&sized(extents)?, &self.outputs, self.matrix.clone())
    }

    /// The same flat function with its output bits cut into other dimensions, the lowest bits first.
    ///
    /// # Errors
    /// [`LinearError::NotPowerOfTwo`], [`LinearError::BitCountMismatch`], [`LinearError::DuplicateDim`].
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::identity(Dim::Lane, Dim::Offset, 32)?;
    /// let tile = layout.reshape_outputs(&[(Dim::Axis(1), 4), (Dim::Axis(0), 8)])?;
    /// assert_eq!(tile.apply(&[(Dim::Lane, 9)])?, [(Dim::Axis(1), 1), (Dim::Axis(0), 2)]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn reshape_outputs(&self, extents: &[(Dim, u64)]) -> Result<LinearLayout, LinearError> {
        LinearLayout::from_matrix(&self.inputs, &sized(extents)?, self.matrix.clone())
    }

    /// The same flat function with all input bits in one dimension.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::from_modes(&[(2, 1), (2, 4)])?.flatten_inputs(Dim::Lane);
    /// assert_eq!(layout.columns(Dim::Lane), [1, 4]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    #[must_use]
    pub fn flatten_inputs(&self, dim: Dim) -> LinearLayout {
        let inputs = Vec::from([Group { dim, bits: total_bits(&self.inputs) }]);
        LinearLayout { inputs, outputs: self.outputs.clone(), matrix: self.matrix.clone() }
    }

    /// The same flat function with all output bits in one dimension.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::new(&[(Dim::Lane, &[[0, 1]])], [(Dim::Axis(0), 2), (Dim::Axis(1), 2)])?;
    /// assert_eq!(layout.flatten_outputs(Dim::Offset).apply(&[(Dim::Lane, 1)])?, [(Dim::Offset, 2)]);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    #[must_use]
    pub fn flatten_outputs(&self, dim: Dim) -> LinearLayout {
        let outputs = Vec::from([Group { dim, bits: total_bits(&self.outputs) }]);
        LinearLayout { inputs: self.inputs.clone(), outputs, matrix: self.matrix.clone() }
    }

    /// The layout with an input dimension under another name.
    ///
    /// # Errors
    /// [`LinearError::UnknownDim`], [`LinearError::DuplicateDim`] where the new name is taken.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::from_modes(&[(32, 1)])?.rename_input(Dim::Axis(0), Dim::Lane)?;
    /// assert_eq!(layout.input_bits(Dim::Lane), 5);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn rename_input(&self, from: Dim, to: Dim) -> Result<LinearLayout, LinearError> {
        LinearLayout::from_matrix(&renamed(&self.inputs, from, to)?, &self.outputs, self.matrix.clone())
    }

    /// The layout with an output dimension under another name.
    ///
    /// # Errors
    /// [`LinearError::UnknownDim`], [`LinearError::DuplicateDim`] where the new name is taken.
    ///
    /// ```
    /// use tile_layout::linear::{Dim, LinearLayout};
    /// let layout = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 8)?;
    /// assert_eq!(layout.rename_output(Dim::Axis(0), Dim::Axis(1))?.output_bits(Dim::Axis(1)), 3);
    /// # Ok::<(), tile_layout::linear::LinearError>(())
    /// ```
    pub fn rename_output(&self, from: Dim, to: Dim) -> Result<LinearLayout, LinearError> {
        LinearLayout::from_matrix(&self.inputs, &renamed(&self.outputs, from, to)?, self.matrix.clone())
    }
}

fn dims(groups: &[Group]) -> Vec<Dim> {
    groups.iter().map(|group| group.dim).collect()
}

fn select(groups: &[Group], dims: &[Dim]) -> Result<Vec<Group>, LinearError> {
    let selected = dims
        .iter()
        .map(|&dim| {
            let (_, bits) = locate(groups, dim).ok_or(LinearError::UnknownDim { dim })?;
            Ok::<_, LinearError>(Group { dim, bits })
        })
        .collect::<Result<Vec<_>, _>>()?;
    super::check_groups(&selected)?;
    Ok(selected)
}

fn check_complete(groups: &[Group], order: &[Dim]) -> Result<(), LinearError> {
    match groups.iter().find(|group| !order.contains(&group.dim)) {
        Some(group) => Err(LinearError::MissingDim { dim: group.dim }),
        None => Ok(()),
    }
}

fn sized(extents: &[(Dim, u64)]) -> Result<Vec<Group>, LinearError> {
    extents.iter().map(|&(dim, extent)| Group::sized(dim, extent)).collect()
}

fn renamed(groups: &[Group], from: Dim, to: Dim) -> Result<Vec<Group>, LinearError> {
    if locate(groups, from).is_none() {
        return Err(LinearError::UnknownDim { dim: from });
    }
    let name = |group: &Group| if group.dim == from { to } else { group.dim };
    Ok(groups.iter().map(|group| Group { dim: name(group), bits: group.bits }).collect())
}
