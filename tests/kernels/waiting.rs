//! Blocks that wait for others: for earlier ones they may on every device, for any on simulated GPUs, which say when a wait
//! never ends. What the reference device says takes millions of turns, and is tested by `src/kernel/repeated.rs`.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::devices;
use tile::prelude::*;

/// Every block adds its number to the sum of the one before, which it waits for. Flags and sums are a word each.
#[tile_kernel(grid = [n])]
fn relay(words: &mut Tensor<i32, n>) {
    let words = words.atomic_view();
    let b = block_id(0);
    let mut before = 1;
    if b > 0 {
        before = words.load([b - 1], Acquire, DeviceScope);
        while before == 0 {
            before = words.load([b - 1], Acquire, DeviceScope);
        }
    }
    words.store([b], before + b as i32, Release, DeviceScope);
}

#[test]
fn blocks_wait_for_earlier_ones_on_every_device() {
    for (device, label) in devices() {
        let mut words = Tensor::zeros(&device, [40]).unwrap();
        relay(&mut words).launch().unwrap();
        let sums: Vec<i32> = (0..40).map(|b| 1 + (0..=b).sum::<i32>()).collect();
        assert_eq!(words.to_vec().unwrap(), sums, "{label}");
    }
}

/// Tiles are transposed, one after the other: the grid's order is the numbers', which isn't the one that suits memory best.
#[tile_kernel]
fn transposed_in_turn(x: &Tensor<f32, n, m>, done: &mut Tensor<i32, k>, y: &mut Tensor<f32, m, n>) {
    let done = done.atomic_view();
    let x = x.partition_view([16, 16]);
    let mut y = y.partition_view_mut([16, 16]);
    let [i, j] = y.index();
    let b = i * y.tiles(1) + j;
    let tile = x.load_masked([j, i]).t();
    if b > 0 {
        while done.load([b - 1], Acquire, DeviceScope) == 0 {}
    }
    y.store_masked(tile);
    done.store([b], 1, Release, DeviceScope);
}

#[test]
fn blocks_that_transpose_wait_for_earlier_ones() {
    const SIDE: usize = 128;
    let x: Vec<f32> = (0..SIDE * SIDE).map(|i| i as f32).collect();
    let expected: Vec<f32> = (0..SIDE * SIDE).map(|i| x[i % SIDE * SIDE + i / SIDE]).collect();
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &x, [SIDE, SIDE]).unwrap();
        let (mut done, mut y) =
            (Tensor::zeros(&device, [64]).unwrap(), Tensor::zeros(&device, [SIDE, SIDE]).unwrap());
        transposed_in_turn(&x, &mut done, &mut y).launch().unwrap();
        assert_eq!(done.to_vec().unwrap(), [1; 64], "{label}");
        assert_eq!(y.to_vec().unwrap(), expected, "{label}");
    }
}

/// Rows are added to sums that several blocks share: one at a time, whoever has the lock. It has begun, so it goes on.
#[tile_kernel(grid = [m])]
fn behind_a_lock<const N: usize, const SHARED: usize>(
    x: &Tensor<f32, m, N>,
    locks: &mut Tensor<i32, SHARED>,
    sums: &mut Tensor<f32, SHARED, N>,
) {
    let (locks, sums) = (locks.atomic_view(), sums.atomic_view());
    let (i, at) = (block_id(0), block_id(0) % SHARED);
    let columns = Tile::<i32, 2>::iota([1, N], 1);
    let row = x.partition_view([1, N]).load([i, 0]);
    while locks.compare_exchange([at], 0, 1, Acquire, DeviceScope) != 0 {}
    let sum = sums.load((at, columns), Relaxed, DeviceScope) + row;
    sums.store((at, columns), sum, Relaxed, DeviceScope);
    locks.store([at], 0, Release, DeviceScope);
}

/// Rows, and the sums of those that share one; exact in any order.
pub(super) fn rows_added([m, n]: [usize; 2], shared: usize) -> (Vec<f32>, Vec<f32>) {
    let x: Vec<f32> = (0..m * n).map(|i| (i * 7 % 31) as f32 - 15.0).collect();
    let mut sums = vec![0f32; shared * n];
    for (at, value) in x.iter().enumerate() {
        sums[at / n % shared * n + at % n] += value;
    }
    (x, sums)
}

#[test]
fn a_lock_keeps_blocks_apart() {
    let (m, n, shared) = (60, 96, 3);
    let (x, expected) = rows_added([m, n], shared);
    for (device, label) in devices() {
        let x = Tensor::from_slice(&device, &x, [m, n]).unwrap();
        let mut locks = Tensor::zeros(&device, [shared]).unwrap();
        let mut sums = Tensor::zeros(&device, [shared, n]).unwrap();
        behind_a_lock::<96, 3>(&x, &mut locks, &mut sums).launch().unwrap();
        assert_eq!(sums.to_vec().unwrap(), expected, "{label}");
    }
}

/// Two blocks meet.
#[cfg(feature = "jit")]
#[tile_kernel(grid = [2])]
fn meet(flags: &mut Tensor<i32, 2>) {
    let flags = flags.atomic_view();
    let b = block_id(0);
    flags.store([b], 1, Release, DeviceScope);
    while flags.load([1 - b], Acquire, DeviceScope) == 0 {}
}

/// Each waits before it stores.
#[cfg(feature = "jit")]
#[tile_kernel(grid = [2])]
fn miss(flags: &mut Tensor<i32, 2>) {
    let flags = flags.atomic_view();
    let b = block_id(0);
    while flags.load([1 - b], Acquire, DeviceScope) == 0 {}
    flags.store([b], 1, Release, DeviceScope);
}

/// The second block looks for the first for a while, and goes on without, for which that one waits.
#[cfg(feature = "jit")]
#[tile_kernel(grid = [2])]
fn patient(flags: &mut Tensor<i32, 2>) {
    let flags = flags.atomic_view();
    let b = block_id(0);
    let mut turns = 0;
    if b == 0 {
        while flags.load([1], Acquire, DeviceScope) == 0 {}
    } else {
        while flags.load([0], Acquire, DeviceScope) == 0 && turns < 2000 {
            turns += 1;
        }
    }
    flags.store([b], turns + 1, Release, DeviceScope);
}

/// Looks for a while with every lane.
#[cfg(feature = "jit")]
#[tile_kernel(grid = [1])]
fn lanes(words: &mut Tensor<i32, 64>) {
    let words = words.atomic_view();
    let lanes = Tile::<i32, 1>::iota([64], 0);
    let mut sum = Tile::<i32, 1>::zeros([64]);
    for _ in 0..3000 {
        sum += words.load([lanes], Relaxed, DeviceScope);
    }
    words.store([lanes], sum, Relaxed, DeviceScope);
}

#[test]
#[cfg(feature = "jit")]
fn on_simulated_gpus_blocks_meet_and_deadlocks_are_errors() {
    for target in ["sm_80", "sm_90a", "gfx942", "gfx1100"] {
        let device = Device::simulated(target).unwrap();
        let mut flags = Tensor::zeros(&device, [2]).unwrap();
        meet(&mut flags).launch().unwrap();
        assert_eq!(flags.to_vec().unwrap(), [1, 1], "{target}");
        flags.fill(0).unwrap();
        let error = miss(&mut flags).launch().unwrap_err();
        let line = line!() - 44;
        assert_eq!(
            error.reason().to_string(),
            format!(
                "fault in block [0] of kernel `miss` on simulated:{target}, at tests/kernels/waiting.rs:{line}:11: \
                 thread 0: waits for ever: byte 4 of `flags` stays as it is, because blocks 0 and 1 both wait; let a block \
                 store what others wait for before it waits itself"
            )
        );
    }
}

#[test]
#[cfg(feature = "jit")]
fn kernels_that_look_for_a_while_end() {
    let device = Device::simulated("sm_90a").unwrap();
    let mut flags = Tensor::zeros(&device, [2]).unwrap();
    patient(&mut flags).launch().unwrap();
    assert_eq!(flags.to_vec().unwrap(), [1, 2001]);
    let mut words = Tensor::from_slice(&device, &[1; 64], [64]).unwrap();
    lanes(&mut words).launch().unwrap();
    assert_eq!(words.to_vec().unwrap(), [3000; 64]);
}
