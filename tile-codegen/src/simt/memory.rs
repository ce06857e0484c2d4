//! Accesses of a block's threads: each is judged before it is made, by its address, its alignment, and what shadow
//! memory knows.

use super::block::Block;
use super::counters::Site;
use super::fault::{Memory, Problem};
use super::instruction::Call;
use super::order::Ordering;
use super::shadow::{Access, Cell};
use super::stack;
use std::ops::Range;
use std::ptr;
use tile_ir::Loc;

/// Accesses that a thread makes within one turn before it is said to go round and round.
const ACCESSES_PER_TURN: u32 = 1 << 27;

/// An instruction's access to memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) address: u64,
    pub(super) kind: AccessKind,
    /// Its number among the code's accesses.
    pub(super) number: u32,
}

/// An address space that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Global,
    Shared,
    /// Whichever the address lies in; a thread's own memory isn't watched.
    Generic,
}

/// An access but for its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessKind {
    pub(super) bytes: u64,
    pub(super) alignment: u64,
    pub(super) space: Space,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// The order of an atomic access.
    pub(super) atomic: Option<Ordering>,
}

impl Block<'_> {
    pub(super) fn touch(&mut self, touch: Touch) -> Result<(), Problem> {
        let Touch { address, kind, number } = touch;
        let place = self.place_of_access(touch);
        let excess = address % kind.alignment;
        if excess != 0 {
            return Err(Problem::Misaligned { alignment: kind.alignment, excess });
        }
        self.accesses += 1;
        if self.accesses > ACCESSES_PER_TURN {
            return Err(Problem::Spins);
        }
        if kind.writes && (kind.atomic.is_none() || !kind.reads) {
            self.progress();
        }
        let bytes = kind.bytes as usize;
        let shared = match kind.space {
            Space::Shared => true,
            Space::Global => false,
            Space::Generic if self.is_shared(address) => true,
            Space::Generic if stack::holds(address, self.geometry.stack) => return Ok(()),
            Space::Generic => false,
        };
        let (running, atomic) = (self.running, kind.atomic.map(|order| order.scope));
        let moment = self.threads[running as usize].clock.moment();
        let access = Access { moment, reads: kind.reads, writes: kind.writes, atomic, place };
        self.record(Site::Code(number), running, shared, [address, kind.bytes]);
        if shared {
            self.note_shared(running, address, bytes, access)?;
        } else {
            self.note_global(running, address, bytes, access)?;
        }
        if let Some(order) = kind.atomic {
            let clock = &mut self.threads[running as usize].clock;
            self.global.synchronize(address, [kind.reads, kind.writes], order, clock);
        }
        Ok(())
    }

    /// The op of an access.
    pub(super) fn place_of_access(&self, touch: Touch) -> Loc {
        self.program.accesses[touch.number as usize].1
    }

    fn record(&mut self, site: Site, thread: u32, shared: bool, access: [u64; 2]) {
        let warp = self.geometry.warp;
        if let Some(recorder) = &mut self.global.recorder {
            recorder.access(site, thread, warp, shared, access);
        }
    }

    /// Notes an access of a thread to shared or global memory.
    pub(super) fn note(
        &mut self,
        thread: u32,
        address: u64,
        bytes: usize,
        access: Access,
    ) -> Result<(), Problem> {
        if self.is_shared(address) {
            self.note_shared(thread, address, bytes, access)
        } else {
            self.note_global(thread, address, bytes, access)
        }
    }

    fn note_global(
        &mut self,
        thread: u32,
        address: u64,
        bytes: usize,
        access: Access,
    ) -> Result<(), Problem> {
        let clock = &self.threads[thread as usize].clock;
        self.global.access(address, bytes, access, clock, &self.flights)
    }

    fn note_shared(
        &mut self,
        thread: u32,
        address: u64,
        bytes: usize,
        access: Access,
    ) -> Result<(), Problem> {
        let range = self.shared_range(address, bytes)?;
        let (clock, flights) = (&self.threads[thread as usize].clock, &self.flights);
        for offset in range {
            self.shared[offset].note(access, clock, true).map_err(|conflict| {
                Problem::of_conflict(conflict, Memory::Shared, offset, access.writes, flights)
            })?;
        }
        Ok(())
    }

    fn shared_range(&self, address: u64, bytes: usize) -> Result<Range<usize>, Problem> {
        let first = address.wrapping_sub(self.shared_address() as u64);
        let available = self.shared.len();
        let range = usize::try_from(first).ok().and_then(|first| Some(first..first.checked_add(bytes)?));
        let outside = Problem::OutsideShared { offset: first.cast_signed(), bytes, available };
        range.filter(|range| range.end <= available).ok_or(outside)
    }

    /// Does something to the shadow of every byte.
    ///
    /// # Errors
    /// If the bytes are nobody's.
    pub(super) fn each_cell(
        &mut self,
        address: u64,
        bytes: usize,
        action: &mut dyn FnMut(&mut Cell),
    ) -> Result<(), Problem> {
        if self.is_shared(address) {
            let range = self.shared_range(address, bytes)?;
            self.shared[range].iter_mut().for_each(action);
            Ok(())
        } else {
            self.global.each_cell(address, bytes, action)
        }
    }

    /// Whether an asynchronous operation of a thread sees what these bytes hold.
    ///
    /// # Errors
    /// If a thread wrote them and no proxy fence followed.
    pub(super) fn check_proxy(&mut self, thread: u32, address: u64, bytes: usize) -> Result<(), Problem> {
        let clock = self.threads[thread as usize].clock.clone();
        let base = self.shared_address() as u64;
        let (mut found, mut offset) = (None, 0);
        self.each_cell(address, bytes, &mut |cell| {
            if found.is_none() {
                found = cell.check_proxy(&clock).err().map(|conflict| (offset, conflict));
            }
            offset += 1;
        })?;
        let Some((offset, conflict)) = found else { return Ok(()) };
        let shared = self.is_shared(address);
        let (memory, start) = if shared { (Memory::Shared, address - base) } else { (Memory::Arguments, 0) };
        Err(Problem::of_conflict(conflict, memory, start as usize + offset, false, &self.flights))
    }

    /// A plain access of a thread that an instruction makes, and its right to make it.
    pub(super) fn check_plain(
        &mut self,
        call: &Call<'_>,
        address: u64,
        [bytes, alignment]: [usize; 2],
        writes: bool,
    ) -> Result<(), Problem> {
        let excess = address % alignment as u64;
        if excess != 0 {
            return Err(Problem::Misaligned { alignment: alignment as u64, excess });
        }
        self.record(
            Site::Instruction(call.number),
            call.thread,
            self.is_shared(address),
            [address, bytes as u64],
        );
        let moment = self.threads[call.thread as usize].clock.moment();
        let access = Access { moment, reads: !writes, writes, atomic: None, place: call.place() };
        self.note(call.thread, address, bytes, access)
    }

    /// Reads memory as a thread's instruction does.
    pub(super) fn load(
        &mut self,
        call: &Call<'_>,
        address: u64,
        bytes: usize,
        alignment: usize,
    ) -> Result<Vec<u8>, Problem> {
        self.check_plain(call, address, [bytes, alignment], false)?;
        // SAFETY: the check found that the bytes are shared memory's or an argument's.
        Ok(unsafe { std::slice::from_raw_parts(address as *const u8, bytes) }.to_vec())
    }

    /// Writes memory as a thread's instruction does.
    pub(super) fn store(
        &mut self,
        call: &Call<'_>,
        address: u64,
        bytes: &[u8],
        alignment: usize,
    ) -> Result<(), Problem> {
        self.check_plain(call, address, [bytes.len(), alignment], true)?;
        // SAFETY: as in `load`; what is written isn't an input.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        Ok(())
    }
}
