//! Streams of the CPU and the reference device: a thread that does what is enqueued, one after the other.
//!
//! Threads are kept for a while when nobody has their stream any more, for the next one, and then end. What waits, waits for
//! work that was enqueued before it, so that no two streams wait for each other.
//!
//! An owner of another library's memory does what it wants to when it is dropped: it may wait for a lock, such as that of
//! Python's interpreter, which somebody has who waits for a stream; or panic. So it is dropped by a thread that has no stream.

use super::completion::Completion;
use super::waiting;
use crate::error::{Error, Result};
use crate::process::Process;
use crate::reference::panic_message;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A piece of work of a stream's; what it fails with is told by its completion, and by the stream.
struct Piece {
    work: Box<dyn Work>,
    completion: Arc<Completion>,
    /// The stream's, which may be gone by then: the next stream of the thread has some of its own.
    failed: Arc<Failed>,
}

trait Work: Send {
    /// Does it, once.
    fn run(&mut self) -> Result<()>;

    /// Drops what it has used, when its end has been told, but for owners.
    fn over(self: Box<Self>) -> Option<Owners>;
}

/// What work uses.
pub(crate) trait Kept: Send + 'static {
    /// Drops it, but for the owners of memory that nobody else has.
    fn over(self) -> Option<Owners>;
}

/// What is only to be dropped, which may take any time.
pub(crate) type Owners = Box<dyn Send>;

impl Kept for () {
    fn over(self) -> Option<Owners> {
        None
    }
}

struct Using<K, F> {
    kept: K,
    work: Option<F>,
}

impl<K: Kept, F: FnOnce(&K) -> Result<()> + Send> Work for Using<K, F> {
    fn run(&mut self) -> Result<()> {
        self.work.take().map_or(Ok(()), |work| work(&self.kept))
    }

    fn over(self: Box<Self>) -> Option<Owners> {
        self.kept.over()
    }
}

/// What drops owners has a thread meanwhile, as a stream has.
struct Drops {
    owners: Option<Owners>,
    _thread: Taken,
}

impl Work for Drops {
    fn run(&mut self) -> Result<()> {
        self.owners = None;
        Ok(())
    }

    fn over(self: Box<Self>) -> Option<Owners> {
        None
    }
}

/// Has a thread drop owners for which nobody waits; without one, who calls this does.
fn drop_apart(owners: Owners) {
    if let Ok(thread) = Taken::new() {
        let queue = Arc::clone(&thread.0);
        let work = Box::new(Drops { owners: Some(owners), _thread: thread });
        queue.push(Piece { work, completion: Arc::default(), failed: Arc::default() });
    }
}

/// The work that has failed since a stream was asked: it tells of the first that nobody knows of by then.
type Failed = Mutex<Vec<Arc<Completion>>>;

/// Adds work that has failed. Where nobody asks for it, little is kept: not what somebody was told of, and of what nobody else
/// has, who could be told of it, the first alone.
fn remember(failed: &mut Vec<Arc<Completion>>, completion: Arc<Completion>) {
    let mut first = true;
    failed.retain(|known| {
        !known.is_told() && (Arc::strong_count(known) > 1 || std::mem::replace(&mut first, false))
    });
    failed.push(completion);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a thread without a stream waits for one: longer than programs that make a stream for each of many launches
/// need, and short beside what nobody minds.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a stream's thread has to do.
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
    /// Where the thread is.
    process: Process,
}

struct QueueState {
    work: VecDeque<Piece>,
    /// Whether the thread does something.
    is_working: bool,
    /// Whether somebody has the stream.
    has_stream: bool,
    /// Whether the thread has ended.
    is_over: bool,
}

impl Queue {
    /// A queue of a stream's, and its thread, which waits so long for another stream when that one is gone.
    fn start(patience: Duration) -> Result<(Arc<Queue>, JoinHandle<()>)> {
        let (work, is_working) = (VecDeque::new(), false);
        let state = QueueState { work, is_working, has_stream: true, is_over: false };
        let (changed, process) = (Condvar::new(), Process::current());
        let queue = Arc::new(Queue { state: Mutex::new(state), changed, process });
        let served = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("tile-stream".to_owned());
        let thread = thread.spawn(move || served.serve(patience)).map_err(|error| Error::Driver {
            device: "the host".to_owned(),
            action: "starting the thread of a stream".to_owned(),
            message: error.to_string(),
        })?;
        Ok((queue, thread))
    }

    fn serve(self: Arc<Queue>, patience: Duration) {
        while let Some(Piece { mut work, completion, failed }) = self.next(patience) {
            // Whoever waits is told, and what comes next is done: without the thread they would wait for ever.
            let result = catch_unwind(AssertUnwindSafe(|| work.run())).unwrap_or_else(|panic| {
                let message = panic_message(&*panic);
                Err(Error::Stream { problem: format!("what the stream did ended in a panic: {message}") })
            });
            let has_failed = result.is_err();
            waiting::due(&completion.end(result));
            if has_failed {
                remember(&mut lock(&failed), completion);
            }
            let _ = catch_unwind(AssertUnwindSafe(|| work.over().map(drop_apart)));
        }
        lock(&IDLE).retain(|idle| !Arc::ptr_eq(idle, &self));
    }

    fn push(&self, piece: Piece) {
        lock(&self.state).work.push_back(piece);
        self.changed.notify_one();
    }

    /// What is to be done next; nothing where no stream has come for a while.
    fn next(&self, patience: Duration) -> Option<Piece> {
        let mut state = lock(&self.state);
        loop {
            let next = state.work.pop_front();
            state.is_working = next.is_some();
            if next.is_some() {
                return next;
            }
            if state.has_stream {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let waited = self.changed.wait_timeout(state, patience);
            let timeout;
            (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            if timeout.timed_out() && !state.has_stream && state.work.is_empty() {
                state.is_over = true;
                return None;
            }
        }
    }

    /// Leaves the thread to another stream.
    fn leave(&self) {
        lock(&self.state).has_stream = false;
        self.changed.notify_one();
    }

    /// Whether the thread has nothing to do.
    fn is_free(&self) -> bool {
        let state = lock(&self.state);
        state.work.is_empty() && !state.is_working
    }

    /// Gives the thread to another stream, unless it has ended.
    fn take(&self) -> bool {
        let mut state = lock(&self.state);
        state.has_stream = !state.is_over;
        state.has_stream
    }
}

/// Queues whose threads wait for the next stream.
static IDLE: Mutex<Vec<Arc<Queue>>> = Mutex::new(Vec::new());

/// Takes a queue off the list of those without a stream: one whose thread is free, or else one that still has something to
/// do, so that many streams which nobody waits for are few threads.
fn best_of(idle: &mut Vec<Arc<Queue>>) -> Option<Arc<Queue>> {
    idle.retain(|queue| !queue.process.is_over());
    let free = idle.iter().rposition(|queue| queue.is_free());
    free.or(idle.len().checked_sub(1)).map(|place| idle.remove(place))
}

/// The queue of a thread that nobody else has.
struct Taken(Arc<Queue>);

impl Taken {
    fn new() -> Result<Taken> {
        let idle = || best_of(&mut lock(&IDLE));
        let kept = std::iter::from_fn(idle).find(|queue| queue.take());
        kept.map_or_else(|| Queue::start(PATIENCE).map(|(queue, _)| queue), Ok).map(Taken)
    }
}

impl Drop for Taken {
    /// The next stream comes after what is enqueued here.
    fn drop(&mut self) {
        if self.0.process.is_over() {
            return;
        }
        // The list is locked meanwhile, so that nobody takes the thread before it is free, and it finds itself there when
        // it ends.
        let mut idle = lock(&IDLE);
        idle.push(Arc::clone(&self.0));
        self.0.leave();
    }
}

/// Up to where the streams have to come that there are, and those that are gone and have something left to do.
static STREAMS: Mutex<Vec<Arc<Last>>> = Mutex::new(Vec::new());

/// What a stream was given last.
struct Last {
    /// The number of its device.
    device: usize,
    /// Where the thread is.
    process: Process,
    /// Changed with the queue that it is the end of.
    completion: Mutex<Option<Arc<Completion>>>,
}

impl Last {
    fn is_over(&self) -> bool {
        self.process.is_over()
            || lock(&self.completion).as_ref().is_none_or(|completion| completion.ended().is_some())
    }
}

/// Waits for everything that is enqueued on the streams of a device, which is told by its number. What that failed with is
/// told by the streams.
pub(super) fn synchronize_all(device: usize) {
    let of_device = |last: &&Arc<Last>| last.device == device && !last.process.is_over();
    let last = |last: &Arc<Last>| lock(&last.completion).clone();
    let last: Vec<Arc<Completion>> = lock(&STREAMS).iter().filter(of_device).filter_map(last).collect();
    for completion in last {
        let (_when, _how) = completion.wait();
    }
}

/// A stream of the host.
pub(super) struct HostStream {
    thread: Taken,
    failed: Arc<Failed>,
    last: Arc<Last>,
}

impl HostStream {
    /// A stream with a thread, of the device with a number.
    pub(super) fn new(device: usize) -> Result<HostStream> {
        Ok(HostStream::of(Taken::new()?, device))
    }

    fn of(thread: Taken, device: usize) -> HostStream {
        let process = thread.0.process;
        let last = Arc::new(Last { device, process, completion: Mutex::default() });
        let mut streams = lock(&STREAMS);
        // Of a stream that is gone nobody else has this.
        streams.retain(|last| Arc::strong_count(last) > 1 || !last.is_over());
        streams.push(Arc::clone(&last));
        HostStream { thread, failed: Arc::default(), last }
    }

    /// Has something done after all that is enqueued.
    pub(super) fn enqueue(&self, work: impl FnOnce() -> Result<()> + Send + 'static) -> Arc<Completion> {
        self.enqueue_with((), |()| work())
    }

    /// Has something done with what is dropped when its end has been told.
    pub(super) fn enqueue_with<K: Kept>(
        &self,
        kept: K,
        work: impl FnOnce(&K) -> Result<()> + Send + 'static,
    ) -> Arc<Completion> {
        let (completion, failed) = (Arc::new(Completion::default()), Arc::clone(&self.failed));
        if self.thread.0.process.is_over() {
            waiting::due(&completion.end(Err(Process::error())));
            return completion;
        }
        let work = Box::new(Using { kept, work: Some(work) });
        let piece = Piece { work, completion: Arc::clone(&completion), failed };
        // In the order of the queue.
        let mut last = lock(&self.last.completion);
        self.thread.0.push(piece);
        *last = Some(Arc::clone(&completion));
        completion
    }

    /// Waits for everything that is enqueued, and gives the first failure that nobody was told of yet.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.enqueue(|| Ok(())).wait().1?;
        let failed = std::mem::take(&mut *lock(&self.failed));
        failed.iter().try_for_each(|completion| completion.tell_failure())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]
mod tests {
    use super::*;

    /// The number of a device that no other test has.
    const DEVICE: usize = usize::MAX / 2;

    #[test]
    fn a_thread_ends_when_no_stream_comes_for_it() {
        let (queue, thread) = Queue::start(Duration::ZERO).unwrap();
        let stream = HostStream::of(Taken(Arc::clone(&queue)), DEVICE);
        // It has no patience, and waits as long as there is the stream.
        for _ in 0..3 {
            stream.synchronize().unwrap();
            std::thread::yield_now();
        }
        let last = stream.enqueue(|| Ok(()));
        drop(stream);
        thread.join().unwrap();
        assert!(last.ended().is_some(), "what was enqueued is done first");
        assert!(!queue.take() && !lock(&IDLE).iter().any(|idle| Arc::ptr_eq(idle, &queue)));
    }

    #[test]
    fn a_thread_goes_on_with_the_next_stream() {
        let (queue, thread) = Queue::start(Duration::from_secs(3600)).unwrap();
        let id = thread.thread().id();
        let same = move || match std::thread::current().id() == id {
            true => Ok(()),
            false => Err(Error::Stream { problem: "another thread".to_owned() }),
        };
        queue.leave();
        assert!(queue.take());
        HostStream::of(Taken(queue), DEVICE).enqueue(same).wait().1.unwrap();
    }

    /// Also of those that nobody has any more; and what a stream fails with stays its own to tell.
    #[test]
    fn a_device_is_waited_for_with_all_its_streams() {
        const DEVICES: [usize; 2] = [DEVICE + 1, DEVICE + 2];
        let [first, gone, other] =
            [DEVICES[0], DEVICES[0], DEVICES[1]].map(|device| HostStream::new(device).unwrap());
        let late = || {
            std::thread::sleep(Duration::from_millis(20));
            Err(Error::Stream { problem: "late".to_owned() })
        };
        let (go, begun) = std::sync::mpsc::channel::<()>();
        let others = other.enqueue(move || {
            let _ = begun.recv();
            Ok(())
        });
        let pieces = [first.enqueue(late), gone.enqueue(late)];
        drop(gone);
        synchronize_all(DEVICES[0]);
        assert!(pieces.iter().all(|piece| piece.ended().is_some()) && others.ended().is_none());
        assert_eq!(first.synchronize().unwrap_err().to_string(), "late");
        go.send(()).unwrap();
        others.wait().1.unwrap();
        let is_listed = || lock(&STREAMS).iter().filter(|last| DEVICES.contains(&last.device)).count();
        drop((first, other));
        drop(HostStream::new(DEVICE + 3).unwrap());
        assert_eq!(is_listed(), 0, "what is gone and done isn't kept");
    }

    /// A launch that nobody waits for any more keeps no other one waiting, where there is a thread that has nothing to do.
    #[test]
    fn a_stream_gets_a_thread_that_is_free_if_there_is_one() {
        let queues = [0; 3].map(|_| Queue::start(Duration::from_secs(3600)).unwrap().0);
        let [first, busy, last] = &queues;
        let (go, begun) = std::sync::mpsc::channel::<()>();
        let stream = HostStream::of(Taken(Arc::clone(busy)), DEVICE);
        let work = stream.enqueue(move || {
            let _ = begun.recv();
            Ok(())
        });
        let mut idle = vec![Arc::clone(first), Arc::clone(busy), Arc::clone(last), Arc::clone(busy)];
        let taken = [0; 4].map(|_| best_of(&mut idle).unwrap());
        assert!([last, first, busy, busy].into_iter().zip(&taken).all(|(a, b)| Arc::ptr_eq(a, b)));
        assert!(best_of(&mut idle).is_none());
        go.send(()).unwrap();
        work.wait().1.unwrap();
        queues.iter().for_each(|queue| queue.leave());
    }

    #[test]
    fn a_panic_is_told_to_who_waits_and_the_thread_goes_on() {
        let (queue, _thread) = Queue::start(Duration::from_secs(3600)).unwrap();
        let stream = HostStream::of(Taken(queue), DEVICE);
        let told = "what the stream did ended in a panic: a bug";
        let failed = stream.enqueue(|| panic!("a bug"));
        assert_eq!(failed.wait().1.unwrap_err().to_string(), told);
        assert_eq!(stream.synchronize().unwrap_err().to_string(), told);
        stream.synchronize().unwrap();
    }

    #[test]
    fn what_an_earlier_stream_of_the_thread_fails_with_is_not_the_next_ones() {
        let (queue, _thread) = Queue::start(Duration::from_secs(3600)).unwrap();
        let (go, begun) = std::sync::mpsc::channel();
        let earlier = HostStream::of(Taken(Arc::clone(&queue)), DEVICE);
        let failed = earlier.enqueue(move || {
            let _ = begun.recv();
            Err(Error::Stream { problem: "the earlier one's".to_owned() })
        });
        drop(earlier);
        assert!(queue.take());
        let next = HostStream::of(Taken(queue), DEVICE);
        go.send(()).unwrap();
        next.synchronize().unwrap();
        assert!(failed.wait().1.is_err());
    }
}
