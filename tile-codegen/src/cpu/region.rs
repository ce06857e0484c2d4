//! Emits the ops of a region in order: scalars to registers, stored tiles to their buffers.

use super::buffer::{Buffer, Buffers};
use super::plan::Plan;
use crate::emit::{Ir, Value};
use inkwell::values::IntValue;
use std::collections::HashMap;
use tile_ir::kernel::{OpData, OpId};
use tile_ir::{DType, Dim, Instance, Op, RegionId, Type, ValueId};

/// Emits one block.
pub(super) struct Emitter<'a, 'c> {
    pub(super) ir: &'a Ir<'c>,
    pub(super) instance: &'a Instance,
    pub(super) plan: &'a Plan,
    pub(super) buffers: &'a Buffers<'a, 'c>,
    /// Tensor addresses and scalar arguments.
    pub(super) arguments: &'a HashMap<ValueId, Value<'c>>,
    pub(super) sizes: &'a HashMap<String, IntValue<'c>>,
    /// The block's index, per axis of the grid.
    pub(super) block: Vec<IntValue<'c>>,
    /// Lanes of a native vector of f32.
    pub(super) lanes: u32,
    /// Scalars.
    scalars: HashMap<ValueId, Value<'c>>,
    definitions: HashMap<ValueId, OpId>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    #[expect(clippy::too_many_arguments, reason = "the one constructor of the emitter's context")]
    pub(super) fn new(
        ir: &'a Ir<'c>,
        instance: &'a Instance,
        plan: &'a Plan,
        buffers: &'a Buffers<'a, 'c>,
        arguments: &'a HashMap<ValueId, Value<'c>>,
        sizes: &'a HashMap<String, IntValue<'c>>,
        block: Vec<IntValue<'c>>,
        lanes: u32,
    ) -> Self {
        let mut definitions = HashMap::new();
        for op in instance.walk() {
            definitions.extend(instance.op(op).results.iter().map(|&result| (result, op)));
        }
        let scalars = arguments.clone();
        Emitter { ir, instance, plan, buffers, arguments, sizes, block, lanes, scalars, definitions }
    }

    /// The op that gives a value; `None` for parameters.
    pub(super) fn definition(&self, value: ValueId) -> Option<&'a OpData> {
        self.definitions.get(&value).map(|&op| self.instance.op(op))
    }

    pub(super) fn dtype(&self, value: ValueId) -> DType {
        self.instance.ty(value).elem().known().expect("an instance has no dtype parameters")
    }

    pub(super) fn is_tile(&self, value: ValueId) -> bool {
        matches!(self.instance.ty(value), Type::Tile(_))
    }

    /// Extents of a tile.
    pub(super) fn shape(&self, value: ValueId) -> Vec<i64> {
        extents(&self.instance.ty(value).as_tile().expect("verified: a tile").shape)
    }

    pub(super) fn buffer(&self, value: ValueId) -> Option<Buffer<'c>> {
        self.buffers.of(self.plan, value, self.dtype(value))
    }

    pub(super) fn stored(&self, value: ValueId) -> Buffer<'c> {
        self.buffer(value).expect("the plan stores this tile")
    }

    pub(super) fn scalar(&self, value: ValueId) -> Value<'c> {
        *self.scalars.get(&value).expect("verified: a scalar is defined before its use")
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
            self.op(data);
        }
        &[]
    }

    fn op(&mut self, data: &'a OpData) {
        match &data.op {
            Op::Partition(_) => {}
            Op::BlockIndex => {
                for (&result, &index) in data.results.iter().zip(&self.block.clone()) {
                    self.scalars.insert(result, index.into());
                }
            }
            Op::LoadMasked => self.load_masked(data),
            Op::StoreMasked => self.store_masked(data),
            Op::For => self.for_loop(data),
            Op::If => self.branch(data),
            Op::Reduce { op, axis } => self.reduce(data, *op, *axis),
            Op::Mma => self.mma(data),
            _ => self.data_op(data),
        }
    }

    fn data_op(&mut self, data: &'a OpData) {
        let result = data.results[0];
        if self.is_tile(result) {
            if let Some(buffer) = self.buffer(result) {
                self.fill(&buffer, &self.shape(result), |emitter, index| emitter.compute(data, index));
            }
            return;
        }
        let value = self.compute(data, &[]);
        self.scalars.insert(result, value);
    }

    fn for_loop(&mut self, data: &'a OpData) {
        let (start, end) = (self.index(data.operands[0]), self.index(data.operands[1]));
        let region = data.regions[0];
        let (&counter, params) =
            self.instance.region(region).params.split_first().expect("verified: `for` has a counter");
        self.copy_tiles(&data.operands[2..], params);
        let scalar_params: Vec<ValueId> = params.iter().copied().filter(|&p| !self.is_tile(p)).collect();
        let initial: Vec<Value<'c>> = data.operands[2..]
            .iter()
            .filter(|&&value| !self.is_tile(value))
            .map(|&value| self.scalar(value))
            .collect();
        let ir = self.ir;
        let finals = ir.for_loop((start, end, ir.i64(1)), &initial, |i, carried| {
            self.scalars.insert(counter, i.into());
            self.scalars.extend(scalar_params.iter().copied().zip(carried.iter().copied()));
            let yielded = self.ops(region);
            self.copy_tiles(yielded, params);
            yielded.iter().filter(|&&value| !self.is_tile(value)).map(|&value| self.scalar(value)).collect()
        });
        self.copy_tiles(params, &data.results);
        let scalar_results = data.results.iter().copied().filter(|&r| !self.is_tile(r));
        let pairs: Vec<_> = scalar_results.zip(finals).collect();
        self.scalars.extend(pairs);
    }

    fn branch(&mut self, data: &'a OpData) {
        let condition = self.index(data.operands[0]);
        let scalars = |emitter: &Self, values: &[ValueId]| -> Vec<Value<'c>> {
            values
                .iter()
                .filter(|&&value| !emitter.is_tile(value))
                .map(|&value| emitter.scalar(value))
                .collect()
        };
        let (ir, results) = (self.ir, &data.results);
        // The two closures run one after the other; the cell lends the emitter to each in turn.
        let this = std::cell::RefCell::new(&mut *self);
        let run = |region: RegionId| {
            let mut emitter = this.borrow_mut();
            let yielded = emitter.ops(region);
            emitter.copy_tiles(yielded, results);
            scalars(&emitter, yielded)
        };
        let values = ir.if_else(condition, || run(data.regions[0]), || run(data.regions[1]));
        let scalar_results = results.iter().copied().filter(|&result| !self.is_tile(result));
        let pairs: Vec<_> = scalar_results.zip(values).collect();
        self.scalars.extend(pairs);
    }

    /// Copies tiles to the buffers of others, as if all at once: a source that is another copy's destination
    /// was stored as a parameter, and `yield a, b` of swapped parameters must not overwrite what it reads.
    fn copy_tiles(&mut self, sources: &[ValueId], destinations: &[ValueId]) {
        let pairs: Vec<(ValueId, ValueId)> = sources
            .iter()
            .copied()
            .zip(destinations.iter().copied())
            .filter(|&(from, _)| self.is_tile(from))
            .collect();
        let mut pending: Vec<(ValueId, ValueId)> = Vec::new();
        for (from, to) in pairs {
            let same = self.buffer(from).is_some_and(|b| Buffers::same(&b, &self.stored(to)));
            if !same {
                pending.push((from, to));
            }
        }
        while !pending.is_empty() {
            let safe = pending.iter().position(|&(_, to)| {
                pending.iter().all(|&(from, other)| other == to || !self.reads(from, &self.stored(to)))
            });
            match safe {
                Some(i) => {
                    let (from, to) = pending.remove(i);
                    self.copy_tile(from, to);
                }
                None => return self.exchange(&pending),
            }
        }
    }

    /// Copies that form a cycle, element by element: all are read before any is written. Only stored tiles
    /// of one shape and plain order can form one; others were resolved before.
    fn exchange(&mut self, pairs: &[(ValueId, ValueId)]) {
        let count =
            pairs.iter().map(|&(from, _)| self.shape(from).iter().product::<i64>()).max().unwrap_or(0);
        let ir = self.ir;
        ir.for_each(ir.i64(count), |i| {
            let values: Vec<Value<'c>> =
                pairs.iter().map(|&(from, _)| self.buffers.load(&self.stored(from), i)).collect();
            for (&(_, to), value) in pairs.iter().zip(values) {
                self.buffers.store(&self.stored(to), i, value);
            }
        });
    }

    /// Whether computing a tile's elements reads a buffer.
    fn reads(&self, value: ValueId, buffer: &Buffer<'c>) -> bool {
        match self.buffer(value) {
            Some(own) => Buffers::same(&own, buffer),
            None => self
                .definition(value)
                .is_some_and(|data| data.operands.iter().any(|&o| self.is_tile(o) && self.reads(o, buffer))),
        }
    }

    fn copy_tile(&mut self, from: ValueId, to: ValueId) {
        let buffer = self.stored(to);
        let shape = self.shape(from);
        self.fill(&buffer, &shape, |emitter, index| emitter.element(from, index));
    }
}

/// The numbers that an instance's tile extents are.
pub(super) fn extents(dims: &[Dim]) -> Vec<i64> {
    dims.iter().map(|dim| dim.as_const().expect("an instance's tile extents are numbers")).collect()
}
