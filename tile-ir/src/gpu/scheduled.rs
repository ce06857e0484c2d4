//! What every thread of a block does and holds.

use super::exchange::barriers::Barriers;
use super::exchange::movement::Moves;
use super::exchange::scratch::Scratch;
use super::pipeline::PAIR;
use super::{
    Access, Buffer, Copies, LaidOut, Movement, Orders, Pipelines, Product, Reduction, Remark, Scan, Sorting,
    Threads, Way, dtype_of,
};
use crate::abi::KernelAbi;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::kernel::{OpData, OpId, ValueId};
use crate::ops::Op;
use crate::specialize::Instance;
use crate::tensor_map::TensorMap;
use crate::tile_order::TileOrder;
use std::collections::HashSet;
use tile_layout::linear::Distribution;

/// An instance with what every thread does and holds. Only [`schedule`](super::schedule) makes one.
#[derive(Clone, Debug)]
pub struct Scheduled {
    pub(super) laid_out: LaidOut,
    pub(super) blocks_at_once: Option<u32>,
    pub(super) moves: Moves,
    /// Tiles all of whose elements are one value.
    pub(super) uniform: HashSet<ValueId>,
    pub(super) pipelines: Pipelines,
    pub(super) copies: Copies,
    pub(super) shares_grid: bool,
    pub(super) order_in_parts: Option<TileOrder<Dim>>,
    pub(super) scratch: Scratch,
    pub(super) barriers: Barriers,
    /// The ops whose barriers order tensors.
    pub(super) ordering_tensors: HashSet<OpId>,
    pub(super) remarks: Vec<Remark>,
    /// The feature by which LLVM has what blocks send each other ([`crate::TargetDesc::sends`]).
    pub(super) sends: &'static str,
    /// That by which it has conversions of 8-bit floats ([`crate::TargetDesc::float8_conversions`]).
    pub(super) float8_conversions: Option<&'static str>,
}

impl std::ops::Deref for Scheduled {
    type Target = Instance;
    fn deref(&self) -> &Instance {
        &self.laid_out.instance
    }
}

impl Scheduled {
    /// The threads that hold tiles.
    pub fn threads(&self) -> Threads {
        self.laid_out.threads
    }

    /// All threads of a block: those that hold tiles, and then those that copy them to shared memory.
    pub fn block_threads(&self) -> u64 {
        self.threads().of_block() + self.pipelines.producers()
    }

    /// The loops whose tiles a producer copies ahead.
    pub fn pipelines(&self) -> &Pipelines {
        &self.pipelines
    }

    /// The loops whose tiles the threads that hold the others copy ahead.
    pub fn copies(&self) -> &Copies {
        &self.copies
    }

    /// Shared memory of the tiles that are copied ahead, in bytes.
    pub fn copied_bytes(&self) -> u64 {
        self.pipelines.bytes() + self.copies.bytes()
    }

    /// Shared memory of a block, in bytes: rings, and behind them what threads exchange.
    pub fn shared_bytes(&self) -> u64 {
        self.scratch.bytes()
    }

    /// The op whose buffers end last in shared memory.
    pub fn needs_most_shared(&self) -> Option<OpId> {
        self.scratch.largest()
    }

    /// The shared memory through which an op's threads exchange elements: the operands' that are exchanged, then the
    /// results'.
    pub fn buffers(&self, op: OpId) -> &[Buffer] {
        self.scratch.buffers(op)
    }

    /// Where the mbarrier of a reduction lies by which a block waits for what the cluster's blocks send it; `None` where they
    /// wait for each other at the cluster's barrier, or send nothing.
    pub fn arrival(&self, op: OpId) -> Option<Buffer> {
        let arrival =
            || *self.buffers(op).last().expect("scheduled: a reduction that is sent has an mbarrier");
        self.laid_out.is_sent(op).then(arrival)
    }

    /// Whether the threads that hold tiles wait for each other before an op.
    pub fn waits_before(&self, op: OpId) -> bool {
        self.barriers.are_before(op)
    }

    /// What memory the barriers of an op order: that before it, and those by which its threads exchange elements.
    pub fn orders(&self, op: OpId) -> Orders {
        if self.ordering_tensors.contains(&op) { Orders::AllMemory } else { Orders::SharedMemory }
    }

    /// Whether all elements of a tile are one value, which each thread has.
    pub fn is_uniform(&self, tile: ValueId) -> bool {
        self.uniform.contains(&tile)
    }

    /// How a movement op's threads come by its elements.
    ///
    /// # Panics
    /// If the op is another.
    pub fn movement(&self, op: OpId) -> &Movement {
        self.moves.movement(op).expect("scheduled: an op that moves elements")
    }

    /// For every slot of a `reshape`'s result its operand's slot; `None` where threads exchange elements.
    pub fn reshape(&self, op: OpId) -> Option<&[u64]> {
        self.moves.reshape(op)
    }

    /// How the threads of a `reduce` join elements.
    ///
    /// # Panics
    /// If the op is another.
    pub fn reduction(&self, data: &OpData) -> Reduction<'_> {
        self.laid_out.reduction(data)
    }

    /// How threads join parts of lines, of a `scan` and of associative folds; `None` of other ops.
    pub fn scan(&self, data: &OpData) -> Option<Scan> {
        self.laid_out.scan(data)
    }

    /// How the threads of a `sort` sort lines.
    ///
    /// # Panics
    /// If the op is another.
    pub fn sorting(&self, data: &OpData) -> Sorting {
        self.laid_out.sorting(data)
    }

    /// Whether the loop over tiles isn't its author's: a launch that knows nothing of it may start fewer blocks than there
    /// are tiles.
    pub fn shares_grid(&self) -> bool {
        self.shares_grid
    }

    /// What a launch passes: what it passes to the kernel as its author wrote it.
    pub fn abi(&self) -> KernelAbi {
        let abi = KernelAbi::of(self);
        KernelAbi { persistent: abi.persistent && !self.shares_grid, ..abi }
    }

    /// Blocks that run together: two where pairs of blocks copy for each other ([`Pipelines::pairs`]), and those that share
    /// each tile.
    pub fn cluster(&self) -> u32 {
        if self.pipelines.pairs().is_some() { PAIR as u32 } else { self.blocks_per_tile() }
    }

    /// Blocks that are to run at once on a multiprocessor, for which a thread's registers must be few enough; `None` where they
    /// may be as many as its instructions ask for.
    pub fn blocks_at_once(&self) -> Option<u32> {
        self.blocks_at_once
    }

    /// Blocks that share each tile, as a cluster; 1 where every block has its own.
    pub fn blocks_per_tile(&self) -> u32 {
        self.threads().blocks as u32
    }

    /// The order of the places of the grid of which the blocks of a part of the device take successive ones; `None`
    /// where the block's number is the place's.
    pub fn order_in_parts(&self) -> Option<&TileOrder<Dim>> {
        self.order_in_parts.as_ref()
    }

    /// How the elements of a tile lie in the threads.
    ///
    /// # Panics
    /// If the value isn't a tile, or lies in a ring.
    pub fn distribution(&self, tile: ValueId) -> &Distribution {
        self.laid_out.distributions.get(&tile).expect("scheduled: a tile in threads has a distribution")
    }

    /// The format of a value.
    pub fn dtype(&self, value: ValueId) -> DType {
        dtype_of(self, value)
    }

    /// The feature by which LLVM has the instructions of the schedule, where that isn't one of the target's.
    pub fn feature(&self) -> &'static str {
        let products = self.laid_out.products.values().map(|product| product.instruction.feature);
        let accesses = self.laid_out.accesses.values().map(|access| access.feature);
        let sends = self.walk().into_iter().any(|op| self.laid_out.is_sent(op)).then_some(self.sends);
        let float8_conversions = self.float8_conversions.filter(|_| self.has_float8s());
        products.chain(accesses).chain(sends).chain(float8_conversions).max().unwrap_or_default()
    }

    /// Whether there are 8-bit floats that instructions could convert.
    fn has_float8s(&self) -> bool {
        let mut results = self.walk().into_iter().flat_map(|op| &self.op(op).results);
        let is_float8 = |&value: &ValueId| dtype_of(self, value).is_float8();
        self.params().iter().any(is_float8) || results.any(is_float8)
    }

    /// How an `mma` is done by matrix instructions; `None` where it is done by multiply-adds.
    pub fn product(&self, op: OpId) -> Option<&Product> {
        self.laid_out.products.get(&op)
    }

    /// The tensors of which boxes are copied, in the order of the kernel's parameters for them.
    pub fn tensor_maps(&self) -> &[TensorMap] {
        self.pipelines.maps()
    }

    /// What a person should know of it.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// How the elements of a `convert_layout` get where they are wanted.
    ///
    /// # Panics
    /// If the op is another.
    pub fn way(&self, op: OpId) -> &Way {
        self.laid_out.ways.get(&op).expect("scheduled: every conversion has a way")
    }

    /// The product that reads what a `convert_layout` leaves in shared memory; `None` where registers get it at once.
    pub fn staged_for(&self, op: OpId) -> Option<OpId> {
        self.laid_out.staged.get(&op).copied()
    }

    /// How a gather reaches memory, where it reads neighbours along rows.
    pub fn gathered(&self, op: OpId) -> Option<&Access> {
        self.laid_out.accesses.get(&op)
    }

    /// How many elements of an atomic operation one instruction does: neighbours along rows, in slots that follow each
    /// other from a multiple of so many on.
    pub fn scattered(&self, op: OpId) -> u64 {
        let data = self.op(op);
        match self.laid_out.accesses.get(&op) {
            Some(access) if matches!(data.op, Op::Atomic(_)) => {
                access.vector.min(self.distribution(data.operands[1]).neighbours(access.order[0]))
            }
            _ => 1,
        }
    }

    /// How an op that loads or stores a tile reaches memory.
    ///
    /// # Panics
    /// If the op isn't a load or store of a partition view.
    pub fn access(&self, op: OpId) -> &Access {
        self.laid_out.accesses.get(&op).expect("scheduled: every load and store has an access")
    }
}
