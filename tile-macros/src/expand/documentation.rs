//! A kernel's attribute and signature as its author wrote them, for `cargo doc`: the launch function's own signature has the
//! host's types, without the extents of tensors, and nothing of what the kernel demands of them.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Signature;

/// Longest line.
const WIDTH: usize = 100;

/// The documentation that shows a kernel with these options.
pub(super) fn documentation(signature: &Signature, options: &TokenStream) -> String {
    let options = if options.is_empty() {
        String::new()
    } else {
        format!("({})", spaced(options.clone(), Kind::Values))
    };
    format!("```text\n#[tile_kernel{options}]\n{}\n```", signature_text(signature))
}

/// The signature, on a line if that is short enough, else with a line for each argument.
fn signature_text(signature: &Signature) -> String {
    let generics = signature.generics.params.to_token_stream();
    let generics =
        if generics.is_empty() { String::new() } else { format!("<{}>", spaced(generics, Kind::Types)) };
    let head = format!("fn {}{generics}", signature.ident);
    let arguments = signature.inputs.iter().map(ToTokens::to_token_stream);
    let arguments: Vec<String> = arguments.map(|argument| spaced(argument, Kind::Types)).collect();
    let bounds = signature.generics.where_clause.as_ref();
    let bounds = bounds
        .map_or_else(String::new, |bounds| format!(" {}", spaced(bounds.to_token_stream(), Kind::Types)));
    let short = format!("{head}({}){bounds}", arguments.join(", "));
    if short.len() <= WIDTH {
        return short;
    }
    let lines: String = arguments.iter().map(|argument| format!("    {argument},\n")).collect();
    format!("{head}(\n{lines}){bounds}")
}

/// What tokens are: it decides which spaces they have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Parameters and types, in which `<` and `>` are brackets, and `&` stands before a type.
    Types,
    /// Values and conditions, in which they are operators.
    Values,
}

/// Operators of two characters.
const PAIRS: [&str; 9] = ["&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "::"];

/// Tokens with the spaces that rustfmt gives them; documentation and attributes are left out.
fn spaced(tokens: TokenStream, kind: Kind) -> String {
    let mut text = String::new();
    push(tokens, kind, &mut text);
    text
}

fn push(tokens: TokenStream, mut kind: Kind, text: &mut String) {
    // Whether what comes next stands right behind what was written, and whether that is a value, of which an operator that
    // comes next is the second part.
    let (mut is_tight, mut is_value) = (true, false);
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => drop(tokens.next()),
            TokenTree::Punct(mark) => {
                let mut sign = mark.as_char().to_string();
                if let (Spacing::Joint, Some(TokenTree::Punct(next))) = (mark.spacing(), tokens.peek()) {
                    let pair = format!("{sign}{}", next.as_char());
                    if PAIRS.contains(&&*pair) && (kind == Kind::Values || pair == "::") {
                        sign = pair;
                        tokens.next();
                    }
                }
                let (before, after) = spaces(&sign, kind, is_value);
                if before && !is_tight {
                    text.push(' ');
                }
                text.push_str(&sign);
                // In types `->` is two.
                is_tight = !after || sign == "-" && kind == Kind::Types && mark.spacing() == Spacing::Joint;
                is_value = false;
                // The length of an array is a value.
                if sign == ";" {
                    kind = Kind::Values;
                }
            }
            TokenTree::Group(group) => {
                let is_call = text.ends_with(|last: char| last.is_alphanumeric() || last == '_');
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{ ", " }"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                if !is_tight && !is_call {
                    text.push(' ');
                }
                text.push_str(open);
                let of_block = if group.delimiter() == Delimiter::Brace { Kind::Values } else { kind };
                push(group.stream(), of_block, text);
                text.push_str(close);
                (is_tight, is_value) = (false, true);
            }
            token => {
                if !is_tight {
                    text.push(' ');
                }
                text.push_str(&token.to_string());
                (is_tight, is_value) = (false, true);
            }
        }
    }
}

/// Whether there are spaces before and behind a sign that comes after a value or doesn't.
fn spaces(sign: &str, kind: Kind, is_after_value: bool) -> (bool, bool) {
    match (sign, kind) {
        ("." | "::" | "?", _) | ("<", Kind::Types) => (false, false),
        ("," | ";" | ":", _) | (">", Kind::Types) => (false, true),
        ("'" | "!", _) | ("&", Kind::Types) => (true, false),
        (_, Kind::Types) => (true, true),
        (_, Kind::Values) => (true, is_after_value),
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
            "fn pad(x: &Tensor<f32, { m + 1 }, { -m * 2 }>, ys: [Option<&'a Tensor<T, n>>; 1 << 2])",
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
    fn options_read_as_they_were_written() {
        let signature = syn::parse_str("fn f(x: &Tensor<f32, n>)").unwrap();
        for options in [
            "where(n <= COLUMNS, m != n && !CAUSAL || m - 1 > (n + 2) * B)",
            "where(bias.is_some() || !(m < n && B >= 8), k == -1 % B)",
            "instances(T = f32 | bf16, B = 64; T = f32, B = 1), fast_accumulation = FAST, threads = 2 * B",
            "grid = [m.div_ceil(B).max(1), 1 << 4], stages = 3, allow(slow_product)",
        ] {
            let expected = format!("```text\n#[tile_kernel({options})]\nfn f(x: &Tensor<f32, n>)\n```");
            assert_eq!(documentation(&signature, &options.parse().unwrap()), expected);
        }
    }

    #[test]
    fn attributes_of_arguments_are_left_out() {
        assert_eq!(text("fn f(#[expect(unused)] x: i32)"), "fn f(x: i32)");
    }
}
