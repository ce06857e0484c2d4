//! Which tiles a block has handled depends on how many blocks there are.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const G: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    for mut tile in y.tiles_persistent(RowMajor) {
        let [i] = tile.index();
        if i > 3 {
            break;
        }
        tile.store_masked(x.load_masked([i]));
    }
}

fn main() {}
