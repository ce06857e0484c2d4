//! Ranges of a kernel's `for`: what their counters are, from the evaluator, against Rust's own ranges.

use crate::lower;
use tile_ir::array::Elements;
use tile_ir::ops::Literal;
use tile_ir::{Array, Binding, DType, interp, specialize};

/// What a loop over a range makes of its counters, each of which counts a hundred times as much as the one before.
fn folded(range: &str, step: usize, bindings: &[(&str, usize)]) -> f64 {
    let source = format!(
        "fn k<const S: usize>(x: &Tensor<f64, 8>, step: usize, y: &mut Tensor<f64, 1>) {{
            let x = x.partition_view([2]);
            let mut sum = 0.5;
            for i in {range} {{ sum = sum * 100.0 + i as f64; }}
            y.partition_view_mut([1]).store(Tile::full([1], sum));
        }}"
    );
    let lowered = lower("", &source).unwrap_or_else(|errors| panic!("{range}\n{errors}"));
    let bindings: Vec<_> = bindings.iter().map(|&(n, v)| (n.to_owned(), Binding::Const(v))).collect();
    let instance = specialize(&lowered.kernel, &bindings).unwrap();
    let tensor = |count: usize| Array::new(DType::F64, vec![count], Elements::Float(vec![0.0; count]));
    let mut arguments = [tensor(8), Array::scalar(DType::Index, Literal::Int(step as i128)), tensor(1)];
    interp::run(&instance, &mut arguments).unwrap();
    arguments[2].get_f64(0)
}

fn expected(counters: impl Iterator<Item = i32>) -> f64 {
    counters.fold(0.5, |sum, i| sum * 100.0 + f64::from(i))
}

#[test]
fn a_range_backwards_has_steps_that_are_known_later() {
    for step in 1..6 {
        let counted = |range: &str| folded(range, step, &[("S", step)]);
        let range = expected((0..4).rev().step_by(step));
        assert_eq!(counted("(0..x.tiles(0)).rev().step_by(step)"), range, "{step}");
        assert_eq!(counted("(0..x.tiles(0)).rev().step_by(S)"), range, "{step}");
        let twice = expected((0..4).rev().step_by(step).rev());
        assert_eq!(counted("(0..x.tiles(0)).rev().step_by(step).rev()"), twice, "{step}");
        let stepped = expected((1..=4).rev().step_by(step).step_by(2));
        assert_eq!(counted("(1..=x.tiles(0)).rev().step_by(step).step_by(2)"), stepped, "{step}");
        let bytes = expected((3..9).rev().step_by(step));
        assert_eq!(counted("(3u8..9).rev().step_by(step)"), bytes, "{step}");
        let below = expected((-3..3).step_by(step).rev());
        assert_eq!(counted("(-3i8..3).step_by(step).rev()"), below, "{step}");
    }
}

#[test]
fn a_step_is_a_size_whatever_the_counter_is() {
    for (range, counters) in [
        ("(-100..=100i8).step_by(200)", vec![-100, 100]),
        ("(-100..=100i8).rev().step_by(200)", vec![100, -100]),
        ("(-100..=100i8).step_by(step)", vec![-100, 100]),
        ("(-100..=100i8).rev().step_by(step)", vec![100, -100]),
        ("(0..200u8).step_by(300)", vec![0]),
        ("(0..200u8).rev().step_by(300)", vec![199]),
        ("(3..200u8).step_by(step)", vec![3]),
        ("(3..200u8).step_by(step + 100)", vec![3]),
        ("(0..0usize).rev()", vec![]),
    ] {
        assert_eq!(folded(range, 200, &[("S", 1)]), expected(counters.into_iter()), "{range}");
    }
}

/// What a kernel of one parameter comes to, of whose condition and body these are parts; and its IR.
fn of_parameter(conditions: &str, body: &str, n: usize) -> (f64, String) {
    let source = format!(
        "fn k<const N: usize>(y: &mut Tensor<f64, 1>) {{
            let mut sum = 0.0;
            {body}
            y.partition_view_mut([1]).store(Tile::full([1], sum));
        }}"
    );
    let lowered = lower(conditions, &source).unwrap_or_else(|errors| panic!("{body}\n{errors}"));
    let instance = specialize(&lowered.kernel, &[("N".to_owned(), Binding::Const(n))]).unwrap();
    let mut arguments = [Array::new(DType::F64, vec![1], Elements::Float(vec![0.0]))];
    interp::run(&instance, &mut arguments).unwrap();
    (arguments[0].get_f64(0), lowered.kernel.to_string())
}

/// In the IR the logarithm of 0 is 0. The same of a sum would be 0, if the whole of it were an extent.
#[test]
fn what_stands_beside_a_logarithm_is_an_extent_where_there_is_one() {
    let cast = "sum += ((N.ilog2() + 1) as usize * 2) as f64;";
    let reversed = "sum += ((7 - N.ilog2()) as usize + 1) as f64;";
    for conditions in ["where(N <= 64)", "where(N <= 64, N >= 1)"] {
        assert_eq!([8, 63].map(|n| of_parameter(conditions, cast, n).0), [8.0, 12.0]);
        assert_eq!([8, 63].map(|n| of_parameter(conditions, reversed, n).0), [5.0, 3.0]);
    }
    assert_eq!(
        (of_parameter("where(N <= 64)", cast, 0).0, of_parameter("where(N <= 64)", reversed, 0).0),
        (2.0, 8.0)
    );
    let text = |conditions: &str| of_parameter(conditions, cast, 8).1;
    assert!(text("where(N <= 64, N >= 1)").contains("extent 2*ilog2(N) + 2"), "{}", text("where(N >= 1)"));
    assert!(!text("where(N <= 64)").contains("2*ilog2(N) + 2"), "{}", text("where(N <= 64)"));
}

/// Turns of an unrolled loop are there where an op says so, whatever the extents that it is compared with.
#[test]
fn a_loop_to_a_logarithm_has_the_turns_of_its_ops() {
    let run = |conditions: &str, range: &str, n: usize| {
        let parts = "let parts = [1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0, 1000000.0, 0.0];";
        of_parameter(conditions, &format!("{parts} for i in {range} {{ sum += parts[i as usize]; }}"), n).0
    };
    for (range, of_zero, of_eight) in
        [("0..N.ilog2()", 0.0, 111.0), ("0..=N.ilog2()", 1.0, 1111.0), ("1..=N.ilog2()", 0.0, 1110.0)]
    {
        assert_eq!([0, 8].map(|n| run("where(N <= 64)", range, n)), [of_zero, of_eight], "{range}");
    }
    assert_eq!(run("where(N <= 64, N >= 1)", "N.ilog2()..5", 8), 11000.0);
    assert_eq!(run("where(N <= 64, N >= 1)", "0..N.ilog2() + 1", 8), 1111.0);
    assert_eq!(run("where(N <= 64, N.is_power_of_two())", "0..N.ilog2() + 1", 8), 1111.0);
}
