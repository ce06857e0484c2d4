//! The CPU target: one native function per instance that runs a range of blocks.
//!
//! Tiles live in scratch memory, row-major, in the compute type of their format (f16 and bf16 as f32, `bool`
//! as a byte); [`scratch`] places them. Elementwise ops that only feed another op are not stored: [`fuse`]
//! decides, and their consumer's loop computes them. Loops are left to LLVM's vectoriser, which alias scopes
//! on the buffers enable; [`product`]s are written with vectors and register blocks of their own.

mod atomics;
#[cfg(test)]
mod compiled;
mod elements;
mod entry;
mod fuse;
mod held;
mod lines;
mod memory;
mod messages;
mod movement;
mod product;
mod region;
mod round_up;
mod vectors;

use crate::artifact::{Artifact, Code};
use crate::emit::Ir;
use crate::emit::fences::{self, Fence};
use crate::error::Error;
use crate::llvm::Machine;
use crate::options::Options;
use atomics::privatized::Privatized;
use entry::Plans;
use fuse::Fusion;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::FileType;
use memory::scratch::Scratch;
use product::Products;
use tile_ir::abi::Launch;
use tile_ir::target::{Architecture, CpuLevel};
use tile_ir::{Instance, Op, passes};
use vectors::processor::Processor;

/// Bytes of a cache line of every x86-64, and of most AArch64: where lines are longer, some are asked for twice. Also the
/// alignment of a streaming store of a line.
const LINE_BYTES: u32 = 64;

/// Compiles to an object file.
pub(crate) fn compile(instance: &Instance, options: &Options) -> Result<Artifact, Error> {
    let context = Context::create();
    let machine = Machine::cpu(options.cpu, options.system)?;
    let symbol = options.symbol_of(&instance.name);
    let (module, launch) = emit(&context, instance, &machine, &symbol)?;
    let object = machine.emit(&instance.name, &module, FileType::Object)?;
    Ok(Artifact {
        target: "cpu".to_owned(),
        symbol,
        code: Code::Object(object),
        launch,
        tensor_maps: Vec::new(),
    })
}

/// An instance that went through the passes of all targets, as code for CPUs is made of it.
pub(crate) fn over_memory(instance: &Instance) -> Instance {
    passes::OVER_MEMORY.iter().fold(instance.clone(), passes::run)
}

/// Whether a level makes another code of an instance that is [so prepared](over_memory) than those below it: of any with other
/// vectors, and of those whose products or atomics it has instructions for, or which ask for what they read as it pays there.
pub(crate) fn differs(instance: &Instance, level: &CpuLevel) -> bool {
    let has = |feature: &str| level.features.contains(&feature);
    let has_atomics = || instance.walk().into_iter().any(|op| matches!(instance.op(op).op, Op::Atomic(_)));
    let gains_atomics = has("lse") && has_atomics();
    let brings_near = has(vectors::processor::BRINGS_NEAR) && memory::ahead::reduces_rows(instance);
    let reads_ahead = has(vectors::processor::READS_AHEAD)
        && (memory::ahead::reduces_rows(instance) || memory::pieces::transposes(instance));
    let asks_for_all = has(vectors::processor::ASKS_FOR_ALL) && memory::ahead::moves_rows(instance);
    let gains = gains_atomics || product::gain(instance, level);
    level.is_general || gains || brings_near || reads_ahead || asks_for_all
}

/// Emits and optimises the module of an instance.
pub(crate) fn emit<'c>(
    context: &'c Context,
    instance: &Instance,
    machine: &Machine,
    symbol: &str,
) -> Result<(Module<'c>, Launch), Error> {
    let instance = &over_memory(instance);
    let mut processor = Processor::of(machine);
    let is_narrow = vectors::narrow::has_narrow_tiles(instance);
    // The straight-line vectoriser knows no variants of functions.
    processor.features.lanewise &= !is_narrow;
    let ir = Ir::new(context, &instance.name, processor.features);
    let fusion = Fusion::of(instance);
    let products = Products::of(instance, &fusion, machine);
    let scratch = Scratch::of(instance, &fusion, &products);
    let behind = memory::behind::decide(instance, &fusion, &scratch, &processor);
    let privatized = Privatized::of(instance);
    let plans = Plans {
        instance,
        fusion: &fusion,
        products: &products,
        scratch: &scratch,
        behind,
        privatized: &privatized,
        processor: &processor,
    };
    entry::emit(&ir, &plans, machine, symbol);
    if is_narrow {
        machine.optimize_fully(&instance.name, &ir.module)?;
    } else {
        machine.optimize(&instance.name, &ir.module)?;
    }
    memory::single_lanes::store_elements(&ir);
    if machine.is_of(Architecture::Aarch64) {
        fences::keep_signs_of_zeros(&ir, Fence::Own);
    }
    if processor.masks_cost {
        memory::blended::select_before_stores(&ir);
    }
    Ok((
        ir.module,
        Launch {
            threads: 1,
            shared_bytes: 0,
            scratch_bytes: entry::bytes(&plans),
            shares_grid: false,
            cluster: 1,
            blocks_per_tile: 1,
        },
    ))
}
