//! What tests take for close or the same is nothing else.

use crate::support::close;
use tile_ir::ops::Literal;
use tile_ir::{Array, DType};

/// Whether two f32 are close.
fn check_close(found: f64, expected: f64, tolerance: f64) {
    let [found, expected] = [found, expected].map(|value| Array::scalar(DType::F32, Literal::Float(value)));
    close(&found, &expected, tolerance, "x");
}

#[test]
fn numbers_that_are_close_pass() {
    for (found, expected) in [(1.5, 1.0), (150.0, 100.0), (-0.0, 0.0)] {
        check_close(found, expected, 0.5);
    }
    for same in [1.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        check_close(same, same, 0.0);
        check_close(same, same, 0.5);
    }
}

#[test]
#[should_panic(expected = "element 0 is 3.0, not -inf, in x")]
fn no_number_is_close_to_an_infinity() {
    check_close(3.0, f64::NEG_INFINITY, 0.5);
}

#[test]
#[should_panic(expected = "element 0 is NaN, not 3.0, in x")]
fn nothing_that_is_no_number_is_close_to_one() {
    check_close(f64::NAN, 3.0, 0.5);
}

#[test]
#[should_panic(expected = "element 0 is Float(-0.0), not Float(0.0), in x")]
fn zeros_of_other_signs_are_not_the_same() {
    check_close(-0.0, 0.0, 0.0);
}

#[test]
#[should_panic(expected = "element 0 is Int(8), not Int(9), in x")]
fn integers_are_close_to_none_but_themselves() {
    let [found, expected] = [8, 9].map(|value| Array::scalar(DType::I32, Literal::Int(value)));
    close(&found, &expected, 0.5, "x");
}
