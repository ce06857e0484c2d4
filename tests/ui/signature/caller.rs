//! A caller of a wrong kernel has no errors of its own.

use tile::prelude::*;

#[tile_kernel]
fn kernel<T: Float, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>, alpha: f32) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B, B]);
    y.store_masked(x.load_masked(y.index()) * alpha);
}

fn call(x: &Tensor<f32>, y: &mut Tensor<f32>) -> tile::Result<()> {
    println!("{}", kernel::ir());
    kernel::<f32, 16>(x, y, 1.0).launch()
}

fn main() {
    let _ = call;
}
