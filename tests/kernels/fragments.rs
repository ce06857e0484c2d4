//! Kernels that `macro_rules!` makes of what it is given: expressions stay whole, types and numbers stand wherever they may.

use super::devices;
use tile::prelude::*;

macro_rules! scaled {
    ($name:ident, $number:ty, $sum:expr, $margin:expr, $rows:literal) => {
        /// The sum is added three times, of what stands before a margin.
        #[tile_kernel(where(n % $rows == 0))]
        fn $name(x: &Tensor<$number, { n + $margin }>, y: &mut Tensor<$number, n>) {
            let x = x.partition_view([$rows]);
            let mut y = y.partition_view_mut([$rows]);
            let tile = x.load_masked(y.index());
            let doubled = tile + $sum * 2;
            y.store_masked((doubled - -$sum).cast::<$number>());
        }
    };
}

scaled!(of_sums, i32, 1 + 1, 3, 4);

#[test]
fn what_a_macro_is_given_means_the_same_everywhere() -> tile::Result<()> {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0], [11])?;
        let mut y = Tensor::zeros(&device, [8])?;
        of_sums(&x, &mut y).launch()?;
        assert_eq!(y.to_vec()?, [7, 8, 9, 10, 11, 12, 13, 14], "{label}");
    }
    Ok(())
}
