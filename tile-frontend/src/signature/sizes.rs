//! The run-time sizes of a signature as variables of the kernel's body: which names they are, and what says each.

use super::extents::is_name_of_size;
use super::optional;
use crate::helpers::Helpers;
use std::collections::BTreeSet;
use syn::{Expr, FnArg, GenericArgument, Ident, Pat, PathArguments, Signature, Stmt, Type};

/// A run-time size.
#[derive(Clone, Debug)]
pub struct Size {
    /// Its name, where the signature first says it.
    pub name: Ident,
    /// The argument that has it as an extent.
    pub argument: Ident,
    /// Whether that is an array, of whose elements the first has it.
    pub is_of_array: bool,
    /// The axis that it is the extent of.
    pub axis: usize,
}

/// The run-time sizes of a kernel that sees `seen`, each once. Of a size that is an extent only together with others,
/// `{ 2 * m }`, no axis says the value.
pub fn sizes(signature: &Signature, seen: &Helpers) -> Vec<Size> {
    let arguments: Vec<(&Ident, &Type)> = signature.inputs.iter().filter_map(argument).collect();
    let parameters = signature.generics.params.iter().filter_map(|parameter| match parameter {
        syn::GenericParam::Const(parameter) => Some(&parameter.ident),
        syn::GenericParam::Type(parameter) => Some(&parameter.ident),
        syn::GenericParam::Lifetime(_) => None,
    });
    let mut other: BTreeSet<String> = parameters.map(ToString::to_string).collect();
    other.extend(arguments.iter().map(|(name, _)| name.to_string()));
    let mut sizes = Vec::new();
    for (argument, ty) in arguments {
        let (ty, is_of_array) = match ty {
            Type::Array(array) => (&*array.elem, true),
            ty => (ty, false),
        };
        for (axis, extent) in extents(ty).enumerate() {
            let Some(name) = extent_name(extent) else { continue };
            let text = name.to_string();
            if is_name_of_size(&text) && seen.constant(&text).is_none() && other.insert(text) {
                sizes.push(Size { name: name.clone(), argument: argument.clone(), is_of_array, axis });
            }
        }
    }
    sizes
}

fn argument(input: &FnArg) -> Option<(&Ident, &Type)> {
    let FnArg::Typed(input) = input else { return None };
    let Pat::Ident(name) = &*input.pat else { return None };
    Some((&name.ident, &input.ty))
}

/// The extents of a tensor that is no optional argument.
fn extents(ty: &Type) -> impl Iterator<Item = &GenericArgument> {
    let target = match ty {
        Type::Reference(reference) => &*reference.elem,
        ty => ty,
    };
    let segment = match target {
        Type::Path(path) if optional(ty).is_none() => path.path.segments.last(),
        _ => None,
    };
    let arguments = segment.filter(|segment| segment.ident == "Tensor").map(|segment| &segment.arguments);
    let arguments = arguments.into_iter().filter_map(|arguments| match arguments {
        PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
        _ => None,
    });
    arguments.flat_map(|arguments| arguments.iter().skip(1))
}

/// The name that an extent is by itself.
fn extent_name(extent: &GenericArgument) -> Option<&Ident> {
    match extent {
        GenericArgument::Type(Type::Path(path)) => path.path.get_ident(),
        GenericArgument::Const(expression) => lone_name(expression),
        _ => None,
    }
}

/// The name that an expression is by itself, in braces and parentheses or without.
pub fn lone_name(expression: &Expr) -> Option<&Ident> {
    match expression {
        Expr::Path(path) => path.path.get_ident(),
        Expr::Paren(inner) => lone_name(&inner.expr),
        Expr::Block(block) => match block.block.stmts.as_slice() {
            [Stmt::Expr(inner, None)] => lone_name(inner),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_names_that_mean_nothing_else() {
        let module: syn::File = syn::parse_quote!(
            const WIDE: usize = 8;
            #[allow(non_upper_case_globals)]
            const deep: usize = 4;
        );
        let function: syn::ItemFn = syn::parse_quote! {
            fn f<const B: usize, T: Float>(
                given: Option<&Tensor<T, a, b>>,
                x: &Tensor<T, m, WIDE, B, deep>,
                rows: usize,
                ys: [&Tensor<f32, { n }, rows, m>; 2],
                z: &mut tile::Tensor<f32, _, { 2 * k }, 3, { (b) }>,
            ) {}
        };
        let sizes = sizes(&function.sig, &Helpers::of(&module.items));
        let sizes: Vec<_> = sizes
            .iter()
            .map(|size| (size.name.to_string(), size.argument.to_string(), size.is_of_array, size.axis))
            .collect();
        let size = |name: &str, argument: &str, is_of_array, axis| {
            (name.to_owned(), argument.to_owned(), is_of_array, axis)
        };
        assert_eq!(sizes, [size("m", "x", false, 0), size("n", "ys", true, 0), size("b", "z", false, 3)]);
    }
}
