//! Case 20 of the behavioural cases: windows, joins, permutations, reshapes and broadcasts of tiles.

use super::{Case, array, widen};
use tile::prelude::*;

/// A 2×2 window of a 4×4 tile, taken out.
#[tile_kernel]
fn window(x: &Tensor<i32, 4, 4>, y: &mut Tensor<i32, 2, 2>) {
    let x = x.partition_view([4, 4]);
    let mut y = y.partition_view_mut([2, 2]);
    y.store_masked(x.load_masked(y.index()).extract([0, 2], [2, 2]));
}

/// The window put back where zeros were written.
#[tile_kernel]
fn round_trip(x: &Tensor<i32, 4, 4>, y: &mut Tensor<i32, 4, 4>) {
    let x = x.partition_view([4, 4]);
    let mut y = y.partition_view_mut([4, 4]);
    let x = x.load_masked(y.index());
    let hole = x.insert([0, 2], Tile::zeros([2, 2]));
    y.store_masked(hole.insert([0, 2], x.extract([0, 2], [2, 2])));
}

/// 64×1 ones and 64×2 twos.
#[tile_kernel]
fn ones_and_twos(y: &mut Tensor<i32, 64, 3>) {
    let mut y = y.partition_view_mut([64, 3]);
    y.store_masked(cat([Tile::ones([64, 1]), Tile::full([64, 2], 2)], 1));
}

#[tile_kernel]
fn permuted(x: &Tensor<i32, 2, 4, 8>, y: &mut Tensor<i32, 8, 2, 4>) {
    let x = x.partition_view([2, 4, 8]);
    let mut y = y.partition_view_mut([8, 2, 4]);
    y.store_masked(x.load_masked(y.index()).permute([2, 0, 1]));
}

#[tile_kernel]
fn reshaped_and_repeated(x: &Tensor<i32, 1, 2>, y: &mut Tensor<i32, 2, 3>) {
    let x = x.partition_view([1, 2]);
    let mut y = y.partition_view_mut([2, 3]);
    y.store_masked(x.load_masked(y.index()).reshape([2, 1]).broadcast([2, 3]));
}

fn counted(n: usize) -> Vec<i32> {
    (0..n as i32).collect()
}

/// Runs a kernel of one input and one output in every way.
macro_rules! check {
    ($kernel:ident: $from:expr => $to:expr, $expected:expr) => {{
        let (from, to) = ($from, $to);
        let x = counted(from.iter().product());
        let blank = vec![-7; to.iter().product()];
        Case {
            ir: $kernel::ir(),
            bindings: &[],
            arguments: vec![array(&x, &from), array(&blank, &to)],
            output: 1,
            expected: $expected,
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, from)?;
                let mut y = Tensor::from_slice(device, &blank, to)?;
                $kernel(&x, &mut y).launch()?;
                Ok(widen(&y.to_vec()?))
            },
        }
        .check();
    }};
}

#[test]
fn case_20_movement() {
    check!(window: [4, 4] => [2, 2], vec![2.0, 3.0, 6.0, 7.0]);
    check!(round_trip: [4, 4] => [4, 4], widen(&counted(16)));
    let mut turned = Vec::new();
    for k in 0..8 {
        for i in 0..2 {
            turned.extend((0..4).map(|j| f64::from((i * 4 + j) * 8 + k)));
        }
    }
    check!(permuted: [2, 4, 8] => [8, 2, 4], turned);
    check!(reshaped_and_repeated: [1, 2] => [2, 3], vec![0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    Case {
        ir: ones_and_twos::ir(),
        bindings: &[],
        arguments: vec![array(&[0i32; 192], &[64, 3])],
        output: 0,
        expected: [1.0, 2.0, 2.0].repeat(64),
        tolerance: 0.0,
        run: &|device| {
            let mut y = Tensor::zeros(device, [64, 3])?;
            ones_and_twos(&mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}
