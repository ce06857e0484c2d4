//! A table that is looked up at run time is a tensor.

use tile::prelude::*;

#[tile_kernels]
mod kernels {
    const SBOX: [u8; 4] = [0x63, 0x7c, 0x77, 0x7b];

    #[tile_kernel]
    pub fn of_tile<const B: usize>(x: &Tensor<i32, n>, y: &mut Tensor<u8, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let tile = x.load_masked(y.index());
        y.store_masked(SBOX[tile & 3]);
    }

    #[tile_kernel]
    pub fn of_block<const B: usize>(y: &mut Tensor<u8, n>) {
        let mut y = y.partition_view_mut([B]);
        let [i] = y.index();
        y.store_masked(Tile::full([B], SBOX[i % 4]));
    }
}

fn main() {}
