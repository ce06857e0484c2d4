//! The threads of a cluster as coroutines, from their beginning to their end: resumed one after the other, until all have
//! ended, one of them did something wrong, or the cluster stands aside because it waits for another one.

use super::block::{Block, Geometry, Start, State, ThreadEntry, current, while_running};
use super::fault::{Fault, RunError};
use super::global::Global;
use super::grid::MOST_READS;
use super::polls::Awaited;
use super::stack;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::mem;

type Fiber = Coroutine<(), (), (), DefaultStack>;

/// A cluster in progress.
pub(super) struct Running<'p> {
    block: Block<'p>,
    fibers: Vec<Fiber>,
    /// The thread whose turn it is next.
    next: usize,
    /// The shared memory of the blocks, whose addresses their code has.
    _memory: Vec<u8>,
}

/// Why a cluster doesn't go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    Over,
    /// It waits for what another cluster may write.
    Aside,
}

impl<'p> Running<'p> {
    /// The blocks of a cluster, none of whose threads has run yet, with the memory that `start` has the address of.
    ///
    /// # Errors
    /// [`RunError::Stacks`].
    ///
    /// # Safety
    /// `entry` is a kernel's code after [`super::host_module`]; the slots are as its ABI says, and stay.
    pub(super) unsafe fn begin(
        entry: ThreadEntry,
        slots: *const u64,
        start: Start<'p>,
        memory: Vec<u8>,
    ) -> Result<Running<'p>, RunError> {
        let Geometry { threads, cluster, stack, .. } = start.geometry;
        let threads = (threads * cluster) as usize;
        let stacks = stack::take(threads, stack);
        let stacks = stacks.map_err(|error| RunError::Stacks { threads, reason: error.to_string() })?;
        let fiber = |stack| {
            Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
                current(|block| block.begin_thread(yielder));
                // SAFETY: the caller of `begin` vouches for code and slots.
                unsafe { entry(slots) };
                current(|block| block.threads[block.running as usize].state = State::Ended);
            })
        };
        let fibers = stacks.into_iter().map(fiber).collect();
        Ok(Running { block: Block::new(start), fibers, next: 0, _memory: memory })
    }

    /// Runs the threads on, with the memory that all clusters have in common.
    ///
    /// # Errors
    /// The first fault.
    pub(super) fn go_on(&mut self, global: &mut Global) -> Result<Pause, Fault> {
        mem::swap(&mut self.block.global, global);
        self.block.return_from_aside();
        let pause = while_running(&mut self.block, || take_turns(&mut self.fibers, &mut self.next));
        let result = match pause {
            Pause::Over => self.block.finish().map(|()| Pause::Over),
            Pause::Aside => Ok(Pause::Aside),
        };
        mem::swap(&mut self.block.global, global);
        result
    }

    /// What it waits for, if it stands aside.
    pub(super) fn awaited(&self) -> Option<&Awaited> {
        self.block.aside.as_ref()
    }

    /// Whether nothing that it does will change, or it has waited so long that nobody would.
    pub(super) fn waits_in_vain(&self) -> bool {
        self.block.is_steady() || self.awaited().is_some_and(|awaited| awaited.times >= MOST_READS)
    }

    /// The numbers of its blocks.
    pub(super) fn numbers(&self) -> std::ops::Range<u64> {
        self.block.number..self.block.number + u64::from(self.block.geometry.cluster)
    }

    /// The fault of a cluster that stands aside and waits for what nobody will write.
    pub(super) fn never_ends(mut self, waiting: Vec<u64>, not_begun: Option<u64>, global: &Global) -> Fault {
        let awaited = self.block.aside.take().expect("a cluster that stands aside waits for something");
        self.block.fault_of_waiting(&awaited, waiting, not_begun, global)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        for mut fiber in self.fibers.drain(..) {
            if !fiber.done() {
                // SAFETY: what is on the stack is generated code and functions of the executor, which own nothing there.
                unsafe { fiber.force_reset() };
            }
            stack::give_back(fiber.into_stack());
        }
    }
}

fn take_turns(fibers: &mut [Fiber], next: &mut usize) -> Pause {
    loop {
        let mut any = false;
        let first = std::mem::take(next);
        for (thread, fiber) in fibers.iter_mut().enumerate().skip(first) {
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
            if let Some(pause) = current(|block| block.pause()) {
                *next = thread + 1;
                return pause;
            }
        }
        if !any && first == 0 && !current(|block| block.wake()) {
            return Pause::Over;
        }
    }
}
