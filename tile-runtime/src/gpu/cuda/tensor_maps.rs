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

/// Has the driver encode a map. Elements outside the tensor are zero.
pub(super) fn encode(map: &BoundMap) -> Result<EncodedMap, Failure> {
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
    Ok(encoded)
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
