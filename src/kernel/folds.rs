//! Reductions and scans with a closure, of one tile or of several at once.

use super::Element;
use super::axes::{Axes, Merged, checked};
use super::tile::Tile;
use std::rc::Rc;
use tile_ir::Array;
use tile_ir::ops::{Literal, ScanMode};

mod sealed {
    pub trait Sealed {}
}

/// A tile, or a tuple of 2 to 8 tiles of one rank: what [`reduce()`] and [`scan`] fold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a tile nor a tuple of 2 to 8 tiles of one rank",
    label = "can't be folded"
)]
pub trait Folded: Copy + sealed::Sealed {
    /// The number, or tuple of numbers, that the closure takes and gives.
    type Scalars: Copy;

    #[doc(hidden)]
    const RANK: usize;

    #[doc(hidden)]
    fn arrays(self) -> Vec<Rc<Array>>;

    #[doc(hidden)]
    fn hold_all(arrays: Vec<Array>) -> Self;

    #[doc(hidden)]
    fn literals(scalars: Self::Scalars) -> Vec<Literal>;

    #[doc(hidden)]
    fn scalars(literals: &[Literal]) -> Self::Scalars;
}

impl<T, const R: usize> sealed::Sealed for Tile<T, R> {}

impl<T: Element, const R: usize> Folded for Tile<T, R> {
    type Scalars = T;

    const RANK: usize = R;

    fn arrays(self) -> Vec<Rc<Array>> {
        vec![self.array()]
    }

    fn hold_all(mut arrays: Vec<Array>) -> Self {
        Tile::hold(arrays.pop().expect("one tile gives one array"))
    }

    fn literals(scalar: T) -> Vec<Literal> {
        vec![scalar.number()]
    }

    fn scalars(literals: &[Literal]) -> T {
        T::from_number(literals[0])
    }
}

macro_rules! folded_tuples {
    ($(($($element:ident $position:tt),*);)*) => { $(
        impl<$($element,)* const R: usize> sealed::Sealed for ($(Tile<$element, R>,)*) {}

        impl<$($element: Element,)* const R: usize> Folded for ($(Tile<$element, R>,)*) {
            type Scalars = ($($element,)*);

            const RANK: usize = R;

            fn arrays(self) -> Vec<Rc<Array>> {
                vec![$(self.$position.array(),)*]
            }

            fn hold_all(arrays: Vec<Array>) -> Self {
                let mut arrays = arrays.into_iter();
                ($(Tile::<$element, R>::hold(arrays.next().expect("every tile gives an array")),)*)
            }

            fn literals(scalars: Self::Scalars) -> Vec<Literal> {
                vec![$(scalars.$position.number(),)*]
            }

            fn scalars(literals: &[Literal]) -> Self::Scalars {
                ($($element::from_number(literals[$position]),)*)
            }
        }
    )* };
}

folded_tuples! {
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
    (A 0, B 1, C 2, D 3, E 4, F 5);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
}

/// The arrays of what is folded.
///
/// # Panics
/// If they have different shapes.
fn arrays_of(operands: impl Folded, op: &str) -> Vec<Rc<Array>> {
    let arrays = operands.arrays();
    for array in &arrays[1..] {
        let (first, other) = (arrays[0].shape(), array.shape());
        assert!(first == other, "`{op}` folds tiles of one shape, not {first:?} and {other:?}");
    }
    arrays
}

/// Folds each line along an axis, or along several, with a closure: from `start`, with the line's elements from
/// the first to the last, `combine(folded, element)` after `combine(folded, element)`. The axes stay with extent 1.
///
/// The order is exactly that on every target, so the closure may be any function, and the result has the same bits
/// everywhere. That is also the price: a line is one chain of closures, run by one thread. Where there is a method,
/// such as [`Tile::sum`], it is faster.
///
/// Several tiles of one shape are folded at once as a tuple. In the closure everything is a scalar and plain Rust:
/// operators, comparisons, `as`, the functions of scalars such as [`max`](super::max()) and
/// [`select()`](super::select()), `let` and `if`. It may use scalars from outside, but no tiles.
///
/// ```
/// use tile::prelude::*;
///
/// let x = Tile::<f32, 2>::iota([2, 3], 1);
/// let squares = reduce(x, 1, 0.0, |a, b| a + b * b);
/// assert_eq!(squares.to_vec(), [5.0, 5.0]);
///
/// // The largest element and where it is.
/// let (value, position) = reduce((-x, Tile::iota([2, 3], 1)), 1, (f32::NEG_INFINITY, 0), |(a, i), (b, j)| {
///     if b > a { (b, j) } else { (a, i) }
/// });
/// assert_eq!((value.to_vec(), position.to_vec()), (vec![-0.0, -0.0], vec![0, 0]));
/// ```
///
/// # Panics
/// If the tiles have different shapes or no such axis; in a kernel that is a compile error. Outside of a kernel the closure's
/// arithmetic is Rust's own, so that an overflow of integers panics; in a kernel it wraps on every device.
pub fn reduce<Operands: Folded>(
    operands: Operands,
    axes: impl Axes,
    start: Operands::Scalars,
    combine: impl Fn(Operands::Scalars, Operands::Scalars) -> Operands::Scalars,
) -> Operands {
    let arrays = arrays_of(operands, "reduce");
    let axes = checked(axes, Operands::RANK, "reduce");
    let merged: Vec<Merged> = arrays.iter().map(|array| Merged::of(array, &axes)).collect();
    let folded: Vec<&Array> = merged.iter().map(|merged| &merged.array).collect();
    let start = Operands::literals(start);
    let results = Array::reduce_with(&folded, &start, merged[0].axis, &mut |folded, element| {
        Operands::literals(combine(Operands::scalars(folded), Operands::scalars(element)))
    });
    Operands::hold_all(results.iter().zip(&merged).map(|(result, merged)| merged.split(result)).collect())
}

/// [`reduce()`] by a closure that joins any two neighbouring parts of a line alike, `(a·b)·c = a·(b·c)`, from a `start` that
/// changes nothing. On GPUs all threads of a block join parts, which come in their order but needn't be elements; here
/// and on CPUs elements are folded from the first to the last. Floats may be rounded otherwise then.
///
/// ```
/// use tile::prelude::*;
///
/// /// The logarithm of the sum of exponentials of every row, from the largest number and the sum of what it is taken from.
/// #[tile_kernel]
/// fn log_sum_exp<const B: usize>(x: &Tensor<f32, m, B>, y: &mut Tensor<f32, m, 1>) {
///     let x = x.partition_view([1, B]);
///     let mut y = y.partition_view_mut([1, 1]);
///     let x = x.load(y.index());
///     let (most, sum) = associative_reduce((x, Tile::full([1, B], 1.0)), 1, (f32::NEG_INFINITY, 0.0), |(a, s), (b, t)| {
///         let most = max(a, b);
///         let part = |of: f32, sum: f32| if of == most { sum } else { sum * exp(of - most) };
///         (most, part(a, s) + part(b, t))
///     });
///     y.store(most + log(sum));
/// }
///
/// # fn main() -> tile::Result<()> {
/// let device = Device::reference();
/// let x = Tensor::from_slice(&device, &[0.0, 0.0, 1000.0, 1000.0], [2, 2])?;
/// let mut y = Tensor::zeros(&device, [2, 1])?;
/// log_sum_exp::<2>(&x, &mut y).launch()?;
/// assert_eq!(y.to_vec()?, [2f32.ln(), 1000.0 + 2f32.ln()]);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
/// As [`reduce()`].
pub fn associative_reduce<Operands: Folded>(
    operands: Operands,
    axes: impl Axes,
    start: Operands::Scalars,
    combine: impl Fn(Operands::Scalars, Operands::Scalars) -> Operands::Scalars,
) -> Operands {
    reduce(operands, axes, start, combine)
}

fn scan_with<Operands: Folded>(
    operands: Operands,
    axis: usize,
    mode: ScanMode,
    start: Operands::Scalars,
    combine: impl Fn(Operands::Scalars, Operands::Scalars) -> Operands::Scalars,
) -> Operands {
    let arrays = arrays_of(operands, "scan");
    checked(axis, Operands::RANK, "scan");
    let arrays: Vec<&Array> = arrays.iter().map(Rc::as_ref).collect();
    let start = Operands::literals(start);
    Operands::hold_all(Array::scan_with(&arrays, &start, axis, mode, &mut |folded, element| {
        Operands::literals(combine(Operands::scalars(folded), Operands::scalars(element)))
    }))
}

macro_rules! scans {
    ($($(#[$doc:meta])* $name:ident $mode:expr;)*) => { $(
        $(#[$doc])*
        ///
        /// # Panics
        /// If the tiles have different shapes or no such axis; in a kernel that is a compile error. Overflow is as
        /// for [`reduce()`].
        pub fn $name<Operands: Folded>(
            operands: Operands,
            axis: usize,
            start: Operands::Scalars,
            combine: impl Fn(Operands::Scalars, Operands::Scalars) -> Operands::Scalars,
        ) -> Operands {
            scan_with(operands, axis, $mode, start, combine)
        }
    )* };
}

scans! {
    /// Every partial result of [`reduce()`] along an axis: element `k` of a line is the fold of `start` and elements
    /// `0..=k`. A `start` that isn't neutral is folded in first.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// let x = Tile::<i32, 1>::iota([4], 0) + 1;
    /// assert_eq!(scan(x, 0, 0, |a, b| a + b).to_vec(), [1, 3, 6, 10]);
    /// assert_eq!(scan(x, 0, 1, |a, b| a + b).to_vec(), [2, 4, 7, 11]);
    /// ```
    scan ScanMode { reverse: false, exclusive: false };
    /// [`scan`] from the last element to the first: element `k` is the fold of `start` and the elements from the
    /// last down to `k`.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// let x = Tile::<i32, 1>::iota([4], 0) + 1;
    /// assert_eq!(scan_reverse(x, 0, 0, |a, b| a + b).to_vec(), [10, 9, 7, 4]);
    /// ```
    scan_reverse ScanMode { reverse: true, exclusive: false };
    /// [`scan`] without the element itself: element `k` is the fold of `start` and elements `0..k`, so the first is
    /// `start`.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// let x = Tile::<i32, 1>::iota([4], 0) + 1;
    /// assert_eq!(scan_exclusive(x, 0, 0, |a, b| a + b).to_vec(), [0, 1, 3, 6]);
    /// ```
    scan_exclusive ScanMode { reverse: false, exclusive: true };
    /// [`scan_reverse`] without the element itself: the last is `start`.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// let x = Tile::<i32, 1>::iota([4], 0) + 1;
    /// assert_eq!(scan_exclusive_reverse(x, 0, 0, |a, b| a + b).to_vec(), [9, 7, 4, 0]);
    /// ```
    scan_exclusive_reverse ScanMode { reverse: true, exclusive: true };
    /// [`scan()`] by a closure that joins parts of lines, as [`associative_reduce()`] does, from a `start` that changes
    /// nothing: a linear recurrence of one long line is done by all threads of a GPU's block.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// // hₖ = ½·hₖ₋₁ + xₖ: what k steps together make of h is a factor and a number.
    /// let x = Tile::<f32, 1>::iota([4], 0);
    /// let (_, h) = associative_scan((Tile::full([4], 0.5), x), 0, (1.0, 0.0), |(d, h), (e, x)| (d * e, e * h + x));
    /// assert_eq!(h.to_vec(), [0.0, 1.0, 2.5, 4.25]);
    /// ```
    associative_scan ScanMode { reverse: false, exclusive: false };
    /// [`associative_scan()`] from the last element to the first. The closure's first argument is the part that comes first
    /// that way.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// let x = Tile::<i32, 1>::iota([4], 0) + 1;
    /// assert_eq!(associative_scan_reverse(x, 0, 1, |a, b| a * b).to_vec(), [24, 24, 12, 4]);
    /// ```
    associative_scan_reverse ScanMode { reverse: true, exclusive: false };
    /// [`associative_scan()`] without the element itself: the first is `start`.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// let x = Tile::<i32, 1>::iota([4], 0) + 1;
    /// assert_eq!(associative_scan_exclusive(x, 0, 1, |a, b| a * b).to_vec(), [1, 1, 2, 6]);
    /// ```
    associative_scan_exclusive ScanMode { reverse: false, exclusive: true };
    /// [`associative_scan_reverse()`] without the element itself: the last is `start`.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// let x = Tile::<i32, 1>::iota([4], 0) + 1;
    /// assert_eq!(associative_scan_exclusive_reverse(x, 0, 1, |a, b| a * b).to_vec(), [24, 12, 4, 1]);
    /// ```
    associative_scan_exclusive_reverse ScanMode { reverse: true, exclusive: true };
}

#[cfg(test)]
mod tests {
    use super::super::{exp, max, select};
    use super::*;

    #[test]
    fn closures_are_plain_rust_of_scalars() {
        let x = Tile::<f32, 2>::iota([2, 4], 1);
        let scale = 0.5;
        let softmax = reduce((x, x), 1, (f32::NEG_INFINITY, 0.0), |(m, s), (x, _)| {
            let next = max(m, x);
            (next, s * exp(m - next) + exp(x - next) * scale)
        });
        assert_eq!(softmax.0.to_vec(), [3.0, 3.0]);
        let expected: f32 = 0.5 * (0..4).map(|i| (i as f32 - 3.0).exp()).sum::<f32>();
        assert!((softmax.1.to_vec()[0] - expected).abs() < 1e-6);
        let clipped = scan(x, 1, 0.0, |a, b| select(a > 2.0, a, a + b));
        assert_eq!(clipped.to_vec()[..4], [0.0, 1.0, 3.0, 3.0]);
    }

    #[test]
    fn eight_tiles_are_folded_together() {
        let x = Tile::<i32, 1>::iota([3], 0);
        let tiles = (x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x.cast::<f64>());
        let (a, _, _, _, _, _, g, h) = reduce(
            tiles,
            0,
            (0, 0, 0, 0, 0, 0, 1, 0.5),
            |(a, b, c, d, e, f, g, h), (i, j, _, _, _, _, o, p)| (a + i, b + j, c, d, e, f, g * o, h + p),
        );
        assert_eq!((a.to_vec(), g.to_vec(), h.to_vec()), (vec![3], vec![6 * 7 * 8], vec![3.5]));
    }

    #[test]
    fn several_axes_are_folded_in_row_major_order() {
        let x = Tile::<i64, 1>::iota([24], 0).reshape([2, 3, 4]);
        let digits = reduce(x, [2, 0], 0, |a, b| a * 100 + b);
        assert_eq!(digits.shape(), [1, 3, 1]);
        assert_eq!(digits.to_vec()[1], 4_05_06_07_16_17_18_19);
    }

    #[test]
    #[should_panic(expected = "`reduce` folds tiles of one shape, not [2] and [3]")]
    fn shapes_that_differ_are_named() {
        reduce((Tile::<f32, 1>::zeros([2]), Tile::<f32, 1>::zeros([3])), 0, (0.0, 0.0), |a, _| a);
    }
}
