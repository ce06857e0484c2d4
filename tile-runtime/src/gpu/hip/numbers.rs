//! Numbers of attributes, flags and modes: those of `hip_runtime_api.h`, the same from HIP 6.2 to 7.14 (docs/decisions/launches.md
//! says how that was compared).

use super::library::Enumeration;

pub(super) const SUCCESS: Enumeration = 0;
pub(super) const ERROR_NOT_READY: Enumeration = 600;
pub(super) const ERROR_NO_DEVICE: Enumeration = 100;

/// Of `hipDeviceAttribute_t`.
pub(super) mod attribute {
    use super::Enumeration;
    pub(in super::super) const CLOCK_RATE: Enumeration = 5;
    pub(in super::super) const L2_CACHE_SIZE: Enumeration = 19;
    pub(in super::super) const MEMORY_BUS_WIDTH: Enumeration = 59;
    pub(in super::super) const MEMORY_CLOCK_RATE: Enumeration = 60;
    pub(in super::super) const MULTIPROCESSOR_COUNT: Enumeration = 63;
    pub(in super::super) const MAX_SHARED_MEMORY_PER_BLOCK: Enumeration = 74;
    pub(in super::super) const WARP_SIZE: Enumeration = 87;
    pub(in super::super) const MEMORY_POOLS_SUPPORTED: Enumeration = 88;
}

/// Of `hipMemPoolAttr`.
pub(super) const POOL_RELEASE_THRESHOLD: Enumeration = 4;
pub(super) const POOL_RESERVED_MEM_CURRENT: Enumeration = 5;
pub(super) const POOL_USED_MEM_CURRENT: Enumeration = 7;

/// Of `hipMemcpyKind`.
pub(super) const HOST_TO_DEVICE: Enumeration = 1;
pub(super) const DEVICE_TO_HOST: Enumeration = 2;
pub(super) const DEVICE_TO_DEVICE: Enumeration = 3;

pub(super) const STREAM_NON_BLOCKING: u32 = 1;
pub(super) const EVENT_DEFAULT: u32 = 0;
pub(super) const EVENT_DISABLE_TIMING: u32 = 2;
pub(super) const HOST_MALLOC_PORTABLE: u32 = 1;
pub(super) const CAPTURE_THREAD_LOCAL: Enumeration = 1;

/// Where `gcnArchName`, text of 256 bytes, lies in `hipDeviceProp_tR0600`, and how many bytes that has, with room for
/// what later versions put behind. No attribute says what it does.
pub(super) const ARCHITECTURE_OFFSET: usize = 1160;
pub(super) const PROPERTIES_BYTES: usize = 4096;

/// How many threads a grid has at most along an axis (`hipModuleLaunchKernel`: less than 2³²).
pub(super) const GRID_THREADS: u64 = u32::MAX as u64;
