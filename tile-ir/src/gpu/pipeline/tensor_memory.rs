//! Products whose sums lie in tensor memory: one thread has the tensor cores add to them, turn after turn, and consumers load
//! them when their loop is over (PTX ISA, "TensorCore 5th Generation Family Instructions").
//!
//! Threads hold nothing of such a product while its loop goes on: both factors lie in rings, the sums begin at zero, and only
//! the next turn's product adds to them. A kernel one of whose products isn't like that has none of them, because consumers
//! take no part in turns whose tiles they leave to others.
//!
//! Where what is around a loop is executed again, as the tile of the grid of a block that goes on to further ones, and there is
//! room, sums have two stages: those of the next turn are added up while consumers load these.

use super::super::copies::is_zero;
use super::super::products::extents;
use super::factor::{Factor, carries_sums};
use super::obstacle::{Obstacle, Obstacles};
use super::{Pipelines, repeated};
use crate::analysis::uses::Uses;
use crate::kernel::{Kernel, OpId, RegionId, ValueId};
use crate::ops::Op;
use std::collections::HashMap;

/// Columns of a multiprocessor's tensor memory: a word of 32 bits in each of 128 lanes (PTX ISA, "Tensor Memory").
const COLUMNS: u64 = 512;

/// The fewest columns that are allocated (PTX ISA, "tcgen05.alloc").
const LEAST_COLUMNS: u64 = 32;

/// Lanes of tensor memory, each of which has a row of a product.
pub const TENSOR_ROWS: u64 = 128;

/// Bytes of an mbarrier, and what the address of what was allocated takes.
const WORD_BYTES: u64 = 8;

/// The sums of a loop's products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSums {
    /// The region in which the loop stands, whose turns take its stages in order.
    pub home: RegionId,
    /// Turns of that whose sums there is room for.
    pub stages: u64,
    /// The products, each with its first column in a stage: that of the first rows' sums, behind which those of further rows
    /// lie.
    pub products: Vec<(OpId, u64)>,
    /// The first column.
    pub first: u64,
    /// Columns of a stage.
    pub stage_columns: u64,
    /// Where its mbarriers begin in shared memory.
    barriers: u64,
}

impl TensorSums {
    /// Where the mbarrier is that the products of stage 0 complete; those of later stages follow it.
    pub fn full(&self) -> u64 {
        self.barriers
    }

    /// Where the mbarrier is at which consumers leave stage 0; those of later stages follow it.
    pub fn empty(&self) -> u64 {
        self.barriers + self.stages * WORD_BYTES
    }

    fn end(&self) -> u64 {
        self.empty() + self.stages * WORD_BYTES
    }
}

/// What a kernel has in tensor memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorMemory {
    /// By the body of the products' loop.
    sums: HashMap<RegionId, TensorSums>,
    /// These, in the order of their loops.
    order: Vec<RegionId>,
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

    /// The sums of the products of a loop with this body.
    pub fn of_loop(&self, body: RegionId) -> Option<&TensorSums> {
        self.sums.get(&body)
    }

    /// The loops' bodies and their sums, in order.
    pub fn all(&self) -> impl Iterator<Item = (RegionId, &TensorSums)> {
        self.order.iter().map(|body| (*body, &self.sums[body]))
    }

    /// The body of the loop of a product whose sums are here, with these.
    pub fn of_product(&self, product: OpId) -> Option<(RegionId, &TensorSums)> {
        self.all().find(|(_, sums)| sums.products.iter().any(|&(own, _)| own == product))
    }

    /// Columns that a block allocates: a power of two.
    pub fn columns(&self) -> u64 {
        self.columns
    }

    /// Where the address of these lies in shared memory.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Whether a value is the sums of a loop's product while that goes on, which no thread holds.
    pub fn carries(&self, kernel: &Kernel, value: ValueId) -> bool {
        let mut products = self.all().flat_map(|(_, sums)| &sums.products).map(|&(op, _)| kernel.op(op));
        products.any(|data| data.operands[2] == value || data.results[0] == value)
    }

    /// The end of its shared memory.
    pub(super) fn end(&self) -> u64 {
        if self.is_empty() { 0 } else { self.address + WORD_BYTES }
    }
}

/// Those of the factors whose products can have their sums in tensor memory, if all products of the kernel can: adds what keeps
/// them from that.
pub(super) fn retain(
    (kernel, uses): (&Kernel, &Uses),
    factors: Vec<Factor>,
    obstacles: &mut Obstacles,
) -> Vec<Factor> {
    for factor in factors.iter().filter(|factor| factor.operand == 1) {
        if let Err(obstacle) = may_stay(kernel, uses, factor, &factors) {
            let of_left = obstacles.of((factor.product, 0)).filter(|_| obstacle == Obstacle::LeftHeld);
            let obstacle = of_left.cloned().unwrap_or(obstacle);
            obstacles.add((factor.product, 1), obstacle);
        }
    }
    let products = products(kernel);
    let has_factors = |product: &OpId| factors.iter().any(|factor| factor.product == *product);
    let other = products.iter().find(|&&op| !has_factors(&op) || obstacles.of((op, 1)).is_some());
    let Some(&other) = other else { return factors };
    add_others(kernel, other, obstacles);
    Vec::new()
}

/// Adds to what keeps products from tensor memory that one of them isn't done there.
pub(super) fn add_others(kernel: &Kernel, one: OpId, obstacles: &mut Obstacles) {
    let beside = Obstacle::Beside(kernel.op(one).loc);
    products(kernel).into_iter().for_each(|product| obstacles.add((product, 1), beside.clone()));
}

fn products(kernel: &Kernel) -> Vec<OpId> {
    kernel.walk().into_iter().filter(|&op| kernel.op(op).op == Op::Mma).collect()
}

/// Whether the sums of a product with this right factor can stay in tensor memory while its loop goes on.
fn may_stay(kernel: &Kernel, uses: &Uses, right: &Factor, factors: &[Factor]) -> Result<(), Obstacle> {
    let product = right.product;
    if !factors.iter().any(|factor| (factor.product, factor.operand) == (product, 0)) {
        return Err(Obstacle::LeftHeld);
    }
    if !carries_sums(kernel, uses, (right.turn, product)) {
        return Err(Obstacle::SumsUsed);
    }
    let initial = initial_sums(kernel, right.turn, product);
    let splat = kernel.definition(initial).filter(|data| matches!(data.op, Op::Splat(_)));
    if splat.is_none_or(|data| !is_zero(kernel, data.operands[0])) {
        return Err(Obstacle::SumsNotZero);
    }
    Ok(())
}

/// What a loop's sums begin as.
fn initial_sums(kernel: &Kernel, body: RegionId, product: OpId) -> ValueId {
    let sums = kernel.op(product).operands[2];
    let around = loop_of(kernel, body);
    let number = kernel.region(body).params.iter().position(|&param| param == sums);
    let number = number.expect("the loop carries the sums");
    // The counter comes first among the parameters, and the bounds among the operands.
    kernel.op(around).operands[2 + number - 1]
}

fn loop_of(kernel: &Kernel, body: RegionId) -> OpId {
    let around = kernel.walk().into_iter().find(|&op| kernel.op(op).regions.contains(&body));
    around.expect("a loop's body belongs to the loop")
}

/// Places the sums of a kernel whose products' factors all lie in rings.
///
/// # Errors
/// The first product that isn't so, or that there is no room for.
pub(super) fn place(kernel: &Kernel, found: &Pipelines) -> Result<TensorMemory, (OpId, Obstacle)> {
    let products = products(kernel);
    let is_copied = |op: &OpId| matches!(found.factors(*op), Some([Some(_), Some(_)]));
    if let Some(&other) = products.iter().find(|op| !is_copied(op)) {
        return Err((other, Obstacle::Beside(kernel.op(other).loc)));
    }
    let repeated = repeated(kernel);
    let mut memory = TensorMemory::default();
    let mut end = found.rings_end().next_multiple_of(WORD_BYTES);
    for product in products {
        let body = kernel.region_of(product).expect("a product stands in a region");
        let around = loop_of(kernel, body);
        let home = kernel.region_of(around).expect("a loop stands in a region");
        let [rows, columns, _] = extents(kernel, kernel.op(product));
        let sums = memory.sums.entry(body).or_insert_with(|| {
            memory.order.push(body);
            TensorSums { home, stages: 1, products: Vec::new(), first: 0, stage_columns: 0, barriers: 0 }
        });
        sums.products.push((product, sums.stage_columns));
        sums.stage_columns += rows / TENSOR_ROWS * columns;
    }
    let all = |doubled: bool, sums: &TensorSums| {
        let stages = if doubled && repeated.contains(&sums.home) { 2 } else { 1 };
        (stages, stages * sums.stage_columns)
    };
    let needed = |doubled: bool| memory.sums.values().map(|sums| all(doubled, sums).1).sum::<u64>();
    let doubled = needed(true) <= COLUMNS;
    let needed = needed(doubled);
    if needed > COLUMNS {
        let last = memory.all().last().expect("there are sums").1.products[0].0;
        return Err((last, Obstacle::TensorMemory { needed, available: COLUMNS }));
    }
    let mut first = 0;
    for body in &memory.order {
        let sums = memory.sums.get_mut(body).expect("it was found");
        (sums.stages, sums.first, sums.barriers) = (all(doubled, sums).0, first, end);
        (first, end) = (first + sums.stages * sums.stage_columns, sums.end());
    }
    memory.columns = needed.max(LEAST_COLUMNS).next_power_of_two();
    memory.address = end;
    Ok(memory)
}

#[cfg(test)]
mod tests;
