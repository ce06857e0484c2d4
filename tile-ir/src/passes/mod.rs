//! Target-free rewrites. [`PIPELINE`] is their order; each leaves a verified instance.

mod across_rows;
mod canonicalize;
mod cse;
mod dce;
mod fold;
mod licm;
mod prefetch;
mod reductions;
mod short_rows;
mod stored_rows;
mod transpose;
mod turned;
mod turned_tiles;
mod unit_axes;
mod unmask;

pub(crate) use canonicalize::run as canonicalize;
pub(crate) use cse::is_value;
pub(crate) use dce::run as remove_unused;
pub(crate) use fold::take_known_branches;
pub(crate) use licm::split;

use crate::kernel::{Kernel, ValueId};
use crate::specialize::Instance;
use crate::text;
use std::collections::HashMap;

/// A pass: its name for dumps, timing and tests, and what it does.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The name.
    pub name: &'static str,
    /// The rewrite.
    pub rewrite: fn(&mut Kernel),
}

/// Every target runs these, in this order: constants and canonical forms first, so that what is equal looks equal
/// and can be merged; then products that are only used transposed are computed so, and what doesn't change goes out
/// of loops, where more of it meets its equal. Operands that were merged let canonical forms apply that didn't (`x - y`
/// is now `x - x`), so they are made once more. Then masks that hide nothing; then what nobody uses goes; at last loops
/// ask for what they read later, of what is still read.
pub const PIPELINE: &[Pass] = &[
    Pass { name: "fold", rewrite: fold::run },
    Pass { name: "canonicalize", rewrite: canonicalize::run },
    Pass { name: "cse", rewrite: cse::run },
    Pass { name: "transpose", rewrite: transpose::run },
    Pass { name: "licm", rewrite: licm::run },
    Pass { name: "cse-after-licm", rewrite: cse::run },
    Pass { name: "canonicalize-after-cse", rewrite: canonicalize::run },
    Pass { name: "unmask", rewrite: unmask::run },
    Pass { name: "dce", rewrite: dce::run },
    Pass { name: "prefetch", rewrite: prefetch::run },
];

/// For targets that go over tiles in memory, after [`PIPELINE`], in this order: stores go along rows, and products that they
/// have turned are computed so; tiles of short rows are turned, loads go along rows, axes of one element are those of tensors,
/// and reductions stand behind what they go through.
pub const OVER_MEMORY: &[Pass] =
    &[STORED_ROWS, TRANSPOSE_STORED, SHORT_ROWS, ACROSS_ROWS, UNIT_AXES, REDUCTIONS];
const STORED_ROWS: Pass = Pass { name: "stored-rows", rewrite: stored_rows::run };
const TRANSPOSE_STORED: Pass = Pass { name: "transpose-stored", rewrite: transpose::run };
const ACROSS_ROWS: Pass = Pass { name: "across-rows", rewrite: across_rows::run };
const SHORT_ROWS: Pass = Pass { name: "short-rows", rewrite: short_rows::run };
const UNIT_AXES: Pass = Pass { name: "unit-axes", rewrite: unit_axes::run };
const REDUCTIONS: Pass = Pass { name: "reductions", rewrite: reductions::run };

/// Runs [`PIPELINE`].
///
/// # Panics
/// If a pass breaks an invariant of the IR, which is a bug.
pub fn optimize(instance: Instance) -> Instance {
    PIPELINE.iter().fold(instance, run)
}

/// The instance after each pass of [`PIPELINE`] that changed something, by the pass's name.
///
/// # Panics
/// As [`optimize`].
pub fn trace(instance: Instance) -> Vec<(&'static str, Instance)> {
    let mut steps: Vec<(&'static str, Instance)> = Vec::new();
    let mut last = (text::print(&instance), instance);
    for pass in PIPELINE {
        let next = run(last.1.clone(), pass);
        let printed = text::print(&next);
        if printed != last.0 {
            steps.push((pass.name, next.clone()));
        }
        last = (printed, next);
    }
    steps
}

/// The text of [`trace`], a section to a pass, after the instance itself.
///
/// # Panics
/// As [`optimize`].
pub fn print_trace(instance: &Instance) -> String {
    let section = |name: &str, instance: &Instance| format!("; {name}\n\n{}", text::print(instance));
    let mut sections = vec![section("specialize", instance)];
    sections.extend(trace(instance.clone()).iter().map(|(name, instance)| section(name, instance)));
    sections.join("\n")
}

/// Runs one pass.
///
/// # Panics
/// If the pass breaks an invariant of the IR, which is a bug.
pub fn run(instance: Instance, pass: &Pass) -> Instance {
    instance.rewrite(pass.name, pass.rewrite)
}

/// Replaces uses of values by others.
pub(crate) fn replace_uses(kernel: &mut Kernel, replacement: &HashMap<ValueId, ValueId>) {
    if replacement.is_empty() {
        return;
    }
    for op in kernel.op_ids() {
        for operand in &mut kernel.op_mut(op).operands {
            while let Some(&other) = replacement.get(operand) {
                *operand = other;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel's text after the named passes.
    fn after(passes: &[&str], body: &str) -> String {
        let source = format!(
            "kernel @k(%x: tensor<n x f32>, %s: f32, %y: mut tensor<n x f32>) {{
  %vx = partition %x [4] : partition<n x f32, [4]>
  %vy = partition %y [4] : mut partition<n x f32, [4]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
{body}
}}
"
        );
        let mut instance = Instance::parse(&source, &[]).unwrap();
        for name in passes {
            let pass = PIPELINE.iter().find(|pass| pass.name == *name).unwrap();
            instance = run(instance, pass);
        }
        let printed = text::print(&instance);
        let lines: Vec<&str> = printed.lines().collect();
        lines[1..lines.len() - 1].join("\n")
    }

    #[test]
    fn fold_computes_constants_exactly_as_the_evaluator() {
        let body = "  %a = constant 7 : i32
  %b = constant -2 : i32
  %c = div %a, %b : i32
  %d = cast %c : f32
  %e = exp %d : f32
  %f = lt %a, %b : bool
  %g = select %f, %d, %e : f32
  %t = splat %g : tile<4 x f32>
  store_masked %vy, %t";
        insta::assert_snapshot!(after(&["fold", "dce"], body));
    }

    #[test]
    fn the_loop_over_tiles_keeps_its_tile_and_gives_up_what_does_not_change() {
        let source = "\
kernel @k(%x: tensor<64 x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [4] : partition<64 x f32, [4]>
  %vy = partition %y [4] : mut partition<n x f32, [4]>
  tiles %vy row_major {
    %0 = constant 0 : index
    %i = block_index %vy : index
    %1 = load %vx[%0] : tile<4 x f32>
    %2 = load %vx[%i] : tile<4 x f32>
    %unused = exp %2 : tile<4 x f32>
  }
}
";
        let run_pass = |name: &str, instance| {
            run(instance, PIPELINE.iter().find(|pass| pass.name == name).expect("a pass"))
        };
        let hoisted = run_pass("licm", Instance::parse(source, &[]).unwrap());
        let printed = text::print(&hoisted);
        let (before, inside) = printed.split_once("tiles").expect("the loop stays");
        assert!(before.contains("load %vx[%0]") && !before.contains("block_index"), "{printed}");
        assert!(inside.contains("block_index") && inside.contains("load %vx[%i]"), "{printed}");
        let swept = text::print(&run_pass("dce", hoisted));
        assert!(swept.contains("  tiles %vy row_major {\n  }\n") && !swept.contains("load"), "{swept}");
    }

    #[test]
    fn fold_takes_the_branch_that_is_known() {
        let body = "  %c = constant false : bool
  %t = if %c : tile<4 x f32> {
    %u = splat %s : tile<4 x f32>
    yield %u
  } else {
    %w = splat %pad : tile<4 x f32>
    yield %w
  }
  store_masked %vy, %t";
        insta::assert_snapshot!(after(&["fold", "dce"], body));
    }

    #[test]
    fn cse_merges_equal_ops_and_keeps_loads_of_what_is_written() {
        let body = "  %p = constant 0.0 : f32
  %a = load_masked %vx[%i] pad %pad : tile<4 x f32>
  %b = load_masked %vx[%i] pad %p : tile<4 x f32>
  %c = add %a, %b : tile<4 x f32>
  %d = load_masked %vy pad %pad : tile<4 x f32>
  store_masked %vy, %c
  %e = load_masked %vy pad %pad : tile<4 x f32>
  %f = add %d, %e : tile<4 x f32>
  store_masked %vy, %f";
        insta::assert_snapshot!(after(&["cse", "dce"], body));
    }

    #[test]
    fn unmask_removes_masks_that_hide_nothing() {
        let source =
            "kernel @k(%x: tensor<64 x 48 x f32>, %r: tensor<n x f32>, %y: mut tensor<128 x 64 x f32>) {
  %vx = partition %x [16, 32] : partition<64 x 48 x f32, [16, 32]>
  %vr = partition %r [16] : partition<n x f32, [16]>
  %t = view %y permute [1, 0] : mut tensor<64 x 128 x f32, strided [1, 64]>
  %vy = partition %t [16, 32] : mut partition<64 x 128 x f32, strided [1, 64], [16, 32]>
  %i, %j = block_index %vy : index, index
  %pad = constant 0.0 : f32
  %zero = constant 0 : index
  %two = constant 2 : index
  %inside = load_masked %vx[%i, %zero] pad %pad : tile<16 x 32 x f32>
  %outside = load_masked %vx[%i, %j] pad %pad : tile<16 x 32 x f32>
  %unknown = load_masked %vr[%i] pad %pad : tile<16 x f32>
  %sum = add %inside, %outside : tile<16 x 32 x f32>
  for %p = %zero to %two {
    %next = add %i, %p : index
    %beyond = load_masked %vx[%next, %zero] pad %pad : tile<16 x 32 x f32>
    store_masked %vy, %beyond
  }
  store_masked %vy, %sum
  %row = reshape %unknown : tile<16 x 1 x f32>
  %rows = broadcast %row : tile<16 x 32 x f32>
  store_masked %vy, %rows
}
";
        let pass = PIPELINE.iter().find(|pass| pass.name == "unmask").unwrap();
        let instance = run(Instance::parse(source, &[]).unwrap(), pass);
        insta::assert_snapshot!(text::print(&instance));
    }

    #[test]
    fn messages_stay_where_they_are() {
        let body = "  %yes = constant true : bool
  %no = constant false : bool
  %t = load_masked %vx[%i] pad %pad : tile<4 x f32>
  %zero = constant 0 : index
  %end = extent n : index
  assert 0 \"gone\" %yes
  assert 1 \"stays\" %no
  print 2 \"same\" %t
  print 3 \"same\" %t
  for %p = %zero to %end {
    %u = load_masked %vx[%i] pad %pad : tile<4 x f32>
    print 4 \"in the loop {0}\" %u
  }
  if %no {
    print 5 \"never\"
  }";
        let text = after(&["fold", "cse", "licm", "cse-after-licm", "dce"], body);
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.contains(" = ") || line.starts_with("for"))
            .collect();
        assert_eq!(
            lines,
            [
                "assert 1 \"stays\" %no",
                "print 2 \"same\" %t",
                "print 3 \"same\" %t",
                "for %p = %zero to %end {",
                "print 4 \"in the loop {0}\" %t",
                "}"
            ]
        );
    }

    #[test]
    fn licm_moves_what_does_not_change() {
        let body = "  %t = splat %pad : tile<4 x f32>
  %zero = constant 0 : index
  %end = extent n : index
  %r = for %p = %zero to %end carry (%acc = %t) : tile<4 x f32> {
    %a = load_masked %vx[%i] pad %pad : tile<4 x f32>
    %b = load_masked %vx[%p] pad %pad : tile<4 x f32>
    %own = load_masked %vy pad %pad : tile<4 x f32>
    %c = exp %a : tile<4 x f32>
    %d = add %b, %c : tile<4 x f32>
    %f = add %d, %own : tile<4 x f32>
    %g = add %f, %acc : tile<4 x f32>
    yield %g
  }
  store_masked %vy, %r";
        insta::assert_snapshot!(after(&["licm"], body));
    }

    #[test]
    fn a_while_that_never_runs_is_gone_and_others_give_up_what_does_not_change() {
        let body = "  %no = constant false : bool
  %t = splat %s : tile<4 x f32>
  %u = while %no carry (%a = %t) : tile<4 x f32> {
    %b = add %a, %a : tile<4 x f32>
    yield %no, %b
  }
  %go = lt %s, %pad : bool
  %w = while %go carry (%c = %u) : tile<4 x f32> {
    %fixed = load_masked %vx[%i] pad %pad : tile<4 x f32>
    %own = load_masked %vy pad %pad : tile<4 x f32>
    %d = add %c, %fixed : tile<4 x f32>
    %e = add %d, %own : tile<4 x f32>
    yield %go, %e
  }
  store_masked %vy, %w";
        insta::assert_snapshot!(after(&["fold", "licm", "dce"], body));
    }

    /// A matmul with masks, of sizes that satisfy these conditions.
    fn matmul(conditions: &str) -> Instance {
        let source = format!(
            "kernel @matmul(%a: tensor<m x k x f32>, %b: tensor<k x n x f32>, %c: mut tensor<m x n x f32>){conditions} {{
  %va = partition %a [16, 32] : partition<m x k x f32, [16, 32]>
  %vb = partition %b [32, 48] : partition<k x n x f32, [32, 48]>
  %vc = partition %c [16, 48] : mut partition<m x n x f32, [16, 48]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : f32
  %zeros = splat %pad : tile<16 x 48 x f32>
  %zero = constant 0 : index
  %end = extent ceil_div(k, 32) : index
  %sum = for %p = %zero to %end carry (%acc = %zeros) : tile<16 x 48 x f32> {{
    %x = load_masked %va[%i, %p] pad %pad : tile<16 x 32 x f32>
    %y = load_masked %vb[%p, %j] pad %pad : tile<32 x 48 x f32>
    %next = mma %x, %y, %acc : tile<16 x 48 x f32>
    yield %next
  }}
  store_masked %vc, %sum
}}
"
        );
        Instance::parse(&source, &[]).unwrap()
    }

    #[test]
    fn a_matmul_of_whole_tiles_has_no_masks() {
        let all = " where \"m\": rem(m, 16) eq 0, \"n\": rem(n, 96) eq 0, \"k\": rem(k, 32) eq 0";
        let optimized = optimize(matmul(all));
        assert_eq!(crate::abi::KernelAbi::of(&optimized).checks, []);
        insta::assert_snapshot!(text::print(&optimized));
        let masks = |conditions| text::print(&optimize(matmul(conditions))).matches("_masked").count();
        assert_eq!(masks(""), 3);
        assert_eq!(masks(all), 0);
        // A size that fills no tile leaves the masks of its axis, and so does a tile of another extent.
        assert_eq!(masks(" where \"m\": rem(m, 16) eq 0, \"k\": rem(k, 32) eq 0"), 2);
        assert_eq!(masks(" where \"m\": rem(m, 8) eq 0, \"n\": rem(n, 48) eq 0, \"k\": rem(k, 32) eq 0"), 2);
        // Conditions that nothing satisfies: the kernel runs for no size, whatever is made of it.
        assert!(masks(" where \"m\": rem(m, 2) eq 1, \"n\": rem(m, 2) eq 0") <= 3);
    }

    #[test]
    fn a_trace_has_every_pass_that_changes_something() {
        let instance =
            matmul(" where \"m\": rem(m, 16) eq 0, \"n\": rem(n, 48) eq 0, \"k\": rem(k, 32) eq 0");
        let steps = trace(instance.clone());
        let names: Vec<&str> = steps.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["unmask"]);
        let last = steps.last().map(|(_, instance)| text::print(instance));
        assert_eq!(last, Some(text::print(&optimize(instance.clone()))));
        insta::assert_snapshot!(print_trace(&instance));
    }

    #[test]
    fn a_negative_extent_folds_to_what_it_reads_as() {
        let body = "  %zero = constant 0 : index
  %end = extent -6 : index
  %t = splat %pad : tile<4 x f32>
  for %p = %zero to %end {
    store_masked %vy, %t
  }";
        let folded = after(&["fold"], body);
        assert!(folded.contains("%end = constant 0 : index"), "{folded}");
    }

    /// Text has one NaN.
    #[test]
    fn bits_of_another_nan_stay_bits() {
        let body = |bits: u32| {
            format!(
                "  %bits = constant {bits} : u32
  %number = bitcast %bits : f32
  %t = splat %number : tile<4 x f32>
  store_masked %vy, %t"
            )
        };
        assert!(after(&["fold"], &body(0x7fc0_0000)).contains("%number = constant nan : f32"));
        assert!(after(&["fold"], &body(0x7fc0_0001)).contains("%number = bitcast %bits : f32"));
    }

    #[test]
    fn merged_operands_let_canonical_forms_apply() {
        let body = "  %a = load_masked %vx[%i] pad %pad : tile<4 x f32>
  %b = load_masked %vx[%i] pad %pad : tile<4 x f32>
  %least = min %a, %b : tile<4 x f32>
  store_masked %vy, %least";
        let names: Vec<&str> = PIPELINE.iter().map(|pass| pass.name).collect();
        insta::assert_snapshot!(after(&names, body));
    }
}
