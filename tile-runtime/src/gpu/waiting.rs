//! Tasks that wait for a GPU without a thread of theirs. A thread of ours wakes them: when the device has come to a place in a
//! stream, and when somebody has found that the device is lost.
//!
//! Whoever knows of either notes it, and no more. Waking calls code of an executor's, which may run the task, or drop it with
//! its tensors. The functions that a driver calls may call no driver (CUDA Driver API, `cuLaunchHostFunc`: "The host function
//! must not make any CUDA API calls"), and who finds a device lost may hold a lock.
//!
//! A driver calls nobody back of a device that it has lost ("will not be called in the event of an error in the CUDA
//! context"). So while tasks wait, the thread also looks at their devices now and then.

use super::context::Context;
use crate::error::{Error, Result};
use crate::stream;
use std::collections::BTreeMap;
use std::ffi::c_void;
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
    /// Whether the thread is there: where there are tasks it is.
    is_watched: bool,
}

struct Task {
    context: Weak<Context>,
    device: usize,
    waker: Waker,
}

static WAITING: Mutex<Waiting> =
    Mutex::new(Waiting { next: 1, tasks: BTreeMap::new(), due: Vec::new(), is_watched: false });

/// That tasks are to be woken.
static DUE: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A task in the list, until it is woken or this is dropped.
pub(crate) struct Ticket(usize);

impl Ticket {
    /// Puts a task into the list.
    ///
    /// # Errors
    /// [`Error::Driver`] where the host has no thread for who wakes it.
    pub(super) fn of(context: &Arc<Context>, waker: &Waker) -> Result<Ticket> {
        let task = Task { context: Arc::downgrade(context), device: context.number(), waker: waker.clone() };
        let mut waiting = lock();
        if !waiting.is_watched {
            let thread = std::thread::Builder::new().name("tile-watch".to_owned()).spawn(watch);
            thread.map_err(|error| Error::Driver {
                device: "the host".to_owned(),
                action: "starting the thread that wakes tasks".to_owned(),
                message: error.to_string(),
            })?;
            waiting.is_watched = true;
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.tasks.insert(number, task);
        Ok(Ticket(number))
    }

    /// Has another waker woken in the place of the one before; whether the task still waits.
    pub(super) fn renew(&self, waker: &Waker) -> bool {
        let new = waker.clone();
        // The old one is dropped outside of the lock: that may drop a task of an executor's, and with it a ticket.
        let mut waiting = lock();
        let old = waiting.tasks.get_mut(&self.0).map(|task| std::mem::replace(&mut task.waker, new));
        drop(waiting);
        old.is_some()
    }

    /// What [`reached`] takes.
    pub(super) fn data(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let task = lock().tasks.remove(&self.0);
        drop(task);
    }
}

/// Has a task woken, if it still waits: what the device calls.
pub(super) unsafe extern "C" fn reached(data: *mut c_void) {
    let mut waiting = lock();
    if waiting.tasks.contains_key(&data.addr()) {
        waiting.due.push(data.addr());
        DUE.notify_one();
    }
}

/// Has every task woken that waits for a device.
pub(super) fn lost(device: usize) {
    let mut waiting = lock();
    let Waiting { tasks, due, .. } = &mut *waiting;
    due.extend(tasks.iter().filter(|(_, task)| task.device == device).map(|(&number, _)| number));
    DUE.notify_one();
}

/// Looks whether the devices are lost that tasks wait for: who asks a lost one has its tasks woken.
pub(super) fn look() {
    let mut devices: Vec<Arc<Context>> =
        lock().tasks.values().filter_map(|task| task.context.upgrade()).collect();
    devices.sort_by_key(|context| context.number());
    devices.dedup_by_key(|context| context.number());
    for context in devices {
        // A lost device refuses every call, this one among them; whatever else it says is of no interest.
        let _ = context.memory_bytes();
    }
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
            waiting.is_watched = false;
            return;
        }
        drop(waiting);
        woken.into_iter().for_each(|task| stream::wake(task.waker));
        if is_time {
            look();
            looked = Instant::now();
        }
    }
}
