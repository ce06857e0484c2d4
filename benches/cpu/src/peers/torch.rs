//! PyTorch, whose matrix products are MKL's, in a process of Python where one is found.

use crate::peers::process::Process;
use std::process::Command;

const SCRIPT: &str = include_str!("torch_peer.py");

/// The environment variable that names a Python with PyTorch.
const PYTHON_VARIABLE: &str = "TILE_BENCH_PYTHON";

/// Starts it and gives its version; the error says what is missing.
pub(crate) fn start() -> Result<(Process, String), String> {
    let python = std::env::var(PYTHON_VARIABLE).unwrap_or_else(|_| "python3".to_owned());
    let missing =
        format!("no PyTorch in `{python}`, so MKL isn't measured: {PYTHON_VARIABLE} may name another Python");
    // Its threads wait asleep, so that they don't take a core from whoever is next.
    let mut command = Command::new(python);
    command.args(["-c", SCRIPT]).env("OMP_WAIT_POLICY", "passive").env("KMP_BLOCKTIME", "0");
    let mut process = Process::start(&mut command).map_err(|_| missing.clone())?;
    let version = process.ask("version").map_err(|_| missing)?;
    Ok((process, version))
}
