//! Integer expressions over symbols: what an expression is, when two are one, and what it is worth.
//!
//! An expression is a sum of products of atoms with integer coefficients. An atom is a symbol, or a quotient, a
//! remainder, a minimum or a maximum that does not simplify (see `atom.rs` and `quotient.rs`). This file knows no
//! facts about symbols: what it simplifies is true for all values. Constants, symbols and products of two atoms
//! need no heap.
//!
//! Invariants: the terms are sorted and no coefficient is zero, the atoms of a product are sorted, so equal
//! expressions are equal polynomials of atoms. Coefficients fit into 64 bits; what would not is an error and
//! never wraps. The size of an expression is bounded, so that whatever walks one ends soon.
//!
//! Simplification keeps the value wherever the expression as written has one. It may give a value where there
//! was none: `floor_div(m*n, n)` is `m` also for `n = 0`.

use super::atom::Atom;
use super::symbol::{Bindings, Symbol};
use crate::error::{ErrorKind, LayoutError, Result};
use alloc::collections::BTreeSet;
use alloc::format;
use smallvec::{SmallVec, smallvec};

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
    pub(super) terms: SmallVec<[Term; 1]>,
}

/// A product of atoms, none for the constant term, with its coefficient.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Term {
    pub(super) atoms: SmallVec<[Atom; 2]>,
    pub(super) coefficient: i64,
}

impl Term {
    pub(super) fn new(atoms: &[Atom], coefficient: i64) -> Term {
        Term { atoms: atoms.into(), coefficient }
    }
}

impl Expr {
    pub(super) fn from_atom(atom: Atom) -> Expr {
        Expr::from_term(Term { atoms: smallvec![atom], coefficient: 1 })
    }

    /// One product.
    pub(super) fn from_term(term: Term) -> Expr {
        Expr { terms: if term.coefficient == 0 { SmallVec::new() } else { smallvec![term] } }
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
        self.terms.iter().map(|term| (term.atoms.as_slice(), term.coefficient))
    }

    /// The value, where it is the same for all values of the symbols by form.
    ///
    /// ```
    /// use tile_layout::symbolic::Expr;
    /// assert_eq!((Expr::from(64).as_constant(), Expr::from("m").as_constant()), (Some(64), None));
    /// ```
    pub fn as_constant(&self) -> Option<i64> {
        match self.terms.as_slice() {
            [] => Some(0),
            [term] if term.atoms.is_empty() => Some(term.coefficient),
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
        self.terms.first().filter(|term| term.atoms.is_empty()).map_or(0, |term| term.coefficient)
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

    /// Whether a symbol that passes `test` occurs, also inside quotients and the like.
    pub(super) fn mentions(&self, test: &dyn Fn(&Symbol) -> bool) -> bool {
        let mentions = |atom: &Atom| match atom {
            Atom::Symbol(symbol) => test(symbol),
            _ => atom.operands().any(|operand| operand.mentions(test)),
        };
        self.terms().any(|(atoms, _)| atoms.iter().any(mentions))
    }

    fn collect_symbols(&self, symbols: &mut BTreeSet<Symbol>) {
        for atom in self.terms.iter().flat_map(|term| &term.atoms) {
            if let Atom::Symbol(symbol) = atom {
                symbols.insert(symbol.clone());
            }
            atom.operands().for_each(|operand| operand.collect_symbols(symbols));
        }
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
    pub(super) fn evaluate_wide(&self, bindings: &Bindings) -> Result<i128> {
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
            sum = sum.plus(Expr::from(coefficient).times(product)?)?;
        }
        Ok(sum)
    }
}

impl From<i64> for Expr {
    fn from(value: i64) -> Expr {
        Expr::from_term(Term::new(&[], value))
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
