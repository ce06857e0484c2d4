//! Products whose sums lie in tensor memory (PTX ISA, "TensorCore 5th Generation Family Instructions").
//!
//! One thread, the *multiplier*, waits for the tiles of a turn and has the tensor cores multiply them; what it commits leaves
//! the turn's stage when these are done with it, and behind a loop's last turn tells the consumers that the sums are there. They
//! load these, and leave their stage in turn.
//!
//! Invariants: what the multiplier issues is done in the order in which it does; a wait for sums, or for those who load them,
//! is followed by `fence::after_thread_sync`, and an arrival of those who load comes after `fence::before_thread_sync`.

use super::declared;
use super::fragment::Fragment;
use super::mbarrier;
use super::pairs::BOTH;
use super::region::Emitter;
use super::ring::Ring;
use super::roles::Role;
use super::warpgroup::Described;
use crate::emit::Value;
use inkwell::values::{IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tile_ir::gpu::pipeline::{Fill, Major, SharedTile, TENSOR_ROWS, TensorSums};
use tile_ir::kernel::OpData;
use tile_ir::target::MatrixInstruction;
use tile_ir::tensor_map::Swizzle;
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

impl<'c> Emitter<'_, 'c> {
    /// Whether sums lie in tensor memory, so that consumers take no part in products.
    pub(super) fn has_tensor_memory(&self) -> bool {
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
    pub(super) fn allocate_tensor_memory(&self) {
        let (ir, columns) = (self.ir, self.scheduled.pipelines().tensor_memory().columns());
        self.where_it_allocates(|| {
            let operands = [Value::from(self.place_of_address()), self.i32(columns).into()];
            ir.intrinsic("llvm.nvvm.tcgen05.alloc.shared.cg1", &[], &operands);
            ir.intrinsic("llvm.nvvm.tcgen05.relinq.alloc.permit.cg1", &[], &[]);
        });
    }

    /// The address of what the block has of tensor memory.
    pub(super) fn find_tensor_memory(&self) -> IntValue<'c> {
        self.ir.load(self.ir.int_type(32).into(), self.place_of_address()).into_int_value()
    }

    /// Gives the memory back when all consumers have loaded their last sums.
    pub(super) fn free_tensor_memory(&self) {
        let (ir, columns) = (self.ir, self.scheduled.pipelines().tensor_memory().columns());
        self.sync();
        self.where_it_allocates(|| {
            let operands = [Value::from(self.pointer(self.tensor_memory)), self.i32(columns).into()];
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

    /// The sums of the products of a loop with this body, for threads that add to them or load them.
    pub(super) fn sums_of_loop(&self, body: RegionId) -> Option<&TensorSums> {
        let sums = self.scheduled.pipelines().tensor_memory().of_loop(body)?;
        matches!(self.role, Role::Multiplier | Role::Consumer).then_some(sums)
    }

    /// The first column of a product's sums in this turn's stage.
    fn first_column(&self, body: RegionId, sums: &TensorSums, product: OpId) -> IntValue<'c> {
        let (ir, state) = (self.ir, self.state(Ring::Sums(body)));
        let own = sums.products.iter().find(|&&(op, _)| op == product).expect("it is one of them").1;
        let stage = ir.mul(state.stage, self.i32(sums.stage_columns));
        ir.add(ir.add(self.tensor_memory, stage), self.i32(sums.first + own))
    }

    /// Waits until a stage for the sums of a loop was left, and for what is there.
    pub(super) fn begin_sums(&self, body: RegionId, sums: &TensorSums) {
        let state = self.state(Ring::Sums(body));
        let left = self.ir.xor(state.parity, self.i32(1));
        mbarrier::wait(self.ir, self.barrier_of_stage(sums.empty(), state.stage), left);
        self.begin_after();
    }

    /// Tells consumers of the sums of a loop when its last product is done.
    pub(super) fn end_sums(&self, body: RegionId, sums: &TensorSums) {
        let full = self.barrier_of_stage(sums.full(), self.state(Ring::Sums(body)).stage);
        self.ir.intrinsic("llvm.nvvm.tcgen05.commit.shared.cg1", &[], &[full.into()]);
    }

    /// Loads the sums of a loop that has turns if `exists`; otherwise they are zero.
    pub(super) fn take_sums(
        &mut self,
        (body, data): (RegionId, &OpData),
        sums: &TensorSums,
        exists: IntValue<'c>,
    ) {
        let (ir, state) = (self.ir, self.state(Ring::Sums(body)));
        mbarrier::wait(ir, self.barrier_of_stage(sums.full(), state.stage), state.parity);
        self.begin_after();
        for &(product, _) in &sums.products {
            let result = self.yielded_as(data, product);
            let first = self.first_column(body, sums, product);
            let zero = self.zero(self.dtype(result));
            let zeros = || vec![zero; self.slots(result) as usize];
            let loaded = ir.if_else(exists, || self.loaded_sums(product, result, first), zeros);
            self.set_tile(result, Fragment::Slots(loaded));
        }
        self.end_loads();
        // One lane arrives for all.
        ir.intrinsic("llvm.nvvm.bar.warp.sync", &[], &[self.i32(u32::MAX.into()).into()]);
        let empty = self.barrier_of_stage(sums.empty(), state.stage);
        let lane = ir.and(self.thread, self.i32(self.scheduled.threads().lanes - 1));
        ir.if_then(ir.icmp(IntPredicate::EQ, lane, self.i32(0)), || mbarrier::arrive(ir, empty));
    }

    fn zero(&self, dtype: DType) -> Value<'c> {
        if dtype.is_float() { self.ir.f32().const_zero().into() } else { self.i32(0).into() }
    }

    /// The running thread's part of a product's sums that begin at a column.
    fn loaded_sums(&self, product: OpId, result: ValueId, first: IntValue<'c>) -> Vec<Value<'c>> {
        let ir = self.ir;
        let instruction =
            &self.scheduled.product(product).expect("scheduled: it has an instruction").instruction;
        let (columns, all_columns) = (u64::from(instruction.shape.n), self.shape(result)[1]);
        let parts = self.parts(result, instruction, Operand::Accumulator);
        let column = |position: &[u64]| position[0] / TENSOR_ROWS * all_columns + position[1];
        // What the first thread of the next warpgroup has is so many columns on.
        let next = self.scheduled.distribution(result).thread_bits().nth(WARPGROUP_BIT);
        let own = ir.mul(self.running_warpgroup(), self.i32(next.map_or(0, column)));
        let warp = ir.and(ir.lshr(self.thread, self.i32(WARP_ROWS.ilog2().into())), self.i32(3));
        let lanes = ir.mul(warp, self.i32(WARP_ROWS << LANE_SHIFT));
        let base = ir.add(ir.add(first, own), lanes);
        let mut starts = parts.starts.clone();
        starts.sort_by_key(|(_, slot)| *slot);
        let form = columns / LOADED_COLUMNS;
        let name = declared::load_of_sums(form, self.dtype(result).is_float());
        let word = if self.dtype(result).is_float() { ir.f32().into() } else { ir.int_type(32).into() };
        let loads = starts
            .iter()
            .flat_map(|(start, _)| [0, LOADED_ROWS].map(|rows| column(start) + (rows << LANE_SHIFT)));
        let load = |place: u64| {
            let address = self.pointer(ir.add(base, self.i32(place)));
            declared::call_for(ir, &name, &[address.into()], &vec![word; (4 * form) as usize])
        };
        loads.flat_map(load).collect()
    }

    /// Issues a product whose tiles are there, and leaves the stages of those that it is the last to read.
    pub(super) fn tensor_product(&mut self, op: OpId) {
        let (ir, data) = (self.ir, self.instance.op(op));
        self.await_fills(op);
        let memory = self.scheduled.pipelines().tensor_memory();
        let (body, sums) = memory.of_product(op).expect("scheduled: its sums lie in tensor memory");
        let instruction = &self.scheduled.product(op).expect("scheduled: it has an instruction").instruction;
        let (left, right) = self.factors_of(op);
        let left = left.expect("scheduled: both factors lie in rings");
        let [rows, columns] = [0, 1].map(|axis| self.shape(data.results[0])[axis]);
        let words = u64::from(instruction_word(instruction, columns, [left.major, right.major]));
        let [a, b] = [left, right].map(|factor| self.described(factor, self.i32(0), layout_of));
        let first = self.first_column(body, sums, op);
        let adds = self.is_later_turn(body);
        for block in 0..rows / TENSOR_ROWS {
            let sums = self.pointer(ir.add(first, self.i32(block * columns)));
            for k in (0..self.depth_of(data)).step_by(instruction.shape.k as usize) {
                let adds = if k == 0 { adds } else { ir.bool(true) };
                let a = self.descriptor(&a, block * TENSOR_ROWS, k);
                let b = self.descriptor(&b, 0, k);
                self.multiply_in_tensor_memory(sums, [a, b], (words, kind_of(instruction)), adds);
            }
        }
        self.leave_stage(op);
    }

    fn multiply_in_tensor_memory(
        &self,
        sums: PointerValue<'c>,
        [a, b]: [IntValue<'c>; 2],
        (word, kind): (u64, u64),
        adds: IntValue<'c>,
    ) {
        let collector = self.i32(0);
        let numbers = [self.i32(kind), self.i32(ONE_BLOCK), collector].map(Value::from);
        let operands = [sums.into(), a.into(), b.into(), self.i32(word).into(), adds.into()];
        self.ir.intrinsic("llvm.nvvm.tcgen05.mma.shared", &[], &[operands.as_slice(), &numbers].concat());
    }

    /// Whether a loop's turn isn't its first, whose products add to nothing.
    fn is_later_turn(&self, body: RegionId) -> IntValue<'c> {
        let around = self.instance.walk().into_iter().map(|op| self.instance.op(op));
        let around = around.into_iter().find(|data| data.regions.contains(&body));
        let first = self.index(around.expect("scheduled: it is a loop's body").operands[0]);
        let turn = self.index(self.instance.region(body).params[0]);
        self.ir.icmp(IntPredicate::NE, turn, first)
    }

    /// Leaves a stage when all products that were issued are done with it, in every block that copies to it.
    pub(super) fn leave_by_commit(&self, fill: &Fill, barrier: PointerValue<'c>) {
        let ir = self.ir;
        if fill.is_shared() {
            let both = ir.int_type(16).const_int(BOTH, false);
            ir.intrinsic("llvm.nvvm.tcgen05.commit.mc.shared.cg1", &[], &[barrier.into(), both.into()]);
        } else {
            ir.intrinsic("llvm.nvvm.tcgen05.commit.shared.cg1", &[], &[barrier.into()]);
        }
    }
}

/// The bit of a thread's number at which its warpgroup's begins.
const WARPGROUP_BIT: usize = 7;

/// The number by which LLVM knows what kind of factors an instruction has.
fn kind_of(instruction: &MatrixInstruction) -> u64 {
    match instruction.factors[0] {
        DType::F16 | DType::BF16 => 0,
        dtype if dtype.is_float() => 2,
        _ => 3,
    }
}

/// The instruction descriptor of a product of 128 rows (PTX ISA, "Instruction descriptor" of `tcgen05`).
fn instruction_word(instruction: &MatrixInstruction, columns: u64, majors: [Major; 2]) -> u32 {
    let format = |dtype: DType| match dtype {
        DType::BF16 | DType::F8E5M2 | DType::I8 => 1,
        _ => 0,
    };
    let sum = if instruction.sum.is_float() { 1 } else { 2 };
    let [a, b] = instruction.factors.map(format);
    let [across_a, across_b] = majors.map(|major| u32::from(major == Major::Other));
    let (rows, columns) = (TENSOR_ROWS as u32 / 16, columns as u32 / 8);
    sum << 4 | a << 7 | b << 10 | across_a << 15 | across_b << 16 | columns << 17 | rows << 24
}

/// All of a shared memory descriptor but the address (PTX ISA, "Shared memory descriptor" of `tcgen05`): offsets as those of
/// warpgroups' products have, a constant, and the swizzle.
fn layout_of(tile: &SharedTile, major: Major) -> u64 {
    const CONSTANT: u64 = 1 << 46;
    let mode: u64 = match tile.swizzle {
        Swizzle::None => 0,
        Swizzle::Bytes128 => 2,
        Swizzle::Bytes64 => 4,
        Swizzle::Bytes32 => 6,
    };
    Described::offsets(tile, major) | CONSTANT | mode << 61
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::TargetDesc;

    #[test]
    fn the_instruction_word_says_formats_and_extents() {
        let instruction = |name: &str| {
            let table = TargetDesc::named("sm_100a").unwrap().warpgroup_matrix;
            table.iter().find(|it| it.intrinsic == name).unwrap()
        };
        let along = [Major::Depth; 2];
        // 128 rows and 256 columns of bf16, summed in f32: the word that CUTLASS prints for this instruction.
        assert_eq!(instruction_word(instruction("f32.bf16.bf16"), 256, along), 0x0840_0490);
        let across = [Major::Depth, Major::Other];
        assert_eq!(instruction_word(instruction("f32.f16.f16"), 128, across), 0x0821_0010);
        assert_eq!(instruction_word(instruction("s32.s8.s8"), 64, along), 0x0810_04a0);
        assert_eq!(instruction_word(instruction("f32.e4m3.e5m2"), 32, along), 0x0808_0410);
        assert_eq!(
            ["f32.f16.f16", "f32.e4m3.e4m3", "s32.u8.u8"].map(|it| kind_of(instruction(it))),
            [0, 2, 3]
        );
    }
}
