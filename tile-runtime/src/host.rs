//! Host memory of tensors: bytes aligned to a cache line, which is what vector code likes best.

use crate::error::{Error, Result};
use crate::gpu::MemoryUse;
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// One cache line, and the widest vector.
#[repr(align(64))]
struct Line;

/// Bytes that are there, the most of them at once, and how many allocations there were.
static IN_USE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// How the host's memory is used. The numbers are those of moments next to each other where threads allocate meanwhile.
pub(crate) fn usage() -> MemoryUse {
    let [in_use, peak, allocations] =
        [&IN_USE, &PEAK, &ALLOCATIONS].map(|number| number.load(Ordering::Relaxed));
    MemoryUse { in_use, peak, allocations, reused: Some(0), ..MemoryUse::default() }
}

/// Aligned bytes. The system hands out large ones as pages that are zero when they are first touched, so that making
/// them costs nothing.
pub(crate) struct HostBuffer {
    first: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is this value's own, like a vector's.
unsafe impl Send for HostBuffer {}
// SAFETY: it is read through a shared reference only.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    /// Zeroed bytes.
    pub(crate) fn zeroed(bytes: usize) -> Result<HostBuffer> {
        let out_of_memory = || Error::OutOfMemory { device: "the host".to_owned(), bytes };
        let layout = Layout::from_size_align(bytes, align_of::<Line>()).map_err(|_| out_of_memory())?;
        if bytes == 0 {
            return Ok(HostBuffer { first: NonNull::<Line>::dangling().cast(), layout });
        }
        // SAFETY: the layout has bytes.
        let first = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) });
        let first = first.ok_or_else(out_of_memory)?;
        let in_use = IN_USE.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        PEAK.fetch_max(in_use, Ordering::Relaxed);
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        Ok(HostBuffer { first, layout })
    }

    pub(crate) fn len(&self) -> usize {
        self.layout.size()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.first.as_ptr()
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            IN_USE.fetch_sub(self.layout.size() as u64, Ordering::Relaxed);
            // SAFETY: the memory was allocated with this layout.
            unsafe { std::alloc::dealloc(self.first.as_ptr(), self.layout) }
        }
    }
}
