//! Streams and events of a GPU.

use super::context::Context;
use super::driver::{Driver, EventHandle, EventKind, StreamHandle};
use super::work::Followed;
use crate::error::{Error, Result};
use crate::stream::Turns;
use crate::stream::waiting::{self, Ticket};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// Streams and events that nobody has any more, for the next ones.
#[derive(Default)]
pub(super) struct Spare {
    streams: Vec<StreamHandle>,
    /// Those that launches are captured on. They are apart, because a driver refuses to wait for a stream that captures, and
    /// spoils the capture.
    capturing: Vec<StreamHandle>,
    /// All that were made to run work, in use or spare.
    made: Vec<StreamHandle>,
    plain_events: Vec<EventHandle>,
    timed_events: Vec<EventHandle>,
}

impl Spare {
    /// Streams of a kind that nobody has; none of those that aren't made here.
    fn streams_of(&mut self, purpose: Purpose) -> Option<&mut Vec<StreamHandle>> {
        match purpose {
            Purpose::Work => Some(&mut self.streams),
            Purpose::Captures => Some(&mut self.capturing),
            Purpose::Others => None,
        }
    }

    fn events_of(&mut self, kind: EventKind) -> &mut Vec<EventHandle> {
        match kind {
            EventKind::Plain => &mut self.plain_events,
            EventKind::Timed => &mut self.timed_events,
        }
    }
}

/// What a stream is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It was made here, to run work.
    Work,
    /// It was made here, to capture work.
    Captures,
    /// It is the context's own, or another library's.
    Others,
}

/// A stream that was made here, the context's own, or that of another library.
pub(crate) struct GpuStream {
    context: Arc<Context>,
    handle: StreamHandle,
    purpose: Purpose,
    /// How much work of the context's stream it has waited for.
    followed: Followed,
    /// Of the events on it.
    turns: Turns,
}

/// A place in a stream.
pub(crate) struct GpuEvent {
    context: Arc<Context>,
    handle: EventHandle,
    kind: EventKind,
}

impl Context {
    fn spare(&self) -> MutexGuard<'_, Spare> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An event that stands nowhere yet.
    pub(super) fn new_event(self: &Arc<Self>, kind: EventKind) -> Result<GpuEvent> {
        let make = |driver: &dyn Driver| {
            let spare = self.spare().events_of(kind).pop();
            spare.map_or_else(|| driver.create_event(kind), Ok)
        };
        let handle = self.ask(|| "making an event".to_owned(), make)?;
        Ok(GpuEvent { context: Arc::clone(self), handle, kind })
    }

    /// An event behind the work of a stream.
    pub(super) fn event(self: &Arc<Self>, stream: StreamHandle, kind: EventKind) -> Result<GpuEvent> {
        let event = self.new_event(kind)?;
        event.record(stream).map(|()| event)
    }

    /// An event without a time whose handle was [taken](GpuEvent::into_handle).
    pub(super) fn event_of(self: &Arc<Self>, handle: EventHandle) -> GpuEvent {
        GpuEvent { context: Arc::clone(self), handle, kind: EventKind::Plain }
    }

    /// Keeps an event for the next one, of which only the handle is left.
    pub(super) fn spare_event(&self, handle: EventHandle) {
        self.spare().events_of(EventKind::Plain).push(handle);
    }

    /// Waits for what was enqueued on the context's own stream and on those that were made here, whoever has them.
    pub(crate) fn synchronize_all(&self) -> Result<()> {
        // They stay as long as the context does. Nobody is kept waiting for the list meanwhile.
        let made = self.spare().made.clone();
        self.synchronize()?;
        made.into_iter().try_for_each(|stream| self.synchronize_handle(stream))
    }

    /// Has the context's own stream wait for an event, which is on a GPU of the same vendor.
    pub(crate) fn wait_for(&self, event: &GpuEvent) -> Result<()> {
        let _work = self.work.begin();
        self.order(self.stream, event)
    }

    fn order(&self, stream: StreamHandle, event: &GpuEvent) -> Result<()> {
        // SAFETY: both are there; who waits goes on waiting when the event is recorded again.
        let wait = |driver: &dyn Driver| unsafe { driver.wait(stream, event.handle) };
        self.ask(|| "waiting for an event".to_owned(), wait)
    }

    /// Destroys what is spare, before the driver goes.
    pub(super) fn destroy_spare(&self) {
        let Spare { streams, capturing, made: _, plain_events, timed_events } =
            std::mem::take(&mut *self.spare());
        for stream in streams.into_iter().chain(capturing) {
            // SAFETY: the stream was made here, nobody has it, and its work is done.
            let _ = unsafe { self.driver.destroy_stream(stream) };
        }
        for event in plain_events.into_iter().chain(timed_events) {
            // SAFETY: the event was made here, and nobody has it.
            let _ = unsafe { self.driver.destroy_event(event) };
        }
    }
}

impl GpuStream {
    /// A stream.
    pub(crate) fn new(context: &Arc<Context>) -> Result<GpuStream> {
        GpuStream::made(context, Purpose::Work)
    }

    /// A stream on which launches are captured, and nothing runs.
    pub(super) fn for_captures(context: &Arc<Context>) -> Result<GpuStream> {
        GpuStream::made(context, Purpose::Captures)
    }

    fn made(context: &Arc<Context>, purpose: Purpose) -> Result<GpuStream> {
        let spare = context.spare().streams_of(purpose).and_then(Vec::pop);
        let make = |driver: &dyn Driver| match spare {
            Some(spare) => Ok(spare),
            None => {
                let made = driver.create_stream()?;
                if purpose == Purpose::Work {
                    context.spare().made.push(made);
                }
                Ok(made)
            }
        };
        let handle = context.ask(|| "making a stream".to_owned(), make)?;
        Ok(GpuStream::of(context, handle, purpose))
    }

    /// The context's own stream.
    pub(crate) fn own(context: &Arc<Context>) -> GpuStream {
        GpuStream::of(context, context.stream, Purpose::Others)
    }

    /// The stream of another library, by the driver's handle.
    ///
    /// # Safety
    /// The stream is the GPU's, and there as long as this value and what is made of it.
    ///
    /// # Errors
    /// [`Error::Stream`] for a handle that is another stream on each thread.
    pub(crate) unsafe fn foreign(context: &Arc<Context>, handle: *mut c_void) -> Result<GpuStream> {
        let handle = StreamHandle::of_raw(handle).ok_or_else(|| Error::Stream {
            problem: "handle 2 (`CU_STREAM_PER_THREAD`, `hipStreamPerThread`) is another stream on each thread that names \
                      it, so it doesn't say after what a launch comes; make a stream in the other library, and give its \
                      handle"
                .to_owned(),
        })?;
        let stream = GpuStream::of(context, handle, Purpose::Others);
        stream.share();
        Ok(stream)
    }

    fn of(context: &Arc<Context>, handle: StreamHandle, purpose: Purpose) -> GpuStream {
        GpuStream {
            context: Arc::clone(context),
            handle,
            purpose,
            followed: Followed::new(),
            turns: Turns::new(),
        }
    }

    pub(super) fn handle(&self) -> StreamHandle {
        self.handle
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// The driver's handle.
    pub(crate) fn as_raw(&self) -> *mut c_void {
        self.share();
        self.handle.0 as *mut c_void
    }

    /// Notes that another library has the handle.
    fn share(&self) {
        if self.handle == self.context.stream {
            self.context.is_stream_shared.store(true, Ordering::Release);
        }
    }

    /// The GPU.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Waits for what was enqueued on the context's own stream before.
    pub(crate) fn follow(&self) -> Result<()> {
        if self.handle == self.context.stream {
            return Ok(());
        }
        let wait = || {
            let before = self.context.event(self.context.stream, EventKind::Plain)?;
            self.wait_for(&before)
        };
        match self.context.is_stream_shared.load(Ordering::Acquire) {
            true => wait(),
            false => self.followed.follow(&self.context.work, wait),
        }
    }

    /// Has what is enqueued from now on wait for an event.
    pub(crate) fn wait_for(&self, event: &GpuEvent) -> Result<()> {
        let (handle, _work) = self.context.handle(Some(self));
        self.context.order(handle, event)
    }

    /// An event behind what is enqueued.
    pub(crate) fn record(&self, kind: EventKind) -> Result<GpuEvent> {
        self.context.event(self.handle, kind)
    }

    /// Waits for what is enqueued.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.context.synchronize_handle(self.handle)
    }

    /// Has a task woken when what is enqueued is done, or when the device is lost. The ticket is what a call before gave,
    /// and is renewed: no more is enqueued while the task waits.
    pub(crate) fn wake(&self, waker: &Waker, ticket: &mut Option<Ticket>) -> Result<()> {
        if ticket.as_ref().is_some_and(|ticket| ticket.renew(waker)) {
            return Ok(());
        }
        let new = Ticket::of(Some(&self.context), waker)?;
        // SAFETY: the function is called once at most, with the number of the ticket, and calls no driver.
        let call = |driver: &dyn Driver| unsafe { driver.call(waiting::reached, new.data(), self.handle) };
        self.context.ask(|| "waiting for the device".to_owned(), call)?;
        *ticket = Some(new);
        Ok(())
    }
}

impl Drop for GpuStream {
    fn drop(&mut self) {
        if let Some(spare) = self.context.spare().streams_of(self.purpose) {
            spare.push(self.handle);
        }
    }
}

impl GpuEvent {
    /// Puts it behind the work of a stream, whose giver vouches for it.
    pub(super) fn record(&self, stream: StreamHandle) -> Result<()> {
        // SAFETY: the event is this value's own; see above for the stream.
        let record = |driver: &dyn Driver| unsafe { driver.record(self.handle, stream) };
        self.context.ask(|| "recording an event".to_owned(), record)
    }

    /// The handle, with which [`Context::event_of`] makes the event again: it keeps no context.
    pub(super) fn into_handle(self) -> EventHandle {
        let event = ManuallyDrop::new(self);
        // SAFETY: the event isn't used any more, and this part of it isn't dropped elsewhere.
        drop(unsafe { std::ptr::read(&event.context) });
        event.handle
    }

    /// Waits until the work before it is done.
    pub(crate) fn wait(&self) -> Result<()> {
        // SAFETY: the event is this value's own.
        let wait = |driver: &dyn Driver| unsafe { driver.synchronize_event(self.handle) };
        self.context.ask(|| "waiting for the device".to_owned(), wait)
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
        self.context.spare().events_of(self.kind).push(self.handle);
    }
}
