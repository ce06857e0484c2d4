//! Decides what proves the module: algebra against pointwise evaluation, fragments against the manuals' formulas,
//! ranks against counting. Knows only the public interface. Invariant: expected values come from another
//! formulation than the code's.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod banks;
mod convert;
mod distribution;
mod fragments;
mod layout;
mod matrix;
mod optimal;
mod shared;

use alloc::vec::Vec;

use proptest::prelude::*;

use super::{Dim, LinearLayout};

/// Row and column that a fragment gives for a register, a lane and a warp.
fn at(layout: &LinearLayout, register: u64, lane: u64, warp: u64) -> (u64, u64) {
    let mut place = Vec::from([(Dim::Register, register), (Dim::Lane, lane)]);
    if layout.inputs().iter().any(|group| group.dim == Dim::Warp) {
        place.push((Dim::Warp, warp));
    }
    let coordinates = layout.apply(&place).unwrap();
    (coordinates[0].1, coordinates[1].1)
}

/// A random layout from hardware dimensions to two axes of `rows` and `columns` bits.
fn distributed(
    rows: u32,
    columns: u32,
    bits: [core::ops::RangeInclusive<usize>; 4],
) -> impl Strategy<Value = LinearLayout> {
    let base = move || (0..1u64 << rows, 0..1u64 << columns).prop_map(|(row, column)| [row, column]);
    let [register, lane, warp, block] = bits.map(|count| prop::collection::vec(base(), count));
    (register, lane, warp, block).prop_map(move |(register, lane, warp, block)| {
        let inputs = [
            (Dim::Register, register.as_slice()),
            (Dim::Lane, lane.as_slice()),
            (Dim::Warp, warp.as_slice()),
            (Dim::Block, block.as_slice()),
        ];
        LinearLayout::new(&inputs, [(Dim::Axis(0), 1 << rows), (Dim::Axis(1), 1 << columns)]).unwrap()
    })
}
