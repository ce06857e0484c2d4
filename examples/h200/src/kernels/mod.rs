//! The kernels, written as users write theirs: nothing in them is for a particular GPU but the extents of tiles.

pub(crate) mod attention;
pub(crate) mod elements;
pub(crate) mod matrix;
pub(crate) mod rows;
