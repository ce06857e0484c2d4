//! Windows over a margin: tensors of which several axes say together which index of an axis beneath an element has.
//!
//! After `pad`, `unfold` asks of two axes that `i·step + tap` lies in a range, and no range of either says so. Such a tensor
//! is no view, whose axes have ranges of their own. But each axis of the tensor beneath has a layout, in which a position
//! is an index along that axis: every movement is one of these layouts, as it is of a view's. The elements are gathered
//! at the indices, and where one isn't an index of the tensor beneath, there is no element.

use super::{Requirement, Strided, TensorMovement};
use crate::dim::Dim;
use crate::ops::TypeError;
use crate::types::TensorType;

/// A tensor that is gathered from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// For each axis of the tensor beneath a tensor of these extents whose positions are indices along it.
    axes: Vec<TensorType>,
}

impl Windows {
    /// Whether a movement of a tensor makes windows over a margin of it.
    pub fn are_made_by(movement: &TensorMovement, tensor: &TensorType) -> bool {
        let TensorMovement::Unfold { axis, .. } = *movement else { return false };
        let ranges = tensor.layout.as_ref().and_then(|layout| layout.windows.get(axis));
        !tensor.mutable && ranges.is_some_and(|ranges| !ranges.is_empty())
    }

    /// A tensor as it is, in terms of itself.
    pub fn of(tensor: &TensorType) -> Windows {
        let rank = tensor.extents.len();
        let along = |axis: usize| {
            let mut layout = Strided::row_major(&tensor.extents);
            layout.strides = (0..rank).map(|other| Dim::from(i64::from(other == axis))).collect();
            TensorType { layout: Some(Box::new(layout)), ..tensor.clone() }
        };
        Windows { axes: (0..rank).map(along).collect() }
    }

    /// The extents.
    pub fn extents(&self) -> &[Dim] {
        self.axes.first().map_or(&[], |axis| &axis.extents)
    }

    /// For each axis of the tensor beneath, where the index along it lies.
    pub fn indices(&self) -> impl Iterator<Item = Strided> {
        self.axes.iter().map(TensorType::strided)
    }

    /// For each axis of the tensor beneath a tensor whose positions are indices along it.
    pub fn axes(&self) -> &[TensorType] {
        &self.axes
    }

    /// The windows moved, and what must hold for it.
    ///
    /// # Errors
    /// [`TypeError`] where the movement doesn't fit, or would make a margin of windows.
    pub fn moved(&self, movement: &TensorMovement) -> Result<(Windows, Vec<Requirement>), TypeError> {
        if let TensorMovement::Pad(_) | TensorMovement::Shift { .. } | TensorMovement::Select { .. } =
            movement
        {
            let message = format!("`{}` of windows over a margin isn't one tensor", movement.kind());
            let help = format!("`{}` first, and unfold what it gives", movement.kind());
            return Err(TypeError::new(message).help(help));
        }
        let (mut axes, mut requires) = (Vec::new(), Vec::new());
        for axis in &self.axes {
            let (moved, asked) = movement.apply(axis)?;
            axes.push(moved);
            // It is asked of extents, which all have.
            requires = asked;
        }
        Ok((Windows { axes }, requires))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::view::Placement;

    #[test]
    fn windows_say_the_indices_of_what_is_beneath() {
        let tensor = TensorType::dense(vec![Dim::from(3), Dim::size("n")], DType::F32, false);
        let pad = TensorMovement::Pad(vec![(Dim::from(0), Dim::from(0)), (Dim::from(1), Dim::from(1))]);
        let unfold = TensorMovement::Unfold { axis: 1, size: Dim::from(3), step: Dim::from(2) };
        assert!(!Windows::are_made_by(&unfold, &tensor));
        let (padded, _) = pad.apply(&tensor).unwrap();
        assert!(Windows::are_made_by(&unfold, &padded));
        let (unfolded, requires) = Windows::of(&padded).moved(&unfold).unwrap();
        assert_eq!(
            requires[0].message("x"),
            "`unfold` of axis 1 of x: windows of 3 elements don't fit, it has n + 2"
        );
        let (flipped, _) = unfolded.moved(&TensorMovement::Flip(vec![2])).unwrap();
        let (turned, _) = flipped.moved(&TensorMovement::Permute(vec![2, 0, 1])).unwrap();
        let along = |axis: usize| Placement::of(&turned.axes()[axis], &|_| Some(4)).unwrap();
        assert_eq!((along(0).extents, along(0).strides, along(0).offset), (vec![3, 3, 2], vec![0, 1, 0], 0));
        assert_eq!((along(1).strides, along(1).offset), (vec![-1, 0, 2], 2));
        let message = turned.moved(&pad).unwrap_err().message;
        assert_eq!(message, "`pad` of windows over a margin isn't one tensor");
    }
}
