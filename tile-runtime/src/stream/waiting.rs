//! Tasks that wait for a stream without a thread of theirs. A thread of ours wakes them: when work of the host's has ended, when
//! a GPU has come to a place in a stream, and when somebody has found that a GPU is lost.
//!
//! Whoever knows of any of it notes it, and no more. Waking calls code of an executor's, which may run the task, or drop it with
//! its tensors. The thread of a stream has others to serve, who may be waited for there. The functions that a driver calls may
//! call no driver (CUDA Driver API, `cuLaunchHostFunc`: "The host function must not make any CUDA API calls"), and who finds a
//! device lost may hold a lock.
//!
//! A driver calls nobody back of a device that it has lost ("will not be called in the event of an error in the CUDA
//! context"). So while tasks wait, the thread also looks at their devices now and then.

use crate::error::{Error, Result};
use crate::gpu::Context;
use crate::process::Process;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

/// How often devices are looked at for which tasks wait.
const EVERY: Duration = Duration::from_millis(100);

struct Waiting {
    /// The number of the next task; numbers aren't given twice.
    next: usize,
    tasks: BTreeMap<usize, Task>,
    /// Those that are to be woken, some of which may have gone since.
    due: Vec<usize>,
    /// Where the thread is: where there are tasks of a process's there is one.
    watched_in: Option<Process>,
}

struct Task {
    /// Of one that waits for a GPU.
    gpu: Option<Gpu>,
    waker: Waker,
}

struct Gpu {
    context: Weak<Context>,
    number: usize,
}

static WAITING: Mutex<Waiting> =
    Mutex::new(Waiting { next: 1, tasks: BTreeMap::new(), due: Vec::new(), watched_in: None });

/// That tasks are to be woken.
static DUE: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A task in the list, until it is woken or this is dropped.
pub(crate) struct Ticket(usize);

impl Ticket {
    /// Puts a task into the list: one that waits for a GPU, or for work of the host's.
    ///
    /// # Errors
    /// [`Error::Driver`] where the host has no thread for who wakes it.
    pub(crate) fn of(gpu: Option<&Arc<Context>>, waker: &Waker) -> Result<Ticket> {
        let gpu = gpu.map(|context| Gpu { context: Arc::downgrade(context), number: context.number() });
        let task = Task { gpu, waker: waker.clone() };
        let mut waiting = lock();
        if waiting.watched_in.is_none_or(Process::is_over) {
            let thread = std::thread::Builder::new().name("tile-watch".to_owned()).spawn(watch);
            thread.map_err(|error| Error::Driver {
                device: "the host".to_owned(),
                action: "starting the thread that wakes tasks".to_owned(),
                message: error.to_string(),
            })?;
            waiting.watched_in = Some(Process::current());
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.tasks.insert(number, task);
        Ok(Ticket(number))
    }

    /// Has another waker woken in the place of the one before; whether the task still waits.
    pub(crate) fn renew(&self, waker: &Waker) -> bool {
        let new = waker.clone();
        // The old one is dropped outside of the lock: that may drop a task of an executor's, and with it a ticket.
        let mut waiting = lock();
        let old = waiting.tasks.get_mut(&self.0).map(|task| std::mem::replace(&mut task.waker, new));
        drop(waiting);
        old.is_some()
    }

    /// The task's number, which [`due`] takes.
    pub(super) fn number(&self) -> usize {
        self.0
    }

    /// What [`reached`] takes.
    pub(crate) fn data(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let task = lock().tasks.remove(&self.0);
        drop(task);
    }
}

/// Has tasks woken, if they still wait.
pub(super) fn due(numbers: &[usize]) {
    if numbers.is_empty() {
        return;
    }
    let mut waiting = lock();
    let Waiting { tasks, due, .. } = &mut *waiting;
    due.extend(numbers.iter().filter(|number| tasks.contains_key(number)));
    DUE.notify_one();
}

/// Has a task woken, if it still waits: what the device calls.
pub(crate) unsafe extern "C" fn reached(data: *mut c_void) {
    due(&[data.addr()]);
}

/// Has every task woken that waits for a device.
pub(crate) fn lost(device: usize) {
    let mut waiting = lock();
    let Waiting { tasks, due, .. } = &mut *waiting;
    let waits = |task: &Task| task.gpu.as_ref().is_some_and(|gpu| gpu.number == device);
    due.extend(tasks.iter().filter(|(_, task)| waits(task)).map(|(&number, _)| number));
    DUE.notify_one();
}

/// Looks whether the devices are lost that tasks wait for: who asks a lost one has its tasks woken.
pub(crate) fn look() {
    let mut devices: Vec<Arc<Context>> =
        lock().tasks.values().filter_map(|task| task.gpu.as_ref()?.context.upgrade()).collect();
    devices.sort_by_key(|context| context.number());
    devices.dedup_by_key(|context| context.number());
    for context in devices {
        // A lost device refuses every call, this one among them; whatever else it says is of no interest.
        let _ = context.memory_bytes();
    }
}

/// Wakes a task. A waker is an executor's: one that panics doesn't end the thread, and keeps none asleep that is woken after it.
fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}

/// Wakes tasks, and looks at devices again and again, until no task waits.
fn watch() {
    let mut looked = Instant::now();
    loop {
        let rest = EVERY.saturating_sub(looked.elapsed());
        let nothing_is_due = |waiting: &mut Waiting| waiting.due.is_empty();
        let waited = DUE.wait_timeout_while(lock(), rest, nothing_is_due);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let due = std::mem::take(&mut waiting.due);
        let woken: Vec<Task> = due.iter().filter_map(|number| waiting.tasks.remove(number)).collect();
        let is_time = looked.elapsed() >= EVERY;
        if is_time && woken.is_empty() && waiting.tasks.is_empty() {
            waiting.watched_in = None;
            return;
        }
        drop(waiting);
        woken.into_iter().for_each(|task| wake(task.waker));
        if is_time {
            look();
            looked = Instant::now();
        }
    }
}
