//! Folds, scans, sorts and histograms: native code, GPU code thread by thread, and the GPU compilers.

use crate::gpu::{check_for, targets};
use crate::support::{
    agree, agree_in_turn, close, cpus_in_turn, identical, instance, run_native, run_simt, run_simt_as, sample,
};
use tile_codegen::{Cpu, Options};
use tile_ir::array::{Elements, round_float};
use tile_ir::ops::{ReduceOp, ScanMode};
use tile_ir::{Array, DType, interp};

pub(crate) fn product(shape: &[usize]) -> String {
    shape.iter().map(|extent| format!("{extent} x ")).collect()
}

fn zero(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "false",
        dtype if dtype.is_float() => "0.0",
        _ => "0",
    }
}

/// A kernel of one block: `body` makes the outputs `%r0, %r1, …` of `%a`, the tile of the input.
pub(crate) fn kernel(dtype: DType, shape: &[usize], outputs: &[(DType, &[usize])], body: &str) -> String {
    let x = product(shape);
    let names = |prefix: &str, rank: usize| {
        (0..rank).map(|axis| format!("%{prefix}{axis}")).collect::<Vec<_>>().join(", ")
    };
    let mut arguments = format!("%x: tensor<{x}{dtype}>");
    let mut views = format!("  %vx = partition %x {shape:?} : partition<{x}{dtype}, {shape:?}>\n");
    let mut stores = String::new();
    for (i, (dtype, shape)) in outputs.iter().enumerate() {
        let y = product(shape);
        arguments += &format!(", %y{i}: mut tensor<{y}{dtype}>");
        views += &format!("  %vy{i} = partition %y{i} {shape:?} : mut partition<{y}{dtype}, {shape:?}>\n");
        stores += &format!("  store_masked %vy{i}, %r{i}\n");
    }
    let zeros = vec!["%first"; shape.len()].join(", ");
    let rank = outputs[0].1.len();
    format!(
        "kernel @lines({arguments}) {{\n{views}  {grid} = block_index %vy0 : {indices}\n  %first = constant 0 : index
  %pad = constant {pad} : {dtype}\n  %a = load_masked %vx[{zeros}] pad %pad : tile<{x}{dtype}>\n{body}\n{stores}}}\n",
        grid = names("g", rank),
        indices = vec!["index"; rank].join(", "),
        pad = zero(dtype),
    )
}

/// The same bits on every target, and accepted by the GPU compilers of `targets`.
pub(crate) fn check(source: &str, arguments: &[Array], targets: &[&str]) {
    check_within(source, arguments, (targets, &THREADS), 0.0);
}

/// How many threads a block has: the usual number of NVIDIA's, and some of AMD's.
const THREADS: [Option<u32>; 3] = [None, Some(4), Some(64)];

/// The same bits on CPUs, and on GPUs, whose threads join parts of lines, the same numbers within a tolerance.
fn check_within(
    source: &str,
    arguments: &[Array],
    (targets, threads): (&[&str], &[Option<u32>]),
    tolerance: f64,
) {
    let instance = instance(source, &[]);
    let mut expected = arguments.to_vec();
    interp::run(&instance, &mut expected).unwrap();
    let same = |actual: &[Array], how: &str, tolerance: f64| {
        for (which, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
            let what = format!("argument {which}, {how} of\n{source}");
            close(actual, expected, tolerance, &what);
            for i in 0..expected.len() {
                let negative = |array: &Array| array.get_f64(i).is_sign_negative();
                let is_number = !expected.get_f64(i).is_nan();
                assert!(!is_number || negative(actual) == negative(expected), "sign of element {i}, {what}");
            }
        }
    };
    let cpus = if targets.is_empty() { vec![Cpu::Host] } else { cpus_in_turn(&instance) };
    for cpu in cpus {
        same(&run_native(&instance, arguments, &Options { cpu, ..Options::default() }), cpu.name(), 0.0);
    }
    for &threads in threads {
        same(&run_simt(&instance, arguments, threads), &format!("{threads:?} threads"), tolerance);
    }
    check_for(&instance, targets);
}

const SHAPES: [&[usize]; 7] = [&[1], &[300], &[3, 37], &[37, 3], &[200, 2], &[2, 5, 9], &[1, 1]];

pub(crate) fn elements() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|dtype| dtype.is_element())
}

/// Numbers that repeat, with NaN, both zeros and both infinities among floats.
pub(crate) fn edges(dtype: DType, shape: &[usize], seed: usize) -> Array {
    let array = sample(dtype, shape, seed);
    let special = [f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY];
    match array.elements() {
        Elements::Int(_) => array,
        Elements::Float(values) => {
            let mixed = values.iter().enumerate();
            let mixed = mixed.map(|(i, &v)| if i % 3 == 1 { special[(i / 3 + seed) % 5] } else { v });
            Array::new(dtype, shape.to_vec(), Elements::Float(mixed.map(|v| round_float(dtype, v)).collect()))
        }
    }
}

/// The targets that a kernel is compiled for: one of each vendor, in turn.
fn compiled(wanted: bool, turn: usize) -> &'static [&'static str] {
    const PAIRS: [&[&str]; 5] = [
        &["sm_80", "gfx1100"],
        &["sm_90a", "gfx942"],
        &["sm_100a", "gfx1201"],
        &["sm_80", "gfx90a"],
        &["sm_90a", "gfx950"],
    ];
    if wanted { PAIRS[turn % PAIRS.len()] } else { &[] }
}

pub(crate) fn mode_words(mode: ScanMode) -> String {
    format!(
        "{}{}",
        if mode.reverse { " reverse" } else { "" },
        if mode.exclusive { " exclusive" } else { "" }
    )
}

/// The most by which products of so many elements may differ that are rounded after other steps; those of narrow floats are
/// kept in f32 and rounded once.
fn product_error(dtype: DType, count: usize) -> f64 {
    let step =
        |dtype: DType| dtype.float_format().map_or(0.0, |format| (-f64::from(format.mantissa_bits)).exp2());
    match dtype {
        DType::F32 | DType::F64 => count as f64 * step(dtype),
        narrow => step(narrow),
    }
}

#[test]
fn scans_of_every_format_mode_and_shape() {
    let scans = ReduceOp::ALL.iter().filter(|op| op.scan_method().is_some());
    let cases: Vec<(ReduceOp, ScanMode)> =
        scans.flat_map(|&op| ScanMode::ALL.iter().map(move |&mode| (op, mode))).collect();
    let mut cases = cases.iter().cycle();
    for (n, dtype) in elements().filter(|dtype| dtype.is_number()).enumerate() {
        for (m, shape) in SHAPES.into_iter().enumerate().filter(|(m, _)| *m == 2 || m % 2 == n % 2) {
            let &(op, mode) = cases.next().unwrap();
            let axis = (n + m) % shape.len();
            let body = format!(
                "  %r0 = scan {} %a axis {axis}{} : tile<{}{dtype}>",
                op.name(),
                mode_words(mode),
                product(shape)
            );
            let source = kernel(dtype, shape, &[(dtype, shape)], &body);
            // Sums of these numbers are exact; products are rounded in another order.
            let tolerance = if op == ReduceOp::Prod { product_error(dtype, shape[axis]) } else { 0.0 };
            let output = sample(dtype, shape, 1);
            let arguments = [edges(dtype, shape, n), output.clone()];
            check_within(&source, &arguments, (compiled(m == 2, n), &THREADS), tolerance);
            if dtype.is_float() {
                check_within(&source, &[sample(dtype, shape, n), output], (&[], &THREADS), tolerance);
            }
        }
    }
}

/// Of lines that are longer than a warp, warps join parts; along the first axis, these are single elements.
#[test]
fn long_lines_are_scanned_by_all_threads() {
    for &mode in ScanMode::ALL {
        for (shape, axis) in [([2, 4096], 1), ([96, 40], 0), ([32, 96], 1)] {
            let x = product(&shape);
            let scan = format!("  %r0 = scan sum %a axis {axis}{} : tile<{x}u32>", mode_words(mode));
            let source = kernel(DType::U32, &shape, &[(DType::U32, &shape)], &scan);
            check(&source, &[sample(DType::U32, &shape, 3), sample(DType::U32, &shape, 1)], &[]);
        }
    }
}

/// Steps `h ↦ d·h + x`, of which two make another; it matters which comes first. Integers wrap, so that all orders have the
/// same bits.
#[test]
fn associative_folds_join_parts_in_their_order() {
    let region = "{
    %f = mul %d, %e : u32
    %m = mul %e, %h : u32
    %n = add %m, %x2 : u32
    yield %f, %n
  }";
    for (turn, (shape, axis)) in
        [([1usize, 1000], 1usize), ([3, 37], 1), ([96, 40], 0), ([8, 256], 1)].into_iter().enumerate()
    {
        let x = product(&shape);
        let mut folded = shape;
        folded[axis] = 1;
        let head = "  %one = constant 1 : u32
  %zero = constant 0 : u32";
        let starts = format!("{head}\n  %i = iota {axis} : tile<{x}u32>\n");
        let given = |shapes: [usize; 2]| {
            [sample(DType::U32, &shape, 3), sample(DType::U32, &shapes, 1), sample(DType::U32, &shapes, 2)]
        };
        for &mode in ScanMode::ALL {
            let scan = format!(
                "{starts}  %r0, %r1 = scan_with %a, %i from %one, %zero axis {axis}{} associative with \
                 (%d, %h, %e, %x2) : tile<{x}u32>, tile<{x}u32> {region}",
                mode_words(mode)
            );
            let source = kernel(DType::U32, &shape, &[(DType::U32, &shape), (DType::U32, &shape)], &scan);
            check(&source, &given(shape), compiled(mode.reverse, turn));
        }
        let r = product(&folded);
        let reduce = format!(
            "{starts}  %r0, %r1 = reduce_with %a, %i from %one, %zero axis {axis} associative with (%d, %h, %e, %x2) : \
             tile<{r}u32>, tile<{r}u32> {region}"
        );
        let source = kernel(DType::U32, &shape, &[(DType::U32, &folded), (DType::U32, &folded)], &reduce);
        check(&source, &given(folded), compiled(true, turn));
    }
}

#[test]
fn folds_of_two_operands_with_captured_scalars() {
    // The largest of the squares plus a captured number, and where it was: not associative, and started from a
    // number that is not neutral, so that only the defined order gives the result.
    for (n, dtype) in [DType::F32, DType::BF16, DType::I16, DType::F64, DType::U8].into_iter().enumerate() {
        for (m, shape) in SHAPES.into_iter().enumerate().filter(|(m, _)| m % 3 == n % 3) {
            for axis in 0..shape.len() {
                let mut reduced = shape.to_vec();
                reduced[axis] = 1;
                let (x, r) = (product(shape), product(&reduced));
                let one = if dtype.is_float() { "1.0" } else { "1" };
                let head = format!(
                    "  %i = iota {axis} : tile<{x}i32>\n  %one = constant {one} : {dtype}\n  %none = constant -1 : i32"
                );
                let region = format!(
                    "{{
    %s = mul %p, %p : {dtype}
    %d = sub %s, %one : {dtype}
    %better = le %d, %q : bool
    %v = select %better, %q, %p : {dtype}
    %half = cast %d : i32
    %w = add %half, %qi : i32
    %u = select %better, %w, %pi : i32
    yield %v, %u
  }}"
                );
                let reduce = format!(
                    "{head}\n  %r0, %r1 = reduce_with %a, %i from %one, %none axis {axis} with (%p, %pi, %q, %qi) : \
                     tile<{r}{dtype}>, tile<{r}i32> {region}"
                );
                let outputs: [(DType, &[usize]); 2] = [(dtype, &reduced), (DType::I32, &reduced)];
                let compiled = compiled(m == 3, n);
                let arguments =
                    [sample(dtype, shape, n), sample(dtype, &reduced, 1), sample(DType::I32, &reduced, 2)];
                check(&kernel(dtype, shape, &outputs, &reduce), &arguments, compiled);
                let mode = ScanMode::ALL[(m + axis) % 4];
                let scan = format!(
                    "{head}\n  %r0, %r1 = scan_with %a, %i from %one, %none axis {axis}{} with (%p, %pi, %q, %qi) : \
                     tile<{x}{dtype}>, tile<{x}i32> {region}",
                    mode_words(mode)
                );
                let outputs: [(DType, &[usize]); 2] = [(dtype, shape), (DType::I32, shape)];
                let arguments =
                    [sample(dtype, shape, n), sample(dtype, shape, 1), sample(DType::I32, shape, 2)];
                check(&kernel(dtype, shape, &outputs, &scan), &arguments, compiled);
            }
        }
    }
}

#[test]
fn folds_of_truth_values() {
    let body = "  %no = constant false : bool
  %r0 = reduce_with %a from %no axis 1 with (%p, %q) : tile<9 x 1 x bool> {
    %odd = xor %p, %q : bool
    yield %odd
  }";
    let arguments = [sample(DType::Bool, &[9, 40], 3), sample(DType::Bool, &[9, 1], 1)];
    check(&kernel(DType::Bool, &[9, 40], &[(DType::Bool, &[9, 1])], body), &arguments, &targets());
}

#[test]
fn sorts_of_every_format_and_shape() {
    for (n, dtype) in elements().filter(|dtype| dtype.is_number()).enumerate() {
        for (m, shape) in SHAPES.into_iter().enumerate().filter(|(m, _)| *m == 2 || m % 2 == n % 2) {
            let axis = (n + m) % shape.len();
            for descending in [false, true] {
                let mut kept = shape.to_vec();
                kept[axis] = if descending { shape[axis].div_ceil(3) } else { shape[axis] };
                let y = product(&kept);
                let word = if descending { " descending" } else { "" };
                let body = format!("  %r0, %r1 = sort %a axis {axis}{word} : tile<{y}{dtype}>, tile<{y}i32>");
                let source = kernel(dtype, shape, &[(dtype, &kept), (DType::I32, &kept)], &body);
                let outputs = [sample(dtype, &kept, 1), sample(DType::I32, &kept, 2)];
                let [y, at] = outputs;
                // `shapes` sorts with each number of threads, and `sorts` each format on every GPU.
                let threads = [THREADS[(n + m) % THREADS.len()]];
                check_within(&source, &[edges(dtype, shape, n), y, at], (compiled(m == 2, n), &threads), 0.0);
            }
        }
    }
}

/// More vectors of keys than a merge in registers has, with many that are equal, and a line that fills its power of two.
#[test]
fn sorts_of_long_lines() {
    for (extent, dtype) in [(1000, DType::F32), (512, DType::U32), (1024, DType::BF16), (600, DType::I64)] {
        let (shape, kept) = ([2, extent], [2, extent - 1]);
        let y = product(&kept);
        let body = format!("  %r0, %r1 = sort %a axis 1 descending : tile<{y}{dtype}>, tile<{y}i32>");
        let source = kernel(dtype, &shape, &[(dtype, &kept), (DType::I32, &kept)], &body);
        let arguments = [edges(dtype, &shape, 3), sample(dtype, &kept, 1), sample(DType::I32, &kept, 2)];
        agree(&source, &[], &arguments, 0.0);
    }
}

/// Few of many: the line comes in pieces, of which the first may be shorter, each of which may hold nothing that is kept
/// (falling lines) or nothing else (rising ones), with equal elements in pieces that follow each other.
#[test]
fn the_first_few_of_long_lines() {
    let formats: Vec<DType> = elements().filter(|dtype| dtype.is_number()).collect();
    let cases = [(9, 1), (17, 8), (33, 9), (64, 8), (257, 2), (1000, 8), (1024, 16), (1024, 100), (600, 299)];
    for (turn, &dtype) in formats.iter().cycle().take(3 * cases.len()).enumerate() {
        let ((extent, kept), descending) = (cases[turn % cases.len()], turn % 2 == 0);
        let (shape, result) = ([2, extent], [2, kept]);
        let y = product(&result);
        let word = if descending { " descending" } else { "" };
        let body = format!("  %r0, %r1 = sort %a axis 1{word} : tile<{y}{dtype}>, tile<{y}i32>");
        let source = kernel(dtype, &shape, &[(dtype, &result), (DType::I32, &result)], &body);
        let number = |i: usize| [i / 9, (2 * extent - i) / 9][turn % 2].min(100);
        let rising = match dtype.is_float() {
            true => Elements::Float((0..2 * extent).map(|i| round_float(dtype, number(i) as f64)).collect()),
            false => Elements::Int((0..2 * extent).map(|i| number(i) as i128).collect()),
        };
        for x in [edges(dtype, &shape, turn), Array::new(dtype, shape.to_vec(), rising)] {
            let outputs = [sample(dtype, &result, 1), sample(DType::I32, &result, 2)];
            let [values, places] = outputs;
            agree_in_turn(&source, &[], &[x, values, places], 0.0);
        }
    }
}

/// Lines are lanes where they are neighbours, and where functions are worth it: a piece of them is the last one, and
/// shorter. The running sum of what softmax divides by, rescaled at each larger element.
#[test]
fn lines_side_by_side() {
    for (shape, axis) in [([5, 150], 0), ([150, 5], 1), ([70, 1], 1), ([3, 9], 0), ([2, 40], 1)] {
        let mut reduced = shape;
        reduced[axis] = 1;
        let (x, r) = (product(&shape), product(&reduced));
        let region = "{
    %n = max %m, %v : f32
    %d = sub %m, %n : f32
    %e = exp %d : f32
    %t = mul %s, %e : f32
    %o = sub %v, %n : f32
    %w = exp %o : f32
    %u = add %t, %w : f32
    yield %n, %u
  }";
        let starts = "  %low = constant -100.0 : f32\n  %none = constant 0.0 : f32\n";
        let operands = format!("%a, %a from %low, %none axis {axis}");
        let fold = format!(
            "{starts}  %r0, %r1 = reduce_with {operands} with (%m, %s, %v, %v2) : tile<{r}f32>, tile<{r}f32> {region}"
        );
        let outputs: [(DType, &[usize]); 2] = [(DType::F32, &reduced), (DType::F32, &reduced)];
        let given = |shape: &[usize]| [1, 2, 3].map(|seed| sample(DType::F32, shape, seed));
        let [_, first, second] = given(&reduced);
        let source = kernel(DType::F32, &shape, &outputs, &fold);
        agree(&source, &[], &[sample(DType::F32, &shape, 1), first, second], 1e-5);
        for &mode in ScanMode::ALL {
            let words = mode_words(mode);
            let scan = format!(
                "{starts}  %r0, %r1 = scan_with {operands}{words} with (%m, %s, %v, %v2) : tile<{x}f32>, tile<{x}f32> {region}"
            );
            let outputs: [(DType, &[usize]); 2] = [(DType::F32, &shape), (DType::F32, &shape)];
            agree(&kernel(DType::F32, &shape, &outputs, &scan), &[], &given(&shape), 1e-5);
        }
    }
}

#[test]
fn histograms_of_every_integer_format() {
    for (n, dtype) in elements().filter(|dtype| dtype.is_int()).enumerate() {
        let cases = SHAPES.into_iter().zip([1, 7, 300, 13, 1000, 20, 2]).enumerate();
        for (m, (shape, bins)) in cases.filter(|(m, _)| m % 2 == n % 2) {
            let body = format!("  %r0 = histogram %a : tile<{bins} x i32>");
            let source = kernel(dtype, shape, &[(DType::I32, &[bins])], &body);
            let compiled = compiled(m == 4, n);
            let extreme = Array::full(dtype, shape, tile_ir::ops::Literal::Int(dtype.int_range().1));
            for x in [sample(dtype, shape, n), extreme] {
                check(&source, &[x, sample(DType::I32, &[bins], 1)], compiled);
            }
        }
    }
}

/// More slots per thread than registers hold: fragments are local arrays.
#[test]
fn large_tiles() {
    let (shape, bytes): (&[usize], _) = (&[90, 100], DType::U8);
    let scan = kernel(bytes, shape, &[(bytes, shape)], "  %r0 = scan sum %a axis 0 : tile<90 x 100 x u8>");
    check(&scan, &[sample(bytes, shape, 1), sample(bytes, shape, 2)], &["sm_90a", "gfx1100"]);
    let sort = "  %r0, %r1 = sort %a axis 1 : tile<90 x 100 x u8>, tile<90 x 100 x i32>";
    let outputs: [(DType, &[usize]); 2] = [(bytes, shape), (DType::I32, shape)];
    let arguments = [sample(bytes, shape, 1), sample(bytes, shape, 2), sample(DType::I32, shape, 3)];
    check(&kernel(bytes, shape, &outputs, sort), &arguments, &["sm_90a", "gfx1100"]);
    let fold = "  %start = constant 3 : u8
  %r0 = reduce_with %a from %start axis 1 with (%p, %q) : tile<9000 x 1 x u8> {
    %d = sub %q, %p : u8
    yield %d
  }";
    let arguments = [sample(bytes, &[9000, 2], 1), sample(bytes, &[9000, 1], 2)];
    check(&kernel(bytes, &[9000, 2], &[(bytes, &[9000, 1])], fold), &arguments, &["sm_90a"]);
}

#[test]
fn lines_that_are_computed_where_they_are_used() {
    // The operand of a scan is computed in its loop, the result of a fold inside a loop is carried.
    let body = "  %z = constant 0.0 : f32
  %n = neg %a : tile<6 x 20 x f32>
  %c = scan sum %n axis 1 : tile<6 x 20 x f32>
  %end = constant 3 : index
  %r0 = for %k = %first to %end carry (%t = %c) : tile<6 x 20 x f32> {
    %s, %at = sort %t axis 1 descending : tile<6 x 20 x f32>, tile<6 x 20 x i32>
    %m = reduce_with %s from %z axis 0 with (%p, %q) : tile<1 x 20 x f32> {
      %f = add %p, %q : f32
      yield %f
    }
    %b = broadcast %m : tile<6 x 20 x f32>
    %d = sub %t, %b : tile<6 x 20 x f32>
    yield %d
  }";
    let shape: &[usize] = &[6, 20];
    let arguments = [sample(DType::F32, shape, 1), sample(DType::F32, shape, 2)];
    check(&kernel(DType::F32, shape, &[(DType::F32, shape)], body), &arguments, &targets());
}

/// Where nothing comes before an element there is a NaN in its place, which both ops ignore; here they are known to join it
/// with none.
#[test]
fn scans_of_what_is_no_nan() {
    let shape = [3, 64];
    for op in ["max", "min"] {
        let body = format!(
            "  %none = splat %pad : tile<3 x 64 x f32>
  %known = max %a, %none : tile<3 x 64 x f32>
  %r0 = scan {op} %known axis 1 exclusive : tile<3 x 64 x f32>"
        );
        let instance = instance(&kernel(DType::F32, &shape, &[(DType::F32, &shape)], &body), &[]);
        let arguments = [sample(DType::F32, &shape, 1), sample(DType::F32, &shape, 2)];
        let mut expected = arguments.to_vec();
        interp::run(&instance, &mut expected).unwrap();
        for threads in [8, 64] {
            let found = run_simt_as("sm_80", &instance, &arguments, Some(threads));
            identical(&found[1], &expected[1], &format!("a scan {op} by {threads} threads"));
        }
    }
}
