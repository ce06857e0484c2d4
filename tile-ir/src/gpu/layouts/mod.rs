//! Gives every tile of a kernel a distribution, and converts where one isn't what an op asks for.
//!
//! Ops are read in order. Some are **anchors**, which know what they want: loads and stores want neighbours in memory
//! in neighbouring threads, a matrix product its accumulators in blocks ([`anchors`]). From there distributions
//! follow the elements: through elementwise ops, reductions, loops and branches. What can be had in any distribution
//! (a constant, a broadcast, what is read from shared memory) has none until somebody wants one ([`demand`]).
//!
//! Loops are read once: what they carry lies as the sums of a product do if it is such sums, and otherwise as it does
//! before the loop, or, where that leaves a choice or it has fewer elements than there are threads and is computed anew, as the
//! first op in the loop wants it.

mod anchors;
mod beside;
mod demand;
mod runs;

pub(super) use runs::{Runs, runs};

use super::{Access, Pipelines, Product, Threads, shape_of};
use crate::gpu::exchange::scan;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::loc::Loc;
use crate::ops::{Carried, Op, UnaryOp};
use crate::target::SharedBanks;
use crate::types::Type;
use std::collections::HashMap;
use tile_layout::linear::{Distribution, Operand};

/// What distributions follow from.
#[derive(Clone, Copy)]
pub(super) struct Basis<'k> {
    pub(super) threads: Threads,
    pub(super) banks: SharedBanks,
    pub(super) accesses: &'k HashMap<OpId, Access>,
    pub(super) products: &'k HashMap<OpId, Product>,
    pub(super) pipelines: &'k Pipelines,
}

/// What becomes of an elementwise op none of whose operands has a distribution.
#[derive(Clone, Copy)]
enum WithoutOne {
    /// It lies as is usual for its extents.
    AsUsual,
    /// It lies where it is wanted first.
    WhenWanted,
}

/// Distributions in the making.
pub(super) struct Layouts<'k> {
    kernel: &'k mut Kernel,
    basis: Basis<'k>,
    /// Tiles that are sums of a product, or made of them element by element.
    sums: HashMap<ValueId, OpId>,
    /// Loads of tiles that meet the sums of a product.
    beside: HashMap<OpId, OpId>,
    /// By a tile's extents and the axis along which it is contiguous: neighbours that one instruction may move.
    vectors: HashMap<(Vec<u64>, usize), u64>,
    runs: &'k Runs,
    found: HashMap<ValueId, Distribution>,
    definitions: HashMap<ValueId, OpId>,
    /// The region of every op, and of every region parameter.
    homes: HashMap<OpId, RegionId>,
    params: HashMap<ValueId, RegionId>,
    /// The same elements in another distribution.
    copies: HashMap<(ValueId, Distribution), ValueId>,
    /// The place of the op that wanted a tile last: a conversion is there for its sake.
    wanted_at: Loc,
    /// What a copy is a copy of.
    origins: HashMap<ValueId, ValueId>,
}

impl<'k> Layouts<'k> {
    /// Distributions of all tiles of a kernel.
    pub(super) fn assign(
        kernel: &'k mut Kernel,
        basis: Basis<'k>,
        runs: &'k Runs,
    ) -> HashMap<ValueId, Distribution> {
        let sums = beside::sums(kernel, basis.products);
        let mut layouts = Layouts {
            vectors: anchors::vectors(kernel, basis.threads, basis.accesses),
            beside: beside::beside_sums(kernel, &sums),
            sums,
            kernel,
            basis,
            runs,
            found: HashMap::new(),
            definitions: HashMap::new(),
            homes: HashMap::new(),
            params: HashMap::new(),
            copies: HashMap::new(),
            wanted_at: Loc::UNKNOWN,
            origins: HashMap::new(),
        };
        let body = layouts.kernel.body();
        layouts.read_definitions(body);
        layouts.region(body);
        for value in layouts.kernel.value_ids() {
            if layouts.is_defined(value) && layouts.is_tile(value) && !basis.pipelines.holds(value) {
                layouts.ensure(value);
            }
        }
        layouts.found
    }

    fn read_definitions(&mut self, region: RegionId) {
        let data = self.kernel.region(region).clone();
        self.params.extend(data.params.iter().map(|&param| (param, region)));
        for op in data.ops {
            self.homes.insert(op, region);
            let OpData { results, regions, .. } = self.kernel.op(op).clone();
            self.definitions.extend(results.into_iter().map(|result| (result, op)));
            for inner in regions {
                self.read_definitions(inner);
            }
        }
    }

    fn region(&mut self, region: RegionId) {
        for op in self.kernel.region(region).ops.clone() {
            self.op(op);
        }
    }

    fn is_defined(&self, value: ValueId) -> bool {
        self.definitions.contains_key(&value) || self.params.contains_key(&value)
    }

    fn shape(&self, tile: ValueId) -> Vec<u64> {
        shape_of(self.kernel, tile).expect("verified: a tile")
    }

    fn is_tile(&self, value: ValueId) -> bool {
        shape_of(self.kernel, value).is_some()
    }

    /// Those of the values that are tiles, with their positions.
    fn tiles_of(&self, values: &[ValueId]) -> Vec<(usize, ValueId)> {
        values.iter().copied().enumerate().filter(|&(_, value)| self.is_tile(value)).collect()
    }

    fn set(&mut self, tile: ValueId, distribution: Distribution) {
        let before = self.found.insert(tile, distribution);
        debug_assert!(before.is_none(), "a tile gets its distribution once");
    }

    /// Makes an operand a tile of this distribution.
    fn want(&mut self, op: OpId, operand: usize, distribution: &Distribution) {
        let value = self.kernel.op(op).operands[operand];
        self.wanted_at = self.kernel.op(op).loc;
        let placed = self.resolve(value, distribution);
        self.kernel.op_mut(op).operands[operand] = placed;
    }

    fn op(&mut self, op: OpId) {
        let data = self.kernel.op(op).clone();
        if self.basis.pipelines.replace(&data) {
            return;
        }
        if let Some((axis, _)) = scan::joins_parts(&data.op) {
            return self.join_parts(op, &data, axis);
        }
        match &data.op {
            Op::LoadMasked | Op::Load { .. } => {
                let tile = data.results[0];
                let distribution = self.beside_sums(op, tile).unwrap_or_else(|| self.coalesced(op, tile));
                self.set(tile, distribution);
            }
            Op::StoreMasked | Op::Store => self.store(op, &data),
            Op::Reduce { axis, .. } => self.reduce(&data, *axis),
            Op::Mma | Op::MmaScaled => self.mma(op, &data),
            kind if kind.is_loop() => self.carried(op, &data),
            Op::If => self.branches(&data),
            Op::Permute(permutation) => self.permute(&data, permutation),
            Op::Reshape(_) => self.reshape(&data),
            Op::Gather { .. } => self.like_operand(&data, 1),
            Op::Scatter { .. } => self.like_operand(&data, 0),
            Op::GatherLoad if self.basis.accesses.contains_key(&op) => self.gather_rows(op, &data),
            Op::Atomic(_) if self.basis.accesses.contains_key(&op) => self.scatter_rows(op, &data),
            Op::GatherLoad | Op::Atomic(_) => self.alike(op, &data, WithoutOne::AsUsual),
            Op::ReduceWith { .. } if data.results.len() > 1 => self.folded_together(&data),
            // Had in any distribution when it is wanted, from its operand in the one that follows.
            Op::Splat(_) | Op::Iota { .. } | Op::Broadcast(_) | Op::Yield => {}
            // Where a product wants it: what it rounds may then be read from shared memory part by part.
            Op::Unary(UnaryOp::RoundTf32) => {}
            leaf if leaf.is_leaf() => self.alike(op, &data, WithoutOne::WhenWanted),
            // Through shared memory: from any distribution to any.
            _ => self.ensure_all(&data.operands),
        }
    }

    fn ensure_all(&mut self, operands: &[ValueId]) {
        for (_, tile) in self.tiles_of(operands) {
            self.ensure(tile);
        }
    }

    /// An elementwise op: as its first operand that has a distribution.
    fn alike(&mut self, op: OpId, data: &OpData, without: WithoutOne) {
        let tiles = self.tiles_of(&data.operands);
        let known = tiles.iter().find_map(|(_, tile)| self.found.get(tile).cloned());
        let usual = || Some(self.usual(&self.shape(tiles.first()?.1)));
        let otherwise = || match without {
            WithoutOne::AsUsual => usual(),
            WithoutOne::WhenWanted => None,
        };
        let Some(distribution) = known.or_else(otherwise) else { return };
        for (operand, _) in tiles {
            self.want(op, operand, &distribution);
        }
        for &result in &data.results {
            self.set(result, distribution.clone());
        }
    }

    /// A gather of neighbours in memory, which neighbouring threads read. Its indices are wanted there, too: along a row
    /// they are repeated or counted, which is done again in any distribution.
    fn gather_rows(&mut self, op: OpId, data: &OpData) {
        let distribution = self.coalesced(op, data.results[0]);
        for operand in 2..data.operands.len() {
            self.want(op, operand, &distribution);
        }
        self.set(data.results[0], distribution);
    }

    /// An atomic operation on neighbours in memory: where its values lie, if that reaches whole sectors, and otherwise in
    /// neighbouring threads.
    fn scatter_rows(&mut self, op: OpId, data: &OpData) {
        let Type::Tensor(tensor) = self.kernel.ty(data.operands[0]) else {
            unreachable!("verified: a tensor")
        };
        let values = data.operands[1 + tensor.extents.len()];
        let known = self.found.get(&values).filter(|known| self.writes_sectors(op, values, known)).cloned();
        let distribution = known.unwrap_or_else(|| self.coalesced(op, values));
        for operand in 1..data.operands.len() {
            self.want(op, operand, &distribution);
        }
        for &result in &data.results {
            self.set(result, distribution.clone());
        }
    }

    /// The result lies as an operand does; the other operands anywhere.
    fn like_operand(&mut self, data: &OpData, operand: usize) {
        self.ensure_all(&data.operands);
        let distribution = self.found[&data.operands[operand]].clone();
        self.set(data.results[0], distribution);
    }

    fn reduce(&mut self, data: &OpData, axis: usize) {
        let distribution = self.ensure(data.operands[0]);
        let reduced = distribution.without_axis(axis).expect("a part of a distribution is one");
        self.set(data.results[0], reduced);
    }

    /// Elements of lines whose parts are joined stay where they lie, if that is by bits of places; those of several operands
    /// lie alike.
    fn join_parts(&mut self, op: OpId, data: &OpData, axis: usize) {
        let known = self.found.get(&data.operands[0]).filter(|known| scan::steps(known, axis).is_some());
        let distribution = known.cloned().unwrap_or_else(|| self.usual(&self.shape(data.operands[0])));
        for operand in 0..data.results.len() {
            self.want(op, operand, &distribution);
        }
        let of_results = match data.op {
            Op::ReduceWith { .. } => {
                distribution.without_axis(axis).expect("a part of a distribution is one")
            }
            _ => distribution,
        };
        data.results.iter().for_each(|&result| self.set(result, of_results.clone()));
    }

    /// A line's results are folded in one go, so that they lie alike.
    fn folded_together(&mut self, data: &OpData) {
        self.ensure_all(&data.operands);
        let usual = self.usual(&self.shape(data.results[0]));
        for &result in &data.results {
            self.set(result, usual.clone());
        }
    }

    fn permute(&mut self, data: &OpData, permutation: &[usize]) {
        if let Some(distribution) = self.found.get(&data.operands[0]) {
            let moved = distribution.permuted(permutation).expect("axes in another order are a distribution");
            self.set(data.results[0], moved);
        }
    }

    /// A reshaped tile stays where it is if the new extents allow that; otherwise it goes through shared memory.
    fn reshape(&mut self, data: &OpData) {
        let shape = self.shape(data.results[0]);
        if let Some(moved) = self.found.get(&data.operands[0]).and_then(|tile| tile.reshaped(&shape)) {
            self.set(data.results[0], moved);
        }
    }

    fn mma(&mut self, op: OpId, data: &OpData) {
        let shape = self.shape(data.results[0]);
        let distribution = match self.basis.products.get(&op) {
            Some(product) => {
                for (i, operand) in [Operand::A, Operand::B].into_iter().enumerate() {
                    if self.basis.pipelines.holds(data.operands[i]) {
                        continue;
                    }
                    if operand == Operand::B && self.basis.pipelines.brought_right_for(op).is_some() {
                        // It is brought to shared memory from anywhere.
                        self.ensure(data.operands[i]);
                        continue;
                    }
                    let factor = product.distribution(&self.shape(data.operands[i]), operand);
                    self.want(op, i, &factor);
                }
                // Scales follow the sums.
                let scales = [Operand::A, Operand::B].into_iter().zip(3..data.operands.len());
                for (operand, i) in scales {
                    let place = product.distribution_of_scales(&self.shape(data.operands[i]), operand);
                    self.want(op, i, &place);
                }
                product.distribution(&shape, Operand::Accumulator)
            }
            None => {
                self.ensure_all(&data.operands[..2]);
                self.accumulator(&shape)
            }
        };
        self.want(op, 2, &distribution);
        self.set(data.results[0], distribution);
    }

    fn carried(&mut self, op: OpId, data: &OpData) {
        let (at, region) = (Carried::of(&data.op).expect("it is a loop"), data.regions[0]);
        let params: Vec<ValueId> = self.kernel.region(region).params[at.param..].to_vec();
        let yielded = |layouts: &Self, i| {
            let end = layouts.last_op(region)?;
            Some(layouts.kernel.op(end).operands[at.yielded + i])
        };
        for (i, &param) in params.iter().enumerate() {
            let initial = self.found.get(&data.operands[at.initial + i]);
            let is_open = |it: &Distribution| self.is_few(it) && self.is_computed(yielded(self, i));
            let initial = initial.filter(|it| !is_open(it)).cloned();
            if let Some(distribution) = self.place_of_sums(data.results[i]).or(initial) {
                self.set(param, distribution);
            }
        }
        self.region(region);
        let end = self.last_op(region);
        for (i, param) in self.tiles_of(&params) {
            let yielded = yielded(self, i);
            if !self.found.contains_key(&param) {
                let values = yielded.into_iter().chain([data.operands[at.initial + i]]);
                let next = values.filter_map(|value| self.found.get(&value)).next().cloned();
                let distribution = next.unwrap_or_else(|| self.usual(&self.shape(param)));
                self.set(param, distribution);
            }
            let distribution = self.found[&param].clone();
            self.want(op, at.initial + i, &distribution);
            if let Some(end) = end {
                self.want(end, at.yielded + i, &distribution);
            }
            self.set(data.results[i], distribution);
        }
    }

    /// Whether a tile has fewer elements than there are threads, as what is left of rows has. Where it lies before a loop says
    /// little then of where the loop wants it, and it is brought there once.
    fn is_few(&self, distribution: &Distribution) -> bool {
        distribution.shape().iter().product::<u64>() < self.basis.threads.count()
    }

    /// Whether a tile is computed from others. One that is loaded for the next turn isn't moved before that: it would be waited
    /// for.
    fn is_computed(&self, tile: Option<ValueId>) -> bool {
        let made = tile.and_then(|tile| self.definitions.get(&tile)).map(|&op| &self.kernel.op(op).op);
        made.is_some_and(|op| op.is_leaf() || matches!(op, Op::Reduce { .. }))
    }

    fn branches(&mut self, data: &OpData) {
        data.regions.iter().for_each(|&region| self.region(region));
        let ends: Vec<OpId> = data.regions.iter().filter_map(|&region| self.last_op(region)).collect();
        for (i, result) in self.tiles_of(&data.results) {
            let known =
                ends.iter().find_map(|&end| self.found.get(&self.kernel.op(end).operands[i]).cloned());
            let distribution = known.unwrap_or_else(|| self.usual(&self.shape(result)));
            for &end in &ends {
                self.want(end, i, &distribution);
            }
            self.set(result, distribution);
        }
    }

    /// The `yield` of a region, which gives what the region's op does.
    fn last_op(&self, region: RegionId) -> Option<OpId> {
        let last = *self.kernel.region(region).ops.last()?;
        (self.kernel.op(last).op == Op::Yield).then_some(last)
    }
}
