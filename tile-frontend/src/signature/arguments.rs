//! Arguments as they are declared: one of each, optional ones, and arrays of them.
//!
//! An array is so many arguments of the IR. Where a const parameter is its length, it is as many as the kernel's
//! conditions admit, and an instance has those that its length counts. The first is always there, so that the sizes that
//! the elements name have a value.

use super::Parser;
use crate::conditional::is_condition;
use crate::rewrite::predicate;
use crate::scope::Changes;
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{Attribute, BinOp, Expr, FnArg, Lit, Pat, PatIdent, TypeArray};
use tile_ir::kernel::Generic;
use tile_ir::ops::Predicate;
use tile_ir::{Condition, Dim, Kernel, Presence, Type};

/// The longest array of arguments.
const MAX_LENGTH: i64 = 64;

/// An argument as it is declared.
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) changes: Changes,
    pub(super) form: Form,
    pub(super) span: Span,
}

/// What is declared.
pub(super) enum Form {
    One(Type),
    Optional(Type),
    /// Elements, as many as there may be, and how many there are: that number, or a const parameter.
    Array(Vec<Type>, Dim),
}

/// An argument of the kernel as a value of the body.
pub(super) fn parameter(kernel: &mut Kernel, ty: Type, name: &str) -> Val {
    let is_tensor = matches!(ty, Type::Tensor(_));
    let param = kernel.new_param(ty, name);
    if is_tensor { Val::Tensor(param) } else { Val::Data(param) }
}

/// An array of arguments of the kernel as a value of the body.
pub(super) fn array(kernel: &mut Kernel, elements: Vec<Type>, length: &Dim, name: &str) -> Val {
    let mut values = Vec::new();
    for (above, ty) in elements.into_iter().enumerate() {
        let value = parameter(kernel, ty, &format!("{name}[{above}]"));
        if let (Some(parameter), Val::Tensor(param) | Val::Data(param)) = (length.as_param(), &value)
            && above > 0
        {
            kernel.optional.insert(*param, Presence { parameter: parameter.to_owned(), above });
        }
        values.push(value);
    }
    if length.as_param().is_none() {
        return Val::List(values);
    }
    let condition = Condition::compare(length.clone(), Predicate::Gt, Dim::from(0));
    if !kernel.conditions.iter().any(|other| other.source == condition.source) {
        kernel.conditions.push(condition);
    }
    Val::Arguments(values, length.clone())
}

/// The name of an argument that is one `usize`.
pub(super) fn number_argument(input: &FnArg) -> Option<String> {
    let FnArg::Typed(input) = input else { return None };
    match (&*input.pat, &*input.ty) {
        (Pat::Ident(name), syn::Type::Path(ty)) if ty.path.is_ident("usize") => Some(name.ident.to_string()),
        _ => None,
    }
}

impl Parser<'_> {
    pub(super) fn argument(
        &mut self,
        generics: &[Generic],
        conditions: &[Expr],
        input: &FnArg,
    ) -> Option<Argument> {
        let FnArg::Typed(input) = input else {
            self.error(input.span(), "a kernel has no `self`", "make it a free function");
            return None;
        };
        let Pat::Ident(name) = &*input.pat else {
            self.error(
                input.pat.span(),
                "an argument of a kernel is a plain name",
                "take it apart in the body",
            );
            return None;
        };
        self.refuse_binding(name);
        self.refuse_attributes(&input.attrs);
        let changes = Changes::of_binding(name.mutability.is_some());
        let (span, name) = (name.ident.span().into(), name.ident.to_string());
        let form = match (&*input.ty, super::optional(&input.ty)) {
            (_, Some(inner)) => self.optional_argument(generics, inner, &name)?,
            (syn::Type::Array(array), None) => self.array(generics, conditions, array, &name)?,
            (ty, None) => Form::One(self.argument_type(generics, ty, &name)?),
        };
        Some(Argument { name, changes, form, span })
    }

    /// An argument is a variable of the body, and of the launch function besides: it is bound as a whole, and by value.
    fn refuse_binding(&mut self, name: &PatIdent) {
        if let Some(by_ref) = &name.by_ref {
            let help = "remove the `ref`: values of kernels are passed by value";
            self.error(by_ref.span(), "an argument of a kernel is a plain name", help);
        }
        if let Some((at, _)) = &name.subpat {
            let help = "write the name alone, and take it apart in the body";
            self.error(at.span(), "an argument of a kernel is a plain name", help);
        }
    }

    /// Conditions are refused wherever they stand inside a kernel.
    fn refuse_attributes(&mut self, attributes: &[Attribute]) {
        const OF_LINTS: [&str; 5] = ["allow", "expect", "warn", "deny", "forbid"];
        let is_known = |attribute: &&Attribute| {
            is_condition(attribute) || OF_LINTS.iter().any(|lint| attribute.path().is_ident(lint))
        };
        for attribute in attributes.iter().filter(|attribute| !is_known(attribute)) {
            let (message, help) = match attribute.path().is_ident("doc") {
                true => ("an argument has no documentation of its own", "write about it above the kernel"),
                false => {
                    ("this attribute says nothing of an argument", "remove it; those of lints may stand here")
                }
            };
            self.error(attribute.span(), message, help);
        }
    }

    fn optional_argument(&mut self, generics: &[Generic], ty: &syn::Type, name: &str) -> Option<Form> {
        self.optional = Some(name.to_owned());
        let inner = self.argument_type(generics, ty, name);
        self.optional = None;
        inner.map(Form::Optional)
    }

    /// `[&Tensor<f32, n>; 4]`, whose elements have sizes of their own where these are `_`.
    fn array(
        &mut self,
        generics: &[Generic],
        conditions: &[Expr],
        array: &TypeArray,
        name: &str,
    ) -> Option<Form> {
        let length = self.extent_expression(generics, &array.len)?;
        let most = match (length.as_const(), length.as_param()) {
            (Some(length), _) => length,
            (None, Some(parameter)) => match conditions.iter().filter_map(|it| bound(it, parameter)).min() {
                Some(most) => most,
                None => {
                    let message = format!("how many arguments `{name}` may have isn't known");
                    let help = format!(
                        "say how large `{parameter}` may be: `#[tile_kernel(where({parameter} <= 8))]`"
                    );
                    self.error(array.len.span(), message, &help);
                    return None;
                }
            },
            (None, None) => {
                let message = "the length of an array of arguments is a number or a const parameter";
                let help =
                    "write the number, or a const parameter of the kernel alone: `[&Tensor<f32, n>; K]`";
                self.error(array.len.span(), message, help);
                return None;
            }
        };
        if !(1..=MAX_LENGTH).contains(&most) {
            let message = format!("an array of arguments has 1 to {MAX_LENGTH} elements, not {most}");
            self.error(array.len.span(), message, "pass one tensor with another axis");
            return None;
        }
        let elements = (0..most).map(|_| self.argument_type(generics, &array.elem, name));
        Some(Form::Array(elements.collect::<Option<_>>()?, length))
    }
}

/// The largest value of a const parameter that a condition admits, where it compares it with numbers.
fn bound(condition: &Expr, parameter: &str) -> Option<i64> {
    let binary = match condition {
        Expr::Paren(inner) => return bound(&inner.expr, parameter),
        Expr::Binary(binary) => binary,
        _ => return None,
    };
    let mut sides = [&binary.left, &binary.right].into_iter().map(|side| bound(side, parameter));
    match binary.op {
        BinOp::And(_) => return sides.flatten().min(),
        BinOp::Or(_) => return sides.try_fold(0, |most, side| Some(side?.max(most))),
        _ => {}
    }
    let is_parameter = |side: &Expr| matches!(side, Expr::Path(path) if path.path.is_ident(parameter));
    let compared = predicate(&binary.op)?;
    let (predicate, number) = match (is_parameter(&binary.left), is_parameter(&binary.right)) {
        (true, false) => (compared, number(&binary.right)?),
        (false, true) => (compared.swapped(), number(&binary.left)?),
        _ => return None,
    };
    match predicate {
        Predicate::Le | Predicate::Eq => Some(number),
        Predicate::Lt => Some(number - 1),
        _ => None,
    }
}

fn number(expression: &Expr) -> Option<i64> {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(int) => int.base10_parse().ok(),
            _ => None,
        },
        _ => None,
    }
}
