//! The algebra of layouts of small rank stays on the stack. A test binary of its own: it counts every allocation.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::cell::Cell;
use tile_layout::{Layout, Swizzle, SwizzledLayout};

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Memory) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps to the contract of `GlobalAlloc::alloc`, which is the same.
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, memory: Memory) {
        // SAFETY: `pointer` came from `alloc` above, hence from the system's allocator.
        unsafe { System.dealloc(pointer, memory) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread during `operation`.
fn allocations<T>(operation: impl Fn() -> T) -> usize {
    let before = COUNT.with(Cell::get);
    let result = operation();
    let after = COUNT.with(Cell::get);
    drop(result);
    after - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| Vec::<u8>::with_capacity(std::hint::black_box(1))), 1);
}

#[test]
fn small_layouts_stay_on_the_stack() {
    let six: Layout = "((2,4),(4,2),(8,2)):((1,16),(2,64),(128,8))".parse().unwrap();
    let rows: Layout = "(128,64):(64,1)".parse().unwrap();
    let tile: Layout = "(8,8):(8,1)".parse().unwrap();
    let pairs: Layout = "(4,2):(2,8)".parse().unwrap();
    let compact: Layout = "(2,3,4):(12,4,1)".parse().unwrap();
    let counts = [
        ("coalesce", allocations(|| six.coalesce())),
        ("coalesce_modes", allocations(|| six.coalesce_modes())),
        ("filter", allocations(|| six.filter())),
        ("compose", allocations(|| rows.compose(&pairs).unwrap())),
        ("compose by mode", allocations(|| rows.compose([32, 16]).unwrap())),
        ("complement", allocations(|| pairs.complement(64).unwrap())),
        ("logical_divide", allocations(|| rows.logical_divide([32, 16]).unwrap())),
        ("zipped_divide", allocations(|| rows.zipped_divide([32, 16]).unwrap())),
        ("logical_product", allocations(|| tile.logical_product(4).unwrap())),
        ("right_inverse", allocations(|| compact.right_inverse())),
        ("left_inverse", allocations(|| compact.left_inverse().unwrap())),
        ("upcast", allocations(|| rows.upcast(8).unwrap())),
        ("max_common_vector", allocations(|| rows.max_common_vector(&rows))),
        ("get", allocations(|| six.get(100))),
        (
            "swizzled",
            allocations(|| SwizzledLayout::new(Swizzle::new(3, 3, 3).unwrap(), 0, rows.clone()).unwrap()),
        ),
    ];
    for (operation, count) in counts {
        assert_eq!(count, 0, "{operation} allocates");
    }
}
