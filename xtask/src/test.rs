//! `cargo xtask test`: everything that must hold before a change lands.

use crate::steps::{beside, cargo, missing, run as run_step, target};
use crate::{
    aarch64, bench, budgets, device_code, devices, docs, gallery, miri, numpy, packages, setup, systems,
    tools,
};
use std::path::Path;
use std::process::Command;

/// The features of every optional conversion.
macro_rules! conversions {
    () => {
        "tile/bytemuck,tile/ndarray,tile/npy,tile/safetensors,tile/dlpack,tile-layout/serde"
    };
}

/// The features that the tests need: kernels compiled at run time, and every optional conversion.
pub(crate) const FEATURES: &str = concat!("tile/jit,tile-runtime/jit,", conversions!());
/// The packages under `examples` whose kernels are for every target.
pub(crate) const EXAMPLES: [&str; 4] = ["vector_add", "softmax", "matmul", "digits"];
/// The package under `examples` whose kernels are for one GPU.
pub(crate) const BENCHMARK: &str = "h200";

/// The smallest example, which makes a build one that takes all dependencies as they were built for the tests.
const AS_TESTS_ARE: [&str; 2] = ["--example", "bench_layout"];

/// A package that makes a build of few others one that takes dependencies as they were built for the tests.
const AS_TESTS_ASK: [&str; 2] = ["--package", "tile-test-features"];

/// What random tests begin with, unless the environment names another number: a change lands or doesn't for its own sake.
/// `cargo xtask fuzz` tries others.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "20");

/// What a run has shown.
#[derive(Default)]
struct Passed {
    steps: usize,
    tests: usize,
}

/// Runs every step; the first that fails ends the run.
fn run_all() -> Result<Passed, String> {
    setup::llvm()?;
    let ptxas = tools::PTXAS.installed()?;
    let mut passed = Passed::default();
    let mut step = |name: &str, command: &mut Command| {
        let output = run_step(name, command)?;
        passed.steps += 1;
        passed.tests += show_test_results(&output);
        Ok::<(), String>(())
    };
    step("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    step("lints", &mut lints())?;
    let mut tests = cargo(&["test", "--workspace", "--features", FEATURES]);
    if let Some(ptxas) = &ptxas {
        tests.env("TILE_PTXAS", ptxas);
    }
    seeded(&mut tests);
    // Miri is one thread, the packages are compiled one after the other for most of their time, and the tests leave a core
    // idle for a third of theirs.
    let others = || miri::essential().and_then(|()| packages::check()).and_then(|()| systems::check());
    beside(others, || step("tests", &mut tests))?;
    step("native code for AArch64, under QEMU", seeded(&mut aarch64::essential(FEATURES)?))?;
    let mut runtime = cargo(&["test", "--package", "tile-runtime"]);
    step("tests of the runtime without a compiler", runtime.args(AS_TESTS_ASK))?;
    step("documentation", documentation().env("RUSTDOCFLAGS", "-D warnings"))?;
    step("examples, without the run-time compiler", &mut examples())?;
    for example in programs() {
        let program = target().join("debug").join(example);
        links_no_llvm(&program)?;
        let run = |device| {
            let name = format!("example {example} on {device}");
            run_step(&name, Command::new(&program).arg(device)).map(drop)
        };
        // The reference device is one thread.
        beside(|| run("reference"), || run("cpu"))?;
        passed.steps += 2;
    }
    links_no_llvm(&target().join("debug").join(bench::h200::LIBRARY))?;
    bench::h200::check_script()?;
    numpy::check()?;
    gallery::generated()?.check()?;
    docs::generated()?.check()?;
    budgets::check()?;
    devices::print()?;
    passed.steps += 9;
    passed.steps += device_code::check(&target().join("tile"), &EXAMPLES, ptxas.as_deref())?;
    Ok(passed)
}

/// The packages whose programs are run.
fn programs() -> impl Iterator<Item = &'static str> {
    EXAMPLES.into_iter().chain([BENCHMARK])
}

/// What macros and build scripts are made of. Clippy builds it for them once more, whatever cargo has built of it.
const BUILDS: [&str; 4] = ["tile-layout", "tile-ir", "tile-frontend", "tile-codegen"];

/// Clippy's view of everything. What it builds runs once, so it isn't optimized, which would take longer.
fn lints() -> Command {
    let mut command = cargo(&["clippy", "--workspace", "--all-targets", "--features", FEATURES]);
    for package in BUILDS {
        command.args(["--config", &format!("profile.dev.package.{package}.opt-level=0")]);
    }
    command.args(["--", "-D", "warnings"]);
    command
}

/// All that the workspace documents. Cargo gives dependencies the features that tests ask of them only where it makes a
/// test or an example too; without [`AS_TESTS_ARE`] it would build the compiler once more, for build scripts.
fn documentation() -> Command {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--features", FEATURES, "--lib"]);
    command.args(EXAMPLES.into_iter().chain(["xtask"]).flat_map(|program| ["--bin", program]));
    command.args(AS_TESTS_ARE);
    command
}

/// The programs and libraries with embedded code and without the compiler; dependencies are those of the tests, as in
/// [`documentation`].
fn examples() -> Command {
    let mut command = cargo(&["build", "--workspace", "--features", conversions!(), "--lib"]);
    command.args(programs().flat_map(|program| ["--bin", program])).args(AS_TESTS_ARE);
    command
}

/// Random tests begin with [`SEED`], unless the environment says otherwise.
fn seeded(tests: &mut Command) -> &mut Command {
    if std::env::var_os(SEED.0).is_none() {
        tests.env(SEED.0, SEED.1);
    }
    tests
}

/// [`run_all`], with a last line that counts.
pub(crate) fn run() -> Result<(), String> {
    let Passed { steps, tests } = run_all()?;
    match missing().as_slice() {
        [] => println!("all {steps} steps passed, with these tests in them:"),
        missing => println!(
            "what could be run passed, with these tests in it; left out is what {} would have checked:",
            missing.join(", ")
        ),
    }
    println!("{tests} passed, 0 failed");
    Ok(())
}

/// Prints the closing lines of test runners; gives the number of tests that passed.
fn show_test_results(output: &str) -> usize {
    let mut passed = 0;
    for line in output.lines().filter(|line| line.starts_with("test result:") || line.contains("ptxas")) {
        println!("    {line}");
        let count = line.strip_prefix("test result: ok. ").and_then(|rest| rest.split(' ').next());
        passed += count.and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
    }
    passed
}

/// A program with embedded kernels must run where no LLVM is.
fn links_no_llvm(program: &Path) -> Result<(), String> {
    let bytes = std::fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
    let name = b"libLLVM";
    if bytes.windows(name.len()).any(|window| window == name) {
        return Err(format!("{} links libLLVM", program.display()));
    }
    println!("✓ {} doesn't link LLVM", program.display());
    Ok(())
}
