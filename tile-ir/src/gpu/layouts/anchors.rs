//! What loads, stores and matrix products want.

use super::{Access, Layouts, Threads, shape_of};
use crate::gpu::dtype_of;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::view::Source;
use std::collections::HashMap;
use tile_layout::linear::{Deal, Distribution, Operand};

/// What a warp writes next to each other before memory is written in whole sectors, in bytes.
const SECTOR_BYTES: u64 = 32;

/// What is enough next to rings of tiles: halves of sectors meet in the cache, and to put them together first would take
/// the shared memory of a stage.
const HALF_SECTOR_BYTES: u64 = 16;

/// Neighbours along the columns of a product that a thread has, and along its rows.
const PRODUCT_BLOCK: [u64; 2] = [4, 4];

/// Neighbours that one instruction may move, by a tile's extents and the axis along which it is contiguous: as many
/// as the access that can move most, as long as every thread has some.
pub(super) fn vectors(
    kernel: &Kernel,
    threads: Threads,
    accesses: &HashMap<OpId, Access>,
) -> HashMap<(Vec<u64>, usize), u64> {
    let mut vectors = HashMap::new();
    for (&op, access) in accesses {
        let data = kernel.op(op);
        let tile = data.results.first().copied().unwrap_or_else(|| data.operands[1]);
        let shape = shape_of(kernel, tile).expect("verified: a tile");
        let Some(&axis) = access.order.first() else { continue };
        let share = (shape.iter().product::<u64>() / threads.count()).max(1);
        let vector = access.whole.min(1 << share.ilog2());
        let most = vectors.entry((shape, axis)).or_insert(1);
        *most = vector.max(*most);
    }
    vectors
}

impl Layouts<'_> {
    /// Neighbours in memory in neighbouring threads.
    pub(super) fn coalesced(&self, op: OpId, tile: ValueId) -> Distribution {
        self.blocked(&self.shape(tile), &self.basis.accesses[&op].order)
    }

    /// Where a product's sums lie, for a load of a tile that meets them, if that reads what lies next to each other. What
    /// the kernel writes each thread must meet where it wrote it.
    pub(super) fn beside_sums(&self, op: OpId, tile: ValueId) -> Option<Distribution> {
        let data = self.kernel.op(op);
        let view = self.kernel.ty(data.operands[0]).as_partition()?;
        let product = self.beside.get(&op).filter(|_| !view.tensor.mutable)?;
        let sums = self.kernel.op(*product).results[0];
        let distribution = self.place_of_sums(sums)?.reshaped(&self.shape(tile))?;
        (self.run(op, tile, &distribution)? >= HALF_SECTOR_BYTES).then_some(distribution)
    }

    /// Where a tile lies that is sums of a product; `None` of another.
    pub(super) fn place_of_sums(&self, tile: ValueId) -> Option<Distribution> {
        let product = self.basis.products.get(self.sums.get(&tile)?)?;
        Some(product.distribution(&self.shape(tile), Operand::Accumulator))
    }

    /// The distribution where nothing speaks for another: neighbours along the last axis in neighbouring threads.
    pub(super) fn usual(&self, shape: &[u64]) -> Distribution {
        let mut order: Vec<usize> = (0..shape.len()).rev().collect();
        order.sort_by_key(|&axis| shape[axis] == 1);
        self.blocked(shape, &order)
    }

    fn blocked(&self, shape: &[u64], order: &[usize]) -> Distribution {
        let first = &order[..order.len().min(1)];
        let key = first.first().map(|&axis| (shape.to_vec(), axis));
        let vector = key.as_ref().and_then(|key| self.vectors.get(key)).map_or(1, |&vector| vector);
        let mut deal = Deal::new(shape);
        let mut registers = deal.take(vector.ilog2(), first);
        if let Some(&(axis, count)) = key.as_ref().and_then(|key| self.runs.get(key)) {
            registers.extend(deal.take(count.ilog2(), &[axis]));
        }
        let Threads { lanes, warps, .. } = self.basis.threads;
        let (lanes, warps) = (deal.take(lanes.ilog2(), order), deal.take(warps.ilog2(), order));
        Distribution::new(shape, registers, lanes, warps)
            .expect("extents and threads are powers of two, and there are elements")
    }

    /// A tile is stored from where it lies if that writes whole sectors; otherwise as it lies in memory. What is also
    /// read, or stored elsewhere, always goes the latter way: each thread then meets its own elements alone.
    pub(super) fn store(&mut self, op: OpId, data: &OpData) {
        let wanted = self.coalesced(op, data.operands[1]);
        let known = self.found.get(&data.operands[1]);
        if known.is_some_and(|known| self.is_copied(op, known)) {
            return;
        }
        if known
            .is_some_and(|known| self.writes_sectors(op, data.operands[1], known) && self.is_only_access(op))
        {
            return;
        }
        self.want(op, 1, &wanted);
    }

    /// Whether copies do a store of a tile that lies so.
    fn is_copied(&self, op: OpId, tile: &Distribution) -> bool {
        let store = self.basis.pipelines.store(op).filter(|_| self.is_only_access(op));
        store.is_some_and(|store| self.basis.products.values().any(|product| store.takes(tile, product)))
    }

    /// Whether a tile is written in whole sectors by an op from where it lies.
    pub(super) fn writes_sectors(&self, op: OpId, tile: ValueId, place: &Distribution) -> bool {
        let Some(run) = self.run(op, tile, place) else { return true };
        let axis = self.basis.accesses[&op].order[0];
        let all = place.shape()[axis] * dtype_of(self.kernel, tile).bytes() as u64;
        let enough = if self.basis.pipelines.is_empty() { SECTOR_BYTES } else { HALF_SECTOR_BYTES };
        run >= enough.min(all)
    }

    /// How many bytes of memory from its first on a warp reaches at once, of a tile that lies so; `None` where no axis is
    /// contiguous.
    fn run(&self, op: OpId, tile: ValueId, place: &Distribution) -> Option<u64> {
        let bytes = dtype_of(self.kernel, tile).bytes() as u64;
        let &axis = self.basis.accesses[&op].order.first()?;
        let lanes = place.thread_bits().take(place.lane_count().ilog2() as usize);
        let along =
            |position: &&[u64]| position.iter().enumerate().all(|(i, &place)| i == axis || place == 0);
        let reached = lanes
            .filter(along)
            .fold(place.neighbours(axis) - 1, |reached, position| reached | position[axis]);
        Some(bytes << reached.trailing_ones())
    }

    /// Whether no other op reads or writes what this one stores to.
    fn is_only_access(&self, op: OpId) -> bool {
        let argument = |op: OpId| {
            let cut = self.kernel.definition(self.kernel.op(op).operands[0]);
            cut.map(|cut| Source::of(self.kernel, cut.operands[0]).argument)
        };
        let written = argument(op);
        self.basis.accesses.keys().filter(|&&other| argument(other) == written).count() == 1
    }

    /// The accumulators of a product of matrices by multiply-adds: a block of rows and columns a thread, so that an
    /// element of a factor serves several of them.
    pub(super) fn accumulator(&self, shape: &[u64]) -> Distribution {
        let rank = shape.len();
        let (rows, columns) = (rank - 2, rank - 1);
        let share = (shape.iter().product::<u64>() / self.basis.threads.count()).max(1);
        let mut bits = Deal::new(shape);
        let width = PRODUCT_BLOCK[0].min(1 << share.ilog2());
        let height = PRODUCT_BLOCK[1].min(1 << (share / width).max(1).ilog2());
        let mut registers = bits.take(width.ilog2(), &[columns]);
        registers.extend(bits.take(height.ilog2(), &[rows]));
        let lane_bits = self.basis.threads.lanes.ilog2();
        let all: Vec<usize> = [columns, rows].into_iter().chain(0..rank - 2).collect();
        let downwards: Vec<usize> = [rows, columns].into_iter().chain(0..rank - 2).collect();
        // Lanes whose wide reads shared memory serves together have sums of one row: of the left factor they read the same.
        let together = self.basis.banks.wide_reads.iter().fold(0, |all, number| all | number);
        let order = |bit: u32| if together >> bit & 1 == 1 { &all } else { &downwards };
        let lanes = (0..lane_bits).flat_map(|bit| bits.take(1, order(bit))).collect();
        let warps = bits.take(self.basis.threads.warps.ilog2(), &downwards);
        Distribution::new(shape, registers, lanes, warps).expect("every axis is reached or repeated")
    }
}
