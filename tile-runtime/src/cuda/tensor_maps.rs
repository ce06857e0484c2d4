//! Tensor maps in the driver's form. Those of earlier launches are kept: programs launch kernels on the same tensors
//! again and again.

use cudarc::driver::DriverError;
use cudarc::driver::sys::{
    self, CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
use std::collections::HashMap;
use tile_ir::DType;
use tile_ir::tensor_map::{BoundMap, Swizzle, TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES};

const _: () = assert!(size_of::<CUtensorMap>() == TENSOR_MAP_BYTES);
const _: () = assert!(align_of::<CUtensorMap>() >= TENSOR_MAP_ALIGNMENT);

/// Maps that are kept, before all are forgotten.
const MOST: usize = 512;

/// Encoded maps by what they say. A map holds the address of its tensor, so one never stands for another.
#[derive(Default)]
pub(super) struct Encoded(HashMap<BoundMap, CUtensorMap>);

impl Encoded {
    /// A map as `encode` makes it, unless it is known.
    pub(super) fn get<E>(
        &mut self,
        map: &BoundMap,
        encode: impl FnOnce(&BoundMap) -> Result<CUtensorMap, E>,
    ) -> Result<CUtensorMap, E> {
        if let Some(known) = self.0.get(map) {
            return Ok(*known);
        }
        let encoded = encode(map)?;
        if self.0.len() == MOST {
            self.0.clear();
        }
        self.0.insert(map.clone(), encoded);
        Ok(encoded)
    }
}

/// Whether the driver knows tensor maps: those of CUDA 12 and later do. The driver's library is there.
pub(super) fn are_known() -> bool {
    // SAFETY: the symbol is only looked up, and not used as what it isn't.
    unsafe { sys::culib().get::<*const ()>(b"cuTensorMapEncodeTiled\0".as_slice()).is_ok() }
}

/// Has the driver, which knows tensor maps, encode one. Elements outside the tensor are zero.
pub(super) fn encode(map: &BoundMap) -> Result<CUtensorMap, DriverError> {
    let mut encoded = CUtensorMap { opaque: [0; 16] };
    let steps = vec![1; map.tile.len()];
    // SAFETY: the lists have as many numbers as `cuTensorMapEncodeTiled` reads, which `BoundMap::check` compared: one per
    // axis, and a stride less. It writes the map alone, and doesn't look at the tensor's memory.
    unsafe {
        sys::cuTensorMapEncodeTiled(
            &raw mut encoded,
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
    }
    .result()?;
    Ok(encoded)
}

/// The driver's format of the same bytes; of those that it doesn't have, an integer's of the same width.
fn data_type(elem: DType) -> CUtensorMapDataType {
    match elem {
        DType::Bool | DType::I8 | DType::U8 | DType::F8E4M3FN | DType::F8E5M2 => {
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

    fn map(address: u64) -> BoundMap {
        BoundMap {
            address,
            elem: DType::BF16,
            extents: vec![64, 8],
            strides: vec![128],
            tile: vec![64, 8],
            swizzle: Swizzle::Bytes128,
        }
    }

    fn words(first: u64) -> CUtensorMap {
        CUtensorMap { opaque: [first; 16] }
    }

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

    #[test]
    fn a_map_is_encoded_once() {
        let mut encoded = Encoded::default();
        let encode = |map: &BoundMap| Ok::<_, ()>(words(map.address));
        let never = |_: &BoundMap| Err(());
        assert_eq!(encoded.get(&map(16), encode), Ok(words(16)));
        assert_eq!(encoded.get(&map(16), never), Ok(words(16)));
        // Another address or extent is another map, and what failed isn't known.
        assert_eq!(encoded.get(&map(32), never), Err(()));
        assert_eq!(encoded.get(&map(32), encode), Ok(words(32)));
        assert_eq!(encoded.get(&BoundMap { extents: vec![64, 9], ..map(16) }, never), Err(()));
    }

    #[test]
    fn not_more_maps_are_kept_than_there_is_room_for() {
        let mut encoded = Encoded::default();
        for address in (1..=2 * MOST as u64 + 1).map(|number| 16 * number) {
            let found = encoded.get(&map(address), |map| Ok::<_, ()>(words(map.address)));
            assert_eq!(found, Ok(words(address)));
            assert!(encoded.0.len() <= MOST);
        }
    }
}
