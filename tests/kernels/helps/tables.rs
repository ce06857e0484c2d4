//! Tables of constants, and what is looked up elsewhere.

use super::super::devices;
use tile::prelude::*;

#[tile_kernel]
fn looked_up(x: &Tensor<i32, 4>, tensor: &Tensor<f32, 4>, y: &mut Tensor<f32, 4>) {
    const TABLE: [f32; 4] = [1.0, 20.0, 300.0, 4000.0];
    let mut y = y.partition_view_mut([4]);
    let indices = x.partition_view([4]).load([0]);
    let tile = Tile::from_array(TABLE);
    let axis = 0;
    let x = indices;
    y.store(x.lookup(TABLE) + tile.gather(indices, axis) + tensor.gather([indices]));
}

#[test]
fn tables_tiles_and_tensors_are_looked_up() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[2, 0, 4, 1], [4]).unwrap();
        let tensor = Tensor::from_slice(&device, &[0.5, 0.25, 0.75, 0.125], [4]).unwrap();
        let mut y = Tensor::zeros(&device, [4]).unwrap();
        looked_up(&x, &tensor, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [600.75, 2.5, 0.0, 40.25], "{label}");
    }
}
