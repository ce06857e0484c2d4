//! `tile_println!` and `tile_assert!` as syntax: their condition, text and arguments.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::ParseStream;
use syn::visit_mut::VisitMut;
use syn::{Expr, Ident, LitStr, Macro, Token};
use tile_ir::message::{Name, Part, parts};

/// An argument behind the text.
pub(crate) struct Argument {
    /// `x` of `x = value`.
    pub(crate) name: Option<Ident>,
    pub(crate) value: Expr,
}

/// A call of one of the two macros.
pub(crate) struct Call {
    /// What must hold; a call of `tile_println!` has none.
    pub(crate) condition: Option<Expr>,
    pub(crate) template: Option<LitStr>,
    pub(crate) arguments: Vec<Argument>,
}

/// Reads a call; `None` for other macros.
pub(crate) fn read(called: &Macro) -> Option<syn::Result<Call>> {
    let name = called.path.segments.last()?.ident.to_string();
    let asserts = match name.as_str() {
        "tile_println" => false,
        "tile_assert" => true,
        _ => return None,
    };
    Some(called.parse_body_with(|input: ParseStream<'_>| call(input, asserts)))
}

fn call(input: ParseStream<'_>, asserts: bool) -> syn::Result<Call> {
    let condition = if asserts { Some(input.parse::<Expr>()?) } else { None };
    if asserts && !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    let mut call = Call { condition, template: None, arguments: Vec::new() };
    if input.is_empty() {
        return Ok(call);
    }
    if !input.peek(LitStr) {
        return Err(input.error("the text is a string literal, as in `\"x = {}\", x`"));
    }
    call.template = Some(input.parse()?);
    while !input.is_empty() {
        input.parse::<Token![,]>()?;
        if input.is_empty() {
            break;
        }
        let named = input.peek(Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]);
        let name = if named { Some(input.parse()?) } else { None };
        if named {
            input.parse::<Token![=]>()?;
        }
        call.arguments.push(Argument { name, value: input.parse()? });
    }
    Ok(call)
}

/// Says in a call what the names in its text are, where they are known by other ones.
pub(crate) fn name_captured(called: &mut Macro, other: impl Fn(&str) -> Option<Ident>) {
    let Some(Ok(mut call)) = read(called) else { return };
    for name in call.captured() {
        let is_argument = call.arguments.iter().any(|argument| argument.name.as_ref() == Some(&name));
        if let Some(other) = other(&name.to_string()).filter(|_| !is_argument) {
            call.arguments.push(Argument { name: Some(name), value: syn::parse_quote!(#other) });
            called.tokens = call.tokens();
        }
    }
}

impl Call {
    /// What is said where there is no text: the condition as the author wrote it.
    pub(crate) fn condition_text(&self) -> String {
        let mut text = String::new();
        self.condition.iter().for_each(|condition| append(&mut text, condition.to_token_stream()));
        text
    }

    /// Changes every expression.
    pub(crate) fn rewrite(&mut self, visitor: &mut impl VisitMut) {
        // Before the condition is changed into what its author didn't write.
        if let (None, Some(condition)) = (&self.template, &self.condition) {
            let text = self.condition_text().replace('{', "{{").replace('}', "}}");
            self.template = Some(LitStr::new(&text, syn::spanned::Spanned::span(condition)));
        }
        let arguments = self.arguments.iter_mut().map(|argument| &mut argument.value);
        self.condition.iter_mut().chain(arguments).for_each(|value| visitor.visit_expr_mut(value));
    }

    /// What stands in the call's parentheses.
    pub(crate) fn tokens(&self) -> TokenStream {
        let condition = self.condition.iter().map(ToTokens::to_token_stream);
        let template = self.template.iter().map(ToTokens::to_token_stream);
        let arguments = self.arguments.iter().map(|Argument { name, value }| match name {
            Some(name) => quote!(#name = #value),
            None => quote!(#value),
        });
        let all = condition.chain(template).chain(arguments);
        quote!(#(#all),*)
    }

    /// The names in the text.
    fn captured(&self) -> Vec<Ident> {
        let text = self.template.as_ref().map(LitStr::value).unwrap_or_default();
        let names = parts(&text).unwrap_or_default().into_iter().filter_map(|part| match part {
            Part::Place { name: Name::Named(name), .. } => syn::parse_str(name).ok(),
            _ => None,
        });
        names.collect()
    }

    /// The expressions, and the names that the text captures.
    pub(crate) fn expressions(self) -> Vec<Expr> {
        let captured: Vec<Expr> = self.captured().iter().map(|name| syn::parse_quote!(#name)).collect();
        let arguments = self.arguments.into_iter().map(|argument| argument.value);
        self.condition.into_iter().chain(arguments).chain(captured).collect()
    }
}

/// Tokens as an author writes them. Written here because rustc and a build script space them differently.
fn append(text: &mut String, tokens: TokenStream) {
    // Whether the next token follows without a space, an operand has just ended, a punctuation goes on.
    let (mut glued, mut operand, mut joint, mut angles) = (true, false, false, 0);
    for token in tokens {
        let sign = if let TokenTree::Punct(punct) = &token { Some(punct.as_char()) } else { None };
        let opens = sign == Some('<') && text.ends_with("::");
        let closes = sign == Some('>') && angles > 0;
        let hugs = match &token {
            TokenTree::Group(group) => operand && group.delimiter() != Delimiter::Brace,
            _ => opens || closes || matches!(sign, Some('.' | ',' | ';' | '?' | ':')),
        };
        if !glued && !hugs {
            text.push(' ');
        }
        match token {
            TokenTree::Group(group) => {
                append_group(text, &group);
                (glued, operand, joint) = (false, true, false);
            }
            TokenTree::Punct(punct) => {
                let is_prefix = matches!(sign, Some('-' | '!' | '&' | '*')) && !operand && !joint;
                text.push(punct.as_char());
                angles += i32::from(opens) - i32::from(closes);
                joint = punct.spacing() == Spacing::Joint;
                glued = joint || is_prefix || opens || matches!(sign, Some('.' | ':'));
                operand = closes;
            }
            token => {
                text.push_str(&token.to_string());
                (glued, operand, joint) = (false, true, false);
            }
        }
    }
}

fn append_group(text: &mut String, group: &proc_macro2::Group) {
    let (open, close) = match group.delimiter() {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::Brace => ("{ ", " }"),
        Delimiter::None => ("", ""),
    };
    text.push_str(open);
    append(text, group.stream());
    text.push_str(close);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_shown_as_they_are_written() {
        for text in [
            "x.sum(0).item() >= 0.0",
            "-a < b && !(c == d)",
            "f32::MAX > x.max([0, 1])",
            "x.cast::<i32>() == n - 1",
        ] {
            let called: Macro = syn::parse_str(&format!("tile_assert!({text})")).expect("a macro call");
            let call = read(&called).expect("one of the two").expect("a condition");
            assert_eq!(call.condition_text(), text);
        }
    }
}
