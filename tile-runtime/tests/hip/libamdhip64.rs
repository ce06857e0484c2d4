//! A library with HIP's functions on host memory, built by the test of the runtime's loader: two GPUs, whose work runs when
//! it is enqueued. A function is missing, as in an older library, where `--cfg` names it.
//!
//! Every function but those that come before a device is chosen refuses a thread that has set none. Code is the name of its
//! one kernel; kernels double the elements of their first tensor into the second.

#![allow(non_snake_case, clippy::missing_safety_doc)]

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_ushort, c_void};
use std::sync::Mutex;

type Code = c_int;
type Handle = *mut c_void;

const SUCCESS: Code = 0;
const INVALID_VALUE: Code = 1;
const OUT_OF_MEMORY: Code = 2;
const INVALID_DEVICE: Code = 101;
const NOT_FOUND: Code = 500;
const NOT_READY: Code = 600;
const NOT_SUPPORTED: Code = 801;

/// Bytes of the device's memory.
const MEMORY: usize = 1 << 30;

/// The numbers of the GPUs.
const DEVICES: [c_int; 2] = [0, 1];

/// Blocks of memory and their sizes.
static BLOCKS: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

/// Which GPU may use which other's memory: by the devices, and by the pools.
static WAYS: Mutex<Vec<(c_int, c_int, bool)>> = Mutex::new(Vec::new());

thread_local! {
    static DEVICE: Cell<c_int> = const { Cell::new(-1) };
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes.max(1), 256).unwrap()
}

/// The pool of the thread's device.
fn own_pool() -> usize {
    0x900 + DEVICE.get() as usize
}

fn used(blocks: &HashMap<usize, usize>) -> usize {
    blocks.values().sum()
}

unsafe fn allocated(place: *mut Handle, bytes: usize) -> Code {
    let mut blocks = BLOCKS.lock().unwrap();
    let blocks = blocks.get_or_insert_default();
    if used(blocks) + bytes > MEMORY {
        return OUT_OF_MEMORY;
    }
    let first = unsafe { alloc(layout(bytes)) };
    blocks.insert(first as usize, bytes);
    unsafe { place.write(first.cast()) };
    SUCCESS
}

unsafe fn freed(first: Handle) -> Code {
    match BLOCKS.lock().unwrap().get_or_insert_default().remove(&(first as usize)) {
        Some(bytes) => {
            unsafe { dealloc(first.cast(), layout(bytes)) };
            SUCCESS
        }
        None => INVALID_VALUE,
    }
}

/// What enumerations and numbers are written to.
unsafe fn gives<T>(place: *mut T, value: T) -> Code {
    unsafe { place.write(value) };
    SUCCESS
}

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $body:block)*) => {$(
        #[cfg(not($name))]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> Code {
            if !DEVICES.contains(&DEVICE.get()) {
                return INVALID_DEVICE;
            }
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
    )*};
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetDeviceCount(count: *mut c_int) -> Code {
    unsafe { gives(count, DEVICES.len() as c_int) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipSetDevice(device: c_int) -> Code {
    if !DEVICES.contains(&device) {
        return INVALID_DEVICE;
    }
    DEVICE.set(device);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetErrorName(code: Code) -> *const c_char {
    match code {
        OUT_OF_MEMORY => c"hipErrorOutOfMemory",
        INVALID_DEVICE => c"hipErrorInvalidDevice",
        NOT_FOUND => c"hipErrorNotFound",
        _ => c"hipErrorUnknown",
    }
    .as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetErrorString(code: Code) -> *const c_char {
    match code {
        OUT_OF_MEMORY => c"out of memory",
        INVALID_DEVICE => c"invalid device ordinal",
        NOT_FOUND => c"named symbol not found",
        _ => c"unknown error",
    }
    .as_ptr()
}

functions! {
    fn hipDriverGetVersion(version: *mut c_int) { gives(version, 60_342_134) }
    fn hipDeviceGetName(name: *mut c_char, bytes: c_int, _device: c_int) {
        let text = c"AMD Instinct MI300X";
        if text.count_bytes() >= bytes as usize {
            return INVALID_VALUE;
        }
        name.copy_from_nonoverlapping(text.as_ptr(), text.count_bytes() + 1);
        SUCCESS
    }
    fn hipDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) {
        // Clock and memory's clock in kHz, L2, bus in bits, compute units, LDS, wave, pools.
        let known = [(5, 2_100_000), (19, 4 << 20), (59, 8192), (60, 1_300_000), (63, 304), (74, 65536), (87, 64), (88, 1)];
        match known.iter().find(|(number, _)| *number == attribute) {
            Some(&(_, known)) => gives(value, known),
            None => INVALID_VALUE,
        }
    }
    fn hipGetDevicePropertiesR0600(properties: *mut c_void, _device: c_int) {
        let properties = properties.cast::<u8>();
        properties.write_bytes(0, 1472);
        let text = b"gfx942:sramecc+:xnack-";
        properties.add(1160).copy_from_nonoverlapping(text.as_ptr(), text.len());
        SUCCESS
    }
    fn hipDeviceSynchronize() { SUCCESS }
    fn hipMemGetInfo(free: *mut usize, total: *mut usize) {
        gives(free, MEMORY - used(BLOCKS.lock().unwrap().get_or_insert_default()));
        gives(total, MEMORY)
    }
    fn hipMalloc(place: *mut Handle, bytes: usize) { allocated(place, bytes) }
    fn hipFree(first: Handle) { freed(first) }
    fn hipMallocAsync(place: *mut Handle, bytes: usize, _stream: Handle) { allocated(place, bytes) }
    fn hipFreeAsync(first: Handle, _stream: Handle) { freed(first) }
    fn hipDeviceGetDefaultMemPool(pool: *mut Handle, device: c_int) { gives(pool, (0x900 + device as usize) as Handle) }
    fn hipMemPoolSetAttribute(pool: Handle, attribute: c_int, value: *mut c_void) {
        if pool as usize == own_pool() && attribute == 4 && *value.cast::<u64>() == u64::MAX { SUCCESS } else { INVALID_VALUE }
    }
    fn hipMemPoolGetAttribute(pool: Handle, attribute: c_int, value: *mut c_void) {
        if pool as usize != own_pool() || ![5, 7].contains(&attribute) {
            return INVALID_VALUE;
        }
        gives(value.cast(), used(BLOCKS.lock().unwrap().get_or_insert_default()) as u64)
    }
    fn hipMemPoolTrimTo(pool: Handle, bytes: usize) {
        if pool as usize == own_pool() && bytes == 0 { SUCCESS } else { INVALID_VALUE }
    }
    fn hipHostMalloc(place: *mut Handle, bytes: usize, _flags: c_uint) { allocated(place, bytes) }
    fn hipHostFree(first: Handle) { freed(first) }
    fn hipMemcpyAsync(target: *mut c_void, source: *const c_void, bytes: usize, _kind: c_int, _stream: Handle) {
        target.copy_from(source, bytes);
        SUCCESS
    }
    fn hipMemcpy2DAsync(target: *mut c_void, target_pitch: usize, source: *const c_void, source_pitch: usize, width: usize, height: usize, kind: c_int, _stream: Handle) {
        if kind != 3 || target_pitch < width || source_pitch < width {
            return INVALID_VALUE;
        }
        for row in 0..height {
            target.byte_add(row * target_pitch).copy_from(source.byte_add(row * source_pitch), width);
        }
        SUCCESS
    }
    fn hipMemcpyPeerAsync(target: *mut c_void, to: c_int, source: *const c_void, from: c_int, bytes: usize, _stream: Handle) {
        // What a copy with no way past the host does, too; here the ways are asked for first.
        let ways = WAYS.lock().unwrap();
        if to != DEVICE.get() || [true, false].iter().any(|&by_pool| !ways.contains(&(to, from, by_pool))) {
            return INVALID_DEVICE;
        }
        target.copy_from(source, bytes);
        SUCCESS
    }
    fn hipDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) { gives(can, (device != peer).into()) }
    fn hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint) {
        WAYS.lock().unwrap().push((DEVICE.get(), peer, false));
        if flags == 0 { SUCCESS } else { INVALID_VALUE }
    }
    fn hipMemPoolSetAccess(pool: Handle, list: *const [c_int; 3], count: usize) {
        let [kind, device, flags] = *list;
        if (count, kind, flags) != (1, 1, 3) {
            return INVALID_VALUE;
        }
        WAYS.lock().unwrap().push((device, pool as c_int - 0x900, true));
        SUCCESS
    }
    fn hipMemset2DAsync(target: *mut c_void, pitch: usize, byte: c_int, width: usize, height: usize, _stream: Handle) {
        (0..height).for_each(|row| unsafe { target.byte_add(row * pitch).cast::<u8>().write_bytes(byte as u8, width) });
        SUCCESS
    }
    fn hipMemsetD8Async(target: *mut c_void, byte: u8, bytes: usize, _stream: Handle) {
        target.cast::<u8>().write_bytes(byte, bytes);
        SUCCESS
    }
    fn hipMemsetD16Async(target: *mut c_void, half: c_ushort, count: usize, _stream: Handle) {
        (0..count).for_each(|i| unsafe { target.cast::<c_ushort>().add(i).write(half) });
        SUCCESS
    }
    fn hipMemsetD32Async(target: *mut c_void, word: c_int, count: usize, _stream: Handle) {
        (0..count).for_each(|i| unsafe { target.cast::<c_int>().add(i).write(word) });
        SUCCESS
    }
    fn hipStreamCreateWithFlags(stream: *mut Handle, flags: c_uint) {
        if flags == 1 { gives(stream, 0x100 as Handle) } else { INVALID_VALUE }
    }
    fn hipStreamDestroy(_stream: Handle) { SUCCESS }
    fn hipStreamSynchronize(_stream: Handle) { SUCCESS }
    fn hipStreamWaitEvent(_stream: Handle, _event: Handle, flags: c_uint) {
        if flags == 0 { SUCCESS } else { INVALID_VALUE }
    }
    fn hipEventCreateWithFlags(event: *mut Handle, flags: c_uint) {
        if flags == 0 || flags == 2 { gives(event, 0x200 as Handle) } else { INVALID_VALUE }
    }
    fn hipEventDestroy(_event: Handle) { SUCCESS }
    fn hipEventRecord(_event: Handle, _stream: Handle) { SUCCESS }
    fn hipEventQuery(event: Handle) { if event.is_null() { NOT_READY } else { SUCCESS } }
    fn hipEventSynchronize(_event: Handle) { SUCCESS }
    fn hipEventElapsedTime(milliseconds: *mut f32, _start: Handle, _stop: Handle) { gives(milliseconds, 2.5) }
    fn hipModuleLoadData(module: *mut Handle, image: *const c_void) { gives(module, image.cast_mut()) }
    fn hipModuleUnload(_module: Handle) { SUCCESS }
    fn hipModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) {
        // The image is read where it was given, when a function is looked for.
        if CStr::from_ptr(module.cast()) == CStr::from_ptr(name) { gives(function, module) } else { NOT_FOUND }
    }
    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, _function: Handle, _threads: c_int, _bytes: usize) {
        gives(blocks, 8)
    }
    fn hipModuleLaunchKernel(_function: Handle, blocks: c_uint, gy: c_uint, gz: c_uint, threads: c_uint, by: c_uint, bz: c_uint, _bytes: c_uint, _stream: Handle, parameters: *mut *mut c_void, extra: *mut *mut c_void) {
        if [gy, gz, by, bz] != [1; 4] || threads != 64 || !extra.is_null() {
            return INVALID_VALUE;
        }
        let [x, y, n] = [0, 1, 2].map(|i| unsafe { *(*parameters.add(i)).cast::<u64>() });
        if u64::from(blocks) != n.div_ceil(4) {
            return INVALID_VALUE;
        }
        for i in 0..n as usize {
            (y as *mut f32).add(i).write(2.0 * (x as *const f32).add(i).read());
        }
        SUCCESS
    }
    fn hipLaunchHostFunc(_stream: Handle, function: unsafe extern "C" fn(*mut c_void), data: *mut c_void) {
        function(data);
        SUCCESS
    }
    fn hipStreamBeginCapture(_stream: Handle, _mode: c_int) { NOT_SUPPORTED }
    fn hipStreamEndCapture(_stream: Handle, _graph: *mut Handle) { NOT_SUPPORTED }
    fn hipGraphInstantiateWithFlags(_executable: *mut Handle, _graph: Handle, _flags: c_ulonglong) { NOT_SUPPORTED }
    fn hipGraphDestroy(_graph: Handle) { NOT_SUPPORTED }
    fn hipGraphLaunch(_executable: Handle, _stream: Handle) { NOT_SUPPORTED }
    fn hipGraphExecDestroy(_executable: Handle) { NOT_SUPPORTED }
}
