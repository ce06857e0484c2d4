//! What a function of kernels may take: types that kernels have values of. The rest is refused where the function
//! is defined, because no kernel could call it.

use crate::callable::{self, Callable};
use crate::diagnostic::Diagnostic;
use crate::helpers::Helpers;
use crate::lower::names;
use crate::span::Spanned;
use syn::{FnArg, GenericParam, Generics, ItemFn, Type};

const HELP: &str = "functions take tiles, numbers, `&PartitionView<…>`, `&AtomicView<…>`, arrays, tuples and structs of these, and closures as `impl Fn(…) -> …`";

const TENSOR_HELP: &str = "pass a view of the tensor, `&PartitionView<'_, f32, 2>`; where the function looks up elements, it takes a closure, \
     `fetch: impl Fn(Tile<i32, 2>, Tile<i32, 2>) -> Tile<f32, 2>`, and is called as `sample(|r, c| image.gather([r, c]), …)`";

/// Partition views that are read, of windows over a margin too.
pub(crate) const PARTITION_VIEW: &str = "PartitionView";

/// Partition views, which functions take by reference.
pub(crate) const VIEWS: [&str; 3] = [PARTITION_VIEW, "PartitionViewMut", "SpanningViewMut"];

/// Atomic views, which functions take by value or by reference.
pub(crate) const ATOMIC_VIEW: &str = "AtomicView";

/// Whether a type of this name is that of a view.
pub(crate) fn is_view(name: &str) -> bool {
    VIEWS.contains(&name) || name == ATOMIC_VIEW
}

/// Numbers and texts of Rust that kernels don't have.
const FOREIGN: [&str; 7] = ["char", "f128", "i128", "isize", "str", "u128", "Option"];

/// Mistakes in the types of a function's parameters.
///
/// A struct that the module is seen to have is one, whatever its name.
pub(crate) fn refused(function: &ItemFn, seen: &Helpers) -> Vec<Diagnostic> {
    let signature = &function.sig;
    let mut errors = Vec::new();
    for input in &signature.inputs {
        if let FnArg::Typed(input) = input {
            check(&input.ty, seen, &signature.generics, &mut errors);
        }
    }
    for parameter in &signature.generics.params {
        if let GenericParam::Type(parameter) = parameter
            && let Some(callable) = callable::of_parameter(parameter, &signature.generics)
        {
            check_closure(&callable, &mut errors);
        }
    }
    errors
}

fn check(ty: &Type, seen: &Helpers, generics: &Generics, errors: &mut Vec<Diagnostic>) {
    match ty {
        Type::Paren(inner) => check(&inner.elem, seen, generics, errors),
        Type::Group(inner) => check(&inner.elem, seen, generics, errors),
        Type::Array(array) => check(&array.elem, seen, generics, errors),
        Type::Tuple(tuple) => tuple.elems.iter().for_each(|ty| check(ty, seen, generics, errors)),
        Type::Path(path) if seen.structure(&path.path).is_some() => {}
        Type::ImplTrait(bounds) => match callable::of_bounds(&bounds.bounds) {
            Some(callable) => check_closure(&callable, errors),
            None => errors.push(unknown(ty, HELP)),
        },
        Type::Reference(reference) => check_reference(ty, &reference.elem, seen, generics, errors),
        Type::Path(_) if is_named(ty, &["Tensor"]) => errors.push(unknown(ty, TENSOR_HELP)),
        Type::Path(path) => {
            if is_named(ty, &FOREIGN) {
                errors.push(unknown(ty, HELP));
            } else if let Some(help) = path.path.segments.last().and_then(names::help_of_parameter) {
                errors.push(unknown(ty, help));
            }
        }
        // What a macro makes isn't seen here.
        Type::Macro(_) | Type::Verbatim(_) => {}
        _ => errors.push(unknown(ty, HELP)),
    }
}

/// Views and closures may be passed by reference.
fn check_reference(
    ty: &Type,
    inner: &Type,
    seen: &Helpers,
    generics: &Generics,
    errors: &mut Vec<Diagnostic>,
) {
    let closures =
        generics.type_params().filter(|parameter| callable::of_parameter(parameter, generics).is_some());
    match inner {
        Type::Paren(inner) => check_reference(ty, &inner.elem, seen, generics, errors),
        Type::Group(inner) => check_reference(ty, &inner.elem, seen, generics, errors),
        Type::ImplTrait(_) => check(inner, seen, generics, errors),
        Type::Slice(_) => errors.push(unknown(ty, "write an array, `[T; N]`, with `const N: usize`")),
        Type::TraitObject(_) => errors.push(unknown(ty, "write `impl Fn(…) -> …`")),
        Type::Path(_) if is_named(inner, &VIEWS) || is_named(inner, &[ATOMIC_VIEW]) => {}
        Type::Path(_) if is_named(inner, &["Tensor"]) => errors.push(unknown(ty, TENSOR_HELP)),
        Type::Path(path) if closures.into_iter().any(|parameter| path.path.is_ident(&parameter.ident)) => {}
        Type::Path(_) if is_named(inner, &FOREIGN) => errors.push(unknown(ty, HELP)),
        _ => {
            let help = "values are passed without `&`, and a function gives back what it changes; only views and closures are passed by reference";
            errors.push(unknown(ty, help));
        }
    }
}

/// Whether the last part of a path is one of these names.
fn is_named(ty: &Type, names: &[&str]) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name))
}

fn unknown(ty: &Type, help: &str) -> Diagnostic {
    Diagnostic::new(ty.span(), "a function of kernels can't take this: no kernel has a value of the type")
        .help(help)
}

/// A closure of kernels captures, but changes nothing.
fn check_closure(callable: &Callable, errors: &mut Vec<Diagnostic>) {
    if callable.name == "Fn" {
        return;
    }
    let message = format!(
        "a function of kernels can't take an `{}`: a closure of a kernel changes nothing around it",
        callable.name
    );
    let help = "write `Fn`, and give back what changes";
    errors.push(Diagnostic::new(callable.name.span(), message).help(help));
}
