//! Checks layouts of shared memory: the canonical operand layouts against their published strides, and swizzles
//! against counting and against exhaustive search.

extern crate std;

use alloc::vec::Vec;

use proptest::prelude::*;

use crate::Swizzle;
use crate::linear::{
    Access, Dim, LinearError, LinearLayout, Major, SharedMemory, SwizzleWidth, Wavefronts, optimal_layout,
    search_swizzle, wavefronts, wgmma_shared_operand,
};

const WIDTHS: [SwizzleWidth; 4] =
    [SwizzleWidth::None, SwizzleWidth::Bytes32, SwizzleWidth::Bytes64, SwizzleWidth::Bytes128];

#[test]
fn shared_operands_follow_the_canonical_strides() {
    for major in [Major::K, Major::MN] {
        for swizzle in WIDTHS {
            for bits in [8u32, 16, 32] {
                let (mn, k) = (128u64, 128u64);
                let operand = wgmma_shared_operand(major, swizzle, bits, mn, k);
                if major == Major::MN && bits != 16 {
                    assert!(operand.is_err());
                    continue;
                }
                let operand = operand.unwrap();
                assert!(operand.layout.is_permutation());
                let bytes = u64::from(bits / 8);
                // T elements are 16 bytes; the swizzle's row is x of them.
                let (t, x) = (16 / bytes, 1u64 << swizzle.bits());
                let (leading, stride) =
                    (operand.leading_byte_offset / bytes, operand.stride_byte_offset / bytes);
                for i in 0..mn {
                    for j in 0..k {
                        let plain = match (major, swizzle) {
                            (Major::K, SwizzleWidth::None) => {
                                i % 8 * t + i / 8 * stride + j % t + j / t * leading
                            }
                            // Beyond one row of the swizzle the instruction gets another start address.
                            (Major::K, _) => {
                                let next = x * t * mn;
                                i % 8 * x * t + i / 8 * stride + j % (x * t) + j / (x * t) * next
                            }
                            (Major::MN, SwizzleWidth::None) => {
                                i % t + i / t * stride + j % 8 * t + j / 8 * leading
                            }
                            (Major::MN, _) => {
                                i % (x * t) + i / (x * t) * leading + j % 8 * x * t + j / 8 * stride
                            }
                        };
                        let address = plain * bytes;
                        let address = address ^ (address >> 7 & (x - 1)) << 4;
                        let found = operand.layout.apply(&[(Dim::Axis(0), i), (Dim::Axis(1), j)]).unwrap();
                        assert_eq!(found[0].1 * bytes, address, "{major:?} {swizzle:?} {bits} ({i}, {j})");
                    }
                }
            }
        }
    }
}

#[test]
fn shared_operands_of_other_sizes_are_refused() {
    let operand = |mn, k| wgmma_shared_operand(Major::K, SwizzleWidth::Bytes128, 16, mn, k);
    assert_eq!(operand(128, 64).unwrap().stride_byte_offset, 1024);
    assert!(operand(8, 32).is_err() && operand(4, 64).is_err() && operand(96, 64).is_err());
    assert!(matches!(operand(1 << 40, 1 << 40), Err(LinearError::TooManyBits { .. })));
    let bytes = wgmma_shared_operand(Major::K, SwizzleWidth::None, 32, 1 << 61, 4);
    assert!(matches!(bytes, Err(LinearError::TooManyBits { bits: 65, limit: 63 })));
    assert!(wgmma_shared_operand(Major::K, SwizzleWidth::None, 0, 64, 64).is_err());
}

/// Lane bits and vector bits of an access as `(row, column)` bases.
fn access<const LANES: usize>(
    rows: u64,
    columns: u64,
    vector: u32,
    lanes: [[u64; 2]; LANES],
) -> LinearLayout {
    let vector: Vec<[u64; 2]> = (0..vector).map(|bit| [0, 1 << bit]).collect();
    LinearLayout::new(
        &[(Dim::Register, &vector), (Dim::Lane, &lanes)],
        [(Dim::Axis(0), rows), (Dim::Axis(1), columns)],
    )
    .unwrap()
}

/// Counts the wavefronts of an access, lane by lane.
fn count(memory: &LinearLayout, shared: SharedMemory, access: Access<'_>) -> Wavefronts {
    let placed = memory.compose(access.layout).unwrap();
    let addresses: Vec<u64> = (0..1u64 << placed.input_bits(Dim::Lane))
        .map(|lane| placed.apply(&[(Dim::Lane, lane)]).unwrap()[0].1 * u64::from(shared.element_bytes))
        .collect();
    wavefronts(&addresses, access.width, shared.banks).unwrap()
}

const HALF: SharedMemory = SharedMemory { element_bytes: 2, banks: 32 };

#[test]
fn a_tile_written_by_rows_and_read_by_ldmatrix() {
    // 128 x 64 elements of 16 bits: lanes write 16 bytes, eight lanes to a row; ldmatrix.x4 reads 16 rows of 16
    // bytes at two neighbouring column blocks.
    let memory = LinearLayout::from_modes(&[(128, 64), (64, 1)]).unwrap();
    let write = access(128, 64, 3, [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]]);
    let read = access(128, 64, 3, [[1, 0], [2, 0], [4, 0], [8, 0], [0, 8]]);
    let (write, read) = (Access { layout: &write, width: 16 }, Access { layout: &read, width: 16 });
    assert_eq!(count(&memory, HALF, read).count, 32);
    let best = search_swizzle(&memory, HALF, write, read).unwrap();
    assert_eq!(best.swizzle, Swizzle::new(3, 3, 3).unwrap());
    assert_eq!((best.shared.write.count, best.shared.read.count), (4, 4));
    assert_eq!(count(&best.shared.layout, HALF, read), best.shared.read);
    assert_eq!(search_swizzle(&memory, HALF, write, read), Ok(best));
    let free = optimal_layout(HALF, write, read).unwrap();
    assert_eq!((free.write.count, free.read.count), (4, 4));
}

#[test]
fn narrower_rows_need_narrower_swizzles() {
    for (columns, bits) in [(32u64, 2), (16, 1)] {
        let memory = LinearLayout::from_modes(&[(64, columns.cast_signed()), (columns, 1)]).unwrap();
        let write = match columns {
            32 => access(64, columns, 3, [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]]),
            _ => access(64, columns, 3, [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]]),
        };
        let read = access(64, columns, 3, [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]);
        let (write, read) = (Access { layout: &write, width: 16 }, Access { layout: &read, width: 16 });
        let best = search_swizzle(&memory, HALF, write, read).unwrap();
        assert_eq!(best.swizzle, Swizzle::new(bits.into(), 3, 3).unwrap());
        assert!(best.shared.write.is_conflict_free() && best.shared.read.is_conflict_free());
    }
}

#[test]
fn a_transpose_through_shared_memory() {
    // Vectors of 16 bytes in, single elements down columns out.
    let memory = LinearLayout::from_modes(&[(64, 64), (64, 1)]).unwrap();
    let write = access(64, 64, 3, [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]]);
    let read = access(64, 64, 0, [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]);
    let (write, read) = (Access { layout: &write, width: 16 }, Access { layout: &read, width: 2 });
    let swizzled = search_swizzle(&memory, HALF, write, read).unwrap();
    let free = optimal_layout(HALF, write, read).unwrap();
    // The 32 elements read lie at one place of their 16-byte chunks, and there are eight chunks to a row of banks.
    assert_eq!((free.write.count, free.read.count), (4, 4));
    assert_eq!((swizzled.shared.write.count, swizzled.shared.read.count), (4, 4));
    assert_eq!(count(&free.layout, HALF, read), free.read);
    assert_eq!(count(&free.layout, HALF, write), free.write);
}

/// Where the vectors given don't cover the tile, some that are torn apart could be among those not given: their bits stay.
#[test]
fn no_swizzle_of_bits_within_the_longer_vector_is_chosen() {
    let shared = SharedMemory { element_bytes: 4, banks: 16 };
    let layout = |registers: &[[u64; 1]], lanes: &[[u64; 1]]| {
        LinearLayout::new(&[(Dim::Register, registers), (Dim::Lane, lanes)], [(Dim::Axis(0), 32)]).unwrap()
    };
    let (write, read) = (layout(&[[1], [2]], &[[8]]), layout(&[[1]], &[[4], [8], [16], [2]]));
    let (write, read) = (Access { layout: &write, width: 16 }, Access { layout: &read, width: 8 });
    let memory = LinearLayout::from_modes(&[(32, 1)]).unwrap();
    let best = search_swizzle(&memory, shared, write, read).unwrap();
    assert_eq!((best.shared.write.count, best.shared.read.count), (1, 4));
    let lower = Swizzle::new(1, 1, 3).unwrap();
    let torn = LinearLayout::from_swizzle(lower, 5).unwrap().compose(&memory).unwrap();
    assert_eq!((count(&torn, shared, write).count, count(&torn, shared, read).count), (1, 2));
}

#[test]
fn no_swizzle_where_none_helps() {
    let memory = LinearLayout::from_modes(&[(32, 32), (32, 1)]).unwrap();
    let row = access(32, 32, 0, [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]);
    let row = Access { layout: &row, width: 4 };
    let shared = SharedMemory { element_bytes: 4, banks: 32 };
    let best = search_swizzle(&memory, shared, row, row).unwrap();
    assert_eq!((best.swizzle, best.shared.layout), (Swizzle::IDENTITY, memory));
}

#[test]
fn impossible_accesses_are_refused() {
    let memory = LinearLayout::from_modes(&[(8, 1), (8, 8)]).unwrap();
    let across = access(8, 8, 3, [[1, 0], [2, 0]]);
    let along = LinearLayout::new(
        &[(Dim::Register, &[[1, 0], [2, 0], [4, 0]]), (Dim::Lane, &[[0, 1]])],
        [(Dim::Axis(0), 8), (Dim::Axis(1), 8)],
    )
    .unwrap();
    let wide = |layout| Access { layout, width: 16 };
    assert!(matches!(
        search_swizzle(&memory, HALF, wide(&across), wide(&along)),
        Err(LinearError::BadAccess { .. })
    ));
    assert!(matches!(optimal_layout(HALF, wide(&across), wide(&along)), Err(LinearError::BadAccess { .. })));
    let narrow = access(8, 8, 1, [[1, 0]]);
    assert!(matches!(optimal_layout(HALF, wide(&narrow), wide(&along)), Err(LinearError::BadAccess { .. })));
    let larger = access(16, 8, 3, [[1, 0]]);
    assert!(matches!(
        optimal_layout(HALF, wide(&across), wide(&larger)),
        Err(LinearError::ExtentMismatch { .. })
    ));
    for shared in [SharedMemory { element_bytes: 0, banks: 32 }, SharedMemory { element_bytes: 2, banks: 0 }]
    {
        assert!(optimal_layout(shared, wide(&across), wide(&across)).is_err());
        assert!(search_swizzle(&memory, shared, wide(&along), wide(&along)).is_err());
    }
}

/// Lanes as random words of a 64 x 32 tile of 4-byte elements, without vectors.
fn scattered() -> impl Strategy<Value = LinearLayout> {
    prop::collection::vec((0u64..64, 0u64..32), 5).prop_map(|bases| {
        let lanes: Vec<[u64; 2]> = bases.into_iter().map(|(row, column)| [row, column]).collect();
        LinearLayout::new(&[(Dim::Lane, &lanes)], [(Dim::Axis(0), 64), (Dim::Axis(1), 32)]).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn words_of_32_lanes_never_conflict_in_the_optimal_layout(write in scattered(), read in scattered()) {
        let shared = SharedMemory { element_bytes: 4, banks: 32 };
        let (write, read) = (Access { layout: &write, width: 4 }, Access { layout: &read, width: 4 });
        let best = optimal_layout(shared, write, read).unwrap();
        prop_assert!(best.layout.is_permutation());
        prop_assert_eq!((best.write.count, best.read.count), (1, 1));
        prop_assert_eq!(count(&best.layout, shared, write), best.write);
        prop_assert_eq!(count(&best.layout, shared, read), best.read);
        let memory = LinearLayout::from_modes(&[(64, 32), (32, 1)]).unwrap();
        let swizzled = search_swizzle(&memory, shared, write, read).unwrap();
        prop_assert_eq!(count(&swizzled.shared.layout, shared, write), swizzled.shared.write);
        prop_assert_eq!(count(&swizzled.shared.layout, shared, read), swizzled.shared.read);
    }

    #[test]
    fn few_banks_and_narrow_elements_stay_consistent(
        write in scattered(), read in scattered(), element in 0u32..3, banks in 0u32..6,
    ) {
        let shared = SharedMemory { element_bytes: 1 << element, banks: 1 << banks };
        let (write, read) =
            (Access { layout: &write, width: 1 << element }, Access { layout: &read, width: 1 << element });
        let best = optimal_layout(shared, write, read).unwrap();
        prop_assert!(best.layout.is_permutation());
        prop_assert_eq!(count(&best.layout, shared, write), best.write);
        prop_assert_eq!(count(&best.layout, shared, read), best.read);
    }
}
