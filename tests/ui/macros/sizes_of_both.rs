//! A macro binds a name that is a size of the signature which it is given, or the other way round: two variables for Rust.

use tile::prelude::*;

macro_rules! filled {
    ($name:ident, ($($arguments:tt)*), $body:expr) => {
        #[tile_kernel]
        fn $name($($arguments)*) {
            let n = 7usize;
            tile_assert!(n == 7);
            $body
        }
    };
}

filled!(fine, (y: &mut Tensor<f32, m>), {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(Tile::full([4], m as f32))
});
filled!(sized, (y: &mut Tensor<f32, n>), {
    let mut y = y.partition_view_mut([4]);
    y.store_masked(Tile::full([4], n as f32))
});

macro_rules! of_sizes {
    ($name:ident, $size:ident) => {
        #[tile_kernel]
        fn $name(y: &mut Tensor<f32, m>) {
            let $size = 7usize;
            let mut y = y.partition_view_mut([4]);
            y.store_masked(Tile::full([4], (m + $size) as f32))
        }
    };
}

of_sizes!(fine_too, k);
of_sizes!(named, m);

fn main() {}
