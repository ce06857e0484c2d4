//! What happens before what: vector clocks of threads, and the knowledge that synchronisation hands on. The blocks of a
//! cluster, which run together, know each other's threads one by one.
//!
//! A thread's time goes up whenever it hands on what it did. A thread knows of every other one the time up to which
//! that one's accesses come before its own next access. What nobody handed on is unordered, whatever the order was
//! in this run.
//!
//! Knows numbers of blocks and threads; nothing of memory or instructions.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::rc::Rc;

/// Agents are numbered from here, where no thread's number is.
const AGENTS: u32 = 1 << 16;

/// When something was done: by whom, at which time of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) block: u32,
    /// A thread or an agent.
    pub(super) thread: u32,
    pub(super) time: NonZeroU32,
}

impl Moment {
    /// The time of an agent.
    pub(super) fn of_agent(block: u32, agent: u32, time: NonZeroU32) -> Moment {
        Moment { block, thread: AGENTS + agent, time }
    }

    /// The thread; `None` for an agent.
    pub(super) fn by_thread(self) -> Option<u32> {
        (self.thread < AGENTS).then_some(self.thread)
    }
}

/// How far an atomic access or a fence reaches, from the thread itself to the whole system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Thread,
    Warp,
    Block,
    Cluster,
    Device,
    System,
}

/// What an atomic access or a fence does to the order of other accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ordering {
    pub(super) acquires: bool,
    pub(super) releases: bool,
    pub(super) scope: Scope,
}

/// The blocks of a cluster, which begins at a multiple of so many, and the threads of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) blocks: u32,
    pub(super) threads: u32,
}

impl Shape {
    /// The number of a thread among all of its cluster.
    fn place(self, moment: Moment) -> usize {
        (moment.block % self.blocks * self.threads + moment.thread) as usize
    }

    fn cluster(self, block: u32) -> u32 {
        block / self.blocks
    }
}

/// Per thread and agent of a cluster, the last time that is known of.
#[derive(Clone, Debug, Default)]
struct Times {
    threads: Vec<u32>,
    agents: Vec<u32>,
}

impl Times {
    fn knows(&self, moment: Moment, shape: Shape) -> bool {
        let known = match moment.thread.checked_sub(AGENTS) {
            None => self.threads.get(shape.place(moment)),
            Some(agent) => self.agents.get(agent as usize),
        };
        known.is_some_and(|&known| known >= moment.time.get())
    }

    fn note(&mut self, moment: Moment, shape: Shape) {
        let known = match moment.thread.checked_sub(AGENTS) {
            None => &mut self.threads[shape.place(moment)],
            Some(agent) => {
                let agent = agent as usize;
                if self.agents.len() <= agent {
                    self.agents.resize(agent + 1, 0);
                }
                &mut self.agents[agent]
            }
        };
        *known = moment.time.get().max(*known);
    }

    fn merge(&mut self, other: &Times) {
        maximum(&mut self.threads, &other.threads);
        maximum(&mut self.agents, &other.agents);
    }
}

/// What is known of this cluster and of others.
#[derive(Clone, Debug, Default)]
struct Known {
    own: Times,
    /// By the cluster's number.
    foreign: BTreeMap<u32, Rc<Times>>,
    /// Of this cluster, the last times whose writes a proxy fence made visible to the asynchronous proxy.
    proxied: Rc<Times>,
}

fn maximum(into: &mut Vec<u32>, from: &[u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (into, &from) in into.iter_mut().zip(from) {
        *into = from.max(*into);
    }
}

impl Known {
    fn merge(&mut self, other: &Known) {
        self.own.merge(&other.own);
        for (&cluster, times) in &other.foreign {
            self.merge_foreign(cluster, times);
        }
        if !Rc::ptr_eq(&self.proxied, &other.proxied) && !other.proxied.threads.is_empty() {
            Rc::make_mut(&mut self.proxied).merge(&other.proxied);
        }
    }

    fn merge_foreign(&mut self, cluster: u32, times: &Rc<Times>) {
        let known = self.foreign.entry(cluster).or_insert_with(|| times.clone());
        if !Rc::ptr_eq(known, times) {
            Rc::make_mut(known).merge(times);
        }
    }
}

/// What a thread hands on at a moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    moment: Moment,
    shape: Shape,
    base: Rc<Known>,
    pub(super) scope: Scope,
}

/// What several threads of a cluster handed on.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    known: Rc<Known>,
    /// Knowledge that is part of it.
    covers: Rc<Known>,
}

impl Joined {
    /// What threads of one cluster handed on; `None` if nobody did.
    pub(super) fn of(snapshots: &[Snapshot]) -> Option<Joined> {
        let covers = snapshots.first()?.base.clone();
        let mut known = Known::clone(&covers);
        let mut last = &covers;
        for snapshot in snapshots {
            if !Rc::ptr_eq(&snapshot.base, &covers) && !Rc::ptr_eq(&snapshot.base, last) {
                known.merge(&snapshot.base);
                last = &snapshot.base;
            }
            known.own.note(snapshot.moment, snapshot.shape);
        }
        Some(Joined { known: Rc::new(known), covers })
    }
}

/// The asynchronous operations of a cluster that have ended: per agent, the last time.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended(Vec<u32>);

impl Ended {
    pub(super) fn merge(&mut self, other: &Ended) {
        maximum(&mut self.0, &other.0);
    }
}

/// A thread's time and what it knows.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    moment: Moment,
    shape: Shape,
    base: Rc<Known>,
    /// What a release fence handed to later atomic writes.
    fenced: Option<Snapshot>,
    /// What atomic reads and barriers brought, for an acquire fence to make use of.
    pending: Vec<(Brought, Scope)>,
}

#[derive(Clone, Debug)]
enum Brought {
    One(Snapshot),
    /// With the least scope that holds all of them.
    Many(Joined, Scope),
}

impl Clock {
    /// The clocks of a block's threads, which know nothing.
    #[cfg(test)]
    pub(super) fn of_block(block: u32, threads: u32) -> Vec<Clock> {
        Clock::of_cluster(block, Shape { blocks: 1, threads })
    }

    /// The clocks of the threads of a cluster that begins at a block, which know nothing.
    pub(super) fn of_cluster(first: u32, shape: Shape) -> Vec<Clock> {
        let all = shape.blocks * shape.threads;
        let own = Times { threads: vec![0; all as usize], agents: Vec::new() };
        let base = Rc::new(Known { own, ..Known::default() });
        let clock = |number: u32| {
            let (block, thread) = (first + number / shape.threads, number % shape.threads);
            let moment = Moment { block, thread, time: NonZeroU32::MIN };
            Clock { moment, shape, base: base.clone(), fenced: None, pending: Vec::new() }
        };
        (0..all).map(clock).collect()
    }

    /// Whether a moment is one of the thread's own cluster.
    fn is_near(&self, moment: Moment) -> bool {
        self.shape.cluster(moment.block) == self.shape.cluster(self.moment.block)
    }

    fn is_own(&self, moment: Moment) -> bool {
        (moment.block, moment.thread) == (self.moment.block, self.moment.thread)
    }

    /// Now.
    pub(super) fn moment(&self) -> Moment {
        self.moment
    }

    /// Whether what was done at a moment comes before what this thread does now.
    pub(super) fn knows(&self, moment: Moment) -> bool {
        if self.is_near(moment) {
            self.is_own(moment) || self.base.own.knows(moment, self.shape)
        } else {
            let known = self.base.foreign.get(&self.shape.cluster(moment.block));
            known.is_some_and(|times| times.knows(moment, self.shape))
        }
    }

    /// Whether a write at a moment was made visible to the asynchronous proxy before now.
    pub(super) fn proxied(&self, moment: Moment) -> bool {
        !self.is_near(moment) || self.base.proxied.knows(moment, self.shape)
    }

    /// Later accesses get a time of their own; gives that of the earlier ones.
    pub(super) fn tick(&mut self) -> Moment {
        let before = self.moment;
        self.moment.time = before.time.checked_add(1).expect("verified: the step limit comes first");
        before
    }

    /// Hands on everything that the thread did and knows.
    pub(super) fn release(&mut self, scope: Scope) -> Snapshot {
        Snapshot { moment: self.tick(), shape: self.shape, base: self.base.clone(), scope }
    }

    /// What was handed on comes before what this thread does from now on.
    pub(super) fn acquire(&mut self, snapshot: &Snapshot) {
        let (is_near, shape) = (self.is_near(snapshot.moment), self.shape);
        let own = shape.cluster(self.moment.block);
        let known = Rc::make_mut(&mut self.base);
        if is_near {
            known.merge(&snapshot.base);
            known.own.note(snapshot.moment, shape);
        } else {
            let mut times = snapshot.base.own.clone();
            times.note(snapshot.moment, shape);
            known.merge_foreign(shape.cluster(snapshot.moment.block), &Rc::new(times));
            for (&cluster, times) in snapshot.base.foreign.iter().filter(|(cluster, _)| **cluster != own) {
                known.merge_foreign(cluster, times);
            }
        }
    }

    /// What was done at a moment of this cluster comes before what this thread does from now on.
    pub(super) fn learn(&mut self, moment: Moment) {
        if !self.knows(moment) {
            Rc::make_mut(&mut self.base).own.note(moment, self.shape);
        }
    }

    /// The asynchronous operations of this cluster that the thread knows to have ended.
    pub(super) fn ended(&self) -> Ended {
        Ended(self.base.own.agents.clone())
    }

    /// They ended before what this thread does from now on.
    pub(super) fn learn_ended(&mut self, ended: &Ended) {
        let known = &self.base.own.agents;
        let is_known =
            |(i, &time): (usize, &u32)| known.get(i).is_some_and(|&known| known >= time) || time == 0;
        if !ended.0.iter().enumerate().all(is_known) {
            maximum(&mut Rc::make_mut(&mut self.base).own.agents, &ended.0);
        }
    }

    /// The same of what several threads of this cluster handed on.
    pub(super) fn absorb(&mut self, joined: &Joined) {
        if Rc::ptr_eq(&self.base, &joined.covers) {
            self.base = joined.known.clone();
        } else if !Rc::ptr_eq(&self.base, &joined.known) {
            Rc::make_mut(&mut self.base).merge(&joined.known);
        }
    }

    /// A fence.
    pub(super) fn fence(&mut self, order: Ordering) {
        if order.acquires {
            for (brought, scope) in std::mem::take(&mut self.pending) {
                match brought {
                    _ if !self.reaches(&brought, scope.min(order.scope)) => {
                        self.pending.push((brought, scope))
                    }
                    Brought::One(snapshot) => self.acquire(&snapshot),
                    Brought::Many(joined, _) => self.absorb(&joined),
                }
            }
        }
        if order.releases {
            self.fenced = Some(self.release(order.scope));
        }
    }

    fn reaches(&self, brought: &Brought, scope: Scope) -> bool {
        match brought {
            Brought::One(snapshot) => self.is_reached(snapshot, scope),
            Brought::Many(_, needed) => scope >= *needed,
        }
    }

    /// Whether two parties with this scope in common are in each other's reach.
    fn is_reached(&self, snapshot: &Snapshot, scope: Scope) -> bool {
        let needed = match snapshot.moment {
            moment if moment.block == self.moment.block => Scope::Block,
            moment if self.is_near(moment) => Scope::Cluster,
            _ => Scope::Device,
        };
        scope >= needed || self.is_own(snapshot.moment)
    }

    /// What an atomic write of this order hands on: everything so far, or what the last release fence did.
    pub(super) fn published(&mut self, order: Ordering) -> Option<Snapshot> {
        if order.releases {
            return Some(self.release(order.scope));
        }
        let fenced = self.fenced.clone()?;
        Some(Snapshot { scope: fenced.scope.min(order.scope), ..fenced })
    }

    /// An atomic read of this order saw what was handed on.
    pub(super) fn observe(&mut self, snapshot: &Snapshot, order: Ordering) {
        let scope = snapshot.scope.min(order.scope);
        if !self.is_reached(snapshot, scope) {
            return;
        }
        if order.acquires {
            self.acquire(snapshot);
        } else {
            self.pending.push((Brought::One(snapshot.clone()), scope));
        }
    }

    /// What the last release fence of at least this scope handed on.
    pub(super) fn last_fence(&self, scope: Scope) -> Option<Snapshot> {
        self.fenced.clone().filter(|fenced| fenced.scope >= scope)
    }

    /// What came through an execution barrier, which an acquire fence will make use of that has at least this scope.
    pub(super) fn bring(&mut self, joined: &Joined, needed: Scope) {
        self.pending.push((Brought::Many(joined.clone(), needed), Scope::System));
    }

    /// Everything that comes before now is visible to the asynchronous proxy.
    pub(super) fn fence_proxy(&mut self) {
        let before = self.tick();
        let known = Rc::make_mut(&mut self.base);
        let mut times = known.own.clone();
        times.note(before, self.shape);
        Rc::make_mut(&mut known.proxied).merge(&times);
    }

    /// The block of the thread.
    pub(super) fn block(&self) -> u32 {
        self.moment.block
    }
}

impl Snapshot {
    /// The block whose thread handed it on.
    pub(super) fn block(&self) -> u32 {
        self.moment.block
    }

    /// Whether whoever knows what a clock knows knows what was handed on here.
    pub(super) fn is_known(&self, clock: &Clock) -> bool {
        clock.knows(self.moment)
    }
}

#[cfg(test)]
mod tests;
