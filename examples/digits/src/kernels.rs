//! The two kernels: all pairwise distances, and a vote of the nearest.

use tile::prelude::*;

/// Squared distances between images: `|x|² + |y|² − 2·x·y`, the last through `mma`. Pixels are integers up to 16, which
/// bf16 has exactly: matrix instructions multiply them, and sums of f32 are exact, too. An image is one tile, so there is no
/// loop in whose turns Hopper would copy tiles; that its warps multiply alone is meant so.
#[tile_kernel(instances(BM = 64, BN = 64), allow(slow_product))]
pub(crate) fn distances<const BM: usize, const BN: usize>(
    test: &Tensor<bf16, m, 64>,
    train: &Tensor<bf16, n, 64>,
    distance: &mut Tensor<f32, m, n>,
) {
    let test = test.partition_view([BM, 64]);
    let train = train.partition_view([BN, 64]);
    let mut distance = distance.partition_view_mut([BM, BN]);
    let [i, j] = distance.index();
    let x = test.load_masked([i, 0]);
    let y = train.load_masked([j, 0]);
    let products = mma(x, y.t(), Tile::zeros([BM, BN]));
    let (x, y) = (x.cast::<f32>(), y.cast::<f32>());
    let squares = (x * x).sum(1) + (y * y).sum(1).t();
    distance.store_masked(squares - 2.0 * products);
}

/// The label that most of the `K` nearest images have; the smaller one where labels tie. A block holds
/// `ROWS` whole rows, so there are at most `COLUMNS` distances in one.
#[tile_kernel(where(n <= COLUMNS), instances(ROWS = 8, COLUMNS = 2048, K = 3))]
pub(crate) fn vote<const ROWS: usize, const COLUMNS: usize, const K: usize>(
    distance: &Tensor<f32, m, n>,
    labels: &Tensor<i32, n>,
    predicted: &mut Tensor<i32, m>,
) {
    let distance = distance.partition_view([ROWS, COLUMNS]);
    let labels = labels.partition_view([COLUMNS]);
    let mut predicted = predicted.partition_view_mut([ROWS]);
    let [i] = predicted.index();
    let mut left = distance.load_masked_or(f32::INFINITY, [i, 0]);
    let label = labels.load_masked([0]).reshape([1, COLUMNS]);
    let column = Tile::<i32, 2>::iota([1, COLUMNS], 1);
    let class = Tile::<i32, 2>::iota([1, 16], 1);
    let mut votes = Tile::<i32, 2>::zeros([ROWS, 16]);
    for _ in 0..K {
        // Of equally near images the first is taken, and is out of the next round.
        let nearest = select(left == left.min(1), column, COLUMNS as i32).min(1);
        let is_nearest = column == nearest;
        let its_label = select(is_nearest, label, 0).sum(1);
        votes += (class == its_label).cast::<i32>();
        left = select(is_nearest, f32::INFINITY, left);
    }
    let winner = select(votes == votes.max(1), class, 16).min(1);
    predicted.store_masked(winner.reshape([ROWS]));
}

#[cfg(test)]
mod tests {
    #[test]
    fn distances_ir() {
        insta::assert_snapshot!(super::distances::ir());
    }

    #[test]
    fn vote_ir() {
        insta::assert_snapshot!(super::vote::ir());
    }
}
