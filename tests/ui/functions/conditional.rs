//! `#[cfg]` on a constant that a kernel uses, and on a statement.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    #[cfg(not(any()))]
    const SCALE: f32 = 2.0;
    #[cfg(any())]
    const SCALE: f32 = 100.0;

    #[tile_kernel]
    pub fn scaled<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        y.store_masked(x.load_masked(y.index()) * SCALE);
    }
}

#[tile_kernel]
fn statement<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let s = 2.0;
    #[cfg(any())]
    let s = 100.0;
    y.store_masked(x.load_masked(y.index()) * s);
}

fn main() {}
