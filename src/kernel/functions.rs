//! Functions of tiles and scalars: the leaf ops that have no operator. They are made of the rows of the op tables
//! ([`tile_ir::unary_ops`], [`tile_ir::binary_ops`], [`tile_ir::classifications`]), so that a row is all a function needs.
//!
//! Every function is also a method of [`Tile`], but `min` and `max`, which as methods reduce an axis.

use super::arguments::{FloatValue, IntValue, SignedValue};
use super::compare::Pair;
use super::either::ShiftAmount;
use super::rotations::Rotated;
use super::{Float, Int, Number, Tile};
use tile_ir::ops::{BinaryOp, Classification, UnaryOp};

/// A function of one value and the method of its name, by the domain of its row; operators are in [`super::operators`].
macro_rules! unary_function {
    ([$operator:literal] $($row:tt)*) => {};
    ([] SignedNumber $($row:tt)*) => { unary_function! { SignedValue signed_function Number "-7.0f32" $($row)* } };
    ([] Float Acosh $($row:tt)*) => { unary_function! { FloatValue float_function Float "1.5f32" Acosh $($row)* } };
    ([] Float $($row:tt)*) => { unary_function! { FloatValue float_function Float "0.5f32" $($row)* } };
    ([] F32 $($row:tt)*) => { unary_function! { FloatValue float_function Float "0.5f32" $($row)* } };
    ([] Int $($row:tt)*) => { unary_function! { IntValue int_function Int "40i32" $($row)* } };
    ($trait:ident $function:ident $bound:ident $example:literal $op:ident $name:ident $doc:expr) => {
        #[doc = $doc]
        ///
        /// Of a scalar, or of each element of a tile.
        ///
        /// ```
        /// use tile::prelude::*;
        #[doc = concat!("let tile = Tile::full([1], ", $example, ");")]
        #[doc = concat!("assert_eq!(", stringify!($name), "(", $example, "), ", stringify!($name), "(tile).item());")]
        /// ```
        pub fn $name<Value: $trait>(x: Value) -> Value {
            x.$function(UnaryOp::$op)
        }

        impl<T: $bound, const R: usize> Tile<T, R> {
            #[doc = $doc]
            ///
            /// Of each element.
            pub fn $name(self) -> Self {
                self.$function(UnaryOp::$op)
            }
        }
    };
}

macro_rules! unary_functions {
    ($($op:ident $name:ident $($operator:literal)? of $domain:ident $([$($property:ident)*])?,
        int: $int:expr, float: $float:expr, $doc:literal $($ulps:literal $further:literal)?;)*) => {
        $(unary_function! { [$($operator)?] $domain $op $name concat!($doc $(, $ulps, $further)?) })*
    };
}

tile_ir::unary_ops!(unary_functions);

macro_rules! classifying_functions {
    ($($classification:ident $name:ident, $float:expr, $doc:literal;)*) => { $(
        #[doc = $doc]
        ///
        /// Of a scalar, or of each element of a tile.
        ///
        /// ```
        /// use tile::prelude::*;
        #[doc = concat!("assert_eq!(", stringify!($name), "(0.5f32), 0.5f32.", stringify!($name), "());")]
        /// ```
        pub fn $name<Value: FloatValue>(x: Value) -> Value::Mask {
            x.classify(Classification::$classification)
        }

        impl<T: Float, const R: usize> Tile<T, R> {
            #[doc = $doc]
            ///
            /// Of each element.
            pub fn $name(self) -> Tile<bool, R> {
                self.classify(Classification::$classification)
            }
        }
    )* };
}

tile_ir::classifications!(classifying_functions);

/// A function of two values, by the domain of its row, and what the domain and the row say of its method.
macro_rules! binary_function {
    ([$operator:literal] $($row:tt)*) => {};
    ([] $bits:tt Number $($row:tt)*) => { binary_function! { pair "1.0f32" "2.0" $($row)* } };
    ([] $bits:tt U64 $($row:tt)*) => { binary_function! { pair "1u64" "2" $($row)* } };
    ([] $bits:tt Float $($row:tt)*) => {
        binary_function! { pair "1.0f32" "2.0" $($row)* }
        binary_function! { method Float $($row)* }
    };
    ([] [MovesBits $($property:ident)*] Int $($row:tt)*) => { binary_function! { rotation $($row)* } };
    ([] $other:tt Int $($row:tt)*) => {
        binary_function! { pair "1i32" "2" $($row)* }
        binary_function! { method Int $($row)* }
    };
    (pair $left:literal $right:literal $op:ident $name:ident $doc:expr) => {
        #[doc = $doc]
        ///
        /// Elementwise. Each of the two is a tile or a scalar; axes of extent 1 are broadcast.
        ///
        /// ```
        /// use tile::prelude::*;
        #[doc = concat!("let tile = Tile::full([1], ", $left, ");")]
        #[doc = concat!("assert_eq!(", stringify!($name), "(tile, ", $right, ").item(), ", stringify!($name), "(", $left, ", ", $right, "));")]
        /// ```
        pub fn $name<A: Pair<B>, B>(a: A, b: B) -> A::Output {
            a.binary(BinaryOp::$op, b)
        }
    };
    (method $bound:ident $op:ident $name:ident $doc:expr) => {
        impl<T: $bound, const R: usize> Tile<T, R> {
            #[doc = $doc]
            ///
            /// Elementwise, of this tile as `a` and a tile or a scalar; axes of extent 1 are broadcast.
            pub fn $name<B>(self, b: B) -> Self
            where
                Self: Pair<B, Output = Self>,
            {
                self.binary(BinaryOp::$op, b)
            }
        }
    };
    (rotation $op:ident $name:ident $doc:expr) => {
        #[doc = $doc]
        ///
        /// Elementwise. The amount is an integer of any type, or a tile of the elements' type; axes of extent 1 are broadcast.
        ///
        /// ```
        /// use tile::prelude::*;
        #[doc = concat!("assert_eq!(", stringify!($name), "(0x1234_5678u32, 40), 0x1234_5678u32.", stringify!($name), "(8));")]
        /// ```
        pub fn $name<Value: Rotated<By>, By>(x: Value, by: By) -> Value::Output {
            x.rotate(BinaryOp::$op, by)
        }

        impl<T: Int, const R: usize> Tile<T, R> {
            #[doc = $doc]
            ///
            /// Elementwise. The amount is an integer of any type, or a tile of the elements' type; axes of extent 1 are
            /// broadcast.
            pub fn $name<By: ShiftAmount<T, R>>(self, by: By) -> Self {
                by.shift(BinaryOp::$op, self)
            }
        }
    };
}

macro_rules! binary_functions {
    ($($op:ident $name:ident $($operator:literal)? of $domain:ident $([$($property:ident)*])?,
        int: $int:expr, float: $float:expr, $doc:literal $($ulps:literal $further:literal)?;)*) => {
        $(binary_function! {
            [$($operator)?] [$($($property)*)?] $domain $op $name concat!($doc $(, $ulps, $further)?)
        })*
    };
}

tile_ir::binary_ops!(binary_functions);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_take_scalars_too() {
        assert_eq!(exp(0.0f32), 1.0);
        assert_eq!(abs(-3i32), 3);
        assert_eq!(max(2.0f32, 1.0), 2.0);
        let x = Tile::<f32, 1>::iota([3], 0);
        assert_eq!(max(x, 1.0).to_vec(), [1.0, 1.0, 2.0]);
        assert_eq!(max(1.0, x).to_vec(), [1.0, 1.0, 2.0]);
        assert_eq!(x.minimum(1.0).to_vec(), [0.0, 1.0, 1.0]);
        assert_eq!(x.copysign(-1.0).to_vec(), [-0.0, -1.0, -2.0]);
        assert_eq!(saturating_add(i32::MAX, 1), i32::MAX);
        assert_eq!(Tile::<u8, 1>::iota([2], 0).saturating_sub(1).to_vec(), [0, 0]);
        assert!(is_nan(f32::NAN) && !is_finite(f64::INFINITY));
        assert_eq!((rotate_left(0x81u8, 9u64), rotate_right(1i16, 1)), (3, i16::MIN));
        assert_eq!(rotate_left(1u64, Tile::<u64, 1>::iota([3], 0)).to_vec(), [1, 2, 4]);
        assert_eq!((swap_bytes(0x1234u16), swap_bytes(7i8), reverse_bits(1i32)), (0x3412, 7, i32::MIN));
    }
}
