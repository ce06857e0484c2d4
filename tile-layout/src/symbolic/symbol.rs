//! Names for integers that are known at run time, and the values that a launch gives them.
//!
//! A symbol is its name: two symbols of one name are one symbol. This file knows nothing of what may be assumed
//! about a symbol; that is [`super::Facts`].

use crate::error::{ErrorKind, LayoutError, Result};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// A name for an integer of 64 bits that is known at run time: `m`.
///
/// Any text can be a name, but only a letter or `_` followed by letters, digits and `_` is read back by the
/// parsers of this module.
///
/// ```
/// use tile_layout::symbolic::Symbol;
/// assert_eq!(Symbol::from("m").name(), "m");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(Arc<str>);

impl Symbol {
    /// Its text.
    ///
    /// ```
    /// assert_eq!(tile_layout::symbolic::Symbol::from("rows").name(), "rows");
    /// ```
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Symbol {
    fn from(name: &str) -> Symbol {
        Symbol(name.into())
    }
}

impl From<String> for Symbol {
    fn from(name: String) -> Symbol {
        Symbol(name.into())
    }
}

impl From<&Symbol> for Symbol {
    fn from(symbol: &Symbol) -> Symbol {
        symbol.clone()
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The values of symbols at one launch.
///
/// ```
/// use tile_layout::symbolic::{Bindings, Symbol};
/// let sizes = Bindings::from([("m", 300), ("n", 64)]);
/// assert_eq!(sizes.value(&Symbol::from("m"))?, 300);
/// assert_eq!(sizes.value(&Symbol::from("k")).unwrap_err().to_string(), "`k` has no value");
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings(BTreeMap<Symbol, i64>);

impl Bindings {
    /// No symbol has a value.
    ///
    /// ```
    /// assert_eq!(tile_layout::symbolic::Bindings::new().iter().count(), 0);
    /// ```
    pub fn new() -> Bindings {
        Bindings::default()
    }

    /// Give `symbol` a value, in the place of one that it had.
    ///
    /// ```
    /// use tile_layout::symbolic::Bindings;
    /// assert_eq!(Bindings::new().with("m", 1).with("m", 2), Bindings::from([("m", 2)]));
    /// ```
    #[must_use]
    pub fn with(mut self, symbol: impl Into<Symbol>, value: i64) -> Bindings {
        self.0.insert(symbol.into(), value);
        self
    }

    /// The value of a symbol.
    ///
    /// # Errors
    /// [`ErrorKind::Unbound`] where it has none.
    ///
    /// ```
    /// use tile_layout::symbolic::Bindings;
    /// assert_eq!(Bindings::from([("m", 7)]).value(&"m".into())?, 7);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn value(&self, symbol: &Symbol) -> Result<i64> {
        let unbound = || LayoutError::new(ErrorKind::Unbound, format!("`{symbol}` has no value"));
        self.0.get(symbol).copied().ok_or_else(unbound)
    }

    /// The symbols in the order of their names, with their values.
    ///
    /// ```
    /// use tile_layout::symbolic::Bindings;
    /// let sizes = Bindings::from([("n", 2), ("m", 1)]);
    /// assert_eq!(sizes.iter().map(|(symbol, _)| symbol.name()).collect::<Vec<_>>(), ["m", "n"]);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&Symbol, i64)> {
        self.0.iter().map(|(symbol, &value)| (symbol, value))
    }
}

impl<S: Into<Symbol>> FromIterator<(S, i64)> for Bindings {
    fn from_iter<I: IntoIterator<Item = (S, i64)>>(values: I) -> Bindings {
        Bindings(values.into_iter().map(|(symbol, value)| (symbol.into(), value)).collect())
    }
}

impl<S: Into<Symbol>, const N: usize> From<[(S, i64); N]> for Bindings {
    fn from(values: [(S, i64); N]) -> Bindings {
        values.into_iter().collect()
    }
}
