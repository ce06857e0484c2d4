//! Tiles that are wanted along another axis than memory has neighbours along: factors of products, and what is stored
//! transposed.
//!
//! A lane's elements of a factor are neighbours along the depth of the product. Where memory has neighbours along the
//! other axis, a thread that loads a small block of both can write its neighbours along the depth to shared memory
//! together, from where a lane then reads its elements at once.
//!
//! A tile that is loaded along its rows and stored along its columns changes threads in shared memory. Where those that
//! load and those that store have small blocks, they have neighbours in common, which go there and come from there
//! together.

use super::super::{Product, shape_of};
use super::{Basis, anchors};
use crate::analysis::reshape::axis_before;
use crate::kernel::{Kernel, OpId, ValueId};
use crate::ops::{Carried, Op};
use crate::target::TargetDesc;
use std::collections::{HashMap, HashSet};
use tile_layout::linear::Operand;

/// By a tile's extents and the axis along which it is contiguous: another axis, and of how many neighbours along that a
/// thread has a vector each.
pub(in crate::gpu) type Runs = HashMap<(Vec<u64>, usize), (usize, u64)>;

/// The runs of a verified instance, whose matrix loads serve what they can.
pub(in crate::gpu) fn runs(kernel: &Kernel, target: &TargetDesc, basis: Basis<'_>) -> Runs {
    let (vectors, origins) = (anchors::vectors(kernel, basis.threads, basis.accesses), Origins::of(kernel));
    let mut finder = Finder { kernel, basis, vectors, origins, runs: Runs::new() };
    for (&op, product) in basis.products {
        let loads_matrices = target.matrix_loads && product.instruction.factors[0].bytes() == 2;
        for (i, operand) in [Operand::A, Operand::B].into_iter().enumerate() {
            let tile = kernel.op(op).operands[i];
            if !loads_matrices && !basis.pipelines.holds(tile) {
                finder.add_factor(tile, product, operand);
            }
        }
    }
    for &op in basis.accesses.keys().filter(|&&op| kernel.op(op).op.is_store()) {
        finder.add_transpositions(op);
    }
    finder.runs
}

struct Finder<'k> {
    kernel: &'k Kernel,
    basis: Basis<'k>,
    vectors: HashMap<(Vec<u64>, usize), u64>,
    origins: Origins<'k>,
    runs: Runs,
}

impl Finder<'_> {
    /// The load of a factor has what a lane has of neighbours along the depth.
    fn add_factor(&mut self, tile: ValueId, product: &Product, operand: Operand) {
        let shape = self.shape(tile);
        let depth = shape.len() - if operand == Operand::A { 1 } else { 2 };
        let wanted = product.distribution(&shape, operand).neighbours(depth);
        if let Some((load, axis)) = self.origins.load_of(tile, depth) {
            self.add(load, axis, wanted);
        }
    }

    /// A store and the loads of what it stores transposed have each a vector of the other's, as far as they can.
    fn add_transpositions(&mut self, store: OpId) {
        let Some(written) = self.first_axis(store) else { return };
        let rank = self.shape(self.tile(store)).len();
        for axis in 0..rank {
            for (load, read) in self.origins.loads_of(self.tile(store), axis) {
                if axis == written {
                    self.add(load, read, self.vector(store));
                } else if self.first_axis(load) == Some(read) {
                    self.add(store, axis, self.vector(load));
                }
            }
        }
    }

    /// Has the tiles of an access, and those that lie as these do, come in runs along an axis.
    fn add(&mut self, op: OpId, axis: usize, wanted: u64) {
        let (shape, Some(first)) = (self.shape(self.tile(op)), self.first_axis(op)) else { return };
        let share = shape.iter().product::<u64>() / self.basis.threads.count() / self.vector(op);
        let count = wanted.min(1 << share.max(1).ilog2()).min(1 << shape[axis].trailing_zeros());
        if first != axis && count > 1 {
            let most = self.runs.entry((shape, first)).or_insert((axis, 1));
            *most = (*most).max((axis, count));
        }
    }

    /// Neighbours that an access moves at once.
    fn vector(&self, op: OpId) -> u64 {
        let key = self.first_axis(op).map(|first| (self.shape(self.tile(op)), first));
        key.and_then(|key| self.vectors.get(&key).copied()).unwrap_or(1)
    }

    /// The axis along which the tile of an access is contiguous.
    fn first_axis(&self, op: OpId) -> Option<usize> {
        self.basis.accesses.get(&op)?.order.first().copied()
    }

    /// What an access loads or stores.
    fn tile(&self, op: OpId) -> ValueId {
        let data = self.kernel.op(op);
        data.results.first().copied().unwrap_or_else(|| data.operands[1])
    }

    fn shape(&self, tile: ValueId) -> Vec<u64> {
        shape_of(self.kernel, tile).expect("verified: a tile")
    }
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
                let at = Carried::FOR;
                let carried = kernel.region(data.regions[0]).params[at.param..].iter().copied();
                initial.extend(carried.zip(data.operands[at.initial..].iter().copied()));
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
            if self.is_read(op) {
                return Some((op, axis));
            }
            (tile, axis) = match &self.kernel.op(op).op {
                Op::Cast(_) => (self.kernel.op(op).operands[0], axis),
                _ => self.before(op, tile, axis)?,
            };
        }
    }

    /// The loads and gathers of whose elements a tile is made element by element, and which of their axes an axis of the
    /// tile is.
    fn loads_of(&self, tile: ValueId, axis: usize) -> Vec<(OpId, usize)> {
        let (mut loads, mut seen, mut left) = (Vec::new(), HashSet::new(), vec![(tile, axis)]);
        while let Some((tile, axis)) = left.pop() {
            let Some(&op) = self.definitions.get(&tile) else { continue };
            if !seen.insert((tile, axis)) {
                continue;
            }
            let data = self.kernel.op(op);
            if self.is_read(op) {
                loads.push((op, axis));
            } else if data.op.is_leaf() {
                let tiles = data.operands.iter().filter(|&&operand| shape_of(self.kernel, operand).is_some());
                left.extend(tiles.map(|&operand| (operand, axis)));
            } else {
                left.extend(self.before(op, tile, axis));
            }
        }
        loads
    }

    fn is_read(&self, op: OpId) -> bool {
        let op = &self.kernel.op(op).op;
        *op == Op::GatherLoad || op.is_load()
    }

    /// The tile that an op moves to a result of its, and which axis of that an axis of the result is.
    fn before(&self, op: OpId, tile: ValueId, axis: usize) -> Option<(ValueId, usize)> {
        let data = self.kernel.op(op);
        match &data.op {
            Op::Permute(permutation) => Some((data.operands[0], permutation[axis])),
            Op::Reshape(_) => Some((data.operands[0], axis_before(self.kernel, data, axis)?)),
            Op::If => {
                let result = data.results.iter().position(|&result| result == tile)?;
                let end = *self.kernel.region(data.regions[0]).ops.last()?;
                Some((self.kernel.op(end).operands[result], axis))
            }
            _ => None,
        }
    }
}
