//! Sums of known numbers whose type another use decides, and which they are no numbers of.

use tile::prelude::*;

#[tile_kernel]
fn wraps(x: &Tensor<u8, n>, y: &mut Tensor<i32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let largest = x.load_masked(y.index()).max(0).item();
    let mut sum = 0;
    for step in [200, 1] {
        sum += (step + 100) as i32;
        sum += (largest + step) as i32;
    }
    y.store_masked(Tile::full([4], sum));
}

fn main() {}
