//! What runs beside the threads: queues whose operations end in order, each with times of its own.

use super::order::Moment;
use std::collections::HashMap;
use std::num::NonZeroU32;

/// A queue of asynchronous operations that whoever waits for one of them waited for all earlier ones of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Agent {
    /// The copies of a thread that it waits for by groups.
    Copies(u32),
    /// The bulk copies of a thread, likewise.
    Bulk(u32),
    /// What completes on the mbarrier at this address.
    Barrier(u64),
    /// The matrix products of a warpgroup.
    Warpgroup(u32),
    /// The products of a thread whose sums are in tensor memory.
    Tensor(u32),
    /// What a block's warps are given of tensor memory.
    Allocation(u32),
}

/// The agents of a block.
#[derive(Default)]
pub(super) struct Agents {
    /// Their numbers and times.
    known: HashMap<Agent, (u32, NonZeroU32)>,
}

impl Agents {
    /// The agent's next time.
    pub(super) fn next(&mut self, block: u64, agent: Agent) -> Moment {
        let number = self.known.len() as u32;
        let (number, time) = self.known.entry(agent).or_insert((number, NonZeroU32::MIN));
        let moment = Moment::of_agent(block as u32, *number, *time);
        *time = time.saturating_add(1);
        moment
    }
}
