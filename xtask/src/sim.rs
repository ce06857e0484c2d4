//! `cargo xtask sim KERNEL [--target sm_90a] [--size m=128,n=64] [--early]`: a kernel of the budgets' list, thread by
//! thread on the host as a GPU would run it, beside the evaluator. `tile-codegen`'s example `sim` does it, and knows
//! the options.

use crate::budgets;
use crate::setup;
use crate::steps::{Progress, cargo, output, root, run as run_step, target};
use crate::test::FEATURES;
use std::process::Command;

/// Runs a kernel and prints what came of it.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    setup::llvm()?;
    // As the tests build it, so that nothing is built twice.
    let build = ["build", "--workspace", "--features", FEATURES, "--example", "sim"];
    run_step("building the executor", &mut cargo(&build))?;
    let mut command = Command::new(target().join("debug").join("examples").join("sim"));
    command.current_dir(root()).args(words).arg("--").args(budgets::all_sources()?);
    let progress = Progress::start("thread by thread");
    let result = output(&mut command);
    progress.finish(matches!(&result, Ok((_, true))));
    let (text, succeeded) = result?;
    if !succeeded {
        return Err(text.trim_end().to_owned());
    }
    print!("\n{text}");
    Ok(())
}
