//! Atomic reads of tensors that give the same again and again: so a block waits for another one.
//!
//! A block whose thread has read the same at an address [`PATIENCE`] times in a row stands aside, and others run meanwhile.
//! That is never wrong, because blocks run in any order, and costs a kernel that doesn't wait nothing but memory.

use super::block::Block;
use super::fault::{Fault, Problem};
use super::global::Global;
use super::grid::MOST_READS;
use super::memory::Touch;
use tile_ir::Loc;

/// How often a thread reads the same before its block stands aside.
const PATIENCE: u32 = 100;

/// What is remembered of a thread at most: what it reads in one turn of the loop in which it waits.
const ADDRESSES: usize = 64;

/// What a thread has read by an access, which comes once in a turn of its loop.
struct Seen {
    /// The access's number.
    number: u32,
    address: u64,
    bytes: usize,
    value: u128,
    /// How often in a row that was the same.
    times: u32,
}

/// What a thread has read atomically of late.
#[derive(Default)]
pub(super) struct Polls {
    seen: Vec<Seen>,
    /// Which of them is the next to be forgotten.
    oldest: usize,
}

/// What a cluster that stands aside waits for.
#[derive(Clone, Debug)]
pub(super) struct Awaited {
    pub(super) thread: u32,
    pub(super) place: Loc,
    pub(super) address: u64,
    pub(super) bytes: usize,
    value: u128,
    /// How often the thread has read the same.
    pub(super) times: u32,
}

impl Awaited {
    /// Whether something else is there now.
    ///
    /// # Safety
    /// The memory of the launch is still there.
    pub(super) unsafe fn has_come(&self) -> bool {
        // SAFETY: a thread accessed these bytes before, which was found to be right.
        unsafe { value_at(self.address, self.bytes) != self.value }
    }
}

/// The bytes at an address as a number.
///
/// # Safety
/// They are memory of the program, and no more than 16.
unsafe fn value_at(address: u64, bytes: usize) -> u128 {
    let mut value = [0; 16];
    // SAFETY: the caller says so; the threads of a GPU are coroutines of one thread, so nobody writes meanwhile.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, value.as_mut_ptr(), bytes) };
    u128::from_le_bytes(value)
}

impl Polls {
    fn find(&mut self, touch: &Touch) -> Option<&mut Seen> {
        let is_same = |seen: &&mut Seen| {
            (seen.number, seen.address, seen.bytes as u64) == (touch.number, touch.address, touch.kind.bytes)
        };
        self.seen.iter_mut().find(is_same)
    }

    fn remember(&mut self, seen: Seen) {
        if self.seen.len() < ADDRESSES {
            self.seen.push(seen);
        } else {
            self.seen[self.oldest] = seen;
            self.oldest = (self.oldest + 1) % ADDRESSES;
        }
    }
}

impl Block<'_> {
    /// Whether an access is one by which a thread may wait for another one.
    pub(super) fn asks(&self, touch: &Touch) -> bool {
        self.program.asking[touch.number as usize]
    }

    /// Whether it is one by which it may wait for another block.
    pub(super) fn asks_blocks(&self, touch: &Touch) -> bool {
        self.asks(touch) && touch.kind.bytes <= 16 && !self.is_shared(touch.address)
    }

    /// Whether the block stands aside, because the running thread is about to read the same once more and has often enough.
    /// A block whose asynchronous operations work on tensors stays: they are known to it alone.
    pub(super) fn stands_aside_for(&mut self, touch: &Touch) -> bool {
        let Some(awaited) = self.awaits(touch) else { return false };
        if !self.has_flights_in_tensors() {
            self.note_turns((awaited.thread, touch.number));
            self.aside = Some(awaited);
        } else if awaited.times >= MOST_READS {
            self.fail(awaited.thread, awaited.place, Problem::Spins);
        }
        true
    }

    /// The fault of a block that stands aside, as these do, and waits for what nobody will write.
    pub(super) fn fault_of_waiting(
        &self,
        awaited: &Awaited,
        waiting: Vec<u64>,
        not_begun: Option<u64>,
        global: &Global,
    ) -> Fault {
        let Awaited { thread, place, address, .. } = *awaited;
        let (argument, offset) = global.name_of(address).expect("verified: the access was found to be right");
        let problem = Problem::Waits { argument: argument.to_owned(), offset, waiting, not_begun };
        Fault { block: self.block_of(thread), thread: self.within(thread), place, problem }
    }

    /// What the running thread waits for, if it is about to read the same once more and has often enough.
    fn awaits(&mut self, touch: &Touch) -> Option<Awaited> {
        let (thread, place) = (self.running, self.place_of_access(*touch));
        let (address, bytes) = (touch.address, touch.kind.bytes as usize);
        let seen = self.threads[thread as usize].polls.find(touch)?;
        // SAFETY: an access of this thread to these bytes was found to be right.
        let value = unsafe { value_at(address, bytes) };
        if seen.value != value {
            (seen.value, seen.times) = (value, 0);
            self.changes();
            return None;
        }
        seen.times = seen.times.saturating_add(1);
        let times = seen.times;
        times.is_multiple_of(PATIENCE).then_some(Awaited { thread, place, address, bytes, value, times })
    }

    /// Remembers what the running thread reads by an access that was found to be right.
    pub(super) fn remember_read(&mut self, touch: &Touch) {
        let (address, bytes) = (touch.address, touch.kind.bytes as usize);
        // SAFETY: the access is right, so there are these bytes.
        let value = unsafe { value_at(address, bytes) };
        let polls = &mut self.threads[self.running as usize].polls;
        match polls.find(touch) {
            Some(seen) if seen.value == value => {}
            Some(seen) => {
                (seen.value, seen.times) = (value, 0);
                self.changes();
            }
            None => {
                polls.remember(Seen { number: touch.number, address, bytes, value, times: 0 });
                self.changes();
            }
        }
    }
}
