//! What a compile-time parameter is bound to, and its text.

use crate::dtype::DType;
use std::fmt;
use std::str::FromStr;

/// The value of one compile-time parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Binding {
    /// For `const BM: usize`.
    Const(usize),
    /// For `const CAUSAL: bool`.
    Bool(bool),
    /// For `T: Float`.
    Elem(DType),
}

impl fmt::Display for Binding {
    /// As it stands in `instances(…)`: `128`, `true`, `f32`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Binding::Const(value) => write!(f, "{value}"),
            Binding::Bool(value) => write!(f, "{value}"),
            Binding::Elem(dtype) => f.write_str(dtype.rust_name()),
        }
    }
}

impl From<usize> for Binding {
    fn from(value: usize) -> Binding {
        Binding::Const(value)
    }
}

impl From<bool> for Binding {
    fn from(value: bool) -> Binding {
        Binding::Bool(value)
    }
}

/// A text that is no value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no value of a parameter: write a number, `true`, `false` or an element type such as `f32`")]
pub struct NoBinding(String);

impl FromStr for Binding {
    type Err = NoBinding;

    /// Reads what [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Binding, NoBinding> {
        let number = || text.parse().ok().map(Binding::Const);
        let truth = || text.parse().ok().map(Binding::Bool);
        let elem = || DType::from_rust_name(text).filter(|dtype| dtype.is_element()).map(Binding::Elem);
        number().or_else(truth).or_else(elem).ok_or_else(|| NoBinding(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_are_read_as_they_are_written() {
        for binding in
            [Binding::Const(64), Binding::Bool(true), Binding::Bool(false), Binding::Elem(DType::BF16)]
        {
            assert_eq!(binding.to_string().parse(), Ok(binding));
        }
        let message = "maybe".parse::<Binding>().unwrap_err().to_string();
        assert!(message.contains("`maybe` is no value of a parameter"), "{message}");
    }
}
