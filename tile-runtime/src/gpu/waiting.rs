//! Tasks that wait for a GPU without a thread, and who wakes them: the device, when it comes to a place in a stream, or
//! whoever finds that the device is lost.
//!
//! A driver calls nobody back of a device that it has lost (CUDA Driver API, `cuLaunchHostFunc`: "will not be called in the
//! event of an error in the CUDA context"). So while tasks wait, a thread looks at their devices now and then.

use super::context::Context;
use crate::stream;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

/// How often devices are looked at for which tasks wait.
const EVERY: Duration = Duration::from_millis(100);

struct Waiting {
    /// The number of the next task; numbers aren't given twice.
    next: usize,
    tasks: BTreeMap<usize, Task>,
    is_watched: bool,
}

struct Task {
    context: Weak<Context>,
    device: usize,
    waker: Waker,
}

static WAITING: Mutex<Waiting> = Mutex::new(Waiting { next: 1, tasks: BTreeMap::new(), is_watched: false });

fn lock() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A task in the list, until it is woken or this is dropped.
pub(crate) struct Ticket(usize);

impl Ticket {
    /// Puts a task into the list.
    pub(super) fn of(context: &Arc<Context>, waker: &Waker) -> Ticket {
        let mut waiting = lock();
        let number = waiting.next;
        waiting.next += 1;
        let task = Task { context: Arc::downgrade(context), device: context.number(), waker: waker.clone() };
        waiting.tasks.insert(number, task);
        if !waiting.is_watched {
            // Without a thread, whoever asks the lost device next wakes them.
            let thread = std::thread::Builder::new().name("tile-watch".to_owned());
            waiting.is_watched = thread.spawn(watch).is_ok();
        }
        Ticket(number)
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

    /// What [`wake`] takes.
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

/// Wakes a task, if it still waits: what the device calls.
pub(super) unsafe extern "C" fn wake(data: *mut c_void) {
    let task = lock().tasks.remove(&data.addr());
    if let Some(task) = task {
        stream::wake(task.waker);
    }
}

/// Wakes every task that waits for a device.
pub(super) fn wake_all(device: usize) {
    let mut waiting = lock();
    let all = std::mem::take(&mut waiting.tasks).into_iter();
    let (woken, others): (BTreeMap<_, _>, _) = all.partition(|(_, task)| task.device == device);
    waiting.tasks = others;
    drop(waiting);
    woken.into_values().for_each(|task| stream::wake(task.waker));
}

/// Looks whether the devices are lost that tasks wait for: who asks a lost one wakes its tasks.
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

/// Looks again and again, until no task waits.
fn watch() {
    loop {
        std::thread::sleep(EVERY);
        let mut waiting = lock();
        if waiting.tasks.is_empty() {
            waiting.is_watched = false;
            return;
        }
        drop(waiting);
        look();
    }
}
