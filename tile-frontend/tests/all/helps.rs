//! What helps offer compiles: every piece of code that a help says to write stands in a kernel of `tests/kernels/helps`,
//! where rustc compiles it and a test compares what it gives. Here the messages are read from the sources, and what they
//! offer is looked for in those kernels, token by token. What a message fills in, and words that stand for anything, as
//! `axis` does, may be any tokens there.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::path::{Path, PathBuf};

/// Words of helps that stand for what a kernel has in their place.
const ANYTHING: &[&str] = &[
    "NAME",
    "after",
    "axis",
    "before",
    "begin",
    "blocks",
    "condition",
    "element",
    "end",
    "shape",
    "starts",
    "value",
];

/// What stands for what a message fills in: at least a token.
const FILLED_IN: &str = "__filled_in";

/// What stands for an ellipsis: any tokens, or none.
const AND_SO_ON: &str = "__and_so_on";

/// The file whose texts are helps from their beginning.
const ALL_HELPS: &str = "foreign.rs";

/// The Rust files in a folder and those below.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let of_entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if path.is_dir() { sources(&path) } else { Vec::from_iter(is_rust.then_some(path)) }
    };
    entries.flat_map(of_entry).collect()
}

fn tokens(path: &Path) -> TokenStream {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The texts in code, but for attributes, documentation among them, and modules of tests.
fn texts(tokens: TokenStream, texts_of: &mut Vec<String>) {
    let mut is_of_test = false;
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        match token {
            TokenTree::Punct(hash) if hash.as_char() == '#' => {
                let is_attribute = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket);
                is_of_test |= rest
                    .next_if(is_attribute)
                    .is_some_and(|group| group.to_string().replace(' ', "") == "[cfg(test)]");
            }
            TokenTree::Group(group) if is_of_test && group.delimiter() == Delimiter::Brace => {
                is_of_test = false
            }
            TokenTree::Group(group) => texts(group.stream(), texts_of),
            TokenTree::Literal(literal) => {
                texts_of.extend(syn::parse_str::<syn::LitStr>(&literal.to_string()).map(|text| text.value()));
            }
            _ => {}
        }
    }
}

/// The code that a text says to write.
fn offered(text: &str, is_help: bool) -> Vec<&str> {
    let Some(start) = text.find("write `").or(is_help.then_some(0)) else { return vec![] };
    text[start..].split('`').skip(1).step_by(2).collect()
}

/// The tokens of an offer, without those that are one name, or a type.
fn pattern(offer: &str) -> Option<Vec<TokenTree>> {
    let (mut code, mut rest, mut is_text) = (String::new(), offer, false);
    while let Some(next) = rest.chars().next() {
        let filled = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
        is_text ^= next == '"';
        rest = match filled {
            _ if rest.starts_with("{{") || rest.starts_with("}}") => {
                code.push(next);
                &rest[2..]
            }
            Some((name, after)) if !is_text && is_name(name) => {
                code += FILLED_IN;
                after
            }
            _ => {
                if next == '…' {
                    code += AND_SO_ON
                } else {
                    code.push(next)
                }
                &rest[next.len_utf8()..]
            }
        };
    }
    let is_type = syn::parse_str::<syn::Type>(&code).is_ok_and(|parsed| {
        !matches!(parsed, syn::Type::Tuple(_) | syn::Type::Paren(_) | syn::Type::Array(_))
    });
    let Ok(stream) = code.parse::<TokenStream>() else { panic!("`{offer}` is no Rust") };
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    (!is_type && tokens.len() > 1).then_some(tokens)
}

/// Whether a word is the wanted one, of which a part may be filled in.
fn is_word(word: &str, wanted: &str) -> bool {
    let filled = wanted.split_once(FILLED_IN);
    filled.map_or(word == wanted, |(before, after)| word.starts_with(before) && word.ends_with(after))
}

/// Whether tokens begin as a pattern says, and also end, where these are all.
fn begins(tokens: &[TokenTree], pattern: &[TokenTree], are_all: bool) -> bool {
    let Some((first, others)) = pattern.split_first() else { return !are_all || tokens.is_empty() };
    if let TokenTree::Ident(word) = first {
        let least = match word.to_string().as_str() {
            AND_SO_ON => Some(0),
            word if word == FILLED_IN || ANYTHING.contains(&word) => Some(1),
            _ => None,
        };
        if let Some(least) = least {
            return (least..=tokens.len()).any(|count| begins(&tokens[count..], others, are_all));
        }
    }
    let Some((token, rest)) = tokens.split_first() else { return false };
    let is_equal = match (token, first) {
        (TokenTree::Group(group), TokenTree::Group(wanted)) => {
            let [inside, wanted_inside] =
                [group, wanted].map(|group| group.stream().into_iter().collect::<Vec<_>>());
            group.delimiter() == wanted.delimiter() && begins(&inside, &wanted_inside, true)
        }
        (TokenTree::Ident(word), TokenTree::Ident(wanted)) => is_word(&word.to_string(), &wanted.to_string()),
        (TokenTree::Punct(punct), TokenTree::Punct(wanted)) => punct.as_char() == wanted.as_char(),
        _ => token.to_string() == first.to_string(),
    };
    is_equal && begins(rest, others, are_all)
}

/// Whether a pattern stands somewhere in tokens.
fn is_in(tokens: &TokenStream, pattern: &[TokenTree]) -> bool {
    let all: Vec<TokenTree> = tokens.clone().into_iter().collect();
    (0..all.len()).any(|start| begins(&all[start..], pattern, false))
        || all.iter().any(|token| matches!(token, TokenTree::Group(group) if is_in(&group.stream(), pattern)))
}

/// The kernels in which offers stand.
fn kernels() -> Vec<TokenStream> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/kernels/helps");
    sources(&folder).iter().map(|path| tokens(path)).collect()
}

fn is_compiled(kernels: &[TokenStream], offer: &str) -> bool {
    pattern(offer).is_none_or(|pattern| kernels.iter().any(|kernel| is_in(kernel, &pattern)))
}

#[test]
fn what_helps_offer_stands_in_a_kernel() {
    let kernels = kernels();
    let mut missing = vec![];
    for krate in ["src", "../tile-ir/src"] {
        for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(krate)) {
            if path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests")) {
                continue;
            }
            let mut said = vec![];
            texts(tokens(&path), &mut said);
            for text in &said {
                let offers = offered(text, path.ends_with(ALL_HELPS));
                let lost = offers.into_iter().filter(|offer| !is_compiled(&kernels, offer));
                missing.extend(lost.map(|offer| format!("{}: {offer}", path.display())));
            }
        }
    }
    missing.sort();
    missing.dedup();
    assert!(missing.is_empty(), "put these into kernels of tests/kernels/helps:\n{}", missing.join("\n"));
}

#[test]
fn what_no_kernel_has_is_found() {
    let kernels = ["{ let y = max(x, 0.0) + ln_1p(exp(-abs(x))); let [a, b] = x.split_even::<2>(1); }"
        .parse()
        .unwrap()];
    for offer in [
        "max(x, 0.0)",
        "ln_1p(exp(-abs(x)))",
        "let [a, b] = x.split_even::<2>(axis);",
        "max(…)",
        "{name}(x, 0.0)",
        "split_{how}::<2>(1)",
    ] {
        assert!(is_compiled(&kernels, offer), "{offer}");
    }
    for offer in [
        "max(x)",
        "ln_1p(-abs(x))",
        "x.split_even::<2>()",
        "max(x, 0.0) + exp(…)",
        "min(x, 0.0)",
        "cut_{how}::<2>(1)",
    ] {
        assert!(!is_compiled(&kernels, offer), "{offer}");
    }
    assert_eq!(offered("values; write `a + b` of tiles, `a - b`", false), ["a + b", "a - b"]);
    assert_eq!(offered("a tile has no `x`", false), [""; 0]);
}
