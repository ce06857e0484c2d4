//! Conditions on extents that a kernel relies on: `where(BK % 16 == 0, !CAUSAL || m == n)`.
//!
//! What compile-time parameters decide is decided by [`crate::specialize()`], which drops what holds; what is left, of
//! run-time sizes, by [`crate::abi::KernelAbi::bind`].

mod formula;

pub use formula::{Comparison, Formula};

use crate::dim::{Atom, Dim, DimError};
use crate::loc::Loc;
use crate::ops::Predicate;
use std::collections::BTreeSet;

/// What a kernel relies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What must hold.
    pub formula: Formula,
    /// The condition as the user wrote it, for messages.
    pub source: String,
    /// Place in the user's Rust.
    pub loc: Loc,
}

impl Condition {
    /// A relation between two extents, of no place.
    ///
    /// ```
    /// use tile_ir::{Condition, Dim, ops::Predicate};
    ///
    /// let aligned = Condition::compare(Dim::size("n").rem(&Dim::from(16)), Predicate::Eq, Dim::from(0));
    /// assert_eq!(aligned.source, "n % 16 == 0");
    /// assert_eq!(aligned.holds(&|_| Some(48)), Ok(true));
    /// ```
    pub fn compare(left: Dim, predicate: Predicate, right: Dim) -> Condition {
        let formula = Formula::Compare(Comparison { left, predicate, right });
        Condition { source: format!("{formula:#}"), formula, loc: Loc::UNKNOWN }
    }

    /// Whether it holds for given parameters and sizes.
    ///
    /// # Errors
    /// As [`Formula::holds`].
    pub fn holds(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<bool, DimError> {
        self.formula.holds(lookup)
    }

    /// The names of the parameters and of the run-time sizes that occur.
    pub fn names(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut params, mut sizes) = (BTreeSet::new(), BTreeSet::new());
        self.formula.each(&mut |Comparison { left, right, .. }| {
            left.collect_names(&mut params, &mut sizes);
            right.collect_names(&mut params, &mut sizes);
        });
        (params, sizes)
    }

    /// The condition with names replaced, as [`Dim::substitute`] does, and without what that decides.
    #[must_use]
    pub fn substitute(&self, lookup: &dyn Fn(&Atom) -> Option<Dim>) -> Condition {
        Condition { formula: self.formula.substitute(lookup), ..self.clone() }
    }

    /// `src/main.rs:12`, where both are known.
    pub(crate) fn place(&self, file: &str) -> String {
        match (file, self.loc.is_known()) {
            ("", _) | (_, false) => String::new(),
            (file, true) => format!(" ({file}:{})", self.loc.line),
        }
    }
}
