//! What the crate is held to: the golden cases, the defining equations on random layouts, and input that nobody
//! would write. One test binary, a module per subject.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod golden;
mod properties;
