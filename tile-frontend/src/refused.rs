//! What the front end can't read as rustc does, wherever it stands in a kernel or a function of one.

use crate::diagnostic::Diagnostic;
use crate::{conditional, hygiene, raw_names};
use syn::ItemFn;

/// What to say of it in a function.
pub(crate) fn inside(function: &ItemFn) -> Vec<Diagnostic> {
    [conditional::inside(function), raw_names::inside(function), hygiene::inside(function)].concat()
}
