//! One block: its threads as coroutines that take turns, and what they wait for.
//!
//! A thread runs until it waits or ends; then the next one that can. So a run is reproducible, and only one
//! thread touches memory at a time. What depends on the order is for [`super::shadow`] to find.

use super::agents::Agents;
use super::barrier::Barriers;
use super::fault::{Fault, Memory, Problem};
use super::flight::{Flight, Timing};
use super::global::Global;
use super::groups::Queues;
use super::instruction::{Call, Instruction, Operation, Then};
use super::mbarrier::Mbarriers;
use super::operations::Resource;
use super::order::{Clock, Ordering};
use super::shadow::{Access, Cell};
use super::stack;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell as Slot;
use std::ptr;
use tile_ir::Loc;

/// A kernel's code: its slots.
pub(super) type ThreadEntry = unsafe extern "C" fn(*const u64);

/// Turns that threads give up one after the other, per thread, while nobody gets anywhere, before one is said to wait
/// for nothing.
const IDLE_TURNS: u32 = 2000;

/// Accesses that a thread makes within one turn before it is said to go round and round.
const ACCESSES_PER_TURN: u32 = 1 << 27;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// Waits at the barrier of this number.
    AtBarrier(u32),
    /// Waits for the other parties of this instruction.
    AtCollective(u32),
    /// Waits for the mbarrier at this address, until its phase isn't of this parity.
    AtPhase(u64, u32),
    Ended,
}

/// An instruction's access to memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) address: u64,
    pub(super) kind: AccessKind,
    pub(super) place: Loc,
}

/// An address space that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Global,
    Shared,
    /// Whichever the address lies in; a thread's own memory isn't watched.
    Generic,
}

/// An access but for its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessKind {
    pub(super) bytes: u64,
    pub(super) alignment: u64,
    pub(super) space: Space,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// The order of an atomic access.
    pub(super) atomic: Option<Ordering>,
}

/// The extent of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    /// Threads per block.
    pub(super) threads: u32,
    /// Lanes per warp.
    pub(super) warp: u32,
    /// Bytes of stack per thread.
    pub(super) stack: usize,
}

/// A thread of the block.
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
    /// The address of its last access, if that was atomic.
    last_atomic: Option<u64>,
}

/// A block in progress.
pub(super) struct Block<'g> {
    pub(super) number: u64,
    pub(super) geometry: Geometry,
    pub(super) timing: Timing,
    /// The thread that runs.
    pub(super) running: u32,
    pub(super) threads: Vec<Thread>,
    program: &'g [Instruction],
    shared: Vec<Cell>,
    shared_address: *mut u8,
    pub(super) global: &'g mut Global,
    pub(super) barriers: Barriers,
    pub(super) mbarriers: Mbarriers,
    pub(super) agents: Agents,
    pub(super) flights: Vec<Flight>,
    /// The buffer resources that kernels of AMD's made.
    pub(super) resources: Vec<Resource>,
    /// Turns given up since anybody got anywhere.
    idle_turns: u32,
    /// Accesses since the turn began.
    accesses: u32,
    fault: Option<Fault>,
}

thread_local! {
    /// The block that this thread of the host runs.
    static CURRENT: Slot<*mut Block<'static>> = const { Slot::new(ptr::null_mut()) };
}

/// Lends the running block. No reference to it is alive when a thread gives up its turn.
pub(super) fn current<R>(action: impl FnOnce(&mut Block<'_>) -> R) -> R {
    let block = CURRENT.get();
    assert!(!block.is_null(), "generated code runs within `run`");
    // SAFETY: `run` set the pointer to a block that outlives its coroutines, and the closures given here neither
    // switch coroutines nor come back here.
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

/// Notes an access; one that is wrong is never made.
pub(super) fn access(touch: Touch) {
    if current(|block| block.polls(&touch)) {
        give_up_turn();
    }
    let problem = current(|block| block.touch(touch).err());
    if let Some(problem) = problem {
        current(|block| block.fail(block.running, touch.place, problem));
        give_up_turn();
        unreachable!("a block that failed isn't resumed");
    }
}

/// A fence.
pub(super) fn fence(order: Ordering) {
    current(|block| block.threads[block.running as usize].clock.fence(order));
}

impl Block<'_> {
    pub(super) fn shared_address(&self) -> *mut u8 {
        self.shared_address
    }

    /// Whether an address lies in shared memory.
    pub(super) fn is_shared(&self, address: u64) -> bool {
        address.wrapping_sub(self.shared_address as u64) < self.shared.len() as u64
    }

    pub(super) fn fail(&mut self, thread: u32, place: Loc, problem: Problem) {
        let fault = Fault { block: self.number, thread, place, problem };
        self.fault.get_or_insert(fault);
    }

    /// Somebody got somewhere: waiting may have made sense.
    pub(super) fn progress(&mut self) {
        self.idle_turns = 0;
    }

    fn execute(&mut self, number: u32, buffers: [*mut u8; 2]) -> Then {
        let (thread, program) = (self.running, self.program);
        let instruction = &program[number as usize];
        let state = &mut self.threads[thread as usize];
        (state.buffers, state.last_atomic, state.at) = (buffers, None, Some(number));
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
        let program: &[Instruction] = self.program;
        // SAFETY: the program outlives the block, and calls are used within it alone.
        let instruction: &'static Instruction = unsafe { &*ptr::from_ref(&program[number as usize]) };
        // SAFETY: a thread that waits in an instruction keeps the frame with its buffers.
        unsafe { Call::new(thread, number, instruction, self.threads[thread as usize].buffers) }
    }

    /// The instruction of a number.
    pub(super) fn instruction(&self, number: u32) -> &Instruction {
        &self.program[number as usize]
    }

    /// A thread that reads the same address atomically once more may wait for another one: that one's turn comes.
    fn polls(&mut self, touch: &Touch) -> bool {
        let thread = &mut self.threads[self.running as usize];
        let atomic = touch.kind.atomic.filter(|_| touch.kind.reads).map(|_| touch.address);
        let polls = atomic.is_some() && thread.last_atomic == atomic;
        thread.last_atomic = atomic;
        if polls {
            self.idles_for(touch.place, None);
        }
        polls
    }

    /// A thread gives up its turn and may find that nothing has changed; `awaited`: what it looks for.
    pub(super) fn idles_for(&mut self, place: Loc, awaited: Option<String>) {
        self.idle_turns += 1;
        if self.idle_turns > IDLE_TURNS * self.geometry.threads {
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

    fn touch(&mut self, touch: Touch) -> Result<(), Problem> {
        let Touch { address, kind, place } = touch;
        let excess = address % kind.alignment;
        if excess != 0 {
            return Err(Problem::Misaligned { alignment: kind.alignment, excess });
        }
        self.accesses += 1;
        if self.accesses > ACCESSES_PER_TURN {
            return Err(Problem::Spins);
        }
        if kind.writes && (kind.atomic.is_none() || !kind.reads) {
            self.progress();
        }
        let bytes = kind.bytes as usize;
        let shared = match kind.space {
            Space::Shared => true,
            Space::Global => false,
            Space::Generic if self.is_shared(address) => true,
            Space::Generic if stack::holds(address, self.geometry.stack) => return Ok(()),
            Space::Generic => false,
        };
        let (running, atomic) = (self.running, kind.atomic.map(|order| order.scope));
        let moment = self.threads[running as usize].clock.moment();
        let access = Access { moment, reads: kind.reads, writes: kind.writes, atomic, place };
        if shared {
            self.note_shared(running, address, bytes, access)?;
        } else {
            self.note_global(running, address, bytes, access)?;
        }
        if let Some(order) = kind.atomic {
            let clock = &mut self.threads[running as usize].clock;
            self.global.synchronize(address, [kind.reads, kind.writes], order, clock);
        }
        Ok(())
    }

    /// Notes an access of a thread to shared or global memory.
    pub(super) fn note(
        &mut self,
        thread: u32,
        address: u64,
        bytes: usize,
        access: Access,
    ) -> Result<(), Problem> {
        if self.is_shared(address) {
            self.note_shared(thread, address, bytes, access)
        } else {
            self.note_global(thread, address, bytes, access)
        }
    }

    fn note_global(
        &mut self,
        thread: u32,
        address: u64,
        bytes: usize,
        access: Access,
    ) -> Result<(), Problem> {
        let clock = &self.threads[thread as usize].clock;
        self.global.access(address, bytes, access, clock, &self.flights)
    }

    fn note_shared(
        &mut self,
        thread: u32,
        address: u64,
        bytes: usize,
        access: Access,
    ) -> Result<(), Problem> {
        let range = self.shared_range(address, bytes)?;
        let (clock, flights) = (&self.threads[thread as usize].clock, &self.flights);
        for offset in range {
            self.shared[offset].note(access, clock, true).map_err(|conflict| {
                Problem::of_conflict(conflict, Memory::Shared, offset, access.writes, flights)
            })?;
        }
        Ok(())
    }

    fn shared_range(&self, address: u64, bytes: usize) -> Result<std::ops::Range<usize>, Problem> {
        let first = address.wrapping_sub(self.shared_address as u64);
        let available = self.shared.len();
        let range = usize::try_from(first).ok().and_then(|first| Some(first..first.checked_add(bytes)?));
        let outside = Problem::OutsideShared { offset: first.cast_signed(), bytes, available };
        range.filter(|range| range.end <= available).ok_or(outside)
    }

    /// Does something to the shadow of every byte.
    ///
    /// # Errors
    /// If the bytes are nobody's.
    pub(super) fn each_cell(
        &mut self,
        address: u64,
        bytes: usize,
        action: &mut dyn FnMut(&mut Cell),
    ) -> Result<(), Problem> {
        if self.is_shared(address) {
            let range = self.shared_range(address, bytes)?;
            self.shared[range].iter_mut().for_each(action);
            Ok(())
        } else {
            self.global.each_cell(address, bytes, action)
        }
    }

    /// Whether an asynchronous operation of a thread sees what these bytes hold.
    ///
    /// # Errors
    /// If a thread wrote them and no proxy fence followed.
    pub(super) fn check_proxy(&mut self, thread: u32, address: u64, bytes: usize) -> Result<(), Problem> {
        let clock = self.threads[thread as usize].clock.clone();
        let base = self.shared_address as u64;
        let (mut found, mut offset) = (None, 0);
        self.each_cell(address, bytes, &mut |cell| {
            if found.is_none() {
                found = cell.check_proxy(&clock).err().map(|conflict| (offset, conflict));
            }
            offset += 1;
        })?;
        let Some((offset, conflict)) = found else { return Ok(()) };
        let shared = self.is_shared(address);
        let (memory, start) = if shared { (Memory::Shared, address - base) } else { (Memory::Arguments, 0) };
        Err(Problem::of_conflict(conflict, memory, start as usize + offset, false, &self.flights))
    }

    /// A plain access of a thread that an instruction makes, and its right to make it.
    pub(super) fn check_plain(
        &mut self,
        call: &Call<'_>,
        address: u64,
        [bytes, alignment]: [usize; 2],
        writes: bool,
    ) -> Result<(), Problem> {
        let excess = address % alignment as u64;
        if excess != 0 {
            return Err(Problem::Misaligned { alignment: alignment as u64, excess });
        }
        let moment = self.threads[call.thread as usize].clock.moment();
        let access = Access { moment, reads: !writes, writes, atomic: None, place: call.place() };
        self.note(call.thread, address, bytes, access)
    }

    /// Reads memory as a thread's instruction does.
    pub(super) fn load(
        &mut self,
        call: &Call<'_>,
        address: u64,
        bytes: usize,
        alignment: usize,
    ) -> Result<Vec<u8>, Problem> {
        self.check_plain(call, address, [bytes, alignment], false)?;
        // SAFETY: the check found that the bytes are shared memory's or an argument's.
        Ok(unsafe { std::slice::from_raw_parts(address as *const u8, bytes) }.to_vec())
    }

    /// Writes memory as a thread's instruction does.
    pub(super) fn store(
        &mut self,
        call: &Call<'_>,
        address: u64,
        bytes: &[u8],
        alignment: usize,
    ) -> Result<(), Problem> {
        self.check_plain(call, address, [bytes.len(), alignment], true)?;
        // SAFETY: as in `load`; what is written isn't an input.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
        Ok(())
    }
}

/// What a block begins with.
pub(super) struct Start<'g> {
    pub(super) number: u64,
    pub(super) geometry: Geometry,
    pub(super) timing: Timing,
    pub(super) program: &'g [Instruction],
    pub(super) shared_address: *mut u8,
    pub(super) shared_bytes: usize,
    pub(super) global: &'g mut Global,
}

impl<'g> Block<'g> {
    fn new(start: Start<'g>) -> Block<'g> {
        let thread = |clock| Thread {
            state: State::Ready,
            clock,
            at: None,
            yielder: ptr::null(),
            buffers: [ptr::null_mut(); 2],
            queues: Queues::default(),
            last_atomic: None,
        };
        let clocks = Clock::of_block(start.number as u32, start.geometry.threads);
        Block {
            number: start.number,
            geometry: start.geometry,
            timing: start.timing,
            running: 0,
            threads: clocks.into_iter().map(thread).collect(),
            program: start.program,
            shared: vec![Cell::default(); start.shared_bytes],
            shared_address: start.shared_address,
            global: start.global,
            barriers: Barriers::default(),
            mbarriers: Mbarriers::default(),
            agents: Agents::default(),
            flights: Vec::new(),
            resources: Vec::new(),
            idle_turns: 0,
            accesses: 0,
            fault: None,
        }
    }
}

/// Runs a block to its end.
///
/// # Safety
/// `entry` is a kernel's code after [`super::host_module`], and the slots are as its ABI says.
///
/// # Errors
/// The first fault.
pub(super) unsafe fn run(entry: ThreadEntry, slots: *const u64, start: Start<'_>) -> Result<(), Fault> {
    let (threads, stack_bytes) = (start.geometry.threads, start.geometry.stack);
    let shared = start.shared_address as u64..start.shared_address as u64 + start.shared_bytes as u64;
    let mut block = Block::new(start);
    CURRENT.set(ptr::from_mut(&mut block).cast());
    let mut fibers: Vec<_> = (0..threads)
        .map(|_| {
            Coroutine::with_stack(stack::take(stack_bytes), move |yielder: &Yielder<(), ()>, ()| {
                current(|block| block.threads[block.running as usize].yielder = yielder);
                // SAFETY: the caller of `run` vouches for code and slots.
                unsafe { entry(slots) };
                current(|block| block.threads[block.running as usize].state = State::Ended);
            })
        })
        .collect();
    take_turns(&mut fibers);
    CURRENT.set(ptr::null_mut());
    for mut fiber in fibers {
        if !fiber.done() {
            // SAFETY: what is on the stack is generated code and functions of this module, which own nothing.
            unsafe { fiber.force_reset() };
        }
        stack::give_back(fiber.into_stack());
    }
    block.global.forget(&shared);
    if block.fault.is_none()
        && let Err((thread, place, problem)) = block.land_all()
    {
        block.fail(thread, place, problem);
    }
    block.fault.map_or(Ok(()), Err)
}

fn take_turns(fibers: &mut [Coroutine<(), (), (), DefaultStack>]) {
    loop {
        let mut any = false;
        for (thread, fiber) in fibers.iter_mut().enumerate() {
            if !current(|block| block.threads[thread].state == State::Ready) {
                continue;
            }
            any = true;
            current(|block| (block.running, block.accesses) = (thread as u32, 0));
            let result = fiber.resume(());
            debug_assert_eq!(
                matches!(result, CoroutineResult::Return(())),
                current(|block| block.threads[thread].state == State::Ended)
            );
            if current(|block| block.fault.is_some()) {
                return;
            }
        }
        if !any && !current(|block| block.wake()) {
            return;
        }
    }
}

impl Block<'_> {
    /// Nobody can run: what is under way asynchronously goes on, or the block is over or stuck. Says whether
    /// somebody can run now.
    fn wake(&mut self) -> bool {
        if self.threads.iter().all(|thread| thread.state == State::Ended) {
            return false;
        }
        if self.advance_awaited() {
            return true;
        }
        self.stuck();
        false
    }
}
