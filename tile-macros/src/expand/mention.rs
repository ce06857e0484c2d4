//! Mentions of a kernel's launch function in what is made beside it. For rustc, a kernel is one that is used where its launch
//! function is.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Attribute, GenericParam, ItemFn};

/// `#[deprecated]`, which is of both ways to launch a kernel.
pub(super) fn deprecated(function: &ItemFn) -> Option<&Attribute> {
    function.attrs.iter().find(|attribute| attribute.path().is_ident("deprecated"))
}

/// A mention of a kernel's launch function, which makes it one that is used; where its author says that it is deprecated, that
/// is for others.
pub(super) fn mention(function: &ItemFn, launch: &Ident, parameters: &[TokenStream]) -> TokenStream {
    let allowed = deprecated(function).map(|_| quote!(#[allow(deprecated)]));
    quote! {
        #allowed
        let _ = #launch::<#(#parameters),*>;
    }
}

/// For rustc, a kernel is used whose IR somebody looks at, a snapshot test say. Which types a kernel takes isn't known here: one
/// that is generic over some is used where it is launched.
pub(super) fn use_of_launch(function: &ItemFn) -> Option<TokenStream> {
    let value = |parameter: &GenericParam| match parameter {
        GenericParam::Const(constant) if tile_frontend::is_bool(&constant.ty) => Some(quote!(false)),
        GenericParam::Const(_) => Some(quote!(1)),
        GenericParam::Type(_) | GenericParam::Lifetime(_) => None,
    };
    let values = function.sig.generics.params.iter().map(value).collect::<Option<Vec<_>>>()?;
    Some(mention(function, &function.sig.ident, &values))
}
