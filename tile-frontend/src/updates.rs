//! Calls of methods that take `&mut self`, as the assignments that they are: `state.update(x)` becomes
//! `{ let mut updated = state; updated.update(x); state = updated; }`, for rustc and for the front end alike.
//!
//! What a loop or branch assigns is read off its syntax, by the front end and for the reference device; a call of such a
//! method looks like any other. Which methods change their struct is known by their names.

use crate::helpers::Helpers;
use proc_macro2::{Ident, Span};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Block, Expr, ExprMethodCall, FnArg, ItemFn, Macro, ReceiverKind, ReturnType, Signature, UnOp,
    parse_quote_spanned,
};

/// Whether a function takes `&mut self`.
pub(crate) fn is_update(signature: &Signature) -> bool {
    let Some(FnArg::Receiver(receiver)) = signature.inputs.first() else { return false };
    matches!(receiver.kind, ReceiverKind::Reference(_, _, Some(_)))
}

/// Writes out the calls in a function's body of methods that the function sees.
pub(crate) fn write_out(function: &mut ItemFn, seen: &Helpers) {
    let self_is_reference = is_update(&function.sig);
    write_out_in(&mut function.block, self_is_reference, seen);
}

/// The same in a body, in which `self` may be a reference.
pub(crate) fn write_out_in(body: &mut Block, self_is_reference: bool, seen: &Helpers) {
    if seen.has_updates() {
        Updates { self_is_reference, seen }.visit_block_mut(body);
    }
}

struct Updates<'h> {
    self_is_reference: bool,
    seen: &'h Helpers,
}

impl Updates<'_> {
    fn written_out(&self, call: &ExprMethodCall) -> Option<Expr> {
        let output = self.seen.update(&call.method.to_string())?;
        let place = &*call.receiver;
        if !is_place(place) {
            return None;
        }
        let span = call.method.span();
        let place: Expr = match place {
            Expr::Path(path) if self.self_is_reference && path.path.is_ident("self") => {
                parse_quote_spanned!(place.span()=> *#place)
            }
            place => place.clone(),
        };
        let (updated, given) =
            (Ident::new("updated", Span::mixed_site()), Ident::new("given", Span::mixed_site()));
        let mut call = call.clone();
        *call.receiver = parse_quote_spanned!(span=> #updated);
        Some(match output {
            ReturnType::Default => {
                parse_quote_spanned!(span=> { let mut #updated = #place; #call; #place = #updated; })
            }
            ReturnType::Type(..) => parse_quote_spanned! {span=>
                { let mut #updated = #place; let #given = #call; #place = #updated; #given }
            },
        })
    }
}

/// Whether an expression is a variable or a part of one.
fn is_place(expression: &Expr) -> bool {
    match expression {
        Expr::Path(path) => path.path.get_ident().is_some(),
        Expr::Paren(inner) => is_place(&inner.expr),
        Expr::Field(field) => is_place(&field.base),
        Expr::Index(index) => is_place(&index.expr),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Deref(_)) && is_place(&unary.expr),
        _ => false,
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
    use syn::parse_quote;

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
        write_out(&mut function, &seen());
        function.block.to_token_stream().to_string()
    }

    fn text(block: Block) -> String {
        block.to_token_stream().to_string()
    }

    #[test]
    fn a_call_that_changes_a_struct_assigns_to_it() {
        let function = parse_quote! {
            fn f(mut state: State, mut all: [State; 2]) {
                state.update(all[1].taken());
                state.result();
                made().update(2.0);
            }
        };
        let expected = parse_quote!({
            {
                let mut updated = state;
                updated.update({
                    let mut updated = all[1];
                    let given = updated.taken();
                    all[1] = updated;
                    given
                });
                state = updated;
            };
            state.result();
            made().update(2.0);
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
                let mut updated = *self;
                updated.update(1.0);
                *self = updated;
            };
            {
                let mut updated = self.inner;
                updated.update(1.0);
                self.inner = updated;
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
                let mut updated = self;
                updated.update(1.0);
                self = updated;
            };
            self
        });
        assert_eq!(written_out(by_value), text(expected));
    }
}
