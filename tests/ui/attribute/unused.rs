//! Kernels that nothing launches are told of as functions are, and what the attribute makes of others is none of the author's.

#![deny(unused, missing_debug_implementations)]

use tile::prelude::*;

#[forbid(dead_code, unsafe_code, non_camel_case_types, non_local_definitions, missing_copy_implementations)]
mod strict {
    use tile::prelude::*;

    #[tile_fn]
    fn doubled(x: Tile<f32, 1>) -> Tile<f32, 1> {
        x * 2.0
    }

    #[tile_kernel]
    pub(crate) fn launched<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        y.store_masked(doubled(x.load_masked(y.index())));
    }

    #[tile_kernel]
    fn unused<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        y.store_masked(x.load_masked(y.index()));
    }
}

#[tile_kernel(instances(T = f32, UP = true | false, B = 64 | 128))]
fn chosen<T: Float, const UP: bool, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    y.store_masked(if UP { x + x } else { x });
}

#[tile_kernel]
#[expect(dead_code)]
fn expected<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()));
}

#[tile_kernel]
fn looked_at<const UP: bool, const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    y.store_masked(if UP { x + x } else { x });
}

fn main() -> tile::Result<()> {
    println!("{}", looked_at::ir());
    let x = Tensor::from_slice(&Device::cpu(), &[1.0f32], [1])?;
    let mut y = Tensor::zeros(&Device::cpu(), [1])?;
    strict::launched::<8>(&x, &mut y).launch()?;
    chosen::best::<f32, true>(&x, &mut y).launch()
}
