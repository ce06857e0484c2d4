//! Loads of factors whose depth doesn't run along memory.
//!
//! A lane's elements of a factor are neighbours along the depth of the product. Where memory has neighbours along the
//! other axis, a thread that loads a small block of both can write its neighbours along the depth to shared memory
//! together, from where a lane then reads its elements at once.

use super::super::{Access, Pipelines, Product, Threads, shape_of};
use super::anchors;
use crate::analysis::lines::axis_before;
use crate::kernel::{Kernel, OpId, ValueId};
use crate::ops::Op;
use crate::target::TargetDesc;
use std::collections::HashMap;
use tile_layout::linear::Operand;

/// By a tile's extents and the axis along which it is contiguous: another axis, and of how many neighbours along that a
/// thread has a vector each.
pub(in crate::gpu) type Runs = HashMap<(Vec<u64>, usize), (usize, u64)>;

/// The runs of the loads of a verified instance, whose matrix loads serve what they can.
pub(in crate::gpu) fn runs(
    kernel: &Kernel,
    (threads, target): (Threads, &TargetDesc),
    accesses: &HashMap<OpId, Access>,
    products: &HashMap<OpId, Product>,
    pipelines: &Pipelines,
) -> Runs {
    let (vectors, origins) = (anchors::vectors(kernel, threads, accesses), Origins::of(kernel));
    let mut runs = Runs::new();
    for (&op, product) in products {
        let loads_matrices = target.matrix_loads && product.instruction.factors[0].bytes() == 2;
        for (i, operand) in [Operand::A, Operand::B].into_iter().enumerate() {
            let tile = kernel.op(op).operands[i];
            if loads_matrices || pipelines.holds(tile) {
                continue;
            }
            let shape = shape_of(kernel, tile).expect("verified: a tile");
            let depth = shape.len() - if operand == Operand::A { 1 } else { 2 };
            let wanted = product.distribution(&shape, operand).neighbours(depth);
            let Some((load, axis)) = origins.load_of(tile, depth) else { continue };
            let shape = shape_of(kernel, kernel.op(load).results[0]).expect("verified: a tile");
            let Some(&first) = accesses.get(&load).and_then(|access| access.order.first()) else { continue };
            let key = (shape.clone(), first);
            let share = shape.iter().product::<u64>() / threads.count() / vectors.get(&key).unwrap_or(&1);
            let count = wanted.min(1 << share.max(1).ilog2()).min(1 << shape[axis].trailing_zeros());
            if first != axis && count > 1 {
                let most = runs.entry(key).or_insert((axis, 1));
                *most = (*most).max((axis, count));
            }
        }
    }
    runs
}

/// Where values come from.
struct Origins<'k> {
    kernel: &'k Kernel,
    definitions: HashMap<ValueId, OpId>,
    /// What a loop carries: what it is before the first turn.
    initial: HashMap<ValueId, ValueId>,
}

impl<'k> Origins<'k> {
    fn of(kernel: &'k Kernel) -> Self {
        let mut initial = HashMap::new();
        for data in kernel.walk().into_iter().map(|op| kernel.op(op)) {
            if data.op == Op::For {
                let carried = &kernel.region(data.regions[0]).params[1..];
                initial.extend(carried.iter().copied().zip(data.operands[2..].iter().copied()));
            }
        }
        Origins { kernel, definitions: kernel.definitions(), initial }
    }

    /// The load or gather whose elements a tile has, if it is one, and which of its axes an axis of the tile is.
    fn load_of(&self, mut tile: ValueId, mut axis: usize) -> Option<(OpId, usize)> {
        loop {
            let Some(&op) = self.definitions.get(&tile) else {
                tile = *self.initial.get(&tile)?;
                continue;
            };
            let data = self.kernel.op(op);
            (tile, axis) = match &data.op {
                Op::GatherLoad => return Some((op, axis)),
                load if load.is_load() => return Some((op, axis)),
                Op::Permute(permutation) => (data.operands[0], permutation[axis]),
                Op::Reshape(_) => (data.operands[0], axis_before(self.kernel, data, axis)?),
                Op::Cast(_) => (data.operands[0], axis),
                Op::If => {
                    let result = data.results.iter().position(|&result| result == tile)?;
                    let end = *self.kernel.region(data.regions[0]).ops.last()?;
                    (self.kernel.op(end).operands[result], axis)
                }
                _ => return None,
            };
        }
    }
}
