//! What is read where a view has no memory.

use core::fmt;

/// What a view reads outside its window.
///
/// ```
/// use tile_layout::Fill;
/// assert_eq!(Fill::from(0), Fill::ZERO);
/// assert_eq!(Fill::from(f64::NEG_INFINITY).to_string(), "-inf");
/// ```
#[derive(Clone, Copy)]
pub enum Fill {
    /// An integer.
    Integer(i64),
    /// A real number, NaN or an infinity.
    Real(f64),
}

impl Fill {
    /// Nothing: 0 of any type.
    ///
    /// ```
    /// assert_eq!(tile_layout::Fill::ZERO.to_string(), "0");
    /// ```
    pub const ZERO: Fill = Fill::Integer(0);
}

impl PartialEq for Fill {
    /// Equal bit patterns: a NaN equals itself, and −0.0 differs from 0.0.
    fn eq(&self, other: &Fill) -> bool {
        match (self, other) {
            (Fill::Integer(a), Fill::Integer(b)) => a == b,
            (Fill::Real(a), Fill::Real(b)) => a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

impl Eq for Fill {}

impl From<i64> for Fill {
    fn from(value: i64) -> Fill {
        Fill::Integer(value)
    }
}

impl From<i32> for Fill {
    fn from(value: i32) -> Fill {
        Fill::Integer(value.into())
    }
}

impl From<f64> for Fill {
    fn from(value: f64) -> Fill {
        Fill::Real(value)
    }
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fill::Integer(value) => value.fmt(f),
            // `1.0`, not `1`: what is printed reads back as the same.
            Fill::Real(value) => write!(f, "{value:?}"),
        }
    }
}

impl fmt::Debug for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
