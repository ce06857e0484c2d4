//! `cargo xtask bench compile`: what a user waits for between saving a kernel and running it.

use crate::steps::{cargo, output, root, run as run_step, target};
use crate::{budgets, setup};
use std::fs;
use std::path::Path;
use std::time::Instant;

const RUNS: usize = 5;

const KERNEL: &str = "\
//! A crate with one kernel.
use tile::prelude::*;

/// C = A·B.
#[tile_kernel]
pub fn matmul<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>,
    b: &Tensor<bf16, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    c.store_masked(acc);
}
";

/// Measures and prints a table.
pub(crate) fn run() -> Result<(), String> {
    setup::llvm()?;
    let milliseconds = check_one_kernel()?;
    println!("\ncargo check after an edit, one kernel: {milliseconds:.0} ms (median of {RUNS})");
    let kernels = budgets::benchmark_sources()?;
    let kernels: Vec<String> = kernels.iter().map(|file| root().join(file).display().to_string()).collect();
    super::run_example("tile-codegen", "bench_compile", &[], &kernels)
}

/// The time of `cargo check` after the kernel's file has changed; dependencies are built before.
fn check_one_kernel() -> Result<f64, String> {
    let folder = target().join("bench").join("one-kernel");
    let source = folder.join("src").join("lib.rs");
    let manifest = format!(
        "[package]\nname = \"one-kernel\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\ntile = {{ \
         path = {:?} }}\n",
        root().display().to_string()
    );
    write(&folder.join("Cargo.toml"), &manifest)?;
    write(&source, KERNEL)?;
    let check = || {
        let mut command = cargo(&["check", "--quiet"]);
        command.current_dir(&folder).env("CARGO_TARGET_DIR", folder.join("target"));
        command
    };
    run_step("cargo check with all dependencies", &mut check())?;
    let mut times = Vec::new();
    for i in 0..RUNS {
        write(&source, &format!("{KERNEL}\n// Edit {i}.\n"))?;
        let start = Instant::now();
        let (text, succeeded) = output(&mut check())?;
        if !succeeded {
            return Err(text);
        }
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[RUNS / 2])
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}
