//! GPU targets: each thread of a block holds its share of every tile.
//!
//! [`tile_ir::gpu`] says which thread holds what; [`coordinates`] is that as code, and a [`fragment`] what a thread
//! holds; [`shared`] plans the memory through which threads [`exchange`] elements; the emitter ([`region`] and one
//! file per kind of op) writes one thread's program; [`dialect`] says how a target spells the few things that targets
//! don't agree on. Refusals come before LLVM is asked.

mod atomics;
mod convert;
mod coordinates;
mod copies;
mod declared;
mod dialect;
mod exchange;
pub(crate) mod features;
mod fragment;
mod gather;
mod hsaco;
mod interleaved;
mod item;
mod lanes;
mod lines;
mod loops;
mod matrix;
mod mbarrier;
mod memory;
mod messages;
mod mma;
mod movement;
mod places;
mod prefetch;
mod reduce;
mod region;
mod registers;
mod ring;
mod roles;
mod rounding;
mod shared;
mod tensor_store;
mod warpgroup;
mod window;

use crate::artifact::{Artifact, Code};
use crate::emit::{Features, Ir};
use crate::error::Error;
use crate::llvm::Machine;
use crate::options::Options;
use dialect::{Device, Resources};
use inkwell::context::Context;
use inkwell::targets::FileType;
use places::SourcePlaces;
use region::Emitter;
use roles::Role;
use shared::SharedPlan;
use tile_ir::abi::{KernelAbi, Launch};
use tile_ir::gpu::{Scheduled, schedule, schedule_leaving};
use tile_ir::target::Family;
use tile_ir::tensor_map::TensorMap;
use tile_ir::{Instance, TargetDesc};

/// How code gets from a module to its device.
struct Backend {
    device: Device,
    features: Features,
    machine: fn(&str) -> Result<Machine, Error>,
    package: fn(&Machine, &str, &Ir<'_>) -> Result<Code, Error>,
}

fn backend(target: &TargetDesc) -> Backend {
    match target.family {
        Family::Nvptx => Backend {
            device: dialect::NVPTX,
            features: features::NVPTX,
            machine: Machine::nvptx,
            package: ptx,
        },
        Family::Amdgpu => Backend {
            device: if target.warp == 32 { dialect::RDNA } else { dialect::CDNA },
            features: features::AMDGPU,
            machine: Machine::amdgpu,
            package: code_object,
        },
        Family::Cpu => unreachable!("the CPU has an emitter of its own"),
    }
}

/// Whether instructions know the line of the kernel's source that they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    /// They don't.
    Unknown,
    /// They do, as debug locations.
    Source,
}

/// A kernel's code for one thread, before LLVM's passes.
pub(crate) struct Module<'c> {
    pub(crate) ir: Ir<'c>,
    /// What a launch needs.
    pub(crate) launch: Launch,
    /// Shared memory of a block, in bytes, whoever declares it.
    pub(crate) shared_bytes: u64,
    /// What the parameters for tensor maps are made of.
    pub(crate) tensor_maps: Vec<TensorMap>,
    machine: Machine,
    backend: Backend,
}

impl<'c> Module<'c> {
    /// Emits the kernel, with blocks of `threads` threads if that is given.
    ///
    /// # Errors
    /// Where something doesn't fit the target.
    ///
    /// # Panics
    /// If `threads` isn't a power of two.
    pub(crate) fn of(
        context: &'c Context,
        instance: &Instance,
        target: &TargetDesc,
        symbol: &str,
        threads: Option<u32>,
        places: Places,
    ) -> Result<Module<'c>, Error> {
        let (scheduled, plan) = planned(instance, target, threads)?;
        let backend = backend(target);
        let machine = (backend.machine)(target.name)?;
        let ir = Ir::new(context, &instance.name, backend.features.of_target(target));
        machine.prepare(&ir.module);
        emit(&ir, &scheduled, (&backend.device, target), symbol, &plan, places);
        let (threads, shared_bytes) = (scheduled.block_threads() as u32, plan.bytes());
        let dynamic = if backend.device.has_dynamic_shared_memory() { shared_bytes as u32 } else { 0 };
        let launch = Launch {
            threads,
            shared_bytes: dynamic,
            scratch_bytes: 0,
            shares_grid: scheduled.order().is_some(),
        };
        let tensor_maps = scheduled.tensor_maps().to_vec();
        Ok(Module { ir, launch, shared_bytes, tensor_maps, machine, backend })
    }
}

/// The schedule of an instance, and what lies where in shared memory. Tiles that are copied ahead take what nothing
/// else needs: where they don't leave enough they are copied fewer turns ahead, or not at all.
///
/// # Errors
/// Where the instance doesn't fit the target without any such tile.
fn planned(
    instance: &Instance,
    target: &TargetDesc,
    threads: Option<u32>,
) -> Result<(Scheduled, SharedPlan), Error> {
    let mut scheduled = schedule(instance.clone(), target, threads);
    loop {
        let plan = registers::check(&scheduled, target).and_then(|()| SharedPlan::of(&scheduled, target));
        let scratch_bytes = match plan {
            Ok(plan) => return Ok((scheduled, plan)),
            Err(error) if scheduled.copied_bytes() == 0 => return Err(error),
            Err(Error::SharedMemory { needed, .. }) => needed - scheduled.copied_bytes(),
            Err(_) => u64::MAX,
        };
        scheduled = schedule_leaving(instance.clone(), target, threads, scratch_bytes);
    }
}

/// The schedule that an instance is compiled with; of one that doesn't fit, that which doesn't.
pub(crate) fn scheduled(instance: &Instance, target: &TargetDesc) -> Scheduled {
    let planned = planned(instance, target, None);
    planned.map_or_else(|_| schedule(instance.clone(), target, None), |(scheduled, _)| scheduled)
}

/// Compiles an instance for a GPU.
pub(crate) fn compile(
    instance: &Instance,
    target: &TargetDesc,
    options: &Options,
) -> Result<Artifact, Error> {
    let (context, symbol) = (Context::create(), options.symbol_of(&instance.name));
    let module = Module::of(&context, instance, target, &symbol, None, Places::Unknown)?;
    rounding::expand(&module.ir);
    module.machine.optimize(&instance.name, &module.ir.module)?;
    let code = (module.backend.package)(&module.machine, &instance.name, &module.ir)?;
    let Module { launch, tensor_maps, .. } = module;
    Ok(Artifact { target: target.name.to_owned(), symbol, code, launch, tensor_maps })
}

/// Emits the kernel.
fn emit(
    ir: &Ir<'_>,
    scheduled: &Scheduled,
    (device, target): (&Device, &TargetDesc),
    symbol: &str,
    plan: &SharedPlan,
    places: Places,
) {
    let resources = Resources {
        threads: scheduled.block_threads() as u32,
        shared_bytes: plan.bytes() as u32,
        shared_alignment: plan.alignment(),
    };
    let maps = scheduled.tensor_maps().len();
    let entry = device.entry(ir, symbol, &KernelAbi::of(scheduled), maps, resources);
    let source = (places == Places::Source).then(|| SourcePlaces::new(ir, &scheduled.file));
    let emitter =
        |role| Emitter::new(ir, scheduled, (device, target), plan, (entry.clone(), role), source.as_ref());
    if scheduled.pipelines().is_empty() {
        emitter(Role::All).body();
    } else {
        roles::emit(emitter);
    }
    ir.return_void();
    if let Some(source) = &source {
        source.finish(ir);
    }
}

fn ptx(machine: &Machine, kernel: &str, ir: &Ir<'_>) -> Result<Code, Error> {
    declared::expand(ir).map_err(|message| Error::Llvm { kernel: kernel.to_owned(), message })?;
    let text = machine.emit(kernel, &ir.module, FileType::Assembly)?;
    let text = String::from_utf8(text)
        .map_err(|error| Error::Llvm { kernel: kernel.to_owned(), message: error.to_string() })?;
    Ok(Code::Ptx(text))
}

fn code_object(machine: &Machine, kernel: &str, ir: &Ir<'_>) -> Result<Code, Error> {
    let object = machine.emit(kernel, &ir.module, FileType::Object)?;
    hsaco::link(kernel, &object).map(Code::Hsaco)
}

#[cfg(test)]
mod tests;
