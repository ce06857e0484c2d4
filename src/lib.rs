//! Write GPU kernels as ordinary Rust functions.
