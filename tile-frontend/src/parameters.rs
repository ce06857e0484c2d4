//! What a function of kernels may take: types that kernels have values of. The rest is refused where the function
//! is defined, because no kernel could call it.

use crate::callable::{self, Callable};
use crate::diagnostic::Diagnostic;
use crate::lower::names;
use crate::span::Spanned;
use syn::{FnArg, GenericParam, ItemFn, Type};
use tile_ir::DType;

const HELP: &str = "functions take tiles, numbers, `&PartitionView<…>`, arrays, tuples and structs of these, and closures as `impl Fn(…) -> …`";

/// Numbers and texts of Rust that kernels don't have.
const FOREIGN: [&str; 7] = ["char", "f128", "i128", "isize", "str", "u128", "Option"];

/// Mistakes in the types of a function's parameters.
pub(crate) fn refused(function: &ItemFn) -> Vec<Diagnostic> {
    let signature = &function.sig;
    let mut errors = Vec::new();
    for input in &signature.inputs {
        if let FnArg::Typed(input) = input {
            check(&input.ty, &mut errors);
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

fn check(ty: &Type, errors: &mut Vec<Diagnostic>) {
    match ty {
        Type::Paren(inner) => check(&inner.elem, errors),
        Type::Group(inner) => check(&inner.elem, errors),
        Type::Array(array) => check(&array.elem, errors),
        Type::Tuple(tuple) => tuple.elems.iter().for_each(|ty| check(ty, errors)),
        Type::ImplTrait(bounds) => match callable::of_bounds(&bounds.bounds) {
            Some(callable) => check_closure(&callable, errors),
            None => errors.push(unknown(ty, HELP)),
        },
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(_) => errors.push(unknown(ty, "write an array, `[T; N]`, with `const N: usize`")),
            Type::TraitObject(_) => errors.push(unknown(ty, "write `impl Fn(…) -> …`")),
            Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Tile") => {
                errors.push(unknown(
                    ty,
                    "tiles are passed by value, and a function gives back what it changes",
                ));
            }
            Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Tensor") => {
                errors.push(unknown(ty, "pass a view of the tensor, `&PartitionView<'_, f32, 2>`"));
            }
            inner => check(inner, errors),
        },
        Type::Path(path) => {
            let name = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
            if FOREIGN.contains(&name.as_str()) && DType::from_rust_name(&name).is_none() {
                errors.push(unknown(ty, HELP));
            } else if let Some(help) = names::help_of_type(&name) {
                errors.push(unknown(ty, help));
            }
        }
        // What a macro makes isn't seen here.
        Type::Macro(_) | Type::Verbatim(_) => {}
        _ => errors.push(unknown(ty, HELP)),
    }
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
