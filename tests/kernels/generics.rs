//! Kernels and functions that are generic over element types, with scalars of these types.

use super::{Case, array, check_exact, numbers, widen};
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

    /// Rows in few bits, with a scale for each: the largest element becomes the largest number of the format.
    #[tile_kernel]
    pub(super) fn quantized<T: Number, const B: usize>(
        x: &Tensor<f32, m, B>,
        y: &mut Tensor<T, m, B>,
        scales: &mut Tensor<f32, m, 1>,
    ) {
        let mut y = y.partition_view_mut([1, B]);
        let mut scales = scales.partition_view_mut([1, 1]);
        let x = x.partition_view([1, B]).load_masked(y.index());
        let scale = max(abs(x).max(1) / (T::MAX as f32), 1e-12);
        y.store_masked((x / scale).clamp(T::MIN as f32, T::MAX as f32).cast::<T>());
        scales.store_masked(scale);
    }

    /// The largest of three neighbours; beyond the ends there is nothing.
    #[tile_kernel]
    pub(super) fn pooled<T: Number, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
        let mut y = y.partition_view_mut([B]);
        let [i] = y.index();
        let x = x.pad([(1, 1)]).strided_view([B], [1]);
        let mut most = Tile::full([B], T::MIN);
        for tap in 0..3 {
            most = max(most, x.load_masked_or(T::MIN, [i * B + tap]));
        }
        y.store_masked(most);
    }

    #[tile_fn]
    fn limits<T: Float>() -> Tile<f64, 1> {
        let (least, most) = (T::MIN as f64, T::MAX as f64);
        let (step, normal) = (T::EPSILON as f64, T::MIN_POSITIVE as f64);
        let at = Tile::<i32, 1>::iota([4], 0);
        select(at == 0, least, select(at == 1, most, select(at == 2, step, Tile::full([4], normal))))
    }

    /// The limits of the kernel's format, and of one that a call says.
    #[tile_kernel]
    pub(super) fn limited<T: Float>(y: &mut Tensor<f64, 2, 4>, x: &mut Tensor<T, 2, 1>) {
        let mut y = y.partition_view_mut([1, 4]);
        let mut x = x.partition_view_mut([1, 1]);
        let [i, _] = y.index();
        let rows = if i == 0 { limits::<T>() } else { limits::<bf16>() };
        y.store(rows.unsqueeze(0));
        x.store(Tile::full([1, 1], T::MAX));
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

fn check_quantized<T: Number>(most: f64) -> tile::Result<()> {
    const COLUMNS: usize = 32;
    let x: Vec<f32> = (0..3 * COLUMNS).map(|i| (i * 37 % 101) as f32 - 50.0).collect();
    for (device, label) in super::devices() {
        let from = Tensor::from_slice(&device, &x, [3, COLUMNS])?;
        let mut y = Tensor::<T>::zeros(&device, [3, COLUMNS])?;
        let mut scales = Tensor::zeros(&device, [3, 1])?;
        kernels::quantized::<T, COLUMNS>(&from, &mut y, &mut scales).launch()?;
        let (y, scales) = (widen(&y.to_vec()?), scales.to_vec()?);
        for (i, row) in x.chunks(COLUMNS).enumerate() {
            let largest = row.iter().fold(0f32, |most, x| most.max(x.abs()));
            let what = format!("row {i} in {} on {label}", T::DTYPE);
            assert!((f64::from(scales[i]) / (f64::from(largest) / most) - 1.0).abs() < 1e-6, "{what}");
            let found = &y[i * COLUMNS..][..COLUMNS];
            assert_eq!(found.iter().fold(0.0, |most: f64, y| most.max(y.abs())), most, "{what}");
            for (&found, &x) in found.iter().zip(row) {
                let exact = f64::from(x / scales[i]);
                // Integers are truncated, and floats have two bits of mantissa at least.
                assert!((found - exact).abs() <= (exact.abs() / 8.0).max(1.0), "{what}: {found} for {exact}");
            }
        }
    }
    Ok(())
}

#[test]
fn one_kernel_scales_to_the_largest_number_of_any_format() {
    check_quantized::<i8>(127.0).unwrap();
    check_quantized::<f8e4m3fn>(448.0).unwrap();
    check_quantized::<f8e5m2>(57344.0).unwrap();
}

fn check_pooled<T: Number>() {
    const N: usize = 21;
    let x: Vec<T> = (0..N).map(|i| T::from_int(-100 + (i * 53 % 100) as i128)).collect();
    let wide = widen(&x);
    let pooled: Vec<f64> = (0..N)
        .map(|i| wide[i.saturating_sub(1)..N.min(i + 2)].iter().copied().fold(f64::NEG_INFINITY, f64::max))
        .collect();
    super::check_vectors(
        kernels::pooled::ir(),
        &[("T", Binding::Elem(T::DTYPE)), ("B", Binding::Const(8))],
        &x,
        pooled,
        0.0,
        |x, y| kernels::pooled::<T, 8>(x, y).launch(),
    );
}

#[test]
fn the_largest_of_neighbours_begins_at_the_smallest_number() {
    check_pooled::<i8>();
    check_pooled::<u8>();
    check_pooled::<i64>();
    check_pooled::<f8e4m3fn>();
    check_pooled::<bf16>();
    check_pooled::<f64>();
}

fn check_limits<T: Float>(limits: [f64; 4]) -> tile::Result<()> {
    let of_bf16 = [bf16::MIN, bf16::MAX, bf16::EPSILON, bf16::MIN_POSITIVE].map(bf16::to_f64);
    assert_eq!([T::MIN, T::MAX, T::EPSILON, T::MIN_POSITIVE].map(T::to_float), limits, "{}", T::DTYPE);
    for (device, label) in super::devices() {
        let mut y = Tensor::zeros(&device, [2, 4])?;
        let mut x = Tensor::<T>::zeros(&device, [2, 1])?;
        kernels::limited::<T>(&mut y, &mut x).launch()?;
        assert_eq!(y.to_vec()?, [limits, of_bf16].concat(), "{} on {label}", T::DTYPE);
        assert_eq!(widen(&x.to_vec()?), [limits[1]; 2], "{} on {label}", T::DTYPE);
    }
    Ok(())
}

#[test]
fn limits_are_those_of_the_format() {
    check_limits::<f8e4m3fn>([-448.0, 448.0, 0.125, 2f64.powi(-6)]).unwrap();
    check_limits::<f8e5m2>([-57344.0, 57344.0, 0.25, 2f64.powi(-14)]).unwrap();
    check_limits::<f16>([-65504.0, 65504.0, 2f64.powi(-10), 2f64.powi(-14)]).unwrap();
    check_limits::<f32>([f32::MIN, f32::MAX, f32::EPSILON, f32::MIN_POSITIVE].map(f64::from)).unwrap();
    check_limits::<f64>([f64::MIN, f64::MAX, f64::EPSILON, f64::MIN_POSITIVE]).unwrap();
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

#[tile_kernels]
mod of_floats {
    use tile::prelude::*;

    #[derive(TileStruct)]
    pub(super) struct Parts<T: Float, const N: usize> {
        parts: [Tile<T, 1>; N],
    }

    #[tile_fn]
    impl<T: Float, const N: usize> Parts<T, N> {
        fn halved(self) -> f32 {
            const TWICE: usize = 2 * N;
            let third: T = 0.25;
            let mut sum = Tile::zeros([2]);
            for part in self.parts {
                sum += part * 0.5 + third;
            }
            sum.sum(0).item() as f32 + TWICE as f32
        }
    }

    #[tile_fn]
    impl Parts<bf16, 1> {
        fn doubled(self) -> Tile<bf16, 1> {
            self.parts[0] * 2.0
        }
    }

    #[tile_kernel]
    pub(super) fn halves(x: &Tensor<bf16, 2>, y: &mut Tensor<f32, 3>) {
        let x = x.partition_view([2]).load([0]);
        let halved =
            Parts { parts: [x, x] }.halved() + Parts { parts: [x.cast::<f32>(); 3] }.halved() * 100.0;
        let doubled = Parts { parts: [x] }.doubled().cast::<f32>();
        y.partition_view_mut([3]).store(cat([Tile::full([1], halved), doubled], 0));
    }
}
use of_floats::halves;

#[test]
fn methods_of_any_float_have_literals_and_constants() {
    // (1 + 2) / 2 * 2 + 4 * 0.25 + 4, and three of them with 6
    check_exact!(halves<>(x: [1.0f32, 2.0].map(bf16::from_f32), [2]) -> f32, [3] => [8.0 + 1200.0f32, 2.0, 4.0]);
}

/// Literals of integers beside values of a type parameter, in every place that a literal has.
#[tile_fn]
fn of_integers<T: Int>(t: Tile<T, 1>, s: T, i: usize) -> Tile<T, 1> {
    let three: T = 3;
    let (shift, twice) = (i + 1, s * 2 + 1);
    let mut sum = (t & 15) + (t % 3) * 2 + (t >> 1) + (s << 2) + twice + three;
    sum += select(t > 2, t, 0) + max(t, 1);
    sum = sum.clamp(1, 100) | 64;
    sum ^= 1;
    sum + Tile::full([4], 1)
        + sum.shift(0, 1, 7)
        + by(t, 3)
        + reduce(t, 0, 0, |a, b| a + b)
        + shift_of(shift) as T
}

#[tile_fn]
fn by<T: Number>(t: Tile<T, 1>, factor: T) -> Tile<T, 1> {
    t * factor - 1
}

#[tile_fn]
fn shift_of(shift: usize) -> i32 {
    (shift * 2) as i32
}

#[tile_kernel]
fn integer_literals<T: Int, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>, s: T) {
    let x = x.partition_view([4]);
    let mut y = y.partition_view_mut([4]);
    let [i] = y.index();
    let t = x.load_masked_or(-1, [i]);
    let three: T = 3;
    let (two, mut one) = (2, 0);
    one = one + 1;
    let (shift, twice) = (i + 1, s * two + one);
    let mut sum = (t & 15) + (t % 3) * 2 + (t >> 1) + (s << 2) + twice + three;
    sum += select(t > 2, t, 0) + max(t, 1);
    sum = sum.clamp(1, 100) | (32 * 2);
    sum ^= T::of(1);
    sum = sum + Tile::full([4], 1) + sum.shift(0, 1, 7) + (t * 3 - 1) + reduce(t, 0, 0, |a, b| a + b);
    sum += (shift * 2) as T;
    y.store_masked(sum - of_integers(t, s, i) + t * -(two) - -5);
}

#[test]
fn integers_are_literals_of_type_parameters() {
    fn check<T: Int>(dtype: tile::ir::DType) {
        let x: Vec<T> = (0..6).map(|x| T::from_int(x)).collect();
        let expected = x.iter().map(|x| T::from_int(5 - 2 * x.to_int()).to_float()).collect();
        Case {
            ir: integer_literals::ir(),
            bindings: &[("T", Binding::Elem(dtype)), ("B", Binding::Const(4))],
            arguments: vec![
                array(&x, &[6]),
                array(&[T::ZERO; 6], &[6]),
                tile::ir::Array::scalar(dtype, tile::ir::ops::Literal::Int(5)),
            ],
            output: 1,
            expected,
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [6])?;
                let mut y = Tensor::zeros(device, [6])?;
                integer_literals::<T, 4>(&x, &mut y, T::of(5)).launch()?;
                Ok(widen(&y.to_vec()?))
            },
        }
        .check();
    }
    check::<i32>(tile::ir::DType::I32);
    check::<i16>(tile::ir::DType::I16);
    check::<i64>(tile::ir::DType::I64);
}

/// Of a parameter that is any number, literals of both kinds stand beside it.
#[tile_kernel]
fn number_literals<T: Number, const B: usize>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let t = x.load_masked(y.index());
    y.store_masked(by(t * 2 + 4.0, 2) + T::of(15) - T::of(14.0));
}

#[test]
fn literals_of_both_kinds_are_of_any_number() {
    fn check<T: Number>(dtype: tile::ir::DType) {
        let x: Vec<T> = (0..6).map(|x| T::from_int(x)).collect();
        Case {
            ir: number_literals::ir(),
            bindings: &[("T", Binding::Elem(dtype)), ("B", Binding::Const(4))],
            arguments: vec![array(&x, &[6]), array(&[T::ZERO; 6], &[6])],
            output: 1,
            expected: x.iter().map(|x| x.to_float() * 4.0 + 8.0).collect(),
            tolerance: 0.0,
            run: &|device| {
                let x = Tensor::from_slice(device, &x, [6])?;
                let mut y = Tensor::zeros(device, [6])?;
                number_literals::<T, 4>(&x, &mut y).launch()?;
                Ok(widen(&y.to_vec()?))
            },
        }
        .check();
    }
    check::<f32>(tile::ir::DType::F32);
    check::<bf16>(tile::ir::DType::BF16);
    check::<i16>(tile::ir::DType::I16);
}

/// What has a fraction is no number of integers, however the parameter comes to be one.
#[test]
fn integers_have_no_fractions() {
    #[tile_kernel]
    fn halved<T: Number>(x: &Tensor<T, n>, y: &mut Tensor<T, n>) {
        let x = x.partition_view([4]);
        let mut y = y.partition_view_mut([4]);
        y.store_masked(x.load_masked(y.index()) * 0.5);
    }
    let device = Device::reference();
    let x = Tensor::full(&device, [4], 3.0f32).unwrap();
    let mut y = Tensor::zeros(&device, [4]).unwrap();
    halved(&x, &mut y).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [1.5; 4]);
    let x = Tensor::full(&device, [4], 3i32).unwrap();
    let error = halved(&x, &mut Tensor::zeros(&device, [4]).unwrap()).launch().unwrap_err();
    assert!(error.to_string().contains("a float literal can't be i32"), "{error}");
    std::panic::catch_unwind(|| i32::of(2.5)).unwrap_err();
}
