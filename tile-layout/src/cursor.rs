//! A cursor over a text: what every notation of the crate is read with.
//!
//! Positions in messages count bytes from 0. Knows nothing of what is read.

use crate::error::{ErrorKind, LayoutError, Result};
use alloc::format;
use alloc::string::String;

/// Levels of brackets that a text may have. The deepest layouts in use have four.
pub(crate) const MAX_DEPTH: usize = 32;

pub(crate) struct Cursor<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(crate) fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Whether `token` comes next; if so, the cursor passes it.
    pub(crate) fn accept(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    pub(crate) fn expect(&mut self, token: &str) -> Result<()> {
        if self.accept(token) { Ok(()) } else { Err(self.error(&format!("`{token}`"))) }
    }

    pub(crate) fn end(&mut self) -> Result<()> {
        self.skip_blanks();
        if self.rest().is_empty() { Ok(()) } else { Err(self.error("the end")) }
    }

    pub(crate) fn error(&self, expected: &str) -> LayoutError {
        let found: String = self.rest().chars().take(12).collect();
        let found = if found.is_empty() { "the end".into() } else { format!("`{found}`") };
        LayoutError::new(
            ErrorKind::Syntax,
            format!("expected {expected} at byte {} of the text, found {found}", self.at),
        )
    }

    pub(crate) fn too_deep(&self) -> LayoutError {
        self.error(&format!("at most {MAX_DEPTH} nested brackets"))
    }
}
