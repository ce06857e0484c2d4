//! Memory that begins and ends where no more may be accessed: a read of one byte beyond a tensor is a failure, though it
//! changes nothing.

use std::ffi::c_void;

/// On which side of a tensor the next byte is closed. A tensor whose bytes fill its pages has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fence {
    /// The tensor begins a page.
    Before,
    /// The tensor ends a page, so that it begins at a multiple of its element alone.
    Behind,
}

impl Fence {
    pub(crate) const BOTH: [Fence; 2] = [Fence::Before, Fence::Behind];
}

/// Pages between two that are closed.
pub(crate) struct Fenced {
    pages: *mut u8,
    bytes: usize,
}

const PAGE: usize = 4096;

/// Pages that nobody can access, read, or write.
const CLOSED: i32 = 0;
const OPEN: i32 = 3;

/// Pages of this process alone, without a file.
#[cfg(target_os = "macos")]
const PRIVATE: i32 = 0x1002;
#[cfg(not(target_os = "macos"))]
const PRIVATE: i32 = 0x22;

unsafe extern "C" {
    fn mmap(at: *mut c_void, bytes: usize, access: i32, flags: i32, file: i32, offset: i64) -> *mut c_void;
    fn mprotect(at: *mut c_void, bytes: usize, access: i32) -> i32;
    fn munmap(at: *mut c_void, bytes: usize) -> i32;
}

impl Fenced {
    /// Room for so many bytes, which are zero.
    pub(crate) fn new(bytes: usize) -> Fenced {
        let bytes = bytes.next_multiple_of(PAGE) + 2 * PAGE;
        // SAFETY: private pages of our own, the first and last of which are closed.
        unsafe {
            let pages = mmap(std::ptr::null_mut(), bytes, OPEN, PRIVATE, -1, 0).cast::<u8>();
            assert_ne!(pages as isize, -1);
            assert_eq!(mprotect(pages.cast(), PAGE, CLOSED), 0);
            assert_eq!(mprotect(pages.add(bytes - PAGE).cast(), PAGE, CLOSED), 0);
            Fenced { pages, bytes }
        }
    }

    /// Where so many bytes begin that have this fence.
    pub(crate) fn place(&self, bytes: usize, fence: Fence) -> *mut u8 {
        self.pages.wrapping_add(match fence {
            Fence::Before => PAGE,
            Fence::Behind => self.bytes - PAGE - bytes,
        })
    }

    /// All bytes that are open.
    pub(crate) fn open(&self) -> &[u8] {
        // SAFETY: these pages are this one's, open and initialized; what writes to them meanwhile does so by address.
        unsafe { std::slice::from_raw_parts(self.pages.add(PAGE), self.bytes - 2 * PAGE) }
    }

    /// All bytes that are open, to be written.
    pub(crate) fn open_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `open`, and nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(self.pages.add(PAGE), self.bytes - 2 * PAGE) }
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: they are this one's pages.
        unsafe { munmap(self.pages.cast(), self.bytes) };
    }
}
