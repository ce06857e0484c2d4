//! Statements about run-time integers, and whether they hold for given values.
//!
//! A condition is the common language of facts, proofs and launch checks. Whether one follows from facts is
//! decided in `prove.rs`.

use super::expression::Expr;
use super::symbol::Bindings;
use crate::error::{ErrorKind, LayoutError, Result};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A statement about expressions, true or false for each binding of their symbols.
///
/// ```
/// use tile_layout::symbolic::{Bindings, Condition};
/// let whole = Condition::divides(64, "m");
/// assert_eq!(whole.to_string(), "m is a multiple of 64");
/// assert!(whole.check(&Bindings::from([("m", 128)])).is_ok());
/// let error = whole.check(&Bindings::from([("m", 100)])).unwrap_err();
/// assert_eq!(error.to_string(), "m must be a multiple of 64, but m = 100");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Condition {
    /// `expr` is a multiple of `divisor`, and `divisor` is 1 or more.
    Divides {
        /// What divides.
        divisor: Expr,
        /// What is divided.
        expr: Expr,
    },
    /// Both have the same value.
    Equal {
        /// One side.
        left: Expr,
        /// The other side.
        right: Expr,
    },
    /// `left ≤ right`.
    AtMost {
        /// The side that is not the larger.
        left: Expr,
        /// The side that is not the smaller.
        right: Expr,
    },
}

impl Condition {
    /// `expr` is a multiple of `divisor`, which is 1 or more.
    ///
    /// ```
    /// use tile_layout::symbolic::Condition;
    /// assert_eq!(Condition::divides("n", "m").to_string(), "m is a multiple of n");
    /// ```
    pub fn divides(divisor: impl Into<Expr>, expr: impl Into<Expr>) -> Condition {
        Condition::Divides { divisor: divisor.into(), expr: expr.into() }
    }

    /// `left = right`.
    ///
    /// ```
    /// use tile_layout::symbolic::Condition;
    /// assert_eq!(Condition::equal("k", "n").to_string(), "k is equal to n");
    /// ```
    pub fn equal(left: impl Into<Expr>, right: impl Into<Expr>) -> Condition {
        Condition::Equal { left: left.into(), right: right.into() }
    }

    /// `left ≤ right`.
    ///
    /// ```
    /// use tile_layout::symbolic::Condition;
    /// assert_eq!(Condition::at_most("m", 64).to_string(), "m is at most 64");
    /// assert_eq!(Condition::at_most(64, "m").to_string(), "m is at least 64");
    /// ```
    pub fn at_most(left: impl Into<Expr>, right: impl Into<Expr>) -> Condition {
        Condition::AtMost { left: left.into(), right: right.into() }
    }

    /// `0 ≤ expr`.
    ///
    /// ```
    /// use tile_layout::symbolic::Condition;
    /// assert_eq!(Condition::non_negative("lda").to_string(), "lda is at least 0");
    /// ```
    pub fn non_negative(expr: impl Into<Expr>) -> Condition {
        Condition::at_most(0, expr)
    }

    /// Whether it holds for these values, as an error that names the symbols, their values and what was asked.
    ///
    /// # Errors
    /// [`ErrorKind::NotDivisible`], [`ErrorKind::ShapeMismatch`] or [`ErrorKind::OutOfBounds`] where a `Divides`,
    /// an `Equal` or an `AtMost` does not hold; otherwise as [`Expr::evaluate`].
    ///
    /// ```
    /// use tile_layout::symbolic::{Bindings, Condition};
    /// let fits = Condition::at_most("m".parse::<tile_layout::symbolic::Expr>()?.times("n")?, 64);
    /// let error = fits.check(&Bindings::from([("m", 9), ("n", 8)])).unwrap_err();
    /// assert_eq!(error.to_string(), "m*n must be at most 64, but m*n = 72 (m = 9, n = 8)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn check(&self, bindings: &Bindings) -> Result<()> {
        self.check_as(bindings, "")
    }

    /// As [`Condition::check`]; `reason` is appended to what was asked.
    pub(super) fn check_as(&self, bindings: &Bindings, reason: &str) -> Result<()> {
        let (first, second) = self.sides();
        let (a, b) = (first.evaluate(bindings)?, second.evaluate(bindings)?);
        let holds = match self {
            Condition::Divides { .. } => b >= 1 && a.rem_euclid(b) == 0,
            Condition::Equal { .. } => a == b,
            Condition::AtMost { .. } => a <= b,
        };
        if holds {
            return Ok(());
        }
        let values = [(first, a), (second, b)].into_iter();
        let varying = values.filter(|(side, _)| side.as_constant().is_none());
        let values: Vec<String> = varying.map(|(side, value)| value_of(side, value, bindings)).collect();
        let found = if values.is_empty() { "is not".into() } else { values.join(" and ") };
        Err(LayoutError::new(self.failure(), format!("{}{reason}, but {found}", self.demand())))
    }

    /// The class of error where it does not hold.
    pub(super) fn failure(&self) -> ErrorKind {
        match self {
            Condition::Divides { .. } => ErrorKind::NotDivisible,
            Condition::Equal { .. } => ErrorKind::ShapeMismatch,
            Condition::AtMost { .. } => ErrorKind::OutOfBounds,
        }
    }

    /// `m must be a multiple of 64`.
    pub(super) fn demand(&self) -> String {
        self.phrase("must be")
    }

    /// The two sides: what is divided before what divides.
    pub(super) fn sides(&self) -> (&Expr, &Expr) {
        match self {
            Condition::Divides { divisor, expr } => (expr, divisor),
            Condition::Equal { left, right } | Condition::AtMost { left, right } => (left, right),
        }
    }

    fn phrase(&self, verb: &str) -> String {
        match self {
            Condition::Divides { divisor, expr } => format!("{expr} {verb} a multiple of {divisor}"),
            Condition::Equal { left, right } => format!("{left} {verb} equal to {right}"),
            Condition::AtMost { left, right } if left.as_constant().is_some() => {
                format!("{right} {verb} at least {left}")
            }
            Condition::AtMost { left, right } => format!("{left} {verb} at most {right}"),
        }
    }
}

/// `m = 100`, or `2*m = 200 (m = 100)`.
fn value_of(expr: &Expr, value: i64, bindings: &Bindings) -> String {
    if expr.as_symbol().is_some() {
        return format!("{expr} = {value}");
    }
    let symbols = expr.symbols();
    let known = symbols.iter().filter_map(|symbol| Some((symbol, bindings.value(symbol).ok()?)));
    let known: Vec<String> = known.map(|(symbol, value)| format!("{symbol} = {value}")).collect();
    format!("{expr} = {value} ({})", known.join(", "))
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.phrase("is"))
    }
}
