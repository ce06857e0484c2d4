//! Blocks whose threads have different roles: consumers hold tiles and compute, producers copy what consumers read.
//!
//! Both run the kernel: consumers without its copies, the producer nothing but these and the numbers that they need. Where sums
//! lie in tensor memory, a third one runs nothing but the products ([`crate::gpu::products::tensor_memory`]).
//! Consumers are the first warps of the block, so that their distributions are as ever; they wait for each other at
//! a barrier of their own. A producer needs few registers, and gives the others to the consumers.

use super::cluster;
use super::mbarrier;
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::attributes::AttributeLoc;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::gpu::Orders;
use tile_ir::gpu::pipeline::{Leaving, PAIR, TensorSums, WARPGROUP};

/// What the threads that a program is for do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) enum Role {
    /// Everything.
    All,
    /// They copy tiles to shared memory.
    Producer,
    /// It has tensor cores multiply these, where sums lie in tensor memory.
    Multiplier,
    /// They do everything else.
    Consumer,
}

impl Role {
    /// Whether threads of this role hold no tiles, but numbers that say where they are.
    pub(in crate::gpu) fn has_numbers_alone(self) -> bool {
        matches!(self, Role::Producer | Role::Multiplier)
    }
}

/// Registers of a multiprocessor.
const REGISTERS: u64 = 64 * 1024;

/// Registers that a producer keeps, and those with which one does that spills a little, for the sake of consumers that would
/// spill more. Of a block of three warpgroups, which begin with 168, two get what makes all that is given: 232, or 240.
const PRODUCER_REGISTERS: u64 = 40;
const FEWEST_PRODUCER_REGISTERS: u64 = 24;

/// Registers besides those of products that a consumer has use for where one of the producer's warps multiplies, and those with
/// which it has enough: what is left is the multiplier's, to whom the places of several products are worth as much.
const WORKING_BESIDE_MULTIPLIER: u64 = 96;
const ENOUGH_BESIDE_MULTIPLIER: u64 = 224;

/// Registers besides those of products: addresses, counters, and what is stored at a time.
const WORKING_REGISTERS: u64 = 64;

/// The most registers that a thread can name.
pub(in crate::gpu) const MOST_REGISTERS: u64 = 255;

/// Registers are given and taken in such portions (PTX ISA, "setmaxnreg").
const REGISTER_STEP: u64 = 8;

/// Emits the programs of all roles.
pub(in crate::gpu) fn emit<'a, 'c: 'a>(emitter: impl Fn(Role) -> Emitter<'a, 'c>) {
    let [mut producer, mut multiplier, mut consumer] =
        [Role::Producer, Role::Multiplier, Role::Consumer].map(emitter);
    let (ir, has_tensor_memory) = (consumer.ir, consumer.has_tensor_memory());
    consumer.prepare_barriers();
    consumer.say_registers();
    if has_tensor_memory {
        consumer.pipelined.tensor_memory = consumer.find_tensor_memory();
        multiplier.pipelined.tensor_memory = consumer.pipelined.tensor_memory;
    }
    let is_producer = ir.icmp(IntPredicate::UGE, consumer.thread, consumer.i32(consumer.thread_count()));
    // Of the warp of this number behind the consumers'.
    let begins = |emitter: &Emitter<'a, 'c>, warp: u64| {
        let first = emitter.thread_count() + warp * emitter.scheduled.threads().lanes;
        ir.icmp(IntPredicate::EQ, emitter.thread, emitter.i32(first))
    };
    let produce = || {
        producer.resize_registers();
        // One thread issues copies, and another one products; the others of the warpgroup have nothing to do.
        ir.if_then(begins(&producer, 0), || producer.body());
        if has_tensor_memory {
            ir.if_then(begins(&multiplier, 1), || multiplier.body());
        }
        Vec::new()
    };
    let consume = || {
        consumer.resize_registers();
        consumer.find_warpgroup();
        consumer.body();
        if has_tensor_memory {
            consumer.free_tensor_memory();
        }
        Vec::new()
    };
    ir.if_else(is_producer, produce, consume);
    // Where both roles meet: behind consumers alone, `ptxas` takes what is the same in a warp for what isn't.
    consumer.end_stores();
    if consumer.grid.pair.is_some() {
        // As long as one block copies to the other, or says that it left a stage, both are there.
        cluster::meet(ir);
    }
}

impl<'c> Emitter<'_, 'c> {
    /// One thread prepares the barriers of all rings, before any thread of the block, or of its pair, uses them.
    fn prepare_barriers(&self) {
        let ir = self.ir;
        let first = ir.icmp(IntPredicate::EQ, self.thread, self.i32(0));
        ir.if_then(first, || {
            self.init_barriers_of_tiles();
            self.init_barriers_of_tensor_memory();
            mbarrier::fence_init(ir);
        });
        if self.has_tensor_memory() {
            self.allocate_tensor_memory();
        }
        match self.grid.pair {
            // The address of what was allocated is memory as any other.
            Some(_) if self.has_tensor_memory() => cluster::meet(ir),
            // The fence shows the barriers to whoever waits behind this; nothing else has to be.
            Some(_) => {
                cluster::begin(ir);
                cluster::wait(ir);
            }
            None => self.dialect.barrier(ir, Orders::SharedMemory),
        }
    }

    /// Prepares the barriers of rings of tiles.
    fn init_barriers_of_tiles(&self) {
        // Who multiplies leaves a stage: the consumers' warps each, or one thread for all products.
        let leaving = if self.has_tensor_memory() { 1 } else { self.scheduled.threads().warps };
        for (_, pipeline) in self.scheduled.pipelines().all() {
            for (number, fill) in pipeline.fills.iter().enumerate() {
                let blocks = if fill.is_shared() { PAIR } else { 1 };
                for stage in 0..pipeline.stages {
                    let at = |first: u64| self.barrier_of_stage(first, self.i32(stage));
                    mbarrier::init(self.ir, at(pipeline.full(number)), 1);
                    mbarrier::init(self.ir, at(pipeline.empty(number)), blocks * leaving);
                }
            }
        }
    }

    /// Prepares the barriers of sums in tensor memory and of what consumers bring. One commit says of sums that they are there,
    /// and of what was brought that it was read.
    fn init_barriers_of_tensor_memory(&self) {
        let (memory, warps) = (self.scheduled.pipelines().tensor_memory(), self.scheduled.threads().warps);
        let arriving = |sums: &TensorSums| (sums.leaving != Leaving::Bringing).then_some(warps);
        let sums = memory.sums().iter().map(|sums| (&sums.stages, 1, arriving(sums)));
        let brought = memory.brought().iter().map(|one| (&one.stages, warps, one.is_left.then_some(1)));
        for (stages, filling, leaving) in sums.chain(brought) {
            for stage in 0..stages.count {
                let at = |first: u64| self.barrier_of_stage(first, self.i32(stage));
                mbarrier::init(self.ir, at(stages.full()), filling);
                leaving.iter().for_each(|&leaving| mbarrier::init(self.ir, at(stages.empty()), leaving));
            }
        }
    }

    /// The address of a stage's barrier; `first` is where that of stage 0 is.
    pub(in crate::gpu) fn barrier_of_stage(&self, first: u64, stage: IntValue<'c>) -> PointerValue<'c> {
        let ir = self.ir;
        let barriers = ir.element(ir.int_type(8).into(), self.shared, ir.i64(first as i64));
        ir.element(ir.int_type(64).into(), barriers, stage)
    }

    /// Whether threads of this role multiply tiles of rings.
    pub(in crate::gpu) fn multiplies(&self) -> bool {
        self.role == if self.has_tensor_memory() { Role::Multiplier } else { Role::Consumer }
    }

    /// Whether so many registers are too few for a consumer whose products leave it `others`.
    fn are_too_few(&self, registers: u64, others: u64) -> bool {
        registers < MOST_REGISTERS.min(self.words_of_products() + others)
    }

    /// What all threads of the block begin with alike.
    fn first_registers(&self) -> u64 {
        REGISTERS / self.scheduled.block_threads() / REGISTER_STEP * REGISTER_STEP
    }

    /// Whether that is too little for consumers.
    fn are_registers_few(&self) -> bool {
        self.are_too_few(self.first_registers(), WORKING_REGISTERS)
    }

    /// Whether consumers have far too few of them even when a producer gave most of its own.
    pub(in crate::gpu) fn are_registers_scarce(&self) -> bool {
        let most = self.consumer_registers(PRODUCER_REGISTERS);
        self.are_registers_few() && self.are_too_few(most, WORKING_REGISTERS / 2)
    }

    /// What a producer keeps.
    fn kept_registers(&self) -> u64 {
        if self.has_tensor_memory() {
            let needed = (self.words_of_products() + WORKING_BESIDE_MULTIPLIER).min(ENOUGH_BESIDE_MULTIPLIER);
            let all = self.first_registers() * self.scheduled.block_threads();
            let left = all.saturating_sub(needed * self.thread_count()) / WARPGROUP;
            return (left / REGISTER_STEP * REGISTER_STEP).clamp(PRODUCER_REGISTERS, self.first_registers());
        }
        if self.are_registers_scarce() { FEWEST_PRODUCER_REGISTERS } else { PRODUCER_REGISTERS }
    }

    /// What a consumer has where a producer keeps so many registers: more than the block began with it would wait for
    /// forever.
    fn consumer_registers(&self, kept: u64) -> u64 {
        let first = self.first_registers() * self.scheduled.block_threads();
        let left = (first - kept * WARPGROUP) / self.thread_count();
        left.min(MOST_REGISTERS) / REGISTER_STEP * REGISTER_STEP
    }

    /// Says that a block is alone on its multiprocessor, if registers are given and taken: then assemblers know how many each
    /// thread has at first. Else they may not, and leave all as they are (`ptxas` says so: C7508).
    fn say_registers(&self) {
        if self.are_registers_few() {
            let alone = self.ir.context.create_string_attribute("nvvm.minctasm", "1");
            self.ir.function().add_attribute(AttributeLoc::Function, alone);
        }
    }

    /// Registers go from producers to consumers, if what all have alike is too little for these.
    fn resize_registers(&self) {
        if !self.are_registers_few() {
            return;
        }
        let kept = self.kept_registers();
        let (direction, registers) = match self.role {
            Role::Producer | Role::Multiplier => ("dec", kept),
            Role::All | Role::Consumer => ("inc", self.consumer_registers(kept)),
        };
        let name = format!("llvm.nvvm.setmaxnreg.{direction}.sync.aligned.u32");
        self.ir.intrinsic(&name, &[], &[self.i32(registers).into()]);
    }

    /// The registers of a thread that sums and left factors of products take together.
    fn words_of_products(&self) -> u64 {
        let pipelines = self.scheduled.pipelines();
        let products = self.instance.walk().into_iter().filter(|&op| pipelines.factors(op).is_some());
        let tiles = products.flat_map(|op| {
            let data = self.instance.op(op);
            [data.operands[0], data.results[0]]
        });
        let held = tiles.filter(|&tile| !pipelines.holds(tile));
        held.map(|tile| (self.slots(tile) * self.dtype(tile).bytes() as u64).div_ceil(4)).sum()
    }
}
