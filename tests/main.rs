//! The integration tests, as one binary.

mod architecture;
mod kernels;
mod surface;

/// For LLVM as for the tests themselves: its library finds this allocator's functions under the names of C.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
