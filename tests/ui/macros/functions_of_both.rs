//! A macro binds a closure, and its caller calls a function of this name: for Rust they are two.

use tile::prelude::*;

macro_rules! shifted {
    ($name:ident, |$x:ident| $value:expr) => {
        #[tile_kernel]
        fn $name(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
            let mut y = y.partition_view_mut([1]);
            let $x = x.partition_view([1]).load_masked(y.index());
            let exp = |own: Tile<f32, 1>| own + 100.0;
            y.store_masked(exp($x) + $value);
        }
    };
}

shifted!(fine, |t| t.exp());
shifted!(same, |t| exp(t));

fn main() {}
