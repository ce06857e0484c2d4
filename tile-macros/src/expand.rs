//! The code that stands in for a kernel: its launch functions, its body on the reference device, its IR.
//!
//! Everything is named by absolute path, so that nothing in the user's scope can change its meaning. The
//! body keeps its spans: completion, go-to-definition and rustc's errors work in it.

mod choice;
mod documentation;
mod mention;

use crate::lints;
use crate::signature::{Argument, ArgumentKind, names_of_tensors};
use documentation::documentation;
use mention::use_of_launch;
use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use std::collections::HashSet;
use std::path::PathBuf;
use syn::visit::Visit;
use syn::{Attribute, ConstParam, GenericParam, ItemFn, Meta, Token, TypeParam};
use tile_frontend::{Helpers, Lowered, Size};

/// Writes out a kernel: `function` and its options as the user wrote them, what it sees, and what the front end made of it.
pub(crate) fn kernel(
    function: &ItemFn,
    options: &TokenStream,
    seen: &Helpers,
    lowered: &Lowered,
) -> TokenStream {
    let (face, meaning) = (face(function, options), meaning(function, seen, lowered));
    quote!(#face #meaning)
}

/// What of a kernel its callers see, which follows from its signature: its type and its launch function.
pub(crate) fn face(function: &ItemFn, options: &TokenStream) -> TokenStream {
    let shown = documentation(&function.sig, options);
    let namespace = namespace(function, &shown);
    let launch = launch_function(function, &Argument::all(&function.sig), &shown);
    let named = named_tensors(function);
    quote! {
        #namespace

        #launch

        #named
    }
}

/// What the signature calls tensors, which nothing else of the expansion names: an import of that is used by it, and an editor
/// finds what it is.
fn named_tensors(function: &ItemFn) -> TokenStream {
    let names = names_of_tensors(&function.sig);
    quote! {
        const _: () = {
            #(
                #[allow(unused_imports)]
                use #names as _;
            )*
        };
    }
}

/// What the front end made of a kernel, which may stand in a block beneath its [`face`].
pub(crate) fn meaning(function: &ItemFn, seen: &Helpers, lowered: &Lowered) -> TokenStream {
    let text = lowered.text();
    let arguments = &Argument::all(&function.sig);
    let use_of_launch = use_of_launch(function);
    let ir = ir(
        function,
        &quote!(#text),
        &quote!({
            #use_of_launch
            let kernel =
                ::tile::ir::text::parse(Self::IR).expect("the text was printed by this version of the IR");
            ::tile::ir::verify(kernel).expect("the kernel was verified when the macro expanded")
        }),
    );
    let definition = definition(&function.sig.ident, lowered);
    let block = block_function(&lowered.function, arguments, &size_bindings(function, seen));
    let name = &function.sig.ident;
    let best = match lowered.instances.as_slice() {
        [] => choice::refused(function, arguments),
        instances => choice::best(function, arguments, instances),
    };
    quote! {
        #ir

        impl #name {
            #definition
            #block
            #best
        }
    }
}

/// Stands in for a kernel that the front end has refused: callers still find its function and its IR, so
/// that the only errors are the real ones. Nothing of it can run, because compilation has failed.
///
/// A method has no stub: an enum can't stand in an `impl`.
pub(crate) fn stub(function: &ItemFn, seen: &Helpers) -> TokenStream {
    if function.sig.receiver().is_some() {
        return TokenStream::new();
    }
    let arguments = &Argument::all(&function.sig);
    let (namespace, ir) = (namespace(function, ""), ir_of_refused(function));
    let head = head(function, arguments, "");
    let (name, best) = (&function.sig.ident, choice::head(function, arguments));
    // While a kernel is being written it is mostly wrong; completion should work in its body all the same.
    let block = block_function(function, arguments, &size_bindings(function, seen));
    quote! {
        #namespace
        #ir
        #[allow(unused_variables, unexpected_cfgs, clippy::all)]
        #head {
            #[cfg(rust_analyzer)]
            #block
            loop {}
        }

        #[allow(unused_variables, dead_code)]
        impl #name {
            #best {
                loop {}
            }
        }
    }
}

/// [`stub`] for a kernel whose [`face`] stands already: what that calls.
pub(crate) fn meaning_of_refused(function: &ItemFn, seen: &Helpers) -> TokenStream {
    let arguments = &Argument::all(&function.sig);
    let (name, best) = (&function.sig.ident, choice::head(function, arguments));
    let block = block_function(function, arguments, &size_bindings(function, seen));
    let mut without_body = function.clone();
    without_body.block = syn::parse_quote!({ loop {} });
    let empty = block_function(&without_body, arguments, &[]);
    let ir = ir_of_refused(function);
    quote! {
        #ir

        #[allow(unused_variables, dead_code, unexpected_cfgs, non_local_definitions, clippy::all)]
        impl #name {
            fn __tile_definition() -> &'static ::tile::launch::KernelDef {
                loop {}
            }
            #[cfg(rust_analyzer)]
            #block
            #[cfg(not(rust_analyzer))]
            #empty
            #best {
                loop {}
            }
        }
    }
}

/// `enum matmul {}`: the type namespace is free next to a function. Its documentation shows the kernel.
fn namespace(function: &ItemFn, shown: &str) -> TokenStream {
    let (name, visibility) = (&function.sig.ident, &function.vis);
    let ty = of_macro(name);
    let doc = format!("The tile IR of the kernel [`{name}`](fn@{name}).\n\n{shown}");
    let hidden = function.attrs.iter().filter(|it| is_hidden(it));
    quote! {
        #[doc = #doc]
        #(#hidden)*
        #visibility enum #ty {}
    }
}

/// `#[doc(hidden)]`, which is of a kernel's type as of its launch function.
fn is_hidden(attribute: &Attribute) -> bool {
    matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("doc") && list.tokens.to_string() == "hidden")
}

/// A name of the author's as one that a macro gives to an item of its own: editors find it where it is, and no lint is about
/// it. An attribute that allows such lints would be refused where the author forbids one.
pub(crate) fn of_macro(name: &Ident) -> Ident {
    Ident::new(&name.to_string(), name.span().resolved_at(Span::call_site()))
}

/// The kernel's IR, as text and as a value.
fn ir(function: &ItemFn, text: &TokenStream, ir: &TokenStream) -> TokenStream {
    let name = &function.sig.ident;
    quote! {
        impl #name {
            /// The kernel in the IR's text form, with source locations.
            pub const IR: &'static str = #text;

            /// The kernel in tile IR; it prints without locations, for snapshot tests.
            pub fn ir() -> ::tile::ir::VerifiedKernel #ir
        }
    }
}

fn ir_of_refused(function: &ItemFn) -> TokenStream {
    ir(function, &quote!(""), &quote!({ loop {} }))
}

/// What the program holds of the kernel, whichever way it is launched.
fn definition(name: &Ident, lowered: &Lowered) -> TokenStream {
    let text = name.to_string();
    let embedded = embedded_code(&text, lowered.fingerprint());
    // Errors of the kernel's launches name the place of this call.
    let new = quote_spanned!(name.span() => ::tile::launch::KernelDef::new(#text, #name::IR, #embedded));
    quote! {
        #[doc(hidden)]
        fn __tile_definition() -> &'static ::tile::launch::KernelDef {
            static KERNEL: ::tile::launch::KernelDef = #new;
            &KERNEL
        }
    }
}

/// The launch function up to its body: attributes, name, generics, host types. Behind its documentation, if its author wrote
/// any, stands `shown`.
///
/// Its first and its last token are the author's, as are those of [`launch_function`]: rustc takes a function for one that a
/// macro has made where they aren't, and says nothing of one that nobody calls.
fn head(function: &ItemFn, arguments: &[Argument], shown: &str) -> TokenStream {
    let (attributes, visibility, name) =
        (lints::of_launch(&function.attrs), &function.vis, &function.sig.ident);
    let is_documented = attributes.iter().any(|attribute| attribute.path().is_ident("doc"));
    let shown = (is_documented && !shown.is_empty()).then(|| format!("\n{shown}"));
    let shown = shown.map(|shown| quote!(#[doc = #shown]));
    let generics = function.sig.generics.params.iter();
    let bounds = &function.sig.generics.where_clause;
    let arguments = host_arguments(arguments);
    let fn_token = &function.sig.fn_token;
    let end = Token![>](function.sig.paren_token.span.close());
    quote! {
        #(#attributes)*
        #shown
        #[allow(clippy::too_many_arguments)]
        #[track_caller]
        #visibility #fn_token #name<'tile, #(#generics),*>(#(#arguments),*) -> ::tile::Launch<'tile #end #bounds
    }
}

/// The arguments of a launch function, with their types.
fn host_arguments(arguments: &[Argument]) -> impl Iterator<Item = TokenStream> {
    arguments.iter().map(|Argument { name, kind, lints, .. }| {
        let (ty, allowed) = (host_type(kind), lints::of_host_argument(lints));
        quote!(#allowed #name: #ty)
    })
}

fn host_type(kind: &ArgumentKind) -> TokenStream {
    match kind {
        ArgumentKind::Tensor { element, mutable: false, .. } => quote!(&'tile ::tile::TensorRef<#element>),
        ArgumentKind::Tensor { element, mutable: true, .. } => quote!(&'tile mut ::tile::TensorRef<#element>),
        ArgumentKind::Optional { element, mutable: false, .. } => {
            quote!(::core::option::Option<&'tile ::tile::TensorRef<#element>>)
        }
        ArgumentKind::Optional { element, mutable: true, .. } => {
            quote!(::core::option::Option<&'tile mut ::tile::TensorRef<#element>>)
        }
        ArgumentKind::OptionalScalar(ty) => quote!(::core::option::Option<#ty>),
        ArgumentKind::Array { element, length } => {
            let element = host_type(element);
            quote!([#element; #length])
        }
        ArgumentKind::Scalar(ty) => quote!(#ty),
    }
}

fn launch_function(function: &ItemFn, arguments: &[Argument], shown: &str) -> TokenStream {
    let head = head(function, arguments, shown);
    let name = &function.sig.ident;
    let parameters = &function.sig.generics.params;
    let bind_parameters = parameters.iter().filter_map(bind_parameter);
    let bind_arguments = bind_arguments(arguments);
    let parameters: Vec<_> = parameters.iter().filter_map(pass_parameter).collect();
    let views = views_name();
    let call = block_call(function, arguments, &parameters);
    let mut body = Group::new(
        Delimiter::Brace,
        quote! {
            ::tile::Launch::new(#name::__tile_definition())
                #(#bind_parameters)* #(#bind_arguments)* .reference(|#views| #call)
        },
    );
    body.set_span(function.block.brace_token.span.join());
    quote!(#head #body)
}

/// Tells a launch what a compile-time parameter is.
fn bind_parameter(parameter: &GenericParam) -> Option<TokenStream> {
    match parameter {
        GenericParam::Const(ConstParam { ident, .. }) => {
            let name = ident.to_string();
            Some(quote!(.constant(#name, #ident)))
        }
        GenericParam::Type(TypeParam { ident, .. }) => {
            let name = ident.to_string();
            Some(quote!(.element::<#ident>(#name)))
        }
        GenericParam::Lifetime(_) => None,
    }
}

/// Passes a compile-time parameter on, in `<…>`.
fn pass_parameter(parameter: &GenericParam) -> Option<TokenStream> {
    match parameter {
        // In braces a constant is no type of that name.
        GenericParam::Const(ConstParam { ident, .. }) => Some(quote!({ #ident })),
        GenericParam::Type(TypeParam { ident, .. }) => Some(ident.to_token_stream()),
        GenericParam::Lifetime(_) => None,
    }
}

/// Passes the arguments to a launch.
fn bind_arguments(arguments: &[Argument]) -> impl Iterator<Item = TokenStream> {
    arguments.iter().map(|Argument { name, kind, .. }| {
        let text = name.to_string();
        let method = match kind {
            ArgumentKind::Tensor { mutable: false, .. } => "tensor",
            ArgumentKind::Tensor { mutable: true, .. } => "tensor_mut",
            ArgumentKind::Optional { mutable: false, .. } => "optional_tensor",
            ArgumentKind::Optional { mutable: true, .. } => "optional_tensor_mut",
            ArgumentKind::OptionalScalar(_) => "optional_scalar",
            ArgumentKind::Array { element, .. } => match **element {
                ArgumentKind::Tensor { mutable: false, .. } => "tensor_array",
                ArgumentKind::Tensor { mutable: true, .. } => "tensor_array_mut",
                _ => "scalar_array",
            },
            ArgumentKind::Scalar(_) => "scalar",
        };
        let method = format_ident!("{method}");
        quote!(.#method(#text, #name))
    })
}

/// The kernel's body, against the kernel-side types.
fn block_function(function: &ItemFn, arguments: &[Argument], sizes: &[TokenStream]) -> TokenStream {
    let generics = function.sig.generics.params.iter();
    let bounds = &function.sig.generics.where_clause;
    let (said, allowed) = (lints::of_block(&function.attrs), lints::allowed());
    let body = &function.block.stmts;
    let views = arguments.iter().map(|Argument { name, mutable, lints, kind }| {
        let (ty, mutable) = (block_type(kind), (*mutable || is_lent(kind)).then(|| quote!(mut)));
        quote!(#(#lints)* #mutable #name: #ty)
    });
    let name = block_name();
    quote! {
        #(#said)*
        #allowed
        fn #name<#(#generics),*>(#(#views),*) #bounds {
            #(#sizes)*
            #(#body)*
        }
    }
}

fn block_type(kind: &ArgumentKind) -> TokenStream {
    let view = |element: &TokenStream, rank: usize, mutable: bool| {
        let rank = Literal::usize_unsuffixed(rank);
        match mutable {
            false => quote!(&::tile::kernel::TensorView<'_, #element, #rank>),
            true => quote!(&mut ::tile::kernel::TensorViewMut<'_, #element, #rank>),
        }
    };
    match kind {
        ArgumentKind::Tensor { element, extents, mutable } => view(element, extents.len(), *mutable),
        ArgumentKind::Optional { element, rank, mutable } => {
            let view = view(element, *rank, *mutable);
            quote!(::core::option::Option<#view>)
        }
        ArgumentKind::OptionalScalar(ty) => quote!(::core::option::Option<#ty>),
        ArgumentKind::Array { element, length } => {
            let element = block_type(element);
            quote!([#element; #length])
        }
        ArgumentKind::Scalar(ty) => quote!(#ty),
    }
}

/// Whether an argument is lent where a body names it, rather than moved: outputs that are optional, and arrays of them.
fn is_lent(kind: &ArgumentKind) -> bool {
    match kind {
        ArgumentKind::Optional { mutable, .. } => *mutable,
        ArgumentKind::Array { element, .. } => {
            matches!(**element, ArgumentKind::Tensor { mutable: true, .. })
        }
        ArgumentKind::Tensor { .. } | ArgumentKind::Scalar(_) | ArgumentKind::OptionalScalar(_) => false,
    }
}

/// Runs one block on the reference device, with these compile-time parameters.
fn block_call(function: &ItemFn, arguments: &[Argument], parameters: &[TokenStream]) -> TokenStream {
    let views = views_name();
    // An array has as many positions as elements.
    let mut position = quote!(0);
    let passed = arguments.iter().map(|Argument { kind, .. }| {
        let passed = passed(kind, &position);
        position = match kind {
            ArgumentKind::Array { length, .. } => quote!(#position + (#length)),
            _ => quote!(#position + 1),
        };
        passed
    });
    let passed: Vec<TokenStream> = passed.collect();
    let (kernel, block) = (&function.sig.ident, block_name());
    quote!(::tile::kernel::in_block(#views, || #kernel::#block::<#(#parameters),*>(#(#passed),*)))
}

/// What a block is passed for an argument, which stands from a position on among all.
fn passed(kind: &ArgumentKind, position: &TokenStream) -> TokenStream {
    let views = views_name();
    match kind {
        ArgumentKind::Tensor { mutable: false, .. } => {
            quote!(&::tile::kernel::TensorView::of(#views, #position))
        }
        ArgumentKind::Tensor { mutable: true, .. } => {
            quote!(&mut ::tile::kernel::TensorViewMut::of(#views, #position))
        }
        ArgumentKind::Optional { mutable: false, .. } => {
            quote!(::tile::kernel::TensorView::of_optional(#views, #position).as_ref())
        }
        ArgumentKind::Optional { mutable: true, .. } => {
            quote!(::tile::kernel::TensorViewMut::of_optional(#views, #position).as_mut())
        }
        ArgumentKind::Array { element, length } => {
            let at = Ident::new("__tile_element", Span::mixed_site());
            let each = |value: TokenStream| quote!(::core::array::from_fn::<_, { #length }, _>(|#at| #value));
            match &**element {
                ArgumentKind::Tensor { mutable: false, .. } => {
                    let views = each(quote!(::tile::kernel::TensorView::of(#views, #position + #at)));
                    quote!(#views.each_ref())
                }
                ArgumentKind::Tensor { mutable: true, .. } => {
                    let views = each(quote!(::tile::kernel::TensorViewMut::of(#views, #position + #at)));
                    quote!(#views.each_mut())
                }
                element => each(passed(element, &quote!(#position + #at))),
            }
        }
        ArgumentKind::Scalar(ty) => quote!(#views.scalar::<#ty>(#position)),
        ArgumentKind::OptionalScalar(ty) => quote!(#views.optional_scalar::<#ty>(#position)),
    }
}

/// What a block sees of a launch. A variable of a macro's is another than the author's of its name, but not than a parameter
/// of the kernel, `const arguments: usize`: its name is one that no user chooses.
fn views_name() -> Ident {
    Ident::new("__tile_arguments", Span::mixed_site())
}

/// It stands beside what users call, so its name is one that no user chooses.
fn block_name() -> Ident {
    format_ident!("__tile_block")
}

/// `let m: usize = a.extent(0);` for every run-time size that the body names.
fn size_bindings(function: &ItemFn, seen: &Helpers) -> Vec<TokenStream> {
    let mut used = Identifiers::default();
    used.visit_block(&function.block);
    let sizes = tile_frontend::sizes(&function.sig, seen);
    let sizes = sizes.into_iter().filter(|size| used.0.contains(&size.name));
    let binding = |Size { name, argument, is_of_array, axis }| {
        let tensor = if is_of_array { quote!(#argument[0]) } else { quote!(#argument) };
        // The use may be of a variable that hides the size.
        quote!(#[allow(unused_variables)] let #name: usize = #tensor.extent(#axis);)
    };
    sizes.map(binding).collect()
}

/// The names that expressions use.
#[derive(Default)]
struct Identifiers(HashSet<Ident>);

impl Visit<'_> for Identifiers {
    fn visit_expr_path(&mut self, path: &syn::ExprPath) {
        self.0.extend(path.path.get_ident().cloned());
    }

    fn visit_macro(&mut self, called: &syn::Macro) {
        tile_frontend::macro_expressions(called).iter().for_each(|value| self.visit_expr(value));
    }
}

/// The code that the build script compiled for this kernel, as an expression; an empty list where there is
/// none, or where it was made from another version of the kernel.
///
/// The file's tokens stand here as if this macro had made them, not by `include!`: rustc keeps silent about most lints in
/// them, whatever the author denies or forbids, such as the `unsafe` of a block that declares CPU code.
fn embedded_code(name: &str, fingerprint: u64) -> TokenStream {
    let file = std::env::var_os("TILE_KERNELS")
        .map(|folder| PathBuf::from(folder).join(format!("{name}-{fingerprint:016x}.rs")))
        .filter(|file| file.exists());
    let Some(file) = file.as_deref().and_then(|file| file.to_str()) else { return quote!(&[]) };
    let text = std::fs::read_to_string(file).ok();
    match text.and_then(|text| text.parse::<TokenStream>().ok()) {
        Some(expression) => quote!({
            // For cargo, which compiles anew where the file has changed.
            const _: &[u8] = ::core::include_bytes!(#file);
            #expression
        }),
        // rustc says what is wrong with it.
        None => quote!(::core::include!(#file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a kernel that the front end refuses expands to.
    fn stub_of(body: &str) -> String {
        let source =
            format!("pub fn wrong<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {{ {body} }}");
        let function: ItemFn = syn::parse_str(&source).expect("the test's source is a function");
        let lowered = tile_frontend::lower(TokenStream::new(), function.clone(), "src/main.rs");
        assert!(lowered.is_err(), "the front end refuses it");
        stub(&function, &Helpers::default()).to_string().replace(' ', "")
    }

    #[test]
    fn a_refused_kernel_keeps_its_body_and_its_types() {
        let stub =
            stub_of("let x = x.partition_view([B]); let rows = n; let t = x.load_masked([0]).frobnicate();");
        // rustc skips the body, whose mistakes are reported; rust-analyzer has it, with what its names mean.
        let block = "#[cfg(rust_analyzer)]";
        let (before, body) = stub.split_once(block).expect("the body is for rust-analyzer");
        assert!(before.contains("pubfnwrong<'tile,constB:usize>"), "{before}");
        let kept = [
            "fn__tile_block<constB:usize>(x:&::tile::kernel::TensorView<'_,f32,1>,",
            "y:&mut::tile::kernel::TensorViewMut<'_,f32,1>)",
            "letn:usize=x.extent(0usize);",
            "letx=x.partition_view([B]);",
            "lett=x.load_masked([0]).frobnicate();",
        ];
        for part in kept {
            assert!(body.contains(part), "`{part}` isn't in {body}");
        }
    }
}
