//! Host memory that a GPU's copies read and write while the host goes on: pages that the system doesn't move, pinned by
//! the driver.
//!
//! Pinning takes long, so memory that is dropped is kept for the next buffer of its size, as a device's own is. A copy may
//! still use it then. It is kept behind an event on the context's own stream, which comes after such copies, and given
//! away when that event is done: without a wait, unless many of its size are in flight.

use super::context::Context;
use super::driver::{EventHandle, EventKind, FailureKind};
use super::shelf::{Shelf, class_of};
use crate::error::{Error, Result};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The smallest class of sizes: a page, less than which isn't pinned.
const LEAST: usize = 4096;

/// How many buffers of a size are in flight before one is waited for, in the place of pinning another.
const IN_FLIGHT: usize = 4;

/// Bytes that are kept beside as many as were in use at once: what copies of ordinary memory go through.
const KEPT: u64 = 32 << 20;

/// Pinned memory. It is given back behind the work of the context's own stream.
pub(crate) struct PinnedBuffer {
    context: Arc<Context>,
    block: Block,
}

#[derive(Clone, Copy)]
struct Block {
    first: *mut u8,
    bytes: usize,
}

// SAFETY: the memory belongs to who has the block, like a vector's.
unsafe impl Send for Block {}
// SAFETY: a shared reference gives an address alone.
unsafe impl Sync for Block {}

/// What is pinned, and nobody has.
#[derive(Default)]
pub(super) struct PinnedPool(Mutex<State>);

#[derive(Default)]
struct State {
    kept: Shelf<Kept>,
    in_use: u64,
    peak: u64,
}

/// A block, and the event after which no copy uses it.
struct Kept {
    block: Block,
    event: Option<EventHandle>,
}

impl PinnedPool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that are pinned.
    pub(super) fn bytes(&self) -> u64 {
        let state = self.state();
        state.in_use + state.kept.bytes()
    }
}

impl Context {
    /// Pinned memory of at least so many bytes, which are whatever they were.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where the host has no more to be pinned; [`Error::Driver`].
    pub(crate) fn pinned(self: &Arc<Self>, bytes: usize) -> Result<PinnedBuffer> {
        let bytes = class_of(bytes, LEAST);
        let block = match self.kept(bytes)? {
            Some(block) => block,
            None => self.pin(bytes)?,
        };
        let mut state = self.pinned.state();
        state.in_use += bytes as u64;
        state.peak = state.peak.max(state.in_use);
        drop(state);
        Ok(PinnedBuffer { context: Arc::clone(self), block })
    }

    /// A kept block that no copy uses any more: one that is ready, or, where many are in flight, the one that will be
    /// first.
    fn kept(self: &Arc<Self>, bytes: usize) -> Result<Option<Block>> {
        let mut state = self.pinned.state();
        let Some((first, count)) = state.kept.first(bytes) else { return Ok(None) };
        // SAFETY: the event is the block's own, which is in the list.
        let is_ready = first.event.map_or(Ok(true), |event| unsafe { self.driver.is_done(event) });
        let is_ready = is_ready.map_err(|failure| self.error("looking at an event".to_owned(), failure))?;
        if !is_ready && count < IN_FLIGHT {
            return Ok(None);
        }
        let Some(Kept { block, event }) = state.kept.take_first(bytes) else { return Ok(None) };
        drop(state);
        let event = event.map(|event| self.event_of(event));
        if let (false, Some(event)) = (is_ready, event) {
            event.wait().inspect_err(|_| self.keep(block))?;
        }
        Ok(Some(block))
    }

    /// Has the driver pin memory. What is kept is given up where there is none.
    fn pin(&self, bytes: usize) -> Result<Block> {
        let action = || format!("pinning {bytes} bytes");
        let pin = || self.ask(action, |driver| Ok(driver.allocate_pinned(bytes)));
        let mut first = pin()?;
        if matches!(&first, Err(failure) if failure.kind == FailureKind::OutOfMemory) {
            self.trim()?;
            first = pin()?;
        }
        match first {
            Ok(first) => Ok(Block { first, bytes }),
            Err(failure) if failure.kind == FailureKind::OutOfMemory => {
                Err(Error::OutOfMemory { device: "the host".to_owned(), bytes, limit: None })
            }
            Err(failure) => Err(self.error(action(), failure)),
        }
    }

    /// Keeps a block behind the work of the context's own stream.
    fn keep(self: &Arc<Self>, block: Block) {
        let event = match self.event(self.stream, EventKind::Plain) {
            Ok(event) => Some(event.into_handle()),
            Err(_) => match self.synchronize() {
                Ok(()) => None,
                // Nobody knows whether a copy still uses it, so nobody gets it again.
                Err(_) => return,
            },
        };
        let mut state = self.pinned.state();
        state.kept.put(block.bytes, Kept { block, event });
        let mut surplus = Vec::new();
        while state.kept.bytes() > state.peak + KEPT {
            surplus.extend(state.kept.take_oldest());
        }
        drop(state);
        surplus.into_iter().for_each(|kept| self.unpin(kept));
    }

    /// Gives a block back to the system, after the copies that use it. Where that can't be waited for it stays.
    fn unpin(&self, Kept { block, event }: Kept) {
        let action = || "giving pinned memory back".to_owned();
        let wait = |event| {
            // SAFETY: the event is the block's own, which isn't in the list any more.
            let waited = self.ask(action, |driver| unsafe { driver.synchronize_event(event) });
            self.spare_event(event);
            waited
        };
        if event.map_or(Ok(()), wait).is_ok() {
            // SAFETY: the driver gave the block, nobody has it, and no copy uses it.
            let _ = self.ask(action, |driver| unsafe { driver.free_pinned(block.first) });
        }
    }

    /// Gives everything back that is kept.
    pub(super) fn unpin_kept(&self) {
        let mut kept = std::mem::take(&mut self.pinned.state().kept);
        std::iter::from_fn(|| kept.take_oldest()).for_each(|kept| self.unpin(kept));
    }
}

impl PinnedBuffer {
    /// The first byte.
    pub(crate) fn first(&self) -> *mut u8 {
        self.block.first
    }

    /// The GPU whose driver has pinned it.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        self.context.pinned.state().in_use -= self.block.bytes as u64;
        self.context.keep(self.block);
    }
}

impl fmt::Debug for PinnedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pinned bytes for {:?}", self.block.bytes, self.context)
    }
}
