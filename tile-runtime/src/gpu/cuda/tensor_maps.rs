//! Tensor maps as NVIDIA's driver encodes them.

use super::{done, has};
use crate::gpu::driver::{EncodedMap, Failure};
use cudarc::driver::sys::{
    self, CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
use tile_ir::DType;
use tile_ir::tensor_map::{BoundMap, Swizzle, TENSOR_MAP_BYTES};

const _: () = assert!(size_of::<CUtensorMap>() == size_of::<EncodedMap>());
const _: () = assert!(align_of::<CUtensorMap>() <= align_of::<EncodedMap>());

/// The newest driver, as `cuDriverGetVersion` counts them, that has small tensors read beyond their end.
const READS_BEYOND_SMALL_TENSORS: i32 = 13_010;

/// Fewer bytes than these are a small tensor.
const SMALL_BYTES: u128 = 128 << 10;

/// The bit of a map's second word that has tiles read where the tensor doesn't reach.
const READS_BEYOND: u64 = 1 << 21;

/// Has the driver of a version encode a map. Elements outside the tensor are zero.
pub(super) fn encode(map: &BoundMap, version: i32) -> Result<EncodedMap, Failure> {
    // Drivers know tensor maps since CUDA 12.
    if !has("cuTensorMapEncodeTiled") {
        return Err(Failure::refused("the NVIDIA driver is older than that of CUDA 12; update it"));
    }
    let mut encoded = EncodedMap([0; TENSOR_MAP_BYTES]);
    let steps = vec![1; map.tile.len()];
    // SAFETY: the lists have as many numbers as `cuTensorMapEncodeTiled` reads, which `BoundMap::check` compared: one per
    // axis, and a stride less. It writes the map alone, which is as large and as aligned as the driver's type, and doesn't
    // look at the tensor's memory.
    done(unsafe {
        sys::cuTensorMapEncodeTiled(
            (&raw mut encoded).cast(),
            data_type(map.elem),
            map.extents.len() as u32,
            map.address as *mut _,
            map.extents.as_ptr(),
            map.strides.as_ptr(),
            map.tile.as_ptr(),
            steps.as_ptr(),
            CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle(map.swizzle),
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    })?;
    if version <= READS_BEYOND_SMALL_TENSORS && bytes(map) < SMALL_BYTES {
        clear_reads_beyond(&mut encoded);
    }
    Ok(encoded)
}

/// From a tensor's first byte to its last element's first.
fn bytes(map: &BoundMap) -> u128 {
    let strides = std::iter::once(map.elem.bytes() as u64).chain(map.strides.iter().copied());
    let along = |(&extent, stride): (&u64, u64)| u128::from(extent.saturating_sub(1)) * u128::from(stride);
    map.extents.iter().zip(strides).map(along).sum::<u128>() + 1
}

/// Has a map's tiles read only what the tensor has. Drivers until CUDA 13.1 have those of small tensors read beyond it, which
/// on Blackwell is an illegal address where nothing is there; CUTLASS (commit b7ecaa605dd7) and Triton's driver.c clear the
/// same bit of the same tensors.
fn clear_reads_beyond(map: &mut EncodedMap) {
    let second = &mut map.0[8..16];
    let word = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| second[byte])) & !READS_BEYOND;
    second.copy_from_slice(&word.to_le_bytes());
}

/// The driver's format of the same bytes; of those that it doesn't have, an integer's of the same width.
fn data_type(elem: DType) -> CUtensorMapDataType {
    match elem {
        DType::Bool | DType::I8 | DType::U8 | DType::F8E4M3FN | DType::F8E5M2 | DType::F8E8M0FNU => {
            CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT8
        }
        DType::I16 | DType::U16 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        DType::F16 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        DType::BF16 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        DType::I32 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_INT32,
        DType::U32 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        DType::F32 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        DType::I64 | DType::Index => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_INT64,
        DType::U64 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        DType::F64 => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
    }
}

fn swizzle(swizzle: Swizzle) -> CUtensorMapSwizzle {
    match swizzle {
        Swizzle::None => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
        Swizzle::Bytes32 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        Swizzle::Bytes64 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        Swizzle::Bytes128 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_the_width_of_their_elements() {
        // Widths by the numbers of `CUtensorMapDataType` in cuda.h, whose first ten are u8, u16, u32, i32, u64, i64,
        // f16, f32, f64, bf16.
        let bytes = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2];
        for &elem in DType::ALL {
            assert_eq!(bytes[data_type(elem) as usize], elem.bytes(), "{elem}");
        }
        let floats = [DType::F16, DType::F32, DType::F64, DType::BF16].map(|elem| data_type(elem) as usize);
        assert_eq!(floats, [6, 7, 8, 9]);
    }

    #[test]
    fn swizzles_have_the_drivers_numbers() {
        assert_eq!(Swizzle::ALL.map(|kind| swizzle(kind) as usize), [0, 1, 2, 3]);
    }
}
