//! Turns of loops on the reference device: what a turn made and nothing keeps is freed before the next.
//!
//! Tiles are `Copy`, so Rust drops none of them. A turn begins with a call that names the variables from around the
//! loop that the loop assigns: a tile that the loop made lives on in one of these, or not at all. A loop that assigns
//! a variable whose `let` gave it no value frees nothing, since the variable may not be read yet.
//!
//! What a loop runs over is made before its first turn, as in the lowered kernel. Rust's `map` would make each value at the
//! end of the turn before it, which the next one frees.

use crate::assigned;
use crate::lower::{is_counted, tiles_persistent};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use std::collections::BTreeSet;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Arm, BinOp, Block, Expr, ExprBinary, ExprBlock, ExprClosure, ExprConst, ExprForLoop, ExprIf, FnArg,
    Ident, ItemConst, ItemFn, Local, PatIdent, ReceiverKind, Stmt, parse_quote_spanned,
};

/// Adds the beginnings of turns to the loops of a body that sees its function's arguments.
pub(crate) fn mark(function: &mut ItemFn) {
    let mut marks = Marks { visible: vec![Vec::new()] };
    for input in &mut function.sig.inputs {
        match input {
            FnArg::Typed(input) => marks.visit_pat_mut(&mut input.pat),
            FnArg::Receiver(receiver) => {
                let name = Ident::new("self", receiver.self_token.span);
                let is_reference = matches!(receiver.kind, ReceiverKind::Reference(..));
                marks.visible[0].push(Bound { name, has_value: true, is_reference });
            }
        }
    }
    marks.visit_block_mut(&mut function.block);
}

struct Marks {
    /// The names that are bound, by scope.
    visible: Vec<Vec<Bound>>,
}

/// A name, and whether it has a value from the beginning.
struct Bound {
    name: Ident,
    has_value: bool,
    /// Whether it is a reference to the value: `&mut self`.
    is_reference: bool,
}

impl Marks {
    fn in_scope(&mut self, visit: impl FnOnce(&mut Self)) {
        self.visible.push(Vec::new());
        visit(self);
        self.visible.pop();
    }

    /// The variables from around a loop that it assigns, if each has a value when the loop begins.
    fn kept(&self, repeated: &Expr) -> Option<Vec<TokenStream>> {
        let mut names: BTreeSet<String> = assigned::by_expression(repeated).names;
        let visible = self.visible.iter().rev().flat_map(|scope| scope.iter().rev());
        // The innermost variable of each name.
        let kept = visible.filter(|bound| names.remove(&bound.name.to_string()));
        kept.map(|Bound { name, has_value, is_reference }| {
            has_value.then(|| if *is_reference { quote!(*#name) } else { quote!(#name) })
        })
        .collect()
    }

    /// What `if` asks, in the scope of its block, which sees the names that `let` binds there.
    fn visit_condition(&mut self, condition: &mut Expr) {
        match condition {
            Expr::Let(matched) => {
                self.visit_expr_mut(&mut matched.expr);
                self.visit_pat_mut(&mut matched.pat);
            }
            Expr::Binary(ExprBinary { left, op: BinOp::And(_), right, .. }) => {
                self.visit_condition(left);
                self.visit_condition(right);
            }
            condition => self.visit_expr_mut(condition),
        }
    }

    /// Puts the beginning of a turn before a loop's statements.
    fn begin(body: &mut Block, kept: &[TokenStream]) -> Ident {
        let span = Span::mixed_site();
        let turns = Ident::new("turns", span);
        let begin: Stmt = parse_quote_spanned!(span=> #turns.begin(&[#((&::tile::kernel::turns::Kept(&#kept)).tiles()),*]););
        body.stmts.insert(0, begin);
        turns
    }
}

/// Whether a loop runs over values, which may be made when they are asked for, by an iterator that has a name, too. Numbers that
/// are counted aren't, and the tiles of a block are one after the other the block's.
fn runs_over_values(values: &Expr) -> bool {
    tiles_persistent(values).is_none() && !is_counted(values)
}

impl VisitMut for Marks {
    /// A constant has no tiles, and Rust computes it before there are turns.
    fn visit_item_const_mut(&mut self, _: &mut ItemConst) {}

    fn visit_expr_const_mut(&mut self, _: &mut ExprConst) {}

    fn visit_block_mut(&mut self, block: &mut Block) {
        self.in_scope(|marks| visit_mut::visit_block_mut(marks, block));
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        // The value doesn't see the names.
        if let Some(init) = &mut local.init {
            self.visit_expr_mut(&mut init.expr);
        }
        let bound = self.visible.last().map_or(0, Vec::len);
        self.visit_pat_mut(&mut local.pat);
        if let (None, Some(scope)) = (&local.init, self.visible.last_mut()) {
            scope.iter_mut().skip(bound).for_each(|name| name.has_value = false);
        }
    }

    fn visit_arm_mut(&mut self, arm: &mut Arm) {
        self.in_scope(|marks| visit_mut::visit_arm_mut(marks, arm));
    }

    fn visit_expr_if_mut(&mut self, branch: &mut ExprIf) {
        self.in_scope(|marks| {
            marks.visit_condition(&mut branch.cond);
            marks.visit_block_mut(&mut branch.then_branch);
        });
        if let Some((_, otherwise)) = &mut branch.else_branch {
            self.visit_expr_mut(otherwise);
        }
    }

    fn visit_expr_for_loop_mut(&mut self, repeated: &mut ExprForLoop) {
        self.visit_expr_mut(&mut repeated.expr);
        if runs_over_values(&repeated.expr) {
            let (span, values) = (Span::mixed_site(), &repeated.expr);
            *repeated.expr = parse_quote_spanned!(span=> ::tile::kernel::turns::made(#values));
        }
        self.in_scope(|marks| {
            marks.visit_pat_mut(&mut repeated.pat);
            marks.visit_block_mut(&mut repeated.body);
        });
    }

    fn visit_pat_ident_mut(&mut self, pattern: &mut PatIdent) {
        if let Some(scope) = self.visible.last_mut() {
            scope.push(Bound { name: pattern.ident.clone(), has_value: true, is_reference: false });
        }
        visit_mut::visit_pat_ident_mut(self, pattern);
    }

    /// A closure assigns nothing from around it.
    fn visit_expr_closure_mut(&mut self, closure: &mut ExprClosure) {
        self.in_scope(|marks| visit_mut::visit_expr_closure_mut(marks, closure));
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        let kept = match expression {
            Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) => self.kept(expression),
            _ => None,
        };
        self.in_scope(|marks| visit_mut::visit_expr_mut(marks, expression));
        let Some(kept) = kept else { return };
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
            use ::tile::kernel::turns::{HasTiles as _, UnknownTiles as _};
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

    /// The variables that each loop keeps.
    fn kept(mut function: ItemFn) -> Vec<Vec<String>> {
        mark(&mut function);
        let text = function.to_token_stream().to_string().replace(' ', "");
        let begins = text.split("turns.begin(&[").skip(1).filter_map(|rest| rest.split("]);").next());
        let names = |begin: &str| {
            let parts = begin.split("Kept(&").skip(1).filter_map(|part| part.split(')').next());
            parts.map(str::to_owned).collect()
        };
        begins.map(names).collect()
    }

    #[test]
    fn a_turn_keeps_what_the_loop_assigns_of_what_is_around() {
        let function = parse_quote! {
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
        let expected = vec![vec!["a", "total"], vec!["inner", "total"]];
        assert_eq!(kept(function), expected);
    }

    #[test]
    fn a_turn_borrows_neither_the_loops_own_names_nor_those_of_other_arms() {
        let function = parse_quote! {
            fn f(x: Tile<f32, 1>, t: PartitionView<f32, 1>, p: i32) {
                let mut acc = x;
                match p {
                    v if v > 3 => acc = acc * 2.0,
                    _ => {
                        for _ in 0..4 {
                            let mut v = x * 2.0;
                            let mut t = v;
                            (v, t) = (v + acc, t);
                            acc = v;
                        }
                    }
                }
            }
        };
        assert_eq!(kept(function), [["acc"]]);
    }

    #[test]
    fn a_turn_keeps_what_if_let_binds_in_its_own_block() {
        let function = parse_quote! {
            fn f(x: Tile<f32, 1>, p: i32) {
                if p > 0 && let (mut v, 4) = (x, p) {
                    while p > 1 {
                        v = v * 2.0;
                    }
                } else {
                    loop {
                        v = v * 2.0;
                    }
                }
            }
        };
        assert_eq!(kept(function), [vec!["v"], vec![]]);
    }

    #[test]
    fn a_loop_in_a_constant_has_no_turns() {
        let function = parse_quote! {
            fn f(x: Tile<f32, 1>) {
                const SUM: u32 = { let mut i = 0; while i < 4 { i += 1; } i };
                let other = const { let mut i = 0; loop { i += 1; if i > 4 { break i; } } };
            }
        };
        assert_eq!(kept(function), Vec::<Vec<String>>::new());
    }

    #[test]
    fn what_a_loop_runs_over_is_made_before_it() {
        let mut function = parse_quote! {
            fn f(parts: [Tile<f32, 1>; 2]) {
                let halves = parts.iter().map(|part| *part * 0.5);
                for part in parts.iter().map(|part| *part * 2.0).rev() {}
                for part in halves {}
                for i in (0..3).rev() {}
                for tile in c.tiles_persistent(Grouped(2)) {}
            }
        };
        mark(&mut function);
        let text = function.to_token_stream().to_string().replace(' ', "");
        let made = "in::tile::kernel::turns::made(parts.iter().map(|part|*part*2.0).rev())";
        assert!(text.contains(made), "{text}");
        assert!(text.contains("in::tile::kernel::turns::made(halves)"), "{text}");
        assert!(text.contains("in(0..3).rev()") && text.contains("inc.tiles_persistent("), "{text}");
    }

    #[test]
    fn a_turn_keeps_what_self_refers_to() {
        let by_reference = parse_quote! {
            fn f(&mut self, x: Tile<f32, 1>) {
                for i in 0..4 {
                    self.sum += x;
                }
            }
        };
        assert_eq!(kept(by_reference), [["*self"]]);
    }

    #[test]
    fn a_loop_that_gives_a_variable_its_first_value_frees_nothing() {
        let function = parse_quote! {
            fn f(x: Tile<f32, 1>) {
                let mut acc = x;
                let found;
                loop {
                    acc += x;
                    found = acc;
                    break;
                }
            }
        };
        assert_eq!(kept(function), Vec::<Vec<String>>::new());
    }
}
