//! The front end as its callers use it: kernels to IR, and mistakes to messages.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

mod extents;
mod functions;
mod helps;
mod kernels;
mod known;
mod mistakes;
mod names;
mod ranges;
mod skipped;

use tile_frontend::{Diagnostics, Lowered};

/// Lowers a kernel's source text.
fn lower(attribute: &str, source: &str) -> Result<Lowered, Diagnostics> {
    let function = syn::parse_str(source).unwrap_or_else(|error| panic!("{error} in\n{source}"));
    tile_frontend::lower(attribute.parse().expect("an attribute is tokens"), function, "src/main.rs")
}
