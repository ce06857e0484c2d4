//! The entry of a kernel: a native function that runs a range of blocks ([`tile_ir::abi::CpuEntry`]), one after the other.
//!
//! What is the same for all blocks is loaded or decided before the loop over them: arguments and sizes, which outputs are
//! streamed, and the order in which the range goes through the grid.

use super::atomics::heeds_others;
use super::atomics::privatized::{Owns, Privatized, Range};
use super::fuse::Fusion;
use super::memory::ahead::blocks_ahead;
use super::memory::behind;
use super::memory::behind::{Behind, Previous};
use super::memory::pieces;
use super::memory::pieces::ALL_ROWS;
use super::memory::scratch::Scratch;
use super::memory::streaming;
use super::memory::streaming::Streamed;
use super::product::{self, Memories, Products};
use super::region::Emitter;
use super::vectors::processor::Processor;
use crate::emit::{Ir, Log, LoopHint, Shared, Value};
use crate::llvm::Machine;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::values::{FunctionValue, IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use std::collections::HashMap;
use tile_ir::abi::{Argument, KernelAbi};
use tile_ir::tile_order::TileOrder;
use tile_ir::{Dim, Instance, ValueId};

/// What is decided of an instance before its code is emitted.
pub(super) struct Plans<'a> {
    pub(super) instance: &'a Instance,
    pub(super) fusion: &'a Fusion<'a>,
    pub(super) products: &'a Products<'a>,
    pub(super) scratch: &'a Scratch,
    /// What blocks leave to the next one, if they do.
    pub(super) behind: Option<Behind<'a>>,
    pub(super) privatized: &'a Privatized,
    pub(super) processor: &'a Processor,
}

/// Emits the entry of an instance, as a function of this symbol.
pub(super) fn emit(ir: &Ir<'_>, plans: &Plans<'_>, machine: &Machine, symbol: &str) {
    let function = declare(ir, symbol, machine);
    ir.builder.position_at_end(ir.context.append_basic_block(function, "entry"));
    let abi = KernelAbi::of(plans.instance);
    let entry = Entry::of(ir, plans, &abi, Parameters::of(function));
    entry.each_block();
    plans.privatized.end(ir, &entry.owns, &entry.arguments);
    if plans.products.have_tiles() {
        product::release_tiles(ir);
    }
    if let Some(intrinsic) = plans.processor.streaming_fence {
        streaming::fence(ir, &entry.streamed, intrinsic);
    }
    ir.return_void();
}

/// The parameters of an entry, in their order.
struct Parameters<'c> {
    slots: PointerValue<'c>,
    /// The first block of the range, and where the range ends.
    first: IntValue<'c>,
    end: IntValue<'c>,
    scratch: PointerValue<'c>,
    /// Whether scratch memory is as an earlier range of the launch has left it: a byte.
    goes_on: IntValue<'c>,
    /// Whether no other thread runs blocks of the launch meanwhile: a byte.
    is_alone: IntValue<'c>,
}

/// The position of [`Parameters::slots`].
const SLOTS: u32 = 0;
/// The position of [`Parameters::scratch`].
const SCRATCH: u32 = 3;

impl<'c> Parameters<'c> {
    fn of(function: FunctionValue<'c>) -> Self {
        let parameter = |i| function.get_nth_param(i).expect("the entry has six parameters");
        Parameters {
            slots: parameter(SLOTS).into_pointer_value(),
            first: parameter(1).into_int_value(),
            end: parameter(2).into_int_value(),
            scratch: parameter(SCRATCH).into_pointer_value(),
            goes_on: parameter(4).into_int_value(),
            is_alone: parameter(5).into_int_value(),
        }
    }
}

/// What all blocks of a range have in common.
pub(super) struct Entry<'a, 'c> {
    ir: &'a Ir<'c>,
    pub(super) plans: &'a Plans<'a>,
    parameters: Parameters<'c>,
    is_persistent: bool,
    /// Tensor addresses and scalar arguments.
    pub(super) arguments: HashMap<ValueId, Value<'c>>,
    pub(super) sizes: HashMap<String, IntValue<'c>>,
    /// How blocks share tiles, of a persistent kernel.
    pub(super) shared: Option<Shared<'c>>,
    /// The address of the log, of a kernel that has one.
    log: Option<PointerValue<'c>>,
    /// The outputs that may be stored past the caches, each with whether it is.
    pub(super) streamed: Streamed<'c>,
    /// What is known of the factors that products have kept.
    pub(super) memories: Memories<'c>,
    /// Whether no other thread runs blocks of the launch meanwhile.
    pub(super) is_alone: IntValue<'c>,
    /// Where tensors that are only updated are updated.
    pub(super) owns: Owns<'c>,
    /// The extents of the grid.
    space: Vec<IntValue<'c>>,
    /// The order in which the range goes through the grid, if that isn't row by row: blocks that may wait for each other
    /// begin in the order of their numbers, and messages come in it.
    order: Option<TileOrder<Dim>>,
    /// How many blocks ahead of itself a block brings near what is read there.
    blocks_ahead: IntValue<'c>,
}

impl<'a, 'c> Entry<'a, 'c> {
    /// Loads and decides what the blocks have in common.
    fn of(ir: &'a Ir<'c>, plans: &'a Plans<'a>, abi: &KernelAbi, parameters: Parameters<'c>) -> Self {
        let &Plans { instance, products, scratch, behind, privatized, processor, .. } = plans;
        let Parameters { slots, first, end, .. } = parameters;
        let is_set = |byte: IntValue<'c>| ir.icmp(IntPredicate::NE, byte, byte.get_type().const_zero());
        let [goes_on, is_alone] = [parameters.goes_on, parameters.is_alone].map(is_set);
        let blocks_bytes = behind::bytes(behind, scratch.bytes());
        let behind_blocks = ir.bytes_further(parameters.scratch, ir.i64(blocks_bytes as i64));
        let arguments = load_arguments(ir, abi, instance, slots);
        let sizes = load_sizes(ir, abi, slots);
        let log = load_log(ir, abi, slots);
        let shared = load_shared(ir, abi, slots);
        let space: Vec<IntValue<'c>> =
            abi.grids[0].1.iter().map(|dim| ir.dim(dim, &|name| sizes[name])).collect();
        let is_free = !abi.logs && !heeds_others(instance);
        let piece = pieces::tiles_of_piece(instance, processor).filter(|_| is_free);
        let goes_down = products.go_down() && space.len() >= 2 && is_free;
        let rows_of_band = piece.or_else(|| goes_down.then_some(ALL_ROWS));
        let streamed = streaming::decide(ir, instance, &sizes);
        let memories = Memories::of(ir, products, behind_blocks, goes_on);
        let own_memory = ir.bytes_further(behind_blocks, ir.i64(own_offset(products) as i64));
        let range = Range { is_alone, blocks: ir.sub(end, first), own_memory };
        let owns = privatized.begin(ir, range, &arguments, &sizes);
        Entry {
            ir,
            plans,
            parameters,
            is_persistent: abi.persistent,
            arguments,
            sizes,
            shared,
            log,
            streamed,
            memories,
            is_alone,
            owns,
            space,
            order: rows_of_band.map(|rows| TileOrder::Grouped(Dim::from(rows))),
            // A tile that is transposed looks ahead to the next pieces of its band.
            blocks_ahead: ir.i64(piece.unwrap_or_else(|| blocks_ahead(instance) as i64)),
        }
    }

    /// Whether the range goes through the grid in bands.
    pub(super) fn is_in_bands(&self) -> bool {
        self.order.is_some()
    }

    /// Emits the loop over the blocks of the range. Where blocks leave their stores to the next one, it carries whether the
    /// block before has done so.
    fn each_block(&self) {
        let (ir, Parameters { first, end, .. }) = (self.ir, &self.parameters);
        let has_left: Vec<Value<'c>> = self.plans.behind.iter().map(|_| ir.bool(false).into()).collect();
        // Rolled, because the code of a whole block isn't worth a copy; LLVM would count its instructions to find that out.
        ir.hinted_loop((*first, *end, ir.i64(1)), LoopHint::Rolled, &has_left, |number, has_left| {
            let leaves = self.block(number, has_left.first().map(|has_left| has_left.into_int_value()));
            leaves.into_iter().map(Into::into).collect()
        });
    }

    /// Emits the block of a number. `has_left` says whether the block before left its store to this one, where blocks do
    /// so; gives whether this one does.
    fn block(&self, number: IntValue<'c>, has_left: Option<IntValue<'c>>) -> Option<IntValue<'c>> {
        let (ir, Parameters { first, end, scratch, .. }) = (self.ir, &self.parameters);
        let Plans { instance, scratch: places, behind, .. } = *self.plans;
        let [own, other] = behind::halves(ir, instance, places, behind, *scratch, number);
        let mut emitter = Emitter::new(self, &own, self.index_of(number));
        if !self.is_persistent {
            // The last blocks of a range look ahead to the last: an order has no index beyond the grid.
            let ahead = ir.lesser(ir.add(number, self.blocks_ahead), ir.sub(*end, ir.i64(1)));
            emitter.grid.tile_ahead = self.index_of(ahead);
        }
        if let ([.., columns], None, false) = (self.space.as_slice(), &self.order, self.is_persistent) {
            emitter.grid.row_comes = Some(ir.icmp(IntPredicate::ULT, ir.add(number, *columns), *end));
        }
        emitter.log = self.log.map(|address| Log { address, block: number });
        emitter.previous = behind.zip(has_left).map(|(behind, has_left)| {
            let has_next = ir.icmp(IntPredicate::ULT, ir.add(number, ir.i64(1)), *end);
            let before = self.index_of(behind::block_before(ir, number, *first));
            Previous::new(behind, Emitter::new(self, &other, before), [has_left, has_next])
        });
        emitter.ops(instance.body());
        emitter.previous.and_then(|previous| previous.leaves)
    }

    /// The index of the block of a number in the grid.
    fn index_of(&self, number: IntValue<'c>) -> Vec<IntValue<'c>> {
        match &self.order {
            _ if self.is_persistent => vec![number],
            Some(order) => self.ir.tile_index(order, &self.space, number),
            None => self.ir.delinearize(number, &self.space),
        }
    }
}

/// Bytes of scratch memory of a thread.
pub(super) fn bytes(plans: &Plans<'_>) -> u64 {
    let blocks = behind::bytes(plans.behind, plans.scratch.bytes());
    blocks + own_offset(plans.products) + plans.privatized.bytes()
}

/// Where in the memory behind the blocks' the thread's own elements of tensors lie.
fn own_offset(products: &Products<'_>) -> u64 {
    Memories::bytes(products).next_multiple_of(64)
}

/// Declares the entry: a function with [`Parameters`], for this processor.
fn declare<'c>(ir: &Ir<'c>, symbol: &str, machine: &Machine) -> FunctionValue<'c> {
    let (pointer, i64) = (ir.context.ptr_type(AddressSpace::default()), ir.context.i64_type());
    let byte = ir.context.i8_type();
    let parameters = [pointer.into(), i64.into(), i64.into(), pointer.into(), byte.into(), byte.into()];
    let ty = ir.context.void_type().fn_type(&parameters, false);
    let function = ir.module.add_function(symbol, ty, None);
    let attribute =
        |name: &str, value| ir.context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), value);
    for parameter in [SLOTS, SCRATCH] {
        function.add_attribute(AttributeLoc::Param(parameter), attribute("noalias", 0));
    }
    function.add_attribute(AttributeLoc::Param(SCRATCH), attribute("align", 64));
    function.add_attribute(AttributeLoc::Function, attribute("nounwind", 0));
    // LLVM would turn loops that copy into calls, and split what else they do off into loops of its own.
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

/// The run-time sizes, by name.
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
