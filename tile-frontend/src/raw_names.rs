//! Raw identifiers, `r#type`, which are refused: what a kernel names is printed, and a word of Rust is none of the IR's.

use crate::diagnostic::Diagnostic;
use proc_macro2::Ident;
use std::collections::HashSet;
use syn::visit::{self, Visit};
use syn::{ItemFn, Macro};

/// What to say of those in a function, each once.
pub(crate) fn inside(function: &ItemFn) -> Vec<Diagnostic> {
    let mut names = RawNames::default();
    names.visit_signature(&function.sig);
    names.visit_block(&function.block);
    names.diagnostics
}

#[derive(Default)]
struct RawNames {
    met: HashSet<String>,
    diagnostics: Vec<Diagnostic>,
}

impl<'ast> Visit<'ast> for RawNames {
    fn visit_ident(&mut self, name: &'ast Ident) {
        let text = name.to_string();
        let Some(word) = text.strip_prefix("r#") else { return };
        if self.met.insert(text.clone()) {
            let message = format!("kernels and their functions can't have `{text}` as a name");
            let help = format!("give it another name, such as `{word}_`");
            self.diagnostics.push(Diagnostic::new(name.span(), message).help(help));
        }
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        crate::macros::expressions(called).iter().for_each(|value| visit::visit_expr(self, value));
    }
}
