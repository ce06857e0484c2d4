//! Layouts with run-time extents and strides, and an algebra on them that proves what it needs.
//!
//! An extent or a stride is an [`Expr`] over [`Symbol`]s.

mod expression;
mod layout;
mod notation;
mod quotient;
mod symbol;
mod tuple;

pub use expression::{Atom, Expr};
pub use layout::{SymbolicLayout, SymbolicMode};
pub use symbol::{Bindings, Symbol};
pub use tuple::ExprTuple;
