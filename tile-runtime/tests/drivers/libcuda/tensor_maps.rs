//! Tensor maps, with every rule that the CUDA Driver API's reference says of `cuTensorMapEncodeTiled` without interleaving.

use crate::common::check;
use crate::machine::Code;
use crate::{current, functions};
use std::ffi::{c_int, c_uint, c_void};

/// Bytes of an element, by `CUtensorMapDataType`: u8, u16, u32, i32, u64, i64, f16, f32, f64, bf16, f32 without
/// subnormals, and the two of tf32.
const ELEMENT_BYTES: [usize; 13] = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4];

/// The most bytes of a box's rows, by `CUtensorMapSwizzle`.
const ROW_BYTES: [usize; 4] = [usize::MAX, 32, 64, 128];

/// The bit of the second word that drivers until CUDA 13.1 set of every map: tiles are read where the tensor doesn't reach.
const READS_BEYOND: u64 = 1 << 21;

functions! {
    /// A map holds what it was made of: the address, five extents, four strides in bytes, five numbers of a box, and the
    /// format with the swizzle and the rank.
    fn cuTensorMapEncodeTiled(
        map: *mut c_void, format: c_int, rank: c_uint, address: *mut c_void, extents: *const u64, strides: *const u64,
        tile: *const c_uint, steps: *const c_uint, interleave: c_int, swizzle: c_int, promotion: c_int, fill: c_int,
    ) {
        current()?;
        check(!map.is_null() && (map as usize).is_multiple_of(64) && (1..=5).contains(&rank))?;
        let bytes = *ELEMENT_BYTES.get(format as usize).ok_or(Code::INVALID_VALUE)?;
        let row_bytes = *ROW_BYTES.get(swizzle as usize).ok_or(Code::INVALID_VALUE)?;
        let rank = rank as usize;
        check(!extents.is_null() && !tile.is_null() && !steps.is_null() && (rank == 1 || !strides.is_null()))?;
        let (extents, tile) = (std::slice::from_raw_parts(extents, rank), std::slice::from_raw_parts(tile, rank));
        let steps = std::slice::from_raw_parts(steps, rank);
        let strides = if rank == 1 { &[] } else { std::slice::from_raw_parts(strides, rank - 1) };
        check(!address.is_null() && (address as usize).is_multiple_of(16))?;
        check(extents.iter().all(|extent| (1..=1 << 32).contains(extent)))?;
        check(strides.iter().all(|stride| stride.is_multiple_of(16) && *stride < 1 << 40))?;
        check(tile.iter().all(|extent| (1..=256).contains(extent)))?;
        check(steps.iter().all(|step| (1..=8).contains(step)))?;
        let row = tile[0] as usize * bytes;
        check(interleave == 0 && row.is_multiple_of(16) && row <= row_bytes)?;
        check((0..=3).contains(&promotion) && (fill == 0 || fill == 1 && format >= 6))?;
        let mut words = [0_u64; 16];
        words[0] = address as u64;
        words[1..=rank].copy_from_slice(extents);
        words[1] |= READS_BEYOND;
        words[6..5 + rank].copy_from_slice(strides);
        words[10..10 + rank].iter_mut().zip(tile).for_each(|(word, &extent)| *word = extent.into());
        words[15] = (rank as u64) << 16 | (swizzle as u64) << 8 | format as u64;
        map.cast::<[u64; 16]>().write(words);
        Ok(())
    }
}
