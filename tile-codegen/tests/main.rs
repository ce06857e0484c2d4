//! One binary for all tests that need LLVM, so that it links once.

#[path = "targets/support.rs"]
mod support;

#[path = "targets/cpu.rs"]
mod cpu;
#[path = "targets/kernels.rs"]
mod kernels;
#[path = "targets/leaf.rs"]
mod leaf;
