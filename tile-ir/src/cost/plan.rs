//! What the cost model asks of a GPU's schedule: how large a block is, how far it copies ahead, and what its products
//! read from shared memory.

use crate::counts::ProductShape;
use crate::gpu::{Scheduled, schedule};
use crate::kernel::{Kernel, OpData, OpId};
use crate::ops::Op;
use crate::passes::optimize;
use crate::specialize::Instance;
use crate::target::{Factor, TargetDesc};
use crate::types::Type;
use std::collections::BTreeMap;

/// Registers of a thread for addresses, counters and what is on its way.
const OTHER_REGISTERS: u64 = 40;

/// The most registers of a thread.
const MOST_REGISTERS: u64 = 255;

/// What multiplies tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Matrix instructions of four warps together, from shared memory.
    Warpgroup(Factor),
    /// Matrix instructions of a warp.
    Warp(Factor),
    /// Multiply-adds of threads.
    Lanes,
}

/// How a block does products of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductPlan {
    /// What multiplies.
    pub unit: Unit,
    /// Bytes that go to shared memory for one product, and from there.
    pub shared: u64,
}

/// How a block is scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its threads.
    pub threads: u64,
    /// Blocks that share each tile.
    pub blocks_per_tile: u64,
    /// Its shared memory, in bytes.
    pub shared_bytes: u64,
    /// What the target has of that for a block.
    pub shared_available: u64,
    /// Registers of a thread, about.
    pub registers: u64,
    /// Turns of a loop whose tiles are on their way or in use at a time.
    pub stages: u64,
    /// Its products.
    pub products: BTreeMap<ProductShape, ProductPlan>,
}

impl Plan {
    /// The plan of an instance for a target, in the blocks that the compiler chooses. This schedules the instance.
    pub fn of(instance: &Instance, target: &TargetDesc) -> Plan {
        let scheduled = schedule(optimize(instance.clone()), target, None);
        let kernel: &Kernel = &scheduled;
        let products = kernel.walk().into_iter().filter(|&op| kernel.op(op).op.is_product());
        let products = products.map(|op| product(&scheduled, op)).collect();
        // A ring of one stage is of tiles that whole loops read.
        let rings =
            scheduled.pipelines().all().map(|(_, pipeline)| pipeline.stages).filter(|&stages| stages > 1);
        let copied = scheduled.copies().loops().map(|(_, copied)| copied.stages);
        // Without copies ahead the next turn's tiles are loaded in registers.
        let stages = rings.chain(copied).min().unwrap_or(2);
        Plan {
            threads: scheduled.block_threads(),
            blocks_per_tile: scheduled.blocks_per_tile().into(),
            shared_bytes: scheduled.shared_bytes(),
            shared_available: u64::from(target.shared_bytes),
            registers: registers(&scheduled),
            stages,
            products,
        }
    }

    /// How products are done that a kernel has. What is scheduled may multiply their factors in another format, and have
    /// [turned](crate::passes) those of which only the transposed is used.
    pub fn product(&self, shape: &ProductShape) -> Option<&ProductPlan> {
        let turned = ProductShape { m: shape.n, n: shape.m, ..*shape };
        let in_another_format = |shape: &ProductShape| {
            self.products.iter().find(|(other, _)| other.is_as_large_as(shape)).map(|(_, plan)| plan)
        };
        let found = [*shape, turned].iter().find_map(|shape| self.products.get(shape));
        found.or_else(|| [*shape, turned].iter().find_map(in_another_format))
    }
}

/// The shape of an `mma`, and how it is done.
fn product(scheduled: &Scheduled, op: OpId) -> (ProductShape, ProductPlan) {
    let kernel: &Kernel = scheduled;
    let data = kernel.op(op);
    let shape = ProductShape::of(kernel, data);
    let bytes = |rows: u64, columns: u64| shape.batch * rows * columns * shape.factor.bytes() as u64;
    let (left, right) = (bytes(shape.m, shape.k), bytes(shape.k, shape.n));
    let plan = match (scheduled.pipelines().factors(op), scheduled.product(op)) {
        (Some(factors), Some(product)) => {
            // What lies in a ring is written once, and a right factor read for all rows of an instruction.
            let is_brought = scheduled.pipelines().tensor_memory().brought_for(op).is_some();
            let left = if factors[0].is_some() || is_brought { 2 * left } else { 0 };
            let groups = shape.m.div_ceil(product.instruction.shape.m.into());
            let unit = Unit::Warpgroup(Factor::of(&product.instruction));
            ProductPlan { unit, shared: left + (1 + groups) * right }
        }
        (_, Some(product)) => {
            let [rows, columns] = product.parts();
            let unit = Unit::Warp(Factor::of(&product.instruction));
            ProductPlan { unit, shared: (1 + columns) * left + (1 + rows) * right }
        }
        (_, None) => {
            let [rows, columns] = square(scheduled.threads().warps);
            ProductPlan { unit: Unit::Lanes, shared: (1 + columns) * left + (1 + rows) * right }
        }
    };
    (shape, plan)
}

/// Two powers of two of this product, the first not less than the second.
fn square(count: u64) -> [u64; 2] {
    let bits = count.max(1).ilog2();
    [1 << bits.div_ceil(2), 1 << (bits / 2)]
}

/// Registers of a thread: the tiles that the heaviest loop carries, and others.
fn registers(scheduled: &Scheduled) -> u64 {
    let kernel: &Kernel = scheduled;
    let bytes = |data: &OpData| -> u64 {
        let tiles = data.results.iter().filter_map(|&result| match kernel.ty(result) {
            Type::Tile(tile) => {
                let elements: u64 =
                    tile.shape.iter().filter_map(|dim| dim.as_const()).product::<i64>() as u64;
                Some(elements * scheduled.dtype(result).bytes() as u64)
            }
            _ => None,
        });
        tiles.sum()
    };
    let loops = kernel.walk().into_iter().map(|op| kernel.op(op)).filter(|data| data.op == Op::For);
    let carried = loops.map(bytes).max().unwrap_or(0);
    (OTHER_REGISTERS + carried.div_ceil(4 * scheduled.threads().count())).min(MOST_REGISTERS)
}
