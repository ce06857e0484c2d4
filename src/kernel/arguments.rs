//! What functions of one value take: scalars and tiles, by what their elements are.

use super::either::Shift;
use super::tile::{scalar, scalar_value};
use super::{Float, Int, Number, Tile};
use tile_ir::ops::{Classification, UnaryOp};

/// A float scalar or a tile of floats: what `exp(x)` takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a float nor a tile of floats",
    label = "needs floats"
)]
pub trait FloatValue: Sized {
    /// The type of `is_nan(x)`.
    type Mask;

    #[doc(hidden)]
    fn float_function(self, op: UnaryOp) -> Self;

    #[doc(hidden)]
    fn classify(self, classification: Classification) -> Self::Mask;
}

impl<T: Float> FloatValue for T {
    type Mask = bool;

    fn classify(self, classification: Classification) -> bool {
        scalar_value(&scalar(self).classify(classification))
    }

    fn float_function(self, op: UnaryOp) -> T {
        scalar_value(&scalar(self).unary(op))
    }
}

impl<T: Float, const R: usize> FloatValue for Tile<T, R> {
    type Mask = Tile<bool, R>;

    fn classify(self, classification: Classification) -> Tile<bool, R> {
        Tile::hold(self.array().classify(classification))
    }

    fn float_function(self, op: UnaryOp) -> Self {
        Tile::hold(self.array().unary(op))
    }
}

/// A scalar or a tile of signed numbers: what `abs(x)` takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a number nor a tile of numbers",
    label = "needs numbers"
)]
pub trait SignedValue: Sized {
    #[doc(hidden)]
    fn signed_function(self, op: UnaryOp) -> Self;
}

impl<T: Number> SignedValue for T {
    fn signed_function(self, op: UnaryOp) -> T {
        scalar_value(&scalar(self).unary(op))
    }
}

impl<T: Number, const R: usize> SignedValue for Tile<T, R> {
    fn signed_function(self, op: UnaryOp) -> Self {
        Tile::hold(self.array().unary(op))
    }
}

/// An integer scalar or a tile of integers: what `count_ones(x)` takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an integer nor a tile of integers",
    label = "needs integers"
)]
pub trait IntValue: Sized {
    #[doc(hidden)]
    fn int_function(self, op: UnaryOp) -> Self;
}

impl<T: Shift> IntValue for T {
    fn int_function(self, op: UnaryOp) -> T {
        scalar_value(&scalar(self).unary(op))
    }
}

impl<T: Int, const R: usize> IntValue for Tile<T, R> {
    fn int_function(self, op: UnaryOp) -> Self {
        Tile::hold(self.array().unary(op))
    }
}
