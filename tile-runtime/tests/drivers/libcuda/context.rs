//! Devices, what they are, and their primary contexts.

use crate::common::{self, FIRST, check, give, plug_first};
use crate::functions;
use crate::machine::{Code, Device, MULTIPROCESSORS, Outcome};
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

static IS_INITIALIZED: AtomicBool = AtomicBool::new(false);

/// How often the primary context of a device was asked for and not given back.
static RETAINED: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];

thread_local! {
    static CURRENT: Cell<Option<&'static Device>> = const { Cell::new(None) };
}

fn device(ordinal: c_int) -> Outcome<&'static Device> {
    match IS_INITIALIZED.load(SeqCst) {
        true => usize::try_from(ordinal).ok().and_then(Device::of).ok_or(Code::INVALID_DEVICE),
        false => Err(Code::NOT_INITIALIZED),
    }
}

fn context_of(device: &'static Device) -> usize {
    std::ptr::from_ref(device) as usize
}

/// The device of a context that somebody has asked for.
pub(crate) fn device_of(context: usize) -> Outcome<&'static Device> {
    let mut devices = (0..Device::count()).filter_map(Device::of);
    let found = devices.find(|device| context_of(device) == context);
    found.filter(|device| RETAINED[device.ordinal].load(SeqCst) > 0).ok_or(Code::INVALID_CONTEXT)
}

/// The device of the context that is current on this thread.
pub(crate) fn current() -> Outcome<&'static Device> {
    let current = CURRENT.get().filter(|device| RETAINED[device.ordinal].load(SeqCst) > 0);
    current.ok_or(Code::INVALID_CONTEXT)
}

/// Of `CUdevice_attribute`.
fn attribute(device: &Device, attribute: c_int) -> Option<c_int> {
    let is_hopper = device.ordinal == 1;
    let of = |ampere, hopper| if is_hopper { hopper } else { ampere };
    Some(match attribute {
        // Pitch, warp, clock, multiprocessors.
        11 => i32::MAX,
        10 => 32,
        13 => of(1_410_000, 1_980_000),
        16 if device.ordinal < FIRST => of(108, 132),
        16 => MULTIPROCESSORS as c_int,
        // The memory's clock and bus, L2.
        36 => of(1_593_000, 2_619_000),
        37 => 5120,
        38 => of(40 << 20, 50 << 20),
        // Compute capability, shared memory, pools, clusters.
        75 => of(8, 9),
        76 => 0,
        97 => of(163 << 10, 227 << 10),
        115 => device.pools.into(),
        120 => of(0, 1),
        _ => return None,
    })
}

functions! {
    fn cuInit(flags: c_uint) {
        check(flags == 0)?;
        plug_first();
        IS_INITIALIZED.store(true, SeqCst);
        Ok(())
    }
    fn cuDriverGetVersion(version: *mut c_int) { give(version, 12_080) }
    fn cuDeviceGetCount(count: *mut c_int) {
        device(0)?;
        // Those that tests add are there for who knows of them.
        give(count, FIRST as c_int)
    }
    fn cuDeviceGet(found: *mut c_int, ordinal: c_int) {
        device(ordinal)?;
        give(found, ordinal)
    }
    fn cuDeviceGetName(name: *mut c_char, bytes: c_int, of: c_int) {
        let text = if device(of)?.ordinal == 1 { c"NVIDIA H100 80GB HBM3" } else { c"NVIDIA A100-SXM4-80GB" };
        check(!name.is_null() && text.count_bytes() < bytes as usize)?;
        name.copy_from_nonoverlapping(text.as_ptr(), text.count_bytes() + 1);
        Ok(())
    }
    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], of: c_int) {
        let last = device(of)?.ordinal as u8;
        give(uuid, [0x5a, 0x21, 0xc8, 0x0f, 0xee, 0x01, 0x4b, 0x7d, 0x90, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, last])
    }
    fn cuDeviceGetPCIBusId(text: *mut c_char, bytes: c_int, of: c_int) {
        let id = if device(of)?.ordinal == 1 { c"0000:DB:00.0" } else { c"0000:3B:00.0" };
        check(!text.is_null() && id.count_bytes() < bytes as usize)?;
        text.copy_from_nonoverlapping(id.as_ptr(), id.count_bytes() + 1);
        Ok(())
    }
    fn cuDeviceGetAttribute(value: *mut c_int, of: c_int, ordinal: c_int) {
        give(value, attribute(device(ordinal)?, of).ok_or(Code::INVALID_VALUE)?)
    }
    fn cuDevicePrimaryCtxRetain(context: *mut usize, ordinal: c_int) {
        let device = device(ordinal)?;
        give(context, context_of(device))?;
        RETAINED[device.ordinal].fetch_add(1, SeqCst);
        Ok(())
    }
    fn cuDevicePrimaryCtxRelease_v2(ordinal: c_int) {
        let device = device(ordinal)?;
        let less = RETAINED[device.ordinal].fetch_update(SeqCst, SeqCst, |count| count.checked_sub(1));
        less.map(drop).map_err(|_| Code::INVALID_CONTEXT)
    }
    fn cuCtxGetCurrent(context: *mut usize) {
        device(0)?;
        give(context, CURRENT.get().map_or(0, context_of))
    }
    fn cuCtxSetCurrent(context: usize) {
        device(0)?;
        CURRENT.set(if context == 0 { None } else { Some(device_of(context)?) });
        Ok(())
    }
    fn cuCtxSynchronize() { common::synchronize_device() }
    fn cuDeviceCanAccessPeer(can: *mut c_int, of: c_int, peer: c_int) {
        give(can, (device(of)?.ordinal != device(peer)?.ordinal).into())
    }
    fn cuCtxEnablePeerAccess(peer: usize, flags: c_uint) { common::open_device(device_of(peer)?, flags) }
    fn cuGetErrorName(error: u32, text: *mut *const c_char) { give(text, Code(error).cuda_name().as_ptr()) }
    fn cuGetErrorString(error: u32, text: *mut *const c_char) { give(text, Code(error).words().as_ptr()) }
}
