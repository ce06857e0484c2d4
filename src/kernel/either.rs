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
use super::{Element, Tile, scalar};
use half::{bf16, f16};
use std::ops;
use tile_ir::ops::Predicate;

macro_rules! arithmetic {
    ($($trait:ident $name:ident [$($std:tt)*] $doc:literal;)*) => {
        $(
            #[doc = $doc]
            #[diagnostic::on_unimplemented(
                message = "this operator doesn't take `{Self}` and `{Right}`",
                label = "convert one side with `as`, or `.cast()` if it is a tile"
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

            impl<T, const R: usize, Right> $trait<Right> for Tile<T, R>
            where
                Tile<T, R>: $($std)*<Right>,
            {
                type Output = <Tile<T, R> as $($std)*<Right>>::Output;

                fn apply(self, right: Right) -> Self::Output {
                    $($std)*::$name(self, right)
                }
            }
        )*
    };
}

arithmetic! {
    Add add [ops::Add] "`left + right`.";
    Sub sub [ops::Sub] "`left - right`.";
    Mul mul [ops::Mul] "`left * right`.";
    Div div [ops::Div] "`left / right`.";
    Rem rem [ops::Rem] "`left % right`.";
    Shl shl [ops::Shl] "`left << right`.";
    Shr shr [ops::Shr] "`left >> right`.";
}

/// Arithmetic of scalars of one type, by these functions; with a tile on the right, by Rust's operators.
macro_rules! scalars {
    ($($ty:ty, $functions:ident, $tiles:ident, [$($trait:ident $name:ident)*];)*) => {
        $(
            $(
                impl $trait<$ty> for $ty {
                    type Output = $ty;

                    fn apply(self, right: $ty) -> $ty {
                        $functions::$name(self, right)
                    }
                }

                $tiles!($ty, $trait $name);
            )*
        )*
    };
}

macro_rules! with_tiles {
    ($ty:ty, $trait:ident $name:ident) => {
        impl<const R: usize> $trait<Tile<$ty, R>> for $ty {
            type Output = Tile<$ty, R>;

            fn apply(self, right: Tile<$ty, R>) -> Tile<$ty, R> {
                ops::$trait::$name(self, right)
            }
        }
    };
}

macro_rules! no_tiles {
    ($($ignored:tt)*) => {};
}

/// Floats have Rust's arithmetic.
mod float {
    use std::ops::{Add, Div, Mul, Rem, Sub};

    macro_rules! functions {
        ($($trait:ident $name:ident)*) => {
            $(
                pub(super) fn $name<T: $trait<Output = T>>(left: T, right: T) -> T {
                    left.$name(right)
                }
            )*
        };
    }

    functions! { Add add Sub sub Mul mul Div div Rem rem }
}

scalars! {
    i8, scalar, with_tiles, [Add add Sub sub Mul mul Div div Rem rem Shl shl Shr shr];
    i16, scalar, with_tiles, [Add add Sub sub Mul mul Div div Rem rem Shl shl Shr shr];
    i32, scalar, with_tiles, [Add add Sub sub Mul mul Div div Rem rem Shl shl Shr shr];
    i64, scalar, with_tiles, [Add add Sub sub Mul mul Div div Rem rem Shl shl Shr shr];
    u8, scalar, with_tiles, [Add add Sub sub Mul mul Div div Rem rem Shl shl Shr shr];
    u16, scalar, with_tiles, [Add add Sub sub Mul mul Div div Rem rem Shl shl Shr shr];
    u32, scalar, with_tiles, [Add add Sub sub Mul mul Div div Rem rem Shl shl Shr shr];
    u64, scalar, with_tiles, [Add add Sub sub Mul mul Div div Rem rem Shl shl Shr shr];
    usize, scalar, no_tiles, [Add add Sub sub Mul mul Div div Rem rem Shl shl Shr shr];
    f16, float, with_tiles, [Add add Sub sub Mul mul Div div Rem rem];
    bf16, float, with_tiles, [Add add Sub sub Mul mul Div div Rem rem];
    f32, float, with_tiles, [Add add Sub sub Mul mul Div div Rem rem];
    f64, float, with_tiles, [Add add Sub sub Mul mul Div div Rem rem];
}

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

macro_rules! negations {
    ($($ty:ty, $value:ident => $negated:expr;)*) => {
        $(
            impl Neg for $ty {
                type Output = $ty;

                fn apply(self) -> $ty {
                    let $value = self;
                    $negated
                }
            }
        )*
    };
}

negations! {
    i8, x => scalar::neg(x);
    i16, x => scalar::neg(x);
    i32, x => scalar::neg(x);
    i64, x => scalar::neg(x);
    f16, x => -x;
    bf16, x => -x;
    f32, x => -x;
    f64, x => -x;
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

macro_rules! comparable {
    ($($ty:ty)*) => {
        $(
            impl Compare<$ty> for $ty {
                type Mask = bool;

                fn apply(self, predicate: Predicate, right: $ty) -> bool {
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
        )*
    };
}

comparable!(bool i8 i16 i32 i64 u8 u16 u32 u64 usize f16 bf16 f32 f64);

macro_rules! comparable_with_tiles {
    ($($ty:ty)*) => {
        $(
            impl<const R: usize> Compare<Tile<$ty, R>> for $ty {
                type Mask = Tile<bool, R>;

                fn apply(self, predicate: Predicate, right: Tile<$ty, R>) -> Tile<bool, R> {
                    self.compare(predicate, right)
                }
            }
        )*
    };
}

comparable_with_tiles!(bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64);

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
    fn comparisons_of_tiles_are_tiles() {
        let x = Tile::full([2], 3i32);
        assert_eq!(ge(x, 3).to_vec(), [true, true]);
        assert_eq!(gt(4, x).to_vec(), [true, true]);
        assert_eq!(eq(x, x).to_vec(), [true, true]);
        assert!(ne(1usize, 2) && le(1.0f32, 1.0) && eq(true, true));
    }
}
