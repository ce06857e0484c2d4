//! Calls of functions across modules and crates.
//!
//! A macro sees only its own tokens. So `#[tile_fn] fn step` also makes a macro of the name `step`, which goes
//! wherever `use` takes the function, and hands its tokens on. A kernel that calls an unknown `step` expands to
//! `step! { the kernel }`, which expands to `__tile_kernel! { the kernel, the tokens of step }`, until all is known.
//!
//! rustc resolves the names, so a path means the same function to the macro and to rustc. A function hands on what
//! its own module sees too, because its names mean nothing where the kernel stands.

use crate::expand;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use std::hash::{DefaultHasher, Hash, Hasher};
use syn::parse::{Parse, ParseStream};
use syn::{Item, ItemFn, Path, Visibility, braced};
use tile_frontend::{Diagnostics, Helpers, path_text};

/// A kernel, and what is known of the functions that it calls.
pub(crate) struct Request {
    options: TokenStream,
    function: ItemFn,
    /// What the kernel sees of its module: functions and constants.
    seen: Vec<Item>,
    /// The names of all functions of its module.
    functions: Vec<Ident>,
    found: Vec<Found>,
}

/// A function of another module.
struct Found {
    path: Path,
    function: ItemFn,
    /// What it sees of its own module.
    seen: Vec<Item>,
}

impl Request {
    /// A kernel that sees nothing.
    pub(crate) fn new(options: TokenStream, function: ItemFn) -> Request {
        Request { options, function, seen: Vec::new(), functions: Vec::new(), found: Vec::new() }
    }

    /// The kernel in a module of these functions and constants, whose functions have these names.
    pub(crate) fn in_module(self, seen: &[Item], functions: &[Ident]) -> Request {
        Request { seen: seen.to_vec(), functions: functions.to_vec(), ..self }
    }

    fn helpers(&self) -> Helpers {
        let file = file(&self.function);
        let mut helpers = Helpers::of(&self.seen);
        for Found { path, function, seen } in &self.found {
            let foreign = self::file(function) != file;
            helpers.insert(path_text(path), function.clone(), Helpers::of(seen), foreign);
        }
        helpers
    }

    /// A function that is called, unknown, and may stand elsewhere.
    fn wanted(&self, errors: &Diagnostics) -> Option<Path> {
        let is_new = |path: &&Path| {
            let known = self.found.iter().any(|found| path_text(&found.path) == path_text(path));
            let own = path.get_ident().is_some_and(|name| self.functions.contains(name));
            !known && !own && !path.is_ident(&self.function.sig.ident)
        };
        errors.missing().into_iter().find(is_new).cloned()
    }
}

/// The order of what stands in braces is that of [`Request::parse`].
impl ToTokens for Request {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Request { options, function, seen, functions, found } = self;
        let found =
            found.iter().map(|Found { path, function, seen }| quote!({ #path } { #function } { #(#seen)* }));
        tokens.extend(quote!({ #options } { #function } { #(#seen)* } { #(#functions)* } #(#found)*));
    }
}

impl Parse for Request {
    fn parse(input: ParseStream<'_>) -> syn::Result<Request> {
        let options = in_braces(input)?;
        let function = syn::parse2(in_braces(input)?)?;
        let seen = items(in_braces(input)?)?;
        let names = in_braces(input)?.into_iter();
        let functions = names.map(|name| syn::parse2(name.into())).collect::<syn::Result<_>>()?;
        let mut found = Vec::new();
        while !input.is_empty() {
            let path = syn::parse2(in_braces(input)?)?;
            let function = syn::parse2(in_braces(input)?)?;
            found.push(Found { path, function, seen: items(in_braces(input)?)? });
        }
        Ok(Request { options, function, seen, functions, found })
    }
}

fn in_braces(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let inner;
    braced!(inner in input);
    inner.parse()
}

fn items(tokens: TokenStream) -> syn::Result<Vec<Item>> {
    Ok(syn::parse2::<syn::File>(tokens)?.items)
}

/// The kernel's code, or a call of the macro that hands on the next function.
pub(crate) fn kernel(request: Request) -> TokenStream {
    let function = &request.function;
    let lowered = tile_frontend::lower_with(
        request.options.clone(),
        function.clone(),
        &request.helpers(),
        &file(function),
    );
    match lowered {
        Ok(lowered) => expand::kernel(function, &lowered),
        Err(errors) => match request.wanted(&errors) {
            Some(path) => quote!(#path! { #request { #path } }),
            None => {
                let (errors, stub) = (errors.to_compile_errors(), expand::stub(function));
                quote!(#errors #stub)
            }
        },
    }
}

/// A function as rustc sees it, and the macro that hands it on; `seen` is what it sees of its module.
pub(crate) fn function(function: ItemFn, seen: &[Item]) -> TokenStream {
    let rewritten = match tile_frontend::function(function.clone()) {
        Ok(rewritten) => rewritten,
        Err(errors) => {
            let errors = errors.to_compile_errors();
            return quote!(#errors #function);
        }
    };
    let (name, visibility) = (&function.sig.ident, &function.vis);
    let export = matches!(visibility, Visibility::Public(_)).then(|| quote!(#[macro_export]));
    let hands_on = unique_name(name);
    quote! {
        // Indexing by a counter is how a kernel goes through several arrays.
        #[allow(clippy::needless_range_loop)]
        #rewritten

        #[doc(hidden)]
        #[allow(unused_macros, non_local_definitions)]
        #export
        macro_rules! #hands_on {
            ($($request:tt)*) => { ::tile::__tile_kernel! { $($request)* { #function } { #(#seen)* } } };
        }

        #[doc(hidden)]
        #[allow(unused_imports, unreachable_pub)]
        #visibility use #hands_on as #name;
    }
}

/// Exported macros of a crate share one namespace, so the name says where the function stands.
fn unique_name(name: &Ident) -> Ident {
    let mut hasher = DefaultHasher::new();
    let (span, start) = (name.span().unwrap(), name.span().start());
    (span.file(), start.line, start.column).hash(&mut hasher);
    format_ident!("__tile_fn_{}_{:016x}", name, hasher.finish(), span = Span::call_site())
}

/// The file that a function stands in.
fn file(function: &ItemFn) -> String {
    function.sig.ident.span().unwrap().file()
}
