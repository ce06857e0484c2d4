//! Elementwise kernels: arithmetic, functions, comparisons, broadcasting, scalars on either side.

use super::check_exact;
use super::{Case, array, numbers, widen};
use tile::ir::Binding;
use tile::prelude::*;

/// z = x + y.
#[tile_kernel]
fn vector_add<const B: usize>(x: &Tensor<f32, n>, y: &Tensor<f32, n>, z: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let y = y.partition_view([B]);
    let mut z = z.partition_view_mut([B]);
    let [i] = z.index();
    z.store_masked(x.load_masked([i]) + y.load_masked([i]));
}

/// The tanh form of GELU, for any float.
#[tile_kernel]
fn gelu<T: Float, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index()).cast::<f32>();
    let inner = 0.797_884_6 * (x + 0.044715 * x * x * x);
    y.store_masked((0.5 * x * (1.0 + tanh(inner))).cast::<T>());
}

/// Comparison operators, `select` with literals, assigning operators, min and max.
#[tile_kernel]
fn clamp_and_mark<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>, low: f32, high: f32) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    let inside = (x >= low) & !(x > high);
    let mut clamped = max(low, min(x, high));
    clamped *= 2.0;
    clamped += select(inside, 1.0, 0.0);
    clamped -= select(x == low, x, abs(x));
    y.store_masked(clamped);
}

/// Functions and methods of floats, a mask of them, and a method of the scalar argument.
#[tile_kernel]
fn phases<T: Float, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>, scale: T) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    let angle = atan2(sin(x), cos(x)).copysign(x);
    let root = powf(abs(x), T::of(0.5)) * signum(scale);
    y.store_masked(select(is_finite(root.recip()), angle + root, sigmoid(x).round()));
}

/// A row and a column, broadcast: z[i, j] = exp(−(x[i] − y[j])² / α).
#[tile_kernel]
fn radial<const B: usize>(
    x: &Tensor<f64, m, 1>,
    y: &Tensor<f64, 1, n>,
    z: &mut Tensor<f64, m, n>,
    alpha: f64,
) {
    let x = x.partition_view([B, 1]);
    let y = y.partition_view([1, B]);
    let mut z = z.partition_view_mut([B, B]);
    let [i, j] = z.index();
    let difference = x.load_masked([i, 0]) - y.load_masked([0, j]);
    z.store_masked(exp(-(difference * difference) / alpha));
}

#[test]
fn vector_add_agrees_with_a_loop() {
    let n = 1000;
    let (x, y) = (numbers::<f32>(n, 1), numbers::<f32>(n, 2));
    Case {
        ir: vector_add::ir(),
        bindings: &[("B", Binding::Const(64))],
        arguments: vec![array(&x, &[n]), array(&y, &[n]), array(&vec![0f32; n], &[n])],
        output: 2,
        expected: x.iter().zip(&y).map(|(x, y)| f64::from(x + y)).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [n])?;
            let y = Tensor::from_slice(device, &y, [n])?;
            let mut z = Tensor::zeros(device, [n])?;
            vector_add::<64>(&x, &y, &mut z).launch()?;
            Ok(widen(&z.to_vec()?))
        },
    }
    .check();
}

fn check_gelu<T: Float>(tolerance: f64) {
    let n = 77;
    let x = numbers::<T>(n, 3);
    let gelu_of = |x: f64| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044715 * x.powi(3))).tanh());
    Case {
        ir: gelu::ir(),
        bindings: &[("T", Binding::Elem(T::DTYPE)), ("B", Binding::Const(16))],
        arguments: vec![array(&x, &[n]), array(&vec![T::from_float(0.0); n], &[n])],
        output: 1,
        expected: widen(&x).into_iter().map(gelu_of).collect(),
        tolerance,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [n])?;
            let mut y = Tensor::zeros(device, [n])?;
            gelu::<T, 16>(&x, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn gelu_works_for_every_float() {
    // A handful of f32 roundings, then one to the element format.
    check_gelu::<f32>(1e-6);
    check_gelu::<f64>(1e-6);
    check_gelu::<f16>(f64::powi(2.0, -11));
    check_gelu::<bf16>(f64::powi(2.0, -8));
}

fn check_phases<T: Float>(tolerance: f64) {
    let n = 70;
    let x = numbers::<T>(n, 9);
    let one = |x: f64| if x == 0.0 { 1.0 } else { x - x.abs().sqrt() };
    Case {
        ir: phases::ir(),
        bindings: &[("T", Binding::Elem(T::DTYPE)), ("B", Binding::Const(32))],
        arguments: vec![
            array(&x, &[n]),
            array(&vec![T::from_float(0.0); n], &[n]),
            array(&[T::from_float(-2.0)], &[]),
        ],
        output: 1,
        expected: widen(&x).into_iter().map(one).collect(),
        tolerance,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [n])?;
            let mut y = Tensor::zeros(device, [n])?;
            phases::<T, 32>(&x, &mut y, T::from_float(-2.0)).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn functions_compose_for_every_float() {
    // Four functions of a few ulp each, rounded to the format, and a sum.
    check_phases::<f64>(2e-15);
    check_phases::<bf16>(f64::powi(2.0, -6));
}

#[test]
fn comparisons_choose_elements() {
    let n = 50;
    let (low, high) = (-0.25f32, 0.5f32);
    let x = numbers::<f32>(n, 4);
    let one = |x: f32| {
        let inside = if x >= low && x <= high { 1.0 } else { 0.0 };
        x.clamp(low, high) * 2.0 + inside - if x == low { x } else { x.abs() }
    };
    Case {
        ir: clamp_and_mark::ir(),
        bindings: &[("B", Binding::Const(8))],
        arguments: vec![
            array(&x, &[n]),
            array(&vec![0f32; n], &[n]),
            array(&[low], &[]),
            array(&[high], &[]),
        ],
        output: 1,
        expected: x.iter().map(|&x| f64::from(one(x))).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [n])?;
            let mut y = Tensor::zeros(device, [n])?;
            clamp_and_mark::<8>(&x, &mut y, low, high).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn rows_and_columns_are_broadcast() {
    let (m, n) = (5, 7);
    let (x, y) = (numbers::<f64>(m, 5), numbers::<f64>(n, 6));
    Case {
        ir: radial::ir(),
        bindings: &[("B", Binding::Const(4))],
        arguments: vec![
            array(&x, &[m, 1]),
            array(&y, &[1, n]),
            array(&vec![0f64; m * n], &[m, n]),
            array(&[0.7f64], &[]),
        ],
        output: 2,
        expected: x.iter().flat_map(|x| y.iter().map(move |y| (-(x - y).powi(2) / 0.7).exp())).collect(),
        tolerance: 1e-14,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [m, 1])?;
            let y = Tensor::from_slice(device, &y, [1, n])?;
            let mut z = Tensor::zeros(device, [m, n])?;
            radial::<4>(&x, &y, &mut z, 0.7).launch()?;
            Ok(widen(&z.to_vec()?))
        },
    }
    .check();
}

/// Bounds that are a tile and a number, and powers of them all.
#[tile_kernel]
fn bounded_powers(x: &Tensor<f32, n>, low: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([8]);
    let low = low.partition_view([8]);
    let mut y = y.partition_view_mut([8]);
    let t = x.load_masked(y.index()).clamp(low.load_masked(y.index()), 2.0);
    y.store_masked(t.powi(5) + t.powi(-2) + t.powi(1) + t.powi(0));
}

#[test]
fn bounds_and_powers() {
    let x = [-3.0f32, -1.0, -0.5, 0.25, 1.0, 1.5, 2.0, 8.0, f32::INFINITY, f32::NAN];
    let low = [-2.0f32, -2.0, 0.5, 1.0, -1.0, -1.0, 4.0, 0.0, 0.0, 0.0];
    let expected = x.iter().zip(low).map(|(&x, low)| {
        let t = if x < low { low } else { x };
        let t = if t > 2.0 { 2.0 } else { t };
        // Each step is rounded as in the kernel.
        t * t * t * t * t + 1.0 / (t * t) + t + 1.0
    });
    check_exact!(bounded_powers<>(x: x, [10]; low: low, [10]) -> f32, [10] => expected.collect::<Vec<_>>());
}
