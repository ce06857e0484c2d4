//! Streams: queues of launches and copies beside a device's own, with events and graphs.
//!
//! `.launch()` enqueues on a device's own stream. What is launched on others ([`Launch::on`](crate::Launch::on)) or copied
//! there ([`TensorRef::copy_from_on`](crate::TensorRef::copy_from_on)) runs beside that, in the order of each stream.
//! Memory knows who uses it (`uses.rs`): whatever else does, on whatever stream, waits for those before it, and so does
//! its release. So what a [`Pending`] borrows may be used again when it is gone, however it went.

mod completion;
mod event;
pub(crate) mod graph;
mod host;
mod marks;
#[cfg(test)]
mod marks_tests;
mod own;
mod pending;
mod turns;
mod uses;
pub(crate) mod waiting;

pub use event::Event;
pub use graph::{Graph, Recorder};
pub(crate) use host::{Kept, Owners};
pub(crate) use marks::Access;
pub use pending::{Launching, Pending};
pub(crate) use turns::Turns;
pub(crate) use uses::{Events, Uses, note_last};

use crate::device::{Device, Kind};
use crate::error::{Error, Result};
use crate::gpu::{EventKind, GpuStream};
use crate::tensor::Allocation;
use host::HostStream;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use uses::pass_all;

/// A queue of work on a device, which runs beside others. Clones are the same one. When the last is gone, what was
/// enqueued still runs.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::{Device, Stream};
/// let stream = Stream::new(&Device::cpu())?;
/// let (start, end) = (stream.record()?, stream.record()?);
/// stream.synchronize()?;
/// assert!(start.is_done()? && end.since(&start)?.as_secs() < 60);
/// # Ok::<(), tile::Error>(())
/// ```
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    device: Device,
    queue: Queue,
}

enum Queue {
    Host(HostStream),
    /// The own queue of what isn't a GPU.
    Own,
    Gpu(GpuStream),
}

impl Stream {
    /// A stream of a device, beside its [own queue](Device::stream). But on a GPU it is a thread. Streams that nobody has any more are
    /// used again; a thread that has been left without one for a while ends.
    ///
    /// # Errors
    /// [`Error::Driver`] where the device has no more streams.
    pub fn new(device: &Device) -> Result<Stream> {
        let queue = match &device.0 {
            Kind::Reference | Kind::Cpu | Kind::Simulated(_) => {
                Queue::Host(HostStream::new(device.number())?)
            }
            Kind::Gpu(context) => Queue::Gpu(GpuStream::new(context)?),
        };
        Ok(Stream(Arc::new(Inner { device: device.clone(), queue })))
    }

    /// A stream of another library, such as PyTorch's current one, by its driver's handle: a `CUstream`, `cudaStream_t`
    /// or `hipStream_t`; null is the default stream, and so is 1, as DLPack numbers it. Not 2, the default stream of whichever
    /// thread names it.
    ///
    /// # Safety
    /// The stream is one of the GPU (on NVIDIA's, of its primary context), and there as long as this value, its copies
    /// and what is made of them.
    ///
    /// # Errors
    /// [`Error::Stream`] where the device has no such streams, and for 2.
    pub unsafe fn from_raw(device: &Device, handle: *mut c_void) -> Result<Stream> {
        let Kind::Gpu(context) = &device.0 else {
            let problem = format!("{} has no streams of other libraries", device.name());
            return Err(Error::Stream { problem });
        };
        // SAFETY: the caller vouches for the stream.
        let queue = Queue::Gpu(unsafe { GpuStream::foreign(context, handle) }?);
        Ok(Stream(Arc::new(Inner { device: device.clone(), queue })))
    }

    /// The queue of a device on which launches are that say none.
    fn own(device: &Device) -> Stream {
        let queue = match &device.0 {
            Kind::Reference | Kind::Cpu | Kind::Simulated(_) => Queue::Own,
            Kind::Gpu(context) => Queue::Gpu(GpuStream::own(context)),
        };
        Stream(Arc::new(Inner { device: device.clone(), queue }))
    }

    /// The driver's handle of a GPU's stream, for other libraries: a `CUstream`, `cudaStream_t` or `hipStream_t`, null for
    /// the [own queue](Device::stream). `None` for streams of the host.
    ///
    /// It is there as long as this value or a copy of it. What another library enqueues there takes its place among what is
    /// enqueued here, and [`Stream::record`] and [`Stream::synchronize`] mean both. It isn't for the other library to destroy,
    /// and a capture of its must end before anybody waits for the stream or the device.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Stream};
    /// assert_eq!(Stream::new(&Device::cpu())?.as_raw(), None);
    /// # Ok::<(), tile::Error>(())
    /// ```
    pub fn as_raw(&self) -> Option<*mut c_void> {
        self.on_gpu().map(GpuStream::as_raw)
    }

    /// The device that does the work.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// An event behind everything that is enqueued, with the time at which it is reached.
    ///
    /// # Errors
    /// [`Error::Driver`] if the device fails.
    pub fn record(&self) -> Result<Event> {
        match &self.0.queue {
            Queue::Host(host) => Ok(Event::host(self.device(), host.enqueue(|| Ok(())))),
            Queue::Own => Ok(Event::host(self.device(), own::run(|| Ok(())))),
            Queue::Gpu(gpu) => Event::behind(gpu, EventKind::Timed),
        }
    }

    /// Has what is enqueued from now on wait for an event. For one of another vendor's device the host waits. What the work
    /// before the event failed with is told by its own stream.
    ///
    /// # Errors
    /// [`Error::Driver`] if a device fails; on a stream of the host [`Stream::synchronize`] gives it.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        match (&self.0.queue, event.on_gpu()) {
            (Queue::Gpu(gpu), Some(event)) if event.context().family() == gpu.context().family() => {
                gpu.wait_for(event)
            }
            // Who enqueued what fails is told of that, on its stream.
            (Queue::Gpu(_) | Queue::Own, _) => event.pass(),
            (Queue::Host(host), _) => {
                let event = event.clone();
                host.enqueue(move || event.pass());
                Ok(())
            }
        }
    }

    /// Waits for everything that is enqueued.
    ///
    /// # Errors
    /// The first failure of the stream's launches since the last call that no guard has told; [`Error::Driver`] if the device
    /// fails.
    pub fn synchronize(&self) -> Result<()> {
        match &self.0.queue {
            Queue::Host(host) => host.synchronize(),
            Queue::Own => Ok(()),
            Queue::Gpu(gpu) => gpu.synchronize(),
        }
    }

    /// What a piece of work failed with that was done when it was enqueued: nobody else is told of it.
    pub(crate) fn done_at_once(&self, work: &Event) -> Result<()> {
        match &self.0.queue {
            Queue::Own => work.wait(),
            Queue::Host(_) | Queue::Gpu(_) => Ok(()),
        }
    }

    pub(crate) fn on_gpu(&self) -> Option<&GpuStream> {
        match &self.0.queue {
            Queue::Gpu(gpu) => Some(gpu),
            Queue::Host(_) | Queue::Own => None,
        }
    }

    /// Has a stream of the host do something.
    #[cfg(test)]
    pub(crate) fn enqueue(&self, work: impl FnOnce() -> Result<()> + Send + 'static) -> Event {
        self.enqueue_with((), |()| work())
    }

    /// Has a stream of the host do something with memory, which `kept` keeps, after all that uses it.
    ///
    /// # Errors
    /// On a device's own queue, what it fails with.
    ///
    /// # Panics
    /// If it is one of a GPU.
    pub(crate) fn enqueue_on_memory<'m, K: Kept>(
        &self,
        memory: impl Iterator<Item = (&'m Arc<Allocation>, Access)> + Clone,
        kept: K,
        work: impl FnOnce(&K) -> Result<()> + Send + 'static,
    ) -> Result<Event> {
        let uses = memory.map(|(allocation, access)| (allocation.uses(), access));
        let before: Events = uses.clone().flat_map(|(uses, access)| uses.before(access)).collect();
        let passed = before.clone();
        let event = self.enqueue_with(kept, move |kept| pass_all(&before).and_then(|()| work(kept)));
        uses.for_each(|(uses, access)| uses.note_on_host(&event, access, &passed));
        self.done_at_once(&event)?;
        Ok(event)
    }

    /// Has a stream of the host do something with what is dropped when that is over.
    fn enqueue_with<K: Kept>(&self, kept: K, work: impl FnOnce(&K) -> Result<()> + Send + 'static) -> Event {
        match &self.0.queue {
            Queue::Host(host) => Event::host(self.device(), host.enqueue_with(kept, work)),
            Queue::Own => Event::host(self.device(), own::run(|| work(&kept))),
            Queue::Gpu(_) => unreachable!("a GPU doesn't do the host's work"),
        }
    }
}

impl Device {
    /// The device's own queue, on which launches are that name no stream, as a stream: for events behind them, times between
    /// them, and other streams that are to come after them. What is launched [on](crate::Launch::on) it is launched as
    /// [`Launch::launch`](crate::Launch::launch) does it.
    ///
    /// On a GPU it is the driver's default stream. Elsewhere a launch is done when it returns, and so is what is enqueued
    /// here: nothing of the queue is ever waited for.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Launch, Result, Stream, Tensor};
    /// fn timed(launch: Launch<'_>, device: &Device, other: &Stream) -> Result<()> {
    ///     let own = device.stream();
    ///     let start = own.record()?;
    ///     launch.launch()?;
    ///     let end = own.record()?;
    ///     other.wait_for(&end)?; // what is enqueued there from now on comes after the launch
    ///     println!("{:?}", end.since(&start)?);
    ///     Ok(())
    /// }
    /// ```
    pub fn stream(&self) -> Stream {
        Stream::own(self)
    }

    /// Waits for everything that the process has enqueued on the device: launches, copies and graphs on its own queue and
    /// on every [`Stream::new`], also on those that are gone. Not on streams of other libraries
    /// ([`Stream::from_raw`]), which are waited for by themselves.
    ///
    /// So it answers whether all launches on a GPU have succeeded, without reading a result. A launch on the CPU, the
    /// reference or a simulated device has said so itself when it returned; what one on a stream fails with there is told by
    /// its guard or by [`Stream::synchronize`], and not here.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Launch, Result, Tensor};
    /// fn step(launches: Vec<Launch<'_>>, device: &Device) -> Result<()> {
    ///     launches.into_iter().try_for_each(Launch::launch)?;
    ///     device.synchronize()
    /// }
    /// assert!(step(Vec::new(), &Device::cpu()).is_ok());
    /// ```
    ///
    /// # Errors
    /// [`Error::DeviceLost`] where a launch of any stream has failed on the GPU; [`Error::Driver`] if the device fails
    /// otherwise.
    pub fn synchronize(&self) -> Result<()> {
        match &self.0 {
            Kind::Gpu(context) => context.synchronize_all(),
            Kind::Cpu | Kind::Reference | Kind::Simulated(_) => {
                host::synchronize_all(self.number());
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream of {}", self.device().name())
    }
}

#[cfg(test)]
pub(crate) mod tests;
