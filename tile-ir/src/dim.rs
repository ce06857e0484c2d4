//! Symbolic extents: integer polynomials over compile-time parameters and run-time sizes.
//!
//! Invariant: a [`Dim`] is in canonical form (terms sorted, no zero coefficient, factors of a term sorted),
//! so `==` decides equality of polynomials. Two extents that are equal only for some sizes are not equal.

mod text;

use std::collections::{BTreeMap, BTreeSet};

/// An indivisible factor of an extent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// A compile-time parameter of the kernel, bound when it is specialised: `BM`.
    Param(String),
    /// A run-time size, bound by the launch: `m`.
    Size(String),
    /// `⌈a / b⌉`, the number of tiles of extent `b` that cover `a`.
    CeilDiv(Box<Dim>, Box<Dim>),
    /// `⌊a / b⌋`.
    FloorDiv(Box<Dim>, Box<Dim>),
    /// `a mod b`.
    Rem(Box<Dim>, Box<Dim>),
    /// The smaller of two.
    Min(Box<Dim>, Box<Dim>),
    /// The larger of two.
    Max(Box<Dim>, Box<Dim>),
    /// `⌊log₂ a⌋` of what is positive.
    Ilog2(Box<Dim>),
    /// The least power of two that is no less than `a`: 1 of 0 and of what is below.
    NextPowerOfTwo(Box<Dim>),
}

impl Atom {
    /// The extents that an atom is made of: none of a name.
    pub fn operands(&self) -> impl Iterator<Item = &Dim> {
        let (first, second) = match self {
            Atom::Param(_) | Atom::Size(_) => (None, None),
            Atom::Ilog2(a) | Atom::NextPowerOfTwo(a) => (Some(&**a), None),
            Atom::CeilDiv(a, b)
            | Atom::FloorDiv(a, b)
            | Atom::Rem(a, b)
            | Atom::Min(a, b)
            | Atom::Max(a, b) => (Some(&**a), Some(&**b)),
        };
        first.into_iter().chain(second)
    }
}

/// An extent: a sum of products of [`Atom`]s with integer coefficients.
///
/// ```
/// use tile_ir::Dim;
/// let (bm, bn) = (Dim::param("BM"), Dim::param("BN"));
/// assert_eq!(bm.clone() * bn.clone(), bn * bm.clone());
/// assert_eq!((bm.clone() + bm).to_string(), "2*BM");
/// assert_eq!(Dim::size("m").ceil_div(&Dim::from(128)).to_string(), "ceil_div(m, 128)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Dim {
    /// Product of atoms → coefficient. The empty product is the constant term.
    terms: BTreeMap<Vec<Atom>, i64>,
}

/// An extent whose value can't be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DimError {
    /// A name that has no value.
    #[error("`{0}` has no value")]
    Unbound(String),
    /// The divisor isn't positive.
    #[error("`{0}` divides by {1}, which isn't positive")]
    Divisor(String, i64),
    /// The number whose logarithm is asked for isn't positive.
    #[error("`{0}` is the logarithm of {1}, which isn't positive")]
    Logarithm(String, i64),
    /// The value doesn't fit 64 bits.
    #[error("`{0}` overflows 64 bits")]
    Overflow(String),
    /// An extent can't be negative.
    #[error("`{0}` is negative ({1})")]
    Negative(String, i64),
}

impl Dim {
    /// Terms and factors that an extent of a kernel has at most, with those of what is divided in it: far beyond any that is
    /// meant. What is computed step by step of itself, `h - h / 2`, doubles each time.
    pub const MAX_LENGTH: usize = 256;

    /// A compile-time parameter.
    pub fn param(name: impl Into<String>) -> Dim {
        Dim::atom(Atom::Param(name.into()))
    }

    /// A run-time size.
    pub fn size(name: impl Into<String>) -> Dim {
        Dim::atom(Atom::Size(name.into()))
    }

    fn atom(atom: Atom) -> Dim {
        Dim { terms: BTreeMap::from([(vec![atom], 1)]) }
    }

    /// The extent that one atom is.
    pub fn of(atom: &Atom) -> Dim {
        Dim::atom(atom.clone())
    }

    fn add_term(&mut self, factors: Vec<Atom>, coefficient: i64) {
        let sum = self.terms.get(&factors).copied().unwrap_or(0).saturating_add(coefficient);
        // As far below 0 as above: in the text a sign stands before a number that fits by itself.
        let sum = sum.max(-i64::MAX);
        if sum == 0 {
            self.terms.remove(&factors);
        } else {
            self.terms.insert(factors, sum);
        }
    }

    /// The value, where the extent is a constant.
    pub fn as_const(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// The name, where the extent is exactly one run-time size.
    pub fn as_size(&self) -> Option<&str> {
        match self.single_atom()? {
            Atom::Size(name) => Some(name),
            _ => None,
        }
    }

    /// The name, where the extent is exactly one compile-time parameter.
    pub fn as_param(&self) -> Option<&str> {
        match self.single_atom()? {
            Atom::Param(name) => Some(name),
            _ => None,
        }
    }

    fn single_atom(&self) -> Option<&Atom> {
        let (factors, &coefficient) = self.terms.iter().next()?;
        match factors.as_slice() {
            [atom] if coefficient == 1 && self.terms.len() == 1 => Some(atom),
            _ => None,
        }
    }

    /// Whether no run-time size occurs: the value is known once the kernel is specialised.
    pub fn is_static(&self) -> bool {
        let mut sizes = BTreeSet::new();
        self.collect_names(&mut BTreeSet::new(), &mut sizes);
        sizes.is_empty()
    }

    /// Adds the names of parameters and run-time sizes that occur.
    pub fn collect_names(&self, params: &mut BTreeSet<String>, sizes: &mut BTreeSet<String>) {
        for atom in self.terms.keys().flatten() {
            match atom {
                Atom::Param(name) => drop(params.insert(name.clone())),
                Atom::Size(name) => drop(sizes.insert(name.clone())),
                made => made.operands().for_each(|operand| operand.collect_names(params, sizes)),
            }
        }
    }

    /// `⌈self / other⌉`, folded where both are constants or the quotient is exact by form.
    pub fn ceil_div(&self, other: &Dim) -> Dim {
        self.quotient(other, Atom::CeilDiv, ceil_div)
    }

    /// `⌊self / other⌋`.
    pub fn floor_div(&self, other: &Dim) -> Dim {
        self.quotient(other, Atom::FloorDiv, i64::div_euclid)
    }

    /// `self mod other`.
    pub fn rem(&self, other: &Dim) -> Dim {
        match (self.as_const(), other.as_const()) {
            (Some(a), Some(b)) if b > 0 => Dim::from(a.rem_euclid(b)),
            (_, Some(1)) => Dim::from(0),
            _ => Dim::atom(Atom::Rem(Box::new(self.clone()), Box::new(other.clone()))),
        }
    }

    /// The smaller of two.
    pub fn at_most(&self, other: &Dim) -> Dim {
        self.extreme(other, Atom::Min, i64::min)
    }

    /// The larger of two.
    pub fn at_least(&self, other: &Dim) -> Dim {
        self.extreme(other, Atom::Max, i64::max)
    }

    /// `⌊log₂ self⌋`, which has a value where `self` is positive.
    pub fn ilog2(&self) -> Dim {
        match self.as_const().and_then(i64::checked_ilog2) {
            Some(log) => Dim::from(i64::from(log)),
            None => Dim::atom(Atom::Ilog2(Box::new(self.clone()))),
        }
    }

    /// The least power of two that is no less.
    pub fn next_power_of_two(&self) -> Dim {
        match self.as_const().and_then(next_power_of_two) {
            Some(power) => Dim::from(power),
            None => Dim::atom(Atom::NextPowerOfTwo(Box::new(self.clone()))),
        }
    }

    fn extreme(&self, other: &Dim, atom: fn(Box<Dim>, Box<Dim>) -> Atom, fold: fn(i64, i64) -> i64) -> Dim {
        match (self.as_const(), other.as_const()) {
            (Some(a), Some(b)) => Dim::from(fold(a, b)),
            _ if self == other => self.clone(),
            // One form for both orders.
            _ => {
                let (first, second) = if self <= other { (self, other) } else { (other, self) };
                Dim::atom(atom(Box::new(first.clone()), Box::new(second.clone())))
            }
        }
    }

    fn quotient(&self, other: &Dim, atom: fn(Box<Dim>, Box<Dim>) -> Atom, fold: fn(i64, i64) -> i64) -> Dim {
        match (self.as_const(), other.as_const()) {
            (Some(a), Some(b)) if b > 0 => Dim::from(fold(a, b)),
            (_, Some(1)) => self.clone(),
            (_, Some(b)) if b > 1 && self.terms.values().all(|coefficient| coefficient % b == 0) => {
                let terms =
                    self.terms.iter().map(|(factors, coefficient)| (factors.clone(), coefficient / b));
                Dim { terms: terms.collect() }
            }
            _ => Dim::atom(atom(Box::new(self.clone()), Box::new(other.clone()))),
        }
    }

    /// Replaces parameters and sizes by the extents that `lookup` gives; others stay.
    pub fn substitute(&self, lookup: &dyn Fn(&Atom) -> Option<Dim>) -> Dim {
        let mut sum = Dim::from(0);
        for (factors, &coefficient) in &self.terms {
            let mut product = Dim::from(coefficient);
            for atom in factors {
                let value = lookup(atom).unwrap_or_else(|| match atom {
                    Atom::Param(_) | Atom::Size(_) => Dim::atom(atom.clone()),
                    Atom::CeilDiv(a, b) => a.substitute(lookup).ceil_div(&b.substitute(lookup)),
                    Atom::FloorDiv(a, b) => a.substitute(lookup).floor_div(&b.substitute(lookup)),
                    Atom::Rem(a, b) => a.substitute(lookup).rem(&b.substitute(lookup)),
                    Atom::Min(a, b) => a.substitute(lookup).at_most(&b.substitute(lookup)),
                    Atom::Max(a, b) => a.substitute(lookup).at_least(&b.substitute(lookup)),
                    Atom::Ilog2(a) => a.substitute(lookup).ilog2(),
                    Atom::NextPowerOfTwo(a) => a.substitute(lookup).next_power_of_two(),
                });
                product = product * value;
            }
            sum = sum + product;
        }
        sum
    }

    /// The value for given parameters and sizes.
    ///
    /// # Errors
    /// [`DimError`] where a name is unbound, a divisor isn't positive, or the value is negative or overflows.
    pub fn evaluate(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<usize, DimError> {
        let value = self.evaluate_signed(lookup)?;
        usize::try_from(value).map_err(|_| DimError::Negative(self.to_string(), value))
    }

    /// [`Dim::evaluate`] of what may be negative, such as a stride.
    ///
    /// # Errors
    /// [`DimError`] where a name is unbound, a divisor isn't positive, or the value overflows.
    pub fn evaluate_signed(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<i64, DimError> {
        let overflow = || DimError::Overflow(self.to_string());
        let mut sum = 0i64;
        for (factors, &coefficient) in &self.terms {
            let mut product = coefficient;
            for atom in factors {
                product = product.checked_mul(atom.evaluate(lookup)?).ok_or_else(overflow)?;
            }
            sum = sum.checked_add(product).ok_or_else(overflow)?;
        }
        Ok(sum)
    }

    /// Whether the value isn't negative for any parameters and sizes, as its form shows.
    pub fn is_natural(&self) -> bool {
        let natural = |atom: &Atom| match atom {
            Atom::Ilog2(_) | Atom::NextPowerOfTwo(_) => true,
            Atom::Max(a, b) => a.is_natural() || b.is_natural(),
            other => other.operands().all(Dim::is_natural),
        };
        self.terms.iter().all(|(factors, &coefficient)| coefficient >= 0 && factors.iter().all(natural))
    }

    /// The divisors and arguments of logarithms in it that have to be positive for it to have a value, but for numbers that
    /// are.
    pub fn positive_operands(&self) -> Vec<&Dim> {
        let mut positive = Vec::new();
        self.collect_positive(&mut positive);
        positive
    }

    fn collect_positive<'d>(&'d self, positive: &mut Vec<&'d Dim>) {
        for atom in self.terms.keys().flatten() {
            if let Atom::CeilDiv(_, operand)
            | Atom::FloorDiv(_, operand)
            | Atom::Rem(_, operand)
            | Atom::Ilog2(operand) = atom
                && operand.as_const().is_none_or(|number| number <= 0)
                && !positive.contains(&&**operand)
            {
                positive.push(operand);
            }
            atom.operands().for_each(|operand| operand.collect_positive(positive));
        }
    }

    /// Whether a kernel may have it: whether it has at most [`Dim::MAX_LENGTH`] terms and factors. Text is read of no other.
    pub fn is_readable(&self) -> bool {
        self.length() <= Dim::MAX_LENGTH
    }

    /// How many terms and factors it is written with, and what these are made of.
    pub(crate) fn length(&self) -> usize {
        let atom = |atom: &Atom| 1 + atom.operands().map(Dim::length).sum::<usize>();
        self.terms.keys().map(|factors| 1 + factors.iter().map(atom).sum::<usize>()).sum()
    }

    /// The terms: each a product of atoms and its coefficient. Code generation walks these.
    pub fn terms(&self) -> impl Iterator<Item = (&[Atom], i64)> {
        self.terms.iter().map(|(factors, &coefficient)| (factors.as_slice(), coefficient))
    }
}

impl Atom {
    fn evaluate(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<i64, DimError> {
        match self {
            Atom::Param(name) | Atom::Size(name) => {
                lookup(name).ok_or_else(|| DimError::Unbound(name.clone()))
            }
            Atom::Min(a, b) => Ok(a.evaluate_signed(lookup)?.min(b.evaluate_signed(lookup)?)),
            Atom::Max(a, b) => Ok(a.evaluate_signed(lookup)?.max(b.evaluate_signed(lookup)?)),
            Atom::Ilog2(a) => {
                let number = a.evaluate_signed(lookup)?;
                let log = number.checked_ilog2().map(i64::from);
                log.ok_or_else(|| DimError::Logarithm(self.to_string(), number))
            }
            Atom::NextPowerOfTwo(a) => next_power_of_two(a.evaluate_signed(lookup)?)
                .ok_or_else(|| DimError::Overflow(self.to_string())),
            Atom::CeilDiv(a, b) | Atom::FloorDiv(a, b) | Atom::Rem(a, b) => {
                let (x, y) = (a.evaluate_signed(lookup)?, b.evaluate_signed(lookup)?);
                // Which way a negative divisor rounds languages don't agree on, and no extent is meant to have one.
                if y <= 0 {
                    return Err(DimError::Divisor(self.to_string(), y));
                }
                Ok(match self {
                    Atom::CeilDiv(..) => ceil_div(x, y),
                    Atom::FloorDiv(..) => x.div_euclid(y),
                    _ => x.rem_euclid(y),
                })
            }
        }
    }
}

/// `⌈a / b⌉` for a divisor that is positive.
fn ceil_div(a: i64, b: i64) -> i64 {
    a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0)
}

/// `None` where it doesn't fit.
fn next_power_of_two(number: i64) -> Option<i64> {
    i64::try_from(number.max(1).cast_unsigned().checked_next_power_of_two()?).ok()
}

impl From<i64> for Dim {
    fn from(value: i64) -> Dim {
        let mut terms = BTreeMap::new();
        if value != 0 {
            terms.insert(Vec::new(), value);
        }
        Dim { terms }
    }
}

impl std::ops::Add for Dim {
    type Output = Dim;
    fn add(mut self, other: Dim) -> Dim {
        for (factors, coefficient) in other.terms {
            self.add_term(factors, coefficient);
        }
        self
    }
}

impl std::ops::Neg for Dim {
    type Output = Dim;
    fn neg(mut self) -> Dim {
        self.terms.values_mut().for_each(|c| *c = c.saturating_neg());
        self
    }
}

impl std::ops::Sub for Dim {
    type Output = Dim;
    fn sub(self, other: Dim) -> Dim {
        self + -other
    }
}

impl std::ops::Mul for Dim {
    type Output = Dim;
    fn mul(self, other: Dim) -> Dim {
        let mut product = Dim::from(0);
        for (a, x) in &self.terms {
            for (b, y) in &other.terms {
                let mut factors = [a.as_slice(), b.as_slice()].concat();
                factors.sort();
                product.add_term(factors, x.saturating_mul(*y));
            }
        }
        product
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(name: &str) -> Option<i64> {
        match name {
            "m" => Some(1000),
            "BM" => Some(128),
            _ => None,
        }
    }

    #[test]
    fn canonical_form_decides_equality() {
        let (m, bm) = (Dim::size("m"), Dim::param("BM"));
        assert_eq!(
            (m.clone() + bm.clone()) * (m.clone() - bm.clone()),
            m.clone() * m.clone() - bm.clone() * bm.clone()
        );
        assert_ne!(m, bm);
        assert_eq!((m.clone() - m.clone()).as_const(), Some(0));
    }

    #[test]
    fn an_exact_quotient_is_no_division() {
        let doubled = Dim::from(4) * Dim::param("H") + Dim::from(2);
        assert_eq!(doubled.floor_div(&Dim::from(2)).to_string(), "2*H + 1");
        assert_eq!(doubled.ceil_div(&Dim::from(4)).to_string(), "ceil_div(4*H + 2, 4)");
    }

    #[test]
    fn logarithms_and_powers_are_those_of_rust() {
        let size = Dim::size("s");
        for number in [1i64, 2, 3, 4, 5, 1000, 1024, 1025, i64::MAX / 2] {
            let expected =
                [i64::from(number.ilog2()), number.cast_unsigned().next_power_of_two().cast_signed()];
            let of_size = [size.ilog2(), size.next_power_of_two()];
            let of_number = [Dim::from(number).ilog2(), Dim::from(number).next_power_of_two()];
            for ((dim, folded), expected) in of_size.iter().zip(of_number).zip(expected) {
                assert_eq!(dim.evaluate_signed(&|_| Some(number)), Ok(expected), "{dim} of {number}");
                assert_eq!(folded.as_const(), Some(expected), "{dim} of {number}");
            }
        }
        assert_eq!(size.next_power_of_two().evaluate(&|_| Some(0)), Ok(1));
        assert_eq!(size.ilog2().evaluate(&|_| Some(0)), Err(DimError::Logarithm("ilog2(s)".to_owned(), 0)));
        assert_eq!(
            size.next_power_of_two().evaluate(&|_| Some(i64::MAX)),
            Err(DimError::Overflow("next_power_of_two(s)".to_owned()))
        );
        // What has no value stays, and an instance of it says what must be positive.
        let none =
            size.ilog2().substitute(&|atom| (*atom == Atom::Size("s".to_owned())).then(|| Dim::from(0)));
        assert_eq!((none.as_const(), none.positive_operands()), (None, vec![&Dim::from(0)]));
    }

    #[test]
    fn numbers_are_divided_as_sizes_are() {
        let five = Dim::from(5);
        for number in [-11, -10, -1, 0, 1, 10, 11] {
            let (size, dim) = (Dim::size("s"), Dim::from(number));
            for divide in [Dim::floor_div, Dim::ceil_div, Dim::rem] {
                let expected = divide(&size, &five).evaluate_signed(&|_| Some(number)).ok();
                assert_eq!(divide(&dim, &five).as_const(), expected, "{number}");
            }
        }
        // What no number can be divided by stays, and says so when it is asked for its value.
        assert_eq!(five.floor_div(&Dim::from(0)).as_const(), None);
    }

    #[test]
    fn evaluates_and_reports() {
        let tiles = Dim::size("m").ceil_div(&Dim::param("BM"));
        assert_eq!(tiles.evaluate(&bind), Ok(8));
        assert_eq!(Dim::size("q").evaluate(&bind), Err(DimError::Unbound("q".into())));
        assert_eq!(
            (Dim::from(1) - Dim::size("m")).evaluate(&bind),
            Err(DimError::Negative("-m + 1".into(), -999))
        );
        let by_zero = Dim::size("m").floor_div(&(Dim::param("BM") - Dim::param("BM")));
        assert!(matches!(by_zero.evaluate(&bind), Err(DimError::Divisor(_, 0))));
    }

    #[test]
    fn no_divisor_is_negative() {
        let least = |name: &str| Some(if name == "least" { i64::MIN } else { -1 });
        for quotient in [Dim::floor_div, Dim::ceil_div, Dim::rem] {
            let quotient = quotient(&Dim::size("least"), &Dim::size("below"));
            let error = quotient.evaluate_signed(&least).unwrap_err();
            assert!(error.to_string().ends_with("` divides by -1, which isn't positive"), "{error}");
            assert_eq!(quotient.positive_operands(), [&Dim::size("below")]);
        }
    }

    #[test]
    fn substitution_folds() {
        let tiles = Dim::size("m").ceil_div(&Dim::param("BM"));
        let bound = tiles.substitute(&|atom| match atom {
            Atom::Param(_) => Some(Dim::from(128)),
            _ => None,
        });
        assert_eq!(bound.to_string(), "ceil_div(m, 128)");
    }
}
