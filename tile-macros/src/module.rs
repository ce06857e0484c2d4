//! `#[tile_kernels] mod kernels { … }` and `tile::kernels! { … }`: the kernels of a module, which see its functions
//! and constants.

use crate::across::{self, Request};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{Attribute, File, Item, ItemFn, ItemMod, Meta};
use tile_frontend::{is_function, is_kernel};

/// The module with its kernels and functions expanded.
pub(crate) fn expand(mut module: ItemMod) -> TokenStream {
    let Some((_, items)) = &mut module.content else {
        let message = "`#[tile_kernels]` needs the module's code: write `mod kernels { … }` here\n  \
                       help: in the module's own file, write `tile::kernels! { … }` around the kernels and functions, without this attribute";
        let error = syn::Error::new_spanned(&module, message).to_compile_error();
        return quote!(#error #module);
    };
    expand_items(items);
    module.to_token_stream()
}

/// The items of a file, which are those of a module.
pub(crate) fn file(mut file: File) -> TokenStream {
    expand_items(&mut file.items);
    file.to_token_stream()
}

fn expand_items(items: &mut [Item]) {
    let seen: Vec<Item> = items.iter().filter(|item| is_seen(item)).cloned().collect();
    let functions = items.iter().filter_map(|item| match item {
        Item::Fn(function) => Some(function.sig.ident.clone()),
        _ => None,
    });
    let functions: Vec<Ident> = functions.collect();
    for item in items {
        let Item::Fn(function) = item else { continue };
        if let Some(attribute) = take(function, is_kernel) {
            let options = match attribute.meta {
                Meta::List(list) => list.tokens,
                Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
            };
            let request = Request::kernel(options, function.clone()).in_module(&seen, &functions);
            *item = Item::Verbatim(across::kernel(request));
        } else if take(function, is_function).is_some() {
            let request = Request::function(function.clone()).in_module(&seen, &functions);
            *item = Item::Verbatim(across::function(request));
        }
    }
}

/// What the module's kernels and functions see of each other.
fn is_seen(item: &Item) -> bool {
    match item {
        Item::Fn(function) => function.attrs.iter().any(is_function),
        Item::Const(_) => true,
        _ => false,
    }
}

/// Removes an attribute, which this expansion does the work of.
fn take(function: &mut ItemFn, is_wanted: fn(&Attribute) -> bool) -> Option<Attribute> {
    let position = function.attrs.iter().position(is_wanted)?;
    Some(function.attrs.remove(position))
}
