//! Which statements run, and how often: branches, matches and loops, early exits, and what is unrolled because it is known
//! when the macro expands.

mod alternatives;
pub(super) mod branches;
pub(super) mod carried;
pub(super) mod counters;
pub(super) mod exits;
pub(super) mod iterators;
mod lazy;
pub(super) mod logical;
pub(super) mod loops;
pub(super) mod matches;
pub(super) mod patterns;
pub(super) mod ranges;
pub(super) mod tiles;
pub(super) mod unroll;
