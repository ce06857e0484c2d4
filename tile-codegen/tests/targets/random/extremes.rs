//! Numbers at the ends of their formats, among those that tests have everywhere else.

use crate::support::sample;
use tile_ir::array::{Elements, round_float};
use tile_ir::{Array, DType};

/// [`sample`], with about every third number at an end of its format: the greatest and the least, those beside zero, zeros
/// with a sign, and what is no number.
pub(super) fn extreme(dtype: DType, shape: &[usize], seed: usize) -> Array {
    let usual = sample(dtype, shape, seed);
    let choice = |i: usize| (i * 6007 + seed * 104_729 + i / 7) % 31;
    let elements = if dtype.is_float() {
        let ends = float_ends(dtype);
        let number = |i: usize| ends.get(choice(i)).copied().unwrap_or_else(|| usual.get_f64(i));
        Elements::Float((0..usual.len()).map(number).collect())
    } else {
        let ends = integer_ends(dtype);
        let number = |i: usize| ends.get(choice(i)).copied().unwrap_or_else(|| usual.get_int(i));
        Elements::Int((0..usual.len()).map(number).collect())
    };
    Array::new(dtype, shape.to_vec(), elements)
}

fn float_ends(dtype: DType) -> Vec<f64> {
    let ends = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::MAX, f64::MIN_POSITIVE, 5e-324];
    let of_formats = [3.4e38, -65504.0, 448.0, 6e-8, 1e-40, 2f64.powi(31), -(2f64.powi(63))];
    ends.into_iter().chain(of_formats).map(|number| round_float(dtype, number)).collect()
}

fn integer_ends(dtype: DType) -> Vec<i128> {
    let bits = dtype.bits();
    match dtype {
        DType::Bool => Vec::new(),
        _ if dtype.is_signed() => {
            let greatest = (1i128 << (bits - 1)) - 1;
            vec![greatest, -greatest - 1, -greatest, -1, 0, 1, greatest / 2 + 1, bits.into(), 100, -101]
        }
        _ => {
            let greatest = (1i128 << bits) - 1;
            vec![greatest, greatest - 1, greatest / 2, greatest / 2 + 1, 0, 1, bits.into(), 200]
        }
    }
}
