//! `mma` by warpgroups: the right factor lies in a ring in shared memory, the left one there or in registers, and the
//! instructions go on while threads do (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").
//!
//! A factor in shared memory is told by a descriptor: where it begins, and how its swizzled rows follow each other. The
//! sums are results that every instruction passes on in place; what reads them goes through a wait that passes them
//! on too, so that no pass can move it before that.

use super::declared;
use super::fragment::Fragment;
use super::matrix::Parts;
use super::region::Emitter;
use super::roles::Role;
use crate::emit::Value;
use inkwell::values::IntValue;
use tile_ir::gpu::Product;
use tile_ir::gpu::pipeline::{Major, RingFactor, SharedTile, WARPGROUP};
use tile_ir::kernel::OpData;
use tile_ir::target::MatrixInstruction;
use tile_ir::tensor_map::Swizzle;
use tile_ir::{OpId, ValueId};
use tile_layout::linear::Operand;

/// Offsets in descriptors are in units of so many bytes.
const UNIT: u64 = 16;

/// Bits of an address that a descriptor has room for.
const ADDRESS_BITS: u64 = 0x3_ffff;

/// A factor in shared memory, as instructions find it.
struct Described<'c> {
    tile: SharedTile,
    major: Major,
    /// The descriptor of its beginning, without the parts of it.
    start: IntValue<'c>,
}

/// A product that goes on to the end of its loop.
pub(super) struct Running {
    /// Its fill, by its number in the pipeline.
    fill: usize,
    product: OpId,
    /// What the loop gives of it.
    result: ValueId,
}

impl Running {
    /// The number of the carried sums, if they are zero at first: the first product then adds to nothing.
    pub(super) fn fresh_sums(
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
pub(super) fn undefined(value: Value<'_>) -> Value<'_> {
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

impl<'a, 'c> Emitter<'a, 'c> {
    pub(super) fn warpgroup_product(
        &mut self,
        op: OpId,
        data: &OpData,
        product: &Product,
        factors: &'a [Option<RingFactor>; 2],
    ) {
        let (ir, result) = (self.ir, data.results[0]);
        let right = factors[1].as_ref().expect("scheduled: the right factor lies in a ring");
        let instruction = &product.instruction;
        self.await_fill(right);
        let left = match &factors[0] {
            Some(factor) => Left::Shared(self.described(factor, instruction)),
            None => {
                let parts = self.parts(data.operands[0], instruction, Operand::A);
                Left::Registers(self.tile(data.operands[0]).clone(), parts)
            }
        };
        let right_factor = self.described(right, instruction);
        let depth = self.depth_of(data);
        let mut sums = self.tile(data.operands[2]).values(self.slots(result));
        let starts_at_zero = self.tile(data.operands[2]).uniform().is_some_and(is_zero);
        let blocks = self.blocks(result, instruction);
        let steps = (0..depth).step_by(instruction.shape.k as usize);
        let steps = steps.flat_map(|k| blocks.iter().map(move |block| (k, block)));
        // Elements in registers are made before the fence: between instructions they would make these wait.
        let steps: Vec<_> = steps
            .map(|(k, block)| (k, block, self.left_operands(&left, instruction, (block.row, k))))
            .collect();
        ir.intrinsic("llvm.nvvm.wgmma.fence.sync.aligned", &[], &[]);
        for (k, block, a) in steps {
            let adds = match (k, starts_at_zero, self.fresh.contains(&right.pipeline)) {
                (0, true, _) => self.i32(0),
                (0, false, true) => ir.resize(self.ring(right.pipeline).running, 32, false),
                _ => self.i32(1),
            };
            let b = self.descriptor(&right_factor, 0, k);
            let name = name_of(instruction, block.columns(), &left, right_factor.major);
            let own: Vec<Value<'c>> = block.slots.iter().map(|&slot| sums[slot]).collect();
            let operands = [a, vec![b.into(), adds.into()], own].concat();
            let next = declared::call(ir, &name, &operands, block.slots.len());
            block.slots.iter().zip(next).for_each(|(&slot, next)| sums[slot] = next);
        }
        ir.intrinsic("llvm.nvvm.wgmma.commit_group.sync.aligned", &[], &[]);
        let fill = &self.pipeline(right.pipeline).fills[right.fill];
        debug_assert_eq!(fill.reader, op);
        if fill.keeps_running {
            ir.intrinsic("llvm.nvvm.wgmma.wait_group.sync.aligned", &[], &[ir.i64(1).into()]);
            self.leave_stage_before(right.pipeline, right.fill);
            self.goes_on(right.pipeline, true);
        } else {
            self.await_sums(&blocks, &mut sums);
            self.leave_stage(right);
        }
        self.set_tile(result, Fragment::Slots(sums));
    }

    /// The product of a loop that goes on to its end, if there is one.
    pub(super) fn running_product(&self, op: OpId, data: &OpData) -> Option<Running> {
        let pipeline = self.scheduled.pipelines().of_loop(op).filter(|_| self.role == Role::Consumer)?;
        let fill = pipeline.fills.iter().position(|fill| fill.keeps_running)?;
        let product = pipeline.fills[fill].reader;
        let sum = self.instance.op(product).results[0];
        let end = self.instance.region(data.regions[0]).ops.last();
        let end = self.instance.op(*end.expect("verified: a loop's region yields"));
        let place = end.operands.iter().position(|&operand| operand == sum);
        Some(Running {
            fill,
            product,
            result: data.results[place.expect("scheduled: the loop yields the sums")],
        })
    }

    /// Waits for a product that went on to the end of its loop.
    pub(super) fn finish_product(&mut self, op: OpId, Running { fill, product, result }: Running) {
        let product = self.scheduled.product(product).expect("scheduled: a pipeline has products");
        let blocks = self.blocks(result, &product.instruction);
        let mut sums = self.tile(result).values(self.slots(result));
        self.await_sums(&blocks, &mut sums);
        self.set_tile(result, Fragment::Slots(sums));
        self.leave_stage_before(op, fill);
        self.goes_on(op, false);
    }

    /// Waits for all products, and gives their sums.
    fn await_sums(&self, blocks: &[Block], sums: &mut [Value<'c>]) {
        for block in blocks {
            let own: Vec<Value<'c>> = block.slots.iter().map(|&slot| sums[slot]).collect();
            let name = declared::wait_name(own[0].is_float_value(), own.len());
            let next = declared::call(self.ir, &name, &own, own.len());
            block.slots.iter().zip(next).for_each(|(&slot, next)| sums[slot] = next);
        }
    }

    fn depth_of(&self, data: &OpData) -> u64 {
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
                None => blocks.push(Block { row: start[0], slots: slots.collect() }),
            }
        }
        blocks
    }

    /// What an instruction takes of the left factor: a descriptor, or elements.
    fn left_operands(
        &self,
        left: &Left<'c>,
        instruction: &MatrixInstruction,
        (row, k): (u64, u64),
    ) -> Vec<Value<'c>> {
        match left {
            Left::Shared(factor) => vec![self.descriptor(factor, row, k).into()],
            Left::Registers(fragment, parts) => {
                let first = parts.at(&[row, k]);
                let values = (first..first + parts.held).map(|slot| fragment.get(slot)).collect();
                self.passed(instruction, values)
            }
        }
    }

    /// A factor of this turn's stage; of a left one the rows of the running thread's warpgroup.
    fn described(&self, factor: &RingFactor, instruction: &MatrixInstruction) -> Described<'c> {
        let (ir, ring) = (self.ir, self.ring(factor.pipeline));
        let pipeline = self.pipeline(factor.pipeline);
        let copy = &pipeline.fills[factor.fill].copies[factor.copy];
        let (tile, major) = (copy.tile, factor.major);
        let is_left = matches!(
            self.scheduled.pipelines().factors(pipeline.fills[factor.fill].reader),
            Some([Some(left), _]) if left == factor
        );
        let mut place = self.tile_in_ring(pipeline, copy, ring.stage);
        if is_left {
            let rows = offset(&tile, major, u64::from(instruction.shape.m), 0);
            place = ir.add(place, ir.mul(self.warpgroup, self.i32(rows)));
        }
        let base = ir.resize(ir.address(self.shared), 32, false);
        let bytes = ir.and(ir.add(base, place), self.i32(ADDRESS_BITS));
        let units = ir.resize(ir.lshr(bytes, self.i32(UNIT.ilog2().into())), 64, false);
        let start = ir.or(units, ir.i64(layout_of(&tile, major).cast_signed()));
        Described { tile, major, start }
    }

    /// The descriptor of the part that begins at a place along rows or columns, and at a depth.
    fn descriptor(&self, factor: &Described<'c>, other: u64, depth: u64) -> IntValue<'c> {
        let units = offset(&factor.tile, factor.major, other, depth) / UNIT;
        self.ir.add(factor.start, self.ir.i64(units as i64))
    }

    /// Finds the running thread's warpgroup, where there are several.
    pub(super) fn find_warpgroup(&mut self) {
        if self.thread_count() <= WARPGROUP {
            return;
        }
        let ir = self.ir;
        let own = ir.lshr(self.thread, self.i32(WARPGROUP.ilog2().into()));
        let operands = [self.i32(u32::MAX.into()), own, self.i32(0), self.i32(31)].map(Value::from);
        let first = ir.intrinsic("llvm.nvvm.shfl.sync.idx.i32", &[], &operands);
        self.warpgroup = first.expect("a shuffle has a result").into_int_value();
    }
}

/// Sums that one instruction adds to.
struct Block {
    /// The row at which it begins, in the first warpgroup.
    row: u64,
    /// The slots, in the order of the instruction's registers.
    slots: Vec<usize>,
}

impl Block {
    /// A warpgroup's lane has two sums of every four columns in 64 rows.
    fn columns(&self) -> usize {
        2 * self.slots.len()
    }
}

fn is_zero(value: Value<'_>) -> bool {
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

/// All of a descriptor but the address (PTX ISA, "Matrix Descriptor Format"): from a panel to the next where these
/// follow each other along rows or columns, from eight rows of a panel to the next eight, and the swizzle.
fn layout_of(tile: &SharedTile, major: Major) -> u64 {
    let leading = match major {
        Major::Depth => 1,
        Major::Other => tile.panel_bytes() / UNIT,
    };
    let mode: u64 = match tile.swizzle {
        Swizzle::None => 0,
        Swizzle::Bytes128 => 1,
        Swizzle::Bytes64 => 2,
        Swizzle::Bytes32 => 3,
    };
    leading << 16 | (tile.pattern_bytes() / UNIT) << 32 | mode << 62
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
