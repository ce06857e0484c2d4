//! `#[tile_kernels] mod kernels { … }` and `tile::kernels! { … }`: the kernels of a module, which see its functions
//! and constants.

use crate::across::{self, Request};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use std::collections::HashSet;
use syn::{Attribute, File, Item, ItemFn, ItemImpl, ItemMod, Meta, UseTree};
use tile_frontend::{Helpers, is_const, is_function, is_kernel};

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
    for item in items.iter_mut() {
        if let Item::Fn(function) = item {
            crate::write_attributes_outside(function);
        }
    }
    let seen: Vec<Item> = items.iter().filter(|item| is_seen(item)).cloned().collect();
    let helpers = Helpers::of(&seen);
    let functions = items.iter().filter_map(|item| match item {
        Item::Fn(function) => Some(function.sig.ident.clone()),
        _ => None,
    });
    let functions: Vec<Ident> = functions.collect();
    let imported = imported(items);
    let in_module = |request: Request| request.in_module(&seen, &helpers, &functions, imported.as_ref());
    for item in items {
        if let Item::Impl(methods) = item {
            *item = expand_methods(methods, &helpers);
            continue;
        }
        if let Item::Const(constant) = item {
            tile_frontend::constant(constant);
            continue;
        }
        let Item::Fn(function) = item else { continue };
        let (request, refused) = if let Some(attribute) = take(function, is_kernel) {
            let (options, refused) = options(&attribute);
            (Request::kernel(options, without_conditions(function)), refused)
        } else if let Some(attribute) = take(function, is_function) {
            (Request::function(without_conditions(function)), refused_options(&attribute))
        } else {
            continue;
        };
        let refused = refused.as_ref().map(syn::Error::to_compile_error);
        let conditions: Vec<&Attribute> = function.attrs.iter().filter(|it| is_condition(it)).collect();
        let expanded = match conditions.as_slice() {
            [] => across::expand(in_module(request)),
            // A kernel is several items, of which rustc leaves out all or none.
            conditions => {
                let request = in_module(request);
                quote!(#(#conditions)* ::tile::__tile_conditional! { #request })
            }
        };
        *item = Item::Verbatim(quote!(#refused #expanded));
    }
}

/// What an attribute of a kernel says in parentheses, and what is wrong with one that says it otherwise: rustc gives none of
/// those to an attribute that stands alone.
fn options(attribute: &Attribute) -> (TokenStream, Option<syn::Error>) {
    match &attribute.meta {
        Meta::List(list) => (list.tokens.clone(), None),
        Meta::Path(_) => (TokenStream::new(), None),
        Meta::NameValue(said) => {
            let message =
                "options of a kernel stand in parentheses\n  help: write `#[tile_kernel(instances(B = 64))]`";
            (TokenStream::new(), Some(syn::Error::new_spanned(&said.value, message)))
        }
    }
}

/// What is wrong with an attribute of a function that says more than its name.
fn refused_options(attribute: &Attribute) -> Option<syn::Error> {
    crate::options_of_function(match &attribute.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::Path(_) => TokenStream::new(),
        Meta::NameValue(said) => said.value.to_token_stream(),
    })
}

/// A function as it is where rustc doesn't leave it out.
fn without_conditions(function: &ItemFn) -> ItemFn {
    let mut function = function.clone();
    function.attrs.retain(|attribute| !is_condition(attribute));
    function
}

fn is_condition(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
}

/// The functions of a type as rustc sees them. They travel with the functions of the module that call them.
fn expand_methods(item: &mut ItemImpl, seen: &Helpers) -> Item {
    let Some(position) = item.attrs.iter().position(is_function) else { return Item::Impl(item.clone()) };
    let refused = refused_options(&item.attrs.remove(position));
    let refused = refused.as_ref().map(syn::Error::to_compile_error);
    match tile_frontend::methods(item.clone(), seen) {
        // Indexing by a counter is how a kernel goes through several arrays, and operators are calls.
        Ok(rewritten) => Item::Verbatim(quote! {
            #refused
            #[allow(clippy::needless_range_loop, clippy::redundant_closure)]
            #rewritten
        }),
        Err(errors) => {
            let errors = errors.to_compile_errors();
            Item::Verbatim(quote!(#errors #item))
        }
    }
}

/// The names that a module imports. `None` where its text doesn't say them all: of a glob, but for that of the prelude,
/// which has no functions of kernels, and of what a macro makes.
fn imported(items: &[Item]) -> Option<HashSet<String>> {
    let mut names = HashSet::new();
    let says_all = items.iter().all(|item| match item {
        Item::Use(import) => {
            let text = import.tree.to_token_stream().to_string().replace(' ', "");
            text == "tile::prelude::*" || add_names(&import.tree, &mut names)
        }
        Item::Macro(_) | Item::Verbatim(_) => false,
        _ => true,
    });
    says_all.then_some(names)
}

/// Whether an import says its names.
fn add_names(tree: &UseTree, names: &mut HashSet<String>) -> bool {
    match tree {
        UseTree::Path(path) => add_names(&path.tree, names),
        UseTree::Group(group) => group.items.iter().all(|tree| add_names(tree, names)),
        UseTree::Name(name) => {
            names.insert(name.ident.to_string());
            true
        }
        UseTree::Rename(renamed) => {
            names.insert(renamed.rename.to_string());
            true
        }
        _ => false,
    }
}

/// What the module's kernels and functions see of each other.
fn is_seen(item: &Item) -> bool {
    match item {
        Item::Fn(function) => function.attrs.iter().any(is_function) || is_const(function),
        Item::Impl(methods) => methods.attrs.iter().any(is_function),
        Item::Const(_) | Item::Struct(_) => true,
        _ => false,
    }
}

/// Removes an attribute, which this expansion does the work of.
fn take(function: &mut ItemFn, is_wanted: fn(&Attribute) -> bool) -> Option<Attribute> {
    let position = function.attrs.iter().position(is_wanted)?;
    Some(function.attrs.remove(position))
}
