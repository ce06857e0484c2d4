//! Leaf ops natively, beyond what [`edges`](crate::edges) has of every op and format: quotients and bits of every kind, tables,
//! fused multiplications, and what is computed without an instruction.

use crate::kernels::elementwise;
use crate::support::{agree, cpus_in_turn, instance, least_cpu, run_native};
use tile_codegen::Options;
use tile_ir::array::{Elements, round_float, wrap_int};
use tile_ir::ops::{BinaryOp, Domain, UnaryOp};
use tile_ir::{Array, DType, interp};
use tile_test_edit::Edit;

/// Values at the edges of a format.
pub(crate) fn edges(dtype: DType) -> Array {
    if dtype.is_float() {
        let mut values =
            vec![0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.7, 1e-3, 100.25, -77.7, f64::NAN, f64::INFINITY];
        values.extend([
            f64::NEG_INFINITY,
            65504.0,
            65520.0,
            1e-7,
            -6e-8,
            1e-40,
            3.3e38,
            1e300,
            2.9e-39,
            7.0,
            -7.0,
        ]);
        let rounded: Vec<f64> = values.into_iter().map(|v| round_float(dtype, v)).collect();
        return Array::new(dtype, vec![rounded.len()], Elements::Float(rounded));
    }
    let all = [0, 1, 2, 3, 7, -1, -7, 8, 31, 33, 100, 127, 128, 200, 255, i128::from(i16::MAX), 1 << 15];
    let wide =
        [i128::from(i32::MAX), 1 << 31, i128::from(i64::MAX), 1 << 63, i128::from(u64::MAX), (1 << 53) + 1];
    let values: Vec<i128> = all.into_iter().chain(wide).map(|v| wrap_int(dtype, v)).collect();
    Array::new(dtype, vec![values.len()], Elements::Int(values))
}

/// The same words in every run.
pub(crate) fn random_words() -> impl FnMut() -> u32 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    }
}

/// All pairs of edge values.
pub(crate) fn pairs(dtype: DType) -> (Array, Array) {
    let one = edges(dtype);
    let n = one.len();
    let left = one.reshape(&[n, 1]).broadcast(&[n, n]).reshape(&[n * n]);
    let right = one.reshape(&[1, n]).broadcast(&[n, n]).reshape(&[n * n]);
    (left, right)
}

pub(crate) fn elements() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|dtype| dtype.is_element())
}

pub(crate) fn zeros(dtype: DType, n: usize) -> Array {
    Array::full(dtype, &[n], tile_ir::ops::Literal::Int(0))
}

/// The distance of 1 to the next number of a float format.
fn unit(dtype: DType) -> f64 {
    dtype.float_format().map_or(0.0, |format| format.epsilon())
}

/// Quotients at and next to integers, which a division of floats must not round to: numbers around multiples of divisors.
#[test]
fn quotients_next_to_integers_are_exact() {
    let mut words = random_words();
    let mut random = || i128::from(words());
    let mut pairs: Vec<(i128, i128)> = (0..1 << 16).map(|pair| (pair >> 8, pair & 255)).collect();
    for _ in 0..20_000 {
        let (quotient, divisor) = (random() >> (random() & 31), random() >> (random() & 31));
        pairs.extend([-1, 0, 1].map(|beside| (quotient * divisor + beside, divisor)));
    }
    for dtype in elements().filter(|dtype| dtype.is_int()) {
        let wrapped = |values: Vec<i128>| {
            let values: Vec<i128> = values.into_iter().map(|value| wrap_int(dtype, value)).collect();
            Array::new(dtype, vec![values.len()], Elements::Int(values))
        };
        let (a, b): (Vec<i128>, Vec<i128>) = pairs.iter().copied().unzip();
        for op in [BinaryOp::Div, BinaryOp::Rem] {
            let source = elementwise(dtype.name(), dtype.name(), &format!("{} %a, %b", op.name()));
            let operands = [wrapped(a.clone()), wrapped(b.clone()), zeros(dtype, pairs.len())];
            agree(&source, &[("B", 64)], &operands, 0.0);
        }
    }
}

/// The sign counts, and the numbers next to a tie do.
#[test]
fn roundings_keep_signs_and_see_ties() {
    let below_half = f64::from(0.5f32.next_down());
    let inputs = vec![0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, below_half, -below_half, -0.2, -0.9]
        .into_iter()
        .chain([8_388_607.5, -8_388_607.5, 8_388_609.0, 4_194_304.5, 3e38, f64::NEG_INFINITY])
        .collect::<Vec<f64>>();
    for dtype in [DType::F32, DType::F64] {
        let inputs: Vec<f64> = inputs.iter().map(|&x| round_float(dtype, x)).collect();
        let x = Array::new(dtype, vec![inputs.len()], Elements::Float(inputs.clone()));
        for op in [
            UnaryOp::Floor,
            UnaryOp::Ceil,
            UnaryOp::Trunc,
            UnaryOp::Round,
            UnaryOp::RoundTiesEven,
            UnaryOp::Recip,
            UnaryOp::Signum,
        ] {
            let source = elementwise(dtype.name(), dtype.name(), &format!("{} %a", op.name()));
            let instance = instance(&source, &[("B", 8)]);
            for cpu in cpus_in_turn(&instance) {
                let arguments = [x.clone(), x.clone(), zeros(dtype, inputs.len())];
                let y = run_native(&instance, &arguments, &Options { cpu, ..Options::default() });
                for (i, &input) in inputs.iter().enumerate() {
                    let (found, expected) = (y[2].get_f64(i), round_float(dtype, op.float()(input)));
                    assert_eq!(found.to_bits(), expected.to_bits(), "{}({input:?})", op.name());
                }
            }
        }
    }
}

/// Bit patterns of a format: all of narrow ones; of wider ones those around infinities, NaN of each bit, and others.
fn patterns(dtype: DType) -> Vec<u64> {
    if dtype.bits() <= 16 {
        return (0..1 << dtype.bits()).collect();
    }
    let mut words = random_words();
    let infinity = if dtype.bits() == 32 { 0x7f80_0000 } else { 0x7ff << 52 };
    let sign = 1u64 << (dtype.bits() - 1);
    let around = [infinity, infinity | sign].into_iter().flat_map(|word| word - 70..word + 70);
    let of_each_bit = (0..dtype.bits()).map(|bit| infinity | 1 << bit);
    around
        .chain(of_each_bit)
        .chain((0..2000).map(|_| u64::from(words()) << 32 | u64::from(words())))
        .collect()
}

/// Those of every NaN too, as numbers of every format of that width, and so in memory.
#[test]
fn bits_are_kept() {
    for from in elements().filter(|&from| from != DType::Bool) {
        let patterns = patterns(from);
        let in_memory = |word: &u64| word.to_le_bytes().into_iter().take(from.bytes());
        let (bytes, count) = (patterns.iter().flat_map(in_memory).collect::<Vec<u8>>(), patterns.len());
        let x = Array::from_bytes(from, &[count], &bytes);
        for to in elements().filter(|to| to.bits() == from.bits() && *to != DType::Bool) {
            let instance = instance(&elementwise(from.name(), to.name(), "bitcast %a"), &[("B", 64)]);
            let arguments = [x.clone(), x.clone(), zeros(to, count)];
            let mut evaluated = arguments.to_vec();
            interp::run(&instance, &mut evaluated).unwrap();
            assert!(evaluated[2].to_bytes() == bytes, "{from} as {to}");
            for cpu in cpus_in_turn(&instance) {
                let found = run_native(&instance, &arguments, &Options { cpu, ..Options::default() });
                assert!(found[2].to_bytes() == bytes, "{from} as {to} on {}", cpu.name());
            }
        }
    }
}

/// Tables of one number, of a few, and of more than a byte counts, at integers of every format, within and without.
#[test]
fn tables_are_looked_up() {
    for from in elements().filter(|&dtype| Domain::Int.accepts(dtype)) {
        let places = edges(from);
        for (to, length) in
            elements().filter(|&to| to != DType::F8E8M0FNU).zip([1, 5, 128, 300].into_iter().cycle())
        {
            let number = |at: usize| match to {
                DType::Bool => ["true", "false"][at % 3 / 2].to_owned(),
                _ if to.is_float() => format!("{:?}", at as f64 * 0.5 - 3.0),
                _ => (at % 100).to_string(),
            };
            let table: Vec<String> = (0..length).map(number).collect();
            let source = elementwise(from.name(), to.name(), &format!("lookup [{}] %a", table.join(", ")));
            agree(&source, &[("B", 8)], &[places.clone(), places.clone(), zeros(to, places.len())], 0.0);
        }
    }
}

#[test]
fn fused_multiply_add_rounds_once_with_and_without_the_instruction() {
    for dtype in elements().filter(|&dtype| Domain::Float.accepts(dtype)) {
        let (a, b) = pairs(dtype);
        // Neighbours of the products, so that the sum cancels, and what is far away.
        let nudge = |i: usize, x: f64| {
            round_float(dtype, -x * if i.is_multiple_of(3) { 1.0 } else { 1.0 + unit(dtype) })
        };
        let product = a.binary(BinaryOp::Mul, &b);
        // Emulation without the instruction is exact only within the range of f64.
        let tame = |x: f64| if dtype == DType::F64 && x.abs() > 1e200 { 0.5 } else { x };
        let floats = |f: &dyn Fn(usize) -> f64| {
            Array::new(dtype, vec![a.len()], Elements::Float((0..a.len()).map(f).collect()))
        };
        let c = floats(&|i| tame(nudge(i, product.get_f64(i))));
        let (a, b) = (floats(&|i| tame(a.get_f64(i))), floats(&|i| tame(b.get_f64(i))));
        let expected = Array::mul_add(&a, &b, &c);
        let own = format!("  %c = load_masked %vy pad %pad : tile<B x {dtype}>\n  %r =");
        let source = elementwise(dtype.name(), dtype.name(), "mul_add %a, %b, %c").edit("  %r =", &own);
        let instance = instance(&source, &[("B", 64)]);
        for cpu in cpus_in_turn(&instance) {
            let options = Options { cpu, ..Options::default() };
            let found = run_native(&instance, &[a.clone(), b.clone(), c.clone()], &options);
            crate::support::close(&found[2], &expected, 0.0, &format!("mul_add of {dtype} on {cpu:?}"));
        }
    }
}

#[test]
fn formats_without_instructions_convert_alike() {
    let options = Options { cpu: least_cpu(), ..Options::default() };
    for (from, to) in [
        (DType::F32, DType::F16),
        (DType::F64, DType::F16),
        (DType::F16, DType::F32),
        (DType::I64, DType::F16),
        (DType::F64, DType::F8E4M3FN),
        (DType::F8E5M2, DType::F16),
    ] {
        let (a, b) = pairs(from);
        let arguments = [a.clone(), b, zeros(to, a.len())];
        let instance = instance(&elementwise(from.name(), to.name(), "cast %a"), &[("B", 32)]);
        let mut expected = arguments.to_vec();
        interp::run(&instance, &mut expected).unwrap();
        crate::support::close(
            &run_native(&instance, &arguments, &options)[2],
            &expected[2],
            0.0,
            options.cpu.name(),
        );
    }
}
