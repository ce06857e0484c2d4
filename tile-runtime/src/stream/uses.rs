//! Who still uses memory: the launches and copies on streams that aren't known to be done.
//!
//! What a device's own stream does with the device's memory isn't among them, nor what the host waits for: what uses the
//! memory later comes after that by itself. So memory that no stream has used costs a look at a number.

use super::event::Event;
use crate::error::Result;
use crate::gpu::{Context, GpuStream};
use crate::tensor::Allocation;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Events that work has to wait for.
pub(crate) type Events = SmallVec<[Event; 2]>;

/// The launches and copies that use some memory.
#[derive(Default)]
pub(crate) struct Uses {
    /// Whether there may be any.
    any: AtomicBool,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    written: Option<Event>,
    /// Since it was written.
    read: Events,
}

impl Uses {
    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has to be done before the memory is read, or written. Nothing else is enqueued meanwhile that would have to
    /// be waited for: who is about to read or write borrows the memory.
    pub(crate) fn before(&self, writes: bool) -> Events {
        if !self.any.load(Ordering::Acquire) {
            return Events::new();
        }
        let mut list = self.list();
        list.forget_done();
        self.any.store(list.written.is_some() || !list.read.is_empty(), Ordering::Release);
        let reads = if writes { list.read.as_slice() } else { &[] };
        list.written.iter().chain(reads).cloned().collect()
    }

    /// Notes what reads the memory, or writes it, after waiting for what was before.
    pub(crate) fn note(&self, event: &Event, writes: bool) {
        let mut list = self.list();
        if writes {
            list.read.clear();
            list.written = Some(event.clone());
        } else {
            list.forget_done();
            list.read.push(event.clone());
        }
        self.any.store(true, Ordering::Release);
    }

    /// Waits on the host until the memory can be read, or written.
    ///
    /// # Errors
    /// As [`Event::pass`].
    pub(crate) fn wait(&self, writes: bool) -> Result<()> {
        self.before(writes).iter().try_for_each(Event::pass)
    }

    /// Has a GPU's own stream wait until the memory can be read, or written.
    pub(crate) fn order(&self, context: &Context, writes: bool) -> Result<()> {
        self.before(writes).iter().try_for_each(|event| order(event, context))
    }

    /// Has a GPU's own stream wait until no GPU uses the memory any more, which nobody has; without one the host waits.
    /// What streams of the host do isn't waited for: they have the memory, and this may be the end of it.
    pub(crate) fn end(&self, context: Option<&Context>) -> Result<()> {
        let on_gpus = self.before(true).into_iter().filter(|event| event.on_gpu().is_some());
        on_gpus.into_iter().try_for_each(|event| match context {
            Some(context) => order(&event, context),
            None => event.wait(),
        })
    }
}

/// Has a GPU's own stream wait for an event, where its driver knows it; else the host.
fn order(event: &Event, context: &Context) -> Result<()> {
    match event.on_gpu() {
        Some(event) if event.context().family() == context.family() => context.wait_for(event),
        _ => event.wait(),
    }
}

/// Notes what was enqueued last on a GPU's stream as what reads memory, or writes it, and gives the event behind it. Of
/// memory whose user can't be noted nobody would know when it may be freed: it stays.
pub(crate) fn note_last<'m>(
    stream: &GpuStream,
    memory: impl Iterator<Item = (&'m Arc<Allocation>, bool)>,
) -> Result<Event> {
    match stream.record(false) {
        Ok(event) => {
            let event = Event::gpu(event);
            memory.for_each(|(allocation, writes)| allocation.uses().note(&event, writes));
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

impl List {
    /// What a device refuses to say of isn't known to be done.
    fn forget_done(&mut self) {
        let is_done = |event: &Event| event.is_done().unwrap_or(false);
        self.written.take_if(|event| is_done(event));
        self.read.retain(|event| !is_done(event));
    }
}
