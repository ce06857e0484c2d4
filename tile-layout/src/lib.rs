//! Layouts of tensors and of the tiles that they are cut into, as pure functions on integers.
#![no_std]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod algebra;
mod descriptor;
mod error;
mod evaluate;
mod layout;
pub mod linear;
mod movement;
mod notation;
pub mod partition;
pub mod picture;
mod program;
pub mod shape;
mod swizzle;
pub mod symbolic;
mod tuple;
mod view;

pub use algebra::{Tiler, shape_div};
pub use descriptor::{ConvolutionLayout, HostTensorDescriptor, TensorLayout};
pub use error::{ErrorKind, LayoutError, Result};
pub use layout::{Layout, Mode};
pub use movement::{Index, Length, Movement, Span, Split, Table, flat_padding, meshgrid};
pub use partition::{Partition, PartitionView, Window};
pub use program::{Element, PadMode, ViewProgram};
pub use shape::{broadcast, element_count, linear_index, multi_index, row_major_strides};
pub use swizzle::{Swizzle, SwizzledLayout};
pub use tuple::IntTuple;
pub use view::{Fill, Threads, View};
