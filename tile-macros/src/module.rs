//! `#[tile_kernels] mod kernels { … }`: the kernels of a module, which see its functions and constants.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Item, ItemFn, ItemMod, Meta};
use tile_frontend::{Helpers, is_function, is_kernel};

/// The module with its kernels and functions expanded.
pub(crate) fn expand(mut module: ItemMod) -> TokenStream {
    let Some((_, items)) = &mut module.content else {
        let message = "`#[tile_kernels]` needs the module's code: write `mod kernels { … }` here\n  \
                       help: in the module's own file, put the kernels and functions into an inner `mod`";
        let error = syn::Error::new_spanned(&module, message).to_compile_error();
        return quote!(#error #module);
    };
    let helpers = Helpers::of(items);
    for item in items {
        let Item::Fn(function) = item else { continue };
        if let Some(attribute) = take(function, is_kernel) {
            let options = match attribute.meta {
                Meta::List(list) => list.tokens,
                Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
            };
            *item = Item::Verbatim(crate::kernel(options, function.clone(), &helpers));
        } else if take(function, is_function).is_some() {
            *item = Item::Verbatim(crate::function(function.clone()));
        }
    }
    module.to_token_stream()
}

/// Removes an attribute, which this expansion does the work of.
fn take(function: &mut ItemFn, is_wanted: fn(&Attribute) -> bool) -> Option<Attribute> {
    let position = function.attrs.iter().position(is_wanted)?;
    Some(function.attrs.remove(position))
}
