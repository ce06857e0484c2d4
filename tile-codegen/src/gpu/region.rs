//! Emits the ops of a region in order: scalars are the same in every thread, tiles are fragments.
//!
//! Conditions and loop bounds are scalars, and the one op that makes a scalar from a tile, `item`, gives it to
//! all threads alike. So all threads of a block take the same path through loops and branches: barriers may
//! stand anywhere in them.

use super::coordinates::{Mapping, i32_const};
use super::exchange::convert::InShared;
use super::fragment::Fragment;
use super::pipeline::cluster;
use super::pipeline::copies::Copying;
use super::pipeline::pairs::Pair;
use super::pipeline::ring::{Ring, RingState};
use super::pipeline::roles::Role;
use super::places::SourcePlaces;
use super::targets::dialect::{Device, Entry, Spread};
use crate::emit::{Ir, Log, Names, Place, Shared, Value};
use inkwell::values::{IntValue, PointerValue};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use tile_ir::gpu::{Orders, Pipelines, Scheduled};
use tile_ir::kernel::OpData;
use tile_ir::ops::UnaryOp;
use tile_ir::types::TensorType;
use tile_ir::view::Source;
use tile_ir::{DType, Dim, Instance, Op, OpId, RegionId, TargetDesc, Type, ValueId};

/// Which of the grid's places the block has, and which tiles.
pub(super) struct GridPlace<'c> {
    /// The block's index, per axis of the grid.
    pub(super) block: Vec<IntValue<'c>>,
    /// The index of the tile that the block owns; in a persistent kernel, while it owns one.
    pub(super) tile_index: Vec<IntValue<'c>>,
    /// How blocks share tiles, in a persistent kernel whose launch says so.
    pub(super) shared_tiles: Option<Shared<'c>>,
    /// How many blocks there are, an i64, on targets whose blocks share tiles unasked.
    pub(super) blocks: Option<IntValue<'c>>,
    /// The block's place in its pair, where blocks are pairs.
    pub(super) pair: Option<Pair<'c>>,
}

/// How far a thread's program has come with what goes on beside it: copies, and products of warpgroups.
pub(super) struct Pipelined<'c> {
    /// Pipelines that have begun.
    pub(super) rings: HashMap<Ring, RingState<'c>>,
    /// The address of what the block has of tensor memory, an i32, if it has some.
    pub(super) tensor_memory: IntValue<'c>,
    /// Loops' bodies whose first product adds to nothing.
    pub(super) fresh: HashSet<RegionId>,
    /// The number of the running thread's warpgroup, an i32 that is known to be the same in a warp.
    pub(super) warpgroup: IntValue<'c>,
    /// Whether a store was emitted that copies panels.
    pub(super) has_copied_panels: bool,
}

/// Emits one thread's program.
pub(super) struct Emitter<'a, 'c> {
    pub(super) ir: &'a Ir<'c>,
    pub(super) instance: &'a Instance,
    pub(super) scheduled: &'a Scheduled,
    pub(super) dialect: &'a Device,
    pub(super) target: &'a TargetDesc,
    /// The running thread's number among those that hold a tile, an i32.
    pub(super) thread: IntValue<'c>,
    /// The first byte of shared memory.
    pub(super) shared: PointerValue<'c>,
    pub(super) grid: GridPlace<'c>,
    /// The op before which all blocks of a cluster must have begun, where these share tiles.
    first_meeting: Option<OpId>,
    /// Where the kernel prints, if it does.
    pub(super) log: Option<Log<'c>>,
    /// What the threads do that the program is for.
    pub(super) role: Role,
    /// The addresses of the tensor maps.
    pub(super) maps: Vec<PointerValue<'c>>,
    pub(super) pipelined: Pipelined<'c>,
    pub(super) places: Option<&'a SourcePlaces<'c>>,
    /// How many loops are around what is emitted.
    pub(super) depth: u32,
    /// What memory the barriers of the op that is emitted order.
    pub(super) orders: Orders,
    sizes: HashMap<String, IntValue<'c>>,
    /// Tensor addresses and scalars.
    scalars: HashMap<ValueId, Value<'c>>,
    tiles: HashMap<ValueId, Fragment<'c>>,
    /// Tiles that products read from shared memory.
    pub(super) staged: HashMap<ValueId, InShared<'a, 'c>>,
    /// Loops whose tiles the running thread copies ahead.
    pub(super) copying: HashMap<OpId, Copying<'a, 'c>>,
    /// The tensor that each partition view cuts.
    tensors: HashMap<ValueId, ValueId>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    pub(super) fn new(
        ir: &'a Ir<'c>,
        scheduled: &'a Scheduled,
        dialect: &'a Device,
        target: &'a TargetDesc,
        entry: Entry<'c>,
        role: Role,
        places: Option<&'a SourcePlaces<'c>>,
    ) -> Self {
        let instance: &Instance = scheduled;
        let abi = scheduled.abi();
        let sizes: HashMap<_, _> = abi.sizes.iter().cloned().zip(entry.sizes).collect();
        let space: Vec<_> = abi.grids[0].1.iter().map(|dim| ir.dim(dim, &|name| sizes[name])).collect();
        let block = match scheduled.order_in_parts() {
            Some(order) => {
                let index = ir.tile_in_part(order, &space, target.parts, entry.block).into_iter();
                // Were it known how they are computed, LLVM would compute every slot's address on its own.
                index.map(|place| ir.resize(dialect.opaque(ir, place, Spread::Uniform), 64, false)).collect()
            }
            None if instance.is_persistent() => vec![entry.block],
            None => ir.delinearize(entry.block, &space),
        };
        let views = instance.walk().into_iter().map(|op| instance.op(op));
        let views = views.filter(|data| matches!(data.op, Op::Partition(_)));
        Emitter {
            ir,
            instance,
            scheduled,
            dialect,
            target,
            thread: entry.thread,
            shared: entry.shared,
            grid: GridPlace {
                tile_index: block.clone(),
                block,
                shared_tiles: entry.tiles,
                blocks: entry.blocks,
                pair: entry.pair,
            },
            first_meeting: cluster::first_meeting(scheduled),
            log: entry.log.map(|address| Log { address, block: entry.block }),
            role,
            maps: entry.maps,
            pipelined: Pipelined {
                rings: HashMap::new(),
                tensor_memory: i32_const(ir, 0),
                fresh: HashSet::new(),
                warpgroup: i32_const(ir, 0),
                has_copied_panels: false,
            },
            places,
            depth: 0,
            orders: Orders::AllMemory,
            sizes,
            scalars: instance.params().iter().copied().zip(entry.arguments).collect(),
            tiles: HashMap::new(),
            staged: HashMap::new(),
            copying: HashMap::new(),
            tensors: views.map(|data| (data.results[0], data.operands[0])).collect(),
        }
    }

    pub(super) fn i32(&self, value: u64) -> IntValue<'c> {
        i32_const(self.ir, value)
    }

    pub(super) fn dtype(&self, value: ValueId) -> DType {
        self.scheduled.dtype(value)
    }

    pub(super) fn is_tile(&self, value: ValueId) -> bool {
        matches!(self.instance.ty(value), Type::Tile(_))
    }

    pub(super) fn shape(&self, value: ValueId) -> Vec<u64> {
        self.scheduled.distribution(value).shape().to_vec()
    }

    pub(super) fn elements(&self, value: ValueId) -> u64 {
        self.shape(value).iter().product()
    }

    pub(super) fn scalar(&self, value: ValueId) -> Value<'c> {
        *self.scalars.get(&value).expect("verified: a scalar is defined before its use")
    }

    pub(super) fn set_scalar(&mut self, value: ValueId, scalar: Value<'c>) {
        self.scalars.insert(value, scalar);
    }

    pub(super) fn index(&self, value: ValueId) -> IntValue<'c> {
        self.scalar(value).into_int_value()
    }

    pub(super) fn tile(&self, value: ValueId) -> &Fragment<'c> {
        self.tiles.get(&value).expect("verified: a tile is defined before its use")
    }

    pub(super) fn set_tile(&mut self, value: ValueId, fragment: Fragment<'c>) {
        let is_uniform = self.role.has_numbers_alone() || self.scheduled.is_uniform(value);
        debug_assert_eq!(fragment.uniform().is_some(), is_uniform, "{value:?}");
        self.tiles.insert(value, fragment);
    }

    pub(super) fn dim(&self, dim: &Dim) -> IntValue<'c> {
        self.ir.dim(dim, &|name| self.sizes[name])
    }

    /// Where the tensor that a partition view cuts comes from.
    pub(super) fn source_of(&self, view: ValueId) -> Source {
        let tensor = self.tensors.get(&view).expect("verified: a view is made by `partition`");
        Source::of(self.instance, *tensor)
    }

    /// Strides, offset and windows of a tensor.
    pub(super) fn place(&self, tensor: &TensorType, source: &Source) -> Place<'c> {
        let names = Names { size: &|name| self.sizes[name], index: &|value| self.index(value) };
        self.ir.place(tensor, source, &names)
    }

    /// The positions of the running thread's slots in a tile.
    pub(super) fn mapping(&self, tile: ValueId) -> Mapping<'c> {
        Mapping::new(self.ir, self.scheduled.distribution(tile), self.running_thread())
    }

    /// The threads that hold tiles.
    pub(super) fn thread_count(&self) -> u64 {
        self.scheduled.threads().count()
    }

    /// The running thread's number, an i32, from which nothing leaves the innermost loop.
    pub(super) fn running_thread(&self) -> IntValue<'c> {
        // The mask says its range.
        let mask = self.i32(self.thread_count() - 1);
        self.in_loop(self.thread, Spread::Varying, |thread| self.ir.and(thread, mask))
    }

    /// The same number, in a form that keeps whatever is computed from it in the innermost loop ([`Device::opaque`]). `refine`
    /// says again what that hides of the number.
    pub(super) fn in_loop(
        &self,
        value: IntValue<'c>,
        spread: Spread,
        refine: impl FnOnce(IntValue<'c>) -> IntValue<'c>,
    ) -> IntValue<'c> {
        if self.depth == 0 { value } else { refine(self.dialect.opaque(self.ir, value, spread)) }
    }

    /// Emits the kernel's body.
    pub(super) fn body(&mut self) {
        if self.first_meeting.is_some() {
            self.begin_in_cluster();
        }
        self.ops(self.scheduled.body());
    }

    /// Emits a region's ops; gives the operands of its `yield`.
    pub(super) fn ops(&mut self, region: RegionId) -> &'a [ValueId] {
        let instance = self.instance;
        let mut ops = instance.region(region).ops.iter().peekable();
        while let Some(&op) = ops.next() {
            let data = instance.op(op);
            if data.op == Op::Yield {
                return &data.operands;
            }
            if !self.does(op, data) {
                continue;
            }
            self.settle_before(op);
            if let Some(&next) = ops.next_if(|&&next| self.is_narrowed_by(data, next)) {
                self.narrowed_elementwise(data, instance.op(next));
            } else if let Some(&next) = ops.next_if(|&&next| self.is_added_in_parts_by(op, data, next)) {
                self.product_in_parts(op, instance.op(next));
            } else {
                self.op(op, data);
            }
        }
        &[]
    }

    /// Whether an op is for threads of this role.
    pub(super) fn does(&self, op: OpId, data: &OpData) -> bool {
        let pipelines = self.scheduled.pipelines();
        match self.role {
            Role::All => !self.scheduled.copies().replace(op),
            Role::Producer => pipelines.slice().executes(op),
            Role::Multiplier => {
                pipelines.slice().executes(op) || (data.op == Op::Mma && !self.is_multiplied_ahead(op))
            }
            Role::Consumer if pipelines.tensor_memory().is_left_alone(op) => false,
            Role::Consumer => {
                let is_elsewhere = [Pipelines::is_late, Pipelines::is_ahead, Pipelines::is_overtaken];
                !pipelines.replace(data) && !is_elsewhere.iter().any(|is| is(pipelines, op))
            }
        }
    }

    /// Whether threads of this role have what a loop carries.
    pub(super) fn has(&self, value: ValueId) -> bool {
        let pipelines = self.scheduled.pipelines();
        match self.role {
            Role::All => true,
            Role::Producer | Role::Multiplier => pipelines.slice().has(value),
            Role::Consumer => !pipelines.tensor_memory().keeps(self.instance, value),
        }
    }

    /// Does something whose definitions are gone afterwards.
    pub(super) fn apart<R>(&mut self, action: impl FnOnce(&mut Self) -> R) -> R {
        let (tiles, scalars) = (self.tiles.clone(), self.scalars.clone());
        let given = action(self);
        (self.tiles, self.scalars) = (tiles, scalars);
        given
    }

    pub(super) fn op(&mut self, op: OpId, data: &'a OpData) {
        if let Some(places) = self.places {
            places.at(self.ir, data.loc);
        }
        let around = std::mem::replace(&mut self.orders, self.scheduled.orders(op));
        if self.first_meeting == Some(op) {
            cluster::wait(self.ir);
        }
        if !self.role.has_numbers_alone() && self.scheduled.waits_before(op) {
            self.complete_before(&data.op);
            self.sync();
        }
        let holds_products = self.multiplies() && !data.regions.is_empty();
        if holds_products {
            self.await_fills(op);
        }
        match &data.op {
            _ if self.scheduled.pipelines().tensor_memory().added_late_by(op).is_some() => {
                self.add_later(data)
            }
            Op::Partition(_) | Op::View(_) => {}
            Op::BlockIndex => {
                let axes =
                    data.results.iter().copied().zip(self.grid.tile_index.iter().map(|&index| index.into()));
                self.scalars.extend(axes);
            }
            Op::LoadMasked | Op::Load { .. } if self.role.has_numbers_alone() => self.produce(op, data),
            Op::LoadMasked | Op::Load { .. } => self.load(op, data),
            Op::GatherLoad => self.gather_load(op, data),
            Op::StoreMasked | Op::Store => match self.scheduled.pipelines().store(op) {
                Some(store) => self.tensor_store(data, store),
                None => self.store(op, data),
            },
            Op::Atomic(atomic) => self.atomic(op, data, *atomic),
            Op::For => self.for_loop(op, data),
            Op::While => self.while_loop(data),
            Op::Tiles(order) => self.tile_loop(op, data, order),
            Op::If => self.branch(op, data),
            Op::Reduce { .. } => self.reduce(op, data),
            Op::Mma if self.role == Role::Multiplier => self.tensor_product(op),
            Op::Mma if self.has_tensor_memory() => self.consume_product(op, data),
            Op::Mma => match (self.scheduled.product(op), self.scheduled.pipelines().factors(op)) {
                (Some(_), Some(_)) => self.warpgroup_product(op, None),
                (Some(product), None) => self.matrix_product(data, product),
                (None, _) => self.mma(op, data),
            },
            Op::MmaScaled => {
                let product = self.scheduled.product(op).expect("instructions alone scale");
                self.matrix_product(data, product);
            }
            Op::Scan { .. } | Op::ReduceWith { .. } | Op::ScanWith { .. } => self.fold(op, data),
            Op::Sort { axis, descending, .. } => self.sort(op, data, *axis, *descending),
            Op::Histogram(_) => self.histogram(op, data),
            Op::Broadcast(_) | Op::Permute(_) | Op::Movement(_) => self.movement(op, data),
            Op::Gather { axis } => self.gather(op, data, *axis),
            Op::Scatter { axis, mode } => self.scatter(op, data, *axis, *mode),
            Op::Item => self.item(op, data),
            Op::Reshape(_) => self.reshape(op, data),
            Op::ConvertLayout => self.convert_layout(op, data),
            Op::Splat(_) => {
                let value = self.scalar(data.operands[0]);
                self.set_tile(data.results[0], Fragment::Uniform(value));
            }
            Op::Iota { axis, .. } => self.iota(data, *axis),
            Op::Print { .. } | Op::Assert { .. } => self.say(op, data),
            Op::Prefetch => self.prefetch(data),
            Op::Unary(UnaryOp::RoundTf32) if self.round_when_read(data) => {}
            _ => self.elementwise(data),
        }
        if holds_products {
            self.leave_stage(op);
        }
        self.orders = around;
    }

    fn iota(&mut self, data: &OpData, axis: usize) {
        let result = data.results[0];
        let (mapping, dtype) = (self.mapping(result), self.dtype(result));
        let fragment = self.map(result, |slot| {
            let position = mapping.coordinates(self.ir, slot)[axis].value(self.ir);
            self.ir.cast(DType::U32, dtype, position.into())
        });
        self.set_tile(result, fragment);
    }

    fn elementwise(&mut self, data: &OpData) {
        let result = data.results[0];
        if !self.is_tile(result) {
            let operands: Vec<_> = data.operands.iter().map(|&value| self.scalar(value)).collect();
            let value = self.leaf(data, &operands);
            self.scalars.insert(result, value);
            return;
        }
        let operands: Vec<_> = data.operands.iter().map(|&value| self.tile(value)).collect();
        let uniform: Option<Vec<_>> = operands.iter().map(|fragment| fragment.uniform()).collect();
        let fragment = match uniform {
            Some(operands) => Fragment::Uniform(self.leaf(data, &operands)),
            None if self.narrows(data) => self.narrowed(data, operands[0]),
            None => self.map(result, |slot| self.leaf_of_slot(data, &operands, slot)),
        };
        self.set_tile(result, fragment);
    }

    /// An elementwise op on the elements of a slot.
    pub(super) fn leaf_of_slot(&self, data: &OpData, operands: &[&Fragment<'c>], slot: u64) -> Value<'c> {
        let values: Vec<_> = operands.iter().map(|fragment| fragment.get(slot)).collect();
        self.leaf(data, &values)
    }

    /// An elementwise op on one element, or on scalars.
    pub(super) fn leaf(&self, data: &OpData, operands: &[Value<'c>]) -> Value<'c> {
        let ir = self.ir;
        let dtype = |i: usize| self.dtype(data.operands[i]);
        match &data.op {
            Op::Constant { value, .. } => ir.literal(*value, self.dtype(data.results[0])),
            Op::Extent(dim) => self.dim(dim).into(),
            Op::BlockId { axis } => self.grid.block[*axis].into(),
            Op::BlockCount { axis } => {
                if let Some(shared) = &self.grid.shared_tiles {
                    return shared.blocks.into();
                }
                let space = self.instance.grid_space().expect("verified: a kernel has a grid");
                self.dim(&space[*axis]).into()
            }
            Op::Unary(op) => ir.unary(*op, dtype(0), operands[0]),
            Op::Binary(op) => ir.binary(*op, dtype(0), operands[0], operands[1]),
            Op::Compare(predicate) => ir.compare(*predicate, dtype(0), operands[0], operands[1]),
            Op::Classify(classification) => ir.classify(*classification, operands[0]),
            Op::Select => ir.select(operands[0].into_int_value(), operands[1], operands[2]),
            Op::Cast(_) => ir.cast(dtype(0), self.dtype(data.results[0]), operands[0]),
            Op::CastWith(_, rounding) => {
                ir.cast_with(dtype(0), self.dtype(data.results[0]), *rounding, operands[0])
            }
            Op::SaturatingCast(_) => ir.saturating_cast(dtype(0), self.dtype(data.results[0]), operands[0]),
            Op::Bitcast(_) => ir.bitcast(dtype(0), self.dtype(data.results[0]), operands[0]),
            Op::Lookup { table, .. } => ir.lookup(table, self.dtype(data.results[0]), dtype(0), operands[0]),
            Op::MulAdd => ir.fused_mul_add(dtype(0), [operands[0], operands[1], operands[2]]),
            op => unreachable!("`{}` is not elementwise", op.name()),
        }
    }

    /// Values as LLVM values that a phi can join: one per slot of a tile.
    pub(super) fn flat_all(&self, values: &[ValueId]) -> Vec<Value<'c>> {
        values.iter().flat_map(|&value| self.flat(value)).collect()
    }

    pub(super) fn flat(&self, value: ValueId) -> Vec<Value<'c>> {
        if self.is_tile(value) { self.flatten(value, self.tile(value)) } else { vec![self.scalar(value)] }
    }

    /// Defines values from what [`Self::flat_all`] gave for values of the same types; gives what follows that.
    pub(super) fn bind<'f>(&mut self, values: &[ValueId], flat: &'f [Value<'c>]) -> &'f [Value<'c>] {
        let mut rest = flat.iter().copied();
        for &value in values {
            if self.is_tile(value) {
                let fragment = self.unflatten(value, &mut rest);
                self.set_tile(value, fragment);
            } else {
                let scalar = rest.next().expect("values are flattened and restored alike");
                self.scalars.insert(value, scalar);
            }
        }
        &flat[flat.len() - rest.len()..]
    }

    /// A branch. Besides what the kernel says it gives the states of the rings in it, which are as before where the other
    /// way is taken.
    fn branch(&mut self, op: OpId, data: &'a OpData) {
        let (ir, condition) = (self.ir, self.index(data.operands[0]));
        let given: Vec<usize> = (0..data.results.len()).filter(|&i| self.has(data.results[i])).collect();
        let of_given = |values: &[ValueId]| given.iter().map(|&i| values[i]).collect::<Vec<ValueId>>();
        let (rings, before) = (self.rings_of(op), self.pipelined.rings.clone());
        // The two closures run one after the other; the cell lends the emitter to each in turn.
        let this = RefCell::new(&mut *self);
        let run = |region: RegionId| {
            let mut emitter = this.borrow_mut();
            emitter.pipelined.rings.clone_from(&before);
            let yielded = emitter.ops(region);
            emitter.next_stage(region);
            let mut values = emitter.flat_all(&of_given(yielded));
            values.extend(emitter.ring_values(&rings));
            values
        };
        let values = ir.if_else(condition, || run(data.regions[0]), || run(data.regions[1]));
        let states = self.bind(&of_given(&data.results), &values);
        self.set_rings(&rings, states);
    }
}
