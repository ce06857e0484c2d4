//! Checks layouts: conversion to and from integer layouts, products, quotients, regrouping, refusals.

use alloc::string::ToString;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::distributed;
use crate::Swizzle;
use crate::linear::{BitMatrix, Dim, Group, LinearError, LinearLayout};

/// The colexicographic offsets of an integer layout.
fn offsets(modes: &[(u64, i64)]) -> Vec<i64> {
    let size: u64 = modes.iter().map(|mode| mode.0).product();
    (0..size)
        .map(|mut index| {
            modes.iter().fold(0, |offset, &(extent, stride)| {
                let coordinate = index % extent;
                index /= extent;
                offset + coordinate.cast_signed() * stride
            })
        })
        .collect()
}

fn modes() -> impl Strategy<Value = Vec<(u64, i64)>> {
    prop::collection::vec(((0u32..3).prop_map(|bits| 1u64 << bits), 0i64..20), 0..4)
}

/// Layouts between the hardware and a small tile.
fn tile() -> impl Strategy<Value = LinearLayout> {
    distributed(2, 3, [0..=2, 0..=2, 0..=1, 0..=1])
}

proptest! {
    #[test]
    fn modes_convert_exactly_when_the_function_is_linear(modes in modes()) {
        let table = offsets(&modes);
        let linear = (0..table.len()).all(|x| (0..table.len()).all(|y| table[x ^ y] == table[x] ^ table[y]));
        match LinearLayout::from_modes(&modes) {
            Ok(layout) => {
                prop_assert!(linear);
                let found: Vec<i64> =
                    (0..table.len()).map(|x| layout.apply_flat(x as u64).unwrap().cast_signed()).collect();
                prop_assert_eq!(&found, &table);
                prop_assert_eq!(offsets(&layout.to_modes().unwrap()), table);
            }
            Err(_) => prop_assert!(!linear),
        }
    }

    #[test]
    fn a_swizzle_is_the_same_function(bits in 0i64..4, base in 0i64..4, shift in -4i64..5, width in 0u32..12) {
        let Ok(swizzle) = Swizzle::new(bits, base, shift) else { return Ok(()) };
        match LinearLayout::from_swizzle(swizzle, width) {
            Ok(linear) => {
                for x in 0u64..1 << width {
                    prop_assert_eq!(linear.apply_flat(x).unwrap().cast_signed(), swizzle.apply(x.cast_signed()));
                }
                prop_assert_eq!(linear.invert().unwrap(), linear);
            }
            Err(_) => prop_assert!(swizzle.period() > 1 << width),
        }
    }

    #[test]
    fn compose_is_pointwise(inner in tile(), columns in prop::collection::vec(0u64..64, 5)) {
        let axes = [Group { dim: Dim::Axis(1), bits: 3 }, Group { dim: Dim::Axis(0), bits: 2 }];
        let offset = [Group { dim: Dim::Offset, bits: 6 }];
        let outer = LinearLayout::from_matrix(&axes, &offset, BitMatrix::new(6, &columns).unwrap()).unwrap();
        let composed = outer.compose(&inner).unwrap();
        let bits = composed.matrix().columns().len();
        for x in 0..1u64 << bits {
            let coordinates: Vec<(Dim, u64)> = inner
                .outputs()
                .iter()
                .map(|group| (group.dim, inner.output_coordinate(inner.apply_flat(x).unwrap(), group.dim)))
                .collect();
            prop_assert_eq!(outer.apply(&coordinates).unwrap(), [(Dim::Offset, composed.apply_flat(x).unwrap())]);
        }
    }

    #[test]
    fn product_stacks_and_divides_back(low in tile(), high in tile()) {
        let product = low.product(&high).unwrap();
        for (dim, index) in [(Dim::Register, 5u64), (Dim::Lane, 6), (Dim::Warp, 2), (Dim::Block, 3)] {
            let (low_bits, high_bits) = (low.input_bits(dim), high.input_bits(dim));
            let index = index & ((1 << (low_bits + high_bits)) - 1);
            let below = low.apply(&[(dim, index & ((1 << low_bits) - 1))]).unwrap();
            let above = high.apply(&[(dim, index >> low_bits)]).unwrap();
            let found = product.apply(&[(dim, index)]).unwrap();
            for axis in 0..2 {
                let bits = low.outputs()[axis].bits;
                prop_assert_eq!(found[axis].1, below[axis].1 | above[axis].1 << bits);
            }
        }
        prop_assert_eq!(product.divide_left(&low), Some(high));
    }

    #[test]
    fn quotients_multiply_back(whole in tile(), factor in tile()) {
        if let Some(quotient) = whole.divide_left(&factor) {
            prop_assert_eq!(factor.product(&quotient).unwrap(), whole);
        }
    }

    #[test]
    fn free_bits_are_what_the_owner_never_sets(layout in tile()) {
        let owner = layout.pseudo_invert();
        let bits = layout.matrix().columns().len();
        for x in 0..1u64 << bits {
            let y = layout.apply_flat(x).unwrap();
            let holder = owner.apply_flat(y).unwrap();
            prop_assert_eq!(layout.apply_flat(holder).unwrap(), y);
            for group in layout.inputs() {
                prop_assert_eq!(owner.output_coordinate(holder, group.dim) & layout.free_mask(group.dim), 0);
            }
        }
        let free: u32 = layout.inputs().iter().map(|group| layout.free_mask(group.dim).count_ones()).sum();
        prop_assert_eq!(free + layout.rank(), bits as u32);
    }

    #[test]
    fn transposing_and_flattening_keep_the_named_map(layout in tile()) {
        let order = [Dim::Block, Dim::Warp, Dim::Register, Dim::Lane];
        let moved = layout.transpose_inputs(&order).unwrap();
        let axes = moved.transpose_outputs(&[Dim::Axis(1), Dim::Axis(0)]).unwrap();
        for group in layout.inputs() {
            let place = [(group.dim, group.extent() - 1)];
            let (mut here, there) = (layout.apply(&place).unwrap(), axes.apply(&place).unwrap());
            here.reverse();
            prop_assert_eq!(here, there);
        }
        let flat = layout.flatten_inputs(Dim::Lane).flatten_outputs(Dim::Offset);
        prop_assert_eq!(flat.matrix(), layout.matrix());
    }
}

#[test]
fn every_refusal_names_its_values() {
    let lane = |bits: u32| LinearLayout::identity(Dim::Lane, Dim::Axis(0), 1 << bits).unwrap();
    let wide = LinearLayout::zeros(Dim::Lane, Dim::Axis(0), 1 << 40).unwrap();
    let cases: [(Result<LinearLayout, LinearError>, &str); 13] = [
        (LinearLayout::from_modes(&[(2, 1), (4, 3)]), "modes 0 and 1 add offsets that share bit 0"),
        (LinearLayout::from_modes(&[(2, 1), (2, 1)]), "modes 0 and 1 add offsets that share bit 0"),
        (LinearLayout::from_modes(&[(6, 1)]), "the extent of a mode is 6, which is not a power of two"),
        (LinearLayout::from_modes(&[(0, 1)]), "the extent of a mode is 0"),
        (LinearLayout::from_modes(&[(2, 4), (2, -1)]), "mode 1 has stride -1"),
        (LinearLayout::from_modes(&[(2, i64::MAX), (4, i64::MAX)]), "modes 0 and 1"),
        (LinearLayout::from_modes(&[(4, i64::MAX)]), "offsets of mode 0 don't fit in 63 bits"),
        (LinearLayout::from_modes(&[(1 << 40, 0), (1 << 40, 0)]), "80 bits on one side"),
        (wide.product(&wide), "80 bits on one side"),
        (lane(2).compose(&LinearLayout::from_modes(&[(2, 1)]).unwrap()), "dimension offset"),
        (
            lane(2).compose(&lane(3).rename_output(Dim::Axis(0), Dim::Lane).unwrap()),
            "lane has extent 8 where 4",
        ),
        (lane(2).reshape_inputs(&[(Dim::Lane, 2)]), "1 bits requested for a side of 2 bits"),
        (lane(2).rename_input(Dim::Warp, Dim::Block), "dimension warp"),
    ];
    for (result, expected) in cases {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(expected), "{message:?} should contain {expected:?}");
    }
}

#[test]
fn indices_are_checked() {
    let layout = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 4).unwrap();
    let out_of_range = LinearError::IndexOutOfRange { dim: Dim::Lane, index: 4, extent: 4 };
    assert_eq!(layout.apply(&[(Dim::Lane, 4)]), Err(out_of_range));
    assert_eq!(layout.apply(&[(Dim::Warp, 0)]), Err(LinearError::UnknownDim { dim: Dim::Warp }));
    let twice = layout.apply(&[(Dim::Lane, 1), (Dim::Lane, 1)]);
    assert_eq!(twice, Err(LinearError::DuplicateDim { dim: Dim::Lane }));
    assert_eq!(layout.apply_flat(4), Err(LinearError::FlatIndexOutOfRange { index: 4, bits: 2 }));
    let twice = LinearLayout::new(&[(Dim::Lane, &[[1]]), (Dim::Lane, &[[2]])], [(Dim::Axis(0), 4)]);
    assert_eq!(twice, Err(LinearError::DuplicateDim { dim: Dim::Lane }));
    let duplicate = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 4).unwrap();
    assert!(duplicate.transpose_inputs(&[Dim::Lane, Dim::Lane]).is_err());
    assert!(duplicate.transpose_inputs(&[]).is_err());
}

#[test]
fn extremes_neither_panic_nor_wrap() {
    let full = LinearLayout::identity(Dim::Offset, Dim::Axis(0), 1 << 63).unwrap();
    assert_eq!(full.apply_flat((1 << 63) - 1), Ok((1 << 63) - 1));
    assert!(full.apply_flat(1 << 63).is_err());
    assert_eq!(full.invert().unwrap().invert().unwrap(), full);
    assert_eq!(full.to_modes(), Some(Vec::from([(1 << 63, 1)])));
    assert!(full.product(&full).is_err());
    let scalar = LinearLayout::from_modes(&[]).unwrap();
    assert_eq!((scalar.apply_flat(0), scalar.is_permutation()), (Ok(0), true));
    assert_eq!(scalar.to_string(), "() -> (offset 1)");
    let group = Group { dim: Dim::Lane, bits: u32::MAX };
    assert_eq!(group.extent(), u64::MAX);
    assert!(LinearLayout::from_matrix(&[group, group], &[], BitMatrix::identity(0).unwrap()).is_err());
    assert!(LinearLayout::from_swizzle(Swizzle::IDENTITY, u32::MAX).is_err());
    assert!(LinearLayout::from_swizzle(Swizzle::IDENTITY, 64).is_err());
    assert!(LinearLayout::from_modes(&[(2, 1); 300]).is_err());
    assert!(LinearLayout::from_modes(&[(1, -7); 256]).is_ok());
    assert!(LinearLayout::from_modes(&[(1, -7); 257]).is_err());
}
