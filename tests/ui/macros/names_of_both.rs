//! A macro and its caller bind a name each: two variables for Rust.

use tile::prelude::*;

macro_rules! elementwise {
    ($name:ident, |$x:ident| $value:expr) => {
        #[tile_kernel]
        fn $name(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
            let mut y = y.partition_view_mut([1]);
            let $x = x.partition_view([1]).load_masked(y.index());
            let t = $x * 100.0;
            y.store_masked($value + t * 0.0);
        }
    };
}

elementwise!(fine, |x1| x1 + 1.0);
elementwise!(same, |t| t + 1.0);

fn main() {}
