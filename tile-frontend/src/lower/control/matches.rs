//! `match` and `let … else` on numbers, bools and optional arguments, and arrays, tuples and structs of them: a chain of
//! `if`. An arm that is known to be taken or not when the macro expands costs nothing; what isn't taken is still lowered for
//! what rustc sees of it ([`crate::lower::unreached`]).

use super::alternatives;
use super::branches::same;
use super::patterns::Parts;
use crate::assigned::{self, Assigned};
use crate::lower::known::known;
use crate::lower::optional::OptionPattern;
use crate::lower::{Lowered, Lowering, kind};
use crate::span::{Span, Spanned};
use crate::value::{Formats, Val};
use syn::{Arm, Expr, ExprMatch, Ident, Lit, Local, Pat, PatRange, RangeLimits, Stmt, Type};
use tile_ir::ops::{BinaryOp, Predicate};
use tile_ir::{DType, Op, ValueId};

/// Whether a value fits a pattern.
#[derive(Clone, Copy)]
enum Fits {
    Always,
    Never,
    If(ValueId),
}

impl Fits {
    fn known(fits: bool) -> Fits {
        if fits { Fits::Always } else { Fits::Never }
    }
}

/// Whether a name is written as those of constants are: rustc takes it for one where there is one.
fn is_named_as_constant(name: &Ident) -> bool {
    let text = name.to_string();
    text.contains(char::is_uppercase) && !text.contains(char::is_lowercase)
}

/// `let pattern = value else { … };`, and what follows in its block.
pub(in crate::lower) struct LetElse<'s> {
    pattern: &'s Pat,
    /// The type that it is given, where it is.
    ty: Option<&'s Type>,
    value: &'s Expr,
    otherwise: &'s Expr,
    span: Span,
    rest: &'s [Stmt],
    /// What it and what follows change.
    assigned: Assigned,
}

impl LetElse<'_> {
    /// The first of these statements, where it is one.
    pub(in crate::lower) fn of(statements: &[Stmt]) -> Option<LetElse<'_>> {
        let (Stmt::Local(Local { pat: pattern, init: Some(init), let_token, .. }), rest) =
            statements.split_first()?
        else {
            return None;
        };
        let (_, otherwise) = init.diverge.as_ref()?;
        let (pattern, ty) = match pattern {
            Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            pattern => (pattern, None),
        };
        let assigned = assigned::by_statements(statements);
        Some(LetElse { pattern, ty, value: &init.expr, otherwise, span: let_token.span(), rest, assigned })
    }
}

/// An arm's pattern and its guard.
fn parts_of(arm: &Arm) -> (&Pat, Option<&Expr>) {
    match &arm.pat {
        Pat::Guard(guarded) => (&*guarded.pat, Some(&*guarded.guard)),
        pattern => (pattern, None),
    }
}

/// A name that a pattern binds.
struct Binding {
    name: Ident,
    mutable: bool,
    value: Val,
}

type Bound = Vec<Binding>;

const LET_ELSE: &str = "let … else";

impl Lowering {
    pub(in crate::lower) fn match_expression(&mut self, expression: &ExprMatch) -> Lowered<Val> {
        let span = expression.match_token.span();
        let value = self.matched(&expression.expr, "match")?;
        let assigned = assigned::by_expression(&Expr::Match(expression.clone()));
        self.nesting += 1;
        let value = self.arms(&expression.arms, &value, &assigned, span);
        self.nesting -= 1;
        value
    }

    /// `let pattern = value else { leave }; rest`: a branch whose one side is the rest of the block. That the other
    /// leaves is rustc's to check.
    pub(in crate::lower) fn let_else(&mut self, let_else: &LetElse<'_>) -> Lowered<Val> {
        let value = self
            .check_exits(let_else.value)
            .and_then(|()| self.matched(let_else.value, LET_ELSE))
            .and_then(|value| self.of_declared_type(let_else.ty, value, let_else.value));
        let Ok(value) = value else { return self.without_bound(let_else) };
        // What gives the value may have left.
        self.guarded(let_else.assigned.clone(), let_else.span, &mut |lowering| {
            lowering.fit_or_leave(let_else, &value)
        })
    }

    /// What was wrong is reported; what follows is lowered all the same.
    fn without_bound(&mut self, let_else: &LetElse<'_>) -> Lowered<Val> {
        self.define_poison(let_else.pattern);
        self.statements(let_else.rest)
    }

    fn fit_or_leave(&mut self, let_else: &LetElse<'_>, value: &Val) -> Lowered<Val> {
        let rest = let_else.rest;
        let fits = self.fits_and_binds(let_else.pattern, None, value, false);
        let Ok((fits, bound)) = fits else { return self.without_bound(let_else) };
        let mut goes_on =
            |lowering: &mut Self| lowering.with_bound(&bound, |lowering| lowering.statements(rest));
        let mut leaves = |lowering: &mut Self| lowering.expression(let_else.otherwise).map(|_| Val::Never);
        self.nesting += 1;
        let value = match fits {
            Fits::Always => self.side_taken(&mut goes_on, &mut leaves),
            Fits::Never => self.side_taken(&mut leaves, &mut goes_on),
            Fits::If(condition) => {
                let (assigned, span) = (&let_else.assigned, let_else.span);
                self.choose(LET_ELSE, condition, assigned, span, &mut goes_on, &mut leaves)
            }
        };
        self.nesting -= 1;
        value
    }

    /// What patterns are compared with.
    fn matched(&mut self, expression: &Expr, keyword: &str) -> Lowered<Val> {
        let value = self.expression(expression)?;
        match &value {
            Val::Data(tile) if self.shape(*tile).is_some() => {
                let help = "a tile of one element becomes a scalar with `.item()`; use `select` to choose element by element";
                self.error(expression.span(), format!("`{keyword}` needs a scalar, not a tile"), help)
            }
            Val::Int(_) | Val::Dim(_) | Val::Data(_) | Val::List(_) | Val::Record(..) | Val::Optional(..) => {
                Ok(value)
            }
            other => {
                let message = format!(
                    "`{keyword}` needs an integer, a bool or an optional argument, not {}",
                    kind(other)
                );
                self.error(expression.span(), message, "use `if` and `else if`")
            }
        }
    }

    fn arms(&mut self, arms: &[Arm], value: &Val, assigned: &Assigned, span: Span) -> Lowered<Val> {
        // rustc reports a `match` that doesn't cover all values.
        let Some((arm, rest)) = arms.split_first() else { return Ok(Val::Never) };
        let (pattern, guard) = parts_of(arm);
        let (fits, bound) = self.fits_and_binds(pattern, guard, value, rest.is_empty())?;
        let mut taken =
            |lowering: &mut Self| lowering.with_bound(&bound, |lowering| lowering.expression(&arm.body));
        match fits {
            Fits::Always => {
                let others: Vec<Formats> =
                    rest.iter().filter_map(|arm| self.arm_not_taken(arm, value)).collect();
                let given = taken(self)?;
                Ok(self.of_type_with(given, others))
            }
            Fits::Never => {
                let other = self.arm_not_taken(arm, value);
                let given = self.arms(rest, value, assigned, span)?;
                Ok(self.of_type_with(given, other))
            }
            Fits::If(condition) => {
                self.choose("match", condition, assigned, span, &mut taken, &mut |lowering| {
                    lowering.arms(rest, value, assigned, span)
                })
            }
        }
    }

    /// An arm that is known not to be taken, and its guard, which isn't asked; gives the type of what it would give.
    fn arm_not_taken(&mut self, arm: &Arm, value: &Val) -> Option<Formats> {
        self.not_taken(|lowering| {
            let (pattern, guard) = parts_of(arm);
            let (_, bound) = lowering.fits_and_binds(pattern, None, value, false)?;
            lowering.with_bound(&bound, |lowering| {
                let _ = guard.map(|guard| lowering.condition(guard, "match"));
                lowering.expression(&arm.body)
            })
        })
    }

    /// Whether a value fits a pattern and its guard, and what the names are then. Of several alternatives the first that
    /// fits says it, with a guard the first that fits with it. `is_last` says that what has no guard fits.
    fn fits_and_binds(
        &mut self,
        pattern: &Pat,
        guard: Option<&Expr>,
        value: &Val,
        is_last: bool,
    ) -> Lowered<(Fits, Bound)> {
        let alternatives = alternatives::of(pattern, &|name| self.is_constant(name));
        let last = alternatives.len() - 1;
        let mut fitting: Vec<(Fits, Bound)> = Vec::new();
        let mut any = Fits::Never;
        for (i, alternative) in alternatives.iter().enumerate() {
            let mut bound = Bound::new();
            let mut fits = self.fits(alternative, value, &mut bound)?;
            fits = match guard {
                Some(guard) => {
                    // Rust asks the guard no more once an alternative has been taken.
                    let others = self.opposite(any, pattern.span())?;
                    fits = self.both(others, fits, BinaryOp::And)?;
                    self.guarded_fit(fits, guard, &bound)?
                }
                None if is_last && i == last => Fits::Always,
                None => fits,
            };
            any = self.both(any, fits, BinaryOp::Or)?;
            fitting.push((fits, bound));
            if matches!(any, Fits::Always) {
                break;
            }
        }
        let mut bound: Option<Bound> = None;
        for (fits, names) in fitting.into_iter().rev() {
            bound = Some(match (bound, fits) {
                (None, _) | (_, Fits::Always) => names,
                (Some(bound), Fits::Never) => bound,
                (Some(bound), Fits::If(condition)) => {
                    self.either_bound(condition, names, &bound, pattern.span())?
                }
            });
        }
        Ok((any, bound.unwrap_or_default()))
    }

    /// What names are: by one alternative where its condition holds, and otherwise by another.
    fn either_bound(
        &mut self,
        condition: ValueId,
        names: Bound,
        others: &Bound,
        span: Span,
    ) -> Lowered<Bound> {
        let mut bound = Bound::new();
        for Binding { name, mutable, value } in names {
            let other = others.iter().find(|other| other.name == name).map(|other| &other.value);
            // rustc reports a name that another alternative doesn't bind.
            let value = match other.filter(|other| !same(other, &value)) {
                None => value,
                Some(other) => self.choose(
                    "match",
                    condition,
                    &Assigned::default(),
                    span,
                    &mut |_| Ok(value.clone()),
                    &mut |_| Ok(other.clone()),
                )?,
            };
            bound.push(Binding { name, mutable, value });
        }
        Ok(bound)
    }

    fn opposite(&mut self, fits: Fits, span: Span) -> Lowered<Fits> {
        Ok(match fits {
            Fits::Always => Fits::Never,
            Fits::Never => Fits::Always,
            Fits::If(condition) => Fits::If(self.negated(condition, span)?),
        })
    }

    fn with_bound<T>(&mut self, bound: &Bound, action: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.enter();
        for Binding { name, mutable, value } in bound {
            self.define(name, *mutable, value.clone());
        }
        let result = action(self);
        self.scopes.leave();
        result
    }

    /// A pattern with a guard, which is computed only where the pattern fits, unless nobody sees that.
    fn guarded_fit(&mut self, fits: Fits, guard: &Expr, bound: &Bound) -> Lowered<Fits> {
        let condition =
            |lowering: &mut Self| lowering.with_bound(bound, |lowering| lowering.condition(guard, "match"));
        let fits = match fits {
            Fits::If(pattern) => self.decided(pattern).map_or(fits, Fits::known),
            fits => fits,
        };
        let pattern = match fits {
            Fits::Never => return Ok(Fits::Never),
            Fits::If(pattern) if self.may_be_absent(bound) || !self.guard_computes(guard, bound) => pattern,
            fits => {
                let guard = condition(self)?;
                return self.both(fits, Fits::If(guard), BinaryOp::And);
            }
        };
        let span = guard.span();
        let value = self.choose(
            "match",
            pattern,
            &assigned::by_expression(guard),
            span,
            &mut |lowering| condition(lowering).map(Val::Data),
            &mut |lowering| Ok(Val::Data(lowering.truth(false, span))),
        )?;
        self.data(&value, "the guard", span).map(Fits::If)
    }

    /// Whether a guard does nothing but compute with numbers, those among them that the pattern binds.
    fn guard_computes(&mut self, guard: &Expr, bound: &Bound) -> bool {
        self.with_bound(bound, |lowering| lowering.only_computes(guard))
    }

    /// Whether a name is bound to an optional argument, which is there only where the pattern fits.
    fn may_be_absent(&self, bound: &Bound) -> bool {
        bound.iter().any(|binding| match &binding.value {
            Val::Tensor(argument) | Val::Data(argument) => self.kernel.optional.contains_key(argument),
            _ => false,
        })
    }

    /// Joins two answers by `and` or `or`.
    fn both(&mut self, a: Fits, b: Fits, op: BinaryOp) -> Lowered<Fits> {
        let is_and = op == BinaryOp::And;
        Ok(match (a, b) {
            (Fits::Never, other) | (other, Fits::Never) => {
                if is_and {
                    Fits::Never
                } else {
                    other
                }
            }
            (Fits::Always, other) | (other, Fits::Always) => {
                if is_and {
                    other
                } else {
                    Fits::Always
                }
            }
            (Fits::If(a), Fits::If(b)) => {
                Fits::If(self.emit_one(Op::Binary(op), &[a, b], Span::call_site(), &[])?)
            }
        })
    }

    fn fits(&mut self, pattern: &Pat, value: &Val, bound: &mut Bound) -> Lowered<Fits> {
        if let (&Val::Optional(argument, given), Some(optional)) = (value, OptionPattern::of(pattern)) {
            return match optional {
                OptionPattern::Some(inner) => {
                    let fits = self.fits(inner, &self.given(argument), bound)?;
                    self.both(Fits::If(given), fits, BinaryOp::And)
                }
                OptionPattern::None => self.negated(given, pattern.span()).map(Fits::If),
            };
        }
        match (pattern, value) {
            (Pat::Wild(_) | Pat::Rest(_), _) => Ok(Fits::Always),
            (Pat::Paren(inner), _) => self.fits(&inner.pat, value, bound),
            (Pat::Ident(name), _) if self.is_constant(&name.ident) => {
                let path: Expr = syn::parse_quote!(#name);
                let constant = self.expression(&path)?;
                if self.is_generic(&constant) {
                    let message =
                        format!("`{}` depends on const parameters, so it can't be a pattern", name.ident);
                    return self.error(pattern.span(), message, "write a name and a guard: `k if k == …`");
                }
                self.equal(value, &constant, pattern.span())
            }
            (Pat::Ident(name), _) if name.subpat.is_none() && is_named_as_constant(&name.ident) => {
                let message = format!(
                    "`{0}` isn't a constant that this kernel sees, and a variable of this name fits everything",
                    name.ident
                );
                let help = "compare in a guard, `k if k == …`, make the constant one of the kernel's module, which has `#[tile_kernels]`, or write a variable in small letters";
                self.error(pattern.span(), message, help)
            }
            (Pat::Ident(name), _) if name.by_ref.is_none() => {
                let mutable = name.mutability.is_some();
                bound.push(Binding { name: name.ident.clone(), mutable, value: value.clone() });
                match &name.subpat {
                    Some((_, inner)) => self.fits(inner, value, bound),
                    None => Ok(Fits::Always),
                }
            }
            (Pat::Or(either), _) => {
                let mut fits = Fits::Never;
                for case in &either.cases {
                    let case = self.fits(case, value, bound)?;
                    fits = self.both(fits, case, BinaryOp::Or)?;
                }
                Ok(fits)
            }
            (Pat::Lit(literal), _) => self.fits_literal(&literal.lit, value),
            (Pat::Path(path), _) => {
                let constant = self.expression(&Expr::Path(path.clone()))?;
                self.equal(value, &constant, pattern.span())
            }
            (Pat::Range(range), _) => self.fits_range(range, value),
            _ => match self.taken_apart(pattern, value) {
                Some(parts) => self.all_fit(parts?, bound),
                None => {
                    let help = "patterns are numbers, ranges, constants, `a | b`, `_`, a name, and arrays, tuples and structs of these";
                    self.error(pattern.span(), "this pattern isn't supported in a kernel", help)
                }
            },
        }
    }

    fn all_fit(&mut self, parts: Parts<'_>, bound: &mut Bound) -> Lowered<Fits> {
        let mut fits = Fits::Always;
        for (part, value) in parts {
            let part = self.fits(part, &value, bound)?;
            fits = self.both(fits, part, BinaryOp::And)?;
        }
        Ok(fits)
    }

    fn is_constant(&self, name: &Ident) -> bool {
        let name = name.to_string();
        match self.scopes.find(&name) {
            Some(id) => self.scopes.variables[id].constant,
            None => self.text.helpers.constant(&name).is_some(),
        }
    }

    fn fits_literal(&mut self, literal: &Lit, value: &Val) -> Lowered<Fits> {
        let span = literal.span().into();
        let (Lit::Bool(wanted), Val::Data(condition)) = (literal, value) else {
            let literal = self.literal_expression(literal)?;
            return self.equal(value, &literal, span);
        };
        self.require_elem(*condition, &DType::Bool.into(), "the value of `match`", span)?;
        if wanted.value {
            return Ok(Fits::If(*condition));
        }
        self.negated(*condition, span).map(Fits::If)
    }

    fn equal(&mut self, value: &Val, wanted: &Val, span: Span) -> Lowered<Fits> {
        self.compared(Predicate::Eq, value, wanted, span)
    }

    fn compared(&mut self, predicate: Predicate, value: &Val, bound: &Val, span: Span) -> Lowered<Fits> {
        if let (Some(number), Some(limit)) = (known(value), known(bound)) {
            self.share_with(value, bound, "a pattern", span)?;
            return Ok(Fits::known(predicate.holds(number, limit)));
        }
        let [a, b] = self.pair(value, bound, "a pattern", span, [span, span])?;
        self.emit_one(Op::Compare(predicate), &[a, b], span, &[span, span]).map(Fits::If)
    }

    fn fits_range(&mut self, range: &PatRange, value: &Val) -> Lowered<Fits> {
        let span = range.span();
        let mut fits = Fits::Always;
        if let Some(start) = &range.start {
            let start = self.expression(start)?;
            fits = self.compared(Predicate::Ge, value, &start, span)?;
        }
        if let Some(end) = &range.end {
            let end = self.expression(end)?;
            let closed = matches!(range.limits, RangeLimits::Closed(_));
            let below = if closed { Predicate::Le } else { Predicate::Lt };
            let below = self.compared(below, value, &end, span)?;
            fits = self.both(fits, below, BinaryOp::And)?;
        }
        Ok(fits)
    }
}
