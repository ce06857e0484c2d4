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
    pub(super) fn unknown_function(&mut self, path: &Path, call: &ExprCall) -> Lowered<Val> {
        let unknown = Unknown::of(path, "this kernel");
        let help = if unknown.may_be_elsewhere && self.is_constant {
            "a constant calls the `const fn`s of its own `#[tile_kernels]` module, which the macro computes too, and none that \
             `use` brings: write this one there, or the value"
                .to_owned()
        } else {
            unknown.help
        };
        let diagnostic = Diagnostic::new(call.func.span(), unknown.message).help(help);
        if !unknown.may_be_elsewhere {
            return self.report(diagnostic);
        }
        // What a function of another module calls is not to be found from here.
        self.report(diagnostic.missing(path, self.text.is_elsewhere))
    }
}

/// What a message says of a function that a kernel or a function, the one who sees, doesn't find.
pub(crate) struct Unknown {
    pub(crate) message: String,
    pub(crate) help: String,
    /// Whether there may be a function of this name in another module.
    may_be_elsewhere: bool,
}

impl Unknown {
    pub(crate) fn of(path: &Path, seer: &str) -> Unknown {
        let text = path_text(path);
        let mut names = path.segments.iter().rev().map(|segment| segment.ident.to_string());
        let (name, owner) = (names.next().unwrap_or_default(), names.next());
        if let Some((written, help)) = of_rust(path, &name, owner.as_deref()) {
            let message = format!("`{written}` isn't a function of kernels");
            return Unknown { message, help, may_be_elsewhere: false };
        }
        let help = match names::help_of_function(&name) {
            Some(near) if near.ends_with('?') => format!("{near} A function of yours needs `#[tile_fn]`"),
            Some(near) => format!("{near}; a function of yours needs `#[tile_fn]`"),
            None => format!(
                "kernels call the functions of `tile::prelude`, and functions with `#[tile_fn]`: write that above `{text}`, if it is yours"
            ),
        };
        let message = format!("`{text}` isn't a function that {seer} sees");
        Unknown { message, help, may_be_elsewhere: true }
    }
}

/// A function of Rust or another language as a message names it, and what to write instead.
fn of_rust(path: &Path, name: &str, owner: Option<&str>) -> Option<(String, String)> {
    let text = path_text(path);
    if let Some(owner) = owner
        && let Some(help) = names::help_of_type(owner).or_else(|| names::help_of_foreign_type(owner))
    {
        return Some((format!("{owner}::{name}"), help.to_owned()));
    }
    if let Some(owner) = owner
        && (DType::from_rust_name(owner).is_some() || names::is_of_standard_library(path))
    {
        return Some((text, names::help_of_standard(owner, name)));
    }
    if let Some(help) = help_of_rust(owner, name) {
        return Some((text, help));
    }
    if names::is_foreign(path) {
        let help =
            format!("{}; a function of a module of yours is `self::{text}`", names::help_of_known(name));
        return Some((text, help));
    }
    let near = names::help_of_function(name);
    names::is_standard_macro(path).then(|| {
        let help = near.unwrap_or_else(|| format!("`{name}` is a macro of Rust; a function of yours with this name is called by its path, `module::{name}(…)`"));
        (name.to_owned(), help)
    })
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
        // A type parameter, by its name.
        (Some(owner), "from" | "from_f32" | "from_f64" | "new") if owner.len() == 1 && is_type(owner) => {
            Some(format!("write `{owner}::of(2.0)` of a literal, `x as {owner}` of a scalar"))
        }
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
