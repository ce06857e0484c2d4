//! Calls of methods that take `&mut self`, as the assignments that they are: `state.update(x)` becomes
//! `{ let mut updated = state; let given = updated.update(x); state = updated; given }`, for rustc and for the front end alike.
//!
//! What a loop or branch assigns is read off its syntax, by the front end and for the reference device; a call of such a
//! method looks like any other. Which methods change their struct is known by their names, and what may be one by its `mut`.

use crate::helpers::Helpers;
use proc_macro2::{Ident, Span};
use std::collections::HashSet;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{
    Expr, ExprMethodCall, FnArg, ItemFn, Macro, PatIdent, Receiver, ReceiverKind, Signature, UnOp,
    parse_quote_spanned,
};

/// Whether a function takes `&mut self`.
pub(crate) fn is_update(signature: &Signature) -> bool {
    let Some(FnArg::Receiver(receiver)) = signature.inputs.first() else { return false };
    matches!(receiver.kind, ReceiverKind::Reference(_, _, Some(_)))
}

/// Writes out the calls in a function's body of methods that the function sees. `self_is_reference` says whether its `self`
/// is one.
pub(crate) fn write_out(function: &mut ItemFn, self_is_reference: bool, seen: &Helpers) {
    if seen.has_updates() {
        let mutable = mutable_names(function);
        Updates { self_is_reference, mutable, seen }.visit_block_mut(&mut function.block);
    }
}

/// The names that a function binds with `mut`. Only what these hold can be changed, and tensors, which have methods of the
/// same names perhaps, are bound without.
fn mutable_names(function: &ItemFn) -> HashSet<String> {
    #[derive(Default)]
    struct Names(HashSet<String>);
    impl Visit<'_> for Names {
        fn visit_pat_ident(&mut self, pattern: &PatIdent) {
            if pattern.mutability.is_some() {
                self.0.insert(pattern.ident.to_string());
            }
            visit::visit_pat_ident(self, pattern);
        }

        fn visit_receiver(&mut self, receiver: &Receiver) {
            let by_reference = matches!(receiver.kind, ReceiverKind::Reference(_, _, Some(_)));
            if by_reference || receiver.mutability.is_some() {
                self.0.insert("self".to_owned());
            }
        }
    }
    let mut names = Names::default();
    names.visit_item_fn(function);
    names.0
}

struct Updates<'h> {
    self_is_reference: bool,
    mutable: HashSet<String>,
    seen: &'h Helpers,
}

impl Updates<'_> {
    fn written_out(&self, call: &ExprMethodCall) -> Option<Expr> {
        let place = &*call.receiver;
        if !self.seen.has_update(&call.method.to_string())
            || !variable_of(place).is_some_and(|name| self.mutable.contains(&name.to_string()))
        {
            return None;
        }
        let span = call.method.span();
        let place: Expr = match place {
            Expr::Path(path) if self.self_is_reference && path.path.is_ident("self") => {
                parse_quote_spanned!(place.span()=> *#place)
            }
            place => place.clone(),
        };
        // rustc tells them from the author's by their spans, the front end by their text.
        let (updated, given) = (
            Ident::new("__tile_updated", Span::mixed_site()),
            Ident::new("__tile_given", Span::mixed_site()),
        );
        let mut call = call.clone();
        *call.receiver = parse_quote_spanned!(span=> #updated);
        // A method of another struct may have the name, take `self` by value and give what is needed: no lint is to speak of a
        // `mut` or a unit that nobody wrote.
        let span = Span::mixed_site().located_at(span);
        Some(parse_quote_spanned! {span=> {
            let mut #updated = #place;
            let #given = #call;
            #place = #updated;
            #given
        }})
    }
}

/// The variable that an expression is, or is a part of.
fn variable_of(expression: &Expr) -> Option<&Ident> {
    match expression {
        Expr::Path(path) => path.path.get_ident(),
        Expr::Paren(inner) => variable_of(&inner.expr),
        Expr::Field(field) => variable_of(&field.base),
        Expr::Index(index) => variable_of(&index.expr),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => variable_of(&unary.expr),
        _ => None,
    }
}

impl VisitMut for Updates<'_> {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        visit_mut::visit_expr_mut(self, expression);
        if let Expr::MethodCall(call) = expression
            && let Some(written) = self.written_out(call)
        {
            *expression = written;
        }
    }

    fn visit_macro_mut(&mut self, called: &mut Macro) {
        crate::macros::rewrite(called, self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::ToTokens;
    use syn::{Block, parse_quote};

    fn seen() -> Helpers {
        Helpers::of(&[parse_quote! {
            #[tile_fn]
            impl State {
                fn update(&mut self, x: f32) {}
                fn taken(&mut self) -> f32 { 1.0 }
                fn result(self) -> f32 { 1.0 }
            }
        }])
    }

    fn written_out(mut function: ItemFn) -> String {
        let self_is_reference = is_update(&function.sig);
        write_out(&mut function, self_is_reference, &seen());
        function.block.to_token_stream().to_string()
    }

    fn text(block: Block) -> String {
        block.to_token_stream().to_string()
    }

    #[test]
    fn a_call_that_changes_a_struct_assigns_to_it() {
        let function = parse_quote! {
            fn f(mut state: State, mut all: [State; 2], other: Tile<f32, 1>) {
                state.update(all[1].taken());
                state.result();
                made().update(2.0);
                other.taken();
            }
        };
        let expected = parse_quote!({
            {
                let mut __tile_updated = state;
                let __tile_given = __tile_updated.update({
                    let mut __tile_updated = all[1];
                    let __tile_given = __tile_updated.taken();
                    all[1] = __tile_updated;
                    __tile_given
                });
                state = __tile_updated;
                __tile_given
            };
            state.result();
            made().update(2.0);
            other.taken();
        });
        assert_eq!(written_out(function), text(expected));
    }

    #[test]
    fn self_is_what_it_refers_to() {
        let method = parse_quote! {
            fn twice(&mut self) {
                self.update(1.0);
                self.inner.update(1.0);
            }
        };
        let expected = parse_quote!({
            {
                let mut __tile_updated = *self;
                let __tile_given = __tile_updated.update(1.0);
                *self = __tile_updated;
                __tile_given
            };
            {
                let mut __tile_updated = self.inner;
                let __tile_given = __tile_updated.update(1.0);
                self.inner = __tile_updated;
                __tile_given
            };
        });
        assert_eq!(written_out(method), text(expected));
        let by_value = parse_quote!(
            fn once(mut self) -> Self {
                self.update(1.0);
                self
            }
        );
        let expected = parse_quote!({
            {
                let mut __tile_updated = self;
                let __tile_given = __tile_updated.update(1.0);
                self = __tile_updated;
                __tile_given
            };
            self
        });
        assert_eq!(written_out(by_value), text(expected));
    }
}
