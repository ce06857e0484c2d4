//! Whether a block that waits does the same turn after turn, so that it will for ever as long as no other one writes.
//!
//! It does where its threads only come to loops that are shown ([`super::host_module`]), which carry what they carried the
//! turn before, read what they have read, write no tensor, and leave shared memory as it was when the block last stood
//! aside.

use super::block::Block;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

/// What is known of a block's turns.
#[derive(Default)]
pub(super) struct Steady {
    /// Whether anything was other than the turn before since the block stood aside for this access.
    changed: bool,
    /// The thread and the access for which it did. That comes once in a turn of its loop.
    by: (u32, u32),
    /// What stood in shared memory then, in short.
    shared: u64,
    /// How often in a row it stood aside for this access with nothing changed.
    times: u32,
}

fn short(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

impl Block<'_> {
    /// Something isn't as in the turn before, or may not be.
    pub(super) fn changes(&mut self) {
        self.steady.changed = true;
    }

    /// The running thread's loop carries a value into a turn.
    pub(super) fn carries(&mut self, number: u32, value: &[u8]) {
        let value = short(value);
        let carried = &mut self.threads[self.running as usize].carried;
        carried.resize(self.program.carried as usize, 0);
        if std::mem::replace(&mut carried[number as usize], value) != value {
            self.changes();
        }
    }

    /// The block stands aside, for an access of a thread.
    pub(super) fn note_turns(&mut self, by: (u32, u32)) {
        if !self.steady.changed && self.steady.by != by {
            return;
        }
        let all = self.memory.all(self.geometry.cluster);
        // SAFETY: these are the bytes of the cluster's shared memory, to which nobody writes meanwhile.
        let bytes =
            unsafe { std::slice::from_raw_parts(all.start as *const u8, (all.end - all.start) as usize) };
        let shared = short(bytes);
        let is_steady = !self.steady.changed && self.steady.shared == shared;
        let times = if is_steady { self.steady.times + 1 } else { 0 };
        self.steady = Steady { changed: false, by, shared, times };
    }

    /// Whether it goes on so for ever: meanwhile each thread had as many turns of its own as there are places in the code at
    /// which it may have given one up, so that it has come round.
    pub(super) fn is_steady(&self) -> bool {
        self.steady.times >= self.program.places + 2
    }
}
