//! Dense arrays and the reference meaning of every data op, written for clarity.

use crate::dtype::DType;

/// Elements as numbers. Invariant: each is representable in the array's format.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// Integers, and `bool` as 0 and 1.
    Int(Vec<i128>),
    /// Floats of any format; each format's values are exact in f64.
    Float(Vec<f64>),
}

/// A dense row-major array. Rank 0 is a scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    dtype: DType,
    shape: Vec<usize>,
    elements: Elements,
}
