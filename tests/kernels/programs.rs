//! Tests of this binary as programs of their own, which find what the environment says.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use std::process::{Command, Stdio};

/// What a program has written.
#[derive(Debug)]
pub(super) struct Ran {
    /// To standard output, among what the test harness writes there.
    pub(super) said: String,
    /// To standard error.
    pub(super) told: String,
}

impl Ran {
    /// The lines on standard error that name a variable.
    pub(super) fn told_of(&self, variable: &str) -> Vec<&str> {
        self.told.lines().filter(|line| line.contains(variable)).collect()
    }
}

/// Runs the test `kernels::<test>` with these variables, which succeeds.
pub(super) fn run(test: &str, variables: &[(&str, &str)]) -> Ran {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", &format!("kernels::{test}"), "--nocapture"]).stdin(Stdio::null());
    let output = program.env_remove("TILE_LOG").envs(variables.iter().copied()).output().unwrap();
    let [said, told] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{told}");
    Ran { said, told }
}
