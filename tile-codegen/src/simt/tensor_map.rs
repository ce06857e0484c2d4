//! What a tensor copy is told of a tensor: the executor's own form of the 128 bytes that a driver would make.

/// Bytes of an encoded map, as those of a driver's.
pub const TENSOR_MAP_BYTES: usize = 128;

/// Most dimensions of a tensor.
const MOST_RANK: usize = 5;

/// The first word of an encoded map.
const MARK: u64 = u64::from_le_bytes(*b"tile-map");

/// An element of a tensor that is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the formats'")]
pub enum TensorElement {
    U8,
    U16,
    U32,
    I32,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

/// How 16-byte pieces of a box change places in shared memory (PTX ISA, "Tensor swizzling modes").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swizzle {
    /// They don't.
    None,
    /// Within 32 bytes.
    Bytes32,
    /// Within 64 bytes.
    Bytes64,
    /// Within 128 bytes.
    Bytes128,
}

/// A tensor in global memory, and the box of it that one copy moves. Dimension 0 is the one whose elements follow each
/// other in memory. Elements of a box outside the tensor are read as zero, and aren't written.
///
/// A kernel has it as a parameter of 128 bytes that a launch copies (`byval`); the executor's slot of that parameter is
/// the address of [`TensorMap::encode`]'s bytes, a multiple of 64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Address of the first element.
    pub address: u64,
    /// The elements.
    pub element: TensorElement,
    /// Elements per dimension: 1 to 5 dimensions.
    pub extents: Vec<u64>,
    /// Bytes from an element to the next, of every dimension but the first: one less than there are extents.
    pub strides: Vec<u64>,
    /// Elements of the box per dimension.
    pub tile: Vec<u32>,
    /// Where the box's bytes lie in shared memory.
    pub swizzle: Swizzle,
}

const ELEMENTS: [TensorElement; 9] = [
    TensorElement::U8,
    TensorElement::U16,
    TensorElement::U32,
    TensorElement::I32,
    TensorElement::U64,
    TensorElement::F16,
    TensorElement::BF16,
    TensorElement::F32,
    TensorElement::F64,
];

const SWIZZLES: [Swizzle; 4] = [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128];

impl TensorElement {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            TensorElement::U8 => 1,
            TensorElement::U16 | TensorElement::F16 | TensorElement::BF16 => 2,
            TensorElement::U32 | TensorElement::I32 | TensorElement::F32 => 4,
            TensorElement::U64 | TensorElement::F64 => 8,
        }
    }
}

impl Swizzle {
    /// The bytes within which pieces change places.
    pub fn span(self) -> Option<u64> {
        match self {
            Swizzle::None => None,
            Swizzle::Bytes32 => Some(32),
            Swizzle::Bytes64 => Some(64),
            Swizzle::Bytes128 => Some(128),
        }
    }

    /// Where a byte of shared memory goes: bits 4 and up change by those of the number of its 128-byte row.
    pub(super) fn place(self, address: u64) -> u64 {
        let rows = self.span().map_or(0, |span| span / 16 - 1);
        address ^ (address >> 7 & rows) << 4
    }
}

impl TensorMap {
    /// The bytes that a kernel's parameter holds.
    ///
    /// # Errors
    /// What a driver would refuse as well, in words: ranks, alignments, sizes of boxes.
    pub fn encode(&self) -> Result<[u8; TENSOR_MAP_BYTES], String> {
        self.check()?;
        let position = |found: Option<usize>| found.expect("the list is complete") as u64;
        let element = position(ELEMENTS.iter().position(|element| *element == self.element));
        let swizzle = position(SWIZZLES.iter().position(|swizzle| *swizzle == self.swizzle));
        let mut words = vec![MARK, self.address, self.extents.len() as u64 | element << 8 | swizzle << 16];
        for dimension in 0..MOST_RANK {
            words.push(self.extents.get(dimension).copied().unwrap_or(1));
        }
        for dimension in 0..MOST_RANK - 1 {
            words.push(self.strides.get(dimension).copied().unwrap_or(0));
        }
        let tile = |dimension: usize| u64::from(self.tile.get(dimension).copied().unwrap_or(1));
        words.extend([tile(0) | tile(1) << 32, tile(2) | tile(3) << 32, tile(4)]);
        words.resize(TENSOR_MAP_BYTES / 8, 0);
        let mut bytes = [0; TENSOR_MAP_BYTES];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Ok(bytes)
    }

    /// The map in these bytes; `None` where [`TensorMap::encode`] didn't make them.
    pub fn decode(bytes: &[u8; TENSOR_MAP_BYTES]) -> Option<TensorMap> {
        let word = |i: usize| {
            let bytes = bytes[8 * i..8 * i + 8].try_into().expect("verified: eight bytes");
            u64::from_le_bytes(bytes)
        };
        let rank = (word(2) & 0xff) as usize;
        if word(0) != MARK || !(1..=MOST_RANK).contains(&rank) {
            return None;
        }
        let tile = |dimension: usize| (word(12 + dimension / 2) >> (32 * (dimension % 2))) as u32;
        Some(TensorMap {
            address: word(1),
            element: *ELEMENTS.get((word(2) >> 8 & 0xff) as usize)?,
            extents: (0..rank).map(|dimension| word(3 + dimension)).collect(),
            strides: (0..rank - 1).map(|dimension| word(8 + dimension)).collect(),
            tile: (0..rank).map(tile).collect(),
            swizzle: *SWIZZLES.get((word(2) >> 16 & 0xff) as usize)?,
        })
    }

    /// The rules of CUDA's driver interface for `cuTensorMapEncodeTiled`.
    fn check(&self) -> Result<(), String> {
        let rank = self.extents.len();
        if !(1..=MOST_RANK).contains(&rank) || self.tile.len() != rank || self.strides.len() != rank - 1 {
            return Err(format!(
                "a tensor has 1 to {MOST_RANK} extents, as many of its box, and a stride less, not {rank}, {} and {}",
                self.tile.len(),
                self.strides.len()
            ));
        }
        if !self.address.is_multiple_of(16) || self.strides.iter().any(|stride| !stride.is_multiple_of(16)) {
            return Err(format!(
                "address {:#x} and strides {:?} are to be multiples of 16 bytes",
                self.address, self.strides
            ));
        }
        if let Some(extent) = self.tile.iter().find(|extent| !(1..=256).contains(*extent)) {
            return Err(format!("a box has 1 to 256 elements per dimension, not {extent}"));
        }
        let inner = u64::from(self.tile[0]) * self.element.bytes() as u64;
        if !inner.is_multiple_of(16) {
            return Err(format!("the first extent of a box is to be a multiple of 16 bytes, not {inner}"));
        }
        match self.swizzle.span() {
            Some(span) if inner > span => {
                Err(format!("a swizzle of {span} bytes is for boxes up to that width, not {inner} bytes"))
            }
            _ => Ok(()),
        }
    }

    /// Bytes of the box.
    pub(super) fn box_bytes(&self) -> usize {
        self.tile.iter().map(|&extent| extent as usize).product::<usize>() * self.element.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            address: 0x1234_5670,
            element: TensorElement::BF16,
            extents: vec![100, 200, 3],
            strides: vec![256, 51200],
            tile: vec![64, 32, 2],
            swizzle: Swizzle::Bytes128,
        }
    }

    #[test]
    fn a_map_comes_back() {
        assert_eq!(TensorMap::decode(&map().encode().unwrap()), Some(map()));
        assert_eq!(TensorMap::decode(&[7; TENSOR_MAP_BYTES]), None);
    }

    #[test]
    fn what_a_driver_refuses() {
        let refused = |change: &dyn Fn(&mut TensorMap)| {
            let mut map = map();
            change(&mut map);
            map.encode().is_err()
        };
        assert!(refused(&|map| map.address += 8));
        assert!(refused(&|map| map.strides[1] += 8));
        assert!(refused(&|map| map.tile[1] = 257));
        assert!(refused(&|map| map.tile[0] = 65));
        assert!(refused(&|map| map.tile[0] = 72));
        assert!(refused(&|map| map.extents.push(1)));
    }

    #[test]
    fn pieces_change_places_as_in_the_manuals_tables() {
        // Of each row of 128 bytes, the places of its 16-byte pieces (PTX ISA, "128B swizzling mode" and the others).
        let places = |swizzle: Swizzle, row: u64| -> Vec<u64> {
            (0..8).map(|piece| swizzle.place(row * 128 + piece * 16) / 16 % 8).collect()
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
