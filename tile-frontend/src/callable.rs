//! Closures as parameters of functions: what `impl Fn(A) -> B` declares, or a type parameter with such a bound.

use crate::signature::bounds_of;
use syn::{Generics, Ident, PathArguments, ReturnType, Type, TypeParam, TypeParamBound};

/// What a closure takes and gives, by the types that declare it.
#[derive(Clone, Debug)]
pub(crate) struct Callable {
    /// `Fn`, `FnMut` or `FnOnce`.
    pub(crate) name: Ident,
    pub(crate) inputs: Vec<Type>,
    /// `None` where it gives nothing.
    pub(crate) output: Option<Type>,
}

impl Callable {
    /// A closure of this form, for a message.
    pub(crate) fn example(&self) -> String {
        let names: Vec<String> =
            (0u8..).map(|i| char::from(b'a' + i % 26).to_string()).take(self.inputs.len()).collect();
        format!("|{}| …", names.join(", "))
    }
}

/// The closure that bounds declare; other bounds are rustc's to check.
pub(crate) fn of_bounds<'b>(bounds: impl IntoIterator<Item = &'b TypeParamBound>) -> Option<Callable> {
    bounds.into_iter().find_map(of_bound)
}

fn of_bound(bound: &TypeParamBound) -> Option<Callable> {
    let TypeParamBound::Trait(bound) = bound else { return None };
    let last = bound.path.segments.last()?;
    let PathArguments::Parenthesized(signature) = &last.arguments else { return None };
    let output = match &signature.output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => Some((**ty).clone()),
    };
    let inputs = signature.inputs.iter().map(|input| input.ty.clone()).collect();
    Some(Callable { name: last.ident.clone(), inputs, output })
}

/// The closure that a type parameter is, by its bounds at its declaration and in `where`.
pub(crate) fn of_parameter(parameter: &TypeParam, generics: &Generics) -> Option<Callable> {
    of_bounds(bounds_of(parameter, generics))
}
