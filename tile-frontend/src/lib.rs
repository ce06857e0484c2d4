//! Rust syntax to typed, shape-checked tile IR, with diagnostics at the user's spans.
