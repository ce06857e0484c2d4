//! [`Tile`]: a dense array of compile-time extents that one block holds. Making, reshaping, converting,
//! and looking at tiles; the ops between tiles are in the neighbouring files.
//!
//! Invariant: the array behind a tile has the tile's element format and shape.

use super::arena::{self, Handle, Place};
use super::axes::{Axes, Merged, checked};
use super::{Element, Number};
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use tile_ir::Array;
use tile_ir::message::{Format, array_text};
use tile_ir::ops::ReduceOp;
use tile_runtime::element::{Scalar, array_of, elements_of};

/// A dense array of rank `R` that one block of a kernel holds in registers or shared memory.
///
/// A tile is a value: ops make new tiles, and `Tile` is `Copy`. Elementwise ops broadcast axes of extent 1
/// and take scalars on either side.
///
/// ```
/// use tile::prelude::*;
///
/// let x = Tile::<f32, 2>::iota([2, 3], 1) * 2.0;
/// assert_eq!(x.sum(1).to_vec(), [6.0, 6.0]);
/// assert_eq!(format!("{:?}", x - x.max(1)), "[[-4.0, -2.0,  0.0],\n [-4.0, -2.0,  0.0]]");
/// ```
///
/// On the reference device a tile belongs to the block that made it: it can't be kept in a `static` or sent
/// to another thread.
pub struct Tile<T, const R: usize> {
    handle: Handle<Array>,
    shape: [usize; R],
    element: PhantomData<T>,
}

impl<T, const R: usize> Clone for Tile<T, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const R: usize> Copy for Tile<T, R> {}

impl<T, const R: usize> Tile<T, R> {
    pub(super) fn place(&self) -> Place {
        self.handle.place
    }
}

impl<T: Element, const R: usize> Tile<T, R> {
    /// The tile that holds `array`, for the rest of the block.
    pub(super) fn hold(array: Array) -> Self {
        debug_assert_eq!(array.dtype(), T::DTYPE);
        let shape = array.shape().try_into().expect("verified: an op's result has the rank of its type");
        Tile { handle: arena::keep(array), shape, element: PhantomData }
    }

    /// The tile of these values, in row-major order.
    pub(super) fn of_values(shape: [usize; R], values: &[T]) -> Self {
        Tile::hold(array_of(&shape, values))
    }

    pub(super) fn reduce(self, op: ReduceOp, axes: impl Axes) -> Self {
        let merged = Merged::of(&self.array(), &checked(axes, R, op.method()));
        Tile::hold(merged.split(&merged.array.reduce(op, merged.axis)))
    }

    /// The array behind the tile.
    ///
    /// # Panics
    /// If the block that made the tile has ended.
    pub(super) fn array(self) -> Rc<Array> {
        arena::read(self.handle)
    }

    /// A tile with every element equal to `value`.
    ///
    /// # Panics
    /// If an extent is zero; in a kernel that is a compile error.
    pub fn full(shape: [usize; R], value: T) -> Self {
        check_extents(&shape);
        Tile::hold(scalar(value).splat(&shape))
    }

    /// The extents, outermost axis first.
    pub fn shape(self) -> [usize; R] {
        self.shape
    }

    /// The elements in row-major order, to look at in a debugger or a test.
    ///
    /// # Panics
    /// If the block that made the tile has ended.
    pub fn to_vec(self) -> Vec<T> {
        elements_of(&self.array())
    }

    /// The element of a tile that has exactly one, of any rank: a scalar that may decide a branch or a loop.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// let x = Tile::<f32, 2>::iota([2, 3], 1);
    /// assert_eq!(x.max(0).max(1).item(), 2.0);
    /// ```
    ///
    /// # Panics
    /// If the tile has more than one element; in a kernel that is a compile error.
    pub fn item(self) -> T {
        let array = self.array();
        assert!(array.len() == 1, "`item` needs a tile of one element, not of shape {:?}", self.shape);
        scalar_value(&array)
    }

    /// Every element converted to another format: rounded to nearest even; float to integer truncates and
    /// saturates and NaN gives 0, as Rust's `as`; integers wrap; to `bool` is `!= 0`. What is too large for a float format
    /// becomes infinite, and NaN in [`f8e4m3fn`](tile_runtime::f8e4m3fn), which has no infinity: `saturating_cast` makes it the
    /// largest number.
    pub fn cast<To: Element>(self) -> Tile<To, R> {
        Tile::hold(self.array().cast(To::DTYPE))
    }

    /// The tile with axes of extent 1 repeated.
    ///
    /// # Panics
    /// If an axis is neither of the new extent nor of extent 1; in a kernel that is a compile error.
    pub fn broadcast(self, shape: [usize; R]) -> Self {
        let fits = self.shape.iter().zip(&shape).all(|(&from, &to)| from == to || from == 1);
        assert!(
            fits,
            "a tile of shape {:?} can't be broadcast to {shape:?}: axes must be equal or have extent 1",
            self.shape
        );
        Tile::hold(self.array().broadcast(&shape))
    }

    /// The same elements in row-major order, in another shape.
    ///
    /// # Panics
    /// If the number of elements differs; in a kernel that is a compile error.
    pub fn reshape<const Q: usize>(self, shape: [usize; Q]) -> Tile<T, Q> {
        let (from, to) = (self.shape.iter().product::<usize>(), shape.iter().product::<usize>());
        assert!(
            from == to,
            "a tile of shape {:?} has {from} elements and can't be reshaped to {shape:?}, which has {to}",
            self.shape
        );
        Tile::hold(self.array().reshape(&shape))
    }

    /// The tile with its axes reordered: axis `i` of the result is axis `permutation[i]` of this tile.
    ///
    /// # Panics
    /// If an axis is missing or named twice; in a kernel that is a compile error.
    pub fn permute(self, permutation: [usize; R]) -> Self {
        let mut sorted = permutation;
        sorted.sort_unstable();
        assert!(
            sorted.into_iter().eq(0..R),
            "{permutation:?} is not a permutation of the axes of a tile of rank {R}"
        );
        Tile::hold(self.array().permute(&permutation))
    }
}

impl<T: Element> Tile<T, 2> {
    /// The transposed tile: `x.permute([1, 0])`.
    pub fn t(self) -> Self {
        self.permute([1, 0])
    }
}

impl<T: Number, const R: usize> Tile<T, R> {
    /// A tile of zeros.
    pub fn zeros(shape: [usize; R]) -> Self {
        Tile::full(shape, T::from_int(0))
    }

    /// A tile of ones.
    pub fn ones(shape: [usize; R]) -> Self {
        Tile::full(shape, T::from_int(1))
    }

    /// A tile whose element is its position along `axis`, from 0.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    pub fn iota(shape: [usize; R], axis: usize) -> Self {
        check_extents(&shape);
        assert!(axis < R, "axis {axis} of `iota` is out of range: the tile has rank {R}");
        Tile::hold(Array::iota(T::DTYPE, &shape, axis))
    }
}

fn check_extents(shape: &[usize]) {
    assert!(shape.iter().all(|&extent| extent > 0), "a tile of shape {shape:?} has an empty axis");
}

/// The array of rank 0 that holds a scalar.
pub(super) fn scalar<T: Scalar>(value: T) -> Array {
    Array::scalar(T::FORMAT, value.number())
}

/// The scalar that an array of one element holds.
pub(super) fn scalar_value<T: Scalar>(array: &Array) -> T {
    T::from_number(array.get(0))
}

/// Prints the elements as NumPy does: nested brackets, one line per row of the last axis. A width, a precision and
/// `+` say how each element is written.
impl<T: Element, const R: usize> fmt::Debug for Tile<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&array_text(&self.array(), Format::of(f)))
    }
}

/// As [`fmt::Debug`].
impl<T: Element, const R: usize> fmt::Display for Tile<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_print_like_numpy() {
        let x = Tile::<i32, 3>::iota([2, 2, 2], 2) - 10;
        assert_eq!(format!("{x:?}"), "[[[-10,  -9],\n  [-10,  -9]],\n\n [[-10,  -9],\n  [-10,  -9]]]");
        assert_eq!(format!("{:?}", Tile::full([2], true)), "[true, true]");
        assert_eq!(format!("{:?}", Tile::full([2], 0.1f32)), "[0.1, 0.1]");
        assert_eq!(format!("{:?}", Tile::full([1], 0.1f64)), "[0.1]");
    }

    #[test]
    fn shape_changes_keep_row_major_order() {
        let x = Tile::<i32, 1>::iota([6], 0).reshape([2, 3]);
        assert_eq!(x.t().to_vec(), [0, 3, 1, 4, 2, 5]);
        assert_eq!(x.t().shape(), [3, 2]);
        assert_eq!(x.sum(1).broadcast([2, 2]).to_vec(), [3, 3, 12, 12]);
    }

    #[test]
    #[should_panic(
        expected = "a tile of shape [2, 3] has 6 elements and can't be reshaped to [4], which has 4"
    )]
    fn wrong_reshape_names_both_shapes() {
        Tile::<f32, 2>::zeros([2, 3]).reshape([4]);
    }

    #[test]
    fn casts_follow_rust() {
        assert_eq!(Tile::full([1], -1.5f32).cast::<u8>().to_vec(), [0]);
        assert_eq!(Tile::full([1], 300i32).cast::<u8>().to_vec(), [44]);
        assert_eq!(Tile::full([1], 2i32).cast::<bool>().to_vec(), [true]);
    }
}
