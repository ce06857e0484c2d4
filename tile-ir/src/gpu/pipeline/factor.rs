//! The factors of loops' products that can lie in rings: tiles that a loop, or what is around it, loads for products alone.
//!
//! Several products may read one tile, and each in its own direction: what one takes along its depth is to another, that
//! takes the tile transposed, across it. But no thread holds what lies in a ring, so all that use it must read it there.

use super::super::products::{self, extents};
use super::super::{dtype_of, shape_of};
use super::brought;
use super::obstacle::{Named, Obstacle, Obstacles};
use super::shared_tile::{Copyable, Major};
use super::{MOST_CONSUMERS, Slice};
use crate::analysis::reshape::axis_before;
use crate::analysis::uses::Uses;
use crate::gpu::numbers::Numbers;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::{Carried, Op};
use crate::target::{Fragments, TargetDesc, wgmma_has_columns};
use crate::view::Source;
use std::collections::HashSet;
use tile_layout::linear::MatrixShape;

/// The most columns of a warpgroup's product, and of one in tensor memory (PTX ISA, "wgmma.mma_async", "tcgen05.mma").
const MOST_COLUMNS: u64 = 256;

/// Bytes of the elements that a warpgroup takes from columns as from rows.
const TRANSPOSED_BYTES: usize = 2;

/// One of the two factors of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct FactorId {
    pub(in super::super) product: OpId,
    /// Its number among the product's operands: 0 of the left one, 1 of the right one.
    pub(in super::super) operand: usize,
}

impl FactorId {
    pub(in super::super) fn left(product: OpId) -> FactorId {
        FactorId { product, operand: 0 }
    }

    pub(in super::super) fn right(product: OpId) -> FactorId {
        FactorId { product, operand: 1 }
    }

    /// Left and right.
    pub(in super::super) fn both(product: OpId) -> [FactorId; 2] {
        [FactorId::left(product), FactorId::right(product)]
    }

    pub(super) fn is_left(self) -> bool {
        self.operand == 0
    }

    fn tile(self, kernel: &Kernel) -> ValueId {
        kernel.op(self.product).operands[self.operand]
    }
}

/// A factor that a load gives.
#[derive(Clone)]
pub(super) struct Factor {
    pub(super) id: FactorId,
    pub(super) load: OpId,
    /// The region in which the load stands.
    pub(super) home: RegionId,
    /// The body of the product's loop: the same, or one within it.
    pub(super) turn: RegionId,
    pub(super) copyable: Copyable,
    pub(super) major: Major,
    /// What the load gives, and what that is called on the way.
    pub(super) values: Vec<ValueId>,
    /// How many warpgroups may share the product.
    pub(super) blocks: u64,
}

impl Factor {
    /// A factor of a product that so many warpgroups may share, in the body of a loop.
    ///
    /// # Errors
    /// What keeps it from a ring.
    fn of(numbers: &Numbers<'_>, id: FactorId, turn: RegionId, blocks: u64) -> Result<Factor, Obstacle> {
        let kernel = numbers.kernel;
        let Origin { load, values, axes } = Origin::of_factor(kernel, id)?;
        let home = kernel.region_of(load).expect("a load of the kernel stands in a region");
        let tensor = || kernel.tensor_name(kernel.op(load).load().expect("a load").view);
        let copyable = numbers.copyable(load)?;
        let depth = axes[if id.is_left() { 1 } else { 0 }];
        let major = if copyable.inner == depth { Major::Depth } else { Major::Other };
        if major == Major::Other && copyable.tile.element != TRANSPOSED_BYTES as u64 {
            return Err(Obstacle::Across { tensor: tensor(), elem: dtype_of(kernel, id.tile(kernel)) });
        }
        match Slice::of(kernel, vec![load], Vec::new()).err().map(|op| Named::of(kernel, op)) {
            None => Ok(Factor { id, load, home, turn, copyable, major, values, blocks }),
            Some(by) => Err(Obstacle::Unknown { tensor: tensor(), by }),
        }
    }

    /// Whether its tile is loaded before the product's loop, for all its turns.
    pub(super) fn is_loaded_before(&self) -> bool {
        self.home != self.turn
    }

    /// Whether registers may have it instead: a left factor for which the loop does nothing.
    fn may_be_held(&self) -> bool {
        self.id.is_left() && self.is_loaded_before()
    }
}

/// Whether what a loop's product adds to is nothing but the sums of the turn before, which only it needs.
pub(super) fn carries_sums(kernel: &Kernel, uses: &Uses, body: RegionId, product: OpId) -> bool {
    let region = kernel.region(body);
    let data = kernel.op(product);
    let (before, after) = (data.operands[2], data.results[0]);
    let param = region.params.iter().position(|&param| param == before);
    let (Some(param), Some(&end)) = (param, region.ops.last()) else { return false };
    uses.only(before) == Some(product)
        && uses.only(after) == Some(end)
        && kernel.op(end).operands.get(param - Carried::FOR.param) == Some(&after)
}

/// The loads of factors of loops' products whose tensors were selected from others, where warpgroups can do the product.
pub(in super::super) fn selected(kernel: &Kernel, target: &TargetDesc) -> Vec<OpId> {
    let can_be_done = |op: &OpId| blocks(kernel, kernel.op(*op), target).is_ok();
    let products = products_of_loops(kernel).map(|(product, _)| product).filter(can_be_done);
    let factors = products.flat_map(FactorId::both);
    let mut loads: Vec<OpId> =
        factors.filter_map(|factor| Some(Origin::of_factor(kernel, factor).ok()?.load)).collect();
    loads.sort();
    loads.dedup();
    let is_selected = |load: &OpId| {
        let view = kernel.op(*load).load().and_then(|load| kernel.definition(load.view));
        view.is_some_and(|cut| !Source::of(kernel, cut.operands[0]).selections.is_empty())
    };
    loads.retain(is_selected);
    loads
}

/// The products that stand in loops, with the bodies of these.
fn products_of_loops(kernel: &Kernel) -> impl Iterator<Item = (OpId, RegionId)> {
    let loops = kernel.walk().into_iter().filter(|&op| kernel.op(op).op == Op::For);
    let bodies = loops.map(|op| kernel.op(op).regions[0]);
    let ops = bodies.flat_map(|body| kernel.region(body).ops.iter().map(move |&op| (op, body)));
    ops.filter(|&(op, _)| kernel.op(op).op == Op::Mma)
}

/// The products of loops and branches within a body: what they read is copied, and left, in its turn.
pub(super) fn products_within(kernel: &Kernel, body: RegionId) -> impl Iterator<Item = OpId> {
    let ops = &kernel.region(body).ops;
    let all = kernel.walk_in(body).into_iter();
    all.filter(move |op| kernel.op(*op).op == Op::Mma && !ops.contains(op))
}

/// What keeps products from rings that stand in the body of no loop.
pub(super) fn outside_of_loops(kernel: &Kernel, target: &TargetDesc) -> Obstacles {
    let in_loops: HashSet<OpId> = products_of_loops(kernel).map(|(product, _)| product).collect();
    let around = |product: OpId| -> Vec<OpId> {
        kernel.walk().into_iter().filter(|&op| kernel.stands_in(product, op)).collect()
    };
    let mut obstacles = Obstacles::default();
    let products = kernel.walk().into_iter().filter(|&op| kernel.op(op).op == Op::Mma);
    for product in products.filter(|product| !in_loops.contains(product)) {
        if let Err(obstacle) = blocks(kernel, kernel.op(product), target) {
            obstacles.add(FactorId::right(product), obstacle);
            continue;
        }
        let around = around(product);
        let loc_of =
            |kind: Op| around.iter().map(|&op| kernel.op(op)).find(|data| data.op == kind).map(|it| it.loc);
        let obstacle = match (loc_of(Op::While), loc_of(Op::For), around.last()) {
            (Some(turns), ..) => Obstacle::While(turns),
            (None, Some(_), Some(&branch)) => Obstacle::Branch(kernel.op(branch).loc),
            _ => Obstacle::NoLoop,
        };
        obstacles.add(FactorId::right(product), obstacle);
    }
    obstacles
}

/// Where the factors of products lie that warpgroups can do.
pub(super) struct Factors {
    /// Those that can lie in rings.
    pub(super) in_rings: Vec<Factor>,
    /// The products whose right factor consumers can bring, each with how many warpgroups may share it.
    pub(super) brought: Vec<(OpId, u64)>,
}

impl Factors {
    /// The factors of loops' products that can lie in rings, of products whose right factor does or is brought; adds what keeps
    /// others from that. What products outside of loops are kept by is known.
    pub(super) fn of(
        numbers: &Numbers<'_>,
        uses: &Uses,
        target: &TargetDesc,
        obstacles: &mut Obstacles,
    ) -> Factors {
        let kernel = numbers.kernel;
        let mut in_rings = Vec::new();
        for (product, turn) in products_of_loops(kernel) {
            let blocks = match blocks(kernel, kernel.op(product), target) {
                Ok(blocks) => blocks,
                Err(obstacle) => {
                    obstacles.add(FactorId::right(product), obstacle);
                    continue;
                }
            };
            for id in FactorId::both(product) {
                match Factor::of(numbers, id, turn, blocks) {
                    Ok(factor) => in_rings.push(factor),
                    Err(_) if id.is_left() && is_held(kernel, product, turn) => {}
                    Err(obstacle) => obstacles.add(id, obstacle),
                }
            }
        }
        let mut brought = bringable(kernel, target, &in_rings);
        let products: Vec<OpId> = brought.iter().map(|&(product, _)| product).collect();
        let in_rings = read_there_alone(kernel, uses, in_rings, &products, obstacles);
        brought.retain(|&(product, _)| obstacles.leave_to_consumers(product));
        Factors { in_rings, brought }
    }

    /// How many warpgroups may share all products; `None` where there is none.
    pub(super) fn groups(&self) -> Option<u64> {
        let in_rings = self.in_rings.iter().map(|factor| factor.blocks);
        in_rings.chain(self.brought.iter().map(|&(_, blocks)| blocks)).map(groups).min()
    }
}

/// How many warpgroups may share a product that can be cut into so many parts.
fn groups(blocks: u64) -> u64 {
    MOST_CONSUMERS.min(1 << blocks.trailing_zeros())
}

/// The products whose right factor consumers can bring, each with how many warpgroups may share it: no fewer than share those
/// whose right factor can lie in a ring.
fn bringable(kernel: &Kernel, target: &TargetDesc, in_rings: &[Factor]) -> Vec<(OpId, u64)> {
    let right = in_rings.iter().filter(|factor| !factor.id.is_left());
    let least = right.map(|factor| groups(factor.blocks)).min().unwrap_or(1);
    let products = kernel.walk().into_iter().filter(|&op| kernel.op(op).op == Op::Mma);
    let cut = products.filter_map(|op| Some((op, blocks(kernel, kernel.op(op), target).ok()?)));
    let shared = cut.filter(|&(_, blocks)| groups(blocks) >= least);
    shared.filter(|&(product, _)| brought::can_be_brought(kernel, product, target)).collect()
}

/// Whether registers are as good a place of a product's left factor: it isn't loaded, or not in every turn.
fn is_held(kernel: &Kernel, product: OpId, turn: RegionId) -> bool {
    let origin = Origin::of_factor(kernel, FactorId::left(product));
    origin.map_or(true, |origin| !kernel.region(turn).ops.contains(&origin.load))
}

/// Those of the factors whose tiles nothing uses but factors, of products whose right factor is among them, or can be brought
/// and has to.
pub(super) fn read_there_alone(
    kernel: &Kernel,
    uses: &Uses,
    mut factors: Vec<Factor>,
    bringable: &[OpId],
    obstacles: &mut Obstacles,
) -> Vec<Factor> {
    // One that is none takes others of its product and of its tile with it.
    loop {
        let count = factors.len();
        let found: HashSet<FactorId> = factors.iter().map(|factor| factor.id).collect();
        let on_the_way: HashSet<ValueId> =
            factors.iter().flat_map(|factor| &factor.values).copied().collect();
        let other_user = |value: &ValueId| {
            let leads_to_factors = |user: &OpId| {
                let data = kernel.op(*user);
                let is_way = data.results.iter().any(|result| on_the_way.contains(result));
                let mut operands = (0..data.operands.len()).filter(|&i| data.operands[i] == *value);
                is_way || operands.all(|operand| found.contains(&FactorId { product: *user, operand }))
            };
            uses.of_value(*value).iter().copied().find(|user| !leads_to_factors(user))
        };
        factors.retain(|factor| {
            let product = factor.id.product;
            let is_brought = || bringable.contains(&product) && obstacles.leave_to_consumers(product);
            if !found.contains(&FactorId::right(product)) && !is_brought() {
                return false;
            }
            let Some(user) = factor.values.iter().find_map(other_user) else { return true };
            if !factor.may_be_held() {
                obstacles.add(factor.id, Obstacle::used_by(kernel, user, factor.load));
            }
            false
        });
        if factors.len() == count {
            return factors;
        }
    }
}

/// The loads of tiles that registers may have instead, in order.
pub(super) fn loads_to_hold(factors: &[Factor]) -> Vec<OpId> {
    let loads = by_load(factors.iter()).into_iter();
    loads
        .filter(|reading| reading.iter().all(|factor| factor.may_be_held()))
        .map(|reading| reading[0].load)
        .collect()
}

/// The factors that each load gives, in order.
pub(super) fn by_load<'f>(factors: impl IntoIterator<Item = &'f Factor>) -> Vec<Vec<&'f Factor>> {
    let mut loads: Vec<Vec<&Factor>> = Vec::new();
    for factor in factors {
        match loads.iter_mut().find(|known| known[0].load == factor.load) {
            Some(known) => known.push(factor),
            None => loads.push(vec![factor]),
        }
    }
    loads
}

/// How many warpgroups may share a product: as many times as it has the rows of an instruction, or by halves.
///
/// # Errors
/// Why it can't be cut into one.
fn blocks(kernel: &Kernel, data: &OpData, target: &TargetDesc) -> Result<u64, Obstacle> {
    let dtype = |value: ValueId| dtype_of(kernel, value);
    let (formats, sum) = ([0, 1].map(|operand| dtype(data.operands[operand])), dtype(data.results[0]));
    let instruction = products::suited(kernel, data, target.warpgroup_matrix).next();
    let instruction = instruction.ok_or(Obstacle::Formats(formats))?;
    let extents = extents(kernel, data);
    if instruction.sum != sum {
        return Err(Obstacle::Sums { is: sum, wanted: instruction.sum });
    }
    if shape_of(kernel, data.results[0]).is_some_and(|shape| shape.len() != 2) {
        return Err(Obstacle::Stacked);
    }
    let are_integers = instruction.fragments == Fragments::Wgmma && !sum.is_float();
    let has_columns = extents[1] <= MOST_COLUMNS && (!are_integers || wgmma_has_columns(extents[1], true));
    if !has_columns || !products::cuts(instruction, extents) {
        // Of integers it takes 8 and 24 columns as well.
        let n = if are_integers { 16 } else { instruction.shape.n };
        return Err(Obstacle::Extents(MatrixShape { n, ..instruction.shape }));
    }
    // The sums of tensor memory are halved among warpgroups, by rows or by columns.
    let is_in_tensor_memory = instruction.fragments == Fragments::TensorMemory;
    let [rows, columns, _] = extents;
    if is_in_tensor_memory && ![rows, columns].iter().all(|extent| extent.is_power_of_two()) {
        return Err(Obstacle::Halves { rows, columns });
    }
    Ok(if is_in_tensor_memory { MOST_CONSUMERS } else { extents[0] / u64::from(instruction.shape.m) })
}

/// Where a factor comes from, by ways that move nothing.
struct Origin {
    load: OpId,
    /// The tiles on the way.
    values: Vec<ValueId>,
    /// Of each of the factor's axes, the loaded tile's.
    axes: [usize; 2],
}

impl Origin {
    /// The origin of a factor.
    ///
    /// # Errors
    /// What the factor is, if no load gives it.
    fn of_factor(kernel: &Kernel, factor: FactorId) -> Result<Origin, Obstacle> {
        match Origin::of(kernel, factor.tile(kernel)) {
            Err(Obstacle::Computed { by, .. }) if !factor.is_left() => {
                let left = match Origin::of(kernel, FactorId::left(factor.product).tile(kernel)) {
                    Err(Obstacle::Computed { by, .. }) => Some(by),
                    _ => None,
                };
                Err(Obstacle::Computed { by, left })
            }
            origin => origin,
        }
    }

    /// The origin of a tile.
    fn of(kernel: &Kernel, mut value: ValueId) -> Result<Origin, Obstacle> {
        let (mut axes, mut values) = ([0, 1], Vec::new());
        loop {
            values.push(value);
            let op = kernel.walk().into_iter().find(|&op| kernel.op(op).results.contains(&value));
            let op = op.ok_or(Obstacle::Carried)?;
            let data = kernel.op(op);
            match &data.op {
                Op::Permute(permutation) => axes = axes.map(|axis| permutation[axis]),
                Op::Reshape(_) => {
                    let [first, second] = axes.map(|axis| axis_before(kernel, data, axis));
                    let moved = first.zip(second).ok_or_else(|| Obstacle::Reshaped(Named::of(kernel, op)))?;
                    axes = moved.into();
                }
                _ if data.load().is_some() => return Ok(Origin { load: op, values, axes }),
                _ => return Err(Obstacle::Computed { by: Named::of(kernel, op), left: None }),
            }
            value = data.operands[0];
        }
    }
}
