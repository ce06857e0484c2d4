//! Launches like ones before: they allocate nothing, and a million leave nothing behind. The machine, whose queues take
//! memory, is a library's in the processes that run these tests, so that what is counted is the runtime's.

use super::super::driver;
use super::launches::{KERNEL, call, double, ramp};
use super::*;
use crate::stream::Stream;
use crate::tensor::Tensor;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

struct Counting;

thread_local! {
    /// How often this thread has allocated.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
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

/// What a process runs that has a vendor's library.
pub(in crate::gpu) const TESTS: &[(&str, fn())] = &[
    (
        "launches_like_ones_before_allocate_next_to_nothing",
        launches_like_ones_before_allocate_next_to_nothing,
    ),
    ("a_million_launches_leave_nothing_behind", a_million_launches_leave_nothing_behind),
];

/// How often what is done again and again allocates, each time, after a few times.
fn check(what: &str, expected: usize, mut again: impl FnMut()) {
    const TIMES: usize = 1000;
    (0..100).for_each(|_| again());
    let before = ALLOCATIONS.get();
    (0..TIMES).for_each(|_| again());
    assert_eq!(ALLOCATIONS.get() - before, expected * TIMES, "{what}");
}

fn launches_like_ones_before_allocate_next_to_nothing() {
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, double);
    let stream = Stream::new(&device).unwrap();
    let x = ramp(&device, 8);
    let mut y = Tensor::zeros(&device, [8]).unwrap();
    check("a launch", 0, || call(&KERNEL, &x, &mut y).launch().unwrap());
    // The event that tensors and the guard share.
    check("a launch on a stream", 1, || call(&KERNEL, &x, &mut y).on(&stream).unwrap().wait().unwrap());
    check("a time", 0, || assert!(!call(&KERNEL, &x, &mut y).launch_timed().unwrap().is_zero()));
}

/// How long as many launches take that are asked of the driver itself. They change nothing.
fn driver_launches(driver: &StandIn, x: &Tensor<f32>, count: usize) -> Duration {
    driver.add("nothing", 3, |_, _| ());
    let module = driver.load(image!("nothing", 3).as_bytes()).unwrap();
    let mut slots = [x.address(), x.address(), 8];
    let mut parameters = slots.each_mut().map(|slot| std::ptr::from_mut(slot).cast());
    let grid = driver::Grid { blocks: 2, threads: 64, shared_bytes: 0 };
    // SAFETY: the module was loaded above, and the parameters are those of its kernel.
    unsafe {
        let function = driver.function(module, c"nothing", 0).unwrap();
        let start = Instant::now();
        for _ in 0..count {
            driver.launch(function, grid, &mut parameters, StreamHandle::DEFAULT).unwrap();
        }
        let elapsed = start.elapsed();
        driver.synchronize(StreamHandle::DEFAULT).unwrap();
        driver.unload(module).unwrap();
        elapsed
    }
}

fn a_million_launches_leave_nothing_behind() {
    const LAUNCHES: usize = 1_000_000;
    let (device, driver) = device(1 << 20, true);
    driver.add("general", 3, |_, slots| {
        // SAFETY: the second slot is the address of at least one element.
        unsafe { *(slots[1] as *mut f32) += 1.0 }
    });
    let (x, mut y) = (ramp(&device, 8), Tensor::zeros(&device, [8]).unwrap());
    (0..100).for_each(|_| call(&KERNEL, &x, &mut y).launch().unwrap());
    assert_eq!(y.to_vec().unwrap()[0], 100.0);
    let (before, allocations) = (driver.live(), ALLOCATIONS.get());
    let start = Instant::now();
    for _ in 0..LAUNCHES {
        call(&KERNEL, &x, &mut y).launch().unwrap();
    }
    let (elapsed, allocations) = (start.elapsed(), ALLOCATIONS.get() - allocations);
    let microseconds = |elapsed: Duration, count: usize| elapsed.as_secs_f64() * 1e6 / count as f64;
    let driver_call = microseconds(driver_launches(&driver, &x, LAUNCHES / 10), LAUNCHES / 10);
    println!("{:.3} µs a launch, {driver_call:.3} of them the driver's", microseconds(elapsed, LAUNCHES));
    assert_eq!((allocations, driver.live()), (0, before));
    assert_eq!(y.to_vec().unwrap()[0], (100 + LAUNCHES) as f32);
}
