//! Write GPU kernels as ordinary Rust functions.
//!
//! A function with [`#[tile_kernel]`](tile_kernel) says what one *block* does with *tiles* of tensors. The
//! attribute checks shapes and element types at `cargo check`, keeps the body as Rust that runs on
//! [`Device::reference()`], and gives it to the compilers for CPU, NVIDIA and AMD.
//!
//! ```
//! use tile::prelude::*;
//!
//! /// C = A·B. Lower-case extents are run-time sizes; equal names must be equal at launch.
//! #[tile_kernel]
//! fn matmul<const BM: usize, const BN: usize, const BK: usize>(
//!     a: &Tensor<f32, m, k>,
//!     b: &Tensor<f32, k, n>,
//!     c: &mut Tensor<f32, m, n>,
//! ) {
//!     let a = a.partition_view([BM, BK]);
//!     let b = b.partition_view([BK, BN]);
//!     let mut c = c.partition_view_mut([BM, BN]); // one block per tile of c
//!     let [i, j] = c.index();
//!     let mut acc = Tile::zeros([BM, BN]);
//!     for p in 0..a.tiles(1) {
//!         acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
//!     }
//!     c.store_masked(acc);
//! }
//!
//! # fn main() -> tile::Result<()> {
//! let device = Device::reference();
//! let a = Tensor::from_slice(&device, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
//! let b = Tensor::from_slice(&device, &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], [3, 2])?;
//! let mut c = Tensor::zeros(&device, [2, 2])?;
//! matmul::<16, 16, 8>(&a, &b, &mut c).launch()?;
//! assert_eq!(c.to_vec()?, [4.0, 5.0, 10.0, 11.0]);
//! # Ok(())
//! # }
//! ```
//!
//! `docs/getting-started.md` leads from an empty folder to a kernel on a GPU, `docs/language.md` says what a kernel may
//! contain, `docs/instances-and-grids.md` which of its code runs in which blocks, and `docs/coming-from.md` has the names
//! of Triton, CUDA, cuTile and Mojo beside ours.
//!
//! # Where things are
//!
//! | module | holds |
//! |---|---|
//! | [`prelude`] | what a file with kernels imports |
//! | [`kernel`] | the types and functions that a kernel's body uses |
//! | [`ir`] | the tile IR: `matmul::ir()` gives a kernel's, and its text is made for snapshot tests |
//! | [`layout`] | layouts, views and partitions as values of their own: algebra, swizzles, fragments, pictures |
//! | [`cpu`] | how many threads the CPU device has |
//! | [`properties`] | what devices are, as numbers and as a table |
//! | [`mod@bench`], [`mod@profile`] | how long kernels take, and beside what their device can do |
//! | [`interchange`] | tensors from and to NumPy's files, safetensors, DLPack and `ndarray` |
//! | [`launch`], [`embedded`] | what the attribute's code refers to |
//!
//! Kernels are compiled at run time with feature `jit` (which links LLVM 22), or at `cargo build` by
//! `tile_codegen::build` in a build script, after which the program needs no LLVM.

// The code that `#[tile_kernel]` writes names this crate `::tile`, here too.
extern crate self as tile;

pub mod kernel;

pub use tile_ir as ir;
pub use tile_layout as layout;
#[doc(hidden)]
pub use tile_macros::{__tile_absent, __tile_conditional, __tile_kernel};
pub use tile_macros::{TileStruct, kernels, tile_fn, tile_kernel, tile_kernels};
pub use tile_runtime::{
    Choice, Choices, Device, Error, Event, Graph, HostTensor, Indices, Launch, Launching, MemoryLimits,
    MemoryUse, Pending, Properties, Recorder, Result, SimulatedBlock, Stream, Tensor, TensorRef, TensorView,
    TensorViewMut, bench, cpu, embedded, interchange, launch, profile, properties,
};

/// What a file with kernels imports: `use tile::prelude::*;`.
pub mod prelude {
    pub use crate::kernel::functions::*;
    pub use crate::kernel::{
        AcqRel, Acquire, AtomicView, BlockScope, DeviceScope, Element, Falling, Float, Grouped, Hilbert, Int,
        MmaOperand, Number, PartitionView, PartitionViewMut, RandomDoubles, Relaxed, Release, RowMajor,
        Scale, SpanningViewMut, SystemScope, Tile, associative_reduce, associative_scan,
        associative_scan_exclusive, associative_scan_exclusive_reverse, associative_scan_reverse,
        block_count, block_id, cat, mma, mma_scaled, mma_tf32, reduce, scan, scan_exclusive,
        scan_exclusive_reverse, scan_reverse, select, stack,
    };
    pub use crate::{
        Device, HostTensor, Tensor, TensorRef, TensorView, TensorViewMut, TileStruct, tile_assert, tile_fn,
        tile_kernel, tile_kernels, tile_println,
    };
    pub use half::{bf16, f16};
    pub use tile_ir::Rounding;
    pub use tile_runtime::{f8e4m3fn, f8e5m2, f8e8m0fnu};
}

/// The programs of the page for newcomers run.
#[cfg(doctest)]
#[doc = include_str!("../docs/getting-started.md")]
struct GettingStarted;

/// The example of the page for those who know other languages runs.
#[cfg(doctest)]
#[doc = include_str!("../docs/coming-from.md")]
struct ComingFrom;

/// The examples of the language's page run.
#[cfg(doctest)]
#[doc = include_str!("../docs/language.md")]
struct Language;

/// The examples of the page on instances and grids run.
#[cfg(doctest)]
#[doc = include_str!("../docs/instances-and-grids.md")]
struct InstancesAndGrids;

/// The examples of the tensors' page run.
#[cfg(doctest)]
#[doc = include_str!("../docs/tensors.md")]
struct Tensors;

/// The examples of the page on measuring run.
#[cfg(doctest)]
#[doc = include_str!("../docs/measuring.md")]
struct Measuring;

/// The examples of the page on launches run.
#[cfg(doctest)]
#[doc = include_str!("../docs/launches.md")]
struct Launches;
