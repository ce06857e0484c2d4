//! The algebra of layouts: operations from layouts to layouts, each defined by an equation on functions.
//!
//! Every file holds one family with its equations. All of them refuse what they cannot represent: an operation
//! that answers at all answers with the function that its equation asks for.

mod carry;
mod coalesce;
mod complement;
mod compose;
mod divide;
mod inverse;
mod product;
mod recast;
mod tiler;

pub(crate) use carry::Carries;
pub(crate) use coalesce::{coalesce_modes, push_coalesced};

pub(crate) use compose::{Digits, Domain};
pub use recast::shape_div;
pub(crate) use recast::{check_factor, gcd};
pub(crate) use tiler::Cut;
pub use tiler::Tiler;
