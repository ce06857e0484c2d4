//! Conversions of 8-bit floats on simulated threads of every GPU, by its instructions where it has some: every number, and
//! what lies at, between and next to them.

use crate::kernels::elementwise;
use crate::leaf::zeros;
use crate::support::{identical, instance, is_emulated, run_simt_as};
use tile_codegen::{Code, Options, compile};
use tile_ir::array::{Elements, wrap_int};
use tile_ir::target::{Family, TARGETS};
use tile_ir::{Array, DType, TargetDesc, interp};
use tile_test_edit::Edit;

const FORMATS: [DType; 2] = [DType::F8E4M3FN, DType::F8E5M2];

/// Every number of a format, as its bits say.
fn all(dtype: DType) -> Array {
    let codes = (0..256).map(|bits| wrap_int(DType::U8, bits)).collect();
    Array::new(DType::U8, vec![256], Elements::Int(codes)).bitcast(dtype)
}

/// f32 at and next to the numbers of a format, and at and next to what lies halfway between them.
fn around(dtype: DType) -> Array {
    let numbers = all(dtype);
    let mut numbers: Vec<f64> = (0..256).map(|i| numbers.get_f64(i)).filter(|x| x.is_finite()).collect();
    // What would follow the largest number.
    let largest = dtype.float_format().expect("a float format").max();
    numbers.extend([largest + largest / 7.0, -largest - largest / 7.0]);
    numbers.sort_by(f64::total_cmp);
    let between = numbers.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
    let points: Vec<f32> = numbers.iter().copied().chain(between).map(|x| x as f32).collect();
    let near = points.into_iter().flat_map(|x| [x, x.next_up(), x.next_down()]);
    let ends = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 1e-40, -1e-40];
    let values: Vec<f64> = near.chain(ends).map(f64::from).collect();
    Array::new(DType::F32, vec![values.len()], Elements::Float(values))
}

/// Converts numbers on every GPU, in tiles whose threads have several elements each and in those of one.
fn convert(numbers: &Array, by: &str, to: DType) {
    if is_emulated() {
        return;
    }
    let source = elementwise(numbers.dtype().name(), to.name(), &format!("{by} %a"));
    for tile in [128, 32] {
        let instance = instance(&source, &[("B", tile)]);
        let arguments = [numbers.clone(), numbers.clone(), zeros(to, numbers.len())];
        let mut expected = arguments.to_vec();
        interp::run(&instance, &mut expected).expect("the shapes fit");
        for target in TARGETS.iter().filter(|target| target.family != Family::Cpu) {
            let found = run_simt_as(target.name, &instance, &arguments, Some(32.max(target.warp)));
            let what = format!("{by} of {} to {to} on {}", numbers.dtype(), target.name);
            identical(&found[2], &expected[2], &what);
        }
    }
}

#[test]
fn every_number_is_widened() {
    for dtype in FORMATS {
        for to in [DType::F32, DType::F16, DType::BF16] {
            convert(&all(dtype), "cast", to);
        }
    }
}

#[test]
fn numbers_are_rounded_to_the_nearest() {
    for dtype in FORMATS {
        convert(&around(dtype), "cast", dtype);
    }
}

#[test]
fn what_is_too_large_becomes_the_largest() {
    for dtype in FORMATS {
        convert(&around(dtype), "saturating_cast", dtype);
        convert(&around(dtype), "saturating_cast", DType::F16);
    }
}

/// Code of a conversion on whole tiles.
fn ptx(target: &str, by: &str, from: DType, to: DType) -> String {
    let source = elementwise(from.name(), to.name(), &format!("{by} %a"));
    let source = source.edit("load_masked", "load").edit(" pad %pad", "");
    let source = source.edit("store_masked", "store").edit(") {", ") where \"n % B == 0\": rem(n, B) eq 0 {");
    let target = TargetDesc::named(target).unwrap();
    let artifact = compile(&instance(&source, &[("B", 1024)]), target, &Options::default()).unwrap();
    let Code::Ptx(ptx) = artifact.code else { panic!("PTX") };
    ptx
}

#[test]
fn two_go_with_one_instruction() {
    let instructions = |ptx: &str, name: &str| ptx.lines().filter(|line| line.contains(name)).count();
    for target in ["sm_89", "sm_90a", "sm_100a", "sm_120f"] {
        let widened = ptx(target, "cast", DType::F8E4M3FN, DType::F32);
        let per_thread = instructions(&widened, "cvt.f32.f16");
        assert_eq!(2 * instructions(&widened, "cvt.rn.f16x2.e4m3x2"), per_thread, "{widened}");
        let as_halves = ptx(target, "cast", DType::F8E5M2, DType::F16);
        assert_eq!(instructions(&as_halves, "cvt.f32.f16"), 0, "{as_halves}");
        let narrowed = ptx(target, "cast", DType::F32, DType::F8E4M3FN);
        assert_eq!(2 * instructions(&narrowed, "cvt.rn.satfinite.e4m3x2.f32"), per_thread, "{narrowed}");
        for (to, name) in [(DType::F8E4M3FN, "e4m3x2"), (DType::F8E5M2, "e5m2x2")] {
            let saturated = ptx(target, "saturating_cast", DType::F32, to);
            let name = format!("cvt.rn.satfinite.{name}.f32");
            assert_eq!(2 * instructions(&saturated, &name), per_thread, "{saturated}");
            assert_eq!(
                instructions(&saturated, "selp") + instructions(&saturated, "abs.f32"),
                0,
                "{saturated}"
            );
        }
    }
}
