//! The CPU target: one native function per instance that runs a range of blocks.
//!
//! Tiles live in scratch memory, row-major, in the compute type of their format (f16 and bf16 as f32, `bool`
//! as a byte); [`scratch`] places them. Elementwise ops that only feed another op are not stored: [`fuse`]
//! decides, and their consumer's loop computes them. Loops are left to LLVM's vectoriser, which alias scopes
//! on the buffers enable; [`product`]s are written with vectors and register blocks of their own.

mod ahead;
mod atomics;
mod behind;
mod buffer;
#[cfg(test)]
mod compiled;
mod elements;
mod fuse;
mod gathered;
mod held;
mod hosted;
mod lanes;
mod lines;
mod messages;
mod movement;
mod narrow;
mod parts;
mod pieces;
mod prefetch;
mod processor;
mod product;
mod reduce;
mod region;
mod scratch;
mod single_lanes;
mod sort;
mod stores;
mod streaming;
mod strided;
mod transpose;
mod vectors;
mod views;

use crate::artifact::{Artifact, Code};
use crate::emit::{Ir, Log, LoopHint, Shared, Value};
use crate::error::Error;
use crate::llvm::Machine;
use crate::options::Options;
use behind::{Behind, Previous};
use buffer::Buffers;
use fuse::Fusion;
use inkwell::AddressSpace;
use inkwell::IntPredicate;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::FileType;
use inkwell::values::{FunctionValue, IntValue, PointerValue};
use processor::Processor;
use product::{Memories, Products};
use region::Emitter;
use scratch::Scratch;
use std::collections::HashMap;
use streaming::Streamed;
use tile_ir::abi::{Argument, KernelAbi, Launch};
use tile_ir::target::CpuLevel;
use tile_ir::tile_order::TileOrder;
use tile_ir::{Dim, Instance, Op, ValueId, passes};

/// Bytes of a cache line of every x86-64, and of most AArch64: where lines are longer, some are asked for twice. Also the
/// alignment of a streaming store of a line.
const LINE_BYTES: u32 = 64;

/// Compiles to an object file.
pub(crate) fn compile(instance: &Instance, options: &Options) -> Result<Artifact, Error> {
    let context = Context::create();
    let machine = Machine::cpu(options.cpu)?;
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

/// Whether a level makes another code of an instance than those below it: of any with other vectors, and of those whose
/// products or atomics it has instructions for, or which ask for what they read as it pays there.
pub(crate) fn differs(instance: &Instance, level: &CpuLevel) -> bool {
    let has = |feature: &str| level.features.contains(&feature);
    let has_atomics = || instance.walk().into_iter().any(|op| matches!(instance.op(op).op, Op::Atomic(_)));
    let gains_atomics = has("lse") && has_atomics();
    let brings_near = has(processor::BRINGS_NEAR) && ahead::reduces_rows(instance);
    let reads_ahead =
        has(processor::READS_AHEAD) && (ahead::reduces_rows(instance) || pieces::turns(instance));
    let asks_for_all = has(processor::ASKS_FOR_ALL) && ahead::moves_rows(instance);
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
    let instance = &passes::run(instance.clone(), &passes::REDUCTIONS);
    let mut processor = Processor::of(machine);
    let is_narrow = narrow::has_narrow_tiles(instance);
    // The straight-line vectoriser knows no variants of functions.
    processor.features.lanewise &= !is_narrow;
    let ir = Ir::new(context, &instance.name, processor.features);
    let fusion = Fusion::of(instance);
    let products = Products::of(instance, &fusion, machine);
    let scratch = Scratch::of(instance, &fusion, &products);
    let behind = behind::decide(instance, &fusion, &scratch, &processor);
    entry(&ir, instance, (&fusion, &products, &scratch, behind), (machine, &processor), symbol);
    if is_narrow {
        machine.optimize_fully(&instance.name, &ir.module)?;
    } else {
        machine.optimize(&instance.name, &ir.module)?;
    }
    single_lanes::store_elements(&ir);
    Ok((
        ir.module,
        Launch {
            threads: 1,
            shared_bytes: 0,
            scratch_bytes: behind::bytes(behind, scratch.bytes()) + Memories::bytes(&products),
            shares_grid: false,
            cluster: 1,
            blocks_per_tile: 1,
        },
    ))
}

/// What the emitters of all blocks are told.
struct Entered<'a, 'c> {
    instance: &'a Instance,
    plans: (&'a Fusion<'a>, &'a Products<'a>),
    processor: &'a Processor,
    arguments: &'a HashMap<ValueId, Value<'c>>,
    sizes: &'a HashMap<String, IntValue<'c>>,
    streamed: &'a Streamed<'c>,
    memories: &'a Memories<'c>,
    shared: Option<Shared<'c>>,
}

impl<'a, 'c> Entered<'a, 'c> {
    /// The emitter of a block of this index.
    fn emitter<'b>(&self, buffers: &'b Buffers<'b, 'c>, block: Vec<IntValue<'c>>) -> Emitter<'b, 'c>
    where
        'a: 'b,
    {
        let machine = (buffers, self.processor);
        let mut emitter = Emitter::new(self.instance, self.plans, machine, self.arguments, self.sizes, block);
        emitter.streamed = self.streamed.clone();
        emitter.memories = self.memories.clone();
        emitter.shared = self.shared;
        emitter
    }
}

/// More rows of tiles than a grid has.
const ALL_ROWS: i64 = 1 << 31;

fn entry(
    ir: &Ir<'_>,
    instance: &Instance,
    (fusion, products, scratch, behind): (&Fusion<'_>, &Products<'_>, &Scratch, Option<Behind<'_>>),
    (machine, processor): (&Machine, &Processor),
    symbol: &str,
) {
    let function = declare(ir, symbol, machine);
    ir.builder.position_at_end(ir.context.append_basic_block(function, "entry"));
    let param = |i| function.get_nth_param(i).expect("the entry has five parameters");
    let (slots, base) = (param(0).into_pointer_value(), param(3).into_pointer_value());
    let goes_on = param(4).into_int_value();
    let goes_on = ir.icmp(IntPredicate::NE, goes_on, goes_on.get_type().const_zero());
    let behind_blocks = ir.bytes_further(base, ir.i64(behind::bytes(behind, scratch.bytes()) as i64));
    let abi = KernelAbi::of(instance);
    let arguments = load_arguments(ir, &abi, instance, slots);
    let sizes = load_sizes(ir, &abi, slots);
    let log = load_log(ir, &abi, slots);
    let shared = load_shared(ir, &abi, slots);
    let space: Vec<IntValue<'_>> =
        abi.grids[0].1.iter().map(|dim| ir.dim(dim, &|name| sizes[name])).collect();
    let piece = pieces::tiles_of_piece(instance, processor).filter(|_| !abi.logs);
    let goes_down = products.go_down() && space.len() >= 2 && !abi.logs;
    let rows_of_band = piece.or_else(|| goes_down.then_some(ALL_ROWS));
    let order = rows_of_band.map(|rows| TileOrder::Grouped(Dim::from(rows)));
    let (first, end) = (param(1).into_int_value(), param(2).into_int_value());
    let streamed = streaming::decide(ir, instance, &sizes);
    let launch = Entered {
        instance,
        plans: (fusion, products),
        processor,
        arguments: &arguments,
        sizes: &sizes,
        streamed: &streamed,
        memories: &Memories::of(ir, products, (behind_blocks, goes_on)),
        shared,
    };
    // A tile that is turned looks ahead to the next pieces of its band.
    let ahead = ir.i64(piece.unwrap_or_else(|| ahead::blocks_ahead(instance) as i64));
    let has_left: Vec<Value<'_>> = behind.iter().map(|_| ir.bool(false).into()).collect();
    // Code of all that a block does isn't made twice; unsaid, LLVM counts its instructions to find that out.
    ir.hinted_loop((first, end, ir.i64(1)), LoopHint::Rolled, &has_left, |number, has_left| {
        let index_of = |number| match &order {
            _ if abi.persistent => vec![number],
            Some(order) => ir.tile_index(order, &space, number),
            None => ir.delinearize(number, &space),
        };
        let [own, other] = behind::halves(ir, instance, (scratch, behind), (base, number));
        let mut emitter = launch.emitter(&own, index_of(number));
        if !abi.persistent {
            // The last blocks of a range look ahead to the last: an order has no index beyond the grid.
            emitter.tile_ahead = index_of(ir.lesser(ir.add(number, ahead), ir.sub(end, ir.i64(1))));
        }
        if let ([.., columns], None, false) = (space.as_slice(), &order, abi.persistent) {
            emitter.row_comes = Some(ir.icmp(IntPredicate::ULT, ir.add(number, *columns), end));
        }
        emitter.log = log.map(|address| Log { address, block: number });
        emitter.previous = behind.map(|behind| {
            let has_next = ir.icmp(IntPredicate::ULT, ir.add(number, ir.i64(1)), end);
            let before = index_of(behind::block_before(ir, number, first));
            Previous::new(behind, launch.emitter(&other, before), [has_left[0].into_int_value(), has_next])
        });
        emitter.ops(instance.body());
        let leaves = emitter.previous.and_then(|previous| previous.leaves);
        leaves.into_iter().map(Into::into).collect()
    });
    if products.have_tiles() {
        product::release_tiles(ir);
    }
    if let Some(intrinsic) = processor.streaming_fence {
        streaming::fence(ir, &streamed, intrinsic);
    }
    ir.return_void();
}

fn declare<'c>(ir: &Ir<'c>, symbol: &str, machine: &Machine) -> FunctionValue<'c> {
    let (pointer, i64) = (ir.context.ptr_type(AddressSpace::default()), ir.context.i64_type());
    let parameters = [pointer.into(), i64.into(), i64.into(), pointer.into(), ir.context.i8_type().into()];
    let ty = ir.context.void_type().fn_type(&parameters, false);
    let function = ir.module.add_function(symbol, ty, None);
    let attribute =
        |name: &str, value| ir.context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), value);
    for parameter in [0, 3] {
        function.add_attribute(AttributeLoc::Param(parameter), attribute("noalias", 0));
    }
    function.add_attribute(AttributeLoc::Param(3), attribute("align", 64));
    function.add_attribute(AttributeLoc::Function, attribute("nounwind", 0));
    // Loops that copy would become calls, and what else they do, loops of its own.
    for (key, value) in [
        ("target-cpu", machine.cpu.as_str()),
        ("target-features", &machine.features),
        ("prefer-vector-width", "512"),
        ("no-builtin-memcpy", ""),
        ("no-builtin-memset", ""),
    ] {
        function.add_attribute(AttributeLoc::Function, ir.context.create_string_attribute(key, value));
    }
    function
}

/// The arguments' values: a tensor's address, or a scalar in its compute type.
fn load_arguments<'c>(
    ir: &Ir<'c>,
    abi: &KernelAbi,
    instance: &Instance,
    slots: PointerValue<'c>,
) -> HashMap<ValueId, Value<'c>> {
    let i64 = ir.context.i64_type();
    let arguments = abi.arguments.iter().zip(instance.params()).enumerate();
    arguments
        .map(|(i, (argument, &param))| {
            let slot = ir.element(i64.into(), slots, ir.i64(i as i64));
            let value = match argument {
                Argument::Tensor { .. } => ir.load(ir.context.ptr_type(AddressSpace::default()).into(), slot),
                Argument::Scalar { dtype, .. } => ir.load_value(slot, *dtype),
            };
            (param, value)
        })
        .collect()
}

fn load_sizes<'c>(ir: &Ir<'c>, abi: &KernelAbi, slots: PointerValue<'c>) -> HashMap<String, IntValue<'c>> {
    let i64 = ir.context.i64_type();
    let sizes = abi.sizes.iter().enumerate();
    sizes
        .map(|(i, name)| {
            let slot = ir.element(i64.into(), slots, ir.i64((abi.arguments.len() + i) as i64));
            (name.clone(), ir.load(i64.into(), slot).into_int_value())
        })
        .collect()
}

/// How blocks share tiles, of a persistent kernel.
fn load_shared<'c>(ir: &Ir<'c>, abi: &KernelAbi, slots: PointerValue<'c>) -> Option<Shared<'c>> {
    let i64 = ir.context.i64_type();
    let load =
        |at: usize| ir.load(i64.into(), ir.element(i64.into(), slots, ir.i64(at as i64))).into_int_value();
    let slot = abi.shared_slot();
    abi.persistent.then(|| Shared { tiles: load(slot), blocks: load(slot + 1) })
}

/// The address of the log, of a kernel that has one.
fn load_log<'c>(ir: &Ir<'c>, abi: &KernelAbi, slots: PointerValue<'c>) -> Option<PointerValue<'c>> {
    let at = ir.i64(abi.log_slot() as i64);
    let pointer = ir.context.ptr_type(AddressSpace::default());
    let load = || ir.load(pointer.into(), ir.element(ir.context.i64_type().into(), slots, at));
    abi.logs.then(|| load().into_pointer_value())
}
