//! The unsafe parts of tile-runtime that need neither a device nor LLVM under Miri, which checks every access to memory:
//! tensors and their views, what kernels' bodies read and write, the CPU's pool, streams of the host, DLPack, and GPUs'
//! memory, copies and launches on a stand-in for their driver. What is left out is the code of kernels and the drivers'
//! functions.

use crate::steps::{MACROS_AS_THEY_ARE, if_had, output, root, run, show_closing_lines, target};
use std::process::Command;

/// The modules whose tests run.
const MODULES: [&str; 7] =
    ["tensor::", "cpu::", "stream::", "interchange::", "reference::", "gpu::image::", "gpu::tests::order::"];

/// Where GPUs are tested, on a stand-in for their driver.
const GPUS: &str = "gpu::tests::";

/// Of the tests of GPUs those that a change waits for: one for each way by which memory is taken, copied, filled, given to
/// kernels, awaited and given back. The others go these ways too, and take four times as long together.
const ESSENTIAL_OF_GPUS: [&str; 13] = [
    "copies::copies_go_on_beside_the_host_in_both_directions",
    "copies::elements_that_lie_apart_are_copied_all_the_same",
    "copies::large_copies_go_in_parts_and_few_buffers_are_pinned",
    "copies::memory_of_a_copy_stays_until_it_is_done",
    "copies::parts_are_filled_where_they_lie",
    "copies::slices_of_the_host_are_waited_for",
    "lost::memory_of_a_copy_that_was_lost_is_not_read",
    "memory::a_context_gives_everything_back_when_it_goes",
    "memory::what_is_in_use_is_counted",
    "streams::a_future_is_woken_when_the_device_comes_to_it",
    "streams::a_graph_waits_for_streams_and_keeps_what_is_dropped_in_its_closure",
    "streams::memory_is_freed_behind_the_streams_that_use_it",
    "streams::other_libraries_use_tensors_between_launches",
];

/// Of the other modules those that a change needn't wait for.
const BY_HAND: [&str; 4] = [
    "reference::tests::a_position_that_is_not_the_tensors_is_an_error",
    "reference::tests::one_part_of_a_tensor_is_read_while_the_other_is_written",
    "stream::tests::many_launches_keep_the_order_that_their_tensors_ask_for",
    "tensor::tests::sequences_have_the_elements_that_they_name",
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
    check(&[GPUS.to_owned()], &[])
}

/// Runs those that every change waits for.
pub(crate) fn essential() -> Result<(), String> {
    check(&ESSENTIAL_OF_GPUS.map(|test| format!("{GPUS}{test}")), &BY_HAND)
}

/// Runs the tests of [`MODULES`], and those of GPUs whose names begin so.
fn check(of_gpus: &[String], without: &[&str]) -> Result<(), String> {
    if if_had("Miri", install()).is_none() {
        return Ok(());
    }
    let test = ["test", "--package", "tile-runtime", "--lib", "--features", "dlpack", "--"];
    // Through rustup's cargo: the one that runs this is of another toolchain.
    let mut miri = Command::new("cargo");
    let skipped = without.iter().flat_map(|module| ["--skip", module]);
    miri.args(["+nightly", "miri"]).args(test).args(MODULES).args(of_gpus).args(skipped).current_dir(root());
    miri.env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC").env_remove("RUSTDOC");
    miri.env("MIRIFLAGS", FLAGS).env("CARGO_TARGET_DIR", target().join("miri"));
    let (variable, level) = MACROS_AS_THEY_ARE;
    miri.env(variable, level);
    let shown = run("memory of tensors and of the CPU's pool, under Miri", &mut miri)?;
    show_closing_lines(&shown);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::tests::assert_is_a_test;

    /// A name that no test has would leave nothing out, or nothing in, and nobody would see it.
    #[test]
    fn every_test_that_is_named_is_there() {
        let sources = root().join("tile-runtime/src");
        let of_gpus = ESSENTIAL_OF_GPUS.iter().map(|test| (sources.join("gpu/tests"), *test));
        let others = BY_HAND.iter().map(|test| (sources.clone(), *test));
        for (folder, test) in of_gpus.chain(others) {
            assert_is_a_test(&folder, test, "tests.rs");
        }
    }
}
