//! Functions of kernels in another crate than the kernels that call them: `tests/kernels/functions.rs`. Kernels of a crate in
//! which rustc looks for no overflows: `tests/kernels/launches.rs`.

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

/// A kernel for every operator of extents that may overflow, which gives every element of `y` what comes of the extents of `x`
/// and `y`.
#[tile_kernels]
pub mod extents {
    use tile::prelude::*;

    /// More than an eighth of all that a `usize` holds.
    const LARGE: usize = 2usize.pow(61) + 1;

    /// `m + n`, each as often as there are `LARGE`.
    #[tile_kernel]
    pub fn sum(x: &Tensor<i32, m>, y: &mut Tensor<i32, n>) {
        let mut y = y.partition_view_mut([4]);
        let extent = m * LARGE + n * LARGE;
        y.store_masked(Tile::full([4], extent as i32));
    }

    /// `m - n`, in all blocks but the first.
    #[tile_kernel]
    pub fn difference(x: &Tensor<i32, m>, y: &mut Tensor<i32, n>) {
        let mut y = y.partition_view_mut([4]);
        let [i] = y.index();
        let mut extent = 0;
        if i > 0 {
            extent = m - n;
        }
        y.store_masked(Tile::full([4], extent as i32));
    }

    /// `m * LARGE`.
    #[tile_kernel]
    pub fn product(x: &Tensor<i32, m>, y: &mut Tensor<i32, n>) {
        let mut y = y.partition_view_mut([4]);
        let extent = m * LARGE;
        y.store_masked(Tile::full([4], extent as i32));
    }

    /// [`sum()`], by an assignment.
    #[tile_kernel]
    pub fn assigned_sum(x: &Tensor<i32, m>, y: &mut Tensor<i32, n>) {
        let mut y = y.partition_view_mut([4]);
        let mut extent = m * LARGE;
        extent += n * LARGE;
        y.store_masked(Tile::full([4], extent as i32));
    }

    /// `m - n`, by an assignment.
    #[tile_kernel]
    pub fn assigned_difference(x: &Tensor<i32, m>, y: &mut Tensor<i32, n>) {
        let mut y = y.partition_view_mut([4]);
        let mut extent = m;
        extent -= n;
        y.store_masked(Tile::full([4], extent as i32));
    }

    /// [`product()`], by an assignment.
    #[tile_kernel]
    pub fn assigned_product(x: &Tensor<i32, m>, y: &mut Tensor<i32, n>) {
        let mut y = y.partition_view_mut([4]);
        let mut extent = m;
        extent *= LARGE;
        y.store_masked(Tile::full([4], extent as i32));
    }
}
