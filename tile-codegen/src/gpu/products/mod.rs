//! Op [`tile_ir::Op::Mma`], by what multiplies: the matrix instructions of a warp ([`matrix`]) or of four warps
//! ([`warpgroup`], whose instructions are [`wgmma`], and whose right factors consumers may bring, [`brought`]), those whose
//! sums lie in [`tensor_memory`], or multiply-adds ([`mma`]); and when: a turn [`late`], half by half ([`in_parts`]), by two
//! warpgroups in turn ([`alternate`]).

pub(super) mod alternate;
mod brought;
pub(super) mod in_parts;
pub(super) mod interleaved;
pub(super) mod late;
pub(super) mod matrix;
pub(super) mod mma;
mod scales;
pub(super) mod tensor_memory;
pub(super) mod warpgroup;
pub(super) mod wgmma;
