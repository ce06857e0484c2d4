//! Products whose sums lie in tensor memory: one thread has the tensor cores add to them, and consumers load them (PTX ISA,
//! "TensorCore 5th Generation Family Instructions").
//!
//! Sums to which only the next turn's product adds are *kept*: no thread holds them while their loop goes on, and consumers
//! load them when it is over. Those that begin at zero in every turn are loaded in every turn; sums that threads change between
//! turns are made such, and what was multiplied is added to them by threads ([`changed_by_threads`]).
//!
//! A right factor lies in a ring. A left one lies there, too, or consumers *bring* it to shared memory where they computed it.
//! A kernel one of whose products isn't like that has none of them in tensor memory.
//!
//! Where what is around a loop is executed again, as the tile of the grid of a block that goes on to further ones, and there is
//! room, kept sums have two stages: those of the next turn are added up while consumers load these. So have those of a turn
//! that is multiplied *ahead* of the turn before, whose other products wait for what consumers bring.

use super::super::dtype_of;
use super::super::products::{extents, share_columns};
use super::factor::{Factor, FactorId, carries_sums, products_within};
use super::obstacle::{BringingLimit, Named, Obstacle, Obstacles};
use super::ring::BARRIER_BYTES;
use super::shared_tile::SharedTile;
use super::{Pipelines, Slice, TILE_ALIGNMENT, WARPGROUP_WARPS, repeated};
use crate::analysis::uses::Uses;
use crate::gpu::exchange::swizzled::MatrixMove;
use crate::kernel::{Kernel, OpId, RegionId, ValueId};
use crate::ops::{BinaryOp, Carried, Op};
use std::collections::HashMap;

/// Columns of a multiprocessor's tensor memory: a word of 32 bits in each of 128 lanes (PTX ISA, "Tensor Memory").
const COLUMNS: u64 = 512;

/// The fewest columns that are allocated (PTX ISA, "tcgen05.alloc").
const LEAST_COLUMNS: u64 = 32;

/// Lanes of tensor memory, each of which has a row of a product.
pub const TENSOR_ROWS: u64 = 128;

/// The most columns of a left factor that a warpgroup brings: those that it could load, since it has either alike.
const MOST_BROUGHT_COLUMNS: u64 = 256;

/// Shared memory for the address of what a block has allocated: a word of 32 bits, padded.
const ADDRESS_BYTES: u64 = 8;

/// Bytes of the elements that consumers bring to shared memory: those that matrix stores write.
const BROUGHT_BYTES: usize = 2;

/// Places that are filled and left in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// The region whose turns take them in order.
    pub home: RegionId,
    /// How many there are.
    pub count: u64,
    /// Where their mbarriers begin in shared memory.
    barriers: u64,
}

impl Stages {
    /// Where the mbarrier is that says that stage 0 is filled; those of later stages follow it.
    pub fn full(&self) -> u64 {
        self.barriers
    }

    /// Where the mbarrier is at which stage 0 is left; those of later stages follow it.
    pub fn empty(&self) -> u64 {
        self.barriers + self.count * BARRIER_BYTES
    }

    fn end(&self) -> u64 {
        self.empty() + self.count * BARRIER_BYTES
    }
}

/// Sums that are filled and loaded together: those that a loop keeps, or those of one product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSums {
    /// Their stages.
    pub stages: Stages,
    /// The body of the products' loop.
    pub body: RegionId,
    /// Whether the loop keeps them.
    pub are_kept: bool,
    /// How consumers say that they have loaded them.
    pub leaving: Leaving,
    /// The products, each with its first column in a stage: that of the first rows' sums, behind which those of further rows
    /// lie.
    pub products: Vec<(OpId, u64)>,
    /// The first column.
    pub first: u64,
    /// Columns of a stage.
    pub stage_columns: u64,
    /// What consumers add them to a turn later, if they do.
    pub late: Option<LateSum>,
}

/// An addition of a product's sums that consumers do where the next turn first needs it, or behind the loop: meanwhile they
/// compute what that turn multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateSum {
    /// The addition, in place of which its first operand is carried on.
    pub addition: OpId,
    /// The number of what the loop carries.
    pub number: usize,
    /// What is carried, in a turn.
    pub carried: ValueId,
    /// The op of a turn that is the first to need it.
    pub first_use: OpId,
}

/// How consumers say that they have loaded sums, whose stage may then be filled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// They arrive at an mbarrier, behind their loads.
    Arriving,
    /// They arrive, but it is what they bring after that for which the next products wait.
    Counting,
    /// Only by what they bring after that.
    Bringing,
}

/// A left factor that consumers bring to shared memory, of which there is one at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brought {
    /// The product.
    pub product: OpId,
    /// Its stage.
    pub stages: Stages,
    /// The tile in shared memory.
    pub tile: SharedTile,
    /// Whether it is said that a product has read it: where consumers wait for that's sums in every turn, these say it.
    pub is_left: bool,
    /// Where it begins, from where the panels of stores do: until these are written it is no longer needed.
    pub place: u64,
    /// How matrix stores write it; found when it is known where its elements lie.
    pub matrices: Option<MatrixMove>,
}

/// What a kernel has in tensor memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorMemory {
    sums: Vec<TensorSums>,
    brought: Vec<Brought>,
    /// Columns that a block allocates.
    columns: u64,
    /// Where the address of these lies in shared memory.
    address: u64,
}

impl TensorMemory {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// All sums, in order.
    pub fn sums(&self) -> &[TensorSums] {
        &self.sums
    }

    /// All left factors that consumers bring, in order.
    pub fn brought(&self) -> &[Brought] {
        &self.brought
    }

    /// The number of the sums that a loop with this body keeps, if it keeps some.
    pub fn kept_by(&self, body: RegionId) -> Option<usize> {
        self.sums.iter().position(|sums| sums.are_kept && sums.body == body)
    }

    /// The products whose sums are here.
    pub(super) fn multiplied(&self) -> Vec<OpId> {
        self.sums.iter().flat_map(|sums| &sums.products).map(|&(product, _)| product).collect()
    }

    /// The number of a product's sums, if they are here.
    pub fn of_product(&self, product: OpId) -> Option<usize> {
        self.sums.iter().position(|sums| sums.products.iter().any(|&(own, _)| own == product))
    }

    /// The number of a product's left factor among those that consumers bring.
    pub fn brought_for(&self, product: OpId) -> Option<usize> {
        self.brought.iter().position(|brought| brought.product == product)
    }

    /// Whether consumers do nothing for a product while its loop goes on.
    pub fn is_left_alone(&self, product: OpId) -> bool {
        let is_kept = self.of_product(product).is_some_and(|sums| self.sums[sums].are_kept);
        is_kept && self.brought_for(product).is_none()
    }

    /// The products of a loop with this body that are multiplied a turn ahead.
    pub fn ahead(&self, body: RegionId) -> impl Iterator<Item = OpId> {
        let own = self.sums.iter().filter(move |sums| sums.body == body && self.is_ahead(sums));
        own.flat_map(|sums| sums.products.iter().map(|&(product, _)| product))
    }

    fn is_ahead(&self, sums: &TensorSums) -> bool {
        !sums.are_kept && sums.stages.count > 1
    }

    /// Columns that a block allocates: a power of two.
    pub fn columns(&self) -> u64 {
        self.columns
    }

    /// Where the address of these lies in shared memory.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Whether a value is sums that a loop keeps, while it goes on: no thread holds it.
    pub fn keeps(&self, kernel: &Kernel, value: ValueId) -> bool {
        let kept = self.sums.iter().filter(|sums| sums.are_kept).flat_map(|sums| &sums.products);
        let mut products = kept.map(|&(op, _)| kernel.op(op));
        products.any(|data| data.operands[2] == value || data.results[0] == value)
    }

    /// Shared memory of the left factors that consumers bring.
    pub(super) fn brought_bytes(&self) -> u64 {
        let end = |brought: &Brought| brought.place + brought.tile.bytes();
        self.brought.last().map_or(0, |last| end(last).next_multiple_of(TILE_ALIGNMENT))
    }

    /// The end of what else it has of shared memory.
    pub(super) fn end(&self) -> u64 {
        if self.is_empty() { 0 } else { self.address + ADDRESS_BYTES }
    }
}

fn products(kernel: &Kernel) -> Vec<OpId> {
    kernel.walk().into_iter().filter(|&op| kernel.op(op).op == Op::Mma).collect()
}

/// The products of loops whose sums are neither kept nor begin at zero in every turn.
pub(in super::super) fn changed_by_threads(kernel: &Kernel, uses: &Uses) -> Vec<OpId> {
    let bodies = kernel.walk().into_iter().filter(|&op| kernel.op(op).op == Op::For);
    let bodies = bodies.map(|op| kernel.op(op).regions[0]);
    let of_body = |body: RegionId| {
        let products = kernel.region(body).ops.iter().copied().filter(|&op| kernel.op(op).op == Op::Mma);
        products.map(move |op| (body, op)).collect::<Vec<_>>()
    };
    let products = bodies.flat_map(of_body);
    let changed =
        products.filter(|&(body, op)| !begins_at_zero(kernel, op) && !are_kept(kernel, uses, body, op));
    changed.map(|(_, op)| op).collect()
}

/// Whether a product adds to nothing.
fn begins_at_zero(kernel: &Kernel, product: OpId) -> bool {
    kernel.is_zero(kernel.op(product).operands[2])
}

/// Whether the sums of a loop's product begin at zero, and only the next turn's product needs them.
fn are_kept(kernel: &Kernel, uses: &Uses, body: RegionId, product: OpId) -> bool {
    carries_sums(kernel, uses, body, product) && kernel.is_zero(initial_sums(kernel, body, product))
}

/// What a loop's sums begin as.
fn initial_sums(kernel: &Kernel, body: RegionId, product: OpId) -> ValueId {
    let sums = kernel.op(product).operands[2];
    let around = kernel.owner_of(body).expect("a loop's body belongs to the loop");
    let param = kernel.region(body).params.iter().position(|&param| param == sums);
    let number = param.expect("the loop carries the sums") - Carried::FOR.param;
    kernel.op(around).operands[Carried::FOR.initial + number]
}

/// Those of the factors whose products can have their sums in tensor memory, if all products of the kernel can: adds what keeps
/// them from that.
pub(super) fn retain(
    kernel: &Kernel,
    uses: &Uses,
    factors: Vec<Factor>,
    obstacles: &mut Obstacles,
) -> Vec<Factor> {
    for right in factors.iter().map(|factor| factor.id).filter(|id| !id.is_left()) {
        if let Err(obstacle) = has_left(kernel, right.product, &factors) {
            let obstacle = obstacles.of(FactorId::left(right.product)).cloned().unwrap_or(obstacle);
            obstacles.add(right, obstacle);
        }
        if let Err(op) = Slice::of(kernel, Vec::new(), vec![right.product]) {
            obstacles.add(right, Obstacle::Turns(Named::of(kernel, op)));
        }
    }
    if !changed_by_threads(kernel, uses).is_empty() {
        // Such a kernel is rewritten first.
        return Vec::new();
    }
    let products = products(kernel);
    let has_factors = |product: &OpId| factors.iter().any(|factor| factor.id.product == *product);
    let other = products.iter().find(|&&op| !has_factors(&op) || obstacles.of(FactorId::right(op)).is_some());
    let Some(&other) = other else { return factors };
    add_others(kernel, other, obstacles);
    Vec::new()
}

/// Adds to what keeps products from tensor memory that one of them isn't done there.
pub(super) fn add_others(kernel: &Kernel, one: OpId, obstacles: &mut Obstacles) {
    let beside = Obstacle::Beside(kernel.op(one).loc);
    products(kernel).into_iter().for_each(|product| obstacles.add(FactorId::right(product), beside.clone()));
}

/// Whether a product's left factor is one of these, or can be brought to shared memory.
fn has_left(kernel: &Kernel, product: OpId, factors: &[Factor]) -> Result<(), Obstacle> {
    if is_left_copied(factors, product) {
        return Ok(());
    }
    let tile = brought_tile(kernel, product);
    tile.map(|_| ()).map_err(|limit| Obstacle::LeftHeld { loaded: None, limit })
}

fn is_left_copied(factors: &[Factor], product: OpId) -> bool {
    factors.iter().any(|factor| factor.id == FactorId::left(product))
}

/// A product's left factor as consumers can bring it to shared memory.
///
/// # Errors
/// Why they can't.
fn brought_tile(kernel: &Kernel, product: OpId) -> Result<SharedTile, BringingLimit> {
    let format = dtype_of(kernel, kernel.op(product).operands[0]);
    if format.bytes() != BROUGHT_BYTES {
        return Err(BringingLimit::Format(format));
    }
    let [rows, _, depth] = extents(kernel, kernel.op(product));
    let tile = SharedTile::of(rows, depth, BROUGHT_BYTES as u64, "").ok();
    tile.filter(|_| depth.is_power_of_two()).ok_or(BringingLimit::Extents { rows, depth })
}

/// Shared memory for the left factors that consumers bring of products whose other factors these are.
pub(super) fn brought_bytes(kernel: &Kernel, factors: &[Factor]) -> u64 {
    let right = factors.iter().map(|factor| factor.id).filter(|id| !id.is_left()).map(|right| right.product);
    let brought = right.filter(|&product| !is_left_copied(factors, product));
    let tiles = brought.filter_map(|product| brought_tile(kernel, product).ok());
    tiles.map(|tile| tile.bytes().next_multiple_of(TILE_ALIGNMENT)).sum()
}

/// Places the sums of a kernel's products, and the left factors that consumers bring. Of factors that could lie in rings the
/// loads are given.
///
/// # Errors
/// The first product whose right factor lies in no ring, or that there is no room for.
pub(super) fn place(
    kernel: &Kernel,
    uses: &Uses,
    found: &Pipelines,
    loads: &HashMap<FactorId, OpId>,
) -> Result<TensorMemory, (OpId, Obstacle)> {
    let products = products(kernel);
    let is_copied = |operand: usize, product: OpId| {
        found.factors(product).is_some_and(|factors| factors[operand].is_some())
    };
    if let Some(&other) = products.iter().find(|&&product| !is_copied(1, product)) {
        return Err((other, Obstacle::Beside(kernel.op(other).loc)));
    }
    let mut memory = TensorMemory::default();
    for &product in products.iter().filter(|&&product| !is_copied(0, product)) {
        let home = kernel.region_of(product).expect("a product stands in a region");
        let held = |limit| {
            let view = |load: &OpId| kernel.op(*load).load().expect("a factor is loaded").view;
            let loaded = loads.get(&FactorId::left(product)).map(view);
            let loaded = loaded.map(|view| kernel.tensor_name(view));
            (product, Obstacle::LeftHeld { loaded, limit })
        };
        let tile = brought_tile(kernel, product).map_err(held)?;
        let ([rows, _, depth], groups) =
            (extents(kernel, kernel.op(product)), found.consumers / WARPGROUP_WARPS);
        let columns = if share_columns(rows, groups) { depth / groups } else { depth };
        if columns > MOST_BROUGHT_COLUMNS {
            return Err(held(BringingLimit::Columns { is: columns, most: MOST_BROUGHT_COLUMNS }));
        }
        let place = memory.brought_bytes();
        let stages = Stages { home, count: 1, barriers: 0 };
        let is_left = !begins_at_zero(kernel, product);
        memory.brought.push(Brought { product, stages, tile, is_left, place, matrices: None });
    }
    for product in products {
        memory.add_sums(kernel, uses, product);
    }
    memory.give_columns(kernel)?;
    let mut end = found.rings_end().next_multiple_of(BARRIER_BYTES);
    let stages = memory.sums.iter_mut().map(|sums| &mut sums.stages);
    for stages in stages.chain(memory.brought.iter_mut().map(|brought| &mut brought.stages)) {
        stages.barriers = end;
        end = stages.end();
    }
    memory.address = end;
    Ok(memory)
}

impl LateSum {
    /// What becomes of a product's sums, if it is nothing but an addition that the loop carries on, to something that the turn
    /// computes of what it carried before the product.
    fn of(kernel: &Kernel, uses: &Uses, body: RegionId, product: OpId) -> Option<LateSum> {
        let region = kernel.region(body);
        let (own, end) = (kernel.op(product).results[0], *region.ops.last()?);
        let addition = uses.only(own)?;
        let data = kernel.op(addition);
        let next = *data.results.first()?;
        let is_addition = data.op == Op::Binary(BinaryOp::Add) && data.operands[1] == own;
        if !is_addition || kernel.region_of(addition) != Some(body) || uses.only(next) != Some(end) {
            return None;
        }
        let number = kernel.op(end).operands.iter().position(|&yielded| yielded == next)?;
        let carried = *region.params.get(Carried::FOR.param + number)?;
        let needs = |op: OpId| {
            let regions = kernel.op(op).regions.iter();
            let inside = regions.flat_map(|&region| kernel.walk_in(region));
            std::iter::once(op).chain(inside).any(|op| kernel.op(op).operands.contains(&carried))
        };
        let place = |op: OpId| region.ops.iter().position(|&other| other == op);
        let first_use = region.ops.iter().copied().find(|&op| needs(op))?;
        (place(first_use) < place(product)).then_some(LateSum { addition, number, carried, first_use })
    }
}

impl TensorMemory {
    /// Adds a product's sums, to those that its loop keeps if it keeps them.
    fn add_sums(&mut self, kernel: &Kernel, uses: &Uses, product: OpId) {
        let body = kernel.region_of(product).expect("a product stands in a region");
        let are_kept = !begins_at_zero(kernel, product) && are_kept(kernel, uses, body, product);
        let home = match are_kept {
            true => {
                let around = kernel.owner_of(body).expect("a loop's body belongs to the loop");
                kernel.region_of(around).expect("a loop stands in a region")
            }
            false => body,
        };
        let known = self.kept_by(body).filter(|_| are_kept).unwrap_or_else(|| {
            let stages = Stages { home, count: 1, barriers: 0 };
            let (products, first, stage_columns) = (Vec::new(), 0, 0);
            let is_brought = self.brought.iter().any(|brought| brought.stages.home == body);
            let leaving = if is_brought && !are_kept { Leaving::Bringing } else { Leaving::Arriving };
            let sums =
                TensorSums { stages, body, are_kept, leaving, products, first, stage_columns, late: None };
            self.sums.push(sums);
            self.sums.len() - 1
        });
        let [rows, columns, _] = extents(kernel, kernel.op(product));
        let sums = &mut self.sums[known];
        sums.products.push((product, sums.stage_columns));
        sums.stage_columns += rows / TENSOR_ROWS * columns;
    }

    /// Gives all sums their columns, and two stages to those that gain by them, where there is room for that.
    fn give_columns(&mut self, kernel: &Kernel) -> Result<(), (OpId, Obstacle)> {
        let repeated = repeated(kernel);
        let gain = |sums: &TensorSums| match sums.are_kept {
            true => repeated.contains(&sums.stages.home),
            // It is multiplied ahead of the turn before.
            false => {
                sums.products.iter().all(|&(product, _)| self.comes_before_what_is_brought(kernel, product))
            }
        };
        let gains: Vec<bool> = self.sums.iter().map(gain).collect();
        let needed = |doubled: bool| -> u64 {
            let columns = |(sums, &gains): (&TensorSums, &bool)| {
                if doubled && gains { 2 * sums.stage_columns } else { sums.stage_columns }
            };
            self.sums.iter().zip(&gains).map(columns).sum()
        };
        let doubled = needed(true) <= COLUMNS;
        let needed = needed(doubled);
        if needed > COLUMNS {
            let last = self.sums.last().expect("there are sums").products[0].0;
            return Err((last, Obstacle::TensorMemory { needed, available: COLUMNS }));
        }
        for sums in self.sums.iter_mut().filter(|sums| sums.are_kept) {
            // Of a loop without turns nothing is brought, so that arrivals count its stages still.
            if sums.products.iter().all(|(it, _)| self.brought.iter().any(|brought| brought.product == *it)) {
                sums.leaving = Leaving::Counting;
            }
        }
        let mut first = 0;
        for (sums, gains) in self.sums.iter_mut().zip(gains) {
            sums.stages.count = if doubled && gains { 2 } else { 1 };
            sums.first = first;
            first += sums.stages.count * sums.stage_columns;
        }
        self.columns = needed.max(LEAST_COLUMNS).next_power_of_two();
        Ok(())
    }

    /// Whether a product stands before the first of its turn for which consumers bring something, in a turn without loops that
    /// multiply: the producer copies what the next turn's product reads behind what all of this one's do, which wait for it.
    fn comes_before_what_is_brought(&self, kernel: &Kernel, product: OpId) -> bool {
        let body = kernel.region_of(product).expect("a product stands in a region");
        let waits = |op: &OpId| self.brought_for(*op).is_some();
        let mut turn = kernel.region(body).ops.iter().filter(|&op| *op == product || waits(op));
        let is_first = turn.next() == Some(&product) && !waits(&product) && turn.any(waits);
        is_first && products_within(kernel, body).next().is_none()
    }

    /// Finds the sums that consumers add to others a turn later: of products for which they bring something, so that the next
    /// turn is multiplied when its sums were loaded.
    pub(super) fn find_late(&mut self, kernel: &Kernel) {
        let uses = Uses::of(kernel);
        let brought: Vec<OpId> = self.brought.iter().map(|brought| brought.product).collect();
        for sums in self.sums.iter_mut().filter(|sums| !sums.are_kept) {
            let product = sums.products[0].0;
            sums.late = LateSum::of(kernel, &uses, sums.body, product).filter(|_| brought.contains(&product));
        }
    }

    /// The sums that an op adds to others a turn later, by their number.
    pub fn added_late_by(&self, addition: OpId) -> Option<usize> {
        self.sums.iter().position(|sums| sums.late.is_some_and(|late| late.addition == addition))
    }

    /// Finds how matrix stores write what consumers bring, of which `place` says how it lies in their registers.
    pub(super) fn find_matrices(
        &mut self,
        kernel: &Kernel,
        place: impl Fn(ValueId) -> tile_layout::linear::Distribution,
    ) {
        for brought in &mut self.brought {
            let left = kernel.op(brought.product).operands[0];
            let moves = MatrixMove::all(&place(left), dtype_of(kernel, left));
            brought.matrices = moves.into_iter().find(|one| one.runs_along(1));
        }
    }
}

#[cfg(test)]
mod tests;
