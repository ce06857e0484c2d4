//! What threads do together in other languages, which is said of tiles here.

use super::super::devices;
use tile::prelude::*;

/// A case for each row of `y`, of the first row of `x`.
#[tile_kernel(where(bias.is_some() || n > 0))]
fn kernel(x: &Tensor<i32, m, n>, bias: Option<&Tensor<i32, n>>, y: &mut Tensor<i32, 16, 8>) {
    const M: usize = 1;
    const K: usize = 2;
    const BINS: usize = 8;
    const BM: usize = 1;
    const BK: usize = 8;
    let mut y = y.partition_view_mut([1, 8]).spanning([0]);
    let x = x.partition_view([BM, BK]);
    let x = x.load_masked(y.index());
    let x =
        if let Some(bias) = bias { x + bias.partition_view([8]).load_masked([0]).unsqueeze(0) } else { x };
    let (i, by, fill) = (3, 1, -1);
    let all = |x: Tile<bool, 2>| x.all(1);
    let any = |x: Tile<bool, 2>| x.any(1);
    let number = |x: Tile<i32, 2>| x.item();
    let (values, positions) = x.top_k(K, 1);
    let ordinals: Tile<i32, 2> = Tile::iota([M, 1], 0);
    let rows = [
        x.prod(1).broadcast([1, 8]),
        x.cumsum(1),
        x.cumsum_exclusive(1),
        x.cumprod(1),
        x.cumprod_exclusive(1),
        x.sort(1),
        x.argsort(1),
        x.take(i, 1).broadcast([1, 8]),
        x.roll(1, by),
        x.shift(1, by, fill),
        select(all(x > 0), 1, 0).broadcast([1, 8]),
        select(any(x > 6), 1, 0).broadcast([1, 8]),
        Tile::full([1, 8], number(x.sum(1))),
        cat([values, positions, values, positions], 1),
        x.histogram(BINS).reshape([1, 8]),
        ordinals.broadcast([1, 8]),
    ];
    for i in 0..rows.len() {
        y.at([i]).store(rows[i]);
    }
}

#[test]
fn what_threads_do_together_tiles_do() -> tile::Result<()> {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[3, 1, 2, 7, 5, 0, 4, 2], [1, 8])?;
        let mut y = Tensor::zeros(&device, [16, 8])?;
        kernel(&x, None, &mut y).launch()?;
        let expected = [
            [0; 8],
            [3, 4, 6, 13, 18, 18, 22, 24],
            [0, 3, 4, 6, 13, 18, 18, 22],
            [3, 3, 6, 42, 210, 0, 0, 0],
            [1, 3, 3, 6, 42, 210, 0, 0],
            [0, 1, 2, 2, 3, 4, 5, 7],
            [5, 1, 2, 7, 0, 6, 4, 3],
            [7; 8],
            [2, 3, 1, 2, 7, 5, 0, 4],
            [-1, 3, 1, 2, 7, 5, 0, 4],
            [0; 8],
            [1; 8],
            [24; 8],
            [7, 5, 3, 4, 7, 5, 3, 4],
            [1, 1, 2, 1, 1, 1, 0, 1],
            [0; 8],
        ];
        assert_eq!(y.to_vec()?, expected.concat(), "{label}");
    }
    Ok(())
}
