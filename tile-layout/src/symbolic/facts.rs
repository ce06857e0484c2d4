//! What is known of run-time symbols before their values are.
//!
//! A symbol of which nothing is known may be any integer of 64 bits, also a negative one. Facts are promises of
//! the caller: [`Facts::check`] holds a launch to them, and nothing here assumes what was not stated. What
//! follows from facts is decided in `prove.rs`.
//!
//! Invariants: of symbols that are equal one stands for all, and only it has a [`Range`]; the ends of a range are
//! multiples of its step; a range is not empty unless `contradiction` says so, and contradictory facts prove
//! nothing.

use super::condition::Condition;
use super::expression::Expr;
use super::symbol::{Bindings, Symbol};
use crate::algebra::gcd;
use crate::error::{ErrorKind, LayoutError, Result};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

/// Facts about symbols.
///
/// ```
/// use tile_layout::symbolic::{Bindings, Condition, Facts, Proof};
/// let facts = Facts::new().sizes(["m", "n"]).multiple_of("m", 64).at_most("n", 1 << 20).consistent()?;
/// assert_eq!(facts.prove(&Condition::divides(32, "m")), Proof::Proved);
/// assert_eq!(facts.prove(&Condition::divides(32, "n")), Proof::Unknown);
/// let error = facts.check(&Bindings::from([("m", 100), ("n", 3)])).unwrap_err();
/// assert_eq!(error.to_string(), "m must be a multiple of 64 (a given fact), but m = 100");
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    given: Vec<Condition>,
    ranges: BTreeMap<Symbol, Range>,
    /// Symbol → the symbol that stands for it.
    represented: BTreeMap<Symbol, Symbol>,
    contradiction: Option<LayoutError>,
}

/// The values that a symbol may have: `least, least + step, …, most`, in steps from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) step: i64,
    pub(super) least: Option<i64>,
    pub(super) most: Option<i64>,
}

impl Range {
    pub(super) const ALL: Range = Range { step: 1, least: None, most: None };

    /// What lies in both; `None` where nothing does.
    fn within(self, other: Range) -> Option<Range> {
        let least = self.least.max(other.least);
        let most = self.most.into_iter().chain(other.most).min();
        let step = (self.step / gcd(self.step, other.step)).checked_mul(other.step);
        // The only multiple of what does not fit is 0.
        let Some(step) = step else {
            let zero = Range { step: self.step, least: Some(0), most: Some(0) };
            return (least.unwrap_or(0) <= 0 && most.unwrap_or(0) >= 0).then_some(zero);
        };
        // An end that overflows when it is rounded leaves no value.
        let up = |least: i64| match least.rem_euclid(step) {
            0 => Some(least),
            rest => least.checked_add(step - rest),
        };
        let least = least.map(|least| up(least).ok_or(())).transpose().ok()?;
        let down = |most: i64| most.checked_sub(most.rem_euclid(step)).ok_or(());
        let most = most.map(down).transpose().ok()?;
        let empty = least.zip(most).is_some_and(|(least, most)| least > most);
        (!empty).then_some(Range { step, least, most })
    }
}

impl Facts {
    /// Nothing is known.
    ///
    /// ```
    /// assert_eq!(tile_layout::symbolic::Facts::new().to_string(), "nothing is known");
    /// ```
    pub fn new() -> Facts {
        Facts::default()
    }

    /// `symbol` is a multiple of `factor`.
    ///
    /// ```
    /// assert_eq!(tile_layout::symbolic::Facts::new().multiple_of("m", 64).to_string(), "m is a multiple of 64");
    /// ```
    #[must_use]
    pub fn multiple_of(self, symbol: impl Into<Symbol>, factor: i64) -> Facts {
        let symbol = symbol.into();
        let fact = Condition::divides(factor, &symbol);
        let range = (factor >= 1).then_some(Range { step: factor, ..Range::ALL });
        self.restrict(fact, symbol, range)
    }

    /// `symbol ≥ bound`.
    ///
    /// ```
    /// assert_eq!(tile_layout::symbolic::Facts::new().at_least("m", 1).to_string(), "m is at least 1");
    /// ```
    #[must_use]
    pub fn at_least(self, symbol: impl Into<Symbol>, bound: i64) -> Facts {
        let symbol = symbol.into();
        let range = Range { least: Some(bound), ..Range::ALL };
        self.restrict(Condition::at_most(bound, &symbol), symbol, Some(range))
    }

    /// `symbol ≤ bound`.
    ///
    /// ```
    /// assert_eq!(tile_layout::symbolic::Facts::new().at_most("n", 8).to_string(), "n is at most 8");
    /// ```
    #[must_use]
    pub fn at_most(self, symbol: impl Into<Symbol>, bound: i64) -> Facts {
        let symbol = symbol.into();
        let range = Range { most: Some(bound), ..Range::ALL };
        self.restrict(Condition::at_most(&symbol, bound), symbol, Some(range))
    }

    /// `symbol = value`.
    ///
    /// ```
    /// assert_eq!(tile_layout::symbolic::Facts::new().equal_to("b", 1).to_string(), "b is equal to 1");
    /// ```
    #[must_use]
    pub fn equal_to(self, symbol: impl Into<Symbol>, value: i64) -> Facts {
        let symbol = symbol.into();
        let range = Range { step: 1, least: Some(value), most: Some(value) };
        self.restrict(Condition::equal(&symbol, value), symbol, Some(range))
    }

    /// The symbols are not negative, as every extent is.
    ///
    /// ```
    /// use tile_layout::symbolic::Facts;
    /// assert_eq!(Facts::new().sizes(["m"]).to_string(), "m is at least 0");
    /// ```
    #[must_use]
    pub fn sizes<S: Into<Symbol>>(self, symbols: impl IntoIterator<Item = S>) -> Facts {
        symbols.into_iter().fold(self, |facts, symbol| facts.at_least(symbol, 0))
    }

    /// Two symbols have the same value, so that each has the facts of both.
    ///
    /// ```
    /// use tile_layout::symbolic::{Condition, Facts, Proof};
    /// let facts = Facts::new().multiple_of("k", 8).same("k", "n");
    /// assert_eq!(facts.prove(&Condition::divides(8, "n")), Proof::Proved);
    /// assert_eq!(facts.prove(&Condition::equal("n", "k")), Proof::Proved);
    /// ```
    #[must_use]
    pub fn same(mut self, symbol: impl Into<Symbol>, other: impl Into<Symbol>) -> Facts {
        let (symbol, other) = (symbol.into(), other.into());
        let fact = Condition::equal(&symbol, &other);
        let (kept, left) = (self.representative(&symbol).clone(), self.representative(&other).clone());
        if kept == left {
            self.given.push(fact);
            return self;
        }
        let range = self.ranges.remove(&left).unwrap_or(Range::ALL);
        self.represented.values_mut().filter(|value| **value == left).for_each(|value| *value = kept.clone());
        self.represented.insert(left, kept.clone());
        self.restrict(fact, kept, Some(range))
    }

    /// Add `fact`, which leaves `symbol` the values in `range`.
    fn restrict(mut self, fact: Condition, symbol: Symbol, range: Option<Range>) -> Facts {
        let kept = self.representative(&symbol).clone();
        let old = self.ranges.get(&kept).copied().unwrap_or(Range::ALL);
        match range.and_then(|range| old.within(range)) {
            Some(range) => drop(self.ranges.insert(kept, range)),
            None if self.contradiction.is_none() => self.contradiction = Some(self.contradicts(&fact, &kept)),
            None => {}
        }
        self.given.push(fact);
        self
    }

    fn contradicts(&self, fact: &Condition, symbol: &Symbol) -> LayoutError {
        let concerned = |fact: &&Condition| {
            let (first, second) = fact.sides();
            let mut named = [first, second].into_iter().filter_map(Expr::as_symbol);
            named.any(|name| self.representative(name) == symbol)
        };
        let earlier: Vec<_> = self.given.iter().filter(concerned).map(ToString::to_string).collect();
        let message = match earlier.as_slice() {
            [] => format!("no value satisfies: {fact}"),
            _ => format!("no value satisfies: {fact}, and {}", earlier.join(", and ")),
        };
        LayoutError::new(ErrorKind::Contradiction, message)
    }

    /// The facts, where some values satisfy them.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] where none do. Facts that were not asked prove nothing then, and every
    /// operation that needs a proof reports the same error.
    ///
    /// ```
    /// use tile_layout::symbolic::Facts;
    /// let error = Facts::new().multiple_of("m", 64).at_least("m", 1).at_most("m", 63).consistent().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "no value satisfies: m is at most 63, and m is a multiple of 64, and m is at least 1"
    /// );
    /// ```
    pub fn consistent(self) -> Result<Facts> {
        match self.contradiction {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }

    pub(super) fn contradiction(&self) -> Option<&LayoutError> {
        self.contradiction.as_ref()
    }

    /// Whether the values of a launch are what was promised.
    ///
    /// # Errors
    /// Of the first fact that does not hold, as [`Condition::check`]; [`ErrorKind::Unbound`] where a symbol with
    /// a fact has no value.
    ///
    /// ```
    /// use tile_layout::symbolic::{Bindings, Facts};
    /// let facts = Facts::new().same("k", "n");
    /// assert!(facts.check(&Bindings::from([("k", 8), ("n", 8)])).is_ok());
    /// let error = facts.check(&Bindings::from([("k", 8), ("n", 9)])).unwrap_err();
    /// assert_eq!(error.to_string(), "k must be equal to n (a given fact), but k = 8 and n = 9");
    /// ```
    pub fn check(&self, bindings: &Bindings) -> Result<()> {
        self.given.iter().try_for_each(|fact| fact.check_as(bindings, " (a given fact)"))
    }

    /// The facts as they were stated.
    ///
    /// ```
    /// use tile_layout::symbolic::{Condition, Facts};
    /// let facts = Facts::new().multiple_of("m", 64);
    /// assert_eq!(facts.given(), [Condition::divides(64, "m")]);
    /// ```
    pub fn given(&self) -> &[Condition] {
        &self.given
    }

    /// The symbol that stands for all that are equal to `symbol`.
    pub(super) fn representative<'a>(&'a self, symbol: &'a Symbol) -> &'a Symbol {
        self.represented.get(symbol).unwrap_or(symbol)
    }

    /// The values that a symbol which stands for itself may have.
    pub(super) fn range(&self, symbol: &Symbol) -> Range {
        self.ranges.get(symbol).copied().unwrap_or(Range::ALL)
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.given.is_empty() {
            return f.write_str("nothing is known");
        }
        for (position, fact) in self.given.iter().enumerate() {
            write!(f, "{}{fact}", if position > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
