//! Methods of tiles that are several ops, in the steps in which the front end lowers them.

use super::axes::{Axes, Merged, checked};
use super::compare::common_shape;
use super::convert::Operand;
use super::tile::Tile;
use super::{Element, Float, Number};
use tile_ir::ops::{BinaryOp, Classification, Literal, Predicate, ReduceOp};
use tile_ir::{Array, DType};

impl<T: Float, const R: usize> Tile<T, R> {
    /// The mean along `axis`, or along several, which stay with extent 1: the sum, rounded, divided by the number of
    /// elements of the tile, those that a masked load pads among them. Of a line of `n` elements that may be shorter than
    /// the tile the mean is `x.sum(axis) / n as f32`.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// assert_eq!(Tile::<f32, 1>::iota([5], 0).mean(0).to_vec(), [2.0]);
    /// assert_eq!(Tile::<f32, 2>::iota([2, 3], 1).mean([0, 1]).to_vec(), [1.0]);
    /// ```
    pub fn mean(self, axis: impl Axes) -> Self {
        let count: usize = checked(axis, R, "mean").iter().map(|&axis| self.shape()[axis]).product();
        self.sum(axis) / T::from_int(count as i128)
    }

    /// Where along `axis`, or along several, the largest element is: the first one, or the first NaN if there is
    /// one. Positions and axes are those of [`Self::argmax`].
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<f32, 1>::iota([5], 0).sqrt() - 1.5;
    /// assert_eq!(x.argmaximum(0).to_vec(), [4]);
    /// assert_eq!(x.sqrt().argmaximum(0).to_vec(), [0]);
    /// ```
    pub fn argmaximum(self, axis: impl Axes) -> Tile<i32, R> {
        position_of(self, ReduceOp::Maximum, checked(axis, R, "argmaximum"))
    }

    /// Where along `axis`, or along several, the smallest element is: the first one, or the first NaN if there is
    /// one. Positions and axes are those of [`Self::argmax`].
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// assert_eq!(Tile::<f32, 1>::iota([5], 0).argminimum(0).to_vec(), [0]);
    /// ```
    pub fn argminimum(self, axis: impl Axes) -> Tile<i32, R> {
        position_of(self, ReduceOp::Minimum, checked(axis, R, "argminimum"))
    }
}

impl<T: Float, const R: usize> Tile<T, R> {
    /// The power with an exponent that is written out, by products, each rounded: as many as squaring takes. Of a negative
    /// exponent 1 divided by the power; 1 of exponent 0.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<f32, 1>::arange([3], 1.0, 1.0);
    /// assert_eq!(x.powi(3).to_vec(), [1.0, 8.0, 27.0]);
    /// assert_eq!((x.powi(-1).to_vec()[1], x.powi(0).to_vec()[2]), (0.5, 1.0));
    /// ```
    pub fn powi(self, exponent: i32) -> Self {
        let size = exponent.unsigned_abs();
        let Some(highest) = size.checked_ilog2() else { return Tile::full(self.shape(), T::from_int(1)) };
        let mut power = self;
        for bit in (0..highest).rev() {
            power = power * power;
            if size >> bit & 1 == 1 {
                power *= self;
            }
        }
        if exponent < 0 { power.recip() } else { power }
    }
}

impl<T: Number, const R: usize> Tile<T, R> {
    /// The elements, but for those below `low` and above `high` these: each a tile or a scalar. NaN stays; where `low` is
    /// above `high` the result is `high`.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<f32, 1>::arange([4], -1.0, 1.0);
    /// assert_eq!(x.clamp(-0.5, 1.5).to_vec(), [-0.5, 0.0, 1.0, 1.5]);
    /// assert_eq!(x.clamp(x.abs(), 3.0).to_vec(), x.abs().to_vec());
    /// ```
    ///
    /// # Panics
    /// If the shapes can't be broadcast together; in a kernel that is a compile error.
    pub fn clamp(self, low: impl Operand<T, R>, high: impl Operand<T, R>) -> Self {
        let raised = self.unless(Predicate::Lt, low);
        raised.unless(Predicate::Gt, high)
    }

    /// The bound where an element compares so with it.
    fn unless(self, outside: Predicate, bound: impl Operand<T, R>) -> Self {
        let shape = common_shape("clamp", &[self.shape(), bound.shape_of()]);
        let [x, bound] = [self.tile_of(shape), bound.tile_of(shape)].map(Tile::array);
        Tile::hold(Array::select(&x.compare(outside, &bound), &bound, &x))
    }

    /// Where along `axis` the largest element is: the first one, NaN ignored; 0 where all are NaN. The axis stays
    /// with extent 1. Along several axes, the row-major position among their elements.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 1>::iota([6], 0) % 3;
    /// assert_eq!((x.argmax(0).to_vec(), x.argmin(0).to_vec()), (vec![2], vec![0]));
    /// assert_eq!((-x.reshape([2, 3])).argmin([0, 1]).to_vec(), [2]);
    /// ```
    pub fn argmax(self, axis: impl Axes) -> Tile<i32, R> {
        position_of(self, ReduceOp::Max, checked(axis, R, "argmax"))
    }

    /// Where along `axis` the smallest element is: the first one, NaN ignored; 0 where all are NaN. The axis stays
    /// with extent 1. Along several axes, the row-major position among their elements.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::full([2], f32::NAN);
    /// assert_eq!(x.argmin(0).to_vec(), [0]);
    /// ```
    pub fn argmin(self, axis: impl Axes) -> Tile<i32, R> {
        position_of(self, ReduceOp::Min, checked(axis, R, "argmin"))
    }
}

fn position_of<T: Element, const R: usize>(x: Tile<T, R>, op: ReduceOp, axes: Vec<usize>) -> Tile<i32, R> {
    let merged = Merged::of(&x.array(), &axes);
    let (x, axis) = (&merged.array, merged.axis);
    let shape = x.shape();
    let mut found = x.compare(Predicate::Eq, &x.reduce(op, axis).broadcast(shape));
    if matches!(op, ReduceOp::Maximum | ReduceOp::Minimum) {
        found = found.binary(BinaryOp::Or, &x.classify(Classification::IsNan));
    }
    let number = |value: usize, shape: &[usize]| Array::full(DType::I32, shape, Literal::Int(value as i128));
    let beyond = shape[axis];
    let candidates = Array::select(&found, &Array::iota(DType::I32, shape, axis), &number(beyond, shape));
    let first = candidates.reduce(ReduceOp::Min, axis);
    // Only where all elements are NaN is none of them the extreme one.
    let missing = first.compare(Predicate::Eq, &number(beyond, first.shape()));
    Tile::hold(merged.split(&Array::select(&missing, &number(0, first.shape()), &first)))
}
