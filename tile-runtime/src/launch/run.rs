//! How a launch runs: on its device's own queue, on a stream beside that, or as one of a graph's.
//!
//! Arguments are checked before (`bind`). What uses the tensors of a launch and isn't known to be done is waited for: by
//! the host, where the host does the work, else by the queue that the launch goes to.

use super::host::{HostCode, HostRun};
use super::places::placed;
use super::{Checked, Given, GivenValue, Launch, Slots};
use crate::device::{Device, Kind};
use crate::error::{Error, Result};
use crate::gpu::{self, GpuStream, Parameters, Ready, RowCopy, RowSize, Rows};
use crate::journal;
use crate::messages::{self, Sink};
use crate::profile::{self, ToNote};
use crate::reference::{RawArgument, RawTensor};
use crate::stream::graph::refuse_inside;
use crate::stream::{Access, Events, Pending, Stream, note_last};
use crate::tensor::{Allocation, Location, Place, scratch, transfer};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;
use tile_ir::abi::LaunchSizes;
use tile_ir::padding::{Padded, PaddedTensor};
use tile_ir::tensor_map;

/// Aligned copies of tensors, which a launch reads in their place.
type Copies = SmallVec<[Location; 2]>;

impl<'a> Launch<'a> {
    /// Checks the arguments and runs the kernel on the device of its tensors. On the CPU and the reference
    /// the results are there when this returns; on a GPU the work is enqueued, and reading a result waits. A kernel
    /// that prints or asserts is waited for.
    ///
    /// # Errors
    /// [`Error`]: shapes that don't fit, tensors on different devices, no code for the device, and what the
    /// device reports. Nothing has run in the first three cases.
    /// [`Error::AssertionFailed`] where a `tile_assert!` doesn't hold: what the kernel
    /// wrote is then unspecified. [`Error::Stream`] inside of a graph's closure, where launches are made by
    /// [`Recorder::launch`](crate::Recorder::launch).
    pub fn launch(self) -> Result<()> {
        self.launch_by(false).map(drop)
    }

    /// [`Launch::launch`], and how long the kernel took; on a GPU this waits for it.
    ///
    /// # Errors
    /// As [`Launch::launch`].
    pub fn launch_timed(self) -> Result<Duration> {
        self.launch_by(true)
    }

    fn launch_by(self, timed: bool) -> Result<Duration> {
        let site = self.site();
        site.locate(refuse_inside("a launch that isn't the graph's").and_then(|()| self.run(timed)))
    }

    /// Checks the arguments and has a stream run the kernel, after what it was given before and after the launches that
    /// use the same tensors. On a GPU it also comes after what the device's own stream has to do now.
    ///
    /// Kernels whose messages go to a function, or on a GPU those that print or assert at all, are waited for; on the CPU
    /// also those that use slices of the host or memory without an owner, which nobody else would keep.
    ///
    /// # Errors
    /// As [`Launch::launch`]; [`Error::Refused`] where the stream is another device's.
    pub fn on(self, stream: &Stream) -> Result<Pending<'a>> {
        let site = self.site();
        site.locate(self.enqueue(stream))
    }

    fn enqueue(mut self, stream: &Stream) -> Result<Pending<'a>> {
        refuse_inside("a launch on a stream")?;
        let checked = self.checked()?;
        self.check_device(checked.device, "stream", stream.device())?;
        if checked.bound.blocks() == 0 {
            return Ok(Pending::done());
        }
        if profile::is_on() {
            // A launch that is noted is waited for, wherever it runs. Who enqueued what fails before it is told of that.
            let _ = stream.record()?.wait();
            return self.run(true).map(|_| Pending::done());
        }
        journal::launch(checked.prepared.instance(), checked.device, checked.bound.blocks());
        match (&checked.device.0, stream.on_gpu()) {
            (Kind::Gpu(context), Some(on)) => {
                let mut sink = self.sink.take();
                let before = self.before();
                before.iter().try_for_each(|event| stream.wait_for(event))?;
                // A launch whose messages can't be waited for is enqueued all the same.
                let mut copies = Copies::new();
                let run = self.run_gpu(&checked, context, Some(on), &mut sink, &mut copies);
                let copied = copies.iter().filter_map(|copy| Some((copy.allocation()?, Access::Write)));
                let mut memory = self.memory().chain(copied).peekable();
                if memory.peek().is_none() {
                    return run.map(|()| Pending::until_idle(stream));
                }
                let event = note_last(on, memory, &before);
                run.and(event).map(|event| Pending::until(event, stream))
            }
            _ => self.on_host(&checked, stream),
        }
    }

    fn on_host(mut self, checked: &Checked<'a>, stream: &Stream) -> Result<Pending<'a>> {
        let is_borrowed = |given: &Given<'_>| match given.value {
            GivenValue::Tensor { tensor, .. } => tensor.allocation().is_none(),
            _ => false,
        };
        let mut sink = self.sink.take();
        if sink.is_some() || self.arguments.iter().any(is_borrowed) {
            let _ = stream.record()?.wait();
            self.run_host(checked, false, &mut sink)?;
            return Ok(Pending::done());
        }
        let memory: Vec<Arc<Allocation>> =
            self.memory().map(|(allocation, _)| Arc::clone(allocation)).collect();
        let (site, run) = (self.site(), self.host_run(checked)?.for_later(&checked.bound));
        let event = stream.enqueue_on_memory(self.memory(), memory, move |_| {
            // SAFETY: `memory` keeps every tensor; who borrows these elements to write, reads or frees them waits for this
            // event, and this has waited for those before it.
            site.locate(unsafe { run.run() })
        })?;
        Ok(Pending::until(event, stream))
    }

    /// The launch for a graph of a device, where it is to be enqueued later: nothing where it has run already. Of one that is
    /// to be noted then, what is noted.
    pub(crate) fn in_graph(self, graph: &Device, noted: bool) -> Result<Option<(Ready, Option<ToNote>)>> {
        let site = self.site();
        site.locate(self.record(graph, noted))
    }

    fn record(self, graph: &Device, noted: bool) -> Result<Option<(Ready, Option<ToNote>)>> {
        let checked = self.checked()?;
        let Checked { prepared, device, bound, .. } = &checked;
        self.check_device(device, "graph", graph)?;
        if prepared.abi().logs {
            return Err(self.refused(
                "it prints or asserts, and nobody waits for the launches of a graph; launch it before or after",
            ));
        }
        match &device.0 {
            _ if bound.blocks() == 0 => Ok(None),
            Kind::Gpu(context) => {
                journal::launch(prepared.instance(), device, bound.blocks());
                let ready = self.ready(&checked, context, None)?;
                Ok(Some((ready, noted.then(|| self.to_note(&checked)))))
            }
            _ => self.run(false).map(|_| None),
        }
    }

    /// Whether a stream or graph is the tensors' device's.
    pub(super) fn check_device(&self, device: &Device, queue: &str, other: &Device) -> Result<()> {
        if device == other {
            return Ok(());
        }
        let (device, other) = (device.name(), other.name());
        Err(self.refused(format!(
            "its tensors are on {device}, and the {queue} is one of {other}; take one of {device}, or move the tensors with \
             `Tensor::copy_to`"
        )))
    }

    /// The memory of the tensors that is theirs, and what is done with it.
    pub(crate) fn memory(&self) -> impl Iterator<Item = (&Arc<Allocation>, Access)> + Clone {
        self.arguments.iter().filter_map(|given| match given.value {
            GivenValue::Tensor { tensor, access, .. } => Some((tensor.allocation()?, access)),
            GivenValue::Scalar { .. } => None,
        })
    }

    /// What has to be done before the launch.
    fn before(&self) -> Events {
        self.memory().flat_map(|(allocation, access)| allocation.uses().before(access)).collect()
    }

    fn run(mut self, timed: bool) -> Result<Duration> {
        let mut sink = self.sink.take();
        let checked = self.checked()?;
        self.run_checked(&checked, timed, &mut sink)
    }

    /// Runs an instance whose arguments fit. The launch borrows what it writes, and runs nothing else meanwhile.
    pub(super) fn run_checked(
        &self,
        checked: &Checked<'_>,
        timed: bool,
        sink: &mut Option<Sink<'_>>,
    ) -> Result<Duration> {
        let Checked { prepared, device, bound, .. } = checked;
        if bound.blocks() == 0 {
            return Ok(Duration::ZERO);
        }
        journal::launch(prepared.instance(), device, bound.blocks());
        let is_profiled = profile::is_on();
        let timed = timed || is_profiled;
        let time = match &device.0 {
            Kind::Reference | Kind::Cpu | Kind::Simulated(_) => self.run_host(checked, timed, sink)?,
            Kind::Gpu(context) => {
                let mut memory = self.memory();
                memory.try_for_each(|(allocation, access)| {
                    allocation.uses().order(context, access).map(drop)
                })?;
                // What is copied is given back behind the launch, on the same queue.
                let mut copies = Copies::new();
                match timed {
                    true => self.time_gpu(checked, context, sink, &mut copies)?,
                    false => {
                        self.run_gpu(checked, context, None, sink, &mut copies)?;
                        Duration::ZERO
                    }
                }
            }
        };
        if is_profiled {
            self.to_note(checked).note(time);
        }
        Ok(time)
    }

    fn to_note(&self, checked: &Checked<'_>) -> ToNote {
        let Checked { prepared, device, bound, .. } = checked;
        ToNote {
            kernel: self.kernel.name,
            instance: prepared.parameters(),
            device: (*device).clone(),
            blocks: bound.blocks(),
            totals: prepared.counts().total(prepared.abi(), bound),
        }
    }

    /// The launch with its code and parameters.
    fn ready(&self, checked: &Checked<'_>, context: &gpu::Context, log: Option<u64>) -> Result<Ready> {
        let Checked { prepared, bound, .. } = checked;
        let code = prepared.gpu(self.kernel, bound, context)?;
        let slots = self.slots(bound);
        let maps = tensor_map::bind(&code.tensor_maps, prepared.abi(), &slots)?;
        context.ready(code, bound.blocks(), &Parameters { slots: &slots, maps: &maps, log })
    }

    /// The launch on aligned copies, where that pays ([`tile_ir::padding`]), there is memory for them and the driver takes what
    /// makes them.
    fn padded(
        &self,
        checked: &Checked<'_>,
        context: &Arc<gpu::Context>,
        copies: &mut Copies,
    ) -> Result<Option<Ready>> {
        let Checked { prepared, device, bound, .. } = checked;
        let Some(Padded { bound, tensors }) = prepared.padded(context.family(), bound) else {
            return Ok(None);
        };
        let mut slots = self.slots(&bound);
        let mut rows = SmallVec::<[RowCopy; 2]>::new();
        for &PaddedTensor { argument, rows: height, row_bytes, padded_bytes } in &tensors {
            let copy = match scratch(device, context, height * padded_bytes) {
                Err(Error::OutOfMemory { .. } | Error::Driver { .. }) => return Ok(None),
                copy => copy?,
            };
            let target = Rows { first: copy.address(), pitch: padded_bytes };
            let behind = Rows { first: target.first + row_bytes as u64, ..target };
            match context.fill_rows(behind, &[0], RowSize { width: padded_bytes - row_bytes, height }) {
                Err(Error::Driver { .. }) => return Ok(None),
                filled => filled?,
            }
            let source = Rows { first: slots[argument], pitch: row_bytes };
            rows.push(RowCopy { target, source, size: RowSize { width: row_bytes, height } });
            slots[argument] = target.first;
            copies.push(copy);
        }
        let code = prepared.gpu(self.kernel, &bound, context)?;
        let maps = tensor_map::bind(&code.tensor_maps, prepared.abi(), &slots)?;
        let parameters = Parameters { slots: &slots, maps: &maps, log: None };
        context.ready(code, bound.blocks(), &parameters).map(|ready| Some(ready.after(rows)))
    }

    fn run_gpu(
        &self,
        checked: &Checked<'_>,
        context: &Arc<gpu::Context>,
        stream: Option<&GpuStream>,
        sink: &mut Option<Sink<'_>>,
        copies: &mut Copies,
    ) -> Result<()> {
        self.with_log(checked, context, sink, copies, |launch| {
            // The log is written on the device's own stream.
            stream.map_or(Ok(()), GpuStream::follow)?;
            let is_enqueued = context.enqueue(launch, stream)?;
            if checked.prepared.abi().logs {
                stream.map_or_else(|| context.synchronize(), GpuStream::synchronize)?;
            }
            Ok(is_enqueued.then_some(()))
        })
    }

    fn time_gpu(
        &self,
        checked: &Checked<'_>,
        context: &Arc<gpu::Context>,
        sink: &mut Option<Sink<'_>>,
        copies: &mut Copies,
    ) -> Result<Duration> {
        self.with_log(checked, context, sink, copies, |launch| context.time(launch))
    }

    /// Runs a launch: on aligned copies of its tensors where that pays, or with a log, if its kernel has messages, and
    /// reports them when it is done. `run` gives nothing where the driver doesn't take the copies.
    fn with_log<R>(
        &self,
        checked: &Checked<'_>,
        context: &Arc<gpu::Context>,
        sink: &mut Option<Sink<'_>>,
        copies: &mut Copies,
        run: impl Fn(&Ready) -> Result<Option<R>>,
    ) -> Result<R> {
        let Checked { prepared, bound, .. } = checked;
        let run_as_it_is = |log: Option<u64>| {
            let result = run(&self.ready(checked, context, log)?)?;
            Ok(result.expect("a launch without copies is enqueued"))
        };
        if !prepared.abi().logs {
            if let Some(padded) = self.padded(checked, context, copies)?
                && let Some(result) = run(&padded)?
            {
                return Ok(result);
            }
            return run_as_it_is(None);
        }
        let mut words = messages::empty(self.log_bytes)?;
        let log = context.zeroed(size_of_val(words.as_slice()))?;
        context.upload(transfer::bytes(&words), log.address())?;
        let result = run_as_it_is(Some(log.address()))?;
        context.download(log.address(), transfer::bytes_mut(&mut words))?;
        messages::report(self.kernel.name, prepared.sites(), &bound.grid, &words, sink)?;
        Ok(result)
    }

    fn run_host(&self, checked: &Checked<'_>, timed: bool, sink: &mut Option<Sink<'_>>) -> Result<Duration> {
        let mut memory = self.memory();
        memory.try_for_each(|(allocation, access)| allocation.uses().wait(access))?;
        let run = self.host_run(checked)?;
        // SAFETY: tensors are borrowed for `'a`, longer than this call; the elements of an output are borrowed exclusively,
        // and launches on streams that use them have been waited for.
        unsafe { run.run(&checked.bound, timed, sink) }
    }

    fn host_run(&self, checked: &Checked<'_>) -> Result<HostRun<'a>> {
        let Checked { number, prepared, device, bound } = checked;
        let code = match &device.0 {
            Kind::Reference => {
                let missing = || self.misfit("it has no body to run on the reference device");
                HostCode::Body(self.body.ok_or_else(missing)?, *number, self.raw_arguments())
            }
            Kind::Simulated(gpu) => {
                HostCode::Simulated(prepared.simulated(bound, gpu.target())?, self.slots(bound))
            }
            _ => HostCode::Native(prepared.cpu(self.kernel)?, self.slots(bound)),
        };
        Ok(HostRun { kernel: self.kernel, prepared, code, log_bytes: self.log_bytes })
    }

    fn raw_arguments(&self) -> Vec<RawArgument<'a>> {
        let raw = |given: &Given<'a>| match given.value {
            GivenValue::Tensor { tensor, dtype, access } => {
                let strides = if let Place::Strided(strides) = tensor.place() { Some(strides) } else { None };
                let (address, shape) = (tensor.start(dtype.bytes()), tensor.shape());
                RawArgument::Tensor(RawTensor { address, shape, strides, dtype, access })
            }
            GivenValue::Scalar { slot, dtype } => RawArgument::Scalar { slot, dtype },
        };
        let mut arguments: Vec<RawArgument<'a>> = self.arguments.iter().map(raw).collect();
        // Their positions are those among all arguments, in order.
        self.absent.iter().for_each(|&position| arguments.insert(position, RawArgument::Absent));
        arguments
    }

    fn slots(&self, bound: &LaunchSizes) -> Slots {
        let arguments = self.arguments.iter().map(|argument| match argument.value {
            GivenValue::Tensor { tensor, dtype, .. } => placed(tensor, dtype).0,
            GivenValue::Scalar { slot, .. } => slot,
        });
        arguments.chain(bound.slots()).collect()
    }
}
