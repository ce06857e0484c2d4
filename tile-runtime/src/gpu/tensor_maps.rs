//! Tensor maps in the driver's form. Those of earlier launches are kept: programs launch kernels on the same tensors
//! again and again.

use super::driver::EncodedMap;
use std::collections::HashMap;
use tile_ir::tensor_map::{BoundMap, TENSOR_MAP_ALIGNMENT};

const _: () = assert!(align_of::<EncodedMap>() >= TENSOR_MAP_ALIGNMENT);

/// Maps that are kept, before all are forgotten.
const MOST: usize = 512;

/// Encoded maps by what they say. A map holds the address of its tensor, so one never stands for another.
#[derive(Default)]
pub(crate) struct Encoded(HashMap<BoundMap, EncodedMap>);

impl Encoded {
    /// A map as `encode` makes it, unless it is known.
    pub(crate) fn get<E>(
        &mut self,
        map: &BoundMap,
        encode: impl FnOnce(&BoundMap) -> Result<EncodedMap, E>,
    ) -> Result<EncodedMap, E> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::DType;
    use tile_ir::tensor_map::{Swizzle, TENSOR_MAP_BYTES};

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

    fn words(first: u64) -> EncodedMap {
        EncodedMap([first as u8; TENSOR_MAP_BYTES])
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
