//! Optional arguments: whether they are given is a `bool` that is known when an instance is made.

use super::{Lowered, Lowering};
use crate::span::Spanned;
use crate::value::Val;
use syn::{Expr, ExprIf, ExprMatch, ExprMethodCall, Pat, parse_quote};
use tile_ir::ops::UnaryOp;
use tile_ir::{Op, ValueId};

/// A pattern of an `Option`.
pub(super) enum OptionPattern<'p> {
    /// `Some(inner)`.
    Some(&'p Pat),
    /// `None`.
    None,
}

impl OptionPattern<'_> {
    pub(super) fn of(pattern: &Pat) -> Option<OptionPattern<'_>> {
        match pattern {
            Pat::TupleStruct(some) if some.path.is_ident("Some") && some.elems.len() == 1 => {
                some.elems.first().map(OptionPattern::Some)
            }
            Pat::Ident(none) if none.ident == "None" && none.subpat.is_none() => Some(OptionPattern::None),
            _ => None,
        }
    }
}

impl Lowering {
    /// `if let pattern = value { … } else { … }`: the `match` that it is.
    pub(super) fn if_let(&mut self, if_else: &ExprIf) -> Option<Lowered<Val>> {
        let Expr::Let(matched) = &*if_else.cond else { return None };
        let then = &if_else.then_branch;
        let otherwise: Expr = match &if_else.else_branch {
            Some((_, otherwise)) => Expr::clone(otherwise),
            None => parse_quote!({}),
        };
        let (pattern, value) = (&matched.pat, &matched.expr);
        let mut desugared: ExprMatch = parse_quote!(match #value { #pattern => #then, _ => #otherwise });
        desugared.match_token.span = if_else.if_token.span;
        Some(self.match_expression(&desugared))
    }

    /// What a method of an optional argument gives.
    pub(super) fn optional_method(&mut self, given: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let name = call.method.to_string();
        if !matches!(name.as_str(), "is_some" | "is_none") {
            let help = "write `if let Some(x) = x { … }`, inside of which it is a tensor";
            return self.no_method("an optional argument", call, help);
        }
        self.arguments(&name, &call.args, 0, &format!("x.{name}()"), call.span())?;
        match name.as_str() {
            "is_some" => Ok(Val::Data(given)),
            _ => self.negated(given, call.span()).map(Val::Data),
        }
    }

    /// The opposite of a `bool`.
    pub(super) fn negated(&mut self, truth: ValueId, span: crate::span::Span) -> Lowered<ValueId> {
        self.emit_one(Op::Unary(UnaryOp::Not), &[truth], span, &[])
    }
}
