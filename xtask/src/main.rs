//! The project's commands: `cargo xtask demo`, `test`, `aarch64`, `bench …`, `budgets`, `devices`, `docs`, `fuzz`, `gallery`,
//! `passes`, `setup`, `sim`.
//!
//! Needs nothing but Rust to build; installs what the rest needs.

mod aarch64;
mod bench;
mod budgets;
mod demo;
mod device_code;
mod devices;
mod docs;
mod fuzz;
mod gallery;
mod miri;
mod numpy;
mod ops_page;
mod passes;
mod setup;
mod sim;
mod steps;
mod test;
mod tools;
mod uses;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <command>

  demo           classify handwritten digits with two kernels, on the best device
  test           everything that CI checks: format, lints, tests, examples, device code
  aarch64        the tests of native code once more, with code for AArch64 that QEMU runs
  bench choices  what the cost model chooses on this machine's processor, beside the times of every instance
  bench compile  how long check, expansion and code generation take
  bench cpu      the CPU target beside OpenBLAS, faer, gemm, matrixmultiply, C loops and PyTorch, those that are there, and
                 beside what the machine does at most; bench cpu --help has the options
  bench h200     build what a machine with an H200 needs into target/h200, and run it where a GPU is
  bench launch   what a launch costs the thread that makes it
  bench layout   how long single operations of the layout library take
  budgets        write docs/codegen-budgets.md, what machine code GPU kernels become; --check: fail where it differs
  devices        every device of this machine with what it is: units, clocks, memory, caches
  docs           write docs/ir.md and docs/ops.md from the op tables; --check: only tell whether they are current
  fuzz [MINUTES] random kernels on every executor against the evaluator, 10 minutes if not said
  gallery        draw the pictures of docs/gallery.md; --check: only tell whether they are current
  miri           the runtime's unsafe parts under Miri, with a nightly toolchain
  passes FILE.tir [NAME=VALUE…]  a kernel's IR after every pass, and what is known of its index values
  setup          only install what is missing (LLVM 22, QEMU, ptxas, nvdisasm)
  sim KERNEL [--target sm_90a] [--size m=128,n=64] [--early]  a kernel of the budgets' list, run thread by thread on
                 the host as a GPU would, beside the evaluator: errors, bank conflicts, sectors of global memory,
                 instructions; --early: asynchronous copies do their work at once

Environment: TILE_DEVICE=cpu|reference|cuda:0 chooses the device of the demo.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["demo"] => demo::run(),
        ["test"] => test::run(),
        ["aarch64"] => aarch64::run_all(),
        ["bench", "choices"] => bench::choices::run(),
        ["bench", "compile"] => bench::compile::run(),
        ["bench", "cpu", options @ ..] => bench::cpu::run(options),
        ["bench", "h200"] => bench::h200::run(),
        ["bench", "launch"] => bench::launch::run(),
        ["bench", "layout"] => bench::layout::run(),
        ["budgets"] => budgets::write(),
        ["budgets", "--check"] => budgets::check(),
        ["devices"] => devices::print(),
        ["docs"] => docs::write(),
        ["docs", "--check"] => docs::check(),
        ["fuzz"] => fuzz::run_for(None),
        ["fuzz", minutes] => fuzz::run_for(Some(minutes)),
        ["gallery"] => gallery::write(),
        ["gallery", "--check"] => gallery::check(),
        ["miri"] => miri::all(),
        ["passes", file, parameters @ ..] => passes::print(file, parameters),
        ["setup"] => setup::all(),
        ["sim", words @ ..] => sim::run(words),
        [] | ["help" | "-h" | "--help"] => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("`{}` isn't a command\n\n{HELP}", other.join(" "))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
