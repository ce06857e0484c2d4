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
//! | how do registers of one layout become another's? | `Conversion` |
//! | how wide may a load be? | `vector_width` |
//! | how often do banks of shared memory conflict? | `linear_wavefronts` |
//! | which permutation of shared memory avoids that? | `search_swizzle`, `optimal_layout` |
//!
//! The price is that every extent is a power of two. [`LinearLayout::from_modes`] and
//! [`LinearLayout::to_modes`] cross between the two models exactly where both describe the same function, and
//! say why where they don't: padded rows and odd strides belong to the integer model, swizzles to this one.
//!
//! This file decides only what is public. The modules depend on each other downwards: `swizzle` and `convert` on
//! `banks` and `layout`, `fragments` on `layout`, `layout` on `matrix`, `matrix` on `subspace`.

mod error;
mod layout;
mod matrix;
mod subspace;

pub use error::LinearError;
pub use layout::{Dim, Group, LinearLayout, MAX_LAYOUT_BITS};
pub use matrix::{BitMatrix, MAX_BITS};
pub use subspace::Subspace;
