//! Comparisons of extents, joined by "and" and "or". "Not" is in the comparisons, as the opposite predicate.

use crate::dim::{Atom, Dim, DimError};
use crate::ops::Predicate;
use std::fmt;

/// A relation between two extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The left side.
    pub left: Dim,
    /// How the sides compare.
    pub predicate: Predicate,
    /// The right side.
    pub right: Dim,
}

/// What a condition says. A `bool` is an extent that isn't 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// Two extents compare so.
    Compare(Comparison),
    /// All of these hold.
    All(Vec<Formula>),
    /// One of these holds, or several.
    Any(Vec<Formula>),
}

impl Comparison {
    fn holds(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<bool, DimError> {
        let (left, right) = (self.left.evaluate_signed(lookup)?, self.right.evaluate_signed(lookup)?);
        Ok(match self.predicate {
            Predicate::Eq => left == right,
            Predicate::Ne => left != right,
            Predicate::Lt => left < right,
            Predicate::Le => left <= right,
            Predicate::Gt => left > right,
            Predicate::Ge => left >= right,
        })
    }

    fn is_static(&self) -> bool {
        self.left.is_static() && self.right.is_static()
    }
}

impl Formula {
    /// One of these, which is itself where it is alone.
    ///
    /// # Panics
    /// If there are none.
    ///
    /// ```
    /// use tile_ir::condition::{Comparison, Formula};
    /// use tile_ir::{Dim, ops::Predicate};
    ///
    /// let odd = Formula::Compare(Comparison {
    ///     left: Dim::size("n").rem(&Dim::from(2)),
    ///     predicate: Predicate::Eq,
    ///     right: Dim::from(1),
    /// });
    /// assert_eq!(Formula::any(vec![odd.clone()]), odd);
    /// ```
    #[must_use]
    pub fn any(mut alternatives: Vec<Formula>) -> Formula {
        match alternatives.len() {
            0 => panic!("nothing would hold"),
            1 => alternatives.remove(0),
            _ => Formula::Any(alternatives),
        }
    }

    /// Both, in one list with the parts of those that are such lists: however many are joined, they stand beside each other.
    #[must_use]
    pub fn and(self, other: Formula) -> Formula {
        let parts = |formula| match formula {
            Formula::All(parts) => parts,
            one => vec![one],
        };
        Formula::All([parts(self), parts(other)].concat())
    }

    /// One or the other, in one list likewise.
    ///
    /// ```
    /// use tile_ir::condition::{Comparison, Formula};
    /// use tile_ir::{Dim, ops::Predicate};
    ///
    /// let is = |number: i64| {
    ///     let (left, right) = (Dim::param("B"), Dim::from(number));
    ///     Formula::Compare(Comparison { left, predicate: Predicate::Eq, right })
    /// };
    /// assert_eq!(is(1).or(is(2)).or(is(4)).to_string(), "any(B eq 1, B eq 2, B eq 4)");
    /// assert_eq!(is(1).and(is(2).or(is(4))).to_string(), "all(B eq 1, any(B eq 2, B eq 4))");
    /// ```
    #[must_use]
    pub fn or(self, other: Formula) -> Formula {
        let parts = |formula| match formula {
            Formula::Any(parts) => parts,
            one => vec![one],
        };
        Formula::Any([parts(self), parts(other)].concat())
    }

    /// What holds where this doesn't.
    ///
    /// ```
    /// use tile_ir::condition::{Comparison, Formula};
    /// use tile_ir::{Dim, ops::Predicate};
    ///
    /// let compare = |name, predicate| {
    ///     Formula::Compare(Comparison { left: Dim::size(name), predicate, right: Dim::from(4) })
    /// };
    /// let both = Formula::All(vec![compare("m", Predicate::Lt), compare("n", Predicate::Eq)]);
    /// assert_eq!(format!("{:#}", both.negated()), "m >= 4 || n != 4");
    /// ```
    #[must_use]
    pub fn negated(self) -> Formula {
        let each = |parts: Vec<Formula>| parts.into_iter().map(Formula::negated).collect();
        match self {
            Formula::Compare(comparison) => {
                let predicate = comparison.predicate.negated();
                Formula::Compare(Comparison { predicate, ..comparison })
            }
            Formula::All(parts) => Formula::Any(each(parts)),
            Formula::Any(parts) => Formula::All(each(parts)),
        }
    }

    /// Whether it holds for given parameters and sizes. A part without a value doesn't matter where the others decide:
    /// `k == 0 || n % k == 0` holds where `k` is 0.
    ///
    /// # Errors
    /// [`DimError`] where a name is unbound or a divisor is zero. Sides may be negative.
    pub fn holds(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<bool, DimError> {
        let (parts, decides) = match self {
            Formula::Compare(comparison) => return comparison.holds(lookup),
            Formula::All(parts) => (parts, false),
            Formula::Any(parts) => (parts, true),
        };
        let mut unknown = None;
        for part in parts {
            match part.holds(lookup) {
                Ok(holds) if holds == decides => return Ok(decides),
                Ok(_) => {}
                Err(error) => unknown = unknown.or(Some(error)),
            }
        }
        unknown.map_or(Ok(!decides), Err)
    }

    /// Whether no run-time size occurs: it is decided once the kernel is specialised.
    pub fn is_static(&self) -> bool {
        match self {
            Formula::Compare(comparison) => comparison.is_static(),
            Formula::All(parts) | Formula::Any(parts) => parts.iter().all(Formula::is_static),
        }
    }

    /// Whether it holds, where no names are left in it.
    pub fn decide(&self) -> Option<bool> {
        if self.is_static() { self.holds(&|_| None).ok() } else { None }
    }

    /// The comparisons that hold wherever it does.
    pub fn assured(&self) -> Vec<&Comparison> {
        match self {
            Formula::Compare(comparison) => vec![comparison],
            Formula::All(parts) => parts.iter().flat_map(Formula::assured).collect(),
            Formula::Any(_) => Vec::new(),
        }
    }

    /// Gives each comparison to a function.
    pub fn each<'f>(&'f self, of: &mut dyn FnMut(&'f Comparison)) {
        match self {
            Formula::Compare(comparison) => of(comparison),
            Formula::All(parts) | Formula::Any(parts) => parts.iter().for_each(|part| part.each(of)),
        }
    }

    /// The formula with names replaced, as [`Dim::substitute`] does, and without the parts that this decides: of
    /// `CAUSAL == 0 || m == n` it leaves `m == n` where `CAUSAL` is 1.
    #[must_use]
    pub fn substitute(&self, lookup: &dyn Fn(&Atom) -> Option<Dim>) -> Formula {
        let (parts, decides) = match self {
            Formula::Compare(Comparison { left, predicate, right }) => {
                let (left, right) = (left.substitute(lookup), right.substitute(lookup));
                return Formula::Compare(Comparison { left, predicate: *predicate, right });
            }
            Formula::All(parts) => (parts, false),
            Formula::Any(parts) => (parts, true),
        };
        let (mut open, mut decided) = (Vec::new(), None);
        for part in parts.iter().map(|part| part.substitute(lookup)) {
            match part.decide() {
                Some(holds) if holds == decides => return part,
                Some(_) => decided = Some(part),
                None => open.push(part),
            }
        }
        match (open.len(), decided, self) {
            (1, ..) => open.remove(0),
            // All parts are decided, and none of them decides the whole: the last is as good as it.
            (0, Some(last), _) => last,
            (_, _, Formula::All(_)) => Formula::All(open),
            _ => Formula::Any(open),
        }
    }

    fn joined(&self, f: &mut fmt::Formatter<'_>, parts: &[Formula], operator: &str) -> fmt::Result {
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                write!(f, " {operator} ")?;
            }
            match part {
                Formula::Compare(_) => write!(f, "{part:#}")?,
                _ => write!(f, "({part:#})")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Comparison {
    /// `rem(m, 4) eq 0`; `{:#}` is as Rust writes it, `m % 4 == 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { left, predicate, right } = self;
        match f.alternate() {
            true => write!(f, "{left:#} {} {right:#}", predicate.symbol()),
            false => write!(f, "{left} {} {right}", predicate.name()),
        }
    }
}

impl fmt::Display for Formula {
    /// `any(rem(m, 4) eq 0, n eq 1)`; `{:#}` is as Rust writes it, `m % 4 == 0 || n == 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, operator, parts) = match self {
            Formula::Compare(comparison) => return comparison.fmt(f),
            Formula::All(parts) => ("all", "&&", parts),
            Formula::Any(parts) => ("any", "||", parts),
        };
        if f.alternate() {
            return self.joined(f, parts, operator);
        }
        let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
        write!(f, "{name}({})", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(left: Dim, predicate: Predicate, right: i64) -> Formula {
        Formula::Compare(Comparison { left, predicate, right: Dim::from(right) })
    }

    #[test]
    fn sides_may_be_negative_and_divisors_zero() {
        let (m, b) = (Dim::size("m"), Dim::param("B"));
        let bind = |name: &str| if name == "m" { Some(3) } else { Some(0) };
        let below = compare(m.clone() - Dim::from(8), Predicate::Lt, 0);
        assert_eq!(below.holds(&bind), Ok(true));
        assert_eq!(compare(m.clone(), Predicate::Ge, 4).holds(&bind), Ok(false));
        let by_zero = compare(m.rem(&b), Predicate::Eq, 0);
        assert!(matches!(by_zero.holds(&bind), Err(DimError::Divisor(_, 0))));
        // What has no value matters only where nothing else decides.
        let (holds, fails) = (compare(b.clone(), Predicate::Eq, 0), compare(b, Predicate::Ne, 0));
        let any = |part: &Formula| Formula::Any(vec![by_zero.clone(), part.clone()]).holds(&bind);
        let all = |part: &Formula| Formula::All(vec![by_zero.clone(), part.clone()]).holds(&bind);
        assert_eq!((any(&holds), all(&fails)), (Ok(true), Ok(false)));
        assert!(any(&fails).is_err() && all(&holds).is_err());
    }

    /// Each name of a formula is looked up once, however deep it stands.
    #[test]
    fn formulas_of_many_levels_are_substituted_in_one_go() {
        let leaf = || compare(Dim::param("B"), Predicate::Eq, 9);
        let deep = (0..20).fold(leaf(), |inner, _| Formula::Any(vec![leaf(), inner]));
        let looked_up = std::cell::Cell::new(0);
        let left = deep.substitute(&|_| {
            looked_up.set(looked_up.get() + 1);
            Some(Dim::from(1))
        });
        assert_eq!((left, looked_up.get()), (compare(Dim::from(1), Predicate::Eq, 9), 21));
    }

    /// Of every formula of two levels and every parameter, what is left has the value of the whole, as has the opposite the
    /// other one, and what is assured holds.
    #[test]
    fn formulas_keep_their_values() {
        let (c, m, n) = (Dim::param("C"), Dim::size("m"), Dim::size("n"));
        let leaves = [
            compare(c.clone(), Predicate::Ne, 0),
            compare(m.clone(), Predicate::Lt, 1),
            compare(n - m, Predicate::Eq, 0),
        ];
        let mut formulas: Vec<Formula> = leaves.to_vec();
        for (i, a) in leaves.iter().enumerate() {
            for b in &leaves[i..] {
                formulas.push(Formula::All(vec![a.clone(), b.clone()]));
                formulas.push(Formula::Any(vec![a.clone().negated(), b.clone()]));
            }
        }
        let inner = formulas.clone();
        for leaf in &leaves {
            formulas.extend(inner.iter().map(|it| Formula::All(vec![leaf.clone(), it.clone()])));
            formulas.extend(inner.iter().map(|it| Formula::Any(vec![it.clone(), leaf.clone()])));
        }
        for formula in formulas {
            for causal in [0, 1] {
                let left = formula.substitute(&|atom| match atom {
                    Atom::Param(_) => Some(Dim::from(causal)),
                    _ => None,
                });
                assert!(left.is_static() || left.decide().is_none());
                for (m, n) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let bind = |name: &str| {
                        Some(match name {
                            "C" => causal,
                            "m" => m,
                            _ => n,
                        })
                    };
                    let holds = formula.holds(&bind).unwrap();
                    let what = format!("{formula:#}, C = {causal}, m = {m}, n = {n}: {left:#}");
                    assert_eq!(left.holds(&bind), Ok(holds), "{what}");
                    assert_eq!(formula.clone().negated().holds(&bind), Ok(!holds), "{what}");
                    assert!(!holds || left.assured().iter().all(|it| it.holds(&bind).unwrap()), "{what}");
                }
            }
        }
    }
}
