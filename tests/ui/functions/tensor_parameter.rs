//! A tensor that a function looks up is a closure to it.

use tile::prelude::*;

mod sampling {
    use tile::prelude::*;

    #[tile_fn]
    pub fn sample(image: &Tensor<f32, m, n>, row: Tile<i32, 2>) -> Tile<f32, 2> {
        image.gather([row, row])
    }
}

#[tile_kernel]
fn kernel(image: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([1, 4]);
    y.store_masked(sampling::sample(image, Tile::iota([1, 4], 1)));
}

#[tile_fn]
fn beside(image: &Tensor<f32, m, n>, row: Tile<i32, 2>) -> Tile<f32, 2> {
    image.gather([row, row])
}

#[tile_kernel]
fn of_this_module(image: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let mut y = y.partition_view_mut([1, 4]);
    y.store_masked(beside(image, Tile::iota([1, 4], 1)));
}

#[tile_kernels]
mod together {
    use tile::prelude::*;

    #[tile_fn]
    fn sample(image: &Tensor<f32, m, n>, row: Tile<i32, 2>) -> Tile<f32, 2> {
        image.gather([row, row])
    }

    #[tile_kernel]
    pub fn kernel(image: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
        let mut y = y.partition_view_mut([1, 4]);
        y.store_masked(sample(image, Tile::iota([1, 4], 1)));
    }
}

fn main() {}
