//! Tiles that are loaded before a loop for all its turns, and lie in the ring of what is around that: a loop, a branch, the
//! place of a tile in the grid, the kernel. What is executed again has two stages there, so that the next one's tile comes
//! while this one's is read.

use crate::pipelines::check;
use crate::support::{instance, sample};
use tile_ir::gpu::schedule;
use tile_ir::{Array, DType, TargetDesc, passes};
use tile_test_edit::Edit;

/// c = Σ a·b of the tiles of a row of a, and one tile of b.
const ONE_B: &str = "\
kernel @one(%a: tensor<m x k x bf16>, %b: tensor<d x n x bf16>, %c: mut tensor<m x n x f32>) where \"k % 8 == 0\": rem(k, 8) eq 0, \"n % 8 == 0\": rem(n, 8) eq 0 {
  %va = partition %a [64, 32] : partition<m x k x bf16, [64, 32]>
  %vb = partition %b [32, 96] : partition<d x n x bf16, [32, 96]>
  %vc = partition %c [64, 96] : mut partition<m x n x f32, [64, 96]>
  %0 = constant 0 : index
  %1 = constant 1 : index
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<64 x 96 x f32>
  %end = extent ceil_div(k, 32) : index
  %tb = load_masked %vb[%0, %j] pad %pad : tile<32 x 96 x bf16>
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<64 x 96 x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<64 x 32 x bf16>
    %next = mma %ta, %tb, %acc : tile<64 x 96 x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

const LOAD_B: &str = "  %tb = load_masked %vb[%0, %j] pad %pad : tile<32 x 96 x bf16>\n";

fn arguments(turns: usize) -> [Array; 3] {
    [
        sample(DType::BF16, &[136, 32 * turns], 1),
        sample(DType::BF16, &[56, 200], 2),
        sample(DType::F32, &[136, 200], 3),
    ]
}

/// The stages of the rings of a kernel, outer ones first.
fn stages(source: &str) -> Vec<u64> {
    let target = TargetDesc::named("sm_90a").unwrap();
    let scheduled = schedule(passes::optimize(instance(source, &[])), target, None);
    assert!(scheduled.remarks().is_empty(), "{:?}", scheduled.remarks());
    scheduled.pipelines().all().map(|(_, pipeline)| pipeline.stages).collect()
}

/// What a kernel with rings of so many stages gives, for no turn, one, and more than there are stages.
fn check_rings(source: &str, expected: &[u64]) {
    assert_eq!(stages(source), expected, "{source}");
    [0, 1, 10].into_iter().for_each(|turns| check(source, &[], &arguments(turns), 256, 0.0));
}

#[test]
fn right_factors_of_all_turns() {
    check_rings(ONE_B, &[2, 8]);
    // Sums that are looked at in every turn.
    let used = "    %more = add %next, %next : tile<64 x 96 x f32>\n    yield %more\n";
    let used = ONE_B.edit("    yield %next\n", used);
    assert_eq!(stages(&used), [2, 8]);
    check(&used, &[], &arguments(3), 256, 0.0);
}

/// Nothing is loaded in turns: there is no ring of the loop.
#[test]
fn both_factors_of_all_turns() {
    let load = "    %ta = load_masked %va[%i, %p] pad %pad : tile<64 x 32 x bf16>\n";
    let before = load.trim_start().edit("%p]", "%0]");
    let both = ONE_B.edit(load, "").edit(LOAD_B, &format!("{LOAD_B}  {before}"));
    assert_eq!(stages(&both), [2]);
    // That there is a tile to load, as there isn't where k is 0, is the kernel's to know.
    [1, 10].into_iter().for_each(|turns| check(&both, &[], &arguments(turns), 256, 0.0));
}

/// Two loops read the tile one after the other: the first waits for it, the second leaves it.
#[test]
fn two_loops_read_one_tile() {
    let (before, rest) = ONE_B.split_once("  %sum = for").unwrap();
    let (product, after) = rest.split_once("  store_masked").unwrap();
    let first = format!("  %sum = for{product}");
    let names = ["%sum", "%acc", "%ta", "%next", "%p ", "%p]"];
    let second = names.iter().fold(first.clone(), |text, name| {
        let (letters, end) = name.split_at(name.len() - usize::from(name.ends_with([' ', ']'])));
        text.edit(name, &format!("{letters}_b{end}"))
    });
    let second = second.edit("= %zero)", "= %sum)");
    let source = format!("{before}{first}{second}  store_masked{}", after.edit("%sum", "%sum_b"));
    assert_eq!(stages(&source)[0], 2);
    [0, 1, 10].into_iter().for_each(|turns| check(&source, &[], &arguments(turns), 256, 0.0));
}

/// A turn of the loop around it loads the tile, and another tile each time.
#[test]
fn loops_within_loops() {
    let (before, rest) = ONE_B.split_once(LOAD_B).unwrap();
    let (product, after) = rest.split_once("  store_masked").unwrap();
    let inner = product.edit("%sum = for", "%inner = for").edit("= %zero)", "= %all)");
    let inner: String = inner.lines().map(|line| format!("  {line}\n")).collect();
    let load = LOAD_B.edit("[%0,", "[%h,");
    let source = format!(
        "{before}  %two = constant 2 : index
  %sum = for %h = %0 to %two carry (%all = %zero) : tile<64 x 96 x f32> {{
  {load}{inner}    yield %inner
  }}
  store_masked{after}"
    );
    check_rings(&source, &[2, 8]);
}

/// Every block has tiles for which it loads something, and others.
#[test]
fn branches_around_loads() {
    let (before, rest) = ONE_B.split_once(LOAD_B).unwrap();
    let (product, after) = rest.split_once("  store_masked").unwrap();
    let product = product.edit("%sum = for", "%product = for");
    let source = format!(
        "{before}  %some = lt %j, %1 : bool
  %sum = if %some : tile<64 x 96 x f32> {{
  {LOAD_B}{product}    yield %product
  }} else {{
    yield %zero
  }}
  store_masked{after}"
    );
    check_rings(&source, &[2, 8]);
}

/// One tile for all the places of the grid that a block has.
#[test]
fn kernels_load_a_tile_once() {
    let (before, rest) = ONE_B.split_once("  %i, %j = block_index").unwrap();
    let (names, rest) = rest.split_once('\n').unwrap();
    let (constants, rest) = rest.split_once(LOAD_B).unwrap();
    let body = rest.strip_suffix("}\n").unwrap();
    let load = LOAD_B.edit("%j]", "%0]");
    let source = format!(
        "{before}{constants}{load}  tiles %vc row_major {{\n  %i, %j = block_index{names}\n{body}  }}\n}}\n"
    );
    // It isn't loaded again, so that a second stage would wait for nothing.
    check_rings(&source, &[1, 8]);
}
