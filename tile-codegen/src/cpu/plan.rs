//! Which tiles are stored, and where.
//!
//! An elementwise result is computed in its consumer's loop if it has one consumer, in the same region, that
//! reads each element once. Splats and counters cost nothing and are never stored. Everything else has a
//! buffer of its own; only an accumulator takes over the buffer of the tile that it adds to.

use std::collections::{HashMap, HashSet};
use tile_ir::dtype::DType;
use tile_ir::kernel::OpData;
use tile_ir::{Instance, Op, RegionId, Type, ValueId};

/// Alignment of every buffer: a cache line, and the widest vector.
const ALIGNMENT: u64 = 64;

/// Where tiles are kept in a block's scratch memory.
pub(super) struct Plan {
    /// Byte offset of each stored tile.
    offsets: HashMap<ValueId, u64>,
    scratch_bytes: u64,
}

impl Plan {
    /// Plans the tiles of an instance.
    pub(super) fn of(instance: &Instance) -> Plan {
        let uses = Uses::of(instance);
        let mut planner =
            Planner { instance, uses: &uses, plan: Plan { offsets: HashMap::new(), scratch_bytes: 0 } };
        planner.region(instance.body());
        planner.plan
    }

    /// The stored tile's offset; `None` for a tile that its consumer computes.
    pub(super) fn offset(&self, value: ValueId) -> Option<u64> {
        self.offsets.get(&value).copied()
    }

    /// The distinct buffers.
    pub(super) fn buffers(&self) -> HashSet<u64> {
        self.offsets.values().copied().collect()
    }

    /// Scratch memory of a block, in bytes.
    pub(super) fn scratch_bytes(&self) -> u64 {
        self.scratch_bytes
    }
}

/// The format that a tile's elements have in scratch memory.
pub(super) fn scratch_bytes_of(dtype: DType) -> u64 {
    match dtype {
        DType::F16 | DType::BF16 => 4,
        _ => dtype.bytes() as u64,
    }
}

/// How often and where values are used.
struct Uses {
    count: HashMap<ValueId, usize>,
    /// The region of a value's definition.
    home: HashMap<ValueId, RegionId>,
    /// The consumers, with their regions.
    consumers: HashMap<ValueId, Vec<(RegionId, Op)>>,
}

impl Uses {
    fn of(instance: &Instance) -> Uses {
        let mut uses = Uses { count: HashMap::new(), home: HashMap::new(), consumers: HashMap::new() };
        uses.region(instance, instance.body());
        uses
    }

    fn region(&mut self, instance: &Instance, region: RegionId) {
        for &param in &instance.region(region).params {
            self.home.insert(param, region);
        }
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            for &operand in &data.operands {
                *self.count.entry(operand).or_default() += 1;
                self.consumers.entry(operand).or_default().push((region, data.op.clone()));
            }
            for &result in &data.results {
                self.home.insert(result, region);
            }
            for &inner in &data.regions {
                self.region(instance, inner);
            }
        }
    }

    fn count(&self, value: ValueId) -> usize {
        self.count.get(&value).copied().unwrap_or(0)
    }

    /// Whether the value's one consumer reads each element once, in the region of the definition.
    fn feeds_one_loop(&self, value: ValueId) -> bool {
        match self.consumers.get(&value).map(Vec::as_slice) {
            Some([(region, consumer)]) => self.home.get(&value) == Some(region) && reads_once(consumer),
            _ => false,
        }
    }
}

/// Whether an op reads each element of its operands exactly once, in a loop. `yield` isn't one: it writes
/// buffers that what it yields may still be computed from.
fn reads_once(op: &Op) -> bool {
    matches!(
        op,
        Op::Unary(_)
            | Op::Binary(_)
            | Op::Compare(_)
            | Op::Select
            | Op::Cast(_)
            | Op::Permute(_)
            | Op::Reduce { .. }
            | Op::StoreMasked
    )
}

/// Whether an op's elements can be computed one by one from its operands' elements.
pub(super) fn is_elementwise(op: &Op) -> bool {
    matches!(
        op,
        Op::Unary(_)
            | Op::Binary(_)
            | Op::Compare(_)
            | Op::Select
            | Op::Cast(_)
            | Op::Broadcast(_)
            | Op::Permute(_)
    )
}

struct Planner<'a> {
    instance: &'a Instance,
    uses: &'a Uses,
    plan: Plan,
}

impl Planner<'_> {
    fn region(&mut self, region: RegionId) {
        let instance = self.instance;
        for &param in &instance.region(region).params {
            self.store(param);
        }
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            self.results(data);
            for &inner in &data.regions {
                self.region(inner);
            }
        }
    }

    fn results(&mut self, data: &OpData) {
        match &data.op {
            Op::Splat(_) | Op::Iota { .. } => {}
            Op::Mma => self.accumulator(data),
            op if is_elementwise(op) && self.is_computed_by_consumer(data) => {}
            _ => {
                for &result in &data.results {
                    self.store(result);
                }
            }
        }
    }

    /// A broadcast is an address computation, unless what it repeats would be recomputed for every repeat.
    fn is_computed_by_consumer(&self, data: &OpData) -> bool {
        let result = data.results[0];
        match data.op {
            Op::Broadcast(_) => self.is_cheap(data.operands[0]),
            _ => self.uses.feeds_one_loop(result),
        }
    }

    fn is_cheap(&self, value: ValueId) -> bool {
        self.plan.offsets.contains_key(&value) || !self.is_stored_type(value) || self.is_free(value)
    }

    /// Splats and counters.
    fn is_free(&self, value: ValueId) -> bool {
        let definition =
            self.instance.walk().into_iter().find(|&op| self.instance.op(op).results.contains(&value));
        definition.is_some_and(|op| matches!(self.instance.op(op).op, Op::Splat(_) | Op::Iota { .. }))
    }

    fn is_stored_type(&self, value: ValueId) -> bool {
        matches!(self.instance.ty(value), Type::Tile(_))
    }

    fn accumulator(&mut self, data: &OpData) {
        let (accumulator, result) = (data.operands[2], data.results[0]);
        let same_region = self.uses.home.get(&accumulator) == self.uses.home.get(&result);
        match self.plan.offset(accumulator) {
            Some(offset) if same_region && self.uses.count(accumulator) == 1 => {
                self.plan.offsets.insert(result, offset);
            }
            _ => self.store(result),
        }
    }

    fn store(&mut self, value: ValueId) {
        let Some(tile) = self.instance.ty(value).as_tile() else { return };
        let extents =
            tile.shape.iter().map(|dim| dim.as_const().expect("an instance's tile extents are numbers"));
        let dtype = tile.elem.known().expect("an instance has no dtype parameters");
        let bytes = extents.product::<i64>() as u64 * scratch_bytes_of(dtype);
        self.plan.offsets.insert(value, self.plan.scratch_bytes);
        self.plan.scratch_bytes += bytes.next_multiple_of(ALIGNMENT);
    }
}
