//! Copies between the host and a GPU, on it, and fills. All are enqueued; those from and to ordinary memory of the host
//! go through pinned memory.
//!
//! A driver copies from ordinary memory through pinned memory of its own, and has the host wait. Here what the host writes
//! is copied to a pinned buffer, from which the device takes it when it comes to it. So the host doesn't wait, until four
//! buffers of a size are in flight (`pinned.rs`): with a fifth, such as that of a write of more than 16 MiB, it waits until
//! the device has come to the first. No copy is ever in flight that uses memory which isn't ours to keep, so that a wait
//! which is refused ends in an error and nothing else.

use super::context::Context;
use super::driver::{Driver, EventKind, Pattern, RowSize, Rows};
use super::pinned::PinnedBuffer;
use super::streams::{GpuEvent, GpuStream};
use crate::error::Result;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most bytes that go through one pinned buffer: as many as take a link of 50 GB/s 80 µs, beside which beginning a copy
/// is little.
const STAGE: usize = 4 << 20;

/// Bytes that are written before copies on the device double them.
const SEED: usize = 4096;

/// A part of what is read that is on its way.
struct Coming<'b> {
    target: &'b mut [u8],
    stage: PinnedBuffer,
    event: GpuEvent,
}

impl Coming<'_> {
    /// Waits for it, and takes it out.
    fn arrive(self) -> Result<()> {
        self.event.wait()?;
        // SAFETY: the copy to the buffer is done, which has as many bytes at least.
        let bytes = unsafe { std::slice::from_raw_parts(self.stage.first(), self.target.len()) };
        self.target.copy_from_slice(bytes);
        Ok(())
    }
}

impl Context {
    /// A pinned buffer for a part of a copy: one of few sizes, so that few are kept.
    fn stage(self: &Arc<Self>, bytes: usize) -> Result<PinnedBuffer> {
        self.pinned(bytes.next_power_of_two())
    }

    /// Copies host bytes to device memory, after all work enqueued before. It is enqueued when this returns; the bytes
    /// aren't needed any more.
    pub(crate) fn upload(self: &Arc<Self>, bytes: &[u8], address: u64) -> Result<()> {
        for (part, place) in bytes.chunks(STAGE).zip((address..).step_by(STAGE)) {
            let stage = self.stage(part.len())?;
            // SAFETY: the buffer has as many bytes at least, and no copy uses it. The device's memory is that of a tensor or
            // a log, which is as large; the buffer is given back behind the copy.
            unsafe {
                stage.first().copy_from_nonoverlapping(part.as_ptr(), part.len());
                self.enqueue_upload(place, stage.first(), part.len(), None)?;
            }
        }
        Ok(())
    }

    /// Copies device memory to the host, after all work enqueued before, and waits for it. While the host takes one part
    /// out of its buffer, the next is on its way.
    pub(crate) fn download(self: &Arc<Self>, address: u64, bytes: &mut [u8]) -> Result<()> {
        let mut coming = VecDeque::new();
        for (target, place) in bytes.chunks_mut(STAGE).zip((address..).step_by(STAGE)) {
            let stage = self.stage(target.len())?;
            // SAFETY: as in `upload`, the other way.
            unsafe { self.enqueue_download(stage.first(), place, target.len(), None) }?;
            coming.push_back(Coming { target, stage, event: self.event(self.stream, EventKind::Plain)? });
            if coming.len() > 1 {
                coming.pop_front().map_or(Ok(()), Coming::arrive)?;
            }
        }
        coming.into_iter().try_for_each(Coming::arrive)
    }

    /// Enqueues a copy from the host, on a stream or on the context's own.
    ///
    /// # Safety
    /// Both have as many bytes. Those of the host stay, and nobody writes them, until the copy is done; those of the device
    /// likewise, and nobody uses them but work that is ordered with the stream's.
    pub(crate) unsafe fn enqueue_upload(
        &self,
        target: u64,
        source: *const u8,
        bytes: usize,
        stream: Option<&GpuStream>,
    ) -> Result<()> {
        let (stream, _work) = self.handle(stream);
        // SAFETY: the caller vouches for the memory.
        let copy = |driver: &dyn Driver| unsafe { driver.upload(target, source, bytes, stream) };
        self.ask(|| "copying to the device".to_owned(), copy)
    }

    /// Enqueues a copy to the host, on a stream or on the context's own.
    ///
    /// # Safety
    /// As [`Context::enqueue_upload`]; nobody else uses the host's bytes until the copy is done.
    pub(crate) unsafe fn enqueue_download(
        &self,
        target: *mut u8,
        source: u64,
        bytes: usize,
        stream: Option<&GpuStream>,
    ) -> Result<()> {
        let (stream, _work) = self.handle(stream);
        // SAFETY: the caller vouches for the memory.
        let copy = |driver: &dyn Driver| unsafe { driver.download(target, source, bytes, stream) };
        self.ask(|| "copying to the host".to_owned(), copy)
    }

    /// Copies from one memory of the device to another, on a stream or on the context's own.
    pub(crate) fn copy(
        &self,
        target: u64,
        source: u64,
        bytes: usize,
        stream: Option<&GpuStream>,
    ) -> Result<()> {
        let (stream, _work) = self.handle(stream);
        // SAFETY: the memory is that of tensors, which are as large; who frees or uses them later does so behind the
        // stream's work.
        let copy = |driver: &dyn Driver| unsafe { driver.copy(target, source, bytes, stream) };
        if bytes == 0 { Ok(()) } else { self.ask(|| "copying on the device".to_owned(), copy) }
    }

    /// Copies from memory of another GPU of this vendor's, on the context's own stream, which comes after what writes that.
    pub(crate) fn copy_from_peer(
        &self,
        target: u64,
        peer: &Context,
        source: u64,
        bytes: usize,
    ) -> Result<()> {
        let ((stream, _work), peer) = (self.handle(None), peer.driver.ordinal());
        // SAFETY: as in `copy`; the source's owner orders what comes later with an event behind this.
        let copy =
            |driver: &dyn Driver| unsafe { driver.copy_from_peer(target, peer, source, bytes, stream) };
        if bytes == 0 { Ok(()) } else { self.ask(|| "copying from another device".to_owned(), copy) }
    }

    /// Copies rows of bytes from one memory of the device to another, on a stream or on the context's own.
    pub(crate) fn copy_rows(
        &self,
        target: Rows,
        source: Rows,
        size: RowSize,
        stream: Option<&GpuStream>,
    ) -> Result<()> {
        let (stream, _work) = self.handle(stream);
        // SAFETY: as in `copy`.
        let copy = |driver: &dyn Driver| unsafe { driver.copy_rows(target, source, size, stream) };
        self.ask(|| "copying on the device".to_owned(), copy)
    }

    /// Writes an element to rows of them, after all work enqueued before. Where the driver has no call for that, the first
    /// row is filled, and copies on the device double the rows.
    pub(crate) fn fill_rows(self: &Arc<Self>, target: Rows, element: &[u8], size: RowSize) -> Result<()> {
        if let Some(pattern) = Pattern::of(element) {
            let (stream, _work) = self.handle(None);
            // SAFETY: the memory is that of a tensor, which is as large, and begins where such elements do.
            let fill = |driver: &dyn Driver| unsafe { driver.fill_rows(target, pattern, size, stream) };
            if self.ask(|| format!("filling {} rows", size.height), fill)? {
                return Ok(());
            }
        }
        self.fill(target.first, element, size.width / element.len())?;
        let mut filled = 1;
        while filled < size.height {
            let height = filled.min(size.height - filled);
            let next = Rows { first: target.first + (filled * target.pitch) as u64, ..target };
            self.copy_rows(next, target, RowSize { height, ..size }, None)?;
            filled += height;
        }
        Ok(())
    }

    /// Writes an element so many times, one after the other, after all work enqueued before. Drivers know patterns of up to
    /// four bytes; of longer ones the first few are written, and copies on the device double them.
    pub(crate) fn fill(self: &Arc<Self>, address: u64, element: &[u8], count: usize) -> Result<()> {
        let bytes = element.len() * count;
        if bytes == 0 {
            return Ok(());
        }
        if let Some(pattern) = Pattern::of(element) {
            let ((stream, _work), count) = (self.handle(None), bytes / pattern.bytes());
            // SAFETY: the memory is that of a tensor or a log, which is as large, and begins where such elements do.
            let fill = |driver: &dyn Driver| unsafe { driver.fill(address, pattern, count, stream) };
            return self.ask(|| format!("filling {bytes} bytes"), fill);
        }
        let seed = element.repeat(count.min(SEED / element.len()));
        self.upload(&seed, address)?;
        let mut filled = seed.len();
        while filled < bytes {
            let next = filled.min(bytes - filled);
            self.copy(address + filled as u64, address, next, None)?;
            filled += next;
        }
        Ok(())
    }
}
