//! The algebra of layouts with run-time extents and strides.
//!
//! Each operation is the static one of the same name, for every binding at once: where the facts and the checks
//! that it leaves behind hold, binding its result gives the function that the static operation gives on the bound
//! layout. What that needs is asked of [`super::Obligations`]. Operations that can do without a proof, by doing
//! less, take [`super::Facts`] alone.

mod coalesce;
mod complement;
mod compose;
mod contiguity;
mod divide;
mod inverse;
mod product;
mod recast;

pub use divide::Divided;
