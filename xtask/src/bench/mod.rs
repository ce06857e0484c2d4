//! `cargo xtask bench …`: what is measured, one file per subject.

pub(crate) mod compile;
pub(crate) mod layout;
