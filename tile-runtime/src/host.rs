//! Host memory of tensors: bytes aligned to a cache line, which is what vector code likes best.

use crate::error::{Error, Result};

/// One cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Aligned bytes.
pub(crate) struct HostBuffer {
    lines: Vec<Line>,
    bytes: usize,
}

impl HostBuffer {
    /// Zeroed bytes.
    pub(crate) fn zeroed(bytes: usize) -> Result<HostBuffer> {
        let count = bytes.div_ceil(64);
        let mut lines = Vec::new();
        let out_of_memory = |_| Error::OutOfMemory { device: "the host".to_owned(), bytes };
        lines.try_reserve_exact(count).map_err(out_of_memory)?;
        lines.resize(count, Line([0; 64]));
        Ok(HostBuffer { lines, bytes })
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.lines.as_ptr().cast()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        // SAFETY: the lines are initialised and cover at least `bytes` bytes.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.bytes) }
    }
}
