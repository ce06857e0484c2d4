//! What a variable of a kernel may hold, and so a struct with `#[derive(TileStruct)]`.

use super::Tile;
use super::turns::Tiles;
use half::{bf16, f16};
use tile_runtime::{f8e4m3fn, f8e5m2, f8e8m0fnu};

/// A value of a kernel: a tile, a scalar, or an array, tuple or struct of values.
///
/// `#[derive(TileStruct)]` implements it for structs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a value of a kernel",
    label = "not a tile, a scalar, or an array, tuple or struct of these",
    note = "a struct of tiles and scalars becomes one with `#[derive(TileStruct)]`"
)]
pub trait TileValue: Copy {
    /// Adds the tiles that it holds.
    #[doc(hidden)]
    fn add_tiles(&self, tiles: &mut Tiles);
}

impl<T, const R: usize> TileValue for Tile<T, R> {
    fn add_tiles(&self, tiles: &mut Tiles) {
        tiles.add(self.place());
    }
}

impl<V: TileValue, const N: usize> TileValue for [V; N] {
    fn add_tiles(&self, tiles: &mut Tiles) {
        self.iter().for_each(|value| value.add_tiles(tiles));
    }
}

macro_rules! scalars {
    ($($ty:ty)*) => {
        $(
            impl TileValue for $ty {
                fn add_tiles(&self, _: &mut Tiles) {}
            }
        )*
    };
}

scalars!(bool i8 i16 i32 i64 u8 u16 u32 u64 usize f8e4m3fn f8e5m2 f8e8m0fnu f16 bf16 f32 f64);

macro_rules! tuples {
    ($(($($part:ident)*))*) => {
        $(
            #[allow(non_snake_case)]
            impl<$($part: TileValue),*> TileValue for ($($part,)*) {
                fn add_tiles(&self, tiles: &mut Tiles) {
                    let ($($part,)*) = self;
                    $($part.add_tiles(tiles);)*
                }
            }
        )*
    };
}

tuples!((A)(A B)(A B C)(A B C D)(A B C D E)(A B C D E F));
