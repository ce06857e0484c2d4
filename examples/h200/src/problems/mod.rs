//! The problems, one file for each of the files of kernels.

mod attention;
mod elements;
mod matrix;
mod rows;

pub(crate) use attention::{Attention, Decode, DecodeInParts};
pub(crate) use elements::{GeluFused, Transpose};
pub(crate) use matrix::{Gemm, Gemv, Kind, Linear, Skinny};
pub(crate) use rows::{RmsNorm, Softmax, SoftmaxInPieces, Sum};
