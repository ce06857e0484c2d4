//! Which tiles are stored in scratch memory, and which are computed in the loop of the op that consumes them.
//!
//! The result of an elementwise op is computed in its consumer's loop if it has a single use, in the same region, by an op
//! that reads each element once. The same goes for a load from a view that is only read: its elements are then read from
//! the tensor where they are needed, unless that would be across rows, or one by one with masks. A load may have several
//! such uses, and so may what a single instruction computes from it: a copy in scratch memory would cost a store, and room
//! in the first cache that the tensor's rows need.
//!
//! Splats and counters cost nothing, and a broadcast of a stored tile is an address computation, so these are computed
//! wherever they are used. Everything else is stored. In particular, these are: a factor of a product that is gathered by
//! rows, because copying rows is faster than asking for elements one by one; and what a reshape joins to rows or a product
//! packs transposed, because it would be computed across its rows.
//!
//! A reshape that joins rows of which each is whole vectors is computed in the loop of a reduction of the joined rows, which
//! finds out once for all lanes of a vector which of the rows it is a part of: a scale for each 32 weights is read so.
//!
//! Tiles that are needed by several ops are computed in one loop as well if all these uses end in that loop: a loop of
//! stores, or that of an op whose pieces alternate in memory, such as the rotated halves of pairs ([`consumer`]).
//!
//! A stored tile whose first reader is a reduction of its rows is computed and stored in the reduction's loop, which saves
//! one pass over its elements.
//!
//! What a chain of very many ops computes is stored on the way: a loop of all of them would take LLVM's vectoriser, whose time
//! grows faster than loops, minutes.
//!
//! One kind of use needs a tile in memory whatever made it: `yield`, whose copies to carried tiles may overwrite what a
//! computed tile would read.

mod consumer;
mod reads;
#[cfg(test)]
mod tests;
mod together;

use super::atomics::rows::is_plain_store;
use super::elements::{is_short, splits_axes};
use super::lines::hosted;
use super::lines::hosted::Hosted;
use super::lines::reduce::{SHORTEST, lanes_of};
use super::memory::gathered::gathered_rows;
use super::region::extents;
use super::vectors::transpose::transposed_axis;
use consumer::Consumer;
use std::collections::{HashMap, HashSet};
use tile_ir::analysis::{CountedRow, GatheredRow};
use tile_ir::kernel::{OpData, OpId};
use tile_ir::ops::{BinaryOp, Movement, UnaryOp};
use tile_ir::{Dim, Instance, Op, RegionId, Type, ValueId};
use together::Together;

/// The most uses of a tile that is read from its tensor, or computed, for each of them.
const MOST_LOOPS: usize = 4;

/// The longest chain of ops that computes an element from stored ones and from tensors.
const LONGEST_CHAIN: usize = 256;

/// One operand of an op.
struct Use {
    op: OpId,
    operand: usize,
    region: RegionId,
}

/// A tile that an op reads.
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
    /// Tiles whose elements are read in another order by the loop that they end up in.
    permuted: HashSet<ValueId>,
    stored: HashSet<ValueId>,
    /// By tiles that aren't stored, the longest chain of ops that computes an element.
    chains: HashMap<ValueId, usize>,
    /// Tiles that one loop alone reads, and computes.
    consumers: HashMap<ValueId, Consumer>,
    /// By the result of a reduction, the stored tile that its loop computes.
    made_by_reduction: HashMap<ValueId, ValueId>,
    /// Gathers that read rows along the last axis of their tiles.
    gathered_rows: HashMap<ValueId, GatheredRow>,
    /// Gathers that may read parts of rows along it.
    counted_rows: HashMap<ValueId, CountedRow>,
    /// Reductions that another one's loop does.
    hosted: Hosted,
    /// Stores that share a loop.
    together: Together,
}

impl<'a> Fusion<'a> {
    pub(super) fn of(instance: &'a Instance) -> Self {
        let (gathered_rows, counted_rows) = gathered_rows(instance);
        let mut fusion = Fusion {
            instance,
            definitions: HashMap::new(),
            home: HashMap::new(),
            uses: HashMap::new(),
            permuted: HashSet::new(),
            stored: HashSet::new(),
            chains: HashMap::new(),
            consumers: HashMap::new(),
            made_by_reduction: HashMap::new(),
            gathered_rows,
            counted_rows,
            hosted: Hosted::new(),
            together: Together::default(),
        };
        fusion.collect(instance.body());
        fusion.find_permuted();
        fusion.together = Together::of(&fusion);
        fusion.find_consumers();
        fusion.decide(instance.body());
        fusion.leave_to_reductions(instance.body());
        fusion.hosted = hosted::decide(&fusion);
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

    /// In reverse order, so that what becomes of a tile is known before the tile.
    fn find_permuted(&mut self) {
        let instance = self.instance;
        for op in instance.walk().into_iter().rev() {
            let tiles = instance.op(op).results.iter().filter(|&&result| self.is_permuted(result));
            let tiles: Vec<ValueId> = tiles.copied().collect();
            self.permuted.extend(tiles);
        }
    }

    /// In order of definition, so that a broadcast knows whether what it repeats is stored.
    fn decide(&mut self, region: RegionId) {
        let instance = self.instance;
        let params = instance.region(region).params.iter().copied();
        self.stored.extend(params.filter(|&param| is_tile(instance, param)));
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            let chain = self.chain_to(data);
            let is_too_long = chain > LONGEST_CHAIN && data.op.is_leaf();
            if self.is_computed(data) && !is_too_long {
                self.chains.extend(data.results.iter().map(|&result| (result, chain)));
            } else {
                self.stored.extend(data.results.iter().copied().filter(|&result| is_tile(instance, result)));
            }
            data.regions.iter().for_each(|&inner| self.decide(inner));
        }
    }

    /// The longest chain of ops that computes an element of what an op gives.
    fn chain_to(&self, data: &OpData) -> usize {
        data.operands.iter().filter_map(|operand| self.chains.get(operand)).max().map_or(1, |chain| chain + 1)
    }

    /// Finds the stored tiles that the loop of the reduction behind them computes. Between the two are only ops that
    /// emit nothing, or scalars.
    fn leave_to_reductions(&mut self, region: RegionId) {
        let instance = self.instance;
        let mut last: Option<&'a OpData> = None;
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            data.regions.iter().for_each(|&inner| self.leave_to_reductions(inner));
            let emits_nothing = match data.results.as_slice() {
                [] => false,
                results => results.iter().all(|&result| {
                    is_tile(instance, result) && !self.is_stored(result)
                        || data.op.is_leaf() && !is_tile(instance, result)
                }),
            };
            if emits_nothing || matches!(data.op, Op::Partition(_) | Op::View(_)) {
                continue;
            }
            if let Some(made) = last.take().filter(|made| self.is_made_by(data, made)) {
                self.made_by_reduction.insert(data.results[0], made.results[0]);
            }
            last = Some(data).filter(|data| is_place_by_place(&data.op) || data.op.is_load());
        }
    }

    /// Whether a reduction reads a stored tile once per element, and nothing that the tile is made of.
    fn is_made_by(&self, data: &OpData, made: &OpData) -> bool {
        let tile = made.results[0];
        let operands = data.operands.iter().map(|&tile| Read { tile, in_place: true });
        let reads = self.read_from(operands.collect());
        let (own, other): (Vec<Read>, Vec<Read>) = reads.into_iter().partition(|read| read.tile == tile);
        let made_of = self.reads(made);
        is_reduction_of_rows(self.instance, data)
            && !own.is_empty()
            && own.iter().all(|read| read.in_place)
            && self.shape_of(tile) == self.shape_of(data.operands[0])
            && !other.iter().any(|read| made_of.iter().any(|source| source.tile == read.tile))
    }

    pub(super) fn shape_of(&self, tile: ValueId) -> Option<&'a [Dim]> {
        self.instance.ty(tile).as_tile().map(|ty| ty.shape.as_slice())
    }

    /// The stored tile that the loop of a reduction computes.
    pub(super) fn made_by(&self, reduction: &OpData) -> Option<&'a OpData> {
        let result = reduction.results.first()?;
        self.definition(*self.made_by_reduction.get(result)?)
    }

    /// Whether a tile is computed by the loop of a later reduction.
    pub(super) fn is_left_to_reduction(&self, tile: ValueId) -> bool {
        self.made_by_reduction.values().any(|&made| made == tile)
    }

    fn is_computed(&self, data: &OpData) -> bool {
        let has_one_consumer = data.results.first().is_some_and(|&tile| self.has_one_consumer(tile));
        match &data.op {
            Op::Splat(_) | Op::Iota { .. } => true,
            Op::Permute(_) if self.transposed_load(data).is_some() => true,
            Op::Reshape(_) => {
                let is_read_in_place =
                    self.is_matrix_of_load(data) || has_one_consumer || self.is_split_by_lanes(data);
                is_read_in_place && !self.is_stored(data.operands[0])
            }
            Op::Broadcast(_) => {
                self.costs_nothing(data.operands[0])
                    && !self.users(data.results[0]).any(|(_, user)| user.op == Op::Yield)
            }
            op if op.is_load() => {
                let view = self.instance.ty(data.operands[0]).as_partition().expect("verified: a view");
                let tile = data.results[0];
                let is_across = self.permuted.contains(&tile)
                    || self.is_joined_to_rows(tile)
                    || self.is_taken_apart(data);
                let is_stream = has_one_consumer || (self.feeds_loops(tile, MOST_LOOPS) && !is_across);
                let only_use = self.only_use(tile);
                let is_matrix = only_use.is_some_and(|data| self.is_matrix_of_load(data));
                match view.tensor.mutable {
                    true => is_stream && self.is_replaced(data),
                    false => is_stream || is_matrix || self.is_transposed_into_store(data),
                }
            }
            Op::GatherLoad if self.is_row_of_factor(data.results[0]) => false,
            _ if has_one_consumer => true,
            op if is_elementwise(op) => {
                let (tile, loops) = (data.results[0], if self.costs_little(data) { MOST_LOOPS } else { 1 });
                let is_across =
                    self.is_transposed_factor(tile) || (self.is_joined_to_rows(tile) && !self.is_flat(data));
                self.transposed_axis(data).is_none() && self.feeds_loops(tile, loops) && !is_across
            }
            _ => false,
        }
    }

    /// Whether a reshape joins the last axis of a tile with others to rows: where an element of these is would take a
    /// division each.
    fn is_joined_to_rows(&self, tile: ValueId) -> bool {
        self.users(tile).any(|(_, user)| {
            let shape = |tile| self.shape_of(tile).map(extents);
            let result = user.results.first().filter(|_| matches!(user.op, Op::Reshape(_)));
            shape(tile)
                .zip(result.and_then(|&result| shape(result)))
                .is_some_and(|(from, to)| joins_rows(&from, &to) && !self.is_split_by_lanes(user))
        })
    }

    /// Whether parts of the short rows of a load with a mask are taken: each element would have a mask of its own there, where
    /// a copy of the rows has one for all of them.
    fn is_taken_apart(&self, load: &OpData) -> bool {
        let tile = load.results[0];
        let width = |tile| self.shape_of(tile).and_then(|shape| extents(shape).last().copied());
        let is_part = |user: &OpData| {
            matches!(user.op, Op::Movement(Movement::Extract { .. })) && width(user.results[0]) != width(tile)
        };
        load.op == Op::LoadMasked
            && width(tile).is_some_and(is_short)
            && self.users(tile).any(|(_, user)| is_part(user))
    }

    /// Whether what a reshape joins to rows is read by one reduction of rows alone, each of whose vectors is a part of one of
    /// the rows before: that part is found once for all lanes.
    fn is_split_by_lanes(&self, data: &OpData) -> bool {
        let (Op::Reshape(_), [from], [to]) = (&data.op, &data.operands[..], &data.results[..]) else {
            return false;
        };
        let [shape, joined] = [from, to].map(|&tile| self.shape_of(tile).map(extents).unwrap_or_default());
        let ([outer @ .., parts, part], [rows @ .., width]) = (&shape[..], &joined[..]) else { return false };
        parts * part == *width
            && part % lanes_of(*width) == 0
            && splits_axes(outer, rows)
            && self.feeds_reduction_of_rows(*to)
    }

    /// Whether ops on elements alone lead from a tile to a reduction of its rows, each with one use beside it.
    fn feeds_reduction_of_rows(&self, tile: ValueId) -> bool {
        self.only_use(tile).is_some_and(|user| match user.results[..] {
            [result] if user.op.is_leaf() => self.feeds_reduction_of_rows(result),
            _ => is_reduction_of_rows(self.instance, user),
        })
    }

    /// Whether a tile's one use is to be transposed for a product, which would compute it across its rows.
    fn is_transposed_factor(&self, tile: ValueId) -> bool {
        let is_transposed = |data: &OpData| match &data.op {
            Op::Permute(axes) => swaps_last_two(axes) && self.is_factor_alone(data.results[0]),
            _ => false,
        };
        self.use_count(tile) == 1 && self.users(tile).any(|(_, user)| is_transposed(user))
    }

    /// Whether an op leaves of a loaded tile's axes those of its one matrix, which is all that a product is given of it: that
    /// reads it in its tensor.
    fn is_matrix_of_load(&self, data: &OpData) -> bool {
        let (Op::Reshape(_), [from], [to]) = (&data.op, &data.operands[..], &data.results[..]) else {
            return false;
        };
        let is_load = self.definition(*from).is_some_and(|load| load.op.is_load());
        let [axes, left] = [from, to].map(|&tile| self.shape_of(tile).map(extents).unwrap_or_default());
        let is_matrix =
            is_only_matrix(&axes, &left) && (self.is_factor_alone(*to) || self.is_transposed_factor(*to));
        is_load && is_matrix && self.only_use(*from).is_some()
    }

    /// The one op that reads a tile, if it stands beside the op that gives it.
    fn only_use(&self, tile: ValueId) -> Option<&'a OpData> {
        match self.uses.get(&tile).map(Vec::as_slice) {
            Some([only]) if self.home.get(&tile) == Some(&only.region) => Some(self.instance.op(only.op)),
            _ => None,
        }
    }

    /// Whether a tile is gathered by rows and a product packs it, or what is made of it element by element: packing goes
    /// across rows.
    fn is_row_of_factor(&self, tile: ValueId) -> bool {
        let is_product = |(_, user): &(RegionId, &OpData)| user.op == Op::Mma;
        self.gathered_row(tile).is_some() && self.users_through_leaves(tile).iter().any(is_product)
    }

    /// Whether the one use of a loaded tile is to be transposed, and that of the transposed tile to be stored, where the rows of
    /// both lie along those of tensors.
    fn is_transposed_into_store(&self, load: &OpData) -> bool {
        let tile = load.results[0];
        let transposed = self.only_use(tile).filter(|data| self.transposes(data).is_some());
        let store =
            transposed.and_then(|data| self.only_use(data.results[0])).filter(|data| data.op.is_store());
        store.is_some_and(|store| [load, store].iter().all(|access| self.goes_along_rows(access)))
    }

    /// Whether the rows of the tile of a load or store follow each other's elements in the tensor, from its first on.
    fn goes_along_rows(&self, access: &OpData) -> bool {
        let view = self.instance.ty(access.operands[0]).as_partition().expect("verified: a view");
        let tensor = view.tensor.strided();
        let has_rows = tensor.strides.last().is_some_and(|stride| stride.as_const() == Some(1));
        has_rows && tensor.windows.iter().all(Vec::is_empty)
    }

    /// The load whose rows a permutation transposes on their way to the permutation's one use, a store, where neither tile is
    /// stored in scratch memory.
    pub(super) fn transposed_load(&self, data: &OpData) -> Option<&'a OpData> {
        self.transposes(data)?;
        let load = self.definition(data.operands[0]).filter(|load| load.op.is_load())?;
        (!self.is_stored(load.results[0]) && self.is_transposed_into_store(load)).then_some(load)
    }

    /// Whether an element is computed again as cheaply as it is read back: by one instruction, from tiles that aren't
    /// stored.
    fn costs_little(&self, data: &OpData) -> bool {
        let is_one = match &data.op {
            Op::Binary(op) => matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul),
            Op::Unary(op) => matches!(op, UnaryOp::Neg | UnaryOp::Abs),
            _ => false,
        };
        let is_native = |tile| {
            let elem = self.instance.ty(tile).as_tile().and_then(|ty| ty.elem.known());
            elem.is_some_and(|dtype| !dtype.is_narrow_float())
        };
        let is_free = |&operand: &ValueId| {
            let made_by = self.definition(operand).map(|data| &data.op);
            let is_source =
                |op: &Op| op.is_load() || matches!(op, Op::Splat(_) | Op::Iota { .. } | Op::Broadcast(_));
            !is_tile(self.instance, operand) || (!self.is_stored(operand) && made_by.is_some_and(is_source))
        };
        is_one && is_native(data.results[0]) && data.operands.iter().all(is_free)
    }

    /// The axis of a permutation's result that the rows of its operand lie along, where both are stored and blocks of
    /// them are transposed.
    pub(super) fn transposed_axis(&self, data: &OpData) -> Option<usize> {
        self.transposes(data).filter(|_| self.is_stored(data.operands[0]))
    }

    fn is_permuted(&self, tile: ValueId) -> bool {
        self.users(tile).any(|(_, consumer)| match &consumer.op {
            Op::Permute(axes) => !(self.is_factor_alone(consumer.results[0]) && swaps_last_two(axes)),
            op if is_elementwise(op) => {
                let result = consumer.results[0];
                self.permuted.contains(&result) && self.feeds_loops(result, MOST_LOOPS)
            }
            _ => false,
        })
    }

    /// Whether a tile is a factor of one `mma` and nothing else.
    fn is_factor_alone(&self, tile: ValueId) -> bool {
        let Some([only]) = self.uses.get(&tile).map(Vec::as_slice) else { return false };
        self.instance.op(only.op).op == Op::Mma && only.operand < 2 && self.feeds_loops(tile, 1)
    }

    /// Whether reading an element again is as cheap as reading memory.
    fn costs_nothing(&self, tile: ValueId) -> bool {
        let made_by = self.definition(tile).map(|data| &data.op);
        self.is_stored(tile) || matches!(made_by, Some(Op::Splat(_) | Op::Iota { .. }))
    }

    /// Whether each of the tile's uses, which are so many at most, reads each element once, in the region of the
    /// definition. A product goes over its factors more than once.
    fn feeds_loops(&self, tile: ValueId, most: usize) -> bool {
        let uses = self.uses.get(&tile).map_or(&[][..], Vec::as_slice);
        let is_only = uses.len() == 1;
        (1..=most).contains(&uses.len())
            && uses.iter().all(|u| {
                let consumer = self.instance.op(u.op);
                self.home.get(&tile) == Some(&u.region)
                    && (reads_once(&consumer.op, u.operand) || self.is_split_by_lanes(consumer))
                    && (is_only || consumer.op != Op::Mma)
                    && self.transposes(consumer).is_none()
            })
    }

    /// The axis of a permutation's result that the rows of its operand lie along, where blocks are transposed: products
    /// transpose their factors themselves.
    fn transposes(&self, data: &OpData) -> Option<usize> {
        transposed_axis(self.instance, data).filter(|_| match &data.op {
            Op::Permute(axes) => !(self.is_factor_alone(data.results[0]) && swaps_last_two(axes)),
            _ => false,
        })
    }

    /// How a gather reads rows along the last axis of its tile, if it does.
    pub(super) fn gathered_row(&self, tile: ValueId) -> Option<GatheredRow> {
        self.gathered_rows.get(&tile).copied()
    }

    /// How a gather may read parts of rows along the last axis of its tile, as far as its indices show at run time.
    pub(super) fn counted_row(&self, tile: ValueId) -> Option<CountedRow> {
        self.counted_rows.get(&tile).copied()
    }

    /// What the decisions are about.
    pub(super) fn instance(&self) -> &'a Instance {
        self.instance
    }

    /// How many uses a tile has.
    pub(super) fn use_count(&self, tile: ValueId) -> usize {
        self.uses.get(&tile).map_or(0, Vec::len)
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

    /// Whether a constant gives a value.
    pub(super) fn is_constant(&self, value: ValueId) -> bool {
        self.definition(value).is_some_and(|data| data.constant().is_some())
    }

    /// The reductions that others' loops do.
    pub(super) fn hosted(&self) -> &Hosted {
        &self.hosted
    }
}

/// Whether a value is a tile.
pub(super) fn is_tile(instance: &Instance, value: ValueId) -> bool {
    matches!(instance.ty(value), Type::Tile(_))
}

/// Whether the last axis of the second of two shapes with as many elements, units left out, is made of several of the first.
fn joins_rows(source: &[i64], result: &[i64]) -> bool {
    let last = |shape: &[i64]| shape.iter().copied().rfind(|&extent| extent > 1).unwrap_or(1);
    last(source) % last(result) != 0
}

/// Whether two shapes are of one and the same matrix, with one element along all other axes.
fn is_only_matrix(from: &[i64], to: &[i64]) -> bool {
    let split = |shape: &[i64]| -> Option<[i64; 2]> {
        let [others @ .., rows, columns] = shape else { return None };
        others.iter().all(|&extent| extent == 1).then_some([*rows, *columns])
    };
    split(from).is_some() && split(from) == split(to)
}

/// Whether a permutation of axes is the transposition of matrices.
pub(super) fn swaps_last_two(axes: &[usize]) -> bool {
    let rank = axes.len();
    rank >= 2
        && axes[rank - 2..] == [rank - 1, rank - 2]
        && axes[..rank - 2].iter().enumerate().all(|(i, &axis)| i == axis)
}

/// Ops on elements at one place: what they give there needs only their operands there.
fn is_place_by_place(op: &Op) -> bool {
    op.is_leaf() || matches!(op, Op::GatherLoad)
}

/// Whether element `i` of what an op gives, or stores, needs only element `i` of this operand.
fn keeps_place(op: &Op, operand: usize) -> bool {
    match op {
        op if is_place_by_place(op) => true,
        Op::Reshape(_) | Op::ConvertLayout => true,
        Op::Mma => operand == 2,
        op if op.is_store() => operand == 1,
        Op::Gather { .. } => operand == 1,
        Op::Scatter { .. } | Op::Movement(Movement::Insert { .. }) => operand == 0,
        op => op.is_loop() || *op == Op::Yield,
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
        op => is_place_by_place(op),
    }
}

/// Whether an op reduces rows along the last axis, and they are long enough for partial results in lanes.
pub(super) fn is_reduction_of_rows(instance: &Instance, data: &OpData) -> bool {
    let Op::Reduce { axis, .. } = &data.op else { return false };
    let ty = instance.ty(data.operands[0]).as_tile().expect("verified: a tile is reduced");
    let shape = super::region::extents(&ty.shape);
    axis + 1 == shape.len() && shape[*axis] >= SHORTEST
}

/// Whether an op reads each element of an operand at most once, in a loop.
fn reads_once(op: &Op, operand: usize) -> bool {
    match op {
        Op::Movement(Movement::Repeat { .. }) => false,
        Op::Gather { .. } => operand == 1,
        Op::Mma | Op::Reduce { .. } | Op::Scan { .. } | Op::Histogram(_) => true,
        Op::Movement(_) | Op::Scatter { .. } => true,
        Op::Atomic(atomic) => is_plain_store(atomic),
        op => is_elementwise(op) || op.is_store() || op.is_fold(),
    }
}
