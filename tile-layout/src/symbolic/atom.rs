//! The factors that an expression is made of: symbols, and what does not simplify to a polynomial of them.
//!
//! An atom is only ever made by the operations in `quotient.rs`, which simplify what they can; so is one that is
//! made again from other operands. This file knows no facts about symbols.

use super::expression::Expr;
use super::symbol::{Bindings, Symbol};
use crate::error::{ErrorKind, LayoutError, Result};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

/// An indivisible factor of an expression.
///
/// ```
/// use tile_layout::symbolic::{Atom, Expr};
/// let tiles: Expr = "ceil_div(m, 64)".parse()?;
/// let (atoms, coefficient) = tiles.terms().next().expect("one term");
/// assert!(matches!(atoms, [Atom::CeilDiv(..)]) && coefficient == 1);
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// `⌈a / b⌉`, with a value for `b ≥ 1` only.
    CeilDiv(Box<Expr>, Box<Expr>),
    /// `⌊a / b⌋`, with a value for `b ≥ 1` only.
    FloorDiv(Box<Expr>, Box<Expr>),
    /// `a − b·⌊a / b⌋`, with a value for `b ≥ 1` only.
    Rem(Box<Expr>, Box<Expr>),
    /// The largest of two or more.
    Max(Vec<Expr>),
    /// The smallest of two or more.
    Min(Vec<Expr>),
    /// A run-time integer.
    Symbol(Symbol),
}

impl Atom {
    /// The expressions inside.
    pub(super) fn operands(&self) -> impl Iterator<Item = &Expr> {
        let (pair, list) = match self {
            Atom::CeilDiv(a, b) | Atom::FloorDiv(a, b) | Atom::Rem(a, b) => (Some([&**a, &**b]), &[][..]),
            Atom::Max(arms) | Atom::Min(arms) => (None, &arms[..]),
            Atom::Symbol(_) => (None, &[][..]),
        };
        pair.into_iter().flatten().chain(list)
    }

    pub(super) fn evaluate(&self, bindings: &Bindings) -> Result<i128> {
        let divided = |a: &Expr, b: &Expr| {
            let (dividend, divisor) = (a.evaluate_wide(bindings)?, b.evaluate_wide(bindings)?);
            if divisor >= 1 {
                return Ok((dividend.div_euclid(divisor), dividend.rem_euclid(divisor)));
            }
            Err(LayoutError::new(
                ErrorKind::InvalidExtent,
                format!("{} divides by {divisor}, which is less than 1", Expr::from_atom(self.clone())),
            ))
        };
        let values = |arms: &[Expr]| -> Result<Vec<i128>> {
            arms.iter().map(|arm| arm.evaluate_wide(bindings)).collect()
        };
        match self {
            Atom::CeilDiv(a, b) => divided(a, b).map(|(quotient, rest)| quotient + i128::from(rest > 0)),
            Atom::FloorDiv(a, b) => divided(a, b).map(|(quotient, _)| quotient),
            Atom::Rem(a, b) => divided(a, b).map(|(_, rest)| rest),
            Atom::Max(arms) => values(arms).map(|values| values.into_iter().max().unwrap_or(0)),
            Atom::Min(arms) => values(arms).map(|values| values.into_iter().min().unwrap_or(0)),
            Atom::Symbol(symbol) => bindings.value(symbol).map(i128::from),
        }
    }

    pub(super) fn substitute(&self, value: &dyn Fn(&Symbol) -> Result<Expr>) -> Result<Expr> {
        match self {
            Atom::Symbol(symbol) => value(symbol),
            _ => self.rebuild(&|operand| operand.substitute(value)),
        }
    }

    /// Made again from what `replace` makes of the expressions inside; a symbol stays.
    pub(super) fn rebuild(&self, replace: &dyn Fn(&Expr) -> Result<Expr>) -> Result<Expr> {
        let folded = |arms: &[Expr], fold: fn(&Expr, Expr) -> Result<Expr>| {
            let (first, others) = match arms.split_first() {
                Some((first, others)) => (replace(first)?, others),
                None => return Ok(Expr::from(0)),
            };
            others.iter().try_fold(first, |extreme, arm| fold(&extreme, replace(arm)?))
        };
        match self {
            Atom::CeilDiv(a, b) => replace(a)?.ceil_div(replace(b)?),
            Atom::FloorDiv(a, b) => replace(a)?.floor_div(replace(b)?),
            Atom::Rem(a, b) => replace(a)?.rem(replace(b)?),
            Atom::Max(arms) => folded(arms, |a, b| a.maximum(b)),
            Atom::Min(arms) => folded(arms, |a, b| a.minimum(b)),
            Atom::Symbol(_) => Ok(Expr::from_atom(self.clone())),
        }
    }
}
