//! What follows from facts: proofs, provable divisors, bounds, and expressions simplified by facts.
//!
//! Every proof is made in *steps*: a symbol `m` that is a multiple of 64 is replaced by `64·m'`, and a symbol of
//! one value by that. In steps divisibility is read off term by term. Bounds are also sought counting each symbol
//! from its lower bound: a polynomial of such counts without negative terms is seen not to be negative.
//!
//! The search is sound and not complete: [`Proof::Unknown`] says nothing. It must not guess.

use super::atom::Atom;
use super::condition::Condition;
use super::expression::Expr;
use super::facts::{Facts, Range};
use super::interval::Interval;
use super::symbol::Symbol;
use crate::algebra::gcd;
use crate::error::Result;

/// What facts say about a condition.
///
/// ```
/// use tile_layout::symbolic::{Condition, Facts, Proof};
/// assert_eq!(Facts::new().prove(&Condition::divides(2, "m")), Proof::Unknown);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proof {
    /// It holds for all values that satisfy the facts.
    Proved,
    /// It holds for none of them.
    Refuted,
    /// Neither was found.
    Unknown,
}

impl Proof {
    fn of(holds: bool, fails: bool) -> Proof {
        match (holds, fails) {
            (true, _) => Proof::Proved,
            (_, true) => Proof::Refuted,
            _ => Proof::Unknown,
        }
    }
}

impl Facts {
    /// Whether a condition follows. Where an expression in it has no value (it divides by zero or overflows)
    /// nothing is said.
    ///
    /// ```
    /// use tile_layout::symbolic::{Condition, Expr, Facts, Proof};
    /// let facts = Facts::new().sizes(["m", "k"]).multiple_of("m", 64).at_most("k", 63);
    /// let area: Expr = "m*k + 128".parse()?;
    /// assert_eq!(facts.prove(&Condition::divides(64, &area)), Proof::Proved);
    /// assert_eq!(facts.prove(&Condition::divides(64, area.plus(1)?)), Proof::Refuted);
    /// assert_eq!(facts.prove(&Condition::at_most(128, &area)), Proof::Proved);
    /// assert_eq!(facts.prove(&Condition::at_most("m", "k")), Proof::Unknown);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn prove(&self, condition: &Condition) -> Proof {
        if self.contradiction().is_some() {
            return Proof::Unknown;
        }
        let (first, second) = condition.sides();
        let (Ok(first), Ok(second)) = (self.in_steps(first), self.in_steps(second)) else {
            return Proof::Unknown;
        };
        match condition {
            Condition::Divides { .. } => self.divides(&second, &first),
            Condition::Equal { .. } => self.is_zero_difference(&first, &second),
            Condition::AtMost { .. } => self.is_ordered(&first, &second),
        }
    }

    /// Whether a condition is proved.
    pub(super) fn proves(&self, condition: &Condition) -> bool {
        self.prove(condition) == Proof::Proved
    }

    fn divides(&self, divisor: &Expr, expr: &Expr) -> Proof {
        let term_by_term = divisor.as_constant().map_or(Proof::Unknown, |divisor| is_multiple(expr, divisor));
        if term_by_term != Proof::Unknown {
            return term_by_term;
        }
        let (range, of_divisor) = (self.interval(expr), self.interval(divisor));
        let positive = of_divisor.least.is_some_and(|least| least >= 1);
        let never_positive = of_divisor.most.is_some_and(|most| most < 1);
        let between = match (range.least, range.most, of_divisor.least) {
            (Some(least), Some(most), Some(divisor)) => least > 0 && most < divisor,
            _ => false,
        };
        Proof::of(positive && expr.exact_quotient(divisor).is_some(), never_positive || between)
    }

    fn is_zero_difference(&self, left: &Expr, right: &Expr) -> Proof {
        let Ok(difference) = left.minus(right) else { return Proof::Unknown };
        if let Some(constant) = difference.as_constant() {
            return Proof::of(constant == 0, constant != 0);
        }
        let known = known_of_varying(&difference);
        if known > 0 && difference.constant_term() % known != 0 {
            return Proof::Refuted;
        }
        let range = self.interval(&difference);
        let apart = range.least.is_some_and(|least| least > 0) || range.most.is_some_and(|most| most < 0);
        Proof::of(range == Interval::new(0, 0), apart)
    }

    fn is_ordered(&self, left: &Expr, right: &Expr) -> Proof {
        let arms = |expr: &Expr| match expr.as_atom() {
            Some(Atom::Min(arms)) => Some((true, arms.clone())),
            Some(Atom::Max(arms)) => Some((false, arms.clone())),
            _ => None,
        };
        // Below a minimum is below all of its arms; a minimum is below something where one arm is.
        if let Some((is_minimum, arms)) = arms(left) {
            return combine(arms.iter().map(|arm| self.is_ordered(arm, right)), !is_minimum);
        }
        if let Some((is_minimum, arms)) = arms(right) {
            return combine(arms.iter().map(|arm| self.is_ordered(left, arm)), is_minimum);
        }
        let Ok(difference) = right.minus(left) else { return Proof::Unknown };
        let range = self.interval(&difference);
        Proof::of(range.least.is_some_and(|least| least >= 0), range.most.is_some_and(|most| most < 0))
    }

    /// The largest number that the facts show to divide `expr`; 0 where it is always 0, as all numbers divide 0.
    ///
    /// ```
    /// use tile_layout::symbolic::Facts;
    /// let facts = Facts::new().multiple_of("m", 64);
    /// assert_eq!(facts.known_divisor(&"3*m*n + 16".parse()?), 16);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn known_divisor(&self, expr: &Expr) -> i64 {
        match self.in_steps(expr) {
            Ok(expr) if self.contradiction().is_none() => divisor_of(&expr),
            _ => 1,
        }
    }

    /// `expr` in a simpler form that has the same value wherever the facts hold: equal symbols are one, known
    /// values are filled in, and quotients that the facts show to be exact cancel.
    ///
    /// ```
    /// use tile_layout::symbolic::Facts;
    /// let facts = Facts::new().multiple_of("m", 64).equal_to("b", 1);
    /// assert_eq!(facts.simplify(&"64*ceil_div(m, 64) + b".parse()?).to_string(), "m + 1");
    /// assert_eq!(facts.simplify(&"ceil_div(m, 64)".parse()?).to_string(), "floor_div(m, 64)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn simplify(&self, expr: &Expr) -> Expr {
        if self.contradiction().is_some() || !self.bear_on(expr) {
            return expr.clone();
        }
        self.in_steps(expr).and_then(|steps| self.out_of_steps(&steps)).unwrap_or_else(|_| expr.clone())
    }

    /// Whether simplification could find anything: a symbol that another stands for or that has one value, or one
    /// inside a quotient and the like. Those of a polynomial go into steps and come out of them as they were.
    fn bear_on(&self, expr: &Expr) -> bool {
        let bears = |atom: &Atom| match atom {
            Atom::Symbol(symbol) => self.replaced(symbol),
            _ => atom.operands().any(|operand| operand.mentions(&|symbol| self.counts_in_steps(symbol))),
        };
        expr.terms().any(|(atoms, _)| atoms.iter().any(bears))
    }

    /// Whether another symbol or a value stands for this one.
    fn replaced(&self, symbol: &Symbol) -> bool {
        self.representative(symbol) != symbol || self.range(symbol).value().is_some()
    }

    /// Whether this symbol is another expression in steps.
    fn counts_in_steps(&self, symbol: &Symbol) -> bool {
        self.replaced(symbol) || self.range(symbol).step != 1
    }

    /// The quotient, where the facts show that it is exact.
    pub(super) fn exact_quotient(&self, expr: &Expr, divisor: &Expr) -> Option<Expr> {
        let (expr, divisor) = (self.in_steps(expr).ok()?, self.in_steps(divisor).ok()?);
        if self.contradiction().is_some() || self.divides(&divisor, &expr) != Proof::Proved {
            return None;
        }
        let quotient = match divisor.as_constant() {
            Some(divisor) => expr.floor_div(divisor).ok()?,
            None => expr.exact_quotient(&divisor)?,
        };
        self.out_of_steps(&quotient).ok()
    }

    fn in_steps(&self, expr: &Expr) -> Result<Expr> {
        if !expr.mentions(&|symbol| self.counts_in_steps(symbol)) {
            return Ok(expr.clone());
        }
        expr.substitute(&|symbol| {
            let symbol = self.representative(symbol);
            let range = self.range(symbol);
            match range.value() {
                Some(value) => Ok(Expr::from(value)),
                None => Expr::from(symbol).times(range.step),
            }
        })
    }

    /// The inverse of [`Facts::in_steps`].
    fn out_of_steps(&self, expr: &Expr) -> Result<Expr> {
        expr.rebuild(&|coefficient, atom| {
            let Atom::Symbol(symbol) = atom else {
                return atom.rebuild(&|operand| self.out_of_steps(operand));
            };
            // What the coefficient and the step share cancels: 4·m' is m/2 where m goes in steps of 8.
            let step = self.range(symbol).step;
            let shared = gcd(*coefficient, step);
            *coefficient /= shared;
            Expr::from(symbol).floor_div(step / shared)
        })
    }

    /// Between which integers an expression in steps lies.
    fn interval(&self, in_steps: &Expr) -> Interval {
        let plain = in_steps.interval(&|symbol| self.range(symbol).in_steps());
        if !in_steps.mentions(&|symbol| self.range(symbol).least.is_some_and(|least| least != 0)) {
            return plain;
        }
        let from_least = in_steps.substitute(&|symbol| {
            let range = self.range(symbol);
            Expr::from(symbol).plus(range.least.map_or(0, |least| least / range.step))
        });
        let Ok(from_least) = from_least else { return plain };
        plain.within(from_least.interval(&|symbol| self.range(symbol).in_steps_from_least()))
    }
}

impl Range {
    /// The value of the symbol, where only one is left.
    fn value(self) -> Option<i64> {
        self.least.filter(|_| self.least == self.most)
    }

    /// The values of `m'`, where the symbol is `step·m'`.
    fn in_steps(self) -> Interval {
        let (least, most) = (self.least.unwrap_or(i64::MIN), self.most.unwrap_or(i64::MAX));
        // The end of all integers need not be a multiple; others are.
        Interval::new(i128::from(least / self.step), i128::from(most.div_euclid(self.step)))
    }

    /// The values of `m'`, where the symbol is `least + step·m'`.
    fn in_steps_from_least(self) -> Interval {
        let zero = i128::from(self.least.map_or(0, |least| least / self.step));
        let Range { step, least, most } = self;
        let (least, most) = (least.unwrap_or(i64::MIN) / step, most.unwrap_or(i64::MAX).div_euclid(step));
        Interval::new(i128::from(least) - zero, i128::from(most) - zero)
    }
}

/// The proof that all of some statements hold, or, where `all` is not set, that one does.
fn combine(mut proofs: impl Iterator<Item = Proof>, all: bool) -> Proof {
    let (every, any) = if all { (Proof::Proved, Proof::Refuted) } else { (Proof::Refuted, Proof::Proved) };
    // One that decides ends the search; else all are asked, each once.
    let combined = proofs.try_fold(every, |combined, proof| match proof {
        proof if proof == any => Err(any),
        proof if proof == every => Ok(combined),
        _ => Ok(Proof::Unknown),
    });
    combined.unwrap_or_else(|decided| decided)
}

/// A number that divides the value of an expression in steps; 0 where that is 0.
fn divisor_of(expr: &Expr) -> i64 {
    expr.terms().fold(0, |known, term| gcd(known, divisor_of_term(term)))
}

/// Whether the terms show that a constant divides an expression in steps.
fn is_multiple(expr: &Expr, divisor: i64) -> Proof {
    if divisor < 1 {
        return Proof::Refuted;
    }
    let known = gcd(known_of_varying(expr), divisor);
    let rest = expr.constant_term() % known;
    Proof::of(known == divisor && rest == 0, rest != 0)
}

/// A number that divides all terms but the constant one; 0 where there are none.
fn known_of_varying(expr: &Expr) -> i64 {
    let varying = expr.terms().filter(|(atoms, _)| !atoms.is_empty());
    varying.fold(0, |known, term| gcd(known, divisor_of_term(term)))
}

fn divisor_of_term((atoms, coefficient): (&[Atom], i64)) -> i64 {
    let of_atom = |atom: &Atom| match atom {
        Atom::Rem(a, b) => gcd(divisor_of(a), divisor_of(b)),
        Atom::Min(arms) | Atom::Max(arms) => arms.iter().map(divisor_of).fold(0, gcd),
        Atom::CeilDiv(..) | Atom::FloorDiv(..) | Atom::Symbol(_) => 1,
    };
    // A product that does not fit may leave factors out.
    let product = atoms
        .iter()
        .map(of_atom)
        .fold(coefficient, |product, divisor| product.checked_mul(divisor.max(1)).unwrap_or(product));
    gcd(product, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use std::vec::Vec;

    const EACH: [Proof; 3] = [Proof::Proved, Proof::Refuted, Proof::Unknown];

    /// A statement may have parts of its own: to prove it twice on each level takes twice as long for each.
    #[test]
    fn each_statement_is_proved_once() {
        let lists =
            EACH.iter().flat_map(|a| EACH.iter().flat_map(move |b| EACH.iter().map(move |c| [*a, *b, *c])));
        for statements in lists {
            for all in [true, false] {
                let asked = Cell::new(0);
                let proofs = statements.iter().map(|proof| {
                    asked.set(asked.get() + 1);
                    *proof
                });
                let found = combine(proofs, all);
                // Each statement that isn't known may hold or not: what all of these have in common is proved.
                let possible: Vec<bool> = (0..8u32)
                    .map(|bits| core::array::from_fn::<bool, 3, _>(|place| bits >> place & 1 == 1))
                    .filter(|holds| {
                        statements.iter().zip(holds).all(|(proof, holds)| match proof {
                            Proof::Proved => *holds,
                            Proof::Refuted => !holds,
                            Proof::Unknown => true,
                        })
                    })
                    .map(|holds| {
                        if all { holds.iter().all(|holds| *holds) } else { holds.iter().any(|holds| *holds) }
                    })
                    .collect();
                let expected =
                    Proof::of(possible.iter().all(|holds| *holds), possible.iter().all(|holds| !holds));
                assert_eq!(found, expected, "{statements:?} {all}");
                assert!(asked.get() <= 3, "{statements:?} {all}: {} proofs", asked.get());
            }
        }
    }
}
