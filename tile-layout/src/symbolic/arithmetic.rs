//! Sums, products and exact quotients of expressions: polynomial arithmetic in normal form.
//!
//! Coefficients are checked, and the size of every result is bounded: what would not fit is an error.

use super::atom::Atom;
use super::expression::{Expr, Term};
use crate::error::{ErrorKind, LayoutError, Result};
use alloc::format;

/// Atoms and coefficients that an expression may have, those inside its atoms included.
const MAX_SIZE: usize = 512;

/// How deep atoms may nest. Bounds look at each level in two ways, so the time they take doubles with each.
const MAX_DEPTH: usize = 12;

impl Expr {
    /// The sum.
    ///
    /// # Errors
    /// [`ErrorKind::Overflow`] where a coefficient does not fit into 64 bits or the expression grows beyond some
    /// hundred atoms. So for all arithmetic on expressions.
    ///
    /// ```
    /// use tile_layout::symbolic::Expr;
    /// assert_eq!(Expr::from("m").plus("n")?.plus(-1)?.to_string(), "m + n - 1");
    /// assert!(Expr::from(i64::MAX).plus(1).is_err());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn plus(&self, other: impl Into<Expr>) -> Result<Expr> {
        let other = other.into();
        if self.terms.is_empty() {
            return Ok(other);
        }
        let mut sum = self.clone();
        for term in &other.terms {
            sum.add_term(term.clone()).ok_or_else(|| overflow(self, "+", &other))?;
        }
        sum.bounded()
    }

    /// The difference.
    ///
    /// # Errors
    /// As [`Expr::plus`].
    ///
    /// ```
    /// use tile_layout::symbolic::Expr;
    /// assert_eq!(Expr::from("m").minus("m")?, 0.into());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn minus(&self, other: impl Into<Expr>) -> Result<Expr> {
        let other = other.into();
        let mut difference = self.clone();
        for term in &other.terms {
            let negated = term.coefficient.checked_neg();
            negated
                .and_then(|coefficient| difference.add_term(Term { coefficient, ..term.clone() }))
                .ok_or_else(|| overflow(self, "-", &other))?;
        }
        difference.bounded()
    }

    /// The product.
    ///
    /// # Errors
    /// As [`Expr::plus`].
    ///
    /// ```
    /// use tile_layout::symbolic::Expr;
    /// let (m, k) = (Expr::from("m"), Expr::from("k"));
    /// assert_eq!(m.times(&k)?, k.times(&m)?);
    /// assert_eq!(m.plus(1)?.times(m.minus(1)?)?.to_string(), "m*m - 1");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn times(&self, other: impl Into<Expr>) -> Result<Expr> {
        let other = other.into();
        if self.is(1) {
            return Ok(other);
        }
        let refused = || overflow(self, "*", &other);
        if self.terms.len() * other.terms.len() > MAX_SIZE {
            return Err(refused());
        }
        let mut product = Expr::from(0);
        for a in &self.terms {
            for b in &other.terms {
                a.times(b).and_then(|term| product.add_term(term)).ok_or_else(refused)?;
            }
        }
        product.bounded()
    }

    /// Add one term; `None` where its coefficient overflows.
    fn add_term(&mut self, term: Term) -> Option<()> {
        match self.terms.binary_search_by(|other| other.atoms.cmp(&term.atoms)) {
            Err(place) => self.terms.insert(place, term),
            Ok(place) => {
                let sum = self.terms[place].coefficient.checked_add(term.coefficient)?;
                self.terms[place].coefficient = sum;
                if sum == 0 {
                    self.terms.remove(place);
                }
            }
        }
        Some(())
    }

    /// `self`, where it is not too large.
    pub(super) fn bounded(self) -> Result<Expr> {
        if self.size() <= MAX_SIZE && self.depth() <= MAX_DEPTH {
            return Ok(self);
        }
        Err(LayoutError::new(
            ErrorKind::Overflow,
            format!("an expression would have more than {MAX_SIZE} parts or nest deeper than {MAX_DEPTH}"),
        ))
    }

    fn size(&self) -> usize {
        let of_atom = |atom: &Atom| 1 + atom.operands().map(Expr::size).sum::<usize>();
        self.terms().map(|(atoms, _)| 1 + atoms.iter().map(of_atom).sum::<usize>()).sum()
    }

    fn depth(&self) -> usize {
        let atoms = self.terms().flat_map(|(atoms, _)| atoms);
        atoms.map(|atom| 1 + atom.operands().map(Expr::depth).max().unwrap_or(0)).max().unwrap_or(0)
    }

    /// The expression `q` with `q · divisor = self` for all values, where there is one that this finds: always
    /// where the divisor is one product, and where the quotient is.
    ///
    /// ```
    /// use tile_layout::symbolic::Expr;
    /// let area: Expr = "6*m*n + 4*m".parse()?;
    /// assert_eq!(area.exact_quotient(&"2*m".parse()?).map(|quotient| quotient.to_string()), Some("3*n + 2".into()));
    /// assert_eq!(area.exact_quotient(&"n".into()), None);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn exact_quotient(&self, divisor: &Expr) -> Option<Expr> {
        let (last, others) = divisor.terms.split_last()?;
        let mut quotients = self.terms.iter().map(|term| term.exact_quotient(last));
        if others.is_empty() {
            let mut quotient = Expr { terms: quotients.collect::<Option<_>>()? };
            // Products without one of their factors may be in another order.
            quotient.terms.sort();
            return Some(quotient);
        }
        // The order of terms is not one that products keep, so the partner of the divisor's last term is sought.
        quotients.find_map(|term| {
            let quotient = Expr::from_term(term?);
            quotient.times(divisor).is_ok_and(|product| product == *self).then_some(quotient)
        })
    }
}

impl Term {
    /// The product; `None` where its coefficient overflows.
    fn times(&self, other: &Term) -> Option<Term> {
        let mut atoms = self.atoms.clone();
        atoms.extend(other.atoms.iter().cloned());
        atoms.sort();
        Some(Term { atoms, coefficient: self.coefficient.checked_mul(other.coefficient)? })
    }

    /// The quotient, where `divisor` divides.
    fn exact_quotient(&self, divisor: &Term) -> Option<Term> {
        let mut atoms = self.atoms.clone();
        for factor in &divisor.atoms {
            let place = atoms.iter().position(|atom| atom == factor)?;
            atoms.remove(place);
        }
        let whole = self.coefficient.checked_rem(divisor.coefficient)? == 0;
        whole.then(|| Term { atoms, coefficient: self.coefficient / divisor.coefficient })
    }
}

fn overflow(left: &Expr, operator: &str, right: &Expr) -> LayoutError {
    LayoutError::new(
        ErrorKind::Overflow,
        format!("({left}) {operator} ({right}) does not fit: its coefficients are integers of 64 bits"),
    )
}
