//! Calls of functions that kernels don't have: those of Rust's library, of other languages, and unknown ones, which
//! may stand in other modules.

use super::{Lowered, Lowering, names};
use crate::diagnostic::Diagnostic;
use crate::helpers::path_text;
use crate::span::Spanned;
use crate::value::Val;
use syn::{ExprCall, Path};
use tile_ir::DType;

impl Lowering {
    pub(super) fn unknown_function(&mut self, name: &str, path: &Path, call: &ExprCall) -> Lowered<Val> {
        let (span, text) = (call.func.span(), path_text(path));
        let owner = path.segments.iter().nth_back(1).map(|segment| segment.ident.to_string());
        if let Some(owner) = &owner
            && let Some(help) = names::help_of_type(owner)
        {
            return self.error(span, format!("`{owner}::{name}` isn't a function of kernels"), help);
        }
        if let Some(owner) = &owner
            && (DType::from_rust_name(owner).is_some() || names::is_of_standard_library(path))
        {
            let help = names::help_of_standard(owner, name);
            return self.error(span, format!("`{text}` isn't a function of kernels"), &help);
        }
        if let Some(help) = help_of_rust(owner.as_deref(), name) {
            return self.error(span, format!("`{text}` isn't a function of kernels"), &help);
        }
        let near = names::help_of_function(name);
        if names::is_foreign(owner.as_deref(), name) {
            let help = near.as_deref().unwrap_or("the functions of kernels are those of `tile::prelude`");
            return self.error(span, format!("`{name}` isn't a function of kernels"), help);
        }
        if names::is_standard_macro(path) {
            let help = near.unwrap_or_else(|| format!("`{name}` is a macro of Rust; a function of yours with this name is called by its path, `module::{name}(…)`"));
            return self.error(span, format!("`{name}` isn't a function of kernels"), &help);
        }
        let help = match near {
            Some(near) if near.ends_with('?') => format!("{near} A function of yours needs `#[tile_fn]`"),
            Some(near) => format!("{near}; a function of yours needs `#[tile_fn]`"),
            None => format!(
                "kernels call the functions of `tile::prelude`, and functions with `#[tile_fn]`: write that above `{text}`, if it is yours"
            ),
        };
        let message = format!("`{text}` isn't a function that this kernel sees");
        let diagnostic = Diagnostic::new(span, message).help(help);
        // What a function of another module calls is not to be found from here.
        self.report(diagnostic.missing(path, self.text.is_elsewhere))
    }
}

/// What to write instead of what Rust's types have: variants, constructors and other functions of a type.
fn help_of_rust(owner: Option<&str>, name: &str) -> Option<String> {
    let is_type = |name: &str| name.starts_with(char::is_uppercase);
    match (owner, name) {
        (None, "Some" | "Ok" | "Err") => Some(OF_OPTIONS.to_owned()),
        (None, "drop") => {
            Some("values of kernels are `Copy`, and nothing is to be freed; leave the call out".to_owned())
        }
        (None, "size_of") => Some("write the number of bytes".to_owned()),
        (Some("Default"), "default") => Some("write the value: `0.0`, `Tile::zeros([M, N])`".to_owned()),
        (Some(owner), "new" | "default") if is_type(owner) => Some(format!(
            "write the value out, `{owner} {{ … }}`, or `#[tile_fn] impl {owner} {{ … }}` around the function, beside the kernel, in a module with `#[tile_kernels]`"
        )),
        (Some(owner), name) if is_type(owner) && is_type(name) => Some(OF_ENUMS.to_owned()),
        (Some(owner), name) if is_type(owner) => Some(format!(
            "write `#[tile_fn] impl {owner} {{ … }}` around `fn {name}`, beside the kernel, in a module with `#[tile_kernels]`"
        )),
        _ => None,
    }
}

/// What is written in place of optional values.
pub(super) const OF_OPTIONS: &str = "only arguments of a kernel are optional: keep a `bool` beside the value, `let (mut found, mut best) = (false, 0);`";

/// What is written in place of variants of an enum.
pub(super) const OF_ENUMS: &str = "kernels have no enums: use integers that `match` looks at, `const RELU: i32 = 0;`, or a const parameter, \
                                   `const MODE: usize`, which is known when an instance is made";
