//! Device memory that is kept for the next allocation.
//!
//! Where the driver has a pool that follows the order of streams, that one is used, and told to keep what is freed. Where
//! it hasn't, blocks are kept here by the class of their size. A block that is freed may still be used by work that is
//! enqueued on its stream, so it is given away as if that were done to allocations of the same stream, which come after
//! it, and to those of another one with an event between the two.
//!
//! What is kept here is never more than what was in use at once, so that memory doesn't grow with the number of
//! allocations; the rest, and everything when memory runs out, goes back to the device.

use super::driver::{Driver, Failure, StreamHandle};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many classes of sizes there are between a power of two and the next: at most an eighth of a block is unused.
const CLASSES: usize = 8;

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
}

/// The allocator of a device.
pub(crate) struct Pool {
    /// Whether the driver has a pool of its own.
    ordered: bool,
    state: Mutex<State>,
}

/// A block that nobody uses, behind the work of a stream.
struct Kept {
    block: Block,
    stream: StreamHandle,
    /// When it was freed, on a clock of frees.
    time: u64,
}

#[derive(Default)]
struct State {
    /// By the class of their size, the one freed last at the end.
    kept: BTreeMap<usize, VecDeque<Kept>>,
    clock: u64,
    usage: MemoryUse,
}

impl Pool {
    /// An allocator, which uses the driver's pool if it has one.
    pub(crate) fn new(ordered: bool) -> Pool {
        let usage = MemoryUse { reused: (!ordered).then_some(0), ..MemoryUse::default() };
        Pool { ordered, state: Mutex::new(State { usage, ..State::default() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for work that comes later on a stream. What is kept isn't given back where memory runs out: the caller does
    /// that, and tries again.
    ///
    /// # Safety
    /// The stream is there, and so are the streams of blocks that were released.
    pub(crate) unsafe fn allocate(
        &self,
        driver: &dyn Driver,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<Block, Failure> {
        let mut state = self.state();
        let block = if self.ordered {
            let bytes = bytes.max(1);
            // SAFETY: the caller vouches for the stream.
            Block { address: unsafe { driver.allocate_ordered(bytes, stream) }?, bytes }
        } else {
            let bytes = class_of(bytes);
            // SAFETY: the caller vouches for the streams.
            match unsafe { state.take(driver, bytes, stream) }? {
                Some(block) => block,
                None => Block { address: driver.allocate(bytes)?, bytes },
            }
        };
        state.usage.allocations += 1;
        state.usage.in_use += block.bytes as u64;
        state.usage.peak = state.usage.peak.max(state.usage.in_use);
        Ok(block)
    }

    /// Takes memory back that the work of a stream may still use, and nothing that is enqueued later.
    ///
    /// # Safety
    /// The block is this pool's, and nobody uses it but work of the stream, which is there as long as the pool.
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
        state.clock += 1;
        let kept = Kept { block, stream, time: state.clock };
        state.kept.entry(block.bytes).or_default().push_back(kept);
        state.usage.cached += block.bytes as u64;
        while state.usage.cached > state.usage.peak {
            let Some(oldest) = state.oldest() else { break };
            // SAFETY: nobody uses it but work that is enqueued, which the driver waits for.
            unsafe { driver.free(oldest.address) }?;
        }
        Ok(())
    }

    /// Gives the device everything that is kept.
    pub(crate) fn trim(&self, driver: &dyn Driver) -> Result<(), Failure> {
        let mut state = self.state();
        if self.ordered {
            return driver.trim_pool();
        }
        while let Some(block) = state.oldest() {
            // SAFETY: as in `release`.
            unsafe { driver.free(block.address) }?;
        }
        Ok(())
    }

    /// How memory is used.
    pub(crate) fn usage(&self, driver: &dyn Driver) -> Result<MemoryUse, Failure> {
        let usage = self.state().usage;
        if !self.ordered {
            return Ok(usage);
        }
        let pool = driver.pool_bytes()?;
        Ok(MemoryUse { cached: pool.reserved.saturating_sub(pool.used), ..usage })
    }
}

impl State {
    /// A kept block of a size, for work that comes later on a stream.
    ///
    /// # Safety
    /// The streams are there.
    unsafe fn take(
        &mut self,
        driver: &dyn Driver,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<Option<Block>, Failure> {
        let Some(kept) = self.kept.get_mut(&bytes) else { return Ok(None) };
        let of_stream = kept.iter().rposition(|kept| kept.stream == stream);
        let Some(position) = of_stream.or(kept.len().checked_sub(1)) else { return Ok(None) };
        if of_stream.is_none() {
            // SAFETY: the caller vouches for both streams.
            unsafe { order(driver, kept[position].stream, stream) }?;
        }
        let taken = kept.remove(position).map(|kept| kept.block);
        if taken.is_some() {
            self.usage.cached -= bytes as u64;
            self.usage.reused = self.usage.reused.map(|count| count + 1);
        }
        Ok(taken)
    }

    /// Takes out the block that was freed first.
    fn oldest(&mut self) -> Option<Block> {
        let times = self.kept.iter().filter_map(|(&bytes, kept)| Some((kept.front()?.time, bytes)));
        let (_, bytes) = times.min()?;
        let block = self.kept.get_mut(&bytes)?.pop_front()?.block;
        self.usage.cached -= bytes as u64;
        Some(block)
    }
}

/// Has what comes later on a stream wait for what another one has.
///
/// # Safety
/// Both are there.
unsafe fn order(driver: &dyn Driver, first: StreamHandle, second: StreamHandle) -> Result<(), Failure> {
    let event = driver.create_event(false)?;
    // SAFETY: the caller vouches for the streams; the event was made here, and a wait outlasts it.
    unsafe {
        let ordered = driver.record(event, first).and_then(|()| driver.wait(second, event));
        driver.destroy_event(event)?;
        ordered
    }
}

/// The size of the class that a size is of: as large or a little larger, and a multiple of 256.
fn class_of(bytes: usize) -> usize {
    let bytes = bytes.max(LEAST);
    let step =
        ((bytes.ilog2() as usize).saturating_sub(CLASSES.ilog2() as usize)).min(usize::BITS as usize - 1);
    // A size near the end of the address space stays what it is: no device has it.
    bytes.checked_next_multiple_of((1 << step).max(LEAST)).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_waste_an_eighth_at_most() {
        assert_eq!([0, 1, 256, 257, 512].map(class_of), [256, 256, 256, 512, 512]);
        for bytes in (2048..1 << 20).step_by(1009) {
            let class = class_of(bytes);
            assert!(class >= bytes && class - bytes <= bytes / CLASSES, "{bytes}: {class}");
            assert_eq!(class_of(class), class);
        }
        assert_eq!(class_of(usize::MAX), usize::MAX);
    }
}
