//! Memory of the devices and of the host: where it lies, whose it is, and how much there may be.

use super::{Code, Handle, Machine, Outcome, Work};

/// What bytes are that nobody has written, or that were freed.
pub const UNWRITTEN: u8 = 0xA5;

/// What memory is made of, so that it is aligned as tensors are.
pub(super) type Line = u128;

/// As many lines as bytes need, one at least.
fn unwritten(bytes: usize) -> Vec<Line> {
    let mut lines = vec![0; bytes.div_ceil(size_of::<Line>()).max(1)];
    forget(&mut lines);
    lines
}

/// All at once: Miri, which goes through loops step by step, would take a second for a large buffer.
fn forget(lines: &mut [Line]) {
    // SAFETY: the lines are the slice's own, and numbers of any bytes.
    unsafe { lines.as_mut_ptr().write_bytes(UNWRITTEN, lines.len()) };
}

/// Memory of a device.
pub struct Allocation {
    lines: Vec<Line>,
    pub(super) bytes: usize,
    device: usize,
    /// Whether it is a pool's: allocated and freed in the order of a stream.
    ordered: bool,
    /// Whether the pool has it.
    pub(super) pooled: bool,
}

/// What a device's pool has of the device, and what of it is allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolBytes {
    pub reserved: u64,
    pub used: u64,
}

/// What a device was let at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    Context,
    Pool,
}

impl Machine {
    /// Bytes that the devices have no more to give of.
    pub fn reserved(&self) -> u64 {
        self.memory.values().map(|allocation| allocation.bytes as u64).sum()
    }

    pub fn pool_bytes(&self, device: usize) -> PoolBytes {
        let own = || self.memory.values().filter(move |block| block.ordered && block.device == device);
        let used = own().filter(|block| !block.pooled);
        let sum =
            |blocks: &mut dyn Iterator<Item = &Allocation>| blocks.map(|block| block.bytes as u64).sum();
        PoolBytes { reserved: sum(&mut own()), used: sum(&mut { used }) }
    }

    fn add(&mut self, bytes: usize, device: usize, ordered: bool) -> Outcome<u64> {
        match bytes {
            0 => return Err(Code::INVALID_VALUE),
            _ if self.reserved().saturating_add(bytes as u64) > self.limit => {
                return Err(Code::OUT_OF_MEMORY);
            }
            _ => {}
        }
        let mut lines = unwritten(bytes);
        let address = lines.as_mut_ptr() as u64;
        self.memory.insert(address, Allocation { lines, bytes, device, ordered, pooled: false });
        Ok(address)
    }

    pub fn allocate(&mut self, bytes: usize, device: usize) -> Outcome<u64> {
        self.add(bytes, device, false)
    }

    /// Frees what [`Machine::allocate`] gave.
    pub fn free(&mut self, address: u64) -> Outcome<()> {
        match self.memory.get(&address) {
            Some(block) if !block.ordered => {
                self.memory.remove(&address);
                Ok(())
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// Memory that is in the pool, or that the same stream frees before whatever comes next; else more.
    pub fn allocate_ordered(&mut self, bytes: usize, device: usize, stream: Handle) -> Outcome<u64> {
        self.isnt_capturing(stream)?;
        let fits = |block: &Allocation| {
            block.ordered && block.device == device && (bytes..=2 * bytes).contains(&block.bytes)
        };
        let pooled = self.memory.iter_mut().find(|(_, block)| block.pooled && fits(block));
        if let Some((&address, block)) = pooled {
            block.pooled = false;
            return Ok(address);
        }
        let queue = &mut self.streams.get_mut(&stream).ok_or(Code::INVALID_HANDLE)?.queue;
        for work in queue {
            match *work {
                Work::Free(address) if self.memory.get(&address).is_some_and(fits) => {
                    *work = Work::Scramble(address);
                    return Ok(address);
                }
                _ => {}
            }
        }
        self.add(bytes, device, true)
    }

    /// Gives memory of a pool's back behind the work of a stream. Memory that a queue is about to free is gone.
    pub fn free_ordered(&mut self, address: u64, device: usize, stream: Handle) -> Outcome<()> {
        let is_freed = |work: &Work| matches!(*work, Work::Free(freed) if freed == address);
        let mut queues = self.streams.values().map(|stream| &stream.queue);
        let block = self.memory.get(&address).filter(|block| block.ordered && !block.pooled);
        if block.is_none() || queues.any(|queue| queue.iter().any(is_freed)) {
            return Err(Code::INVALID_VALUE);
        }
        self.enqueue(stream, device, Work::Free(address))
    }

    /// Gives the device what its pool has beyond so many bytes.
    pub fn trim(&mut self, device: usize, keep: u64) {
        let reserved = self.pool_bytes(device).reserved;
        let mut excess = reserved.saturating_sub(keep);
        self.memory.retain(|_, block| {
            let goes = block.pooled && block.device == device && excess > 0;
            excess = excess.saturating_sub(if goes { block.bytes as u64 } else { 0 });
            !goes
        });
    }

    /// From now on a device's pool holds on to so many bytes at a wait.
    pub fn hold(&mut self, device: usize, bytes: u64) {
        self.thresholds.insert(device, bytes);
    }

    /// What comes with a wait for a device (CUDA Driver API, `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`).
    pub(super) fn release(&mut self, device: usize) {
        let threshold = self.thresholds.get(&device).copied().unwrap_or(0);
        self.trim(device, threshold);
    }

    /// Lets a device at another's memory; whether it wasn't.
    pub fn open_way(&mut self, device: usize, other: usize, way: Way) -> bool {
        self.ways.insert((device, other, way))
    }

    pub(super) fn is_open(&self, device: usize, other: usize, way: Way) -> bool {
        self.ways.contains(&(device, other, way))
    }

    pub fn pin(&mut self, bytes: usize) -> *mut u8 {
        let mut lines = unwritten(bytes);
        let first = lines.as_mut_ptr();
        self.pinned.insert(first as usize, lines);
        first.cast()
    }

    pub fn unpin(&mut self, first: *mut u8) -> Outcome<()> {
        self.pinned.remove(&(first as usize)).map(drop).ok_or(Code::INVALID_VALUE)
    }

    /// Where bytes of the device lie, if they are there.
    pub(super) fn bytes(&mut self, address: u64, bytes: usize) -> Outcome<*mut u8> {
        let around = self.memory.range_mut(..=address).next_back();
        let inside = around
            .filter(|(first, block)| !block.pooled && address + bytes as u64 <= *first + block.bytes as u64);
        let (first, block) = inside.ok_or(Code::ILLEGAL_ADDRESS)?;
        let offset = (address - first) as usize;
        // SAFETY: the offset is inside the allocation.
        Ok(unsafe { block.lines.as_mut_ptr().cast::<u8>().add(offset) })
    }

    /// The same of a device's bytes. A copy that takes another's for its own loses the device.
    pub(super) fn bytes_of(&mut self, device: usize, address: u64, bytes: usize) -> Outcome<*mut u8> {
        let first = self.bytes(address, bytes)?;
        let around = self.memory.range(..=address).next_back();
        let is_own = around.is_some_and(|(_, block)| block.device == device);
        if is_own { Ok(first) } else { Err(Code::ILLEGAL_ADDRESS) }
    }

    pub(super) fn give_to_pool(&mut self, address: u64) -> Outcome<()> {
        self.scramble(address)?;
        self.memory.entry(address).and_modify(|block| block.pooled = true);
        Ok(())
    }

    pub(super) fn scramble(&mut self, address: u64) -> Outcome<()> {
        let block = self.memory.get_mut(&address).ok_or(Code::INVALID_VALUE)?;
        forget(&mut block.lines);
        Ok(())
    }
}
