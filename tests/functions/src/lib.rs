//! Functions of kernels in another crate than the kernels that call them: `tests/kernels/functions.rs`.

use tile::prelude::*;

/// Every element, 7 larger.
#[tile_fn]
pub fn offset(x: Tile<i32, 1>) -> Tile<i32, 1> {
    x + 7
}

/// Twice what a function of the crate's root gives.
#[tile_fn]
pub fn through(x: Tile<i32, 1>) -> Tile<i32, 1> {
    parts::doubled(offset(x))
}

/// Functions that call each other.
#[tile_kernels]
pub mod parts {
    use tile::prelude::*;

    const FACTOR: i32 = 3;

    #[tile_fn]
    fn scaled<T: Number>(x: Tile<T, 1>, factor: T) -> Tile<T, 1> {
        x * factor
    }

    /// Twice `x`.
    #[tile_fn]
    pub fn doubled(x: Tile<i32, 1>) -> Tile<i32, 1> {
        scaled(x, 2)
    }

    /// Three times `x` without `y`; the name of a parameter means nothing to a caller.
    #[tile_fn]
    pub fn mixed<const N: usize>(x: Tile<i32, 1>, y: Tile<i32, 1>) -> Tile<i32, 1> {
        scaled(x, FACTOR) - y + Tile::zeros([N])
    }
}

/// Modules whose functions have one name and one place, that of the macro's text.
macro_rules! shifts {
    ($($module:ident by $by:literal;)*) => { $(
        #[allow(missing_docs)]
        pub mod $module {
            use tile::prelude::*;

            #[tile_fn]
            pub fn shifted(x: Tile<i32, 1>) -> Tile<i32, 1> {
                x + $by
            }
        }
    )* };
}

shifts! {
    near by 1;
    far by 100;
}
