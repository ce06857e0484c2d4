//! Conditions on extents that a kernel relies on: `where(BK % 16 == 0, m % BM == 0)`.
//!
//! Those of compile-time parameters alone are decided by [`crate::specialize()`], which drops what holds; those
//! with run-time sizes by [`crate::abi::KernelAbi::bind`].

use crate::dim::{Atom, Dim, DimError};
use crate::loc::Loc;
use crate::ops::Predicate;
use std::collections::BTreeSet;

/// A relation between two extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The left side.
    pub left: Dim,
    /// How the sides compare.
    pub predicate: Predicate,
    /// The right side.
    pub right: Dim,
    /// The condition as the user wrote it, for messages.
    pub source: String,
    /// Place in the user's Rust.
    pub loc: Loc,
}

impl Condition {
    /// Whether it holds for given parameters and sizes.
    ///
    /// # Errors
    /// [`DimError`] where a name is unbound or a divisor is zero. Sides may be negative.
    pub fn holds(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<bool, DimError> {
        let (left, right) = (self.left.evaluate_signed(lookup)?, self.right.evaluate_signed(lookup)?);
        Ok(match self.predicate {
            Predicate::Eq => left == right,
            Predicate::Ne => left != right,
            Predicate::Lt => left < right,
            Predicate::Le => left <= right,
            Predicate::Gt => left > right,
            Predicate::Ge => left >= right,
        })
    }

    /// Whether no run-time size occurs: it is decided once the kernel is specialised.
    pub fn is_static(&self) -> bool {
        self.left.is_static() && self.right.is_static()
    }

    /// The names of the parameters and of the run-time sizes that occur.
    pub fn names(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut params, mut sizes) = (BTreeSet::new(), BTreeSet::new());
        self.left.collect_names(&mut params, &mut sizes);
        self.right.collect_names(&mut params, &mut sizes);
        (params, sizes)
    }

    /// The condition with names replaced, as [`Dim::substitute`] does.
    #[must_use]
    pub fn substitute(&self, lookup: &dyn Fn(&Atom) -> Option<Dim>) -> Condition {
        Condition { left: self.left.substitute(lookup), right: self.right.substitute(lookup), ..self.clone() }
    }

    /// `src/main.rs:12`, where both are known.
    pub(crate) fn place(&self, file: &str) -> String {
        match (file, self.loc.is_known()) {
            ("", _) | (_, false) => String::new(),
            (file, true) => format!(" ({file}:{})", self.loc.line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_may_be_negative_and_divisors_zero() {
        let (m, b) = (Dim::size("m"), Dim::param("B"));
        let condition = |left: Dim, predicate, right: Dim| Condition {
            left,
            predicate,
            right,
            source: String::new(),
            loc: Loc::UNKNOWN,
        };
        let bind = |name: &str| if name == "m" { Some(3) } else { Some(0) };
        let below = condition(m.clone() - Dim::from(8), Predicate::Lt, Dim::from(0));
        assert_eq!(below.holds(&bind), Ok(true));
        assert_eq!(condition(m.clone(), Predicate::Ge, Dim::from(4)).holds(&bind), Ok(false));
        let by_zero = condition(m.rem(&b), Predicate::Eq, Dim::from(0));
        assert!(matches!(by_zero.holds(&bind), Err(DimError::Divisor(_, 0))));
    }
}
