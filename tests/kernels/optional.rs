//! Optional arguments: a kernel with and one without them, of one text.

use super::{compare, devices, numbers, widen};
use tile::ir::{Array, Binding, DType, Op, interp, specialize};
use tile::prelude::*;

/// x·scale + bias, of which either may be left out.
#[tile_kernel]
fn affine<const B: usize>(
    x: &Tensor<f32, m, n>,
    scale: Option<&Tensor<f32, m>>,
    factor: f32,
    bias: Option<&Tensor<f32, n>>,
    y: &mut Tensor<f32, m, n>,
) {
    let x = x.partition_view([B, B]);
    let mut y = y.partition_view_mut([B, B]);
    let [i, j] = y.index();
    let mut t = x.load_masked([i, j]) * factor;
    t = match scale {
        Some(scale) => t * scale.partition_view([B]).load_masked([i]).unsqueeze(1),
        None => t,
    };
    if let Some(bias) = bias {
        let bias = bias.partition_view([B]);
        for k in 0..2 {
            t += bias.load_masked([j]).unsqueeze(0) * (k as f32 + 0.5);
        }
    } else if scale.is_none() {
        t += 1.0;
    }
    y.store_masked(t);
}

const ROWS: usize = 5;
const COLUMNS: usize = 7;

fn expected(x: &[f32], scale: Option<&[f32]>, factor: f32, bias: Option<&[f32]>) -> Vec<f64> {
    let element = |at: usize| {
        let (i, j) = (at / COLUMNS, at % COLUMNS);
        let rest = if scale.is_none() { 1.0 } else { 0.0 };
        x[at] * factor * scale.map_or(1.0, |scale| scale[i]) + bias.map_or(rest, |bias| 2.0 * bias[j])
    };
    (0..ROWS * COLUMNS).map(|at| f64::from(element(at))).collect()
}

#[test]
fn a_kernel_takes_an_argument_or_none() {
    let (x, scale, bias) =
        (numbers::<f32>(ROWS * COLUMNS, 1), numbers::<f32>(ROWS, 2), numbers::<f32>(COLUMNS, 3));
    for has_scale in [true, false] {
        for has_bias in [true, false] {
            let scale = has_scale.then_some(&scale[..]);
            let bias = has_bias.then_some(&bias[..]);
            let expected = expected(&x, scale, 2.0, bias);
            for (device, label) in devices() {
                let on_device = |values: &[f32]| Tensor::from_slice(&device, values, [values.len()]).unwrap();
                let x = Tensor::from_slice(&device, &x, [ROWS, COLUMNS]).unwrap();
                let (scale, bias) = (scale.map(on_device), bias.map(on_device));
                let mut y = Tensor::zeros(&device, [ROWS, COLUMNS]).unwrap();
                affine::<4>(&x, scale.as_deref(), 2.0, bias.as_deref(), &mut y).launch().unwrap();
                compare(label, &widen(&y.to_vec().unwrap()), &expected, 1e-6);
            }
            let bindings = [
                ("B", Binding::Const(4)),
                ("scale", Binding::Bool(has_scale)),
                ("bias", Binding::Bool(has_bias)),
            ];
            let instance =
                specialize(&affine::ir(), &bindings.map(|(name, value)| (name.to_owned(), value))).unwrap();
            assert!(instance.walk().into_iter().all(|op| instance.op(op).op != Op::If));
            let mut arrays: Vec<Array> = vec![super::array(&x, &[ROWS, COLUMNS])];
            arrays.extend(scale.map(|scale| super::array(scale, &[ROWS])));
            arrays.push(super::array(&[2.0f32], &[]));
            arrays.extend(bias.map(|bias| super::array(bias, &[COLUMNS])));
            arrays.push(super::array(&[0f32; ROWS * COLUMNS], &[ROWS, COLUMNS]));
            interp::run(&instance, &mut arrays).unwrap();
            compare("the evaluator", &super::numbers_of(arrays.last().unwrap()), &expected, 1e-6);
        }
    }
}

#[tile_kernel]
fn biased(x: &Tensor<f32, n>, bias: Option<&Tensor<f32, n>>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let mut t = x.load_masked(y.index());
    if let Some(bias) = bias {
        t += bias.partition_view([4]).load_masked(y.index());
    }
    y.store_masked(t);
}

#[test]
fn an_argument_that_is_given_is_one_like_others() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0], [3]).unwrap();
        let wide = Tensor::from_slice(&device, &[10.0f32, 0.0, 20.0, 0.0, 30.0, 0.0], [3, 2]).unwrap();
        let mut y = Tensor::zeros(&device, [3]).unwrap();
        // One that isn't dense, behind another instance's numbers of arguments.
        let column = wide.slice((.., 0)).unwrap();
        biased::best(&x, Some(&column), &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [11.0, 22.0, 33.0], "{label}");
        let launch = biased(&x, None, &mut y);
        assert_eq!(launch.instance().unwrap(), "bias = false");
        launch.launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [1.0, 2.0, 3.0], "{label}");
        let short = Tensor::<f32>::zeros(&device, [2]).unwrap();
        let message = biased(&x, Some(&short), &mut y).launch().unwrap_err().to_string();
        assert!(message.contains("3 (axis 0 of `x`) and 2 (axis 0 of `bias`)"), "{message}");
    }
}

/// Scores with a cap, a window and a slope, each of which may be left out, and which stand before and behind others.
#[tile_kernel]
fn scored<T: Float, const B: usize>(
    cap: Option<f32>,
    x: &Tensor<f32, n>,
    window: Option<i32>,
    slope: Option<T>,
    y: &mut Tensor<f32, n>,
) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let place = Tile::<i32, 1>::iota([B], 0) + (i * B) as i32;
    let mut t = x.load_masked([i]);
    if let Some(cap) = cap {
        t = cap * tanh(t / cap);
    }
    t += place.cast::<f32>() * slope.unwrap_or(0.5) as f32;
    y.store_masked(match window {
        Some(window) if window < n as i32 => select(place < window, t, -1.0),
        Some(_) | None => t,
    });
}

#[test]
fn numbers_may_be_left_out() {
    let x = numbers::<f32>(11, 1);
    let expected = |cap: Option<f32>, window: Option<i32>, slope: f32| -> Vec<f64> {
        let one = |(i, &x): (usize, &f32)| {
            let capped = cap.map_or(x, |cap| cap * (x / cap).tanh()) + i as f32 * slope;
            f64::from(if window.is_some_and(|window| i as i32 >= window) { -1.0 } else { capped })
        };
        x.iter().enumerate().map(one).collect()
    };
    for (cap, window, slope) in [
        (None, None, None),
        (Some(0.5), None, Some(2.0)),
        (None, Some(3), Some(0.25)),
        (Some(0.25), Some(20), None),
        (Some(4.0), Some(5), Some(-1.0)),
    ] {
        let expected = expected(cap, window, slope.unwrap_or(0.5));
        for (device, label) in devices() {
            let x = Tensor::from_slice(&device, &x, [11]).unwrap();
            let mut y = Tensor::zeros(&device, [11]).unwrap();
            scored::<bf16, 4>(cap, &x, window, slope.map(bf16::from_f32), &mut y).launch().unwrap();
            compare(label, &widen(&y.to_vec().unwrap()), &expected, 1e-5);
        }
        let bindings = [
            ("T", Binding::Elem(DType::BF16)),
            ("B", Binding::Const(4)),
            ("cap", Binding::Bool(cap.is_some())),
            ("window", Binding::Bool(window.is_some())),
            ("slope", Binding::Bool(slope.is_some())),
        ];
        let instance =
            specialize(&scored::ir(), &bindings.map(|(name, value)| (name.to_owned(), value))).unwrap();
        let mut arrays: Vec<Array> = cap.map(|cap| super::array(&[cap], &[])).into_iter().collect();
        arrays.push(super::array(&x, &[11]));
        arrays.extend(window.map(|window| super::array(&[window], &[])));
        arrays.extend(slope.map(|slope| super::array(&[bf16::from_f32(slope)], &[])));
        arrays.push(super::array(&[0f32; 11], &[11]));
        interp::run(&instance, &mut arrays).unwrap();
        compare("the evaluator", &super::numbers_of(arrays.last().unwrap()), &expected, 1e-5);
    }
}

/// Patterns in chains with other conditions, with and without an `else`.
#[tile_kernel]
fn chained<const BIASED: bool>(
    x: &Tensor<f32, n>,
    bias: Option<&Tensor<f32, n>>,
    limit: Option<i32>,
    y: &mut Tensor<f32, n>,
) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    let mut t = x.load_masked([i]);
    if BIASED && let Some(bias) = bias {
        t += bias.partition_view([4]).load_masked([i]);
    }
    let next = if let Some(limit) = limit
        && i as i32 * 4 < limit
        && BIASED
    {
        t * 2.0
    } else {
        t - 1.0
    };
    y.store_masked(next);
}

#[test]
fn patterns_are_chained_with_conditions() {
    let values = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &values, [6]).unwrap();
        let mut y = Tensor::zeros(&device, [6]).unwrap();
        let mut run = |biased: bool, bias: Option<&TensorRef<f32>>, limit: Option<i32>| {
            let launched = match biased {
                true => chained::<true>(&x, bias, limit, &mut y).launch(),
                false => chained::<false>(&x, bias, limit, &mut y).launch(),
            };
            launched.unwrap();
            y.to_vec().unwrap()
        };
        assert_eq!(run(false, Some(&x), Some(9)), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "{label}");
        assert_eq!(run(true, None, None), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "{label}");
        assert_eq!(run(true, Some(&x), Some(4)), [4.0, 8.0, 12.0, 16.0, 9.0, 11.0], "{label}");
        assert_eq!(run(true, None, Some(9)), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0], "{label}");
    }
}

#[test]
fn an_absent_argument_is_missed_on_no_stream() {
    for (device, label) in devices() {
        let stream = tile::Stream::new(&device).unwrap();
        let x = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0], [3]).unwrap();
        let mut y = Tensor::zeros(&device, [3]).unwrap();
        biased(&x, None, &mut y).on(&stream).unwrap().wait().unwrap();
        assert_eq!(y.to_vec().unwrap(), [1.0, 2.0, 3.0], "{label}");
    }
}

/// A kernel whose tile is left as it is where an argument isn't given, and whose sum has terms up to the first that is
/// none of the smaller numbers.
#[tile_kernel]
fn taken_or_left(
    x: &Tensor<f32, n>,
    bias: Option<&Tensor<f32, n>>,
    scale: Option<f32>,
    y: &mut Tensor<f32, n>,
) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let mut t = x.load_masked(y.index());
    for k in 0..n {
        let (0 | 2..=5) = k else { continue };
        t += k as f32;
    }
    let Some(mut scale) = scale else {
        y.store_masked(t);
        return;
    };
    scale += 1.0;
    t *= scale;
    let Some(bias) = bias else {
        y.store_masked(-t);
        return;
    };
    y.store_masked(t + bias.partition_view([4]).load_masked(y.index()));
}

#[test]
fn a_block_ends_where_an_argument_is_missing() {
    let (x, bias) = (numbers::<f32>(7, 1), numbers::<f32>(7, 2));
    for (device, label) in devices() {
        for (scale, has_bias) in [(None, true), (None, false), (Some(2.0), true), (Some(0.5), false)] {
            let on_device = |values: &[f32]| Tensor::from_slice(&device, values, [7]).unwrap();
            let (x_there, bias_there) = (on_device(&x), has_bias.then(|| on_device(&bias)));
            let mut y = Tensor::zeros(&device, [7]).unwrap();
            taken_or_left(&x_there, bias_there.as_deref(), scale, &mut y).launch().unwrap();
            let expected = (0..7).map(|i| {
                let t = x[i] + 14.0;
                f64::from(match scale {
                    None => t,
                    Some(scale) if has_bias => t * (scale + 1.0) + bias[i],
                    Some(scale) => -t * (scale + 1.0),
                })
            });
            compare(label, &widen(&y.to_vec().unwrap()), &expected.collect::<Vec<_>>(), 1e-6);
        }
    }
}

/// An output that is written where it is given, and tiles that may be left out turn by turn.
#[tile_kernel]
fn sums_if_asked<const B: usize>(
    x: &Tensor<f32, m, n>,
    sums: Option<&mut Tensor<f32, m>>,
    y: &mut Tensor<f32, m, n>,
) {
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, B]).spanning([1]);
    let [i, _] = y.index();
    let mut sum = Tile::zeros([1, 1]);
    for j in 0..x.tiles(1) {
        let t = x.load_masked([i, j]);
        y.at([j]).store_masked(t * 2.0);
        sum += t.sum(1);
    }
    let Some(sums) = sums else { return };
    sums.unsqueeze(1).partition_view_mut([1, 1]).store(sum);
}

#[test]
fn an_output_may_be_taken_apart_by_a_let() {
    let x = numbers::<f32>(15, 1);
    for (device, label) in devices() {
        let x_there = Tensor::from_slice(&device, &x, [3, 5]).unwrap();
        let mut y = Tensor::zeros(&device, [3, 5]).unwrap();
        let mut sums = Tensor::zeros(&device, [3]).unwrap();
        sums_if_asked::<2>(&x_there, None, &mut y).launch().unwrap();
        compare(
            label,
            &widen(&y.to_vec().unwrap()),
            &x.iter().map(|x| f64::from(x * 2.0)).collect::<Vec<_>>(),
            1e-6,
        );
        sums_if_asked::<2>(&x_there, Some(&mut sums), &mut y).launch().unwrap();
        let expected: Vec<f64> = x.chunks(5).map(|row| f64::from(row.iter().sum::<f32>())).collect();
        compare(label, &widen(&sums.to_vec().unwrap()), &expected, 1e-5);
    }
}

/// What stands in an argument's place is computed whether or not that is given, as arguments of methods are in Rust.
#[tile_kernel]
fn counts_what_stands_in(
    scale: Option<f32>,
    x: &Tensor<f32, n>,
    calls: &mut Tensor<i32, 1>,
    y: &mut Tensor<f32, n>,
) {
    let calls = calls.atomic_view();
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let mut k = 1.0;
    let scale = scale.unwrap_or({
        k += 1.0;
        calls.fetch_add([0], 1, Relaxed, DeviceScope) as f32
    });
    y.store_masked(x.load_masked(y.index()) * scale + k);
}

#[test]
fn what_stands_in_is_computed_where_an_argument_is_given_too() {
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &[1.0f32, 2.0], [2]).unwrap();
        for (scale, expected) in [(Some(5.0), [7.0, 12.0]), (None, [9.0, 16.0])] {
            let mut calls = Tensor::from_slice(&device, &[7], [1]).unwrap();
            let mut y = Tensor::zeros(&device, [2]).unwrap();
            counts_what_stands_in(scale, &x, &mut calls, &mut y).launch().unwrap();
            assert_eq!(
                (y.to_vec().unwrap(), calls.to_vec().unwrap()),
                (expected.to_vec(), vec![8]),
                "{label}"
            );
        }
    }
}
