//! `break` and `return` in an argument of a macro.

use tile::prelude::*;

#[tile_kernel]
fn kernel<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>, k: i32) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    let mut acc = x;
    for i in 0..k {
        let t = dbg!({
            if i > 3 {
                break;
            }
            x * 3.0
        });
        acc += t;
    }
    tile_assert!(if k > 5 { return } else { k > 1 });
    y.store_masked(acc);
}

fn main() {}
