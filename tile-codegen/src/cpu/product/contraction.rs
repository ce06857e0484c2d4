//! How elements along K are multiplied and added: one by one, several neighbours by one instruction, or tiles of both factors.
//!
//! [`DOT_PRODUCTS`] and [`TILE_PRODUCTS`] are the tables of such instructions. A factor is packed so that the elements that
//! one instruction multiplies are neighbours in memory.

use tile_ir::DType;

/// An instruction that multiplies neighbours along K and adds their products to a sum, in each lane.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DotProduct {
    /// The formats of the factors' elements.
    factors: [&'static [DType]; 2],
    /// The format of the sums.
    sum: DType,
    /// Elements that are multiplied at once.
    pub(super) group: i64,
    /// The format of packed elements: bf16, and bytes of either sign, are kept as their bits.
    pub(super) packed: DType,
    /// Sums in a vector.
    lanes: i64,
    /// The feature that a processor has the instruction with.
    feature: &'static str,
    /// LLVM's intrinsic, of the sums and both factors, or of the factors alone.
    pub(super) intrinsic: &'static str,
    /// Whether it adds to the sums: else its result is added to them.
    pub(super) adds: bool,
    /// Whether the intrinsic has the factors the other way around.
    pub(super) is_swapped: bool,
    /// Whether it takes `a` as bytes of the other signedness. The first bit of each is flipped as it is packed, which adds 128
    /// to it or subtracts that; [`super::signs`] subtracts from the sums what that makes them too large by.
    pub(super) flips_signs: bool,
}

/// An instruction that multiplies tiles of rows of `a` by tiles of columns of `b`, which is packed as for a dot product of so
/// many neighbours, and adds the products to a tile of sums.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TileProduct {
    factors: [DType; 2],
    sum: DType,
    /// Neighbours along K in 32 bits.
    pub(super) group: i64,
    /// The format of packed elements.
    packed: DType,
    feature: &'static str,
    /// LLVM's intrinsic, of the numbers of three tiles.
    pub(super) intrinsic: &'static str,
}

impl TileProduct {
    /// Elements along K of a tile.
    pub(super) const fn depth(&self) -> i64 {
        TILE_ROWS * self.group
    }
}

/// Rows of a tile, each of which has as many groups of 32 bits.
pub(super) const TILE_ROWS: i64 = 16;

/// Fewer rows of `a` are multiplied as fast by vectors, which needn't have `b` packed, and by pairs, for which nothing is to be
/// taken off the sums of each column.
const LEAST_ROWS: i64 = 8;

/// Formats of two factors.
type Factors = [&'static [DType]; 2];

const BF16: Factors = [&[DType::BF16], &[DType::BF16]];
const BYTES: Factors = [&[DType::I8, DType::U8], &[DType::I8, DType::U8]];

const DOT: DotProduct = DotProduct {
    factors: BF16,
    sum: DType::F32,
    group: 2,
    packed: DType::U16,
    lanes: 4,
    feature: "",
    intrinsic: "",
    adds: true,
    is_swapped: false,
    flips_signs: false,
};

/// Products of two i16, to which bytes are extended, added in i32.
const PAIRS_OF_BYTES: DotProduct = DotProduct { factors: BYTES, sum: DType::I32, packed: DType::I16, ..DOT };

/// Dot products of four bytes.
const FOUR_BYTES: DotProduct = DotProduct { sum: DType::I32, group: 4, packed: DType::U8, ..DOT };

/// Four bytes without sign by four with one.
const UNSIGNED_BY_SIGNED: DotProduct = DotProduct { factors: [&[DType::U8], &[DType::I8]], ..FOUR_BYTES };

/// Four bytes with a sign by four without.
const SIGNED_BY_UNSIGNED: DotProduct =
    DotProduct { factors: [&[DType::I8], &[DType::U8]], is_swapped: true, ..FOUR_BYTES };

/// Four bytes by four of the same sign, where the instruction has one of each.
const BOTH_SIGNED: DotProduct =
    DotProduct { factors: [&[DType::I8], &[DType::I8]], flips_signs: true, ..UNSIGNED_BY_SIGNED };
const BOTH_UNSIGNED: DotProduct =
    DotProduct { factors: [&[DType::U8], &[DType::U8]], flips_signs: true, ..SIGNED_BY_UNSIGNED };

/// `VPDPBUSD` of 512 bits.
const fn of_64_bytes(dot: DotProduct) -> DotProduct {
    DotProduct { lanes: 16, feature: "avx512vnni", intrinsic: "llvm.x86.avx512.vpdpbusd.512", ..dot }
}

/// `VPDPBUSD` of 256 bits.
const fn of_32_bytes(dot: DotProduct) -> DotProduct {
    DotProduct { lanes: 8, feature: "avxvnni", intrinsic: "llvm.x86.avx512.vpdpbusd.256", ..dot }
}

/// Every one; of those that a processor has the first that fits is taken.
///
/// x86-64 ("Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2): `VDPBF16PS` makes 0 of subnormal
/// numbers, `VPDPBUSD` multiplies bytes without sign by bytes with one, `VPDPWSSD` i16, to which bytes are extended, and so
/// does `PMADDWD`, which adds the two products to each other alone (that overflows for four times −2¹⁵, which no byte is). AArch64 ("Arm Architecture Reference Manual for
/// A-profile", C7.2): `BFDOT` makes 0 of subnormal numbers as well, and rounds products and sums to odd; `SDOT`, `UDOT` and
/// `USDOT` multiply bytes of both signs, of none, and of the second.
const DOT_PRODUCTS: &[DotProduct] = &[
    DotProduct { lanes: 16, feature: "avx512bf16", intrinsic: "llvm.x86.avx512bf16.dpbf16ps.512", ..DOT },
    of_64_bytes(UNSIGNED_BY_SIGNED),
    of_64_bytes(SIGNED_BY_UNSIGNED),
    of_64_bytes(BOTH_SIGNED),
    of_64_bytes(BOTH_UNSIGNED),
    of_32_bytes(UNSIGNED_BY_SIGNED),
    of_32_bytes(SIGNED_BY_UNSIGNED),
    of_32_bytes(BOTH_SIGNED),
    of_32_bytes(BOTH_UNSIGNED),
    DotProduct {
        lanes: 16,
        feature: "avx512vnni",
        intrinsic: "llvm.x86.avx512.vpdpwssd.512",
        ..PAIRS_OF_BYTES
    },
    DotProduct { lanes: 8, feature: "avxvnni", intrinsic: "llvm.x86.avx512.vpdpwssd.256", ..PAIRS_OF_BYTES },
    DotProduct {
        lanes: 16,
        feature: "avx512bw",
        intrinsic: "llvm.x86.avx512.pmaddw.d.512",
        adds: false,
        ..PAIRS_OF_BYTES
    },
    DotProduct {
        lanes: 8,
        feature: "avx2",
        intrinsic: "llvm.x86.avx2.pmadd.wd",
        adds: false,
        ..PAIRS_OF_BYTES
    },
    DotProduct {
        lanes: 4,
        feature: "sse4.2",
        intrinsic: "llvm.x86.sse2.pmadd.wd",
        adds: false,
        ..PAIRS_OF_BYTES
    },
    DotProduct { feature: "bf16", intrinsic: "llvm.aarch64.neon.bfdot", ..DOT },
    DotProduct {
        factors: [&[DType::I8], &[DType::I8]],
        feature: "dotprod",
        intrinsic: "llvm.aarch64.neon.sdot",
        ..FOUR_BYTES
    },
    DotProduct {
        factors: [&[DType::U8], &[DType::U8]],
        feature: "dotprod",
        intrinsic: "llvm.aarch64.neon.udot",
        ..FOUR_BYTES
    },
    DotProduct { feature: "i8mm", intrinsic: "llvm.aarch64.neon.usdot", ..UNSIGNED_BY_SIGNED },
    DotProduct { feature: "i8mm", intrinsic: "llvm.aarch64.neon.usdot", ..SIGNED_BY_UNSIGNED },
];

const TILE_OF_BYTES: TileProduct = TileProduct {
    factors: [DType::I8, DType::I8],
    sum: DType::I32,
    group: 4,
    packed: DType::U8,
    feature: "amx-int8",
    intrinsic: "llvm.x86.tdpbssd",
};

/// Those of AMX ("Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2): `TDPBF16PS` makes 0 of subnormal
/// numbers, those of bytes wrap around.
const TILE_PRODUCTS: &[TileProduct] = &[
    TileProduct {
        factors: [DType::BF16, DType::BF16],
        sum: DType::F32,
        group: 2,
        packed: DType::U16,
        feature: "amx-bf16",
        intrinsic: "llvm.x86.tdpbf16ps",
    },
    TILE_OF_BYTES,
    TileProduct { factors: [DType::I8, DType::U8], intrinsic: "llvm.x86.tdpbsud", ..TILE_OF_BYTES },
    TileProduct { factors: [DType::U8, DType::I8], intrinsic: "llvm.x86.tdpbusd", ..TILE_OF_BYTES },
    TileProduct { factors: [DType::U8, DType::U8], intrinsic: "llvm.x86.tdpbuud", ..TILE_OF_BYTES },
];

/// How elements along K are multiplied and added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contraction {
    /// One by one.
    MultiplyAdd,
    /// Neighbours by one instruction.
    Dot(&'static DotProduct),
    /// Tiles by one instruction.
    Tiles(&'static TileProduct),
}

/// What of an `mma` decides by which instructions it is multiplied.
#[derive(Clone, Copy)]
pub(super) struct Operands {
    /// The formats of the factors' elements.
    pub(super) factors: [DType; 2],
    /// The format of the sums.
    pub(super) sum: DType,
    /// Rows of `a`.
    pub(super) rows: i64,
    /// Elements along K.
    pub(super) depth: i64,
}

impl Contraction {
    /// The contraction of an `mma` in vectors of so many lanes, on a processor with these features.
    pub(super) fn of(operands: Operands, lanes: i64, has: impl Fn(&str) -> bool) -> Contraction {
        let Operands { factors, sum, rows, depth } = operands;
        let has_tiles = |tiles: &&TileProduct| {
            let takes = tiles.factors == factors && tiles.sum == sum;
            takes && depth % tiles.group == 0 && rows >= LEAST_ROWS && has(tiles.feature)
        };
        if let Some(tiles) = TILE_PRODUCTS.iter().find(has_tiles) {
            return Contraction::Tiles(tiles);
        }
        let fits = |dot: &&DotProduct| {
            let takes = (0..2).all(|i| dot.factors[i].contains(&factors[i]));
            let takes = takes && (!dot.flips_signs || rows >= LEAST_ROWS);
            takes && dot.sum == sum && depth % dot.group == 0 && dot.lanes == lanes && has(dot.feature)
        };
        DOT_PRODUCTS.iter().find(fits).map_or(Contraction::MultiplyAdd, Contraction::Dot)
    }

    /// Elements along K that are multiplied at once.
    pub(super) const fn group(self) -> i64 {
        match self {
            Contraction::MultiplyAdd => 1,
            Contraction::Dot(dot) => dot.group,
            Contraction::Tiles(tiles) => tiles.group,
        }
    }

    /// What multiplies tiles, if that is how.
    pub(super) const fn tiles(self) -> Option<&'static TileProduct> {
        match self {
            Contraction::Tiles(tiles) => Some(tiles),
            _ => None,
        }
    }

    /// Whether the first bit of each byte of `a` is flipped as it is packed.
    pub(super) const fn flips_signs(self) -> bool {
        matches!(self, Contraction::Dot(DotProduct { flips_signs: true, .. }))
    }

    /// The format of packed elements whose products are added to sums of a format.
    pub(super) const fn packed(self, sum: DType) -> DType {
        match (self, sum) {
            (Contraction::Dot(dot), _) => dot.packed,
            (Contraction::Tiles(tiles), _) => tiles.packed,
            (Contraction::MultiplyAdd, DType::F16) => DType::F32,
            (Contraction::MultiplyAdd, sum) => sum,
        }
    }

    /// Whether bf16 are packed as their bits.
    pub(super) fn keeps_bf16(self) -> bool {
        match self {
            Contraction::MultiplyAdd => false,
            Contraction::Dot(dot) => dot.sum == DType::F32,
            Contraction::Tiles(tiles) => tiles.sum == DType::F32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::target::CpuLevel;

    /// What multiplies factors on processors of a level.
    fn of(level: &str, factors: [DType; 2], sum: DType, [rows, depth]: [i64; 2]) -> &'static str {
        let level = CpuLevel::named(level).unwrap();
        let has = |feature: &str| level.all_features().any(|known| known == feature);
        match Contraction::of(Operands { factors, sum, rows, depth }, level.lanes as i64, has) {
            Contraction::MultiplyAdd => "",
            Contraction::Dot(dot) => dot.intrinsic,
            Contraction::Tiles(tiles) => tiles.intrinsic,
        }
    }

    #[test]
    fn neighbours_are_multiplied_together_where_the_level_has_it() {
        use DType::{BF16, F16, F32, I8, I32, U8};
        let rows = [
            ("x86-64-v4-pairs", [BF16, BF16], F32, 8, "llvm.x86.avx512bf16.dpbf16ps.512"),
            ("x86-64-v4-bytes", [I8, U8], I32, 2, "llvm.x86.avx512.vpdpwssd.512"),
            ("x86-64-v4-bytes", [I8, U8], I32, 4, "llvm.x86.avx512.vpdpbusd.512"),
            ("x86-64-v4-bytes", [U8, I8], I32, 4, "llvm.x86.avx512.vpdpbusd.512"),
            ("x86-64-v4-bytes", [I8, I8], I32, 4, "llvm.x86.avx512.vpdpbusd.512"),
            ("x86-64-v4-bytes", [I8, I8], I32, 6, "llvm.x86.avx512.vpdpwssd.512"),
            ("x86-64-v4-bytes", [U8, U8], I32, 4, "llvm.x86.avx512.vpdpbusd.512"),
            ("x86-64-v4-bytes", [BF16, BF16], F32, 8, ""),
            ("x86-64-v4-pairs", [BF16, BF16], F32, 7, ""),
            ("x86-64-v4-pairs", [F16, F16], F32, 8, ""),
            ("x86-64-v4", [BF16, BF16], F32, 8, ""),
            ("x86-64-v4", [U8, I8], I32, 2, "llvm.x86.avx512.pmaddw.d.512"),
            ("x86-64-v3", [I8, I8], I32, 4, "llvm.x86.avx2.pmadd.wd"),
            ("x86-64-v3", [I8, I8], I32, 3, ""),
            ("x86-64-v2", [U8, U8], I32, 4, "llvm.x86.sse2.pmadd.wd"),
            ("armv8.6-a", [BF16, BF16], F32, 6, "llvm.aarch64.neon.bfdot"),
            ("armv8.6-a", [U8, I8], I32, 4, "llvm.aarch64.neon.usdot"),
            ("armv8.6-a", [I8, U8], I32, 4, "llvm.aarch64.neon.usdot"),
            ("armv8.6-a", [I8, I8], I32, 6, ""),
            ("armv8.2-a", [I8, I8], I32, 8, "llvm.aarch64.neon.sdot"),
            ("armv8.2-a", [U8, U8], I32, 8, "llvm.aarch64.neon.udot"),
            ("armv8.2-a", [U8, I8], I32, 8, ""),
            ("armv8.2-a", [BF16, BF16], F32, 8, ""),
            ("armv8-a", [I8, I8], I32, 8, ""),
        ];
        for (level, factors, sum, k, expected) in rows {
            assert_eq!(of(level, factors, sum, [16, k]), expected, "{factors:?}, {k} deep, on {level}");
        }
    }

    #[test]
    fn tiles_are_multiplied_together_where_there_are_rows_for_them() {
        use DType::{BF16, F16, F32, I8, I32, U8};
        let pairs = "llvm.x86.avx512bf16.dpbf16ps.512";
        let rows = [
            ([BF16, BF16], F32, [8, 2], "llvm.x86.tdpbf16ps"),
            ([BF16, BF16], F32, [7, 2], pairs),
            ([BF16, BF16], F32, [16, 7], ""),
            ([F16, F16], F32, [16, 32], ""),
            ([I8, I8], I32, [16, 64], "llvm.x86.tdpbssd"),
            ([I8, U8], I32, [16, 64], "llvm.x86.tdpbsud"),
            ([U8, I8], I32, [16, 64], "llvm.x86.tdpbusd"),
            ([U8, U8], I32, [16, 64], "llvm.x86.tdpbuud"),
            ([U8, U8], I32, [16, 6], "llvm.x86.avx512.vpdpwssd.512"),
        ];
        for (factors, sum, shape, expected) in rows {
            assert_eq!(of("x86-64-v4-tiles", factors, sum, shape), expected, "{factors:?}, {shape:?}");
        }
        assert_eq!(of("x86-64-v4-rows", [BF16, BF16], F32, [16, 32]), pairs);
    }

    #[test]
    fn signs_are_flipped_where_there_are_rows_that_share_what_that_takes() {
        use DType::{I8, I32, U8};
        for (factors, rows, expected) in [
            ([I8, I8], 7, "llvm.x86.avx512.vpdpwssd.512"),
            ([I8, I8], 8, "llvm.x86.avx512.vpdpbusd.512"),
            ([U8, U8], 7, "llvm.x86.avx512.vpdpwssd.512"),
            ([U8, I8], 1, "llvm.x86.avx512.vpdpbusd.512"),
        ] {
            assert_eq!(
                of("x86-64-v4-bytes", factors, I32, [rows, 64]),
                expected,
                "{rows} rows of {factors:?}"
            );
        }
    }
}
