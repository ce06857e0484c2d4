//! mbarriers: objects in shared memory that count arrivals and bytes, phase by phase (PTX ISA, "mbarrier").
//!
//! A phase is over when as many arrivals came as the object was made for and no bytes are outstanding. Asynchronous
//! operations attach themselves; in [`Timing::Late`] they do nothing before somebody waits and nobody else can run.

use super::agents::Agent;
use super::block::{Block, State};
use super::fault::Problem;
use super::flight::{Order, Piece, Proxy, Timing};
use super::instruction::{Call, Then};
use super::order::{Clock, Ended, Joined, Moment, Scope, Snapshot};
use std::collections::{BTreeMap, HashSet};

/// The largest count of arrivals and of outstanding bytes (PTX ISA, "Contents of the mbarrier object").
const MOST: i64 = (1 << 20) - 1;

/// Bytes of the object, and their alignment.
const OBJECT_BYTES: usize = 8;

/// What an asynchronous operation does to an mbarrier at its end.
#[derive(Clone, Debug)]
pub(super) enum Attached {
    /// A copy whose bytes are counted.
    Copy { flight: u32, bytes: i64 },
    /// An arrival once these copies of the thread have ended.
    Arrival { flights: Vec<u32> },
}

#[derive(Debug)]
struct Mbarrier {
    expected: i64,
    pending: i64,
    bytes: i64,
    /// How many phases are over.
    phase: u32,
    /// What the arrivals of this phase hand on.
    arrivals: Vec<Snapshot>,
    /// The asynchronous operations that those who arrived in this phase knew to have ended, and those of phases before.
    /// What has ended has ended for everybody, however far an arrival orders what threads do.
    ended_before: [Ended; 2],
    attached: Vec<Attached>,
    /// Operations that ended in this phase.
    ended: Vec<u32>,
    /// What the last phase handed on.
    handed: Handed,
    /// Operations of phases that are over.
    over: Vec<u32>,
    /// The last moment of each agent that they are of, and whether it writes tensor memory.
    moments: BTreeMap<u32, (Moment, bool)>,
    /// When it was made.
    made: Moment,
    /// The operation that stands for it in shadow memory.
    object: u32,
    /// When fences made it visible to asynchronous operations.
    visible: Vec<Moment>,
    /// The threads that waited at the cluster's barrier, to which a thread came after such a fence: they may use it, whatever
    /// else that arrival hands on.
    shown: HashSet<u32>,
}

/// What the arrivals of a phase hand on to whoever acquires it.
#[derive(Clone, Debug, Default)]
struct Handed {
    /// Those of the mbarrier's own block.
    own: Option<Joined>,
    /// Those of other blocks too, if they reach that far.
    all: Option<Joined>,
}

impl Handed {
    fn of(snapshots: &[Snapshot], block: u32) -> Handed {
        let (own, others): (Vec<Snapshot>, Vec<Snapshot>) =
            snapshots.iter().cloned().partition(|snapshot| snapshot.block() == block);
        let reaching = others.into_iter().filter(|snapshot| snapshot.scope >= Scope::Cluster);
        let all: Vec<Snapshot> = own.iter().cloned().chain(reaching).collect();
        Handed { own: Joined::of(&own), all: Joined::of(&all) }
    }

    /// What a wait at this scope brings.
    fn at(&self, scope: Scope) -> Option<&Joined> {
        if scope >= Scope::Cluster { self.all.as_ref() } else { self.own.as_ref() }
    }
}

/// The mbarriers of a cluster's blocks, by address.
#[derive(Default)]
pub(super) struct Mbarriers(BTreeMap<u64, Mbarrier>);

/// An arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) count: u32,
    /// Bytes that the phase waits for besides.
    pub(super) bytes: u32,
    /// Whether it hands on what the thread did, and how far.
    pub(super) releases: Option<Scope>,
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The end of the phase of this parity.
    Parity(u32),
    /// The end of the phase in which an arrival gave this state.
    State(u64),
}

/// How a thread waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) awaited: Awaited,
    /// Whether what was handed on comes before what follows, and from how far.
    pub(super) acquires: Option<Scope>,
    /// Whether the instruction itself waits for a while.
    pub(super) blocks: bool,
}

impl Block<'_> {
    fn mbarrier(&mut self, call: &Call<'_>, address: u64) -> Result<&mut Mbarrier, Problem> {
        let name = self.name_of(call.thread, address);
        let clock = &self.threads[call.thread as usize].clock;
        match self.mbarriers.0.get_mut(&address) {
            None => Err(Problem::Misuse(format!("there is no mbarrier at {name}"))),
            Some(barrier) if !clock.knows(barrier.made) && !barrier.shown.contains(&call.thread) => {
                Err(Problem::Misuse(format!(
                    "uses the mbarrier at {name}, which thread {} initialises with no barrier between them",
                    barrier.made.thread
                )))
            }
            Some(barrier) => Ok(barrier),
        }
    }

    /// A place in shared memory, in words for a thread.
    fn name_of(&self, thread: u32, address: u64) -> String {
        match self.home(address).filter(|(rank, _)| *rank != self.rank_of(thread)) {
            Some((rank, offset)) => {
                format!("byte {offset} of shared memory of block {}", self.number + u64::from(rank))
            }
            None => format!("byte {} of shared memory", self.offset(thread, address)),
        }
    }

    /// The block in whose shared memory an mbarrier lies.
    fn home_of_mbarrier(&self, address: u64) -> u64 {
        let (rank, _) = self.home(address).expect("verified: mbarriers lie in shared memory");
        self.number + u64::from(rank)
    }

    /// Whether an mbarrier is the calling thread's own block's.
    ///
    /// # Errors
    /// If it is another's.
    pub(super) fn check_own(&self, call: &Call<'_>, address: u64) -> Result<(), Problem> {
        if self.is_own(call.thread, address) || !self.is_shared(address) {
            return Ok(());
        }
        let name = self.name_of(call.thread, address);
        Err(Problem::Misuse(format!("`{}` is for the block's own memory, not {name}", call.instruction.name)))
    }

    /// `mbarrier.init`.
    pub(super) fn make_mbarrier(&mut self, call: &Call<'_>, address: u64, count: u32) -> Result<(), Problem> {
        if count == 0 || i64::from(count) > MOST {
            return Err(Problem::Misuse(format!("an mbarrier is for 1 to {MOST} arrivals, not for {count}")));
        }
        if !self.is_own(call.thread, address) {
            return Err(Problem::Misuse("an mbarrier lies in shared memory".to_owned()));
        }
        self.check_plain(call, address, [OBJECT_BYTES; 2], true)?;
        let made = self.threads[call.thread as usize].clock.tick();
        let object = vec![Piece { from: None, to: Some(address), bytes: OBJECT_BYTES }];
        let object = self.issue(Order::of(call, Proxy::Generic, object, made))?;
        let expected = i64::from(count);
        let barrier = Mbarrier {
            expected,
            pending: expected,
            bytes: 0,
            phase: 0,
            arrivals: Vec::new(),
            ended_before: Default::default(),
            attached: Vec::new(),
            ended: Vec::new(),
            handed: Handed::default(),
            over: Vec::new(),
            moments: BTreeMap::new(),
            made,
            object,
            visible: Vec::new(),
            shown: HashSet::new(),
        };
        self.mbarriers.0.insert(address, barrier);
        Ok(())
    }

    /// `mbarrier.inval`: the bytes are memory again.
    pub(super) fn unmake_mbarrier(&mut self, call: &Call<'_>, address: u64) -> Result<(), Problem> {
        let barrier = self.mbarrier(call, address)?;
        let (object, busy) = (barrier.object, !barrier.attached.is_empty());
        if busy {
            return Err(Problem::Misuse("ends an mbarrier that asynchronous operations will use".to_owned()));
        }
        self.mbarriers.0.remove(&address);
        self.land(object, call.thread);
        Ok(())
    }

    /// The fence that makes new mbarriers visible to asynchronous operations: those of the thread, or with `known` all
    /// that were made before.
    pub(super) fn fence_mbarriers(&mut self, thread: u32, known: bool) {
        let clock = &mut self.threads[thread as usize].clock;
        let own = |moment: Moment, clock: &Clock| {
            let now = clock.moment();
            (moment.block, moment.thread) == (now.block, now.thread)
        };
        for barrier in self.mbarriers.0.values_mut() {
            let covers = if known { clock.knows(barrier.made) } else { own(barrier.made, clock) };
            if covers && !barrier.visible.iter().any(|&fence| clock.knows(fence)) {
                barrier.visible.push(clock.tick());
            }
        }
    }

    /// The mbarriers that a fence of a thread made visible to asynchronous operations.
    pub(super) fn fenced_by(&self, thread: u32) -> Vec<u64> {
        let now = self.threads[thread as usize].clock.moment();
        let is_own = |fence: &Moment| (fence.block, fence.thread) == (now.block, now.thread);
        let fenced = self.mbarriers.0.iter().filter(|(_, barrier)| barrier.visible.iter().any(is_own));
        fenced.map(|(&address, _)| address).collect()
    }

    /// Shows mbarriers to a thread.
    pub(super) fn show_mbarriers(&mut self, fenced: &[u64], thread: u32) {
        for address in fenced {
            if let Some(barrier) = self.mbarriers.0.get_mut(address) {
                barrier.shown.insert(thread);
            }
        }
    }

    /// An arrival of the calling thread; gives the state of the phase.
    pub(super) fn arrive_at(
        &mut self,
        call: &Call<'_>,
        address: u64,
        arrival: Arrival,
    ) -> Result<u64, Problem> {
        self.mbarrier(call, address)?;
        self.note_remote(call, address);
        let clock = &mut self.threads[call.thread as usize].clock;
        let snapshot = arrival.releases.map(|scope| clock.release(scope));
        let ended = clock.ended();
        let barrier = self.mbarrier(call, address)?;
        let state = u64::from(barrier.phase);
        barrier.arrivals.extend(snapshot);
        barrier.ended_before[0].merge(&ended);
        barrier.bytes += i64::from(arrival.bytes);
        barrier.pending -= i64::from(arrival.count);
        self.after_change(address)?;
        Ok(state)
    }

    /// Bytes that the phase waits for, or with a negative number that it needn't wait for any more.
    pub(super) fn expect_bytes(&mut self, call: &Call<'_>, address: u64, bytes: i64) -> Result<(), Problem> {
        self.mbarrier(call, address)?.bytes += bytes;
        self.after_change(address)
    }

    /// The arrival of a thread that waits for its copies, as one that is expected besides.
    pub(super) fn expect_arrival(&mut self, call: &Call<'_>, address: u64) -> Result<(), Problem> {
        self.mbarrier(call, address)?.pending += 1;
        Ok(())
    }

    /// Whether asynchronous operations of the calling thread may use the mbarrier: a fence made it visible to them, and
    /// what the fence's thread did comes before.
    pub(super) fn check_mbarrier(&mut self, call: &Call<'_>, address: u64) -> Result<(), Problem> {
        let barrier = self.mbarrier(call, address)?;
        let (fences, is_shown) = (barrier.visible.clone(), barrier.shown.contains(&call.thread));
        let clock = &self.threads[call.thread as usize].clock;
        if is_shown || fences.iter().any(|&fence| clock.knows(fence)) {
            return Ok(());
        }
        let missing = "uses an mbarrier that no `fence.mbarrier_init` or `fence.proxy.async` made visible to \
                       asynchronous operations";
        Err(Problem::Misuse(match fences.first() {
            None => missing.to_owned(),
            Some(fence) => {
                format!("{missing} before a barrier: the fence of thread {} isn't ordered", fence.thread)
            }
        }))
    }

    /// Begins what a thread has had written to shared memory of a block of the cluster, whose bytes an mbarrier there counts.
    ///
    /// # Errors
    /// As [`Block::issue`], and if that completes more than the mbarrier is for.
    pub(super) fn issue_counted(
        &mut self,
        call: &Call<'_>,
        order: Order,
        barrier: u64,
    ) -> Result<(), Problem> {
        let written = || order.pieces.iter().filter_map(|piece| Some((piece.to?, piece.bytes)));
        let bytes = written().map(|(_, bytes)| bytes as i64).sum();
        let (to, _) = written().next().expect("verified: it writes something");
        let moment = order.moment;
        let flight = self.issue(order)?;
        self.note_remote_at(call.thread, to, moment, &call.instruction.name, call.place());
        self.attach(call, barrier, Attached::Copy { flight, bytes })
    }

    /// Adds an asynchronous operation. An arrival comes after everything that had ended when the thread asked for it.
    pub(super) fn attach(
        &mut self,
        call: &Call<'_>,
        address: u64,
        attached: Attached,
    ) -> Result<(), Problem> {
        if matches!(attached, Attached::Arrival { .. }) {
            let ended = self.threads[call.thread as usize].clock.ended();
            self.mbarrier(call, address)?.ended_before[0].merge(&ended);
        }
        let barrier = self.mbarrier(call, address)?;
        barrier.attached.push(attached);
        if self.timing == Timing::Early { self.finish_attached(address) } else { Ok(()) }
    }

    /// The next time of what completes on an mbarrier.
    pub(super) fn moment_on(&mut self, address: u64) -> Moment {
        self.agents.next(self.home_of_mbarrier(address), Agent::Barrier(address))
    }

    /// Everything attached to an mbarrier comes to its end.
    fn finish_attached(&mut self, address: u64) -> Result<(), Problem> {
        let Some(barrier) = self.mbarriers.0.get_mut(&address) else { return Ok(()) };
        for attached in std::mem::take(&mut barrier.attached) {
            let flights = match &attached {
                Attached::Copy { flight, .. } => vec![*flight],
                Attached::Arrival { flights } => flights.clone(),
            };
            flights.iter().for_each(|&flight| self.arrive_in_memory(flight));
            let barrier = self.mbarriers.0.get_mut(&address).expect("verified: it was there");
            barrier.ended.extend(&flights);
            match attached {
                Attached::Copy { bytes, .. } => barrier.bytes -= bytes,
                Attached::Arrival { .. } => barrier.pending -= 1,
            }
            self.after_change(address)?;
        }
        Ok(())
    }

    /// Ends the phase if everything came.
    fn after_change(&mut self, address: u64) -> Result<(), Problem> {
        let (Some((_, offset)), Some(barrier)) = (self.home(address), self.mbarriers.0.get_mut(&address))
        else {
            return Ok(());
        };
        if barrier.pending < 0 {
            return Err(Problem::Misuse(format!(
                "arrives at the mbarrier at byte {offset} of shared memory more often than the {} times it is for",
                barrier.expected
            )));
        }
        if barrier.bytes.abs() > MOST {
            let what = format!("an mbarrier counts up to {MOST} bytes, not {}", barrier.bytes);
            return Err(Problem::Misuse(what));
        }
        if barrier.pending != 0 || barrier.bytes != 0 {
            return Ok(());
        }
        barrier.phase += 1;
        barrier.pending = barrier.expected;
        barrier.handed = Handed::of(&std::mem::take(&mut barrier.arrivals), barrier.made.block);
        let ended = std::mem::take(&mut barrier.ended);
        for &flight in &ended {
            let flight = self.flights.of(flight);
            let moment = flight.moment();
            barrier.moments.insert(moment.thread, (moment, flight.accumulator().is_some()));
        }
        let [coming, before] = &mut barrier.ended_before;
        before.merge(&std::mem::take(coming));
        barrier.over.extend(ended);
        let parity = barrier.phase & 1;
        for thread in &mut self.threads {
            if matches!(thread.state, State::AtPhase(at, awaited) if at == address && awaited != parity) {
                thread.state = State::Ready;
            }
        }
        self.progress();
        Ok(())
    }

    /// A wait of the calling thread; gives whether the phase is over.
    pub(super) fn wait_for(&mut self, call: &Call<'_>, address: u64, wait: Wait) -> Result<Then, Problem> {
        let timing = self.timing;
        let barrier = self.mbarrier(call, address)?;
        let parity = match wait.awaited {
            Awaited::Parity(parity) => parity & 1,
            Awaited::State(state) => state as u32 & 1,
        };
        if barrier.phase & 1 != parity {
            let joined = wait.acquires.and_then(|scope| barrier.handed.at(scope)).cloned();
            let (moments, ended) = (barrier.moments.clone(), barrier.ended_before[1].clone());
            let over = std::mem::take(&mut barrier.over);
            self.land_each(over, call.thread);
            let clock = &mut self.threads[call.thread as usize].clock;
            if let Some(joined) = joined {
                clock.absorb(&joined);
            }
            clock.learn_ended(&ended);
            for (moment, of_tensor_memory) in moments.into_values() {
                clock.learn(moment);
                if of_tensor_memory {
                    clock.learn_tensor(moment);
                }
            }
            call.give_word(0, 1);
            return Ok(Then::GoOn);
        }
        call.give_word(0, 0);
        if wait.blocks {
            self.threads[call.thread as usize].state = State::AtPhase(address, parity);
            // A device may let the instruction's time run out: it says no, and the kernel must ask again.
            return Ok(if timing == Timing::Late { Then::Wait } else { Then::Retry });
        }
        self.polls_phase(call, address, parity)?;
        Ok(Then::Wait)
    }

    /// A thread asks again and again: what would only happen if it waited happens after a while.
    fn polls_phase(&mut self, call: &Call<'_>, address: u64, parity: u32) -> Result<(), Problem> {
        if self.turns_idled() > 2 * self.threads.len() as u32 {
            self.finish_attached(address)?;
        }
        let what = self.describe_phase(address, parity);
        let thread = self.within(call.thread);
        self.idles_for(call.place(), Some(format!("thread {thread} {what}")));
        Ok(())
    }

    /// Nobody can run: what somebody waits for goes on. Says whether anything did.
    pub(super) fn advance_awaited(&mut self) -> bool {
        for thread in 0..self.threads.len() {
            let State::AtPhase(address, _) = self.threads[thread].state else { continue };
            if self.mbarriers.0.get(&address).is_none_or(|barrier| barrier.attached.is_empty()) {
                continue;
            }
            if let Err(problem) = self.finish_attached(address) {
                self.fail(thread as u32, self.place_of(thread as u32), problem);
                return false;
            }
            if self.threads.iter().any(|thread| thread.state == State::Ready) {
                return true;
            }
        }
        false
    }

    /// What a thread at an mbarrier waits for, in words.
    pub(super) fn describe_phase(&self, address: u64, parity: u32) -> String {
        let offset = self.home(address).map_or(0, |(_, offset)| offset);
        let name = format!("the mbarrier at byte {offset} of shared memory");
        let Some(barrier) = self.mbarriers.0.get(&address) else { return format!("waits for {name}") };
        let Mbarrier { pending, expected, bytes, .. } = barrier;
        format!(
            "waits for the phase of parity {parity} of {name}, which misses {pending} of {expected} arrivals and \
             {bytes} bytes"
        )
    }
}
