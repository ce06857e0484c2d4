//! The integration tests, as one binary.

mod architecture;
mod kernels;
mod surface;
