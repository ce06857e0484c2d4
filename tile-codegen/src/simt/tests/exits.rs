//! What producer and consumers say to each other where both take a branch around the loop, or leave it out: nothing of it
//! can be taken away, and the ring goes on where the tile before left it, whether that was the last one or not.

use super::mutations::{
    ATTENTION, Case, MATMUL, RUNS, Shapes, carried, every_one_is_missed, replace_uses, run,
};
use crate::simt::*;
use tile_test_edit::Edit;

/// Of four blocks of rows the second and the third have nothing to do.
const OF_FOUR_BLOCKS: Shapes = |depth| vec![vec![256, depth], vec![depth, 96], vec![256, 96]];

/// Whether a block has something to do, before `behind`.
fn with_condition(source: &str, behind: &str) -> String {
    let condition = "  %one = constant 1 : index
  %two = constant 2 : index
  %odd = add %i, %one : index
  %of_pair = div %odd, %two : index
  %some = ne %of_pair, %one : bool
";
    source.edit(behind, &format!("{condition}{behind}"))
}

/// As an early exit is: the loop and the store stand in the branch.
fn with_exit() -> String {
    let source = with_condition(MATMUL, "  %sum = for");
    let (before, inside) = source.split_once("  %sum = for").expect("the kernel has a loop");
    let inside = inside.strip_suffix("}\n").expect("a kernel ends");
    format!("{before}  if %some {{\n  %sum = for{inside}    yield\n  }} else {{\n    yield\n  }}\n}}\n")
}

/// The sums are what a branch gives, and all blocks store them.
fn with_sums_of_a_branch() -> String {
    let source = with_condition(MATMUL, "  %sum = for");
    source
        .edit("  %sum = for", "  %sum = if %some : tile<64 x 96 x f32> {\n  %product = for")
        .edit("  store_masked", "    yield %product\n  } else {\n    yield %zero\n  }\n  store_masked")
}

/// A branch says how many turns there are.
fn with_turns_of_a_branch() -> String {
    let turns = "  %turns = if %some : index {\n    yield %end\n  } else {\n    yield %0\n  }\n";
    let source = with_condition(MATMUL, "  %sum = for").edit("  %sum = for", &format!("{turns}  %sum = for"));
    source.edit("%p = %0 to %end", "%p = %0 to %turns")
}

#[test]
fn nothing_can_be_left_out_behind_an_exit() {
    every_one_is_missed((&with_exit(), OF_FOUR_BLOCKS));
}

#[test]
fn nothing_can_be_left_out_of_sums_of_a_branch() {
    every_one_is_missed((&with_sums_of_a_branch(), OF_FOUR_BLOCKS));
}

#[test]
fn nothing_can_be_left_out_of_turns_that_a_branch_decides() {
    every_one_is_missed((&with_turns_of_a_branch(), OF_FOUR_BLOCKS));
}

/// Whether there is something to do is an element that producer and consumers load, each for itself. Consumers give it to
/// each other at barriers, which would do for the first one of panels, too: tiles are stored by threads.
#[test]
fn nothing_can_be_left_out_where_an_element_decides() {
    let loaded = "  %number = load %vw[%0] : tile<1 x i32>\n";
    let gathered = "  %nothing = constant 0 : i32\n  %row = cast %0 : i64\n  %place = splat %row : tile<1 x i64>\n  \
                    %number = gather_load %w[%place] pad %nothing : tile<1 x i32>\n";
    for number in [loaded, gathered] {
        let source = with_exit()
            .edit("96", "48")
            .edit("%c: mut", "%w: tensor<r x i32>, %c: mut")
            .edit(
                "  %vb = partition",
                "  %vw = partition %w [1] : partition<r x i32, [1]>\n  %vb = partition",
            )
            .edit(
                "  %some = ne %of_pair, %one : bool\n",
                &format!(
                    "{number}  %element = item %number : i32\n  %which = cast %element : index\n  \
                     %other = add %which, %one : index\n  %some = ne %of_pair, %other : bool\n"
                ),
            );
        let shapes: Shapes = |depth| vec![vec![256, depth], vec![depth, 48], vec![4], vec![256, 48]];
        every_one_is_missed((&source, shapes));
    }
}

/// A product that is done a turn later, and what it leaves after the loop, in a branch.
#[test]
fn nothing_can_be_left_out_of_a_late_product_behind_an_exit() {
    let source = with_condition(ATTENTION, "  %sum, %last = for");
    let (before, inside) = source.split_once("  %sum, %last = for").expect("the kernel has a loop");
    let inside = inside.strip_suffix("}\n").expect("a kernel ends");
    let branch = "    yield\n  } else {\n    yield\n  }\n}\n";
    let source = format!("{before}  if %some {{\n  %sum, %last = for{inside}{branch}")
        .edit("%one = constant 1.0", "%whole = constant 1.0")
        .edit("splat %one :", "splat %whole :");
    every_one_is_missed((&source, |keys| vec![vec![keys, 64], vec![keys, 96], vec![256, 96]]));
}

/// Of 10 turns of the first tile, in a ring of 8 stages, the last tile needs the stage and the parity: the tiles between
/// have no turns.
#[test]
fn a_ring_that_begins_anew_behind_a_branch_is_missed() {
    for source in [with_exit(), with_sums_of_a_branch()] {
        let case: Case<'_> = (&source, OF_FOUR_BLOCKS);
        let mut count = 0;
        run(case, RUNS[0], &mut |ir| count = carried(ir).len()).unwrap_or_else(|fault| panic!("{fault}"));
        assert!(count >= 4, "the producer's and the consumers'");
        let begins_anew = |number: usize| {
            let outcomes = RUNS[..2].iter().map(|&how| {
                run(case, how, &mut |ir: &Ir<'_>| {
                    let phi = carried(ir)[number];
                    replace_uses(phi.as_instruction(), ir.context.i32_type().const_zero().into());
                })
            });
            outcomes.into_iter().any(|outcome| outcome.is_err())
        };
        let missed = (0..count).filter(|&number| begins_anew(number)).count();
        assert_eq!(missed, count, "{source}");
    }
}
