//! Products whose sums lie in tensor memory (PTX ISA, "TensorCore 5th Generation Family Instructions").
//!
//! One thread, the *multiplier*, waits for the tiles of a turn and has the tensor cores multiply them; what it commits leaves
//! the turn's stage when these are done with it, and tells the consumers that sums are there: of those that a loop keeps behind
//! its last turn, of others in every turn. They load these, and leave their stage in turn. A left factor that they computed they
//! bring to shared memory, where the multiplier waits for it; what of the next turn needs nothing of theirs it multiplies before.
//!
//! Invariants: what the multiplier issues is done in the order in which it does; a wait for sums, or for those who load them,
//! is followed by `fence::after_thread_sync`, and an arrival of those who load comes after `fence::before_thread_sync`.

mod descriptors;

use crate::emit::Value;
use crate::gpu::fragment::Fragment;
use crate::gpu::pipeline::mbarrier;
use crate::gpu::pipeline::pairs::BOTH;
use crate::gpu::pipeline::ring::Ring;
use crate::gpu::pipeline::roles::Role;
use crate::gpu::region::Emitter;
use crate::gpu::targets::declared;
use crate::gpu::targets::declared::SumFormat;
use descriptors::{instruction_word, kind_of, layout_of};
use inkwell::values::{IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tile_ir::gpu::pipeline::{Fill, Leaving, Major, TENSOR_ROWS, TensorSums};
use tile_ir::kernel::OpData;
use tile_ir::{DType, OpId, RegionId, ValueId};
use tile_layout::linear::Operand;

/// LLVM's address space of tensor memory.
const TENSOR_MEMORY: u16 = 6;

/// The thread that begins the warp that allocates: none of whose threads does anything else before.
const ALLOCATING: u64 = 32;

/// The bit of an address at which lanes begin, below which columns are counted.
const LANE_SHIFT: u64 = 16;

/// Rows that a warp may load, and that one load brings.
const WARP_ROWS: u64 = 32;
const LOADED_ROWS: u64 = 16;

/// Columns of a load's smallest form.
const LOADED_COLUMNS: u64 = 8;

/// What consumers load, and the multiplier issues, is done by one block.
const ONE_BLOCK: u64 = 1;

impl<'a, 'c> Emitter<'a, 'c> {
    /// Whether sums lie in tensor memory, so that consumers take no part in products.
    pub(in crate::gpu) fn has_tensor_memory(&self) -> bool {
        !self.scheduled.pipelines().tensor_memory().is_empty()
    }

    /// Where the address of what the block has of tensor memory lies.
    fn place_of_address(&self) -> PointerValue<'c> {
        let place = self.scheduled.pipelines().tensor_memory().address();
        self.ir.element(self.ir.int_type(8).into(), self.shared, self.i32(place))
    }

    /// Does something in the warp that allocates.
    fn where_it_allocates(&self, action: impl FnOnce()) {
        let ir = self.ir;
        let warp = ir.lshr(self.thread, self.i32(ALLOCATING.ilog2().into()));
        ir.if_then(ir.icmp(IntPredicate::EQ, warp, self.i32(1)), action);
    }

    /// Allocates, before the barrier behind which [`Self::find_tensor_memory`] finds the address.
    pub(in crate::gpu) fn allocate_tensor_memory(&self) {
        let (ir, columns) = (self.ir, self.scheduled.pipelines().tensor_memory().columns());
        self.where_it_allocates(|| {
            let operands = [Value::from(self.place_of_address()), self.i32(columns).into()];
            ir.intrinsic("llvm.nvvm.tcgen05.alloc.shared.cg1", &[], &operands);
            ir.intrinsic("llvm.nvvm.tcgen05.relinq.alloc.permit.cg1", &[], &[]);
        });
    }

    /// The address of what the block has of tensor memory.
    pub(in crate::gpu) fn find_tensor_memory(&self) -> IntValue<'c> {
        self.ir.load(self.ir.int_type(32).into(), self.place_of_address()).into_int_value()
    }

    /// Gives the memory back when all consumers have loaded their last sums.
    pub(in crate::gpu) fn free_tensor_memory(&self) {
        let (ir, columns) = (self.ir, self.scheduled.pipelines().tensor_memory().columns());
        self.sync();
        self.where_it_allocates(|| {
            let operands =
                [Value::from(self.pointer(self.pipelined.tensor_memory)), self.i32(columns).into()];
            ir.intrinsic("llvm.nvvm.tcgen05.dealloc.cg1", &[], &operands);
        });
    }

    /// Orders what follows behind what others did before a barrier that this thread waited at.
    fn begin_after(&self) {
        self.ir.intrinsic("llvm.nvvm.tcgen05.fence.after.thread.sync", &[], &[]);
    }

    /// Orders loads before the barrier that follows.
    fn end_loads(&self) {
        self.ir.intrinsic("llvm.nvvm.tcgen05.fence.before.thread.sync", &[], &[]);
    }

    fn pointer(&self, address: IntValue<'c>) -> PointerValue<'c> {
        let ty = self.ir.context.ptr_type(AddressSpace::from(TENSOR_MEMORY));
        self.ir.builder.build_int_to_ptr(address, ty, "").expect("the builder is positioned")
    }

    /// The number of the sums that a loop with this body keeps, for threads that add to them or load them.
    pub(in crate::gpu) fn kept_sums(&self, body: RegionId) -> Option<usize> {
        let sums = self.scheduled.pipelines().tensor_memory().kept_by(body)?;
        matches!(self.role, Role::Multiplier | Role::Consumer).then_some(sums)
    }

    fn sums(&self, number: usize) -> &'a TensorSums {
        &self.scheduled.pipelines().tensor_memory().sums()[number]
    }

    /// The first column of a product's sums in this turn's stage.
    fn first_column(&self, number: usize, product: OpId) -> IntValue<'c> {
        let (ir, state, sums) = (self.ir, self.state(Ring::Sums(number)), self.sums(number));
        let own = sums.products.iter().find(|&&(op, _)| op == product).expect("it is one of them").1;
        let stage = ir.mul(state.stage, self.i32(sums.stage_columns));
        ir.add(ir.add(self.pipelined.tensor_memory, stage), self.i32(sums.first + own))
    }

    /// Waits until a stage for sums was left.
    pub(in crate::gpu) fn begin_sums(&self, number: usize) {
        let leaving = self.sums(number).leaving;
        if leaving != Leaving::Bringing {
            self.await_empty(Ring::Sums(number));
        }
        if leaving == Leaving::Arriving {
            self.begin_after();
        }
    }

    /// Tells consumers of sums when the last product that was issued is done.
    pub(in crate::gpu) fn end_sums(&self, number: usize) {
        self.commit(self.full_of(Ring::Sums(number)));
    }

    /// Arrives at an mbarrier of the own block when all products that were issued are done (PTX ISA, "tcgen05.commit").
    fn commit(&self, barrier: PointerValue<'c>) {
        self.ir.intrinsic("llvm.nvvm.tcgen05.commit.shared.cg1", &[], &[barrier.into()]);
    }

    /// Loads the sums that a loop from one number to another kept; they are zero where it has no turns.
    pub(in crate::gpu) fn take_kept_sums(
        &mut self,
        number: usize,
        data: &OpData,
        [first, end]: [IntValue<'c>; 2],
    ) {
        let exists = self.ir.icmp(IntPredicate::ULT, first, end);
        self.await_full(Ring::Sums(number));
        self.begin_after();
        for &(product, _) in &self.sums(number).products {
            let result = self.yielded_as(data, product);
            let zero = self.zero(self.dtype(result));
            let zeros = || vec![zero; self.slots(result) as usize];
            let loaded = self.ir.if_else(exists, || self.loaded_sums(number, product, result), zeros);
            self.set_tile(result, Fragment::Slots(loaded));
        }
        self.leave_sums(number);
    }

    /// What consumers do of a product: they bring its left factor to shared memory, and load its sums if these are of the turn.
    pub(in crate::gpu) fn consume_product(&mut self, op: OpId, data: &OpData) {
        let memory = self.scheduled.pipelines().tensor_memory();
        if let Some(number) = memory.brought_for(op) {
            self.bring(number, data.operands[0]);
        }
        let number = memory.of_product(op).expect("scheduled: its sums lie in tensor memory");
        let TensorSums { are_kept, late, .. } = self.sums(number);
        if !are_kept && late.is_none() {
            self.await_full(Ring::Sums(number));
            self.begin_after();
            let loaded = self.loaded_sums(number, op, data.results[0]);
            self.set_tile(data.results[0], Fragment::Slots(loaded));
            self.leave_sums(number);
        }
    }

    /// Where a turn first needs what the one before left to be added, adds it.
    pub(in crate::gpu) fn settle_before(&mut self, op: OpId) {
        if self.role != Role::Consumer {
            return;
        }
        for (number, sums) in self.scheduled.pipelines().tensor_memory().sums().iter().enumerate() {
            if let Some(late) = sums.late.filter(|late| late.first_use == op) {
                let exists = self.is_later_turn(sums.body);
                self.settle(number, late.carried, exists);
            }
        }
    }

    /// Behind a loop from one number to another, adds what its last turn left to be added, if it has turns.
    pub(in crate::gpu) fn settle_behind(
        &mut self,
        body: RegionId,
        data: &OpData,
        [first, end]: [IntValue<'c>; 2],
    ) {
        for (number, sums) in self.scheduled.pipelines().tensor_memory().sums().iter().enumerate() {
            if let Some(late) = sums.late.filter(|_| sums.body == body && self.role == Role::Consumer) {
                let exists = self.ir.icmp(IntPredicate::ULT, first, end);
                self.settle(number, data.results[late.number], exists);
            }
        }
    }

    /// Adds the sums of the turn before to a tile, if there was one.
    fn settle(&mut self, number: usize, tile: ValueId, exists: IntValue<'c>) {
        let ir = self.ir;
        let sums = self.sums(number);
        let product = sums.products[0].0;
        let result = self.instance.op(product).results[0];
        let before = self.tile(tile).values(self.slots(tile));
        let added = || {
            let barrier = self.barrier_of_stage(sums.stages.full(), self.i32(0));
            let parity = ir.xor(self.state(Ring::Sums(number)).parity, self.i32(1));
            mbarrier::wait(ir, barrier, parity);
            self.begin_after();
            let own = self.loaded_sums(number, product, result);
            before.iter().zip(own).map(|(&before, own)| self.added(before, own)).collect()
        };
        let settled = ir.if_else(exists, added, || before.clone());
        self.set_tile(tile, Fragment::Slots(settled));
    }

    fn added(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        match (a, b) {
            (Value::IntValue(a), Value::IntValue(b)) => self.ir.add(a, b).into(),
            (a, b) => self.ir.fadd(a.into_float_value(), b.into_float_value()).into(),
        }
    }

    /// Leaves an addition to the next turn: what it adds to stands for it.
    pub(in crate::gpu) fn add_later(&mut self, data: &OpData) {
        let before = self.tile(data.operands[0]).values(self.slots(data.results[0]));
        self.set_tile(data.results[0], Fragment::Slots(before));
    }

    /// Says that sums were loaded, in every warp.
    fn leave_sums(&self, number: usize) {
        let (ring, leaving) = (Ring::Sums(number), self.sums(number).leaving);
        if leaving == Leaving::Arriving {
            self.end_loads();
            self.meet_warp();
        }
        if leaving != Leaving::Bringing {
            self.arrive_for_warp(self.empty_of(ring));
        }
    }

    /// Waits for the lanes of the warp.
    fn meet_warp(&self) {
        self.ir.intrinsic("llvm.nvvm.bar.warp.sync", &[], &[self.i32(u32::MAX.into()).into()]);
    }

    /// Before a loop in whose turns left factors are brought to where panels lie: waits until copies of these have read them.
    pub(in crate::gpu) fn begin_bringing(&self, body: RegionId) {
        let brought = self.scheduled.pipelines().tensor_memory().brought();
        let is_in_loop = brought.iter().any(|brought| brought.stages.home == body);
        if self.role == Role::Consumer
            && is_in_loop
            && self.scheduled.pipelines().has_panels()
            && self.may_copy_panels()
        {
            self.sync();
        }
    }

    /// Brings a left factor to shared memory, as the tile of a ring would lie there.
    fn bring(&self, number: usize, tile: ValueId) {
        let (ir, ring) = (self.ir, Ring::Brought(number));
        let brought = &self.scheduled.pipelines().tensor_memory().brought()[number];
        let matrices = brought.matrices.as_ref().expect("scheduled: matrix stores write it");
        if brought.is_left {
            self.await_empty(ring);
        }
        let byte = |position: &[u64]| brought.tile.place(position[0], position[1]);
        let begin = self.scheduled.pipelines().panels() + brought.place;
        self.write_matrices(tile, matrices, self.addresses_in(self.shared, begin, matrices.rows(), byte));
        ir.intrinsic("llvm.nvvm.fence.proxy.async.shared_cta", &[], &[]);
        // It says as well that the sums of the turn before were loaded.
        self.end_loads();
        self.meet_warp();
        self.arrive_for_warp(self.full_of(ring));
    }

    fn zero(&self, dtype: DType) -> Value<'c> {
        if dtype.is_float() { self.ir.f32().const_zero().into() } else { self.i32(0).into() }
    }

    /// The running thread's part of a product's sums.
    fn loaded_sums(&self, number: usize, product: OpId, result: ValueId) -> Vec<Value<'c>> {
        let (ir, first) = (self.ir, self.first_column(number, product));
        let instruction =
            &self.scheduled.product(product).expect("scheduled: it has an instruction").instruction;
        let (columns, all_columns) = (u64::from(instruction.shape.n), self.shape(result)[1]);
        let parts = self.parts(result, instruction, Operand::Accumulator);
        let column = |position: &[u64]| position[0] / TENSOR_ROWS * all_columns + position[1];
        let step = self.second_warpgroup(result).map_or(0, column);
        let own = ir.mul(self.running_warpgroup(), self.i32(step));
        let warp = ir.and(ir.lshr(self.thread, self.i32(WARP_ROWS.ilog2().into())), self.i32(3));
        let lanes = ir.mul(warp, self.i32(WARP_ROWS << LANE_SHIFT));
        let base = ir.add(ir.add(first, own), lanes);
        let mut starts = parts.starts.clone();
        starts.sort_by_key(|(_, slot)| *slot);
        let (times, format) = (columns / LOADED_COLUMNS, SumFormat::of(self.dtype(result)));
        let name = declared::load_of_sums(times, format);
        let loads = starts
            .iter()
            .flat_map(|(start, _)| [0, LOADED_ROWS].map(|rows| column(start) + (rows << LANE_SHIFT)));
        let load = |place: u64| {
            let address = self.pointer(ir.add(base, self.i32(place)));
            declared::call_for(ir, &name, &[address.into()], &vec![format.ty(ir); (4 * times) as usize])
        };
        loads.flat_map(load).collect()
    }

    /// Issues a product when its factors are there, and leaves the stages of those that it is the last to read.
    pub(in crate::gpu) fn tensor_product(&self, op: OpId) {
        let (ir, data) = (self.ir, self.instance.op(op));
        let memory = self.scheduled.pipelines().tensor_memory();
        let number = memory.of_product(op).expect("scheduled: its sums lie in tensor memory");
        let (sums, brought) = (self.sums(number), memory.brought_for(op));
        self.await_fills(op);
        if let Some(brought) = brought {
            self.await_full(Ring::Brought(brought));
            // Those who brought it had loaded the sums before it.
            self.begin_after();
        }
        if !sums.are_kept {
            self.begin_sums(number);
        }
        let instruction = &self.scheduled.product(op).expect("scheduled: it has an instruction").instruction;
        let (left, right) = self.factors_of(op);
        let right = right.expect("scheduled: the right factor lies in a ring");
        let left = match (left, brought) {
            (Some(left), _) => self.described(left, self.i32(0), layout_of),
            (None, Some(brought)) => {
                let brought = &memory.brought()[brought];
                let place = self.i32(self.scheduled.pipelines().panels() + brought.place);
                self.described_at(brought.tile, Major::Depth, place, layout_of)
            }
            (None, None) => unreachable!("scheduled: its left factor lies in a ring, or is brought"),
        };
        let [rows, columns] = [0, 1].map(|axis| self.shape(data.results[0])[axis]);
        let word = u64::from(instruction_word(instruction, columns, [left.major, right.major]));
        let right = self.described(right, self.i32(0), layout_of);
        let first = self.first_column(number, op);
        let adds = if sums.are_kept { self.is_later_turn(sums.body) } else { ir.bool(false) };
        for block in 0..rows / TENSOR_ROWS {
            let sums = self.pointer(ir.add(first, self.i32(block * columns)));
            for k in (0..self.depth_of(data)).step_by(instruction.shape.k as usize) {
                let adds = if k == 0 { adds } else { ir.bool(true) };
                let factors = [self.descriptor(&left, block * TENSOR_ROWS, k), self.descriptor(&right, 0, k)];
                self.multiply_in_tensor_memory(sums, factors, word, kind_of(instruction), adds);
            }
        }
        self.leave_stage(op);
        if let Some(number) = brought.filter(|&number| memory.brought()[number].is_left) {
            self.commit(self.empty_of(Ring::Brought(number)));
        }
        if !sums.are_kept {
            self.end_sums(number);
        }
    }

    /// Whether a product is issued in the turn before its own.
    pub(in crate::gpu) fn is_multiplied_ahead(&self, op: OpId) -> bool {
        let memory = self.scheduled.pipelines().tensor_memory();
        memory.of_product(op).is_some_and(|sums| memory.ahead(self.sums(sums).body).any(|ahead| ahead == op))
    }

    /// Issues what the turn after that of this number finds multiplied, if there is one.
    pub(in crate::gpu) fn multiply_ahead(&mut self, body: RegionId, [number, end]: [IntValue<'c>; 2]) {
        if self.role != Role::Multiplier {
            return;
        }
        let next = self.ir.add(number, number.get_type().const_int(1, false));
        let before = self.pipelined.rings.clone();
        self.next_stage(body);
        self.issue_ahead(body, [next, end]);
        self.pipelined.rings = before;
    }

    /// Issues what a turn of this number finds multiplied, if the loop has that turn.
    pub(in crate::gpu) fn issue_ahead(&self, body: RegionId, [number, end]: [IntValue<'c>; 2]) {
        let memory = self.scheduled.pipelines().tensor_memory();
        let ahead: Vec<OpId> = memory.ahead(body).collect();
        if self.role == Role::Multiplier && !ahead.is_empty() {
            let exists = self.ir.icmp(IntPredicate::ULT, number, end);
            self.ir.if_then(exists, || ahead.iter().for_each(|&op| self.tensor_product(op)));
        }
    }

    fn multiply_in_tensor_memory(
        &self,
        sums: PointerValue<'c>,
        [a, b]: [IntValue<'c>; 2],
        word: u64,
        kind: u64,
        adds: IntValue<'c>,
    ) {
        let collector = self.i32(0);
        let numbers = [self.i32(kind), self.i32(ONE_BLOCK), collector].map(Value::from);
        let operands = [sums.into(), a.into(), b.into(), self.i32(word).into(), adds.into()];
        self.ir.intrinsic("llvm.nvvm.tcgen05.mma.shared", &[], &[operands.as_slice(), &numbers].concat());
    }

    /// Whether a loop's turn isn't its first, whose products add to nothing.
    fn is_later_turn(&self, body: RegionId) -> IntValue<'c> {
        let around = self.instance.owner_of(body).expect("scheduled: it is a loop's body");
        let first = self.index(self.instance.op(around).operands[0]);
        let turn = self.index(self.instance.region(body).params[0]);
        self.ir.icmp(IntPredicate::NE, turn, first)
    }

    /// Leaves a stage when all products that were issued are done with it, in every block that copies to it.
    pub(in crate::gpu) fn leave_by_commit(&self, fill: &Fill, barrier: PointerValue<'c>) {
        if !fill.is_shared() {
            return self.commit(barrier);
        }
        let both = self.ir.int_type(16).const_int(BOTH, false);
        self.ir.intrinsic("llvm.nvvm.tcgen05.commit.mc.shared.cg1", &[], &[barrier.into(), both.into()]);
    }
}
