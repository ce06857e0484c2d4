//! Threads that share the pieces of what is submitted, and wait for more until the pool is closed.
//!
//! Whoever submits works too, so everything gets done even where there is no thread. Threads that have found nothing
//! look on for [a while](super::watch) before they sleep: a launch that follows another closely wakes nobody.
//!
//! Nothing is allocated by a submission once the list has its room. A [`Job`] lies on the stack of who submits it; under
//! the lock it is in the list from its submission until its pieces are handed out, and threads that run it are counted.
//! Who submitted it returns after both are over, so that no thread has a job that is gone. `tests/loom` tries all
//! orders of this file's steps on small cases.

use super::watch::Watch;
use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, look_on};
use std::time::{Duration, Instant};

/// Numbers `0..count`, each given to `run` once, by whichever thread takes it.
pub(super) struct Job<'a> {
    run: &'a (dyn Fn(usize) + Sync),
    count: usize,
    /// The first number that nobody has taken. On a line of its own: every thread writes it.
    next: Line<AtomicUsize>,
    /// Threads of the pool that run numbers; changed under the pool's lock.
    users: Line<AtomicUsize>,
}

/// A value that shares its cache line (and the one that is fetched with it) with no other.
#[repr(align(128))]
struct Line<T>(T);

impl<'a> Job<'a> {
    /// A job of `count` numbers.
    pub(super) fn new(count: usize, run: &'a (dyn Fn(usize) + Sync)) -> Job<'a> {
        let (next, users) = (Line(AtomicUsize::new(0)), Line(AtomicUsize::new(0)));
        Job { run, count, next, users }
    }

    /// Whether numbers are left.
    fn is_open(&self) -> bool {
        self.next.0.load(Ordering::Relaxed) < self.count
    }

    /// Runs numbers until none is left.
    fn work(&self) {
        while self.is_open() {
            let number = self.next.0.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                return;
            }
            (self.run)(number);
        }
    }
}

/// Where a job lies. Only followed while the job is in the list or counts the thread as a user.
#[derive(Clone, Copy, PartialEq)]
struct JobAt(*const Job<'static>);

// SAFETY: what is behind the address may be used by several threads at once: the function is `Sync`, the rest atomic.
unsafe impl Send for JobAt {}

struct State {
    open: Vec<JobAt>,
    sleeping: usize,
    closed: bool,
    /// How long threads that have found nothing look on.
    watch: Watch,
}

/// The list of jobs, and the threads that look at it.
pub(super) struct Pool {
    state: Mutex<State>,
    /// Counts submissions, for threads that look for one without the lock.
    submissions: AtomicUsize,
    submitted: Condvar,
    finished: Condvar,
}

impl Pool {
    /// A pool that no thread serves yet, with room for so many jobs at once.
    pub(super) fn new(room: usize) -> Pool {
        Pool {
            state: Mutex::new(State {
                open: Vec::with_capacity(room),
                sleeping: 0,
                closed: false,
                watch: Watch::new(),
            }),
            submissions: AtomicUsize::new(0),
            submitted: Condvar::new(),
            finished: Condvar::new(),
        }
    }

    /// Runs a job, with the help of at most so many threads of the pool; returns when every number is done.
    pub(super) fn run(&self, job: &Job<'_>, helpers: usize) {
        let at = JobAt(std::ptr::from_ref(job).cast());
        let start = Instant::now();
        let sleeping = {
            let mut state = self.lock();
            state.open.push(at);
            self.submissions.fetch_add(1, Ordering::Release);
            state.sleeping
        };
        for _ in 0..sleeping.min(helpers) {
            self.submitted.notify_one();
        }
        job.work();
        self.take_back(job, at, start.elapsed());
    }

    /// Whether a thread would have to be woken.
    pub(super) fn sleeps(&self) -> bool {
        self.lock().sleeping > 0
    }

    /// Takes a job off the list, of which this thread's part took so long, and waits for the threads that still run it.
    fn take_back(&self, job: &Job<'_>, at: JobAt, took: Duration) {
        let mut state = self.lock();
        state.open.retain(|&open| open != at);
        state.watch = state.watch.after(took);
        let watch = state.watch.time();
        if job.users.0.load(Ordering::Relaxed) == 0 {
            return;
        }
        drop(state);
        // Whoever is the last to leave the job does no more with it: what it wrote is seen here.
        if look_on(watch, || job.users.0.load(Ordering::Acquire) == 0) {
            return;
        }
        let mut state = self.lock();
        while job.users.0.load(Ordering::Relaxed) > 0 {
            state = wait(&self.finished, state);
        }
    }

    /// Lets the threads go that serve, once they have nothing to do. What is submitted afterwards is done all the same.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.submissions.fetch_add(1, Ordering::Release);
        self.submitted.notify_all();
    }

    /// Runs whatever is submitted, until the pool is closed.
    pub(super) fn serve(&self) {
        while let Some(at) = self.take() {
            // SAFETY: this thread is counted as a user of the job, which is there as long as it has any.
            let job = unsafe { &*at.0 };
            job.work();
            let state = self.lock();
            let left = job.users.0.fetch_sub(1, Ordering::Release) - 1;
            drop(state);
            if left == 0 {
                self.finished.notify_all();
            }
        }
    }

    /// A job with numbers left, which counts this thread as a user; `None` where there is none and the pool is closed.
    fn take(&self) -> Option<JobAt> {
        loop {
            let seen = self.submissions.load(Ordering::Acquire);
            let (joined, watch) = {
                let state = self.lock();
                (self.join(&state), state.watch)
            };
            if joined.is_some() {
                return joined;
            }
            if look_on(watch.time(), || self.is_submitted_since(seen)) && !self.lock().closed {
                continue;
            }
            let mut state = self.lock();
            state.sleeping += 1;
            loop {
                let joined = self.join(&state);
                if joined.is_some() || state.closed {
                    state.sleeping -= 1;
                    return joined;
                }
                state = wait(&self.submitted, state);
            }
        }
    }

    /// Joins one of the jobs in the list.
    fn join(&self, state: &State) -> Option<JobAt> {
        // SAFETY: a job in the list is there: who submitted it takes it off the list first, under the lock, which is held.
        let job = |at: &JobAt| unsafe { &*at.0 };
        let at = state.open.iter().find(|at| job(at).is_open())?;
        job(at).users.0.fetch_add(1, Ordering::Relaxed);
        Some(*at)
    }

    fn is_submitted_since(&self, seen: usize) -> bool {
        self.submissions.load(Ordering::Acquire) != seen
    }

    fn lock(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

type Guard<'p> = crate::sync::MutexGuard<'p, State>;

fn wait<'p>(condition: &Condvar, guard: Guard<'p>) -> Guard<'p> {
    condition.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner)
}
