//! `if`, and the joining of what two branches leave behind.

use super::carried::replaced;
use crate::assigned::{self, Assigned};
use crate::diagnostic::Diagnostic;
use crate::lower::ops::operators::has_one_element;
use crate::lower::{Lowered, Lowering, rust_elem};
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{BinOp, Expr, ExprBinary, ExprIf, Stmt};
use tile_ir::ops::Literal;
use tile_ir::{DType, Op, RegionId, Type, ValueId};

/// A lowered branch: what its region yields.
struct Branch {
    region: RegionId,
    yielded: Vec<ValueId>,
}

/// `if a && let p = v { … } else { … }` as an `if` for each condition inside of that for the one before, all with the
/// same `else`. Without a `let`, or with that alone, it stays as it is.
fn nested(if_else: &ExprIf) -> Option<ExprIf> {
    let mut conditions = Vec::new();
    all_of(&if_else.cond, &mut conditions);
    let has_let = conditions.iter().any(|condition| matches!(condition, Expr::Let(_)));
    if !has_let || conditions.len() == 1 {
        return None;
    }
    conditions.into_iter().rev().fold(None, |inner: Option<ExprIf>, condition| {
        let mut outer = ExprIf { cond: Box::new(condition.clone()), ..if_else.clone() };
        if let Some(inner) = inner {
            outer.then_branch.stmts = vec![Stmt::Expr(Expr::If(inner), None)];
        }
        Some(outer)
    })
}

/// The conditions that `&&` joins.
fn all_of<'e>(condition: &'e Expr, conditions: &mut Vec<&'e Expr>) {
    match condition {
        Expr::Binary(ExprBinary { left, op: BinOp::And(_), right, .. }) => {
            all_of(left, conditions);
            all_of(right, conditions);
        }
        condition => conditions.push(condition),
    }
}

impl Lowering {
    pub(in crate::lower) fn if_else(&mut self, if_else: &ExprIf) -> Lowered<Val> {
        if let Some(nested) = nested(if_else) {
            return self.if_else(&nested);
        }
        if let Some(value) = self.if_let(if_else) {
            return value;
        }
        let span = if_else.if_token.span();
        let condition = self.condition(&if_else.cond, "if")?;
        let assigned = assigned::by_expression(&Expr::If(if_else.clone()));
        self.nesting += 1;
        let value = self.choose(
            "if",
            condition,
            &assigned,
            span,
            &mut |lowering| lowering.block(&if_else.then_branch),
            &mut |lowering| match &if_else.else_branch {
                Some((_, expression)) => lowering.expression(expression),
                None => Ok(Val::Unit),
            },
        );
        self.nesting -= 1;
        value
    }

    /// A scalar condition of `if` or `while`.
    pub(in crate::lower) fn condition(&mut self, expression: &Expr, keyword: &str) -> Lowered<ValueId> {
        if let Expr::Let(matched) = expression {
            let help = "use a plain condition, `matches!(x, 1..=9)` of a number; optional arguments are taken apart by `if let`";
            return self.error(matched.span(), format!("`{keyword} let` isn't supported in a kernel"), help);
        }
        let value = self.expression(expression)?;
        let value = self.data(&value, "the condition", expression.span())?;
        if let Some(shape) = self.shape(value) {
            let message = format!("the condition of `{keyword}` is a tile, not one bool");
            let help = if has_one_element(&shape) {
                "it has one element, of which `.item()` makes a scalar: `(x > 0.0).any(0).item()`"
            } else if keyword == "while" {
                "reduce it to one element and take that: `while (x > 0.0).any(0).item() { … }`"
            } else {
                "use `select(condition, a, b)`, which chooses element by element"
            };
            return self.error(expression.span(), message, help);
        }
        let elem = self.elem(value);
        if elem.known() != Some(DType::Bool) {
            // A format that is still open is that of a number literal.
            let message = format!("the condition of `{keyword}` is {}, not a bool", rust_elem(&elem));
            return self.error(expression.span(), message, "compare it, as in `k != 0`");
        }
        Ok(value)
    }

    /// `if condition { then } else { otherwise }`, which assigns at most to `assigned`. Where the condition is known, it is the
    /// side that is taken: what stands in the other may be wrong for this turn of an unrolled loop, `parts[i - 1]` where `i` is 0.
    pub(in crate::lower) fn choose<'b>(
        &mut self,
        keyword: &str,
        condition: ValueId,
        assigned: &Assigned,
        span: Span,
        then: &'b mut dyn FnMut(&mut Self) -> Lowered<Val>,
        otherwise: &'b mut dyn FnMut(&mut Self) -> Lowered<Val>,
    ) -> Lowered<Val> {
        match self.decided(condition) {
            Some(true) => return self.side_taken(then, otherwise),
            Some(false) => return self.side_taken(otherwise, then),
            None => {}
        }
        let carried = self.carried(assigned, span)?;
        let before: Vec<Val> = carried.iter().map(|&id| self.scopes.variables[id].value.clone()).collect();
        let (mut sides, mut branches) = (Vec::new(), Vec::new());
        for body in [then, otherwise] {
            for (&id, value) in carried.iter().zip(&before) {
                self.scopes.variables[id].value = value.clone();
            }
            let (region, value) = self.in_region(body);
            let after: Vec<Val> = carried.iter().map(|&id| self.scopes.variables[id].value.clone()).collect();
            sides.push(value.map(|value| (value, after)));
            branches.push(Branch { region, yielded: Vec::new() });
        }
        let [then, otherwise] = <[_; 2]>::try_from(sides).expect("two branches were lowered");
        let ((then, then_after), (otherwise, otherwise_after)) = (then?, otherwise?);
        let mut joined = Vec::new();
        for ((a, b), before) in then_after.iter().zip(&otherwise_after).zip(&before) {
            let unchanged = same(a, before) && same(b, before);
            joined.push(if unchanged {
                None
            } else {
                Some(self.join([a, b], &mut branches, keyword, span)?)
            });
        }
        let value = self.join([&then, &otherwise], &mut branches, keyword, span)?;
        self.check_branches(&branches, keyword, span)?;
        let results = self.append_if(condition, &branches, span)?;
        let mut results = results.into_iter();
        for ((&id, joined), before) in carried.iter().zip(&joined).zip(before) {
            match joined {
                Some(joined) => self.set_value(id, joined, &mut results),
                None => self.scopes.variables[id].value = before,
            }
        }
        Ok(replaced(&value, &mut results))
    }

    /// Whether a condition holds, where that is known and the other side is looked at all the same: too deep in what isn't
    /// reached it wouldn't be.
    pub(super) fn decided(&self, condition: ValueId) -> Option<bool> {
        self.known_truth(condition).filter(|_| self.looks_within())
    }

    /// The side of a branch that is taken. To rustc both are of one type, which may be decided by the other.
    pub(super) fn side_taken(
        &mut self,
        taken: &mut dyn FnMut(&mut Self) -> Lowered<Val>,
        other: &mut dyn FnMut(&mut Self) -> Lowered<Val>,
    ) -> Lowered<Val> {
        let in_scope = |lowering: &mut Self, side: &mut dyn FnMut(&mut Self) -> Lowered<Val>| {
            lowering.scopes.enter();
            let value = side(lowering);
            lowering.scopes.leave();
            value
        };
        let other = self.not_taken(|lowering| in_scope(lowering, other));
        let value = in_scope(self, taken)?;
        Ok(self.of_type_with(value, other))
    }

    /// Lowers into a region of its own; in the closure of a fold both branches are computed where they stand.
    fn in_region(&mut self, body: &mut dyn FnMut(&mut Self) -> Lowered<Val>) -> (RegionId, Lowered<Val>) {
        let region = if self.closure.is_some() { self.region } else { self.kernel.new_region() };
        let outer = std::mem::replace(&mut self.region, region);
        self.scopes.enter();
        let value = body(self);
        self.scopes.leave();
        self.region = outer;
        (region, value)
    }

    /// What the branch that is taken yields.
    fn append_if(&mut self, condition: ValueId, branches: &[Branch], span: Span) -> Lowered<Vec<ValueId>> {
        if self.closure.is_some() {
            let pairs = branches[0].yielded.iter().zip(&branches[1].yielded);
            return pairs.map(|(&a, &b)| self.emit_one(Op::Select, &[condition, a, b], span, &[])).collect();
        }
        for branch in branches {
            self.end_region(branch.region, &branch.yielded, span);
        }
        let types: Vec<Type> =
            branches[0].yielded.iter().map(|&value| self.kernel.ty(value).clone()).collect();
        let regions = branches.iter().map(|branch| branch.region).collect();
        Ok(self.append(Op::If, &[condition], &types, regions, span))
    }

    /// Yields both branches' versions of a value; gives its structure, whose scalars and tiles the results of
    /// the branch replace. Where one branch leaves, nothing sees its version, so it yields zeros.
    fn join(&mut self, sides: [&Val; 2], branches: &mut [Branch], keyword: &str, span: Span) -> Lowered<Val> {
        match sides {
            [Val::Unit, Val::Unit] => Ok(Val::Unit),
            [Val::Unset, Val::Unset] => Ok(Val::Unset),
            [Val::Never, Val::Never] => Ok(Val::Never),
            [Val::Never | Val::Unset, value] => self.join_with_zeros(value, branches, [1, 0], span),
            [value, Val::Never | Val::Unset] => self.join_with_zeros(value, branches, [0, 1], span),
            [Val::Unit, _] | [_, Val::Unit] => {
                let message = format!("the branches of `{keyword}` give different kinds of values");
                self.error(span, message, "end both with a value, or both with `;`")
            }
            [Val::List(a), Val::List(b)] if a.len() == b.len() => {
                let parts = a.iter().zip(b).map(|(a, b)| self.join([a, b], branches, keyword, span));
                parts.collect::<Lowered<_>>().map(Val::List)
            }
            [Val::Record(name, a), Val::Record(_, b)] if a.keys().eq(b.keys()) => {
                let parts = a
                    .iter()
                    .zip(b.values())
                    .map(|((field, a), b)| Ok((field.clone(), self.join([a, b], branches, keyword, span)?)));
                parts.collect::<Lowered<_>>().map(|fields| Val::Record(name.clone(), fields))
            }
            [Val::List(_) | Val::Record(..), _] | [_, Val::List(_) | Val::Record(..)] => {
                let message = format!("the branches of `{keyword}` give different numbers of values");
                self.error(span, message, "give the same in both")
            }
            sides => {
                let mut last = None;
                for (value, branch) in sides.into_iter().zip(branches) {
                    last = Some(self.yield_from(value, branch, keyword, span)?);
                }
                Ok(last.expect("there are two branches"))
            }
        }
    }

    fn yield_from(&mut self, value: &Val, branch: &mut Branch, keyword: &str, span: Span) -> Lowered<Val> {
        let outer = std::mem::replace(&mut self.region, branch.region);
        let flattened = self.flatten(value, &format!("the value of `{keyword}`"), span, &mut branch.yielded);
        self.region = outer;
        flattened
    }

    fn join_with_zeros(
        &mut self,
        value: &Val,
        branches: &mut [Branch],
        [has, leaves]: [usize; 2],
        span: Span,
    ) -> Lowered<Val> {
        if matches!(value, Val::Unit) {
            return Ok(Val::Unit);
        }
        let from = branches[has].yielded.len();
        let structure = self.yield_from(value, &mut branches[has], "if", span)?;
        let outer = std::mem::replace(&mut self.region, branches[leaves].region);
        let parts = branches[has].yielded[from..].iter();
        let zeros: Vec<ValueId> = parts.map(|&part| self.zeros_like(part, span)).collect();
        branches[leaves].yielded.extend(zeros);
        self.region = outer;
        Ok(structure)
    }

    /// Zeros of a value's type.
    pub(in crate::lower) fn zeros_like(&mut self, value: ValueId, span: Span) -> ValueId {
        let elem = self.elem(value);
        let is_float = elem.known().is_some_and(DType::is_float);
        let zero = if is_float { Literal::Float(0.0) } else { Literal::Int(0) };
        let op = Op::Constant { value: zero, elem: elem.clone() };
        let scalar = self.append(op, &[], &[Type::Scalar(elem)], Vec::new(), span)[0];
        match self.shape(value) {
            Some(shape) => self.splat(scalar, shape, span),
            None => scalar,
        }
    }

    fn check_branches(&mut self, branches: &[Branch], keyword: &str, span: Span) -> Lowered<()> {
        let pairs: Vec<(ValueId, ValueId)> =
            branches[0].yielded.iter().copied().zip(branches[1].yielded.iter().copied()).collect();
        for (a, b) in pairs {
            self.unify(a, b, &format!("`{keyword}`"), span)?;
            if self.shape(a) != self.shape(b) {
                let message = format!(
                    "the branches of `{keyword}` give {} and {}",
                    self.display_type(a),
                    self.display_type(b)
                );
                let help =
                    "both branches must give one shape: `.broadcast([BM, BN])` repeats axes of extent 1";
                return self.report(Diagnostic::new(span, message).help(help));
            }
        }
        Ok(())
    }
}

/// Whether two values are the very same SSA values.
pub(super) fn same(a: &Val, b: &Val) -> bool {
    match (a, b) {
        (Val::Data(a), Val::Data(b)) => a == b,
        (Val::List(a), Val::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Val::Record(_, a), Val::Record(_, b)) => {
            a.keys().eq(b.keys()) && a.values().zip(b.values()).all(|(a, b)| same(a, b))
        }
        (Val::Unset, Val::Unset) => true,
        _ => false,
    }
}
