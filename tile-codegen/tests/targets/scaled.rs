//! Products of 8-bit floats with a power of two for each block, on simulated threads of the GPUs whose matrix instructions
//! scale: every row, column and block has another scale, sizes end within tiles, and the numbers are those of plain loops.

use crate::budgets::instance_in;
use crate::support::{close, run_simt_as, sample};
use tile_codegen::{Code, Options, compile};
use tile_ir::array::Elements;
use tile_ir::gpu::{print, schedule};
use tile_ir::{Array, DType, Instance, Op, TargetDesc, interp, passes};
use tile_test_edit::Edit;

/// Both factors by rows along the depth, `GROUP` elements of which share a scale.
const BY_ROWS: &str = "
#[tile_kernel(where(BK % GROUP == 0))]
fn scaled<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<f8e4m3fn, m, { GROUP * g }>,
    a_scales: &Tensor<f8e8m0fnu, m, g>,
    b: &Tensor<f8e5m2, n, { GROUP * g }>,
    b_scales: &Tensor<f8e8m0fnu, n, g>,
    c: &mut Tensor<f32, m, n>,
) {
    let (a, a_scales) = (a.partition_view([BM, BK]), a_scales.partition_view([BM, BK / GROUP]));
    let (b, b_scales) = (b.partition_view([BN, BK]), b_scales.partition_view([BN, BK / GROUP]));
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        let (left, left_scales) = (a.load_masked([i, p]), a_scales.load_masked([i, p]));
        let (right, right_scales) = (b.load_masked([j, p]), b_scales.load_masked([j, p]));
        acc = mma_scaled(left, left_scales, right.t(), right_scales.t(), acc);
    }
    c.store_masked(acc);
}
";

/// A right factor by columns, without loads in the product's order.
fn by_columns() -> String {
    BY_ROWS
        .edit("b: &Tensor<f8e5m2, n, { GROUP * g }>", "b: &Tensor<f8e5m2, { GROUP * g }, n>")
        .edit("b_scales: &Tensor<f8e8m0fnu, n, g>", "b_scales: &Tensor<f8e8m0fnu, g, n>")
        .edit("b.partition_view([BN, BK])", "b.partition_view([BK, BN])")
        .edit("b_scales.partition_view([BN, BK / GROUP])", "b_scales.partition_view([BK / GROUP, BN])")
        .edit(
            "b.load_masked([j, p]), b_scales.load_masked([j, p])",
            "b.load_masked([p, j]), b_scales.load_masked([p, j])",
        )
        .edit("right.t(), right_scales.t()", "right, right_scales")
}

/// The scaling written out, of the right factor alone.
fn of_one_factor() -> String {
    BY_ROWS.edit(
        "acc = mma_scaled(left, left_scales, right.t(), right_scales.t(), acc);",
        "let _ = left_scales;
        let scales = right_scales.cast::<f32>().unsqueeze(2).broadcast([BN, BK / GROUP, GROUP]).reshape([BN, BK]);
        acc = mma(left.cast::<f32>(), (scales * right.cast::<f32>()).t(), acc);",
    )
}

/// Targets with instructions that scale, a product that takes the whole of one, and what it is called.
const INSTRUCTIONS: &[(&str, [usize; 3], &str)] = &[
    ("gfx950", [32, 32, 64], "m32n32k64 scaling blocks of 32"),
    ("gfx950", [16, 16, 128], "m16n16k128 scaling blocks of 32"),
    ("gfx950", [64, 128, 256], "m32n32k64 scaling blocks of 32"),
    // Few rows are columns of an instruction.
    ("gfx950", [4, 32, 128], "m16n16k128 scaling blocks of 32"),
    ("sm_120f", [32, 32, 32], "m16n8k32 scaling blocks of 32"),
    ("sm_120f", [64, 32, 128], "m16n8k32 scaling blocks of 32"),
    ("sm_120f", [8, 32, 64], "m16n8k32 scaling blocks of 32"),
    // Numbers of blocks that are no power of two.
    ("gfx950", [32, 64, 192], "m32n32k64 scaling blocks of 32"),
    ("sm_120f", [32, 64, 96], "m16n8k32 scaling blocks of 32"),
];

fn instance(kernel: &str, [m, n, k]: [usize; 3], block: usize) -> Instance {
    let kernel = kernel.replace("GROUP", &block.to_string());
    instance_in(&kernel, "scaled", None, &[("BM", m), ("BN", n), ("BK", k)])
}

fn scheduled(instance: &Instance, target: &str) -> String {
    print(&schedule(passes::optimize(instance.clone()), TargetDesc::named(target).unwrap(), None))
}

/// Powers of two from 2⁻³ to 2³, in an order without the period of a row.
fn powers(shape: [usize; 2], step: usize) -> Array {
    let bytes: Vec<u8> = (0..shape[0] * shape[1]).map(|i| (124 + (i * step + i / 11) % 7) as u8).collect();
    Array::from_bytes(DType::F8E8M0FNU, &shape, &bytes)
}

fn transposed(array: &Array) -> Array {
    array.permute(&[1, 0])
}

/// Runs a kernel of these sizes, and compares with what loops make of its arguments.
fn check(
    target: &str,
    instance: &Instance,
    of_columns: bool,
    scales_left: bool,
    [m, n, g, block]: [usize; 4],
) {
    let k = g * block;
    let (a, b) = (sample(DType::F8E4M3FN, &[m, k], 1), sample(DType::F8E5M2, &[n, k], 2));
    let (s, t) = (powers([m, g], 5), powers([n, g], 3));
    let element = |at: usize| {
        let (row, column) = (at / n, at % n);
        let term = |p: usize| {
            let left = if scales_left { s.get_f64(row * g + p / block) } else { 1.0 };
            a.get_f64(row * k + p) * b.get_f64(column * k + p) * left * t.get_f64(column * g + p / block)
        };
        (0..k).map(term).sum::<f64>()
    };
    let expected = Array::new(DType::F64, vec![m, n], Elements::Float((0..m * n).map(element).collect()));
    let (b, t) = if of_columns { (transposed(&b), transposed(&t)) } else { (b, t) };
    let arguments = [a, s, b, t, sample(DType::F32, &[m, n], 3)];
    let found = run_simt_as(target, instance, &arguments, None);
    close(&found[4], &expected, 1e-6, &format!("{} on {target}", instance.name));
    let mut evaluated = arguments.to_vec();
    interp::run(instance, &mut evaluated).unwrap();
    close(&evaluated[4], &expected, 1e-6, "the evaluator");
}

#[test]
fn instructions_scale_blocks() {
    for &(target, tile, name) in INSTRUCTIONS {
        let instance = instance(BY_ROWS, tile, 32);
        let text = scheduled(&instance, target);
        assert!(text.contains(name) && !text.contains("= mul "), "{target}\n{text}");
        check(target, &instance, false, true, [40, 50, 5, 32]);
        check(target, &instance, false, true, [3, 7, 12, 32]);
    }
}

/// A block has a wave at least, which alone scales blocks, though fewer threads are asked for.
#[test]
fn instructions_scale_blocks_of_a_whole_wave() {
    let kernel = BY_ROWS.edit("tile_kernel(where", "tile_kernel(threads = 32, where");
    let instance = instance(&kernel, [32, 32, 64], 32);
    for target in ["gfx950", "sm_120f"] {
        compile(&instance, TargetDesc::named(target).unwrap(), &Options::default()).unwrap();
        check(target, &instance, false, true, [40, 50, 5, 32]);
    }
}

/// However it lies, and whoever wrote it.
#[test]
fn factors_lie_either_way_round_and_one_may_have_no_scales() {
    for (target, tile, name) in [INSTRUCTIONS[0], INSTRUCTIONS[1], INSTRUCTIONS[5]] {
        for (kernel, of_columns, scales_left) in [(by_columns(), true, true), (of_one_factor(), false, false)]
        {
            let instance = instance(&kernel, tile, 32);
            assert!(scheduled(&instance, target).contains(name), "{kernel}");
            check(target, &instance, of_columns, scales_left, [40, 50, 5, 32]);
        }
    }
}

/// Factors of 4 bits are 8-bit floats once they are unpacked.
#[test]
fn floats_of_four_bits_are_scaled_as_those_of_eight() {
    let kernel = BY_ROWS
        .replace("f8e4m3fn, m, { GROUP", "u8, m, { GROUP / 2")
        .replace("f8e5m2, n, { GROUP", "u8, n, { GROUP / 2")
        .replace("a.partition_view([BM, BK])", "a.partition_view([BM, BK / 2])")
        .replace("b.partition_view([BN, BK])", "b.partition_view([BN, BK / 2])")
        .replace(".load_masked([i, p]), a_s", ".load_masked([i, p]).unpack_f4e2m1(), a_s")
        .replace(".load_masked([j, p]), b_s", ".load_masked([j, p]).unpack_f4e2m1(), b_s");
    let ([m, n, g], numbers) = ([20, 30, 5], [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
    let bytes = |rows: usize, step: usize| -> Vec<u8> {
        (0..rows * 16 * g).map(|i| (i * step % 256) as u8).collect()
    };
    let (a, b, s, t) = (bytes(m, 151), bytes(n, 89), powers([m, g], 5), powers([n, g], 3));
    let number = |bytes: &[u8], row: usize, p: usize| {
        let code = bytes[(row * 32 * g + p) / 2] >> (4 * (p % 2)) & 15;
        let magnitude = numbers[usize::from(code & 7)];
        if code < 8 { magnitude } else { -magnitude }
    };
    let element = |at: usize| {
        let (row, column) = (at / n, at % n);
        let scale = |p: usize| s.get_f64(row * g + p / 32) * t.get_f64(column * g + p / 32);
        (0..32 * g).map(|p| number(&a, row, p) * number(&b, column, p) * scale(p)).sum::<f64>()
    };
    let expected = Array::new(DType::F64, vec![m, n], Elements::Float((0..m * n).map(element).collect()));
    let array = |bytes: &[u8], rows: usize| Array::from_bytes(DType::U8, &[rows, 16 * g], bytes);
    let arguments = [array(&a, m), s.clone(), array(&b, n), t.clone(), sample(DType::F32, &[m, n], 3)];
    for (target, tile, name) in [INSTRUCTIONS[0], INSTRUCTIONS[5]] {
        let instance = instance(&kernel, tile, 32);
        assert!(scheduled(&instance, target).contains(name), "{target}");
        close(&run_simt_as(target, &instance, &arguments, None)[4], &expected, 1e-6, target);
    }
}

/// A longer block has as many scales as instructions want, all the same; a shorter one is none of theirs.
#[test]
fn blocks_of_other_lengths() {
    for block in [64, 128] {
        let instance = instance(BY_ROWS, [32, 32, 128], block);
        for target in ["gfx950", "sm_120f"] {
            assert!(scheduled(&instance, target).contains("scaling blocks of 32"));
            check(target, &instance, false, true, [40, 33, 3, block]);
        }
    }
    let short = instance(BY_ROWS, [32, 32, 128], 16);
    let text = scheduled(&short, "gfx950");
    assert!(!text.contains("mma_scaled") && text.contains("m32n32k16"), "{text}");
    check("gfx950", &short, false, true, [40, 33, 3, 16]);
}

/// Tiles and sizes of many kinds.
#[test]
fn random_tiles_and_sizes() {
    let mut state = 0x9e37_79b9u32;
    let mut choose = |count: usize| {
        // Numerical Recipes' generator, of which the upper bits are good.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as usize % count
    };
    for _ in 0..12 {
        let target = ["gfx950", "sm_120f"][choose(2)];
        let block = [32, 32, 64][choose(3)];
        let tile = [[16, 32, 64, 128][choose(4)], [16, 32, 64][choose(3)], [128, 256][choose(2)]];
        let of_columns = choose(2) == 0;
        let kernel = if of_columns { by_columns() } else { BY_ROWS.to_owned() };
        let instance = instance(&kernel, tile, block);
        assert!(scheduled(&instance, target).contains("scaling blocks of 32"), "{tile:?} on {target}");
        let sizes = [choose(80), choose(70), choose(11), block];
        check(target, &instance, of_columns, true, sizes);
    }
}

/// What no instruction does as it is written stays what it was.
#[test]
fn other_products_are_done_as_before() {
    let declined = |kernel: &str, tile: [usize; 3], target: &str| {
        let text = scheduled(&instance(kernel, tile, 32), target);
        assert!(!text.contains("mma_scaled"), "{kernel}\n{text}");
    };
    let plain = [32, 32, 64];
    declined(&BY_ROWS.replace("f8e8m0fnu", "f8e4m3fn"), plain, "gfx950");
    declined(&BY_ROWS.replace("f8e8m0fnu", "f32"), plain, "gfx950");
    declined(&BY_ROWS.edit("f8e5m2, n", "bf16, n"), plain, "gfx950");
    // Deep enough for instructions of bf16 alone.
    declined(BY_ROWS, [32, 32, 32], "gfx950");
    declined(BY_ROWS, plain, "gfx942");
    declined(BY_ROWS, plain, "sm_90a");
    declined(BY_ROWS, plain, "sm_100a");
}

/// Two matrices in a tile: instructions scale those of two axes alone.
#[test]
fn several_matrices_are_scaled_before_they_are_multiplied() {
    let kernel = "
#[tile_kernel(where(BK % 32 == 0))]
fn scaled<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<f8e4m3fn, 2, BM, BK>,
    a_scales: &Tensor<f8e8m0fnu, 2, BM, { BK / 32 }>,
    b: &Tensor<f8e4m3fn, 2, BK, BN>,
    b_scales: &Tensor<f8e8m0fnu, 2, { BK / 32 }, BN>,
    c: &mut Tensor<f32, 2, BM, BN>,
) {
    let (a, a_scales) = (a.partition_view([2, BM, BK]), a_scales.partition_view([2, BM, BK / 32]));
    let (b, b_scales) = (b.partition_view([2, BK, BN]), b_scales.partition_view([2, BK / 32, BN]));
    let mut c = c.partition_view_mut([2, BM, BN]);
    let i = c.index();
    c.store(mma_scaled(a.load(i), a_scales.load(i), b.load(i), b_scales.load(i), Tile::zeros([2, BM, BN])));
}
";
    let [m, n, k] = [32, 32, 64];
    let powers = |shape: [usize; 3], step: usize| {
        let bytes: Vec<u8> = (0..shape.iter().product()).map(|i: usize| (124 + i * step % 7) as u8).collect();
        Array::from_bytes(DType::F8E8M0FNU, &shape, &bytes)
    };
    let (a, b) = (sample(DType::F8E4M3FN, &[2, m, k], 1), sample(DType::F8E4M3FN, &[2, k, n], 2));
    let (s, t) = (powers([2, m, k / 32], 5), powers([2, k / 32, n], 3));
    let element = |at: usize| {
        let (row, column) = (at / n, at / n / m * k * n + at % n);
        let term = |p: usize| {
            let scale = s.get_f64(row * (k / 32) + p / 32)
                * t.get_f64(at / n / m * (k / 32) * n + p / 32 * n + at % n);
            a.get_f64(row * k + p) * b.get_f64(column + p * n) * scale
        };
        (0..k).map(term).sum::<f64>()
    };
    let expected = Elements::Float((0..2 * m * n).map(element).collect());
    let expected = Array::new(DType::F64, vec![2, m, n], expected);
    let instance = instance(kernel, [m, n, k], 32);
    for target in ["gfx950", "sm_120f"] {
        let text = scheduled(&instance, target);
        assert!(!text.contains("scaling blocks") && text.contains("bf16"), "{target}\n{text}");
        let arguments = [a.clone(), s.clone(), b.clone(), t.clone(), sample(DType::F32, &[2, m, n], 3)];
        close(&run_simt_as(target, &instance, &arguments, None)[4], &expected, 1e-6, target);
    }
}

/// A scale without a number, and those at the ends of the exponents, whose products have none that a factor has.
#[test]
fn scales_at_the_ends() {
    let (m, n, g) = (32, 32, 2);
    let instance = instance(BY_ROWS, [32, 32, 64], 32);
    let ones =
        |dtype: DType, shape: [usize; 2]| Array::full(dtype, &shape, tile_ir::ops::Literal::Float(1.0));
    let scales = |rows: usize, low: u8, high: u8| {
        let bytes: Vec<u8> = (0..rows * g).map(|i| if i % 3 == 0 { low } else { high }).collect();
        Array::from_bytes(DType::F8E8M0FNU, &[rows, g], &bytes)
    };
    for ([low, high], [other_low, other_high]) in
        [([0, 1], [254, 246]), ([254, 250], [0, 3]), ([255, 127], [127, 120])]
    {
        let (s, t) = (scales(m, low, high), scales(n, other_low, other_high));
        let arguments = [
            ones(DType::F8E4M3FN, [m, 64]),
            s.clone(),
            ones(DType::F8E5M2, [n, 64]),
            t.clone(),
            sample(DType::F32, &[m, n], 3),
        ];
        let element = |at: usize| {
            let of_block = |p| 32.0 * s.get_f64(at / n * g + p) * t.get_f64(at % n * g + p);
            of_block(0) + of_block(1)
        };
        let expected = Elements::Float((0..m * n).map(element).collect());
        let expected = Array::new(DType::F64, vec![m, n], expected);
        for target in ["gfx950", "sm_120f"] {
            close(&run_simt_as(target, &instance, &arguments, None)[4], &expected, 1e-6, target);
        }
    }
}

/// A factor that is beyond f32 once it is scaled is infinite in the kernel; an instruction multiplies it as it is.
#[test]
fn factors_beyond_f32_are_multiplied_as_they_are() {
    let instance = instance(BY_ROWS, [32, 32, 64], 32);
    let full =
        |dtype, shape: [usize; 2], value| Array::full(dtype, &shape, tile_ir::ops::Literal::Float(value));
    let arguments = [
        full(DType::F8E4M3FN, [32, 64], 256.0),
        full(DType::F8E8M0FNU, [32, 2], 2f64.powi(127)),
        full(DType::F8E5M2, [32, 64], 1.0),
        full(DType::F8E8M0FNU, [32, 2], 2f64.powi(-127)),
        sample(DType::F32, &[32, 32], 3),
    ];
    let mut evaluated = arguments.to_vec();
    interp::run(&instance, &mut evaluated).unwrap();
    close(&evaluated[4], &full(DType::F32, [32, 32], f64::INFINITY), 0.0, "the evaluator");
    for target in ["gfx950", "sm_120f"] {
        let found = run_simt_as(target, &instance, &arguments, None);
        close(&found[4], &full(DType::F32, [32, 32], 64.0 * 256.0), 0.0, target);
    }
}

/// The scales of both factors, 2⁻¹²⁷ everywhere, which LLVM must not take for no scales.
#[test]
fn known_scales_of_the_least_power_are_scales() {
    let kernel = BY_ROWS
        .edit(
            "(left, left_scales,",
            "(left, Tile::<f32, 2>::full([BM, BK / GROUP], 1e-40).cast::<f8e8m0fnu>(),",
        )
        .edit("right_scales.t(),", "Tile::<f32, 2>::full([BK / GROUP, BN], 1e-40).cast::<f8e8m0fnu>(),")
        .edit("let (right, right_scales)", "let _ = left_scales;\n        let (right, _right_scales)");
    let instance = instance(&kernel, [32, 32, 64], 32);
    let scheduled = schedule(passes::optimize(instance.clone()), TargetDesc::named("gfx950").unwrap(), None);
    assert!(scheduled.walk().into_iter().any(|op| scheduled.op(op).op == Op::MmaScaled));
    let arguments = [
        sample(DType::F8E4M3FN, &[32, 64], 1),
        powers([32, 2], 5),
        sample(DType::F8E5M2, &[32, 64], 2),
        powers([32, 2], 3),
        sample(DType::F32, &[32, 32], 3),
    ];
    let found = run_simt_as("gfx950", &instance, &arguments, None);
    let none = Array::new(DType::F64, vec![32, 32], Elements::Float(vec![0.0; 32 * 32]));
    // All products vanish, and leave the signs of their sums.
    close(&found[4], &none, f64::MIN_POSITIVE, "least scales");
    let code = compile(&instance, TargetDesc::named("gfx950").unwrap(), &Options::default()).unwrap().code;
    assert!(matches!(code, Code::Hsaco(_)));
}
