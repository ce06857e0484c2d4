//! Loops and tiles whose ends and places are computed of others in many steps.

use super::*;
use crate::array::Elements;
use crate::ops::{BinaryOp, Literal};
use crate::{Array, interp};

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

/// The turns that `summing(body)` makes in each of so many blocks, as the evaluator runs it on 50 tiles.
fn turns_of(body: &str, blocks: usize) -> u64 {
    let instance = Instance::parse(&summing(body), &[]).unwrap();
    let ones = Array::full(DType::F32, &[200], Literal::Float(1.0));
    let mut arguments = [ones, Array::full(DType::F32, &[4 * blocks], Literal::Float(0.0))];
    interp::run(&instance, &mut arguments).unwrap();
    let Elements::Float(sums) = arguments[1].elements() else { unreachable!("sums of f32") };
    sums.iter().step_by(4).sum::<f64>() as u64
}

/// Of places in the grid in each format, which wrap there, and as an index again.
#[test]
fn integers_of_every_format_are_those_of_the_evaluator() {
    let formats = DType::ALL.iter().filter(|dtype| dtype.is_int());
    for (dtype, op) in formats.flat_map(|dtype| BinaryOp::ALL.iter().map(move |op| (dtype, op))) {
        if !op.domain().accepts(*dtype) {
            continue;
        }
        let (name, op) = (dtype.name(), op.name());
        // A cast to the same format is no op.
        let cast = if *dtype == DType::Index { "add %zero," } else { "cast" };
        let body = format!(
            "  %factor = constant 131 : index
  %fifty = constant 50 : index
  %c = constant 77 : {name}
  %wide = mul %i, %factor : index
  %less = sub %wide, %factor : index
  %narrow = {cast} %less : {name}
  %made = {op} %narrow, %c : {name}
  %other = {op} %c, %narrow : {name}
  %both = xor %made, %other : {name}
  %number = {cast} %both : index
  %end = rem %number, %fifty : index\n"
        );
        let totals = totals(&summing(&body), &[], &[&[200], &[4 * 40]]);
        assert_eq!((totals.loading_turns, totals.is_exact()), (turns_of(&body, 40), true), "{op} {name}");
    }
}

/// Beyond 255 a byte begins at 0 again; in a closed form no tile beyond 255 would lie in `x`.
#[test]
fn an_index_that_was_a_byte_wraps() {
    let source = "\
kernel @bytes(%x: tensor<n x f32>, %y: mut tensor<m x f32>) {
  %vx = partition %x [4] : partition<n x f32, [4]>
  %vy = partition %y [4] : mut partition<m x f32, [4]>
  %i = block_index %vy : index
  %byte = cast %i : u8
  %at = cast %byte : index
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%at] pad %pad : tile<4 x f32>
  store_masked %vy, %t
}
";
    let totals = totals(source, &[], &[&[400], &[4 * 600]]);
    let tiles = (0..600).filter(|i| i % 256 < 100).count() as u64;
    assert_eq!((traffic(&totals, "x"), totals.is_exact()), ([16 * tiles, 0], true));
}

/// A generator of random numbers as people write it, in numbers that wrap.
#[test]
fn random_numbers_wrap_as_they_do_in_the_kernel() {
    let mut body = String::from(
        "  %thirteen = constant 13 : u64
  %seven = constant 7 : u64
  %seventeen = constant 17 : u64
  %start = constant 88172645463325252 : u64
  %ten = constant 10 : u64
  %place = cast %i : u64
  %h0 = add %place, %start : u64\n",
    );
    for round in 0..10 {
        body += &format!(
            "  %a{round} = shl %h{round}, %thirteen : u64
  %b{round} = xor %h{round}, %a{round} : u64
  %c{round} = shr %b{round}, %seven : u64
  %d{round} = xor %b{round}, %c{round} : u64
  %e{round} = shl %d{round}, %seventeen : u64
  %h{} = xor %d{round}, %e{round} : u64\n",
            round + 1
        );
    }
    body += "  %last = rem %h10, %ten : u64\n  %end = cast %last : index\n";
    let turns = |i: u64| {
        let rounds = (0..10).fold(i + 88_172_645_463_325_252, |mut h: u64, _| {
            h ^= h << 13;
            h ^= h >> 7;
            h ^ h << 17
        });
        rounds % 10
    };
    let totals = totals(&summing(&body), &[], &[&[200], &[4 * 1000]]);
    assert_eq!((totals.loading_turns, totals.is_exact()), ((0..1000).map(turns).sum(), true));
}

/// 100 / 64 · 64 is 100 of floats, and 64 of integers: nobody says either.
#[test]
fn ends_that_floats_give_are_estimates() {
    let body = "  %m = extent m : index
  %wide = cast %m : f32
  %n = extent n : index
  %by = cast %n : f32
  %part = div %wide, %by : f32
  %whole = mul %part, %by : f32
  %end = cast %whole : index\n";
    let totals = totals(&summing(body), &[], &[&[64], &[100]]);
    assert!(matches!(totals.estimates[..], [Estimate::Turns(_), Estimate::Indices(_)]), "{totals:?}");
}

/// An extent below 0 reads as 0, also where a number is added to it, and one by which 0 divides does.
#[test]
fn extents_below_zero_are_zero() {
    for extent in ["n - 300", "floor_div(m, n - 200)"] {
        let body =
            format!("  %none_left = extent {extent} : index\n  %end = add %none_left, %three : index\n");
        let totals = totals(&summing(&body), &[], &[&[200], &[8]]);
        assert_eq!((totals.loading_turns, turns_of(&body, 2), totals.is_exact()), (6, 6, true), "{extent}");
    }
}

/// What an index before the first is, without a sign, is behind all tensors, and no turn leads from there to the end.
#[test]
fn turns_from_before_the_first_are_none() {
    let body = "  %one = constant 1 : index
  %end = sub %i, %one : index\n";
    // The first block would go on for more turns than anybody waits.
    let endless = totals(&summing(body), &[], &[&[200], &[4 * 20]]);
    assert_eq!(endless.estimates, [Estimate::TooMany]);
    let body = "  %end = add %zero, %three : index
  %one = constant 1 : index
  %from = sub %i, %one : index\n";
    let source = summing(body).replace("%p = %zero", "%p = %from");
    let few = totals(&source, &[], &[&[200], &[4 * 5]]);
    assert_eq!((few.loading_turns, few.is_exact()), (3 + 2 + 1, true));
}

/// The index of a tile that no number holds is an estimate, too.
#[test]
fn an_index_that_nobody_knows_is_an_estimate() {
    let source = "\
kernel @far(%x: tensor<n x f32>, %y: mut tensor<m x f32>) {
  %vx = partition %x [4] : partition<n x f32, [4]>
  %vy = partition %y [4] : mut partition<m x f32, [4]>
  %i = block_index %vy : index
  %far = extent n * n * n * n : index
  %at = PLACE
  %pad = constant 0.0 : f32
  %t = load_masked %vx[%at] pad %pad : tile<4 x f32>
  store_masked %vy, %t
}
";
    for place in ["add %far, %i : index", "rem %far, %i : index", "add %far, %far : index"] {
        let totals = totals(&source.replace("PLACE", place), &[], &[&[1 << 20], &[8]]);
        assert_eq!(totals.estimates, [Estimate::TooMany], "{place}");
    }
}
