//! A library with HIP's functions that the runtime calls, built by its tests: the machine of the stand-in under AMD's names.
//! A function is missing, as in an older library, where `--cfg` names it.
//!
//! Every function but those that come before a device is chosen refuses a thread that has set none. The image of a module
//! is read where it was given, when a function is looked for, as HIP does.

#![allow(non_snake_case, clippy::missing_safety_doc)]

#[path = "../../src/gpu/stand_in/machine/mod.rs"]
mod machine;

use machine::{
    BLOCKS, CONTROLS, Code, Controls, Device, Grid, HostFunction, MULTIPROCESSORS, Machine, Outcome, Rows,
    Way, Work,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_ushort, c_void};
use std::sync::{Mutex, MutexGuard, Once};

/// Of `hipMemPoolAttr`.
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED_MEM_CURRENT: c_int = 5;
const USED_MEM_CURRENT: c_int = 7;

/// Of `hipMemcpyKind`.
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;
const DEVICE_TO_DEVICE: c_int = 3;

/// The handles of the pools.
const POOLS: usize = 0x9000_0000;

/// Where the images of modules lie.
static IMAGES: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

thread_local! {
    static DEVICE: Cell<Option<&'static Device>> = const { Cell::new(None) };
    /// How many captures the thread has begun and not ended.
    static CAPTURES: Cell<usize> = const { Cell::new(0) };
}

fn plug_first() {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| (0..2).for_each(|_| drop(Device::plug(1 << 30, true, None))));
}

/// What tests do with the devices.
#[unsafe(no_mangle)]
pub extern "C" fn controls() -> *const Controls {
    plug_first();
    &raw const CONTROLS
}

fn device(ordinal: c_int) -> Outcome<&'static Device> {
    plug_first();
    usize::try_from(ordinal).ok().and_then(Device::of).ok_or(Code::INVALID_DEVICE)
}

/// The thread's device and its machine, for a call that may fail.
fn asked() -> Outcome<(&'static Device, MutexGuard<'static, Machine>)> {
    let device = DEVICE.get().ok_or(Code::INVALID_DEVICE)?;
    Ok((device, device.asked()?))
}

/// What a thread may not do while it captures (HIP's `hipStreamBeginCapture`).
fn isnt_capturing() -> Outcome<()> {
    if CAPTURES.get() == 0 { Ok(()) } else { Err(Code::IS_CAPTURING) }
}

fn check(holds: bool) -> Outcome<()> {
    if holds { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

unsafe fn give<T>(place: *mut T, value: T) -> Outcome<()> {
    check(!place.is_null())?;
    unsafe { place.write(value) };
    Ok(())
}

/// Enqueues work of the thread's device.
fn enqueue(stream: usize, work: impl FnOnce(usize) -> Work) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    machine.enqueue(device.stream(stream), device.ordinal, work(device.ordinal))
}

fn fill<const N: usize>(first: u64, pattern: [u8; N], count: usize, stream: usize) -> Outcome<()> {
    enqueue(stream, |_| Work::fill(Rows { first, pitch: N * count }, pattern, [count, 1]))
}

/// The device of a pool.
fn owner(pool: usize) -> Outcome<&'static Device> {
    let device = pool.checked_sub(POOLS).and_then(|offset| Device::of(offset / 16));
    device.filter(|device| device.pools && pool % 16 == 0).ok_or(Code::INVALID_VALUE)
}

/// A code object where it lies: an ELF file to the end of its table of sections, or a test's text to a NUL byte.
unsafe fn image<'a>(first: usize) -> Outcome<&'a [u8]> {
    check(first != 0)?;
    let bytes = first as *const u8;
    unsafe {
        if std::slice::from_raw_parts(bytes, 4) != b"\x7fELF" {
            return Ok(CStr::from_ptr(bytes.cast()).to_bytes());
        }
        check(bytes.cast::<u64>().is_aligned())?;
        // `e_shoff`, `e_shentsize`, `e_shnum` of a 64-bit header.
        let sections = bytes.add(0x28).cast::<u64>().read() as usize;
        let [size, count] = [0x3a, 0x3c].map(|offset| bytes.add(offset).cast::<u16>().read() as usize);
        Ok(std::slice::from_raw_parts(bytes, sections + size * count))
    }
}

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $body:block)*) => {$(
        #[cfg(not($name))]
        #[unsafe(no_mangle)]
        #[allow(unused_unsafe, clippy::too_many_arguments)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            let outcome = (|| -> Outcome<()> { unsafe { $body } })();
            outcome.map_or_else(|code| code.0 as c_int, |()| 0)
        }
    )*};
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetErrorName(code: c_int) -> *const c_char {
    Code(code as u32).hip_name().as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetErrorString(code: c_int) -> *const c_char {
    Code(code as u32).words().as_ptr()
}

functions! {
    // Those that tests add are there for who knows of them.
    fn hipGetDeviceCount(count: *mut c_int) { give(count, 2) }
    fn hipSetDevice(ordinal: c_int) {
        DEVICE.set(Some(device(ordinal)?));
        Ok(())
    }
    fn hipDriverGetVersion(version: *mut c_int) { give(version, 60_342_134) }
    fn hipDeviceGetName(name: *mut c_char, bytes: c_int, of: c_int) {
        device(of)?;
        let text = c"AMD Instinct MI300X";
        check(text.count_bytes() < bytes as usize)?;
        name.copy_from_nonoverlapping(text.as_ptr(), text.count_bytes() + 1);
        Ok(())
    }
    fn hipDeviceGetAttribute(value: *mut c_int, attribute: c_int, of: c_int) {
        let device = device(of)?;
        // Clock and memory's clock in kHz, L2, bus in bits, compute units, LDS, wave, pools.
        let units = if device.ordinal < 2 { 304 } else { MULTIPROCESSORS as c_int };
        let known = [(5, 2_100_000), (19, 4 << 20), (59, 8192), (60, 1_300_000), (63, units), (74, 65536), (87, 64), (88, device.pools.into())];
        let known = known.iter().find(|(number, _)| *number == attribute);
        give(value, known.ok_or(Code::INVALID_VALUE)?.1)
    }
    fn hipGetDevicePropertiesR0600(properties: *mut c_void, of: c_int) {
        device(of)?;
        let properties = properties.cast::<u8>();
        properties.write_bytes(0, 1472);
        let text = b"gfx942:sramecc+:xnack-";
        properties.add(1160).copy_from_nonoverlapping(text.as_ptr(), text.len());
        Ok(())
    }
    fn hipDeviceSynchronize() {
        let (device, mut machine) = asked()?;
        isnt_capturing()?;
        machine.run_device(device.ordinal)
    }
    fn hipMemGetInfo(free: *mut usize, total: *mut usize) {
        let (_, machine) = asked()?;
        give(free, (machine.limit - machine.reserved()) as usize)?;
        give(total, machine.limit as usize)
    }
    fn hipMalloc(address: *mut u64, bytes: usize) {
        let (device, mut machine) = asked()?;
        isnt_capturing()?;
        give(address, machine.allocate(bytes, device.ordinal)?)
    }
    fn hipFree(address: u64) {
        let (device, mut machine) = asked()?;
        isnt_capturing()?;
        machine.run_device(device.ordinal)?;
        machine.free(address)
    }
    fn hipMallocAsync(address: *mut u64, bytes: usize, stream: usize) {
        let (device, mut machine) = asked()?;
        if !device.pools {
            return Err(Code::NOT_SUPPORTED);
        }
        give(address, machine.allocate_ordered(bytes, device.ordinal, device.stream(stream))?)
    }
    fn hipFreeAsync(address: u64, stream: usize) {
        let (device, mut machine) = asked()?;
        machine.free_ordered(address, device.ordinal, device.stream(stream))
    }
    fn hipDeviceGetDefaultMemPool(pool: *mut usize, of: c_int) { give(pool, POOLS + 16 * device(of)?.ordinal) }
    fn hipMemPoolSetAttribute(pool: usize, attribute: c_int, value: *mut c_void) {
        let device = owner(pool)?;
        check(attribute == RELEASE_THRESHOLD && !value.is_null())?;
        device.asked()?.hold(device.ordinal, value.cast::<u64>().read());
        Ok(())
    }
    fn hipMemPoolGetAttribute(pool: usize, attribute: c_int, value: *mut c_void) {
        let device = owner(pool)?;
        let bytes = device.asked()?.pool_bytes(device.ordinal);
        match attribute {
            RESERVED_MEM_CURRENT => give(value.cast(), bytes.reserved),
            USED_MEM_CURRENT => give(value.cast(), bytes.used),
            _ => Err(Code::INVALID_VALUE),
        }
    }
    fn hipMemPoolTrimTo(pool: usize, keep: usize) {
        let device = owner(pool)?;
        device.asked()?.trim(device.ordinal, keep as u64);
        Ok(())
    }
    fn hipHostMalloc(first: *mut *mut c_void, bytes: usize, flags: c_uint) {
        let (_, mut machine) = asked()?;
        check(bytes > 0 && flags == 1)?;
        give(first, machine.pin(bytes).cast())
    }
    fn hipHostFree(first: *mut c_void) { asked()?.1.unpin(first.cast()) }
    fn hipMemcpyAsync(target: u64, source: u64, bytes: usize, kind: c_int, stream: usize) {
        match kind {
            HOST_TO_DEVICE => enqueue(stream, |_| Work::Upload { target, source: source as *const u8, bytes }),
            DEVICE_TO_HOST => enqueue(stream, |_| Work::Download { target: target as *mut u8, source, bytes }),
            DEVICE_TO_DEVICE => enqueue(stream, |device| Work::copy(target, source, bytes, [device; 2])),
            _ => Err(Code::INVALID_VALUE),
        }
    }
    fn hipMemcpy2DAsync(target: u64, target_pitch: usize, source: u64, source_pitch: usize, width: usize, height: usize, kind: c_int, stream: usize) {
        check(kind == DEVICE_TO_DEVICE && target_pitch >= width && source_pitch >= width)?;
        let (target, source) = (Rows { first: target, pitch: target_pitch }, Rows { first: source, pitch: source_pitch });
        enqueue(stream, |device| Work::Copy { target, source, size: [width, height], devices: [device; 2] })
    }
    fn hipMemcpyPeerAsync(target: u64, to: c_int, source: u64, from: c_int, bytes: usize, stream: usize) {
        let devices = [device(to)?.ordinal, device(from)?.ordinal];
        check(DEVICE.get().is_some_and(|own| own.ordinal == devices[0]))?;
        enqueue(stream, |_| Work::copy(target, source, bytes, devices))
    }
    fn hipDeviceCanAccessPeer(can: *mut c_int, of: c_int, peer: c_int) {
        give(can, (device(of)?.ordinal != device(peer)?.ordinal).into())
    }
    fn hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint) {
        let (own, mut machine) = asked()?;
        let peer = device(peer)?.ordinal;
        check(flags == 0 && peer != own.ordinal)?;
        if machine.open_way(own.ordinal, peer, Way::Context) { Ok(()) } else { Err(Code::ALREADY_PEERS) }
    }
    fn hipMemPoolSetAccess(pool: usize, list: *const [c_int; 3], count: usize) {
        let owner = owner(pool)?;
        let [kind, other, flags] = *list;
        check((count, kind, flags) == (1, 1, 3))?;
        let other = device(other)?;
        other.machine().open_way(other.ordinal, owner.ordinal, Way::Pool);
        Ok(())
    }
    fn hipMemset2DAsync(first: u64, pitch: usize, byte: c_int, width: usize, height: usize, stream: usize) {
        enqueue(stream, |_| Work::fill(Rows { first, pitch }, [byte as u8], [width, height]))
    }
    fn hipMemsetD8Async(target: u64, byte: u8, count: usize, stream: usize) { fill(target, [byte], count, stream) }
    fn hipMemsetD16Async(target: u64, half: c_ushort, count: usize, stream: usize) {
        fill(target, half.to_ne_bytes(), count, stream)
    }
    fn hipMemsetD32Async(target: u64, word: c_int, count: usize, stream: usize) {
        fill(target, word.to_ne_bytes(), count, stream)
    }
    fn hipStreamCreateWithFlags(stream: *mut usize, flags: c_uint) {
        let (device, mut machine) = asked()?;
        check(flags == 1)?;
        give(stream, machine.create_stream(device.ordinal))
    }
    fn hipStreamDestroy(stream: usize) { asked()?.1.destroy_stream(stream) }
    fn hipStreamSynchronize(stream: usize) {
        let (device, mut machine) = asked()?;
        machine.run(device.stream(stream))
    }
    fn hipStreamWaitEvent(stream: usize, event: usize, flags: c_uint) {
        let (device, mut machine) = asked()?;
        check(flags == 0)?;
        machine.wait(device.stream(stream), event, device.ordinal)
    }
    fn hipEventCreateWithFlags(event: *mut usize, flags: c_uint) {
        let (device, mut machine) = asked()?;
        check(flags == 0 || flags == 2)?;
        give(event, machine.create_event(flags == 0, device.ordinal))
    }
    fn hipEventDestroy(event: usize) { asked()?.1.destroy_event(event) }
    fn hipEventRecord(event: usize, stream: usize) {
        let (device, mut machine) = asked()?;
        machine.record(event, device.stream(stream), device.ordinal)
    }
    fn hipEventQuery(event: usize) { if asked()?.1.is_done(event)? { Ok(()) } else { Err(Code::NOT_READY) } }
    fn hipEventSynchronize(event: usize) { asked()?.1.synchronize_event(event) }
    fn hipEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) {
        give(milliseconds, (asked()?.1.elapsed(start, end)? * 1e3) as f32)
    }
    fn hipModuleLoadData(module: *mut usize, first: usize) {
        let own = DEVICE.get().ok_or(Code::INVALID_DEVICE)?;
        let image = image(first)?;
        own.before_load(image);
        let (device, mut machine) = asked()?;
        isnt_capturing()?;
        let loaded = machine.load(image, device.ordinal);
        IMAGES.lock().unwrap().get_or_insert_default().insert(loaded, first);
        give(module, loaded)
    }
    fn hipModuleUnload(module: usize) {
        asked()?.1.unload(module)?;
        IMAGES.lock().unwrap().get_or_insert_default().remove(&module);
        Ok(())
    }
    fn hipModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) {
        let (_, mut machine) = asked()?;
        let first = IMAGES.lock().unwrap().get_or_insert_default().get(&module).copied();
        if machine.image(module)? != image(first.ok_or(Code::INVALID_HANDLE)?)? {
            return Err(Code::INVALID_IMAGE);
        }
        give(function, machine.function(module, &CStr::from_ptr(name).to_string_lossy())?)
    }
    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: usize, threads: c_int, bytes: usize) {
        let (device, machine) = asked()?;
        let (_, most_shared) = machine.kernel(function, device.ordinal)?;
        check((1..=1024).contains(&threads) && bytes <= most_shared as usize)?;
        give(blocks, BLOCKS as c_int)
    }
    fn hipModuleLaunchKernel(function: usize, blocks: c_uint, gy: c_uint, gz: c_uint, threads: c_uint, by: c_uint, bz: c_uint, shared_bytes: c_uint, stream: usize, parameters: *const *mut c_void, extra: *const *mut c_void) {
        let (device, mut machine) = asked()?;
        // A grid has less than 2³² threads.
        check([gy, gz, by, bz] == [1; 4] && extra.is_null() && blocks.checked_mul(threads).is_some())?;
        let grid = Grid { blocks, threads, shared_bytes };
        machine.launch(function, device.ordinal, grid, parameters, device.stream(stream))
    }
    fn hipLaunchHostFunc(stream: usize, function: Option<HostFunction>, data: *mut c_void) {
        let function = function.ok_or(Code::INVALID_VALUE)?;
        enqueue(stream, |_| Work::Call { function, data })
    }
    fn hipStreamBeginCapture(stream: usize, mode: c_int) {
        let (device, mut machine) = asked()?;
        check(mode == 1)?;
        machine.begin_capture(device.stream(stream), device.ordinal)?;
        CAPTURES.set(CAPTURES.get() + 1);
        Ok(())
    }
    fn hipStreamEndCapture(stream: usize, graph: *mut usize) {
        let captured = asked()?.1.end_capture(stream)?;
        CAPTURES.set(CAPTURES.get() - 1);
        give(graph, captured)
    }
    fn hipGraphInstantiateWithFlags(executable: *mut usize, graph: usize, flags: c_ulonglong) {
        let (_, mut machine) = asked()?;
        isnt_capturing()?;
        check(flags == 0)?;
        give(executable, machine.instantiate(graph)?)
    }
    fn hipGraphDestroy(graph: usize) { asked()?.1.destroy_graph(graph) }
    fn hipGraphLaunch(executable: usize, stream: usize) {
        let (device, mut machine) = asked()?;
        machine.launch_graph(executable, device.stream(stream), device.ordinal)
    }
    fn hipGraphExecDestroy(executable: usize) { asked()?.1.destroy_executable(executable) }
}
