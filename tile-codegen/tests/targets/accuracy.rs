//! The error of every mathematical function in units of the last place, and its edges bit by bit.

use crate::kernels::elementwise;
use crate::leaf::random_words;
use crate::support::{Memory, Native, cpus, instance, is_emulated, run_native};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tile_codegen::{Cpu, Options};
use tile_ir::array::{Elements, round_float};
use tile_ir::ops::{BinaryOp, Literal, UnaryOp};
use tile_ir::{Array, DType, Instance};

/// The bound in ulp of a function that the op table gives one. That of f64 has one more, because f64 is compared with the
/// system's library, itself within 1 ulp.
pub(crate) fn bound(ulps: u32, dtype: DType) -> f64 {
    f64::from(if dtype == DType::F64 { ulps + 1 } else { ulps })
}

fn vector(dtype: DType, values: Vec<f64>) -> Array {
    Array::new(dtype, vec![values.len()], Elements::Float(values))
}

/// A function's kernel and instance, which tests share.
type Compiled = Arc<(Native, Instance)>;

/// The kernel of an op on one or two operands.
fn compiled(body: &str, dtype: DType, cpu: Cpu) -> Compiled {
    static KERNELS: Mutex<BTreeMap<(String, DType, &str), Compiled>> = Mutex::new(BTreeMap::new());
    let mut kernels = KERNELS.lock().unwrap();
    let kernel = kernels.entry((body.to_owned(), dtype, cpu.name())).or_insert_with(|| {
        let instance = instance(&elementwise(dtype.name(), dtype.name(), body), &[("B", 4096)]);
        let options = Options { cpu, ..Options::default() };
        Arc::new((Native::of(&instance, &options), instance))
    });
    Arc::clone(kernel)
}

/// Operands in memory, and room for results.
struct Operands {
    memory: Memory,
    dtype: DType,
}

impl Operands {
    fn of(like: &Compiled, dtype: DType, a: &[f64], b: &[f64]) -> Operands {
        let result = Array::full(dtype, &[a.len()], Literal::Int(0));
        let memory = Memory::of(&like.1, &[vector(dtype, a.to_vec()), vector(dtype, b.to_vec()), result]);
        Operands { memory, dtype }
    }

    /// What a kernel makes of the operands.
    fn results(&mut self, kernel: &Compiled) -> Vec<f64> {
        self.memory.clear(2);
        kernel.0.run(&self.memory);
        let bytes = self.memory.bytes(2);
        let singles = bytes.as_chunks().0.iter().map(|&bytes| f64::from(f32::from_le_bytes(bytes)));
        match self.dtype {
            DType::F32 => singles.collect(),
            _ => bytes.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect(),
        }
    }
}

/// Distance in units of the last place of the format, f32 or f64, between a result and the exact value.
pub(crate) fn ulps(dtype: DType, actual: f64, exact: f64) -> f64 {
    if actual.is_nan() && exact.is_nan() || actual == exact {
        return 0.0;
    }
    let nearest = if dtype == DType::F64 { exact } else { f64::from(exact as f32) };
    if nearest.is_infinite() || actual.is_infinite() || actual.is_nan() || exact.is_nan() {
        return if nearest == actual { 0.0 } else { f64::INFINITY };
    }
    let (smallest, mantissa) = if dtype == DType::F64 { (-1022, 52) } else { (-126, 23) };
    let exponent = ((exact.to_bits() >> 52) & 0x7ff) as i64 - 1023;
    let power = |exponent: i64| f64::from_bits(((exponent + 1023) as u64) << 52);
    (actual - exact).abs() / (power(exponent.max(smallest)) * power(-mantissa))
}

/// The largest error of a function on a level of processors, the operands there, what was found and what is exact.
#[derive(Clone, Copy, Default)]
struct Worst {
    ulps: f64,
    operands: (f64, f64),
    found: f64,
    exact: f64,
}

/// A function of one or two numbers (the second is ignored) with its bound.
struct Function {
    name: &'static str,
    exact: Box<dyn Fn(f64, f64) -> f64>,
    bound: f64,
    kernels: Vec<Compiled>,
}

fn functions_of_one(dtype: DType) -> Vec<Function> {
    let function = |&op: &UnaryOp| {
        let (exact, body) = (op.float(), format!("{} %a", op.name()));
        let bound = bound(op.ulps()?, dtype);
        let kernels = cpus().into_iter().map(|cpu| compiled(&body, dtype, cpu)).collect();
        Some(Function { name: op.name(), exact: Box::new(move |a, _| exact(a)), bound, kernels })
    };
    UnaryOp::ALL.iter().filter_map(function).collect()
}

fn functions_of_two(dtype: DType) -> Vec<Function> {
    let function = |&op: &BinaryOp| {
        let (exact, body) = (op.float(), format!("{} %a, %b", op.name()));
        let bound = bound(op.ulps()?, dtype);
        let kernels = cpus().into_iter().map(|cpu| compiled(&body, dtype, cpu)).collect();
        Some(Function { name: op.name(), exact: Box::new(exact), bound, kernels })
    };
    BinaryOp::ALL.iter().filter_map(function).collect()
}

/// Operands that are evaluated at a time: they stay in a processor's cache.
const AT_A_TIME: usize = 1 << 14;

/// Prints the largest errors of functions and asserts their bounds.
fn check_bounds(dtype: DType, functions: &[Function], a: &[f64], b: &[f64]) {
    let mut worst = vec![vec![Worst::default(); cpus().len()]; functions.len()];
    for (a, b) in a.chunks(AT_A_TIME).zip(b.chunks(AT_A_TIME)) {
        let mut operands = Operands::of(&functions[0].kernels[0], dtype, a, b);
        for (function, worst) in functions.iter().zip(&mut worst) {
            let exact: Vec<f64> = a.iter().zip(b).map(|(&a, &b)| (function.exact)(a, b)).collect();
            for (kernel, worst) in function.kernels.iter().zip(worst) {
                for (i, (found, &exact)) in operands.results(kernel).into_iter().zip(&exact).enumerate() {
                    let ulps = ulps(dtype, found, exact);
                    if ulps > worst.ulps {
                        *worst = Worst { ulps, operands: (a[i], b[i]), found, exact };
                    }
                }
            }
        }
    }
    for (Function { name, bound, .. }, worst) in functions.iter().zip(worst) {
        for (cpu, Worst { ulps, operands, found, exact }) in cpus().iter().zip(worst) {
            let what = format!("{name} of {dtype} on {}", cpu.name());
            println!("{what}: {ulps:.3} ulp at {operands:?}");
            let at = format!("{operands:?} is {found:?}, not {exact:?}");
            assert!(ulps <= *bound, "{what} is off by {ulps} ulp, more than {bound}: at {at}");
        }
    }
}

/// Of an emulator one operand of so many is asked for.
const EMULATED_STEP: usize = 61;

/// Every operand, or some of them where they are emulated.
fn some(operands: Vec<f64>) -> Vec<f64> {
    operands.into_iter().step_by(if is_emulated() { EMULATED_STEP } else { 1 }).collect()
}

/// Every 1009th bit pattern of f32: all exponents, NaN and infinities among them. Of f64 random bits, and
/// numbers where functions bend.
#[test]
fn functions_of_one_number_keep_their_bounds() {
    let f32_inputs: Vec<f64> = (0..=u32::MAX / 1009).map(|i| f64::from(f32::from_bits(i * 1009))).collect();
    let f64_inputs: Vec<f64> = (0..400_000u64)
        .map(|i| match i % 3 {
            0 => f64::from_bits(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            1 => (i as f64 - 200_000.0) / 300.0,
            _ => 1.0 + (i as f64 - 200_000.0) / 1e6,
        })
        .collect();
    for (dtype, inputs) in [(DType::F32, f32_inputs), (DType::F64, f64_inputs)] {
        let inputs = some(inputs);
        check_bounds(dtype, &functions_of_one(dtype), &inputs, &inputs);
    }
}

/// Random bit patterns; and pairs whose power is finite, with the base anywhere and near 1.
#[test]
fn functions_of_two_numbers_keep_their_bounds() {
    let mut random = random_words();
    for dtype in [DType::F32, DType::F64] {
        let (largest, any) = if dtype == DType::F32 { (88.0, 8) } else { (709.0, 11) };
        let mut pairs: Vec<(f64, f64)> = Vec::new();
        for i in 0..300_000 {
            let fraction = f64::from(random()) / f64::from(u32::MAX);
            let bits = (u64::from(random()) << 32) | u64::from(random());
            let wild = |bits: u64| match dtype {
                DType::F32 => f64::from(f32::from_bits((bits >> 32) as u32)),
                _ => f64::from_bits(bits),
            };
            let base = match i % 3 {
                0 => {
                    pairs.push((wild(bits), wild(bits.rotate_left(any))));
                    continue;
                }
                1 => wild(bits & !(1 << 63)),
                _ => 1.0 + (fraction - 0.5) * f64::powi(2.0, -(random() as i32 & 15)),
            };
            let base = round_float(dtype, base);
            let exponent = (2.0 * f64::from(random()) / f64::from(u32::MAX) - 1.0) * largest / base.ln();
            pairs.push((base, round_float(dtype, exponent)));
        }
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (a, b) = (some(a), some(b));
        check_bounds(dtype, &functions_of_two(dtype), &a, &b);
    }
}

/// Pairs of subnormal numbers of few digits, which what is computed of one may have no more of.
#[test]
fn functions_of_two_tiny_numbers_keep_their_bounds() {
    for dtype in [DType::F32, DType::F64] {
        let least = if dtype == DType::F32 { f64::from(f32::from_bits(1)) } else { f64::from_bits(1) };
        let pairs =
            (1..=32).flat_map(|a| (1..=32).map(move |b| (f64::from(a) * least, f64::from(b) * least)));
        let signed = pairs.flat_map(|(a, b)| [(a, b), (-a, b), (a, -b)]);
        let (a, b): (Vec<f64>, Vec<f64>) = signed.unzip();
        let (a, b) = (some(a), some(b));
        check_bounds(dtype, &functions_of_two(dtype), &a, &b);
    }
}

/// Zeros of both signs, subnormals, the largest numbers, infinities, NaN, and numbers at which functions are
/// exact. Rounded to a format.
fn edges(dtype: DType) -> Vec<f64> {
    let (tiny, normal, largest) = if dtype == DType::F32 {
        (f64::from(f32::from_bits(1)), f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX))
    } else {
        (f64::from_bits(1), f64::MIN_POSITIVE, f64::MAX)
    };
    let half = [0.0, 0.5, 1.0, 2.0, 3.0, tiny, 5.0 * tiny, normal / 2.0, normal, largest, f64::INFINITY];
    half.into_iter().flat_map(|x| [x, -x]).chain([f64::NAN]).collect()
}

/// Zeros, infinities and NaN come out as the table says, with the sign; other numbers within the bound.
fn check_edge(what: &str, dtype: DType, found: f64, exact: f64, bound: f64) {
    let expected = round_float(dtype, exact);
    let special = expected == 0.0 && exact == 0.0 || !exact.is_finite();
    let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
    let near = ulps(dtype, found, exact) <= bound && found.is_sign_negative() == exact.is_sign_negative();
    assert!(same || !special && near, "{what} is {found:?}, not {expected:?}");
}

#[test]
fn functions_are_right_at_the_edges() {
    for dtype in [DType::F32, DType::F64] {
        let inputs = edges(dtype);
        let pairs = inputs.iter().flat_map(|&a| inputs.iter().map(move |&b| (a, b)));
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
        check_edges(dtype, &functions_of_one(dtype), &inputs, &inputs);
        check_edges(dtype, &functions_of_two(dtype), &a, &b);
    }
}

fn check_edges(dtype: DType, functions: &[Function], a: &[f64], b: &[f64]) {
    let mut operands = Operands::of(&functions[0].kernels[0], dtype, a, b);
    for Function { name, exact, bound, kernels } in functions {
        for (kernel, cpu) in kernels.iter().zip(cpus()) {
            for ((found, &a), &b) in operands.results(kernel).into_iter().zip(a).zip(b) {
                let what = format!("{name} at {:?} of {dtype} on {}", (a, b), cpu.name());
                check_edge(&what, dtype, found, exact(a, b), *bound);
            }
        }
    }
}

/// A number's function has the same bits in whatever vector it stands, and beside what: rows are cut elsewhere in every run.
#[test]
fn results_are_the_same_wherever_operands_lie() {
    let random = (0..4200u32).map(|i| f64::from(f32::from_bits(i.wrapping_mul(0x9e37_79b9))));
    let operands = some(random.chain(edges(DType::F32)).collect());
    for op in [UnaryOp::Exp, UnaryOp::Exp2, UnaryOp::Exp10, UnaryOp::Sigmoid, UnaryOp::Silu, UnaryOp::Gelu] {
        let source = elementwise("f32", "f32", &format!("{} %a", op.name()));
        let results = |elements: usize, operands: &[f64]| {
            let instance = instance(&source, &[("B", elements)]);
            let kernel = Arc::new((Native::of(&instance, &Options::default()), instance));
            let found = Operands::of(&kernel, DType::F32, operands, operands).results(&kernel);
            found.into_iter().map(f64::to_bits).collect::<Vec<_>>()
        };
        let whole = results(4096, &operands);
        for (elements, skipped) in [(4096, 1), (1024, 7), (64, 3), (28, 0), (16, 5)] {
            let found = results(elements, &operands[skipped..]);
            let expected = &whole[skipped..][..found.len()];
            let at = found.iter().zip(expected).position(|(found, expected)| found != expected);
            assert_eq!(at.map(|at| operands[skipped + at]), None, "{} in tiles of {elements}", op.name());
        }
    }
}

/// Bits of a number of 16 bits, such that the numbers' order is that of integers.
fn place(dtype: DType, x: f64) -> i64 {
    let bits = tile_ir::round::encode(dtype, x) as i64;
    if bits & 0x8000 == 0 { bits } else { -(bits & 0x7fff) }
}

/// Every number of f16 and of bf16: what is exact, rounded, or its neighbour.
#[test]
fn inverses_of_every_number_of_16_bits_are_within_a_place() {
    for dtype in [DType::F16, DType::BF16] {
        let numbers: Vec<f64> = (0..1 << 16).map(|bits| tile_ir::round::decode(dtype, bits)).collect();
        let numbers = some(numbers);
        for op in [UnaryOp::Asinh, UnaryOp::Acosh, UnaryOp::Atanh, UnaryOp::Erfc] {
            let source = elementwise(dtype.name(), dtype.name(), &format!("{} %a", op.name()));
            let instance = instance(&source, &[("B", 1024)]);
            for cpu in cpus() {
                let operand = vector(dtype, numbers.clone());
                let arguments =
                    [operand.clone(), operand, Array::full(dtype, &[numbers.len()], Literal::Float(0.0))];
                let found = run_native(&instance, &arguments, &Options { cpu, ..Options::default() });
                for (i, &x) in numbers.iter().enumerate() {
                    let (found, exact) = (found[2].get_f64(i), round_float(dtype, op.float()(x)));
                    let is_near = (place(dtype, found) - place(dtype, exact)).abs() <= 1;
                    let is_right = if exact.is_nan() { found.is_nan() } else { is_near };
                    assert!(
                        is_right,
                        "{}({x:?}) of {dtype} on {} is {found:?}, not {exact:?}",
                        op.name(),
                        cpu.name()
                    );
                }
            }
        }
    }
}
