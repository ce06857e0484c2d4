//! GPU targets: each thread of a block holds its share of every tile.
//!
//! [`distribution`] says which thread holds what, [`fragment`] how; [`shared`] plans the memory through which
//! threads exchange elements; the emitter ([`region`] and one file per kind of op) writes one thread's
//! program; [`dialect`] says how a target spells the few things that targets don't agree on. Refusals come
//! before LLVM is asked.

mod atomics;
mod dialect;
mod distribution;
mod fragment;
mod gather;
mod hsaco;
mod item;
mod lines;
mod memory;
mod messages;
mod mma;
mod movement;
mod prefetch;
mod reduce;
mod region;
mod shared;
pub mod simt;

use crate::artifact::{Artifact, Code};
use crate::emit::{Features, Ir};
use crate::error::Error;
use crate::llvm::Machine;
use crate::options::Options;
use dialect::{Device, Dialect, Resources};
use distribution::Distribution;
use inkwell::context::Context;
use inkwell::targets::FileType;
use region::Emitter;
use shared::SharedPlan;
use tile_ir::abi::{KernelAbi, Launch};
use tile_ir::target::Family;
use tile_ir::{Instance, TargetDesc};

/// Everything GPUs have as an instruction.
const FEATURES: Features = Features { half_conversion: true, fma: true };

/// How code gets from a module to its device.
struct Backend {
    device: Device,
    machine: fn(&str) -> Result<Machine, Error>,
    package: fn(&Machine, &str, &Ir<'_>) -> Result<Code, Error>,
}

fn backend(family: Family) -> Backend {
    match family {
        Family::Nvptx => Backend { device: dialect::NVPTX, machine: Machine::nvptx, package: ptx },
        Family::Amdgpu => Backend { device: dialect::AMDGPU, machine: Machine::amdgpu, package: code_object },
        Family::Cpu => unreachable!("the CPU has an emitter of its own"),
    }
}

/// Compiles an instance for a GPU.
pub(crate) fn compile(
    instance: &Instance,
    target: &TargetDesc,
    options: &Options,
) -> Result<Artifact, Error> {
    let distribution = Distribution::of(instance, target);
    let plan = plan(instance, distribution, target)?;
    let backend = backend(target.family);
    let machine = (backend.machine)(target.name)?;
    let (context, symbol) = (Context::create(), options.symbol_of(&instance.name));
    let ir = Ir::new(&context, &instance.name, FEATURES);
    machine.prepare(&ir.module);
    emit(&ir, instance, &backend.device, target, &symbol, (distribution, &plan));
    machine.optimize(&instance.name, &ir.module)?;
    let code = (backend.package)(&machine, &instance.name, &ir)?;
    let dynamic = backend.device.has_dynamic_shared_memory();
    let launch = Launch {
        threads: distribution.threads as u32,
        shared_bytes: if dynamic { plan.bytes() as u32 } else { 0 },
        scratch_bytes: 0,
    };
    Ok(Artifact { target: target.name.to_owned(), symbol, code, launch })
}

/// Refuses what doesn't fit the target; places what is shared.
fn plan(instance: &Instance, distribution: Distribution, target: &TargetDesc) -> Result<SharedPlan, Error> {
    distribution.check(instance, target)?;
    SharedPlan::of(instance, distribution, target)
}

/// Emits the kernel.
fn emit(
    ir: &Ir<'_>,
    instance: &Instance,
    dialect: &dyn Dialect,
    target: &TargetDesc,
    symbol: &str,
    (distribution, plan): (Distribution, &SharedPlan),
) {
    let resources = Resources { threads: distribution.threads as u32, shared_bytes: plan.bytes() as u32 };
    let entry = dialect.entry(ir, symbol, &KernelAbi::of(instance), resources);
    let mut emitter = Emitter::new(ir, instance, (dialect, target), distribution, plan, entry);
    emitter.ops(instance.body());
    ir.return_void();
}

fn ptx(machine: &Machine, kernel: &str, ir: &Ir<'_>) -> Result<Code, Error> {
    let text = machine.emit(kernel, &ir.module, FileType::Assembly)?;
    let text = String::from_utf8(text)
        .map_err(|error| Error::Llvm { kernel: kernel.to_owned(), message: error.to_string() })?;
    Ok(Code::Ptx(text))
}

fn code_object(machine: &Machine, kernel: &str, ir: &Ir<'_>) -> Result<Code, Error> {
    let object = machine.emit(kernel, &ir.module, FileType::Object)?;
    hsaco::link(kernel, &object).map(Code::Hsaco)
}
