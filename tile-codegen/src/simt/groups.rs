//! Groups of asynchronous operations that a thread commits and waits for: of `cp.async`, of bulk copies, of `wgmma`.

use foldhash::fast::FixedState;
use std::collections::{HashMap, VecDeque};

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

/// Sums of products that go on: what stands in registers for them, and what will.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    next: u32,
    /// By what stands for it: the number of the product, and the sum.
    coming: HashMap<u32, (u32, u32), FixedState>,
}

/// What stands for sums are signalling NaNs, which nothing computes, with these low bits to tell them apart.
const PLACEHOLDER: u32 = 0x7fa0_0000;
const PLACEHOLDER_BITS: u32 = 0x001f_ffff;

impl Sums {
    /// What stands in a register for a product's sum until somebody waits for that.
    pub(super) fn expect(&mut self, product: u32, sum: u32) -> u32 {
        self.next = (self.next + 1) & PLACEHOLDER_BITS;
        let placeholder = PLACEHOLDER | self.next;
        self.coming.insert(placeholder, (product, sum));
        placeholder
    }

    /// What a register holds when all products but these are complete.
    pub(super) fn settle(&mut self, register: u32, going_on: &[u32]) -> u32 {
        match self.coming.get(&register) {
            Some((product, sum)) if !going_on.contains(product) => {
                let sum = *sum;
                self.coming.remove(&register);
                sum
            }
            _ => register,
        }
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
    /// Of `tcgen05`: products of which nobody may have heard yet that they ended.
    pub(super) tensor: Vec<u32>,
    /// What `wgmma` will have given.
    pub(super) sums: Sums,
    /// Whether a `wgmma.fence` came before, since the last wait.
    pub(super) fenced: bool,
}
