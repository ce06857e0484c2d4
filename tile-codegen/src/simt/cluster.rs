//! Clusters: blocks that run together, wait for each other, and reach each other's shared memory.
//!
//! The barrier of a cluster has two parts, an arrival and a wait (PTX ISA, "barrier.cluster"). What a thread does to
//! shared memory of another block must come before that block's end, and be known to: a block's memory is another's once
//! the block is over. That is asked when all blocks of the cluster have ended. An arrival behind `fence.mbarrier_init` shows
//! all threads the mbarriers that the fence is of, also one that hands on nothing else (PTX ISA, "membar/fence").

use super::block::{Block, State};
use super::fault::Problem;
use super::instruction::{Call, Then};
use super::order::{Joined, Moment, Scope, Snapshot};
use std::collections::HashSet;
use tile_ir::Loc;

/// The barrier of a cluster. A device doesn't wait for threads that have ended; here all must come.
#[derive(Default)]
pub(super) struct ClusterBarrier {
    /// The threads that are there, and what they hand on.
    arrivals: Vec<(u32, Option<Snapshot>)>,
    /// The mbarriers that those who are there have made visible to asynchronous operations.
    fenced: Vec<u64>,
    /// Those when it last opened.
    shown: Vec<u64>,
    /// How often it has opened.
    phase: u32,
    /// What was handed on when it last opened.
    joined: Option<Joined>,
    /// The threads that arrived and haven't waited yet, with the phase in which they did.
    owing: Vec<(u32, u32)>,
    /// Those that have waited, and so know that all have begun.
    passed: HashSet<u32>,
}

/// Something that a thread did to shared memory of another block of its cluster.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    /// The place of that block in the cluster.
    rank: u32,
    /// When it was done: by the thread, or beside it.
    moment: Moment,
    thread: u32,
    /// The instruction.
    name: String,
    place: Loc,
}

impl Block<'_> {
    /// The address in another block's shared memory that a thread's own has in this block's.
    pub(super) fn counterpart(&self, thread: u32, address: u64, rank: u32) -> u64 {
        self.memory.of(rank).wrapping_add_signed(self.offset(thread, address))
    }

    /// The ranks of the blocks of the cluster that a mask names, one bit each; `None` where it names none, or others.
    pub(super) fn ranks_of_mask(&self, mask: u32) -> Option<Vec<u32>> {
        let blocks = self.geometry.cluster;
        let names_blocks = mask != 0 && mask >> blocks == 0;
        names_blocks.then(|| (0..blocks).filter(|rank| mask >> rank & 1 == 1).collect())
    }

    /// Notes what the calling thread is about to do to an address, if that is of another block.
    pub(super) fn note_remote(&mut self, call: &Call<'_>, address: u64) {
        let moment = self.threads[call.thread as usize].clock.moment();
        self.note_remote_at(call.thread, address, moment, &call.instruction.name, call.place());
    }

    /// Notes what a thread has had done to an address at a moment, if that is of another block.
    pub(super) fn note_remote_at(
        &mut self,
        thread: u32,
        address: u64,
        moment: Moment,
        name: &str,
        place: Loc,
    ) {
        let Some((rank, _)) = self.home(address).filter(|(rank, _)| *rank != self.rank_of(thread)) else {
            return;
        };
        // Whoever knows of the last thing that somebody did knows of all before.
        let by = |moment: Moment| (moment.block, moment.thread);
        self.remote.retain(|other| other.rank != rank || by(other.moment) != by(moment));
        self.remote.push(Remote { rank, moment, thread, name: name.to_owned(), place });
    }

    /// Notes an access, by its number among the code's, of the running thread to shared memory of its cluster.
    ///
    /// # Errors
    /// If that is of another block and the thread hasn't waited for all to begin, or of none.
    pub(super) fn reach(&mut self, address: u64, number: u32) -> Result<(), Problem> {
        let (running, program) = (self.running, self.program);
        let Some((rank, _)) = self.home(address) else {
            return Err(Problem::Misuse("reaches memory that no block of the cluster shares".to_owned()));
        };
        if rank == self.rank_of(running) {
            return Ok(());
        }
        self.check_begun(running, rank)?;
        let moment = self.threads[running as usize].clock.moment();
        let (name, place) = &program.accesses[number as usize];
        self.note_remote_at(running, address, moment, name, *place);
        Ok(())
    }

    /// Whether a thread knows that the block of a rank has begun.
    ///
    /// # Errors
    /// If it hasn't waited for all blocks to begin, and the block is another than its own.
    pub(super) fn check_begun(&self, thread: u32, rank: u32) -> Result<(), Problem> {
        if rank == self.rank_of(thread) || self.cluster_barrier.passed.contains(&thread) {
            return Ok(());
        }
        let block = self.number + u64::from(rank);
        Err(Problem::Misuse(format!("reaches shared memory of block {block}, which may not have begun")))
    }

    /// Whether what threads did to other blocks' memory was done before these ended.
    ///
    /// # Errors
    /// What wasn't, with its thread.
    pub(super) fn check_remote(&self) -> Result<(), (u32, Loc, Problem)> {
        let size = self.geometry.threads as usize;
        let is_late = |remote: &&Remote| {
            let first = remote.rank as usize * size;
            self.threads[first..first + size].iter().all(|thread| !thread.clock.knows(remote.moment))
        };
        let Some(Remote { rank, thread, name, place, .. }) = self.remote.iter().find(is_late) else {
            return Ok(());
        };
        let block = self.number + u64::from(*rank);
        let what = format!("`{name}` reaches shared memory of block {block}, which may have ended before");
        Err((*thread, *place, Problem::Misuse(what)))
    }

    /// The calling thread comes to the barrier of the cluster.
    ///
    /// # Errors
    /// If it is there already.
    pub(super) fn arrive_in_cluster(&mut self, call: &Call<'_>, releases: bool) -> Result<Then, Problem> {
        if self.cluster_barrier.owing.iter().any(|(thread, _)| *thread == call.thread) {
            return Err(Problem::Misuse("comes to the cluster's barrier twice without waiting".to_owned()));
        }
        let fenced = self.fenced_by(call.thread);
        let clock = &mut self.threads[call.thread as usize].clock;
        let snapshot = releases.then(|| clock.release(Scope::Cluster));
        let barrier = &mut self.cluster_barrier;
        barrier.fenced.extend(fenced);
        barrier.owing.push((call.thread, barrier.phase));
        barrier.arrivals.push((call.thread, snapshot));
        if barrier.arrivals.len() == self.threads.len() {
            self.open_cluster();
        }
        Ok(Then::GoOn)
    }

    fn open_cluster(&mut self) {
        let barrier = &mut self.cluster_barrier;
        let arrivals = std::mem::take(&mut barrier.arrivals);
        let snapshots: Vec<Snapshot> = arrivals.into_iter().filter_map(|(_, snapshot)| snapshot).collect();
        barrier.joined = Joined::of(&snapshots);
        barrier.shown = std::mem::take(&mut barrier.fenced);
        barrier.phase += 1;
        for thread in 0..self.threads.len() as u32 {
            if self.threads[thread as usize].state == State::AtCluster {
                self.threads[thread as usize].state = State::Ready;
                self.pass_cluster(thread);
            }
        }
        self.progress();
    }

    /// The calling thread waits for the barrier of the cluster, at which it arrived.
    ///
    /// # Errors
    /// If it didn't.
    pub(super) fn wait_in_cluster(&mut self, call: &Call<'_>) -> Result<Then, Problem> {
        let barrier = &self.cluster_barrier;
        let Some(&(_, phase)) = barrier.owing.iter().find(|(thread, _)| *thread == call.thread) else {
            return Err(Problem::Misuse("waits at the cluster's barrier without having come".to_owned()));
        };
        if phase != barrier.phase {
            self.pass_cluster(call.thread);
            return Ok(Then::GoOn);
        }
        self.threads[call.thread as usize].state = State::AtCluster;
        Ok(Then::Wait)
    }

    fn pass_cluster(&mut self, thread: u32) {
        self.cluster_barrier.owing.retain(|(other, _)| *other != thread);
        self.cluster_barrier.passed.insert(thread);
        let clock = &mut self.threads[thread as usize].clock;
        self.cluster_barrier.joined.iter().for_each(|joined| clock.absorb(joined));
        let shown = self.cluster_barrier.shown.clone();
        self.show_mbarriers(&shown, thread);
    }

    /// Who is at the barrier of the cluster, in words.
    pub(super) fn describe_cluster_barrier(&self) -> String {
        let (present, expected) = (self.cluster_barrier.arrivals.len(), self.threads.len());
        format!("at the cluster's barrier ({present} of {expected} are there)")
    }
}
