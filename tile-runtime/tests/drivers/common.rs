//! What the functions of both vendors do alike, over the machine, for the device that is the thread's: which that is, each
//! library says by `crate::current`. Attributes, flags and modes whose numbers are the same stand here.

#![allow(dead_code, reason = "a library that lacks a function leaves a part unused")]

use crate::current;
use crate::machine::{BLOCKS, Code, Device, Grid, HostFunction, Machine, Outcome, Rows, Way, Work};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::{MutexGuard, Once};

/// Of the attributes of pools.
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED_MEM_CURRENT: c_int = 5;
const USED_MEM_CURRENT: c_int = 7;

const EVENT_DISABLE_TIMING: c_uint = 2;
const CAPTURE_THREAD_LOCAL: c_int = 1;

/// The handles of the pools.
const POOLS: usize = 0x9000_0000;

thread_local! {
    /// How many captures the thread has begun and not ended.
    static CAPTURES: Cell<usize> = const { Cell::new(0) };
}

/// The GPUs that every process has; tests add others.
pub const FIRST: usize = 2;

pub fn plug_first() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for _ in 0..FIRST {
            Device::plug(1 << 30, true, None);
        }
    });
}

pub fn check(holds: bool) -> Outcome<()> {
    if holds { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

/// Where a result is written, which has to be somewhere.
pub unsafe fn give<T>(place: *mut T, value: T) -> Outcome<()> {
    check(!place.is_null())?;
    // SAFETY: who calls the driver vouches for places that aren't null.
    unsafe { place.write(value) };
    Ok(())
}

/// The thread's device and its machine, for a call that may fail.
pub fn asked() -> Outcome<(&'static Device, MutexGuard<'static, Machine>)> {
    let device = current()?;
    Ok((device, device.asked()?))
}

/// What a thread may not do while it captures (CUDA Driver API, `cuThreadExchangeStreamCaptureMode`).
pub fn isnt_capturing() -> Outcome<()> {
    if CAPTURES.get() == 0 { Ok(()) } else { Err(Code::IS_CAPTURING) }
}

pub fn synchronize_device() -> Outcome<()> {
    let (device, mut machine) = asked()?;
    isnt_capturing()?;
    machine.run_device(device.ordinal)
}

// Memory.

pub unsafe fn memory_info(free: *mut usize, total: *mut usize) -> Outcome<()> {
    let (_, machine) = asked()?;
    // SAFETY: as in `give`.
    unsafe {
        give(free, (machine.limit - machine.reserved()) as usize)?;
        give(total, machine.limit as usize)
    }
}

pub unsafe fn allocate(address: *mut u64, bytes: usize) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    isnt_capturing()?;
    // SAFETY: as in `give`.
    unsafe { give(address, machine.allocate(bytes, device.ordinal)?) }
}

pub fn free(address: u64) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    isnt_capturing()?;
    machine.run_device(device.ordinal)?;
    machine.free(address)
}

pub unsafe fn allocate_ordered(address: *mut u64, bytes: usize, stream: usize) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    if !device.pools {
        return Err(Code::NOT_SUPPORTED);
    }
    // SAFETY: as in `give`.
    unsafe { give(address, machine.allocate_ordered(bytes, device.ordinal, device.stream(stream))?) }
}

pub fn free_ordered(address: u64, stream: usize) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    machine.free_ordered(address, device.ordinal, device.stream(stream))
}

pub fn pool_of(device: &Device) -> Outcome<usize> {
    if device.pools { Ok(POOLS + 16 * device.ordinal) } else { Err(Code::NOT_SUPPORTED) }
}

/// The device of a pool.
fn owner(pool: usize) -> Outcome<&'static Device> {
    let device = pool.checked_sub(POOLS).and_then(|offset| Device::of(offset / 16));
    device.filter(|device| pool_of(device) == Ok(pool)).ok_or(Code::INVALID_VALUE)
}

pub unsafe fn set_pool_attribute(pool: usize, attribute: c_int, value: *mut c_void) -> Outcome<()> {
    let device = owner(pool)?;
    check(attribute == RELEASE_THRESHOLD && !value.is_null())?;
    // SAFETY: a threshold is a `u64`.
    let bytes = unsafe { value.cast::<u64>().read() };
    device.asked()?.hold(device.ordinal, bytes);
    Ok(())
}

pub unsafe fn pool_attribute(pool: usize, attribute: c_int, value: *mut c_void) -> Outcome<()> {
    let device = owner(pool)?;
    let bytes = device.asked()?.pool_bytes(device.ordinal);
    let value = value.cast::<u64>();
    // SAFETY: both are `u64`.
    match attribute {
        RESERVED_MEM_CURRENT => unsafe { give(value, bytes.reserved) },
        USED_MEM_CURRENT => unsafe { give(value, bytes.used) },
        _ => Err(Code::INVALID_VALUE),
    }
}

pub fn trim_pool(pool: usize, keep: usize) -> Outcome<()> {
    let device = owner(pool)?;
    device.asked()?.trim(device.ordinal, keep as u64);
    Ok(())
}

/// Lets one device at the memory of a pool: a list of a kind of place, a device, and what may be done from there.
pub unsafe fn open_pool(pool: usize, list: *const [c_int; 3], count: usize) -> Outcome<()> {
    let owner = owner(pool)?;
    check(!list.is_null() && count == 1)?;
    // SAFETY: the list has an entry.
    let [kind, device, flags] = unsafe { *list };
    // A device, reading and writing.
    check(kind == 1 && flags == 3)?;
    let device = usize::try_from(device).ok().and_then(Device::of).ok_or(Code::INVALID_DEVICE)?;
    device.machine().open_way(device.ordinal, owner.ordinal, Way::Pool);
    Ok(())
}

pub fn open_device(peer: &Device, flags: c_uint) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    check(flags == 0 && peer.ordinal != device.ordinal)?;
    if machine.open_way(device.ordinal, peer.ordinal, Way::Context) {
        Ok(())
    } else {
        Err(Code::ALREADY_PEERS)
    }
}

pub unsafe fn pin(first: *mut *mut c_void, bytes: usize) -> Outcome<()> {
    let (_, mut machine) = asked()?;
    check(bytes > 0)?;
    // SAFETY: as in `give`.
    unsafe { give(first, machine.pin(bytes).cast()) }
}

pub fn unpin(first: *mut c_void) -> Outcome<()> {
    asked()?.1.unpin(first.cast())
}

/// Enqueues work of the thread's device.
pub fn enqueue(stream: usize, work: impl FnOnce(usize) -> Work) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    machine.enqueue(device.stream(stream), device.ordinal, work(device.ordinal))
}

pub fn copy_rows(target: Rows, source: Rows, size: [usize; 2], stream: usize) -> Outcome<()> {
    enqueue(stream, |device| Work::Copy { target, source, size, devices: [device; 2] })
}

pub fn fill<const N: usize>(first: u64, pattern: [u8; N], count: usize, stream: usize) -> Outcome<()> {
    fill_rows(Rows { first, pitch: N * count }, pattern, [count, 1], stream)
}

pub fn fill_rows<const N: usize>(
    target: Rows,
    pattern: [u8; N],
    size: [usize; 2],
    stream: usize,
) -> Outcome<()> {
    enqueue(stream, |_| Work::fill(target, pattern, size))
}

// Streams, events, graphs.

pub unsafe fn create_stream(stream: *mut usize) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    // SAFETY: as in `give`.
    unsafe { give(stream, machine.create_stream(device.ordinal)) }
}

pub fn destroy_stream(stream: usize) -> Outcome<()> {
    asked()?.1.destroy_stream(stream)
}

pub fn synchronize(stream: usize) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    machine.run(device.stream(stream))
}

pub fn wait(stream: usize, event: usize, flags: c_uint) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    check(flags == 0)?;
    machine.wait(device.stream(stream), event, device.ordinal)
}

pub unsafe fn create_event(event: *mut usize, flags: c_uint) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    check(flags & !EVENT_DISABLE_TIMING == 0)?;
    // SAFETY: as in `give`.
    unsafe { give(event, machine.create_event(flags == 0, device.ordinal)) }
}

pub fn destroy_event(event: usize) -> Outcome<()> {
    asked()?.1.destroy_event(event)
}

pub fn record(event: usize, stream: usize) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    machine.record(event, device.stream(stream), device.ordinal)
}

pub fn query(event: usize) -> Outcome<()> {
    if asked()?.1.is_done(event)? { Ok(()) } else { Err(Code::NOT_READY) }
}

pub fn synchronize_event(event: usize) -> Outcome<()> {
    asked()?.1.synchronize_event(event)
}

pub unsafe fn elapsed(milliseconds: *mut f32, start: usize, end: usize) -> Outcome<()> {
    let seconds = asked()?.1.elapsed(start, end)?;
    // SAFETY: as in `give`.
    unsafe { give(milliseconds, (seconds * 1e3) as f32) }
}

pub fn call(stream: usize, function: Option<HostFunction>, data: *mut c_void) -> Outcome<()> {
    let function = function.ok_or(Code::INVALID_VALUE)?;
    enqueue(stream, |_| Work::Call { function, data })
}

pub fn begin_capture(stream: usize, mode: c_int) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    check(mode == CAPTURE_THREAD_LOCAL)?;
    machine.begin_capture(device.stream(stream), device.ordinal)?;
    CAPTURES.set(CAPTURES.get() + 1);
    Ok(())
}

pub unsafe fn end_capture(stream: usize, graph: *mut usize) -> Outcome<()> {
    let captured = asked()?.1.end_capture(stream)?;
    CAPTURES.set(CAPTURES.get() - 1);
    // SAFETY: as in `give`.
    unsafe { give(graph, captured) }
}

pub unsafe fn instantiate(executable: *mut usize, graph: usize, flags: u64) -> Outcome<()> {
    let (_, mut machine) = asked()?;
    isnt_capturing()?;
    check(flags == 0)?;
    // SAFETY: as in `give`.
    unsafe { give(executable, machine.instantiate(graph)?) }
}

pub fn destroy_graph(graph: usize) -> Outcome<()> {
    asked()?.1.destroy_graph(graph)
}

pub fn launch_graph(executable: usize, stream: usize) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    machine.launch_graph(executable, device.stream(stream), device.ordinal)
}

pub fn destroy_executable(executable: usize) -> Outcome<()> {
    asked()?.1.destroy_executable(executable)
}

// Code.

/// An image as a driver finds it in memory: an ELF file to the end of its table of sections, or text to a NUL byte.
pub unsafe fn image<'a>(first: *const c_void) -> Outcome<&'a [u8]> {
    check(!first.is_null())?;
    let bytes = first.cast::<u8>();
    // SAFETY: who gives an image vouches for one that ends as its form says.
    unsafe {
        if std::slice::from_raw_parts(bytes, 4) != b"\x7fELF" {
            return Ok(CStr::from_ptr(first.cast()).to_bytes());
        }
        check(first.cast::<u64>().is_aligned())?;
        // `e_shoff`, `e_shentsize`, `e_shnum` of a 64-bit header.
        let sections = bytes.add(0x28).cast::<u64>().read() as usize;
        let [size, count] = [0x3a, 0x3c].map(|offset| bytes.add(offset).cast::<u16>().read() as usize);
        Ok(std::slice::from_raw_parts(bytes, sections + size * count))
    }
}

pub fn load(image: &[u8]) -> Outcome<usize> {
    current()?.before_load(image);
    let (device, mut machine) = asked()?;
    isnt_capturing()?;
    Ok(machine.load(image, device.ordinal))
}

pub unsafe fn occupancy(blocks: *mut c_int, function: usize, threads: c_int, bytes: usize) -> Outcome<()> {
    let (device, machine) = asked()?;
    let (_, most_shared) = machine.kernel(function, device.ordinal)?;
    check((1..=1024).contains(&threads) && bytes <= most_shared as usize)?;
    // SAFETY: as in `give`.
    unsafe { give(blocks, BLOCKS as c_int) }
}

/// Grids and blocks have an extent along their first axis alone.
pub unsafe fn launch(
    function: usize,
    [grid, block]: [[c_uint; 3]; 2],
    shared_bytes: c_uint,
    stream: usize,
    [parameters, extra]: [*const *mut c_void; 2],
) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    check(grid[1..] == [1; 2] && block[1..] == [1; 2] && extra.is_null())?;
    let grid = Grid { blocks: grid[0], threads: block[0], shared_bytes };
    // SAFETY: who launches a kernel vouches for its parameters.
    unsafe { machine.launch(function, device.ordinal, grid, parameters, device.stream(stream)) }
}
