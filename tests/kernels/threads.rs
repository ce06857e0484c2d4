//! Threads of the CPU. Grids are long enough that several run them at once: what blocks share is updated by atomic
//! instructions, locks keep them apart, and waits end. 

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::sequences::look_back;
use std::sync::{Mutex, PoisonError};
use tile::prelude::*;

/// Blocks of a grid that takes some 10 ms: a thread of the pool that sleeps is awake long before its end.
const BLOCKS: usize = 1 << 17;

/// More than the processors of small machines: threads are interrupted anywhere, also where they have a lock.
const THREADS: usize = 4;

/// Does something while so many threads run grids. Other tests of this process launch with as many meanwhile.
fn on_threads(run: impl FnOnce(&Device)) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let before = tile::cpu::threads();
    tile::cpu::set_threads(THREADS);
    run(&Device::cpu());
    tile::cpu::set_threads(before);
}

/// Every block draws a number, adds to one of many halves that lie side by side, and to numbers behind a lock.
#[tile_kernel]
fn together(
    counter: &mut Tensor<u64, 1>,
    halves: &mut Tensor<f16, 128>,
    lock: &mut Tensor<i32, 1>,
    sums: &mut Tensor<f32, 96>,
    drawn: &mut Tensor<u64, n>,
) {
    let (counter, halves) = (counter.atomic_view(), halves.atomic_view());
    let (lock, sums) = (lock.atomic_view(), sums.atomic_view());
    let mut drawn = drawn.partition_view_mut([1]);
    let [i] = drawn.index();
    drawn.store(counter.fetch_add([0], Tile::ones([1]), Relaxed, DeviceScope));
    halves.fetch_add([i % 128], Tile::ones([1]), Relaxed, DeviceScope);
    let all = Tile::<i32, 1>::iota([96], 0);
    while lock.compare_exchange([0], 0, 1, Acquire, DeviceScope) != 0 {}
    let sum = sums.load([all], Relaxed, DeviceScope) + 1.0;
    sums.store([all], sum, Relaxed, DeviceScope);
    lock.store([0], 0, Release, DeviceScope);
}

#[test]
fn nothing_is_lost_where_threads_update_at_once() {
    on_threads(|device| {
        let mut counter = Tensor::zeros(device, [1]).unwrap();
        let mut halves = Tensor::zeros(device, [128]).unwrap();
        let mut lock = Tensor::zeros(device, [1]).unwrap();
        let mut sums = Tensor::zeros(device, [96]).unwrap();
        let mut drawn = Tensor::zeros(device, [BLOCKS]).unwrap();
        together(&mut counter, &mut halves, &mut lock, &mut sums, &mut drawn).launch().unwrap();
        assert_eq!(counter.to_vec().unwrap(), [BLOCKS as u64]);
        let mut drawn = drawn.to_vec().unwrap();
        drawn.sort_unstable();
        assert!(drawn.into_iter().eq(0..BLOCKS as u64), "each number is drawn once");
        assert_eq!(halves.to_vec().unwrap(), [f16::from_f32((BLOCKS / 128) as f32); 128]);
        assert_eq!(sums.to_vec().unwrap(), [BLOCKS as f32; 96]);
    });
}

#[test]
fn threads_wait_for_what_others_publish() {
    const TILE: usize = 16;
    on_threads(|device| {
        let x: Vec<i32> = (0..(BLOCKS * TILE) as i32).map(|i| i.wrapping_mul(37) % 1000).collect();
        let mut state = Tensor::zeros(device, [BLOCKS + 1]).unwrap();
        let mut y = Tensor::zeros(device, [x.len()]).unwrap();
        let tensor = Tensor::from_slice(device, &x, [x.len()]).unwrap();
        look_back::<TILE>(&tensor, &mut state, &mut y).launch().unwrap();
        let sums = x.iter().scan(0i32, |sum, x| {
            *sum = sum.wrapping_add(*x);
            Some(*sum)
        });
        assert!(y.to_vec().unwrap().into_iter().eq(sums));
    });
}
