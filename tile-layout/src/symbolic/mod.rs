//! Layouts with run-time extents and strides, and an algebra on them that proves what it needs.
//!
//! An extent or a stride is an [`Expr`] over [`Symbol`]s. What is known of the symbols is stated as [`Facts`]. An
//! operation asks [`Obligations`] for every condition that its result depends on: it is proved from the facts,
//! noted as a launch check, or the operation is refused. Nothing is assumed that was neither stated nor checked,
//! not even that an extent is positive.
//!
//! At the launch, [`Facts::check`] and [`Checks::verify`] hold the values to what was promised and noted, and
//! [`SymbolicLayout::bind`] makes the static [`crate::Layout`].
//!
//! ```
//! use tile_layout::symbolic::{Bindings, Facts, Obligations, SymbolicLayout};
//! let rows = SymbolicLayout::row_major(("m", "k"))?;
//! let facts = Facts::new().sizes(["m", "k"]).multiple_of("m", 64).consistent()?;
//!
//! let mut obligations = Obligations::collect(&facts);
//! let vectors = rows.upcast(8, &mut obligations)?;
//! let tiles = vectors.zipped_divide([64, 4], &mut obligations)?;
//! assert_eq!(tiles.overhang, [1]);
//! let checks = obligations.into_checks();
//! assert_eq!(checks.to_string(), "k must be a multiple of 8: stride of mode 0");
//!
//! let sizes = Bindings::from([("m", 128), ("k", 72)]);
//! facts.check(&sizes)?;
//! checks.verify(&sizes)?;
//! assert_eq!(tiles.layout.bind(&sizes)?, "((64,4),(2,3)):((9,1),(576,4))".parse()?);
//! # Ok::<(), tile_layout::LayoutError>(())
//! ```

mod algebra;
mod arithmetic;
mod atom;
mod checks;
mod condition;
mod expression;
mod facts;
mod interval;
mod layout;
mod notation;
mod prove;
mod quotient;
mod symbol;
#[cfg(test)]
mod tests;
mod tuple;

pub use algebra::Divided;
pub use atom::Atom;
pub use checks::{Check, Checks, Obligations};
pub use condition::Condition;
pub use expression::Expr;
pub use facts::Facts;
pub use layout::{SymbolicLayout, SymbolicMode};
pub use prove::Proof;
pub use symbol::{Bindings, Symbol};
pub use tuple::ExprTuple;
