//! Streams of the CPU and the reference device: a thread that does what is enqueued, one after the other.
//!
//! Threads are kept when nobody has their stream any more, and given to the next one. What waits, waits for work that was
//! enqueued before it, so that no two streams wait for each other.

use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

/// What a stream does; what it fails with is told by the piece's completion, and by the stream.
type Work = Box<dyn FnOnce() -> Result<()> + Send>;

/// A piece of work that is done, or will be.
#[derive(Default)]
pub(super) struct Completion {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// When it was done, and how it ended.
    ended: Option<(Instant, Result<()>)>,
    wakers: Vec<Waker>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Completion {
    fn end(&self, result: Result<()>) {
        let mut state = lock(&self.state);
        state.ended = Some((Instant::now(), result));
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// When it was done, and how it ended; `None` while it isn't.
    pub(super) fn ended(&self) -> Option<(Instant, Result<()>)> {
        lock(&self.state).ended.clone()
    }

    /// Waits until it is done.
    pub(super) fn wait(&self) -> (Instant, Result<()>) {
        let mut state = lock(&self.state);
        loop {
            match &state.ended {
                Some(ended) => return ended.clone(),
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// How it ended; who is to be woken when it does, while it hasn't.
    pub(super) fn poll(&self, waker: &Waker) -> Option<Result<()>> {
        let mut state = lock(&self.state);
        if let Some((_, result)) = &state.ended {
            return Some(result.clone());
        }
        if !state.wakers.iter().any(|known| known.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
        None
    }
}

/// What a stream's thread has to do.
#[derive(Default)]
struct Queue {
    work: Mutex<VecDeque<(Work, Arc<Completion>)>>,
    more: Condvar,
    /// The first failure that nobody has been told of by the stream.
    failure: Mutex<Option<Error>>,
}

impl Queue {
    fn serve(&self) {
        loop {
            let mut work = lock(&self.work);
            let (next, completion) = loop {
                match work.pop_front() {
                    Some(next) => break next,
                    None => work = self.more.wait(work).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(work);
            let result = next();
            if let Err(error) = &result {
                lock(&self.failure).get_or_insert_with(|| error.clone());
            }
            completion.end(result);
        }
    }
}

/// Queues whose threads wait for the next stream.
static IDLE: Mutex<Vec<Arc<Queue>>> = Mutex::new(Vec::new());

/// A stream of the host.
pub(super) struct HostStream {
    queue: Arc<Queue>,
}

impl HostStream {
    /// A stream with a thread.
    pub(super) fn new() -> Result<HostStream> {
        if let Some(queue) = lock(&IDLE).pop() {
            return Ok(HostStream { queue });
        }
        let queue = Arc::new(Queue::default());
        let served = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("tile-stream".to_owned());
        match thread.spawn(move || served.serve()) {
            Ok(_) => Ok(HostStream { queue }),
            Err(error) => Err(Error::Driver {
                device: "the host".to_owned(),
                action: "starting the thread of a stream".to_owned(),
                message: error.to_string(),
            }),
        }
    }

    /// Has something done after all that is enqueued.
    pub(super) fn enqueue(&self, work: impl FnOnce() -> Result<()> + Send + 'static) -> Arc<Completion> {
        let completion = Arc::new(Completion::default());
        lock(&self.queue.work).push_back((Box::new(work), Arc::clone(&completion)));
        self.queue.more.notify_one();
        completion
    }

    /// Waits for everything that is enqueued, and gives the first failure that wasn't given yet.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.enqueue(|| Ok(())).wait().1?;
        lock(&self.queue.failure).take().map_or(Ok(()), Err)
    }
}

impl Drop for HostStream {
    /// The next stream comes after what is enqueued here.
    fn drop(&mut self) {
        lock(&self.queue.failure).take();
        lock(&IDLE).push(Arc::clone(&self.queue));
    }
}
