//! What the bounds of type parameters say, and the types of const parameters.

use super::element;
use crate::diagnostic::Diagnostic;
use crate::span::Spanned;
use syn::{ConstParam, GenericArgument, Generics, PathArguments, TypeParamBound, WherePredicate};
use tile_ir::ops::Domain;
use tile_ir::{DType, Elem};

/// Whether a const parameter is a `bool`.
pub fn is_bool(ty: &syn::Type) -> bool {
    matches!(ty, syn::Type::Path(path) if path.path.is_ident("bool"))
}

/// What is said of a const parameter of another type than kernels have, as one of a kernel or a function, which is `of`.
pub(crate) fn refused_const_parameter(parameter: &ConstParam, of: &str) -> Option<Diagnostic> {
    let is_usize = matches!(&parameter.ty, syn::Type::Path(path) if path.path.is_ident("usize"));
    (!is_usize && !is_bool(&parameter.ty)).then(|| {
        let message = format!("a const parameter of {of} is a `usize` or a `bool`");
        let help = format!("write `const {0}: usize` or `const {0}: bool`", parameter.ident);
        Diagnostic::new(parameter.ty.span(), message).help(help)
    })
}

/// The bounds of a type parameter, at its declaration and in `where`.
pub(crate) fn bounds_of<'g>(param: &'g syn::TypeParam, generics: &'g Generics) -> Vec<&'g TypeParamBound> {
    let predicates = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let further = predicates.filter(|predicate| bounded(predicate) == Some(&param.ident));
    let further = further.flat_map(|predicate| match predicate {
        WherePredicate::Type(predicate) => predicate.bounds.iter().collect(),
        _ => Vec::new(),
    });
    param.bounds.iter().chain(further).collect()
}

/// The type parameter that a predicate bounds, where it bounds a single name.
pub(super) fn bounded(predicate: &WherePredicate) -> Option<&syn::Ident> {
    match predicate {
        WherePredicate::Type(predicate) => match &predicate.bounded_ty {
            syn::Type::Path(path) => path.path.get_ident(),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn is_type_parameter(generics: &Generics, name: &syn::Ident) -> bool {
    generics.type_params().any(|parameter| parameter.ident == *name)
}

/// The formats that a bound names.
pub(super) fn domain_of(bound: &TypeParamBound) -> Option<Domain> {
    let TypeParamBound::Trait(bound) = bound else { return None };
    match bound.path.segments.last()?.ident.to_string().as_str() {
        "Element" => Some(Domain::Any),
        // What rustc needs to check `mma`; the formats are checked per instance.
        "Number" | "MmaOperand" => Some(Domain::Number),
        "AnyBits" => Some(Domain::NumberOrScale),
        "Float" => Some(Domain::Float),
        "Int" => Some(Domain::Int),
        "Bits" => Some(Domain::IntOrBool),
        _ => None,
    }
}

/// The format of the sums of products of a type parameter, where its bounds name one: `T: MmaOperand<f32>`.
pub(crate) fn accumulator_of_parameter(generics: &Generics, name: &str) -> Option<Elem> {
    let parameter = generics.type_params().find(|parameter| parameter.ident == name)?;
    let accumulator = |bound: &TypeParamBound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let operand = bound.path.segments.last().filter(|segment| segment.ident == "MmaOperand")?;
        let PathArguments::AngleBracketed(arguments) = &operand.arguments else { return None };
        match arguments.args.first()? {
            GenericArgument::Type(ty) => element(&[], ty),
            _ => None,
        }
    };
    let mut named = bounds_of(parameter, generics).into_iter().filter_map(accumulator);
    let first = named.next()?;
    named.all(|other| other == first).then_some(first)
}

/// What a function's type parameter may be: what all its bounds accept. Other traits are rustc's to check.
pub(crate) fn domain_of_parameter(param: &syn::TypeParam, generics: &Generics) -> Option<Domain> {
    bounds_of(param, generics).into_iter().filter_map(domain_of).reduce(narrower)
}

/// The domain of a parameter with two bounds.
pub(super) fn narrower(a: Domain, b: Domain) -> Domain {
    let accepted = |domain: Domain| DType::ALL.iter().filter(|&&dtype| domain.accepts(dtype)).count();
    if accepted(a) <= accepted(b) { a } else { b }
}
