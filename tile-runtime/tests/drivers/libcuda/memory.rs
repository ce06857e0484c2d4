//! Memory, its pools, copies and fills.

use crate::context::{asked, current, device_of, isnt_capturing};
use crate::machine::{Code, Device, Outcome, Rows, Way, Work};
use crate::{check, functions, give};
use std::ffi::{c_int, c_uchar, c_uint, c_ushort, c_void};

/// Of `CUmemPool_attribute`.
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED_MEM_CURRENT: c_int = 5;
const USED_MEM_CURRENT: c_int = 7;

const MEMHOSTALLOC_PORTABLE: c_uint = 1;
const MEMORYTYPE_DEVICE: c_int = 2;

/// The handles of the pools.
const POOLS: usize = 0x9000_0000;

fn pool_of(device: &Device) -> usize {
    POOLS + 16 * device.ordinal
}

/// The device of a pool.
fn owner(pool: usize) -> Outcome<&'static Device> {
    let device = pool.checked_sub(POOLS).and_then(|offset| Device::of(offset / 16));
    device.filter(|device| device.pools && pool_of(device) == pool).ok_or(Code::INVALID_VALUE)
}

/// `CUmemAccessDesc`: a location and what may be done from there.
#[repr(C)]
pub struct Access {
    kind: c_int,
    device: c_int,
    flags: c_int,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
pub struct Copy2D {
    source_x: usize,
    source_y: usize,
    source_type: c_int,
    source_host: *const c_void,
    source: u64,
    source_array: usize,
    source_pitch: usize,
    target_x: usize,
    target_y: usize,
    target_type: c_int,
    target_host: *mut c_void,
    target: u64,
    target_array: usize,
    target_pitch: usize,
    width: usize,
    height: usize,
}

/// Enqueues work of the current device.
fn enqueue(stream: usize, work: impl FnOnce(usize) -> Work) -> Outcome<()> {
    let (device, mut machine) = asked()?;
    machine.enqueue(device.stream(stream), device.ordinal, work(device.ordinal))
}

fn fill<const N: usize>(target: Rows, pattern: [u8; N], size: [usize; 2], stream: usize) -> Outcome<()> {
    enqueue(stream, |_| Work::fill(target, pattern, size))
}

fn line(first: u64, bytes: usize) -> Rows {
    Rows { first, pitch: bytes }
}

functions! {
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let (_, machine) = asked()?;
        give(free, (machine.limit - machine.reserved()) as usize)?;
        give(total, machine.limit as usize)
    }
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) {
        let (device, mut machine) = asked()?;
        isnt_capturing()?;
        give(address, machine.allocate(bytes, device.ordinal)?)
    }
    fn cuMemFree_v2(address: u64) {
        let (device, mut machine) = asked()?;
        isnt_capturing()?;
        machine.run_device(device.ordinal)?;
        machine.free(address)
    }
    fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: usize) {
        let (device, mut machine) = asked()?;
        if !device.pools {
            return Err(Code::NOT_SUPPORTED);
        }
        give(address, machine.allocate_ordered(bytes, device.ordinal, device.stream(stream))?)
    }
    fn cuMemFreeAsync(address: u64, stream: usize) {
        let (device, mut machine) = asked()?;
        machine.free_ordered(address, device.ordinal, device.stream(stream))
    }
    fn cuDeviceGetDefaultMemPool(pool: *mut usize, device: c_int) {
        let device = usize::try_from(device).ok().and_then(Device::of).ok_or(Code::INVALID_DEVICE)?;
        if !device.pools {
            return Err(Code::NOT_SUPPORTED);
        }
        give(pool, pool_of(device))
    }
    fn cuMemPoolSetAttribute(pool: usize, attribute: c_int, value: *mut c_void) {
        let device = owner(pool)?;
        check(attribute == RELEASE_THRESHOLD && !value.is_null())?;
        device.asked()?.hold(device.ordinal, value.cast::<u64>().read());
        Ok(())
    }
    fn cuMemPoolGetAttribute(pool: usize, attribute: c_int, value: *mut c_void) {
        let device = owner(pool)?;
        let bytes = device.asked()?.pool_bytes(device.ordinal);
        match attribute {
            RESERVED_MEM_CURRENT => give(value.cast(), bytes.reserved),
            USED_MEM_CURRENT => give(value.cast(), bytes.used),
            _ => Err(Code::INVALID_VALUE),
        }
    }
    fn cuMemPoolTrimTo(pool: usize, keep: usize) {
        let device = owner(pool)?;
        device.asked()?.trim(device.ordinal, keep as u64);
        Ok(())
    }
    fn cuMemPoolSetAccess(pool: usize, list: *const Access, count: usize) {
        let device = owner(pool)?;
        check(!list.is_null() && count == 1)?;
        let Access { kind, device: other, flags } = &*list;
        // A device, reading and writing.
        let other = usize::try_from(*other).ok().and_then(Device::of).ok_or(Code::INVALID_DEVICE)?;
        check(*kind == 1 && *flags == 3)?;
        other.machine().open_way(other.ordinal, device.ordinal, Way::Pool);
        Ok(())
    }
    fn cuMemHostAlloc(first: *mut *mut c_void, bytes: usize, flags: c_uint) {
        let (_, mut machine) = asked()?;
        check(bytes > 0 && flags & !7 == 0 && flags & MEMHOSTALLOC_PORTABLE != 0)?;
        give(first, machine.pin(bytes).cast())
    }
    fn cuMemFreeHost(first: *mut c_void) { asked()?.1.unpin(first.cast()) }
    fn cuMemcpyHtoDAsync_v2(target: u64, source: *const c_void, bytes: usize, stream: usize) {
        check(!source.is_null())?;
        enqueue(stream, |_| Work::Upload { target, source: source.cast(), bytes })
    }
    fn cuMemcpyDtoHAsync_v2(target: *mut c_void, source: u64, bytes: usize, stream: usize) {
        check(!target.is_null())?;
        enqueue(stream, |_| Work::Download { target: target.cast(), source, bytes })
    }
    fn cuMemcpyDtoDAsync_v2(target: u64, source: u64, bytes: usize, stream: usize) {
        enqueue(stream, |device| Work::copy(target, source, bytes, [device; 2]))
    }
    fn cuMemcpyPeerAsync(target: u64, to: usize, source: u64, from: usize, bytes: usize, stream: usize) {
        let devices = [device_of(to)?.ordinal, device_of(from)?.ordinal];
        check(devices[0] == current()?.ordinal)?;
        enqueue(stream, |_| Work::copy(target, source, bytes, devices))
    }
    fn cuMemcpy2DAsync_v2(copy: *const Copy2D, stream: usize) {
        check(!copy.is_null())?;
        let copy = &*copy;
        check(copy.source_type == MEMORYTYPE_DEVICE && copy.target_type == MEMORYTYPE_DEVICE)?;
        check(copy.source_array == 0 && copy.target_array == 0)?;
        check(copy.source_x + copy.width <= copy.source_pitch && copy.target_x + copy.width <= copy.target_pitch)?;
        let rows = |first: u64, x: usize, y: usize, pitch: usize| Rows { first: first + (y * pitch + x) as u64, pitch };
        let source = rows(copy.source, copy.source_x, copy.source_y, copy.source_pitch);
        let target = rows(copy.target, copy.target_x, copy.target_y, copy.target_pitch);
        let size = [copy.width, copy.height];
        enqueue(stream, |device| Work::Copy { target, source, size, devices: [device; 2] })
    }
    fn cuMemsetD8Async(target: u64, byte: c_uchar, count: usize, stream: usize) {
        fill(line(target, count), [byte], [count, 1], stream)
    }
    fn cuMemsetD16Async(target: u64, half: c_ushort, count: usize, stream: usize) {
        fill(line(target, 2 * count), half.to_ne_bytes(), [count, 1], stream)
    }
    fn cuMemsetD32Async(target: u64, word: c_uint, count: usize, stream: usize) {
        fill(line(target, 4 * count), word.to_ne_bytes(), [count, 1], stream)
    }
    fn cuMemsetD2D8Async(first: u64, pitch: usize, byte: c_uchar, width: usize, height: usize, stream: usize) {
        fill(Rows { first, pitch }, [byte], [width, height], stream)
    }
    fn cuMemsetD2D16Async(first: u64, pitch: usize, half: c_ushort, width: usize, height: usize, stream: usize) {
        fill(Rows { first, pitch }, half.to_ne_bytes(), [width, height], stream)
    }
    fn cuMemsetD2D32Async(first: u64, pitch: usize, word: c_uint, width: usize, height: usize, stream: usize) {
        fill(Rows { first, pitch }, word.to_ne_bytes(), [width, height], stream)
    }
}
