//! Checks the rank-based count of wavefronts against counting.

use alloc::vec::Vec;

use proptest::prelude::*;

use crate::linear::{BitMatrix, Dim, Group, LinearLayout, linear_wavefronts, wavefronts};

/// A layout from lane bits to 12 offset bits, with some broadcast bits.
fn lanes() -> impl Strategy<Value = Vec<u64>> {
    let column = prop_oneof![1 => Just(0u64), 3 => (0u32..12).prop_map(|bit| 1 << bit), 4 => 0u64..1 << 12];
    prop::collection::vec(column, 0..7)
}

fn layout(columns: &[u64]) -> LinearLayout {
    let lanes = Group { dim: Dim::Lane, bits: columns.len() as u32 };
    let offset = Group { dim: Dim::Offset, bits: 12 };
    LinearLayout::from_matrix(&[lanes], &[offset], BitMatrix::new(12, columns).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn rank_equals_count(
        columns in lanes(),
        element in 0u32..5,
        width in 0u32..5,
        banks in prop_oneof![Just(32u32), Just(64), Just(1), Just(4)],
    ) {
        let (element, width) = (1u32 << element, 1u32 << width);
        let layout = layout(&columns);
        let addresses: Vec<u64> = (0..1u64 << columns.len())
            .map(|lane| layout.apply_flat(lane).unwrap() * u64::from(element))
            .collect();
        let counted = wavefronts(&addresses, width, banks);
        let ranked = linear_wavefronts(&layout, element, width, banks);
        prop_assert_eq!(counted.is_ok(), ranked.is_ok());
        if let (Ok(counted), Ok(ranked)) = (counted, ranked) {
            prop_assert_eq!(counted, ranked);
            prop_assert!(counted.count >= counted.minimum);
        }
    }
}

#[test]
fn known_accesses() {
    let strided = |stride: u64| -> Vec<u64> { (0..32).map(|lane| lane * stride).collect() };
    let count = |addresses: &[u64], width| wavefronts(addresses, width, 32).unwrap().count;
    assert_eq!(count(&strided(4), 4), 1);
    assert_eq!(count(&strided(8), 4), 2);
    assert_eq!(count(&strided(132), 4), 1, "a padded row");
    assert_eq!(count(&strided(0), 4), 1, "a broadcast");
    assert_eq!(count(&strided(1), 1), 1);
    assert_eq!(count(&strided(2), 2), 1);
    assert_eq!(count(&strided(8), 8), 2);
    assert_eq!(count(&strided(16), 16), 4);
    assert_eq!(count(&strided(128), 16), 32);
    assert_eq!(wavefronts(&strided(8), 4, 64).unwrap().count, 1, "twice the banks");
    let wave: Vec<u64> = (0..64).map(|lane| lane * 4).collect();
    assert_eq!(wavefronts(&wave, 4, 32).unwrap().count, 2, "a wave of 64 lanes");
    assert_eq!(wavefronts(&[], 4, 32).unwrap().count, 0);
    assert_eq!(wavefronts(&[u64::MAX - 15], 16, 32).unwrap().count, 1);
}

#[test]
fn impossible_accesses_are_refused() {
    assert!(wavefronts(&[2], 4, 32).is_err());
    assert!([0, 3, 32].iter().all(|&width| wavefronts(&[0], width, 32).is_err()));
    assert!([0, 48, 2048].iter().all(|&banks| wavefronts(&[0], 4, banks).is_err()));
    let row = LinearLayout::identity(Dim::Lane, Dim::Offset, 32).unwrap();
    assert!(linear_wavefronts(&row, 2, 4, 32).is_err());
    assert!(linear_wavefronts(&row, 3, 1, 32).is_err());
    let axis = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 32).unwrap();
    assert!(linear_wavefronts(&axis, 4, 4, 32).is_err());
    let huge = LinearLayout::identity(Dim::Lane, Dim::Offset, 1 << 63).unwrap();
    assert!(linear_wavefronts(&huge, 1 << 31, 4, 32).is_err());
    assert_eq!(linear_wavefronts(&huge, 1, 1, 1).unwrap().count, 1 << 63);
}
