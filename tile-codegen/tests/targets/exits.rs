//! Loops over products in branches, as early exits make them, on simulated threads: a producer takes the branches that
//! consumers take, and the rings go on where they were left.

use crate::budgets::instance_in;
use crate::pipelines::{check, matmul, online_attention};
use crate::stacks::{FOUR, PLAIN, WHICH};
use crate::support::{instance, sample};
use tile_ir::gpu::schedule;
use tile_ir::{DType, TargetDesc, Variant, passes};
use tile_test_edit::Edit;

/// The text with its loop and what follows that in a branch.
fn behind_exit(source: &str, loop_at: &str, condition: &str) -> String {
    let (before, inside) = source.split_once(loop_at).unwrap();
    let inside = inside.strip_suffix("}\n").unwrap();
    format!(
        "{before}{condition}  if %some {{\n{loop_at}{inside}    yield\n  }} else {{\n    yield\n  }}\n}}\n"
    )
}

/// Kernels of language models, as users write them.
const SERVING: &str = include_str!("../../../tests/kernels/serving.rs");

/// The ways in which the products of experts are written that some rows have none of.
#[test]
fn kernels_with_exits_have_producers() {
    let tiles = [("BM", 64), ("BN", 64), ("BK", 64)];
    let target = TargetDesc::named("sm_90a").unwrap();
    for name in ["grouped_or_not", "grouped_if", "grouped_turns"] {
        let instance = Variant::Aligned.of(&instance_in(SERVING, name, None, &tiles)).unwrap();
        let scheduled = schedule(passes::optimize(instance), target, None);
        assert_eq!(scheduled.remarks(), [], "{name}");
        assert!(scheduled.shares_grid() && !scheduled.pipelines().is_empty(), "{name}");
        let mut stores = scheduled.walk().into_iter().filter(|&op| scheduled.op(op).op.is_store());
        assert!(stores.all(|op| scheduled.pipelines().store(op).is_some()), "{name}");
    }
}

const SUM: &str = "  %sum = for";

/// That the block has a matrix, by the element that says which.
const HAS_ONE: &str = "  %some = gt %number, %none : bool\n";

/// The same, with one block in three that has nothing to do wherever it stands.
const IN_TWO_OF_THREE: &str = "  %three = constant 3 : index
  %one = constant 1 : index
  %place = add %i, %j : index
  %rest = rem %place, %three : index
  %some = ne %rest, %one : bool
";

/// What a block has had to do with before isn't written, where there is nothing to do.
#[test]
fn blocks_without_a_matrix_do_nothing() {
    for which in [WHICH, [-1, -1, 3, 2, -1], [-1; 5], [0, 1, 2, 3, 0]] {
        for condition in [HAS_ONE, IN_TWO_OF_THREE] {
            let source = behind_exit(&PLAIN.source(), SUM, condition);
            check(&source, &[], &PLAIN.arguments(&FOUR, &which), 256, 0.0);
        }
    }
}

/// The sums of a branch are stored behind it.
#[test]
fn sums_that_a_branch_gives() {
    let source = PLAIN
        .source()
        .edit(SUM, &format!("{HAS_ONE}  %sum = if %some : tile<64 x 64 x f32> {{\n  %product = for"))
        .edit("  store_masked", "    yield %product\n  } else {\n    yield %sums\n  }\n  store_masked");
    check(&source, &[], &PLAIN.arguments(&FOUR, &WHICH), 256, 0.0);
}

/// `let turns = if which < 0 { 0 } else { k.tiles() };`
#[test]
fn turns_that_a_branch_decides() {
    let turns = "  %turns = if %some : index {\n    yield %end\n  } else {\n    yield %0\n  }\n";
    let source = PLAIN
        .source()
        .edit(SUM, &format!("{HAS_ONE}{turns}{SUM}"))
        .edit("%p = %0 to %end", "%p = %0 to %turns");
    check(&source, &[], &PLAIN.arguments(&FOUR, &WHICH), 256, 0.0);
}

/// The lines of a loop over products, its names with another end.
fn renamed(product: &str, suffix: &str) -> String {
    let names = ["%sum ", "%acc", "%p", "%l", "%r", "%next"];
    let renamed = names.iter().fold(product.to_owned(), |text, name| {
        let (name, space) = (name.trim_end(), if name.ends_with(' ') { " " } else { "" });
        let ends = [" ", ",", "]", ")", "\n"].iter();
        ends.filter(|end| space.is_empty() || **end == space)
            .fold(text, |text, end| text.replace(&format!("{name}{end}"), &format!("{name}{suffix}{end}")))
    });
    assert_ne!(renamed, product);
    renamed
}

/// Each way has a ring of its own, of which the one that isn't taken stays as it is.
#[test]
fn both_ways_have_a_ring() {
    let source = PLAIN.source();
    let (before, rest) = source.split_once(SUM).unwrap();
    let (product, after) = rest.split_once("  store_masked").unwrap();
    let product = format!("{SUM}{product}");
    let (one, other) = (renamed(&product, "_a"), renamed(&product.edit("%0 to %end", "%last to %end"), "_b"));
    let source = format!(
        "{before}{HAS_ONE}  %last = constant 1 : index\n  %sum = if %some : tile<64 x 64 x f32> {{\n{one}    \
         yield %sum_a\n  }} else {{\n{other}    yield %sum_b\n  }}\n  store_masked{after}"
    )
    .edit("  %m = view", "  %least = constant 0 : i32\n  %m = view")
    .edit(
        "%at = cast %number",
        "%zeroth = constant 0 : i32\n  %kept = max %number, %zeroth : i32\n  %at = cast %kept",
    );
    let instance = passes::optimize(instance(&source, &[]));
    let scheduled = schedule(instance, TargetDesc::named("sm_90a").unwrap(), None);
    assert_eq!(scheduled.pipelines().all().count(), 2);
    check(&source, &[], &PLAIN.arguments(&FOUR, &WHICH), 256, 0.0);
}

/// A branch within a loop around the pipeline's: pages that a turn looks up, some of which aren't there.
#[test]
fn branches_in_loops() {
    let source = PLAIN.source().edit("  %m = view %w select 0 at %at : tensor<k x n x bf16>\n", "").edit(
        "  %vm = partition %m [64, 64] : partition<k x n x bf16, [64, 64]>\n",
        "  %vm = partition %w [1, 64, 64] : partition<e x k x n x bf16, [1, 64, 64]>\n",
    );
    let (before, rest) = source.split_once(SUM).unwrap();
    let (product, after) = rest.split_once("  store_masked").unwrap();
    let product = format!("  %inner = for{product}").edit("%acc = %sums", "%acc = %outer").edit(
        "    %r = load_masked %vm[%p, %j] pad %pad : tile<64 x 64 x bf16>\n",
        "    %q = load_masked %vm[%there, %p, %j] pad %pad : tile<1 x 64 x 64 x bf16>\n    \
         %r = reshape %q : tile<64 x 64 x bf16>\n",
    );
    let source = format!(
        "{before}  %pages = constant 5 : index
  %sum = for %t = %0 to %pages carry (%outer = %sums) : tile<64 x 64 x f32> {{
    %f = load_masked %ve[%t] pad %none : tile<1 x i32>
    %page = item %f : i32
    %there = cast %page : index
    %some = gt %page, %none : bool
    %added = if %some : tile<64 x 64 x f32> {{
{product}    yield %inner
    }} else {{
    yield %outer
    }}
    yield %added
  }}
  store_masked{after}"
    );
    check(&source, &[], &PLAIN.arguments(&FOUR, &WHICH), 256, 0.0);
}

/// Blocks of a pair take a branch together where its condition doesn't tell them apart.
#[test]
fn pairs_take_branches() {
    let source = matmul([DType::BF16, DType::F32], "mk", "kn", [64, 64, 64]);
    let by_rows = "  %first = constant 1 : index\n  %some = ne %i, %first : bool\n";
    let by_columns = by_rows.edit("%i", "%j");
    for condition in [by_rows, &by_columns] {
        let source = behind_exit(&source, SUM, condition);
        let arguments = [
            sample(DType::BF16, &[200, 328], 1),
            sample(DType::BF16, &[328, 200], 2),
            sample(DType::F32, &[200, 200], 3),
        ];
        check(&source, &[], &arguments, 256, 0.0);
    }
}

/// What goes on after the loop stays in the branch.
#[test]
fn late_products_behind_an_exit() {
    let condition =
        "  %two = constant 2 : index\n  %odd = rem %i, %two : index\n  %some = ne %odd, %0 : bool\n";
    for keys in [0, 64, 640] {
        let source = behind_exit(&online_attention(128, 64, 64), "  %sum, %last, %all = for", condition);
        let arguments = [
            sample(DType::BF16, &[392, 64], 1),
            sample(DType::BF16, &[keys, 64], 2),
            sample(DType::BF16, &[keys, 64], 3),
            sample(DType::F32, &[392, 64], 4),
            sample(DType::F32, &[392, 1], 5),
        ];
        check(&source, &[], &arguments, 384, 1e-2);
    }
}
