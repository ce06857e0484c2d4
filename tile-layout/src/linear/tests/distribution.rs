//! Distributions against counting: who holds an element, who owns it, which slots are neighbours.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use crate::linear::{Distribution, LinearError, MatrixShape, Operand, mma_sync};

/// The holders of every element, as slot and thread; padding is nobody's.
fn holders(tile: &Distribution) -> BTreeMap<Vec<u64>, Vec<(u64, u64)>> {
    let mut found: BTreeMap<Vec<u64>, Vec<(u64, u64)>> = BTreeMap::new();
    for thread in 0..tile.threads() {
        for slot in 0..tile.slots() {
            let place = tile.place(slot, thread);
            if place.iter().zip(tile.shape()).all(|(place, extent)| place < extent) {
                found.entry(place).or_default().push((slot, thread));
            }
        }
    }
    found
}

fn check(tile: &Distribution) {
    let holders = holders(tile);
    assert_eq!(holders.len() as u64, tile.shape().iter().product::<u64>(), "{tile}: an element is missing");
    let copies = tile.copies();
    for (element, held) in &holders {
        let owners = held.iter().filter(|(_, thread)| thread & copies == 0).count();
        assert_eq!(owners, 1, "{tile}: {element:?} is held by {held:?}");
    }
    for axis in 0..tile.shape().len() {
        let neighbours = tile.neighbours(axis);
        for slot in 0..tile.slots() {
            let first = slot / neighbours * neighbours;
            for thread in 0..tile.threads() {
                let mut expected = tile.place(first, thread);
                assert!(expected[axis].is_multiple_of(neighbours));
                expected[axis] += slot - first;
                assert_eq!(tile.place(slot, thread), expected, "{tile}: neighbours along {axis}");
            }
        }
    }
}

fn tiles() -> impl Strategy<Value = Distribution> {
    let extent = prop_oneof![1u64..20, (0u32..6).prop_map(|bits| 1 << bits)];
    let shape = prop::collection::vec(extent, 1..4);
    (shape, any::<u64>(), 0u32..4, 0u32..4, 0u32..3).prop_map(|(shape, turn, vector, lanes, warps)| {
        let mut order: Vec<usize> = (0..shape.len()).rev().collect();
        order.rotate_left(turn as usize % shape.len());
        Distribution::blocked(&shape, &order, 1 << vector, 1 << lanes, 1 << warps).unwrap()
    })
}

proptest! {
    #[test]
    fn every_element_has_one_owner(tile in tiles()) {
        check(&tile);
    }

    #[test]
    fn a_reduced_tile_stays_where_it_was(tile in tiles(), axis in 0usize..3) {
        let axis = axis % tile.shape().len();
        let rest = tile.without_axis(axis).unwrap();
        check(&rest);
        let held = holders(&rest);
        for (mut element, places) in holders(&tile) {
            element[axis] = 0;
            for (_, thread) in places {
                prop_assert!(held[&element].iter().any(|&(_, holder)| holder == thread));
            }
        }
    }

    #[test]
    fn a_permuted_tile_stays_where_it_was(tile in tiles(), turn in any::<usize>()) {
        let mut permutation: Vec<usize> = (0..tile.shape().len()).collect();
        permutation.rotate_left(turn % tile.shape().len());
        let moved = tile.permuted(&permutation).unwrap();
        let pieces = tile.pieces();
        // The order of pieces changes with the axes; within a piece slots keep their numbers.
        prop_assume!(pieces.iter().filter(|&&count| count > 1).count() <= 1);
        for thread in 0..tile.threads() {
            for slot in 0..tile.slots() {
                let place = tile.place(slot, thread);
                let expected: Vec<u64> = permutation.iter().map(|&axis| place[axis]).collect();
                prop_assert_eq!(moved.place(slot, thread), expected);
            }
        }
    }

    #[test]
    fn a_reshaped_tile_keeps_its_row_major_numbers(tile in tiles(), ones in 0usize..3) {
        let mut shape = tile.shape().to_vec();
        shape.insert(ones % (shape.len() + 1), 1);
        let elements: u64 = shape.iter().product();
        let number = |place: &[u64], shape: &[u64]| {
            place.iter().zip(shape).fold(0, |number, (place, extent)| number * extent + place)
        };
        for target in [shape, vec![elements]] {
            let Some(moved) = tile.reshaped(&target) else { continue };
            prop_assume!(tile.pieces().iter().filter(|&&count| count > 1).count() <= 1);
            for (element, held) in holders(&tile) {
                for (slot, thread) in held {
                    let place = moved.place(slot, thread);
                    prop_assert_eq!(number(&place, &target), number(&element, tile.shape()));
                }
            }
        }
    }
}

#[test]
fn a_shape_of_another_size_is_no_reshape() {
    let tile = Distribution::blocked(&[4, 16], &[1, 0], 2, 8, 2).unwrap();
    for other in [&[32][..], &[128], &[4, 8], &[4, 32], &[1], &[1 << 63, 1 << 63]] {
        assert_eq!(tile.reshaped(other), None, "{other:?}");
    }
    assert!(tile.reshaped(&[64]).is_some() && tile.reshaped(&[2, 2, 16]).is_some());
    assert_eq!(Distribution::blocked(&[3, 64], &[1, 0], 4, 8, 2).unwrap().reshaped(&[6, 64]), None);
}

#[test]
fn axes_that_are_no_powers_of_two_are_padded_at_the_end() {
    let tile = Distribution::blocked(&[3, 300], &[1, 0], 4, 32, 2).unwrap();
    check(&tile);
    assert_eq!(tile.pieces(), [3, 2]);
    assert!(tile.is_padded(1) && !tile.is_padded(0));
}

#[test]
fn fragments_repeat_over_warps_and_registers() {
    let shape = MatrixShape { m: 16, n: 8, k: 16 };
    let sum = mma_sync(shape, 16, Operand::Accumulator).unwrap();
    let tile = Distribution::of_fragment(&[64, 48], &sum, &[Some(0), Some(0)]).unwrap();
    check(&tile);
    assert_eq!((tile.slots(), tile.pieces()), (24, vec![1, 6]));
    let small = Distribution::of_fragment(&[8, 8], &sum, &[Some(1)]).unwrap();
    check(&small);
    assert_eq!((small.slots(), small.copies()), (2, 32));
}

#[test]
fn a_linear_layout_says_the_same() {
    let tile = Distribution::blocked(&[4, 32], &[1, 0], 2, 8, 4).unwrap();
    let layout = tile.linear().unwrap();
    for thread in 0..tile.threads() {
        for slot in 0..tile.slots() {
            let flat = layout.apply_flat(slot | thread << 2).unwrap();
            let place = tile.place(slot, thread);
            assert_eq!(flat, place[0] * 32 + place[1]);
        }
    }
    assert_eq!(Distribution::blocked(&[12], &[0], 1, 4, 1).unwrap().linear(), None);
}

/// Where there is one layout, a refusal doesn't speak of two.
#[test]
fn refusals_of_one_tile_name_no_other() {
    let message = |result: Result<Distribution, LinearError>| -> String { result.unwrap_err().to_string() };
    assert_eq!(
        message(Distribution::new(&[4], vec![vec![3]], vec![], vec![])),
        "registers, lanes and warps lead to 2 of the 4 elements of a piece; add bits that lead to the others"
    );
    assert_eq!(
        message(Distribution::blocked(&[4], &[1], 1, 4, 1)),
        "dimension axis1 is none of those here; use one of them"
    );
    let tile = Distribution::blocked(&[4, 8], &[1, 0], 2, 4, 1).unwrap();
    let missing = "dimension axis1 is missing; name each dimension once";
    assert_eq!(message(tile.permuted(&[0])), missing);
    assert_eq!(message(Distribution::new(&[4, 8], vec![vec![1]], vec![], vec![])), missing);
}
