//! Which tiles are stored in scratch memory, and which are computed in the loop of what consumes them.
//!
//! An elementwise result is computed in its consumer's loop if it has one use, in the same region, by an op
//! that reads each element once. So is a load from a read-only view, whose elements are then read from the
//! tensor right where they are needed, unless they would be read across rows. Splats and counters cost
//! nothing and a broadcast of a stored tile is an address computation, so these are computed wherever they
//! are used. Everything else is stored.
//!
//! One kind of use needs a tile in memory whatever made it: `yield`, whose copies to carried tiles may overwrite what a
//! computed tile would read.

use std::collections::{HashMap, HashSet};
use tile_ir::kernel::{OpData, OpId};
use tile_ir::ops::Movement;
use tile_ir::{Instance, Op, RegionId, Type, ValueId};

/// One operand of an op.
struct Use {
    op: OpId,
    operand: usize,
    region: RegionId,
}

/// A stored tile that an op reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) tile: ValueId,
    /// Whether element `i` of the result needs element `i` of the tile and no other, counted row-major.
    pub(super) in_place: bool,
}

/// The decision for every tile of an instance, and where values are defined and used.
pub(super) struct Fusion<'a> {
    instance: &'a Instance,
    definitions: HashMap<ValueId, OpId>,
    /// The region of a value's definition.
    home: HashMap<ValueId, RegionId>,
    uses: HashMap<ValueId, Vec<Use>>,
    stored: HashSet<ValueId>,
}

impl<'a> Fusion<'a> {
    pub(super) fn of(instance: &'a Instance) -> Self {
        let mut fusion = Fusion {
            instance,
            definitions: HashMap::new(),
            home: HashMap::new(),
            uses: HashMap::new(),
            stored: HashSet::new(),
        };
        fusion.collect(instance.body());
        fusion.decide(instance.body());
        fusion
    }

    fn collect(&mut self, region: RegionId) {
        let instance = self.instance;
        self.home.extend(instance.region(region).params.iter().map(|&param| (param, region)));
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            for (operand, &value) in data.operands.iter().enumerate() {
                self.uses.entry(value).or_default().push(Use { op, operand, region });
            }
            for &result in &data.results {
                self.definitions.insert(result, op);
                self.home.insert(result, region);
            }
            data.regions.iter().for_each(|&inner| self.collect(inner));
        }
    }

    /// In order of definition, so that a broadcast knows whether what it repeats is stored.
    fn decide(&mut self, region: RegionId) {
        let instance = self.instance;
        let params = instance.region(region).params.iter().copied();
        self.stored.extend(params.filter(|&param| is_tile(instance, param)));
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            if !self.is_computed(data) {
                self.stored.extend(data.results.iter().copied().filter(|&result| is_tile(instance, result)));
            }
            data.regions.iter().for_each(|&inner| self.decide(inner));
        }
    }

    fn is_computed(&self, data: &OpData) -> bool {
        match &data.op {
            Op::Splat(_) | Op::Iota { .. } => true,
            Op::Broadcast(_) => {
                self.costs_nothing(data.operands[0])
                    && !self.users(data.results[0]).any(|(_, user)| user.op == Op::Yield)
            }
            op if op.is_load() => {
                let view = self.instance.ty(data.operands[0]).as_partition().expect("verified: a view");
                let tile = data.results[0];
                !view.tensor.mutable && self.feeds_one_loop(tile) && !self.is_permuted(tile)
            }
            op if is_elementwise(op) => self.feeds_one_loop(data.results[0]),
            _ => false,
        }
    }

    /// Whether a tile's elements are read in another order by the loop that it ends up in.
    fn is_permuted(&self, tile: ValueId) -> bool {
        let Some([only]) = self.uses.get(&tile).map(Vec::as_slice) else { return false };
        let consumer = self.instance.op(only.op);
        match &consumer.op {
            Op::Permute(axes) => !(self.is_factor_alone(consumer.results[0]) && swaps_last_two(axes)),
            op if is_elementwise(op) => {
                self.feeds_one_loop(consumer.results[0]) && self.is_permuted(consumer.results[0])
            }
            _ => false,
        }
    }

    /// Whether a tile is a factor of one `mma` and nothing else.
    fn is_factor_alone(&self, tile: ValueId) -> bool {
        let Some([only]) = self.uses.get(&tile).map(Vec::as_slice) else { return false };
        self.instance.op(only.op).op == Op::Mma && only.operand < 2 && self.feeds_one_loop(tile)
    }

    /// Whether reading an element again is as cheap as reading memory.
    fn costs_nothing(&self, tile: ValueId) -> bool {
        let made_by = self.definition(tile).map(|data| &data.op);
        self.is_stored(tile) || matches!(made_by, Some(Op::Splat(_) | Op::Iota { .. }))
    }

    /// Whether the tile's one use reads each element once, in the region of the definition.
    fn feeds_one_loop(&self, tile: ValueId) -> bool {
        match self.uses.get(&tile).map(Vec::as_slice) {
            Some([only]) => {
                self.home.get(&tile) == Some(&only.region)
                    && reads_once(&self.instance.op(only.op).op, only.operand)
            }
            _ => false,
        }
    }

    /// Whether the tile has a place in scratch memory.
    pub(super) fn is_stored(&self, value: ValueId) -> bool {
        self.stored.contains(&value)
    }

    /// The ops that are given a value, each as often as it is, and their regions.
    pub(super) fn users(&self, value: ValueId) -> impl Iterator<Item = (RegionId, &'a OpData)> {
        let uses = self.uses.get(&value).map_or(&[][..], Vec::as_slice);
        uses.iter().map(|u| (u.region, self.instance.op(u.op)))
    }

    /// The region that a value is defined in.
    pub(super) fn home(&self, value: ValueId) -> Option<RegionId> {
        self.home.get(&value).copied()
    }

    /// The op that gives a value; `None` for parameters.
    pub(super) fn definition(&self, value: ValueId) -> Option<&'a OpData> {
        self.definitions.get(&value).map(|&op| self.instance.op(op))
    }

    /// The stored tiles that emitting an op reads, through the operands that are computed in its loop.
    pub(super) fn reads(&self, data: &OpData) -> Vec<Read> {
        let mut reads = Vec::new();
        for (i, &operand) in data.operands.iter().enumerate() {
            self.collect_reads(operand, keeps_place(&data.op, i), &mut reads);
        }
        reads
    }

    /// The loads whose elements a loop that reads these operands reads from their tensors.
    pub(super) fn streams(&self, operands: &[ValueId]) -> Vec<&'a OpData> {
        let mut streams = Vec::new();
        operands.iter().for_each(|&operand| self.collect_streams(operand, &mut streams));
        streams
    }

    fn collect_streams(&self, value: ValueId, streams: &mut Vec<&'a OpData>) {
        if self.is_stored(value) || !is_tile(self.instance, value) {
            return;
        }
        match self.definition(value) {
            Some(data) if data.op.is_load() => streams.push(data),
            Some(data) => data.operands.iter().for_each(|&operand| self.collect_streams(operand, streams)),
            None => {}
        }
    }

    /// Whether element `i` of the op's tile, counted row-major, needs only elements `i` of stored tiles and
    /// scalars, so that its loops need not know the shape.
    pub(super) fn is_flat(&self, data: &OpData) -> bool {
        let is_flat_operand = |(i, &operand): (usize, &ValueId)| {
            !is_tile(self.instance, operand)
                || (keeps_place(&data.op, i)
                    && (self.is_stored(operand)
                        || self.definition(operand).is_some_and(|data| self.is_flat(data))))
        };
        !matches!(data.op, Op::Iota { .. })
            && !data.op.is_load()
            && data.operands.iter().enumerate().all(is_flat_operand)
    }

    fn collect_reads(&self, value: ValueId, in_place: bool, reads: &mut Vec<Read>) {
        if self.is_stored(value) {
            reads.push(Read { tile: value, in_place });
        } else if let Some(data) = self.definition(value).filter(|_| is_tile(self.instance, value)) {
            for (i, &operand) in data.operands.iter().enumerate() {
                self.collect_reads(operand, in_place && keeps_place(&data.op, i), reads);
            }
        }
    }
}

/// Whether a value is a tile.
pub(super) fn is_tile(instance: &Instance, value: ValueId) -> bool {
    matches!(instance.ty(value), Type::Tile(_))
}

/// Whether a permutation of axes is the transposition of matrices.
pub(super) fn swaps_last_two(axes: &[usize]) -> bool {
    let rank = axes.len();
    rank >= 2
        && axes[rank - 2..] == [rank - 1, rank - 2]
        && axes[..rank - 2].iter().enumerate().all(|(i, &axis)| i == axis)
}

/// Ops on elements at one place: what they give there needs only their operands there.
fn is_leaf(op: &Op) -> bool {
    op.is_leaf() || matches!(op, Op::GatherLoad)
}

/// Whether element `i` of what an op gives, or stores, needs only element `i` of this operand.
fn keeps_place(op: &Op, operand: usize) -> bool {
    match op {
        op if is_leaf(op) => true,
        Op::Reshape(_) | Op::ConvertLayout => true,
        Op::Mma => operand == 2,
        Op::Gather { .. } => operand == 1,
        Op::Scatter { .. } | Op::Movement(Movement::Insert { .. }) => operand == 0,
        Op::For | Op::While | Op::Tiles(_) | Op::Yield => true,
        _ => false,
    }
}

/// Ops whose elements can be computed one by one from their operands' elements.
pub(super) fn is_elementwise(op: &Op) -> bool {
    let is_one_piece = |movement: &Movement| {
        matches!(movement, Movement::Extract { .. } | Movement::Flip { .. } | Movement::Repeat { .. })
    };
    match op {
        Op::Permute(_) | Op::Gather { .. } => true,
        Op::Movement(movement) => is_one_piece(movement),
        op => is_leaf(op),
    }
}

/// Whether an op reads each element of an operand at most once, in a loop.
fn reads_once(op: &Op, operand: usize) -> bool {
    match op {
        Op::Movement(Movement::Repeat { .. }) => false,
        Op::Gather { .. } => operand == 1,
        Op::Mma | Op::Reduce { .. } | Op::Scan { .. } | Op::Histogram(_) => true,
        Op::Movement(_) | Op::Scatter { .. } => true,
        op => is_elementwise(op) || op.is_store() || op.is_fold(),
    }
}
