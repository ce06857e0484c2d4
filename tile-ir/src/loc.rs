//! Source locations. An op knows the line and column of the user's Rust; the file is the kernel's.

use std::fmt;

/// Line and column (both 1-based) in the kernel's source file; [`Loc::UNKNOWN`] where there is none,
/// which only hand-written IR has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Loc {
    /// 1-based line, 0 when unknown.
    pub line: u32,
    /// 1-based column, 0 when unknown.
    pub column: u32,
}

impl Loc {
    /// The location of hand-written IR.
    pub const UNKNOWN: Loc = Loc { line: 0, column: 0 };

    /// A location from 1-based line and column.
    pub const fn new(line: u32, column: u32) -> Self {
        Loc { line, column }
    }

    /// Whether this is a real place in a source file.
    pub const fn is_known(self) -> bool {
        self.line != 0
    }

    /// The place as a message names it, `src/main.rs:12:9`; the file alone where no line is known.
    pub fn in_file(self, file: &str) -> String {
        if self.is_known() { format!("{file}:{self}") } else { file.to_owned() }
    }
}

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
