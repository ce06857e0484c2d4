//! GPU kernels run on the host, thread by thread, to prove the generated code without a GPU.
//!
//! The LLVM module that the back end of a GPU gets is rewritten for the host (`host_module`): its intrinsics
//! become calls of `runtime`, which carries out `operations`, and every access to shared and global memory is judged
//! before it is made. Each GPU thread is a coroutine (`block`); they take turns in a fixed order, so that a run is
//! reproducible. The blocks of a `cluster` run together (`running`), others one after the other, unless one waits for another
//! (`polls`, `grid`). `order` knows what happens before what, `shadow` for every byte who touched it, so a missing barrier
//! is found whatever order the threads had; `global` holds the same of arguments, across blocks, and `tensor_memory` of the
//! sums of `tcgen05`. Asynchronous operations are in `flight` and land when somebody waits for them, as `groups` and
//! `mbarrier` say. A [`Fault`] names the thread, the line of the kernel's source, and the other party.
//!
//! What isn't proved: LLVM's own passes for the target, instruction selection, registers, and what devices
//! reorder beyond the model.

mod agents;
mod arrays;
mod barrier;
mod block;
mod cells;
mod cluster;
mod collective;
mod counters;
mod fault;
mod flight;
mod format;
mod generation;
mod global;
mod grid;
mod groups;
mod host_module;
mod instruction;
mod matrix;
mod mbarrier;
mod memory;
mod operations;
mod order;
mod polls;
mod running;
mod runtime;
mod shadow;
mod stack;
mod steady;
mod tensor_map;
mod tensor_memory;
#[cfg(test)]
mod tests;

pub use arrays::Outcome;
pub use counters::{AccessCount, Counters};
pub use fault::{Earlier, Fault, Memory, Operation, Problem, RunError};
pub use flight::Timing;

use crate::emit::Ir;
use crate::error::Error;
use crate::gpu;
use crate::llvm::Machine;
use crate::options::Cpu;
use crate::system::System;
use block::{Geometry, Start, ThreadEntry};
use counters::Recorder;
use fault::MOST_BLOCKS;
use generation::Generation;
use global::{Global, Region};
use grid::Grid;
use host_module::{Gpu, Rewritten};
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::execution_engine::ExecutionEngine;
use instruction::Program;
use memory::SharedMemory;
use running::Running;
use std::ptr;
use tensor_map::Encoded;
use tile_ir::abi::KernelAbi;
use tile_ir::log::Site;
use tile_ir::target::SharedBanks;
use tile_ir::tensor_map::{MapError, TensorMap};
use tile_ir::{Instance, TargetDesc, log, passes};

/// A GPU kernel in this process.
pub struct SimtKernel {
    code: Code,
    abi: KernelAbi,
    /// What it prints and asserts.
    sites: Vec<Site>,
    tensor_maps: Vec<TensorMap>,
    /// Blocks that have each place of the grid.
    blocks_per_tile: u32,
    /// Whether blocks have these in the order of their numbers, each one place.
    has_order_of_grid: bool,
}

/// What a run did besides changing memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// What blocks asked to be brought near, in the order of the run: the addresses of lines, and those of copies with
    /// their bytes.
    pub prefetched: Vec<(u64, Option<u64>)>,
    /// What the instructions cost, if that was asked for.
    pub counters: Option<Counters>,
}

/// How a kernel is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// When asynchronous operations do their work.
    pub timing: Timing,
    /// Whether the trace says what instructions cost.
    pub counted: bool,
}

/// A kernel's code in memory, and what a block of it is. The order of the fields is that in which they may be dropped.
struct Code {
    entry: ThreadEntry,
    _engine: ExecutionEngine<'static>,
    _ir: Ir<'static>,
    _context: Box<Context>,
    program: Program,
    geometry: Geometry,
    banks: SharedBanks,
    shared_bytes: usize,
}

/// Alignment of a block's shared memory. The pattern of the 128-byte swizzle, in rows of 128 bytes, repeats every 1024.
const SHARED_ALIGNMENT: usize = 1024;
const KERNEL: &str = "tile_simt_kernel";
const ENTRY: &str = "tile_simt_entry";

/// Compiles an instance as for `target`, but for blocks of `threads` threads if that is given.
///
/// # Errors
/// As [`crate::compile`], and where the executor doesn't know an instruction of the kernel.
///
/// # Panics
/// If `threads` isn't a power of two.
pub fn compile(instance: &Instance, target: &TargetDesc, threads: Option<u32>) -> Result<SimtKernel, Error> {
    compile_changed(instance, target, threads, &mut |_| {})
}

/// [`compile`] of a module that is changed first: for tests that take something away.
fn compile_changed(
    instance: &Instance,
    target: &TargetDesc,
    threads: Option<u32>,
    change: &mut dyn FnMut(&Ir<'_>),
) -> Result<SimtKernel, Error> {
    let instance = passes::optimize(instance.clone());
    let context = Box::new(Context::create());
    // SAFETY: `Code` drops the context after everything that borrows it, and a box doesn't move its content.
    let lent: &'static Context = unsafe { &*ptr::from_ref(context.as_ref()) };
    let module = gpu::Module::of(lent, &instance, target, KERNEL, threads, gpu::Places::Source)?;
    change(&module.ir);
    let refused = |message: String| Error::Llvm { kernel: instance.name.clone(), message };
    let extent = [module.launch.threads, module.launch.cluster];
    let generation = Generation::of(target.name).map_err(refused)?;
    let gpu = Gpu { generation, warp: target.warp, banks: target.shared_banks };
    let code = Code::of(context, module.ir, gpu, extent, module.shared_bytes as usize).map_err(refused)?;
    let (abi, sites) = (KernelAbi::of(&instance), log::sites(&instance));
    let (tensor_maps, has_order_of_grid) = (module.tensor_maps, module.has_order_of_grid);
    let blocks_per_tile = module.launch.blocks_per_tile;
    Ok(SimtKernel { code, abi, sites, tensor_maps, blocks_per_tile, has_order_of_grid })
}

impl Code {
    /// The code of a module's kernel, for blocks of so many threads in clusters of so many blocks.
    fn of(
        context: Box<Context>,
        ir: Ir<'static>,
        gpu: Gpu,
        [threads, cluster]: [u32; 2],
        shared_bytes: usize,
    ) -> Result<Code, String> {
        ir.module.verify().map_err(|message| message.to_string())?;
        let host = Machine::cpu(Cpu::Host, System::host()).map_err(|error| error.to_string())?;
        let kernel = ir.module.get_function(KERNEL).expect("the module has the kernel");
        let Rewritten { program, stack } = host_module::rewrite(&ir, kernel, ENTRY, gpu, &host)?;
        ir.module.verify().map_err(|message| message.to_string())?;
        let engine = ir.module.create_jit_execution_engine(OptimizationLevel::None);
        let engine = engine.map_err(|message| message.to_string())?;
        for (symbol, address) in runtime::functions() {
            if let Some(function) = ir.module.get_function(symbol) {
                engine.add_global_mapping(&function, address);
            }
        }
        let address = engine.get_function_address(ENTRY).map_err(|error| error.to_string())?;
        // SAFETY: the address is that of the function `host_module` added, with the signature of `ThreadEntry`.
        let entry = unsafe { std::mem::transmute::<usize, ThreadEntry>(address) };
        let geometry = Geometry { threads, cluster, warp: gpu.warp, stack };
        let banks = gpu.banks;
        Ok(Code {
            entry,
            _engine: engine,
            _ir: ir,
            _context: context,
            program,
            geometry,
            banks,
            shared_bytes,
        })
    }

    /// Runs blocks `0..blocks`, whole clusters, in the order of a [`Grid`], with arguments that lie in these regions.
    ///
    /// # Errors
    /// As [`Grid::run`].
    ///
    /// # Safety
    /// The slots are what the kernel's parameters are loaded from, and the regions are memory.
    unsafe fn run(
        &self,
        slots: &[u64],
        regions: Vec<Region>,
        blocks: u64,
        Mode { timing, counted }: Mode,
    ) -> Result<Trace, RunError> {
        let mut global = Global::new(regions);
        global.recorder = counted.then(|| Recorder::new(self.banks));
        let cluster = |number| {
            let (bytes, memory) = self.shared_memory();
            let (geometry, program) = (self.geometry, &self.program);
            let start = Start { number, blocks, geometry, timing, program, memory };
            // SAFETY: the code is that of `of`, and the caller vouches for the slots.
            unsafe { Running::begin(self.entry, slots.as_ptr(), start, bytes) }
        };
        Grid::of(blocks, self.geometry).run(cluster, &mut global)?;
        let counters = global.recorder.map(|recorder| recorder.counters(&self.program));
        Ok(Trace { prefetched: global.prefetched, counters })
    }

    /// Shared memory for the blocks of a cluster: bytes, and where it lies in them.
    fn shared_memory(&self) -> (Vec<u8>, SharedMemory) {
        // What lies behind a block's memory is nobody's.
        let stride = self.shared_bytes.next_multiple_of(SHARED_ALIGNMENT) + SHARED_ALIGNMENT;
        // Bytes that a kernel forgets to write are not conveniently zero.
        let mut bytes = vec![0xa5u8; stride * self.geometry.cluster as usize + SHARED_ALIGNMENT];
        let offset = bytes.as_ptr().align_offset(SHARED_ALIGNMENT);
        let start = bytes[offset..].as_mut_ptr() as u64;
        (bytes, SharedMemory { start, bytes: self.shared_bytes, stride: stride as u64 })
    }
}

impl SimtKernel {
    /// Threads per block.
    pub fn threads(&self) -> u32 {
        self.code.geometry.threads
    }

    /// The row-major number of the place of the grid that a block has, by its own number, as a [`Fault`] has it; `None`
    /// where blocks take places in another order, or many each.
    pub fn place_of(&self, block: u64) -> Option<u64> {
        self.has_order_of_grid.then_some(block / u64::from(self.blocks_per_tile))
    }

    /// Runs blocks `0..blocks`, one cluster after the other as long as none waits for another, with asynchronous operations
    /// as late as they may be. Where a cluster has each place of the grid, these are places. Tensor maps are made here.
    ///
    /// # Safety
    /// The slots are as [`tile_ir::abi`] says for the kernel's instance, and tensors are as large as their
    /// shapes.
    ///
    /// # Errors
    /// The first fault, and where the host has no stacks for the threads; before anything runs, a tensor map or blocks that a
    /// driver would refuse.
    pub unsafe fn run(&self, slots: &[u64], blocks: u64) -> Result<Trace, RunError> {
        // SAFETY: the caller vouches for the slots.
        unsafe { self.run_as(slots, blocks, Mode::default()) }
    }

    /// [`SimtKernel::run`] in another mode.
    ///
    /// # Safety
    /// As for [`SimtKernel::run`].
    ///
    /// # Errors
    /// As [`SimtKernel::run`].
    pub unsafe fn run_as(&self, slots: &[u64], blocks: u64, mode: Mode) -> Result<Trace, RunError> {
        let blocks = blocks.saturating_mul(self.blocks_per_tile.into());
        self.check_blocks(blocks)?;
        // First, because what no driver takes is no memory to be looked at.
        let maps = self.maps(slots)?;
        let mut regions = global::tensors(&self.abi, slots);
        if self.abi.logs {
            let start = slots[self.abi.log_slot()];
            // SAFETY: the caller vouches for the slots, and a log begins with its header.
            let capacity = unsafe { *(start as *const u64).add(log::CAPACITY) } as usize;
            let bytes = (log::HEADER_WORDS + capacity) * size_of::<u64>();
            regions.push(Region::new("the log", start, bytes, true));
        }
        let (before, log) = slots.split_at(self.abi.log_slot());
        let addresses = maps.iter().map(Encoded::address);
        let slots: Vec<u64> = before.iter().copied().chain(addresses).chain(log.iter().copied()).collect();
        // SAFETY: the slots are as the ABI says, and so are the regions.
        unsafe { self.code.run(&slots, regions, blocks, mode) }
    }

    /// Whether a grid has so many blocks of the kernel.
    fn check_blocks(&self, blocks: u64) -> Result<(), RunError> {
        let cluster = self.code.geometry.cluster;
        match blocks {
            blocks if blocks > MOST_BLOCKS => Err(RunError::Grid { blocks }),
            blocks if !blocks.is_multiple_of(cluster.into()) => Err(RunError::Clusters { blocks, cluster }),
            _ => Ok(()),
        }
    }

    /// The tensor maps of a run, as a launch has a driver make them.
    fn maps(&self, slots: &[u64]) -> Result<Vec<Encoded>, MapError> {
        let bound = tile_ir::tensor_map::bind(&self.tensor_maps, &self.abi, slots)?;
        let encoded = |map| Encoded::of(map).expect("verified: a bound map is checked");
        Ok(bound.iter().map(encoded).collect())
    }
}
