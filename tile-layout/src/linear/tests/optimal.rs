//! Checks the optimal layout of shared memory against all linear layouts of a tile of sixteen elements.

extern crate std;

use alloc::vec::Vec;
use std::sync::LazyLock;

use proptest::prelude::*;

use crate::linear::{
    Access, BitMatrix, Dim, Group, LinearLayout, SharedMemory, Subspace, linear_wavefronts, optimal_layout,
};

const TILE_BITS: u32 = 4;

/// Every permutation of the sixteen elements that is linear.
static LAYOUTS: LazyLock<Vec<LinearLayout>> = LazyLock::new(|| {
    let mut bases = Vec::from([Vec::new()]);
    for _ in 0..TILE_BITS {
        let extended = |basis: Vec<u64>| {
            let span = Subspace::span(basis.iter().copied());
            let further = (1..1u64 << TILE_BITS).filter(move |&vector| !span.contains(vector));
            further.map(move |vector| basis.iter().copied().chain([vector]).collect::<Vec<u64>>())
        };
        bases = bases.into_iter().flat_map(extended).collect();
    }
    let tile = [Group { dim: Dim::Axis(0), bits: TILE_BITS }];
    let offset = [Group { dim: Dim::Offset, bits: TILE_BITS }];
    bases
        .iter()
        .map(|basis| BitMatrix::new(TILE_BITS, basis).unwrap())
        .map(|matrix| LinearLayout::from_matrix(&tile, &offset, matrix).unwrap())
        .collect()
});

/// An access of all elements: a vector of at most two, some lanes, and registers for the rest.
fn covering(vector: &[u64], lanes: &[u64]) -> LinearLayout {
    let mut registers: Vec<[u64; 1]> = vector.iter().map(|&element| [element]).collect();
    let mut covered = Subspace::span(vector.iter().chain(lanes).copied());
    registers
        .extend((0..TILE_BITS).map(|bit| 1 << bit).filter(|&unit| covered.insert(unit)).map(|unit| [unit]));
    let lanes: Vec<[u64; 1]> = lanes.iter().map(|&lane| [lane]).collect();
    LinearLayout::new(&[(Dim::Register, &registers), (Dim::Lane, &lanes)], [(Dim::Axis(0), 1 << TILE_BITS)])
        .unwrap()
}

/// The passes of an access, or `None` where the layout tears its vectors apart.
fn passes(memory: &LinearLayout, shared: SharedMemory, access: Access<'_>, vector: usize) -> Option<u64> {
    let placed = memory.compose(access.layout).unwrap();
    let (own, others) = placed.matrix().columns().split_at(vector);
    let whole = own.iter().enumerate().all(|(bit, &column)| column == 1 << bit)
        && others.iter().all(|column| column % (1 << vector) == 0);
    whole.then(|| linear_wavefronts(&placed, shared.element_bytes, access.width, shared.banks).unwrap().count)
}

fn lanes() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0..1u64 << TILE_BITS, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn no_layout_beats_the_optimal_one(
        (write_lanes, read_lanes) in (lanes(), lanes()),
        (write_vector, read_vector) in (0usize..2, 0usize..2),
        direction in 1..1u64 << TILE_BITS,
        element in 0u32..3,
        banks in 1u32..4,
    ) {
        let shared = SharedMemory { element_bytes: 1 << element, banks: 1 << banks };
        let vector = [direction];
        let write_layout = covering(&vector[..write_vector], &write_lanes);
        let read_layout = covering(&vector[..read_vector], &read_lanes);
        let write = Access { layout: &write_layout, width: shared.element_bytes << write_vector };
        let read = Access { layout: &read_layout, width: shared.element_bytes << read_vector };
        let both = |memory: &LinearLayout| {
            Some(passes(memory, shared, write, write_vector)? + passes(memory, shared, read, read_vector)?)
        };
        let fewest = LAYOUTS.iter().filter_map(both).min();
        let found = optimal_layout(shared, write, read).ok();
        prop_assert_eq!(found.as_ref().map(|best| best.write.count + best.read.count), fewest);
        prop_assert_eq!(found.and_then(|best| both(&best.layout)), fewest);
    }
}
