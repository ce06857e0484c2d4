//! `kernel::best(…)`: the launch whose instance the runtime chooses, of those that `instances(…)` names.
//!
//! Element types, `bool`s and the lengths of arrays of arguments say what is computed: they are parameters of the
//! function, as of the kernel's own. The other const parameters say how, and are what is chosen.

use super::mention::{deprecated, mention};
use super::{bind_arguments, bind_parameter, block_call, host_arguments, pass_parameter, views_name};
use crate::lints;
use crate::signature::{Argument, is_chosen};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::BTreeMap;
use syn::{GenericParam, ItemFn, parse_quote};
use tile_frontend::{Binding, Bindings};

/// The function up to its body.
pub(super) fn head(function: &ItemFn, arguments: &[Argument]) -> TokenStream {
    let (visibility, name) = (&function.vis, &function.sig.ident);
    let (given, lints) = (given(function, arguments), lints::of_choice(&function.attrs));
    let deprecated = deprecated(function);
    let bounds = &function.sig.generics.where_clause;
    let arguments = host_arguments(arguments);
    let doc = format!(
        "A launch of [`{name}`](fn@{name}) as the instance, of those that its attribute names, for which the cost \
         model predicts the least time with the tensors' device and sizes. `.choices()` of it shows why."
    );
    quote! {
        #[doc = #doc]
        #deprecated
        #(#lints)*
        #[allow(clippy::too_many_arguments)]
        #[track_caller]
        #visibility fn best<'tile, #(#given),*>(#(#arguments),*) -> ::tile::Launch<'tile> #bounds
    }
}

/// The parameters that say what is computed.
fn given<'f>(function: &'f ItemFn, arguments: &[Argument]) -> impl Iterator<Item = &'f GenericParam> {
    function.sig.generics.params.iter().filter(move |parameter| !is_chosen(parameter, arguments))
}

/// The function.
pub(super) fn best(function: &ItemFn, arguments: &[Argument], instances: &[Bindings]) -> TokenStream {
    let head = head(function, arguments);
    let candidates = instances.iter().map(candidate);
    let given = given(function, arguments).filter_map(bind_parameter);
    let arms = arms(function, arguments, instances);
    // No argument is called so where a macro's own variables are.
    let name = &function.sig.ident;
    let launch = Ident::new(&name.to_string(), name.span().resolved_at(Span::mixed_site()));
    let first = values(function, arguments, &chosen(function, arguments, &instances[0]));
    let mention = mention(function, &launch, &first);
    let (bound, views) = (bind_arguments(arguments), views_name());
    quote! {
        #head {
            // For rustc, a kernel that is launched this way is one that is used.
            #mention
            ::tile::Launch::choosing(Self::__tile_definition(), &[#(&[#(#candidates),*]),*])
                #(#given)* #(#bound)*
                .reference(|#views| match #views.instance() {
                    #(#arms)*
                    _ => ::core::unreachable!("there is no such instance"),
                })
        }
    }
}

/// The function of a kernel that names no instances: a call of it is an error that says what to write.
pub(super) fn refused(function: &ItemFn, arguments: &[Argument]) -> TokenStream {
    let mut function = function.clone();
    let name = &function.sig.ident;
    // A bound of no parameter is checked where it stands, one that speaks of any lifetime where the function is called.
    let bound = parse_quote!(for<'any> #name: ::tile::launch::NamesInstances<'any>);
    function.sig.generics.make_where_clause().predicates.push(bound);
    let head = head(&function, arguments);
    quote! {
        #[doc(hidden)]
        #[allow(unused_variables)]
        #head {
            ::core::unreachable!("no type meets the bound")
        }
    }
}

/// What an instance binds: names and values.
fn candidate(bindings: &Bindings) -> Vec<TokenStream> {
    let binding = |(name, value): &(String, Binding)| match value {
        Binding::Const(value) => {
            let value = Literal::usize_unsuffixed(*value);
            quote!((#name, ::tile::embedded::Binding::Const(#value)))
        }
        Binding::Bool(value) => quote!((#name, ::tile::embedded::Binding::Bool(#value))),
        Binding::Elem(dtype) => {
            let variant = format_ident!("{dtype:?}");
            quote!((#name, ::tile::embedded::Binding::Elem(::tile::ir::DType::#variant)))
        }
    };
    bindings.iter().map(binding).collect()
}

/// How a block of each instance runs as Rust. What isn't chosen is the launch's, so instances that differ in nothing else
/// share an arm.
fn arms(function: &ItemFn, arguments: &[Argument], instances: &[Bindings]) -> Vec<TokenStream> {
    let mut by_constants: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    for (number, bindings) in instances.iter().enumerate() {
        by_constants.entry(chosen(function, arguments, bindings)).or_default().push(number);
    }
    let arm = |(constants, numbers): (Vec<usize>, Vec<usize>)| {
        let call = block_call(function, arguments, &values(function, arguments, &constants));
        let numbers = numbers.into_iter().map(Literal::usize_unsuffixed);
        quote!(#(#numbers)|* => #call,)
    };
    by_constants.into_iter().map(arm).collect()
}

/// What an instance has chosen.
fn chosen(function: &ItemFn, arguments: &[Argument], instance: &Bindings) -> Vec<usize> {
    let lengths = given(function, arguments).filter_map(|parameter| match parameter {
        GenericParam::Const(parameter) => Some(parameter.ident.to_string()),
        _ => None,
    });
    let given: Vec<String> = lengths.collect();
    let constants = instance.iter().filter_map(|(name, value)| match value {
        Binding::Const(value) if !given.contains(name) => Some(*value),
        Binding::Const(_) | Binding::Bool(_) | Binding::Elem(_) => None,
    });
    constants.collect()
}

/// The kernel's parameters, of which these are chosen and others are those of the function.
fn values(function: &ItemFn, arguments: &[Argument], chosen: &[usize]) -> Vec<TokenStream> {
    let mut chosen = chosen.iter().copied().map(Literal::usize_unsuffixed);
    let value = |parameter: &GenericParam| {
        let constant = if is_chosen(parameter, arguments) { chosen.next() } else { None };
        constant.map_or_else(|| pass_parameter(parameter), |value| Some(quote!(#value)))
    };
    function.sig.generics.params.iter().filter_map(value).collect()
}
