//! Every wait, arrival, fence, commit and allocation of products in tensor memory is taken away in turn, and missed.

use super::mutations::{Case, RUNS, Shapes, carried, every_one_is_missed_on, replace_uses, run_on};
use crate::simt::*;

const ON: &str = "sm_100a";

/// A product in tiles of 128×64, stored by threads, or with whole lines by copies.
fn matmul(columns: usize) -> String {
    super::mutations::MATMUL.replace("64", "128").replace("96", &columns.to_string())
}

const NARROW: Shapes = |depth| vec![vec![384, depth], vec![depth, 16], vec![384, 16]];
const WIDE: Shapes = |depth| vec![vec![384, depth], vec![depth, 64], vec![384, 64]];

#[test]
fn nothing_can_be_left_out_of_a_product() {
    // Nothing is stored through shared memory, and then through panels.
    let [narrow, wide] = [(matmul(16), NARROW), (matmul(64), WIDE)]
        .map(|(source, shapes)| every_one_is_missed_on(ON, (&source, shapes)));
    assert_eq!([narrow, wide], [37, 43]);
}

/// Both blocks of a pair copy to the stages that one leaves.
#[test]
fn nothing_can_be_left_out_of_pairs() {
    let source = matmul(64).replacen(" {\n", " pairs 0 {\n", 1);
    let shapes: Shapes = |depth| vec![vec![768, depth], vec![depth, 64], vec![768, 64]];
    every_one_is_missed_on(ON, (&source, shapes));
}

/// The stages and parities with which a tile left the rings of tiles and of sums, in each role that goes round them.
#[test]
fn stages_of_the_tile_before_are_missed() {
    let source = matmul(64);
    let case: Case<'_> = (&source, WIDE);
    let mut count = 0;
    run_on(ON, case, RUNS[0], &mut |ir| count = carried(ir).len()).unwrap_or_else(|fault| panic!("{fault}"));
    let is_missed = |number: &usize| {
        let begin_anew = &mut |ir: &Ir<'_>| {
            let phi = carried(ir)[*number];
            replace_uses(phi.as_instruction(), ir.context.i32_type().const_zero().into());
        };
        RUNS[..2].iter().any(|&how| run_on(ON, case, how, begin_anew).is_err())
    };
    // Of tiles: the producer and the multiplier. Of sums: the multiplier and the consumers.
    assert_eq!((count, (0..count).filter(is_missed).count()), (8, 8));
}
