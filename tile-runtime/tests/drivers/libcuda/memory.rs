//! Memory, its pools, copies and fills.

use crate::common::{self, check, enqueue, fill, fill_rows, give};
use crate::context::device_of;
use crate::machine::{Code, Device, Rows, Work};
use crate::{current, functions};
use std::ffi::{c_int, c_uchar, c_uint, c_ushort, c_void};

const MEMHOSTALLOC_PORTABLE: c_uint = 1;
const MEMORYTYPE_DEVICE: c_int = 2;

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

functions! {
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) { common::memory_info(free, total) }
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) { common::allocate(address, bytes) }
    fn cuMemFree_v2(address: u64) { common::free(address) }
    fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: usize) {
        common::allocate_ordered(address, bytes, stream)
    }
    fn cuMemFreeAsync(address: u64, stream: usize) { common::free_ordered(address, stream) }
    fn cuDeviceGetDefaultMemPool(pool: *mut usize, device: c_int) {
        let device = usize::try_from(device).ok().and_then(Device::of).ok_or(Code::INVALID_DEVICE)?;
        give(pool, common::pool_of(device)?)
    }
    fn cuMemPoolSetAttribute(pool: usize, attribute: c_int, value: *mut c_void) {
        common::set_pool_attribute(pool, attribute, value)
    }
    fn cuMemPoolGetAttribute(pool: usize, attribute: c_int, value: *mut c_void) {
        common::pool_attribute(pool, attribute, value)
    }
    fn cuMemPoolTrimTo(pool: usize, keep: usize) { common::trim_pool(pool, keep) }
    // `CUmemAccessDesc` is the location's kind and number, and the flags.
    fn cuMemPoolSetAccess(pool: usize, list: *const [c_int; 3], count: usize) {
        common::open_pool(pool, list, count)
    }
    fn cuMemHostAlloc(first: *mut *mut c_void, bytes: usize, flags: c_uint) {
        check(flags & !7 == 0 && flags & MEMHOSTALLOC_PORTABLE != 0)?;
        common::pin(first, bytes)
    }
    fn cuMemFreeHost(first: *mut c_void) { common::unpin(first) }
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
        common::copy_rows(target, source, [copy.width, copy.height], stream)
    }
    fn cuMemsetD8Async(target: u64, byte: c_uchar, count: usize, stream: usize) { fill(target, [byte], count, stream) }
    fn cuMemsetD16Async(target: u64, half: c_ushort, count: usize, stream: usize) {
        fill(target, half.to_ne_bytes(), count, stream)
    }
    fn cuMemsetD32Async(target: u64, word: c_uint, count: usize, stream: usize) {
        fill(target, word.to_ne_bytes(), count, stream)
    }
    fn cuMemsetD2D8Async(first: u64, pitch: usize, byte: c_uchar, width: usize, height: usize, stream: usize) {
        fill_rows(Rows { first, pitch }, [byte], [width, height], stream)
    }
    fn cuMemsetD2D16Async(first: u64, pitch: usize, half: c_ushort, width: usize, height: usize, stream: usize) {
        fill_rows(Rows { first, pitch }, half.to_ne_bytes(), [width, height], stream)
    }
    fn cuMemsetD2D32Async(first: u64, pitch: usize, word: c_uint, width: usize, height: usize, stream: usize) {
        fill_rows(Rows { first, pitch }, word.to_ne_bytes(), [width, height], stream)
    }
}
