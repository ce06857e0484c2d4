//! The groups without a token that `macro_rules!` makes of its fragments. `$e * 2` of `1 + 1` is `(1 + 1) * 2`, but rustc
//! forgets such a group when an attribute gives it back: it becomes parentheses, unless the expression stands for itself.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprParen, Item, Macro, Type, token};

/// Writes out the groups in a kernel, a function, or a module of them.
pub fn write_out(item: &mut Item) {
    Groups.visit_item_mut(item);
}

/// Writes out the groups in an expression.
pub(crate) fn write_out_in_expression(expression: &mut Expr) {
    Groups.visit_expr_mut(expression);
}

struct Groups;

impl VisitMut for Groups {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        while let Expr::Group(group) = expression {
            let inner = std::mem::replace(&mut *group.expr, Expr::PLACEHOLDER);
            *expression = if stands_for_itself(&inner) { inner } else { in_parentheses(inner) };
        }
        visit_mut::visit_expr_mut(self, expression);
    }

    fn visit_type_mut(&mut self, ty: &mut Type) {
        while let Type::Group(group) = ty {
            *ty = (*group.elem).clone();
        }
        visit_mut::visit_type_mut(self, ty);
    }

    fn visit_macro_mut(&mut self, called: &mut Macro) {
        if has_groups(called.tokens.clone()) {
            crate::macros::rewrite(called, self);
        }
    }
}

fn has_groups(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::None || has_groups(group.stream()),
        _ => false,
    })
}

/// Whether nothing that stands beside an expression can take a part of it.
fn stands_for_itself(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::Array(_)
            | Expr::Call(_)
            | Expr::Field(_)
            | Expr::Group(_)
            | Expr::Index(_)
            | Expr::Lit(_)
            | Expr::Macro(_)
            | Expr::MethodCall(_)
            | Expr::Paren(_)
            | Expr::Path(_)
            | Expr::Tuple(_)
    )
}

/// The parentheses are nobody's, so that rustc has nothing to say of those that aren't needed.
fn in_parentheses(expression: Expr) -> Expr {
    let paren_token = token::Paren(Span::mixed_site());
    Expr::Paren(ExprParen { attrs: Vec::new(), paren_token, expr: Box::new(expression) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proc_macro2::Group;
    use quote::{ToTokens, quote};

    fn group(tokens: TokenStream) -> TokenTree {
        TokenTree::Group(Group::new(Delimiter::None, tokens))
    }

    #[test]
    fn what_a_macro_is_given_stays_together() {
        let (sum, number, ty) = (group(quote!(1 + 1)), group(quote!(3)), group(quote!(f32)));
        let nested = group(quote!(#sum));
        let mut function: Item = syn::parse_quote! {
            fn f(x: &Tensor<#ty, { n + #number }>) {
                let y = x * #sum + #number - -#nested;
                tile_assert!(#sum * 2 == y);
            }
        };
        write_out(&mut function);
        let expected: Item = syn::parse_quote! {
            fn f(x: &Tensor<f32, { n + 3 }>) {
                let y = x * (1 + 1) + 3 - -(1 + 1);
                tile_assert!((1 + 1) * 2 == y, "1 + 1 * 2 == y");
            }
        };
        assert_eq!(function.to_token_stream().to_string(), expected.to_token_stream().to_string());
    }
}
