//! Elementwise ops that GPUs have instructions for: what they are in PTX, and their values on simulated threads, bit by
//! bit where ops are exact.

use crate::accuracy::{bound, ulps};
use crate::kernels::{elementwise, reduction};
use crate::leaf::random_words;
use crate::support::{instance, run_simt};
use tile_codegen::{Code, Options, compile};
use tile_ir::array::Elements;
use tile_ir::ops::{BinaryOp, Literal, ReduceOp, UnaryOp};
use tile_ir::{Array, DType, TargetDesc};

/// The PTX of an op on two tiles of one element per thread.
fn ptx(dtype: DType, result: DType, body: &str) -> String {
    text_of(&elementwise(dtype.name(), result.name(), body), &[("B", 128)])
}

fn text_of(source: &str, constants: &[(&str, usize)]) -> String {
    let instance = instance(source, constants);
    let artifact = compile(&instance, TargetDesc::named("sm_90a").unwrap(), &Options::default()).unwrap();
    let Code::Ptx(text) = artifact.code else { panic!("PTX for NVIDIA's GPUs") };
    text
}

fn count(text: &str, instruction: &str) -> usize {
    text.matches(&format!("\t{instruction} ")).count()
}

/// Whether floats are compared.
fn compares(text: &str) -> bool {
    text.lines().any(|line| line.contains("\tsetp.") && line.contains(".f32"))
}

/// The results of an op on simulated threads of NVIDIA's and AMD's GPUs.
fn results(dtype: DType, result: DType, body: &str, a: &[f64], b: &[f64]) -> [Array; 2] {
    let instance = instance(&elementwise(dtype.name(), result.name(), body), &[("B", 512)]);
    let operand = |values: &[f64]| Array::new(dtype, vec![values.len()], Elements::Float(values.to_vec()));
    let arguments = [operand(a), operand(b), Array::full(result, &[a.len()], Literal::Int(0))];
    [None, Some(64)].map(|threads| run_simt(&instance, &arguments, threads).pop().unwrap())
}

#[test]
fn the_larger_and_the_smaller_are_one_instruction() {
    for (op, instruction) in
        [("max", "max.f32"), ("min", "min.f32"), ("maximum", "max.NaN.f32"), ("minimum", "min.NaN.f32")]
    {
        for dtype in [DType::F32, DType::BF16] {
            let text = ptx(dtype, dtype, &format!("{op} %a, %b"));
            assert_eq!(count(&text, instruction), 1, "{op} of {dtype}:\n{text}");
            assert!(!compares(&text), "{op} of {dtype}:\n{text}");
        }
    }
    let source = reduction(DType::F32, ReduceOp::Max, &[4, 256], 1);
    let text = text_of(&source, &[]);
    assert!(count(&text, "max.f32") > 0 && !compares(&text), "{text}");
}

/// The smaller and the larger of a pair: where NaN is ignored, and where it isn't.
#[test]
fn the_larger_and_the_smaller_know_nan_and_signed_zeros() {
    let (nan, inf, tiny) = (f64::NAN, f64::INFINITY, 2f64.powi(-133));
    let rows = [
        (0.0, -0.0, [-0.0, 0.0], [-0.0, 0.0]),
        (-0.0, 0.0, [-0.0, 0.0], [-0.0, 0.0]),
        (-0.0, -0.0, [-0.0, -0.0], [-0.0, -0.0]),
        (0.0, 0.0, [0.0, 0.0], [0.0, 0.0]),
        (nan, 1.0, [1.0, 1.0], [nan, nan]),
        (-2.0, nan, [-2.0, -2.0], [nan, nan]),
        (nan, -0.0, [-0.0, -0.0], [nan, nan]),
        (nan, -inf, [-inf, -inf], [nan, nan]),
        (nan, nan, [nan, nan], [nan, nan]),
        (inf, -inf, [-inf, inf], [-inf, inf]),
        (tiny, -tiny, [-tiny, tiny], [-tiny, tiny]),
        (tiny, 0.0, [0.0, tiny], [0.0, tiny]),
        (-0.0, -tiny, [-tiny, -0.0], [-tiny, -0.0]),
        (1.5, -3.0, [-3.0, 1.5], [-3.0, 1.5]),
    ];
    let (a, b): (Vec<f64>, Vec<f64>) = rows.iter().map(|row| (row.0, row.1)).unzip();
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for (op, ignores_nan, which) in
            [("min", true, 0), ("max", true, 1), ("minimum", false, 0), ("maximum", false, 1)]
        {
            for found in results(dtype, dtype, &format!("{op} %a, %b"), &a, &b) {
                for (i, row) in rows.iter().enumerate() {
                    let expected = if ignores_nan { row.2[which] } else { row.3[which] };
                    let found = found.get_f64(i);
                    let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                    assert!(same, "{op} of {dtype} {:?} is {found:?}, not {expected:?}", (row.0, row.1));
                }
            }
        }
    }
}

/// Prints the largest error of a function on simulated threads of each GPU, and asserts its bound. `vanishes` says of what is
/// exact whether 0 may come instead.
fn check_bound(
    (name, body): (&str, &str),
    allowed: u32,
    [a, b]: [&[f64]; 2],
    exact: impl Fn(f64, f64) -> f64,
    vanishes: impl Fn(f64) -> bool,
) {
    let bound = bound(allowed, DType::F32);
    for (array, gpu) in results(DType::F32, DType::F32, body, a, b).iter().zip(["sm_90a", "gfx942"]) {
        let mut worst = (0.0, (0.0, 0.0), 0.0, 0.0);
        for (i, (&a, &b)) in a.iter().zip(b).enumerate() {
            let (found, exact) = (array.get_f64(i), exact(a, b));
            let error = if found == 0.0 && vanishes(exact) { 0.0 } else { ulps(DType::F32, found, exact) };
            if error > worst.0 {
                worst = (error, (a, b), found, exact);
            }
        }
        let (error, operands, found, exact) = worst;
        let what = format!("{name} on {gpu}: {error:.3} ulp at {operands:?}, {found:?} for {exact:?}");
        println!("{what}");
        assert!(error <= bound, "{what}");
    }
}

/// Every function of one f32 on simulated threads, where instructions that may be off are exact: bit patterns of all
/// exponents, and numbers near zero. A result of `exp2` below the smallest normal number may be 0.
#[test]
fn functions_keep_their_bounds() {
    const STEP: u32 = 299_993;
    let mut inputs: Vec<f64> = (0..=u32::MAX / STEP).map(|i| f64::from(f32::from_bits(i * STEP))).collect();
    inputs.extend((-9_000..9_000).map(|i| f64::from(i as f32 * 0.011_7)));
    let bends = [0.0, -0.0, 88.722_83, 88.722_84, -87.336_54, -103.972_1, -104.0, 128.0, -126.0, -149.0];
    inputs.extend(bends.map(|x: f32| f64::from(x)));
    for (op, allowed) in UnaryOp::ALL.iter().filter_map(|op| Some((op, op.ulps()?))) {
        let vanishes = |exact| *op == UnaryOp::Exp2 && exact < f64::from(f32::MIN_POSITIVE);
        let body = format!("{} %a", op.name());
        check_bound((op.name(), &body), allowed, [&inputs; 2], |a, _| op.float()(a), vanishes);
    }
}

/// Every function of two: random bit patterns, and powers that are finite of bases near one.
#[test]
fn functions_of_two_numbers_keep_their_bounds() {
    let mut random = random_words();
    let pair = |i: u32| {
        let [a, b] = [(); 2].map(|()| random());
        if i.is_multiple_of(2) {
            return (f32::from_bits(a), f32::from_bits(b));
        }
        let [a, b] = [a, b].map(|bits| f64::from(bits) / f64::from(u32::MAX));
        let base = (1.0 + (a - 0.5) * 0.5f64.powi(i as i32 / 2 % 16)) as f32;
        (base, ((2.0 * b - 1.0) * 88.0 / f64::from(base).ln()) as f32)
    };
    let (a, b): (Vec<f64>, Vec<f64>) =
        (0..20_000).map(pair).map(|(a, b)| (f64::from(a), f64::from(b))).unzip();
    for (op, allowed) in BinaryOp::ALL.iter().filter_map(|op| Some((op, op.ulps()?))) {
        let body = format!("{} %a, %b", op.name());
        check_bound((op.name(), &body), allowed, [&a, &b], op.float(), |_| false);
    }
}

#[test]
fn exponentials_are_short() {
    let text = ptx(DType::F32, DType::F32, "exp2 %a");
    assert!(count(&text, "ex2.approx.ftz.f32") > 0 && !text.contains("\tmul.rn.f32"), "{text}");
    let text = ptx(DType::F32, DType::F32, "exp %a");
    let arithmetic =
        ["fma.rn.f32", "add.rn.f32", "mul.rn.f32", "shl.b32", "fma.rn.sat.f32", "ex2.approx.ftz.f32"];
    assert_eq!(arithmetic.map(|name| count(&text, name)), [3, 1, 1, 1, 1, 1], "{text}");
    assert!(!compares(&text), "{text}");
}

/// One function of the magnitude serves `gelu` near zero and far from it, and neither it nor a logarithm divides.
#[test]
fn gelu_and_logarithms_are_short() {
    let text = ptx(DType::F32, DType::F32, "gelu %a");
    let arithmetic =
        ["fma.rn.f32", "mul.rn.f32", "add.rn.f32", "rcp.approx.ftz.f32", "ex2.approx.ftz.f32", "min.f32"];
    assert_eq!(arithmetic.map(|name| count(&text, name)), [16, 5, 1, 1, 1, 1], "{text}");
    for op in ["log", "log2", "log10", "ln_1p"] {
        let text = ptx(DType::F32, DType::F32, &format!("{op} %a"));
        assert_eq!(count(&text, "div.rn.f32"), usize::from(op == "ln_1p"), "{op}: {text}");
    }
}

/// Of f32; there is none of f64.
#[test]
fn inverse_roots_are_one_instruction() {
    let text = ptx(DType::F32, DType::F32, "rsqrt %a");
    assert_eq!(
        ["rsqrt.approx.f32", "sqrt.rn.f32", "rcp.rn.f32"].map(|name| count(&text, name)),
        [1, 0, 0],
        "{text}"
    );
    let text = ptx(DType::F64, DType::F64, "rsqrt %a");
    assert_eq!(["sqrt.rn.f64", "rcp.rn.f64"].map(|name| count(&text, name)), [1, 1], "{text}");
}

/// Numbers at which rounding to a narrower format is decided, with what comes of them in bf16 and in f16.
fn roundings() -> Vec<(f64, f64, f64)> {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let power = |exponent: i32| 2f64.powi(exponent);
    vec![
        (0.0, 0.0, 0.0),
        (-0.0, -0.0, -0.0),
        (nan, nan, nan),
        (inf, inf, inf),
        (-inf, -inf, -inf),
        // Ties, and numbers beside them.
        (1.0 + power(-8), 1.0, 1.0 + power(-8)),
        (1.0 + 3.0 * power(-8), 1.0 + power(-6), 1.0 + 3.0 * power(-8)),
        (1.0 + power(-8) + power(-23), 1.0 + power(-7), 1.0 + power(-8)),
        (-1.0 - power(-8) + power(-23), -1.0, -1.0 - power(-8)),
        (1.0 + power(-11), 1.0, 1.0),
        (1.0 + 3.0 * power(-11), 1.0, 1.0 + power(-9)),
        (-1.0 - power(-11) - power(-23), -1.0, -1.0 - power(-10)),
        // From where on the results are infinite.
        (65_519.996_093_75, 65536.0, 65504.0),
        (65520.0, 65536.0, inf),
        (power(128) - power(119), inf, inf),
        (power(128) - power(119) - power(104), power(128) - power(120), inf),
        (-(power(128) - power(104)), -inf, -inf),
        // Subnormal results.
        (power(-133), power(-133), 0.0),
        (power(-134), 0.0, 0.0),
        (3.0 * power(-134), power(-132), 0.0),
        (-power(-134) - power(-149), -power(-133), -0.0),
        (power(-126) - power(-149), power(-126), 0.0),
        (power(-24), power(-24), power(-24)),
        (power(-25), power(-25), 0.0),
        (-3.0 * power(-25), -3.0 * power(-25), -power(-23)),
        (power(-14) - power(-26), power(-14), power(-14)),
    ]
}

#[test]
fn casts_to_narrow_floats_round_to_nearest_even() {
    let rows = roundings();
    let inputs: Vec<f64> = rows.iter().map(|row| row.0).collect();
    for to in [DType::BF16, DType::F16] {
        for body in ["cast %a".to_owned(), "cast %b".to_owned()] {
            for found in results(DType::F32, to, &body, &inputs, &inputs) {
                for (i, &(x, bf16, f16)) in rows.iter().enumerate() {
                    let expected = if to == DType::BF16 { bf16 } else { f16 };
                    let found = found.get_f64(i);
                    let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                    assert!(same, "{x:e} to {to} is {found:e}, not {expected:e}");
                }
            }
        }
    }
}

/// Between its load and its store, a tile of f32 that is stored in 16 bits is rounded by an instruction per pair.
#[test]
fn pairs_are_rounded_together() {
    for (to, instruction) in [("bf16", "cvt.rn.bf16x2.f32"), ("f16", "cvt.rn.f16x2.f32")] {
        let source = format!(
            "kernel @narrow<B>(%x: tensor<n x B x f32>, %y: mut tensor<n x B x {to}>) {{
  %vx = partition %x [1, B] : partition<n x B x f32, [1, B]>
  %vy = partition %y [1, B] : mut partition<n x B x {to}, [1, B]>
  %i, %j = block_index %vy : index, index
  %a = load %vx[%i, %j] : tile<1 x B x f32>
  %r = cast %a : tile<1 x B x {to}>
  store %vy, %r
}}
"
        );
        let text = text_of(&source, &[("B", 1024)]);
        assert_eq!(count(&text, instruction), 4, "{text}");
        let (_, after_loads) = text.rsplit_once("ld.global").expect("the tile is read");
        let (between, _) = after_loads.split_once("st.global").expect("the result is written");
        // Words are `%r1`, addresses `%rd1`.
        let mut words = between.lines().filter(|line| line.contains("\t%r") && !line.contains("\t%rd"));
        assert!(words.all(|line| line.contains(instruction)), "{text}");
    }
}
