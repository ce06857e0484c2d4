//! Places in the user's source: from a first token to a last one.
//!
//! Stable Rust can't join two spans into one, and `syn`'s `span()` of an expression is then its first token
//! only. Errors here underline whole expressions, so both ends are kept.

use proc_macro2::{LineColumn, TokenTree};
use quote::ToTokens;

/// From one token to another, both included.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    first: proc_macro2::Span,
    last: proc_macro2::Span,
}

impl Span {
    /// The place of the macro's call, for what has no tokens of its own.
    pub(crate) fn call_site() -> Span {
        proc_macro2::Span::call_site().into()
    }

    /// Where the first token begins: 1-based line, 0-based column.
    pub fn start(&self) -> LineColumn {
        self.first.start()
    }

    /// The first and the last token's place.
    pub fn ends(&self) -> [proc_macro2::Span; 2] {
        [self.first, self.last]
    }
}

impl From<proc_macro2::Span> for Span {
    fn from(span: proc_macro2::Span) -> Span {
        Span { first: span, last: span }
    }
}

/// What has a place.
pub(crate) trait Spanned {
    /// From its first token to its last; the macro's call where it has no token.
    fn span(&self) -> Span;
}

impl<Syntax: ToTokens> Spanned for Syntax {
    fn span(&self) -> Span {
        let mut tokens = self.to_token_stream().into_iter();
        let Some(first) = tokens.next() else { return Span::call_site() };
        let last = tokens.last();
        let last = last.as_ref().unwrap_or(&first);
        Span { first: opening(&first), last: closing(last) }
    }
}

fn opening(token: &TokenTree) -> proc_macro2::Span {
    match token {
        TokenTree::Group(group) if group.delimiter() != proc_macro2::Delimiter::None => group.span_open(),
        TokenTree::Group(group) => {
            group.stream().into_iter().next().map_or(group.span(), |token| opening(&token))
        }
        token => token.span(),
    }
}

fn closing(token: &TokenTree) -> proc_macro2::Span {
    match token {
        TokenTree::Group(group) if group.delimiter() != proc_macro2::Delimiter::None => group.span_close(),
        TokenTree::Group(group) => {
            group.stream().into_iter().last().map_or(group.span(), |token| closing(&token))
        }
        token => token.span(),
    }
}
