//! What an operation needs beyond the facts: proved, checked at the launch, or refused.
//!
//! An operation asks [`Obligations`] for every condition that its result depends on. One implementation so serves
//! callers who want a launch check and callers who want a refusal. Nothing is dropped: a condition is proved,
//! among the checks, or an error.

use super::condition::Condition;
use super::facts::Facts;
use super::prove::Proof;
use super::symbol::Bindings;
use crate::error::{ErrorKind, LayoutError, Result};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// One condition that a launch must satisfy, and what it is for.
///
/// ```
/// use tile_layout::symbolic::{Check, Condition};
/// let check = Check { condition: Condition::divides(64, "m"), reason: "tile extent of mode 0".into() };
/// assert_eq!(check.to_string(), "m must be a multiple of 64: tile extent of mode 0");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// What must hold.
    pub condition: Condition,
    /// What needs it: "tile extent of mode 0".
    pub reason: String,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.condition.demand(), self.reason)
    }
}

/// The conditions that a launch must satisfy, each once, in the order in which they came up.
///
/// ```
/// use tile_layout::symbolic::{Bindings, Facts, Obligations, SymbolicLayout};
/// let facts = Facts::new().sizes(["m"]);
/// let mut obligations = Obligations::collect(&facts);
/// let bytes: SymbolicLayout = "(8,m):(m,1)".parse()?;
/// let words = bytes.upcast(4, &mut obligations)?;
/// assert_eq!(words.to_string(), "(8,floor_div(m, 4)):(floor_div(m, 4),1)");
/// let checks = obligations.into_checks();
/// assert_eq!(checks.to_string(), "m must be a multiple of 4: stride of mode 0");
/// assert!(checks.verify(&Bindings::from([("m", 12)])).is_ok());
/// assert_eq!(
///     checks.verify(&Bindings::from([("m", 13)])).unwrap_err().to_string(),
///     "m must be a multiple of 4 (stride of mode 0), but m = 13"
/// );
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checks(Vec<Check>);

impl Checks {
    /// No conditions.
    ///
    /// ```
    /// assert!(tile_layout::symbolic::Checks::new().is_empty());
    /// ```
    pub fn new() -> Checks {
        Checks::default()
    }

    /// Add a condition, unless it is there already.
    ///
    /// ```
    /// use tile_layout::symbolic::{Checks, Condition};
    /// let mut checks = Checks::new();
    /// checks.add(Condition::divides(64, "m"), "tile extent of mode 0");
    /// checks.add(Condition::divides(64, "m"), "stride of mode 1");
    /// assert_eq!(checks.to_string(), "m must be a multiple of 64: tile extent of mode 0");
    /// ```
    pub fn add(&mut self, condition: Condition, reason: impl Into<String>) {
        if !self.0.iter().any(|check| check.condition == condition) {
            self.0.push(Check { condition, reason: reason.into() });
        }
    }

    /// Whether every launch satisfies them.
    ///
    /// ```
    /// use tile_layout::symbolic::{Checks, Condition};
    /// let mut checks = Checks::new();
    /// checks.add(Condition::at_most(1, "m"), "extent of mode 0");
    /// assert!(!checks.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The checks, in order.
    ///
    /// ```
    /// assert_eq!(tile_layout::symbolic::Checks::new().iter().count(), 0);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = &Check> {
        self.0.iter()
    }

    /// Whether the values of a launch satisfy them. The facts that the proofs rest on are checked apart, by
    /// [`Facts::check`].
    ///
    /// # Errors
    /// Of the first that does not hold, as [`Condition::check`].
    ///
    /// ```
    /// use tile_layout::symbolic::{Bindings, Checks, Condition};
    /// let mut checks = Checks::new();
    /// checks.add(Condition::at_most(1, "m"), "extent of mode 0");
    /// let error = checks.verify(&Bindings::from([("m", 0)])).unwrap_err();
    /// assert_eq!(error.to_string(), "m must be at least 1 (extent of mode 0), but m = 0");
    /// ```
    pub fn verify(&self, bindings: &Bindings) -> Result<()> {
        let verify = |check: &Check| check.condition.check_as(bindings, &format!(" ({})", check.reason));
        self.0.iter().try_for_each(verify)
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, check) in self.0.iter().enumerate() {
            write!(f, "{}{check}", if position > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

/// The facts that operations may use, and what becomes of a condition that they do not prove.
///
/// ```
/// use tile_layout::ErrorKind;
/// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
/// let facts = Facts::new().sizes(["m"]);
/// let bytes: SymbolicLayout = "(8,m):(m,1)".parse()?;
/// let error = bytes.upcast(4, &mut Obligations::refuse(&facts)).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Unproved);
/// assert_eq!(
///     error.to_string(),
///     "m must be a multiple of 4: stride of mode 0; this follows from no fact: m is at least 0"
/// );
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Obligations<'f> {
    facts: &'f Facts,
    /// Where unproved conditions go; `None` refuses them.
    checks: Option<Checks>,
}

impl<'f> Obligations<'f> {
    /// A condition that is not proved is an error.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations};
    /// assert!(Obligations::refuse(&Facts::new()).into_checks().is_empty());
    /// ```
    pub fn refuse(facts: &'f Facts) -> Obligations<'f> {
        Obligations { facts, checks: None }
    }

    /// A condition that is not proved becomes a launch check.
    ///
    /// ```
    /// use tile_layout::symbolic::{Condition, Facts, Obligations};
    /// let facts = Facts::new();
    /// let mut obligations = Obligations::collect(&facts);
    /// obligations.require(Condition::divides(8, "m"), "vector width")?;
    /// assert_eq!(obligations.into_checks().to_string(), "m must be a multiple of 8: vector width");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn collect(facts: &'f Facts) -> Obligations<'f> {
        Obligations { facts, checks: Some(Checks::new()) }
    }

    /// The facts.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations};
    /// let facts = Facts::new().multiple_of("m", 8);
    /// assert_eq!(Obligations::refuse(&facts).facts(), &facts);
    /// ```
    pub fn facts(&self) -> &'f Facts {
        self.facts
    }

    /// The launch checks so far; none where unproved conditions are refused.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations};
    /// assert!(Obligations::collect(&Facts::new()).into_checks().is_empty());
    /// ```
    pub fn into_checks(self) -> Checks {
        self.checks.unwrap_or_default()
    }

    /// Make sure of a condition: prove it, or note it as a check. `reason` says what needs it.
    ///
    /// # Errors
    /// [`ErrorKind::Contradiction`] where the facts contradict each other; the kind that [`Condition::check`]
    /// gives where the facts refute the condition; [`ErrorKind::Unproved`] where they do not prove it and
    /// unproved conditions are refused.
    ///
    /// ```
    /// use tile_layout::ErrorKind;
    /// use tile_layout::symbolic::{Condition, Facts, Obligations};
    /// let facts = Facts::new().multiple_of("m", 64);
    /// let mut obligations = Obligations::collect(&facts);
    /// obligations.require(Condition::divides(8, "m"), "vector width")?;
    /// let odd = "m + 1".parse::<tile_layout::symbolic::Expr>()?;
    /// let error = obligations.require(Condition::divides(8, odd), "vector width").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NotDivisible);
    /// assert!(obligations.into_checks().is_empty());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn require(&mut self, condition: Condition, reason: impl Into<String>) -> Result<()> {
        self.require_at(condition, &[], reason)
    }

    /// As [`Obligations::require`]; an error names `modes`.
    pub(super) fn require_at(
        &mut self,
        condition: Condition,
        modes: &[usize],
        reason: impl Into<String>,
    ) -> Result<()> {
        if let Some(contradiction) = self.facts.contradiction() {
            return Err(contradiction.clone());
        }
        let (facts, reason) = (self.facts, reason.into());
        match (facts.prove(&condition), &mut self.checks) {
            (Proof::Proved, _) => Ok(()),
            (Proof::Unknown, Some(checks)) => {
                checks.add(condition, reason);
                Ok(())
            }
            (Proof::Refuted, _) => Err(LayoutError::at(
                condition.failure(),
                modes,
                format!("{}: {reason}; this is never so: {facts}", condition.demand()),
            )),
            (Proof::Unknown, None) => Err(LayoutError::at(
                ErrorKind::Unproved,
                modes,
                format!("{}: {reason}; this follows from no fact: {facts}", condition.demand()),
            )),
        }
    }
}
