//! What is known of index values before a kernel runs, and what follows for its loads and stores.
//!
//! [`range`] bounds every index by extents; [`bounds`] says from that which loads and stores stay inside their
//! tensors: always, never, or for the sizes that a launch checks. Neither changes IR.

pub mod bounds;
pub mod facts;
pub mod range;
mod refine;

pub use bounds::{Bound, Unbounded};
pub use facts::Facts;
pub use range::{Range, Ranges};
