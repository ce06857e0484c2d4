//! Between which integers the value of an expression lies, given that for its symbols.
//!
//! An end that is `None` is unbounded. Ends are integers of 128 bits; an end that does not fit becomes unbounded,
//! so an interval is never too narrow. This file knows intervals of symbols and no other facts.

use super::atom::Atom;
use super::expression::{Expr, Term};
use super::symbol::Symbol;

/// All integers from `least` to `most`, both counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) least: Option<i128>,
    pub(super) most: Option<i128>,
}

impl Interval {
    pub(super) const ALL: Interval = Interval { least: None, most: None };

    pub(super) fn new(least: i128, most: i128) -> Interval {
        Interval { least: Some(least), most: Some(most) }
    }

    fn plus(self, other: Interval) -> Interval {
        let add = |a: Option<i128>, b: Option<i128>| a?.checked_add(b?);
        Interval { least: add(self.least, other.least), most: add(self.most, other.most) }
    }

    fn negated(self) -> Interval {
        let negate = |end: Option<i128>| end.and_then(i128::checked_neg);
        Interval { least: negate(self.most), most: negate(self.least) }
    }

    fn times(self, other: Interval) -> Interval {
        let ends = |interval: Interval| {
            [interval.least.map_or(End::BelowAll, End::At), interval.most.map_or(End::AboveAll, End::At)]
        };
        let (mut least, mut most) = (End::AboveAll, End::BelowAll);
        for a in ends(self) {
            for b in ends(other) {
                let corner = a.times(b);
                least = least.min(corner);
                most = most.max(corner);
            }
        }
        let finite = |end| match end {
            End::At(value) => Some(value),
            End::BelowAll | End::AboveAll => None,
        };
        Interval { least: finite(least), most: finite(most) }
    }

    /// The quotients rounded down; the divisor counts from 1.
    fn floor_div(self, divisor: Interval) -> Interval {
        let smallest = divisor.least.unwrap_or(1).max(1);
        let toward_zero = |end: i128| match divisor.most {
            Some(largest) => end.div_euclid(largest.max(smallest)),
            None => {
                if end < 0 {
                    -1
                } else {
                    0
                }
            }
        };
        Interval {
            least: self.least.map(|end| if end < 0 { end.div_euclid(smallest) } else { toward_zero(end) }),
            most: self.most.map(|end| if end < 0 { toward_zero(end) } else { end.div_euclid(smallest) }),
        }
    }

    fn rem(self, divisor: Interval) -> Interval {
        let within = |least: i128, most: i128| least >= 0 && divisor.least.is_some_and(|d| most < d);
        if let (Some(least), Some(most)) = (self.least, self.most)
            && within(least, most)
        {
            return self;
        }
        Interval { least: Some(0), most: divisor.most.map(|largest| (largest - 1).max(0)) }
    }

    /// What lies in both.
    pub(super) fn within(self, other: Interval) -> Interval {
        let tighter = |a: Option<i128>, b: Option<i128>, pick: fn(i128, i128) -> i128| match (a, b) {
            (Some(a), Some(b)) => Some(pick(a, b)),
            (a, b) => a.or(b),
        };
        Interval {
            least: tighter(self.least, other.least, i128::max),
            most: tighter(self.most, other.most, i128::min),
        }
    }
}

/// An end of an interval, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    BelowAll,
    At(i128),
    AboveAll,
}

impl End {
    fn sign(self) -> i128 {
        match self {
            End::BelowAll => -1,
            End::At(value) => value.signum(),
            End::AboveAll => 1,
        }
    }

    /// The product, where nothing times anything is nothing.
    fn times(self, other: End) -> End {
        let product = match (self, other) {
            (End::At(a), End::At(b)) => a.checked_mul(b),
            _ => None,
        };
        match (product, self.sign() * other.sign()) {
            (Some(product), _) => End::At(product),
            (None, 0) => End::At(0),
            (None, sign) => {
                if sign < 0 {
                    End::BelowAll
                } else {
                    End::AboveAll
                }
            }
        }
    }
}

impl Expr {
    /// Between which integers the value lies wherever it has one.
    pub(super) fn interval(&self, of_symbol: &dyn Fn(&Symbol) -> Interval) -> Interval {
        let mut sum = Interval::new(0, 0);
        for (atoms, coefficient) in self.terms() {
            let coefficient = Interval::new(coefficient.into(), coefficient.into());
            let factors = atoms.iter().map(|atom| atom.interval(of_symbol));
            sum = sum.plus(factors.fold(coefficient, Interval::times));
        }
        match self.without_quotients() {
            Some((linear, slack)) => sum.within(linear.interval(of_symbol).plus(slack)),
            None => sum,
        }
    }

    /// The expression with `c·⌈a/c⌉` written as `a` and the interval of what that leaves out, so that
    /// `64*ceil_div(m, 64) - m` is seen to lie in `0..64`. `None` where no such term occurs.
    fn without_quotients(&self) -> Option<(Expr, Interval)> {
        let (mut linear, mut slack, mut found) = (Expr::from(0), Interval::new(0, 0), false);
        for (atoms, coefficient) in self.terms() {
            let quotient = match atoms {
                [Atom::CeilDiv(a, b)] => b.as_constant().map(|divisor| (a, divisor, 1)),
                [Atom::FloorDiv(a, b)] => b.as_constant().map(|divisor| (a, divisor, -1)),
                _ => None,
            };
            let whole = quotient.filter(|(_, divisor, _)| coefficient % divisor == 0);
            if let Some((dividend, divisor, sign)) = whole {
                let factor = coefficient / divisor;
                linear = linear.plus(dividend.times(factor).ok()?).ok()?;
                let factor = Interval::new(factor.into(), factor.into());
                let rest = Interval::new(0, i128::from(divisor) - 1);
                slack = slack.plus(factor.times(if sign > 0 { rest } else { rest.negated() }));
                found = true;
            } else {
                linear = linear.plus(Expr::from_term(Term::new(atoms, coefficient))).ok()?;
            }
        }
        found.then_some((linear, slack))
    }
}

impl Atom {
    fn interval(&self, of_symbol: &dyn Fn(&Symbol) -> Interval) -> Interval {
        let of = |expr: &Expr| expr.interval(of_symbol);
        match self {
            Atom::Symbol(symbol) => of_symbol(symbol),
            Atom::FloorDiv(a, b) => of(a).floor_div(of(b)),
            Atom::CeilDiv(a, b) => of(a).negated().floor_div(of(b)).negated(),
            Atom::Rem(a, b) => of(a).rem(of(b)),
            Atom::Min(arms) => arms.iter().map(of).reduce(Interval::smaller).unwrap_or(Interval::ALL),
            Atom::Max(arms) => {
                let negated = arms.iter().map(|arm| of(arm).negated());
                negated.reduce(Interval::smaller).unwrap_or(Interval::ALL).negated()
            }
        }
    }
}

impl Interval {
    /// Of the smaller of two values.
    fn smaller(self, other: Interval) -> Interval {
        let most = match (self.most, other.most) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Interval { least: self.least.zip(other.least).map(|(a, b)| a.min(b)), most }
    }
}
