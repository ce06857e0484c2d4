//! What the host runs for a launch: compiled code, or the body as Rust.

use super::{KernelDef, Slots};
use crate::error::Result;
use crate::messages::{self, Sink};
use crate::reference::{Body, RawArgument};
use crate::resolve::{CpuCode, Prepared};
use crate::simulated::SimulatedCode;
use crate::{cpu, reference};
use std::time::{Duration, Instant};
use tile_ir::abi::LaunchSizes;
use tile_ir::view::argument::Strides;

/// A launch whose code is there, with what that takes.
pub(super) struct HostRun<'a> {
    pub(super) kernel: &'static KernelDef,
    pub(super) prepared: &'static Prepared,
    pub(super) code: HostCode<'a>,
    pub(super) log_bytes: Option<usize>,
}

/// What runs.
pub(super) enum HostCode<'a> {
    /// Compiled code, with its slots but for that of the log.
    Native(&'static CpuCode, Slots),
    /// A GPU's code, to be simulated, with its slots but for that of the log.
    Simulated(&'static SimulatedCode, Slots),
    /// The body, the number of the instance, and the arguments.
    Body(Body, usize, Vec<RawArgument<'a>>),
}

/// A launch for later, without a borrow.
pub(super) struct LaterRun {
    run: HostRun<'static>,
    bound: LaunchSizes,
    /// The shapes of a body's arguments, and their strides where they aren't dense.
    shapes: Vec<(Vec<usize>, Option<Strides>)>,
}

impl HostRun<'_> {
    /// Runs every block, and gives the time that they took where it is asked for.
    ///
    /// # Safety
    /// The elements of the launch's tensors are there, nobody else writes them, and nobody else uses those that are written.
    pub(super) unsafe fn run(
        &self,
        bound: &LaunchSizes,
        timed: bool,
        sink: &mut Option<Sink<'_>>,
    ) -> Result<Duration> {
        match &self.code {
            HostCode::Body(body, instance, arguments) => {
                let start = Instant::now();
                reference::run(self.kernel.name(), *instance, bound, arguments, *body, sink)?;
                Ok(start.elapsed())
            }
            // SAFETY: the caller vouches for the tensors in the slots.
            HostCode::Native(code, slots) => unsafe { self.run_native(code, slots, bound, timed, sink) },
            HostCode::Simulated(code, slots) => self.logged(slots, bound, sink, |slots| {
                let start = timed.then(Instant::now);
                // SAFETY: as for native code.
                unsafe { code.run(self.kernel.name(), slots, bound) }?;
                Ok(start.map_or(Duration::ZERO, |start| start.elapsed()))
            }),
        }
    }

    /// Runs code with a log behind its slots, if the kernel has messages, and reports them, whatever the run ends with.
    fn logged(
        &self,
        slots: &Slots,
        bound: &LaunchSizes,
        sink: &mut Option<Sink<'_>>,
        run: impl FnOnce(&[u64]) -> Result<Duration>,
    ) -> Result<Duration> {
        if !self.prepared.abi().logs {
            return run(slots);
        }
        let (mut slots, mut log) = (slots.clone(), messages::empty(self.log_bytes)?);
        slots.push(log.as_mut_ptr() as u64);
        let time = run(&slots);
        // Also where the run has failed: it may be what was said that shows why.
        messages::report(self.kernel.name(), self.prepared.sites(), &bound.grid, &log, sink)?;
        time
    }

    /// # Safety
    /// As [`HostRun::run`].
    unsafe fn run_native(
        &self,
        code: &CpuCode,
        slots: &Slots,
        bound: &LaunchSizes,
        timed: bool,
        sink: &mut Option<Sink<'_>>,
    ) -> Result<Duration> {
        let work = cpu::Work { blocks: bound.blocks(), tiles: bound.tiles(), pace: self.prepared.pace() };
        self.logged(slots, bound, sink, |slots| {
            let start = timed.then(Instant::now);
            // SAFETY: the slots follow the ABI that the code was compiled for: `bind` compared every argument's kind,
            // format and mutability with it. The caller vouches for the tensors, which have the shapes that the sizes
            // were bound from. The log is this function's own and says how large it is.
            unsafe { cpu::run(code.entry, slots, code.launch.scratch_bytes, work) }?;
            Ok(start.map_or(Duration::ZERO, |start| start.elapsed()))
        })
    }

    /// The launch for later.
    pub(super) fn for_later(self, bound: &LaunchSizes) -> LaterRun {
        let (code, shapes) = match self.code {
            HostCode::Native(code, slots) => (HostCode::Native(code, slots), Vec::new()),
            HostCode::Simulated(code, slots) => (HostCode::Simulated(code, slots), Vec::new()),
            HostCode::Body(body, instance, arguments) => {
                let shape = |argument: &RawArgument<'_>| {
                    let (shape, strides) = argument.shape();
                    (shape.to_vec(), strides.map(Strides::from))
                };
                let shapes = arguments.iter().map(shape).collect();
                let without = arguments.iter().map(|argument| argument.with_shape(&[], None)).collect();
                (HostCode::Body(body, instance, without), shapes)
            }
        };
        let HostRun { kernel, prepared, log_bytes, .. } = self;
        LaterRun { run: HostRun { kernel, prepared, code, log_bytes }, bound: bound.clone(), shapes }
    }
}

impl LaterRun {
    /// Runs every block.
    ///
    /// # Safety
    /// As [`HostRun::run`].
    pub(super) unsafe fn run(self) -> Result<()> {
        let LaterRun { run: HostRun { kernel, prepared, code, log_bytes }, bound, shapes } = self;
        let code = match code {
            HostCode::Native(code, slots) => HostCode::Native(code, slots),
            HostCode::Simulated(code, slots) => HostCode::Simulated(code, slots),
            HostCode::Body(body, instance, arguments) => {
                let pairs = arguments.iter().zip(&shapes);
                let whole =
                    pairs.map(|(argument, (shape, strides))| argument.with_shape(shape, strides.as_deref()));
                HostCode::Body(body, instance, whole.collect())
            }
        };
        let run = HostRun { kernel, prepared, code, log_bytes };
        // SAFETY: the caller vouches for it.
        unsafe { run.run(&bound, false, &mut None) }.map(drop)
    }
}
