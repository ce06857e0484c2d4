//! A kernel's attribute and signature as its author wrote them, for `cargo doc`: the launch function's own signature has the
//! host's types, without the extents of tensors, and nothing of what the kernel demands of them.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Signature;

/// Longest line.
const WIDTH: usize = 100;

/// The documentation that shows a kernel with these options.
pub(super) fn documentation(signature: &Signature, options: &TokenStream) -> String {
    let options = if options.is_empty() { String::new() } else { format!("({})", spaced(options.clone())) };
    format!("```text\n#[tile_kernel{options}]\n{}\n```", signature_text(signature))
}

/// The signature, on a line if that is short enough, else with a line for each argument.
fn signature_text(signature: &Signature) -> String {
    let generics = signature.generics.params.to_token_stream();
    let generics = if generics.is_empty() { String::new() } else { format!("<{}>", spaced(generics)) };
    let head = format!("fn {}{generics}", signature.ident);
    let arguments: Vec<String> =
        signature.inputs.iter().map(|argument| spaced(argument.to_token_stream())).collect();
    let bounds = signature.generics.where_clause.as_ref();
    let bounds = bounds.map_or_else(String::new, |bounds| format!(" {}", spaced(bounds.to_token_stream())));
    let short = format!("{head}({}){bounds}", arguments.join(", "));
    if short.len() <= WIDTH {
        return short;
    }
    let lines: String = arguments.iter().map(|argument| format!("    {argument},\n")).collect();
    format!("{head}(\n{lines}){bounds}")
}

/// Tokens with the spaces that they have in a signature; documentation and attributes are left out.
fn spaced(tokens: TokenStream) -> String {
    let mut text = String::new();
    push(tokens, &mut text);
    text
}

fn push(tokens: TokenStream, text: &mut String) {
    // Whether what comes next stands right behind what was written.
    let mut is_tight = true;
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => drop(tokens.next()),
            TokenTree::Punct(mark) => {
                let (sign, joins) = (mark.as_char(), mark.spacing() == Spacing::Joint);
                if matches!(sign, '=' | '+' | '*' | '/' | '%' | '|' | '-' | '&' | '\'') && !is_tight {
                    text.push(' ');
                }
                text.push(sign);
                let is_path = sign == ':' && text.ends_with("::");
                is_tight = joins || is_path || matches!(sign, '&' | '<' | '.' | '\'' | '?' | '!');
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                let is_call = text.ends_with(|last: char| last.is_alphanumeric() || last == '_');
                if !is_tight && !is_call {
                    text.push(' ');
                }
                text.push_str(open);
                push(group.stream(), text);
                text.push_str(close);
                is_tight = false;
            }
            token => {
                if !is_tight {
                    text.push(' ');
                }
                text.push_str(&token.to_string());
                is_tight = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> String {
        signature_text(&syn::parse_str(source).unwrap())
    }

    #[test]
    fn signatures_read_as_they_were_written() {
        for source in [
            "fn scale<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>, by: f32)",
            "fn sum<T: Number + Copy>(x: Option<&Tensor<T, m, _>>, ys: [&mut Tensor<T, n>; 3])",
            "fn add(x: &Tensor<tile::bf16, 4, 128>) where T: Float",
        ] {
            assert_eq!(text(source), source);
        }
    }

    #[test]
    fn a_long_signature_has_a_line_for_each_argument() {
        let source = "fn matmul<const BM: usize, const BN: usize>(\n    a: &Tensor<bf16, m, k>,\n    \
                      b: &Tensor<bf16, k, n>,\n    c: &mut Tensor<f32, m, n>,\n)";
        assert_eq!(text(source), source);
    }

    #[test]
    fn options_stand_above() {
        let signature = syn::parse_str("fn f(x: &Tensor<f32, n>)").unwrap();
        let options: TokenStream =
            "grid = [n.div_ceil(4), 2], where(n % 4 == 0), instances(B = 64 | 128)".parse().unwrap();
        let expected = "```text\n#[tile_kernel(grid = [n.div_ceil(4), 2], where(n % 4 == 0), \
                        instances(B = 64 | 128))]\nfn f(x: &Tensor<f32, n>)\n```";
        assert_eq!(documentation(&signature, &options), expected);
    }

    #[test]
    fn attributes_of_arguments_are_left_out() {
        assert_eq!(text("fn f(#[expect(unused)] x: i32)"), "fn f(x: i32)");
    }
}
