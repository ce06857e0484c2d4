//! The `.tir` text form. `parse(print(k))` prints the same text again.

use crate::kernel::Kernel;

/// A text that isn't IR.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ParseError {
    /// 1-based line in the text.
    pub line: u32,
    /// 1-based column in the text.
    pub column: u32,
    /// What was expected and what was found.
    pub message: String,
}

/// The text of a kernel, as snapshots hold it: without source locations.
pub fn print(kernel: &Kernel) -> String {
    todo!()
}

/// The text with source locations, as executables embed it: a `file "…"` line, and ` @line:column` after ops.
pub fn print_with_locations(kernel: &Kernel) -> String {
    todo!()
}

/// Reads a kernel from either form of text.
///
/// # Errors
/// [`ParseError`] at the first token that doesn't fit. The result is not verified.
pub fn parse(text: &str) -> Result<Kernel, ParseError> {
    todo!()
}

/// A stable 64-bit hash of [`print`]'s text: the identity of a kernel's meaning in caches and embedded code.
pub fn fingerprint(kernel: &Kernel) -> u64 {
    todo!()
}
