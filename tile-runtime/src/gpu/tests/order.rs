//! Streams and events order copies and launches, and nothing else does.

use super::super::driver::{EventKind, FunctionHandle, Grid, Pattern};
use super::super::stand_in::UNWRITTEN;
use super::*;
use std::ffi::c_void;

/// The driver with memory for some bytes.
struct Bench {
    driver: StandIn,
    address: u64,
}

const BYTES: usize = 16;

impl Bench {
    fn new() -> Bench {
        let driver = StandIn::new(1 << 16, true);
        let address = driver.allocate(BYTES).unwrap();
        Bench { driver, address }
    }

    fn fill(&self, byte: u8, stream: StreamHandle) {
        // SAFETY: the memory has as many bytes, and is there until the end of the test.
        unsafe { self.driver.fill(self.address, Pattern::Byte(byte), BYTES, stream) }.unwrap();
    }

    /// What a download gives that is waited for.
    fn read(&self, stream: StreamHandle) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        // SAFETY: the memory has as many bytes on both sides, and the wait is here.
        unsafe {
            self.driver.download(bytes.as_mut_ptr(), self.address, BYTES, stream).unwrap();
            self.driver.synchronize(stream).unwrap();
        }
        bytes
    }
}

#[test]
fn nothing_runs_before_somebody_waits() {
    let bench = Bench::new();
    let stream = bench.driver.create_stream().unwrap();
    bench.fill(7, stream);
    assert_eq!(bench.driver.pending(), 1);
    // Another stream doesn't wait for it.
    assert_eq!(bench.read(StreamHandle::DEFAULT), [UNWRITTEN; BYTES]);
    assert_eq!(bench.read(stream), [7; BYTES]);
    assert_eq!(bench.driver.pending(), 0);
}

#[test]
fn queries_see_work_through() {
    let bench = Bench::new();
    let stream = bench.driver.create_stream().unwrap();
    (0..3).for_each(|byte| bench.fill(byte, stream));
    let asked = (0..9).take_while(|_| !bench.driver.step(stream)).count();
    assert_eq!(asked, 2);
    assert_eq!(bench.read(StreamHandle::DEFAULT), [2; BYTES]);
}

#[test]
fn an_event_orders_two_streams() {
    for waits in [false, true] {
        let bench = Bench::new();
        let Bench { driver, .. } = &bench;
        let (first, second) = (driver.create_stream().unwrap(), driver.create_stream().unwrap());
        let event = driver.create_event(EventKind::Plain).unwrap();
        bench.fill(1, first);
        // SAFETY: the streams and the event were made above; a wait outlasts its event.
        unsafe {
            driver.record(event, first).unwrap();
            if waits {
                driver.wait(second, event).unwrap();
            }
            driver.destroy_event(event).unwrap();
        }
        let expected = if waits { [1; BYTES] } else { [UNWRITTEN; BYTES] };
        assert_eq!(bench.read(second), expected, "waits: {waits}");
    }
}

#[test]
fn an_event_stands_where_it_was_recorded_last() {
    let bench = Bench::new();
    let Bench { driver, .. } = &bench;
    let (stream, event) = (driver.create_stream().unwrap(), driver.create_event(EventKind::Timed).unwrap());
    // SAFETY: stream and event were made above.
    unsafe {
        // Of an event that wasn't recorded nobody waits for anything.
        driver.wait(stream, event).unwrap();
        assert!(driver.is_done(event).unwrap());
        driver.record(event, stream).unwrap();
        bench.fill(1, stream);
        driver.record(event, stream).unwrap();
        bench.fill(2, stream);
        driver.synchronize_event(event).unwrap();
    }
    assert_eq!(bench.driver.pending(), 1);
    assert_eq!(bench.read(StreamHandle::DEFAULT), [1; BYTES]);
}

#[test]
fn events_know_how_long_work_took() {
    let bench = Bench::new();
    let Bench { driver, .. } = &bench;
    let events = [0; 2].map(|_| driver.create_event(EventKind::Timed).unwrap());
    // SAFETY: the events were made above.
    unsafe {
        driver.record(events[0], StreamHandle::DEFAULT).unwrap();
        (0..4).for_each(|byte| bench.fill(byte, StreamHandle::DEFAULT));
        driver.record(events[1], StreamHandle::DEFAULT).unwrap();
        let early = driver.elapsed(events[0], events[1]).unwrap_err();
        assert_eq!(early, driver.failure(Code::NOT_READY));
        driver.synchronize_event(events[1]).unwrap();
        assert!((driver.elapsed(events[0], events[1]).unwrap() - 5e-6).abs() < 1e-12);
    }
}

#[test]
fn a_function_of_the_host_is_called_behind_the_work_before_it() {
    /// Writes that it was called behind the fill.
    unsafe extern "C" fn look(data: *mut c_void) {
        // SAFETY: the data is the address of memory, whose first byte is looked at and written behind.
        unsafe {
            let bytes = *data.cast::<u64>() as *mut u8;
            bytes.add(1).write(bytes.read() + 1);
        }
    }
    let bench = Bench::new();
    let mut address = bench.address;
    bench.fill(5, StreamHandle::DEFAULT);
    // SAFETY: the data is there until the wait of the download.
    unsafe { bench.driver.call(look, (&raw mut address).cast(), StreamHandle::DEFAULT) }.unwrap();
    assert_eq!(bench.read(StreamHandle::DEFAULT)[..3], [5, 6, 5]);
}

#[test]
fn captured_work_runs_when_its_graph_is_launched_and_as_often() {
    /// Adds one to the byte at the address in the only slot.
    fn add_one(_: super::Grid, slots: &[u64]) {
        // SAFETY: the slot is the address of memory that is there.
        unsafe { *(slots[0] as *mut u8) += 1 }
    }
    let bench = Bench::new();
    let &Bench { ref driver, mut address } = &bench;
    driver.add("add_one", 1, add_one);
    let module = driver.load(image!("add_one", 1).as_bytes()).unwrap();
    let stream = driver.create_stream().unwrap();
    bench.fill(0, stream);
    // SAFETY: what is used was made here; the parameter outlives the launch, which copies it.
    unsafe {
        let function: FunctionHandle = driver.function(module, c"add_one", 0).unwrap();
        let grid = Grid { blocks: 1, threads: 64, shared_bytes: 0 };
        driver.begin_capture(stream).unwrap();
        driver.launch(function, grid, &mut [(&raw mut address).cast()], stream).unwrap();
        let refused = driver.synchronize(stream).unwrap_err();
        assert_eq!(refused, driver.failure(Code::IS_CAPTURING));
        let graph = driver.end_capture(stream).unwrap();
        assert_eq!(bench.read(stream)[0], 0);
        let executable = driver.instantiate(graph).unwrap();
        driver.destroy_graph(graph).unwrap();
        (0..3).for_each(|_| driver.launch_graph(executable, stream).unwrap());
        assert_eq!(bench.read(stream)[0], 3);
        driver.destroy_executable(executable).unwrap();
        driver.destroy_stream(stream).unwrap();
        driver.unload(module).unwrap();
        driver.free(bench.address).unwrap();
    }
    assert_eq!(driver.live(), Live::default());
}

#[test]
fn copies_on_the_device_follow_the_order_of_a_stream() {
    let bench = Bench::new();
    let Bench { driver, address } = &bench;
    let other = driver.allocate(BYTES).unwrap();
    bench.fill(3, StreamHandle::DEFAULT);
    // SAFETY: both have as many bytes, and are there to the end of the test.
    unsafe {
        driver.copy(other, *address, BYTES, StreamHandle::DEFAULT).unwrap();
        bench.fill(4, StreamHandle::DEFAULT);
        driver.copy(*address + 8, other, BYTES - 8, StreamHandle::DEFAULT).unwrap();
    }
    let expected: [u8; BYTES] = std::array::from_fn(|i| if i < 8 { 4 } else { 3 });
    assert_eq!(bench.read(StreamHandle::DEFAULT), expected);
}

#[test]
fn pinned_memory_takes_part_in_copies() {
    let bench = Bench::new();
    let Bench { driver, address } = &bench;
    let pinned = driver.allocate_pinned(BYTES).unwrap();
    // SAFETY: the memory has as many bytes on both sides, and is there until the wait.
    unsafe {
        pinned.write_bytes(9, BYTES);
        driver.upload(*address, pinned, BYTES, StreamHandle::DEFAULT).unwrap();
        driver.synchronize(StreamHandle::DEFAULT).unwrap();
        driver.free_pinned(pinned).unwrap();
    }
    assert_eq!(bench.read(StreamHandle::DEFAULT), [9; BYTES]);
    assert_eq!(driver.live().pinned, 0);
}
