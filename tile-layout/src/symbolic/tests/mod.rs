//! The symbolic algebra held to the static one.
