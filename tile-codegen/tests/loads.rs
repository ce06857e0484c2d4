//! Kernels in this process take little more memory than their code. A test binary of its own: it looks at how large the
//! process is.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use tile_codegen::{Artifact, Options, compile, jit};
use tile_ir::{Instance, TargetDesc};

/// How many are loaded.
const KERNELS: usize = 400;

/// Doubles a tensor, in tiles of some elements.
fn double(tile: usize) -> Artifact {
    let source = format!(
        "kernel @double(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {{\n%vx = partition %x [{tile}] : partition<n x f32, \
         [{tile}]>\n%vy = partition %y [{tile}] : mut partition<n x f32, [{tile}]>\n%i = block_index %vy : index\n%0 = \
         constant 0.0 : f32\n%t = load_masked %vx[%i] pad %0 : tile<{tile} x f32>\n%d = add %t, %t : tile<{tile} x \
         f32>\nstore_masked %vy, %d\n}}"
    );
    let instance = Instance::parse(&source, &[]).unwrap();
    compile(&instance, TargetDesc::cpu(), &Options::default()).unwrap()
}

/// Of memory that the system has given the process (`proc_pid_statm(5)`, in pages).
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap()
}

#[test]
fn a_loaded_kernel_takes_little_more_than_its_code() {
    let artifacts = [4, 16, 64, 256].map(double);
    let load = |count: usize| {
        (0..count).for_each(|i| {
            // SAFETY: it was compiled above for this processor.
            unsafe { jit::load(&artifacts[i % artifacts.len()]) }.unwrap();
        });
    };
    load(20);
    let before = resident_bytes();
    load(KERNELS);
    let each = (resident_bytes() - before) / KERNELS;
    println!(
        "{each} bytes for each of {KERNELS} kernels, of objects with {} bytes",
        artifacts[1].code.bytes().len()
    );
    // A linker for each would take 700 KiB.
    assert!(each < 64 << 10, "{each} bytes");
}
