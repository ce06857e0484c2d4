//! A module that imports what its kernels name one by one: rustc takes each import for used, and misses none.

use super::numbers;
use tile::prelude::*;

mod kernels {
    #![deny(unused_imports)]

    use tile::prelude::{PartitionView, Tensor, Tile, tile_fn, tile_kernel};

    #[tile_fn]
    fn doubled<const B: usize>(x: PartitionView<f32, 1>, i: usize) -> Tile<f32, 1> {
        x.load_masked([i]) * 2.0
    }

    #[tile_kernel]
    pub(super) fn sum<const B: usize>(
        x: &Tensor<f32, n>,
        more: Option<&tile::Tensor<f32, n>>,
        y: &mut Tensor<f32, n>,
    ) {
        let mut y = y.partition_view_mut([B]);
        let [i] = y.index();
        let mut sum = doubled::<B>(x.partition_view([B]), i);
        if let Some(more) = more {
            sum += more.partition_view([B]).load_masked([i]);
        }
        y.store_masked(sum);
    }
}

#[test]
fn imports_are_used_one_by_one() {
    let device = Device::reference();
    let x = Tensor::from_slice(&device, &numbers::<f32>(5, 1), [5]).unwrap();
    let mut y = Tensor::zeros(&device, [5]).unwrap();
    kernels::sum::<4>(&x, Some(&x), &mut y).launch().unwrap();
    let triple: Vec<f32> = x.to_vec().unwrap().iter().map(|x| x * 3.0).collect();
    assert_eq!(y.to_vec().unwrap(), triple);
}
