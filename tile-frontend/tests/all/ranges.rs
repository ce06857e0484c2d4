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
