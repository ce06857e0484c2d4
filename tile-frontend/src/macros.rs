//! The macros that may stand in a kernel or a function of one: `tile_println!` and `tile_assert!`, which
//! [`messages`] reads, `dbg!` and `matches!`. What else is a macro of the user's, whose tokens nobody knows.

use crate::messages::{self, Call};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::visit_mut::VisitMut;
use syn::{Expr, ExprMatch, Macro, Pat, Token, parse_quote};

/// The expression in `dbg!(expression)`.
pub(crate) fn debugged(called: &Macro) -> Option<Expr> {
    if called.path.is_ident("dbg") { called.parse_body().ok() } else { None }
}

/// `matches!(value, pattern if guard)`.
pub(crate) struct Question {
    value: Expr,
    pattern: Pat,
    guard: Option<Expr>,
}

impl Question {
    /// The `match` that it is.
    pub(crate) fn as_match(&self) -> ExprMatch {
        let Question { value, pattern, guard } = self;
        let guard = guard.iter();
        let mut asked: ExprMatch = parse_quote!(match () { #pattern #(if #guard)* => true, _ => false });
        // The literal of a struct would be read as a path and the arms.
        *asked.expr = value.clone();
        asked
    }
}

impl Parse for Question {
    fn parse(input: ParseStream<'_>) -> syn::Result<Question> {
        let value = input.parse()?;
        input.parse::<Token![,]>()?;
        let pattern = Pat::parse_multi_with_leading_vert(input)?;
        let guard = if input.parse::<Option<Token![if]>>()?.is_some() { Some(input.parse()?) } else { None };
        input.parse::<Option<Token![,]>>()?;
        Ok(Question { value, pattern, guard })
    }
}

/// What `matches!` asks.
pub(crate) fn matched(called: &Macro) -> Option<Question> {
    if called.path.is_ident("matches") { called.parse_body().ok() } else { None }
}

/// The expressions in such a macro, with the names that a text captures.
pub fn expressions(called: &Macro) -> Vec<Expr> {
    match messages::read(called) {
        Some(call) => call.map_or_else(|_| Vec::new(), Call::expressions),
        None => match matched(called) {
            Some(Question { value, guard, .. }) => [value].into_iter().chain(guard).collect(),
            None => debugged(called).into_iter().collect(),
        },
    }
}

/// Changes the expressions in such a macro.
pub(crate) fn rewrite(called: &mut Macro, visitor: &mut impl VisitMut) {
    if let Some(mut value) = debugged(called) {
        visitor.visit_expr_mut(&mut value);
        called.tokens = value.to_token_stream();
    } else if let Some(Question { mut value, pattern, mut guard }) = matched(called) {
        visitor.visit_expr_mut(&mut value);
        guard.iter_mut().for_each(|guard| visitor.visit_expr_mut(guard));
        let guard = guard.iter();
        called.tokens = quote!(#value, #pattern #(if #guard)*);
    } else if let Some(Ok(mut call)) = messages::read(called) {
        call.rewrite(visitor);
        called.tokens = call.tokens();
    }
}
