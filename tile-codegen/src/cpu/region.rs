//! Emits the ops of a region in order: scalars to registers, stored tiles to their buffers.

use super::elements::{Sources, each_index};
use super::entry::{Entry, Plans};
use super::fuse::{Fusion, is_elementwise, is_tile};
use super::memory::ahead::Ahead;
use super::memory::behind::Previous;
use super::memory::buffer::{Buffer, Buffers};
use super::memory::joined::joined;
use super::product::{Products, Written};
use super::vectors::processor::Processor;
use crate::emit::{Ir, Log, LoopRange, Shared, Value};
use inkwell::values::IntValue;
use std::collections::HashMap;
use tile_ir::kernel::OpData;
use tile_ir::tile_order::TileOrder;
use tile_ir::{DType, Dim, Instance, Op, RegionId, ValueId};

/// Emits one block.
pub(super) struct Emitter<'a, 'c> {
    pub(super) ir: &'a Ir<'c>,
    pub(super) instance: &'a Instance,
    pub(super) fusion: &'a Fusion<'a>,
    pub(super) products: &'a Products<'a>,
    pub(super) buffers: &'a Buffers<'a, 'c>,
    pub(super) processor: &'a Processor,
    /// What all blocks of the range have in common.
    pub(super) entry: &'a Entry<'a, 'c>,
    pub(super) grid: GridPlace<'c>,
    /// What the next block reads, where the next loops may bring it near.
    pub(super) ahead: Option<Ahead<'a, 'c>>,
    /// The block before, where it may leave its store to this one.
    pub(super) previous: Option<Previous<'a, 'c>>,
    /// Where the kernel prints, if it does.
    pub(super) log: Option<Log<'c>>,
    /// Where elements are that aren't in buffers.
    pub(super) sources: Sources<'c>,
    /// Sums that are stored before their stores, each with the condition.
    pub(super) written: Written<'c>,
    /// Scalars.
    scalars: HashMap<ValueId, Value<'c>>,
}

/// The copy of a tile's elements to the buffer of another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TileCopy {
    from: ValueId,
    to: ValueId,
}

/// Where a block is in the grid, and what comes after it.
pub(super) struct GridPlace<'c> {
    /// The block's index, per axis of the grid.
    pub(super) block: Vec<IntValue<'c>>,
    /// The index of the tile that the block owns; in a persistent kernel, while it owns one.
    pub(super) tile: Vec<IntValue<'c>>,
    /// The index of the tile that a later block owns, if there is one; nothing in a persistent kernel.
    pub(super) tile_ahead: Vec<IntValue<'c>>,
    /// Whether the range of blocks has another one below this one in the grid; `None` where nobody knows.
    pub(super) row_comes: Option<IntValue<'c>>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// The emitter of the block of an index, which has these buffers.
    pub(super) fn new(
        entry: &'a Entry<'a, 'c>,
        buffers: &'a Buffers<'a, 'c>,
        block: Vec<IntValue<'c>>,
    ) -> Self {
        let Plans { instance, fusion, products, processor, .. } = *entry.plans;
        Emitter {
            ir: buffers.ir(),
            instance,
            fusion,
            products,
            buffers,
            processor,
            entry,
            grid: GridPlace { tile: block.clone(), block, tile_ahead: Vec::new(), row_comes: None },
            ahead: None,
            previous: None,
            log: None,
            sources: Sources::default(),
            written: Written::new(),
            scalars: entry.arguments.clone(),
        }
    }

    /// The op that gives a value; `None` for parameters.
    pub(super) fn definition(&self, value: ValueId) -> Option<&'a OpData> {
        self.fusion.definition(value)
    }

    pub(super) fn dtype(&self, value: ValueId) -> DType {
        self.instance.ty(value).elem().known().expect("an instance has no dtype parameters")
    }

    pub(super) fn is_tile(&self, value: ValueId) -> bool {
        is_tile(self.instance, value)
    }

    /// Extents of a tile.
    pub(super) fn shape(&self, value: ValueId) -> Vec<i64> {
        extents(&self.instance.ty(value).as_tile().expect("verified: a tile").shape)
    }

    pub(super) fn buffer(&self, value: ValueId) -> Option<Buffer<'c>> {
        self.buffers.of(value, self.dtype(value))
    }

    pub(super) fn stored(&self, value: ValueId) -> Buffer<'c> {
        self.buffer(value).expect("the tile is stored")
    }

    pub(super) fn scalar(&self, value: ValueId) -> Value<'c> {
        *self.scalars.get(&value).expect("verified: a scalar is defined before its use")
    }

    /// A scalar that has been defined.
    pub(super) fn scalar_if_known(&self, value: ValueId) -> Option<Value<'c>> {
        self.scalars.get(&value).copied()
    }

    /// Gives scalars their values, for ops that run a region.
    pub(super) fn bind_scalars(&mut self, scalars: &[ValueId], values: &[Value<'c>]) {
        self.scalars.extend(scalars.iter().copied().zip(values.iter().copied()));
    }

    pub(super) fn index(&self, value: ValueId) -> IntValue<'c> {
        self.scalar(value).into_int_value()
    }

    /// Emits a region's ops; gives the operands of its `yield`.
    pub(super) fn ops(&mut self, region: RegionId) -> &'a [ValueId] {
        let instance = self.instance;
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            if data.op == Op::Yield {
                return &data.operands;
            }
            self.look_ahead(data, region);
            self.op(data);
            self.looked_ahead(data);
        }
        &[]
    }

    pub(super) fn op(&mut self, data: &'a OpData) {
        match &data.op {
            Op::Partition(_) | Op::View(_) => {}
            Op::BlockIndex => {
                for (&result, &index) in data.results.iter().zip(&self.grid.tile.clone()) {
                    self.scalars.insert(result, index.into());
                }
            }
            Op::StoreMasked | Op::Store => self.store_unless_written(data),
            Op::Atomic(atomic) => self.atomic(data, *atomic),
            Op::For => self.for_loop(data),
            Op::While => self.while_loop(data),
            Op::Tiles(order) => self.tile_loop(data, order),
            Op::If => self.branch(data),
            op if op.is_load() && self.buffer(data.results[0]).is_none() => {}
            _ if data.results.first().is_some_and(|&tile| self.fusion.is_left_to_reduction(tile)) => {}
            _ if data.results.first().is_some_and(|&tile| self.is_next_of_held(tile)) => {}
            op if op.is_load() => self.load(data),
            Op::Mma => self.mma(data),
            Op::Sort { axis, descending, .. } => self.sort(data, *axis, *descending),
            Op::Print { .. } | Op::Assert { .. } => self.say(data),
            Op::Prefetch => self.prefetch(data),
            Op::Reduce { op, axis } => self.reduce(data, *op, *axis),
            op if goes_over_a_tile(op) => {
                let loads = self.fusion.streams_of(data);
                self.with_streams(&loads, &[], &mut |emitter, _| emitter.tile_op(data));
            }
            _ => match self.fusion.transposed_axis(data) {
                Some(axis) => self.transpose(data, axis),
                None => self.data_op(data),
            },
        }
    }

    /// Emits the loops of an op that goes over a tile in an order of its own.
    fn tile_op(&mut self, data: &'a OpData) {
        match &data.op {
            Op::ReduceWith { axis, .. } => self.fold(data, *axis, None),
            Op::ScanWith { axis, mode, .. } => self.fold(data, *axis, Some(*mode)),
            Op::Scan { op, axis, mode } => self.scan(data, *op, *axis, *mode),
            Op::Histogram(_) => self.histogram(data),
            Op::Scatter { axis, mode } => self.scatter(data, *axis, *mode),
            Op::Movement(_) => self.movement(data),
            op => unreachable!("{} has no loops of its own", op.name()),
        }
    }

    fn data_op(&mut self, data: &'a OpData) {
        let result = data.results[0];
        if !self.is_tile(result) {
            let value = self.compute(data, &[]);
            self.scalars.insert(result, value);
        } else if let Some(buffer) = self.buffer(result) {
            let moved = matches!(data.op, Op::Reshape(_) | Op::ConvertLayout)
                && self.buffer(data.operands[0]).is_some_and(|source| Buffers::same(&source, &buffer));
            if !moved {
                self.with_joined(self.first_joined_in_loop(data), |emitter| emitter.fill_tile(data, &buffer));
            }
        }
    }

    /// Computes a tile into its buffer.
    fn fill_tile(&mut self, data: &'a OpData, buffer: &Buffer<'c>) {
        let shape = self.loop_shape(data, &self.shape(data.results[0]));
        let (loads, by_rows) = (self.fusion.streams_of(data), !self.fusion.row_gathers_of(data).is_empty());
        self.with_streams(&loads, &[], &mut |emitter, _| match by_rows {
            true => emitter.fill_from_rows(buffer, data),
            false => emitter.fill(buffer, &shape, |emitter, index| {
                emitter.computing_once(|emitter| emitter.compute(data, index))
            }),
        });
    }

    fn for_loop(&mut self, data: &'a OpData) {
        let products = self.products;
        let accumulation = data.results.first().and_then(|&sum| products.accumulation(sum));
        if let Some(accumulation) = accumulation {
            return self.accumulate(data, accumulation);
        }
        let range = (self.index(data.operands[0]), self.index(data.operands[1]), self.ir.i64(1));
        let (&counter, params) = self
            .instance
            .region(data.regions[0])
            .params
            .split_first()
            .expect("verified: `for` has a counter");
        self.counted_loop(data, range, &data.operands[2..], params, |emitter, i| {
            emitter.scalars.insert(counter, i.into());
        });
    }

    /// Runs an op's region for every number of a range. The first turn is given the `initial`
    /// values, which the `params` of the region hold; `begin` says what else a number means to its turn.
    fn counted_loop(
        &mut self,
        data: &'a OpData,
        range: LoopRange<'c>,
        initial: &[ValueId],
        params: &[ValueId],
        mut begin: impl FnMut(&mut Self, IntValue<'c>),
    ) {
        self.copy_tiles(initial, params);
        let held = self.fusion.held(data, self.processor.block.bytes());
        self.hold(&held);
        let (scalars, ir) = (self.scalars_of(initial), self.ir);
        let finals = ir.for_loop(range, &scalars, |i, carried| {
            begin(self, i);
            self.set_scalars(params, carried);
            let yielded = self.ops(data.regions[0]);
            match held.as_slice() {
                [] => self.copy_tiles(yielded, params),
                held => self.next_of_held(held),
            }
            self.scalars_of(yielded)
        });
        self.let_go(&held);
        self.copy_tiles(params, &data.results);
        self.set_scalars(&data.results, &finals);
    }

    fn while_loop(&mut self, data: &'a OpData) {
        let (&condition, initial) =
            data.operands.split_first().expect("verified: `while` has a first condition");
        let region = data.regions[0];
        let params = &self.instance.region(region).params;
        self.copy_tiles(initial, params);
        let (first, initial, ir) = (self.index(condition), self.scalars_of(initial), self.ir);
        let finals = ir.while_loop(first, &initial, |carried| {
            self.set_scalars(params, carried);
            let (&again, next) =
                self.ops(region).split_first().expect("verified: `while` yields its condition first");
            self.copy_tiles(next, params);
            (self.index(again), self.scalars_of(next))
        });
        self.copy_tiles(params, &data.results);
        self.set_scalars(&data.results, &finals);
    }

    fn tile_loop(&mut self, data: &'a OpData, order: &TileOrder<Dim>) {
        let Shared { tiles, blocks } =
            self.entry.shared.expect("a persistent kernel's launch says how tiles are shared");
        let view = self.instance.ty(data.operands[0]).as_partition().expect("verified: a view");
        let ir = self.ir;
        let space = view.grid();
        let space: Vec<_> = space.iter().map(|dim| ir.dim(dim, &|name| self.entry.sizes[name])).collect();
        let params = &self.instance.region(data.regions[0]).params;
        let range = (self.grid.block[0], tiles, blocks);
        self.counted_loop(data, range, &data.operands[1..], params, |emitter, number| {
            let number = ir.taken_tile(order, number, [blocks, tiles]);
            emitter.grid.tile = ir.tile_index(order, &space, number);
        });
    }

    /// The scalars among values, in order.
    fn scalars_of(&self, values: &[ValueId]) -> Vec<Value<'c>> {
        values.iter().filter(|&&value| !self.is_tile(value)).map(|&value| self.scalar(value)).collect()
    }

    /// Defines the scalars among values by what [`Self::scalars_of`] gave for values of the same types.
    fn set_scalars(&mut self, values: &[ValueId], scalars: &[Value<'c>]) {
        let defined = values.iter().copied().filter(|&value| !self.is_tile(value));
        let pairs: Vec<_> = defined.zip(scalars.iter().copied()).collect();
        self.scalars.extend(pairs);
    }

    fn branch(&mut self, data: &'a OpData) {
        let condition = self.index(data.operands[0]);
        let (ir, results) = (self.ir, &data.results);
        let values = ir.either_side(condition, |holds| {
            let yielded = self.ops(data.regions[if holds { 0 } else { 1 }]);
            self.copy_tiles(yielded, results);
            self.scalars_of(yielded)
        });
        self.set_scalars(results, &values);
    }

    /// Copies tiles to the buffers of others, as if all at once. What a `yield` gives is stored or reads no
    /// tile, so a source that another copy overwrites is a stored tile, and copies that wait for each other
    /// form cycles of tiles of one shape.
    pub(super) fn copy_tiles(&mut self, sources: &[ValueId], destinations: &[ValueId]) {
        let copies = sources.iter().zip(destinations).map(|(&from, &to)| TileCopy { from, to });
        let mut pending: Vec<TileCopy> =
            copies.filter(|copy| self.is_tile(copy.from) && !self.shares_place(copy.from, copy.to)).collect();
        while let Some(&first) = pending.first() {
            let read_by_other =
                |to| pending.iter().any(|other| other.to != to && self.shares_place(other.from, to));
            match pending.iter().position(|copy| !read_by_other(copy.to)) {
                Some(i) => {
                    let TileCopy { from, to } = pending.remove(i);
                    self.copy_tile(from, to);
                }
                None => {
                    let cycle = self.cycle_of(first, &pending);
                    pending.retain(|copy| !cycle.contains(copy));
                    self.exchange(&cycle);
                }
            }
        }
    }

    fn shares_place(&self, a: ValueId, b: ValueId) -> bool {
        matches!((self.buffer(a), self.buffer(b)), (Some(a), Some(b)) if Buffers::same(&a, &b))
    }

    /// The copies from `first` on, each of which overwrites what the one before it reads.
    fn cycle_of(&self, first: TileCopy, pending: &[TileCopy]) -> Vec<TileCopy> {
        let mut cycle = vec![first];
        let mut last = first;
        while let Some(&next) = pending.iter().find(|next| self.shares_place(last.from, next.to)) {
            if next == first {
                break;
            }
            cycle.push(next);
            last = next;
        }
        cycle
    }

    /// Copies that form a cycle, element by element: all are read before any is written.
    fn exchange(&mut self, copies: &[TileCopy]) {
        let (ir, elements) = (self.ir, self.shape(copies[0].from).iter().product());
        each_index(ir, ir.i64(elements), elements, |i| {
            let values: Vec<Value<'c>> =
                copies.iter().map(|copy| self.buffers.load(&self.stored(copy.from), i)).collect();
            for (copy, value) in copies.iter().zip(values) {
                self.buffers.store(&self.stored(copy.to), i, value);
            }
        });
    }

    /// Fills the buffer of a tile with the elements of another.
    pub(super) fn copy_tile(&mut self, from: ValueId, to: ValueId) {
        let buffer = self.stored(to);
        let shape = match self.definition(from).filter(|_| self.buffer(from).is_none()) {
            Some(data) => self.loop_shape(data, &self.shape(from)),
            None => joined(&self.shape(from), 0),
        };
        self.fill(&buffer, &shape, |emitter, index| emitter.element(from, index));
    }

    /// The shape of the loops that compute an op's tile: one long loop where no operand's place differs from
    /// the result's, so that narrow tiles vectorise as well as wide ones.
    fn loop_shape(&self, data: &OpData, shape: &[i64]) -> Vec<i64> {
        match self.sources.first_joined {
            _ if self.fusion.is_flat(data) => joined(shape, 0),
            Some(first) => joined(shape, first),
            None => shape.to_vec(),
        }
    }
}

/// Bytes of a tile in a tensor.
pub(super) fn tile_bytes(instance: &Instance, tile: ValueId) -> i64 {
    let tile = instance.ty(tile).as_tile().expect("its callers ask of tiles");
    let dtype = tile.elem.known().expect("an instance has no dtype parameters");
    extents(&tile.shape).iter().product::<i64>() * dtype.bytes() as i64
}

/// The numbers that an instance's tile extents are.
pub(super) fn extents(dims: &[Dim]) -> Vec<i64> {
    dims.iter().map(|dim| dim.as_const().expect("an instance's tile extents are numbers")).collect()
}

/// Ops whose loops go over a tile in an order of their own, element by element.
fn goes_over_a_tile(op: &Op) -> bool {
    match op {
        Op::Scan { .. } | Op::Histogram(_) | Op::Scatter { .. } => true,
        Op::Movement(_) => !is_elementwise(op),
        op => op.is_fold(),
    }
}
