//! Optional outputs: what a kernel stores only where the caller wants it.

use super::{Array, array, compare, devices, numbers, numbers_of, widen};
use tile::ir::{Binding, Op, interp, specialize};
use tile::prelude::*;

/// Softmax of rows, with the logarithm of each row's sum, and the rows' maxima, for those who want them.
#[tile_kernel]
fn softmax<const B: usize>(
    x: &Tensor<f32, m, n>,
    y: &mut Tensor<f32, m, n>,
    log_sums: Option<&mut Tensor<f32, m, 1>>,
    maxima: Option<&mut Tensor<f32, m, 1>>,
) {
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, B]).spanning([1]);
    let [i, _] = y.index();
    let mut highest = Tile::full([1, 1], f32::NEG_INFINITY);
    for j in 0..x.tiles(1) {
        highest = max(highest, x.load_masked_or(f32::NEG_INFINITY, [i, j]).max(1));
        // Looked at in every turn, and stored to where it is given.
        if let Some(maxima) = maxima {
            maxima.partition_view_mut([1, 1]).store_masked(highest);
        }
    }
    let mut sum = Tile::zeros([1, 1]);
    for j in 0..x.tiles(1) {
        sum += exp(x.load_masked_or(f32::NEG_INFINITY, [i, j]) - highest).sum(1);
    }
    if log_sums.is_some() && n == 0 {
        return;
    }
    if let Some(log_sums) = log_sums {
        let mut log_sums = log_sums.partition_view_mut([1, 1]);
        log_sums.store_masked(log(sum) + highest);
    }
    for j in 0..y.tiles(1) {
        y.at([j]).store_masked(exp(x.load_masked([i, j]) - highest) / sum);
    }
}

const ROWS: usize = 3;
const COLUMNS: usize = 7;

#[test]
fn a_kernel_stores_an_output_or_not() {
    let x = numbers::<f32>(ROWS * COLUMNS, 1);
    let rows: Vec<&[f32]> = x.chunks(COLUMNS).collect();
    let maxima: Vec<f64> =
        rows.iter().map(|row| row.iter().fold(f64::MIN, |a, &b| a.max(b.into()))).collect();
    let sum = |row: usize| rows[row].iter().map(|&x| (f64::from(x) - maxima[row]).exp()).sum::<f64>();
    let log_sums: Vec<f64> = (0..ROWS).map(|row| sum(row).ln() + maxima[row]).collect();
    let whole: Vec<f64> =
        (0..ROWS * COLUMNS).map(|at| (f64::from(x[at]) - log_sums[at / COLUMNS]).exp()).collect();
    for wants_sums in [true, false] {
        for wants_maxima in [true, false] {
            for (device, label) in devices() {
                let x = Tensor::from_slice(&device, &x, [ROWS, COLUMNS]).unwrap();
                let mut y = Tensor::zeros(&device, [ROWS, COLUMNS]).unwrap();
                let mut sums = Tensor::zeros(&device, [ROWS, 1]).unwrap();
                let mut found = Tensor::zeros(&device, [ROWS, 1]).unwrap();
                let (given_sums, given_maxima) =
                    (wants_sums.then_some(&mut *sums), wants_maxima.then_some(&mut *found));
                softmax::<4>(&x, &mut y, given_sums, given_maxima).launch().unwrap();
                compare(label, &widen(&y.to_vec().unwrap()), &whole, 1e-6);
                let or_zeros = |values: &[f64], wants: bool| {
                    if wants { values.to_vec() } else { vec![0.0; ROWS] }
                };
                compare(label, &widen(&sums.to_vec().unwrap()), &or_zeros(&log_sums, wants_sums), 1e-6);
                compare(label, &widen(&found.to_vec().unwrap()), &or_zeros(&maxima, wants_maxima), 0.0);
            }
            let bindings = [
                ("B", Binding::Const(4)),
                ("log_sums", Binding::Bool(wants_sums)),
                ("maxima", Binding::Bool(wants_maxima)),
            ];
            let bindings = bindings.map(|(name, value)| (name.to_owned(), value));
            let instance = specialize(&softmax::ir(), &bindings).unwrap();
            let views =
                instance.walk().into_iter().filter(|&op| matches!(instance.op(op).op, Op::Partition(_)));
            assert_eq!(views.count(), 2 + usize::from(wants_sums) + usize::from(wants_maxima));
            let mut arrays: Vec<Array> =
                vec![array(&x, &[ROWS, COLUMNS]), array(&[0f32; ROWS * COLUMNS], &[ROWS, COLUMNS])];
            arrays.resize(instance.params().len(), array(&[0f32; ROWS], &[ROWS, 1]));
            interp::run(&instance, &mut arrays).unwrap();
            compare("the evaluator", &numbers_of(&arrays[1]), &whole, 1e-6);
            if wants_sums {
                compare("the evaluator", &numbers_of(&arrays[2]), &log_sums, 1e-6);
            }
        }
    }
}

/// Counts into a histogram where one is given; the grid is the kernel's own.
#[tile_kernel(grid = [n.div_ceil(4)])]
fn counted(x: &Tensor<i32, n>, counts: Option<&mut Tensor<i32, 3>>, total: &mut Tensor<i32, 1>) {
    let x = x.partition_view([4]).load_masked_or(-1, [block_id(0)]);
    if let Some(counts) = counts {
        let counts = counts.atomic_view();
        counts.fetch_add([x], 1, Relaxed, DeviceScope);
    }
    let total = total.atomic_view();
    total.fetch_add([0], x.ge(0).cast::<i32>().sum(0).item(), Relaxed, DeviceScope);
}

#[test]
fn an_optional_output_may_be_atomic() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[0, 2, 2, 1, 2], [5]).unwrap();
        let mut counts = Tensor::zeros(&device, [3]).unwrap();
        let mut total = Tensor::zeros(&device, [1]).unwrap();
        counted(&x, Some(&mut counts), &mut total).launch().unwrap();
        counted(&x, None, &mut total).launch().unwrap();
        assert_eq!(counts.to_vec().unwrap(), [1, 1, 3], "{label}");
        assert_eq!(total.to_vec().unwrap(), [10], "{label}");
    }
}

#[test]
fn launches_check_outputs_that_are_given() {
    let device = Device::reference();
    let x = Tensor::from_slice(&device, &[1.0f32, 2.0], [2, 1]).unwrap();
    let (mut y, mut short) =
        (Tensor::zeros(&device, [2, 1]).unwrap(), Tensor::zeros(&device, [1, 1]).unwrap());
    let message = softmax::<4>(&x, &mut y, Some(&mut short), None).launch().unwrap_err().to_string();
    assert!(message.contains("2 (axis 0 of `x`) and 1 (axis 0 of `log_sums`)"), "{message}");
}
