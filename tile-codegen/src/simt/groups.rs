//! Groups of asynchronous operations that a thread commits and waits for: of `cp.async`, of bulk copies, of `wgmma`.

use std::collections::VecDeque;

/// Groups of operations, by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    open: Vec<u32>,
    committed: VecDeque<Vec<u32>>,
}

impl Groups {
    /// Adds an operation to the group that is open.
    pub(super) fn add(&mut self, flight: u32) {
        self.open.push(flight);
    }

    /// Ends the open group.
    pub(super) fn commit(&mut self) {
        self.committed.push_back(std::mem::take(&mut self.open));
    }

    /// Takes out the operations of all groups but the last so many.
    pub(super) fn wait(&mut self, pending: usize) -> Vec<u32> {
        let over = self.committed.len().saturating_sub(pending);
        self.committed.drain(..over).flatten().collect()
    }

    /// The operations of all groups but the last so many, which stay.
    pub(super) fn peek(&self, pending: usize) -> Vec<u32> {
        let over = self.committed.len().saturating_sub(pending);
        self.committed.iter().take(over).flatten().copied().collect()
    }

    /// Takes out every operation, committed or not.
    pub(super) fn wait_all(&mut self) -> Vec<u32> {
        self.commit();
        self.wait(0)
    }

    /// Every operation, committed or not.
    pub(super) fn all(&self) -> Vec<u32> {
        self.committed.iter().flatten().chain(&self.open).copied().collect()
    }
}

/// A thread's groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    /// Of `cp.async`.
    pub(super) copies: Groups,
    /// Of bulk copies to global memory.
    pub(super) bulk: Groups,
    /// Of `wgmma`.
    pub(super) products: Groups,
    /// Whether a `wgmma.fence` came before.
    pub(super) fenced: bool,
}
