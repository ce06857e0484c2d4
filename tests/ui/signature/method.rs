//! A kernel is a free function.

use tile::prelude::*;

struct Model;

impl Model {
    #[tile_kernel]
    fn kernel(&self, y: &mut Tensor<f32, n>) {}
}

fn main() {}
