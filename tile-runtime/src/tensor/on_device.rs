//! What GPUs do with tensors' memory by themselves: rows of bytes are copied and filled, and bytes come from another GPU.
//!
//! All of it is enqueued on the device's own stream, behind what uses the memory.

use super::memory::{Location, refuse_use_inside};
use super::rows::RowSet;
use crate::device::Kind;
use crate::error::Result;
use crate::gpu::{self, EventKind, GpuStream, RowSize, Rows};
use crate::stream::graph::refuse_inside;
use crate::stream::{Access, note_last};
use std::ops::Range;
use std::sync::Arc;

impl RowSet<1> {
    fn size(&self) -> RowSize {
        RowSize { width: self.width, height: self.height }
    }
}

impl Location {
    /// Writes an element to every place of some rows, after every launch that uses them. On a GPU alone, where this returns
    /// before it is done.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the device fails; [`Error::Stream`](crate::Error::Stream) inside of a
    /// graph.
    pub(super) fn fill(&mut self, rows: &RowSet<1>, element: &[u8]) -> Result<()> {
        let Kind::Gpu(context) = &self.device().0 else { return Ok(()) };
        refuse_use_inside(Access::Write)?;
        self.order(context, Access::Write)?;
        let target = Rows { first: self.address() + rows.first[0] as u64, pitch: rows.pitch[0] };
        match rows.height {
            1 => context.fill(target.first, element, rows.width / element.len())?,
            _ => context.fill_rows(target, element, rows.size())?,
        }
        self.hand_back(context)
    }

    /// Copies rows of another place's bytes here, both on one GPU: on a stream, or on the device's own, where it comes
    /// after every launch that writes those or uses these.
    ///
    /// # Errors
    /// As [`Location::fill`].
    pub(super) fn copy_rows(
        &mut self,
        source: &Location,
        sets: &[RowSet<2>],
        stream: Option<&GpuStream>,
    ) -> Result<()> {
        let Kind::Gpu(context) = &self.device().0 else { return Ok(()) };
        refuse_inside("a copy")?;
        if stream.is_none() {
            self.order(context, Access::Write)?;
            source.order(context, Access::Read)?;
        }
        for rows in sets {
            let [target, from] = [(self.address(), 0), (source.address(), 1)].map(|(address, memory)| Rows {
                first: address + rows.first[memory] as u64,
                pitch: rows.pitch[memory],
            });
            match rows.height {
                1 => context.copy(target.first, from.first, rows.width, stream)?,
                height => context.copy_rows(target, from, RowSize { width: rows.width, height }, stream)?,
            }
        }
        if stream.is_none() {
            self.hand_back(context)?;
            source.hand_back(context)?;
        }
        Ok(())
    }

    /// Copies bytes from another GPU of the same vendor, on the own stream of the one that gets them.
    ///
    /// # Errors
    /// As [`Location::fill`].
    pub(super) fn copy_from_peer(
        &mut self,
        first: usize,
        source: &Location,
        range: Range<usize>,
        to: &Arc<gpu::Context>,
        from: &Arc<gpu::Context>,
    ) -> Result<()> {
        refuse_inside("a copy")?;
        self.order(to, Access::Write)?;
        source.order(to, Access::Read)?;
        // What the source's own stream does with it isn't among its uses.
        to.wait_for(&GpuStream::own(from).record(EventKind::Plain)?)?;
        let (target, address) = (self.address() + first as u64, source.address() + range.start as u64);
        to.copy_from_peer(target, from, address, range.len())?;
        // Nor does that stream know of this one.
        let read = source.allocation().map(|allocation| (allocation, Access::Read));
        if read.is_some() {
            note_last(&GpuStream::own(to), read.into_iter(), &[])?;
        }
        self.hand_back(to)?;
        source.hand_back(to)
    }
}
