//! Streams and events of a GPU.

use super::context::Context;
use super::driver::{Driver, EventHandle, StreamHandle};
use crate::error::Result;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// Streams and events that nobody has any more, for the next ones.
#[derive(Default)]
pub(super) struct Spare {
    streams: Vec<StreamHandle>,
    /// Without times, and with them.
    events: [Vec<EventHandle>; 2],
}

/// A stream that was made here, or that of another library.
pub(crate) struct GpuStream {
    context: Arc<Context>,
    handle: StreamHandle,
    is_own: bool,
    /// How much work of the context's stream it has waited for.
    seen: AtomicU64,
}

/// A place in a stream.
pub(crate) struct GpuEvent {
    context: Arc<Context>,
    handle: EventHandle,
    timed: bool,
}

impl Context {
    fn spare(&self) -> MutexGuard<'_, Spare> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes work on the context's own stream, which other streams wait for before they go on.
    pub(super) fn has_work(&self) {
        self.work.fetch_add(1, Ordering::Relaxed);
    }

    /// An event behind the work of a stream.
    fn event(self: &Arc<Self>, stream: StreamHandle, timed: bool) -> Result<GpuEvent> {
        let spare = self.spare().events[usize::from(timed)].pop();
        self.ask(
            || "recording an event".to_owned(),
            |driver| {
                let handle = spare.map_or_else(|| driver.create_event(timed), Ok)?;
                let event = GpuEvent { context: Arc::clone(self), handle, timed };
                // SAFETY: the event is this function's own, and the stream's giver vouches for it.
                unsafe { driver.record(handle, stream) }.map(|()| event)
            },
        )
    }

    /// Has the context's own stream wait for an event, which is on a GPU of the same vendor.
    pub(crate) fn wait_for(&self, event: &GpuEvent) -> Result<()> {
        self.has_work();
        self.order(self.stream, event)
    }

    fn order(&self, stream: StreamHandle, event: &GpuEvent) -> Result<()> {
        // SAFETY: both are there; who waits goes on waiting when the event is recorded again.
        let wait = |driver: &dyn Driver| unsafe { driver.wait(stream, event.handle) };
        self.ask(|| "waiting for an event".to_owned(), wait)
    }

    /// Destroys what is spare, before the driver goes.
    pub(super) fn destroy_spare(&self) {
        let Spare { streams, events } = std::mem::take(&mut *self.spare());
        for stream in streams {
            // SAFETY: the stream was made here, nobody has it, and its work is done.
            let _ = unsafe { self.driver.destroy_stream(stream) };
        }
        for event in events.into_iter().flatten() {
            // SAFETY: the event was made here, and nobody has it.
            let _ = unsafe { self.driver.destroy_event(event) };
        }
    }
}

impl GpuStream {
    /// A stream.
    pub(crate) fn new(context: &Arc<Context>) -> Result<GpuStream> {
        let spare = context.spare().streams.pop();
        let make = |driver: &dyn Driver| spare.map_or_else(|| driver.create_stream(), Ok);
        let handle = context.ask(|| "making a stream".to_owned(), make)?;
        Ok(GpuStream::of(context, handle, true))
    }

    /// The context's own stream.
    pub(crate) fn own(context: &Arc<Context>) -> GpuStream {
        GpuStream::of(context, context.stream, false)
    }

    /// The stream of another library, by the driver's handle.
    ///
    /// # Safety
    /// The stream is the GPU's, and there as long as this value and what is made of it.
    pub(crate) unsafe fn foreign(context: &Arc<Context>, handle: *mut c_void) -> GpuStream {
        GpuStream::of(context, StreamHandle(handle as usize), false)
    }

    fn of(context: &Arc<Context>, handle: StreamHandle, is_own: bool) -> GpuStream {
        GpuStream { context: Arc::clone(context), handle, is_own, seen: AtomicU64::new(0) }
    }

    pub(super) fn handle(&self) -> StreamHandle {
        self.handle
    }

    /// The GPU.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Waits for what was enqueued on the context's own stream before.
    pub(crate) fn follow(&self) -> Result<()> {
        let work = self.context.work.load(Ordering::Relaxed);
        if self.handle == self.context.stream || self.seen.swap(work, Ordering::Relaxed) == work {
            return Ok(());
        }
        let before = self.context.event(self.context.stream, false)?;
        self.wait_for(&before)
    }

    /// Has what is enqueued from now on wait for an event.
    pub(crate) fn wait_for(&self, event: &GpuEvent) -> Result<()> {
        self.context.order(self.handle, event)
    }

    /// An event behind what is enqueued.
    pub(crate) fn record(&self, timed: bool) -> Result<GpuEvent> {
        self.context.event(self.handle, timed)
    }

    /// Waits for what is enqueued.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.context.synchronize_handle(self.handle)
    }

    /// Has somebody woken when what is enqueued is done.
    pub(crate) fn wake(&self, waker: Waker) -> Result<()> {
        /// Wakes, and frees the waker.
        unsafe extern "C" fn wake(waker: *mut c_void) {
            // SAFETY: the pointer is that of a box, made below and given to one call of this function.
            unsafe { Box::from_raw(waker.cast::<Waker>()) }.wake();
        }
        let waker = Box::into_raw(Box::new(waker));
        // SAFETY: the function is called once, with the box, and calls no driver: it tells an executor to poll.
        let call = |driver: &dyn Driver| unsafe { driver.call(wake, waker.cast(), self.handle) };
        self.context.ask(|| "waiting for the device".to_owned(), call).inspect_err(|_| {
            // SAFETY: the driver refused, so the box is still this function's.
            drop(unsafe { Box::from_raw(waker) });
        })
    }
}

impl Drop for GpuStream {
    fn drop(&mut self) {
        if self.is_own {
            self.context.spare().streams.push(self.handle);
        }
    }
}

impl GpuEvent {
    /// Waits until the work before it is done.
    pub(crate) fn wait(&self) -> Result<()> {
        // SAFETY: the event is this value's own.
        let wait = |driver: &dyn Driver| unsafe { driver.synchronize_event(self.handle) };
        self.context.ask(|| "waiting for an event".to_owned(), wait)
    }

    /// Whether the work before it is done.
    pub(crate) fn is_done(&self) -> Result<bool> {
        // SAFETY: the event is this value's own.
        let is_done = |driver: &dyn Driver| unsafe { driver.is_done(self.handle) };
        self.context.ask(|| "looking at an event".to_owned(), is_done)
    }

    /// The time from another event to this one. Both have times and are done.
    pub(crate) fn since(&self, start: &GpuEvent) -> Result<Duration> {
        // SAFETY: the events are their values' own.
        let elapsed = |driver: &dyn Driver| unsafe { driver.elapsed(start.handle, self.handle) };
        let seconds = self.context.ask(|| "comparing events".to_owned(), elapsed)?;
        Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for GpuEvent {
    fn drop(&mut self) {
        self.context.spare().events[usize::from(self.timed)].push(self.handle);
    }
}
