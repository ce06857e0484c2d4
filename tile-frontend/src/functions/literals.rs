//! Literals of a `#[tile_fn]` that stand beside a value of a format that Rust has no literals of.
//!
//! Alone, nothing but the types of a function says which format that is. So the literal is made in the format of the
//! value beside it, or of the parameter that it is passed to, by a call that rustc types (`::tile::kernel::beside`), in
//! functions that [have such formats](super::foreign) or are generic over them; elsewhere it stays Rust's, with rustc's words
//! for what doesn't fit.

use super::foreign::{self, is_foreign_to_rust};
use super::of_value;
use crate::helpers::Helpers;
use crate::lower::Fold;
use crate::lower::names;
use crate::rewrite::{bare, is_literal};
use crate::signature::{bounds_of, domain_of_parameter};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprCall, ExprMethodCall, Generics, ItemFn, Lit, Local, Pat, Type, parse_quote};
use tile_ir::ops::{BinaryOp, Domain, Predicate, ReduceOp};

/// The literals of a function that may be of formats that Rust has none of.
pub(super) struct Literals {
    /// The function's parameters in `<…>` and its type's.
    generics: Generics,
    /// Whether those of integers may be, too: of a type parameter.
    integers: bool,
    /// Whether a type parameter may be any number, and so floats stand beside what may be integers.
    any_number: bool,
}

impl Literals {
    /// Those of a function that has values of a format that Rust has no literals of, or that is generic over numbers.
    pub(super) fn of(
        function: &ItemFn,
        generics: &Generics,
        owner: Option<&Type>,
        seen: &Helpers,
    ) -> Option<Literals> {
        let domains = generics.type_params().filter(|parameter| !bounds_of(parameter, generics).is_empty());
        let domains: Vec<_> =
            domains.filter_map(|parameter| domain_of_parameter(parameter, generics)).collect();
        let integers = domains.iter().any(|domain| matches!(domain, Domain::Int | Domain::Number));
        let is_generic = integers || domains.contains(&Domain::Float);
        let any_number = domains.contains(&Domain::Number);
        (is_generic || foreign::is_in(function, owner, seen)).then(|| Literals {
            generics: generics.clone(),
            integers,
            any_number,
        })
    }

    /// What stands at a place for a function of two values, in an operator too, where one is a literal.
    pub(super) fn beside(
        &self,
        function: &TokenStream,
        left: &Expr,
        right: &Expr,
        span: Span,
    ) -> Option<TokenStream> {
        let way = match (self.is_open(left), self.is_open(right)) {
            (false, true) => "literal_right",
            (true, false) => "literal_left",
            _ => return None,
        };
        let (way, left, right) = (Ident::new(way, span), self.written(left), self.written(right));
        Some(quote_spanned!(span=> ::tile::kernel::beside::#way(#left, #right, #function)))
    }

    /// What stands in place of a call of a function of the language with a literal.
    pub(super) fn in_call(&self, call: &ExprCall) -> Option<TokenStream> {
        let Expr::Path(path) = &*call.func else { return None };
        let name = path.path.get_ident()?;
        let arguments: Vec<&Expr> = call.args.iter().map(bare).collect();
        match arguments.as_slice() {
            [left, right] if is_of_two_numbers(name) => {
                self.beside(&quote_spanned!(name.span()=> ::tile::kernel::#name), left, right, name.span())
            }
            [condition, left, right] if name == "select" => {
                let side = match (self.is_open(left), self.is_open(right)) {
                    (false, true) => "select_right",
                    (true, false) => "select_left",
                    _ => return None,
                };
                let (function, left, right) =
                    (Ident::new(side, name.span()), self.written(left), self.written(right));
                let call = quote_spanned!(name.span()=> ::tile::kernel::beside::#function);
                Some(quote_spanned!(name.span()=> #call(#condition, #left, #right)))
            }
            _ => None,
        }
    }

    /// What stands in place of a call of a method with literals: of the format of what the method is of, where its parameters
    /// take tiles and numbers alike, and elsewhere of its parameters'.
    pub(super) fn in_method(&self, call: &ExprMethodCall) -> Option<Expr> {
        if !call.args.iter().any(|argument| self.is_open(argument)) {
            return None;
        }
        let mut call = call.clone();
        // Of a tile the integer is an axis, along which the method reduces.
        let reduces =
            ReduceOp::from_method(&call.method.to_string()).is_some() && !call.args.iter().any(is_float);
        if reduces || !takes_operands(&call.method) {
            let element = match call.method.to_string().as_str() {
                "load_masked_or" | "gather_or" => Some(0),
                "pad" => Some(1),
                "shift" => Some(2),
                _ => None,
            };
            let arguments = call.args.iter_mut().enumerate();
            arguments.for_each(|(at, argument)| self.make(argument, Some(at) == element));
            of_value(&mut call);
            return Some(Expr::MethodCall(call));
        }
        let span = call.method.span();
        let value = Ident::new("value", Span::mixed_site());
        for argument in call.args.iter_mut().filter(|argument| self.is_open(argument)) {
            let literal = self.written(bare(argument));
            let made = quote_spanned!(argument.span()=> ::tile::kernel::beside::of(&#value, #literal));
            *argument = Expr::Verbatim(made);
        }
        let receiver = std::mem::replace(&mut *call.receiver, parse_quote!(#value));
        of_value(&mut call);
        let receiver = bare(&receiver);
        Some(Expr::Verbatim(quote_spanned!(span=> ::tile::kernel::beside::with(#receiver, |#value| #call))))
    }

    /// Makes the literals among the arguments of a function in the formats of its parameters: of functions with `#[tile_fn]`
    /// and of closures, and of those of the language whose parameters are of the elements' format.
    pub(super) fn in_arguments(&self, call: &mut ExprCall) {
        let Expr::Path(path) = &*call.func else { return };
        let makes_tile = path.path.segments.iter().nth_back(1).is_some_and(|owner| owner.ident == "Tile");
        // Where it begins and how far it goes from one to the next are elements.
        let counts = makes_tile && path.path.segments.last().is_some_and(|name| name.ident == "arange");
        let folds = path.path.get_ident().is_some_and(|name| Fold::of_function(&name.to_string()).is_some());
        let is_own = names::may_be_elsewhere(&path.path);
        if !(makes_tile || folds || is_own) {
            return;
        }
        let arguments = call.args.iter_mut().enumerate();
        arguments.for_each(|(at, argument)| {
            let is_element = is_own || makes_tile && at == 1 || (counts || folds) && at == 2;
            self.make(argument, is_element);
        });
    }

    /// Makes an argument that is a literal of the format of its parameter: an integer only where that is an element, because
    /// others are of several types.
    fn make(&self, argument: &mut Expr, is_element: bool) {
        if self.is_open(argument) && (is_element || is_float(argument)) {
            let (literal, span) = (self.written(bare(argument)), bare(argument).span());
            *argument = Expr::Verbatim(quote_spanned!(span=> ::tile::kernel::beside::literal(#literal)));
        }
    }

    /// A literal as the functions beside take it, which is of a float only beside floats; any other value as it is.
    fn written(&self, expression: &Expr) -> TokenStream {
        match self.any_number && is_float(expression) {
            true => quote_spanned!(expression.span()=> ::tile::kernel::beside::OfAnyNumber(#expression)),
            false => expression.to_token_stream(),
        }
    }

    /// `let k: bf16 = 0.5;`: its value.
    pub(super) fn in_local(&self, local: &Local) -> Option<Expr> {
        let Pat::Type(typed) = &local.pat else { return None };
        let value = bare(&local.init.as_ref()?.expr);
        let Type::Path(path) = &*typed.ty else { return None };
        let is_parameter = self.generics.type_params().any(|parameter| path.path.is_ident(&parameter.ident));
        if !self.is_open(value) || !(is_parameter || is_foreign_to_rust(&typed.ty)) {
            return None;
        }
        let (ty, span) = (&typed.ty, value.span());
        Some(Expr::Verbatim(quote_spanned!(span=> <#ty as ::tile::kernel::Number>::of(#value))))
    }

    /// Whether an expression is a literal of which nothing says the format, and which may be of one that Rust has none of.
    fn is_open(&self, expression: &Expr) -> bool {
        is_float(expression) || self.integers && is_integer(expression)
    }
}

/// Whether a method's parameters are tiles or numbers, as the sides of an operator are.
fn takes_operands(name: &Ident) -> bool {
    let text = name.to_string();
    is_of_two_numbers(name)
        || Predicate::from_name(&text).is_some()
        || BinaryOp::wrapping(&text).is_some_and(|op| !op.moves_bits())
        || text.starts_with("overflowing_")
        || matches!(text.as_str(), "clamp" | "mul_add")
}

/// Whether a name is that of a function of two numbers, of which one may be a literal.
fn is_of_two_numbers(name: &Ident) -> bool {
    BinaryOp::from_name(&name.to_string()).is_some_and(|op| op.operator().is_none() && !op.moves_bits())
}

/// Whether an expression is a literal of a float, of which nothing says the format.
fn is_float(expression: &Expr) -> bool {
    let literal = unsigned(bare(expression));
    matches!(literal, Expr::Lit(literal) if matches!(&literal.lit, Lit::Float(float) if float.suffix().is_empty()))
}

/// The same of an integer.
fn is_integer(expression: &Expr) -> bool {
    let literal = unsigned(bare(expression));
    matches!(literal, Expr::Lit(literal) if matches!(&literal.lit, Lit::Int(int) if int.suffix().is_empty()))
}

/// What stands behind the minus of a literal.
fn unsigned(expression: &Expr) -> &Expr {
    match expression {
        Expr::Unary(negated) if is_literal(expression) => bare(&negated.expr),
        other => other,
    }
}
