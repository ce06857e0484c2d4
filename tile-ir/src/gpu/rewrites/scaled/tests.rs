//! Which products are recognised, by the lines that scale the left factor, and what becomes of one.

use super::*;
use crate::gpu::{Threads, print, schedule, verify};
use crate::specialize::Instance;
use crate::text;
use tile_layout::linear::Distribution;
use tile_test_edit::Edit;

/// A product of a left factor of 32×256 elements, `%y`, which is made of `%x`, floats, and `%s`, powers of two for 32 rows and 4
/// or 8 blocks; its right factor has no scales.
fn product(lines: &str) -> String {
    format!(
        "kernel @product(%a: tensor<32 x 256 x f8e4m3fn>, %b: tensor<256 x 32 x f8e5m2>, %p: tensor<32 x 8 x f8e8m0fnu>, %c: mut tensor<32 x 32 x f32>) {{
  %va = partition %a [32, 256] : partition<32 x 256 x f8e4m3fn, [32, 256]>
  %vb = partition %b [256, 32] : partition<256 x 32 x f8e5m2, [256, 32]>
  %vp = partition %p [32, 8] : partition<32 x 8 x f8e8m0fnu, [32, 8]>
  %vc = partition %c [32, 32] : mut partition<32 x 32 x f32, [32, 32]>
  %i, %j = block_index %vc : index, index
  %none = constant 0.0 : f32
  %zero = splat %none : tile<32 x 32 x f32>
  %x = load %va[%i, %j] : tile<32 x 256 x f8e4m3fn>
  %r = load %vb[%i, %j] : tile<256 x 32 x f8e5m2>
  %s = load %vp[%i, %j] : tile<32 x 8 x f8e8m0fnu>
{lines}  %right = cast %r : tile<256 x 32 x f32>
  %sum = mma %y, %right, %zero : tile<32 x 32 x f32>
  store %vc, %sum
}}
"
    )
}

/// The floats times powers that each row has for its blocks of 32.
const SCALED: &str = "\
  %f = cast %x : tile<32 x 256 x f32>
  %t = cast %s : tile<32 x 8 x f32>
  %u = reshape %t : tile<32 x 8 x 1 x f32>
  %v = broadcast %u : tile<32 x 8 x 32 x f32>
  %w = reshape %v : tile<32 x 256 x f32>
  %y = mul %f, %w : tile<32 x 256 x f32>
";

fn instance(source: &str) -> Instance {
    let instance = Instance::parse(source, &[]).unwrap_or_else(|error| panic!("{error}\n{source}"));
    crate::passes::optimize(instance)
}

fn is_found(lines: &str, target: &str) -> bool {
    is_found_in(&product(lines), target)
}

fn is_found_in(source: &str, target: &str) -> bool {
    !found(&instance(source), TargetDesc::named(target).unwrap()).is_empty()
}

#[test]
fn a_product_takes_floats_and_powers_as_they_are() {
    let target = TargetDesc::named("gfx950").unwrap();
    let instance = instance(&product(SCALED));
    let products = found(&instance, target);
    let rewritten = instance.clone().rewrite("scaled", |kernel| run(kernel, &products));
    insta::assert_snapshot!(text::print(&rewritten));
    let scheduled = print(&schedule(instance, target, None));
    assert!(scheduled.contains("m32n32k64 scaling blocks of 32"), "{scheduled}");
}

#[test]
fn powers_are_recognised_by_whose_elements_they_are() {
    assert!(is_found(SCALED, "gfx950"));
    assert!(!is_found(SCALED, "gfx942") && !is_found(SCALED, "sm_90a"));
    // Either factor of the multiplication first, and repeated before they are converted.
    let before = SCALED
        .edit("cast %s : tile<32 x 8 x f32>", "reshape %s : tile<32 x 8 x 1 x f8e8m0fnu>")
        .edit("%u = reshape %t : tile<32 x 8 x 1 x f32>", "%u = broadcast %t : tile<32 x 8 x 32 x f8e8m0fnu>")
        .edit("%v = broadcast %u : tile<32 x 8 x 32 x f32>", "%v = cast %u : tile<32 x 8 x 32 x f32>")
        .edit("mul %f, %w", "mul %w, %f");
    assert!(is_found(&before, "gfx950"));
    // Transposed twice, once scaled.
    let turned = "\
  %f = cast %x : tile<32 x 256 x f32>
  %q = permute %f [1, 0] : tile<256 x 32 x f32>
  %n = permute %s [1, 0] : tile<8 x 32 x f8e8m0fnu>
  %t = cast %n : tile<8 x 32 x f32>
  %u = reshape %t : tile<8 x 1 x 32 x f32>
  %v = broadcast %u : tile<8 x 32 x 32 x f32>
  %w = reshape %v : tile<256 x 32 x f32>
  %m = mul %q, %w : tile<256 x 32 x f32>
  %y = permute %m [1, 0] : tile<32 x 256 x f32>
";
    assert!(is_found(turned, "gfx950"));
}

#[test]
fn powers_of_others_are_declined() {
    // Those of a row's elements by turns, and of another row.
    let by_turns = SCALED
        .edit("reshape %t : tile<32 x 8 x 1 x f32>", "reshape %t : tile<32 x 1 x 8 x f32>")
        .edit("broadcast %u : tile<32 x 8 x 32 x f32>", "broadcast %u : tile<32 x 32 x 8 x f32>");
    assert!(!is_found(&by_turns, "gfx950"));
    let of_others =
        SCALED.edit("cast %s : tile<32 x 8 x f32>", "permute %s [1, 0] : tile<8 x 32 x f8e8m0fnu>").edit(
            "%u = reshape %t : tile<32 x 8 x 1 x f32>",
            "%o = cast %t : tile<8 x 32 x f32>\n  %u = reshape %o : tile<32 x 8 x 1 x f32>",
        );
    assert!(!is_found(&of_others, "gfx950"));
    // Added, and floats without powers at all.
    assert!(!is_found(&SCALED.edit("mul %f, %w", "add %f, %w"), "gfx950"));
    assert!(!is_found("  %y = cast %x : tile<32 x 256 x f32>\n", "gfx950"));
    // What is multiplied besides, once more.
    let twice =
        SCALED.edit("%y = mul %f, %w", "%g = mul %f, %w") + "  %y = mul %g, %w : tile<32 x 256 x f32>\n";
    assert!(!is_found(&twice, "gfx950"));
}

/// A float times 2¹⁶ is infinite in f16, and bf16 has no 2⁻¹³⁶: an instruction that scales rounds neither.
#[test]
fn factors_that_are_rounded_are_declined() {
    for narrow in ["f16", "bf16"] {
        let source = product(SCALED).replace(" x f32>\n", &format!(" x {narrow}>\n"));
        let source =
            ["%zero = splat %none", "%sum = mma %y, %right, %zero"].iter().fold(source, |source, sums| {
                source.edit(
                    &format!("{sums} : tile<32 x 32 x {narrow}>"),
                    &format!("{sums} : tile<32 x 32 x f32>"),
                )
            });
        for target in ["gfx950", "sm_120f"] {
            assert!(!is_found_in(&source, target), "{narrow} on {target}\n{source}");
        }
    }
}

#[test]
fn scales_that_lie_elsewhere_are_a_broken_schedule() {
    let mut scheduled = schedule(instance(&product(SCALED)), TargetDesc::named("gfx950").unwrap(), None);
    assert_eq!(verify(&scheduled), Ok(()));
    let op = scheduled.walk().into_iter().find(|&op| scheduled.op(op).op == Op::MmaScaled).unwrap();
    let scales = scheduled.op(op).operands[3];
    let Threads { lanes, warps, .. } = scheduled.threads();
    let other = Distribution::blocked(&[32, 8], &[1, 0], 1, lanes, warps).unwrap();
    scheduled.laid_out.distributions.insert(scales, other);
    let problem = verify(&scheduled).unwrap_err().problem;
    assert_eq!(problem, "its scales lie elsewhere than its instruction takes them");
}
