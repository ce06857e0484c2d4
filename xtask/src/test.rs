//! `cargo xtask test`: everything that must hold before a change lands.

use crate::steps::{beside, cargo, lint_what_is_built, missing, run as run_step, target};
use crate::{
    aarch64, bench, budgets, device_code, devices, docs, gallery, miri, numpy, packages, setup, systems,
    tools,
};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

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

/// The tests of the runtime that take long and ask nothing of a compiler: those of the workspace are enough.
const WITHOUT_A_COMPILER_AS_WITH_ONE: [&str; 6] =
    ["--skip", "gpu::cuda::", "--skip", "gpu::hip::", "--skip", "gpu::stand_in::"];

/// What random tests begin with, unless the environment names another number: a change lands or doesn't for its own sake.
/// `cargo xtask fuzz` tries others.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "20");

/// What a run has shown.
#[derive(Default)]
struct Passed {
    steps: AtomicUsize,
    tests: AtomicUsize,
}

impl Passed {
    /// Runs a step, and counts it with the tests that it shows.
    fn step(&self, name: &str, command: &mut Command) -> Result<(), String> {
        let output = run_step(name, command)?;
        self.count(1);
        self.tests.fetch_add(show_test_results(&output), Relaxed);
        Ok(())
    }

    fn count(&self, steps: usize) {
        self.steps.fetch_add(steps, Relaxed);
    }
}

/// Runs every step; the first that fails ends the run.
fn run_all() -> Result<Passed, String> {
    setup::llvm()?;
    let ptxas = tools::PTXAS.installed()?;
    let passed = Passed::default();
    passed.step("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    lint_what_is_built()?;
    // Much of what is beside the tests is one thread, and the tests leave a core idle for a third of their time.
    beside(|| all_else(&passed, ptxas.as_deref()), || tests(&passed, ptxas.as_deref()))?;
    devices::print()?;
    passed.count(1);
    Ok(passed)
}

/// The tests of the workspace, and those of native code for another processor.
fn tests(passed: &Passed, ptxas: Option<&Path>) -> Result<(), String> {
    let mut tests = cargo(&["test", "--workspace", "--features", FEATURES]);
    if let Some(ptxas) = ptxas {
        tests.env("TILE_PTXAS", ptxas);
    }
    passed.step("lints and tests", seeded(&mut tests))?;
    passed.step("native code for AArch64, under QEMU", seeded(&mut aarch64::essential(FEATURES)?))
}

/// What is tested otherwise than by the workspace's tests. Miri and the packages, which take nothing of what is built for
/// these, are first.
fn all_else(passed: &Passed, ptxas: Option<&Path>) -> Result<(), String> {
    miri::essential()?;
    packages::check()?;
    systems::check()?;
    let mut runtime = cargo(&["test", "--package", "tile-runtime"]);
    runtime.args(AS_TESTS_ASK).arg("--").args(WITHOUT_A_COMPILER_AS_WITH_ONE);
    passed.step("tests of the runtime without a compiler", &mut runtime)?;
    passed.step("documentation", documentation().env("RUSTDOCFLAGS", "-D warnings"))?;
    passed.step("programs, without the run-time compiler", &mut built_programs())?;
    for example in programs() {
        let program = target().join("debug").join(example);
        links_no_llvm(&program)?;
        let run = |device| {
            let name = format!("example {example} on {device}");
            run_step(&name, Command::new(&program).arg(device)).map(drop)
        };
        run("reference")?;
        run("cpu")?;
        passed.count(2);
    }
    links_no_llvm(&target().join("debug").join(bench::h200::LIBRARY))?;
    bench::h200::check_script()?;
    numpy::check()?;
    gallery::generated()?.check()?;
    docs::generated()?.check()?;
    budgets::check()?;
    passed.count(8);
    passed.count(device_code::check(&target().join("tile"), &EXAMPLES, ptxas)?);
    Ok(())
}

/// The packages whose programs are run.
fn programs() -> impl Iterator<Item = &'static str> {
    EXAMPLES.into_iter().chain([BENCHMARK])
}

/// All that the workspace documents. Cargo gives dependencies the features that tests ask of them only where it makes a
/// test or an example too; without [`AS_TESTS_ARE`] it would build the compiler once more, for build scripts.
fn documentation() -> Command {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--features", FEATURES, "--lib"]);
    command.args(EXAMPLES.into_iter().chain(["xtask"]).flat_map(|program| ["--bin", program]));
    command.args(AS_TESTS_ARE);
    command
}

/// The programs and libraries with embedded code and without the compiler, and this program, which tests build as a test alone;
/// dependencies are those of the tests, as in [`documentation`].
fn built_programs() -> Command {
    let mut command = cargo(&["build", "--workspace", "--features", conversions!(), "--lib"]);
    command.args(programs().chain(["xtask"]).flat_map(|program| ["--bin", program])).args(AS_TESTS_ARE);
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
    let passed = run_all()?;
    let (steps, tests) = (passed.steps.into_inner(), passed.tests.into_inner());
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
