//! `cargo xtask devices`: what works on this machine. The runtime's example `devices` looks; nothing here knows devices.

use crate::steps::{cargo, output};

/// Prints the table.
pub(crate) fn print() -> Result<(), String> {
    let mut command = cargo(&["run", "--quiet", "--package", "tile-runtime", "--example", "devices"]);
    let (text, succeeded) = output(&mut command)?;
    if !succeeded {
        return Err(text.trim_end().to_owned());
    }
    print!("{text}");
    Ok(())
}
