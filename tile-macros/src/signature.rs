//! What expansion needs of a kernel's signature, read off syntax that the front end has accepted. Also reads
//! as much as there is of a signature that it has refused, so that the stub of a wrong kernel fits its callers.

use crate::lints::is_lint;
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, FnArg, GenericArgument, GenericParam, Pat, Path, PathArguments, Signature, Type,
    TypePath, parse_quote,
};

/// One argument of a kernel.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    /// Whether the body may assign to it.
    pub(crate) mutable: bool,
    /// What its author says of lints at it.
    pub(crate) lints: Vec<Attribute>,
    pub(crate) kind: ArgumentKind,
}

/// What an argument is.
pub(crate) enum ArgumentKind {
    /// `&Tensor<element, extents…>` or `&mut Tensor<…>`.
    Tensor { element: TokenStream, extents: Vec<TokenStream>, mutable: bool },
    /// `Option<&Tensor<element, extents…>>` or `Option<&mut Tensor<…>>`.
    Optional { element: TokenStream, rank: usize, mutable: bool },
    /// `Option<number>`.
    OptionalScalar(TokenStream),
    /// `[element; length]`.
    Array { element: Box<ArgumentKind>, length: Expr },
    /// A number of this type.
    Scalar(TokenStream),
}

impl Argument {
    /// The arguments, in order. One that isn't a plain name with a type is left out.
    pub(crate) fn all(signature: &Signature) -> Vec<Argument> {
        signature.inputs.iter().filter_map(Argument::of).collect()
    }

    fn of(input: &FnArg) -> Option<Argument> {
        let FnArg::Typed(input) = input else { return None };
        let Pat::Ident(name) = &*input.pat else { return None };
        let mutable = name.mutability.is_some();
        let lints = input.attrs.iter().filter(|attribute| is_lint(attribute)).cloned().collect();
        Some(Argument { name: name.ident.clone(), mutable, lints, kind: ArgumentKind::of(&input.ty) })
    }
}

impl ArgumentKind {
    fn of(ty: &Type) -> ArgumentKind {
        match tile_frontend::optional(ty).map(ArgumentKind::of) {
            Some(ArgumentKind::Tensor { element, extents, mutable }) => {
                return ArgumentKind::Optional { element, rank: extents.len(), mutable };
            }
            Some(ArgumentKind::Scalar(number)) => return ArgumentKind::OptionalScalar(number),
            _ => {}
        }
        if let Type::Array(array) = ty {
            let element = Box::new(ArgumentKind::of(&array.elem));
            // Rust takes a const parameter as a length where it stands alone.
            let name = tile_frontend::lone_name(&array.len);
            let length = name.map_or_else(|| array.len.clone(), |name| parse_quote!(#name));
            return ArgumentKind::Array { element, length };
        }
        // A tensor by value is refused, and read as a reference in the stub.
        let (target, mutable) = match ty {
            Type::Reference(reference) => (&*reference.elem, reference.mutability.is_some()),
            ty => (ty, false),
        };
        let Type::Path(path) = target else { return ArgumentKind::Scalar(ty.to_token_stream()) };
        let Some(segment) = path.path.segments.last().filter(|segment| segment.ident == "Tensor") else {
            return ArgumentKind::Scalar(ty.to_token_stream());
        };
        let mut arguments = match &segment.arguments {
            PathArguments::AngleBracketed(arguments) => {
                arguments.args.iter().map(GenericArgument::to_token_stream).collect()
            }
            _ => Vec::new(),
        };
        // A tensor without an element type is refused; the stub needs some type in its place.
        let element = if arguments.is_empty() { quote!(f32) } else { arguments.remove(0) };
        ArgumentKind::Tensor { element, extents: arguments, mutable }
    }
}

/// How a signature calls tensors, each name once, without what the type is made of: `Tensor`, `tile::Tensor`.
pub(crate) fn names_of_tensors(signature: &Signature) -> Vec<Path> {
    struct Names(Vec<Path>);
    impl Visit<'_> for Names {
        fn visit_type_path(&mut self, ty: &TypePath) {
            let mut path = ty.path.clone();
            let Some(last) = path.segments.last_mut() else { return };
            let is_tensor = last.ident == "Tensor";
            last.arguments = PathArguments::None;
            if is_tensor && !self.0.contains(&path) {
                self.0.push(path);
            } else if !is_tensor {
                visit::visit_type_path(self, ty);
            }
        }
    }
    let mut names = Names(Vec::new());
    signature.inputs.iter().for_each(|input| names.visit_fn_arg(input));
    names.0
}

/// Whether `best` chooses what a parameter is: a number. A `bool` says what is computed, and is given; so is the length
/// of an array of arguments.
pub(crate) fn is_chosen(parameter: &GenericParam, arguments: &[Argument]) -> bool {
    let GenericParam::Const(parameter) = parameter else { return false };
    let is_length = |argument: &Argument| {
        matches!(&argument.kind, ArgumentKind::Array { length: Expr::Path(path), .. }
            if path.path.is_ident(&parameter.ident))
    };
    !tile_frontend::is_bool(&parameter.ty) && !arguments.iter().any(is_length)
}
