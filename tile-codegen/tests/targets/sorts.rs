//! Sorts on GPUs, thread by thread: lines of one key up to several in each thread of several warps, on warps of 32 and
//! waves of 64 lanes, compared with the evaluator, which ranks elements.

use crate::gpu::check_for;
use crate::lines::{edges, elements, kernel, product};
use crate::support::{close, instance, run_simt_as, sample};
use tile_ir::array::Elements;
use tile_ir::{Array, DType, Instance, interp};

/// GPUs, and threads of a block if not the usual number: a single warp, and more than the keys of most lines.
const GPUS: [(&str, Option<u32>); 6] = [
    ("sm_80", None),
    ("gfx90a", None),
    ("sm_90a", Some(32)),
    ("gfx1100", None),
    ("gfx942", Some(512)),
    ("sm_90a", Some(256)),
];

const EXTENTS: [usize; 9] = [1, 2, 3, 17, 64, 100, 257, 1000, 2048];

/// A sort of a tile along an axis, of which the first elements are kept.
struct Case {
    dtype: DType,
    shape: [usize; 2],
    axis: usize,
    kept: usize,
    descending: bool,
}

impl Case {
    /// Lines of this extent along the last axis or the first one.
    fn of(dtype: DType, (lines, extent): (usize, usize), axis: usize) -> Case {
        let shape = if axis == 1 { [lines, extent] } else { [extent, lines] };
        Case { dtype, shape, axis, kept: extent, descending: false }
    }

    fn result(&self) -> [usize; 2] {
        let mut shape = self.shape;
        shape[self.axis] = self.kept;
        shape
    }

    fn instance(&self) -> Instance {
        let Case { dtype, axis, .. } = *self;
        let (kept, y) = (self.result(), product(&self.result()));
        let word = if self.descending { " descending" } else { "" };
        let body = format!("  %r0, %r1 = sort %a axis {axis}{word} : tile<{y}{dtype}>, tile<{y}i32>");
        instance(&kernel(dtype, &self.shape, &[(dtype, &kept), (DType::I32, &kept)], &body), &[])
    }

    /// The same values, with the same signs of zero, from the same places, as the evaluator gives.
    fn check(&self, x: Array, (gpu, threads): (&str, Option<u32>)) {
        let (instance, kept) = (self.instance(), self.result());
        let arguments = [x, sample(self.dtype, &kept, 1), sample(DType::I32, &kept, 2)];
        let mut expected = arguments.to_vec();
        interp::run(&instance, &mut expected).unwrap();
        let found = run_simt_as(gpu, &instance, &arguments, threads);
        for (found, expected) in found.iter().zip(&expected).skip(1) {
            let what = format!("{} {:?} axis {} on {gpu} ({threads:?})", self.dtype, self.shape, self.axis);
            close(found, expected, 0.0, &what);
            let is_negative = |array: &Array, i| array.get_f64(i).is_sign_negative();
            for i in (0..expected.len()).filter(|&i| !expected.get_f64(i).is_nan()) {
                assert_eq!(is_negative(found, i), is_negative(expected, i), "sign of element {i}, {what}");
            }
        }
    }
}

fn formats() -> impl Iterator<Item = DType> {
    elements().filter(|dtype| dtype.is_number())
}

#[test]
fn lines_of_every_extent_and_format() {
    let mut turn = 0;
    for dtype in formats() {
        for extent in EXTENTS {
            let lines = [1, 3, 40][turn % 3].min(4096 / extent);
            let mut case = Case::of(dtype, (lines, extent), (turn / 2) % 2);
            case.descending = turn % 2 == 1;
            case.kept = [extent, extent.div_ceil(3), extent.min(2)][turn / 3 % 3];
            case.check(edges(dtype, &case.shape, turn), GPUS[turn % GPUS.len()]);
            turn += 1;
        }
        // Nothing goes on with the same of everything for the next format.
        turn += 1;
    }
}

/// Every way on every GPU: in a thread, a warp, several warps; all of a line, and a few of it.
#[test]
fn few_of_many_and_all_of_them() {
    for gpu in GPUS {
        for (dtype, lines, extent, kept) in [
            (DType::F32, 16, 64, 8),
            (DType::F32, 1, 64, 2),
            (DType::F32, 5, 60, 60),
            (DType::BF16, 16, 64, 8),
            (DType::F16, 3, 300, 300),
            (DType::BF16, 1, 2000, 1),
            (DType::F32, 2, 1000, 4),
            (DType::I64, 2, 200, 200),
        ] {
            let mut case = Case::of(dtype, (lines, extent), 1);
            (case.kept, case.descending) = (kept, kept < extent);
            case.check(edges(dtype, &case.shape, 5), gpu);
        }
    }
}

/// Three different numbers, and NaN: nearly all elements are equal to others, and places say whether they kept their
/// order.
#[test]
fn equal_elements_keep_their_order() {
    for (turn, gpu) in GPUS.into_iter().enumerate() {
        for dtype in [DType::F32, DType::F16, DType::U8, DType::F64] {
            let mut case = Case::of(dtype, (2, [100, 600][turn % 2]), turn % 2);
            case.descending = turn % 3 == 0;
            let few =
                |i: usize| [0.0, 1.0, if dtype.is_float() { f64::NAN } else { 2.0 }, -0.0][i * 7 % 11 % 4];
            let count = case.shape.iter().product();
            let elements = match dtype.is_float() {
                true => Elements::Float((0..count).map(few).collect()),
                false => Elements::Int((0..count).map(|i| few(i) as i128).collect()),
            };
            case.check(Array::new(dtype, case.shape.to_vec(), elements), gpu);
        }
    }
}

/// The numbers at the ends of a format: no key is taken for one beyond a line's end.
#[test]
fn the_greatest_numbers_stand_before_what_is_beyond_a_line() {
    for (turn, dtype) in formats().filter(|dtype| dtype.is_int()).enumerate() {
        let mut case = Case::of(dtype, (3, 70), 1);
        case.descending = turn % 2 == 0;
        let (least, greatest) = dtype.int_range();
        let x = (0..210).map(|i| [greatest, least, greatest, 1][i * 5 % 7 % 4]).collect();
        let x = Array::new(dtype, case.shape.to_vec(), Elements::Int(x));
        case.check(x.clone(), GPUS[turn % GPUS.len()]);
        case.descending = !case.descending;
        case.check(x, GPUS[(turn + 1) % GPUS.len()]);
    }
}

#[test]
fn vendors_compilers_take_every_way() {
    let targets = ["sm_80", "sm_90a", "sm_100a", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"];
    for (dtype, lines, extent, kept) in [
        (DType::F32, 16, 64, 8),
        (DType::F32, 1, 1000, 1000),
        (DType::BF16, 1, 128, 128),
        (DType::U64, 2, 300, 300),
        (DType::F32, 1, 4096, 5),
    ] {
        let mut case = Case::of(dtype, (lines, extent), 1);
        case.kept = kept;
        check_for(&case.instance(), &targets);
    }
}
