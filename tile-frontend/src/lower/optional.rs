//! Optional arguments: whether they are given is a `bool` that is known when an instance is made.

use super::{Lowered, Lowering};
use crate::assigned::Assigned;
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{Expr, ExprBlock, ExprIf, ExprMatch, ExprMethodCall, Pat, parse_quote};
use tile_ir::ops::UnaryOp;
use tile_ir::{Op, Type, ValueId};

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
        let pattern = &matched.pat;
        let mut desugared: ExprMatch = parse_quote!(match () { #pattern => {}, _ => {} });
        desugared.match_token.span = if_else.if_token.span;
        // What is parsed again may have its attributes elsewhere.
        desugared.expr = matched.expr.clone();
        let then = if_else.then_branch.clone();
        *desugared.arms[0].body = Expr::Block(ExprBlock { attrs: Vec::new(), label: None, block: then });
        if let Some((_, otherwise)) = &if_else.else_branch {
            desugared.arms[1].body = otherwise.clone();
        }
        Some(self.match_expression(&desugared))
    }

    /// An optional argument where it is given.
    pub(super) fn given(&self, argument: ValueId) -> Val {
        match self.kernel.ty(argument) {
            Type::Tensor(_) => Val::Tensor(argument),
            _ => Val::Data(argument),
        }
    }

    /// What a method of an optional argument gives.
    pub(super) fn optional_method(
        &mut self,
        argument: ValueId,
        given: ValueId,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let name = call.method.to_string();
        let is_tensor = matches!(self.given(argument), Val::Tensor(_));
        match name.as_str() {
            "is_some" | "is_none" => {
                self.arguments(&name, &call.args, 0, &format!("x.{name}()"), call.span())?;
                match name.as_str() {
                    "is_some" => Ok(Val::Data(given)),
                    _ => self.negated(given, call.span()).map(Val::Data),
                }
            }
            "unwrap_or" if !is_tensor => {
                let (Some(otherwise), 1) = (call.args.first(), call.args.len()) else {
                    let message = format!("`unwrap_or` takes 1 argument, not {}", call.args.len());
                    return self.error(call.span(), message, "write `x.unwrap_or(1.0)`");
                };
                self.given_or(argument, given, otherwise, call.span())
            }
            _ if is_tensor => {
                let help = "write `if let Some(x) = x { … }`, inside of which it is a tensor";
                self.no_method("an optional argument", call, help)
            }
            _ => {
                let help =
                    "write `x.unwrap_or(1.0)`, or `if let Some(x) = x { … }`, inside of which it is a number";
                self.no_method("an optional argument", call, help)
            }
        }
    }

    /// An optional number, or what stands in its place, which Rust computes in either case.
    fn given_or(&mut self, argument: ValueId, given: ValueId, otherwise: &Expr, span: Span) -> Lowered<Val> {
        let (elem, place) = (self.elem(argument), otherwise.span());
        let otherwise = self.expression(otherwise)?;
        let otherwise = self.number(&otherwise, &elem, "what stands in its place", place)?;
        self.choose(
            "unwrap_or",
            given,
            &Assigned::default(),
            span,
            &mut |_| Ok(Val::Data(argument)),
            &mut |_| Ok(Val::Data(otherwise)),
        )
    }

    /// The opposite of a `bool`.
    pub(super) fn negated(&mut self, truth: ValueId, span: Span) -> Lowered<ValueId> {
        self.emit_one(Op::Unary(UnaryOp::Not), &[truth], span, &[])
    }
}
