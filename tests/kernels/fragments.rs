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

/// A literal that stands beside tiles of two formats.
macro_rules! blended {
    ($name:ident, $by:expr, $times:expr) => {
        #[tile_kernel]
        fn $name<const B: usize>(x: &Tensor<bf16, n>, more: Option<f32>, y: &mut Tensor<f32, n>) {
            const WIDE: usize = B * $times;
            let mut y = y.partition_view_mut([WIDE]);
            let x = x.partition_view([B * $times]).load_masked(y.index());
            let mut sum = (x * $by).cast::<f32>();
            if let Some(more) = more
                && more > 0.0
            {
                sum += x.cast::<f32>() * $by + more;
            }
            y.store_masked(sum);
        }
    };
}

blended!(by_positive, 0.3, 2 - 1);
blended!(by_negative, -0.3, 2 - 1);

#[test]
fn literals_have_the_format_of_each_place() -> tile::Result<()> {
    let x = [1.0, 2.0, -3.0].map(bf16::from_f32);
    // 0.3 is 0.30078125 of bf16; products of it are rounded again.
    let by = |by: f32| x.map(|x| (x * bf16::from_f32(by)).to_f32() + (x.to_f32() * by + 2.0));
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &x, [3])?;
        let mut y = Tensor::zeros(&device, [3])?;
        by_positive::<4>(&x, Some(2.0), &mut y).launch()?;
        assert_eq!(y.to_vec()?, by(0.3), "{label}");
        by_negative::<4>(&x, Some(2.0), &mut y).launch()?;
        assert_eq!(y.to_vec()?, by(-0.3), "{label}");
    }
    Ok(())
}

/// Operators and methods that a macro repeats, for tiles, for numbers and for extents.
macro_rules! repeated {
    ($name:ident($tile:ident $number:ident $at:ident $rows:ident), [$($value:ident)*], [$($size:ident)*]) => {
        #[tile_kernel]
        fn $name(
            $number: i32,
            $at: usize,
            x: &Tensor<i32, n>,
            sizes: &mut Tensor<u64, 1>,
            y: &mut Tensor<i32, n>,
        ) {
            let mut y = y.partition_view_mut([4]);
            let $tile = x.partition_view([4]).load_masked(y.index());
            let $rows = n;
            $(let $value = select($value > 1, $value * 2 - 1, -$value).clamp(-7, 9);)*
            y.store_masked($tile + $number);
            $(let $size = $size - 2;)*
            let mut sizes = sizes.partition_view_mut([1]);
            sizes.store(Tile::full([1], $rows as u64 + $at as u64));
        }
    };
}

repeated!(tile_first(tile number at rows), [tile number], [at rows]);
repeated!(number_first(tile number at rows), [number tile], [rows at]);

#[test]
fn operators_are_those_of_each_place() -> tile::Result<()> {
    let values = [1, 2, i32::MAX, -3];
    let of_one = |x: i32| {
        let folded = if x > 1 { x.wrapping_mul(2).wrapping_sub(1) } else { x.wrapping_neg() };
        folded.clamp(-7, 9)
    };
    for kernel in [tile_first, number_first] {
        for (device, label) in devices() {
            let x = Tensor::from_slice(&device, &values, [4])?;
            let (mut sizes, mut y) = (Tensor::zeros(&device, [1])?, Tensor::zeros(&device, [4])?);
            for number in values {
                kernel(number, 0, &x, &mut sizes, &mut y).launch()?;
                let expected = values.map(|x| of_one(x).wrapping_add(of_one(number)));
                assert_eq!(y.to_vec()?, expected, "{label}");
                // A number wraps.
                assert_eq!(sizes.to_vec()?, [0], "{label}");
            }
        }
        // An extent doesn't, on the reference device.
        let device = Device::reference();
        let x = Tensor::from_slice(&device, &[1], [1])?;
        let (mut sizes, mut y) = (Tensor::zeros(&device, [1])?, Tensor::zeros(&device, [1])?);
        let error = kernel(1, 7, &x, &mut sizes, &mut y).launch().unwrap_err().to_string();
        assert!(error.contains("subtract with overflow"), "{error}");
    }
    Ok(())
}
