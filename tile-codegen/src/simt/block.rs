//! One block: its threads as coroutines that take turns, and what they wait for.
//!
//! A thread runs until it waits or ends; then the next one that can. So a run is reproducible, and only one
//! thread touches memory at a time. What depends on the order is for [`super::shadow`] to find.

use super::fault::{Fault, Memory, Problem};
use super::global::{Global, Ordering};
use super::shadow::{Access, Cell};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::{Cell as Slot, RefCell};
use std::ptr;
use tile_ir::Loc;

/// A kernel's code: its slots.
pub(super) type ThreadEntry = unsafe extern "C" fn(*const u64);

/// Bytes of stack per thread; only what is touched becomes memory.
const STACK_BYTES: usize = 512 * 1024;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    AtBarrier(Loc),
    /// Waits for the other lanes of its warp, with its operand.
    AtCollective(Loc, u64),
    AtExchange(Loc, u64),
    Ended,
}

/// An instruction's access to memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) address: u64,
    pub(super) bytes: usize,
    pub(super) alignment: u64,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// The order of an atomic access.
    pub(super) atomic: Option<Ordering>,
    pub(super) place: Loc,
}

/// The extent of a launch, which threads may ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    /// Threads per block.
    pub(super) threads: u32,
    /// Lanes per warp.
    pub(super) warp: u32,
    /// Blocks of the grid.
    pub(super) blocks: u64,
}

/// A block in progress.
pub(super) struct Block<'g> {
    pub(super) number: u64,
    pub(super) geometry: Geometry,
    /// The thread that runs.
    pub(super) running: u32,
    /// What the running thread's collective gave.
    results: Vec<u64>,
    states: Vec<State>,
    yielders: Vec<*const Yielder<(), ()>>,
    epoch: u32,
    shared: Vec<Cell>,
    shared_address: *mut u8,
    global: &'g mut Global,
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
    let yielder = current(|block| block.yielders[block.running as usize]);
    // SAFETY: the coroutine that runs this stored its own yielder, which lives as long as the coroutine.
    unsafe { (*yielder).suspend(()) };
}

/// Waits for every thread of the block.
pub(super) fn barrier(place: Loc) {
    current(|block| block.arrive(State::AtBarrier(place)));
    give_up_turn();
}

/// Waits for every lane of the warp; gives the first lane's value, which must be every lane's.
pub(super) fn first_lane(value: u64, place: Loc) -> u64 {
    current(|block| block.arrive(State::AtCollective(place, value)));
    give_up_turn();
    current(|block| block.results[block.running as usize])
}

/// Waits for every lane of the warp; gives the low word of the lane that the high word names.
pub(super) fn exchange(value: u64, place: Loc) -> u64 {
    current(|block| block.arrive(State::AtExchange(place, value)));
    give_up_turn();
    current(|block| block.results[block.running as usize])
}

/// Notes an access; one that is wrong is never made.
pub(super) fn access(touch: Touch, in_shared: bool) {
    let problem = current(|block| block.note(touch, in_shared).err());
    if let Some(problem) = problem {
        current(|block| block.fail(touch.place, problem));
        give_up_turn();
        unreachable!("a block that failed isn't resumed");
    }
}

/// A fence among blocks.
pub(super) fn fence(order: Ordering) {
    current(|block| block.global.fence(order));
}

impl Block<'_> {
    pub(super) fn shared_address(&self) -> *mut u8 {
        self.shared_address
    }

    /// Notes that somebody asked for a line of memory, or for so many bytes.
    pub(super) fn prefetched(&mut self, address: u64, bytes: Option<u64>) {
        self.global.prefetched.push((address, bytes));
    }

    fn fail(&mut self, place: Loc, problem: Problem) {
        let fault = Fault { block: self.number, thread: self.running, place, problem };
        self.fault.get_or_insert(fault);
    }

    fn note(&mut self, touch: Touch, in_shared: bool) -> Result<(), Problem> {
        let excess = touch.address % touch.alignment;
        if excess != 0 {
            return Err(Problem::Misaligned { alignment: touch.alignment, excess });
        }
        let (thread, epoch) = (self.running, self.epoch);
        let atomic = touch.atomic.is_some();
        let access = |writes| Access { thread, epoch, writes, atomic, place: touch.place };
        for writes in [false, true] {
            if if writes { touch.writes } else { touch.reads } {
                if in_shared {
                    self.note_shared(touch.address, touch.bytes, access(writes))?;
                } else {
                    self.global.access(touch.address, touch.bytes, access(writes))?;
                }
            }
        }
        if let Some(order) = touch.atomic.filter(|_| !in_shared) {
            self.global.synchronize(touch.address, touch.reads, touch.writes, order);
        }
        Ok(())
    }

    fn note_shared(&mut self, address: u64, bytes: usize, access: Access) -> Result<(), Problem> {
        let first = address.wrapping_sub(self.shared_address as u64);
        let available = self.shared.len();
        let range = usize::try_from(first).ok().and_then(|first| Some(first..first.checked_add(bytes)?));
        let Some(cells) = range.and_then(|range| self.shared.get_mut(range)) else {
            return Err(Problem::OutsideShared { offset: first.cast_signed(), bytes, available });
        };
        for (i, cell) in cells.iter_mut().enumerate() {
            let offset = first as usize + i;
            let written = cell.is_written();
            cell.note(access).map_err(|earlier| Problem::Race {
                memory: Memory::Shared,
                offset,
                writes: access.writes,
                earlier,
            })?;
            if !access.writes && !written {
                return Err(Problem::Uninitialized { offset });
            }
        }
        Ok(())
    }

    /// The running thread waits. The last one that others wait for wakes them all.
    fn arrive(&mut self, state: State) {
        self.states[self.running as usize] = state;
        match state {
            State::AtBarrier(_) => self.open_barrier(),
            State::AtCollective(place, _) => self.finish_collective(place),
            State::AtExchange(..) => {
                let warp = (self.running / self.geometry.warp * self.geometry.warp) as usize;
                let end = (warp + self.geometry.warp as usize).min(self.states.len());
                let operand = |state: &State| match *state {
                    State::AtExchange(_, operand) => Some(operand),
                    _ => None,
                };
                if let Some(all) = self.states[warp..end].iter().map(operand).collect::<Option<Vec<_>>>() {
                    for (i, one) in all.iter().enumerate() {
                        self.results[warp + i] = all[(one >> 32) as usize] & 0xffff_ffff;
                    }
                    self.states[warp..end].fill(State::Ready);
                }
            }
            State::Ready | State::Ended => {}
        }
    }

    fn open_barrier(&mut self) {
        if self.states.iter().all(|state| matches!(state, State::AtBarrier(_))) {
            self.states.fill(State::Ready);
            self.epoch += 1;
        }
    }

    fn finish_collective(&mut self, place: Loc) {
        let warp = (self.running / self.geometry.warp * self.geometry.warp) as usize;
        let end = (warp + self.geometry.warp as usize).min(self.states.len());
        let operand = |state: &State| match *state {
            State::AtCollective(at, operand) if at == place => Some(operand),
            _ => None,
        };
        let Some(operands) = self.states[warp..end].iter().map(operand).collect::<Option<Vec<_>>>() else {
            return;
        };
        let first = operands[0];
        if let Some(&other) = operands.iter().find(|&&operand| operand != first) {
            self.fail(place, Problem::NotUniform { first, other });
        }
        self.results[warp..end].fill(first);
        self.states[warp..end].fill(State::Ready);
    }

    /// What everybody waits for, one thread for each.
    fn stuck(&mut self) {
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        for (thread, state) in self.states.iter().enumerate() {
            let place = |place: Loc| if place.is_known() { format!(" at {place}") } else { String::new() };
            let what = match *state {
                State::Ready => continue,
                State::AtBarrier(at) => format!("at the barrier{}", place(at)),
                State::AtExchange(at, _) => format!("for a shuffle{}", place(at)),
                State::AtCollective(at, _) => format!("for the other lanes of its warp{}", place(at)),
                State::Ended => "has ended".to_owned(),
            };
            match groups.iter_mut().find(|(other, _)| *other == what) {
                Some((_, threads)) => threads.push(thread),
                None => groups.push((what, vec![thread])),
            }
        }
        let waiting = groups.iter().map(|(what, threads)| match threads.as_slice() {
            [thread] => format!("thread {thread} {what}"),
            [first, .., last] => format!("{} threads from {first} to {last}: {what}", threads.len()),
            [] => String::new(),
        });
        let waiting = waiting.collect::<Vec<_>>().join("; ");
        let thread = self.states.iter().position(|state| *state != State::Ended).unwrap_or(0);
        self.running = thread as u32;
        let place = match self.states[thread] {
            State::AtBarrier(place) | State::AtCollective(place, _) | State::AtExchange(place, _) => place,
            State::Ready | State::Ended => Loc::UNKNOWN,
        };
        self.fail(place, Problem::Stuck(waiting));
    }
}

thread_local! {
    /// Stacks that blocks use one after the other: mapping and touching one costs more than most threads' work.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

fn take_stack() -> DefaultStack {
    let kept = STACKS.with_borrow_mut(Vec::pop);
    kept.unwrap_or_else(|| DefaultStack::new(STACK_BYTES).expect("the host has address space"))
}

/// What a block begins with.
pub(super) struct Start<'g> {
    pub(super) number: u64,
    pub(super) geometry: Geometry,
    pub(super) shared_address: *mut u8,
    pub(super) shared_bytes: usize,
    pub(super) global: &'g mut Global,
    /// A number that no earlier block's barriers used.
    pub(super) epoch: u32,
}

/// Runs a block to its end; gives the epoch after it.
///
/// # Safety
/// `entry` is a kernel's code after [`super::host_module`], and the slots are as its ABI says.
///
/// # Errors
/// The first fault.
pub(super) unsafe fn run(entry: ThreadEntry, slots: *const u64, start: Start<'_>) -> Result<u32, Fault> {
    let threads = start.geometry.threads as usize;
    let mut block = Block {
        number: start.number,
        geometry: start.geometry,
        running: 0,
        results: vec![0; threads],
        states: vec![State::Ready; threads],
        yielders: vec![ptr::null(); threads],
        epoch: start.epoch,
        shared: vec![Cell::default(); start.shared_bytes],
        shared_address: start.shared_address,
        global: start.global,
        fault: None,
    };
    CURRENT.set(ptr::from_mut(&mut block).cast());
    let mut fibers: Vec<_> = (0..threads)
        .map(|_| {
            Coroutine::with_stack(take_stack(), move |yielder: &Yielder<(), ()>, ()| {
                current(|block| block.yielders[block.running as usize] = yielder);
                // SAFETY: the caller of `run` vouches for code and slots.
                unsafe { entry(slots) };
                current(|block| block.states[block.running as usize] = State::Ended);
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
        STACKS.with_borrow_mut(|stacks| stacks.push(fiber.into_stack()));
    }
    block.fault.map_or(Ok(block.epoch + 1), Err)
}

fn take_turns(fibers: &mut [Coroutine<(), (), (), DefaultStack>]) {
    loop {
        let mut any = false;
        for (thread, fiber) in fibers.iter_mut().enumerate() {
            if !current(|block| block.states[thread] == State::Ready) {
                continue;
            }
            any = true;
            current(|block| block.running = thread as u32);
            let result = fiber.resume(());
            debug_assert_eq!(
                matches!(result, CoroutineResult::Return(())),
                current(|block| block.states[thread] == State::Ended)
            );
            if current(|block| block.fault.is_some()) {
                return;
            }
        }
        if !any {
            return current(|block| {
                if block.states.iter().any(|state| *state != State::Ended) {
                    block.stuck();
                }
            });
        }
    }
}
