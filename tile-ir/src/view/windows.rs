//! Windows over a margin: tensors of which several axes say together which index of an axis beneath an element has.
//!
//! After `pad`, `unfold` asks of two axes that `i·step + tap` lies in a range, and no range of either says so. Such a tensor
//! is no view, whose axes have ranges of their own. But each axis of the tensor beneath has a layout, in which a position
//! is an index along that axis: every movement is one of these layouts, as it is of a view's. The elements are gathered
//! at the indices, and where one isn't an index of the tensor beneath, there is no element.

use super::{Placement, Requirement, Strided, TensorMovement};
use crate::dim::{Dim, DimError};
use crate::ops::TypeError;
use crate::types::TensorType;

/// A tensor that is gathered from another.
///
/// Its layouts have axes in front that it hasn't: those that were selected at an index. The index along such an axis is
/// the selected one for every element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// For each axis of the tensor beneath a tensor of these extents whose positions are indices along it.
    axes: Vec<TensorType>,
    /// What else must hold of an index that has an element, where windows were given a margin themselves.
    ranges: Vec<Range>,
    /// How many axes in front were selected.
    selected: usize,
}

/// Positions that lie between two numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    position: TensorType,
    /// The first.
    pub begin: Dim,
    /// The first behind them.
    pub end: Dim,
}

impl Range {
    /// The position of an index.
    pub fn position(&self) -> Strided {
        self.position.strided()
    }
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
        let axes = (0..tensor.extents.len()).map(|axis| along(tensor, axis)).collect();
        Windows { axes, ranges: Vec::new(), selected: 0 }
    }

    /// The extents.
    pub fn extents(&self) -> &[Dim] {
        &self.all_extents()[self.selected..]
    }

    /// The extents of the axes that were selected, the last of them first.
    pub fn selected(&self) -> &[Dim] {
        &self.all_extents()[..self.selected]
    }

    fn all_extents(&self) -> &[Dim] {
        self.axes.first().map_or(&[], |axis| &axis.extents)
    }

    /// For each axis of the tensor beneath, where the index along it lies: its strides are of the selected axes, then of the
    /// others.
    pub fn indices(&self) -> impl Iterator<Item = Strided> {
        self.axes.iter().map(TensorType::strided)
    }

    /// What must hold besides of an index that has an element.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// The windows moved, and what must hold for it. An axis that is selected is the first of [`Self::selected`] then.
    ///
    /// # Errors
    /// [`TypeError`] where the movement doesn't fit.
    pub fn moved(&self, movement: &TensorMovement) -> Result<(Windows, Vec<Requirement>), TypeError> {
        // Of extents alone, so that a message counts the axes that there are.
        let shown = TensorType { extents: self.extents().to_vec(), layout: None, ..self.axes[0].clone() };
        let (_, requires) = movement.apply(&shown)?;
        let mut windows = self.clone();
        for step in self.steps(movement) {
            windows = windows.moved_whole(&step)?;
        }
        windows.selected += usize::from(matches!(movement, TensorMovement::Select { .. }));
        Ok((windows, requires))
    }

    /// A movement as movements of all axes, of which the selected ones stay in front.
    fn steps(&self, movement: &TensorMovement) -> Vec<TensorMovement> {
        let front = self.selected();
        match movement {
            TensorMovement::Select { axis } => {
                let mut order: Vec<usize> = (0..self.all_extents().len()).collect();
                let axis = order.remove(front.len() + axis);
                order.insert(0, axis);
                vec![TensorMovement::Permute(order)]
            }
            TensorMovement::Expand(extents) => {
                let added = extents.len() - self.extents().len();
                let expand = TensorMovement::Expand(front.iter().chain(extents).cloned().collect());
                let mut steps = vec![TensorMovement::Unsqueeze(front.len()); added];
                steps.push(expand);
                steps
            }
            _ => movement.behind(front).into_iter().collect(),
        }
    }

    /// All axes moved. A margin that they get is a range of a position, so that the next movement finds none.
    fn moved_whole(&self, movement: &TensorMovement) -> Result<Windows, TypeError> {
        let mut margins = Vec::new();
        let mut moved = |tensor: &TensorType| -> Result<TensorType, TypeError> {
            let (mut tensor, _) = movement.apply(tensor)?;
            if let Some(layout) = &mut tensor.layout {
                margins = layout.windows.iter_mut().map(std::mem::take).collect();
            }
            Ok(tensor)
        };
        let axes = self.axes.iter().map(&mut moved).collect::<Result<Vec<_>, _>>()?;
        let mut ranges = Vec::new();
        for range in &self.ranges {
            ranges.push(Range { position: moved(&range.position)?, ..range.clone() });
        }
        for (axis, margins) in margins.into_iter().enumerate() {
            let position = along(&axes[0], axis);
            ranges.extend(margins.into_iter().map(|(begin, end)| Range {
                position: position.clone(),
                begin,
                end,
            }));
        }
        Ok(Windows { axes, ranges, selected: self.selected })
    }

    /// The windows in numbers, for given sizes.
    ///
    /// # Errors
    /// [`DimError`] where an extent has no value.
    pub fn placed(
        &self,
        beneath: Placement,
        lookup: &dyn Fn(&str) -> Option<i64>,
    ) -> Result<PlacedWindows, DimError> {
        let axes = self.axes.iter().map(|axis| Placement::of(axis, lookup)).collect::<Result<_, _>>()?;
        let range = |range: &Range| {
            let (begin, end) = (range.begin.evaluate_signed(lookup)?, range.end.evaluate_signed(lookup)?);
            Ok((Placement::of(&range.position, lookup)?, begin, end))
        };
        let ranges = self.ranges.iter().map(range).collect::<Result<_, _>>()?;
        Ok(PlacedWindows { axes, ranges, beneath })
    }
}

/// A tensor of the extents of another whose positions are the indices along an axis.
fn along(tensor: &TensorType, axis: usize) -> TensorType {
    let mut layout = Strided::row_major(&tensor.extents);
    layout.strides = (0..tensor.extents.len()).map(|other| Dim::from(i64::from(other == axis))).collect();
    TensorType { layout: Some(Box::new(layout)), ..tensor.clone() }
}

/// Windows in numbers.
#[derive(Clone, Debug)]
pub struct PlacedWindows {
    axes: Vec<Placement>,
    ranges: Vec<(Placement, i64, i64)>,
    beneath: Placement,
}

impl PlacedWindows {
    /// The position of an index in the argument; `None` where it has no element. The indices at which axes were selected
    /// come first, the last of them first.
    pub fn position(&self, index: &[i64]) -> Option<usize> {
        let extents = self.axes.first().map_or(&[][..], |axis| &axis.extents);
        let along = |layout: &Placement| {
            let terms = index.iter().zip(&layout.strides).map(|(&at, &stride)| at.wrapping_mul(stride));
            terms.fold(layout.offset, i64::wrapping_add)
        };
        let is_inside = index.iter().zip(extents).all(|(&at, &extent)| 0 <= at && at < extent);
        let in_range = |(layout, begin, end): &(Placement, i64, i64)| (*begin..*end).contains(&along(layout));
        if !is_inside || !self.ranges.iter().all(in_range) {
            return None;
        }
        self.beneath.position(&self.axes.iter().map(along).collect::<Vec<_>>())
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
        let along = |axis: usize| Placement::of(&turned.axes[axis], &|_| Some(4)).unwrap();
        assert_eq!((along(0).extents, along(0).strides, along(0).offset), (vec![3, 3, 2], vec![0, 1, 0], 0));
        assert_eq!((along(1).strides, along(1).offset), (vec![-1, 0, 2], 2));
    }

    #[test]
    fn windows_have_margins_and_are_selected() {
        let tensor = TensorType::dense(vec![Dim::size("n")], DType::F32, false);
        let pad = |axes: &[i64]| {
            TensorMovement::Pad(axes.iter().map(|&by| (Dim::from(by), Dim::from(by))).collect())
        };
        let unfold = |axis| TensorMovement::Unfold { axis, size: Dim::from(3), step: Dim::from(1) };
        let (padded, _) = pad(&[1]).apply(&tensor).unwrap();
        let chain = [
            unfold(0),
            pad(&[2, 0]),
            unfold(0),
            TensorMovement::Select { axis: 1 },
            TensorMovement::Expand(vec![Dim::from(2), Dim::size("n") + Dim::from(2), Dim::from(3)]),
            TensorMovement::Permute(vec![2, 1, 0]),
        ];
        let windows =
            chain.iter().fold(Windows::of(&padded), |windows, movement| windows.moved(movement).unwrap().0);
        assert_eq!((windows.selected().len(), windows.extents().len()), (1, 3));
        let sizes = |_: &str| Some(4);
        let placed = windows.placed(Placement::of(&padded, &sizes).unwrap(), &sizes).unwrap();
        // What was padded has 6 elements and 4 windows, which have 8 places with their margin, of which 6 windows of 3.
        for (tap, outer, inner) in
            (0..3).flat_map(|a| (0..6).flat_map(move |b| (0..3).map(move |c| (a, b, c))))
        {
            let window = outer + inner - 2;
            let element = window + tap - 1;
            let exists = (0..4).contains(&window) && (0..4).contains(&element);
            assert_eq!(placed.position(&[tap, inner, outer, 1]), exists.then_some(element as usize));
        }
        assert_eq!(placed.position(&[0, 3, 2, 0]), None);
        let refused = windows.moved(&TensorMovement::Flip(vec![3])).unwrap_err().message;
        assert_eq!(refused, "axis 3 of `flip` is out of range: the tensor [3, n + 2, 2] has rank 3");
    }
}
