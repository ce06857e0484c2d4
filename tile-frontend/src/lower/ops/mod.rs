//! Operators, functions and methods of tiles and scalars: each becomes one op of the IR, or a few.

pub(super) mod composite;
pub(super) mod constructors;
pub(super) mod contract;
pub(super) mod convert;
pub(super) mod folding;
pub(super) mod folds;
pub(super) mod four_bits;
pub(super) mod leaf;
pub(super) mod lines;
mod lookup;
pub(super) mod movement;
pub(super) mod operators;
pub(super) mod scalars;
