//! Copies on streams, beside which the host goes on.
//!
//! Who may use memory while a copy has it is decided as for launches: a guard borrows the tensors, and the memory itself
//! knows the copy, so that a guard which is forgotten leaves nothing that is freed, read or written too early.

use super::TensorRef;
use super::host_elements::{HostElements, HostElementsMut};
use super::memory::{Allocation, Location};
use super::transfer::bytes_of;
use crate::device::{Device, Kind};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::gpu::GpuStream;
use crate::stream::graph::refuse_inside;
use crate::stream::{Access, Events, Pending, Stream, note_last};
use std::sync::Arc;

impl<T: Element> TensorRef<T> {
    /// Copies the elements of a tensor or view of the same shape here, on a stream: after what the stream was given before
    /// and what uses the two, beside the host and other streams. Where a GPU takes part, the stream is one of its, and the copy
    /// also comes after what the device's own queue has to do now: it goes on beside launches that are
    /// [on](crate::Launch::on) a stream themselves, and not beside those of [`Launch::launch`](crate::Launch::launch) before
    /// it, whatever tensors they use.
    ///
    /// Between a GPU and the host that is so for [pinned](crate::Tensor::pinned) tensors. With others the result is the same,
    /// but the driver may have the host wait. Waited for at once are elements that don't lie one after the other, unless one
    /// GPU has both tensors and copies them in rows, slices of the host and memory without an owner, which nobody else would
    /// keep, and copies from one GPU to another.
    ///
    /// ```
    /// # use tile_runtime as tile;
    /// use tile::{Device, Stream, Tensor};
    /// let device = Device::cpu(); // or a GPU
    /// let stream = Stream::new(&device)?;
    /// let mut staged = Tensor::<f32>::pinned(&device, [2, 2])?;
    /// let mut x = Tensor::zeros(&device, [2, 2])?;
    /// staged.as_mut_slice()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
    /// let pending = x.copy_from_on(&staged, &stream)?;
    /// // … the host goes on …
    /// pending.wait()?; // or `.await`, or `.detach()`
    /// assert_eq!(x.to_vec()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), tile::Error>(())
    /// ```
    ///
    /// What is written can't be looked at meanwhile, nor what is read be written or freed:
    ///
    /// ```compile_fail,E0502
    /// # use tile_runtime::{Result, Stream, Tensor};
    /// fn wrong(x: &mut Tensor<f32>, staged: &Tensor<f32>, stream: &Stream) -> Result<Vec<f32>> {
    ///     let pending = x.copy_from_on(staged, stream)?;
    ///     let early = x.to_vec()?;
    ///     pending.wait()?;
    ///     Ok(early)
    /// }
    /// ```
    ///
    /// ```compile_fail,E0502
    /// # use tile_runtime::{Result, Stream, Tensor};
    /// fn wrong(x: &mut Tensor<f32>, staged: &mut Tensor<f32>, stream: &Stream) -> Result<()> {
    ///     let pending = x.copy_from_on(staged, stream)?;
    ///     staged.as_mut_slice()?[0] = 1.0;
    ///     pending.wait()
    /// }
    /// ```
    ///
    /// ```compile_fail,E0505
    /// # use tile_runtime::{Result, Stream, Tensor};
    /// fn wrong(x: &mut Tensor<f32>, staged: Tensor<f32>, stream: &Stream) -> Result<()> {
    ///     let pending = x.copy_from_on(&staged, stream)?;
    ///     drop(staged);
    ///     pending.wait()
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::Stream`] where the stream is another device's, and inside of a graph;
    /// [`Error::Driver`] if a device fails.
    pub fn copy_from_on<'a>(&'a mut self, source: &'a TensorRef<T>, stream: &Stream) -> Result<Pending<'a>> {
        refuse_inside("a copy on a stream")?;
        self.check_shape_of(source)?;
        check_stream([self.device(), source.device()], stream)?;
        if self.is_empty() {
            return Ok(Pending::done());
        }
        let pending = match stream.on_gpu() {
            Some(gpu) => self.copy_on_gpu(source, stream, gpu)?,
            None => self.copy_on_host(source, stream).transpose()?,
        };
        if let Some(pending) = pending {
            return Ok(pending);
        }
        // Who enqueued what fails before it is told of that.
        let _ = stream.record()?.wait();
        self.copy_from(source)?;
        match &self.device().0 {
            Kind::Gpu(context) => context.synchronize()?,
            Kind::Cpu | Kind::Reference | Kind::Simulated(_) => {}
        }
        Ok(Pending::done())
    }

    /// A copy on a GPU's stream; `None` where it has to be waited for.
    fn copy_on_gpu<'a>(
        &mut self,
        source: &TensorRef<T>,
        stream: &Stream,
        gpu: &GpuStream,
    ) -> Result<Option<Pending<'a>>> {
        let is_of_gpu = |location: &Location| match &location.device().0 {
            Kind::Gpu(context) => Some(Arc::ptr_eq(context, gpu.context())),
            Kind::Cpu | Kind::Reference | Kind::Simulated(_) => None,
        };
        let stays = |location: &Location| match is_of_gpu(location) {
            // Who made a tensor of memory on the GPU vouches for it.
            Some(is_the_streams) => is_the_streams,
            None => location.allocation().is_some(),
        };
        if !(stays(&self.location) && stays(&source.location)) {
            return Ok(None);
        }
        let is_dense = self.is_dense() && source.is_dense();
        let is_on_one = [&self.location, &source.location].map(is_of_gpu) == [Some(true); 2];
        let sets = if is_dense || !is_on_one { None } else { self.rows_of(&source.descriptor) };
        if !is_dense && sets.is_none() {
            return Ok(None);
        }
        gpu.follow()?;
        let before = before(&self.location, &source.location);
        before.iter().try_for_each(|event| stream.wait_for(event))?;
        let (first, range) = (bytes_of::<T>(&self.descriptor).start, bytes_of::<T>(&source.descriptor));
        // What is enqueued is noted also where there is more of it that the driver refuses.
        let copied = match &sets {
            Some(sets) => self.location.copy_rows(&source.location, sets, Some(gpu)),
            // SAFETY: the stream comes after what is in use, and the copy is noted below. Whoever keeps a GPU's memory that we
            // don't vouches for it.
            None => unsafe {
                self.location.enqueue(first, &source.location, range, gpu.context(), Some(gpu))
            },
        };
        let used = memory(&self.location, &source.location);
        let pending = Pending::until(note_last(gpu, used, &before)?, stream);
        match copied {
            Ok(()) => Ok(Some(pending)),
            // Rows that this driver doesn't take go by way of the host.
            Err(Error::Driver { .. }) if sets.is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A copy by the thread of a host's stream; `None` where it has to be waited for.
    fn copy_on_host<'a>(&mut self, source: &TensorRef<T>, stream: &Stream) -> Option<Result<Pending<'a>>> {
        self.location.allocation().and(source.location.allocation())?;
        let descriptors = (self.descriptor.clone(), source.descriptor.clone());
        let locations = [self.location.clone(), source.location.clone()];
        let used = memory(&self.location, &source.location);
        let event = stream.enqueue_on_memory(used, locations, move |[to, from]| {
            let (to_descriptor, from_descriptor) = descriptors;
            // SAFETY: the locations keep the memory; who borrows these elements to write, reads or frees them waits for this
            // event, and this has waited for those before it.
            let source = unsafe { HostElements::<T>::new(from.memory(), &from_descriptor) };
            // SAFETY: likewise.
            let mut target = unsafe { HostElementsMut::new(to.memory(), &to_descriptor) };
            target.copy_from(&source)
        });
        Some(event.map(|event| Pending::until(event, stream)))
    }
}

/// The memory that a copy writes and reads, where it has a list of its users, and which of the two.
fn memory<'l>(
    target: &'l Location,
    source: &'l Location,
) -> impl Iterator<Item = (&'l Arc<Allocation>, Access)> + Clone {
    let both = [(target, Access::Write), (source, Access::Read)].into_iter();
    both.filter_map(|(location, access)| Some((location.allocation()?, access)))
}

/// What has to be done before a copy.
fn before(target: &Location, source: &Location) -> Events {
    memory(target, source).flat_map(|(allocation, access)| allocation.uses().before(access)).collect()
}

/// Whether a stream is one of the GPU that takes part in a copy, or, without any, of one of the two devices.
fn check_stream(devices: [&Device; 2], stream: &Stream) -> Result<()> {
    let is_gpu = |device: &Device| matches!(device.0, Kind::Gpu(_));
    let needs_gpu = devices.into_iter().any(is_gpu);
    if devices.into_iter().any(|device| device == stream.device() && is_gpu(device) == needs_gpu) {
        return Ok(());
    }
    let [target, source] = devices.map(Device::name);
    let whose =
        devices.into_iter().find(|device| is_gpu(device) == needs_gpu).map_or(String::new(), Device::name);
    Err(Error::Stream {
        problem: format!(
            "a copy from {source} to {target} can't be on a stream of {}; take one of {whose}",
            stream.device().name()
        ),
    })
}
