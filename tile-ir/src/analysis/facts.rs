//! What a kernel's conditions say of its run-time sizes, and of parameters that aren't bound yet, as forms of fewer
//! unknowns.
//!
//! A launch refuses sizes that break a condition, so whatever follows from the conditions holds wherever a kernel
//! runs. It is kept as a substitution: `m % 64 == 0` makes `m` into `64*m′`, `m >= 64` makes it `m′ + 64`, `m == n`
//! makes it `n`. The new unknowns are not negative, as sizes are, so that [`Dim::is_natural`] and `==` of forms
//! decide as before, and more. A parameter's form has no sizes, so that what is known at specialisation stays so. Conditions that contradict each other prove anything, of a kernel that never runs.
//!
//! A condition that no substitution expresses (`m <= 64`, `m != n`, `m + n == 64`) is not used.

use crate::condition::Condition;
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
}

impl Facts {
    /// What the conditions of a kernel say.
    pub fn of(kernel: &Kernel) -> Facts {
        let mut facts = Facts::default();
        for _ in 0..ROUNDS {
            let before = facts.clone();
            for condition in &kernel.conditions {
                facts.assume(condition);
            }
            if facts == before {
                break;
            }
        }
        facts
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
        })
    }

    /// What the coefficients of the extent in terms of the unknowns add up to, at most.
    fn weight(&self, dim: &Dim) -> i128 {
        let atom = |atom: &Atom| match atom {
            Atom::Param(name) | Atom::Size(name) => self.forms.get(name).map_or(1, weight),
            // A quotient's terms are no heavier than its dividend's, and one more may be split off.
            Atom::CeilDiv(a, _) | Atom::FloorDiv(a, _) => self.weight(a).saturating_add(1),
            Atom::Rem(..) => 1,
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
            Atom::Param(name) | Atom::Size(name) => Some((0, most / i128::from(self.multiple(name)))),
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
        let inner = |atom: &Atom| match atom {
            Atom::Param(_) | Atom::Size(_) => true,
            Atom::CeilDiv(a, b) | Atom::FloorDiv(a, b) | Atom::Rem(a, b) => {
                self.computes(a) && self.computes(b)
            }
        };
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

    fn assume(&mut self, condition: &Condition) {
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
        if let Some((atom, least)) = solution {
            let form = next(&atom) + least;
            self.define(&atom, form);
        }
    }

    /// Puts a form in the place of a size, of a parameter or of an unknown.
    fn define(&mut self, atom: &Atom, form: Dim) {
        let Some(name) = name(atom) else { return };
        // A second form would take the unknowns of the first for its own.
        if self.forms.contains_key(name) {
            return;
        }
        let single = Facts { forms: BTreeMap::from([(name.to_owned(), form.clone())]) };
        let mut forms: BTreeMap<String, Dim> =
            self.forms.iter().map(|(size, old)| (size.clone(), single.apply(old))).collect();
        forms.insert(name.to_owned(), form);
        if forms.values().all(|form| weight(form) < LARGEST) {
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
pub(super) fn gcd(mut a: u64, mut b: u64) -> u64 {
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

/// The terms that a positive number divides, divided, and the others.
fn split(form: &Dim, by: i64) -> (Dim, Dim) {
    let whole = scaled(form.terms().filter(|(_, c)| c % by == 0).map(|(factors, c)| (factors, c / by)));
    let rest = scaled(form.terms().filter(|(_, c)| c % by != 0));
    (whole, rest)
}

/// `(by*whole + rest) / by` is `whole + rest / by`, rounded either way.
fn quotient(a: &Dim, b: &Dim, divide: fn(&Dim, &Dim) -> Dim) -> Dim {
    match b.as_const() {
        Some(by @ 1..) => {
            let (whole, rest) = split(a, by);
            whole + divide(&rest, b)
        }
        _ => divide(a, b),
    }
}

fn remainder(a: &Dim, b: &Dim) -> Dim {
    match b.as_const() {
        Some(by @ 1..) => split(a, by).1.rem(b),
        _ => a.rem(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    fn facts(conditions: &str) -> Facts {
        let source = format!(
            "kernel @k(%x: tensor<m x n x k x f32>) where {conditions} {{\n  %i = extent m : index\n}}\n"
        );
        Facts::of(&parse(&source).unwrap_or_else(|error| panic!("{error}")))
    }

    fn shown(conditions: &str) -> String {
        let forms: Vec<String> =
            facts(conditions).forms().map(|(name, form)| format!("{name} = {form}")).collect();
        forms.join(", ")
    }

    /// Forms whose coefficients are near what 64 bits hold leave alone what is known, and are computed without
    /// overflow.
    #[test]
    fn heavy_conditions_say_nothing() {
        for (conditions, expected) in [
            (
                "\"\": rem(m, 4) eq 0, \"\": n eq m, \"\": rem(k, 2) eq 0, \"\": rem(m + 2305843009213693952*k, 8) eq 0",
                "k = 2*k′, m = 4*m′, n = 4*m′",
            ),
            ("\"\": 0 - m - 9223372036854775807 eq 1", ""),
            ("\"\": 0 - 9223372036854775807*m - m eq 0", ""),
            ("\"\": 0 - 9223372036854775807*ceil_div(m, 2) - ceil_div(m, 2) eq m", ""),
            ("\"\": 0 - 9223372036854775807 - 1 ge m", ""),
            ("\"\": m ge 0 - 9223372036854775807 - 1", ""),
            ("\"\": rem(0 - 9223372036854775807*m - m, 3) eq 0", "m = 3*m′"),
        ] {
            assert_eq!(shown(conditions), expected, "{conditions}");
        }
    }

    #[test]
    fn conditions_become_forms() {
        for (conditions, expected) in [
            ("\"\": rem(m, 64) eq 0", "m = 64*m′"),
            ("\"\": 0 eq rem(m, 64)", "m = 64*m′"),
            ("\"\": 64*ceil_div(m, 64) eq m", "m = 64*m′"),
            ("\"\": m - n eq 8*floor_div(m - n, 8)", ""),
            ("\"\": m eq 8*floor_div(m, 8)", "m = 8*m′"),
            ("\"\": rem(m, 64) eq 16", "m = 64*m′ + 16"),
            ("\"\": rem(6*m, 64) eq 0", "m = 32*m′"),
            ("\"\": rem(m + 3, 4) eq 0", "m = 4*m′ + 1"),
            ("\"\": m ge 64", "m = m′ + 64"),
            ("\"\": m gt 0", "m = m′ + 1"),
            ("\"\": 8 lt m", "m = m′ + 9"),
            ("\"\": 8 le m", "m = m′ + 8"),
            ("\"\": m ne 0", "m = m′ + 1"),
            ("\"\": m eq n", "m = n"),
            ("\"\": m eq 4*n + 1", "m = 4*n + 1"),
            ("\"\": m ge n + 2", "m = m′ + n + 2"),
            ("\"\": m lt n", "n = m + n′ + 1"),
            ("\"\": m eq 256", "m = 256"),
            // Not expressed by a substitution.
            ("\"\": m le 64", ""),
            ("\"\": m + n eq 64", ""),
            ("\"\": m ne n", ""),
            ("\"\": rem(m, n) eq 0", ""),
            ("\"\": rem(m + n, 4) eq 0", ""),
            // Nothing satisfies these.
            ("\"\": rem(2*m, 4) eq 1", ""),
            ("\"\": m eq 3, \"\": m eq 4", "m = 3"),
        ] {
            assert_eq!(shown(conditions), expected, "{conditions}");
        }
    }

    #[test]
    fn conditions_of_parameters_become_forms_without_sizes() {
        let facts = |conditions: &str| {
            let source = format!(
                "kernel @k<B, C>(%x: tensor<m x n x f32>) where {conditions} {{\n  %i = extent m : index\n}}\n"
            );
            let facts = Facts::of(&parse(&source).unwrap_or_else(|error| panic!("{error}")));
            let forms: Vec<String> = facts.forms().map(|(name, form)| format!("{name} = {form}")).collect();
            (forms.join(", "), facts)
        };
        for (conditions, expected) in [
            ("\"\": rem(B, 8) eq 0", "B = 8*B′"),
            ("\"\": rem(B, 8) eq 0, \"\": B gt 0", "B = 8*B′′ + 8, B′ = B′′ + 1"),
            ("\"\": C eq 4*B", "C = 4*B"),
            ("\"\": 2*B eq 64", "B = 32"),
            // Sizes come first.
            ("\"\": m eq B", "m = B"),
            ("\"\": m eq 4*B, \"\": rem(B, 2) eq 0", "B = 2*B′, m = 8*B′"),
            ("\"\": m ge B + 1", "m = B + m′ + 1"),
            // What a launch decides, no parameter is made of.
            ("\"\": B ge m", ""),
            ("\"\": rem(m, B) eq 0", ""),
        ] {
            assert_eq!(facts(conditions).0, expected, "{conditions}");
        }
        let (_, facts) = facts("\"\": rem(B, 8) eq 0");
        let (b, eight) = (Dim::param("B"), Dim::from(8));
        let product = b.floor_div(&eight) * eight.clone() * Dim::param("C");
        assert_eq!(facts.apply(&product), facts.apply(&(b * Dim::param("C"))));
        assert_ne!(facts.apply(&Dim::param("C").floor_div(&eight)), facts.apply(&Dim::param("C")));
    }

    #[test]
    fn conditions_work_together() {
        for (conditions, expected) in [
            ("\"\": rem(m, 16) eq 0, \"\": rem(m, 24) eq 0", "m = 48*m′′, m′ = 3*m′′"),
            ("\"\": m gt 0, \"\": rem(m, 64) eq 0", "m = 64*m′′ + 64, m′ = 64*m′′ + 63"),
            ("\"\": rem(m, 64) eq 0, \"\": m gt 0", "m = 64*m′′ + 64, m′ = m′′ + 1"),
            ("\"\": m eq n, \"\": rem(n, 8) eq 0", "m = 8*n′, n = 8*n′"),
            ("\"\": rem(m, 64) eq 0, \"\": rem(n, 32) eq 0, \"\": m eq n", "m = 64*m′, n = 64*m′, n′ = 2*m′"),
            // The first says nothing before the second is known.
            ("\"\": rem(m + n, 4) eq 0, \"\": rem(n, 4) eq 0", "m = 4*m′, n = 4*n′"),
        ] {
            assert_eq!(shown(conditions), expected, "{conditions}");
        }
    }

    #[test]
    fn equal_forms_are_equal_under_the_conditions() {
        let facts = facts("\"\": rem(m, 64) eq 0, \"\": n ge 10");
        let (m, tile) = (Dim::size("m"), Dim::from(64));
        let covered = m.ceil_div(&tile) * tile.clone();
        assert_ne!(covered, m);
        assert_eq!(facts.apply(&covered), facts.apply(&m));
        assert_eq!(facts.apply(&m.rem(&Dim::from(32))), Dim::from(0));
        let shifted = (m.clone() + Dim::from(3)).floor_div(&tile);
        assert_eq!(facts.apply(&shifted), facts.apply(&m.floor_div(&tile)));
        assert!(facts.apply(&(Dim::size("n") - Dim::from(10))).is_natural());
        assert!(!facts.apply(&(Dim::size("n") - Dim::from(11))).is_natural());
    }

    /// For all small sizes that satisfy the conditions, unknowns exist that give them, and a form keeps its value.
    #[test]
    fn forms_keep_their_values_for_every_size_that_satisfies_the_conditions() {
        let (m, n) = (Dim::size("m"), Dim::size("n"));
        let five = Dim::from(5);
        let forms = [
            m.ceil_div(&Dim::from(6)) * five.clone() + n.clone(),
            (m.clone() * Dim::from(3) - n.clone()).floor_div(&Dim::from(4)),
            (m.clone() + n.clone() - Dim::from(7)).rem(&Dim::from(6)),
            (m.clone() * n.clone()).ceil_div(&five),
        ];
        for conditions in [
            "\"\": rem(m, 6) eq 0, \"\": n gt 2",
            "\"\": rem(m, 4) eq 3, \"\": rem(n, 6) eq 2",
            "\"\": m ge n + 2, \"\": rem(n, 4) eq 0",
            "\"\": m eq 2*n + 1",
            "\"\": rem(m, 4) eq 0, \"\": rem(m, 6) eq 0, \"\": m gt 5",
        ] {
            let source = format!("kernel @k(%x: tensor<m x n x f32>) where {conditions} {{\n}}\n");
            let kernel = parse(&source).unwrap();
            let facts = Facts::of(&kernel);
            let unknown = |name: &str| !facts.forms.contains_key(name);
            let (mut params, mut names) = (BTreeSet::new(), BTreeSet::new());
            facts.forms.values().chain([&m, &n]).for_each(|form| form.collect_names(&mut params, &mut names));
            let names: Vec<String> = names.into_iter().filter(|name| unknown(name)).collect();
            let mut reached = BTreeSet::new();
            for choice in 0..20i64.pow(names.len() as u32) {
                let value = |name: &str| {
                    let at = names.iter().position(|other| other == name)?;
                    Some(choice / 20i64.pow(at as u32) % 20)
                };
                let size = |name: &str| facts.apply(&Dim::size(name)).evaluate_signed(&value).ok();
                reached.insert((size("m").unwrap(), size("n").unwrap()));
                for form in &forms {
                    assert_eq!(
                        facts.apply(form).evaluate_signed(&value),
                        form.evaluate_signed(&size),
                        "{form} where {conditions}"
                    );
                }
            }
            for (m, n) in (0..20).flat_map(|m| (0..20).map(move |n| (m, n))) {
                let lookup = |name: &str| Some(if name == "m" { m } else { n });
                let holds = kernel.conditions.iter().all(|condition| condition.holds(&lookup) == Ok(true));
                assert_eq!(holds, reached.contains(&(m, n)), "m = {m}, n = {n} where {conditions}");
            }
        }
    }

    #[test]
    fn coefficients_that_do_not_fit_are_left_alone() {
        let huge = format!("\"\": rem(m, {}) eq 0", 1i64 << 40);
        let facts = facts(&huge);
        let square = Dim::size("m") * Dim::size("m");
        assert_eq!(facts.apply(&square), square);
        assert_eq!(facts.apply(&Dim::size("m")).to_string(), "1099511627776*m′");
    }
}
