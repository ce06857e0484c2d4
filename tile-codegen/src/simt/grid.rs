//! The clusters of a launch: one after the other, from the first block on, and those that wait for another one stand aside.
//!
//! A cluster that stands aside goes on when something else is at the address that it waits for. When no other one can
//! begin, all that stand aside go on in turn; where each then does the same turn after turn ([`super::steady`]), or has read
//! the same [`MOST_READS`] times, the launch is over, because it would be for ever.

use super::block::Geometry;
use super::fault::{Fault, RunError};
use super::global::Global;
use super::running::{Pause, Running};

/// The threads of clusters that stand aside, at most: each has a stack, of which an operating system gives only so many.
const MOST_THREADS: usize = 8192;

/// How often a thread may read the same while no block gets anywhere. A kernel that looks so often for something that doesn't
/// come, and then goes on without it, is told that it waits in vain.
pub(super) const MOST_READS: u32 = 1 << 20;

/// The clusters of a launch.
pub(super) struct Grid<'p> {
    /// The first block that hasn't begun.
    next: u64,
    blocks: u64,
    /// Those that stand aside, which are as many as may at most.
    aside: Vec<Running<'p>>,
    most_aside: usize,
}

impl<'p> Grid<'p> {
    /// So many blocks, of which none has begun.
    pub(super) fn of(blocks: u64, Geometry { threads, cluster, .. }: Geometry) -> Grid<'p> {
        let most_aside = (MOST_THREADS / (threads * cluster) as usize).max(1);
        Grid { next: 0, blocks, aside: Vec::new(), most_aside }
    }

    /// Runs all clusters to their end, which are made of the numbers of their first blocks.
    ///
    /// # Errors
    /// The first fault, and what a cluster that can't begin fails with.
    pub(super) fn run(
        mut self,
        cluster: impl Fn(u64) -> Result<Running<'p>, RunError>,
        global: &mut Global,
    ) -> Result<(), RunError> {
        loop {
            if self.next < self.blocks && self.aside.len() < self.most_aside {
                self.begin(cluster(self.next)?, global)?;
            } else if self.aside.is_empty() {
                return Ok(());
            } else {
                self.go_on(global)?;
            }
        }
    }

    fn begin(&mut self, mut cluster: Running<'p>, global: &mut Global) -> Result<(), Fault> {
        self.next = cluster.numbers().end;
        match cluster.go_on(global)? {
            Pause::Over => self.finish(global),
            Pause::Aside => self.aside.push(cluster),
        }
        self.go_on_if(global, |cluster| {
            // SAFETY: the launch's memory is there until all clusters have ended.
            cluster.awaited().is_none_or(|awaited| unsafe { awaited.has_come() })
        })
    }

    /// All that stand aside go on for a while.
    fn go_on(&mut self, global: &mut Global) -> Result<(), Fault> {
        let before = self.aside.len();
        self.go_on_if(global, |_| true)?;
        // One that has ended may have written what another one looked for before.
        let has_ended = self.aside.len() < before;
        if has_ended || !self.aside.iter().all(Running::waits_in_vain) {
            return Ok(());
        }
        let waiting: Vec<u64> = self.aside.iter().flat_map(Running::numbers).collect();
        let not_begun = Some(self.next).filter(|next| *next < self.blocks);
        Err(self.aside.swap_remove(0).never_ends(waiting, not_begun, global))
    }

    /// Those that stand aside and are as said go on, the first one first.
    fn go_on_if(&mut self, global: &mut Global, is_next: impl Fn(&Running<'_>) -> bool) -> Result<(), Fault> {
        let mut at = 0;
        while at < self.aside.len() {
            if !is_next(&self.aside[at]) {
                at += 1;
                continue;
            }
            match self.aside[at].go_on(global)? {
                Pause::Aside => at += 1,
                Pause::Over => {
                    self.aside.remove(at);
                    self.finish(global);
                }
            }
        }
        Ok(())
    }

    /// What was counted of a block is added up when it is over; of several in progress at once, when all of them are.
    fn finish(&self, global: &mut Global) {
        if self.aside.is_empty()
            && let Some(recorder) = &mut global.recorder
        {
            recorder.finish_block();
        }
    }
}
