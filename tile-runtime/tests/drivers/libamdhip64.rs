//! A library with HIP's functions that the runtime calls, built by its tests: the machine of the stand-in under AMD's names.
//! A function is missing, as in an older library, where `--cfg` names it.
//!
//! Every function but those that come before a device is chosen refuses a thread that has set none. The image of a module
//! is read where it was given, when a function is looked for, as HIP does.

#![allow(non_snake_case, clippy::missing_safety_doc)]

#[path = "common.rs"]
mod common;
#[path = "../../src/gpu/stand_in/machine/mod.rs"]
mod machine;

use common::{FIRST, asked, check, enqueue, fill, give, plug_first};
use machine::{CONTROLS, Code, Controls, Device, HostFunction, MULTIPROCESSORS, Outcome, Rows, Work};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ushort, c_void};
use std::sync::Mutex;

/// Of `hipMemcpyKind`.
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;
const DEVICE_TO_DEVICE: c_int = 3;

/// Where the images of modules lie.
static IMAGES: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

thread_local! {
    static DEVICE: Cell<Option<&'static Device>> = const { Cell::new(None) };
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

/// The device that the thread has set.
fn current() -> Outcome<&'static Device> {
    DEVICE.get().ok_or(Code::INVALID_DEVICE)
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
    fn hipGetDeviceCount(count: *mut c_int) { give(count, FIRST as c_int) }
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
    fn hipDeviceGetUuid(uuid: *mut [u8; 16], of: c_int) {
        device(of)?;
        give(uuid, *b"b7da1a2c8e5f0913")
    }
    fn hipDeviceGetPCIBusId(text: *mut c_char, bytes: c_int, of: c_int) {
        device(of)?;
        let id = c"0000:83:00.0";
        check(id.count_bytes() < bytes as usize)?;
        text.copy_from_nonoverlapping(id.as_ptr(), id.count_bytes() + 1);
        Ok(())
    }
    fn hipDeviceGetAttribute(value: *mut c_int, attribute: c_int, of: c_int) {
        let device = device(of)?;
        // Clock and memory's clock in kHz, L2, bus in bits, compute units, LDS, wave, pools.
        let units = if device.ordinal < FIRST { 304 } else { MULTIPROCESSORS as c_int };
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
    fn hipDeviceSynchronize() { common::synchronize_device() }
    fn hipMemGetInfo(free: *mut usize, total: *mut usize) { common::memory_info(free, total) }
    fn hipMalloc(address: *mut u64, bytes: usize) { common::allocate(address, bytes) }
    fn hipFree(address: u64) { common::free(address) }
    fn hipMallocAsync(address: *mut u64, bytes: usize, stream: usize) { common::allocate_ordered(address, bytes, stream) }
    fn hipFreeAsync(address: u64, stream: usize) { common::free_ordered(address, stream) }
    fn hipDeviceGetDefaultMemPool(pool: *mut usize, of: c_int) { give(pool, common::pool_of(device(of)?)?) }
    fn hipMemPoolSetAttribute(pool: usize, attribute: c_int, value: *mut c_void) {
        common::set_pool_attribute(pool, attribute, value)
    }
    fn hipMemPoolGetAttribute(pool: usize, attribute: c_int, value: *mut c_void) {
        common::pool_attribute(pool, attribute, value)
    }
    fn hipMemPoolTrimTo(pool: usize, keep: usize) { common::trim_pool(pool, keep) }
    fn hipHostMalloc(first: *mut *mut c_void, bytes: usize, flags: c_uint) {
        check(flags == 1)?;
        common::pin(first, bytes)
    }
    fn hipHostFree(first: *mut c_void) { common::unpin(first) }
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
        common::copy_rows(target, source, [width, height], stream)
    }
    fn hipMemcpyPeerAsync(target: u64, to: c_int, source: u64, from: c_int, bytes: usize, stream: usize) {
        let devices = [device(to)?.ordinal, device(from)?.ordinal];
        check(DEVICE.get().is_some_and(|own| own.ordinal == devices[0]))?;
        enqueue(stream, |_| Work::copy(target, source, bytes, devices))
    }
    fn hipDeviceCanAccessPeer(can: *mut c_int, of: c_int, peer: c_int) {
        give(can, (device(of)?.ordinal != device(peer)?.ordinal).into())
    }
    fn hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint) { common::open_device(device(peer)?, flags) }
    fn hipMemPoolSetAccess(pool: usize, list: *const [c_int; 3], count: usize) { common::open_pool(pool, list, count) }
    fn hipMemset2DAsync(first: u64, pitch: usize, byte: c_int, width: usize, height: usize, stream: usize) {
        common::fill_rows(Rows { first, pitch }, [byte as u8], [width, height], stream)
    }
    fn hipMemsetD8Async(target: u64, byte: u8, count: usize, stream: usize) { fill(target, [byte], count, stream) }
    fn hipMemsetD16Async(target: u64, half: c_ushort, count: usize, stream: usize) {
        fill(target, half.to_ne_bytes(), count, stream)
    }
    fn hipMemsetD32Async(target: u64, word: c_int, count: usize, stream: usize) {
        fill(target, word.to_ne_bytes(), count, stream)
    }
    fn hipStreamCreateWithFlags(stream: *mut usize, flags: c_uint) {
        check(flags == 1)?;
        common::create_stream(stream)
    }
    fn hipStreamDestroy(stream: usize) { common::destroy_stream(stream) }
    fn hipStreamSynchronize(stream: usize) { common::synchronize(stream) }
    fn hipStreamWaitEvent(stream: usize, event: usize, flags: c_uint) { common::wait(stream, event, flags) }
    fn hipEventCreateWithFlags(event: *mut usize, flags: c_uint) { common::create_event(event, flags) }
    fn hipEventDestroy(event: usize) { common::destroy_event(event) }
    fn hipEventRecord(event: usize, stream: usize) { common::record(event, stream) }
    fn hipEventQuery(event: usize) { common::query(event) }
    fn hipEventSynchronize(event: usize) { common::synchronize_event(event) }
    fn hipEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) { common::elapsed(milliseconds, start, end) }
    fn hipModuleLoadData(module: *mut usize, first: *const c_void) {
        let loaded = common::load(common::image(first)?)?;
        IMAGES.lock().unwrap().get_or_insert_default().insert(loaded, first as usize);
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
        if machine.image(module)? != common::image(first.ok_or(Code::INVALID_HANDLE)? as *const c_void)? {
            return Err(Code::INVALID_IMAGE);
        }
        give(function, machine.function(module, &CStr::from_ptr(name).to_string_lossy())?)
    }
    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: usize, threads: c_int, bytes: usize) {
        common::occupancy(blocks, function, threads, bytes)
    }
    fn hipModuleLaunchKernel(function: usize, blocks: c_uint, gy: c_uint, gz: c_uint, threads: c_uint, by: c_uint, bz: c_uint, shared_bytes: c_uint, stream: usize, parameters: *const *mut c_void, extra: *const *mut c_void) {
        // A grid has less than 2³² threads.
        check(blocks.checked_mul(threads).is_some())?;
        common::launch(function, [[blocks, gy, gz], [threads, by, bz]], shared_bytes, stream, [parameters, extra])
    }
    fn hipLaunchHostFunc(stream: usize, function: Option<HostFunction>, data: *mut c_void) {
        common::call(stream, function, data)
    }
    fn hipStreamBeginCapture(stream: usize, mode: c_int) { common::begin_capture(stream, mode) }
    fn hipStreamEndCapture(stream: usize, graph: *mut usize) { common::end_capture(stream, graph) }
    fn hipGraphInstantiateWithFlags(executable: *mut usize, graph: usize, flags: u64) {
        common::instantiate(executable, graph, flags)
    }
    fn hipGraphDestroy(graph: usize) { common::destroy_graph(graph) }
    fn hipGraphLaunch(executable: usize, stream: usize) { common::launch_graph(executable, stream) }
    fn hipGraphExecDestroy(executable: usize) { common::destroy_executable(executable) }
}
