//! `#[tile_fn]` as rustc sees it: the function, its operators as calls.
//!
//! The function is lowered where a kernel calls it; alone, nothing says which of its operators work on tiles. So
//! all become calls of `::tile::kernel::either`, which rustc decides by type: they compare tiles element by
//! element, and wrap integer scalars, as a kernel's do. So do [atomic operations](atomics), of one element or of tiles.

mod atomics;
mod foreign;
mod literals;

use crate::assigned::is_compound_assignment;
use crate::constants;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::helpers::Helpers;
use crate::lower::names;
use crate::lower::unknown::Unknown;
use crate::macros;
use crate::refused;
use crate::rewrite::{assignment, bare, call_of_cast, is_literal, predicate};
use crate::signature::refused_const_parameter;
use crate::span::Spanned;
use crate::totals;
use crate::updates;
use foreign::is_foreign_to_rust;
use literals::Literals;
use proc_macro2::Span;
use quote::quote_spanned;
use std::collections::HashSet;
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};
use syn::{
    BinOp, Block, Expr, ExprBinary, ExprMethodCall, ExprRepeat, ExprUnary, GenericParam, Generics, Ident,
    Item, ItemFn, Macro, ReceiverKind, Stmt, Type, UnOp,
};

/// A function that kernels call, as rustc sees it; `seen` is what its module lets it see.
///
/// # Errors
/// [`Diagnostics`] of what such a function can't be.
pub fn function(function: ItemFn, seen: &Helpers) -> Result<ItemFn, Diagnostics> {
    let mut errors = wrong(&function, seen);
    errors.extend(refused_name(&function));
    if let Some(receiver) = function.sig.receiver() {
        let message = "a function of kernels has no `self`";
        let help =
            "make it a free function, or put `#[tile_fn]` on the `impl`, in a module with `#[tile_kernels]`";
        errors.push(Diagnostic::new(receiver.span(), message).help(help));
    }
    let generics = function.sig.generics.clone();
    match errors.is_empty() {
        true => Ok(rewritten(function, generics, None, seen)),
        false => Err(Diagnostics::new(errors)),
    }
}

/// What is said of a call by a function of a path at which there is no other.
pub fn absent(caller: &ItemFn, path: &syn::Path) -> Diagnostics {
    let unknown = Unknown::of(path, &format!("`{}`", caller.sig.ident));
    Diagnostic::new(path.span(), unknown.message).help(unknown.help).missing(path, false).into()
}

/// What is said of a call by a function of a path at which there is one that calls it in turn, by way of the functions of
/// these names.
pub fn in_a_circle(caller: &ItemFn, path: &syn::Path, through: &[String]) -> Diagnostics {
    Diagnostic::of_circle(path.span(), &caller.sig.ident.to_string(), through).into()
}

/// The same of a function of a type, which may take `self`; or what such a function can't be. `generics` are its parameters in
/// `<…>` and those of its `impl`.
pub(crate) fn method(
    function: ItemFn,
    generics: Generics,
    owner: &Type,
    seen: &Helpers,
) -> Result<ItemFn, Vec<Diagnostic>> {
    let mut errors = wrong(&function, seen);
    let name = &function.sig.ident;
    let receiver = function.sig.receiver();
    match receiver.map(|receiver| &receiver.kind) {
        Some(ReceiverKind::Reference(_, _, Some(_))) if names::is_method_of_variables(&name.to_string()) => {
            let message =
                format!("`{name}` is a method of tiles or views, and a call of it would be that one");
            let help = format!("give this one another name, such as `{name}_state`");
            errors.push(Diagnostic::new(name.span(), message).help(help));
        }
        Some(ReceiverKind::Typed(..)) => {
            let message = "a function of kernels takes `self` by value";
            errors
                .push(Diagnostic::new(receiver.span(), message).help("write `self`, `&self` or `&mut self`"));
        }
        _ => {}
    }
    match errors.is_empty() {
        true => Ok(rewritten(function, generics, Some(owner), seen)),
        false => Err(errors),
    }
}

fn rewritten(mut function: ItemFn, generics: Generics, owner: Option<&Type>, seen: &Helpers) -> ItemFn {
    let self_is_reference = updates::is_update(&function.sig);
    updates::write_out(&mut function, self_is_reference, seen);
    let parameters = generics.params.iter().filter_map(|generic| match generic {
        GenericParam::Const(parameter) => Some(parameter.ident.to_string()),
        _ => None,
    });
    let literals = Literals::of(&function, &generics, owner, seen);
    let mut rewrite = Rewrite { parameters: parameters.collect(), literals };
    crate::turns::mark(&mut function);
    rewrite.visit_block_mut(&mut function.block);
    function
}

/// A call of a function with the name of one that every kernel has would be that one.
fn refused_name(function: &ItemFn) -> Option<Diagnostic> {
    let name = function.sig.ident.to_string();
    names::is_function(&name).then(|| {
        let message =
            format!("`{name}` is a function that every kernel has, and a call of it would be that one");
        let help = format!("give this function another name, such as `my_{name}`");
        Diagnostic::new(function.sig.ident.span(), message).help(help)
    })
}

fn wrong(function: &ItemFn, seen: &Helpers) -> Vec<Diagnostic> {
    let signature = &function.sig;
    let mut errors = refused::inside(function);
    let words = [
        signature.asyncness.map(|token| (token.span(), "async", "remove the word")),
        signature.abi.as_ref().map(|abi| (abi.span(), "extern", "remove the word")),
        signature
            .constness
            .map(|token| (token.span(), "const", "remove the word; constants call no function of kernels")),
    ];
    for (span, word, help) in words.into_iter().flatten() {
        let message = format!("a function of kernels can't be `{word}`");
        errors.push(Diagnostic::new(span, message).help(help));
    }
    errors.extend(refused_const_parameters(&signature.generics));
    errors.extend(crate::parameters::refused(function, seen));
    errors
}

/// Mistakes in the const parameters of a function, or of the type that it is of.
pub(crate) fn refused_const_parameters(generics: &Generics) -> impl Iterator<Item = Diagnostic> {
    generics
        .const_params()
        .filter_map(|parameter| refused_const_parameter(parameter, "a function of kernels"))
}

struct Rewrite {
    /// The function's const parameters and its type's, which Rust's `const` items don't see.
    parameters: HashSet<String>,
    /// Its literals, where they may be of formats that Rust has none of.
    literals: Option<Literals>,
}

impl Rewrite {
    /// Whether a value may be of a float that Rust's `as` doesn't know.
    fn may_be_foreign(&self, value: &Expr) -> bool {
        self.literals.is_some() && !is_literal(bare(value))
    }

    fn call(name: &str, span: Span) -> proc_macro2::TokenStream {
        let name = Ident::new(name, span);
        quote_spanned!(span=> ::tile::kernel::either::#name)
    }

    fn binary(&self, binary: &ExprBinary) -> Option<Expr> {
        let span = syn::spanned::Spanned::span(&binary.op);
        let (left, right) = (bare(&binary.left), bare(&binary.right));
        if is_literal(left) && is_literal(right) {
            return None;
        }
        let name = match predicate(&binary.op) {
            Some(predicate) => predicate.name(),
            None => arithmetic(&binary.op)?,
        };
        let function = Self::call(name, span);
        let value = |left: &Expr, right: &Expr| {
            let beside =
                self.literals.as_ref().and_then(|literals| literals.beside(&function, left, right, span));
            beside.unwrap_or_else(|| quote_spanned!(span=> #function(#left, #right)))
        };
        Some(Expr::Verbatim(match is_compound_assignment(&binary.op) {
            true => assignment(left, right, span, value),
            false => value(left, right),
        }))
    }

    fn unary(unary: &ExprUnary) -> Option<Expr> {
        let UnOp::Neg(minus) = unary.op else { return None };
        let operand = bare(&unary.expr);
        if is_literal(operand) {
            return None;
        }
        let span = syn::spanned::Spanned::span(&minus);
        let function = Self::call("neg", span);
        Some(Expr::Verbatim(quote_spanned!(span=> #function(#operand))))
    }
}

/// Whether an expression has one of these names.
fn uses(expression: &Expr, names: &HashSet<String>) -> bool {
    struct Uses<'n>(&'n HashSet<String>, bool);
    impl Visit<'_> for Uses<'_> {
        fn visit_ident(&mut self, name: &Ident) {
            self.1 |= self.0.contains(&name.to_string());
        }
    }
    let mut uses = Uses(names, false);
    uses.visit_expr(expression);
    uses.1
}

/// Makes a method of scalars whose values aren't those of Rust's one of `either::value(x)`, which has it for scalars alone:
/// of tiles and structs it is theirs.
fn of_value(call: &mut ExprMethodCall) {
    if !names::is_other_than_rusts(&call.method.to_string(), call.args.len()) {
        return;
    }
    let (receiver, value) = (bare(&call.receiver), Rewrite::call("value", call.method.span()));
    *call.receiver = Expr::Verbatim(quote_spanned!(call.method.span()=> #value(#receiver)));
}

/// The function in place of an operator of numbers or bits.
fn arithmetic(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add(_) | BinOp::AddAssign(_) => "add",
        BinOp::Sub(_) | BinOp::SubAssign(_) => "sub",
        BinOp::Mul(_) | BinOp::MulAssign(_) => "mul",
        BinOp::Div(_) | BinOp::DivAssign(_) => "div",
        BinOp::Rem(_) | BinOp::RemAssign(_) => "rem",
        BinOp::BitAnd(_) | BinOp::BitAndAssign(_) => "and",
        BinOp::BitOr(_) | BinOp::BitOrAssign(_) => "or",
        BinOp::BitXor(_) | BinOp::BitXorAssign(_) => "xor",
        BinOp::Shl(_) | BinOp::ShlAssign(_) => "shl",
        BinOp::Shr(_) | BinOp::ShrAssign(_) => "shr",
        _ => return None,
    })
}

impl VisitMut for Rewrite {
    fn visit_macro_mut(&mut self, called: &mut Macro) {
        macros::rewrite(called, self);
    }

    /// An extent in a type is Rust's to compute.
    fn visit_type_mut(&mut self, _: &mut Type) {}

    fn visit_generic_argument_mut(&mut self, _: &mut syn::GenericArgument) {}

    fn visit_expr_const_mut(&mut self, _: &mut syn::ExprConst) {}

    fn visit_expr_repeat_mut(&mut self, repeat: &mut ExprRepeat) {
        self.visit_expr_mut(&mut repeat.expr);
    }

    fn visit_stmt_mut(&mut self, statement: &mut Stmt) {
        if let (Stmt::Local(local), Some(literals)) = (&mut *statement, &self.literals)
            && let Some(value) = literals.in_local(local)
            && let Some(init) = &mut local.init
        {
            *init.expr = value;
        }
        // The others are Rust's to compute.
        if !matches!(statement, Stmt::Item(Item::Const(_))) {
            visit_mut::visit_stmt_mut(self, statement);
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        let parameters = &mut self.parameters;
        let names = constants::as_variables(block, |item| {
            let is_generic = uses(&item.expr, parameters);
            if is_generic {
                parameters.insert(item.ident.to_string());
            }
            is_generic
        });
        self.parameters.extend(names.iter().map(|[_, variable]| variable.to_string()));
        // The values of constants are Rust's to compute.
        block.stmts.iter_mut().skip(names.len()).for_each(|statement| self.visit_stmt_mut(statement));
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        visit_mut::visit_expr_mut(self, expression);
        let rewritten = match expression {
            Expr::Binary(binary) => self.binary(binary),
            Expr::Unary(unary) => Self::unary(unary),
            Expr::Call(call) => self.literals.as_ref().and_then(|literals| {
                let made = literals.in_call(call).map(Expr::Verbatim);
                if made.is_none() {
                    literals.in_arguments(call);
                }
                made
            }),
            Expr::MethodCall(call) => {
                atomics::of_either(call);
                let made = self.literals.as_ref().and_then(|literals| literals.in_method(call));
                made.or_else(|| totals::as_function(call)).or_else(|| {
                    of_value(call);
                    None
                })
            }
            Expr::Cast(cast) if is_foreign_to_rust(&cast.ty) || self.may_be_foreign(&cast.expr) => {
                Some(call_of_cast(cast))
            }
            _ => None,
        };
        if let Some(rewritten) = rewritten {
            *expression = rewritten;
        }
    }
}
