//! Device memory that is kept for the next allocation.
//!
//! Where the driver has a pool that follows the order of streams, that one is used, and told to keep what is freed. Where
//! it hasn't, blocks are kept here by the class of their size. Memory is allocated for and released behind the work of one
//! stream, the context's own: a block that is released may still be used by work that is enqueued there, and whoever gets
//! it next comes after that.
//!
//! What is kept here is never more than what was in use at once, so that memory doesn't grow with the number of
//! allocations, nor more than the limits leave; the rest, and everything when memory runs out, goes back to the device.

use super::driver::{Driver, Failure, FailureKind, StreamHandle};
use super::limits::MemoryLimits;
use super::shelf::{Shelf, class_of};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The smallest class, and what every size is a multiple of: what the drivers align memory to.
const LEAST: usize = 256;

/// Memory that was allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) address: u64,
    /// How many bytes it has, which may be more than were asked for.
    bytes: usize,
}

/// How a device's memory is used, from [`crate::Device::memory`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Bytes of tensors and logs that are there.
    pub in_use: u64,
    /// Bytes that are kept for later ones.
    pub cached: u64,
    /// The most bytes that were in use at once.
    pub peak: u64,
    /// How many allocations there were.
    pub allocations: u64,
    /// How many of them got memory that was kept; `None` where the driver's own pool decides, which doesn't say.
    pub reused: Option<u64>,
    /// Bytes of the host's memory that are pinned for copies: those of [`crate::Tensor::pinned`] and those that are kept.
    pub pinned: u64,
}

/// The allocator of a device.
pub(crate) struct Pool {
    /// Whether the driver has a pool of its own.
    ordered: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: Shelf<Block>,
    usage: MemoryUse,
    limits: MemoryLimits,
}

impl Pool {
    /// An allocator, which uses the driver's pool if it has one.
    pub(crate) fn new(ordered: bool) -> Pool {
        let usage = MemoryUse { reused: (!ordered).then_some(0), ..MemoryUse::default() };
        Pool { ordered, state: Mutex::new(State { usage, ..State::default() }) }
    }

    /// From now on no more is in use, and no more is held.
    pub(crate) fn limit(&self, driver: &dyn Driver, limits: MemoryLimits) -> Result<(), Failure> {
        let mut state = self.state();
        state.limits = limits;
        if self.ordered { driver.hold_in_pool(limits.held) } else { state.give_up_excess(driver) }
    }

    /// The limit that so many bytes more would exceed.
    pub(crate) fn limit_before(&self, bytes: usize) -> Option<u64> {
        self.state().limit_before(self.granted(bytes))
    }

    /// How many bytes are given to who asks for so many.
    fn granted(&self, bytes: usize) -> usize {
        if self.ordered { bytes.max(1) } else { class_of(bytes, LEAST) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for work that comes later on the stream. What is kept isn't given back where memory runs out: the caller
    /// does that, and tries again.
    ///
    /// # Safety
    /// The stream is there, and the same for all calls.
    pub(crate) unsafe fn allocate(
        &self,
        driver: &dyn Driver,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<Block, Failure> {
        let (mut state, bytes) = (self.state(), self.granted(bytes));
        if state.limit_before(bytes).is_some() {
            let message = "the memory is limited".to_owned();
            return Err(Failure { kind: FailureKind::OutOfMemory, message });
        }
        let block = if self.ordered {
            // SAFETY: the caller vouches for the stream.
            Block { address: unsafe { driver.allocate_ordered(bytes, stream) }?, bytes }
        } else {
            match state.kept.take_last(bytes) {
                Some(block) => {
                    state.usage.reused = state.usage.reused.map(|count| count + 1);
                    block
                }
                None => Block { address: driver.allocate(bytes)?, bytes },
            }
        };
        state.usage.allocations += 1;
        state.usage.in_use += block.bytes as u64;
        state.usage.peak = state.usage.peak.max(state.usage.in_use);
        Ok(block)
    }

    /// Takes memory back that the work of the stream may still use, and nothing that is enqueued later.
    ///
    /// # Safety
    /// The block is this pool's, and nobody uses it but work of the stream, which is the one of the allocations.
    pub(crate) unsafe fn release(
        &self,
        driver: &dyn Driver,
        block: Block,
        stream: StreamHandle,
    ) -> Result<(), Failure> {
        let mut state = self.state();
        state.usage.in_use -= block.bytes as u64;
        if self.ordered {
            // SAFETY: the caller vouches for both.
            return unsafe { driver.free_ordered(block.address, stream) };
        }
        state.kept.put(block.bytes, block);
        state.give_up_excess(driver)
    }

    /// Gives the device everything that is kept.
    pub(crate) fn trim(&self, driver: &dyn Driver) -> Result<(), Failure> {
        let mut state = self.state();
        if self.ordered {
            return driver.trim_pool();
        }
        while let Some(block) = state.kept.take_oldest() {
            // SAFETY: as in `release`.
            unsafe { driver.free(block.address) }?;
        }
        Ok(())
    }

    /// How memory is used.
    pub(crate) fn usage(&self, driver: &dyn Driver) -> Result<MemoryUse, Failure> {
        let (usage, cached) = {
            let state = self.state();
            (state.usage, state.kept.bytes())
        };
        if !self.ordered {
            return Ok(MemoryUse { cached, ..usage });
        }
        let pool = driver.pool_bytes()?;
        Ok(MemoryUse { cached: pool.reserved.saturating_sub(pool.used), ..usage })
    }
}

impl State {
    fn limit_before(&self, bytes: usize) -> Option<u64> {
        let after = self.usage.in_use.saturating_add(bytes as u64);
        (after > self.limits.in_use).then_some(self.limits.in_use)
    }

    /// Gives the device what is kept beyond the most that was in use, and beyond what may be held.
    fn give_up_excess(&mut self, driver: &dyn Driver) -> Result<(), Failure> {
        let most = self.usage.peak.min(self.limits.held.saturating_sub(self.usage.in_use));
        while self.kept.bytes() > most {
            let Some(oldest) = self.kept.take_oldest() else { break };
            // SAFETY: nobody uses it but work that is enqueued, which the driver waits for.
            unsafe { driver.free(oldest.address) }?;
        }
        Ok(())
    }
}
