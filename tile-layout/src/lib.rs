//! Layouts of tensors and of the tiles that they are cut into, as pure functions on integers.
//!
//! | what | holds |
//! |---|---|
//! | [`Layout`] | hierarchical shape:stride layouts and their algebra, exact or refused |
//! | [`Swizzle`], [`SwizzledLayout`] | permutations of offsets, and layouts seen through them |
//! | [`View`], [`Movement`] | windows onto memory, and every operation that moves no value |
//! | [`ViewProgram`] | what more than one view takes: joins, rolls, gathers |
//! | [`PartitionView`], [`Threads`] | tensors cut into tiles and dealt out to threads |
//! | [`HostTensorDescriptor`] | lengths and strides from outside, completed and checked |
//! | [`symbolic`] | layouts with run-time extents: proved, checked at the launch, or refused |
//! | [`linear`] | layouts over GF(2): fragments of tensor cores, conversions, banks, swizzles |
//! | [`picture`] | all of them drawn, as SVG and in a terminal |
//!
//! `docs/layouts.md` teaches them with pictures. What has no answer is a [`LayoutError`] that names the modes or axes
//! concerned; a [`linear::LinearError`] becomes one by `?`. Only functions that say so panic on what a caller can pass:
//! those on plain lists of extents, and those that are asked of a slot or an axis which isn't there.
//!
//! The crate knows nothing of kernels, targets or devices. It needs `alloc` and no `std`; feature `serde` reads and
//! writes its types.
//!
//! ```
//! use tile_layout::{Layout, Movement, View};
//! // An 8×8 tile of a 1024×1024 row-major matrix, and the walk from tile to tile.
//! let matrix = Layout::row_major([1024, 1024])?;
//! assert_eq!(matrix.zipped_divide([8, 8])?.to_string(), "((8,8),(128,128)):((1024,1),(8192,8))");
//! // The same matrix, transposed, in windows of 16 columns: still one view.
//! let windows = View::row_major(&[1024, 1024])?.t()?.unfold(0, 16, 8)?;
//! assert_eq!(windows.to_string(), "(127,1024,16):(8,1024,1) + 0");
//! # Ok::<(), tile_layout::LayoutError>(())
//! ```
#![no_std]
extern crate alloc;
#[cfg(test)]
extern crate std;

/// The chapter on layouts, whose examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/layouts.md")]
struct Chapter;

/// The version of this crate, on which the code that becomes of a kernel depends as on the compiler's.
///
/// ```
/// assert_eq!(tile_layout::VERSION.split('.').count(), 3);
/// ```
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

mod algebra;
mod cursor;
#[cfg(feature = "serde")]
mod data;
mod descriptor;
mod error;
mod evaluate;
mod layout;
pub mod linear;
mod movement;
mod nested;
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
