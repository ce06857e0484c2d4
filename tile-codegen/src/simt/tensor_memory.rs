//! Tensor memory of a block: who has which columns, what they hold, and who touched them (PTX ISA, "Tensor Memory",
//! "Tensor Memory Allocation", "tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit", "Pipelined tcgen05
//! Instructions").
//!
//! It has 128 lanes of 512 columns of 32 bits. What is touched are columns of sixteen lanes that follow each other: each
//! such part has one cell of shadow memory, which knows of it what is known of a byte of shared memory. The order is
//! that of [`super::order`]'s clocks of tensor memory. Products are computed when they are issued: before somebody knows
//! that they ended, nobody may look.
//!
//! Two products follow each other by themselves if one thread issues them, with the same sums and shape; one thread going
//! on with another's sums that are still in flight isn't modelled. A block that asks for more columns than are left would
//! wait for those that it has itself, so that is a fault.

use super::agents::Agent;
use super::block::Block;
use super::fault::Problem;
use super::instruction::Call;
use super::order::{Clock, Joined, Moment, Of, Scope};
use super::shadow::{Access, Cell, Conflict};
use std::collections::BTreeMap;
use std::ops::Range;
use tile_ir::Loc;

pub(super) const LANES: u32 = 128;
const COLUMNS: u32 = 512;

/// The fewest columns of an allocation.
const LEAST: u32 = 32;

/// Lanes of a part that has one cell.
pub(super) const PART: u32 = 16;

/// An address of tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) lane: u32,
    pub(super) column: u32,
}

impl Address {
    pub(super) fn of(word: u32) -> Address {
        Address { lane: word >> 16, column: word & 0xffff }
    }
}

/// The sums of a product of 128 rows: so many columns of every lane, and the product's depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accumulator {
    /// The thread that issues the product.
    pub(super) thread: u32,
    pub(super) column: u32,
    pub(super) columns: u32,
    pub(super) depth: u32,
}

impl Accumulator {
    fn range(self) -> Range<u32> {
        self.column..self.column + self.columns
    }
}

/// Columns that a block has.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    first: u32,
    columns: u32,
    /// When they were asked for.
    made: Moment,
    thread: u32,
    place: Loc,
}

impl Allocation {
    fn holds(&self, columns: &Range<u32>) -> bool {
        self.first <= columns.start && columns.end <= self.first + self.columns
    }
}

/// The tensor memory of one block, from the first allocation on.
struct TensorMemory {
    allocations: Vec<Allocation>,
    /// Those that were freed, and the thread that did.
    freed: Vec<(Allocation, u32)>,
    /// Column by column, every sixteen lanes.
    cells: Vec<Cell>,
    /// Column by column, every lane.
    words: Vec<u32>,
    /// The last product with each sums.
    last: Vec<(Accumulator, Moment)>,
    /// Columns of the last allocation.
    least: u32,
    /// The thread that gave up the right to more.
    relinquished: Option<u32>,
}

impl TensorMemory {
    fn new() -> TensorMemory {
        TensorMemory {
            allocations: Vec::new(),
            freed: Vec::new(),
            cells: vec![Cell::default(); (COLUMNS * LANES / PART) as usize],
            // What a kernel forgets to write isn't conveniently zero.
            words: vec![0xa5a5_a5a5; (COLUMNS * LANES) as usize],
            last: Vec::new(),
            least: COLUMNS,
            relinquished: None,
        }
    }

    fn cell(&mut self, column: u32, lane: u32) -> &mut Cell {
        &mut self.cells[(column * (LANES / PART) + lane / PART) as usize]
    }

    /// The first of so many columns that nobody has: the last there are, since a device may give any.
    fn room(&self, columns: u32) -> Option<u32> {
        let is_free = |first: &u32| {
            let wanted = *first..first + columns;
            self.allocations
                .iter()
                .all(|other| other.first >= wanted.end || other.first + other.columns <= *first)
        };
        (0..=(COLUMNS - columns) / LEAST).rev().map(|i| i * LEAST).find(is_free)
    }

    /// The columns that the block has, in words.
    fn describe(&self) -> String {
        let ranges =
            self.allocations.iter().map(|it| format!("{} to {}", it.first, it.first + it.columns - 1));
        match ranges.collect::<Vec<_>>().as_slice() {
            [] => "the block has none".to_owned(),
            ranges => format!("the block has columns {}", ranges.join(", ")),
        }
    }
}

/// The tensor memories of a cluster's blocks, by the block's place in it.
#[derive(Default)]
pub(super) struct TensorMemories(BTreeMap<u32, TensorMemory>);

fn misuse<T>(what: String) -> Result<T, Problem> {
    Err(Problem::Misuse(what))
}

impl Block<'_> {
    fn tensor_memory(&mut self, thread: u32) -> &mut TensorMemory {
        let rank = self.rank_of(thread);
        self.tensor_memories.0.entry(rank).or_insert_with(TensorMemory::new)
    }

    /// `tcgen05.alloc` of a warp: writes the address to shared memory. Every lane may read it there at once (PTX ISA,
    /// "Asynchronous Operations"), which orders nothing else that another lane did: the write is nobody's of the warp.
    ///
    /// # Errors
    /// If the block may not have these columns.
    pub(super) fn allocate(&mut self, calls: &[Call<'_>], to: u64, columns: u32) -> Result<(), Problem> {
        let call = &calls[0];
        if !columns.is_power_of_two() || !(LEAST..=COLUMNS).contains(&columns) {
            return misuse(format!(
                "asks for {columns} columns of tensor memory: it takes a power of two from {LEAST} to {COLUMNS}"
            ));
        }
        if !self.is_own(call.thread, to) {
            return misuse("the address of tensor memory is written to the block's shared memory".to_owned());
        }
        let made = self.agents.next(self.block_of(call.thread), Agent::Allocation(self.rank_of(call.thread)));
        let (thread, within) = (call.thread, self.within(call.thread));
        let relinquished = self.tensor_memory(thread).relinquished.map(|thread| self.within(thread));
        let memory = self.tensor_memory(thread);
        if let Some(thread) = relinquished {
            return misuse(format!(
                "asks for tensor memory after thread {thread} gave up the right to more with \
                 `tcgen05.relinquish_alloc_permit`"
            ));
        }
        if columns > memory.least {
            return misuse(format!(
                "asks for {columns} columns of tensor memory after {}: later allocations may not be larger",
                memory.least
            ));
        }
        let Some(first) = memory.room(columns) else {
            return misuse(format!(
                "asks for {columns} columns of tensor memory and would wait forever: {} of {COLUMNS}",
                memory.describe()
            ));
        };
        memory.least = columns;
        memory.allocations.push(Allocation { first, columns, made, thread: within, place: call.place() });
        self.store_as(call, to, &first.to_le_bytes(), made)?;
        for call in calls {
            self.threads[call.thread as usize].clock.learn(made);
        }
        Ok(())
    }

    /// `tcgen05.relinquish_alloc_permit`.
    pub(super) fn relinquish(&mut self, thread: u32) {
        self.tensor_memory(thread).relinquished = Some(thread);
    }

    /// `tcgen05.dealloc` of a warp.
    ///
    /// # Errors
    /// If these columns aren't an allocation, or somebody may still touch them.
    pub(super) fn free(&mut self, calls: &[Call<'_>], address: Address, columns: u32) -> Result<(), Problem> {
        let leader = &calls[0];
        let range = address.column..address.column.saturating_add(1);
        let Allocation { first, columns: held, .. } = self.allocation(leader.thread, &range)?;
        if (address.lane, address.column, columns) != (0, first, held) {
            return misuse(format!(
                "frees {columns} columns of tensor memory from lane {}, column {} on, but the allocation has {held} \
                 from lane 0, column {first} on",
                address.lane, address.column
            ));
        }
        // The lanes come together: what one of them knows is past for all.
        let mut clock = self.threads[leader.thread as usize].clock.clone();
        let release = |call: &Call<'_>| self.threads[call.thread as usize].clock.release(Scope::Block);
        Joined::of(&calls.iter().map(release).collect::<Vec<_>>())
            .iter()
            .for_each(|joined| clock.absorb(joined));
        let access = self.access(leader, [false, true]);
        for column in first..first + held {
            for lane in (0..LANES).step_by(PART as usize) {
                let cell = self.tensor_memory(leader.thread).cell(column, lane);
                let noted = cell.note(access, &clock, Of::Shared);
                *cell = Cell::default();
                if let Err(conflict) = noted {
                    return Err(self.conflict(conflict, leader.thread, "frees", [column, lane], NO_ORDER));
                }
            }
        }
        let within = self.within(leader.thread);
        let memory = self.tensor_memory(leader.thread);
        let is_it = |other: &Allocation| other.first == first;
        if let Some(at) = memory.allocations.iter().position(is_it) {
            let allocation = memory.allocations.remove(at);
            memory.freed.push((allocation, within));
        }
        memory.last.retain(|(sums, _)| !(first..first + held).contains(&sums.column));
        Ok(())
    }

    /// The allocation that has these columns, which a thread is to touch.
    fn allocation(&mut self, thread: u32, columns: &Range<u32>) -> Result<Allocation, Problem> {
        let clock = self.threads[thread as usize].clock.clone();
        let memory = self.tensor_memory(thread);
        let name = match columns.len() {
            1 => format!("column {} of tensor memory", columns.start),
            _ => format!("columns {} to {} of tensor memory", columns.start, columns.end - 1),
        };
        match memory.allocations.iter().find(|allocation| allocation.holds(columns)) {
            Some(allocation) if clock.knows(allocation.made) => Ok(*allocation),
            Some(Allocation { thread, .. }) => {
                misuse(format!("uses {name}, which thread {thread} allocates with no barrier between them"))
            }
            None => match memory.freed.iter().rfind(|(allocation, _)| allocation.holds(columns)) {
                Some((_, thread)) => misuse(format!("uses {name}, which thread {thread} has freed")),
                None => misuse(format!("uses {name}, which the block doesn't have: {}", memory.describe())),
            },
        }
    }

    fn access(&self, call: &Call<'_>, [reads, writes]: [bool; 2]) -> Access {
        let moment = self.threads[call.thread as usize].clock.moment();
        Access { moment, reads, writes, atomic: None, begins: false, place: call.place() }
    }

    /// The right of a product to write these sums, and with `adds` to read them; they are in flight for nobody yet.
    ///
    /// # Errors
    /// What stands against it.
    pub(super) fn check_sums(
        &mut self,
        call: &Call<'_>,
        sums: Accumulator,
        adds: bool,
    ) -> Result<(), Problem> {
        self.allocation(call.thread, &sums.range())?;
        let access = self.access(call, [adds, true]);
        let before = self.tensor_memory(call.thread).last.iter().find(|(other, _)| *other == sums);
        let before = before.map(|&(_, moment)| moment);
        let verb = if adds { "adds to" } else { "writes" };
        let views = self.views(call.thread, before);
        for column in sums.range() {
            for lane in (0..LANES).step_by(PART as usize) {
                let number = self.tensor_memory(call.thread).cell(column, lane).flight();
                let follows = number != 0 && self.flights.of(number).accumulator() == Some(sums);
                if !follows {
                    self.touch_part(call.thread, [column, lane], access, &views, verb)?;
                }
            }
        }
        Ok(())
    }

    /// What a thread knows of accesses of tensor memory, what it would after a fence, and what it knows of others; before
    /// which a moment of its own products comes.
    fn views(&self, thread: u32, before: Option<Moment>) -> [Clock; 3] {
        let clock = &self.threads[thread as usize].clock;
        let mut views = [clock.of_tensor_memory(), clock.of_tensor_memory_after_fence(), clock.clone()];
        for view in &mut views {
            before.iter().for_each(|&moment| view.learn(moment));
        }
        views
    }

    /// An access of one part by a thread.
    fn touch_part(
        &mut self,
        thread: u32,
        [column, lane]: [u32; 2],
        access: Access,
        views: &[Clock; 3],
        verb: &str,
    ) -> Result<(), Problem> {
        let cell = self.tensor_memory(thread).cell(column, lane);
        let [now, fenced, all] = views;
        let Err(conflict) = cell.note(access, now, Of::Shared) else { return Ok(()) };
        // What would have made it right is what is missing.
        let would_do = |clock: &Clock| cell.clone().note(access, clock, Of::Shared).is_ok();
        let missing = if would_do(fenced) {
            "with no `tcgen05.fence::after_thread_sync` in this thread since it heard of that"
        } else if would_do(all) {
            "with no `tcgen05.fence::before_thread_sync` in that thread before it let this one go on"
        } else {
            NO_ORDER
        };
        Err(self.conflict(conflict, thread, verb, [column, lane], missing))
    }

    /// What stands against an access, in words.
    fn conflict(
        &self,
        conflict: Conflict,
        thread: u32,
        verb: &str,
        [column, lane]: [u32; 2],
        missing: &str,
    ) -> Problem {
        let part = format!("{verb} column {column} of tensor memory (lanes {lane} to {})", lane + PART - 1);
        let at = |place: Loc| if place.is_known() { format!(" at {place}") } else { String::new() };
        Problem::Misuse(match conflict {
            Conflict::Unwritten => format!("{part}, which nobody wrote"),
            Conflict::Flight { number, .. } => {
                let block = self.block_of(thread) as u32;
                let operation = self.flights.of(number).describe(true, block);
                format!(
                    "{part}, which `{}` of thread {}{} still writes: nobody waited at the mbarrier of a \
                     `tcgen05.commit` after it",
                    operation.name,
                    operation.thread,
                    at(operation.place)
                )
            }
            Conflict::Race(earlier) | Conflict::Proxy(earlier) => {
                let who = match earlier.thread {
                    Some(thread) => format!("thread {thread}"),
                    None => "a product".to_owned(),
                };
                let did = if earlier.wrote { "wrote" } else { "read" };
                format!("{part}, which {who} {did}{}, {missing}", at(earlier.place))
            }
        })
    }

    /// A product with these sums is in flight from now on.
    pub(super) fn begin_sums(&mut self, flight: u32, sums: Accumulator, moment: Moment) {
        let memory = self.tensor_memory(sums.thread);
        for column in sums.range() {
            for lane in (0..LANES).step_by(PART as usize) {
                memory.cell(column, lane).begin_write(flight);
            }
        }
        memory.last.retain(|(other, _)| *other != sums);
        memory.last.push((sums, moment));
    }

    /// A product has ended. Where another one followed, that is still in flight.
    pub(super) fn end_sums(&mut self, flight: u32, sums: Accumulator, moment: Moment, place: Loc) {
        let memory = self.tensor_memory(sums.thread);
        for column in sums.range() {
            for lane in (0..LANES).step_by(PART as usize) {
                let cell = memory.cell(column, lane);
                if cell.flight() == flight {
                    cell.end_write(moment, place, false);
                }
            }
        }
    }

    /// The word of each lane and column, in the order of lanes; `check_sums` or `load_part` found that they are there.
    pub(super) fn sums(&mut self, sums: Accumulator) -> Vec<u32> {
        let memory = self.tensor_memory(sums.thread);
        let place = |lane: u32, column: u32| memory.words[(column * LANES + lane) as usize];
        (0..LANES).flat_map(|lane| sums.range().map(move |column| place(lane, column))).collect()
    }

    pub(super) fn set_sums(&mut self, sums: Accumulator, words: impl Iterator<Item = u32>) {
        let memory = self.tensor_memory(sums.thread);
        let places = (0..LANES).flat_map(|lane| sums.range().map(move |column| column * LANES + lane));
        for (place, word) in places.zip(words) {
            memory.words[place as usize] = word;
        }
    }

    /// The right of a warp to load so many columns of sixteen lanes, of which each lane loads its own: `loads` says which
    /// by their number.
    ///
    /// # Errors
    /// What stands against it, with the lane.
    pub(super) fn check_load(
        &mut self,
        calls: &[Call<'_>],
        from: Address,
        columns: u32,
        loads: fn(u32, u32) -> bool,
    ) -> Result<(), (u32, Problem)> {
        let range = from.column..from.column + columns;
        for (number, call) in (0..).zip(calls) {
            let fail = |problem| (call.thread, problem);
            self.allocation(call.thread, &range).map_err(fail)?;
            let access = self.access(call, [true, false]);
            let views = self.views(call.thread, None);
            for column in range.clone().filter(|column| loads(number, column - from.column)) {
                self.touch_part(call.thread, [column, from.lane], access, &views, "reads").map_err(fail)?;
            }
        }
        Ok(())
    }

    /// A word that `check_load` found a thread may read.
    pub(super) fn tensor_word(&mut self, thread: u32, lane: u32, column: u32) -> u32 {
        self.tensor_memory(thread).words[(column * LANES + lane) as usize]
    }

    /// Whether every block freed what it allocated.
    ///
    /// # Errors
    /// What wasn't, with the thread that asked for it.
    pub(super) fn check_tensor_memory(&self) -> Result<(), (u32, Loc, Problem)> {
        for (rank, memory) in &self.tensor_memories.0 {
            if let Some(Allocation { columns, first, thread, place, .. }) = memory.allocations.first() {
                let what = format!(
                    "{columns} columns of tensor memory from column {first} on are still allocated when the block \
                     ends: `tcgen05.dealloc` them"
                );
                return Err((rank * self.geometry.threads + thread, *place, Problem::Misuse(what)));
            }
        }
        Ok(())
    }
}

/// What is missing where nothing orders two accesses.
const NO_ORDER: &str = "with nothing between them that this thread waited for";
