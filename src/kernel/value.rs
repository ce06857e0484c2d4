//! What a variable of a kernel may hold, and so a struct with `#[derive(TileStruct)]`.

use super::Tile;
use half::{bf16, f16};

/// A value of a kernel: a tile, a scalar, or an array, tuple or struct of values.
///
/// `#[derive(TileStruct)]` implements it for structs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a value of a kernel",
    label = "not a tile, a scalar, or an array, tuple or struct of these",
    note = "a struct of tiles and scalars becomes one with `#[derive(TileStruct)]`"
)]
pub trait TileValue: Copy {}

impl<T, const R: usize> TileValue for Tile<T, R> {}

impl<V: TileValue, const N: usize> TileValue for [V; N] {}

macro_rules! scalars {
    ($($ty:ty)*) => {
        $(impl TileValue for $ty {})*
    };
}

scalars!(bool i8 i16 i32 i64 u8 u16 u32 u64 usize f16 bf16 f32 f64);

macro_rules! tuples {
    ($(($($part:ident)*))*) => {
        $(impl<$($part: TileValue),*> TileValue for ($($part,)*) {})*
    };
}

tuples!((A)(A B)(A B C)(A B C D)(A B C D E)(A B C D E F));
