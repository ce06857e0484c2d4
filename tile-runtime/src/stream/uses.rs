//! Who still uses memory: the launches and copies on streams that aren't known to be done.
//!
//! Parts of one memory that have no element in common are ordered as if they were all of it: it is the memory that knows.
//!
//! What a device's own stream does with the device's memory isn't among them, nor what the host waits for: what uses the
//! memory later comes after that by itself. So memory that no stream has used costs a look at a number.

use super::event::Event;
use super::marks::{Access, Few, Mark, Marks};
use crate::error::Result;
use crate::gpu::{Context, EventKind, GpuStream};
use crate::tensor::Allocation;
use std::sync::Arc;

/// Events that work has to wait for.
pub(crate) type Events = Few<Event>;

/// The launches and copies that use some memory.
#[derive(Default)]
pub(crate) struct Uses(Marks<Event>);

impl Mark for Event {
    /// What a device refuses to say of isn't known to be done.
    fn is_over(&self) -> bool {
        self.is_done().unwrap_or(false)
    }

    fn is_behind(&self, other: &Event) -> bool {
        self.is_behind(other)
    }
}

impl Uses {
    /// What has to be done before the memory is read, or written.
    pub(crate) fn before(&self, access: Access) -> Events {
        self.0.before(access)
    }

    /// Notes what a GPU's stream has been given that reads the memory, or writes it, behind some events: the driver keeps the
    /// order, whatever fails.
    pub(crate) fn note(&self, event: &Event, access: Access, waited_for: &[Event]) {
        self.0.note(event, access, waited_for);
    }

    /// Notes work of the host's that reads the memory, or writes it, and passes some events. What a GPU was to do before stays
    /// noted until that is done: on a GPU that is lost it never is, and the work ends nevertheless. So does work of the host's
    /// before this, unless it was another process's to do.
    pub(super) fn note_on_host(&self, event: &Event, access: Access, passed: &[Event]) {
        let ended: Events = passed.iter().filter(|event| event.is_sure_to_end()).cloned().collect();
        self.note(event, access, &ended);
    }

    /// Waits on the host until the memory can be read, or written.
    ///
    /// # Errors
    /// As [`Event::pass`].
    pub(crate) fn wait(&self, access: Access) -> Result<()> {
        self.before(access).iter().try_for_each(Event::pass)
    }

    /// Has a GPU's own stream wait until the memory can be read, or written, and gives what it waits for.
    pub(crate) fn order(&self, context: &Context, access: Access) -> Result<Events> {
        let before = self.before(access);
        before.iter().try_for_each(|event| order(event, context))?;
        Ok(before)
    }

    /// Has a GPU's own stream wait until no GPU uses the memory any more, which nobody has; without one the host waits.
    /// What streams of the host do isn't waited for: they have the memory, and this may be the end of it.
    pub(crate) fn end(&self, context: Option<&Context>) -> Result<()> {
        let on_gpus = self.before(Access::Write).into_iter().filter(|event| event.on_gpu().is_some());
        on_gpus.into_iter().try_for_each(|event| match context {
            Some(context) => order(&event, context),
            None => event.pass(),
        })
    }
}

/// Waits on the host for all of some events, also behind one that can't be waited for.
///
/// # Errors
/// As [`Event::pass`], the first.
pub(super) fn pass_all(events: &[Event]) -> Result<()> {
    events.iter().map(Event::pass).fold(Ok(()), Result::and)
}

/// Has a GPU's own stream wait for an event, where its driver knows it; else the host.
fn order(event: &Event, context: &Context) -> Result<()> {
    match event.on_gpu() {
        Some(event) if event.context().family() == context.family() => context.wait_for(event),
        _ => event.pass(),
    }
}

/// Notes what was enqueued last on a GPU's stream, which has waited for some events, as what reads memory, or writes it, and
/// gives the event behind it. Of memory whose user can't be noted nobody would know when it may be freed: it stays.
pub(crate) fn note_last<'m>(
    stream: &GpuStream,
    memory: impl Iterator<Item = (&'m Arc<Allocation>, Access)>,
    waited_for: &[Event],
) -> Result<Event> {
    match Event::behind(stream, EventKind::Plain) {
        Ok(event) => {
            memory.for_each(|(allocation, access)| allocation.uses().note(&event, access, waited_for));
            Ok(event)
        }
        Err(error) => {
            if stream.synchronize().is_err() {
                memory.for_each(|(allocation, _)| std::mem::forget(Arc::clone(allocation)));
            }
            Err(error)
        }
    }
}
