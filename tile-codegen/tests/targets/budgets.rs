//! The kernels whose machine code is recorded compute what they say, on every executor: numbers of wrong code are
//! worth nothing. In smaller tiles than the recorded ones, against plain loops in f64.

use crate::support::{close, run_native, run_simt_as, sample};
use tile_codegen::Options;
use tile_ir::array::Elements;
use tile_ir::{Array, Binding, DType, Instance, interp, specialize};

const KERNELS: &str = include_str!("../../examples/budgets/kernels.rs");

/// A kernel whose machine code is recorded, with these parameters.
pub(crate) fn instance(name: &str, format: Option<DType>, constants: &[(&str, usize)]) -> Instance {
    instance_in(KERNELS, name, format, constants)
}

/// A kernel of a file's text, with these parameters.
pub(crate) fn instance_in(
    file: &str,
    name: &str,
    format: Option<DType>,
    constants: &[(&str, usize)],
) -> Instance {
    let items = syn::parse_file(file).unwrap().items;
    let functions = items.into_iter().filter_map(|item| match item {
        syn::Item::Fn(function) => Some(function),
        _ => None,
    });
    let mut function = functions.into_iter().find(|function| function.sig.ident == name).unwrap();
    let place = function.attrs.iter().position(tile_frontend::is_kernel).unwrap();
    let attribute = function.attrs.remove(place);
    let options = attribute.meta.require_list().map(|list| list.tokens.clone()).unwrap_or_default();
    let kernel = tile_frontend::lower(options, function, "kernels.rs").unwrap().kernel;
    let formats = format.map(|format| ("T".to_owned(), Binding::Elem(format)));
    let numbers = constants.iter().map(|&(name, value)| (name.to_owned(), Binding::Const(value)));
    specialize(&kernel, &formats.into_iter().chain(numbers).collect::<Vec<_>>()).unwrap()
}

/// Runs everywhere with `inputs` and an output of this format and shape, which must then hold the numbers.
fn check(
    instance: &Instance,
    inputs: &[Array],
    (format, shape): (DType, &[usize]),
    expected: Vec<f64>,
    tolerance: f64,
) {
    let arguments = [inputs, &[sample(format, shape, 9)]].concat();
    let expected = Array::new(DType::F64, shape.to_vec(), Elements::Float(expected));
    let output = |found: Vec<Array>, what: &str| {
        close(&found[inputs.len()], &expected, tolerance, &format!("{} on {what}", instance.name));
    };
    let mut evaluated = arguments.clone();
    interp::run(instance, &mut evaluated).unwrap();
    output(evaluated, "the evaluator");
    output(run_native(instance, &arguments, &Options::default()), "the CPU");
    for target in ["sm_90a", "gfx942"] {
        output(run_simt_as(target, instance, &arguments, None), target);
        output(run_simt_as(target, instance, &arguments, Some(64)), target);
    }
}

fn numbers(array: &Array) -> Vec<f64> {
    (0..array.len()).map(|i| array.get_f64(i)).collect()
}

/// The error function by its Taylor series, which is exact enough below 4.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..100 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// Half a unit in the last place of a bf16 near 1, twice: once for the result, once for what led to it.
const BF16: f64 = 1.0 / 128.0;

#[test]
fn elementwise_kernels() {
    let shape = &[6 * 64][..];
    let inputs = [1, 2, 3].map(|seed| sample(DType::F32, shape, seed));
    let [a, b, _] = inputs.each_ref().map(numbers);
    let sums = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    check(&instance("add", None, &[("B", 64)]), &inputs[..2], (DType::F32, shape), sums, 0.0);

    let inputs = [1, 2, 3].map(|seed| sample(DType::BF16, shape, seed));
    let [a, b, c] = inputs.each_ref().map(numbers);
    let gelu = |x: f64| 0.5 * x * (1.0 + erf(x / 2f64.sqrt()));
    let expected = (0..a.len()).map(|i| gelu(a[i] + b[i]) * c[i]).collect();
    check(&instance("gelu_fused", None, &[("B", 64)]), &inputs, (DType::BF16, shape), expected, BF16);
}

#[test]
fn kernels_of_rows() {
    let shape = &[3, 256][..];
    let x = sample(DType::F32, shape, 1);
    let values = numbers(&x);
    let softmax = values.chunks(256).flat_map(|row| {
        let sum: f64 = row.iter().map(|x| x.exp()).sum();
        row.iter().map(move |x| x.exp() / sum)
    });
    let softmax = softmax.collect();
    let kernel = instance("softmax_row", None, &[("W", 256)]);
    check(&kernel, std::slice::from_ref(&x), (DType::F32, shape), softmax, 1e-6);
    let sums = values.chunks(256).map(|row| row.iter().sum()).collect();
    check(&instance("sum_rows", None, &[("B", 64)]), &[x], (DType::F32, &[3, 1]), sums, 1e-6);

    let inputs = [sample(DType::BF16, shape, 1), sample(DType::BF16, &[1, 256], 2)];
    let [x, weight] = inputs.each_ref().map(numbers);
    let normed = x.chunks(256).flat_map(|row| {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / 256.0;
        row.iter().zip(&weight).map(move |(x, weight)| x / (mean + 1e-6).sqrt() * weight)
    });
    let normed = normed.collect();
    check(&instance("rmsnorm_row", None, &[("W", 256)]), &inputs, (DType::BF16, shape), normed, BF16);
}

#[test]
fn transposition_and_products() {
    let [m, n, k] = [32, 48, 64];
    let x = sample(DType::BF16, &[m, n], 1);
    let turned = (0..n * m).map(|at| x.get_f64(at % m * n + at / m)).collect();
    check(&instance("transpose", None, &[("B", 16)]), &[x], (DType::BF16, &[n, m]), turned, 0.0);
    for format in [DType::F32, DType::BF16, DType::F16] {
        let inputs = [sample(format, &[m, k], 1), sample(format, &[k, n], 2)];
        let [a, b] = inputs.each_ref().map(numbers);
        let sum = |at: usize| (0..k).map(|p| a[at / n * k + p] * b[p * n + at % n]).sum();
        // Multiples of 1/64 whose sum is below 2⁹: f32 holds every partial one.
        let products = (0..m * n).map(sum).collect();
        let kernel = instance("gemm", Some(format), &[("BM", 16), ("BN", 24), ("BK", 32)]);
        check(&kernel, &inputs, (DType::F32, &[m, n]), products, 0.0);
    }
    let inputs = [sample(DType::F8E4M3FN, &[m, k], 1), sample(DType::F8E5M2, &[n, k], 2)];
    let [a, b] = inputs.each_ref().map(numbers);
    let sum = |at: usize| (0..k).map(|p| a[at / n * k + p] * b[at % n * k + p]).sum();
    let products = (0..m * n).map(sum).collect();
    let kernel = instance("gemm_nt_f8", None, &[("BM", 16), ("BN", 24), ("BK", 32)]);
    check(&kernel, &inputs, (DType::F32, &[m, n]), products, 0.0);
}

#[test]
fn causal_attention() {
    let (shape, s) = (&[2, 64, 128][..], 64);
    let inputs = [1, 2, 3].map(|seed| sample(DType::BF16, shape, seed));
    let [q, k, v] = inputs.each_ref().map(numbers);
    let row = |of: &[f64], head: usize, i: usize| of[(head * s + i) * 128..][..128].to_vec();
    let mut expected = Vec::new();
    for (head, i) in (0..2 * s).map(|row| (row / s, row % s)) {
        let query = row(&q, head, i);
        let score = |j: usize| -> f64 { query.iter().zip(row(&k, head, j)).map(|(q, k)| q * k).sum() };
        let weights: Vec<f64> = (0..=i).map(|j| (score(j) / 128f64.sqrt()).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let mut output = vec![0.0; 128];
        for (j, weight) in weights.iter().enumerate() {
            output.iter_mut().zip(row(&v, head, j)).for_each(|(o, v)| *o += weight / sum * v);
        }
        expected.extend(output);
    }
    let kernel = instance("attention", None, &[("BM", 32), ("BN", 16)]);
    check(&kernel, &inputs, (DType::BF16, shape), expected, 2.0 * BF16);
}
