//! Host memory of tensors: bytes aligned to a cache line, as vector code needs it to be fast. Large tensors are mapped from
//! the system. Their pages are zero when they are first touched, which costs nothing when the tensor is made and is done by
//! the thread that touches them; and they are huge pages if the system has such: a pass over rows that are far apart needs
//! a page for each row, and the processor caches the translations of a few thousand pages only.
//!
//! Mappings of one size are adjacent, and so a power of two apart if the size is one. A loop over several such tensors
//! would then use the same cache sets, and mislead the processor's prediction of which addresses overlap. So each tensor
//! begins at another distance from the start of its mapping.

use crate::error::{Error, Result};
use crate::gpu::MemoryUse;
use memmap2::MmapMut;
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// One cache line, and the widest vector.
#[repr(align(64))]
struct Line;

/// Buffers of so many bytes are mapped: two huge pages of an x86-64, which at least one lies in whole.
const MAPPED_BYTES: usize = 4 << 20;

/// How far tensors that are mapped one after the other begin into their mappings: multiples of [`APART_BYTES`], of which
/// there are [`PLACES`]. Whole pages, and less than a huge page.
const APART_BYTES: usize = 64 << 10;
const PLACES: usize = 16;
static MAPPED: AtomicUsize = AtomicUsize::new(0);

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

/// Aligned bytes.
pub(crate) struct HostBuffer {
    memory: Memory,
    bytes: usize,
}

enum Memory {
    /// Memory of the allocator, but for no bytes.
    Allocated(NonNull<u8>),
    /// A mapping, and where in it the bytes begin.
    Mapped(MmapMut, usize),
}

// SAFETY: the memory is this value's own, like a vector's.
unsafe impl Send for HostBuffer {}
// SAFETY: it is read through a shared reference only.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    /// Zeroed bytes.
    pub(crate) fn zeroed(bytes: usize) -> Result<HostBuffer> {
        let out_of_memory = || Error::OutOfMemory { device: "the host".to_owned(), bytes, limit: None };
        let memory = match bytes {
            0 => {
                return Ok(HostBuffer {
                    memory: Memory::Allocated(NonNull::<Line>::dangling().cast()),
                    bytes,
                });
            }
            MAPPED_BYTES.. => mapped(bytes).ok_or_else(out_of_memory)?,
            _ => {
                let layout = layout_of(bytes).ok_or_else(out_of_memory)?;
                // SAFETY: the layout has bytes.
                let first = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) });
                Memory::Allocated(first.ok_or_else(out_of_memory)?)
            }
        };
        let in_use = IN_USE.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        PEAK.fetch_max(in_use, Ordering::Relaxed);
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        Ok(HostBuffer { memory, bytes })
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        match &mut self.memory {
            Memory::Allocated(first) => first.as_ptr(),
            Memory::Mapped(map, begin) => map[*begin..].as_mut_ptr(),
        }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        IN_USE.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        if let (Memory::Allocated(first), Some(layout), 1..) =
            (&self.memory, layout_of(self.bytes), self.bytes)
        {
            // SAFETY: the memory was allocated with this layout.
            unsafe { std::alloc::dealloc(first.as_ptr(), layout) }
        }
    }
}

/// Zeroed words, which cost nothing before they are touched. So many that there is no memory for them are an error, where
/// a vector would end the process.
pub(crate) fn zeroed_words(count: usize) -> Result<Vec<u64>> {
    let bytes = count.saturating_mul(size_of::<u64>());
    let out_of_memory = || Error::OutOfMemory { device: "the host".to_owned(), bytes, limit: None };
    let layout = Layout::array::<u64>(count).map_err(|_| out_of_memory())?;
    if layout.size() == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout has bytes.
    let first = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).ok_or_else(out_of_memory)?;
    // SAFETY: the allocator has just given memory with the layout of so many words, and they are zero.
    Ok(unsafe { Vec::from_raw_parts(first.as_ptr().cast(), count, count) })
}

fn layout_of(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, align_of::<Line>()).ok()
}

/// Pages of the system. That it has no huge ones only costs time.
fn mapped(bytes: usize) -> Option<Memory> {
    let begin = MAPPED.fetch_add(1, Ordering::Relaxed) % PLACES * APART_BYTES;
    let map = MmapMut::map_anon(bytes.checked_add(begin)?).ok()?;
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    Some(Memory::Mapped(map, begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_every_size_are_zero_aligned_and_counted() {
        for bytes in [0, 1, 63, 4096, MAPPED_BYTES - 1, MAPPED_BYTES, MAPPED_BYTES + 4097] {
            let mut buffer = HostBuffer::zeroed(bytes).expect("there is memory");
            assert_eq!((buffer.len(), buffer.as_mut_ptr() as usize % align_of::<Line>()), (bytes, 0));
            assert!(usage().in_use >= bytes as u64);
            // SAFETY: the buffer has so many bytes, and they are zero.
            let contents = unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr(), bytes) };
            assert!(contents.iter().all(|&byte| byte == 0), "{bytes}");
            contents.fill(255);
        }
    }

    /// Other tests map buffers meanwhile, so that two in a row may begin alike.
    #[test]
    fn large_buffers_of_one_size_begin_at_different_places_of_their_mappings() {
        let begin_of = |buffer: &HostBuffer| match &buffer.memory {
            Memory::Mapped(map, begin) => {
                assert!(begin % APART_BYTES == 0 && map.len() - begin == MAPPED_BYTES, "{begin}");
                *begin
            }
            Memory::Allocated(_) => panic!("it is mapped"),
        };
        let buffers: Vec<HostBuffer> =
            (0..PLACES / 2).map(|_| HostBuffer::zeroed(MAPPED_BYTES).expect("there is memory")).collect();
        assert!(buffers.iter().any(|buffer| begin_of(buffer) != begin_of(&buffers[0])));
    }

    #[test]
    fn more_than_there_is_is_refused() {
        for bytes in [usize::MAX, isize::MAX as usize, 1 << 60] {
            let error = HostBuffer::zeroed(bytes).err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.contains("memory")), "{bytes}");
            let words = zeroed_words(bytes).err().map(|error| error.to_string());
            assert!(words.is_some_and(|error| error.contains("memory")), "{bytes}");
        }
        assert_eq!([0, 1, 1000].map(|count| zeroed_words(count).unwrap()), [vec![], vec![0], vec![0; 1000]]);
    }
}
