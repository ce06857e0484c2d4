//! Long loops over big tiles need the memory of one turn, on the reference device and in the IR's evaluator; a launch
//! that chooses as one before it did needs no more than one that says its instance. A test binary of its own: it counts
//! what is allocated.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tile::ir::{Array, Binding, DType, interp, specialize};
use tile::prelude::*;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(memory.size(), Relaxed) + memory.size();
        PEAK.fetch_max(live, Relaxed);
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps to the contract of `GlobalAlloc::alloc`, which is the same.
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, memory: Layout) {
        LIVE.fetch_sub(memory.size(), Relaxed);
        // SAFETY: `pointer` came from `alloc` above, hence from the system's allocator.
        unsafe { System.dealloc(pointer, memory) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that lived at once during `operation`, above those before it.
fn peak<T>(operation: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = operation();
    (result, PEAK.load(Relaxed) - before)
}

#[tile_kernels]
mod kernels {
    use tile::prelude::*;

    #[derive(TileStruct)]
    struct State {
        sum: Tile<f32, 2>,
        turns: usize,
    }

    #[tile_fn]
    impl State {
        fn replace_sum(&mut self, sum: Tile<f32, 2>) {
            self.sum = sum;
            self.turns += 1;
        }

        /// A loop that changes what `self` refers to.
        fn go_on(&mut self, count: usize) {
            for _ in 0..count {
                self.replace_sum(self.sum * 1.0 + self.sum * 0.0);
            }
        }
    }

    /// A loop in a function, whose variables are a struct and an array of tiles.
    #[tile_fn]
    fn halved_often(x: Tile<f32, 2>) -> Tile<f32, 2> {
        let mut state = State { sum: x, turns: 0 };
        let mut last = [x, x];
        while state.turns < 100 {
            let half = (state.sum + last[0]) * 0.5;
            last = [half, last[0]];
            state.replace_sum(half + (x - last[1]) * 0.0);
        }
        state.go_on(200);
        state.sum + last[1] * 0.0
    }

    #[tile_kernel]
    pub(crate) fn long<const N: usize>(x: &Tensor<f32, N, N>, y: &mut Tensor<f32, N, N>) {
        let x = x.partition_view([N, N]);
        let mut y = y.partition_view_mut([N, N]);
        let tile = x.load_masked([0, 0]);
        let mut sum = tile * 0.0;
        for p in 0..200 {
            let loaded = x.load_masked([0, 0]) + (p % 2) as f32;
            let twice = loop {
                let part = loaded * 2.0;
                if p >= 0 {
                    break part - loaded;
                }
            };
            (sum, _) = (sum + twice * 1.0, loaded);
        }
        y.store_masked(sum + halved_often(tile));
    }
}

#[tile_kernel]
fn persistent<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    for mut tile in y.tiles_persistent(RowMajor) {
        let mut y = x.load_masked(tile.index()) * 2.0;
        y += 1.0;
        tile.store_masked(y);
    }
}

/// One test, since what another one allocates would count.
#[test]
fn a_turn_frees_what_the_one_before_it_made() {
    a_loop_needs_the_memory_of_one_turn();
    a_block_of_many_tiles_needs_the_memory_of_one();
    a_choice_that_was_made_is_looked_up();
}

#[tile_kernel(instances(A = 4 | 8, B = 4 | 8))]
fn doubled<const A: usize, const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([A, B]);
    let mut y = y.partition_view_mut([A, B]);
    let tile = x.load_masked(y.index());
    y.store_masked(tile * 2.0);
}

/// Of nothing, so that no block allocates.
fn a_choice_that_was_made_is_looked_up() {
    let device = Device::reference();
    let x = Tensor::<f32>::zeros(&device, [0, 5]).unwrap();
    let mut y = Tensor::zeros(&device, [0, 5]).unwrap();
    let mut count = |best: bool| {
        let before = ALLOCATIONS.load(Relaxed);
        let launch = if best { doubled::best(&x, &mut y) } else { doubled::<4, 8>(&x, &mut y) };
        launch.launch().unwrap();
        ALLOCATIONS.load(Relaxed) - before
    };
    let first = count(true);
    count(false);
    let (chosen, named) = (count(true), count(false));
    assert!(chosen < first, "{chosen} of {first}: the second choice is made anew");
    assert!(chosen <= named, "{chosen} allocations where a launch chooses, {named} where it doesn't");
}

fn a_block_of_many_tiles_needs_the_memory_of_one() {
    const B: usize = 512;
    const TILES: usize = 200;
    let device = Device::reference();
    let x = Tensor::from_slice(&device, &[3.0; B * TILES], [B * TILES]).unwrap();
    let mut y = Tensor::zeros(&device, [B * TILES]).unwrap();
    let (launched, bytes) = peak(|| persistent::<B>(&x, &mut y).blocks(1).launch());
    launched.unwrap();
    assert_eq!(y.to_vec().unwrap(), [7.0; B * TILES]);
    // 200 turns of 3 tiles would be 600, beside the tensors.
    assert!(bytes < 300 * B * 8, "{} tiles", bytes / (B * 8));
}

fn a_loop_needs_the_memory_of_one_turn() {
    const N: usize = 64;
    // An element of a tile is held in 8 bytes.
    const TILE: usize = N * N * 8;
    let expected = 200.0 * 3.0 + 100.0 + 3.0;
    let device = Device::reference();
    let x = Tensor::from_slice(&device, &[3.0; N * N], [N, N]).unwrap();
    let mut y = Tensor::zeros(&device, [N, N]).unwrap();
    let (launched, bytes) = peak(|| kernels::long::<N>(&x, &mut y).launch());
    launched.unwrap();
    assert_eq!(y.to_vec().unwrap(), [expected; N * N]);
    // 200 turns of 6 tiles, 100 of 6 and 200 of 3 would be 2400 tiles.
    assert!(bytes < 40 * TILE, "the reference device: {} tiles", bytes / TILE);

    let instance = specialize(&kernels::long::ir(), &[("N".to_owned(), Binding::Const(N))]).unwrap();
    let tensor = |value: f64| Array::scalar(DType::F32, tile::ir::ops::Literal::Float(value)).splat(&[N, N]);
    let mut arguments = [tensor(3.0), tensor(0.0)];
    let (run, bytes) = peak(|| interp::run(&instance, &mut arguments));
    run.unwrap();
    assert_eq!(arguments[1], tensor(f64::from(expected)));
    assert!(bytes < 100 * TILE, "the evaluator: {} tiles", bytes / TILE);
}
