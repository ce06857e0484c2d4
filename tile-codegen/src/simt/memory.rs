//! Accesses of a block's threads: each is judged before it is made, by its address, its alignment, and what shadow
//! memory knows.

use super::block::Block;
use super::counters::{LaneAccess, Site};
use super::fault::{Memory, Problem};
use super::instruction::Call;
use super::order::{Moment, Of, Ordering, Scope};
use super::shadow::{Access, Cell};
use super::stack;
use std::ops::Range;
use std::ptr;
use tile_ir::Loc;

/// Accesses that a thread makes within one turn before it is said to go round and round.
const ACCESSES_PER_TURN: u32 = 1 << 27;

/// Where the shared memory of a cluster's blocks lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedMemory {
    /// That of the first block.
    pub(super) start: u64,
    /// Bytes of each.
    pub(super) bytes: usize,
    /// Bytes from one to the next.
    pub(super) stride: u64,
}

impl SharedMemory {
    /// The first byte of a block's.
    pub(super) fn of(self, rank: u32) -> u64 {
        self.start + u64::from(rank) * self.stride
    }

    /// The addresses of a cluster of so many blocks.
    pub(super) fn all(self, blocks: u32) -> Range<u64> {
        self.start..self.of(blocks)
    }

    /// The block in which an address lies, and how far from its first byte.
    fn home(self, address: u64, blocks: u32) -> Option<(u32, u64)> {
        let offset = address.checked_sub(self.start)?;
        let (rank, offset) = (offset / self.stride, offset % self.stride);
        (rank < u64::from(blocks) && offset < self.bytes as u64).then_some((rank as u32, offset))
    }
}

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
    /// That of any block of the cluster.
    Cluster,
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

/// Elements that an instruction changes atomically, one by one, relaxed.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicGroup {
    pub(super) address: u64,
    /// Bytes of all of them, of which the address is a multiple.
    pub(super) bytes: usize,
    /// Bytes of one.
    pub(super) element: usize,
    pub(super) scope: Scope,
}

impl Block<'_> {
    /// The first byte of a thread's shared memory.
    pub(super) fn shared_address(&self, thread: u32) -> u64 {
        self.memory.of(self.rank_of(thread))
    }

    /// The block whose shared memory has an address, and how far it is from the first byte.
    pub(super) fn home(&self, address: u64) -> Option<(u32, u64)> {
        self.memory.home(address, self.geometry.cluster)
    }

    /// Whether an address lies in shared memory of some block of the cluster.
    pub(super) fn is_shared(&self, address: u64) -> bool {
        self.home(address).is_some()
    }

    /// Whether an address lies in shared memory of a thread's own block.
    pub(super) fn is_own(&self, thread: u32, address: u64) -> bool {
        self.home(address).is_some_and(|(rank, _)| rank == self.rank_of(thread))
    }

    /// Where an address is from the beginning of a thread's shared memory.
    pub(super) fn offset(&self, thread: u32, address: u64) -> i64 {
        address.wrapping_sub(self.shared_address(thread)).cast_signed()
    }

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
        if !self.program.shown[number as usize] {
            self.changes();
        }
        let shared = match kind.space {
            Space::Shared | Space::Cluster => true,
            Space::Global => false,
            Space::Generic if self.is_shared(address) => true,
            Space::Generic if stack::holds(address, self.geometry.stack) => return Ok(()),
            Space::Generic => false,
        };
        let (running, atomic) = (self.running, kind.atomic.map(|order| order.scope));
        let moment = self.threads[running as usize].clock.moment();
        let access = Access { moment, reads: kind.reads, writes: kind.writes, atomic, begins: false, place };
        let lane = LaneAccess { address, bytes: kind.bytes, reads: !kind.writes };
        self.record(Site::Code(number), running, shared, lane);
        if shared && kind.space == Space::Shared && !self.is_own(running, address) {
            return Err(self.outside_shared(running, address, bytes));
        }
        if kind.space == Space::Cluster {
            self.reach(address, number)?;
        }
        if !shared && kind.writes && !self.asks(&touch) {
            self.changes();
        }
        if shared {
            self.note_shared(running, address, bytes, access)?;
        } else {
            self.note_global(running, address, bytes, access)?;
        }
        if let Some(order) = kind.atomic {
            let clock = &mut self.threads[running as usize].clock;
            self.global.synchronize(address, [kind.reads, kind.writes], order, clock);
        }
        if self.asks_blocks(&touch) {
            self.remember_read(&touch);
        }
        Ok(())
    }

    /// The op of an access.
    pub(super) fn place_of_access(&self, touch: Touch) -> Loc {
        self.program.accesses[touch.number as usize].1
    }

    fn record(&mut self, site: Site, thread: u32, shared: bool, access: LaneAccess) {
        let warp = self.geometry.warp;
        // Several blocks may be in progress.
        let before = (self.number as u32).wrapping_mul(self.geometry.threads.next_multiple_of(warp));
        let thread = before.wrapping_add(thread);
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
        let range = self.shared_range(thread, address, bytes)?;
        let (clock, flights) = (&self.threads[thread as usize].clock, &self.flights);
        let available = self.memory.bytes;
        self.shared.change(range, |place, cell| {
            cell.note(access, clock, Of::Shared).map_err(|conflict| {
                let offset = place % available;
                Problem::of_conflict(conflict, Memory::Shared, offset, access.writes, flights, clock.block())
            })
        })
    }

    fn outside_shared(&self, thread: u32, address: u64, bytes: usize) -> Problem {
        let offset = self.offset(thread, address);
        Problem::OutsideShared { offset, bytes, available: self.memory.bytes }
    }

    /// The places of bytes in what is known of shared memory; `thread` is who asks.
    fn shared_range(&self, thread: u32, address: u64, bytes: usize) -> Result<Range<usize>, Problem> {
        let range = self.home(address).and_then(|(rank, offset)| {
            let ends = (offset as usize).checked_add(bytes).filter(|&end| end <= self.memory.bytes)?;
            let block = rank as usize * self.memory.bytes;
            Some(block + offset as usize..block + ends)
        });
        range.ok_or_else(|| self.outside_shared(thread, address, bytes))
    }

    /// Does something to the shadow of some bytes, cell by cell, each told by how far it is from the first.
    ///
    /// # Errors
    /// If the bytes are nobody's.
    pub(super) fn each_cell(
        &mut self,
        address: u64,
        bytes: usize,
        action: impl FnMut(usize, &mut Cell),
    ) -> Result<(), Problem> {
        if self.is_shared(address) {
            let range = self.shared_range(self.running, address, bytes)?;
            self.shared.each(range, action);
            Ok(())
        } else {
            self.global.each_cell(address, bytes, action)
        }
    }

    /// Whether an asynchronous operation of a thread, which reads or writes these bytes, sees what they hold.
    ///
    /// # Errors
    /// If a thread wrote them and no proxy fence followed.
    pub(super) fn check_proxy(
        &mut self,
        thread: u32,
        address: u64,
        bytes: usize,
        writes: bool,
    ) -> Result<(), Problem> {
        let of = if self.is_shared(address) { Of::Shared } else { Of::All };
        let clock = self.threads[thread as usize].clock.clone();
        let mut found = None;
        self.each_cell(address, bytes, |offset, cell| {
            if found.is_none() {
                found = cell.check_proxy(&clock, of).err().map(|conflict| (offset, conflict));
            }
        })?;
        let Some((offset, conflict)) = found else { return Ok(()) };
        let (memory, start) = match (self.home(address), self.global.name_of(address)) {
            (None, Some((name, start))) => (Memory::Tensor(name.to_owned()), start),
            (home, _) => (Memory::Shared, home.map_or(0, |(_, start)| start as usize)),
        };
        let place = start + offset;
        Err(Problem::of_conflict(conflict, memory, place, writes, &self.flights, clock.block()))
    }

    /// A plain access of a thread that an instruction makes, and its right to make it.
    pub(super) fn check_plain(
        &mut self,
        call: &Call<'_>,
        address: u64,
        [bytes, alignment]: [usize; 2],
        writes: bool,
    ) -> Result<(), Problem> {
        self.check(call, address, [bytes, alignment], ([!writes, writes], None))
    }

    /// An access of a thread that an instruction makes, and its right to make it: whether it reads and writes, and where it
    /// is atomic.
    fn check(
        &mut self,
        call: &Call<'_>,
        address: u64,
        [bytes, alignment]: [usize; 2],
        ([reads, writes], atomic): ([bool; 2], Option<Scope>),
    ) -> Result<(), Problem> {
        let excess = address % alignment as u64;
        if excess != 0 {
            return Err(Problem::Misaligned { alignment: alignment as u64, excess });
        }
        self.record(
            Site::Instruction(call.number),
            call.thread,
            self.is_shared(address),
            LaneAccess { address, bytes: bytes as u64, reads: !writes },
        );
        let moment = self.threads[call.thread as usize].clock.moment();
        let access = Access { moment, reads, writes, atomic, begins: false, place: call.place() };
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

    /// Writes words as something beside the threads, at a moment, for a thread's instruction.
    pub(super) fn store_as(
        &mut self,
        call: &Call<'_>,
        address: u64,
        bytes: &[u8],
        moment: Moment,
    ) -> Result<(), Problem> {
        let alignment = bytes.len() as u64;
        if !address.is_multiple_of(alignment) {
            return Err(Problem::Misaligned { alignment, excess: address % alignment });
        }
        let place = call.place();
        let access = Access { moment, reads: false, writes: true, atomic: None, begins: false, place };
        self.note(call.thread, address, bytes.len(), access)?;
        // SAFETY: the note found that the bytes are shared memory's or an argument's, which isn't an input.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        Ok(())
    }

    /// A thread's right to change elements in global memory atomically, and what they are.
    pub(super) fn begin_atomics(
        &mut self,
        call: &Call<'_>,
        group: AtomicGroup,
        reads: bool,
    ) -> Result<Vec<u8>, Problem> {
        let AtomicGroup { address, bytes, element, scope } = group;
        self.check(call, address, [bytes, bytes], ([reads, true], Some(scope)))?;
        let relaxed = Ordering { acquires: false, releases: false, scope, of: Of::All };
        for address in (address..address + bytes as u64).step_by(element) {
            let clock = &mut self.threads[call.thread as usize].clock;
            self.global.synchronize(address, [reads, true], relaxed, clock);
        }
        if !reads {
            self.progress();
        }
        // SAFETY: the check found that the bytes are an argument's.
        Ok(unsafe { std::slice::from_raw_parts(address as *const u8, bytes) }.to_vec())
    }

    /// What the elements become, which nobody came to in between.
    pub(super) fn end_atomics(&mut self, group: AtomicGroup, new: &[u8]) {
        assert_eq!(new.len(), group.bytes, "as many elements as there were");
        // SAFETY: `begin_atomics` found that the bytes are an argument's that may be written.
        unsafe { ptr::copy_nonoverlapping(new.as_ptr(), group.address as *mut u8, new.len()) };
    }
}
