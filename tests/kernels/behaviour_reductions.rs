//! Behaviours that libraries leave open and kernels pin: NaN in reductions, ties, several axes, scans.

use super::{Case, array, widen};
use tile::ir::Binding;
use tile::prelude::*;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

/// Of each row: smallest and largest element and their places, first ignoring NaN, then propagating it.
#[tile_kernel]
fn row_extremes<const M: usize>(
    x: &Tensor<f32, M, 8>,
    values: &mut Tensor<f32, M, 4>,
    places: &mut Tensor<i32, M, 4>,
) {
    let x = x.partition_view([M, 8]);
    let mut values = values.partition_view_mut([M, 4]);
    let mut places = places.partition_view_mut([M, 4]);
    let x = x.load_masked([0, 0]);
    let column = Tile::<i32, 2>::iota([1, 4], 1);
    let ignoring = select(column == 0, x.min(1), x.max(1));
    let propagating = select(column == 2, x.reduce_minimum(1), x.reduce_maximum(1));
    values.store_masked(select(column < 2, ignoring, propagating));
    let ignoring = select(column == 0, x.argmin(1), x.argmax(1));
    let propagating = select(column == 2, x.argminimum(1), x.argmaximum(1));
    places.store_masked(select(column < 2, ignoring, propagating));
}

#[test]
fn case_17_nan_reductions() {
    #[rustfmt::skip]
    let x: [f32; 40] = [
        3.0, 0.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0,
        3.0, INF, NAN, 1.5, 5.0, -2.0, 2.0, 6.0,
        NAN, NAN, 7.0, 1.0, NAN, 8.0, NAN, 0.5,
        5.0, -3.0, 2.0, NAN, 4.0, 0.0, -INF, 1.0,
        NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN,
    ];
    #[rustfmt::skip]
    let values: [f32; 20] = [
        0.0, 9.0, 0.0, 9.0,
        -2.0, INF, NAN, NAN,
        0.5, 8.0, NAN, NAN,
        -INF, 5.0, NAN, NAN,
        NAN, NAN, NAN, NAN,
    ];
    #[rustfmt::skip]
    let places: [i32; 20] = [
        1, 5, 1, 5,
        5, 1, 2, 2,
        7, 5, 0, 0,
        6, 0, 3, 3,
        0, 0, 0, 0,
    ];
    for (output, expected) in [(1, widen(&values)), (2, widen(&places))] {
        Case {
            ir: row_extremes::ir(),
            bindings: &[("M", Binding::Const(5))],
            arguments: vec![array(&x, &[5, 8]), array(&[0f32; 20], &[5, 4]), array(&[0i32; 20], &[5, 4])],
            output,
            expected,
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [5, 8])?;
                let (mut values, mut places) =
                    (Tensor::<f32>::zeros(device, [5, 4])?, Tensor::<i32>::zeros(device, [5, 4])?);
                row_extremes::<5>(&x, &mut values, &mut places).launch()?;
                Ok(if output == 1 { widen(&values.to_vec()?) } else { widen(&places.to_vec()?) })
            },
        }
        .check();
    }
}

/// Sums of rows, of columns and of everything; products of rows; the largest of nothing but −∞ and where it is.
#[tile_kernel]
fn joins(
    x: &Tensor<f32, 2, 4>,
    rows: &mut Tensor<f32, 2, 1>,
    columns: &mut Tensor<f32, 1, 4>,
    products: &mut Tensor<f32, 2, 1>,
    all: &mut Tensor<f32, 1, 1>,
    low: &mut Tensor<f32, 1, 1>,
    tie: &mut Tensor<i32, 1, 1>,
) {
    let x = x.partition_view([2, 4]);
    let mut rows = rows.partition_view_mut([2, 1]);
    let mut columns = columns.partition_view_mut([1, 4]);
    let mut products = products.partition_view_mut([2, 1]);
    let mut all = all.partition_view_mut([1, 1]);
    let mut low = low.partition_view_mut([1, 1]);
    let mut tie = tie.partition_view_mut([1, 1]);
    let x = x.load_masked([0, 0]);
    rows.store_masked(x.sum(1));
    columns.store_masked(x.sum(0));
    products.store_masked(x.prod(1));
    all.store_masked(x.sum([0, 1]));
    low.store_masked(Tile::full([2, 4], f32::NEG_INFINITY).max([1, 0]));
    // 0 1 2 3 | 0 1 2 3: the largest stands at 3 and 7.
    tie.store_masked((x % 4.0).argmax([0, 1]));
}

#[test]
fn case_18_reductions() {
    let x: Vec<f32> = (0..8u8).map(f32::from).collect();
    let expected: [&[f64]; 6] =
        [&[6.0, 22.0], &[4.0, 6.0, 8.0, 10.0], &[0.0, 840.0], &[28.0], &[f64::NEG_INFINITY], &[3.0]];
    for (output, expected) in expected.into_iter().enumerate() {
        Case {
            ir: joins::ir(),
            bindings: &[],
            arguments: vec![
                array(&x, &[2, 4]),
                array(&[0f32; 2], &[2, 1]),
                array(&[0f32; 4], &[1, 4]),
                array(&[0f32; 2], &[2, 1]),
                array(&[0f32], &[1, 1]),
                array(&[0f32], &[1, 1]),
                array(&[0i32], &[1, 1]),
            ],
            output: output + 1,
            expected: expected.to_vec(),
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [2, 4])?;
                let [mut rows, mut products] =
                    [Tensor::zeros(device, [2, 1])?, Tensor::zeros(device, [2, 1])?];
                let mut columns = Tensor::zeros(device, [1, 4])?;
                let [mut all, mut low] = [Tensor::zeros(device, [1, 1])?, Tensor::zeros(device, [1, 1])?];
                let mut tie = Tensor::zeros(device, [1, 1])?;
                joins(&x, &mut rows, &mut columns, &mut products, &mut all, &mut low, &mut tie).launch()?;
                let floats = [&rows, &columns, &products, &all, &low];
                match floats.get(output) {
                    Some(tensor) => Ok(widen(&tensor.to_vec()?)),
                    None => Ok(widen(&tie.to_vec()?)),
                }
            },
        }
        .check();
    }
}

/// Scans of one line, one per output row.
#[tile_kernel]
fn scans<T: Number, const N: usize>(
    x: &Tensor<T, N>,
    forward: &mut Tensor<T, N>,
    backward: &mut Tensor<T, N>,
    product: &mut Tensor<T, N>,
    from_one: &mut Tensor<T, N>,
    before: &mut Tensor<T, N>,
    largest_after: &mut Tensor<T, N>,
) {
    let x = x.partition_view([N]);
    let mut forward = forward.partition_view_mut([N]);
    let mut backward = backward.partition_view_mut([N]);
    let mut product = product.partition_view_mut([N]);
    let mut from_one = from_one.partition_view_mut([N]);
    let mut before = before.partition_view_mut([N]);
    let mut largest_after = largest_after.partition_view_mut([N]);
    let x = x.load_masked([0]);
    forward.store_masked(x.cumsum(0));
    backward.store_masked(x.cumsum_reverse(0));
    product.store_masked(x.cumprod(0));
    from_one.store_masked(scan(x, 0, T::of(1.0), |a, b| a + b));
    before.store_masked(x.cumsum_exclusive(0));
    largest_after.store_masked(x.cummax_exclusive_reverse(0));
}

fn check_scans<T: Number>(lowest: f64) {
    let x: Vec<T> = [1.0, 2.0, 3.0, 4.0].map(T::of).to_vec();
    let expected: [[f64; 4]; 6] = [
        [1.0, 3.0, 6.0, 10.0],
        [10.0, 9.0, 7.0, 4.0],
        [1.0, 2.0, 6.0, 24.0],
        [2.0, 4.0, 7.0, 11.0],
        [0.0, 1.0, 3.0, 6.0],
        [4.0, 4.0, 4.0, lowest],
    ];
    for (output, expected) in expected.into_iter().enumerate() {
        let zeros = vec![T::of(0.0); 4];
        let mut arguments = vec![array(&x, &[4])];
        arguments.extend((0..6).map(|_| array(&zeros, &[4])));
        Case {
            ir: scans::ir(),
            bindings: &[("T", Binding::Elem(T::DTYPE)), ("N", Binding::Const(4))],
            arguments,
            output: output + 1,
            expected: expected.to_vec(),
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [4])?;
                let zeros = || Tensor::from_slice(device, &zeros, [4]);
                let [mut a, mut b, mut c, mut d, mut e, mut f] =
                    [zeros()?, zeros()?, zeros()?, zeros()?, zeros()?, zeros()?];
                scans::<T, 4>(&x, &mut a, &mut b, &mut c, &mut d, &mut e, &mut f).launch()?;
                Ok(widen(&[a, b, c, d, e, f][output].to_vec()?))
            },
        }
        .check();
    }
}

#[test]
fn case_19_scans() {
    check_scans::<i32>(f64::from(i32::MIN));
    check_scans::<f32>(f64::NEG_INFINITY);
    check_scans::<bf16>(f64::NEG_INFINITY);
    check_scans::<u8>(0.0);
}
