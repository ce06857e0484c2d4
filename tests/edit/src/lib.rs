//! Texts that tests change. A test of a kernel in which nothing was replaced tests another kernel, and may pass.

/// A text of which parts are replaced.
pub trait Edit {
    /// The text with every `part` replaced by `new`.
    ///
    /// ```
    /// use tile_test_edit::Edit;
    ///
    /// assert_eq!("x + x".edit("x", "y"), "y + y");
    /// ```
    ///
    /// # Panics
    /// If the text has no such part.
    #[must_use]
    fn edit(&self, part: &str, new: &str) -> String;
}

impl Edit for str {
    #[track_caller]
    fn edit(&self, part: &str, new: &str) -> String {
        assert!(self.contains(part), "nothing to replace: `{part}` isn't in\n{self}");
        self.replace(part, new)
    }
}

#[cfg(test)]
mod tests {
    use super::Edit;

    #[test]
    #[should_panic(expected = "`z` isn't in")]
    fn what_is_replaced_must_be_there() {
        let _ = "x + x".edit("z", "y");
    }
}
