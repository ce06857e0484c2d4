//! `for` and `if`. Variables that a body assigns to become carried values of the loop, or results of the
//! branch, so that the IR has no variables.

use super::{Lowered, Lowering, Reported};
use crate::assigned;
use crate::diagnostic::Diagnostic;
use crate::scope::{Variable, VariableId};
use crate::span::{Span, Spanned};
use crate::value::Val;
use std::collections::BTreeSet;
use syn::{Expr, ExprForLoop, ExprIf, Pat, RangeLimits};
use tile_ir::{DType, Dim, Op, RegionId, Type, ValueId};

/// A variable as the SSA values that it holds: one, or several of a tuple.
struct Carried {
    variable: VariableId,
    values: Vec<ValueId>,
}

impl Lowering {
    pub(super) fn for_loop(&mut self, for_loop: &ExprForLoop) -> Lowered<Val> {
        let span = for_loop.for_token.span();
        let (start, end) = self.range(&for_loop.expr)?;
        let counter_name = match &*for_loop.pat {
            Pat::Ident(ident) => Some(ident.ident.clone()),
            Pat::Wild(_) => None,
            other => {
                return self.error(other.span(), "a loop counter is a plain name", "write `for p in a..b`");
            }
        };
        let names = assigned::names(&Expr::Block(syn::ExprBlock {
            attrs: Vec::new(),
            label: None,
            block: for_loop.body.clone(),
        }));
        let carried = self.carried(names, span)?;
        let region = self.kernel.new_region();
        let counter = self.kernel.new_value(Type::INDEX, None);
        let mut params = vec![counter];
        for Carried { variable, values } in &carried {
            let fresh: Vec<ValueId> = values.iter().map(|&value| self.fresh_like(value)).collect();
            params.extend(&fresh);
            self.set_parts(*variable, &fresh, true);
        }
        self.kernel.region_mut(region).params = params.clone();
        let outer = std::mem::replace(&mut self.region, region);
        self.scopes.enter();
        if let Some(name) = counter_name {
            self.define(&name, false, Val::Data(counter));
        }
        let result = self.block(&for_loop.body);
        self.scopes.leave();
        let yielded = result.and_then(|_| self.parts_of(&carried, span));
        self.region = outer;
        let yielded = yielded?;
        self.check_carried(&carried, &params[1..], &yielded, span)?;
        self.end_region(region, &yielded, span);
        let initial: Vec<ValueId> = carried.iter().flat_map(|carried| carried.values.clone()).collect();
        let operands = [vec![start, end], initial.clone()].concat();
        let types: Vec<Type> = initial.iter().map(|&value| self.kernel.ty(value).clone()).collect();
        let results = self.append(Op::For, &operands, &types, vec![region], span);
        self.take_results(&carried, &results);
        Ok(Val::Unit)
    }

    fn range(&mut self, expression: &Expr) -> Lowered<(ValueId, ValueId)> {
        let range = match expression {
            Expr::Range(range) => range,
            Expr::Paren(inner) => return self.range(&inner.expr),
            other => {
                let help =
                    "write `for p in a..b`; other iterators, `.rev()` and `.step_by()` have no meaning here";
                return self.error(other.span(), "a kernel's `for` runs over a range", help);
            }
        };
        let (Some(start), Some(end)) = (&range.start, &range.end) else {
            return self.error(range.span(), "the range needs both ends", "write `a..b`");
        };
        let (start_value, end_value) = (self.expression(start)?, self.expression(end)?);
        let end_value = match (&range.limits, end_value) {
            (RangeLimits::HalfOpen(_), value) => value,
            (RangeLimits::Closed(_), Val::Int(value)) => Val::Int(value + 1),
            (RangeLimits::Closed(_), Val::Dim(dim)) => Val::Dim(dim + Dim::from(1)),
            (RangeLimits::Closed(limit), _) => {
                return self.error(limit.span(), "`..=` needs an end that is known", "write `a..b + 1`");
            }
        };
        let index = DType::Index.into();
        let start = self.number(&start_value, &index, "a loop bound", start.span())?;
        let end = self.number(&end_value, &index, "a loop bound", end.span())?;
        Ok((start, end))
    }

    /// The assigned variables that exist outside, as SSA values. What isn't data can't be carried.
    fn carried(&mut self, names: BTreeSet<String>, span: Span) -> Lowered<Vec<Carried>> {
        let mut carried = Vec::new();
        for variable in self.scopes.visible(names) {
            let Variable { value, mutable, name, .. } = self.scopes.variables[variable].clone();
            if !mutable || matches!(value, Val::Poison) {
                continue;
            }
            let mut values = Vec::new();
            let fixed = self.flatten(&value, &name, span, &mut values)?;
            self.scopes.variables[variable].value = fixed;
            carried.push(Carried { variable, values });
        }
        Ok(carried)
    }

    /// Turns literals and extents inside a value into SSA values, and lists them.
    fn flatten(&mut self, value: &Val, name: &str, span: Span, values: &mut Vec<ValueId>) -> Lowered<Val> {
        match value {
            Val::List(parts) => parts
                .iter()
                .map(|part| self.flatten(part, name, span, values))
                .collect::<Lowered<_>>()
                .map(Val::List),
            value => {
                let id =
                    self.data(value, &format!("`{name}`, which is assigned in a loop or branch,"), span)?;
                values.push(id);
                Ok(Val::Data(id))
            }
        }
    }

    fn fresh_like(&mut self, value: ValueId) -> ValueId {
        let ty = self.kernel.ty(value).clone();
        self.kernel.new_value(ty, None)
    }

    /// Puts SSA values into a variable, keeping the structure of tuples.
    fn set_parts(&mut self, variable: VariableId, parts: &[ValueId], name_them: bool) {
        let Variable { name, value, .. } = self.scopes.variables[variable].clone();
        if name_them {
            parts.iter().for_each(|&part| self.kernel.name_value(part, &name));
        }
        let mut parts = parts.iter().copied();
        self.scopes.variables[variable].value = replaced(&value, &mut parts);
    }

    /// The present SSA values of carried variables, in order.
    fn parts_of(&mut self, carried: &[Carried], span: Span) -> Lowered<Vec<ValueId>> {
        let mut values = Vec::new();
        for &Carried { variable, .. } in carried {
            let Variable { value, name, .. } = self.scopes.variables[variable].clone();
            if matches!(value, Val::Poison) {
                return Err(Reported);
            }
            self.flatten(&value, &name, span, &mut values)?;
        }
        Ok(values)
    }

    /// What a loop yields must have the types that it carries. Shapes were checked at each assignment.
    fn check_carried(
        &mut self,
        carried: &[Carried],
        params: &[ValueId],
        yielded: &[ValueId],
        span: Span,
    ) -> Lowered<()> {
        let names: Vec<String> = carried
            .iter()
            .flat_map(|c| vec![self.scopes.variables[c.variable].name.clone(); c.values.len()])
            .collect();
        for ((&param, &next), name) in params.iter().zip(yielded).zip(&names) {
            self.unify(param, next, &format!("carrying `{name}` around the loop"), span)?;
            if self.shape(param) != self.shape(next) {
                let message = format!(
                    "`{name}` changes from {} to {} in the loop",
                    self.display_type(param),
                    self.display_type(next)
                );
                return self.report(Diagnostic::new(span, message).help("a variable keeps its shape"));
            }
        }
        Ok(())
    }

    fn end_region(&mut self, region: RegionId, yielded: &[ValueId], span: Span) {
        let outer = std::mem::replace(&mut self.region, region);
        self.append(Op::Yield, yielded, &[], Vec::new(), span);
        self.region = outer;
    }

    fn take_results(&mut self, carried: &[Carried], results: &[ValueId]) {
        let mut rest = results;
        for Carried { variable, values } in carried {
            let (own, others) = rest.split_at(values.len());
            rest = others;
            self.set_parts(*variable, own, true);
        }
    }

    pub(super) fn if_else(&mut self, if_else: &ExprIf) -> Lowered<Val> {
        let span = if_else.if_token.span();
        let condition = self.condition(&if_else.cond)?;
        let names = assigned::names(&Expr::If(if_else.clone()));
        let carried = self.carried(names, span)?;
        let before: Vec<Val> =
            carried.iter().map(|carried| self.scopes.variables[carried.variable].value.clone()).collect();

        let then = self.branch(&carried, span, |lowering| lowering.block(&if_else.then_branch));
        for (carried, value) in carried.iter().zip(before) {
            self.scopes.variables[carried.variable].value = value;
        }
        let otherwise = self.branch(&carried, span, |lowering| match &if_else.else_branch {
            Some((_, expression)) => lowering.expression(expression),
            None => Ok(Val::Unit),
        });
        let (mut then, mut otherwise) = (then?, otherwise?);
        let value = self.join_values(&mut then, &mut otherwise, span)?;
        self.check_branches(&then.yielded, &otherwise.yielded, span)?;
        let results = self.chosen(condition, &then, &otherwise, span)?;
        self.take_results(&carried, &results);
        let count = results.len();
        Ok(match value {
            Joined::Unit => Val::Unit,
            Joined::Parts { structure, parts } => {
                replaced(&structure, &mut results[count - parts..].iter().copied())
            }
        })
    }

    /// What the branch that is taken yields. In the closure of a fold both have been computed.
    fn chosen(
        &mut self,
        condition: ValueId,
        then: &Branch,
        otherwise: &Branch,
        span: Span,
    ) -> Lowered<Vec<ValueId>> {
        if self.closure.is_some() {
            let pairs = then.yielded.iter().zip(&otherwise.yielded);
            return pairs.map(|(&a, &b)| self.emit_one(Op::Select, &[condition, a, b], span, &[])).collect();
        }
        for branch in [then, otherwise] {
            self.end_region(branch.region, &branch.yielded, span);
        }
        let types: Vec<Type> = then.yielded.iter().map(|&value| self.kernel.ty(value).clone()).collect();
        Ok(self.append(Op::If, &[condition], &types, vec![then.region, otherwise.region], span))
    }

    fn condition(&mut self, expression: &Expr) -> Lowered<ValueId> {
        let value = self.expression(expression)?;
        let value = self.data(&value, "the condition", expression.span())?;
        if self.shape(value).is_some() {
            let help = "use `select(condition, a, b)`, which chooses element by element";
            return self.error(expression.span(), "the condition of `if` is a tile, not one bool", help);
        }
        self.require_elem(value, &DType::Bool.into(), "the condition", expression.span())?;
        Ok(value)
    }

    fn branch(
        &mut self,
        carried: &[Carried],
        span: Span,
        body: impl FnOnce(&mut Self) -> Lowered<Val>,
    ) -> Lowered<Branch> {
        let region = if self.closure.is_some() { self.region } else { self.kernel.new_region() };
        let outer = std::mem::replace(&mut self.region, region);
        self.scopes.enter();
        let value = body(self);
        self.scopes.leave();
        let branch =
            value.and_then(|value| Ok(Branch { region, yielded: self.parts_of(carried, span)?, value }));
        self.region = outer;
        branch
    }

    /// Appends the branches' own values, for `let x = if … {a} else {b};`.
    fn join_values(&mut self, then: &mut Branch, otherwise: &mut Branch, span: Span) -> Lowered<Joined> {
        match (&then.value, &otherwise.value) {
            (Val::Unit, Val::Unit) => return Ok(Joined::Unit),
            (Val::Unit, _) | (_, Val::Unit) => {
                return self.error(
                    span,
                    "the branches of `if` give different kinds of values",
                    "end both with a value, or both with `;`",
                );
            }
            _ => {}
        }
        let mut counts = [0; 2];
        let mut structure = Val::Unit;
        for (branch, count) in [&mut *then, &mut *otherwise].into_iter().zip(&mut counts) {
            let outer = std::mem::replace(&mut self.region, branch.region);
            let mut parts = Vec::new();
            let flattened = self.flatten(&branch.value.clone(), "the value of `if`", span, &mut parts);
            self.region = outer;
            structure = flattened?;
            *count = parts.len();
            branch.yielded.extend(parts);
        }
        if counts[0] != counts[1] {
            return self.error(
                span,
                "the branches of `if` give different numbers of values",
                "give the same in both",
            );
        }
        Ok(Joined::Parts { structure, parts: counts[0] })
    }

    fn check_branches(&mut self, then: &[ValueId], otherwise: &[ValueId], span: Span) -> Lowered<()> {
        for (&a, &b) in then.iter().zip(otherwise) {
            self.unify(a, b, "`if`", span)?;
            if self.shape(a) != self.shape(b) {
                let message = format!(
                    "the branches of `if` give {} and {}",
                    self.display_type(a),
                    self.display_type(b)
                );
                return self.report(Diagnostic::new(span, message).help("both branches must give one shape"));
            }
        }
        Ok(())
    }
}

/// A lowered branch of an `if`.
struct Branch {
    region: RegionId,
    yielded: Vec<ValueId>,
    value: Val,
}

/// The value of a whole `if`.
enum Joined {
    Unit,
    Parts { structure: Val, parts: usize },
}

/// A value with its SSA values replaced in order.
fn replaced(value: &Val, parts: &mut dyn Iterator<Item = ValueId>) -> Val {
    match value {
        Val::List(values) => Val::List(values.iter().map(|value| replaced(value, parts)).collect()),
        _ => parts.next().map_or(Val::Poison, Val::Data),
    }
}
