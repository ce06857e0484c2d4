//! One block in progress: the values that it has, and what each op makes of them.
//!
//! Loops, branches and regions stand here; what an op computes is [`Array`]'s, and memory is `accesses.rs`'s.

use super::extents;
use crate::abi::LaunchSizes;
use crate::array::{Array, Combine};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::kernel::{OpData, RegionId, ValueId};
use crate::log::{Event, Site};
use crate::ops::{Literal, Op};
use crate::specialize::Instance;
use crate::tile_order::TileOrder;
use crate::types::Type;
use crate::view::Source;
use std::collections::HashMap;

/// Turns of loops.
pub(super) struct Turns {
    pub(super) taken: u64,
    pub(super) most: u64,
}

impl Turns {
    pub(super) fn unbounded() -> Turns {
        Turns { taken: 0, most: u64::MAX }
    }

    /// Whether there is one more, which is taken.
    fn next(&mut self) -> bool {
        let remains = self.taken < self.most;
        self.taken += u64::from(remains);
        remains
    }
}

/// One block in progress.
pub(super) struct Evaluation<'a> {
    pub(super) instance: &'a Instance,
    pub(super) arguments: &'a mut [Array],
    pub(super) sizes: &'a HashMap<String, i64>,
    /// The tensor that each partition view cuts.
    pub(super) views: &'a HashMap<ValueId, ValueId>,
    /// The argument of each tensor, and how it is seen.
    pub(super) tensors: &'a HashMap<ValueId, (usize, Source)>,
    /// The block's number in the grid.
    pub(super) number: usize,
    pub(super) log: &'a mut Vec<Event>,
    pub(super) turns: &'a mut Turns,
    pub(super) bound: &'a LaunchSizes,
    /// The block's index in the grid.
    pub(super) block: Vec<usize>,
    /// The index of the tile that the block owns; in a persistent kernel, while it owns one.
    pub(super) tile: Vec<usize>,
    /// Scalars and tiles.
    pub(super) values: Vec<Option<Array>>,
}

impl Evaluation<'_> {
    /// Takes the scalar arguments as values.
    pub(super) fn bind_arguments(&mut self) {
        for (argument, &param) in self.arguments.iter().zip(self.instance.params()) {
            if matches!(self.instance.ty(param), Type::Scalar(_)) {
                self.values[param.index()] = Some(argument.clone());
            }
        }
    }

    pub(super) fn get(&self, value: ValueId) -> &Array {
        self.values[value.index()].as_ref().expect("verified: a value is defined before its use")
    }

    pub(super) fn index(&self, value: ValueId) -> usize {
        usize::try_from(self.get(value).get_int(0)).expect("verified: an index is a u64")
    }

    fn dim(&self, dim: &Dim) -> Literal {
        let value = dim.evaluate(&|name| self.sizes.get(name).copied());
        // A run-time extent that has no value (a division by zero, say) reads as 0 on every target.
        Literal::Int(value.map_or(0, |value| value as i128))
    }

    /// Runs a region's ops; gives what its `yield` yields.
    pub(super) fn region(&mut self, region: RegionId) -> Vec<Array> {
        let instance = self.instance;
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            let operands = || data.operands.iter();
            if data.op == Op::Yield {
                return operands().map(|&value| self.get(value).clone()).collect();
            }
            let results = self.op(data);
            for (&result, value) in data.results.iter().zip(results) {
                self.values[result.index()] = value;
            }
        }
        Vec::new()
    }

    fn op(&mut self, data: &OpData) -> Vec<Option<Array>> {
        match &data.op {
            Op::For => self.for_loop(data).into_iter().map(Some).collect(),
            Op::While => self.while_loop(data).into_iter().map(Some).collect(),
            Op::Tiles(order) => self.tile_loop(data, order).into_iter().map(Some).collect(),
            Op::If => {
                let chosen = data.regions[usize::from(self.get(data.operands[0]).get_int(0) == 0)];
                self.region(chosen).into_iter().map(Some).collect()
            }
            // A view has no value of its own.
            Op::Partition(_) | Op::View(_) => vec![None],
            Op::BlockIndex => {
                let axes = self.tile.iter();
                axes.map(|&i| Some(Array::scalar(DType::Index, Literal::Int(i as i128)))).collect()
            }
            Op::ReduceWith { axis, .. } => {
                self.fold(data, |arrays, starts, combine| Array::reduce_with(arrays, starts, *axis, combine))
            }
            Op::ScanWith { axis, mode, .. } => self.fold(data, |arrays, starts, combine| {
                Array::scan_with(arrays, starts, *axis, *mode, combine)
            }),
            Op::Sort { axis, descending, count } => {
                let count = extents(std::slice::from_ref(count))[0];
                self.get(data.operands[0]).sort(*axis, *descending, count).map(Some).into()
            }
            Op::LoadMasked | Op::Load { .. } => vec![Some(self.load(data))],
            Op::GatherLoad => vec![Some(self.gather_load(data))],
            Op::Atomic(atomic) => self.atomic(data, *atomic),
            Op::StoreMasked | Op::Store => {
                self.store(data);
                Vec::new()
            }
            Op::Print { .. } | Op::Assert { .. } => {
                self.say(data);
                Vec::new()
            }
            Op::Prefetch => Vec::new(),
            _ => vec![Some(self.data_op(data))],
        }
    }

    /// Notes what an op prints, or that it asserts something false.
    fn say(&mut self, data: &OpData) {
        let site = Site::of(self.instance, data).expect("the op says something");
        let mut values: Vec<Array> = data.operands.iter().map(|&value| self.get(value).clone()).collect();
        let mut position = None;
        if site.condition.is_some() {
            let condition = values.remove(0);
            let Some(first) = (0..condition.len()).find(|&i| condition.get_int(i) == 0) else { return };
            position = Some(first as u64);
        }
        self.log.push(Event { site: site.number, block: self.number as u64, position, values });
    }

    /// An op with a region that joins elements: `run` is given the tiles, the starts, and the region as a function.
    fn fold(
        &mut self,
        data: &OpData,
        run: impl FnOnce(&[&Array], &[Literal], &mut Combine<'_>) -> Vec<Array>,
    ) -> Vec<Option<Array>> {
        let (tiles, starts) = data.operands.split_at(data.operands.len() / 2);
        let tiles: Vec<Array> = tiles.iter().map(|&tile| self.get(tile).clone()).collect();
        let starts: Vec<Literal> = starts.iter().map(|&start| self.get(start).get(0)).collect();
        let region = data.regions[0];
        let params = &self.instance.region(region).params;
        let mut combine = |folded: &[Literal], element: &[Literal]| {
            for (&param, &number) in params.iter().zip(folded.iter().chain(element)) {
                let dtype =
                    self.instance.ty(param).elem().known().expect("an instance has no dtype parameters");
                self.values[param.index()] = Some(Array::scalar(dtype, number));
            }
            self.region(region).iter().map(|scalar| scalar.get(0)).collect()
        };
        run(&tiles.iter().collect::<Vec<_>>(), &starts, &mut combine).into_iter().map(Some).collect()
    }

    fn for_loop(&mut self, data: &OpData) -> Vec<Array> {
        let (start, end) = (self.index(data.operands[0]), self.index(data.operands[1]));
        let mut carried: Vec<Array> =
            data.operands[2..].iter().map(|&value| self.get(value).clone()).collect();
        let instance = self.instance;
        let (&counter, params) =
            instance.region(data.regions[0]).params.split_first().expect("verified: `for` has a counter");
        for i in start..end {
            if !self.turns.next() {
                break;
            }
            self.values[counter.index()] = Some(Array::scalar(DType::Index, Literal::Int(i as i128)));
            for (&param, value) in params.iter().zip(carried) {
                self.values[param.index()] = Some(value);
            }
            carried = self.region(data.regions[0]);
            self.forget(data.regions[0]);
        }
        carried
    }

    /// Drops what a turn of a loop made.
    fn forget(&mut self, region: RegionId) {
        let instance = self.instance;
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            data.results.iter().for_each(|result| self.values[result.index()] = None);
            data.regions.iter().for_each(|&inner| self.forget(inner));
        }
    }

    fn while_loop(&mut self, data: &OpData) -> Vec<Array> {
        let region = data.regions[0];
        let mut goes_on = self.get(data.operands[0]).clone();
        let mut carried: Vec<Array> =
            data.operands[1..].iter().map(|&value| self.get(value).clone()).collect();
        while goes_on.get_int(0) != 0 && self.turns.next() {
            for (&param, value) in self.instance.region(region).params.iter().zip(carried) {
                self.values[param.index()] = Some(value);
            }
            let mut yielded = self.region(region).into_iter();
            self.forget(region);
            goes_on = yielded.next().expect("verified: `while` yields its condition first");
            carried = yielded.collect();
        }
        carried
    }

    fn tile_loop(&mut self, data: &OpData, order: &TileOrder<Dim>) -> Vec<Array> {
        let (instance, region, bound) = (self.instance, data.regions[0], self.bound);
        let shared = bound.shared.as_ref().expect("a persistent kernel's launch says how tiles are shared");
        let order = order.map(|rows| extents(std::slice::from_ref(rows))[0]);
        let mut carried: Vec<Array> =
            data.operands[1..].iter().map(|&value| self.get(value).clone()).collect();
        for number in (self.number..shared.tiles).step_by(bound.blocks()) {
            let number = order.taken(number, bound.blocks(), shared.tiles);
            self.tile = order.index_of(&shared.space, number);
            for (&param, value) in instance.region(region).params.iter().zip(carried) {
                self.values[param.index()] = Some(value);
            }
            carried = self.region(region);
        }
        carried
    }

    fn tile_shape(&self, value: ValueId) -> Vec<usize> {
        extents(&self.instance.ty(value).as_tile().expect("verified: a tile").shape)
    }

    fn data_op(&self, data: &OpData) -> Array {
        let operand = |i: usize| self.get(data.operands[i]);
        let known = |elem: &crate::types::Elem| elem.known().expect("an instance has no dtype parameters");
        match &data.op {
            Op::Constant { value, elem } => Array::scalar(known(elem), *value),
            Op::Extent(dim) => Array::scalar(DType::Index, self.dim(dim)),
            Op::BlockId { axis } => Array::scalar(DType::Index, Literal::Int(self.block[*axis] as i128)),
            Op::BlockCount { axis } => {
                Array::scalar(DType::Index, Literal::Int(self.bound.grid[*axis] as i128))
            }
            Op::Unary(op) => operand(0).unary(*op),
            Op::Binary(op) => operand(0).binary(*op, operand(1)),
            Op::Compare(predicate) => operand(0).compare(*predicate, operand(1)),
            Op::Classify(classification) => operand(0).classify(*classification),
            Op::Select => Array::select(operand(0), operand(1), operand(2)),
            Op::Cast(elem) => operand(0).cast(known(elem)),
            Op::CastWith(elem, rounding) => operand(0).cast_with(known(elem), *rounding),
            Op::SaturatingCast(elem) => operand(0).saturating_cast(known(elem)),
            Op::Bitcast(elem) => operand(0).bitcast(known(elem)),
            Op::Lookup { table, elem } => operand(0).lookup(known(elem), table),
            Op::MulAdd => Array::mul_add(operand(0), operand(1), operand(2)),
            Op::Splat(shape) => operand(0).splat(&extents(shape)),
            Op::Iota { shape, axis, elem } => Array::iota(known(elem), &extents(shape), *axis),
            Op::Broadcast(_) | Op::Permute(_) | Op::Movement(_) => {
                let operands: Vec<&Array> = data.operands.iter().map(|&value| self.get(value)).collect();
                Array::moved(&data.op, &operands, &self.tile_shape(data.results[0]))
            }
            Op::Reshape(shape) => operand(0).reshape(&extents(shape)),
            Op::Gather { axis } => operand(0).gather(operand(1), operand(2), *axis),
            Op::Scatter { axis, mode } => operand(0).scatter(*mode, operand(1), operand(2), *axis),
            Op::Reduce { op, axis } => operand(0).reduce(*op, *axis),
            Op::Scan { op, axis, mode } => operand(0).scan(*op, *axis, *mode),
            Op::Histogram(bins) => operand(0).histogram(extents(std::slice::from_ref(bins))[0]),
            Op::Mma => Array::mma(operand(0), operand(1), operand(2)),
            Op::Item => operand(0).reshape(&[]),
            Op::ConvertLayout => operand(0).clone(),
            Op::MmaScaled => {
                Array::mma_scaled([operand(0), operand(1)], operand(2), [operand(3), operand(4)])
            }
            Op::ReduceWith { .. }
            | Op::ScanWith { .. }
            | Op::Sort { .. }
            | Op::View(_)
            | Op::Partition(_)
            | Op::BlockIndex
            | Op::LoadMasked
            | Op::Load { .. }
            | Op::GatherLoad
            | Op::Atomic(_)
            | Op::StoreMasked
            | Op::Store
            | Op::For
            | Op::While
            | Op::If
            | Op::Yield
            | Op::Prefetch
            | Op::Tiles(_)
            | Op::Print { .. }
            | Op::Assert { .. } => unreachable!("not a data op"),
        }
    }
}
