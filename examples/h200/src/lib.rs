//! The benchmark for an H200: kernels compiled ahead of time, so that neither Rust nor LLVM nor a CUDA toolkit is
//! needed where it runs.
//!
//! [`table`] has the rows; each is a [`problem::Problem`] with its sizes: what tensors it takes, how it is launched,
//! what plain loops make of the same inputs. `bench.py` loads this package as a shared library ([`library`]) and measures
//! other libraries on the same tensors; the program `h200` runs without Python.

pub mod check;
mod kernels;
pub mod library;
pub mod problem;
mod problems;
pub mod table;
pub mod tensors;
pub mod timing;
