//! Atomic operations in functions: the types of what they are given say whether they are of one element, which rustc finds out
//! by `view.either()`.

use crate::rewrite::bare;
use quote::quote_spanned;
use syn::{Expr, ExprMethodCall, Lit, UnOp};
use tile_ir::ops::{AtomicKind, Scope};

/// Makes an atomic operation one of `view.either()`. One with a mask is of tiles.
pub(super) fn of_either(call: &mut ExprMethodCall) {
    let is_scope = |argument: &Expr| match argument {
        Expr::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| Scope::from_rust_name(&last.ident.to_string()).is_some()),
        _ => false,
    };
    let is_known = AtomicKind::from_rust_name(&call.method.to_string()).is_some();
    if !is_known || !call.args.last().is_some_and(is_scope) {
        return;
    }
    let (receiver, span) = (bare(&call.receiver), call.method.span());
    *call.receiver = Expr::Verbatim(quote_spanned!(span=> #receiver.either()));
    match call.args.first_mut() {
        // An array's indices are of one type, which those that aren't written out decide.
        Some(Expr::Array(indices)) if indices.elems.iter().all(|index| is_negative(index).is_some()) => {
            let is_signed = indices.elems.iter().any(|index| is_negative(index) == Some(true));
            let ty = if is_signed { "i64" } else { "usize" };
            indices.elems.iter_mut().for_each(|index| typed(index, [ty; 2]));
        }
        Some(Expr::Tuple(indices)) => {
            indices.elems.iter_mut().for_each(|index| typed(index, ["usize", "i64"]))
        }
        _ => {}
    }
}

/// Whether an integer that is written out has a minus sign; `None` of other indices.
fn is_negative(index: &Expr) -> Option<bool> {
    match index {
        Expr::Lit(_) => Some(false),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => is_negative(&unary.expr).map(|_| true),
        Expr::Paren(inner) => is_negative(&inner.expr),
        _ => None,
    }
}

/// Gives an integer that is written out a type, on which that of the result depends: the second one if it has a minus sign.
fn typed(index: &mut Expr, [natural, signed]: [&str; 2]) {
    match index {
        Expr::Lit(literal) => suffix(&mut literal.lit, natural),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            if let Expr::Lit(literal) = &mut *unary.expr {
                suffix(&mut literal.lit, signed);
            }
        }
        Expr::Paren(inner) => typed(&mut inner.expr, [natural, signed]),
        _ => {}
    }
}

fn suffix(literal: &mut Lit, ty: &str) {
    if let Lit::Int(number) = literal
        && number.suffix().is_empty()
    {
        *literal = Lit::Int(syn::LitInt::new(&format!("{number}{ty}"), number.span()));
    }
}
