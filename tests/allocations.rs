//! A launch like one before it allocates nothing on the CPU, and many leave the process as large as it was. A test binary
//! of its own: it counts what is allocated, by every thread.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tile::cpu;
use tile::prelude::*;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps to the contract of `GlobalAlloc::alloc`, which is the same.
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, memory: Layout) {
        // SAFETY: `pointer` came from `alloc` above, hence from the system's allocator.
        unsafe { System.dealloc(pointer, memory) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[tile_kernel(instances(B = 4 | 8 | 64))]
fn doubled<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, B]);
    let tile = x.load_masked(y.index());
    y.store_masked(tile * 2.0);
}

#[tile_kernel]
fn persistent<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    for mut tile in y.tiles_persistent(RowMajor) {
        let doubled = x.load_masked(tile.index()) * 2.0;
        tile.store_masked(doubled);
    }
}

/// As many arguments as a launch has room for; with a condition, and loads whose bounds are checked.
#[tile_kernel(where(n % B == 0))]
fn weighted<T: Float, const B: usize>(
    a: &Tensor<T, n>,
    b: &Tensor<T, n>,
    c: &Tensor<T, k>,
    v: T,
    w: T,
    often: bool,
    first: usize,
    y: &mut Tensor<T, n>,
) {
    let a = a.partition_view([B]);
    let b = b.partition_view([B]);
    let c = c.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let [i] = y.index();
    let mut sum = a.load([i]) * v + b.load([i]) * w;
    for p in first..c.tiles(0) {
        if often {
            sum += c.load([p]);
        }
    }
    y.store(sum);
}

/// A launch that was made often before allocates nothing. Threads of the pool get their scratch memory when they
/// first run a block, which chance decides; so of many launches in a row none may allocate.
fn check(what: &str, launch: &mut dyn FnMut() -> tile::Result<()>) {
    const IN_A_ROW: usize = 200;
    let mut free = 0;
    for _ in 0..20 * IN_A_ROW {
        let before = ALLOCATIONS.load(Relaxed);
        launch().unwrap();
        let allocated = ALLOCATIONS.load(Relaxed) - before;
        free = if allocated == 0 { free + 1 } else { 0 };
        if free == IN_A_ROW {
            return;
        }
    }
    panic!("{what}: no {IN_A_ROW} launches in a row allocate nothing");
}

/// One test, since what another one allocates would count.
#[test]
fn launches_like_ones_before_allocate_nothing() {
    let device = Device::cpu();
    for threads in [1, 3] {
        cpu::set_threads(threads);
        for columns in [3, 64, 40_000] {
            check_all(&device, columns);
        }
    }
    #[cfg(target_os = "linux")]
    the_process_stays_as_large_as_it_is(&device);
}

/// How often a kernel is launched while the process is watched.
#[cfg(target_os = "linux")]
const LAUNCHES: usize = 1_000_000;

/// Of memory that the system has given the process (`proc_pid_statm(5)`, in pages).
#[cfg(target_os = "linux")]
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap()
}

/// From two threads at once, each with a kernel of its own and one that both launch.
#[cfg(target_os = "linux")]
fn the_process_stays_as_large_as_it_is(device: &Device) {
    let launch_often = |count: usize| {
        std::thread::scope(|scope| {
            for thread in 0..2 {
                scope.spawn(move || {
                    let x = Tensor::<f32>::ones(device, [1, 200]).unwrap();
                    let mut y = Tensor::zeros(device, [1, 200]).unwrap();
                    for _ in 0..count / 4 {
                        match thread {
                            0 => doubled::<4>(&x, &mut y).launch().unwrap(),
                            _ => doubled::<8>(&x, &mut y).launch().unwrap(),
                        }
                        doubled::best(&x, &mut y).launch().unwrap();
                    }
                });
            }
        });
    };
    launch_often(5_000);
    let before = resident_bytes();
    launch_often(LAUNCHES);
    let after = resident_bytes();
    println!("{LAUNCHES} launches: {before} bytes before, {after} after");
    // A launch that keeps a word would take 8 MB; threads come with a stack of some pages.
    assert!(after < before + 200_000, "{before} bytes before, {after} after");
}

fn check_all(device: &Device, columns: usize) {
    let of = |what: &str| format!("{what} of {columns} columns");
    let x = Tensor::<f32>::ones(device, [2, columns]).unwrap();
    let mut y = Tensor::zeros(device, [2, columns]).unwrap();
    check(&of("a plain launch"), &mut || doubled::<4>(&x, &mut y).launch());
    check(&of("a choice"), &mut || doubled::best(&x, &mut y).launch());
    check(&of("a time"), &mut || doubled::<4>(&x, &mut y).launch_timed().map(drop));
    assert_eq!(y.to_vec().unwrap(), vec![2.0; 2 * columns]);

    {
        let x = Tensor::<f32>::ones(device, [columns, 2]).unwrap();
        let mut y = Tensor::zeros(device, [columns, 2]).unwrap();
        let (from, mut to) = (x.t().unwrap(), y.view_mut().t().unwrap());
        check(&of("views"), &mut || doubled::<4>(&from, &mut to).launch());
        assert_eq!(y.to_vec().unwrap(), vec![2.0; 2 * columns]);
    }

    let x = Tensor::<f32>::ones(device, [columns]).unwrap();
    let mut y = Tensor::zeros(device, [columns]).unwrap();
    check(&of("a persistent kernel"), &mut || persistent::<4>(&x, &mut y).launch());
    check(&of("a persistent kernel of said blocks"), &mut || persistent::<4>(&x, &mut y).blocks(3).launch());
    assert_eq!(y.to_vec().unwrap(), vec![2.0; columns]);

    let whole = columns.next_multiple_of(4);
    let [a, b] = [1.0, 2.0].map(|value| Tensor::<f32>::full(device, [whole], value).unwrap());
    let c = Tensor::<f32>::ones(device, [8]).unwrap();
    let mut y = Tensor::zeros(device, [whole]).unwrap();
    check(&of("scalars"), &mut || weighted::<f32, 4>(&a, &b, &c, 10.0, 100.0, true, 1, &mut y).launch());
    assert_eq!(y.to_vec().unwrap(), vec![211.0; whole]);
}
