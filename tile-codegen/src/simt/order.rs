//! What happens before what: vector clocks of threads, and the knowledge that synchronisation hands on. The blocks of a
//! cluster, which run together, know each other's threads one by one.
//!
//! A thread's time goes up whenever it hands on what it did. A thread knows of every other one the time up to which
//! that one's accesses come before its own next access. What nobody handed on is unordered, whatever the order was
//! in this run.
//!
//! Fences may order shared memory alone. So a thread may know of accesses to shared memory of which, were they accesses to
//! tensors, it wouldn't know.
//!
//! Accesses of tensor memory have an order of their own ([`tensor`]), and the asynchronous proxy sees what fences show it
//! ([`proxy`]).
//!
//! Knows numbers of blocks and threads; nothing of memory or instructions.

mod ended;
mod proxy;
mod tensor;

pub(super) use ended::Ended;
pub(super) use proxy::Fenced;

use proxy::Proxied;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::rc::Rc;

/// Agents are numbered from here, where no thread's number is.
const AGENTS: u32 = 1 << 16;

/// When something was done: by whom, at which time of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// Which accesses an order is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Of {
    /// Those to shared memory.
    Shared,
    /// All.
    All,
}

/// What an atomic access or a fence does to the order of other accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ordering {
    pub(super) acquires: bool,
    pub(super) releases: bool,
    pub(super) scope: Scope,
    pub(super) of: Of,
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

    fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.agents.is_empty()
    }

    fn merge(&mut self, other: &Times) {
        maximum(&mut self.threads, &other.threads);
        maximum(&mut self.agents, &other.agents);
    }
}

/// What is known of another cluster, whose shared memory is out of reach.
#[derive(Clone, Debug, Default)]
struct Foreign {
    times: Rc<Times>,
    /// The last times whose writes to tensors a proxy fence made visible to the asynchronous proxy.
    proxied: Rc<Times>,
}

impl Foreign {
    fn merge(&mut self, other: &Foreign) {
        merge_shared(&mut self.times, &other.times);
        merge_shared(&mut self.proxied, &other.proxied);
    }
}

/// What is known of this cluster and of others.
#[derive(Clone, Debug, Default)]
struct Known {
    own: Times,
    /// By the cluster's number.
    foreign: BTreeMap<u32, Foreign>,
    /// Of this cluster.
    proxied: Proxied,
    /// Of this cluster, the last times whose accesses of tensor memory were handed on.
    tensor: Rc<Times>,
}

fn maximum(into: &mut Vec<u32>, from: &[u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (into, &from) in into.iter_mut().zip(from) {
        *into = from.max(*into);
    }
}

fn merge_shared(into: &mut Rc<Times>, from: &Rc<Times>) {
    if !Rc::ptr_eq(into, from) && !from.is_empty() {
        Rc::make_mut(into).merge(from);
    }
}

impl Known {
    fn merge(&mut self, other: &Known) {
        self.own.merge(&other.own);
        for (&cluster, foreign) in &other.foreign {
            self.merge_foreign(cluster, foreign);
        }
        self.proxied.merge(&other.proxied);
        merge_shared(&mut self.tensor, &other.tensor);
    }

    fn merge_foreign(&mut self, cluster: u32, foreign: &Foreign) {
        self.foreign.entry(cluster).or_insert_with(|| foreign.clone()).merge(foreign);
    }
}

/// What a thread knows.
#[derive(Clone, Debug)]
struct Knowledge {
    /// Of all accesses.
    all: Rc<Known>,
    /// Of those to shared memory, where that is more.
    shared: Option<Rc<Known>>,
}

impl Knowledge {
    fn of(&self, of: Of) -> &Rc<Known> {
        match of {
            Of::Shared => self.shared.as_ref().unwrap_or(&self.all),
            Of::All => &self.all,
        }
    }

    /// Changes what is known of some accesses.
    fn change(&mut self, of: Of, mut change: impl FnMut(Of, &mut Rc<Known>)) {
        let all = &self.all;
        match of {
            Of::Shared => change(Of::Shared, self.shared.get_or_insert_with(|| all.clone())),
            Of::All => {
                self.shared.iter_mut().for_each(|shared| change(Of::Shared, shared));
                change(Of::All, &mut self.all);
            }
        }
    }
}

/// What a thread hands on at a moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    moment: Moment,
    shape: Shape,
    base: Knowledge,
    pub(super) scope: Scope,
    of: Of,
}

/// What several threads of a cluster handed on.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    /// Of all accesses; `None` where nobody handed that on.
    all: Option<Part>,
    /// Of those to shared memory, where that is more.
    shared: Option<Part>,
}

/// What several threads know of some accesses.
#[derive(Clone, Debug)]
struct Part {
    known: Rc<Known>,
    /// Knowledge that is part of it.
    covers: Rc<Known>,
}

impl Joined {
    /// What threads of one cluster handed on; `None` if nobody did.
    pub(super) fn of(snapshots: &[Snapshot]) -> Option<Joined> {
        let has_more = |snapshot: &Snapshot| snapshot.of == Of::Shared || snapshot.base.shared.is_some();
        let more = snapshots.iter().any(has_more);
        let joined = Joined {
            all: Part::of(snapshots, Of::All),
            shared: more.then(|| Part::of(snapshots, Of::Shared)).flatten(),
        };
        (joined.all.is_some() || joined.shared.is_some()).then_some(joined)
    }
}

impl Part {
    /// What those hand on whose order is of these accesses.
    fn of(snapshots: &[Snapshot], of: Of) -> Option<Part> {
        let mut snapshots = snapshots.iter().filter(|snapshot| snapshot.of >= of).peekable();
        let covers = snapshots.peek()?.base.of(of).clone();
        let mut known = Known::clone(&covers);
        let mut last = &covers;
        for snapshot in snapshots {
            let base = snapshot.base.of(of);
            if !Rc::ptr_eq(base, &covers) && !Rc::ptr_eq(base, last) {
                known.merge(base);
                last = base;
            }
            known.own.note(snapshot.moment, snapshot.shape);
        }
        Some(Part { known: Rc::new(known), covers })
    }

    fn add_to(&self, known: &mut Rc<Known>) {
        if Rc::ptr_eq(known, &self.covers) {
            *known = self.known.clone();
        } else if !Rc::ptr_eq(known, &self.known) {
            Rc::make_mut(known).merge(&self.known);
        }
    }
}

/// A thread's time and what it knows.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    moment: Moment,
    shape: Shape,
    base: Knowledge,
    /// What a release fence handed to later atomic writes.
    fenced: Option<Snapshot>,
    /// What atomic reads and barriers brought, for an acquire fence to make use of.
    pending: Vec<(Brought, Scope)>,
    /// The accesses of tensor memory that come before its own next one.
    tensor: Rc<Times>,
}

#[derive(Clone, Debug)]
enum Brought {
    One(Snapshot),
    /// With the least scope that holds all of them.
    Many(Joined, Scope),
}

impl Brought {
    fn of(&self) -> Of {
        let is_of_all = match self {
            Brought::One(snapshot) => snapshot.of == Of::All,
            Brought::Many(joined, _) => joined.all.is_some(),
        };
        if is_of_all { Of::All } else { Of::Shared }
    }
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
        let tensor = Rc::new(own.clone());
        let base = Knowledge { all: Rc::new(Known { own, ..Known::default() }), shared: None };
        let clock = |number: u32| {
            let (block, thread) = (first + number / shape.threads, number % shape.threads);
            let moment = Moment { block, thread, time: NonZeroU32::MIN };
            let tensor = tensor.clone();
            Clock { moment, shape, base: base.clone(), fenced: None, pending: Vec::new(), tensor }
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

    /// Whether what was done at a moment comes before what this thread does now, whatever it was done to.
    pub(super) fn knows(&self, moment: Moment) -> bool {
        self.knows_of(moment, Of::All)
    }

    /// The same of an access.
    pub(super) fn knows_of(&self, moment: Moment, of: Of) -> bool {
        let base = self.base.of(of);
        if self.is_near(moment) {
            self.is_own(moment) || base.own.knows(moment, self.shape)
        } else {
            let known = base.foreign.get(&self.shape.cluster(moment.block));
            known.is_some_and(|foreign| foreign.times.knows(moment, self.shape))
        }
    }

    /// Later accesses get a time of their own; gives that of the earlier ones.
    pub(super) fn tick(&mut self) -> Moment {
        let before = self.moment;
        self.moment.time = before
            .time
            .checked_add(1)
            .expect("a thread hands on less than 2³² times: that is days of simulation");
        before
    }

    /// Hands on everything that the thread did and knows.
    pub(super) fn release(&mut self, scope: Scope) -> Snapshot {
        self.release_of(scope, Of::All)
    }

    /// Hands on what it did and knows of some accesses.
    fn release_of(&mut self, scope: Scope, of: Of) -> Snapshot {
        Snapshot { moment: self.tick(), shape: self.shape, base: self.base.clone(), scope, of }
    }

    /// What was handed on of some accesses comes before what this thread does from now on.
    fn acquire(&mut self, snapshot: &Snapshot, of: Of) {
        let (is_near, shape) = (self.is_near(snapshot.moment), self.shape);
        let own = shape.cluster(self.moment.block);
        let of = of.min(snapshot.of);
        if snapshot.base.shared.is_some() {
            self.base.change(Of::Shared, |_, _| {});
        }
        self.base.change(of, |of, known| {
            let (known, base) = (Rc::make_mut(known), snapshot.base.of(of));
            if is_near {
                known.merge(base);
                known.own.note(snapshot.moment, shape);
                return;
            }
            let mut times = base.own.clone();
            times.note(snapshot.moment, shape);
            let theirs = Foreign { times: Rc::new(times), proxied: base.proxied.tensors.clone() };
            known.merge_foreign(shape.cluster(snapshot.moment.block), &theirs);
            for (&cluster, foreign) in base.foreign.iter().filter(|(cluster, _)| **cluster != own) {
                known.merge_foreign(cluster, foreign);
            }
        });
    }

    /// What was done at a moment of this cluster comes before what this thread does from now on.
    pub(super) fn learn(&mut self, moment: Moment) {
        if !self.knows(moment) {
            let shape = self.shape;
            self.base.change(Of::All, |_, known| Rc::make_mut(known).own.note(moment, shape));
        }
    }

    /// The same of what several threads of this cluster handed on.
    pub(super) fn absorb(&mut self, joined: &Joined) {
        self.absorb_of(joined, Of::All);
    }

    fn absorb_of(&mut self, joined: &Joined, of: Of) {
        if let Some(part) = joined.shared.as_ref().or(joined.all.as_ref().filter(|_| of == Of::Shared)) {
            self.base.change(Of::Shared, |_, known| part.add_to(known));
        } else if let (Some(part), Some(shared)) = (&joined.all, &mut self.base.shared) {
            part.add_to(shared);
        }
        if let Some(part) = joined.all.as_ref().filter(|_| of == Of::All) {
            part.add_to(&mut self.base.all);
        }
    }

    /// A fence.
    pub(super) fn fence(&mut self, order: Ordering) {
        if order.acquires {
            for (brought, scope) in std::mem::take(&mut self.pending) {
                if !self.reaches(&brought, scope.min(order.scope)) {
                    self.pending.push((brought, scope));
                    continue;
                }
                match &brought {
                    Brought::One(snapshot) => self.acquire(snapshot, order.of),
                    Brought::Many(joined, _) => self.absorb_of(joined, order.of),
                }
                // A later fence may order more of it.
                if brought.of() > order.of {
                    self.pending.push((brought, scope));
                }
            }
        }
        if order.releases {
            self.fenced = Some(self.release_of(order.scope, order.of));
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
            return Some(self.release_of(order.scope, order.of));
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
            self.acquire(snapshot, order.of);
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
