//! Conversions between element formats, and arithmetic whose point is how it rounds or wraps.

use super::either::ShiftAmount;
use super::tile::Tile;
use super::{AnyBits, Element, Float, Int, Pair};
use tile_ir::Rounding;
use tile_ir::ops::{BinaryOp, UnaryOp};

/// A tile or a scalar of `T`, where a tile of rank `R` is made of either.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a `{T}` nor a tile of `{T}` with rank {R}",
    label = "needs a tile or a scalar of `{T}`"
)]
pub trait Operand<T, const R: usize> {
    #[doc(hidden)]
    fn shape_of(&self) -> [usize; R];

    #[doc(hidden)]
    fn tile_of(self, shape: [usize; R]) -> Tile<T, R>;
}

impl<T: Element, const R: usize> Operand<T, R> for T {
    fn shape_of(&self) -> [usize; R] {
        [1; R]
    }

    fn tile_of(self, shape: [usize; R]) -> Tile<T, R> {
        Tile::full(shape, self)
    }
}

impl<T: Element, const R: usize> Operand<T, R> for Tile<T, R> {
    fn shape_of(&self) -> [usize; R] {
        self.shape()
    }

    fn tile_of(self, shape: [usize; R]) -> Tile<T, R> {
        if self.shape() == shape { self } else { self.broadcast(shape) }
    }
}

impl<T: Float, const R: usize> Tile<T, R> {
    /// Every element converted to another format, rounded in the given direction. What is too large for a float
    /// format becomes infinite, in [`f8e4m3fn`](tile_runtime::f8e4m3fn), which has no infinity, NaN, or the largest number where the direction points
    /// toward zero; a float to an integer is rounded to an integer, then saturates, and NaN gives 0.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::full([1], -2.5f32);
    /// assert_eq!(x.cast_with::<i32>(Rounding::Down).to_vec(), [-3]);
    /// assert_eq!(x.cast_with::<i32>(Rounding::NearestEven).to_vec(), [-2]);
    /// let third = Tile::full([1], 1.0f32 / 3.0);
    /// assert!(third.cast_with::<f16>(Rounding::Up).to_vec() > third.cast_with::<f16>(Rounding::Down).to_vec());
    /// ```
    pub fn cast_with<To: AnyBits>(self, rounding: Rounding) -> Tile<To, R> {
        Tile::hold(self.array().cast_with(To::DTYPE, rounding))
    }

    /// Every element converted to another float format, rounded to nearest even. What is too large, infinities too, becomes
    /// the largest finite number or that with a minus sign, where [`Tile::cast`] gives infinity or, in
    /// [`f8e4m3fn`](tile_runtime::f8e4m3fn), NaN. NaN stays.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<f32, 1>::arange([3], -1000.0, 1000.0);
    /// assert_eq!(x.saturating_cast::<f8e4m3fn>().cast::<f32>().to_vec(), [-448.0, 0.0, 448.0]);
    /// assert!(x.cast::<f8e4m3fn>().is_nan().to_vec()[0]);
    /// ```
    pub fn saturating_cast<To: Float>(self) -> Tile<To, R> {
        Tile::hold(self.array().saturating_cast(To::DTYPE))
    }

    /// `self · factor + term`, rounded once. Each of the two is a tile or a scalar; axes of extent 1 are broadcast.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::full([1], 1.0f32 + 2f32.powi(-12));
    /// assert_eq!(x.mul_add(x, -(1.0 + 2f32.powi(-11))).to_vec(), [2f32.powi(-24)]);
    /// ```
    ///
    /// # Panics
    /// If the shapes can't be broadcast together; in a kernel that is a compile error.
    pub fn mul_add(self, factor: impl Operand<T, R>, term: impl Operand<T, R>) -> Self {
        let shapes = [self.shape(), factor.shape_of(), term.shape_of()];
        let shape = super::compare::common_shape("mul_add", &shapes);
        let operands = [self.tile_of(shape), factor.tile_of(shape), term.tile_of(shape)].map(Tile::array);
        Tile::hold(tile_ir::Array::mul_add(&operands[0], &operands[1], &operands[2]))
    }
}

impl<T: AnyBits, const R: usize> Tile<T, R> {
    /// The same bits as numbers of another format of the same width.
    ///
    /// ```
    /// use tile::prelude::*;
    /// assert_eq!(Tile::full([1], 1.0f32).bitcast::<u32>().to_vec(), [0x3f80_0000]);
    /// ```
    ///
    /// # Panics
    /// If the widths differ; in a kernel that is a compile error.
    pub fn bitcast<To: AnyBits>(self) -> Tile<To, R> {
        assert!(
            T::DTYPE.bits() == To::DTYPE.bits(),
            "`bitcast` keeps the bits, but {} has {} and {} has {}",
            T::DTYPE,
            T::DTYPE.bits(),
            To::DTYPE,
            To::DTYPE.bits()
        );
        Tile::hold(self.array().bitcast(To::DTYPE))
    }
}

macro_rules! wrapping {
    ($($op:ident $name:ident, $doc:literal;)*) => {
        impl<T: Int, const R: usize> Tile<T, R> {
            $(
                #[doc = $doc]
                pub fn $name<Right>(self, right: Right) -> Self
                where
                    Self: Pair<Right, Output = Self>,
                {
                    self.binary(BinaryOp::$op, right)
                }
            )*

            /// The negated integers, 0 − x: the smallest wraps to itself, as do numbers without a sign, of which 1 becomes the
            /// largest.
            pub fn wrapping_neg(self) -> Self {
                Tile::zeros(self.shape()).binary(BinaryOp::Sub, self)
            }

            /// The absolute values of integers with a sign, as `abs`: the smallest wraps to itself.
            pub fn wrapping_abs(self) -> Self {
                Tile::hold(self.array().unary(UnaryOp::Abs))
            }
        }

        #[cfg(test)]
        const WRAPPING: &[(BinaryOp, &str)] = &[$((BinaryOp::$op, stringify!($name)),)*];
    };
}

wrapping! {
    Add wrapping_add, "The sum, as `+`: what doesn't fit wraps.";
    Sub wrapping_sub, "The difference, as `-`: what doesn't fit wraps.";
    Mul wrapping_mul, "The product, as `*`: what doesn't fit wraps.";
    Div wrapping_div, "The quotient, as `/`: MIN / −1 wraps, x / 0 is 0.";
    Rem wrapping_rem, "The remainder, as `%`: MIN % −1 is 0, x % 0 is x.";
}

macro_rules! wrapping_shifts {
    ($($op:ident $name:ident, $doc:literal;)*) => {
        impl<T: Int, const R: usize> Tile<T, R> {
            $(
                #[doc = $doc]
                pub fn $name<By: ShiftAmount<T, R>>(self, by: By) -> Self {
                    by.shift(BinaryOp::$op, self)
                }
            )*
        }

        #[cfg(test)]
        const WRAPPING_SHIFTS: &[(BinaryOp, &str)] = &[$((BinaryOp::$op, stringify!($name)),)*];
    };
}

wrapping_shifts! {
    Shl wrapping_shl, "The left shift, as `<<`: the amount, a tile of this type or an integer of any, is taken modulo the width.";
    Shr wrapping_shr, "The right shift, as `>>`: the amount, a tile of this type or an integer of any, is taken modulo the width.";
}

impl<T: Int, const R: usize> Tile<T, R> {
    /// The wrapped sum, and where it wrapped.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let (sum, wrapped) = Tile::<u8, 1>::full([1], 250).overflowing_add(10);
    /// assert_eq!((sum.to_vec(), wrapped.to_vec()), (vec![4], vec![true]));
    /// ```
    pub fn overflowing_add<Right: Copy>(self, right: Right) -> (Self, Tile<bool, R>)
    where
        Self: Pair<Right, Output = Self> + Pair<Self, Output = Self, Mask = Tile<bool, R>>,
    {
        overflowing(self.binary(BinaryOp::Add, right), self.binary(BinaryOp::SaturatingAdd, right))
    }

    /// The wrapped difference, and where it wrapped.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let (difference, wrapped) = Tile::<i8, 1>::full([1], -100).overflowing_sub(100);
    /// assert_eq!((difference.to_vec(), wrapped.to_vec()), (vec![56], vec![true]));
    /// ```
    pub fn overflowing_sub<Right: Copy>(self, right: Right) -> (Self, Tile<bool, R>)
    where
        Self: Pair<Right, Output = Self> + Pair<Self, Output = Self, Mask = Tile<bool, R>>,
    {
        overflowing(self.binary(BinaryOp::Sub, right), self.binary(BinaryOp::SaturatingSub, right))
    }

    /// The wrapped product, and where it wrapped.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let (product, wrapped) = Tile::<i8, 1>::full([1], 16).overflowing_mul(-9);
    /// assert_eq!((product.to_vec(), wrapped.to_vec()), (vec![112], vec![true]));
    /// ```
    pub fn overflowing_mul<Right: Copy>(self, right: Right) -> (Self, Tile<bool, R>)
    where
        Self: Pair<Right, Output = Self> + Pair<Self, Output = Self, Mask = Tile<bool, R>>,
    {
        let wrapped = self.binary(BinaryOp::Mul, right);
        // A product may wrap to the bound that it saturates to, but its high half then isn't a sign.
        let full = |value| Tile::full(wrapped.shape(), T::from_int(value));
        let sign = wrapped.binary(BinaryOp::Min, full(0)).binary(BinaryOp::Shr, full(63));
        (wrapped, super::ne(self.binary(BinaryOp::MulHi, right), sign))
    }
}

/// A sum or difference that wrapped isn't the one that saturated, and only then.
fn overflowing<T: Element, const R: usize>(
    wrapped: Tile<T, R>,
    saturated: Tile<T, R>,
) -> (Tile<T, R>, Tile<bool, R>) {
    (wrapped, super::ne(wrapped, saturated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_forms_are_those_of_the_front_end() {
        for &(op, name) in WRAPPING.iter().chain(WRAPPING_SHIFTS) {
            assert_eq!(BinaryOp::wrapping(name), Some(op), "{name}");
        }
    }

    #[test]
    fn sums_overflow_where_they_do_not_fit() {
        let all: Vec<i8> = (-128..=127).map(|x| x as i8).collect();
        for &a in &all {
            for &b in &all {
                let (sum, wrapped) = Tile::full([1], a).overflowing_add(b);
                assert_eq!((sum.to_vec()[0], wrapped.to_vec()[0]), a.overflowing_add(b));
                let (difference, wrapped) = Tile::full([1], a).overflowing_sub(b);
                assert_eq!((difference.to_vec()[0], wrapped.to_vec()[0]), a.overflowing_sub(b));
                let (product, wrapped) = Tile::full([1], a).overflowing_mul(b);
                assert_eq!((product.to_vec()[0], wrapped.to_vec()[0]), a.overflowing_mul(b));
                let (product, wrapped) = Tile::full([1], a as u8).overflowing_mul(b as u8);
                assert_eq!((product.to_vec()[0], wrapped.to_vec()[0]), (a as u8).overflowing_mul(b as u8));
            }
        }
    }
}
