//! Views of tensors: where the elements of a moved tensor lie, and which of its indices have an element.
//!
//! A view moves no value. It is extents (in [`TensorType`]), a stride per axis, an offset, and per axis the
//! windows of indices that exist, all in units of elements of the argument. A tensor without a [`Strided`] is
//! dense and row-major. Every element that exists lies inside its argument: that is what [`movement`] keeps.

#[cfg(test)]
mod against_arrays;
pub mod argument;
pub mod movement;
pub mod requirement;
pub mod windows;

pub use argument::{ArgumentLayout, GivenTensor};
pub use movement::TensorMovement;
pub use requirement::Requirement;
pub use windows::{PlacedWindows, Windows};

use crate::dim::{Dim, DimError};
use crate::kernel::{Kernel, OpData, ValueId};
use crate::ops::Op;
use crate::types::{Shape, TensorType, Type};
use std::fmt;

/// Where the elements of a tensor lie that isn't dense.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Strided {
    /// Elements from one index to the next, per axis; 0 repeats, negative runs backwards.
    pub strides: Vec<Dim>,
    /// The position of index `[0, 0, …]`, which may itself not exist.
    pub offset: Dim,
    /// Per axis, ranges `(begin, end)` that an index must lie in, besides `0..extent`, to have an element.
    pub windows: Vec<Vec<(Dim, Dim)>>,
}

impl Strided {
    /// Row-major strides of these extents.
    pub fn row_major(extents: &[Dim]) -> Strided {
        let mut strides = vec![Dim::from(1); extents.len()];
        for axis in (1..extents.len()).rev() {
            strides[axis - 1] = strides[axis].clone() * extents[axis].clone();
        }
        Strided { strides, offset: Dim::from(0), windows: vec![Vec::new(); extents.len()] }
    }

    /// Every extent of the layout through a function.
    pub fn map(&self, f: &dyn Fn(&Dim) -> Dim) -> Strided {
        let window = |(begin, end): &(Dim, Dim)| (f(begin), f(end));
        Strided {
            strides: self.strides.iter().map(f).collect(),
            offset: f(&self.offset),
            windows: self.windows.iter().map(|axis| axis.iter().map(window).collect()).collect(),
        }
    }

    /// Every extent of the layout.
    pub fn dims(&self) -> impl Iterator<Item = &Dim> {
        let windows = self.windows.iter().flatten().flat_map(|(begin, end)| [begin, end]);
        self.strides.iter().chain(std::iter::once(&self.offset)).chain(windows)
    }
}

impl fmt::Display for Strided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("strided ")?;
        Shape(&self.strides).fmt(f)?;
        if self.offset != Dim::from(0) {
            f.write_str(" offset ")?;
            self.offset.fmt(f)?;
        }
        if self.windows.iter().all(Vec::is_empty) {
            return Ok(());
        }
        let alternate = f.alternate();
        let axis = |windows: &Vec<(Dim, Dim)>| {
            let range = |(begin, end): &(Dim, Dim)| match alternate {
                true => format!("({begin:#}, {end:#})"),
                false => format!("({begin}, {end})"),
            };
            let ranges = windows.iter().map(range);
            format!("[{}]", ranges.collect::<Vec<_>>().join(", "))
        };
        write!(f, " within [{}]", self.windows.iter().map(axis).collect::<Vec<_>>().join(", "))
    }
}

/// A tensor's layout in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Extents.
    pub extents: Vec<i64>,
    /// Elements from one index to the next.
    pub strides: Vec<i64>,
    /// The position of index `[0, 0, …]`.
    pub offset: i64,
    /// Per axis, the indices that exist: `begin..end` within `0..extent`.
    pub windows: Vec<(i64, i64)>,
}

impl Placement {
    /// The layout of a tensor for given sizes.
    ///
    /// # Errors
    /// [`DimError`] where an extent has no value.
    pub fn of(tensor: &TensorType, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<Placement, DimError> {
        let strided = tensor.strided();
        let number = |dim: &Dim| dim.evaluate_signed(lookup);
        let extents = tensor.extents.iter().map(number).collect::<Result<Vec<_>, _>>()?;
        let mut windows = Vec::new();
        for (&extent, ranges) in extents.iter().zip(&strided.windows) {
            let mut window = (0, extent);
            for (begin, end) in ranges {
                window = (window.0.max(number(begin)?), window.1.min(number(end)?));
            }
            windows.push(window);
        }
        // No element lies anywhere in a tensor that has none, whatever its other extents come to.
        let is_empty = windows.iter().any(|(begin, end)| begin >= end);
        let place = |dim: &Dim| match number(dim) {
            Err(DimError::Overflow(_)) if is_empty => Ok(0),
            place => place,
        };
        let strides = strided.strides.iter().map(place).collect::<Result<_, _>>()?;
        Ok(Placement { extents, strides, offset: place(&strided.offset)?, windows })
    }

    /// The layout after axes have been selected at run time: displaced, and empty where a selected index has no
    /// element.
    pub fn at(mut self, selections: impl IntoIterator<Item = (Placement, usize, u64)>) -> Placement {
        for (from, axis, index) in selections {
            let (begin, end) = from.windows[axis];
            match i64::try_from(index).ok().filter(|&index| begin <= index && index < end) {
                Some(index) => self.offset += index * from.strides[axis],
                None => self.windows.fill((0, 0)),
            }
        }
        self
    }

    /// The position of an index in the argument; `None` where it has no element.
    pub fn position(&self, index: &[i64]) -> Option<usize> {
        let exists = index.iter().zip(&self.windows).all(|(&i, &(begin, end))| begin <= i && i < end);
        let terms = index.iter().zip(&self.strides).map(|(&i, &stride)| i * stride);
        exists.then(|| (self.offset + terms.sum::<i64>()) as usize)
    }
}

/// Where a tensor value comes from: an argument, and the axes that were selected at run time on the way.
#[derive(Clone, Debug)]
pub struct Source {
    /// The argument.
    pub argument: ValueId,
    /// The selections.
    pub selections: Vec<Selection>,
}

/// An axis of a view that was dropped at an index.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The view that had the axis.
    pub from: TensorType,
    /// The axis.
    pub axis: usize,
    /// The index.
    pub index: ValueId,
}

impl Source {
    /// The source of a tensor value of a verified kernel.
    pub fn of(kernel: &Kernel, tensor: ValueId) -> Source {
        let mut source = Source { argument: tensor, selections: Vec::new() };
        while let Some(data) = kernel.definition(source.argument) {
            let (Op::View(movement), [operand, index @ ..]) = (&data.op, data.operands.as_slice()) else {
                break;
            };
            let operand = *operand;
            if let (&TensorMovement::Select { axis }, Type::Tensor(from), Some(&index)) =
                (movement, kernel.ty(operand), index.first())
            {
                source.selections.push(Selection { from: from.clone(), axis, index });
            }
            source.argument = operand;
        }
        source
    }

    /// The source of the tensor that an op reads or writes, of a verified kernel; `None` of an op that does neither. A prefetch
    /// does neither.
    pub fn reached_by(kernel: &Kernel, data: &OpData) -> Option<Source> {
        let effect = data.op.effect();
        if !effect.reads() && !effect.writes() {
            return None;
        }
        let reached = data.operands[0];
        let tensor = match kernel.ty(reached) {
            Type::Partition(_) => {
                kernel.definition(reached).expect("verified: a view is made by `partition`").operands[0]
            }
            Type::Tensor(_) => reached,
            Type::Scalar(_) | Type::Tile(_) => unreachable!("verified: `{}` is of a tensor", data.op.name()),
        };
        Some(Source::of(kernel, tensor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    /// Images of one channel each: with rows cut off, those of one image don't end where the next one's begin, whatever
    /// stride the axis of channels has between them.
    #[test]
    fn an_axis_of_one_joins_none_that_it_stands_between() {
        let images = TensorType::dense([2, 1, 3, 4].map(Dim::from).to_vec(), DType::F32, false);
        let rows = |tensor: &TensorType| TensorMovement::Flatten { start: 0, end: 2 }.apply(tensor);
        assert!(rows(&images).is_ok());
        let part = |begin: i64, end: i64| (Dim::from(begin), Dim::from(end));
        let cropped = TensorMovement::Shrink(vec![part(0, 2), part(0, 1), part(1, 3), part(0, 4)]);
        let (cropped, _) = cropped.apply(&images).unwrap();
        let error = rows(&cropped).unwrap_err().to_string();
        assert!(error.contains("axes 0 and 2"), "{error}");
        // Of one image the rows are one axis, wherever it was cut.
        let one = TensorMovement::Shrink(vec![part(1, 2), part(0, 1), part(0, 2), part(0, 4)]);
        let (rows, _) = rows(&one.apply(&cropped).unwrap().0).unwrap();
        assert_eq!(Placement::of(&rows, &|_| None).unwrap().position(&[1, 0]), Some(20));
    }

    #[test]
    fn positions_of_a_padded_flipped_axis() {
        let tensor = TensorType::dense(vec![Dim::from(3), Dim::size("n")], DType::F32, false);
        let padded = TensorMovement::Pad(vec![(Dim::from(0), Dim::from(0)), (Dim::from(1), Dim::from(2))]);
        let (padded, _) = padded.apply(&tensor).unwrap();
        let (flipped, _) = TensorMovement::Flip(vec![1]).apply(&padded).unwrap();
        let placement = Placement::of(&flipped, &|_| Some(4)).unwrap();
        // Row 1 is 4 5 6 7; padded . 4 5 6 7 . .; backwards . . 7 6 5 4 .
        let row: Vec<_> = (0..7).map(|i| placement.position(&[1, i])).collect();
        assert_eq!(row, [None, None, Some(7), Some(6), Some(5), Some(4), None]);
        assert_eq!(placement.position(&[3, 2]), None);
    }

    /// Where an extent is 0, the product of the others is no number of elements.
    #[test]
    fn a_tensor_without_elements_has_any_extents() {
        let extents = ["z", "m", "n"].map(Dim::size).to_vec();
        let tensor = TensorType::dense(extents, DType::F32, false);
        let lookup = |size: &str| Some(if size == "z" { 0 } else { 1 << 40 });
        assert_eq!(Placement::of(&tensor, &lookup).unwrap().position(&[0, 1, 1]), None);
        let overflow = Placement::of(&tensor, &|_| Some(1 << 40));
        assert_eq!(overflow, Err(DimError::Overflow("m*n".to_owned())));
    }
}
