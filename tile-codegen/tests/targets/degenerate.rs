//! Lines of numbers that are none, or all alike: reductions, the places of extrema, scans and sorts, everywhere a kernel
//! runs, beside plain loops over the line that know only what `docs/ops.md` says.

use crate::lines::{kernel, mode_words, product};
use crate::support::{instance, run_everywhere, sample};
use std::cmp::Ordering;
use tile_ir::array::Elements;
use tile_ir::ops::ScanMode;
use tile_ir::{Array, DType};
use tile_test_edit::Edit;

const NAN: f64 = f64::NAN;
const INFINITY: f64 = f64::INFINITY;

/// Extents of lines: of one element, within a vector, within a warp and a wave, and over several of these.
const EXTENTS: [usize; 5] = [1, 7, 37, 64, 257];

/// Lines of this extent: NaN at each place that order could make special, of infinities, zeros of both signs, and
/// one number alone. Sums and products of what is in them are exact in any order and every format.
fn lines(extent: usize) -> Vec<Vec<f64>> {
    let (middle, last) = (extent / 2, extent - 1);
    let plain = |i: usize| [1.0, -1.0, 1.0, -1.0, -0.0, 0.0][i * 7 % 6];
    let with = |places: &[(usize, f64)]| {
        let mut line: Vec<f64> = (0..extent).map(plain).collect();
        places.iter().for_each(|&(place, value)| line[place] = value);
        line
    };
    let all_but = |all: f64, place: usize, value: f64| {
        let mut line = vec![all; extent];
        line[place] = value;
        line
    };
    vec![
        with(&[]),
        with(&[(0, NAN)]),
        with(&[(middle, NAN)]),
        with(&[(last, NAN)]),
        with(&[(0, NAN), (middle, INFINITY)]),
        with(&[(middle, -INFINITY), (last, NAN)]),
        with(&[(0, -INFINITY), (last, INFINITY)]),
        (0..extent).map(|i| if i % 2 == 0 { NAN } else { plain(i) }).collect(),
        vec![NAN; extent],
        all_but(NAN, last, -1.0),
        all_but(NAN, 0, -INFINITY),
        vec![-0.0; extent],
        all_but(-0.0, middle, 0.0),
        all_but(0.0, last, -0.0),
        vec![-INFINITY; extent],
        vec![INFINITY; extent],
        all_but(-1.0, last, 1.0),
    ]
}

/// Lines along the first axis or the last one.
fn array(dtype: DType, lines: &[Vec<f64>], axis: usize) -> Array {
    let (count, extent) = (lines.len(), lines[0].len());
    let elements = match axis {
        1 => lines.concat(),
        _ => (0..extent).flat_map(|i| lines.iter().map(move |line| line[i])).collect(),
    };
    let shape = if axis == 1 { vec![count, extent] } else { vec![extent, count] };
    match dtype.is_float() {
        true => Array::new(dtype, shape, Elements::Float(elements)),
        false => Array::new(dtype, shape, Elements::Int(elements.iter().map(|&x| x as i128).collect())),
    }
}

/// The order of `min` and `max`, in which −0 is below +0; of numbers.
fn below(a: f64, b: f64) -> bool {
    a < b || a == b && a.is_sign_negative() && !b.is_sign_negative()
}

/// The element that `is_better` than all others; NaN is none unless all are.
fn extreme(line: &[f64], is_better: fn(f64, f64) -> bool) -> f64 {
    let numbers = line.iter().copied().filter(|x| !x.is_nan());
    numbers.reduce(|best, x| if is_better(x, best) { x } else { best }).unwrap_or(NAN)
}

/// [`extreme`] where NaN is better than numbers.
fn propagating(line: &[f64], is_better: fn(f64, f64) -> bool) -> f64 {
    if line.iter().any(|x| x.is_nan()) { NAN } else { extreme(line, is_better) }
}

/// Where the first element is that equals the extreme one.
fn place(line: &[f64], extreme: f64) -> f64 {
    let found = line.iter().position(|&x| x == extreme || x.is_nan() && extreme.is_nan());
    found.expect("one of the line's elements") as f64
}

/// What a reduction is called, and what it gives of a line.
type Reduction = (&'static str, fn(&[f64]) -> f64);

const SUMS: [Reduction; 2] = [("sum", |line| line.iter().sum()), ("prod", |line| line.iter().product())];

/// Of which integers have the first two.
const EXTREMA: [Reduction; 4] = [
    ("max", |line| extreme(line, |a, b| below(b, a))),
    ("min", |line| extreme(line, below)),
    ("maximum", |line| propagating(line, |a, b| below(b, a))),
    ("minimum", |line| propagating(line, below)),
];

/// As the front end writes `argmax` and its kin: where in lines of `%a` the extreme elements `%r{number}` are.
fn position(op: &str, number: usize, x: &Array, axis: usize) -> String {
    let (dtype, extent, whole) = (x.dtype(), x.shape()[axis], product(x.shape()));
    let found = match op {
        "maximum" | "minimum" => format!(
            "  %eq{number} = eq %a, %b{number} : tile<{whole}bool>
  %nan{number} = is_nan %a : tile<{whole}bool>
  %found{number} = or %eq{number}, %nan{number} : tile<{whole}bool>\n"
        ),
        _ => format!("  %found{number} = eq %a, %b{number} : tile<{whole}bool>\n"),
    };
    let reduced = product(&reduced(x.shape(), axis));
    format!(
        "  %b{number} = broadcast %r{number} : tile<{whole}{dtype}>
{found}  %at{number} = iota {axis} : tile<{whole}i32>
  %end{number} = constant {extent} : i32
  %ends{number} = splat %end{number} : tile<{whole}i32>
  %candidates{number} = select %found{number}, %at{number}, %ends{number} : tile<{whole}i32>
  %first{number} = reduce min %candidates{number} axis {axis} : tile<{reduced}i32>
  %last{number} = splat %end{number} : tile<{reduced}i32>
  %none{number} = eq %first{number}, %last{number} : tile<{reduced}bool>
  %zero{number} = constant 0 : i32
  %zeros{number} = splat %zero{number} : tile<{reduced}i32>
  %place{number} = select %none{number}, %zeros{number}, %first{number} : tile<{reduced}i32>\n"
    )
}

fn reduced(shape: &[usize], axis: usize) -> Vec<usize> {
    let mut reduced = shape.to_vec();
    reduced[axis] = 1;
    reduced
}

/// Whether an element is this number, with its sign; NaN is NaN.
fn is(found: f64, expected: f64, has_sign: bool) -> bool {
    let is_sign = || !has_sign || found.is_sign_negative() == expected.is_sign_negative();
    found.is_nan() && expected.is_nan() || found == expected && is_sign()
}

/// These reductions of lines, and the places of the extreme elements.
fn check_reductions(
    dtype: DType,
    lines: &[Vec<f64>],
    axis: usize,
    (sums, extrema): (&[Reduction], &[Reduction]),
) {
    let (x, ops) = (array(dtype, lines, axis), [sums, extrema].concat());
    let shape = reduced(x.shape(), axis);
    let (mut body, result) = (String::new(), product(&shape));
    for (number, (op, _)) in ops.iter().enumerate() {
        body += &format!("  %r{number} = reduce {op} %a axis {axis} : tile<{result}{dtype}>\n");
    }
    for (i, (op, _)) in extrema.iter().enumerate() {
        let (number, place) = (sums.len() + i, ops.len() + i);
        body += &position(op, number, &x, axis).edit(&format!("%place{number}"), &format!("%r{place}"));
    }
    let values = ops.iter().map(|_| (dtype, &shape[..]));
    let outputs: Vec<_> = values.chain(extrema.iter().map(|_| (DType::I32, &shape[..]))).collect();
    let source = kernel(dtype, x.shape(), &outputs, body.trim_end());
    let written = outputs.iter().map(|&(dtype, shape)| sample(dtype, shape, 1));
    let arguments: Vec<Array> = [x].into_iter().chain(written).collect();
    for (way, found) in run_everywhere(&instance(&source, &[]), &arguments) {
        let (values, places) = found[1..].split_at(ops.len());
        for (row, line) in lines.iter().enumerate() {
            let what = |op: &str| format!("{op} of line {row} of {} {dtype}, axis {axis}, {way}", line.len());
            for (number, ((op, of), found)) in ops.iter().zip(values).enumerate() {
                let (found, expected) = (found.get_f64(row), of(line));
                let has_sign = number >= sums.len();
                assert!(is(found, expected, has_sign), "{} is {found}, not {expected}", what(op));
            }
            for ((op, of), found) in extrema.iter().zip(places) {
                let (found, expected) = (found.get_f64(row), place(line, of(line)));
                assert!(found == expected, "the {} is at {found}, not {expected}", what(op));
            }
        }
    }
}

#[test]
fn reductions_of_numbers_that_are_none() {
    let formats = [DType::F32, DType::BF16, DType::F16, DType::F64];
    for (turn, extent) in EXTENTS.into_iter().enumerate() {
        for more in 0..2 {
            let dtype = formats[(turn + 2 * more) % formats.len()];
            check_reductions(dtype, &lines(extent), (turn + more) % 2, (&SUMS, &EXTREMA));
        }
    }
}

/// Ties alone, at the ends of a format, where what a reduction begins from would be as good as an element.
#[test]
fn the_first_of_equal_integers_is_found() {
    let cases = [(DType::I32, 64), (DType::U8, 7), (DType::I16, 257), (DType::I8, 37)];
    for (turn, (dtype, extent)) in cases.into_iter().enumerate() {
        let (least, greatest) = dtype.int_range();
        let [least, greatest] = [least, greatest].map(|end| end as f64);
        let pairs = [[least, least], [greatest, greatest], [greatest, least], [least, 1.0]];
        let lines = pairs.map(|pair| (0..extent).map(|i| pair[i % 2]).collect());
        check_reductions(dtype, &lines, turn % 2, (&[], &EXTREMA[..2]));
    }
}

/// What a scan of a line gives; `nothing` is what it gives of no elements, which counts where an element doesn't.
fn scanned(line: &[f64], of: fn(&[f64]) -> f64, nothing: f64, mode: ScanMode) -> Vec<f64> {
    let at = |i: usize| {
        let so_far = match (mode.reverse, mode.exclusive) {
            (false, false) => &line[..=i],
            (false, true) => &line[..i],
            (true, false) => &line[i..],
            (true, true) => &line[i + 1..],
        };
        if mode.exclusive { of(&[&[nothing], so_far].concat()) } else { of(so_far) }
    };
    (0..line.len()).map(at).collect()
}

/// From NaN on a sum is NaN, and the largest element so far is a number again where one follows.
#[test]
fn scans_over_numbers_that_are_none() {
    let formats = [DType::F32, DType::BF16, DType::F64, DType::F16];
    for (turn, extent) in EXTENTS.into_iter().enumerate() {
        let (dtype, axis, lines) = (formats[turn % formats.len()], turn % 2, lines(extent));
        let x = array(dtype, &lines, axis);
        let whole = product(x.shape());
        let scans = [(SUMS[0], 0.0), (EXTREMA[0], -INFINITY), (EXTREMA[1], INFINITY), (SUMS[1], 1.0)];
        let modes = |number: usize| ScanMode::ALL[(turn + number) % ScanMode::ALL.len()];
        let mut body = String::new();
        for (number, ((op, _), _)) in scans.iter().enumerate() {
            let words = mode_words(modes(number));
            body += &format!("  %r{number} = scan {op} %a axis {axis}{words} : tile<{whole}{dtype}>\n");
        }
        let outputs = vec![(dtype, x.shape()); scans.len()];
        let source = kernel(dtype, x.shape(), &outputs, body.trim_end());
        let written = outputs.iter().map(|&(dtype, shape)| sample(dtype, shape, 1));
        let arguments: Vec<Array> = [x.clone()].into_iter().chain(written).collect();
        for (way, found) in run_everywhere(&instance(&source, &[]), &arguments) {
            for (number, (((op, of), nothing), found)) in scans.iter().zip(&found[1..]).enumerate() {
                let mode = modes(number);
                for (row, line) in lines.iter().enumerate() {
                    for (i, expected) in scanned(line, *of, *nothing, mode).into_iter().enumerate() {
                        let at = if axis == 1 { row * extent + i } else { i * lines.len() + row };
                        let found = found.get_f64(at);
                        assert!(
                            is(found, expected, false),
                            "{op}{} up to {i} of line {row} of {extent} {dtype} is {found}, not {expected}, {way}",
                            mode_words(mode)
                        );
                    }
                }
            }
        }
    }
}

/// The order of sorts: numbers, with zeros alike, and NaN above all.
fn ranked(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Rust's own stable sort says where the elements of lines full of ties go.
#[test]
fn ties_and_nan_are_sorted_stably() {
    let formats = [DType::F16, DType::F32, DType::F64, DType::BF16, DType::F32];
    for ((turn, extent), dtype) in EXTENTS.into_iter().enumerate().zip(formats) {
        let (axis, lines) = (turn % 2, lines(extent));
        let x = array(dtype, &lines, axis);
        let few = extent.div_ceil(5);
        let mut kept = x.shape().to_vec();
        kept[axis] = few;
        let (whole, part) = (product(x.shape()), product(&kept));
        let body = format!(
            "  %r0, %r1 = sort %a axis {axis} : tile<{whole}{dtype}>, tile<{whole}i32>
  %r2, %r3 = sort %a axis {axis} descending : tile<{part}{dtype}>, tile<{part}i32>"
        );
        let outputs = [(dtype, x.shape()), (DType::I32, x.shape()), (dtype, &kept), (DType::I32, &kept)];
        let source = kernel(dtype, x.shape(), &outputs, &body);
        let written = outputs.iter().map(|&(dtype, shape)| sample(dtype, shape, 1));
        let arguments: Vec<Array> = [x.clone()].into_iter().chain(written).collect();
        for (way, found) in run_everywhere(&instance(&source, &[]), &arguments) {
            for (descending, found) in [false, true].into_iter().zip(found[1..].chunks(2)) {
                for (row, line) in lines.iter().enumerate() {
                    let mut order: Vec<usize> = (0..extent).collect();
                    let rank = |&i: &usize, &j: &usize| ranked(line[i], line[j]);
                    order.sort_by(|i, j| if descending { rank(j, i) } else { rank(i, j) });
                    order.truncate(if descending { few } else { extent });
                    for (i, from) in order.into_iter().enumerate() {
                        let at = if axis == 1 {
                            row * if descending { few } else { extent } + i
                        } else {
                            i * lines.len() + row
                        };
                        let (value, place) = (found[0].get_f64(at), found[1].get_f64(at));
                        assert!(
                            is(value, line[from], true) && place == from as f64,
                            "element {i} of line {row} of {extent} {dtype} is {value} from {place}, not {} from {from}, \
                             descending: {descending}, {way}",
                            line[from]
                        );
                    }
                }
            }
        }
    }
}
