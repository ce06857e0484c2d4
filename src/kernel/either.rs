//! Operators whose operands may be tiles or scalars. `#[tile_fn]` puts them in place of Rust's, because in a
//! function that is expanded alone nothing but its types says which it is: comparisons of tiles give tiles, and
//! integer scalars wrap, as in a kernel.
//!
//! ```
//! use tile::kernel::{Tile, either};
//!
//! assert_eq!(either::add(i32::MAX, 1), i32::MIN);
//! assert!(either::lt(2usize, 3));
//! assert_eq!(either::lt(Tile::full([2], 2.0f32), 3.0).to_vec(), [true, true]);
//! ```

use super::compare::Pair;
use super::{Bits, Element, Float, Int, Number, Tile, scalar};
use std::ops;
use tile_ir::ops::{BinaryOp, Predicate};
use tile_runtime::element::{Arithmetic, Scalar};

macro_rules! operators {
    ($($trait:ident $name:ident $doc:literal;)*) => {
        $(
            #[doc = $doc]
            #[diagnostic::on_unimplemented(
                message = "this operator doesn't take `{Self}` and `{Right}`",
                label = "convert one side with `as`, or `.cast()` if it is a tile",
                note = "in a `#[tile_fn]` a literal of `bf16`, `f16` or 8 bits is `bf16::of(2.0)`"
            )]
            pub trait $trait<Right> {
                /// The result.
                type Output;

                #[doc(hidden)]
                fn apply(self, right: Right) -> Self::Output;
            }

            #[doc = $doc]
            pub fn $name<Left: $trait<Right>, Right>(left: Left, right: Right) -> Left::Output {
                left.apply(right)
            }
        )*
    };
}

operators! {
    Add add "`left + right`.";
    Sub sub "`left - right`.";
    Mul mul "`left * right`.";
    Div div "`left / right`.";
    Rem rem "`left % right`.";
    And and "`left & right`.";
    Or or "`left | right`.";
    Xor xor "`left ^ right`.";
    Shl shl "`left << right`.";
    Shr shr "`left >> right`.";
}

/// Operators on bits: Rust's own, of scalars and tiles alike, but for a scalar of a type parameter with a tile on the right.
macro_rules! bits {
    ($($trait:ident $operator:ident $name:ident;)*) => {
        $(
            #[diagnostic::do_not_recommend]
            impl<T, const R: usize, Right> $trait<Right> for Tile<T, R>
            where
                Tile<T, R>: ops::$operator<Right>,
            {
                type Output = <Tile<T, R> as ops::$operator<Right>>::Output;

                fn apply(self, right: Right) -> Self::Output {
                    ops::$operator::$name(self, right)
                }
            }

            #[diagnostic::do_not_recommend]
            impl<T: Scalar + ops::$operator<Output = T>> $trait<T> for T {
                type Output = T;

                fn apply(self, right: T) -> T {
                    ops::$operator::$name(self, right)
                }
            }

            #[diagnostic::do_not_recommend]
            impl<T: Bits, const R: usize> $trait<Tile<T, R>> for T {
                type Output = Tile<T, R>;

                fn apply(self, right: Tile<T, R>) -> Tile<T, R> {
                    Pair::binary(self, BinaryOp::$trait, right)
                }
            }
        )*
    };
}

bits! {
    And BitAnd bitand;
    Or BitOr bitor;
    Xor BitXor bitxor;
}

/// Arithmetic of a tile with what Rust's operator takes.
macro_rules! tiles {
    ($($trait:ident $name:ident;)*) => {
        $(
            #[diagnostic::do_not_recommend]
            impl<T, const R: usize, Right> $trait<Right> for Tile<T, R>
            where
                Tile<T, R>: ops::$trait<Right>,
            {
                type Output = <Tile<T, R> as ops::$trait<Right>>::Output;

                fn apply(self, right: Right) -> Self::Output {
                    ops::$trait::$name(self, right)
                }
            }
        )*
    };
}

tiles! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
    Rem rem;
}

/// Shifts of a tile, by a tile of its type or by an integer of any.
macro_rules! shifts {
    ($($trait:ident $op:ident;)*) => {
        $(
            #[diagnostic::do_not_recommend]
            impl<T: Int, const R: usize, By: ShiftAmount<T, R>> $trait<By> for Tile<T, R> {
                type Output = Tile<T, R>;

                fn apply(self, by: By) -> Tile<T, R> {
                    by.shift(BinaryOp::$op, self)
                }
            }
        )*
    };
}

shifts! {
    Shl Shl;
    Shr Shr;
}

/// What tiles are shifted by.
pub trait ShiftAmount<T, const R: usize> {
    #[doc(hidden)]
    fn shift(self, op: BinaryOp, tile: Tile<T, R>) -> Tile<T, R>;
}

impl<T: Int, const R: usize> ShiftAmount<T, R> for Tile<T, R> {
    fn shift(self, op: BinaryOp, tile: Tile<T, R>) -> Tile<T, R> {
        Pair::binary(tile, op, self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Int, const R: usize, By: Shift> ShiftAmount<T, R> for By {
    fn shift(self, op: BinaryOp, tile: Tile<T, R>) -> Tile<T, R> {
        Pair::binary(tile, op, scalar::cast::<By, T>(self))
    }
}

/// Arithmetic of two scalars, and of a scalar with a tile on the right.
macro_rules! scalars {
    ($($trait:ident $name:ident [$($generics:tt)*] $right:ident;)*) => {
        $(
            #[diagnostic::do_not_recommend]
            impl<$($generics)*> $trait<$right> for T {
                type Output = T;

                fn apply(self, right: $right) -> T {
                    scalar::$name(self, right)
                }
            }

            #[diagnostic::do_not_recommend]
            impl<T: Number, const R: usize> $trait<Tile<T, R>> for T {
                type Output = Tile<T, R>;

                fn apply(self, right: Tile<T, R>) -> Tile<T, R> {
                    Pair::binary(self, BinaryOp::$trait, right)
                }
            }
        )*
    };
}

scalars! {
    Add add [T: Arithmetic] T;
    Sub sub [T: Arithmetic] T;
    Mul mul [T: Arithmetic] T;
    Div div [T: Arithmetic] T;
    Rem rem [T: Arithmetic] T;
    Shl shl [T: Shift, By: Shift] By;
    Shr shr [T: Shift, By: Shift] By;
}

/// A scalar that shifts: an integer.
pub trait Shift: Arithmetic + ops::Shl<Output = Self> + ops::Shr<Output = Self> {}

impl<T: Arithmetic + ops::Shl<Output = T> + ops::Shr<Output = T>> Shift for T {}

/// `-value`.
pub trait Neg {
    #[doc(hidden)]
    type Output;

    #[doc(hidden)]
    fn apply(self) -> Self::Output;
}

/// `-value`.
pub fn neg<Value: Neg>(value: Value) -> Value::Output {
    value.apply()
}

impl<T, const R: usize> Neg for Tile<T, R>
where
    Tile<T, R>: ops::Neg,
{
    type Output = <Tile<T, R> as ops::Neg>::Output;

    fn apply(self) -> Self::Output {
        -self
    }
}

impl<T: Arithmetic> Neg for T {
    type Output = T;

    fn apply(self) -> T {
        scalar::neg(self)
    }
}

/// A value of which methods are called that scalars have: those of Rust's names give what tiles' give, and of others, and of
/// formats that aren't Rust's, it has none. Any other value's methods are its own.
///
/// ```
/// use tile::kernel::{Tile, either};
///
/// assert_eq!((either::value(i32::MIN).abs(), either::value(7usize).div_ceil(0)), (i32::MIN, 0));
/// assert_eq!(either::value(Tile::full([1], -2.0f32)).abs().to_vec(), [2.0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Value<V>(V);

/// `value` as one of these.
pub fn value<V>(value: V) -> Value<V> {
    Value(value)
}

// Rust looks for a method here first, and takes it where its bound is met.
impl<V> ops::Deref for Value<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.0
    }
}

/// A method of one scalar, by its name.
macro_rules! unary_method {
    (count_ones) => {
        unary_method! { count_ones gives u32 }
    };
    (leading_zeros) => {
        unary_method! { leading_zeros gives u32 }
    };
    (trailing_zeros) => {
        unary_method! { trailing_zeros gives u32 }
    };
    ($name:ident) => {
        unary_method! { $name gives T }
    };
    ($name:ident gives $output:ty) => {
        #[doc = concat!("[`scalar::", stringify!($name), "`].")]
        pub fn $name(self) -> $output {
            scalar::$name(self.0)
        }
    };
}

/// A method of two scalars, by its name.
macro_rules! binary_method {
    (rotate_left) => {
        binary_method! { rotate_left by u32 }
    };
    (rotate_right) => {
        binary_method! { rotate_right by u32 }
    };
    ($name:ident) => {
        binary_method! { $name by T }
    };
    ($name:ident by $other:ty) => {
        #[doc = concat!("[`scalar::", stringify!($name), "`].")]
        pub fn $name(self, other: $other) -> T {
            scalar::$name(self.0, other)
        }
    };
}

/// The methods that the rows of the op tables name. Operators are none.
macro_rules! unary_methods {
    ($($op:ident $name:ident $($operator:literal)? of $domain:ident $([$($property:ident)*])?,
        int: $int:expr, float: $float:expr, $doc:literal $($ulps:literal $further:literal)?;)*) => {
        impl<T: Arithmetic> Value<T> { $(method! { [$($operator)?] unary_method $name })* }
    };
}

macro_rules! binary_methods {
    ($($op:ident $name:ident $($operator:literal)? of $domain:ident $([$($property:ident)*])?,
        int: $int:expr, float: $float:expr, $doc:literal $($ulps:literal $further:literal)?;)*) => {
        impl<T: Arithmetic> Value<T> { $(method! { [$($operator)?] binary_method $name })* }
    };
}

macro_rules! method {
    ([$operator:literal] $with:ident $name:ident) => {};
    ([] $with:ident $name:ident) => {
        $with! { $name }
    };
}

macro_rules! classifying_methods {
    ($($classification:ident $name:ident, $float:expr, $doc:literal;)*) => {
        impl<T: Float> Value<T> { $(
            #[doc = concat!("[`scalar::", stringify!($name), "`].")]
            pub fn $name(self) -> bool {
                scalar::$name(self.0)
            }
        )* }
    };
}

tile_ir::unary_ops!(unary_methods);
tile_ir::binary_ops!(binary_methods);
tile_ir::classifications!(classifying_methods);

/// Methods of other names than those of the op tables.
macro_rules! further_methods {
    ($($method:ident $function:ident ($($argument:ident: $ty:ty)?);)*) => {
        impl<T: Arithmetic> Value<T> { $(
            #[doc = concat!("[`scalar::", stringify!($function), "`].")]
            pub fn $method(self, $($argument: $ty)?) -> T {
                scalar::$function(self.0, $($argument)?)
            }
        )* }
    };
}

further_methods! {
    ln log ();
    pow pow (exponent: u32);
    wrapping_add add (other: T);
    wrapping_sub sub (other: T);
    wrapping_mul mul (other: T);
    wrapping_div div (by: T);
    wrapping_rem rem (by: T);
    wrapping_neg wrapping_neg ();
    wrapping_abs abs ();
    wrapping_shl wrapping_shl (by: u32);
    wrapping_shr wrapping_shr (by: u32);
}

impl<T: Arithmetic> Value<T> {
    /// [`scalar::clamp`].
    pub fn clamp(self, low: T, high: T) -> T {
        scalar::clamp(self.0, low, high)
    }

    /// [`scalar::overflowing_add`].
    pub fn overflowing_add(self, other: T) -> (T, bool) {
        scalar::overflowing_add(self.0, other)
    }

    /// [`scalar::overflowing_sub`].
    pub fn overflowing_sub(self, other: T) -> (T, bool) {
        scalar::overflowing_sub(self.0, other)
    }

    /// [`scalar::overflowing_mul`].
    pub fn overflowing_mul(self, other: T) -> (T, bool) {
        scalar::overflowing_mul(self.0, other)
    }
}

impl<T: Float> Value<T> {
    /// [`scalar::mul_add`].
    pub fn mul_add(self, factor: T, term: T) -> T {
        scalar::mul_add(self.0, factor, term)
    }
}

impl<P: scalar::Powers> Value<P> {
    /// [`scalar::powi`].
    pub fn powi(self, exponent: i32) -> P::Number {
        scalar::powi(self.0, exponent)
    }
}

/// Two values that are compared: a `bool` of scalars, a tile of `bool` where one is a tile.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{Right}` can't be compared",
    label = "convert one side with `as`, or `.cast()` if it is a tile"
)]
pub trait Compare<Right> {
    /// What a comparison gives.
    type Mask;

    #[doc(hidden)]
    fn apply(self, predicate: Predicate, right: Right) -> Self::Mask;
}

impl<T: Element, const R: usize, Right> Compare<Right> for Tile<T, R>
where
    Tile<T, R>: Pair<Right>,
{
    type Mask = <Tile<T, R> as Pair<Right>>::Mask;

    fn apply(self, predicate: Predicate, right: Right) -> Self::Mask {
        self.compare(predicate, right)
    }
}

impl<T: Scalar> Compare<T> for T {
    type Mask = bool;

    fn apply(self, predicate: Predicate, right: T) -> bool {
        match predicate {
            Predicate::Eq => self == right,
            Predicate::Ne => self != right,
            Predicate::Lt => self < right,
            Predicate::Le => self <= right,
            Predicate::Gt => self > right,
            Predicate::Ge => self >= right,
        }
    }
}

impl<T: Element, const R: usize> Compare<Tile<T, R>> for T {
    type Mask = Tile<bool, R>;

    fn apply(self, predicate: Predicate, right: Tile<T, R>) -> Tile<bool, R> {
        Pair::compare(self, predicate, right)
    }
}

macro_rules! comparisons {
    ($($op:ident $name:ident $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub fn $name<Left: Compare<Right>, Right>(left: Left, right: Right) -> Left::Mask {
                left.apply(Predicate::$op, right)
            }
        )*
    };
}

comparisons! {
    Eq eq "`left == right`.";
    Ne ne "`left != right`.";
    Lt lt "`left < right`.";
    Le le "`left <= right`.";
    Gt gt "`left > right`.";
    Ge ge "`left >= right`.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_take_the_other_side_s_type() {
        let x = Tile::full([1], 3.0f32);
        assert_eq!(add(x, 1.0).to_vec(), [4.0]);
        assert_eq!(sub(1.0, x).to_vec(), [-2.0]);
        assert_eq!(rem(sub(0usize, 1), 16), 15);
        assert_eq!((mul(2.5, 2.0f64), neg(i8::MIN)), (5.0, i8::MIN));
        assert_eq!(neg(x).to_vec(), [-3.0]);
    }

    #[test]
    fn scalars_of_a_type_parameter_have_operators() {
        fn blend<T: Number>(x: Tile<T, 1>, s: T) -> (Tile<T, 1>, T, bool) {
            (sub(s, mul(add(s, T::ONE), x)), neg(s), lt(s, T::of(2.0)))
        }
        let (tile, negated, less) = blend(Tile::full([1], 3u8), 255);
        assert_eq!((tile.to_vec(), negated, less), (vec![255], 1, false));
        let (tile, negated, less) = blend(Tile::full([1], 3.0f32), 1.5);
        assert_eq!((tile.to_vec(), negated, less), (vec![-6.0], -1.5, true));
    }

    #[test]
    fn comparisons_of_tiles_are_tiles() {
        let x = Tile::full([2], 3i32);
        assert_eq!(ge(x, 3).to_vec(), [true, true]);
        assert_eq!(gt(4, x).to_vec(), [true, true]);
        assert_eq!(eq(x, x).to_vec(), [true, true]);
        assert!(ne(1usize, 2) && le(1.0f32, 1.0) && eq(true, true));
    }
}
