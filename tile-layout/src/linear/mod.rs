//! Linear layouts: maps between named groups of bits that are linear over GF(2).
//!
//! The integer model of this crate (extents and strides) says where element `(i, j)` of a tensor lies. Between
//! the registers of a warp and shared memory that is not enough: a tensor core holds a tile in a pattern that
//! interleaves registers and lanes, a swizzled tile xors row bits into column bits, and one element may be held
//! by several lanes. All of these are *linear* when indices are read as vectors of bits and addition as xor:
//! `f(x ^ y) = f(x) ^ f(y)`. Such a map is known by its images of single bits, a few machine words, and questions
//! that would take a simulation become linear algebra:
//!
//! | question | answer |
//! |---|---|
//! | what does lane 9 hold in register 3? | [`LinearLayout::apply`] |
//! | who holds element (5, 6)? | [`LinearLayout::pseudo_invert`] |
//! | which copies need not be stored? | [`LinearLayout::free_mask`] |
//! | how does a tile of any extents lie in a block's threads? | [`Distribution`] |
//! | how do registers of one layout become another's? | [`Conversion`] |
//! | how wide may a load be? | [`vector_width`] |
//! | how often do banks of shared memory conflict? | [`linear_wavefronts`] |
//! | which permutation of shared memory avoids that? | [`search_swizzle`], [`optimal_layout`] |
//!
//! The price is that every extent is a power of two, but in a [`Distribution`], which repeats a linear piece. [`LinearLayout::from_modes`] and
//! [`LinearLayout::to_modes`] cross between the two models exactly where both describe the same function, and
//! say why where they don't: padded rows, whose offsets carry, belong to the integer model, swizzles to this one.
//!
//! ```
//! use tile_layout::linear::{Dim, MatrixShape, Operand, mma_sync};
//! let shape = MatrixShape { m: 16, n: 8, k: 16 };
//! let a = mma_sync(shape, 16, Operand::A)?;
//! assert_eq!(
//!     a.apply(&[(Dim::Register, 3), (Dim::Lane, 9)])?,
//!     [(Dim::Axis(0), 10), (Dim::Axis(1), 3)],
//! );
//! # Ok::<(), tile_layout::linear::LinearError>(())
//! ```
//!
//! This file decides only what is public. The modules depend on each other downwards: `swizzle` and `convert` on
//! `banks` and `layout`, `fragments` on `layout`, `layout` on `matrix`, `matrix` on `subspace`.

mod banks;
mod convert;
mod distribution;
mod error;
mod fragments;
mod layout;
mod matrix;
mod subspace;
mod swizzle;
#[cfg(test)]
mod tests;
mod vector;

pub(crate) use banks::{MOST_BANKS, WORD_BYTES};
pub use banks::{Wavefronts, linear_wavefronts, wavefronts};
pub use convert::{Conversion, Place, Route, ShufflePlan, ShuffleRound, Transfer};
pub use distribution::{Deal, Distribution};
pub use error::LinearError;
pub use fragments::{
    Major, MatrixMove, MatrixShape, Operand, SharedOperand, SwizzleWidth, WgmmaSlabs, WmmaGeneration, mfma,
    mfma_by_sums, mfma_scale, mma_sync, mma_sync_scale, tensor_memory_accumulator, wgmma_accumulator,
    wgmma_register_operand, wgmma_shared_operand, wgmma_slabs, wmma,
};
pub use layout::{Dim, Group, LinearLayout, MAX_LAYOUT_BITS};
pub use matrix::{BitMatrix, MAX_BITS};
pub use subspace::Subspace;
pub use swizzle::{Access, SharedLayout, SharedMemory, SwizzleChoice, optimal_layout, search_swizzle};
pub use vector::vector_width;
