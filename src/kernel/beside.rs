//! Literals in a `#[tile_fn]`, in the format of the value beside them or of a parameter. `#[tile_fn]` makes these calls where
//! Rust may have no literal of the format: of `bf16`, of a type parameter.
//!
//! ```
//! use tile::kernel::{Tile, beside, either};
//! use tile::prelude::bf16;
//!
//! let x = Tile::full([2], bf16::from_f32(3.0));
//! let doubled = beside::literal_right(x, 2.0, either::mul);
//! assert_eq!(doubled.cast::<f32>().to_vec(), [6.0, 6.0]);
//! let bounded = beside::with(doubled, |value| value.clamp(beside::of(&value, 0.0), beside::of(&value, 4.0)));
//! assert_eq!(bounded.pad([(0, 1)], beside::literal(0.5)).cast::<f32>().to_vec(), [4.0, 4.0, 0.5]);
//! ```

use super::{Condition, Float, Number, Tile};
use tile_runtime::element::{Arithmetic, Written};

/// A number or a tile of numbers, with the format of a literal beside it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a number nor a tile of numbers, so a literal can't stand beside it",
    label = "needs numbers"
)]
pub trait Numbers: Copy {
    /// The format.
    type Scalar: Arithmetic;
}

impl<T: Arithmetic> Numbers for T {
    type Scalar = T;
}

impl<T: Number, const R: usize> Numbers for Tile<T, R> {
    type Scalar = T;
}

/// A literal that is one of a format: of a float where that is a float, of an integer everywhere.
#[diagnostic::on_unimplemented(
    message = "this literal is of a float, and stands beside values of `{T}`",
    label = "needs floats",
    note = "write an integer, or convert: `.cast::<f32>()`, or `as f32` of a scalar"
)]
pub trait LiteralOf<T> {
    #[doc(hidden)]
    fn made(self) -> T;
}

#[diagnostic::do_not_recommend]
impl<T: Float> LiteralOf<T> for f64 {
    fn made(self) -> T {
        self.number()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Arithmetic> LiteralOf<T> for i128 {
    fn made(self) -> T {
        self.number()
    }
}

/// A literal of a float where a type parameter may be any number.
#[derive(Clone, Copy, Debug)]
pub struct OfAnyNumber(pub f64);

#[diagnostic::do_not_recommend]
impl<T: Arithmetic> LiteralOf<T> for OfAnyNumber {
    fn made(self) -> T {
        self.0.number()
    }
}

/// `function(value, literal)`.
pub fn literal_right<V: Numbers, O>(
    value: V,
    literal: impl LiteralOf<V::Scalar>,
    function: impl FnOnce(V, V::Scalar) -> O,
) -> O {
    function(value, literal.made())
}

/// `function(literal, value)`.
pub fn literal_left<V: Numbers, O>(
    literal: impl LiteralOf<V::Scalar>,
    value: V,
    function: impl FnOnce(V::Scalar, V) -> O,
) -> O {
    function(literal.made(), value)
}

/// A call with a value and literals beside it, each made by [`of`].
pub fn with<V: Numbers, O>(value: V, call: impl FnOnce(V) -> O) -> O {
    call(value)
}

/// A literal of the format of a value.
pub fn of<V: Numbers>(_: &V, literal: impl LiteralOf<V::Scalar>) -> V::Scalar {
    literal.made()
}

/// A literal of the format that is asked for.
pub fn literal<T: Arithmetic>(literal: impl LiteralOf<T>) -> T {
    literal.made()
}

/// `select(condition, value, literal)`.
pub fn select_right<C: Condition<V, V::Scalar>, V: Numbers>(
    condition: C,
    value: V,
    literal: impl LiteralOf<V::Scalar>,
) -> C::Output {
    condition.choose(value, literal.made())
}

/// `select(condition, literal, value)`.
pub fn select_left<C: Condition<V::Scalar, V>, V: Numbers>(
    condition: C,
    literal: impl LiteralOf<V::Scalar>,
    value: V,
) -> C::Output {
    condition.choose(literal.made(), value)
}
