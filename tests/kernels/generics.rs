//! Kernels and functions that are generic over element types, with scalars of these types.

use super::{Case, array, numbers, widen};
use tile::ir::Binding;
use tile::prelude::*;

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    /// Locals, constants, comparisons and a negation of `T`; the scalar stands on either side of a tile.
    #[tile_fn]
    fn blend<T: Float, const N: usize>(x: Tile<T, 1>, s: T) -> Tile<T, 1> {
        let half: T = s * T::of(0.5) + T::ONE;
        let factor = if s < T::ZERO { -half } else { half };
        let mut sum = (T::ONE - x) * factor;
        sum += Tile::full([N], s);
        select(s < x, sum, T::of(2.0) * sum)
    }

    #[tile_fn]
    pub(super) fn power<T>(base: T, exponent: usize) -> T
    where
        T: Number,
    {
        let mut result = T::ONE;
        for _ in 0..exponent {
            result *= base;
        }
        result
    }

    #[tile_fn]
    fn scaled<A, B>(a: Tile<A, 1>, b: Tile<B, 1>) -> Tile<B, 1>
    where
        A: Int,
        B: Float,
    {
        a.cast::<B>() * b
    }

    /// The largest element, and where there is none −∞.
    #[tile_fn]
    fn largest<T: Float>(x: Tile<T, 1>) -> T {
        let top = x.max(0).item();
        if top > T::NEG_INFINITY { top } else { T::ZERO }
    }

    #[tile_kernel]
    pub(super) fn floats<T: Float, const B: usize>(x: &Tensor<T, n>, s: T, y: &mut Tensor<T, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let tile = x.load_masked(y.index());
        let blended = blend::<T, B>(tile, s) + blend::<_, B>(s * tile, -s);
        y.store_masked((s - T::ONE) * blended + largest(tile));
    }

    #[tile_kernel]
    pub(super) fn integers<T, const B: usize>(x: &Tensor<T, n>, s: T, y: &mut Tensor<f32, n>)
    where
        T: Int,
    {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        let tile = x.load_masked(y.index());
        let mut wrapped = power(s + s, 3);
        wrapped -= T::ONE;
        let ones: Tile<f32, 1> = Tile::ones([B]);
        y.store_masked(scaled(wrapped * tile, ones) + scaled::<T, f32>(tile, ones));
    }
}

/// `blend` in f64, for numbers whose results every format holds.
fn blend(x: f64, s: f64) -> f64 {
    let half = s * 0.5 + 1.0;
    let sum = (1.0 - x) * if s < 0.0 { -half } else { half } + s;
    if s < x { sum } else { 2.0 * sum }
}

fn check_floats<T: Float>(tolerance: f64) {
    const N: usize = 21;
    let (x, s) = (numbers::<T>(N, 5), T::of(-0.5));
    let wide = widen(&x);
    let one = |(i, &x): (usize, &f64)| {
        let block = &wide[i / 8 * 8..N.min(i / 8 * 8 + 8)];
        let padding = if block.len() < 8 { 0.0 } else { f64::NEG_INFINITY };
        let largest = block.iter().copied().fold(padding, f64::max);
        (-0.5 - 1.0) * (blend(x, -0.5) + blend(-0.5 * x, 0.5)) + largest
    };
    Case {
        ir: kernels::floats::ir(),
        bindings: &[("T", Binding::Elem(T::DTYPE)), ("B", Binding::Const(8))],
        arguments: vec![array(&x, &[N]), array(&[s], &[]), array(&[T::ZERO; N], &[N])],
        output: 2,
        expected: wide.iter().enumerate().map(one).collect(),
        tolerance,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [N])?;
            let mut y = Tensor::zeros(device, [N])?;
            kernels::floats::<T, 8>(&x, s, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

#[test]
fn scalars_of_a_generic_kernel() {
    check_floats::<f32>(1e-6);
    check_floats::<f64>(1e-14);
    check_floats::<f16>(0.02);
}

#[test]
fn integers_of_a_generic_kernel_wrap() {
    const N: usize = 19;
    let x: Vec<i8> = (-9..10).collect();
    let s = 37i8;
    let power = 74i8.wrapping_mul(74).wrapping_mul(74);
    assert_eq!(kernels::power(74i8, 3), power);
    assert_eq!(kernels::power(1.5f64, 2), 2.25);
    let one = |&x: &i8| f64::from(power.wrapping_sub(1).wrapping_mul(x)) + f64::from(x);
    Case {
        ir: kernels::integers::ir(),
        bindings: &[("T", Binding::Elem(tile::ir::DType::I8)), ("B", Binding::Const(8))],
        arguments: vec![array(&x, &[N]), array(&[s], &[]), array(&[0f32; N], &[N])],
        output: 2,
        expected: x.iter().map(one).collect(),
        tolerance: 0.0,
        run: &|device| {
            let x = Tensor::from_slice(device, &x, [N])?;
            let mut y = Tensor::zeros(device, [N])?;
            kernels::integers::<i8, 8>(&x, s, &mut y).launch()?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}

mod named_alike {
    use tile::prelude::*;

    /// A type with the name of a kernel's parameter.
    pub(super) struct B {
        pub(super) factor: f32,
    }

    #[tile_kernel]
    pub(super) fn scaled<const B: usize>(x: &Tensor<f32, n>, factor: f32, y: &mut Tensor<f32, n>) {
        let x = x.partition_view([B]);
        let mut y = y.partition_view_mut([B]);
        y.store_masked(x.load_masked(y.index()) * factor);
    }
}

#[test]
fn a_type_may_have_the_name_of_a_const_parameter() {
    let x = [1.0, 2.0, 3.0];
    let named_alike::B { factor } = named_alike::B { factor: 2.0 };
    for (device, label) in super::devices() {
        let x = Tensor::from_slice(&device, &x, [3]).unwrap();
        let mut y = Tensor::zeros(&device, [3]).unwrap();
        named_alike::scaled::<2>(&x, factor, &mut y).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [2.0, 4.0, 6.0], "{label}");
    }
}
