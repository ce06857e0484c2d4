//! Float literals of a `#[tile_fn]` that stand beside a value of a format that Rust has no literals of.
//!
//! Alone, nothing but the types of a function says which format that is. So the literal is made in the format of the
//! value beside it, or of the parameter that it is passed to, by a call that rustc types (`::tile::kernel::beside`), in
//! functions that name such formats or are generic over them; elsewhere it stays Rust's, with rustc's words for what
//! doesn't fit.

use super::{is_foreign_to_rust, of_value};
use crate::lower::Fold;
use crate::lower::names;
use crate::rewrite::{bare, is_literal};
use crate::signature::{bounds_of, domain_of_parameter};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, ExprMethodCall, Generics, ItemFn, Lit, Local, Pat, Type, parse_quote};
use tile_ir::DType;
use tile_ir::ops::{BinaryOp, Domain, Predicate};

/// Whether a function, or the type that it is of, names a format that Rust has no literals of, or is generic over floats.
pub(super) fn are_of_other_formats(function: &ItemFn, generics: &Generics, owner: Option<&Type>) -> bool {
    struct Named(bool);
    impl Visit<'_> for Named {
        fn visit_type(&mut self, ty: &Type) {
            self.0 |= is_foreign_to_rust(ty);
            visit::visit_type(self, ty);
        }
    }
    let is_float = |parameter: &syn::TypeParam| {
        !bounds_of(parameter, generics).is_empty()
            && domain_of_parameter(parameter, generics) == Some(Domain::Float)
    };
    let mut named = Named(generics.type_params().any(is_float));
    named.visit_item_fn(function);
    owner.into_iter().for_each(|owner| named.visit_type(owner));
    named.0
}

/// What stands at a place for a function of two values, in an operator too, where one is a literal of a float.
pub(super) fn beside(function: &TokenStream, left: &Expr, right: &Expr, span: Span) -> Option<TokenStream> {
    let way = match (is_float(left), is_float(right)) {
        (false, true) => "literal_right",
        (true, false) => "literal_left",
        _ => return None,
    };
    let way = Ident::new(way, span);
    Some(quote_spanned!(span=> ::tile::kernel::beside::#way(#left, #right, #function)))
}

/// What stands in place of a call of a function of the language with a literal.
pub(super) fn in_call(call: &ExprCall) -> Option<TokenStream> {
    let Expr::Path(path) = &*call.func else { return None };
    let name = path.path.get_ident()?;
    let arguments: Vec<&Expr> = call.args.iter().map(bare).collect();
    match arguments.as_slice() {
        [left, right] if is_of_two_floats(name) => {
            beside(&quote_spanned!(name.span()=> ::tile::kernel::#name), left, right, name.span())
        }
        [condition, left, right] if name == "select" => {
            let side = match (is_float(left), is_float(right)) {
                (false, true) => "select_right",
                (true, false) => "select_left",
                _ => return None,
            };
            let function = Ident::new(side, name.span());
            Some(quote_spanned!(name.span()=> ::tile::kernel::beside::#function(#condition, #left, #right)))
        }
        _ => None,
    }
}

/// What stands in place of a call of a method with literals: of the format of what the method is of, where its parameters
/// take tiles and numbers alike, and elsewhere of its parameters'.
pub(super) fn in_method(call: &ExprMethodCall) -> Option<Expr> {
    if !call.args.iter().any(is_float) {
        return None;
    }
    let mut call = call.clone();
    if !takes_operands(&call.method) {
        call.args.iter_mut().for_each(make);
        return Some(Expr::MethodCall(call));
    }
    let span = call.method.span();
    let (value, of) = (Ident::new("value", Span::mixed_site()), Ident::new("of", Span::mixed_site()));
    for argument in call.args.iter_mut().filter(|argument| is_float(argument)) {
        let literal = bare(argument);
        *argument = Expr::Verbatim(quote_spanned!(literal.span()=> #of(#literal)));
    }
    let receiver = std::mem::replace(&mut *call.receiver, parse_quote!(#value));
    of_value(&mut call);
    let receiver = bare(&receiver);
    Some(Expr::Verbatim(quote_spanned!(span=> ::tile::kernel::beside::with(#receiver, |#value, #of| #call))))
}

/// Makes the literals among the arguments of a function in the formats of its parameters: of functions with `#[tile_fn]` and
/// of closures, and of those of the language whose parameters are of the elements' format.
pub(super) fn in_arguments(call: &mut ExprCall) {
    let Expr::Path(path) = &*call.func else { return };
    let makes_tile = path.path.segments.iter().nth_back(1).is_some_and(|owner| owner.ident == "Tile");
    let folds = path.path.get_ident().is_some_and(|name| Fold::of_function(&name.to_string()).is_some());
    if makes_tile || folds || names::may_be_elsewhere(&path.path) {
        call.args.iter_mut().for_each(make);
    }
}

fn make(argument: &mut Expr) {
    if is_float(argument) {
        let literal = bare(argument);
        let span = literal.span();
        *argument = Expr::Verbatim(quote_spanned!(span=> ::tile::kernel::beside::literal(#literal)));
    }
}

/// Whether a method's parameters are tiles or numbers, as the sides of an operator are.
fn takes_operands(name: &Ident) -> bool {
    let text = name.to_string();
    is_of_two_floats(name)
        || Predicate::from_name(&text).is_some()
        || matches!(text.as_str(), "clamp" | "mul_add")
}

/// Whether a name is that of a function of two floats, of which one may be a literal.
fn is_of_two_floats(name: &Ident) -> bool {
    BinaryOp::from_name(&name.to_string())
        .is_some_and(|op| op.operator().is_none() && op.domain().accepts(DType::F32))
}

/// `let k: bf16 = 0.5;`: its value.
pub(super) fn in_local(local: &Local, generics: &Generics) -> Option<Expr> {
    let Pat::Type(typed) = &local.pat else { return None };
    let value = bare(&local.init.as_ref()?.expr);
    let Type::Path(path) = &*typed.ty else { return None };
    let is_parameter = generics.type_params().any(|parameter| path.path.is_ident(&parameter.ident));
    if !is_float(value) || !(is_parameter || is_foreign_to_rust(&typed.ty)) {
        return None;
    }
    let (ty, span) = (&typed.ty, value.span());
    Some(Expr::Verbatim(quote_spanned!(span=> <#ty as ::tile::kernel::Number>::of(#value))))
}

/// Whether an expression is a literal of a float, of which nothing says the format.
fn is_float(expression: &Expr) -> bool {
    let expression = bare(expression);
    let literal = match expression {
        Expr::Unary(negated) if is_literal(expression) => bare(&negated.expr),
        other => other,
    };
    matches!(literal, Expr::Lit(literal) if matches!(&literal.lit, Lit::Float(float) if float.suffix().is_empty()))
}
