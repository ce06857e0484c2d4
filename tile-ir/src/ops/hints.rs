//! What a kernel's author says of how a view's tiles are read. Hints change when memory is touched, never a result.

use super::TypeError;
use crate::dim::Dim;
use std::fmt;

/// Loops don't look further ahead than this: what they would bring near is gone before it is read.
pub const MAX_LATENCY: i64 = 64;

/// The hints of a partition view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// How many turns before it is read a loop asks for a tile.
    pub latency: Option<Dim>,
    /// Whether rows are asked for in one copy each, where the target has such; otherwise by cache line.
    pub bulk_copy: Option<bool>,
}

impl Hints {
    /// The hints with parameters substituted.
    pub fn map(&self, dim: impl Fn(&Dim) -> Dim) -> Hints {
        Hints { latency: self.latency.as_ref().map(dim), bulk_copy: self.bulk_copy }
    }

    /// Refuses a latency that isn't 1 to [`MAX_LATENCY`], or is known at run time only.
    ///
    /// # Errors
    /// [`TypeError`], which says what a latency is.
    pub fn check(&self) -> Result<(), TypeError> {
        let Some(latency) = &self.latency else { return Ok(()) };
        let help = format!("a latency is 1 to {MAX_LATENCY} turns of a loop");
        if !latency.is_static() {
            let message = format!("the latency `{latency}` is known only at run time");
            return Err(TypeError::new(message).help("use a literal or a const parameter"));
        }
        match latency.as_const() {
            Some(turns) if !(1..=MAX_LATENCY).contains(&turns) => {
                let reason = if turns < 1 {
                    "asks for nothing ahead of time"
                } else {
                    "is too far ahead to be of use"
                };
                Err(TypeError::new(format!("a latency of {turns} {reason}")).help(help))
            }
            _ => Ok(()),
        }
    }
}

/// As in IR text, each hint with a space before it.
impl fmt::Display for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(latency) = &self.latency {
            write!(f, " latency {latency}")?;
        }
        match self.bulk_copy {
            Some(bulk) => write!(f, " bulk_copy {bulk}"),
            None => Ok(()),
        }
    }
}
