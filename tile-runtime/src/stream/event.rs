//! Places in streams.

use super::completion::Completion;
use super::turns::Turn;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::gpu::{EventKind, GpuEvent, GpuStream};
use crate::process::Process;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A place in a stream, behind everything that was enqueued when [`Stream::record`](super::Stream::record) made it.
/// Copies are the same one.
#[derive(Clone)]
pub struct Event(Arc<Place>);

enum Place {
    Host(Host),
    Gpu(GpuEvent, Turn),
}

/// A piece of work of the host's.
struct Host {
    completion: Arc<Completion>,
    /// The number of the device that does it.
    device: usize,
    /// Where it is done.
    process: Process,
}

impl Host {
    /// The end of the work.
    ///
    /// # Errors
    /// [`Error::Stream`] where it will never come, because the process is another one.
    fn end(&self) -> Result<&Arc<Completion>> {
        match self.process.is_over() && self.completion.ended().is_none() {
            false => Ok(&self.completion),
            true => Err(Process::error()),
        }
    }
}

impl Event {
    pub(super) fn host(device: &Device, completion: Arc<Completion>) -> Event {
        let (device, process) = (device.number(), Process::current());
        Event(Arc::new(Place::Host(Host { completion, device, process })))
    }

    /// Behind what a GPU's stream has been given.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails.
    pub(super) fn behind(stream: &GpuStream, kind: EventKind) -> Result<Event> {
        let (event, turn) = stream.turns().take(|| stream.record(kind))?;
        Ok(Event(Arc::new(Place::Gpu(event, turn))))
    }

    /// Whether both are a GPU's, and this one is known to be behind the other on the same stream.
    pub(super) fn is_behind(&self, other: &Event) -> bool {
        match (&*self.0, &*other.0) {
            (Place::Gpu(_, turn), Place::Gpu(_, other)) => turn.is_behind(other),
            _ => false,
        }
    }

    /// The event of a GPU, if it is one.
    pub(crate) fn on_gpu(&self) -> Option<&GpuEvent> {
        match &*self.0 {
            Place::Gpu(event, _) => Some(event),
            Place::Host(_) => None,
        }
    }

    /// The work of the host before it, if it is there.
    ///
    /// # Errors
    /// [`Error::Stream`] where that is never done.
    pub(super) fn on_host(&self) -> Result<Option<&Arc<Completion>>> {
        match &*self.0 {
            Place::Host(host) => host.end().map(Some),
            Place::Gpu(..) => Ok(None),
        }
    }

    /// Whether the work before it is the host's, and done at some time, whatever comes.
    pub(super) fn is_sure_to_end(&self) -> bool {
        match &*self.0 {
            Place::Host(host) => host.end().is_ok(),
            Place::Gpu(..) => false,
        }
    }

    /// Waits until the work before it is done.
    ///
    /// # Errors
    /// What that piece of work failed with which the event stands right behind; [`Error::Driver`] if the device fails.
    pub fn wait(&self) -> Result<()> {
        match &*self.0 {
            Place::Host(host) => host.end()?.tell(),
            Place::Gpu(event, _) => event.wait(),
        }
    }

    /// Waits until nothing before it uses memory any more. What work of the host failed with is told by itself.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] and [`Error::Driver`]: what a GPU has been given may not be done. [`Error::Stream`]: nor will what
    /// a thread of another process does.
    pub(crate) fn pass(&self) -> Result<()> {
        match &*self.0 {
            Place::Host(host) => {
                let (_when, _how) = host.end()?.wait();
                Ok(())
            }
            Place::Gpu(event, _) => event.wait(),
        }
    }

    /// Whether the work before it is done.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails.
    pub fn is_done(&self) -> Result<bool> {
        match &*self.0 {
            Place::Host(host) => Ok(host.end()?.ended().is_some()),
            Place::Gpu(event, _) => event.is_done(),
        }
    }

    /// How long after another event of the same device this one was reached, after waiting for both; nothing if it was
    /// reached before.
    ///
    /// # Errors
    /// [`Error::Stream`] for events of different devices; as [`Event::wait`] else.
    pub fn since(&self, start: &Event) -> Result<Duration> {
        match (&*self.0, &*start.0) {
            (Place::Host(end), Place::Host(start)) if end.device == start.device => {
                Ok(end.end()?.wait().0.saturating_duration_since(start.end()?.wait().0))
            }
            (Place::Gpu(end, _), Place::Gpu(start, _)) if Arc::ptr_eq(end.context(), start.context()) => {
                start.wait()?;
                end.wait()?;
                end.since(start)
            }
            _ => Err(Error::Stream {
                problem: "there is no time between events of different devices".to_owned(),
            }),
        }
    }
}

impl PartialEq for Event {
    /// Whether one is a copy of the other.
    fn eq(&self, other: &Event) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Event {}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.is_done() {
            Ok(true) => "done",
            Ok(false) => "not done",
            Err(_) => "failed",
        };
        write!(f, "Event({state})")
    }
}
