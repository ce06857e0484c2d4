//! Layouts of dense tensors and of the tiles that they are cut into. Pure functions on extents; no other
//! crate of the project is known here.

pub mod partition;
pub mod shape;

pub use partition::{Partition, Window};
pub use shape::{broadcast, element_count, linear_index, multi_index, row_major_strides};
