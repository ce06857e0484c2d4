//! Shadow memory: what is known of every byte, and the rules that an access must keep.
//!
//! Two accesses of a byte by different threads of a block, one of them a write, need a barrier between them,
//! whichever order they happened to have here. The same goes for blocks, whose order nothing but atomics
//! with release and acquire gives. Two atomic accesses don't conflict.
//!
//! Knows numbers of threads and blocks; nothing of code or schedules.

use super::fault::Earlier;
use tile_ir::Loc;

/// One access of some bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The thread in its block.
    pub(super) thread: u32,
    /// A number that every barrier, and every block, changes.
    pub(super) epoch: u32,
    /// Whether it writes.
    pub(super) writes: bool,
    /// Whether it is atomic.
    pub(super) atomic: bool,
    /// The op.
    pub(super) place: Loc,
}

/// Who touched a byte last.
#[derive(Clone, Copy, Debug)]
struct Touch {
    thread: u32,
    atomic: bool,
    place: Loc,
}

/// What the threads of one block did to a byte since the last barrier.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    epoch: u32,
    written: bool,
    writer: Option<Touch>,
    reader: Option<Touch>,
    many_readers: bool,
}

impl Cell {
    /// Whether anybody ever wrote it.
    pub(super) fn is_written(&self) -> bool {
        self.written
    }

    /// Notes an access.
    ///
    /// # Errors
    /// What it conflicts with.
    pub(super) fn note(&mut self, access: Access) -> Result<(), Earlier> {
        if self.epoch != access.epoch {
            *self = Cell { written: self.written, epoch: access.epoch, ..Cell::default() };
        }
        let conflicts = |touch: &Touch| touch.thread != access.thread && !(touch.atomic && access.atomic);
        let earlier = |touch: &Touch, wrote| Earlier {
            thread: (wrote || !self.many_readers).then_some(touch.thread),
            block: None,
            wrote,
            place: touch.place,
        };
        if let Some(writer) = self.writer.as_ref().filter(|writer| conflicts(writer)) {
            return Err(earlier(writer, true));
        }
        let touch = Touch { thread: access.thread, atomic: access.atomic, place: access.place };
        if !access.writes {
            self.many_readers |= self.reader.is_some_and(|reader| reader.thread != access.thread);
            self.reader = Some(touch);
            return Ok(());
        }
        if let Some(reader) =
            self.reader.as_ref().filter(|reader| conflicts(reader) || (self.many_readers && !access.atomic))
        {
            return Err(earlier(reader, false));
        }
        (self.written, self.writer) = (true, Some(touch));
        Ok(())
    }
}

/// A block and how often it had released its writes when it made an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The block.
    pub(super) block: u64,
    /// Its releases before the access.
    pub(super) releases: u32,
}

/// What the blocks of a grid did to a byte of global memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GridCell {
    within: Cell,
    writer: Option<(Stamp, bool, Loc)>,
    reader: Option<(Stamp, bool, Loc)>,
}

impl GridCell {
    /// Notes an access; `ordered` says whether what a block did up to a stamp comes before it.
    ///
    /// # Errors
    /// What it conflicts with.
    pub(super) fn note(
        &mut self,
        access: Access,
        stamp: Stamp,
        ordered: &dyn Fn(Stamp) -> bool,
    ) -> Result<(), Earlier> {
        let conflicts = |&&(other, atomic, _): &&(Stamp, bool, Loc)| {
            other.block != stamp.block && !(atomic && access.atomic) && !ordered(other)
        };
        let earlier = |&(other, _, place): &(Stamp, bool, Loc), wrote| Earlier {
            thread: None,
            block: Some(other.block),
            wrote,
            place,
        };
        if let Some(writer) = self.writer.as_ref().filter(conflicts) {
            return Err(earlier(writer, true));
        }
        if let Some(reader) = self.reader.as_ref().filter(|_| access.writes).filter(conflicts) {
            return Err(earlier(reader, false));
        }
        self.within.note(access)?;
        let touch = Some((stamp, access.atomic, access.place));
        if access.writes {
            self.writer = touch;
        } else {
            self.reader = touch;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITES: bool = true;
    const READS: bool = false;

    /// What the last of these accesses conflicts with: thread, epoch, whether it writes.
    fn last(accesses: &[(u32, u32, bool)]) -> Option<Earlier> {
        let mut cell = Cell::default();
        let note = |&(thread, epoch, writes): &(u32, u32, bool)| {
            cell.note(Access { thread, epoch, writes, atomic: false, place: Loc::UNKNOWN }).err()
        };
        accesses.iter().map(note).last().flatten()
    }

    #[test]
    fn barriers_order_what_threads_do() {
        assert_eq!(last(&[(0, 0, WRITES), (0, 0, READS), (0, 0, WRITES)]), None);
        assert_eq!(last(&[(0, 0, WRITES), (1, 1, READS), (2, 1, READS), (1, 2, WRITES)]), None);
    }

    #[test]
    fn without_a_barrier_a_write_conflicts() {
        let thread = |accesses: &[_]| last(accesses).expect("a race").thread;
        assert_eq!(thread(&[(0, 0, WRITES), (1, 0, READS)]), Some(0));
        assert_eq!(thread(&[(0, 0, WRITES), (1, 0, WRITES)]), Some(0));
        assert_eq!(thread(&[(0, 0, WRITES), (1, 1, READS), (0, 1, WRITES)]), Some(1));
        assert_eq!(thread(&[(0, 0, WRITES), (0, 1, READS), (1, 1, READS), (1, 1, WRITES)]), None);
    }

    #[test]
    fn atomics_conflict_with_plain_accesses_alone() {
        let mut cell = Cell::default();
        let mut note = |thread, atomic| {
            cell.note(Access { thread, epoch: 0, writes: true, atomic, place: Loc::UNKNOWN }).is_ok()
        };
        assert!(note(0, true) && note(1, true));
        assert!(!note(2, false));
    }

    #[test]
    fn blocks_are_ordered_by_release_and_acquire_alone() {
        let access = |writes| Access { thread: 0, epoch: 0, writes, atomic: false, place: Loc::UNKNOWN };
        let stamp = |block| Stamp { block, releases: 0 };
        let mut cell = GridCell::default();
        cell.note(access(WRITES), stamp(0), &|_| false).unwrap();
        assert!(cell.clone().note(access(READS), stamp(0), &|_| false).is_ok());
        let race = cell.clone().note(access(READS), stamp(1), &|_| false).unwrap_err();
        assert_eq!((race.block, race.wrote), (Some(0), true));
        assert!(cell.clone().note(access(READS), stamp(1), &|other| other == stamp(0)).is_ok());
        let mut read = GridCell::default();
        read.note(access(READS), stamp(3), &|_| false).unwrap();
        assert!(read.clone().note(access(READS), stamp(4), &|_| false).is_ok());
        assert!(read.note(access(WRITES), stamp(4), &|_| false).is_err());
    }
}
