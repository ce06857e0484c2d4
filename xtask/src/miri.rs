//! The unsafe parts of tile-runtime that need neither a device nor LLVM under Miri, which checks every access to memory:
//! tensors and their views, what kernels' bodies read and write, the CPU's pool, streams of the host, DLPack, and GPUs'
//! memory, copies and launches on a stand-in for their driver. What is left out is the code of kernels and the drivers'
//! functions.

use crate::steps::{if_had, output, root, run, show_closing_lines, target};
use std::process::Command;

/// The modules whose tests run.
const MODULES: [&str; 7] =
    ["tensor::", "cpu::", "stream::", "interchange::", "reference::", "gpu::tests::", "gpu::image::"];

/// Those that a change needn't wait for: they get to memory and to the stand-in driver by the unsafe code of the others, and
/// take a third of the time.
const BY_HAND: [&str; 11] = [
    "gpu::tests::errors::",
    "gpu::tests::peers::",
    "gpu::tests::rows::",
    "gpu::tests::launches::a_code_object_for_the_processor_is_found_and_launched",
    "gpu::tests::launches::a_timed_launch_waits_and_gives_the_time_between_its_events",
    "gpu::tests::memory::no_more_is_held_than_the_limit_after_a_wait",
    "gpu::tests::memory::no_more_is_in_use_than_the_limit_and_the_message_says_so",
    "gpu::tests::streams::a_stream_comes_after_what_the_default_one_is_given_by_its_handle",
    "gpu::tests::streams::streams_and_events_are_used_again_and_nothing_is_left",
    "reference::tests::a_position_that_is_not_the_tensors_is_an_error",
    "stream::tests::many_launches_keep_the_order_that_their_tensors_ask_for",
];

/// Addresses go to kernels as numbers, and the pool's threads outlive the tests. What is known of pointers that are gone
/// is forgotten rarely: looking for them every 10000 steps takes a tenth of the time.
const FLAGS: &str =
    "-Zmiri-permissive-provenance -Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-provenance-gc=1000000";

/// Installs Miri for a nightly toolchain, if it isn't.
fn install() -> Result<(), String> {
    let component = ["component", "add", "--toolchain", "nightly", "miri", "rust-src"];
    match output(Command::new("rustup").args(component))? {
        (_, true) => Ok(()),
        (text, false) => Err(text),
    }
}

/// Runs all tests.
pub(crate) fn all() -> Result<(), String> {
    check(&[])
}

/// Runs those that every change waits for.
pub(crate) fn essential() -> Result<(), String> {
    check(&BY_HAND)
}

fn check(without: &[&str]) -> Result<(), String> {
    if if_had("Miri", install()).is_none() {
        return Ok(());
    }
    let test = ["test", "--package", "tile-runtime", "--lib", "--features", "dlpack", "--"];
    // Through rustup's cargo: the one that runs this is of another toolchain.
    let mut miri = Command::new("cargo");
    let skipped = without.iter().flat_map(|module| ["--skip", module]);
    miri.args(["+nightly", "miri"]).args(test).args(MODULES).args(skipped).current_dir(root());
    miri.env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC").env_remove("RUSTDOC");
    miri.env("MIRIFLAGS", FLAGS).env("CARGO_TARGET_DIR", target().join("miri"));
    let shown = run("memory of tensors and of the CPU's pool, under Miri", &mut miri)?;
    show_closing_lines(&shown);
    Ok(())
}
