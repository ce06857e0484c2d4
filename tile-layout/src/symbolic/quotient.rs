//! Quotients, remainders, minima and maxima of expressions: what of them simplifies for all values.
//!
//! Nothing here knows facts about symbols. A divisor must be 1 or more: a constant that is not is refused at
//! once, a symbolic one when it is evaluated.

use super::atom::Atom;
use super::expression::{Expr, Term};
use crate::algebra::gcd;
use crate::error::{ErrorKind, LayoutError, Result};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Down,
    Up,
}

impl Rounding {
    /// The quotient of constants; the divisor is 1 or more.
    fn divide(self, dividend: i64, divisor: i64) -> i64 {
        let up = self == Rounding::Up && dividend.rem_euclid(divisor) > 0;
        dividend.div_euclid(divisor) + i64::from(up)
    }

    fn atom(self, dividend: Expr, divisor: Expr) -> Atom {
        let (dividend, divisor) = (Box::new(dividend), Box::new(divisor));
        match self {
            Rounding::Down => Atom::FloorDiv(dividend, divisor),
            Rounding::Up => Atom::CeilDiv(dividend, divisor),
        }
    }

    /// The operands, where `atom` rounds like this.
    fn operands(self, atom: &Atom) -> Option<(&Expr, &Expr)> {
        match (self, atom) {
            (Rounding::Down, Atom::FloorDiv(a, b)) | (Rounding::Up, Atom::CeilDiv(a, b)) => Some((a, b)),
            _ => None,
        }
    }
}

impl Expr {
    /// `⌊self / divisor⌋`. What divides for all values is taken out: `(64*a + b)/64` is `a + b/64`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidExtent`] where the divisor is a constant less than 1; otherwise as [`Expr::plus`].
    ///
    /// ```
    /// use tile_layout::symbolic::Expr;
    /// let elements: Expr = "64*a + b".parse()?;
    /// assert_eq!(elements.floor_div(64)?.to_string(), "floor_div(b, 64) + a");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn floor_div(&self, divisor: impl Into<Expr>) -> Result<Expr> {
        self.quotient(divisor.into(), Rounding::Down)
    }

    /// `⌈self / divisor⌉`: how many tiles of `divisor` elements cover `self` of them.
    ///
    /// # Errors
    /// As [`Expr::floor_div`].
    ///
    /// ```
    /// use tile_layout::symbolic::Expr;
    /// assert_eq!(Expr::from("m").ceil_div(64)?.times(64)?.to_string(), "64*ceil_div(m, 64)");
    /// assert_eq!(Expr::from("m").times(128)?.ceil_div(64)?.to_string(), "2*m");
    /// assert!(Expr::from("m").ceil_div(0).is_err());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn ceil_div(&self, divisor: impl Into<Expr>) -> Result<Expr> {
        self.quotient(divisor.into(), Rounding::Up)
    }

    fn quotient(&self, divisor: Expr, rounding: Rounding) -> Result<Expr> {
        match divisor.as_constant() {
            Some(divisor) => self.quotient_by_constant(check_divisor(self, divisor)?, rounding),
            None => match self.exact_quotient(&divisor) {
                Some(quotient) => Ok(quotient),
                None => Expr::from_atom(rounding.atom(self.clone(), divisor)).bounded(),
            },
        }
    }

    fn quotient_by_constant(&self, divisor: i64, rounding: Rounding) -> Result<Expr> {
        // A common factor of all but the constant term cancels: what it leaves of that term is rounded first.
        let varying = || self.terms().filter(|(atoms, _)| !atoms.is_empty());
        let common = varying().fold(divisor, |common, (_, coefficient)| gcd(common, coefficient));
        let divisor = divisor / common;
        let constant = rounding.divide(self.constant_term(), common);
        let (mut whole, mut rest) = (Expr::from(constant.div_euclid(divisor)), Expr::from(0));
        for (atoms, coefficient) in varying() {
            let coefficient = coefficient / common;
            match coefficient % divisor {
                0 => whole = whole.plus(Expr::from_term(Term::new(atoms, coefficient / divisor)))?,
                _ => rest = rest.plus(Expr::from_term(Term::new(atoms, coefficient)))?,
            }
        }
        rest = rest.plus(constant.rem_euclid(divisor))?;
        whole.plus(rest.rounded_rest(divisor, rounding)?)
    }

    /// The quotient of what no longer divides.
    fn rounded_rest(self, divisor: i64, rounding: Rounding) -> Result<Expr> {
        if let Some(constant) = self.as_constant() {
            return Ok(Expr::from(rounding.divide(constant, divisor)));
        }
        if let Some((dividend, inner)) = self.as_atom().and_then(|atom| rounding.operands(atom))
            && let Some(product) = inner.as_constant().and_then(|inner| inner.checked_mul(divisor))
        {
            return dividend.quotient_by_constant(product, rounding);
        }
        Expr::from_atom(rounding.atom(self, Expr::from(divisor))).bounded()
    }

    /// `self − divisor·⌊self / divisor⌋`, which lies in `0..divisor`.
    ///
    /// # Errors
    /// As [`Expr::floor_div`].
    ///
    /// ```
    /// use tile_layout::symbolic::Expr;
    /// assert_eq!("64*a + b + 65".parse::<Expr>()?.rem(64)?.to_string(), "rem(b + 1, 64)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn rem(&self, divisor: impl Into<Expr>) -> Result<Expr> {
        let divisor = divisor.into();
        let Some(divisor) = divisor.as_constant() else {
            if self.exact_quotient(&divisor).is_some() {
                return Ok(Expr::from(0));
            }
            return Expr::from_atom(Atom::Rem(Box::new(self.clone()), Box::new(divisor))).bounded();
        };
        let divisor = check_divisor(self, divisor)?;
        let mut rest = Expr::from(0);
        for (atoms, coefficient) in self.terms() {
            rest = rest.plus(Expr::from_term(Term::new(atoms, coefficient.rem_euclid(divisor))))?;
        }
        if rest.as_constant().is_some() {
            return Ok(rest);
        }
        let common = rest.terms().fold(divisor, |common, (_, coefficient)| gcd(common, coefficient));
        let reduced = rest.quotient_by_constant(common, Rounding::Down)?;
        let atom = Atom::Rem(Box::new(reduced), Box::new(Expr::from(divisor / common)));
        Expr::from_atom(atom).bounded()?.times(common)
    }

    /// The smaller of two. (`min` is taken by the order of expressions as data.)
    ///
    /// # Errors
    /// As [`Expr::plus`].
    ///
    /// ```
    /// use tile_layout::symbolic::Expr;
    /// assert_eq!(Expr::from("m").minimum(64)?.minimum("m")?.to_string(), "min(64, m)");
    /// assert_eq!(Expr::from("m").minimum(Expr::from("m").plus(1)?)?.to_string(), "m");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn minimum(&self, other: impl Into<Expr>) -> Result<Expr> {
        let arms_of = |expr: &Expr| match expr.as_atom() {
            Some(Atom::Min(arms)) => arms.clone(),
            _ => Vec::from([expr.clone()]),
        };
        extreme(arms_of(self), arms_of(&other.into()), |difference| difference <= 0, Atom::Min)
    }

    /// The larger of two.
    ///
    /// # Errors
    /// As [`Expr::plus`].
    ///
    /// ```
    /// use tile_layout::symbolic::Expr;
    /// assert_eq!(Expr::from("m").maximum(1)?.to_string(), "max(1, m)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn maximum(&self, other: impl Into<Expr>) -> Result<Expr> {
        let arms_of = |expr: &Expr| match expr.as_atom() {
            Some(Atom::Max(arms)) => arms.clone(),
            _ => Vec::from([expr.clone()]),
        };
        extreme(arms_of(self), arms_of(&other.into()), |difference| difference >= 0, Atom::Max)
    }
}

/// The extreme of all arms: `wins` says of a constant difference of two whether the first makes the second
/// superfluous.
fn extreme(
    arms: Vec<Expr>,
    others: Vec<Expr>,
    wins: fn(i64) -> bool,
    atom: fn(Vec<Expr>) -> Atom,
) -> Result<Expr> {
    let mut kept: Vec<Expr> = Vec::new();
    for arm in arms.into_iter().chain(others) {
        let beats = |a: &Expr, b: &Expr| a.minus(b).ok().and_then(|d| d.as_constant()).is_some_and(wins);
        if !kept.iter().any(|other| beats(other, &arm)) {
            kept.retain(|other| !beats(&arm, other));
            kept.push(arm);
        }
    }
    kept.sort();
    match <[Expr; 1]>::try_from(kept) {
        Ok([only]) => Ok(only),
        Err(several) => Expr::from_atom(atom(several)).bounded(),
    }
}

fn check_divisor(dividend: &Expr, divisor: i64) -> Result<i64> {
    if divisor >= 1 {
        return Ok(divisor);
    }
    Err(LayoutError::new(
        ErrorKind::InvalidExtent,
        format!("{dividend} is divided by {divisor}, which is less than 1"),
    ))
}
