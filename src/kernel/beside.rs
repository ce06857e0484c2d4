//! Literals of floats in a `#[tile_fn]`, in the format of the value beside them or of a parameter. `#[tile_fn]` makes these calls where
//! Rust may have no literal of the format: of `bf16`, of a type parameter.
//!
//! ```
//! use tile::kernel::{Tile, beside, either};
//! use tile::prelude::bf16;
//!
//! let x = Tile::full([2], bf16::from_f32(3.0));
//! let doubled = beside::literal_right(x, 2.0, either::mul);
//! assert_eq!(doubled.cast::<f32>().to_vec(), [6.0, 6.0]);
//! let bounded = beside::with(doubled, |value, of| value.clamp(of(0.0), of(4.0)));
//! assert_eq!(bounded.pad([(0, 1)], beside::literal(0.5)).cast::<f32>().to_vec(), [4.0, 4.0, 0.5]);
//! ```

use super::{Condition, Float, Number, Tile};

/// A float scalar or a tile of floats, with the format of a literal beside it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a float nor a tile of floats, so a literal of a float can't stand beside it",
    label = "needs floats"
)]
pub trait Floats: Copy {
    /// The format.
    type Scalar: Float;
}

impl<T: Float> Floats for T {
    type Scalar = T;
}

impl<T: Float, const R: usize> Floats for Tile<T, R> {
    type Scalar = T;
}

/// `function(value, literal)`.
pub fn literal_right<V: Floats, O>(value: V, literal: f64, function: impl FnOnce(V, V::Scalar) -> O) -> O {
    function(value, V::Scalar::of(literal))
}

/// `function(literal, value)`.
pub fn literal_left<V: Floats, O>(literal: f64, value: V, function: impl FnOnce(V::Scalar, V) -> O) -> O {
    function(V::Scalar::of(literal), value)
}

/// A call with a value and literals beside it.
pub fn with<V: Floats, O>(value: V, call: impl FnOnce(V, fn(f64) -> V::Scalar) -> O) -> O {
    call(value, V::Scalar::of)
}

/// A literal of the format that is asked for.
pub fn literal<T: Number>(literal: f64) -> T {
    T::of(literal)
}

/// `select(condition, value, literal)`.
pub fn select_right<C: Condition<V, V::Scalar>, V: Floats>(
    condition: C,
    value: V,
    literal: f64,
) -> C::Output {
    condition.choose(value, V::Scalar::of(literal))
}

/// `select(condition, literal, value)`.
pub fn select_left<C: Condition<V::Scalar, V>, V: Floats>(condition: C, literal: f64, value: V) -> C::Output {
    condition.choose(V::Scalar::of(literal), value)
}
