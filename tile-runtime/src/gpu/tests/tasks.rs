//! Tasks that wait, and how often each was woken.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

pub(super) struct Task {
    thread: std::thread::Thread,
    woken: AtomicUsize,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Relaxed);
        self.thread.unpark();
    }
}

pub(super) fn task() -> Arc<Task> {
    Arc::new(Task { thread: std::thread::current(), woken: AtomicUsize::new(0) })
}

pub(super) fn poll<F: Future>(future: Pin<&mut F>, task: &Arc<Task>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(task))))
}

/// How often each task was woken.
pub(super) fn woken(tasks: &[Arc<Task>]) -> Vec<usize> {
    tasks.iter().map(|task| task.woken.load(Ordering::Relaxed)).collect()
}

/// Waits until tasks were woken so often: it is a thread that wakes them, which is about to do so.
pub(super) fn await_wakes(tasks: &[Arc<Task>], expected: &[usize]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while woken(tasks) != expected && Instant::now() < deadline {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    assert_eq!(woken(tasks), expected);
}
