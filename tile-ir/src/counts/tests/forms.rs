//! Loops and tiles whose ends and places are computed of others in many steps.

use super::*;

/// Ten rounds of a generator of random numbers below 1024, of `%i`, that use each number three times.
fn rounds() -> String {
    let mut body = String::from("  %most = constant 1023 : index\n  %five = constant 5 : index\n");
    let mut last = String::from("%i");
    for round in 0..10 {
        for (step, op) in ["shl", "shr", "shl"].into_iter().enumerate() {
            let next = format!("%h{round}_{step}");
            body += &format!(
                "  {next}_moved = {op} {last}, %five : index
  {next}_wide = xor {last}, {next}_moved : index
  {next} = and {next}_wide, %most : index\n"
            );
            last = next;
        }
    }
    body + &format!("  %end = add {last}, %zero : index\n")
}

fn round(i: u64) -> u64 {
    (0..10).fold(i, |h, _| {
        let h = (h ^ h << 5) & 1023;
        let h = (h ^ h >> 5) & 1023;
        (h ^ h << 5) & 1023
    })
}

/// Each number is a form once: a tree of these would have two to the 30th, and gone through for each block.
#[test]
fn numbers_that_are_used_twice_are_computed_once() {
    let totals = totals(&summing(&rounds()), &[], &[&[100], &[4 * 5000]]);
    let turns = (0..5000).map(round);
    assert!(totals.is_exact(), "{:?}", totals.estimates);
    assert_eq!(totals.loading_turns, turns.clone().sum::<u64>());
    assert_eq!(traffic(&totals, "x"), [turns.map(|turns| 16 * turns.min(25)).sum(), 0]);
}

/// The tile's index is the block's times 2³⁰, which only the first block has inside.
#[test]
fn an_index_that_is_doubled_often_has_as_many_forms_as_ops() {
    let doubled = |number: usize| format!("  %a{number} = add %a{0}, %a{0} : index\n", number - 1);
    let source = format!(
        "\
kernel @doubled(%x: tensor<n x f32>, %y: mut tensor<m x f32>) {{
  %vx = partition %x [4] : partition<n x f32, [4]>
  %vy = partition %y [4] : mut partition<m x f32, [4]>
  %a0 = block_index %vy : index
{}  %pad = constant 0.0 : f32
  %t = load_masked %vx[%a30] pad %pad : tile<4 x f32>
  store_masked %vy, %t
}}
",
        (1..=30).map(doubled).collect::<String>()
    );
    let totals = totals(&source, &[], &[&[100], &[40]]);
    assert_eq!((traffic(&totals, "x"), totals.is_exact()), ([16, 0], true));
}
