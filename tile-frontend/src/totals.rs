//! `sum`, `product`, `max` and `min` of iterators: as rustc sees them they are functions of `::tile::kernel::totals`, which
//! know tiles, and whose integers wrap.

use crate::rewrite::{bare, unwrapped};
use quote::{quote, quote_spanned};
use syn::{Expr, ExprMethodCall, GenericArgument, Ident};
use tile_ir::ops::BinaryOp;

/// The op that a method folds an iterator with.
pub(crate) fn op(call: &ExprMethodCall) -> Option<BinaryOp> {
    let op = match call.method.to_string().as_str() {
        "sum" => BinaryOp::Add,
        "product" => BinaryOp::Mul,
        "max" => BinaryOp::Max,
        "min" => BinaryOp::Min,
        _ => return None,
    };
    call.args.is_empty().then_some(op)
}

/// Whether an expression is an iterator by its form: of an array, or a range.
pub(crate) fn is_iterator(expression: &Expr) -> bool {
    match unwrapped(expression) {
        Expr::Range(_) => true,
        Expr::MethodCall(call) => match call.method.to_string().as_str() {
            "iter" | "into_iter" | "enumerate" | "zip" | "rev" | "skip" | "step_by" | "chain" | "copied"
            | "cloned" => true,
            // Arrays have `map`, and tiles `take`.
            "map" | "take" => is_iterator(&call.receiver),
            _ => false,
        },
        _ => false,
    }
}

/// Whether an iterator gives references to what an array holds.
fn gives_references(expression: &Expr) -> bool {
    match unwrapped(expression) {
        Expr::MethodCall(call) => match call.method.to_string().as_str() {
            "iter" => true,
            // Of an array it gives what that holds, of an iterator it is that.
            "into_iter" | "rev" | "skip" | "take" | "step_by" | "chain" => gives_references(&call.receiver),
            _ => false,
        },
        _ => false,
    }
}

/// The type that a call says of its result: `f32` of `sum::<f32>()`.
pub(crate) fn written_type(call: &ExprMethodCall) -> Option<&syn::Type> {
    match call.turbofish.as_ref()?.args.first()? {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    }
}

/// What stands in place of a method of an iterator.
pub(crate) fn as_function(call: &ExprMethodCall) -> Option<Expr> {
    op(call)?;
    if !is_iterator(&call.receiver) {
        return None;
    }
    let iterator = bare(&call.receiver);
    let copied = gives_references(iterator).then(|| quote!(.copied()));
    let (span, written) = (call.method.span(), written_type(call));
    let function = Ident::new(&call.method.to_string(), span);
    let value = quote_spanned!(span=> ::tile::kernel::totals::#function(#iterator #copied));
    Some(Expr::Verbatim(match written {
        Some(ty) => quote_spanned!(span=> { let total: #ty = #value; total }),
        None => value,
    }))
}
