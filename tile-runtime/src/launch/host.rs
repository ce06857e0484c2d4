//! What the host runs for a launch: compiled code, or the body as Rust.

use super::{KernelDef, Slots};
use crate::error::Result;
use crate::messages::{self, Sink};
use crate::reference::{Body, RawArgument};
use crate::resolve::{CpuCode, Prepared};
use crate::{cpu, reference};
use std::time::{Duration, Instant};
use tile_ir::abi::Bound;

/// A launch without a borrow of its arguments.
pub(super) struct HostRun {
    pub(super) kernel: &'static KernelDef,
    pub(super) prepared: &'static Prepared,
    pub(super) bound: Bound,
    pub(super) code: HostCode,
    pub(super) log_bytes: Option<usize>,
}

/// What runs.
pub(super) enum HostCode {
    /// Compiled code, with its slots but for that of the log.
    Native(&'static CpuCode, Slots),
    /// The body, and the number of the instance.
    Body(Body, usize),
}

/// A launch for later, with what the body asks of its arguments.
pub(super) struct LaterRun {
    run: HostRun,
    arguments: Vec<(RawArgument<'static>, Vec<usize>)>,
}

impl HostRun {
    /// Runs every block, and gives the time that they took where it is asked for.
    ///
    /// # Safety
    /// The arguments are those that the launch was checked with. Their tensors are there, nobody else writes them, and
    /// nobody else uses those that are written.
    pub(super) unsafe fn run(
        &self,
        arguments: &[RawArgument<'_>],
        timed: bool,
        sink: &mut Option<Sink<'_>>,
    ) -> Result<Duration> {
        match &self.code {
            HostCode::Body(body, instance) => {
                let start = Instant::now();
                reference::run((self.kernel.name(), *instance), &self.bound, arguments, *body, sink)?;
                Ok(start.elapsed())
            }
            // SAFETY: the caller vouches for the tensors in the slots.
            HostCode::Native(code, slots) => unsafe { self.run_native(code, slots, timed, sink) },
        }
    }

    /// # Safety
    /// As [`HostRun::run`].
    unsafe fn run_native(
        &self,
        code: &CpuCode,
        slots: &Slots,
        timed: bool,
        sink: &mut Option<Sink<'_>>,
    ) -> Result<Duration> {
        let HostRun { kernel, prepared, bound, .. } = self;
        let mut slots = slots.clone();
        let mut log = prepared.abi().logs.then(|| messages::empty(self.log_bytes));
        slots.extend(log.as_mut().map(|log| log.as_mut_ptr() as u64));
        let work = cpu::Work { blocks: bound.blocks(), tiles: bound.tiles(), pace: prepared.pace() };
        let start = timed.then(Instant::now);
        // SAFETY: the slots follow the ABI that the code was compiled for: `bind` compared every argument's kind, format
        // and mutability with it. The caller vouches for the tensors, which have the shapes that the sizes were bound
        // from. The log is this function's own and says how large it is.
        unsafe { cpu::run(code.entry, &slots, code.launch.scratch_bytes, work) }?;
        let time = start.map_or(Duration::ZERO, |start| start.elapsed());
        if let Some(log) = log {
            messages::report(kernel.name(), prepared.sites(), &bound.grid, &log, sink)?;
        }
        Ok(time)
    }

    /// The launch for later.
    pub(super) fn with_arguments(self, arguments: &[RawArgument<'_>]) -> LaterRun {
        let owned = |argument: &RawArgument<'_>| (argument.with_shape(&[]), argument.shape().to_vec());
        LaterRun { run: self, arguments: arguments.iter().map(owned).collect() }
    }
}

impl LaterRun {
    /// Runs every block.
    ///
    /// # Safety
    /// As [`HostRun::run`], of the arguments that were given.
    pub(super) unsafe fn run(&self) -> Result<()> {
        let given = self.arguments.iter().map(|(argument, shape)| argument.with_shape(shape));
        let arguments: Vec<RawArgument<'_>> = given.collect();
        // SAFETY: the caller vouches for it.
        unsafe { self.run.run(&arguments, false, &mut None) }.map(drop)
    }
}
