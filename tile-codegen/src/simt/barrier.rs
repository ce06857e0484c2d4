//! Barriers of a block: who is there, and when they open.
//!
//! A barrier without a count waits for every thread, all at the same instruction. A named barrier waits for as many as
//! its instructions say; threads arrive at it with or without waiting.

use super::block::{Block, State};
use super::fault::Problem;
use super::instruction::{Call, Then};
use super::order::{Joined, Of, Ordering, Scope, Snapshot};
use std::collections::BTreeMap;

/// What an instruction asks of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) barrier: u32,
    /// How many threads; `None` for all of the block.
    pub(super) count: Option<u32>,
    /// Whether the thread waits.
    pub(super) waits: bool,
    /// Whether all lanes of a warp must be at the same instruction.
    pub(super) aligned: bool,
    /// Whether it orders memory by itself, rather than with fences around it.
    pub(super) orders: bool,
}

/// A thread that is there.
#[derive(Clone, Debug)]
struct Arrival {
    thread: u32,
    /// The number of its instruction.
    instruction: u32,
    waits: bool,
    snapshot: Option<Snapshot>,
}

#[derive(Clone, Debug, Default)]
struct Barrier {
    expected: u32,
    arrivals: Vec<Arrival>,
}

/// The barriers of the blocks of a cluster, by the block's place in it and their number.
#[derive(Default)]
pub(super) struct Barriers {
    /// Those that somebody is at.
    closed: BTreeMap<(u32, u32), Barrier>,
    /// The threads that arrived without waiting at those that opened, and what was handed on there.
    opened: BTreeMap<(u32, u32), Option<Joined>>,
}

/// What the threads that waited are given, from the calls of all that were there.
pub(super) type Reduction = fn(&[Call<'_>]);

/// The order of memory that a barrier itself gives.
const FULL: Ordering = Ordering { acquires: true, releases: true, scope: Scope::Block, of: Of::All };

impl Block<'_> {
    /// The calling thread comes to a barrier.
    ///
    /// # Errors
    /// If the threads that are there don't fit together.
    pub(super) fn arrive(
        &mut self,
        call: &Call<'_>,
        request: Request,
        reduction: Option<Reduction>,
    ) -> Result<Then, Problem> {
        let expected = request.count.unwrap_or(self.geometry.threads);
        let warp = self.geometry.warp;
        if request.count.is_some() && (expected == 0 || !expected.is_multiple_of(warp)) {
            let what = format!("a barrier is for a multiple of {warp} threads, not for {expected}");
            return Err(Problem::Misuse(what));
        }
        let clock = &mut self.threads[call.thread as usize].clock;
        let snapshot =
            if request.orders { Some(clock.release(FULL.scope)) } else { clock.last_fence(Scope::Block) };
        let arrival =
            Arrival { thread: call.thread, instruction: call.number, waits: request.waits, snapshot };
        self.check_arrival(&arrival, request, expected)?;
        let key = (self.rank_of(call.thread), request.barrier);
        let barrier = self.barriers.closed.entry(key).or_default();
        barrier.expected = expected;
        barrier.arrivals.push(arrival);
        let complete = barrier.arrivals.len() as u32 >= expected;
        if request.waits {
            self.threads[call.thread as usize].state = State::AtBarrier(request.barrier);
        }
        if complete {
            self.open(key.0, request, reduction)?;
        }
        Ok(if request.waits { Then::Wait } else { Then::GoOn })
    }

    fn check_arrival(&self, arrival: &Arrival, request: Request, expected: u32) -> Result<(), Problem> {
        let key = (self.rank_of(arrival.thread), request.barrier);
        let Some(barrier) = self.barriers.closed.get(&key) else { return Ok(()) };
        let Some(first) = barrier.arrivals.first() else { return Ok(()) };
        let at = |arrival: &Arrival| {
            let place = self.instruction(arrival.instruction).place;
            let place = if place.is_known() { format!(" at {place}") } else { String::new() };
            format!("thread {}{place}", self.within(arrival.thread))
        };
        if barrier.expected != expected {
            let what = format!(
                "comes to barrier {} for {expected} threads, where {} is for {}",
                request.barrier,
                at(first),
                barrier.expected
            );
            return Err(Problem::Misuse(what));
        }
        if let Some(again) = barrier.arrivals.iter().find(|other| other.thread == arrival.thread) {
            let what = format!("comes to barrier {} twice: it is there as {}", request.barrier, at(again));
            return Err(Problem::Misuse(what));
        }
        let same_warp = |other: &&Arrival| {
            request.count.is_none()
                || other.thread / self.geometry.warp == arrival.thread / self.geometry.warp
        };
        let differs = |other: &&Arrival| other.instruction != arrival.instruction;
        match barrier.arrivals.iter().filter(same_warp).find(differs).filter(|_| request.aligned) {
            Some(other) => Err(Problem::Misuse(format!(
                "comes to barrier {} at another instruction than {}",
                request.barrier,
                at(other)
            ))),
            None => Ok(()),
        }
    }

    fn open(&mut self, rank: u32, request: Request, reduction: Option<Reduction>) -> Result<(), Problem> {
        let barrier =
            self.barriers.closed.remove(&(rank, request.barrier)).expect("verified: somebody arrived");
        if let Some(odd) = self.incomplete_warp(&barrier).filter(|_| request.aligned) {
            return Err(Problem::Misuse(format!(
                "completes barrier {}, but only some lanes of warp {odd} are there",
                request.barrier
            )));
        }
        self.progress();
        let snapshots: Vec<Snapshot> =
            barrier.arrivals.iter().filter_map(|arrival| arrival.snapshot.clone()).collect();
        let joined = Joined::of(&snapshots);
        let waiting: Vec<&Arrival> = barrier.arrivals.iter().filter(|arrival| arrival.waits).collect();
        if let Some(reduction) = reduction {
            let calls: Vec<_> =
                waiting.iter().map(|arrival| self.call_of(arrival.thread, arrival.instruction)).collect();
            reduction(&calls);
        }
        for arrival in waiting {
            let thread = &mut self.threads[arrival.thread as usize];
            thread.state = State::Ready;
            match &joined {
                Some(joined) if request.orders => thread.clock.absorb(joined),
                Some(joined) => thread.clock.bring(joined, Scope::Block),
                None => {}
            }
        }
        let signals = barrier.arrivals.iter().filter(|arrival| !arrival.waits);
        for arrival in signals.filter(|_| !request.orders) {
            self.barriers.opened.insert((request.barrier, arrival.thread), joined.clone());
        }
        Ok(())
    }

    /// The calling thread waits for the barrier at which it arrived before.
    ///
    /// # Errors
    /// If it didn't.
    pub(super) fn wait_at(&mut self, call: &Call<'_>, number: u32) -> Result<Then, Problem> {
        if let Some(joined) = self.barriers.opened.remove(&(number, call.thread)) {
            let clock = &mut self.threads[call.thread as usize].clock;
            joined.iter().for_each(|joined| clock.bring(joined, Scope::Block));
            return Ok(Then::GoOn);
        }
        let barrier = self.barriers.closed.get_mut(&(self.rank_of(call.thread), number));
        let arrival = barrier
            .and_then(|barrier| barrier.arrivals.iter_mut().find(|arrival| arrival.thread == call.thread));
        let Some(arrival) = arrival else {
            return Err(Problem::Misuse("waits for a barrier at which it didn't arrive".to_owned()));
        };
        arrival.waits = true;
        self.threads[call.thread as usize].state = State::AtBarrier(number);
        Ok(Then::Wait)
    }

    /// A warp of which only some lanes are there.
    fn incomplete_warp(&self, barrier: &Barrier) -> Option<u32> {
        let warp = self.geometry.warp;
        let mut present: BTreeMap<u32, u32> = BTreeMap::new();
        barrier.arrivals.iter().for_each(|arrival| *present.entry(arrival.thread / warp).or_default() += 1);
        let lanes = |number: u32| warp.min(self.geometry.threads - self.within(number * warp));
        let odd = present.into_iter().find(|&(number, count)| count != lanes(number));
        odd.map(|(number, _)| self.within(number * warp) / warp)
    }

    /// Who is at a barrier, in words.
    pub(super) fn describe_barrier(&self, rank: u32, number: u32) -> String {
        let Some(barrier) = self.barriers.closed.get(&(rank, number)) else {
            return format!("at barrier {number}");
        };
        let place = barrier.arrivals.first().map(|first| self.instruction(first.instruction).place);
        let place = place.filter(|place| place.is_known()).map(|place| format!(" at {place}"));
        let name = if number == 0 { "the barrier".to_owned() } else { format!("barrier {number}") };
        let (present, expected) = (barrier.arrivals.len(), barrier.expected);
        format!("at {name}{} ({present} of {expected} are there)", place.unwrap_or_default())
    }
}
