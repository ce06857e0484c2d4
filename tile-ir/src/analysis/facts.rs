//! What a kernel's conditions say of its run-time sizes, and of parameters that aren't bound yet, as forms of fewer
//! unknowns.
//!
//! A launch refuses sizes that break a condition, so whatever follows from the conditions holds wherever a kernel
//! runs. It is kept as a substitution: `m % 64 == 0` makes `m` into `64*m′`, `m >= 64` makes it `m′ + 64`, `m == n`
//! makes it `n`. The new unknowns are not negative, as sizes are, so that [`Dim::is_natural`] and `==` of forms
//! decide as before, and more. A parameter's form has no sizes, so that what is known at specialisation stays so. Conditions that contradict each other prove anything, of a kernel that never runs.
//!
//! A number that one of them doesn't exceed (`m <= 64`) is kept beside the forms, for [`Facts::interval`]. A condition that
//! neither expresses (`m != n`, `m + n == 64`, `m == n || k == 0`) is not used.

use super::range::is_positive;
use crate::condition::Comparison;
use crate::dim::{Atom, Dim};
use crate::kernel::Kernel;
use crate::ops::Predicate;
use std::collections::{BTreeMap, BTreeSet};

/// How often the conditions are read: one may say more once others have been used.
const ROUNDS: usize = 8;

/// The sum of a form's coefficients from which it is left alone: arithmetic on extents saturates.
const LARGEST: i128 = 1 << 62;

/// Sizes as forms of unknowns that aren't negative.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Facts {
    forms: BTreeMap<String, Dim>,
    /// What a size, a parameter or an unknown is at most.
    most: BTreeMap<String, i64>,
}

impl Facts {
    /// What the conditions of a kernel say.
    pub fn of(kernel: &Kernel) -> Facts {
        let mut facts = Facts::default();
        let assured: Vec<&Comparison> =
            kernel.conditions.iter().flat_map(|condition| condition.formula.assured()).collect();
        // A form has one divisor: of numbers more follows, so theirs come first, and how large a parameter is comes after
        // what divides it.
        let is_bound = |comparison: &&Comparison| {
            comparison.predicate != Predicate::Eq
                && comparison.left.is_static()
                && comparison.right.is_static()
        };
        let others: Vec<&Comparison> =
            assured.iter().copied().filter(|comparison| !is_bound(comparison)).collect();
        facts.assume_all(&others);
        assured.iter().for_each(|comparison| facts.divided_by_parameters(comparison));
        facts.assume_all(&assured);
        facts
    }

    fn assume_all(&mut self, comparisons: &[&Comparison]) {
        for _ in 0..ROUNDS {
            let before = self.clone();
            comparisons.iter().for_each(|comparison| self.assume(comparison));
            if *self == before {
                break;
            }
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// The sizes of which something is known, and what they are.
    pub fn forms(&self) -> impl Iterator<Item = (&str, &Dim)> {
        self.forms.iter().map(|(name, form)| (name.as_str(), form))
    }

    /// The extent in terms of the unknowns. It has the value of the extent wherever the kernel runs.
    pub fn apply(&self, dim: &Dim) -> Dim {
        if self.is_empty() || self.weight(dim) >= LARGEST {
            return dim.clone();
        }
        dim.substitute(&|atom| match atom {
            Atom::Param(name) | Atom::Size(name) => self.forms.get(name).cloned(),
            Atom::CeilDiv(a, b) => Some(quotient(&self.apply(a), &self.apply(b), Dim::ceil_div)),
            Atom::FloorDiv(a, b) => Some(quotient(&self.apply(a), &self.apply(b), Dim::floor_div)),
            Atom::Rem(a, b) => Some(remainder(&self.apply(a), &self.apply(b))),
            Atom::Min(a, b) => Some(self.apply(a).at_most(&self.apply(b))),
            Atom::Max(a, b) => Some(self.apply(a).at_least(&self.apply(b))),
            Atom::Ilog2(a) => Some(self.apply(a).ilog2()),
            Atom::NextPowerOfTwo(a) => Some(self.apply(a).next_power_of_two()),
        })
    }

    /// The extent with whole numbers of quotients joined where nothing was rounded: `2*(D / 2)` is `D` where
    /// `D % 2 == 0`, and `N / B * B` is `N` where `N % B == 0`.
    #[must_use]
    pub fn joined(&self, dim: &Dim) -> Dim {
        let terms: Vec<Dim> = dim
            .terms()
            .map(|term| {
                let unchanged = || scaled([term].into_iter());
                // What is joined may be part of a quotient, which has one division less in it.
                self.undivided(term).map_or_else(unchanged, |whole| self.joined(&whole))
            })
            .collect();
        // Arithmetic on extents saturates.
        let heaviest = terms.iter().fold(0i128, |sum, term| sum.saturating_add(weight(term)));
        if heaviest >= LARGEST {
            return dim.clone();
        }
        terms.into_iter().fold(Dim::from(0), |sum, term| sum + term)
    }

    /// What a term is that multiplies a quotient by its divisor, if nothing was rounded.
    fn undivided(&self, (factors, coefficient): (&[Atom], i64)) -> Option<Dim> {
        (0..factors.len()).find_map(|at| {
            let (Atom::FloorDiv(a, b) | Atom::CeilDiv(a, b)) = &factors[at] else { return None };
            let others = [&factors[..at], &factors[at + 1..]].concat();
            let mut divisor = b.terms();
            let (Some(by), None) = (divisor.next(), divisor.next()) else { return None };
            let (others, times) = divided_term((&others, coefficient), by)?;
            let fits = weight(a).saturating_mul(i128::from(times).abs()) < LARGEST;
            (fits && self.divides(b, a))
                .then(|| scaled([(others.as_slice(), times)].into_iter()) * (**a).clone())
        })
    }

    /// Whether an extent is known to divide another.
    pub fn divides(&self, divisor: &Dim, dim: &Dim) -> bool {
        let quotient = dim.floor_div(divisor);
        self.apply(&(quotient * divisor.clone())) == self.apply(dim)
    }

    /// What the coefficients of the extent in terms of the unknowns add up to, at most.
    fn weight(&self, dim: &Dim) -> i128 {
        let atom = |atom: &Atom| match atom {
            Atom::Param(name) | Atom::Size(name) => self.forms.get(name).map_or(1, weight),
            // A quotient's terms are no heavier than its dividend's, and one more may be split off.
            Atom::CeilDiv(a, _) | Atom::FloorDiv(a, _) => self.weight(a).saturating_add(1),
            Atom::Rem(..) => 1,
            Atom::Ilog2(_) => i64::BITS.into(),
            Atom::NextPowerOfTwo(a) => self.weight(a).saturating_mul(2).max(1),
            // Of two numbers the result is one of them.
            Atom::Min(a, b) | Atom::Max(a, b) => self.weight(a).max(self.weight(b)).max(1),
        };
        dim.terms().fold(0i128, |sum, (factors, coefficient)| {
            let product = factors
                .iter()
                .fold(i128::from(coefficient).abs(), |product, factor| product.saturating_mul(atom(factor)));
            sum.saturating_add(product)
        })
    }

    /// The least and the greatest number that an extent in terms of the unknowns may be, whatever the sizes; `None`
    /// where that can't be said in 128 bits.
    pub fn interval(&self, dim: &Dim) -> Option<(i128, i128)> {
        dim.terms().try_fold((0i128, 0i128), |(low, high), (factors, coefficient)| {
            let coefficient = i128::from(coefficient);
            let term = factors.iter().try_fold((coefficient, coefficient), |product, atom| {
                let (low, high) = self.atom_interval(atom)?;
                let corners = [product.0.checked_mul(low)?, product.0.checked_mul(high)?];
                let others = [product.1.checked_mul(low)?, product.1.checked_mul(high)?];
                let all = corners.into_iter().chain(others);
                Some((all.clone().min()?, all.max()?))
            })?;
            Some((low.checked_add(term.0)?, high.checked_add(term.1)?))
        })
    }

    fn atom_interval(&self, atom: &Atom) -> Option<(i128, i128)> {
        let most = i128::from(i64::MAX);
        match atom {
            Atom::Param(name) | Atom::Size(name) => {
                let most = most / i128::from(self.multiple(name));
                Some((0, self.most.get(name).map_or(most, |&known| most.min(known.into()))))
            }
            Atom::Min(a, b) | Atom::Max(a, b) => {
                let (a, b) = (self.interval(a)?, self.interval(b)?);
                let is_min = matches!(atom, Atom::Min(..));
                let either = |a: i128, b: i128| if is_min { a.min(b) } else { a.max(b) };
                Some((either(a.0, b.0), either(a.1, b.1)))
            }
            Atom::Ilog2(a) => {
                let (low, high) = self.interval(a)?;
                Some((low.max(1).ilog2().into(), high.max(1).ilog2().into()))
            }
            Atom::NextPowerOfTwo(a) => {
                let power = |number: i128| number.max(1).cast_unsigned().checked_next_power_of_two();
                let (low, high) = self.interval(a)?;
                Some((power(low)?.try_into().ok()?, power(high)?.try_into().ok()?))
            }
            Atom::Rem(_, b) => {
                let divisor = b.as_const().filter(|&divisor| divisor > 0)?;
                Some((0, i128::from(divisor) - 1))
            }
            Atom::CeilDiv(a, b) | Atom::FloorDiv(a, b) => {
                let divisor = i128::from(b.as_const().filter(|&divisor| divisor > 0)?);
                let (low, high) = self.interval(a)?;
                let up = if matches!(atom, Atom::CeilDiv(..)) { divisor - 1 } else { 0 };
                Some(((low + up).div_euclid(divisor), (high.checked_add(up)?).div_euclid(divisor)))
            }
        }
    }

    /// Whether code that computes an extent in 64 bits gives its value.
    pub(super) fn computes(&self, dim: &Dim) -> bool {
        let fits = |(low, high)| i128::from(i64::MIN) <= low && high <= i128::from(i64::MAX);
        let inner = |atom: &Atom| atom.operands().all(|operand| self.computes(operand));
        self.interval(dim).is_some_and(fits) && dim.terms().all(|(factors, _)| factors.iter().all(inner))
    }

    /// The largest number that some size is at least as many times as an unknown.
    fn multiple(&self, unknown: &str) -> i64 {
        let coefficients = self.forms.values().filter(|form| form.is_natural()).flat_map(unknowns);
        coefficients
            .filter(|(atom, _)| name(atom) == Some(unknown))
            .map(|(_, coefficient)| coefficient)
            .max()
            .unwrap_or(1)
    }

    fn assume(&mut self, condition: &Comparison) {
        let (left, right) = (self.apply(&condition.left), self.apply(&condition.right));
        // A form that is too heavy to be in terms of the unknowns says nothing new of them.
        let heavy =
            |side: &Dim| weight(side) >= LARGEST || self.forms.keys().any(|name| mentions(side, name));
        if heavy(&left) || heavy(&right) {
            return;
        }
        let one = || Dim::from(1);
        match condition.predicate {
            Predicate::Eq => {
                self.remainder(&left, &right);
                self.remainder(&right, &left);
                let difference = left - right;
                self.whole(&difference);
                self.equal(&difference);
            }
            Predicate::Ge => self.natural(&(left - right)),
            Predicate::Gt => self.natural(&(left - right - one())),
            Predicate::Le => self.natural(&(right - left)),
            Predicate::Lt => self.natural(&(right - left - one())),
            Predicate::Ne => {
                let difference = left - right;
                if difference.is_natural() {
                    self.natural(&(difference - one()));
                }
            }
        }
    }

    fn remainder(&mut self, remainder: &Dim, rest: &Dim) {
        let Some(Atom::Rem(dividend, divisor)) = only_atom(remainder) else { return };
        if let (Some(divisor), Some(rest)) = (divisor.as_const(), rest.as_const()) {
            self.congruent(dividend, divisor, rest);
        }
    }

    /// `a mod b == 0` of a parameter and what other parameters make: `a` is `b*a′`.
    fn divided_by_parameters(&mut self, condition: &Comparison) {
        let (left, right) = (self.apply(&condition.left), self.apply(&condition.right));
        if condition.predicate != Predicate::Eq || right.as_const() != Some(0) {
            return;
        }
        let Some(Atom::Rem(dividend, divisor)) = only_atom(&left) else { return };
        let Some(atom @ Atom::Param(_)) = only_atom(dividend) else { return };
        let value = (**divisor).clone() * next(atom);
        if divisor.as_const().is_none() && may_be(atom, &value) {
            self.define(atom, value);
        }
    }

    /// `form == 0` where the form is `ceil_div(a, n)*n - a`: `a mod n == 0`.
    fn whole(&mut self, form: &Dim) {
        for (factors, coefficient) in form.terms() {
            let [atom @ (Atom::CeilDiv(a, b) | Atom::FloorDiv(a, b))] = factors else { continue };
            let Some(divisor) = b.as_const().filter(|divisor| *divisor == coefficient.abs()) else {
                continue;
            };
            let rest = form.clone() - Dim::from(coefficient) * Dim::of(atom);
            let opposite = if coefficient > 0 { -(**a).clone() } else { (**a).clone() };
            if rest == opposite {
                self.congruent(a, divisor, 0);
            }
        }
    }

    /// `dividend mod divisor == rest`: some size or parameter is `step*unknown + first`.
    fn congruent(&mut self, dividend: &Dim, divisor: i64, rest: i64) {
        if divisor < 2 || !(0..divisor).contains(&rest) {
            return;
        }
        let open: Vec<_> = dividend.terms().filter(|(_, coefficient)| coefficient % divisor != 0).collect();
        let (constant, open): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|(factors, _)| factors.is_empty());
        let &[([atom @ (Atom::Param(_) | Atom::Size(_))], coefficient)] = open.as_slice() else { return };
        let constant = constant.first().map_or(0, |&(_, constant)| constant);
        let step = divisor / gcd(coefficient.unsigned_abs(), divisor.unsigned_abs()) as i64;
        let wanted = i128::from(rest) - i128::from(constant);
        let solves = |first: &i64| {
            (i128::from(coefficient) * i128::from(*first) - wanted).rem_euclid(i128::from(divisor)) == 0
        };
        // What no small number solves is left alone.
        let Some(first) = (0..step.min(1 << 16)).find(solves) else { return };
        self.define(atom, Dim::from(step) * next(atom) + Dim::from(first));
    }

    /// `form == 0`: some size is what the rest of the form says.
    fn equal(&mut self, form: &Dim) {
        let solution = unknowns(form).into_iter().find_map(|(atom, coefficient)| {
            let rest = form.clone() - Dim::from(coefficient) * Dim::of(&atom);
            let divides = rest.terms().all(|(_, term)| term % coefficient == 0);
            let value = if divides { divided(&-rest, coefficient) } else { return None };
            may_be(&atom, &value).then_some((atom, value))
        });
        if let Some((atom, value)) = solution {
            self.define(&atom, value);
        }
    }

    /// `form >= 0`: some size is at least what the rest of the form says.
    fn natural(&mut self, form: &Dim) {
        if form.is_natural() {
            return;
        }
        let solution = unknowns(form).into_iter().find_map(|(atom, coefficient)| {
            let rest = form.clone() - Dim::from(coefficient) * Dim::of(&atom);
            let least = match (rest.as_const(), coefficient) {
                (Some(rest), 1..) => {
                    Dim::from(rest.checked_neg()?.div_euclid(coefficient))
                        + Dim::from(i64::from(rest.rem_euclid(coefficient) != 0))
                }
                (None, 1) => -rest,
                _ => return None,
            };
            may_be(&atom, &least).then_some((atom, least))
        });
        match solution {
            Some((atom, least)) => {
                let form = next(&atom) + least;
                self.define(&atom, form);
            }
            None => self.bounded(form),
        }
    }

    /// `form >= 0` where the form is a number less a multiple of one size or parameter, which is no larger then.
    fn bounded(&mut self, form: &Dim) {
        let unknowns = unknowns(form);
        let [(atom, coefficient)] = unknowns.as_slice() else { return };
        let rest = form.clone() - Dim::from(*coefficient) * Dim::of(atom);
        let (Some(name), Some(rest), ..0) = (name(atom), rest.as_const(), *coefficient) else { return };
        // No size is below 0: conditions that ask for one contradict each other.
        let most = rest.max(0) / coefficient.saturating_abs();
        let known = self.most.entry(name.to_owned()).or_insert(most);
        *known = most.min(*known);
    }

    /// Puts a form in the place of a size, of a parameter or of an unknown.
    fn define(&mut self, atom: &Atom, form: Dim) {
        let Some(name) = name(atom) else { return };
        // A second form would take the unknowns of the first for its own.
        if self.forms.contains_key(name) {
            return;
        }
        let forms = BTreeMap::from([(name.to_owned(), form.clone())]);
        let single = Facts { forms, ..Facts::default() };
        let mut forms: BTreeMap<String, Dim> =
            self.forms.iter().map(|(size, old)| (size.clone(), single.apply(old))).collect();
        forms.insert(name.to_owned(), form);
        if forms.values().all(|form| weight(form) < LARGEST && form.is_readable()) {
            self.forms = forms;
        }
    }
}

/// The unknown that a size, a parameter or an unknown is made of. Nothing in a kernel has its name.
fn next(atom: &Atom) -> Dim {
    match atom {
        Atom::Param(name) => Dim::param(format!("{name}′")),
        Atom::Size(name) => Dim::size(format!("{name}′")),
        other => Dim::of(other),
    }
}

fn name(atom: &Atom) -> Option<&str> {
    match atom {
        Atom::Param(name) | Atom::Size(name) => Some(name),
        _ => None,
    }
}

/// Whether a form can stand for a size or a parameter.
fn may_be(atom: &Atom, form: &Dim) -> bool {
    let is_decided_with_it = matches!(atom, Atom::Size(_)) || form.is_static();
    is_decided_with_it && form.is_natural() && !name(atom).is_some_and(|name| mentions(form, name))
}

fn weight(dim: &Dim) -> i128 {
    dim.terms().map(|(_, coefficient)| i128::from(coefficient).abs()).sum()
}

/// The greatest common divisor; of 0 and a number, the number.
pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The sizes that are terms of their own, with their coefficients, and after them the parameters.
fn unknowns(form: &Dim) -> Vec<(Atom, i64)> {
    let alone = |(factors, coefficient): (&[Atom], i64)| match factors {
        [atom @ (Atom::Param(_) | Atom::Size(_))] => Some((atom.clone(), coefficient)),
        _ => None,
    };
    let (sizes, parameters): (Vec<_>, Vec<_>) =
        form.terms().filter_map(alone).partition(|(atom, _)| matches!(atom, Atom::Size(_)));
    sizes.into_iter().chain(parameters).collect()
}

fn mentions(form: &Dim, name: &str) -> bool {
    let (mut parameters, mut sizes) = (BTreeSet::new(), BTreeSet::new());
    form.collect_names(&mut parameters, &mut sizes);
    parameters.contains(name) || sizes.contains(name)
}

fn only_atom(form: &Dim) -> Option<&Atom> {
    let mut terms = form.terms();
    match (terms.next(), terms.next()) {
        (Some(([atom], 1)), None) => Some(atom),
        _ => None,
    }
}

/// A form whose coefficients are all multiples of `by`, divided.
fn divided(form: &Dim, by: i64) -> Dim {
    scaled(form.terms().map(|(factors, coefficient)| (factors, coefficient / by)))
}

fn scaled<'d>(terms: impl Iterator<Item = (&'d [Atom], i64)>) -> Dim {
    terms.fold(Dim::from(0), |sum, (factors, coefficient)| {
        let product = factors.iter().fold(Dim::from(coefficient), |product, atom| product * Dim::of(atom));
        sum + product
    })
}

/// The terms that a divisor divides, divided, and the others; of a divisor that is a sum, where it divides all of them
/// together. `None` of divisors that may be below 1: a quotient by 0 has no value, and its parts would have one.
fn split(form: &Dim, by: &Dim) -> Option<(Dim, Dim)> {
    if !is_positive(by) {
        return None;
    }
    if by.terms().count() > 1 {
        return Some((exact(form, by)?, Dim::from(0)));
    }
    let divisor = by.terms().next()?;
    let term = |term| divided_term(term, divisor);
    let divided: Vec<_> = form.terms().filter_map(term).collect();
    let whole = scaled(divided.iter().map(|(atoms, coefficient)| (atoms.as_slice(), *coefficient)));
    let rest = scaled(form.terms().filter(|&other| term(other).is_none()));
    Some((whole, rest))
}

/// What a sum is to be multiplied by for a form: `m*n + m` of `n + 1` is `m`. It is found term by term, as in the division
/// of polynomials.
fn exact(form: &Dim, by: &Dim) -> Option<Dim> {
    // Terms without factors come last: what a size is made of before its constant.
    let lead = by.terms().max_by_key(|(factors, _)| factors.len())?;
    let (mut whole, mut rest) = (Dim::from(0), form.clone());
    for _ in form.terms() {
        let next = rest.terms().filter_map(|term| divided_term(term, lead));
        let (factors, coefficient) = next.max_by_key(|(factors, _)| factors.len())?;
        let part = scaled([(factors.as_slice(), coefficient)].into_iter());
        rest = rest - part.clone() * by.clone();
        whole = whole + part;
        if rest.as_const() == Some(0) {
            return Some(whole);
        }
        if weight(&rest) >= LARGEST {
            return None;
        }
    }
    None
}

/// A term divided by another one, if that leaves no rest.
fn divided_term(
    (atoms, multiple): (&[Atom], i64),
    (factors, coefficient): (&[Atom], i64),
) -> Option<(Vec<Atom>, i64)> {
    let mut atoms = atoms.to_vec();
    for factor in factors {
        atoms.remove(atoms.iter().position(|atom| atom == factor)?);
    }
    (multiple % coefficient == 0).then_some((atoms, multiple / coefficient))
}

/// `(by*whole + rest) / by` is `whole + rest / by`, rounded either way.
fn quotient(a: &Dim, b: &Dim, divide: fn(&Dim, &Dim) -> Dim) -> Dim {
    match split(a, b) {
        Some((whole, rest)) if rest.as_const() == Some(0) => whole,
        Some((whole, rest)) => whole + divide(&rest, b),
        None => divide(a, b),
    }
}

fn remainder(a: &Dim, b: &Dim) -> Dim {
    match split(a, b) {
        Some((_, rest)) if rest.as_const() == Some(0) => rest,
        Some((_, rest)) => rest.rem(b),
        None => a.rem(b),
    }
}

#[cfg(test)]
mod tests;
