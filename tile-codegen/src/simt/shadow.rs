//! Shadow memory: what is known of every byte, and the rules that an access must keep.
//!
//! Two accesses of a byte, one of them a write, need an order ([`super::order`]) unless both are atomic and reach
//! each other. A byte that an asynchronous operation writes may not be touched before somebody waited for it, and one
//! that it reads may not be written.
//!
//! Knows moments; nothing of code or schedules.

use super::fault::Earlier;
use super::order::{Clock, Moment, Of, Scope};
use foldhash::fast::FixedState;
use std::collections::HashMap;
use tile_ir::Loc;

/// One access of some bytes. A read-modify-write both reads and writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) moment: Moment,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// The reach of an atomic access.
    pub(super) atomic: Option<Scope>,
    /// Whether it begins an asynchronous operation: a read is remembered when that ends, as the operation's.
    pub(super) begins: bool,
    /// The op.
    pub(super) place: Loc,
}

/// An access that a later one may conflict with.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    moment: Moment,
    place: Loc,
    writes: bool,
    scope: Option<Scope>,
}

impl Entry {
    /// Whether whatever conflicts with an earlier access conflicts with this one too.
    fn stands_for(&self, earlier: &Entry, (clock, of): (&Clock, Of)) -> bool {
        clock.knows_of(earlier.moment, of) && self.covers(earlier)
    }

    /// The same of an earlier access that comes before this one, as all of its own thread do.
    fn covers(&self, earlier: &Entry) -> bool {
        (self.writes || !earlier.writes) && self.scope <= earlier.scope
    }
}

/// Accesses that nothing orders among each other, and earlier ones of the same threads.
///
/// A byte may have a reader in every thread of a block, so what a thread adds isn't compared with what is there each time, but
/// only where memory for more of it is needed.
#[derive(Clone, Debug, Default)]
struct Entries {
    first: Option<Entry>,
    more: Vec<Entry>,
    /// Whether one of them may write.
    writes: bool,
}

impl Entries {
    fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.first.iter().chain(&self.more)
    }

    fn clear(&mut self) {
        self.first = None;
        self.more.clear();
        self.writes = false;
    }

    /// Adds an access; those that it stands for needn't be remembered.
    fn add(&mut self, entry: Entry, knows: (&Clock, Of)) {
        self.writes |= entry.writes;
        let Some(first) = self.first.as_mut().filter(|_| !self.more.is_empty()) else {
            match self.first.replace(entry) {
                Some(first) if !entry.stands_for(&first, knows) => self.more.push(first),
                _ => self.writes = entry.writes,
            }
            return;
        };
        if entry.stands_for(first, knows) {
            self.more.retain(|other| !entry.stands_for(other, knows));
            *first = entry;
            return;
        }
        if self.more.len() == self.more.capacity() {
            self.forget_covered();
        }
        self.more.push(entry);
    }

    /// Leaves out what later accesses of the same threads cover.
    fn forget_covered(&mut self) {
        let mut latest = HashMap::with_capacity_and_hasher(self.more.len(), FixedState::default());
        let mut kept = 0;
        for at in 0..self.more.len() {
            let entry = self.more[at];
            let own = latest.entry((entry.moment.block, entry.moment.thread)).or_insert(kept);
            if *own == kept || !entry.covers(&self.more[*own]) {
                *own = kept;
                kept += 1;
            }
            self.more[*own] = entry;
        }
        self.more.truncate(kept);
    }
}

/// The asynchronous operations that work on a byte, by their numbers; 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct InFlight {
    writer: u32,
    /// The last one that reads, and how many do.
    reader: u32,
    readers: u32,
}

/// What was done to a byte, or to bytes to which the same was done.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    written: bool,
    writer: Option<Entry>,
    /// Whether the last plain write came through the generic proxy.
    generic: bool,
    /// Plain reads and atomic accesses since the last plain write.
    others: Entries,
    in_flight: InFlight,
}

/// What stands against an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conflict {
    /// An earlier access that nothing orders before it.
    Race(Earlier),
    /// An asynchronous operation in flight, by its number, and whether it writes the byte.
    Flight { number: u32, writer: bool },
    /// A read of what nobody wrote.
    Unwritten,
    /// An asynchronous operation on what the generic proxy wrote, with no proxy fence in between.
    Proxy(Earlier),
}

fn earlier(entry: &Entry, wrote: bool, block: u32) -> Earlier {
    let other = entry.moment.block;
    Earlier {
        thread: entry.moment.by_thread(),
        block: (other != block).then_some(u64::from(other)),
        wrote,
        place: entry.place,
    }
}

impl Cell {
    /// Whether the same was done to both, as far as that is quickly told: neither has anything to remember behind a plain write.
    pub(super) fn is_simply(&self, other: &Cell) -> bool {
        self.others.first.is_none()
            && other.others.first.is_none()
            && (self.written, self.generic) == (other.written, other.generic)
            && (self.writer, self.in_flight) == (other.writer, other.in_flight)
    }

    /// Notes an access to this memory by the thread of the clock. A read of shared memory that nobody wrote is wrong.
    ///
    /// # Errors
    /// What it conflicts with.
    pub(super) fn note(&mut self, access: Access, clock: &Clock, of: Of) -> Result<(), Conflict> {
        if self.in_flight.writer != 0 {
            return Err(Conflict::Flight { number: self.in_flight.writer, writer: true });
        }
        if access.writes && self.in_flight.readers != 0 {
            return Err(Conflict::Flight { number: self.in_flight.reader, writer: false });
        }
        if let Some((entry, wrote)) = self.conflict(access, (clock, of)) {
            return Err(Conflict::Race(earlier(&entry, wrote, access.moment.block)));
        }
        if of == Of::Shared && access.reads && !self.written {
            return Err(Conflict::Unwritten);
        }
        if access.begins && !access.writes {
            return Ok(());
        }
        let entry =
            Entry { moment: access.moment, place: access.place, writes: access.writes, scope: access.atomic };
        self.written |= access.writes;
        if access.writes && access.atomic.is_none() {
            (self.writer, self.generic) = (Some(entry), true);
            self.others.clear();
        } else {
            self.others.add(entry, (clock, of));
        }
        Ok(())
    }

    /// The earlier access that this one conflicts with, and whether it wrote.
    fn conflict(&self, access: Access, (clock, of): (&Clock, Of)) -> Option<(Entry, bool)> {
        let unordered = |entry: &&Entry| !clock.knows_of(entry.moment, of);
        if let Some(writer) = self.writer.as_ref().filter(unordered) {
            return Some((*writer, true));
        }
        let apart = |entry: &Entry| match (entry.scope, access.atomic) {
            (Some(one), Some(other)) => {
                let needed =
                    if entry.moment.block == access.moment.block { Scope::Block } else { Scope::Device };
                one.min(other) < needed
            }
            _ => true,
        };
        if !access.writes && !self.others.writes {
            return None;
        }
        let conflicts = |entry: &&Entry| (entry.writes || access.writes) && apart(entry) && unordered(entry);
        self.others.iter().find(conflicts).map(|entry| (*entry, entry.writes))
    }

    /// An asynchronous operation begins to read: it is in flight from now on.
    pub(super) fn begin_read(&mut self, flight: u32) {
        self.in_flight.reader = flight;
        self.in_flight.readers += 1;
    }

    /// An asynchronous operation begins to write.
    pub(super) fn begin_write(&mut self, flight: u32) {
        self.in_flight.writer = flight;
    }

    /// The number of the asynchronous operation that writes, 0 where there is none.
    pub(super) fn flight(&self) -> u32 {
        self.in_flight.writer
    }

    /// An asynchronous operation has read, at a moment.
    pub(super) fn end_read(&mut self, moment: Moment, place: Loc, clock: &Clock) {
        self.in_flight.readers = self.in_flight.readers.saturating_sub(1);
        self.others.add(Entry { moment, place, writes: false, scope: None }, (clock, Of::All));
    }

    /// An asynchronous operation has written, at a moment; `generic`: through the generic proxy.
    pub(super) fn end_write(&mut self, moment: Moment, place: Loc, generic: bool) {
        self.in_flight.writer = 0;
        self.written = true;
        self.writer = Some(Entry { moment, place, writes: true, scope: None });
        self.others.clear();
        self.generic = generic;
    }

    /// The writes that a read must come after, each with whether it was made through the generic proxy.
    fn entries_of_writes(&self) -> impl Iterator<Item = (&Entry, bool)> {
        let plain = self.writer.iter().map(|write| (write, self.generic));
        plain.chain(self.others.iter().filter(|other| other.writes).map(|write| (write, true)))
    }

    /// The same by their moments.
    pub(super) fn writes(&self) -> impl Iterator<Item = (Moment, bool)> {
        self.entries_of_writes().map(|(write, generic)| (write.moment, generic))
    }

    /// Whether the asynchronous proxy sees what this byte of some memory holds, for an operation that the clock's thread
    /// issues.
    ///
    /// # Errors
    /// The write that it may miss.
    pub(super) fn check_proxy(&self, clock: &Clock, of: Of) -> Result<(), Conflict> {
        let is_missed = |&(write, generic): &(&Entry, bool)| generic && !clock.proxied(write.moment, of);
        match self.entries_of_writes().find(is_missed) {
            Some((write, _)) => Err(Conflict::Proxy(earlier(write, true, clock.block()))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simt::order::Joined;

    const READS: [bool; 2] = [true, false];
    const WRITES: [bool; 2] = [false, true];
    const UPDATES: [bool; 2] = [true, true];

    /// A byte, and threads that touch it.
    struct Scene {
        cell: Cell,
        clocks: Vec<Clock>,
    }

    impl Scene {
        fn new() -> Scene {
            Scene { cell: Cell::default(), clocks: Clock::of_block(0, 4) }
        }

        fn access(
            &mut self,
            thread: usize,
            [reads, writes]: [bool; 2],
            atomic: Option<Scope>,
        ) -> Option<Conflict> {
            let clock = &self.clocks[thread];
            let access =
                Access { moment: clock.moment(), reads, writes, atomic, begins: false, place: Loc::UNKNOWN };
            self.cell.note(access, clock, Of::All).err()
        }

        fn plain(&mut self, thread: usize, kind: [bool; 2]) -> Option<Conflict> {
            self.access(thread, kind, None)
        }

        fn barrier(&mut self) {
            let snapshots: Vec<_> = self.clocks.iter_mut().map(|clock| clock.release(Scope::Block)).collect();
            let joined = Joined::of(&snapshots).unwrap();
            self.clocks.iter_mut().for_each(|clock| clock.absorb(&joined));
        }
    }

    /// The thread that the access conflicts with.
    fn against(conflict: Option<Conflict>) -> Option<u32> {
        match conflict {
            Some(Conflict::Race(earlier)) => earlier.thread,
            _ => None,
        }
    }

    #[test]
    fn barriers_order_what_threads_do() {
        let mut scene = Scene::new();
        for kind in [WRITES, READS, WRITES] {
            assert_eq!(scene.plain(0, kind), None);
        }
        scene.barrier();
        assert_eq!(scene.plain(1, READS), None);
        assert_eq!(scene.plain(2, READS), None);
        scene.barrier();
        assert_eq!(scene.plain(1, WRITES), None);
    }

    #[test]
    fn without_a_barrier_a_write_conflicts() {
        let mut scene = Scene::new();
        scene.plain(0, WRITES);
        assert_eq!(against(scene.plain(1, READS)), Some(0));
        assert_eq!(against(scene.plain(1, WRITES)), Some(0));
        scene.barrier();
        scene.plain(1, READS);
        assert_eq!(against(scene.plain(0, WRITES)), Some(1));
    }

    #[test]
    fn every_reader_is_remembered() {
        for last in 0..3 {
            let mut scene = Scene::new();
            let order = [(last + 1) % 3, (last + 2) % 3, last];
            for thread in order {
                assert_eq!(scene.plain(thread, READS), None);
            }
            assert!(against(scene.plain(order[2], WRITES)).is_some(), "{order:?}");
        }
    }

    #[test]
    fn an_update_does_not_hide_a_plain_reader() {
        let mut scene = Scene::new();
        scene.plain(0, READS);
        let conflict = scene.access(1, UPDATES, Some(Scope::Block));
        assert_eq!(against(conflict), Some(0));
        let mut scene = Scene::new();
        scene.access(1, READS, Some(Scope::Block));
        scene.plain(0, READS);
        scene.access(1, READS, Some(Scope::Block));
        assert_eq!(against(scene.access(2, UPDATES, Some(Scope::Block))), Some(0));
    }

    #[test]
    fn atomics_conflict_with_plain_accesses_alone() {
        let mut scene = Scene::new();
        assert_eq!(scene.access(0, UPDATES, Some(Scope::Block)), None);
        assert_eq!(scene.access(1, UPDATES, Some(Scope::Block)), None);
        assert!(against(scene.plain(2, READS)).is_some());
        assert!(against(scene.plain(2, WRITES)).is_some());
        let mut scene = Scene::new();
        scene.access(0, READS, Some(Scope::Device));
        assert_eq!(scene.plain(1, READS), None);
        assert!(against(scene.plain(1, WRITES)).is_some());
    }

    #[test]
    fn an_atomic_read_is_no_write_because_its_thread_wrote_before() {
        let mut scene = Scene::new();
        scene.access(0, UPDATES, Some(Scope::Block));
        scene.barrier();
        scene.access(0, READS, Some(Scope::Block));
        assert_eq!(scene.plain(1, READS), None);
    }

    #[test]
    fn atomics_of_a_scope_too_small_conflict() {
        let mut cell = Cell::default();
        let mut note = |block, scope| {
            let clock = &Clock::of_block(block, 1)[0];
            let atomic = Some(scope);
            let (reads, writes) = (true, true);
            let access =
                Access { moment: clock.moment(), reads, writes, atomic, begins: false, place: Loc::UNKNOWN };
            cell.note(access, clock, Of::All).is_ok()
        };
        assert!(note(0, Scope::Device) && note(1, Scope::Device));
        assert!(!note(2, Scope::Block));
    }

    #[test]
    fn what_is_in_flight_is_nobodys() {
        let mut scene = Scene::new();
        scene.plain(0, WRITES);
        scene.cell.begin_read(7);
        assert_eq!(scene.plain(0, READS), None);
        assert_eq!(scene.plain(0, WRITES), Some(Conflict::Flight { number: 7, writer: false }));
        let moment = scene.clocks[0].moment();
        scene.cell.end_read(moment, Loc::UNKNOWN, &scene.clocks[0]);
        scene.cell.begin_write(8);
        assert_eq!(scene.plain(0, READS), Some(Conflict::Flight { number: 8, writer: true }));
        let moment = scene.clocks[0].moment();
        scene.cell.end_write(moment, Loc::UNKNOWN, false);
        assert_eq!(scene.plain(0, READS), None);
        assert_eq!(against(scene.plain(1, READS)), Some(0));
    }
}
