//! Loops so deep, and places that so many of them decide, that not every turn is gone through.

use super::*;

/// A kernel of so many loops within each other, each of which goes as far as the one around it has gone.
fn triangles(depth: usize) -> String {
    let loops = (0..depth).map(|number| {
        let end = if number == 0 { String::from("%n") } else { format!("%p{}", number - 1) };
        format!("  %s{number} = for %p{number} = %zero to {end} carry (%a{number} = ")
            + &if number == 0 { String::from("%none") } else { format!("%a{}", number - 1) }
            + ") : tile<1 x f32> {\n"
    });
    let ends = (0..depth).rev().map(|number| {
        let inner = if number + 1 == depth { String::from("%u") } else { format!("%s{}", number + 1) };
        format!("  yield {inner}\n  }}\n")
    });
    format!(
        "\
kernel @triangles(%x: tensor<n x f32>, %y: mut tensor<1 x f32>) {{
  %vx = partition %x [1] : partition<n x f32, [1]>
  %vy = partition %y [1] : mut partition<1 x f32, [1]>
  %n = extent n : index
  %zero = constant 0 : index
  %pad = constant 0.0 : f32
  %none = splat %pad : tile<1 x f32>
{}  %t = load_masked %vx[%p0] pad %pad : tile<1 x f32>
  %u = add %a{}, %t : tile<1 x f32>
{}  store_masked %vy, %s0
}}
",
        loops.collect::<String>(),
        depth - 1,
        ends.collect::<String>()
    )
}

/// In how many ways so many numbers below `n` are chosen: the turns of the innermost loop.
fn choices(n: u64, depth: u64) -> u64 {
    (0..depth).fold(1, |choices, taken| choices * (n - taken) / (taken + 1))
}

#[test]
fn few_turns_of_deep_loops_are_exact() {
    for depth in 1..=6 {
        let totals = totals(&triangles(depth), &[], &[&[14], &[1]]);
        let turns = choices(14, depth as u64);
        assert_eq!((totals.loading_turns, totals.is_exact()), (turns, true), "{depth}");
    }
}

/// Sixteen turns of each loop would be more than anybody waits for. The fewer stand for all, the less of a sum of high powers
/// they find: of ten loops it is the order of magnitude.
#[test]
fn few_turns_of_each_loop_stand_for_those_of_deep_ones() {
    for (depth, part) in [(4, 0.01), (5, 0.01), (6, 0.05), (7, 0.15), (8, 0.3), (9, 0.5), (10, 0.75)] {
        let totals = totals(&triangles(depth), &[], &[&[200], &[1]]);
        let exact = choices(200, depth as u64);
        let off = totals.loading_turns as f64 / exact as f64 - 1.0;
        assert!(off.abs() < part, "{depth}: {} of {exact}, {off}", totals.loading_turns);
        assert_eq!(totals.estimates, [Estimate::TooMany], "{depth}");
    }
}

/// The tiles of rows of images that lie one behind the other, each with its neighbours: all of six variables decide which.
#[test]
fn places_that_many_variables_decide_are_gone_through_or_sampled() {
    let source = "\
kernel @convolution(%x: tensor<e x f32>, %y: mut tensor<b x h x w x f32>) {
  %vx = partition %x [1] : partition<e x f32, [1]>
  %vy = partition %y [1, 1, 1] : mut partition<b x h x w x f32, [1, 1, 1]>
  %b, %i, %j = block_index %vy : index, index, index
  %h = extent h : index
  %w = extent w : index
  %zero = constant 0 : index
  %three = constant 3 : index
  %pad = constant 0.0 : f32
  %none = splat %pad : tile<1 x f32>
  %image = mul %b, %h : index
  %row = add %image, %i : index
  %sum = for %k = %zero to %three carry (%s = %none) : tile<1 x f32> {
    %below = add %row, %k : index
    %start = mul %below, %w : index
    %pixel = add %start, %j : index
    %inner = for %l = %zero to %three carry (%r = %s) : tile<1 x f32> {
      %beside = add %pixel, %l : index
      %channels = mul %beside, %three : index
      %deep = for %c = %zero to %three carry (%q = %r) : tile<1 x f32> {
        %at = add %channels, %c : index
        %t = load_masked %vx[%at] pad %pad : tile<1 x f32>
        %u = add %q, %t : tile<1 x f32>
        yield %u
      }
      yield %deep
    }
    yield %inner
  }
  %shaped = reshape %sum : tile<1 x 1 x 1 x f32>
  store_masked %vy, %shaped
}
";
    for ([b, h, w], off) in [([2, 9, 7], 0.0), ([32, 56, 56], 0.01), ([1000, 1000, 1000], 0.01)] {
        // Half of the images are there.
        let elements = b * h * w * 3 / 2;
        let totals = totals(source, &[], &[&[elements], &[b, h, w]]);
        let read = traffic(&totals, "x")[0];
        let mut expected = 0;
        for (k, l) in (0..3).flat_map(|k| (0..3).map(move |l| (k, l))) {
            // Of the pixels at this distance those that are among the first.
            expected += (elements / 3).saturating_sub(k * w + l) * 3 * 4;
        }
        let found = read as f64 / expected as f64 - 1.0;
        assert!(found.abs() <= off, "{read} of {expected}, {found}");
        assert_eq!((totals.loading_turns, totals.is_exact()), ((b * h * w * 27) as u64, off == 0.0));
    }
}
