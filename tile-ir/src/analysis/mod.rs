//! What is known of values before a kernel runs, and what follows for its loads and stores.
//!
//! [`facts`] is what the kernel's conditions say of its sizes; [`ranges`] bounds every index by extents, where it
//! stands; [`bounds`] says from both which loads and stores stay inside their tensors: always, never, or for the
//! sizes that a launch checks; [`divisibility`] says what divides an integer, [`lines`] along which axes the integers of
//! a tile are constant or consecutive; [`own_part`] finds what is computed of a part of a line, [`own_mean`] sums
//! that are divided by a tile's extent, [`mod@draws`] random numbers by an element's number in its tile; `reshape` says which
//! axes a reshape keeps, `uses` which ops have a value among their operands, `joined` what branches and loops hand on. None
//! changes IR.

pub mod bounds;
pub mod divisibility;
pub mod draws;
pub mod facts;
mod joined;
pub mod lines;
pub mod own_mean;
pub mod own_part;
pub mod range;
pub mod ranges;
mod refine;
pub(crate) mod reshape;
pub(crate) mod uses;

pub use bounds::{Bound, Unbounded};
pub use divisibility::Divisors;
pub use draws::{Draw, draws};
pub use facts::Facts;
pub use lines::{CountedRow, GatheredRow, Line, Lines};
pub use own_mean::{OwnMean, own_means};
pub use own_part::{OwnPart, own_parts};
pub use range::Range;
pub use ranges::Ranges;
