//! Host memory of tensors: bytes aligned to a cache line, which is what vector code likes best.

use crate::error::{Error, Result};
use std::alloc::Layout;
use std::ptr::NonNull;

/// One cache line, and the widest vector.
#[repr(align(64))]
struct Line;

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
        Ok(HostBuffer { first: first.ok_or_else(out_of_memory)?, layout })
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
            // SAFETY: the memory was allocated with this layout.
            unsafe { std::alloc::dealloc(self.first.as_ptr(), self.layout) }
        }
    }
}
