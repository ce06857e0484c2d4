//! Names that a macro and its caller both bind in a kernel which the macro makes. For rustc they are two variables; the front
//! end tells names by their text, so it refuses what it can't tell apart.
//!
//! Stable Rust doesn't say where a token comes from, but it prints it: `#4 bytes(12..15)`. Where nothing like this is printed,
//! as in a build script, no macro has made the tokens.

use crate::diagnostic::Diagnostic;
use proc_macro2::Span;
use std::collections::{HashMap, HashSet};
use syn::visit::{self, Visit};
use syn::{GenericArgument, Ident, ItemFn, Label, PatIdent, PathArguments, PathSegment, Type};

/// What to say of such names in a function.
pub(crate) fn inside(function: &ItemFn) -> Vec<Diagnostic> {
    let mut names = BoundNames::default();
    // The body's names come after those of the signature, and are what is to be renamed.
    function.sig.inputs.iter().for_each(|input| names.visit_fn_arg(input));
    names.visit_block(&function.block);
    names.diagnostics
}

#[derive(Default)]
struct BoundNames {
    /// By the name, whose text bound it first.
    first: HashMap<String, String>,
    /// Whose texts name sizes of the signature, by the name: for kernels a size is one, whoever names it.
    sizes: HashMap<String, HashSet<String>>,
    diagnostics: Vec<Diagnostic>,
}

impl BoundNames {
    fn bound(&mut self, name: String, span: Span) {
        let Some(origin) = origin(&format!("{span:?}")) else { return };
        let is_others_size = self.sizes.get(&name).is_some_and(|sizes| !sizes.contains(&origin));
        if *self.first.entry(name.clone()).or_insert_with(|| origin.clone()) != origin || is_others_size {
            let message = format!(
                "`{name}` is bound by a macro and by what the macro is given: two variables, which kernels can't tell apart"
            );
            let help = "give the one in the macro a name of its own";
            self.diagnostics.push(Diagnostic::new(span, message).help(help));
        }
    }
}

/// The run-time size that an argument of a tensor's type is: a name in small letters.
fn size(argument: &GenericArgument) -> Option<&Ident> {
    let GenericArgument::Type(Type::Path(path)) = argument else { return None };
    path.path.get_ident().filter(|name| !name.to_string().starts_with(char::is_uppercase))
}

impl<'ast> Visit<'ast> for BoundNames {
    /// The sizes in `Tensor<f32, m, n>`, behind the format; the body sees each as a variable.
    fn visit_path_segment(&mut self, segment: &'ast PathSegment) {
        if let (true, PathArguments::AngleBracketed(arguments)) =
            (segment.ident == "Tensor", &segment.arguments)
        {
            for name in arguments.args.iter().skip(1).filter_map(size) {
                if let Some(origin) = origin(&format!("{:?}", name.span())) {
                    self.sizes.entry(name.to_string()).or_default().insert(origin);
                }
            }
        }
        visit::visit_path_segment(self, segment);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.bound(pattern.ident.to_string(), pattern.ident.span());
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_label(&mut self, label: &'ast Label) {
        self.bound(label.name.to_string(), label.name.ident.span());
    }
}

/// Whether two tokens are of one text, as far as their spans are printed.
pub(crate) fn are_of_one_text(a: Span, b: Span) -> bool {
    let [a, b] = [a, b].map(|span| origin(&format!("{span:?}")));
    a.is_none() || b.is_none() || a == b
}

/// Whose text a span is of, as it is printed.
fn origin(span: &str) -> Option<String> {
    let (context, _) = span.strip_prefix('#')?.split_once(' ')?;
    Some(context.to_owned())
}

#[cfg(test)]
mod tests {
    use super::origin;

    #[test]
    fn origins_are_read_where_they_are_printed() {
        assert_eq!(origin("#4 bytes(12..15)").as_deref(), Some("4"));
        assert_eq!(origin("bytes(12..15)"), None);
        assert_eq!(origin("Span"), None);
    }
}
