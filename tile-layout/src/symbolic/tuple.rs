//! Hierarchical tuples of expressions: the shapes and strides of symbolic layouts.
//!
//! Stored as the tuples of integers are: the leaves in order, and beside them how they nest.

use super::expression::Expr;
use super::symbol::Symbol;
use crate::tuple::{IntTuple, Nesting};
use alloc::vec::Vec;

/// An expression, or a tuple of such.
///
/// Made from integers, names, expressions, arrays and Rust tuples, or parsed.
///
/// ```
/// use tile_layout::symbolic::ExprTuple;
/// let shape = ExprTuple::from(("m", (2, "k")));
/// assert_eq!(shape, "(m,(2,k))".parse()?);
/// assert_eq!(shape.leaves().len(), 3);
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ExprTuple {
    leaves: Vec<Expr>,
    nesting: Nesting,
}

impl ExprTuple {
    /// One expression.
    ///
    /// ```
    /// assert_eq!(tile_layout::symbolic::ExprTuple::leaf("m").to_string(), "m");
    /// ```
    pub fn leaf(value: impl Into<Expr>) -> ExprTuple {
        ExprTuple { leaves: Vec::from([value.into()]), nesting: Nesting::leaf() }
    }

    /// A tuple of tuples.
    ///
    /// ```
    /// use tile_layout::symbolic::ExprTuple;
    /// let parts = [ExprTuple::leaf("m"), ExprTuple::from((2, "k"))];
    /// assert_eq!(ExprTuple::tuple(&parts).to_string(), "(m,(2,k))");
    /// ```
    pub fn tuple(parts: &[ExprTuple]) -> ExprTuple {
        let mut joined = ExprTuple { leaves: Vec::new(), nesting: Nesting::empty() };
        joined.nesting.open(parts.len());
        for part in parts {
            joined.leaves.extend_from_slice(&part.leaves);
            joined.nesting.push(part.nesting.tokens());
        }
        joined
    }

    pub(super) fn new(leaves: Vec<Expr>, nesting: Nesting) -> ExprTuple {
        ExprTuple { leaves, nesting }
    }

    pub(super) fn into_parts(self) -> (Vec<Expr>, Nesting) {
        (self.leaves, self.nesting)
    }

    pub(super) fn nesting(&self) -> &Nesting {
        &self.nesting
    }

    /// The expressions in order, whatever their nesting.
    ///
    /// ```
    /// let shape = tile_layout::symbolic::ExprTuple::from(("m", (2, "k")));
    /// assert_eq!(shape.leaves()[2].to_string(), "k");
    /// ```
    pub fn leaves(&self) -> &[Expr] {
        &self.leaves
    }
}

macro_rules! from_leaves {
    ($($type:ty),+) => {$(
        impl From<$type> for ExprTuple {
            fn from(value: $type) -> ExprTuple {
                ExprTuple::leaf(value)
            }
        }
    )+};
}
from_leaves!(i64, i32, &str, Symbol, &Symbol, Expr, &Expr);

impl From<&ExprTuple> for ExprTuple {
    fn from(tuple: &ExprTuple) -> ExprTuple {
        tuple.clone()
    }
}

impl From<IntTuple> for ExprTuple {
    fn from(tuple: IntTuple) -> ExprTuple {
        let leaves = tuple.leaves().iter().map(|&leaf| Expr::from(leaf)).collect();
        ExprTuple { leaves, nesting: tuple.nesting }
    }
}

impl<T: Into<ExprTuple>, const N: usize> From<[T; N]> for ExprTuple {
    fn from(values: [T; N]) -> ExprTuple {
        ExprTuple::tuple(&values.map(Into::into))
    }
}

macro_rules! from_rust_tuples {
    ($(($($name:ident),+))+) => {$(
        impl<$($name: Into<ExprTuple>),+> From<($($name,)+)> for ExprTuple {
            #[allow(non_snake_case, reason = "type parameters double as the names of the parts")]
            fn from(($($name,)+): ($($name,)+)) -> ExprTuple {
                ExprTuple::tuple(&[$($name.into()),+])
            }
        }
    )+};
}
from_rust_tuples! { (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) }
