//! What a kernel's author says of lints. A kernel is two functions for rustc: the one that launches it, which uses all
//! arguments, and the one that has its body. What is expected happens in one of them.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Meta, Token, parse_quote};

/// Lints of what a function is called and who calls it: of the launch function.
const OF_ITEMS: &[&str] = &["dead_code", "missing_docs", "non_snake_case", "unreachable_pub"];

/// Lints that both functions allow, because what they are about nobody wrote, or is how kernels are written: indexing by a
/// counter is how one goes through several arrays, outputs are lent, and operators are calls.
const ALLOWED: &[&str] = &[
    "clippy::too_many_arguments",
    "clippy::needless_range_loop",
    "clippy::needless_option_as_deref",
    "clippy::redundant_closure",
    "unused_mut",
];

/// Whether an attribute says something of lints.
pub(crate) fn is_lint(attribute: &Attribute) -> bool {
    ["allow", "expect", "warn", "deny", "forbid"].iter().any(|lint| attribute.path().is_ident(lint))
}

/// The attributes of a kernel that its launch function has.
pub(crate) fn of_launch(attributes: &[Attribute]) -> Vec<Attribute> {
    let launch = |attribute| with_expectations(&denied(attribute), is_of_item, |lint| !is_allowed(lint));
    attributes.iter().flat_map(launch).collect()
}

/// What is forbidden as what is denied: beside `forbid` rustc refuses [`allowed`].
fn denied(attribute: &Attribute) -> Attribute {
    match &attribute.meta {
        Meta::List(list) if list.path.is_ident("forbid") => {
            let (word, lints) = (Ident::new("deny", list.path.span()), &list.tokens);
            parse_quote!(#[#word(#lints)])
        }
        _ => attribute.clone(),
    }
}

/// What an argument of the functions that launch has of the lints at it: about its name the function with the body says all
/// there is to say.
pub(crate) fn of_host_argument(lints: &[Attribute]) -> Option<TokenStream> {
    let silencing = lints.iter().filter(|it| it.path().is_ident("allow") || it.path().is_ident("expect"));
    let mut named = silencing
        .flat_map(|it| it.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated))
        .flatten();
    named.any(|lint| lint.path().is_ident("non_snake_case")).then(|| quote!(#[allow(non_snake_case)]))
}

/// Those that the function with its body has.
pub(crate) fn of_block(attributes: &[Attribute]) -> Vec<Attribute> {
    let block = |attribute| {
        with_expectations(&denied(attribute), |it| !is_of_item(it) && !is_allowed(it), is_of_item)
    };
    attributes.iter().filter(|attribute| is_lint(attribute)).flat_map(block).collect()
}

/// Those of a launch that chooses: about its parameters the other two say all there is to say.
pub(crate) fn of_choice(attributes: &[Attribute]) -> Vec<Attribute> {
    let silencing =
        attributes.iter().filter(|it| it.path().is_ident("allow") || it.path().is_ident("expect"));
    silencing
        .flat_map(|attribute| with_expectations(attribute, |_| false, |lint| !is_of_item(lint)))
        .collect()
}

/// The attribute that allows what both functions allow.
pub(crate) fn allowed() -> TokenStream {
    let lints = ALLOWED.iter().map(|lint| lint.parse::<TokenStream>().expect("it is a path"));
    quote!(#[allow(#(#lints),*)])
}

fn is_of_item(lint: &str) -> bool {
    OF_ITEMS.contains(&lint)
}

fn is_allowed(lint: &str) -> bool {
    ALLOWED.contains(&lint)
}

/// An attribute as a function has it that expects some of the lints of an `expect`, and allows some of the others.
fn with_expectations(
    attribute: &Attribute,
    is_expected: impl Fn(&str) -> bool,
    is_allowed: impl Fn(&str) -> bool,
) -> Vec<Attribute> {
    let listed = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    let (true, Ok(listed)) = (attribute.path().is_ident("expect"), listed) else {
        return vec![attribute.clone()];
    };
    let (lints, reason): (Vec<Meta>, Vec<Meta>) =
        listed.into_iter().partition(|meta| matches!(meta, Meta::Path(_)));
    let name = |lint: &Meta| lint.to_token_stream().to_string().replace(' ', "");
    let (expected, others): (Vec<Meta>, Vec<Meta>) =
        lints.into_iter().partition(|lint| is_expected(&name(lint)));
    let allowed: Vec<Meta> = others.into_iter().filter(|lint| is_allowed(&name(lint))).collect();
    let mut attributes = Vec::new();
    if !expected.is_empty() {
        attributes.push(parse_quote!(#[expect(#(#expected,)* #(#reason),*)]));
    }
    if !allowed.is_empty() {
        attributes.push(parse_quote!(#[allow(#(#allowed,)* #(#reason),*)]));
    }
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(attributes: &[Attribute]) -> Vec<String> {
        attributes.iter().map(|attribute| attribute.to_token_stream().to_string().replace(' ', "")).collect()
    }

    #[test]
    fn each_expectation_is_of_one_function() {
        let attributes: Vec<Attribute> = vec![
            parse_quote!(#[doc = "x"]),
            parse_quote!(#[expect(unused_variables, dead_code, clippy::redundant_closure, reason = "r")]),
            parse_quote!(#[warn(unused)]),
            parse_quote!(#[forbid(unused)]),
        ];
        let launch = [
            "#[doc=\"x\"]",
            "#[expect(dead_code,reason=\"r\")]",
            "#[allow(unused_variables,reason=\"r\")]",
            "#[warn(unused)]",
            "#[deny(unused)]",
        ];
        assert_eq!(texts(&of_launch(&attributes)), launch);
        let block = [
            "#[expect(unused_variables,reason=\"r\")]",
            "#[allow(dead_code,reason=\"r\")]",
            "#[warn(unused)]",
            "#[deny(unused)]",
        ];
        assert_eq!(texts(&of_block(&attributes)), block);
        let choice = ["#[allow(unused_variables,clippy::redundant_closure,reason=\"r\")]"];
        assert_eq!(texts(&of_choice(&attributes)), choice);
    }
}
