//! The one walk of a kernel that finds what it does, and where.

use super::form::{Form, Made};
use super::{
    Access, Axis, Counts, Estimate, Kind, Loop, Operation, Place, ProductShape, Side, Tensor, operations,
};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, RegionId, ValueId};
use crate::ops::{AtomicKind, Literal, Op};
use crate::specialize::Instance;
use crate::types::Type;
use crate::view::Source;
use std::collections::{BTreeMap, HashMap};

pub(super) fn collect(instance: &Instance) -> Counts {
    let kernel: &Kernel = instance;
    let space = kernel.grid_space().unwrap_or_default();
    let counts = Counts {
        space,
        forms: Default::default(),
        loops: Vec::new(),
        work: BTreeMap::new(),
        accesses: Vec::new(),
        tensors: tensors(kernel),
        estimates: Vec::new(),
        is_elementwise: instance.walk().into_iter().all(|op| is_elementwise(&instance.op(op).op)),
    };
    let per_tile = !kernel.is_persistent();
    let place = Place { per_tile, loops: Vec::new() };
    let mut walk = Walk { kernel, counts, place, scalars: HashMap::new(), loads: HashMap::new() };
    walk.region(kernel.body());
    walk.counts
}

/// Whether an op gives elements of those at their place, or none of a tile.
fn is_elementwise(op: &Op) -> bool {
    let gives_elements = op.is_leaf() || op.is_load() || matches!(op, Op::Splat(_) | Op::Iota { .. });
    let names = matches!(op, Op::View(_) | Op::Partition(_) | Op::BlockIndex | Op::Prefetch | Op::Yield);
    gives_elements || op.is_store() || names
}

fn tensors(kernel: &Kernel) -> Vec<Tensor> {
    let tensor = |(argument, &param): (usize, &ValueId)| {
        let Type::Tensor(ty) = kernel.ty(param) else { return None };
        let name = kernel.value(param).name.clone().unwrap_or_default();
        let bytes = dtype(kernel, param).bytes() as u64;
        let (extents, strides) = (ty.extents.clone(), ty.strided().strides);
        Some(Tensor { name, extents, strides, bytes, argument })
    };
    kernel.params().iter().enumerate().filter_map(tensor).collect()
}

fn dtype(kernel: &Kernel, value: ValueId) -> DType {
    kernel.ty(value).elem().known().expect("an instance has no dtype parameters")
}

fn extents(kernel: &Kernel, value: ValueId) -> Vec<u64> {
    let Type::Tile(tile) = kernel.ty(value) else { return Vec::new() };
    let extent = |dim: &Dim| dim.as_const().expect("an instance's tile extents are numbers") as u64;
    tile.shape.iter().map(extent).collect()
}

/// Elements of a tile; one of a scalar.
fn elements(kernel: &Kernel, value: ValueId) -> u64 {
    extents(kernel, value).iter().product()
}

impl ProductShape {
    /// The shape of an `mma` of an instance.
    pub(crate) fn of(kernel: &Kernel, data: &OpData) -> ProductShape {
        let (a, result) = (extents(kernel, data.operands[0]), extents(kernel, data.results[0]));
        let [batch @ .., m, n] = result.as_slice() else { unreachable!("verified: `mma` has matrices") };
        let k = *a.last().expect("verified: `mma` has matrices");
        ProductShape {
            batch: batch.iter().product(),
            m: *m,
            n: *n,
            k,
            factor: dtype(kernel, data.operands[0]),
        }
    }
}

struct Walk<'k> {
    kernel: &'k Kernel,
    counts: Counts,
    place: Place,
    /// The integers that a launch decides.
    scalars: HashMap<ValueId, Form>,
    /// The accesses that load tiles.
    loads: HashMap<ValueId, usize>,
}

impl Walk<'_> {
    fn add(&mut self, kind: Kind, count: u64) {
        if count > 0 {
            *self.counts.work.entry((self.place.clone(), kind)).or_default() += count;
        }
    }

    fn region(&mut self, region: RegionId) {
        let kernel = self.kernel;
        for &op in &kernel.region(region).ops {
            self.op(kernel.op(op));
        }
    }

    fn op(&mut self, data: &OpData) {
        let kernel = self.kernel;
        if let Some(form) = self.scalar(data) {
            self.scalars.insert(data.results[0], form);
        }
        match &data.op {
            Op::BlockIndex => self.index(&data.results),
            // In a persistent kernel these are of blocks, which aren't tiles: how many there are is the launch's choice.
            Op::BlockId { .. } | Op::BlockCount { .. } if kernel.is_persistent() => {}
            Op::BlockId { axis } => {
                self.define(data.results[0], Made::Variable(*axis));
            }
            Op::BlockCount { axis } => {
                self.define(data.results[0], Made::Extent(self.counts.space[*axis].clone()));
            }
            Op::For => self.for_loop(data),
            Op::While => {
                self.counts.estimates.push(Estimate::Turns(data.loc));
                self.region(data.regions[0]);
            }
            Op::If => self.branches(data),
            Op::Tiles(_) => {
                let outer = std::mem::replace(&mut self.place, Place { per_tile: true, loops: Vec::new() });
                self.region(data.regions[0]);
                self.place = outer;
            }
            Op::Mma => self.product(data),
            Op::Reduce { .. } => {
                let [operand, result] = [data.operands[0], data.results[0]];
                self.folded(operand, elements(kernel, operand) - elements(kernel, result));
            }
            Op::Scan { .. } => self.folded(data.operands[0], elements(kernel, data.operands[0])),
            Op::ReduceWith { .. } | Op::ScanWith { .. } => self.fold(data),
            Op::Sort { axis, .. } => {
                // Every element is compared at each step of a network.
                let merges = u64::from(extents(kernel, data.operands[0])[*axis].next_power_of_two().ilog2());
                let steps = merges * (merges + 1) / 2;
                self.folded(data.operands[0], steps * elements(kernel, data.operands[0]));
            }
            Op::Histogram(_) => self.folded(data.operands[0], elements(kernel, data.operands[0])),
            Op::GatherLoad => self.scattered(data, [true, false]),
            Op::Atomic(atomic) => {
                let [reads, writes] = [AtomicKind::Store, AtomicKind::Load].map(|other| atomic.kind != other);
                self.scattered(data, [reads, writes]);
            }
            _ if data.op.is_load() => self.access(data, false),
            _ if data.op.is_store() => self.access(data, true),
            by_element => {
                let Some(&operand) = data.operands.last() else { return };
                if let Some((operation, times)) = operations::of_elements(by_element, dtype(kernel, operand))
                {
                    let count = times * elements(kernel, data.results[0]);
                    self.add(Kind::Operation(operation, dtype(kernel, operand)), count);
                }
            }
        }
    }

    /// The form of what an op gives, if that is an integer that a launch decides.
    fn scalar(&mut self, data: &OpData) -> Option<Form> {
        let operand = |number: usize| self.scalars.get(&data.operands[number]).copied();
        let format = || dtype(self.kernel, data.results[0]);
        let made = match &data.op {
            Op::Extent(dim) => Made::Extent(dim.clone()),
            Op::Constant { value: Literal::Int(value), .. } if format().is_int() => Made::Constant(*value),
            Op::Binary(op) => Made::Binary(*op, format(), [operand(0)?, operand(1)?]),
            Op::Cast(_) => {
                let of = operand(0)?;
                match format() {
                    to if !to.is_int() => return None,
                    to if to.contains_integers_of(dtype(self.kernel, data.operands[0])) => return Some(of),
                    to => Made::Cast(to, of),
                }
            }
            _ => return None,
        };
        Some(self.counts.forms.add(made))
    }

    /// Says what a value is that no op of integers gives.
    fn define(&mut self, value: ValueId, made: Made) {
        let form = self.counts.forms.add(made);
        self.scalars.insert(value, form);
    }

    /// The block's place in the grid.
    fn index(&mut self, results: &[ValueId]) {
        for (axis, &result) in results.iter().enumerate() {
            self.define(result, Made::Variable(axis));
        }
    }

    fn for_loop(&mut self, data: &OpData) {
        let kernel = self.kernel;
        let [Some(start), Some(end)] = [0, 1].map(|bound| self.scalars.get(&data.operands[bound]).copied())
        else {
            self.counts.estimates.push(Estimate::Turns(data.loc));
            return self.region(data.regions[0]);
        };
        let number = self.number_of(Loop { start, end });
        let counter = kernel.region(data.regions[0]).params[0];
        self.define(counter, Made::Variable(self.counts.space.len() + number));
        self.place.loops.push(number);
        let loads = |&op: &_| kernel.op(op).op.is_load();
        if kernel.region(data.regions[0]).ops.iter().any(loads) {
            self.add(Kind::LoadingTurn, 1);
        }
        self.region(data.regions[0]);
        self.place.loops.pop();
    }

    /// A loop's number: that of another one of as many turns which isn't around it, so that what both sides of a branch do
    /// in loops alike is found to be the same.
    fn number_of(&mut self, turns: Loop) -> usize {
        let known = self.counts.loops.iter().enumerate();
        let mut known = known.filter(|(number, _)| !self.place.loops.contains(number));
        if let Some((number, _)) = known.find(|(_, known)| **known == turns) {
            return number;
        }
        self.counts.loops.push(turns);
        self.counts.loops.len() - 1
    }

    /// Of what both sides do, the larger number; a tile that both read or write counts once.
    fn branches(&mut self, data: &OpData) {
        self.counts.estimates.push(Estimate::Branch(data.loc));
        let before = std::mem::take(&mut self.counts.work);
        let mut most = BTreeMap::new();
        let mut sides: Vec<Access> = Vec::new();
        let first = self.counts.accesses.len();
        for &region in &data.regions {
            self.region(region);
            for (key, count) in std::mem::take(&mut self.counts.work) {
                let known: &mut u64 = most.entry(key).or_default();
                *known = count.max(*known);
            }
            let mut is_found = vec![false; sides.len()];
            for access in self.counts.accesses.drain(first..) {
                let is_same = |&other: &usize| !is_found[other] && sides[other].is_of_same_elements(&access);
                match (0..is_found.len()).find(is_same) {
                    Some(same) => {
                        is_found[same] = true;
                        sides[same].factor = sides[same].factor.or(access.factor);
                    }
                    None => sides.push(access),
                }
            }
        }
        self.counts.accesses.append(&mut sides);
        self.counts.work = before;
        for (key, count) in most {
            *self.counts.work.entry(key).or_default() += count;
        }
    }

    fn product(&mut self, data: &OpData) {
        self.add(Kind::Product(ProductShape::of(self.kernel, data)), 1);
        for (side, mut factor) in [Side::Left, Side::Right].into_iter().zip(data.operands.iter().copied()) {
            if let Some(OpData { op: Op::Permute(_), operands, .. }) = self.kernel.definition(factor) {
                factor = operands[0];
            }
            if let Some(&access) = self.loads.get(&factor) {
                let access = &mut self.counts.accesses[access];
                if !access.place.loops.is_empty() && access.place == self.place {
                    access.factor.get_or_insert(side);
                }
            }
        }
    }

    /// So many elements joined.
    fn folded(&mut self, operand: ValueId, count: u64) {
        let dtype = dtype(self.kernel, operand);
        let operation = if dtype.is_float() { Operation::Arithmetic } else { Operation::Other };
        self.add(Kind::Operation(operation, dtype), count);
    }

    /// A region that joins elements runs for each of them.
    fn fold(&mut self, data: &OpData) {
        let before = std::mem::take(&mut self.counts.work);
        self.region(data.regions[0]);
        let once = std::mem::replace(&mut self.counts.work, before);
        for (key, count) in once {
            *self.counts.work.entry(key).or_default() += count * elements(self.kernel, data.operands[0]);
        }
    }

    fn argument(&self, tensor: ValueId) -> usize {
        let argument = Source::of(self.kernel, tensor).argument;
        let position = self.kernel.params().iter().position(|&param| param == argument);
        position.expect("a tensor shows an argument")
    }

    /// Elements at indices that are data.
    fn scattered(&mut self, data: &OpData, [reads, writes]: [bool; 2]) {
        self.counts.estimates.push(Estimate::Indices(data.loc));
        let (tensor, tile) = (data.operands[0], data.results.first().unwrap_or(&data.operands[1]));
        let bytes = elements(self.kernel, *tile) * dtype(self.kernel, tensor).bytes() as u64;
        let argument = self.argument(tensor);
        if reads {
            self.add(Kind::Read(argument), bytes);
        }
        if writes {
            self.add(Kind::Written(argument), bytes);
        }
    }

    /// A tile of a partition view, at an index or at the block's own.
    fn access(&mut self, data: &OpData, writes: bool) {
        let kernel = self.kernel;
        let view = data.operands[0];
        let ty = kernel.ty(view).as_partition().expect("verified: a view");
        let argument = self.argument_of(view);
        let number = |dim: &Dim| dim.as_const().expect("an instance's tile extents are numbers");
        let forms = &mut self.counts.forms;
        let own: Vec<Option<Form>> =
            (0..ty.tile.len()).map(|axis| Some(forms.add(Made::Variable(axis)))).collect();
        let given: Vec<Option<Form>> =
            data.tile_index().iter().map(|value| self.scalars.get(value).copied()).collect();
        let indices = ty.tile_index(&own, &given);
        if indices.contains(&None) {
            self.counts.estimates.push(Estimate::Indices(data.loc));
        }
        let places = ty.tensor.extents.iter().zip(ty.tensor.strided().strides);
        let axes = indices.into_iter().zip(&ty.tile).zip(&ty.steps).zip(places);
        let axes = axes.map(|(((index, tile), step), (extent, stride))| Axis {
            index,
            step: number(step),
            tile: number(tile),
            extent: extent.clone(),
            stride,
        });
        let kind = if writes { Kind::Written(argument) } else { Kind::Read(argument) };
        let bytes = dtype(kernel, view).bytes() as u64;
        if let Some(&tile) = data.results.first() {
            self.loads.insert(tile, self.counts.accesses.len());
        }
        let access = Access { place: self.place.clone(), kind, bytes, axes: axes.collect(), factor: None };
        self.counts.accesses.push(access);
    }

    /// The argument that a partition view cuts.
    fn argument_of(&self, view: ValueId) -> usize {
        let partition = self.kernel.definition(view).expect("verified: a partition gives a view");
        self.argument(partition.operands[0])
    }
}
