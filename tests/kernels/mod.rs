//! Whole kernels, each run in every way there is and compared with plain Rust loops that know nothing of
//! tiles: on the reference device (the body as Rust), in the IR's evaluator (the lowered body), and with
//! feature `jit` on the CPU (the compiled body).

mod alignments;
mod alternatives;
mod arrays;
mod attention;
mod behaviour_atomic_functions;
mod behaviour_atomics;
mod behaviour_control;
mod behaviour_gathers;
mod behaviour_movement;
mod behaviour_numbers;
mod behaviour_reductions;
mod behaviour_schedules;
mod behaviour_views;
mod bools;
mod borders;
mod bounded;
mod choices;
mod conditions;
mod const_functions;
mod control;
mod counters;
mod decided;
mod decoding;
mod detection;
mod elementwise;
mod exits;
mod extremes;
mod fragments;
mod functions;
mod generics;
mod given_sizes;
mod grids;
mod helps;
mod images;
mod imports;
mod inner_views;
mod integers;
mod iterators;
mod known_conditions;
mod launches;
mod lines;
mod lints;
mod literals;
mod logarithms;
mod loops;
mod losses;
mod margins;
mod matrices;
mod messages;
mod methods;
mod moved_outputs;
mod movement;
mod norms;
mod optional;
mod optional_outputs;
mod overflow;
mod paths;
mod patterns;
mod places;
mod products;
#[cfg(feature = "jit")]
mod programs;
mod quantized;
mod ragged;
mod random;
mod recurrences;
mod reductions;
mod routing;
mod rows_of_functions;
mod scalars;
mod scatter;
mod schedules;
mod sequences;
mod serving;
mod short_rows;
mod signatures;
mod simulated;
mod solvers;
mod spanning;
mod sparse;
mod stencils;
mod strided;
mod structs;
mod tables;
#[cfg(feature = "jit")]
mod threads;
mod training;
mod transforms;
mod turns;
mod unrolled;
mod updates;
mod variants;
mod waiting;
mod whole;

use tile::ir::array::Elements;
use tile::ir::{Array, Binding, VerifiedKernel};
use tile::kernel::Element;
use tile::prelude::*;

/// A kernel with arguments and the result that plain loops give.
struct Case<'a> {
    /// The lowered kernel.
    ir: VerifiedKernel,
    /// Its compile-time parameters, in order.
    bindings: &'a [(&'a str, Binding)],
    /// Its arguments as arrays.
    arguments: Vec<Array>,
    /// The position of the output among them.
    output: usize,
    /// The output's elements.
    expected: Vec<f64>,
    /// The largest accepted |found − expected| / max(1, |expected|); of 0, all bits count.
    tolerance: f64,
    /// Launches the kernel on a device and gives the output's elements.
    run: &'a dyn Fn(&Device) -> tile::Result<Vec<f64>>,
}

impl Case<'_> {
    fn check(self) {
        let Case { ir, bindings, arguments, output, expected, tolerance, run } = self;
        let mut arguments: Vec<_> = arguments.into_iter().map(|argument| (argument, None)).collect();
        arguments[output].1 = Some(whole::Expected { elements: expected, tolerance });
        whole::check(&ir, bindings, arguments, &|device| Ok(vec![run(device)?]));
    }
}

/// Runs `kernel::<B, …>(&input, …, &mut output)` in every way and compares the output with numbers, bit by bit but
/// for NaN. Inputs are `values, shape` pairs; the output begins as zeros.
macro_rules! check_exact {
    (
        $kernel:ident<$($name:ident = $value:literal),*>($($input:ident: $values:expr, $shape:expr);*)
        -> $output:ty, $output_shape:expr => $expected:expr
    ) => {{
        let expected: Vec<f64> = $expected.into_iter().map(f64::from).collect();
        let inputs: &[&str] = &[$(stringify!($input)),*];
        $(let $input = ($values, $shape);)*
        let output_shape = $output_shape;
        let zeros = vec![<$output as Default>::default(); output_shape.iter().product()];
        super::Case {
            ir: $kernel::ir(),
            bindings: &[$((stringify!($name), tile::ir::Binding::Const($value))),*],
            arguments: vec![
                $(super::array(&$input.0[..], &$input.1),)*
                super::array(&zeros, &output_shape),
            ],
            output: inputs.len(),
            expected,
            tolerance: 0.0,
            run: &|device| {
                $(let $input = tile::Tensor::from_slice(device, &$input.0[..], $input.1)?;)*
                let mut output = tile::Tensor::<$output>::zeros(device, output_shape)?;
                $kernel::<$($value),*>($(&$input,)* &mut output).launch()?;
                Ok(super::widen(&output.to_vec()?))
            },
        }
        .check();
    }};
}
pub(crate) use check_exact;

/// The environment variable that names a device, `cuda:0`, on which kernels are run instead of on all that need no GPU.
const DEVICE: &str = "TILE_TEST_DEVICE";

fn devices() -> Vec<(Device, &'static str)> {
    if let Ok(name) = std::env::var(DEVICE) {
        let device = Device::named(&name).unwrap_or_else(|error| panic!("{error}"));
        return vec![(device, "the device that is asked for")];
    }
    let mut devices = vec![(Device::reference(), "reference")];
    if cfg!(feature = "jit") {
        devices.push((Device::cpu(), "cpu"));
        devices.extend(
            ["simulated:sm_90a", "simulated:sm_100a", "simulated:gfx942"]
                .map(|name| (Device::named(name).expect("it is a target"), name)),
        );
    }
    devices
}

/// Asserts that numbers are close, or of the same bits where the tolerance is 0; NaN equals NaN, and an infinity only itself.
fn compare(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let close = if tolerance == 0.0 {
            found.to_bits() == expected.to_bits()
        } else {
            found == expected
                || expected.is_finite() && (found - expected).abs() <= tolerance * expected.abs().max(1.0)
        };
        assert!(
            close || found.is_nan() && expected.is_nan(),
            "{what}: element {i} is {found:?}, not {expected:?}"
        );
    }
}

#[test]
fn numbers_that_are_close_or_the_same_pass() {
    let nan = f64::NAN;
    compare("x", &[1.0, -0.0, f64::INFINITY, nan], &[1.0, -0.0, f64::INFINITY, nan], 0.0);
    compare("x", &[1.5, -0.0, f64::INFINITY, nan, 150.0], &[1.0, 0.0, f64::INFINITY, nan, 100.0], 0.5);
}

#[test]
#[should_panic(expected = "x: element 1 is 3.0, not -inf")]
fn no_number_is_close_to_an_infinity() {
    compare("x", &[1.0, 3.0], &[1.0, f64::NEG_INFINITY], 0.5);
}

#[test]
#[should_panic(expected = "x: element 0 is inf, not 3.0")]
fn an_infinity_is_close_to_no_number() {
    compare("x", &[f64::INFINITY], &[3.0], 0.5);
}

#[test]
#[should_panic(expected = "x: element 0 is NaN, not 3.0")]
fn nothing_that_is_no_number_is_close_to_one() {
    compare("x", &[f64::NAN], &[3.0], 0.5);
}

#[test]
#[should_panic(expected = "x: element 0 is -0.0, not 0.0")]
fn zeros_of_other_signs_are_not_the_same() {
    compare("x", &[-0.0], &[0.0], 0.0);
}

#[test]
#[should_panic(expected = "x: element 0 is 1.51, not 1.0")]
fn what_is_farther_than_the_tolerance_is_not_close() {
    compare("x", &[1.51], &[1.0], 0.5);
}

fn numbers_of(array: &Array) -> Vec<f64> {
    match array.elements() {
        Elements::Int(values) => values.iter().map(|&value| value as f64).collect(),
        Elements::Float(values) => values.clone(),
    }
}

/// The elements as `f64`, to compare them.
fn widen<T: Element>(values: &[T]) -> Vec<f64> {
    numbers_of(&array(values, &[values.len()]))
}

fn array<T: Element>(values: &[T], shape: &[usize]) -> Array {
    let elements = if T::DTYPE.is_float() {
        Elements::Float(values.iter().map(|value| value.to_float()).collect())
    } else {
        Elements::Int(values.iter().map(|value| value.to_int()).collect())
    };
    Array::new(T::DTYPE, shape.to_vec(), elements)
}

/// Repeatable numbers in −1 … 1, exact in bf16 (multiples of 1/64), so that every format holds them.
fn numbers<T: Element>(count: usize, seed: u64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            T::from_float(((state >> 57) as f64 - 64.0) / 64.0)
        })
        .collect()
}

/// Checks a kernel from one vector to another of its length, `launch` launching it.
fn check_vectors<T: Element>(
    ir: VerifiedKernel,
    bindings: &[(&str, Binding)],
    x: &[T],
    expected: Vec<f64>,
    tolerance: f64,
    launch: impl Fn(&Tensor<T>, &mut Tensor<T>) -> tile::Result<()>,
) {
    let n = x.len();
    Case {
        ir,
        bindings,
        arguments: vec![array(x, &[n]), array(&vec![T::from_int(0); n], &[n])],
        output: 1,
        expected,
        tolerance,
        run: &|device| {
            let x = Tensor::from_slice(device, x, [n])?;
            let mut y = Tensor::zeros(device, [n])?;
            launch(&x, &mut y)?;
            Ok(widen(&y.to_vec()?))
        },
    }
    .check();
}
