//! Integer expressions over symbols: what an expression is, when two are one, and what it is worth.
//!
//! An expression is a sum of products of atoms with integer coefficients. An atom is a symbol, or a quotient, a
//! remainder, a minimum or a maximum that does not simplify (see `quotient.rs`). This file knows no facts about
//! symbols: what it simplifies is true for all values.
//!
//! Invariants: the terms are sorted and no coefficient is zero, the atoms of a product are sorted, so equal
//! expressions are equal polynomials of atoms. Coefficients fit into 64 bits; what would not is an error and
//! never wraps. The size of an expression is bounded, so that whatever walks one ends soon.
//!
//! Simplification keeps the value wherever the expression as written has one. It may give a value where there
//! was none: `floor_div(m*n, n)` is `m` also for `n = 0`.

use super::symbol::{Bindings, Symbol};
use crate::error::{ErrorKind, LayoutError, Result};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;

/// Atoms and coefficients that an expression may have, those inside its atoms included.
const MAX_SIZE: usize = 512;

/// How deep atoms may nest. Bounds look at each level in two ways, so the time they take doubles with each.
const MAX_DEPTH: usize = 12;

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

/// An integer expression over [`Symbol`]s, in normal form: equal polynomials are equal.
///
/// Made from integers and names and from each other, or parsed. Arithmetic is checked: a coefficient that does
/// not fit into 64 bits is an error.
///
/// ```
/// use tile_layout::symbolic::{Bindings, Expr};
/// let padded = Expr::from("m").ceil_div(64)?.times(64)?.plus("n")?;
/// assert_eq!(padded.to_string(), "64*ceil_div(m, 64) + n");
/// assert_eq!(padded, "n + ceil_div(m, 64)*64".parse()?);
/// assert_eq!(padded.evaluate(&Bindings::from([("m", 65), ("n", 3)]))?, 131);
/// assert_eq!(Expr::from("a").times(64)?.floor_div(64)?, "a".into());
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expr {
    /// Product of atoms → coefficient. The empty product is the constant term.
    terms: BTreeMap<Vec<Atom>, i64>,
}

impl Expr {
    pub(super) fn from_atom(atom: Atom) -> Expr {
        Expr { terms: BTreeMap::from([(Vec::from([atom]), 1)]) }
    }

    /// One product of atoms, sorted, with its coefficient.
    pub(super) fn from_term(atoms: Vec<Atom>, coefficient: i64) -> Expr {
        let mut terms = BTreeMap::new();
        if coefficient != 0 {
            terms.insert(atoms, coefficient);
        }
        Expr { terms }
    }

    /// The terms: products of atoms, each with its coefficient, none zero; the constant term has no atoms and
    /// comes first.
    ///
    /// ```
    /// let size: tile_layout::symbolic::Expr = "2*m*k + 3".parse()?;
    /// let degrees: Vec<_> = size.terms().map(|(atoms, coefficient)| (atoms.len(), coefficient)).collect();
    /// assert_eq!(degrees, [(0, 3), (2, 2)]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn terms(&self) -> impl Iterator<Item = (&[Atom], i64)> {
        self.terms.iter().map(|(atoms, &coefficient)| (atoms.as_slice(), coefficient))
    }

    /// The value, where it is the same for all values of the symbols by form.
    ///
    /// ```
    /// use tile_layout::symbolic::Expr;
    /// assert_eq!((Expr::from(64).as_constant(), Expr::from("m").as_constant()), (Some(64), None));
    /// ```
    pub fn as_constant(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&[][..]).copied(),
            _ => None,
        }
    }

    /// The symbol, where the expression is nothing but one.
    ///
    /// ```
    /// use tile_layout::symbolic::Expr;
    /// assert_eq!(Expr::from("m").as_symbol().map(|symbol| symbol.name()), Some("m"));
    /// assert_eq!(Expr::from("m").times(2)?.as_symbol(), None);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn as_symbol(&self) -> Option<&Symbol> {
        match self.as_atom()? {
            Atom::Symbol(symbol) => Some(symbol),
            _ => None,
        }
    }

    /// The atom, where the expression is nothing but one.
    pub(super) fn as_atom(&self) -> Option<&Atom> {
        let mut terms = self.terms();
        match (terms.next(), terms.next()) {
            (Some(([atom], 1)), None) => Some(atom),
            _ => None,
        }
    }

    /// The constant term.
    pub(super) fn constant_term(&self) -> i64 {
        self.terms.get(&[][..]).copied().unwrap_or(0)
    }

    /// Whether the expression is `value` by form.
    pub(super) fn is(&self, value: i64) -> bool {
        self.as_constant() == Some(value)
    }

    /// Every symbol that occurs, also inside quotients and the like.
    ///
    /// ```
    /// let tiles: tile_layout::symbolic::Expr = "ceil_div(m, 64)*n".parse()?;
    /// assert_eq!(tiles.symbols().iter().map(|symbol| symbol.name()).collect::<Vec<_>>(), ["m", "n"]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn symbols(&self) -> BTreeSet<Symbol> {
        let mut symbols = BTreeSet::new();
        self.collect_symbols(&mut symbols);
        symbols
    }

    fn collect_symbols(&self, symbols: &mut BTreeSet<Symbol>) {
        for atom in self.terms.keys().flatten() {
            if let Atom::Symbol(symbol) = atom {
                symbols.insert(symbol.clone());
            }
            atom.operands().for_each(|operand| operand.collect_symbols(symbols));
        }
    }

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
        let mut sum = self.clone();
        for (atoms, &coefficient) in &other.terms {
            sum.add_term(atoms.clone(), coefficient).ok_or_else(|| overflow(self, "+", &other))?;
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
        for (atoms, &coefficient) in &other.terms {
            coefficient
                .checked_neg()
                .and_then(|negated| difference.add_term(atoms.clone(), negated))
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
        let refused = || overflow(self, "*", &other);
        if self.terms.len() * other.terms.len() > MAX_SIZE {
            return Err(refused());
        }
        let mut product = Expr::from(0);
        for (left, &a) in &self.terms {
            for (right, &b) in &other.terms {
                let mut atoms: Vec<Atom> = left.iter().chain(right).cloned().collect();
                atoms.sort();
                a.checked_mul(b)
                    .and_then(|coefficient| product.add_term(atoms, coefficient))
                    .ok_or_else(refused)?;
            }
        }
        product.bounded()
    }

    /// Add one term; `None` where its coefficient overflows.
    fn add_term(&mut self, atoms: Vec<Atom>, coefficient: i64) -> Option<()> {
        let sum = self.terms.get(&atoms).copied().unwrap_or(0).checked_add(coefficient)?;
        if sum == 0 {
            self.terms.remove(&atoms);
        } else {
            self.terms.insert(atoms, sum);
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
        self.terms.keys().map(|atoms| 1 + atoms.iter().map(of_atom).sum::<usize>()).sum()
    }

    fn depth(&self) -> usize {
        let atoms = self.terms.keys().flatten();
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
        let (atoms, coefficient) = divisor.terms().last()?;
        if divisor.terms.len() == 1 {
            let quotients = self.terms().map(|term| term_quotient(term, (atoms, coefficient)));
            return Some(Expr { terms: quotients.collect::<Option<_>>()? });
        }
        // The order of terms is not one that products keep, so the partner of the divisor's last term is sought.
        let candidates = self.terms().filter_map(|term| term_quotient(term, (atoms, coefficient)));
        let mut quotients = candidates.map(|(atoms, coefficient)| Expr::from_term(atoms, coefficient));
        quotients.find(|quotient| quotient.times(divisor).is_ok_and(|product| product == *self))
    }

    /// The value.
    ///
    /// # Errors
    /// [`ErrorKind::Unbound`], naming the symbol, where one has no value; [`ErrorKind::InvalidExtent`] where a
    /// divisor is less than 1; [`ErrorKind::Overflow`] where the value does not fit into 64 bits.
    ///
    /// ```
    /// use tile_layout::symbolic::{Bindings, Expr};
    /// let tiles: Expr = "ceil_div(m, 64)".parse()?;
    /// assert_eq!(tiles.evaluate(&Bindings::from([("m", 65)]))?, 2);
    /// assert_eq!(tiles.evaluate(&Bindings::new()).unwrap_err().to_string(), "`m` has no value");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn evaluate(&self, bindings: &Bindings) -> Result<i64> {
        i64::try_from(self.evaluate_wide(bindings)?).map_err(|_| self.too_large())
    }

    /// The value in 128 bits, so that a large intermediate sum is not refused.
    fn evaluate_wide(&self, bindings: &Bindings) -> Result<i128> {
        let mut sum = 0i128;
        for (atoms, coefficient) in self.terms() {
            let mut product = i128::from(coefficient);
            for atom in atoms {
                product = product.checked_mul(atom.evaluate(bindings)?).ok_or_else(|| self.too_large())?;
            }
            sum = sum.checked_add(product).ok_or_else(|| self.too_large())?;
        }
        Ok(sum)
    }

    fn too_large(&self) -> LayoutError {
        LayoutError::new(ErrorKind::Overflow, format!("the value of {self} does not fit into 64 bits"))
    }

    /// With every symbol replaced by what `value` says, and simplified again.
    pub(super) fn substitute(&self, value: &dyn Fn(&Symbol) -> Result<Expr>) -> Result<Expr> {
        self.rebuild(&|_, atom| atom.substitute(value))
    }

    /// The sum of its terms, each made again from its coefficient and what `replace` makes of its atoms.
    /// `replace` may take a divisor of the coefficient away from it.
    pub(super) fn rebuild(&self, replace: &dyn Fn(&mut i64, &Atom) -> Result<Expr>) -> Result<Expr> {
        let mut sum = Expr::from(0);
        for (atoms, mut coefficient) in self.terms() {
            let mut product = Expr::from(1);
            for atom in atoms {
                product = product.times(replace(&mut coefficient, atom)?)?;
            }
            sum = sum.plus(product.times(coefficient)?)?;
        }
        Ok(sum)
    }
}

fn overflow(left: &Expr, operator: &str, right: &Expr) -> LayoutError {
    LayoutError::new(
        ErrorKind::Overflow,
        format!("({left}) {operator} ({right}) does not fit: its coefficients are integers of 64 bits"),
    )
}

/// The quotient of two terms, where the second divides the first.
fn term_quotient(term: (&[Atom], i64), divisor: (&[Atom], i64)) -> Option<(Vec<Atom>, i64)> {
    let mut atoms = term.0.to_vec();
    for factor in divisor.0 {
        let place = atoms.iter().position(|atom| atom == factor)?;
        atoms.remove(place);
    }
    let whole = term.1.checked_rem(divisor.1)? == 0;
    whole.then(|| term.1 / divisor.1).map(|coefficient| (atoms, coefficient))
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

    fn evaluate(&self, bindings: &Bindings) -> Result<i128> {
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

    fn substitute(&self, value: &dyn Fn(&Symbol) -> Result<Expr>) -> Result<Expr> {
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

impl From<i64> for Expr {
    fn from(value: i64) -> Expr {
        Expr::from_term(Vec::new(), value)
    }
}

impl From<i32> for Expr {
    fn from(value: i32) -> Expr {
        Expr::from(i64::from(value))
    }
}

impl From<Symbol> for Expr {
    fn from(symbol: Symbol) -> Expr {
        Expr::from_atom(Atom::Symbol(symbol))
    }
}

impl From<&Symbol> for Expr {
    fn from(symbol: &Symbol) -> Expr {
        Expr::from(symbol.clone())
    }
}

impl From<&str> for Expr {
    /// The symbol of that name; a formula is parsed.
    fn from(name: &str) -> Expr {
        Expr::from(Symbol::from(name))
    }
}

impl From<&Expr> for Expr {
    fn from(expr: &Expr) -> Expr {
        expr.clone()
    }
}
