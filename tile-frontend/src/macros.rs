//! The macros that may stand in a kernel or a function of one: `tile_println!` and `tile_assert!`, which
//! [`messages`] reads, and `dbg!`. What else is a macro of the user's, whose tokens nobody knows.

use crate::messages::{self, Call};
use quote::ToTokens;
use syn::visit_mut::VisitMut;
use syn::{Expr, Macro};

/// The expression in `dbg!(expression)`.
pub(crate) fn debugged(called: &Macro) -> Option<Expr> {
    if called.path.is_ident("dbg") { called.parse_body().ok() } else { None }
}

/// The expressions in such a macro, with the names that a text captures.
pub fn expressions(called: &Macro) -> Vec<Expr> {
    match messages::read(called) {
        Some(call) => call.map_or_else(|_| Vec::new(), Call::expressions),
        None => debugged(called).into_iter().collect(),
    }
}

/// Changes the expressions in such a macro.
pub(crate) fn rewrite(called: &mut Macro, visitor: &mut impl VisitMut) {
    if let Some(mut value) = debugged(called) {
        visitor.visit_expr_mut(&mut value);
        called.tokens = value.to_token_stream();
    } else if let Some(Ok(mut call)) = messages::read(called) {
        call.rewrite(visitor);
        called.tokens = call.tokens();
    }
}
