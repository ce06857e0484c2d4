//! Kernels with their arguments that both ways of laying out tiles run, in native code and thread by thread.

use crate::kernels::{CONTROL, matmul};
use crate::support::sample;
use tile_ir::ops::Literal;
use tile_ir::{Array, DType};

/// A kernel with its arguments, and how far results may be from the evaluator's.
pub(crate) struct Case {
    source: String,
    constants: Vec<(&'static str, usize)>,
    arguments: Vec<Array>,
    tolerance: f64,
}

impl Case {
    /// Has code of the kernel compared with the evaluator.
    pub(crate) fn check(&self, agree: impl FnOnce(&str, &[(&str, usize)], &[Array], f64)) {
        agree(&self.source, &self.constants, &self.arguments, self.tolerance);
    }
}

/// A product of matrices of `m` × `k` and `k` × `n` elements, in tiles of `BM`, `BN` and `BK`.
pub(crate) fn product(
    (operand, accumulator): (DType, DType),
    (m, n, k): (usize, usize, usize),
    tiles: [usize; 3],
    tolerance: f64,
) -> Case {
    Case {
        source: matmul(operand.name(), accumulator.name()),
        constants: ["BM", "BN", "BK"].into_iter().zip(tiles).collect(),
        arguments: vec![
            sample(operand, &[m, k], 1),
            sample(operand, &[k, n], 2),
            sample(accumulator, &[m, n], 3),
        ],
        tolerance,
    }
}

/// Sums of up to 40 products of eighths are exact in f32; f16 accumulators round each partial sum.
pub(crate) fn products_of_every_format() -> impl Iterator<Item = Case> {
    let formats = [
        (DType::F32, DType::F32, 0.0),
        (DType::BF16, DType::F32, 0.0),
        (DType::F16, DType::F32, 0.0),
        (DType::F16, DType::F16, 2e-3),
        (DType::F64, DType::F64, 0.0),
        (DType::I8, DType::I32, 0.0),
        (DType::U8, DType::I32, 0.0),
        (DType::I16, DType::I32, 0.0),
        (DType::U32, DType::U32, 0.0),
        (DType::I64, DType::I64, 0.0),
        (DType::F8E4M3FN, DType::F32, 1e-6),
        (DType::F8E5M2, DType::F16, 2e-3),
    ];
    formats.into_iter().map(|(operand, accumulator, tolerance)| {
        product((operand, accumulator), (33, 50, 40), [16, 32, 16], tolerance)
    })
}

/// Loops, a branch taken and not, and movement, of whole tiles, of several with the last at an edge, and of one larger than
/// the tensor.
pub(crate) fn control() -> impl Iterator<Item = Case> {
    let sizes = [(4, 4), (10, 4), (3, 8), (33, 33)];
    let flags = [0, 1].into_iter();
    flags.flat_map(move |flag| sizes.map(|(n, b)| (flag, n, b))).map(|(flag, n, b)| Case {
        source: CONTROL.to_owned(),
        constants: vec![("B", b)],
        arguments: vec![
            sample(DType::F32, &[n, b], 1),
            Array::scalar(DType::Bool, Literal::Int(flag)),
            Array::scalar(DType::F32, Literal::Float(0.5)),
            sample(DType::F32, &[n, b], 2),
        ],
        // Sums of a thousand numbers in another order.
        tolerance: 1e-5,
    })
}
