//! `mma` by warpgroups: the right factor lies in a ring in shared memory, or is brought there ([`super::brought`]), the left
//! one lies there or in registers, and the instructions go on while threads do (PTX ISA, "Asynchronous Warpgroup Level
//! Matrix Instructions").
//!
//! A factor in shared memory is told by a descriptor: where it begins, and how its swizzled rows follow each other. The
//! sums are results that every instruction passes on in place; what reads them goes through a wait that passes them
//! on too, so that no pass can move it before that.

use super::matrix::Parts;
use crate::emit::Value;
use crate::gpu::fragment::Fragment;
use crate::gpu::pipeline::roles::Role;
use crate::gpu::region::Emitter;
use crate::gpu::targets::declared;
use crate::gpu::targets::declared::SumFormat;
use crate::gpu::targets::dialect::Spread;
use inkwell::values::IntValue;
use tile_ir::gpu::pipeline::{Late, Major, RingFactor, SharedTile, TileCopy, WARPGROUP, Written};
use tile_ir::kernel::OpData;
use tile_ir::target::MatrixInstruction;
use tile_ir::tensor_map::Swizzle;
use tile_ir::{OpId, RegionId, ValueId};
use tile_layout::linear::Operand;

/// Offsets in descriptors are in units of so many bytes.
const UNIT: u64 = 16;

/// Bits of an address that a descriptor has room for.
const ADDRESS_BITS: u64 = 0x3_ffff;

/// A factor in shared memory, as instructions find it.
pub(in crate::gpu) struct Described<'c> {
    tile: SharedTile,
    pub(in crate::gpu) major: Major,
    /// The descriptor of its beginning, without the parts of it.
    start: IntValue<'c>,
}

impl Described<'_> {
    /// The offsets of a descriptor: from a panel to the next where these follow each other along rows or columns, and from eight
    /// rows of a panel to the next eight.
    pub(in crate::gpu) fn offsets(tile: &SharedTile, major: Major) -> u64 {
        let leading = match major {
            Major::Depth => 1,
            Major::Other => tile.panel_bytes() / UNIT,
        };
        leading << 16 | (tile.pattern_bytes() / UNIT) << 32
    }
}

/// A product that goes on to the end of its loop.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Running {
    product: OpId,
    /// What the loop gives of it.
    result: ValueId,
}

impl Running {
    /// The number of the carried sums, if they are zero at first: the first product then adds to nothing.
    pub(in crate::gpu) fn fresh_sums(
        &self,
        emitter: &Emitter<'_, '_>,
        data: &OpData,
        initial: &[ValueId],
    ) -> Option<usize> {
        let sums = data.results.iter().position(|&result| result == self.result)?;
        emitter.tile(initial[sums]).uniform().is_some_and(is_zero).then_some(sums)
    }
}

/// Any value of this one's type.
pub(in crate::gpu) fn undefined(value: Value<'_>) -> Value<'_> {
    match value {
        Value::FloatValue(value) => value.get_type().get_undef().into(),
        Value::IntValue(value) => value.get_type().get_undef().into(),
        value => value,
    }
}

/// Where an instruction finds the left factor.
enum Left<'c> {
    Shared(Described<'c>),
    Registers(Fragment<'c>, Parts),
}

/// A product all of whose operands are made: between instructions that would make these wait.
pub(in crate::gpu) struct Ready<'a, 'c> {
    instruction: &'a MatrixInstruction,
    /// The body of its loop, if it reads tiles of that's ring.
    turn: Option<RegionId>,
    left: Left<'c>,
    right: Described<'c>,
    blocks: Vec<Block>,
    /// What instructions take of the left factor, by the depth and the number of the block.
    steps: Vec<(u64, usize, Vec<Value<'c>>)>,
    /// Whether there is nothing to add to.
    starts_at_zero: bool,
    pub(in crate::gpu) sums: Vec<Value<'c>>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Multiplies, and issues a late product just after, if there is one.
    pub(in crate::gpu) fn warpgroup_product(&mut self, op: OpId, late: Option<(&Late, &Ready<'a, 'c>)>) {
        let result = self.instance.op(op).results[0];
        let ready = self.ready(op);
        let running = ready.turn.filter(|&turn| self.pipeline(turn).keeps_running(op));
        let brought = self.scheduled.pipelines().brought_right_for(op);
        if let Some(number) = brought {
            self.bring_right(number, op, running);
        }
        let overtaken = self.overtaken_by(op).map(|product| (product, self.ready(product)));
        self.await_fills(op);
        overtaken.iter().for_each(|(product, _)| self.await_fills(*product));
        if let (Some(_), Some(turn)) = (late, ready.turn) {
            self.await_turn(turn);
        }
        self.begin_products();
        let sums = self.issue_product(&ready);
        self.set_tile(result, Fragment::Slots(sums));
        if let Some(turn) = running {
            if brought.is_none() {
                self.await_turn_before(turn, op, 1);
            }
            self.goes_on(turn, true);
            return;
        }
        if let (Some((late, of_turn_before)), Some(turn)) = (late, ready.turn) {
            self.issue_late(turn, late, of_turn_before);
        }
        if let Some((product, ready)) = &overtaken {
            let sums = self.issue_product(ready);
            self.set_tile(self.instance.op(*product).results[0], Fragment::Slots(sums));
        }
        let going_on = late.iter().len() + overtaken.iter().len();
        self.await_product(result, going_on as u64, &[]);
        // The turn of a product that is done ahead leaves its stage when it begins: a branch of one lane at the end of a
        // loop is one for which assemblers don't know that a warp stays together.
        if !self.scheduled.pipelines().is_ahead(op) {
            self.leave_stage(op);
        }
    }

    /// Orders what was done with registers before the products that follow.
    pub(in crate::gpu) fn begin_products(&self) {
        self.ir.intrinsic("llvm.nvvm.wgmma.fence.sync.aligned", &[], &[]);
    }

    /// The left and the right factor of a product, if they lie in rings.
    pub(in crate::gpu) fn factors_of(
        &self,
        product: OpId,
    ) -> (Option<&'a RingFactor>, Option<&'a RingFactor>) {
        let factors = self.scheduled.pipelines().factors(product);
        let [left, right] = factors.expect("scheduled: a pipeline has products");
        (left.as_ref(), right.as_ref())
    }

    /// A right factor that consumers bring.
    fn described_right(&self, product: OpId) -> Described<'c> {
        let pipelines = self.scheduled.pipelines();
        let number =
            pipelines.brought_right_for(product).expect("scheduled: it lies in a ring, or is brought");
        let written = pipelines.brought_right()[number].written.as_ref();
        let Written { tile, major, .. } = written.expect("scheduled: it is known how it is written");
        self.described_at(*tile, *major, self.place_of_right(number), layout_of)
    }

    /// Makes the operands of a product.
    pub(in crate::gpu) fn ready(&self, op: OpId) -> Ready<'a, 'c> {
        let data = self.instance.op(op);
        let product = self.scheduled.product(op).expect("scheduled: a pipeline has products");
        let (instruction, result) = (&product.instruction, data.results[0]);
        let (left, right) = self.factors_of(op);
        let right = match right {
            Some(factor) => self.described(factor, self.i32(0), layout_of),
            None => self.described_right(op),
        };
        let left = match left {
            Some(factor) => {
                let rows =
                    offset(&self.copy_of(factor).tile, factor.major, u64::from(instruction.shape.m), 0);
                let own = self.ir.mul(self.pipelined.warpgroup, self.i32(rows));
                Left::Shared(self.described(factor, own, layout_of))
            }
            None => {
                let fragment = self.tile(data.operands[0]).clone();
                Left::Registers(fragment, self.parts(data.operands[0], instruction, Operand::A))
            }
        };
        let sums = self.tile(data.operands[2]);
        let blocks = self.blocks(result, instruction);
        let steps = (0..self.depth_of(data)).step_by(instruction.shape.k as usize);
        let steps = steps.flat_map(|k| blocks.iter().enumerate().map(move |(i, block)| (k, i, block.row)));
        let steps = steps.map(|(k, i, row)| (k, i, self.left_operands(&left, instruction, row, k))).collect();
        Ready {
            instruction,
            turn: self.scheduled.pipelines().read_by(op),
            right,
            left,
            blocks,
            steps,
            starts_at_zero: sums.uniform().is_some_and(is_zero),
            sums: sums.values(self.slots(result)),
        }
    }

    /// Issues a product's instructions, whose tiles are there, as a group; gives the sums that these will be.
    pub(in crate::gpu) fn issue_product(&self, ready: &Ready<'a, 'c>) -> Vec<Value<'c>> {
        let mut sums = ready.sums.clone();
        for (k, number, a) in &ready.steps {
            self.issue_instruction(ready, *k, a, &ready.blocks[*number], &mut sums);
        }
        self.commit_products();
        sums
    }

    /// Issues the instructions of a part of a product as a group.
    pub(in crate::gpu) fn issue_part(&self, ready: &Ready<'a, 'c>, part: &Block, sums: &mut [Value<'c>]) {
        let own = ready.steps.iter().filter(|(_, number, _)| ready.blocks[*number].row == part.row);
        own.for_each(|(k, _, a)| self.issue_instruction(ready, *k, a, part, sums));
        self.commit_products();
    }

    fn issue_instruction(
        &self,
        ready: &Ready<'a, 'c>,
        k: u64,
        a: &[Value<'c>],
        block: &Block,
        sums: &mut [Value<'c>],
    ) {
        let (ir, right) = (self.ir, &ready.right);
        let fresh = ready.turn.filter(|turn| self.pipelined.fresh.contains(turn));
        let adds = match (k, ready.starts_at_zero, fresh) {
            (0, true, _) => self.i32(0),
            (0, false, Some(turn)) => ir.resize(self.ring(turn).running, 32, false),
            _ => self.i32(1),
        };
        let b = self.descriptor(right, block.column, k);
        let name = name_of(ready.instruction, block.columns(), &ready.left, right.major);
        let own: Vec<Value<'c>> = block.slots.iter().map(|&slot| sums[slot]).collect();
        let operands = [a, &[b.into(), adds.into()], &own].concat();
        let next = declared::call(ir, &name, &operands, block.slots.len());
        block.slots.iter().zip(next).for_each(|(&slot, next)| sums[slot] = next);
    }

    fn commit_products(&self) {
        self.ir.intrinsic("llvm.nvvm.wgmma.commit_group.sync.aligned", &[], &[]);
    }

    /// The product of a loop that goes on to its end, if there is one.
    pub(in crate::gpu) fn running_product(&self, data: &OpData) -> Option<Running> {
        let pipeline =
            self.scheduled.pipelines().of_region(data.regions[0]).filter(|_| self.role == Role::Consumer)?;
        let fill = pipeline.fills.iter().position(|fill| fill.keeps_running)?;
        let product = pipeline.fills[fill].last_reader();
        Some(Running { product, result: self.yielded_as(data, product) })
    }

    /// Waits until no more than so many of a running product's turns go on, and leaves the stage of the turn before, which is
    /// over by then.
    pub(in crate::gpu) fn await_turn_before(&self, turn: RegionId, product: OpId, going_on: i64) {
        let going_on = self.ir.i64(going_on).into();
        self.ir.intrinsic("llvm.nvvm.wgmma.wait_group.sync.aligned", &[], &[going_on]);
        self.leave_stage_before(turn, product);
    }

    /// Waits for a product that went on to the end of its loop.
    pub(in crate::gpu) fn finish_product(&mut self, turn: RegionId, Running { product, result }: Running) {
        self.await_product(result, 0, &[]);
        self.leave_stage_before(turn, product);
        self.goes_on(turn, false);
    }

    /// Waits for all products but so many that were committed last: for the sums of one that wasn't among these, and
    /// before anything is done with values that it passes on.
    pub(in crate::gpu) fn await_product(
        &mut self,
        sums: ValueId,
        going_on: u64,
        values: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        let own = self.tile(sums).values(self.slots(sums));
        let mut passed = self.passed_by_wait(going_on, [&own, values].concat());
        let values = passed.split_off(own.len());
        self.set_tile(sums, Fragment::Slots(passed));
        values
    }

    /// Values after a wait for products; those that don't fill a register aren't held back.
    pub(in crate::gpu) fn passed_by_wait(&self, going_on: u64, mut values: Vec<Value<'c>>) -> Vec<Value<'c>> {
        for format in [SumFormat::F32, SumFormat::S32] {
            let ty = format.ty(self.ir);
            let own: Vec<usize> = (0..values.len()).filter(|&i| values[i].get_type() == ty).collect();
            let operands: Vec<Value<'c>> = own.iter().map(|&i| values[i]).collect();
            if !operands.is_empty() {
                let name = declared::wait_name(going_on, format, own.len());
                let next = declared::call(self.ir, &name, &operands, own.len());
                own.into_iter().zip(next).for_each(|(i, next)| values[i] = next);
            }
        }
        values
    }

    pub(in crate::gpu) fn depth_of(&self, data: &OpData) -> u64 {
        let tile = self.instance.ty(data.operands[0]).as_tile().expect("verified: a tile");
        let depth = tile.shape.last().and_then(tile_ir::Dim::as_const);
        depth.expect("an instance's tile extents are numbers") as u64
    }

    /// The sums that one instruction adds to each: the warpgroup's rows, all columns.
    fn blocks(&self, result: ValueId, instruction: &MatrixInstruction) -> Vec<Block> {
        let parts = self.parts(result, instruction, Operand::Accumulator);
        let mut starts = parts.starts.clone();
        starts.sort();
        let mut blocks: Vec<Block> = Vec::new();
        for (start, slot) in starts {
            let slots = (slot..slot + parts.held).map(|slot| slot as usize);
            match blocks.last_mut().filter(|block| block.row == start[0]) {
                Some(block) => block.slots.extend(slots),
                None => blocks.push(Block { row: start[0], column: 0, slots: slots.collect() }),
            }
        }
        blocks
    }

    /// What an instruction takes of the left factor: a descriptor, or elements.
    fn left_operands(
        &self,
        left: &Left<'c>,
        instruction: &MatrixInstruction,
        row: u64,
        k: u64,
    ) -> Vec<Value<'c>> {
        match left {
            Left::Shared(factor) => vec![self.descriptor(factor, row, k).into()],
            Left::Registers(fragment, parts) => {
                let first = parts.at(&[row, k]);
                let values = (first..first + parts.held).map(|slot| fragment.get(slot)).collect();
                self.passed(instruction, Operand::A, values)
            }
        }
    }

    fn copy_of(&self, factor: &RingFactor) -> &'a TileCopy {
        &self.pipeline(factor.pipeline).fills[factor.fill].copies[factor.copy]
    }

    /// A factor of this turn's stage from so many bytes on: of a left one these are before the rows of the running
    /// thread's warpgroup. `layout` gives all of its descriptor but the address.
    pub(in crate::gpu) fn described(
        &self,
        factor: &RingFactor,
        skipped: IntValue<'c>,
        layout: fn(&SharedTile, Major) -> u64,
    ) -> Described<'c> {
        let ring = self.ring(factor.pipeline);
        let place = self.tile_in_ring(self.pipeline(factor.pipeline), self.copy_of(factor), ring.stage);
        let place = self.ir.add(place, skipped);
        self.described_at(self.copy_of(factor).tile, factor.major, place, layout)
    }

    /// A factor that begins so many bytes into shared memory.
    pub(in crate::gpu) fn described_at(
        &self,
        tile: SharedTile,
        major: Major,
        place: IntValue<'c>,
        layout: fn(&SharedTile, Major) -> u64,
    ) -> Described<'c> {
        let ir = self.ir;
        let first = match place.is_const() {
            true => ir.resize(ir.address(ir.element(ir.int_type(8).into(), self.shared, place)), 32, false),
            false => ir.add(ir.resize(ir.address(self.shared), 32, false), place),
        };
        let bytes = ir.and(first, self.i32(ADDRESS_BITS));
        let units = ir.resize(ir.lshr(bytes, self.i32(UNIT.ilog2().into())), 64, false);
        let start = ir.or(units, ir.i64(layout(&tile, major).cast_signed()));
        Described { tile, major, start }
    }

    /// The descriptor of the part that begins at a place along rows or columns, and at a depth.
    pub(in crate::gpu) fn descriptor(&self, factor: &Described<'c>, other: u64, depth: u64) -> IntValue<'c> {
        let units = offset(&factor.tile, factor.major, other, depth) / UNIT;
        self.ir.add(factor.start, self.ir.i64(units as i64))
    }

    /// Finds the running thread's warpgroup, where there are several.
    pub(in crate::gpu) fn find_warpgroup(&mut self) {
        if self.thread_count() <= WARPGROUP {
            return;
        }
        let ir = self.ir;
        let own = ir.lshr(self.thread, self.i32(WARPGROUP.ilog2().into()));
        let operands = [self.i32(u32::MAX.into()), own, self.i32(0), self.i32(31)].map(Value::from);
        let first = ir.intrinsic("llvm.nvvm.shfl.sync.idx.i32", &[], &operands);
        self.pipelined.warpgroup = first.expect("a shuffle has a result").into_int_value();
    }

    /// The position in a tile of the first element of the second warpgroup's first thread; `None` where there is one warpgroup.
    /// Further warpgroups follow at the same distance.
    pub(in crate::gpu) fn second_warpgroup(&self, tile: ValueId) -> Option<&'a [u64]> {
        self.scheduled.distribution(tile).thread_bits().nth(WARPGROUP.ilog2() as usize)
    }

    /// The running thread's warpgroup; where registers are scarce, one from which nothing leaves the innermost loop.
    pub(in crate::gpu) fn running_warpgroup(&self) -> IntValue<'c> {
        if self.are_registers_scarce() {
            self.in_loop(self.pipelined.warpgroup, Spread::Uniform, |warpgroup| warpgroup)
        } else {
            self.pipelined.warpgroup
        }
    }
}

/// Sums that one instruction adds to.
#[derive(Clone)]
pub(in crate::gpu) struct Block {
    /// The row at which it begins, in the first warpgroup.
    row: u64,
    /// The column at which it begins.
    column: u64,
    /// The slots, in the order of the instruction's registers.
    pub(in crate::gpu) slots: Vec<usize>,
}

impl Block {
    /// A warpgroup's lane has two sums of every four columns in 64 rows.
    fn columns(&self) -> usize {
        2 * self.slots.len()
    }

    /// Its left and its right half. An instruction's registers follow its columns by eights.
    fn halves(&self) -> [Block; 2] {
        let (left, right) = self.slots.split_at(self.slots.len() / 2);
        let half = |column: usize, slots: &[usize]| Block {
            row: self.row,
            column: self.column + column as u64,
            slots: slots.to_vec(),
        };
        [half(0, left), half(self.columns() / 2, right)]
    }
}

impl<'a> Ready<'a, '_> {
    /// The sums in two parts or more: the rows of an instruction each, or else half of the columns.
    pub(in crate::gpu) fn parts(&self) -> Vec<Block> {
        match self.blocks.as_slice() {
            [one] => one.halves().into(),
            several => several.to_vec(),
        }
    }
}

pub(in crate::gpu) fn is_zero(value: Value<'_>) -> bool {
    match value {
        Value::FloatValue(value) => value.get_constant().is_some_and(|(value, _)| value.to_bits() == 0),
        Value::IntValue(value) => value.get_zero_extended_constant() == Some(0),
        _ => false,
    }
}

/// The bytes from a factor's beginning to the part at a place along rows or columns, and at a depth.
fn offset(tile: &SharedTile, major: Major, other: u64, depth: u64) -> u64 {
    match major {
        Major::Depth => tile.offset(other, depth),
        Major::Other => tile.offset(depth, other),
    }
}

/// All of a descriptor but the address (PTX ISA, "Matrix Descriptor Format"): offsets, and the swizzle.
fn layout_of(tile: &SharedTile, major: Major) -> u64 {
    let mode: u64 = match tile.swizzle {
        Swizzle::None => 0,
        Swizzle::Bytes128 => 1,
        Swizzle::Bytes64 => 2,
        Swizzle::Bytes32 => 3,
    };
    Described::offsets(tile, major) | mode << 62
}

fn name_of(instruction: &MatrixInstruction, columns: usize, left: &Left<'_>, right: Major) -> String {
    let b = match right {
        Major::Depth => "kb",
        Major::Other => "nb",
    };
    let from = match left {
        Left::Shared(Described { major: Major::Depth, .. }) => "ss.ka",
        Left::Shared(Described { major: Major::Other, .. }) => "ss.ma",
        Left::Registers(..) => "rs",
    };
    format!("tile.wgmma.m64n{columns}k{}.{}.{from}.{b}", instruction.shape.k, instruction.intrinsic)
}
