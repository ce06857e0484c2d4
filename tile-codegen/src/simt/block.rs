//! One block, or the blocks of a cluster, which run together: their threads as coroutines that take turns, and what they
//! wait for. Threads are numbered through all blocks of the cluster.
//!
//! A thread runs until it waits or ends; then the next one that can ([`super::running`]). So a run is reproducible, and only
//! one thread touches memory at a time. What depends on the order is for [`super::shadow`] to find.

use super::agents::Agents;
use super::barrier::Barriers;
use super::cells::Cells;
use super::cluster::{ClusterBarrier, Remote};
use super::fault::{Fault, Problem};
use super::flight::{Flights, Timing};
use super::global::Global;
use super::groups::Queues;
use super::instruction::{Call, Instruction, Operation, Program, Then};
use super::mbarrier::Mbarriers;
use super::memory::{SharedMemory, Touch};
use super::operations::Resource;
use super::order::{Clock, Of, Ordering, Scope, Shape};
use super::polls::{Awaited, Polls};
use super::running::Pause;
use super::steady::Steady;
use super::tensor_memory::TensorMemories;
use corosensei::Yielder;
use std::cell::Cell as Slot;
use std::ptr;
use tile_ir::Loc;

/// A kernel's code: its slots.
pub(super) type ThreadEntry = unsafe extern "C" fn(*const u64);

/// Turns that threads give up one after the other, per thread, while nobody gets anywhere, before one is said to wait
/// for nothing.
const IDLE_TURNS: u32 = 2000;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// Waits at its block's barrier of this number.
    AtBarrier(u32),
    /// Waits at the cluster's barrier.
    AtCluster,
    /// Waits for the other parties of this instruction.
    AtCollective(u32),
    /// Waits for the mbarrier at this address, until its phase isn't of this parity.
    AtPhase(u64, u32),
    Ended,
}

/// The extent of a block, and of a cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    /// Threads per block: a multiple of the lanes of a warp, where several blocks are a cluster.
    pub(super) threads: u32,
    /// Blocks that run together.
    pub(super) cluster: u32,
    /// Lanes per warp.
    pub(super) warp: u32,
    /// Bytes of stack per thread.
    pub(super) stack: usize,
}

/// A thread.
pub(super) struct Thread {
    pub(super) state: State,
    pub(super) clock: Clock,
    /// The last instruction that it came to.
    at: Option<u32>,
    yielder: *const Yielder<(), ()>,
    /// The buffers of the instruction that it carries out.
    buffers: [*mut u8; 2],
    /// The asynchronous operations that it issued.
    pub(super) queues: Queues,
    /// Its last access, if it may wait by that.
    last_atomic: Option<Polled>,
    /// What it read of tensors atomically.
    pub(super) polls: Polls,
    /// What loops carry in which it may wait, in short.
    pub(super) carried: Vec<u64>,
}

/// What a thread came to atomically.
struct Polled {
    /// Its address, and how many bytes it is.
    range: [u64; 2],
    /// What was there before, if it came there before as well.
    seen: Option<Vec<u8>>,
}

impl Polled {
    /// What is there.
    ///
    /// # Safety
    /// The range is memory of the program.
    unsafe fn bytes(&self) -> Vec<u8> {
        let [address, bytes] = self.range;
        // SAFETY: the caller says that the range is there; coroutines of one thread take turns, so nobody writes meanwhile.
        unsafe { std::slice::from_raw_parts(address as *const u8, bytes as usize) }.to_vec()
    }
}

/// A block in progress, or several of a cluster.
pub(super) struct Block<'g> {
    /// The number of the first one.
    pub(super) number: u64,
    /// How many blocks run.
    pub(super) blocks: u64,
    pub(super) geometry: Geometry,
    pub(super) timing: Timing,
    /// The thread that runs.
    pub(super) running: u32,
    pub(super) threads: Vec<Thread>,
    pub(super) program: &'g Program,
    /// What is known of shared memory's bytes, block by block.
    pub(super) shared: Cells,
    pub(super) memory: SharedMemory,
    /// The memory of the launch, while the block runs; otherwise empty.
    pub(super) global: Global,
    pub(super) barriers: Barriers,
    pub(super) cluster_barrier: ClusterBarrier,
    /// What threads did to shared memory of other blocks.
    pub(super) remote: Vec<Remote>,
    pub(super) mbarriers: Mbarriers,
    pub(super) agents: Agents,
    pub(super) flights: Flights,
    pub(super) tensor_memories: TensorMemories,
    /// The buffer resources that kernels of AMD's made.
    pub(super) resources: Vec<Resource>,
    /// Turns given up since anybody got anywhere.
    idle_turns: u32,
    /// Accesses since the turn began.
    pub(super) accesses: u32,
    /// What it stands aside for.
    pub(super) aside: Option<Awaited>,
    pub(super) steady: Steady,
    fault: Option<Fault>,
}

thread_local! {
    /// The block that this thread of the host runs.
    static CURRENT: Slot<*mut Block<'static>> = const { Slot::new(ptr::null_mut()) };
}

/// Lends the running block. No reference to it is alive when a thread gives up its turn.
pub(super) fn current<R>(action: impl FnOnce(&mut Block<'_>) -> R) -> R {
    let block = CURRENT.get();
    assert!(!block.is_null(), "generated code runs within `while_running`");
    // SAFETY: `while_running` set the pointer to a block that is there as long as its coroutines run, and the closures given here
    // neither switch coroutines nor come back here.
    action(unsafe { &mut *block })
}

/// Ends the running thread's turn; returns at its next one.
fn give_up_turn() {
    let yielder = current(|block| block.threads[block.running as usize].yielder);
    // SAFETY: the coroutine that runs this stored its own yielder, which lives as long as the coroutine.
    unsafe { (*yielder).suspend(()) };
}

/// Carries out an instruction.
pub(super) fn execute(number: u32, buffers: [*mut u8; 2]) {
    loop {
        match current(|block| block.execute(number, buffers)) {
            Then::GoOn => return,
            Then::Wait => return give_up_turn(),
            Then::Retry => give_up_turn(),
        }
    }
}

/// Makes a block the one that this thread of the host runs.
pub(super) fn while_running<R>(block: &mut Block<'_>, action: impl FnOnce() -> R) -> R {
    CURRENT.set(ptr::from_mut(block).cast());
    let result = action();
    CURRENT.set(ptr::null_mut());
    result
}

/// Notes an access; one that is wrong is never made.
pub(super) fn access(touch: Touch) {
    if current(|block| block.polls(&touch)) {
        give_up_turn();
    }
    let problem = current(|block| block.touch(touch).err());
    if let Some(problem) = problem {
        give_up(current(|block| block.place_of_access(touch)), problem);
    }
}

/// A fence; one that hands on what isn't done is never made.
pub(super) fn fence(order: Ordering) {
    let unreleased = current(|block| block.order(order).err());
    if let Some((place, problem)) = unreleased {
        give_up(place, problem);
    }
}

/// Ends the block with a fault of the running thread's.
fn give_up(place: Loc, problem: Problem) -> ! {
    current(|block| block.fail(block.running, place, problem));
    give_up_turn();
    unreachable!("a block that failed isn't resumed");
}

impl Block<'_> {
    /// The place of a thread's block in its cluster.
    pub(super) fn rank_of(&self, thread: u32) -> u32 {
        thread / self.geometry.threads
    }

    /// The number of a thread's block.
    pub(super) fn block_of(&self, thread: u32) -> u64 {
        self.number + u64::from(self.rank_of(thread))
    }

    /// The number of a thread in its block.
    pub(super) fn within(&self, thread: u32) -> u32 {
        thread % self.geometry.threads
    }

    pub(super) fn fail(&mut self, thread: u32, place: Loc, problem: Problem) {
        let fault = Fault { block: self.block_of(thread), thread: self.within(thread), place, problem };
        self.fault.get_or_insert(fault);
    }

    /// Somebody got somewhere: waiting may have made sense.
    pub(super) fn progress(&mut self) {
        self.idle_turns = 0;
    }

    /// Orders what the running thread does.
    ///
    /// # Errors
    /// A copy to a tensor that other blocks are told of and that may go on, with its place.
    fn order(&mut self, order: Ordering) -> Result<(), (Loc, Problem)> {
        let running = self.running as usize;
        if order.releases && order.of == Of::All && order.scope > Scope::Block {
            let going_on = self.threads[running].queues.bulk.all();
            self.check_writes(&going_on)?;
        }
        self.threads[running].clock.fence(order);
        Ok(())
    }

    fn execute(&mut self, number: u32, buffers: [*mut u8; 2]) -> Then {
        let (thread, program) = (self.running, self.program);
        let instruction = &program.instructions[number as usize];
        let state = &mut self.threads[thread as usize];
        (state.buffers, state.last_atomic, state.at) = (buffers, None, Some(number));
        if !instruction.repeats {
            self.changes();
        }
        if let Some(recorder) = &mut self.global.recorder {
            recorder.instruction(number);
        }
        // SAFETY: the code that calls gives buffers of its stack frame, and stays in the call meanwhile.
        let call = unsafe { Call::new(thread, number, instruction, buffers) };
        let result = match &instruction.operation {
            Operation::Alone(run) => run(self, &call).map_err(|problem| (thread, problem)),
            Operation::Together { party, run } => self.meet(&call, *party, run.as_ref()),
        };
        match result {
            Ok(then) => then,
            Err((thread, problem)) => {
                self.fail(thread, instruction.place, problem);
                Then::Wait
            }
        }
    }

    /// The call that a waiting thread is in.
    pub(super) fn call_of(&self, thread: u32, number: u32) -> Call<'static> {
        let program: &Program = self.program;
        // SAFETY: the program outlives the block, and calls are used within it alone.
        let instruction: &'static Instruction =
            unsafe { &*ptr::from_ref(&program.instructions[number as usize]) };
        // SAFETY: a thread that waits in an instruction keeps the frame with its buffers.
        unsafe { Call::new(thread, number, instruction, self.threads[thread as usize].buffers) }
    }

    /// The instruction of a number.
    pub(super) fn instruction(&self, number: u32) -> &Instruction {
        &self.program.instructions[number as usize]
    }

    /// A thread that reads the same address atomically once more may wait for another one: that one's turn comes. Where
    /// something else is there than the last time, somebody got somewhere: in loops that exchange an element if it is as it
    /// was read, one thread does whenever another fails.
    fn polls(&mut self, touch: &Touch) -> bool {
        let stands_aside = self.asks_blocks(touch) && self.stands_aside_for(touch);
        let range = self.asks(touch).then_some([touch.address, touch.kind.bytes]);
        let thread = &mut self.threads[self.running as usize];
        let last = thread.last_atomic.take().filter(|last| Some(last.range) == range);
        // SAFETY: this thread's last access was to these bytes, and was found to be to memory that is there.
        let seen = last.as_ref().map(|last| unsafe { last.bytes() });
        thread.last_atomic = range.map(|range| Polled { range, seen: seen.clone() });
        let Some(last) = last else { return stands_aside };
        match last.seen {
            before @ Some(_) if before != seen => self.progress(),
            // What it waits for may come of another block.
            _ if self.asks_blocks(touch) => self.idle_turns = self.idle_turns.saturating_add(1),
            _ => self.idles_for(self.place_of_access(*touch), None),
        }
        true
    }

    /// A thread gives up its turn and may find that nothing has changed; `awaited`: what it looks for.
    pub(super) fn idles_for(&mut self, place: Loc, awaited: Option<String>) {
        self.idle_turns += 1;
        if self.idle_turns > IDLE_TURNS * self.threads.len() as u32 {
            self.fail(self.running, place, awaited.map_or(Problem::Spins, Problem::Stuck));
        }
    }

    /// Turns given up since anybody got anywhere.
    pub(super) fn turns_idled(&self) -> u32 {
        self.idle_turns
    }

    /// The op that a thread is at.
    pub(super) fn place_of(&self, thread: u32) -> Loc {
        self.threads[thread as usize].at.map_or(Loc::UNKNOWN, |number| self.instruction(number).place)
    }
}

/// What a block begins with.
pub(super) struct Start<'g> {
    /// The number of the first block.
    pub(super) number: u64,
    /// How many blocks run.
    pub(super) blocks: u64,
    pub(super) geometry: Geometry,
    pub(super) timing: Timing,
    pub(super) program: &'g Program,
    pub(super) memory: SharedMemory,
}

impl<'g> Block<'g> {
    pub(super) fn new(start: Start<'g>) -> Block<'g> {
        let thread = |clock| Thread {
            state: State::Ready,
            clock,
            at: None,
            yielder: ptr::null(),
            buffers: [ptr::null_mut(); 2],
            queues: Queues::default(),
            last_atomic: None,
            polls: Polls::default(),
            carried: Vec::new(),
        };
        let Geometry { threads, cluster, .. } = start.geometry;
        let clocks = Clock::of_cluster(start.number as u32, Shape { blocks: cluster, threads });
        Block {
            number: start.number,
            blocks: start.blocks,
            geometry: start.geometry,
            timing: start.timing,
            running: 0,
            threads: clocks.into_iter().map(thread).collect(),
            program: start.program,
            shared: Cells::new(start.memory.bytes * cluster as usize),
            memory: start.memory,
            global: Global::default(),
            barriers: Barriers::default(),
            cluster_barrier: ClusterBarrier::default(),
            remote: Vec::new(),
            mbarriers: Mbarriers::default(),
            agents: Agents::default(),
            flights: Flights::default(),
            tensor_memories: TensorMemories::default(),
            resources: Vec::new(),
            idle_turns: 0,
            accesses: 0,
            aside: None,
            steady: Steady::default(),
            fault: None,
        }
    }
}

impl Block<'_> {
    /// Nobody can run: what is under way asynchronously goes on, or the block is over or stuck. Says whether
    /// somebody can run now.
    pub(super) fn wake(&mut self) -> bool {
        if self.threads.iter().all(|thread| thread.state == State::Ended) {
            return false;
        }
        if self.advance_awaited() {
            return true;
        }
        self.stuck();
        false
    }

    /// The running thread begins.
    pub(super) fn begin_thread(&mut self, yielder: *const Yielder<(), ()>) {
        self.threads[self.running as usize].yielder = yielder;
    }

    /// Whether the threads' turns are over, if only for now.
    pub(super) fn pause(&self) -> Option<Pause> {
        match (&self.fault, &self.aside) {
            (Some(_), _) => Some(Pause::Over),
            (None, Some(_)) => Some(Pause::Aside),
            (None, None) => None,
        }
    }

    /// Other blocks may have got somewhere.
    pub(super) fn return_from_aside(&mut self) {
        self.aside = None;
        self.progress();
    }

    /// The threads' turns are over: what is left behind, and what went wrong.
    ///
    /// # Errors
    /// The first fault.
    pub(super) fn finish(&mut self) -> Result<(), Fault> {
        let cluster = self.geometry.cluster;
        self.global.forget(&self.memory.all(cluster), &(self.number..self.number + u64::from(cluster)));
        if self.fault.is_none()
            && let Err((thread, place, problem)) =
                self.land_all().and_then(|()| self.check_remote()).and_then(|()| self.check_tensor_memory())
        {
            self.fail(thread, place, problem);
        }
        self.fault.take().map_or(Ok(()), Err)
    }
}
