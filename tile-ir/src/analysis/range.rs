//! The range of an index value: lower and upper bounds as extents, and arithmetic on them.
//!
//! A range speaks of the integer that an expression has without wrapping. Sums, differences and products keep
//! to it modulo 2^64, so a result that is in bounds is the value itself; what doesn't keep to it (quotients,
//! minima, comparisons) asks by [`Range::requires`] that its operands aren't negative. Evaluation of extents
//! refuses overflow, and bounds that overflow are refused with it.

use crate::dim::{Dim, DimError};
use std::fmt;

/// How many alternatives of a bound are kept.
const MAX_ALTERNATIVES: usize = 4;

/// Bounds of an index value. A list that is empty bounds nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Range {
    /// Each is a lower bound.
    pub min: Vec<Dim>,
    /// Each is an upper bound, included.
    pub max: Vec<Dim>,
    /// The loop counters that the value depends on: where one has no value, neither has this.
    pub loops: Vec<Span>,
    /// Extents that the bounds rely on not being negative.
    pub requires: Vec<Dim>,
}

/// The bounds of a loop counter, or of a value that a condition compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Each is a lower bound.
    pub min: Vec<Dim>,
    /// Each is an upper bound, included.
    pub max: Vec<Dim>,
    /// Extents that the bounds rely on not being negative.
    pub requires: Vec<Dim>,
}

impl Span {
    /// The tightest bounds for given sizes.
    ///
    /// # Errors
    /// [`DimError`] where a bound has no value.
    pub fn evaluate(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<(i64, i64), DimError> {
        tightest(&self.min, &self.max, lookup)
    }

    /// Whether nothing lies between the bounds, so that no code runs that depends on them.
    ///
    /// # Errors
    /// [`DimError`] where a bound has no value.
    pub fn is_empty(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<bool, DimError> {
        let (min, max) = self.evaluate(lookup)?;
        let mut reliable = true;
        for required in &self.requires {
            reliable &= required.evaluate_signed(lookup)? >= 0;
        }
        Ok(reliable && max < min)
    }
}

/// The greatest of the lower bounds and the least of the upper ones, for given sizes.
fn tightest(min: &[Dim], max: &[Dim], lookup: &dyn Fn(&str) -> Option<i64>) -> Result<(i64, i64), DimError> {
    let mut least = i64::MIN;
    for dim in min {
        least = least.max(dim.evaluate_signed(lookup)?);
    }
    let mut most = i64::MAX;
    for dim in max {
        most = most.min(dim.evaluate_signed(lookup)?);
    }
    Ok((least, most))
}

impl Range {
    /// The tightest bounds for given sizes, whatever they rely on.
    pub(super) fn evaluate(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<(i64, i64), DimError> {
        tightest(&self.min, &self.max, lookup)
    }

    /// A number, which relies on nothing: what is computed of it may be negative as it may.
    pub(super) fn number(value: i64) -> Range {
        Range { min: vec![Dim::from(value)], max: vec![Dim::from(value)], ..Range::default() }
    }

    /// An extent, which is 0 where its form is negative.
    pub(super) fn exact(dim: Dim) -> Range {
        let requires = if dim.is_natural() { Vec::new() } else { vec![dim.clone()] };
        Range { min: vec![dim.clone()], max: vec![dim], requires, loops: Vec::new() }
    }

    /// Whether both sides are bounded.
    pub fn is_known(&self) -> bool {
        !self.min.is_empty() && !self.max.is_empty()
    }

    /// The value, where the bounds are one.
    fn as_exact(&self) -> Option<&Dim> {
        match (self.min.as_slice(), self.max.as_slice()) {
            ([min], [max]) if min == max => Some(min),
            _ => None,
        }
    }

    /// The range of a value that isn't negative, or unknown.
    pub(super) fn settled(mut self) -> Range {
        match self.min.first() {
            None => Range::default(),
            Some(first) => {
                if !self.min.iter().any(Dim::is_natural) {
                    self.requires.push(first.clone());
                }
                self
            }
        }
    }

    /// A range with the conditions of both operands.
    pub(super) fn joined(a: &Range, b: &Range, min: Vec<Dim>, max: Vec<Dim>) -> Range {
        let mut joined = Range { min, max, loops: a.loops.clone(), requires: a.requires.clone() };
        joined.loops.extend(b.loops.iter().filter(|span| !a.loops.contains(span)).cloned());
        joined.requires.extend(b.requires.iter().filter(|dim| !a.requires.contains(dim)).cloned());
        for bounds in [&mut joined.min, &mut joined.max] {
            // Arithmetic on extents saturates; what has is no bound. Powers are longer each time, also where they are divided.
            bounds.retain(|bound| {
                let has_value = |(_, coefficient): (_, i64)| coefficient.unsigned_abs() < i64::MAX as u64;
                bound.terms().all(has_value) && bound.is_readable()
            });
            bounds.sort();
            bounds.dedup();
            bounds.truncate(MAX_ALTERNATIVES);
        }
        joined
    }

    pub(super) fn add(&self, other: &Range) -> Range {
        let sum = |a: &Dim, b: &Dim| a.clone() + b.clone();
        Range::joined(self, other, pairs(&self.min, &other.min, sum), pairs(&self.max, &other.max, sum))
    }

    pub(super) fn sub(&self, other: &Range) -> Range {
        let difference = |a: &Dim, b: &Dim| a.clone() - b.clone();
        let (min, max) = (pairs(&self.min, &other.max, difference), pairs(&self.max, &other.min, difference));
        Range::joined(self, other, min, max)
    }

    pub(super) fn mul(self, other: Range) -> Range {
        let (a, b) = (self.settled(), other.settled());
        let product = |a: &Dim, b: &Dim| a.clone() * b.clone();
        // Two bounds below 0, each a true one beside another that is tighter, have a product above that of the values.
        let least = |x: &Dim, y: &Dim| (a.is_beyond_zero(x) || b.is_beyond_zero(y)).then(|| product(x, y));
        let min = a.min.iter().flat_map(|x| b.min.iter().filter_map(move |y| least(x, y))).collect();
        Range::joined(&a, &b, min, pairs(&a.max, &b.max, product))
    }

    /// Whether a bound isn't negative, or the range relies on that.
    fn is_beyond_zero(&self, bound: &Dim) -> bool {
        bound.is_natural() || self.requires.contains(bound)
    }

    pub(super) fn div(self, other: Range) -> Range {
        let (a, b) = (self.settled(), other.settled());
        match b.as_exact().filter(|divisor| is_positive(divisor)) {
            Some(divisor) => {
                let quotient = |bounds: &[Dim]| bounds.iter().map(|bound| bound.floor_div(divisor)).collect();
                let (min, max) = (quotient(&a.min), quotient(&a.max));
                Range::joined(&a, &b, min, max)
            }
            // The quotient by a negative number is negative.
            None if b.min.is_empty() => Range::default(),
            None => Range::joined(&a, &b, zero(&a), a.max.clone()),
        }
    }

    pub(super) fn rem(self, other: Range) -> Range {
        let (mut a, b) = (self.settled(), other.settled());
        let (mut max, one) = (a.max.clone(), Dim::from(1));
        match b.as_exact() {
            Some(divisor) if is_positive(divisor) => max.push(divisor.clone() - one),
            // By 0 the remainder is the dividend.
            Some(divisor) if divisor.is_natural() && max.is_empty() => {
                a.requires.push(divisor.clone() - one.clone());
                max.push(divisor.clone() - one);
            }
            Some(divisor) if divisor.is_natural() => {
                let some = divisor.at_most(&one);
                let below =
                    |max: &Dim| divisor.clone() - some.clone() + max.clone() * (one.clone() - some.clone());
                max.extend(a.max.iter().map(below));
            }
            _ => {}
        }
        Range::joined(&a, &b, zero(&a), max)
    }

    /// The bits that a mask, a number that isn't negative, leaves.
    pub(super) fn masked(self, other: Range) -> Range {
        let (a, b) = if other.constant().is_some() { (self, other) } else { (other, self) };
        let (Some(mask @ 0..), false) = (b.constant(), a.min.is_empty()) else { return Range::default() };
        let max = [a.max.as_slice(), &[Dim::from(mask)]].concat();
        // Of a number that is negative or has wrapped, only the mask bounds what is left.
        match a.min.iter().any(Dim::is_natural) {
            true => Range::joined(&a, &b, vec![Dim::from(0)], max),
            false => Range::exact(Dim::from(0)).either(Range::exact(Dim::from(mask))),
        }
    }

    /// Whether the value is 0.
    pub(super) fn is_zero(&self) -> bool {
        self.constant() == Some(0)
    }

    pub(super) fn constant(&self) -> Option<i64> {
        self.as_exact().and_then(Dim::as_const)
    }

    pub(super) fn minimum(self, other: Range) -> Range {
        let (a, b) = (self.settled(), other.settled());
        if a.min.is_empty() || b.min.is_empty() {
            return Range::default();
        }
        // Without an upper bound an operand may have wrapped, which only its lower bound doesn't show.
        let bounded = a.is_known() && b.is_known();
        let min = if bounded && a.min == b.min { a.min.clone() } else { vec![Dim::from(0)] };
        Range::joined(&a, &b, min, [a.max.clone(), b.max.clone()].concat())
    }

    pub(super) fn maximum(self, other: Range) -> Range {
        let (a, b) = (self.settled(), other.settled());
        if a.min.is_empty() || b.min.is_empty() {
            return Range::default();
        }
        Range::joined(&a, &b, [a.min.clone(), b.min.clone()].concat(), larger(&a.max, &b.max))
    }

    /// One of two values.
    pub(super) fn either(self, other: Range) -> Range {
        let (a, b) = (self.settled(), other.settled());
        if a.min.is_empty() || b.min.is_empty() {
            return Range::default();
        }
        let min = if a.min == b.min { a.min.clone() } else { vec![Dim::from(0)] };
        let max = larger(&a.max, &b.max);
        // Only what both depend on certainly has a value.
        let mut either = Range::joined(&a, &b, min, max);
        either.loops = a.loops.into_iter().filter(|span| b.loops.contains(span)).collect();
        either
    }
}

fn zero(a: &Range) -> Vec<Dim> {
    if a.min.is_empty() { Vec::new() } else { vec![Dim::from(0)] }
}

fn pairs(a: &[Dim], b: &[Dim], join: impl Fn(&Dim, &Dim) -> Dim) -> Vec<Dim> {
    a.iter().flat_map(|a| b.iter().map(|b| join(a, b)).collect::<Vec<_>>()).collect()
}

/// Bounds of the larger of two values: those of one that are no less than one of the other, and where none is, what is no
/// less than either.
fn larger(a: &[Dim], b: &[Dim]) -> Vec<Dim> {
    let dominant = |x: &Dim, y: &Dim| match () {
        () if (x.clone() - y.clone()).is_natural() => Some(x.clone()),
        () if (y.clone() - x.clone()).is_natural() => Some(y.clone()),
        () => None,
    };
    let pairs = || a.iter().flat_map(|x| b.iter().map(move |y| (x, y)));
    let dominants: Vec<Dim> = pairs().filter_map(|(x, y)| dominant(x, y)).collect();
    if dominants.is_empty() { pairs().map(|(x, y)| x.at_least(y)).collect() } else { dominants }
}

/// Whether an extent is 1 or more. Parameters are taken for positive; an instance has numbers in their place
/// and is judged anew.
pub(super) fn is_positive(dim: &Dim) -> bool {
    let raised = dim.substitute(&|atom| match atom {
        crate::dim::Atom::Param(name) => Some(Dim::param(name.clone()) + Dim::from(1)),
        _ => None,
    });
    (raised - Dim::from(1)).is_natural()
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |bounds: &[Dim], name: &str| match bounds {
            [] => String::from("?"),
            [bound] => bound.to_string(),
            bounds => {
                let bounds: Vec<String> = bounds.iter().map(Dim::to_string).collect();
                format!("{name}({})", bounds.join(", "))
            }
        };
        match self.as_exact() {
            Some(value) => write!(f, "= {value}"),
            None => write!(f, "in {} to {}", side(&self.min, "max"), side(&self.max, "min")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every printed range holds for every index and size of a small box, where nothing wraps, whichever of its
    /// lower bounds is the tightest.
    #[test]
    fn ranges_hold_for_every_value() {
        let span = |low: &[i64], high: i64| Range {
            min: low.iter().copied().map(Dim::from).collect(),
            max: vec![Dim::from(high)],
            ..Range::default()
        };
        type Case = (fn(Range, Range) -> Range, fn(i64, i64) -> i64);
        let cases: [Case; 7] = [
            (|a, b| a.add(&b), |a, b| a + b),
            (|a, b| a.sub(&b), |a, b| a - b),
            (Range::mul, |a, b| a * b),
            (Range::div, |a, b| if b == 0 { 0 } else { a / b }),
            (Range::rem, |a, b| if b == 0 { a } else { a % b }),
            (Range::minimum, i64::min),
            (Range::maximum, i64::max),
        ];
        let spans: [(&[i64], i64); 11] = [
            (&[0], 5),
            (&[0], 3),
            (&[2], 7),
            (&[3], 3),
            (&[1], 1),
            (&[0], 0),
            (&[4], 9),
            (&[-3, 0], 2),
            (&[0, -5], 4),
            (&[-2, 1], 4),
            (&[-4, -1, 3], 3),
        ];
        for (which, (rule, meaning)) in cases.into_iter().enumerate() {
            for ((low, high), (other_low, other_high)) in
                spans.into_iter().flat_map(|a| spans.map(|b| (a, b)))
            {
                let range = rule(span(low, high), span(other_low, other_high));
                for x in low.iter().copied().max().unwrap()..=high {
                    for y in other_low.iter().copied().max().unwrap()..=other_high {
                        let value = meaning(x, y);
                        let within = |bound: &Dim| bound.as_const().unwrap();
                        assert!(range.min.iter().all(|m| within(m) <= value), "{which}: {x} {y} {range}");
                        assert!(range.max.iter().all(|m| value <= within(m)), "{which}: {x} {y} {range}");
                    }
                }
            }
        }
    }

    /// The largest remainder by a size, which may be 0, and may be larger than what it divides.
    #[test]
    fn remainders_by_sizes_are_bounded_for_every_size() {
        let dividend = Range { min: vec![Dim::from(0)], max: vec![Dim::from(7)], ..Range::default() };
        let range = dividend.rem(Range::exact(Dim::size("s")));
        assert!(range.requires.is_empty());
        for size in 0..10 {
            let remainder = |x: i64| if size == 0 { x } else { x % size };
            let largest = (0..=7).map(remainder).max().unwrap();
            assert_eq!(range.evaluate(&|_| Some(size)), Ok((0, largest)), "{size}");
        }
    }
}
