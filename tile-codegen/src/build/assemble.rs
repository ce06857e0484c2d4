//! PTX assembled when a program is built.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The machine code that `ptxas` makes of a file with PTX, beside which it writes.
///
/// # Errors
/// Where `ptxas` can't be run, and what it refuses.
pub(super) fn ptx(ptxas: &Path, target: &str, path: &Path) -> Result<Vec<u8>, String> {
    let cubin = path.with_extension("cubin");
    let mut command = Command::new(ptxas);
    let output = command.arg(format!("-arch={target}")).arg("-o").arg(&cubin).arg(path).output();
    let output = output.map_err(|error| format!("{} can't be run: {error}", ptxas.display()))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} refuses {}: {}", ptxas.display(), path.display(), words.trim_end()));
    }
    fs::read(&cubin).map_err(|error| format!("{}: {error}", cubin.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_assembler_is_an_error() {
        let error = ptx(Path::new("no/such/ptxas"), "sm_90a", Path::new("k.ptx")).unwrap_err();
        assert!(error.starts_with("no/such/ptxas can't be run: "), "{error}");
    }

    #[test]
    fn what_the_assembler_refuses_is_an_error() {
        let error = ptx(Path::new("false"), "sm_90a", Path::new("k.ptx")).unwrap_err();
        assert_eq!(error, "false refuses k.ptx: ");
    }
}
