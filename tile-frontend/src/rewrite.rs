//! Makes comparisons of tiles calls: `a < b` of tiles is `::tile::kernel::lt(a, b)` in the body that rustc
//! sees, because Rust's comparison operators can only give one `bool`.

use proc_macro2::LineColumn;
use quote::{ToTokens, quote_spanned};
use std::collections::HashSet;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{BinOp, Block, Expr, Macro};
use tile_ir::ops::Predicate;

/// The place of a comparison: line and column of its operator.
pub(crate) type Place = (usize, usize);

/// The place of an operator that starts here.
pub(crate) fn place(start: LineColumn) -> Place {
    (start.line, start.column)
}

/// The predicate that a Rust operator stands for.
pub(crate) fn predicate(op: &BinOp) -> Option<Predicate> {
    Some(match op {
        BinOp::Eq(_) => Predicate::Eq,
        BinOp::Ne(_) => Predicate::Ne,
        BinOp::Lt(_) => Predicate::Lt,
        BinOp::Le(_) => Predicate::Le,
        BinOp::Gt(_) => Predicate::Gt,
        BinOp::Ge(_) => Predicate::Ge,
        _ => return None,
    })
}

/// Rewrites the comparisons at these places.
pub(crate) fn comparisons(block: &mut Block, places: &HashSet<Place>) {
    Rewrite { places }.visit_block_mut(block);
}

/// The expression in `dbg!(expression)`.
pub(crate) fn debugged(called: &Macro) -> Option<Expr> {
    if called.path.is_ident("dbg") { called.parse_body().ok() } else { None }
}

struct Rewrite<'p> {
    places: &'p HashSet<Place>,
}

impl VisitMut for Rewrite<'_> {
    fn visit_macro_mut(&mut self, called: &mut Macro) {
        if let Some(mut value) = debugged(called) {
            self.visit_expr_mut(&mut value);
            called.tokens = value.to_token_stream();
        }
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        visit_mut::visit_expr_mut(self, expression);
        let Expr::Binary(binary) = expression else { return };
        let Some(predicate) = predicate(&binary.op) else { return };
        let span = binary.op.span();
        if !self.places.contains(&place(span.start())) {
            return;
        }
        let function = syn::Ident::new(predicate.name(), span);
        let (left, right) = (&binary.left, &binary.right);
        *expression = Expr::Verbatim(quote_spanned!(span=> ::tile::kernel::#function(#left, #right)));
    }
}
