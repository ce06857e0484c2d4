//! The executor's own form of the 128 bytes that a driver makes of a tensor, and where a swizzle has the bytes of a box.
//!
//! A kernel has the bytes as a parameter that a launch copies (`byval`); the executor's slot of that parameter is the
//! address of them, a multiple of 64.

use tile_ir::DType;
use tile_ir::tensor_map::{BoundMap, MOST_AXES, MapProblem, Swizzle, TENSOR_MAP_BYTES};

/// The first word of an encoded map.
const MARK: u64 = u64::from_le_bytes(*b"tile-map");

/// Bytes that a kernel's parameter holds.
#[repr(align(64))]
pub(super) struct Encoded([u8; TENSOR_MAP_BYTES]);

impl Encoded {
    /// The bytes of a map.
    ///
    /// # Errors
    /// What a driver would refuse as well.
    pub(super) fn of(map: &BoundMap) -> Result<Encoded, MapProblem> {
        map.check()?;
        let position = |found: Option<usize>| found.expect("the list is complete") as u64;
        let element = position(DType::ALL.iter().position(|elem| *elem == map.elem));
        let swizzle = position(Swizzle::ALL.iter().position(|swizzle| *swizzle == map.swizzle));
        let mut words = vec![MARK, map.address, map.extents.len() as u64 | element << 8 | swizzle << 16];
        for axis in 0..MOST_AXES {
            words.push(map.extents.get(axis).copied().unwrap_or(1));
        }
        for axis in 0..MOST_AXES - 1 {
            words.push(map.strides.get(axis).copied().unwrap_or(0));
        }
        let tile = |axis: usize| u64::from(map.tile.get(axis).copied().unwrap_or(1));
        words.extend([tile(0) | tile(1) << 32, tile(2) | tile(3) << 32, tile(4)]);
        words.resize(TENSOR_MAP_BYTES / 8, 0);
        let mut bytes = [0; TENSOR_MAP_BYTES];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Ok(Encoded(bytes))
    }

    /// What the slot of the parameter holds.
    pub(super) fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }
}

/// The map in these bytes; `None` where [`Encoded::of`] didn't make them.
pub(super) fn decode(bytes: &[u8; TENSOR_MAP_BYTES]) -> Option<BoundMap> {
    let word = |i: usize| {
        let bytes = bytes[8 * i..8 * i + 8].try_into().expect("verified: eight bytes");
        u64::from_le_bytes(bytes)
    };
    let rank = (word(2) & 0xff) as usize;
    if word(0) != MARK || !(1..=MOST_AXES).contains(&rank) {
        return None;
    }
    let tile = |axis: usize| (word(12 + axis / 2) >> (32 * (axis % 2))) as u32;
    Some(BoundMap {
        address: word(1),
        elem: *DType::ALL.get((word(2) >> 8 & 0xff) as usize)?,
        extents: (0..rank).map(|axis| word(3 + axis)).collect(),
        strides: (0..rank - 1).map(|axis| word(8 + axis)).collect(),
        tile: (0..rank).map(tile).collect(),
        swizzle: *Swizzle::ALL.get((word(2) >> 16 & 0xff) as usize)?,
    })
}

/// Where a byte of shared memory goes: bits 4 and up change by those of the number of its 128-byte row.
pub(super) fn place(swizzle: Swizzle, address: u64) -> u64 {
    let rows = (swizzle.bytes() / 16).saturating_sub(1);
    address ^ (address >> 7 & rows) << 4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> BoundMap {
        BoundMap {
            address: 0x1234_5670,
            elem: DType::BF16,
            extents: vec![100, 200, 3],
            strides: vec![256, 51200],
            tile: vec![64, 32, 2],
            swizzle: Swizzle::Bytes128,
        }
    }

    #[test]
    fn a_map_comes_back() {
        assert_eq!(decode(&Encoded::of(&map()).unwrap().0), Some(map()));
        assert_eq!(decode(&[7; TENSOR_MAP_BYTES]), None);
        assert!(Encoded::of(&BoundMap { address: 8, ..map() }).is_err());
    }

    #[test]
    fn pieces_change_places_as_in_the_manuals_tables() {
        // Of each row of 128 bytes, the places of its 16-byte pieces (PTX ISA, "128B swizzling mode" and the others).
        let places = |swizzle: Swizzle, row: u64| -> Vec<u64> {
            (0..8).map(|piece| place(swizzle, row * 128 + piece * 16) / 16 % 8).collect()
        };
        assert_eq!(places(Swizzle::Bytes128, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(places(Swizzle::Bytes128, 1), [1, 0, 3, 2, 5, 4, 7, 6]);
        assert_eq!(places(Swizzle::Bytes128, 5), [5, 4, 7, 6, 1, 0, 3, 2]);
        assert_eq!(places(Swizzle::Bytes64, 1), [1, 0, 3, 2, 5, 4, 7, 6]);
        assert_eq!(places(Swizzle::Bytes64, 2), [2, 3, 0, 1, 6, 7, 4, 5]);
        assert_eq!(places(Swizzle::Bytes64, 4), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(places(Swizzle::Bytes32, 1), [1, 0, 3, 2, 5, 4, 7, 6]);
        assert_eq!(places(Swizzle::Bytes32, 2), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(places(Swizzle::None, 3), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
