//! Loops over products of tiles that a producer copies to shared memory, some turns ahead of the consumers.
//!
//! A tile that a loop loads for products alone needn't pass through registers: an instruction copies it to shared
//! memory by a tensor map, and a warpgroup multiplies it from there. Shared memory has room for the tiles of several
//! turns, a *ring* of stages. Threads of their own, the *producer*, wait for a stage to be empty and copy to it; the
//! *consumers* wait for it to be full, and say when they have read it. A tile that is loaded before the loop, for all its
//! turns, lies in the ring of what is around that, of one stage, or of two where memory is left.
//!
//! A [`Pipeline`] says which loads of a region are done that way, what their tiles look like in shared memory
//! ([`SharedTile`]), and where. What the producer executes of the kernel besides is a [`Slice`]: the numbers that
//! its copies need, elements of tiles that have one among them. A loop whose producer would need more is none.

mod brought;
mod empty;
mod factor;
mod late;
mod obstacle;
mod pairs;
mod placement;
mod ring;
mod shared_tile;
mod slice;
mod spared;
mod stores;
mod tensor_memory;

pub use brought::{BroughtRight, Runs, Written, WrittenBy};
pub(super) use factor::{FactorId, selected as selected_factors};
pub use late::{Late, Overtaken};
pub(super) use obstacle::Obstacle;
pub use pairs::{PAIR, axis as pair_axis};
pub(super) use placement::Spare;
pub use ring::{Fill, Pipeline, RingFactor, TileCopy};
pub use shared_tile::{Major, SharedTile};
pub use slice::Slice;
pub use stores::{PANEL_ROW_BYTES, TensorStore, WARPGROUP_BYTES};
pub(super) use tensor_memory::changed_by_threads;
pub use tensor_memory::{Brought, LateSum, Leaving, Stages, TENSOR_ROWS, TensorMemory, TensorSums};

use super::numbers::Numbers;
use super::room::Room;
use super::{LaidOut, Threads, dtype_of};
use crate::analysis::Ranges;
use crate::analysis::uses::Uses;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::Op;
use crate::target::TargetDesc;
use crate::tensor_map::TensorMap;
use factor::Factors;
use obstacle::Obstacles;
use placement::Placement;
use std::collections::{HashMap, HashSet};

/// Alignment of a tile in shared memory, and so of shared memory itself, in bytes: the pattern of the widest swizzle repeats
/// so often.
pub const TILE_ALIGNMENT: u64 = 1024;

/// Threads of a warpgroup, of which the producer is one.
pub const WARPGROUP: u64 = 128;

/// Its warps.
const WARPGROUP_WARPS: u64 = 4;

/// The most warpgroups of consumers.
pub const MOST_CONSUMERS: u64 = 2;

/// The pipelines of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pipelines {
    by_region: HashMap<RegionId, Pipeline>,
    /// The regions, outer ones first.
    order: Vec<RegionId>,
    /// By the product that warpgroups do: its left and its right factor, if they lie in rings. Threads hold another left one,
    /// and bring another right one to shared memory.
    factors: HashMap<OpId, [Option<RingFactor>; 2]>,
    /// Right factors that consumers bring.
    brought: Vec<BroughtRight>,
    /// Tiles that no thread holds.
    in_rings: HashSet<ValueId>,
    /// What none but the producer needs.
    spared: HashSet<ValueId>,
    /// The stores that copies do, and where their panels begin in shared memory.
    stores: HashMap<OpId, TensorStore>,
    panels: u64,
    /// The tensor maps.
    maps: Vec<TensorMap>,
    /// What the producer executes.
    slice: Slice,
    /// Warps of the consumers.
    consumers: u64,
    /// The axis along which blocks are pairs that copy for each other.
    pairs: Option<usize>,
    /// The sums that no thread holds while their loops go on.
    tensor_memory: TensorMemory,
    /// Why the others of its products' factors lie in none.
    obstacles: Obstacles,
}

impl Pipelines {
    /// The pipelines of an optimized instance's kernel, in blocks of so many consumers if that is given, with so much
    /// shared memory left for what consumers exchange.
    pub(super) fn of(
        kernel: &Kernel,
        target: &TargetDesc,
        threads: Option<Threads>,
        room: Room,
    ) -> Pipelines {
        if target.warpgroup_matrix.is_empty() {
            return Pipelines::default();
        }
        let mut obstacles = factor::outside_of_loops(kernel, target);
        let found = Pipelines::found(kernel, target, threads, room, &mut obstacles);
        Pipelines { obstacles, ..found.unwrap_or_default() }
    }

    fn found(
        kernel: &Kernel,
        target: &TargetDesc,
        threads: Option<Threads>,
        room: Room,
        obstacles: &mut Obstacles,
    ) -> Option<Pipelines> {
        let ops = kernel.walk();
        if let Some(&op) = ops.iter().find(|&&op| kernel.op(op).op == Op::While) {
            let products = ops.iter().filter(|&&op| kernel.op(op).op == Op::Mma);
            let obstacle = Obstacle::While(kernel.op(op).loc);
            products.for_each(|&product| obstacles.add(FactorId::right(product), obstacle.clone()));
            return None;
        }
        let numbers = Numbers::of(kernel);
        let uses = Uses::of(kernel);
        let mut factors = Factors::of(&numbers, &uses, target, obstacles);
        if target.has_tensor_memory() {
            factors.in_rings = tensor_memory::retain(kernel, &uses, factors.in_rings, obstacles);
        }
        let consumers = consumers(factors.groups()?, threads);
        let (factors, products) = (factors.in_rings, factors.brought.into_iter().map(|(product, _)| product));
        let consumers = consumers.map_err(|obstacle| obstacles.add_all(&factors, &obstacle)).ok()?;
        let stores = stores::candidates(&numbers, target);
        let panel_bytes = if stores.is_empty() { 0 } else { panel_bytes(consumers) };
        let left_brought =
            if target.has_tensor_memory() { tensor_memory::brought_bytes(kernel, &factors) } else { 0 };
        let others = room.scratch.saturating_add(panel_bytes.max(left_brought));
        let available = u64::from(target.shared_bytes).saturating_sub(others);
        let shared = pairs::shared_by_pairs(kernel, &factors);
        let (ranges, spare) = (Ranges::of(kernel), room.spare);
        let products: Vec<OpId> = products.collect();
        let brought = brought::place(kernel, &products, available);
        let available = available.saturating_sub(brought::bytes(&brought));
        let placement =
            Placement { kernel, uses: &uses, ranges, brought: &products, shared, available, spare };
        let loads = factors.iter().map(|factor| (factor.id, factor.load)).collect();
        let found = placement.rings(factors, obstacles);
        let mut found = Pipelines { consumers, brought, ..found };
        if found.is_empty() {
            return None;
        }
        for product in products {
            found.factors.entry(product).or_default();
        }
        if target.has_tensor_memory() {
            let put = found.put_sums_in_tensor_memory(kernel, &uses, &loads);
            put.map_err(|(product, obstacle)| {
                obstacles.add(FactorId::right(product), obstacle);
                tensor_memory::add_others(kernel, product, obstacles);
            })
            .ok()?;
        }
        let mut fills = found.by_region.values().flat_map(|pipeline| &pipeline.fills);
        found.pairs = kernel.pairs.filter(|_| fills.any(Fill::is_shared));
        found.panels = found.rings_end().next_multiple_of(TILE_ALIGNMENT);
        for (op, store, map) in stores {
            let map = found.map(&map);
            found.stores.insert(op, TensorStore { map, ..store });
        }
        let begin = found.end_of_panels().next_multiple_of(TILE_ALIGNMENT);
        found.brought.iter_mut().for_each(|brought| brought.place += begin);
        let slice = found.sliced(kernel).expect("a factor's load is what a producer can execute");
        Some(Pipelines { slice, ..found })
    }

    /// Places the sums of all products in tensor memory, where these loads give factors that could lie in rings.
    ///
    /// # Errors
    /// A product whose sums can't lie there.
    fn put_sums_in_tensor_memory(
        &mut self,
        kernel: &Kernel,
        uses: &Uses,
        loads: &HashMap<FactorId, OpId>,
    ) -> Result<(), (OpId, Obstacle)> {
        self.tensor_memory = tensor_memory::place(kernel, uses, self, loads)?;
        // Who issues such products waits for none of them.
        let fills = self.by_region.values_mut().flat_map(|pipeline| &mut pipeline.fills);
        fills.for_each(|fill| fill.keeps_running = false);
        Ok(())
    }

    /// What the producer executes, and with it whoever has tensor cores multiply.
    ///
    /// # Errors
    /// What it can't execute of that.
    fn sliced(&self, kernel: &Kernel) -> Result<Slice, OpId> {
        let fills = self.by_region.values().flat_map(|pipeline| &pipeline.fills);
        let loads = fills.flat_map(|fill| &fill.copies).map(|copy| copy.load).collect();
        Slice::of(kernel, loads, self.tensor_memory.multiplied())
    }

    /// The number of a map, which copies of the same kind share.
    fn map(&mut self, map: &TensorMap) -> usize {
        self.maps.iter().position(|other| other == map).unwrap_or_else(|| {
            self.maps.push(map.clone());
            self.maps.len() - 1
        })
    }

    /// The axis along which blocks are pairs that copy for each other, if they are.
    pub fn pairs(&self) -> Option<usize> {
        self.pairs
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.by_region.is_empty()
    }

    /// The pipeline of a region.
    pub fn of_region(&self, region: RegionId) -> Option<&Pipeline> {
        self.by_region.get(&region)
    }

    /// The pipelines by their regions, in the order in which these begin.
    pub fn all(&self) -> impl Iterator<Item = (RegionId, &Pipeline)> {
        self.order.iter().map(|&region| (region, &self.by_region[&region]))
    }

    /// The region whose turns an op is one of, that waits for tiles of its ring or leaves some.
    pub fn read_by(&self, op: OpId) -> Option<RegionId> {
        self.all().find(|(_, pipeline)| pipeline.is_read_by(op)).map(|(region, _)| region)
    }

    /// The factors that lie in rings of a product that warpgroups do, if they do it.
    pub fn factors(&self, product: OpId) -> Option<&[Option<RingFactor>; 2]> {
        self.factors.get(&product)
    }

    /// The copy that a load stands for, with its pipeline and the number of its fill.
    pub fn copy(&self, load: OpId) -> Option<(&Pipeline, usize, &TileCopy)> {
        let fills = self.by_region.values().flat_map(|pipeline| {
            pipeline.fills.iter().enumerate().map(move |(number, fill)| (pipeline, number, fill))
        });
        let copies = fills.flat_map(|(pipeline, number, fill)| {
            fill.copies.iter().map(move |copy| (pipeline, number, copy))
        });
        copies.into_iter().find(|(.., copy)| copy.load == load)
    }

    /// Whether a tile lies in a ring, so that no thread holds it.
    pub fn holds(&self, tile: ValueId) -> bool {
        self.in_rings.contains(&tile)
    }

    /// Whether only copies need a value, so that no consumer has it.
    pub fn spares(&self, value: ValueId) -> bool {
        self.spared.contains(&value)
    }

    /// Whether consumers leave an op to the producer: its tile lies in a ring, or only copies need it.
    pub fn replace(&self, data: &OpData) -> bool {
        data.results.iter().any(|&result| self.holds(result) || self.spares(result))
    }

    /// Why a factor of a product lies in no ring: of a right one, why warpgroups don't do the product; of a left one that
    /// they take from registers, why, unless that is its place.
    pub(super) fn obstacle(&self, factor: FactorId) -> Option<&Obstacle> {
        let is_missed = match self.factors.get(&factor.product) {
            Some([left, _]) => factor.is_left() && left.is_none(),
            None => !factor.is_left(),
        };
        self.obstacles.of(factor).filter(|_| is_missed)
    }

    /// The tensor maps that a launch makes.
    pub fn maps(&self) -> &[TensorMap] {
        &self.maps
    }

    /// What the producer executes.
    pub fn slice(&self) -> &Slice {
        &self.slice
    }

    /// What the kernel has in tensor memory.
    pub fn tensor_memory(&self) -> &TensorMemory {
        &self.tensor_memory
    }

    /// The consumers, in warps.
    pub fn consumers(&self) -> u64 {
        self.consumers
    }

    /// Threads of the producer.
    pub fn producers(&self) -> u64 {
        if self.is_empty() { 0 } else { WARPGROUP }
    }

    /// The copy that a store is, if it is one.
    pub fn store(&self, op: OpId) -> Option<&TensorStore> {
        self.stores.get(&op)
    }

    /// Whether copies do some of the stores, of panels.
    pub fn has_panels(&self) -> bool {
        !self.stores.is_empty()
    }

    /// Where the panels of stores begin in shared memory, and left factors that consumers bring, a multiple of the pattern of
    /// their swizzle.
    pub fn panels(&self) -> u64 {
        self.panels
    }

    /// Keeps the stores of tiles that lie as they must, and finds how panels are written, and factors that consumers bring;
    /// threads do the others.
    pub(super) fn keep_stores(&mut self, laid_out: &LaidOut, target: &TargetDesc) {
        let place = |tile: ValueId| laid_out.distributions[&tile].clone();
        self.tensor_memory.find_matrices(&laid_out.instance, place);
        self.find_written(laid_out, target);
        self.stores.retain(|&op, store| {
            let tile = laid_out.instance.op(op).operands[1];
            let distribution = &laid_out.distributions[&tile];
            store.find_matrices(distribution, dtype_of(&laid_out.instance, tile), target);
            laid_out.products.values().any(|product| store.takes(distribution, product))
        });
        let copies =
            self.by_region.values().flat_map(|pipeline| &pipeline.fills).flat_map(|fill| &fill.copies);
        let used = copies.map(|copy| copy.map).chain(self.stores.values().map(|store| store.map));
        self.maps.truncate(used.max().map_or(0, |last| last + 1));
    }

    /// Divides the ops of the scheduled kernel among producer and consumers.
    pub(super) fn find_roles(&mut self, kernel: &Kernel) {
        if self.is_empty() {
            return;
        }
        self.slice = self.sliced(kernel).expect("what is converted between threads is a number still");
        self.spared = spared::spared(kernel, self);
    }

    /// Finds the products that are done a turn later.
    pub(super) fn find_late(&mut self, laid_out: &LaidOut) {
        if !self.tensor_memory.is_empty() {
            self.tensor_memory.find_late(&laid_out.instance);
            self.order_ahead();
            return;
        }
        let late: Vec<Option<Late>> =
            self.order.iter().map(|&region| Late::of(laid_out, self, region)).collect();
        let has_two = self.consumers == 2 * WARPGROUP_WARPS;
        for (region, late) in self.order.iter().zip(late) {
            self.by_region.entry(*region).and_modify(|pipeline| {
                pipeline.alternates = has_two && late.is_some();
                if let Some(late) = &late {
                    let body = &laid_out.instance.region(*region).ops;
                    pipeline.fills.iter_mut().for_each(|fill| late.order(body, &mut fill.readers));
                }
                pipeline.late = late;
            });
        }
    }

    /// Puts products that are multiplied a turn ahead before the others that read their tiles: the first waits for these, and
    /// the last leaves them.
    fn order_ahead(&mut self) {
        for (&region, pipeline) in &mut self.by_region {
            let ahead: HashSet<OpId> = self.tensor_memory.ahead(region).collect();
            let readers = pipeline.fills.iter_mut().map(|fill| &mut fill.readers);
            readers.for_each(|readers| readers.sort_by_key(|op| !ahead.contains(op)));
        }
    }

    /// Whether an op is done a turn later.
    pub fn is_late(&self, op: OpId) -> bool {
        self.late().any(|late| late.does(op))
    }

    /// Whether an op is done ahead of its turn, with a late product.
    pub fn is_ahead(&self, op: OpId) -> bool {
        self.late().any(|late| late.is_ahead(op))
    }

    /// Whether another product, which it stands before, is issued before it.
    pub fn is_overtaken(&self, op: OpId) -> bool {
        self.late().any(|late| late.overtaken.is_some_and(|overtaken| overtaken.product == op))
    }

    fn late(&self) -> impl Iterator<Item = &Late> {
        self.by_region.values().filter_map(|pipeline| pipeline.late.as_ref())
    }

    /// The regions in loops whose rings have one stage, so that the next turn's tiles wait until this one's were read.
    fn waiting_for_room(&self, kernel: &Kernel) -> Vec<RegionId> {
        let repeated = repeated(kernel);
        let single = self.all().filter(|(_, pipeline)| pipeline.stages == 1).map(|(region, _)| region);
        single.filter(|region| repeated.contains(region)).collect()
    }

    /// Whether more shared memory could hold tiles of a next turn.
    pub(super) fn wait_for_room(&self, kernel: &Kernel) -> bool {
        !self.waiting_for_room(kernel).is_empty()
    }

    /// The end of the shared memory of rings, and of what orders the sums of tensor memory.
    fn rings_end(&self) -> u64 {
        let rings = self.by_region.values().map(Pipeline::end);
        rings.max().unwrap_or(0).max(self.tensor_memory.end())
    }

    /// The end of the panels, and of left factors that consumers bring where these lie.
    fn end_of_panels(&self) -> u64 {
        let panels = if self.stores.is_empty() { 0 } else { panel_bytes(self.consumers) };
        match panels.max(self.tensor_memory.brought_bytes()) {
            0 => self.rings_end(),
            behind => self.panels + behind,
        }
    }

    /// Shared memory that all of them take, from its beginning.
    pub fn bytes(&self) -> u64 {
        self.end_of_panels().max(brought::bytes(&self.brought))
    }
}

/// The regions that loops execute again.
fn repeated(kernel: &Kernel) -> HashSet<RegionId> {
    let repeats = |op: &OpId| kernel.op(*op).op.is_loop();
    let loops = kernel.walk().into_iter().filter(repeats).flat_map(|op| &kernel.op(op).regions);
    let inside = |region| kernel.walk_in(region).into_iter().flat_map(|op| &kernel.op(op).regions).copied();
    loops.flat_map(|&region| inside(region).chain([region])).collect()
}

/// Shared memory for the panels of so many warps' stores.
fn panel_bytes(consumers: u64) -> u64 {
    consumers / WARPGROUP_WARPS * WARPGROUP_BYTES
}

/// How many warps consume: warpgroups, of which so many have rows of every product.
fn consumers(most: u64, threads: Option<Threads>) -> Result<u64, Obstacle> {
    let Some(threads) = threads.map(Threads::count) else { return Ok(WARPGROUP_WARPS * most) };
    let groups = threads / WARPGROUP;
    if !threads.is_multiple_of(WARPGROUP) || !(1..=most).contains(&groups) {
        return Err(Obstacle::Threads { threads, groups: most });
    }
    Ok(WARPGROUP_WARPS * groups)
}

#[cfg(test)]
pub(super) mod tests;
