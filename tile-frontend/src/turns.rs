//! Turns of loops on the reference device: what a turn made and nothing keeps is freed before the next.
//!
//! Tiles are `Copy`, so Rust drops none of them. A turn begins with a call that names the variables from around the
//! loop that the loop assigns: a tile that the loop made lives on in one of these, or not at all.

use crate::assigned;
use proc_macro2::Span;
use std::collections::BTreeSet;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Block, Expr, ExprBlock, ExprClosure, FnArg, Ident, ItemFn, Local, PatIdent, Stmt, parse_quote_spanned,
};

/// Adds the beginnings of turns to the loops of a body that sees its function's arguments.
pub(crate) fn mark(function: &mut ItemFn) {
    let mut marks = Marks { visible: vec![Vec::new()] };
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(input) = input {
            marks.visit_pat_mut(&mut input.pat);
        }
    }
    marks.visit_block_mut(&mut function.block);
}

struct Marks {
    /// The names that are bound, by block.
    visible: Vec<Vec<Ident>>,
}

impl Marks {
    fn in_scope(&mut self, visit: impl FnOnce(&mut Self)) {
        self.visible.push(Vec::new());
        visit(self);
        self.visible.pop();
    }

    /// The variables from around a loop that it assigns.
    fn kept(&self, repeated: &Expr) -> Vec<Ident> {
        let mut names: BTreeSet<String> = assigned::by_expression(repeated).names;
        let visible = self.visible.iter().rev().flat_map(|scope| scope.iter().rev());
        // The innermost variable of each name.
        visible.filter(|name| names.remove(&name.to_string())).cloned().collect()
    }

    /// Puts the beginning of a turn before a loop's statements.
    fn begin(body: &mut Block, kept: &[Ident]) -> Ident {
        let span = Span::mixed_site();
        let turns = Ident::new("turns", span);
        let begin: Stmt = parse_quote_spanned!(span=> #turns.begin(&[#((&::tile::kernel::turns::Kept(&#kept)).tiles()),*]););
        body.stmts.insert(0, begin);
        turns
    }
}

impl VisitMut for Marks {
    fn visit_block_mut(&mut self, block: &mut Block) {
        self.in_scope(|marks| visit_mut::visit_block_mut(marks, block));
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        // The value doesn't see the names.
        if let Some(init) = &mut local.init {
            self.visit_expr_mut(&mut init.expr);
        }
        self.visit_pat_mut(&mut local.pat);
    }

    fn visit_pat_ident_mut(&mut self, pattern: &mut PatIdent) {
        if let Some(scope) = self.visible.last_mut() {
            scope.push(pattern.ident.clone());
        }
    }

    /// A closure assigns nothing from around it.
    fn visit_expr_closure_mut(&mut self, closure: &mut ExprClosure) {
        self.in_scope(|marks| visit_mut::visit_expr_closure_mut(marks, closure));
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        let kept = match expression {
            Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) => self.kept(expression),
            _ => Vec::new(),
        };
        self.in_scope(|marks| visit_mut::visit_expr_mut(marks, expression));
        let body = match expression {
            Expr::ForLoop(repeated) => &mut repeated.body,
            Expr::While(repeated) => &mut repeated.body,
            Expr::Loop(repeated) => &mut repeated.body,
            _ => return,
        };
        let turns = Self::begin(body, &kept);
        let span = Span::mixed_site();
        let mut block: Block = parse_quote_spanned!(span=> {
            #[allow(unused_imports)]
            use ::tile::kernel::turns::{HasTiles as _, NoTiles as _};
            let mut #turns = ::tile::kernel::turns::Turns::new();
        });
        let repeated = std::mem::replace(expression, Expr::Verbatim(Default::default()));
        block.stmts.push(Stmt::Expr(repeated, None));
        *expression = Expr::Block(ExprBlock { attrs: Vec::new(), label: None, block });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::ToTokens;
    use syn::parse_quote;

    #[test]
    fn a_turn_keeps_what_the_loop_assigns_of_what_is_around() {
        let mut function: ItemFn = parse_quote! {
            fn f(mut total: Tile<f32, 1>, x: Tile<f32, 1>) {
                let (mut a, b) = (x, x);
                for i in 0..4 {
                    let mut inner = a;
                    inner += b;
                    while inner.max(0).item() < 3.0 {
                        inner = inner + x;
                        total += inner;
                    }
                    a = inner;
                }
            }
        };
        mark(&mut function);
        let text = function.to_token_stream().to_string().replace(' ', "");
        let kept = |name: &str| format!("(&::tile::kernel::turns::Kept(&{name})).tiles()");
        let begins: Vec<&str> =
            text.split("turns.begin(&[").skip(1).filter_map(|rest| rest.split("]);").next()).collect();
        let expected =
            [format!("{},{}", kept("a"), kept("total")), format!("{},{}", kept("inner"), kept("total"))];
        assert_eq!(begins, expected);
    }
}
