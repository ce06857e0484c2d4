//! An output of a kernel beside what the evaluator gives.
//!
//! An error is relative to the output's largest element, because sums near zero have no relative error of their own.
//! Integers are equal. Floats differ where their sums are added in another order, and where an intermediate result of
//! the coarsest format that the kernel rounds to falls to the other side.

use tile_ir::kernel::OpData;
use tile_ir::ops::Op;
use tile_ir::{Array, DType, Instance};

/// Units in the last place of the coarsest format, where one of them may be an intermediate result's.
const ROUNDINGS: f64 = 2.0;

/// Units in the last place of the format that sums are kept in.
const ORDER: f64 = 64.0;

/// What is said of an output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comparison {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    /// The largest difference, relative to the largest element.
    pub(crate) error: f64,
    /// The most that it may be.
    pub(crate) tolerance: f64,
}

impl Comparison {
    pub(crate) fn of(name: &str, found: &Array, expected: &Array, tolerance: f64) -> Comparison {
        let (dtype, shape) = (expected.dtype(), expected.shape().to_vec());
        let tolerance = if dtype.is_float() { tolerance } else { 0.0 };
        Comparison { name: name.to_owned(), dtype, shape, error: error(found, expected), tolerance }
    }

    pub(crate) fn agrees(&self) -> bool {
        self.error <= self.tolerance
    }
}

/// The largest difference; infinite where one is NaN or infinite and the other isn't.
fn error(found: &Array, expected: &Array) -> f64 {
    let finite = (0..expected.len()).map(|i| expected.get_f64(i).abs()).filter(|x| x.is_finite());
    let largest = finite.fold(0.0, f64::max);
    let scale = if largest > 0.0 { largest } else { 1.0 };
    (0..expected.len()).map(|i| difference(found, expected, i) / scale).fold(0.0, f64::max)
}

fn difference(found: &Array, expected: &Array, i: usize) -> f64 {
    if !expected.dtype().is_float() {
        return (found.get_int(i) - expected.get_int(i)).unsigned_abs() as f64;
    }
    let (a, b) = (found.get_f64(i), expected.get_f64(i));
    if a == b || a.is_nan() && b.is_nan() {
        return 0.0;
    }
    let difference = (a - b).abs();
    if difference.is_nan() { f64::INFINITY } else { difference }
}

/// The most that floats of a kernel may differ.
pub(crate) fn tolerance(instance: &Instance) -> f64 {
    let ops = instance.walk().into_iter().map(|op| instance.op(op)).filter(|data| computes(data));
    let results = ops.flat_map(|data| &data.results).map(|&result| instance.ty(result));
    let formats = results.filter(|ty| ty.is_data()).filter_map(|ty| ty.elem().known()?.float_format());
    let coarsest = formats.map(|format| format.epsilon()).fold(0.0, f64::max);
    let single = DType::F32.float_format().map_or(0.0, |format| format.epsilon());
    (ROUNDINGS * coarsest).max(ORDER * coarsest.min(single))
}

/// Whether an op computes numbers, rather than naming or moving some. What has regions gives what their ops compute.
fn computes(data: &OpData) -> bool {
    let moves = matches!(
        data.op,
        Op::Constant { .. }
            | Op::Splat(_)
            | Op::Broadcast(_)
            | Op::Permute(_)
            | Op::Reshape(_)
            | Op::Movement(_)
            | Op::Item
    );
    data.regions.is_empty() && !data.op.is_load() && !moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instances::instances_of;
    use tile_ir::array::Elements;

    fn floats(values: &[f64]) -> Array {
        Array::new(DType::F32, vec![values.len()], Elements::Float(values.to_vec()))
    }

    #[test]
    fn errors_are_relative_to_the_largest_element() {
        let expected = floats(&[1.0, -4.0, 0.0]);
        let compare = |values: &[f64]| Comparison::of("y", &floats(values), &expected, 0.125);
        assert_eq!(compare(&[1.0, -4.0, 0.0]).error, 0.0);
        assert_eq!(compare(&[1.0, -4.0, 0.5]).error, 0.125);
        assert!(compare(&[1.0, -4.0, 0.5]).agrees());
        assert!(!compare(&[1.75, -4.0, 0.5]).agrees());
        assert!(!compare(&[1.0, f64::NAN, 0.0]).agrees());
        assert!(!compare(&[1.0, f64::INFINITY, 0.0]).agrees());
    }

    #[test]
    fn special_numbers_equal_themselves() {
        let special = floats(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2.0]);
        assert_eq!(error(&special, &special), 0.0);
        assert_eq!(error(&floats(&[0.0, 0.0]), &floats(&[0.0, 0.0])), 0.0);
    }

    #[test]
    fn integers_are_equal() {
        let ints = |values: [i128; 2]| Array::new(DType::I64, vec![2], Elements::Int(values.to_vec()));
        let huge = i128::from(i64::MAX);
        assert!(Comparison::of("y", &ints([huge, 1]), &ints([huge, 1]), 1.0).agrees());
        assert!(!Comparison::of("y", &ints([huge - 1, 1]), &ints([huge, 1]), 1.0).agrees());
    }

    #[test]
    fn tolerances_are_those_of_the_coarsest_rounding() {
        let kernel = |body: &str| {
            let source = format!(
                "#[tile_kernel(instances(B = 8))]
fn k<const B: usize>(x: &Tensor<bf16, n>, y: &mut Tensor<f32, n>) {{
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tile = x.load_masked(y.index());
    y.store_masked({body});
}}
"
            );
            instances_of(&source, "kernels.rs").unwrap().remove(0)
        };
        // The bf16 numbers are only read: 64 units of f32, 2⁻²³ each.
        assert_eq!(tolerance(&kernel("tile.cast::<f32>() + 1.0")), 2f64.powi(-17));
        // Two units of bf16, 2⁻⁷ each.
        assert_eq!(tolerance(&kernel("(tile + tile).cast::<f32>()")), 2f64.powi(-6));
    }
}
