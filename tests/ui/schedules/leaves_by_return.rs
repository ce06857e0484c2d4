//! A return would leave tiles too.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const G: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    for mut tile in y.tiles_persistent(Grouped(G)) {
        let own = x.load_masked(tile.index());
        for p in 0..3 {
            if p == G {
                return;
            }
        }
        tile.store_masked(own);
    }
}

fn main() {}
