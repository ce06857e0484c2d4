//! Target-free rewrites. [`PIPELINE`] is their order; each leaves a verified instance.

mod cse;
mod dce;
mod fold;
mod licm;
mod prefetch;
mod unmask;

use crate::kernel::{Kernel, ValueId};
use crate::specialize::Instance;
use std::collections::HashMap;

/// A pass: its name for dumps, timing and tests, and what it does.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The name.
    pub name: &'static str,
    /// The rewrite.
    pub rewrite: fn(&mut Kernel),
}

/// Every target runs these, in this order: constants first, so that equal ones can be merged; then equal
/// ops, so that fewer are moved; then what doesn't change out of loops; then masks that hide nothing; then loops
/// ask for what they read later; at last what nobody uses goes.
pub const PIPELINE: &[Pass] = &[
    Pass { name: "fold", rewrite: fold::run },
    Pass { name: "cse", rewrite: cse::run },
    Pass { name: "licm", rewrite: licm::run },
    Pass { name: "cse-after-licm", rewrite: cse::run },
    Pass { name: "unmask", rewrite: unmask::run },
    Pass { name: "prefetch", rewrite: prefetch::run },
    Pass { name: "dce", rewrite: dce::run },
];

/// Runs [`PIPELINE`].
///
/// # Panics
/// If a pass breaks an invariant of the IR, which is a bug.
pub fn optimize(instance: Instance) -> Instance {
    PIPELINE.iter().fold(instance, run)
}

/// Runs one pass.
///
/// # Panics
/// If the pass breaks an invariant of the IR, which is a bug.
pub fn run(instance: Instance, pass: &Pass) -> Instance {
    instance.rewrite(pass.name, pass.rewrite)
}

/// Replaces uses of values by others.
fn replace_uses(kernel: &mut Kernel, replacement: &HashMap<ValueId, ValueId>) {
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
    use crate::{specialize, text, verify};

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
        let kernel = verify(text::parse(&source).unwrap()).unwrap_or_else(|errors| panic!("{errors:?}"));
        let mut instance = specialize(&kernel, &[]).unwrap();
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
kernel @k(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [4] : partition<n x f32, [4]>
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
        let kernel = verify(text::parse(source).unwrap()).unwrap();
        let run_pass = |name: &str, instance| {
            run(instance, PIPELINE.iter().find(|pass| pass.name == name).expect("a pass"))
        };
        let hoisted = run_pass("licm", specialize(&kernel, &[]).unwrap());
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
        let kernel = verify(text::parse(source).unwrap()).unwrap_or_else(|errors| panic!("{errors:?}"));
        let pass = PIPELINE.iter().find(|pass| pass.name == "unmask").unwrap();
        let instance = run(specialize(&kernel, &[]).unwrap(), pass);
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
}
