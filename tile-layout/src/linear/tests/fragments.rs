//! Checks every fragment against the closed formulas of the manuals, for every lane and register, and that it
//! covers its tile.

use alloc::vec::Vec;

use super::at;
use crate::linear::{
    Dim, LinearLayout, MatrixMove, MatrixShape, Operand, WmmaGeneration, mfma, mfma_by_sums, mfma_scale,
    mma_sync, mma_sync_scale, tensor_memory_accumulator, wgmma_accumulator, wgmma_register_operand,
    wgmma_slabs, wmma,
};

/// Compares a fragment with `formula(register, lane, warp)`, and its number of registers and of copies.
fn check(
    layout: &LinearLayout,
    registers: u64,
    copy_bits: u32,
    formula: impl Fn(u64, u64, u64) -> (u64, u64),
) {
    assert_eq!(1 << layout.input_bits(Dim::Register), registers, "{layout}");
    for register in 0..registers {
        for lane in 0..1 << layout.input_bits(Dim::Lane) {
            for warp in 0..1 << layout.input_bits(Dim::Warp) {
                let expected = formula(register, lane, warp);
                assert_eq!(at(layout, register, lane, warp), expected, "{register} {lane} {warp}\n{layout}");
            }
        }
    }
    assert!(layout.is_surjective(), "{layout}");
    let bits = layout.matrix().columns().len() as u32;
    assert_eq!(bits - layout.rank(), copy_bits, "{layout}");
}

fn sync(k: u32, bits: u32, operand: Operand) -> LinearLayout {
    mma_sync(MatrixShape { m: 16, n: 8, k }, bits, operand).unwrap()
}

// Names of the PTX ISA: groupID and threadID_in_group.
fn group(lane: u64) -> u64 {
    lane >> 2
}
fn thread(lane: u64) -> u64 {
    lane % 4
}

#[test]
fn mma_m16n8k16_of_16_bits() {
    check(&sync(16, 16, Operand::A), 8, 0, |i, lane, _| {
        let row = if i < 2 || (4..6).contains(&i) { group(lane) } else { group(lane) + 8 };
        let column = thread(lane) * 2 + (i & 1) + if i >= 4 { 8 } else { 0 };
        (row, column)
    });
    check(&sync(16, 16, Operand::B), 4, 0, |i, lane, _| {
        (thread(lane) * 2 + (i & 1) + if i >= 2 { 8 } else { 0 }, group(lane))
    });
    check(&sync(16, 16, Operand::Accumulator), 4, 0, |i, lane, _| {
        (if i < 2 { group(lane) } else { group(lane) + 8 }, thread(lane) * 2 + (i & 1))
    });
}

#[test]
fn mma_m16n8k8_of_16_bits() {
    check(&sync(8, 16, Operand::A), 4, 0, |i, lane, _| {
        (if i < 2 { group(lane) } else { group(lane) + 8 }, thread(lane) * 2 + (i & 1))
    });
    check(&sync(8, 16, Operand::B), 2, 0, |i, lane, _| (thread(lane) * 2 + i, group(lane)));
}

#[test]
fn mma_of_tf32() {
    check(&sync(4, 32, Operand::A), 2, 0, |i, lane, _| {
        (if i == 0 { group(lane) } else { group(lane) + 8 }, thread(lane))
    });
    check(&sync(4, 32, Operand::B), 1, 0, |_, lane, _| (thread(lane), group(lane)));
    check(&sync(8, 32, Operand::A), 4, 0, |i, lane, _| {
        let row = if i == 0 || i == 2 { group(lane) } else { group(lane) + 8 };
        (row, if i < 2 { thread(lane) } else { thread(lane) + 4 })
    });
    check(&sync(8, 32, Operand::B), 2, 0, |i, lane, _| {
        (if i == 0 { thread(lane) } else { thread(lane) + 4 }, group(lane))
    });
}

#[test]
fn mma_of_8_bits() {
    check(&sync(16, 8, Operand::A), 8, 0, |i, lane, _| {
        (if i < 4 { group(lane) } else { group(lane) + 8 }, thread(lane) * 4 + (i & 3))
    });
    check(&sync(16, 8, Operand::B), 4, 0, |i, lane, _| (thread(lane) * 4 + i, group(lane)));
    check(&sync(32, 8, Operand::A), 16, 0, |i, lane, _| {
        let row = if i < 4 || (8..12).contains(&i) { group(lane) } else { group(lane) + 8 };
        (row, thread(lane) * 4 + (i & 3) + if i >= 8 { 16 } else { 0 })
    });
    check(&sync(32, 8, Operand::B), 8, 0, |i, lane, _| {
        (thread(lane) * 4 + (i & 3) + if i >= 4 { 16 } else { 0 }, group(lane))
    });
}

#[test]
fn mma_of_4_bits() {
    check(&sync(32, 4, Operand::A), 16, 0, |i, lane, _| {
        (if i < 8 { group(lane) } else { group(lane) + 8 }, thread(lane) * 8 + (i & 7))
    });
    check(&sync(64, 4, Operand::B), 16, 0, |i, lane, _| {
        (thread(lane) * 8 + (i & 7) + if i >= 8 { 32 } else { 0 }, group(lane))
    });
}

#[test]
fn wgmma_fragments_give_each_warp_sixteen_rows() {
    check(&wgmma_register_operand(16).unwrap(), 8, 0, |i, lane, warp| {
        let row = 16 * warp + group(lane) + 8 * (i / 2 % 2);
        (row, thread(lane) * 2 + (i & 1) + 8 * (i / 4))
    });
    check(&wgmma_register_operand(8).unwrap(), 16, 0, |i, lane, warp| {
        let row = 16 * warp + group(lane) + 8 * (i / 4 % 2);
        (row, thread(lane) * 4 + (i & 3) + 16 * (i / 8))
    });
    check(&wgmma_register_operand(32).unwrap(), 4, 0, |i, lane, warp| {
        (16 * warp + group(lane) + 8 * (i % 2), thread(lane) + 4 * (i / 2))
    });
    for n in [8, 16, 32, 64, 128, 256] {
        check(&wgmma_accumulator(n).unwrap(), u64::from(n) / 2, 0, |i, lane, warp| {
            (16 * warp + lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (lane % 4) + i % 2)
        });
    }
}

#[test]
fn tensor_memory_gives_each_warp_thirty_two_rows() {
    for n in [8, 16, 32, 64, 128, 256] {
        let of_load = u64::from(n) / 2;
        check(&tensor_memory_accumulator(n).unwrap(), 2 * of_load, 0, |register, lane, warp| {
            let (load, i) = (register / of_load, register % of_load);
            let row = 32 * warp + 16 * load + group(lane) + 8 * (i / 2 % 2);
            (row, 8 * (i / 4) + 2 * thread(lane) + i % 2)
        });
    }
}

#[test]
fn wgmma_slabs_lie_side_by_side() {
    for n in (8..=256).step_by(8) {
        let slabs = wgmma_slabs(n).unwrap();
        assert_eq!(slabs.count * 8, n);
        if let Ok(whole) = wgmma_accumulator(n) {
            for register in 0..u64::from(n) / 2 {
                let (row, column) = at(&slabs.slab, register % 4, 21, 2);
                assert_eq!(at(&whole, register, 21, 2), (row, column + 8 * (register / 4)));
            }
        }
    }
}

fn indices(coordinates: Vec<(Dim, u64)>) -> Vec<u64> {
    coordinates.into_iter().map(|(_, index)| index).collect()
}

#[test]
fn matrix_moves() {
    for (matrices, transposed) in [(1, false), (2, false), (4, false), (1, true), (2, true), (4, true)] {
        let this = MatrixMove { matrices, transposed };
        let (fragment, rows) = (this.fragment().unwrap(), this.row_addresses().unwrap());
        assert!(fragment.is_permutation());
        for lane in 0..32u64 {
            for register in 0..2 * u64::from(matrices) {
                let place = fragment.apply(&[(Dim::Register, register), (Dim::Lane, lane)]).unwrap();
                let (row, column) = (lane / 4, 2 * (lane % 4) + register % 2);
                let (row, column) = if transposed { (column, row) } else { (row, column) };
                assert_eq!(indices(place), [row, column, register / 2]);
            }
            let address = rows.apply(&[(Dim::Lane, lane)]).unwrap();
            let used = lane % (8 * u64::from(matrices));
            assert_eq!(indices(address), [used % 8, 0, used / 8]);
        }
    }
}

#[test]
fn ldmatrix_feeds_mma() {
    // Four matrices as quadrants (top left, bottom left, top right, bottom right) are operand A of m16n8k16.
    let fragment = MatrixMove { matrices: 4, transposed: false }.fragment().unwrap();
    let quadrants = LinearLayout::new(
        &[
            (Dim::Axis(0), &[[1, 0], [2, 0], [4, 0]]),
            (Dim::Axis(1), &[[0, 1], [0, 2], [0, 4]]),
            (Dim::Axis(2), &[[8, 0], [0, 8]]),
        ],
        [(Dim::Axis(0), 16), (Dim::Axis(1), 16)],
    );
    assert_eq!(quadrants.unwrap().compose(&fragment).unwrap(), sync(16, 16, Operand::A));
}

/// In every order of the depth that both factors have, each element of one meets the same of the other: a lane's
/// registers of the left factor stand for what those of the right one do. And sums of a product whose factors are
/// exchanged are the left factor of another where they lie.
#[test]
fn factors_by_the_order_of_sums() {
    for (m, k, bits) in [(32, 16, 16), (16, 32, 16), (32, 8, 16), (16, 16, 16), (32, 32, 8), (16, 64, 8)] {
        let shape = MatrixShape { m, n: m, k };
        let operand = |operand| mfma_by_sums(shape, bits, operand).unwrap();
        let (a, b, sums) = (operand(Operand::A), operand(Operand::B), operand(Operand::Accumulator));
        let held = u64::from(k * m / 64);
        let mut seen = std::collections::BTreeSet::new();
        for (register, lane) in (0..held).flat_map(|register| (0..64).map(move |lane| (register, lane))) {
            let place = |layout: &LinearLayout, register| {
                let at = layout.apply(&[(Dim::Register, register), (Dim::Lane, lane)]).unwrap();
                (at[0].1, at[1].1)
            };
            let ((row, depth), (depth_of_b, column)) = (place(&a, register), place(&b, register));
            assert_eq!((row, depth), (column, depth_of_b));
            assert!(depth < u64::from(k) && seen.insert((row, depth)));
            if register < 1 << sums.input_bits(Dim::Register) {
                assert_eq!(place(&sums, register), (depth, row));
            }
            // Register i of a group of lanes is row `i / 4 · 4g + group · 4 + i % 4` of an accumulator.
            let (groups, group) = (64 / u64::from(m), lane / u64::from(m));
            assert_eq!(depth, register / 4 * 4 * groups + group * 4 + register % 4);
        }
    }
    assert!(mfma_by_sums(MatrixShape { m: 32, n: 32, k: 4 }, 16, Operand::A).is_err());
}

#[test]
fn mfma_fragments() {
    let depths = [
        (32, 32u32, [2u32, 4, 4]),
        (32, 16, [4, 8, 8]),
        (16, 32, [4, 8, 16]),
        (16, 16, [8, 16, 32]),
        (8, 32, [8, 16, 32]),
        (8, 16, [16, 32, 64]),
    ];
    for (bits, m, k) in depths.into_iter().flat_map(|(bits, m, depths)| depths.map(|k| (bits, m, k))) {
        let operand = |operand| mfma(MatrixShape { m, n: m, k }, bits, operand).unwrap();
        let rows = u64::from(m);
        // AMD: A[i][k] is item `k % K_L` of lane `i + M·(k / K_L)`, with K_L items a lane.
        let held = u64::from(k) / (64 / rows);
        check(&operand(Operand::A), held, 0, |item, lane, _| (lane % rows, held * (lane / rows) + item));
        check(&operand(Operand::B), held, 0, |item, lane, _| (held * (lane / rows) + item, lane % rows));
        // AMD: four neighbouring rows of D are in one lane, the next four in the next group of lanes.
        let rows_a_step = 4 * (64 / rows);
        check(&operand(Operand::Accumulator), rows * rows / 64, 0, |item, lane, _| {
            (rows_a_step * (item / 4) + 4 * (lane / rows) + item % 4, lane % rows)
        });
    }
}

#[test]
fn wmma_fragments() {
    for bits in [8, 16] {
        let gfx11 = |operand| wmma(WmmaGeneration::Gfx11, bits, operand).unwrap();
        check(&gfx11(Operand::A), 16, 1, |item, lane, _| (lane % 16, item));
        check(&gfx11(Operand::B), 16, 1, |item, lane, _| (item, lane % 16));
        check(&gfx11(Operand::Accumulator), 8, 0, |item, lane, _| (2 * item + lane / 16, lane % 16));
        let gfx12 = |operand| wmma(WmmaGeneration::Gfx12, bits, operand).unwrap();
        check(&gfx12(Operand::A), 8, 0, |item, lane, _| (lane % 16, 8 * (lane / 16) + item));
        check(&gfx12(Operand::B), 8, 0, |item, lane, _| (8 * (lane / 16) + item, lane % 16));
        check(&gfx12(Operand::Accumulator), 8, 0, |item, lane, _| (8 * (lane / 16) + item, lane % 16));
    }
}

#[test]
fn other_combinations_are_refused() {
    let shape = |m, n, k| MatrixShape { m, n, k };
    for (shape, bits) in
        [(shape(16, 8, 4), 16), (shape(16, 8, 32), 16), (shape(8, 8, 4), 64), (shape(0, 0, 0), 0)]
    {
        assert!(mma_sync(shape, bits, Operand::A).is_err(), "{shape} {bits}");
        assert!(mfma(shape, bits, Operand::A).is_err(), "{shape} {bits}");
    }
    assert!(mma_sync(shape(16, 8, u32::MAX), u32::MAX, Operand::B).is_err());
    assert!(mfma(shape(16, 32, 16), 16, Operand::A).is_err());
    assert!([0, 4, 64].iter().all(|&bits| wgmma_register_operand(bits).is_err()));
    assert!([0, 4, 24, 512].iter().all(|&n| wgmma_accumulator(n).is_err()));
    assert!([0, 4, 24, 512].iter().all(|&n| tensor_memory_accumulator(n).is_err()));
    assert!([0, 4, 264].iter().all(|&n| wgmma_slabs(n).is_err()));
    assert!(wmma(WmmaGeneration::Gfx12, 32, Operand::A).is_err());
    assert!([0, 3, 8].iter().all(|&matrices| MatrixMove { matrices, transposed: false }.fragment().is_err()));
}

/// Composable Kernel, `test/mx_mfma_op/scale_mapping_16x16x128.txt` and `…_32x32x64.txt`, as a gfx950 printed it: which lane
/// gives the scale of the byte that each lane has, by the group of `m` lanes and the half of its 32 bytes.
#[test]
fn scales_of_mfma_are_those_of_the_elements_that_a_gpu_scales_by_them() {
    let measured: [(u32, u32, &[[u64; 2]]); 2] =
        [(16, 128, &[[0, 32], [0, 32], [16, 48], [16, 48]]), (32, 64, &[[0, 32], [0, 32]])];
    for (m, k, given_by) in measured {
        let shape = MatrixShape { m, n: m, k };
        let [factor, scale] = [mfma(shape, 8, Operand::A), mfma_scale(shape, Operand::A)].map(Result::unwrap);
        let [right, right_scale] =
            [mfma(shape, 8, Operand::B), mfma_scale(shape, Operand::B)].map(Result::unwrap);
        for (lane, byte) in (0..64).flat_map(|lane| (0..32).map(move |byte| (lane, byte))) {
            let giver = given_by[(lane / u64::from(m)) as usize][(byte / 16) as usize] + lane % u64::from(m);
            let (row, depth) = at(&factor, byte, lane, 0);
            assert_eq!(at(&scale, 0, giver, 0), (row, depth / 32), "{shape}: byte {byte} of lane {lane}");
            let (depth, column) = at(&right, byte, lane, 0);
            assert_eq!(at(&right_scale, 0, giver, 0), (depth / 32, column));
        }
        assert!(mfma_scale(shape, Operand::Accumulator).is_err());
    }
    assert!(mfma_scale(MatrixShape { m: 32, n: 32, k: 16 }, Operand::A).is_err());
}

/// PTX ISA, "Block Scaling for mma.sync", with `thread-id` 0: row `r` of `A` is scaled by lane `4·(r % 8) + r / 8`, column `c` of
/// `B` by lane `4·c`.
#[test]
fn scales_of_mma_are_given_by_the_first_lanes_of_quads() {
    let shape = MatrixShape { m: 16, n: 8, k: 32 };
    let [a, b] = [Operand::A, Operand::B].map(|operand| mma_sync_scale(shape, operand).unwrap());
    check(&a, 1, 1, |_, lane, _| (group(lane) + 8 * (lane % 2), 0));
    check(&b, 1, 2, |_, lane, _| (0, group(lane)));
    for row in 0..16 {
        assert_eq!(at(&a, 0, 4 * (row % 8) + row / 8, 0), (row, 0));
    }
    assert!(mma_sync_scale(MatrixShape { m: 16, n: 8, k: 16 }, Operand::A).is_err());
    assert!(mma_sync_scale(shape, Operand::Accumulator).is_err());
}
