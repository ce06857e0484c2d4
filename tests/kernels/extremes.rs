//! Launches that nobody would make: on every device each gives what plain loops do, or an error.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::devices;
use tile::prelude::*;

/// `y = 2x`, of a matrix.
#[tile_kernel]
fn doubled<const R: usize, const C: usize>(x: &Tensor<i32, m, n>, y: &mut Tensor<i32, m, n>) {
    let x = x.partition_view([R, C]);
    let mut y = y.partition_view_mut([R, C]);
    let t = x.load_masked(y.index());
    y.store_masked(t + t);
}

#[test]
fn tiles_larger_than_memory_are_refused() {
    for (device, name) in devices() {
        let x = Tensor::from_slice(&device, &[1, 2, 3, 4, 5, 6], [2, 3]).unwrap();
        let mut y = Tensor::zeros(&device, [2, 3]).unwrap();
        let refused = |launched: tile::Result<()>, problem: &str| {
            let message = launched.unwrap_err().reason().to_string();
            assert_eq!(message, format!("kernel `doubled`{problem}"), "{name}");
        };
        refused(
            doubled::<0, 4>(&x, &mut y).launch(),
            " can't be made with these parameters: the tile extent `0` is not positive",
        );
        refused(
            doubled::<1, { 1 << 40 }>(&x, &mut y).launch(),
            " can't be made with these parameters: tile<1 x 1099511627776 x i32> has more than 16777216 elements",
        );
        refused(
            doubled::<{ 1 << 32 }, { 1 << 32 }>(&x, &mut y).launch(),
            " can't be made with these parameters: tile<4294967296 x 4294967296 x i32> has more than 16777216 elements",
        );
        refused(
            doubled::<{ usize::MAX }, 2>(&x, &mut y).launch(),
            ": `R` is 18446744073709551615, which doesn't fit 63 bits",
        );
    }
}

#[test]
fn tensors_without_elements_and_without_neighbours_are_doubled() {
    for (device, name) in devices() {
        for shape in [[0, 0], [0, 5], [5, 0], [1, 1], [7, 1], [1, 7]] {
            let count = shape[0] * shape[1];
            let x = Tensor::from_iter(&device, 0..count as i32).unwrap().into_shape(shape).unwrap();
            let mut y = Tensor::zeros(&device, shape).unwrap();
            doubled::<2, 4>(&x, &mut y).launch().unwrap();
            let expected: Vec<i32> = (0..count as i32).map(|i| 2 * i).collect();
            assert_eq!(y.to_vec().unwrap(), expected, "{shape:?} on {name}");
        }
    }
}

#[tile_kernel(instances(B = 16 | 64))]
fn product<const B: usize>(a: &Tensor<bf16, m, k>, b: &Tensor<bf16, k, n>, c: &mut Tensor<f32, m, n>) {
    let a = a.partition_view([B, B]);
    let b = b.partition_view([B, B]);
    let mut c = c.partition_view_mut([B, B]);
    let [i, j] = c.index();
    let mut sum = Tile::zeros([B, B]);
    for p in 0..a.tiles(1) {
        sum = mma(a.load_masked([i, p]), b.load_masked([p, j]), sum);
    }
    c.store_masked(sum);
}

/// More multiplications than a number counts, of tensors that take no memory: an instance is chosen all the same.
#[test]
fn what_nobody_waits_for_is_predicted() {
    for (device, name) in devices() {
        let a = Tensor::from_slice(&device, &[bf16::ONE; 64], [64, 1]).unwrap();
        let b = Tensor::from_slice(&device, &[bf16::ONE; 64], [1, 64]).unwrap();
        let mut c = Tensor::zeros(&device, [64, 64]).unwrap();
        let (a, b) = (a.expand([64, 1i64 << 56]).unwrap(), b.expand([1i64 << 56, 64]).unwrap());
        let choices = product::best(&a, &b, &mut c).choices().unwrap();
        assert!(choices.chosen().is_some(), "{choices} on {name}");
    }
}
