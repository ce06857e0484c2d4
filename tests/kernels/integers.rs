//! Integer and bool kernels: Rust's division, wrapping, shifts, casts between formats.

use super::{Case, array, widen};
use tile::ir::{Binding, DType};
use tile::prelude::*;

/// Quotient and remainder by a scalar, put together again, then mixed by shifts.
#[tile_kernel]
fn divide_and_mix<T: Int, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>, divisor: T) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    let (quotient, remainder) = (x / divisor, x % divisor);
    let mixed = (quotient << T::of(3.0)) ^ (remainder >> T::of(1.0)) | T::of(1.0);
    y.store_masked(select(quotient * divisor + remainder == x, mixed, T::of(0.0)));
}

/// Floats to bytes and back, through a bool.
#[tile_kernel]
fn quantize<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<u8, n>, negative: &mut Tensor<bool, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let mut negative = negative.partition_view_mut([B]);
    let x = x.load_masked(y.index());
    y.store_masked((x * 300.0).cast::<u8>());
    negative.store_masked(x < 0.0);
}

#[test]
fn integers_divide_wrap_and_shift_as_in_rust() {
    let x: Vec<i8> = (-128..=127).collect();
    for divisor in [3i8, -7, -1] {
        let one = |&x: &i8| {
            let (quotient, remainder) = (x.wrapping_div(divisor), x.wrapping_rem(divisor));
            f64::from((quotient << 3) ^ (remainder >> 1) | 1)
        };
        Case {
            ir: divide_and_mix::ir(),
            bindings: &[("T", Binding::Elem(DType::I8)), ("B", Binding::Const(32))],
            arguments: vec![array(&x, &[256]), array(&[0i8; 256], &[256]), array(&[divisor], &[])],
            output: 1,
            expected: x.iter().map(one).collect(),
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [256])?;
                let mut y = Tensor::zeros(device, [256])?;
                divide_and_mix::<i8, 32>(&x, &mut y, divisor).launch()?;
                Ok(widen(&y.to_vec()?))
            },
        }
        .check();
    }
}

#[test]
fn unsigned_integers_are_unsigned() {
    let x = [0u32, 1, 7, u32::MAX, u32::MAX / 2];
    Case {
        ir: divide_and_mix::ir(),
        bindings: &[("T", Binding::Elem(DType::U32)), ("B", Binding::Const(4))],
        arguments: vec![array(&x, &[5]), array(&[0u32; 5], &[5]), array(&[10u32], &[])],
        output: 1,
        expected: x.iter().map(|x| f64::from((x / 10) << 3 ^ (x % 10) >> 1 | 1)).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [5])?;
            let mut y = Tensor::zeros(device, [5])?;
            divide_and_mix::<u32, 4>(&x, &mut y, 10).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn casts_saturate_and_bools_are_stored() {
    let x = [-1.0f32, -0.0, 0.5, 0.9, 1.0, f32::NAN, f32::INFINITY];
    let n = x.len();
    for output in [1, 2] {
        let expected =
            x.iter().map(|x| if output == 1 { f64::from((x * 300.0) as u8) } else { f64::from(*x < 0.0) });
        Case {
            ir: quantize::ir(),
            bindings: &[("B", Binding::Const(4))],
            arguments: vec![array(&x, &[n]), array(&vec![0u8; n], &[n]), array(&vec![true; n], &[n])],
            output,
            expected: expected.collect(),
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [n])?;
                let mut y = Tensor::zeros(device, [n])?;
                let mut negative = Tensor::from_slice(device, &vec![true; n], [n])?;
                quantize::<4>(&x, &mut y, &mut negative).launch()?;
                Ok(if output == 1 { widen(&y.to_vec()?) } else { widen(&negative.to_vec()?) })
            },
        }
        .check();
    }
}
