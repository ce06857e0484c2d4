//! Kernels with several outputs, run in every way: `check_kernel!` says what each argument is.

use super::{compare, devices, numbers_of};
use tile::ir::{Array, Binding, VerifiedKernel, interp, specialize};
use tile::prelude::*;

/// What an output must hold, and the largest accepted |found − expected| / max(1, |expected|); of 0, all bits count.
pub(super) struct Expected {
    pub(super) elements: Vec<f64>,
    pub(super) tolerance: f64,
}

/// Runs a kernel on every device and in the evaluator, and compares its outputs. Every argument has its expectation, if
/// it is an output; `run` gives the outputs in their order.
pub(super) fn check(
    ir: &VerifiedKernel,
    bindings: &[(&str, Binding)],
    arguments: Vec<(Array, Option<Expected>)>,
    run: &dyn Fn(&Device) -> tile::Result<Vec<Vec<f64>>>,
) {
    let name = &ir.name;
    let (mut arrays, expected): (Vec<Array>, Vec<Option<Expected>>) = arguments.into_iter().unzip();
    let compare_all = |found: &[Vec<f64>], label: &str| {
        let outputs: Vec<&Expected> = expected.iter().flatten().collect();
        assert_eq!(found.len(), outputs.len(), "every output is read");
        for (i, (found, output)) in found.iter().zip(outputs).enumerate() {
            compare(&format!("output {i} of {name} {label}"), found, &output.elements, output.tolerance);
        }
    };
    for (device, label) in devices() {
        let found = run(&device).unwrap_or_else(|error| panic!("{name} on {label}: {error}"));
        compare_all(&found, &format!("on {label}"));
    }
    let bindings: Vec<_> = bindings.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    let instance = specialize(ir, &bindings).expect("the bindings fit");
    interp::run(&instance, &mut arrays).expect("the arguments fit");
    let outputs = arrays.iter().zip(&expected).filter(|(_, expected)| expected.is_some());
    let found: Vec<Vec<f64>> = outputs.map(|(array, _)| numbers_of(array)).collect();
    compare_all(&found, "in the IR");
}

/// `check_kernel!(kernel<B = 4>(input x: (&values, shape), number s: 2.0, output y: (&initial, shape => &expected,
/// tolerance)))`. Values are slices; names are those of the arguments, in order.
macro_rules! check_kernel {
    ($kernel:ident<$($constant:ident = $value:literal),*>($($role:ident $name:ident: $what:tt),* $(,)?)) => {
        super::whole::check(
            &$kernel::ir(),
            &[$((stringify!($constant), tile::ir::Binding::from($value))),*],
            vec![$(super::whole::argument!($role $what)),*],
            &|device| {
                $(let $name = super::whole::on_device!(device, $role $what);)*
                $kernel::<$($value),*>($(super::whole::pass!($role $name)),*).launch()?;
                let read = [$(super::whole::read!($role $name)),*];
                Ok(read.into_iter().flatten().collect())
            },
        )
    };
}

macro_rules! argument {
    (input ($values:expr, $shape:expr)) => {
        (super::array(&$values[..], &$shape), None)
    };
    (output ($values:expr, $shape:expr => $expected:expr, $tolerance:expr)) => {{
        let elements = $expected.iter().map(|&x| f64::from(x)).collect();
        let expected = super::whole::Expected { elements, tolerance: $tolerance };
        (super::array(&$values[..], &$shape), Some(expected))
    }};
    (number ($value:expr)) => {
        (super::array(&[$value], &[]), None)
    };
}

macro_rules! on_device {
    ($device:expr, input ($values:expr, $shape:expr)) => {
        tile::Tensor::from_slice($device, &$values[..], $shape)?
    };
    ($device:expr, output ($values:expr, $shape:expr => $expected:expr, $tolerance:expr)) => {
        std::cell::RefCell::new(tile::Tensor::from_slice($device, &$values[..], $shape)?)
    };
    ($device:expr, number ($value:expr)) => {
        $value
    };
}

macro_rules! pass {
    (input $name:ident) => {
        &$name
    };
    (output $name:ident) => {
        &mut *$name.borrow_mut()
    };
    (number $name:ident) => {
        $name
    };
}

macro_rules! read {
    (output $name:ident) => {
        Some(super::widen(&$name.borrow().to_vec()?))
    };
    ($role:ident $name:ident) => {
        None
    };
}

pub(super) use {argument, check_kernel, on_device, pass, read};
