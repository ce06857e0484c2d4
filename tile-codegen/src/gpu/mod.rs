//! GPU targets: each thread of a block holds its share of every tile.
//!
//! [`tile_ir::gpu`] says which thread holds what; [`coordinates`] is that as code, and a [`fragment`] what a thread
//! holds. The emitter ([`region`]) writes one thread's program, with a folder for each thing that threads do: access
//! global [`memory`], [`exchange`] elements, multiply ([`products`]), and copy tiles ahead ([`pipeline`]). What
//! [`targets`] don't agree on is said there. Refusals come before LLVM is asked.

mod coordinates;
mod exchange;
mod fragment;
mod loops;
mod memory;
mod messages;
mod pipeline;
mod places;
mod products;
mod region;
mod registers;
pub(crate) mod targets;

use crate::artifact::{Artifact, Code};
use crate::emit::fences::{self, Fence};
use crate::emit::{Features, Ir};
use crate::error::Error;
use crate::llvm::Machine;
use crate::options::Options;
use inkwell::context::Context;
use inkwell::module::FlagBehavior;
use inkwell::targets::FileType;
use pipeline::pairs::Pair;
use pipeline::roles::Role;
use places::SourcePlaces;
use region::Emitter;
use targets::dialect::{Device, Resources};
use tile_ir::abi::Launch;
use tile_ir::gpu::pipeline::TILE_ALIGNMENT;
use tile_ir::gpu::{SCRATCH_ALIGNMENT, Scheduled, schedule, schedule_without_copies};
use tile_ir::target::Family;
use tile_ir::tensor_map::TensorMap;
use tile_ir::tile_order::TileOrder;
use tile_ir::{Instance, Op, TargetDesc};

/// How code gets from a module to its device.
struct Backend {
    device: Device,
    features: Features,
    machine: fn(&str, &str) -> Result<Machine, Error>,
    package: fn(&Machine, &str, &Ir<'_>) -> Result<Code, Error>,
}

fn backend(target: &TargetDesc) -> Backend {
    match target.family {
        Family::Nvptx => Backend {
            device: targets::dialect::NVPTX,
            features: targets::features::NVPTX,
            machine: Machine::nvptx,
            package: ptx,
        },
        Family::Amdgpu => Backend {
            device: if target.warp == 32 { targets::dialect::RDNA } else { targets::dialect::CDNA },
            features: targets::features::AMDGPU,
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
    /// Whether each block, or cluster that shares a tile, has the one place of the grid that has its number.
    pub(crate) has_order_of_grid: bool,
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
        let scheduled = fitting(instance, target, threads)?;
        let backend = backend(target);
        let machine = (backend.machine)(target.name, scheduled.feature())?;
        let ir = Ir::new(context, &instance.name, backend.features.of_target(target));
        machine.prepare(&ir.module);
        emit(&ir, &scheduled, &backend.device, target, symbol, places);
        let (threads, shared_bytes) = (scheduled.block_threads() as u32, scheduled.shared_bytes());
        let dynamic = if backend.device.has_dynamic_shared_memory() { shared_bytes as u32 } else { 0 };
        let launch = Launch {
            threads,
            shared_bytes: dynamic,
            scratch_bytes: 0,
            shares_grid: scheduled.shares_grid(),
            cluster: scheduled.cluster(),
            blocks_per_tile: scheduled.blocks_per_tile(),
        };
        let tensor_maps = scheduled.tensor_maps().to_vec();
        let has_order_of_grid = has_order_of_grid(&scheduled);
        Ok(Module { ir, launch, shared_bytes, tensor_maps, has_order_of_grid, machine, backend })
    }
}

/// Whether the blocks of a launch that has one, or a cluster, for each place of the grid have these in the order of their
/// numbers.
fn has_order_of_grid(scheduled: &Scheduled) -> bool {
    // Of the loop that a plain kernel has become each of so many blocks does one turn.
    let is_in_order = |op: &Op| match op {
        Op::Tiles(order) => scheduled.shares_grid() && *order == TileOrder::RowMajor,
        _ => true,
    };
    let has_pairs = scheduled.pipelines().pairs().is_some();
    let mut ops = scheduled.walk().into_iter().map(|op| &scheduled.op(op).op);
    scheduled.order_in_parts().is_none() && !has_pairs && ops.all(is_in_order)
}

/// The schedule of an instance that fits its target.
///
/// # Errors
/// Where there is none.
fn fitting(instance: &Instance, target: &TargetDesc, threads: Option<u32>) -> Result<Scheduled, Error> {
    registers::check_elements(instance, target)?;
    let scheduled = schedule(instance.clone(), target, threads);
    match check(&scheduled, target) {
        // What is copied ahead may lie in more registers than what isn't.
        Err(_) if scheduled.copied_bytes() > 0 => {
            let scheduled = schedule_without_copies(instance.clone(), target, threads);
            check(&scheduled, target).map(|()| scheduled)
        }
        checked => checked.map(|()| scheduled),
    }
}

/// Refuses a schedule that asks for more than the target has.
fn check(scheduled: &Scheduled, target: &TargetDesc) -> Result<(), Error> {
    registers::check(scheduled, target)?;
    let (needed, available) = (scheduled.shared_bytes(), u64::from(target.shared_bytes));
    if needed <= available {
        return Ok(());
    }
    let (kernel, target) = (scheduled.name.clone(), target.name.to_owned());
    let loc = scheduled.needs_most_shared().map(|op| scheduled.op(op).loc).unwrap_or_default();
    Err(Error::SharedMemory { kernel, target, needed, available, loc })
}

/// The schedule that an instance is compiled with, or, where none fits the target, the one that was tried first; `None` where
/// tiles are far too large for any.
pub(crate) fn scheduled(instance: &Instance, target: &TargetDesc) -> Option<Scheduled> {
    registers::check_elements(instance, target).ok()?;
    Some(fitting(instance, target, None).unwrap_or_else(|_| schedule(instance.clone(), target, None)))
}

/// Compiles an instance for a GPU.
pub(crate) fn compile(
    instance: &Instance,
    target: &TargetDesc,
    options: &Options,
) -> Result<Artifact, Error> {
    let (context, symbol) = (Context::create(), options.symbol_of(&instance.name));
    let module = Module::of(&context, instance, target, &symbol, None, Places::Unknown)?;
    targets::rounding::expand(&module.ir);
    targets::packed::expand(&module.ir);
    let refused = |message| Error::Llvm { kernel: instance.name.clone(), message };
    targets::declared::expand(&module.ir).map_err(refused)?;
    module.machine.optimize(&instance.name, &module.ir.module)?;
    let code = (module.backend.package)(&module.machine, &instance.name, &module.ir)?;
    let Module { launch, tensor_maps, .. } = module;
    Ok(Artifact { target: target.name.to_owned(), symbol, code, launch, tensor_maps })
}

/// Emits the kernel.
fn emit(
    ir: &Ir<'_>,
    scheduled: &Scheduled,
    device: &Device,
    target: &TargetDesc,
    symbol: &str,
    places: Places,
) {
    let resources = Resources {
        threads: scheduled.block_threads() as u32,
        warps: scheduled.block_threads().div_ceil(target.warp.into()) as u32,
        cluster: scheduled.cluster(),
        at_once: scheduled.blocks_at_once(),
        shared_bytes: scheduled.shared_bytes() as u32,
        shared_alignment: match scheduled.pipelines().is_empty() {
            true => SCRATCH_ALIGNMENT as u32,
            false => TILE_ALIGNMENT as u32,
        },
    };
    let maps = scheduled.tensor_maps().len();
    let entry = device.entry(ir, symbol, &scheduled.abi(), maps, resources);
    let mut entry = pipeline::cluster::entry(ir, entry, scheduled.threads());
    entry.pair = scheduled.pipelines().pairs().map(|axis| Pair::along(ir, axis));
    let source = (places == Places::Source).then(|| SourcePlaces::new(ir, &scheduled.file));
    let emitter = |role| Emitter::new(ir, scheduled, device, target, entry.clone(), role, source.as_ref());
    if scheduled.pipelines().is_empty() {
        emitter(Role::All).body();
    } else {
        pipeline::roles::emit(emitter);
    }
    ir.return_void();
    if let Some(source) = &source {
        source.finish(ir);
    }
}

fn ptx(machine: &Machine, kernel: &str, ir: &Ir<'_>) -> Result<Code, Error> {
    targets::strides::rename(ir);
    fences::keep_signs_of_zeros(ir, Fence::Own);
    targets::dialect::without_merged_accesses(ir);
    let text = machine.emit(kernel, &ir.module, FileType::Assembly)?;
    let text = String::from_utf8(text)
        .map_err(|error| Error::Llvm { kernel: kernel.to_owned(), message: error.to_string() })?;
    Ok(Code::Ptx(text))
}

fn code_object(machine: &Machine, kernel: &str, ir: &Ir<'_>) -> Result<Code, Error> {
    tell_code_generator(ir);
    let object = machine.emit(kernel, &ir.module, FileType::Object)?;
    targets::hsaco::link(kernel, &object).map(Code::Hsaco)
}

/// The version of code objects times 100 (LLVM's AMDGPU usage guide, "Code Object Metadata"): the newest that ROCm 6.0 loads.
const CODE_OBJECT_VERSION: u64 = 500;

/// What LLVM's code generator for AMD's GPUs needs to be told.
fn tell_code_generator(ir: &Ir<'_>) {
    fences::keep_signs_of_zeros(ir, targets::amd_numbers::FENCE);
    targets::amd_numbers::hide_short_dividends(ir);
    targets::amd_numbers::keep_rounded_products_apart(ir);
    targets::scalars::keep(ir);
    targets::own_memory::say(ir);
    let version = ir.context.i32_type().const_int(CODE_OBJECT_VERSION, false);
    ir.module.add_basic_value_flag("amdhsa_code_object_version", FlagBehavior::Error, version);
}

#[cfg(test)]
mod tests;
