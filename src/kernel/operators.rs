//! The operators on tiles, one table row each: tile with tile, tile with scalar, scalar with tile, and the
//! assigning forms. Axes of extent 1 are broadcast.

use super::compare::Pair;
use super::{Bits, Int, Number, Tile};
use half::{bf16, f16};
use std::ops;
use tile_ir::ops::{BinaryOp, UnaryOp};
use tile_runtime::{f8e4m3fn, f8e5m2};

macro_rules! binary_operators {
    ($($op:ident $trait:ident $method:ident $assign_trait:ident $assign:ident $bound:ident [$($scalar:ty)*];)*) => {
        $(
            #[diagnostic::do_not_recommend]
            impl<T: $bound, const R: usize> ops::$trait for Tile<T, R> {
                type Output = Tile<T, R>;
                fn $method(self, right: Tile<T, R>) -> Tile<T, R> {
                    self.binary(BinaryOp::$op, right)
                }
            }

            #[diagnostic::do_not_recommend]
            impl<T: $bound, const R: usize> ops::$trait<T> for Tile<T, R> {
                type Output = Tile<T, R>;
                fn $method(self, right: T) -> Tile<T, R> {
                    self.binary(BinaryOp::$op, right)
                }
            }

            // Rust allows `scalar op tile` for concrete scalars only.
            $(
                #[diagnostic::do_not_recommend]
                impl<const R: usize> ops::$trait<Tile<$scalar, R>> for $scalar {
                    type Output = Tile<$scalar, R>;
                    fn $method(self, right: Tile<$scalar, R>) -> Tile<$scalar, R> {
                        self.binary(BinaryOp::$op, right)
                    }
                }
            )*

            impl<T: $bound, const R: usize> ops::$assign_trait for Tile<T, R> {
                fn $assign(&mut self, right: Tile<T, R>) {
                    *self = self.binary(BinaryOp::$op, right);
                }
            }

            impl<T: $bound, const R: usize> ops::$assign_trait<T> for Tile<T, R> {
                fn $assign(&mut self, right: T) {
                    *self = self.binary(BinaryOp::$op, right);
                }
            }
        )*

        /// The binary ops that are operators; the others are functions.
        #[cfg(test)]
        const BINARY: &[(BinaryOp, fn(Tile<u8, 1>, Tile<u8, 1>) -> Tile<u8, 1>)] =
            &[$((BinaryOp::$op, ops::$trait::$method),)*];
    };
}

binary_operators! {
    Add Add add AddAssign add_assign Number [i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64];
    Sub Sub sub SubAssign sub_assign Number [i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64];
    Mul Mul mul MulAssign mul_assign Number [i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64];
    Div Div div DivAssign div_assign Number [i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64];
    Rem Rem rem RemAssign rem_assign Number [i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64];
    And BitAnd bitand BitAndAssign bitand_assign Bits [bool i8 i16 i32 i64 u8 u16 u32 u64];
    Or BitOr bitor BitOrAssign bitor_assign Bits [bool i8 i16 i32 i64 u8 u16 u32 u64];
    Xor BitXor bitxor BitXorAssign bitxor_assign Bits [bool i8 i16 i32 i64 u8 u16 u32 u64];
    Shl Shl shl ShlAssign shl_assign Int [i8 i16 i32 i64 u8 u16 u32 u64];
    Shr Shr shr ShrAssign shr_assign Int [i8 i16 i32 i64 u8 u16 u32 u64];
}

macro_rules! unary_operators {
    ($($op:ident $trait:ident $method:ident $bound:ident;)*) => {
        $(
            #[diagnostic::do_not_recommend]
            impl<T: $bound, const R: usize> ops::$trait for Tile<T, R> {
                type Output = Tile<T, R>;
                fn $method(self) -> Tile<T, R> {
                    Tile::hold(self.array().unary(UnaryOp::$op))
                }
            }
        )*

        /// The unary ops that are operators; the others are functions.
        #[cfg(test)]
        const UNARY: &[(UnaryOp, fn(Tile<i8, 1>) -> Tile<i8, 1>)] =
            &[$((UnaryOp::$op, ops::$trait::$method),)*];
    };
}

unary_operators! {
    Neg Neg neg Number;
    Not Not not Bits;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::DType;

    #[test]
    fn operators_agree_with_the_op_table() {
        let mut declared: Vec<&str> = BINARY.iter().map(|(op, _)| op.name()).collect();
        declared.extend(UNARY.iter().map(|(op, _)| op.name()));
        let unary = UnaryOp::ALL.iter().filter(|op| op.operator().is_some()).map(|op| op.name());
        let binary = BinaryOp::ALL.iter().filter(|op| op.operator().is_some()).map(|op| op.name());
        let missing: Vec<&str> = unary.chain(binary).filter(|name| !declared.contains(name)).collect();
        assert_eq!(missing, [""; 0], "operators of the op tables that tiles don't have");
        let (a, b) = (201, 3);
        for (op, operator) in BINARY {
            let expected = op.int()(a, b, DType::U8) as u8;
            assert_eq!(
                operator(Tile::full([2], a as u8), Tile::full([2], b as u8)).to_vec(),
                [expected; 2],
                "{op:?}"
            );
        }
        for (op, operator) in UNARY {
            let expected = op.int()(5, DType::I8) as i8;
            assert_eq!(operator(Tile::full([1], 5i8)).to_vec(), [expected], "{op:?}");
        }
    }

    #[test]
    fn scalars_stand_on_either_side() {
        let x = Tile::full([1], 3.0f32);
        assert_eq!((x * 2.0).to_vec(), [6.0]);
        assert_eq!((2.0 - x).to_vec(), [-1.0]);
        let half = bf16::from_f32(0.5);
        assert_eq!((half * Tile::full([1], half)).to_vec(), [bf16::from_f32(0.25)]);
        assert_eq!((Tile::full([1], 6i32) >> 1 & 1).to_vec(), [1]);
        assert_eq!((true ^ !Tile::full([1], true)).to_vec(), [true]);
    }

    #[test]
    fn assigning_forms_are_the_operators() {
        let mut x = Tile::full([2, 1], 3i32);
        x += 4;
        x *= Tile::full([2, 1], 2);
        x <<= 1;
        x |= 1;
        assert_eq!(x.to_vec(), [29, 29]);
    }

    #[test]
    fn size_one_axes_are_broadcast() {
        let rows = Tile::<i32, 2>::iota([2, 1], 0);
        let columns = Tile::<i32, 2>::iota([1, 3], 1);
        assert_eq!((rows * 10 + columns).to_vec(), [0, 1, 2, 10, 11, 12]);
    }

    #[test]
    #[should_panic(expected = "`+` mixes shapes [2] and [3]")]
    fn shapes_that_do_not_fit_are_named() {
        let _ = Tile::<f32, 1>::zeros([2]) + Tile::zeros([3]);
    }
}
