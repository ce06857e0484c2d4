//! Blocks, patterns, and what runs how often.

use super::{Computed, Evaluator, Exit, Value, Variable, error};
use crate::constants::in_order;
use crate::macros;
use crate::span::Spanned;
use syn::punctuated::Punctuated;
use syn::{
    Block, Expr, ExprIf, ExprLoop, ExprMatch, ExprRange, ExprWhile, Item, Label, Lifetime, Local, LocalInit,
    Macro, Pat, RangeLimits, Stmt, Token,
};

impl Evaluator<'_> {
    /// A block's value. Nothing after it sees its variables.
    pub(super) fn block(&mut self, block: &Block) -> Computed<Value> {
        let outer = self.variables.len();
        let value = self.statements(&block.stmts);
        self.variables.truncate(outer);
        value
    }

    fn statements(&mut self, statements: &[Stmt]) -> Computed<Value> {
        for item in in_order(statements) {
            let value = self.expression(&item.expr)?;
            let value = self.conform(value, &item.ty, item.expr.span())?;
            self.variables.push(Variable::constant(&item.ident, value));
        }
        let mut last = Value::unit();
        for statement in statements {
            last = match statement {
                Stmt::Expr(expression, None) => self.expression(expression)?,
                Stmt::Expr(expression, Some(_)) => self.expression(expression).map(|_| Value::unit())?,
                Stmt::Local(local) => self.local(local).map(|()| Value::unit())?,
                Stmt::Macro(called) => self.called_macro(&called.mac)?,
                Stmt::Item(Item::Const(_) | Item::Use(_)) => Value::unit(),
                Stmt::Item(item) => {
                    return error(
                        item.span(),
                        "a `const fn` has no such item",
                        "write it beside the function",
                    );
                }
            };
        }
        Ok(last)
    }

    fn local(&mut self, local: &Local) -> Computed<()> {
        let Some(LocalInit { expr, diverge, .. }) = &local.init else {
            return error(local.span(), "a variable of a `const fn` has a value here", "write `let x = …;`");
        };
        if let Some((keyword, _)) = diverge {
            return error(keyword.span, "`let … else` isn't computed in a `const fn`", "write an `if`");
        }
        let value = self.expression(expr)?;
        match &local.pat {
            Pat::Type(typed) => {
                let value = self.conform(value, &typed.ty, expr.span())?;
                self.bind(&typed.pat, value)
            }
            pattern => self.bind(pattern, value),
        }
    }

    /// Makes variables of what a pattern that always matches names.
    pub(super) fn bind(&mut self, pattern: &Pat, value: Value) -> Computed<()> {
        match self.matches(pattern, &value)? {
            true => Ok(()),
            false => error(pattern.span(), "this pattern doesn't match", "write an `if`"),
        }
    }

    /// Whether a pattern matches; if so its names are variables.
    fn matches(&mut self, pattern: &Pat, value: &Value) -> Computed<bool> {
        Ok(match (pattern, value) {
            (Pat::Wild(_), _) => true,
            (Pat::Paren(inner), value) => self.matches(&inner.pat, value)?,
            (Pat::Guard(guarded), value) => {
                self.matches(&guarded.pat, value)? && self.condition(&guarded.guard)?
            }
            (Pat::Reference(inner), value) => self.matches(&inner.pat, value)?,
            (Pat::Ident(name), value) if name.subpat.is_none() => {
                let name = name.ident.to_string();
                let known = self.variables.iter().rev().find(|known| known.name == name);
                let constant = match known.filter(|known| known.is_constant) {
                    Some(known) => Some(known.value.clone()),
                    None => self.constant(&name, pattern.span())?,
                };
                if let Some(constant) = constant {
                    return self.are_equal(value, &constant, pattern.span());
                }
                self.variables.push(Variable { name, value: value.clone(), is_constant: false });
                true
            }
            (Pat::Tuple(parts), Value::List(values)) if parts.elems.len() == values.len() => {
                self.all_match(parts.elems.iter(), values)?
            }
            (Pat::Slice(parts), Value::List(values)) if parts.elems.len() == values.len() => {
                self.all_match(parts.elems.iter(), values)?
            }
            (Pat::Or(cases), value) => {
                for case in &cases.cases {
                    if self.matches(case, value)? {
                        return Ok(true);
                    }
                }
                false
            }
            (Pat::Lit(literal), value) => {
                let literal_value = self.expression(&Expr::Lit(literal.clone()))?;
                self.are_equal(value, &literal_value, literal.span())?
            }
            (Pat::Path(path), value) => {
                let constant = self.expression(&Expr::Path(path.clone()))?;
                self.are_equal(value, &constant, path.span())?
            }
            (Pat::Range(range), value) => self.is_in_range(value, range)?,
            _ => {
                let help = "use numbers, ranges, names, `_`, and tuples and arrays of these";
                return error(pattern.span(), "this pattern isn't computed in a `const fn`", help);
            }
        })
    }

    fn all_match<'p>(&mut self, parts: impl Iterator<Item = &'p Pat>, values: &[Value]) -> Computed<bool> {
        for (part, value) in parts.zip(values) {
            if !self.matches(part, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_in_range(&mut self, value: &Value, range: &ExprRange) -> Computed<bool> {
        let below = match &range.start {
            Some(start) => {
                let least = self.expression(start)?;
                self.is_less(value, &least, start.span())?
            }
            None => false,
        };
        let above = match &range.end {
            Some(end) => {
                let most = self.expression(end)?;
                match range.limits {
                    RangeLimits::HalfOpen(_) => !self.is_less(value, &most, end.span())?,
                    RangeLimits::Closed(_) => self.is_less(&most, value, end.span())?,
                }
            }
            None => false,
        };
        Ok(!below && !above)
    }

    pub(super) fn if_else(&mut self, branch: &ExprIf) -> Computed<Value> {
        match (self.condition(&branch.cond)?, &branch.else_branch) {
            (true, _) => self.block(&branch.then_branch),
            (false, Some((_, otherwise))) => self.expression(otherwise),
            (false, None) => Ok(Value::unit()),
        }
    }

    pub(super) fn condition(&mut self, condition: &Expr) -> Computed<bool> {
        match self.expression(condition)? {
            Value::Bool(holds) => Ok(holds),
            other => error(
                condition.span(),
                format!("a condition is a bool, and this is {}", other.kind()),
                "compare it",
            ),
        }
    }

    pub(super) fn match_arms(&mut self, expression: &ExprMatch) -> Computed<Value> {
        let value = self.expression(&expression.expr)?;
        let outer = self.variables.len();
        for arm in &expression.arms {
            let taken = self.matches(&arm.pat, &value)?;
            if taken {
                let given = self.expression(&arm.body);
                self.variables.truncate(outer);
                return given;
            }
            self.variables.truncate(outer);
        }
        error(expression.expr.span(), "no arm matches", "add `_ => …`")
    }

    pub(super) fn while_loop(&mut self, repeated: &ExprWhile) -> Computed<Value> {
        while self.condition(&repeated.cond)? {
            if self.turn(&repeated.body, repeated.label.as_ref())?.is_some() {
                break;
            }
        }
        Ok(Value::unit())
    }

    pub(super) fn endless_loop(&mut self, endless: &ExprLoop) -> Computed<Value> {
        loop {
            self.step(|| endless.loop_token.span.into())?;
            if let Some(value) = self.turn(&endless.body, endless.label.as_ref())? {
                return Ok(value);
            }
        }
    }

    /// A turn of a loop, and what it leaves the loop with.
    fn turn(&mut self, body: &Block, label: Option<&Label>) -> Computed<Option<Value>> {
        match self.block(body) {
            Ok(_) => Ok(None),
            Err(Exit::Break(to, value)) if is_of(to.as_ref(), label) => Ok(Some(value)),
            Err(Exit::Continue(to)) if is_of(to.as_ref(), label) => Ok(None),
            Err(other) => Err(other),
        }
    }

    pub(super) fn labelled_block(&mut self, label: &Label, block: &Block) -> Computed<Value> {
        match self.block(block) {
            Err(Exit::Break(Some(to), value)) if is_of(Some(&to), Some(label)) => Ok(value),
            other => other,
        }
    }

    /// The value that an exit leaves with.
    pub(super) fn given(&mut self, expression: Option<&Expr>) -> Computed<Value> {
        expression.map_or(Ok(Value::unit()), |expression| self.expression(expression))
    }

    /// `assert!(condition)` and `matches!`.
    pub(super) fn called_macro(&mut self, called: &Macro) -> Computed<Value> {
        if let Some(question) = macros::matched(called) {
            return self.match_arms(&question.as_match());
        }
        let is_assert = called.path.is_ident("assert") || called.path.is_ident("debug_assert");
        let values = Punctuated::<Expr, Token![,]>::parse_terminated;
        let values = called.parse_body_with(values).ok().filter(|_| is_assert);
        match values.as_ref().and_then(Punctuated::first) {
            Some(condition) if self.condition(condition)? => Ok(Value::unit()),
            Some(condition) => error(
                condition.span(),
                "this doesn't hold",
                "the constant that calls the function has no value",
            ),
            None => error(
                called.path.span(),
                "this macro isn't computed in a `const fn`",
                "`assert!` and `matches!` are",
            ),
        }
    }
}

pub(super) fn name_of(label: &Lifetime) -> String {
    label.ident.to_string()
}

/// Whether an exit is one of the loop or block with this label.
fn is_of(to: Option<&String>, label: Option<&Label>) -> bool {
    to.is_none_or(|to| label.is_some_and(|label| name_of(&label.name) == *to))
}
