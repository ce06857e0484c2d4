//! Adds up a launch: what stands in loops times their turns, and of tiles the elements that a tensor has.
//!
//! A sum over the tiles of the grid and the turns of loops is a product of one sum for each variable, as long as no
//! variable decides how far another goes or where a tile lies along two axes. Those that do are gone through.

use super::form::Values;
use super::{
    Access, Axis, Counts, Estimate, Kind, Loop, Place, Side, Spread, Tensor, TensorTotal, TileAccess, Totals,
};
use crate::abi::{KernelAbi, LaunchSizes, blocks_of};
use crate::dim::Dim;
use std::collections::HashMap;

/// How many turns of loops are gone through for one number; where there are more, samples stand for all.
const MOST_TURNS: u64 = 1 << 16;

/// So many turns, evenly spread, stand for those of a longer loop; fewer where loops are so deep that all of their samples
/// would be more than [`MOST_TURNS`].
const SAMPLES: u64 = 16;

pub(super) fn total(counts: &Counts, abi: &KernelAbi, bound: &LaunchSizes) -> Totals {
    let sizes = |name: &str| {
        let slot = abi.sizes.iter().position(|size| size == name)?;
        i64::try_from(*bound.sizes.get(slot)?).ok()
    };
    let space = bound.shared.as_ref().map_or(&bound.grid, |shared| &shared.space);
    let [tiles, of] = [bound.tiles(), blocks_of(space)].map(|tiles| tiles as u64);
    let sum = Sum {
        counts,
        sizes: &sizes,
        space: space.iter().map(|&extent| extent as i64).collect(),
        handled: [tiles, of],
        blocks: bound.blocks() as u64,
        values: Values::new(&counts.forms, &sizes, space.len() + counts.loops.len()),
        left: MOST_TURNS,
        is_cut: false,
    };
    let totals = Totals {
        tiles,
        estimates: counts.estimates.clone(),
        is_elementwise: counts.is_elementwise,
        ..Totals::default()
    };
    let mut total = Total { sum, totals, traffic: HashMap::new(), turns: HashMap::new() };
    counts.work.iter().for_each(|((place, kind), &count)| total.work(place, *kind, count));
    counts.accesses.iter().for_each(|access| total.access(access));
    total.totals.tensors = counts.tensors.iter().map(|tensor| total.tensor(tensor)).collect();
    if total.sum.is_cut {
        total.totals.estimates.push(Estimate::TooMany);
    }
    if tiles < of {
        total.totals.estimates.push(Estimate::FirstTiles);
    }
    total.totals
}

/// What has been added up so far.
struct Total<'c> {
    sum: Sum<'c>,
    totals: Totals,
    /// Bytes by argument, read and written.
    traffic: HashMap<Kind, u64>,
    /// The turns of places that were asked for.
    turns: HashMap<&'c Place, u64>,
}

impl<'c> Total<'c> {
    fn turns(&mut self, place: &'c Place) -> u64 {
        *self.turns.entry(place).or_insert_with(|| self.sum.of(place, &[]))
    }

    /// Adds what is done in every turn of a place.
    fn work(&mut self, place: &'c Place, kind: Kind, count: u64) {
        let count = count.saturating_mul(self.turns(place));
        let totals = &mut self.totals;
        match kind {
            Kind::Operation(operation, dtype) => {
                add(totals.operations.entry((operation, dtype)).or_default(), count);
            }
            Kind::Product(shape) => add(totals.products.entry(shape).or_default(), count),
            Kind::LoadingTurn => add(&mut totals.loading_turns, count),
            Kind::Read(_) | Kind::Written(_) => {
                add(self.traffic.entry(kind).or_default(), count);
                add(&mut totals.scattered, count);
            }
        }
    }

    /// Adds the tiles that are read or written at a place. What is done there is added before.
    fn access(&mut self, access: &'c Access) {
        let Access { place, kind, bytes, axes, .. } = access;
        let elements = self.sum.of(place, axes);
        add(self.traffic.entry(*kind).or_default(), elements.saturating_mul(*bytes));
        let count = self.turns(place);
        let axis = |axis: &Axis| (axis.tile.unsigned_abs(), self.number(&axis.stride));
        let spread = Spread::new(*bytes, axes.iter().map(axis));
        let (repeated, row) = (self.repeated(access, count), self.row(access));
        self.totals.accesses.push(TileAccess { spread, count, repeated, row });
    }

    /// How many of a place's accesses read what another block has brought.
    fn repeated(&self, access: &Access, count: u64) -> u64 {
        let space = &self.sum.space;
        let depends_on = |variable| self.sum.depends_on(&access.axes, variable);
        let last = space.len().checked_sub(1);
        if let Some(last) = last.filter(|&last| access.factor == Some(Side::Left) && !depends_on(last)) {
            return count - count / space[last].max(1).unsigned_abs();
        }
        // Of a loop over tiles every block reads all again.
        let is_by_all = access.place.loops.is_empty() && !(0..space.len()).any(depends_on);
        if is_by_all && self.totals.products.is_empty() { count.saturating_sub(1) } else { 0 }
    }

    /// The blocks of a row of the grid, where those below each other read the same of a right factor.
    fn row(&self, access: &Access) -> Option<u64> {
        let [above @ .., row] = self.sum.space.as_slice() else { return None };
        let depends_on = |variable| self.sum.depends_on(&access.axes, variable);
        let is_shared = access.factor == Some(Side::Right) && !(0..above.len()).any(depends_on);
        is_shared.then_some(row.unsigned_abs())
    }

    fn tensor(&self, tensor: &Tensor) -> TensorTotal {
        let Tensor { name, argument, extents, strides, bytes } = tensor;
        let extent = |extent: &Dim| extent.evaluate_signed(self.sum.sizes).ok();
        let elements = extents.iter().map(|dim| extent(dim).unwrap_or(0).unsigned_abs());
        let elements = elements.fold(1, u64::saturating_mul);
        let axes = extents.iter().zip(strides);
        let axes = axes.map(|(extent, stride)| (self.number(extent).unsigned_abs(), self.number(stride)));
        let spread = Spread::new(*bytes, axes);
        let traffic = |kind| self.traffic.get(&kind).copied().unwrap_or(0);
        TensorTotal {
            name: name.clone(),
            bytes: elements.saturating_mul(*bytes).min(spread.bytes()),
            read: traffic(Kind::Read(*argument)),
            written: traffic(Kind::Written(*argument)),
            spread,
        }
    }

    /// An extent of the launch.
    fn number(&self, dim: &Dim) -> i64 {
        dim.evaluate_signed(self.sum.sizes).unwrap_or(0)
    }
}

/// Sizes may be so large that no number holds what is done.
fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}

/// How many turns of a loop stand for all, where that may be so many in it and in the others in each of its turns.
fn taken(turns: u64, samples: u64, others: usize) -> u64 {
    let share = (samples as f64).powf(1.0 / (1 + others) as f64).round() as u64;
    if turns <= share { turns } else { share.min(SAMPLES) }
}

struct Sum<'c> {
    counts: &'c Counts,
    sizes: &'c dyn Fn(&str) -> Option<i64>,
    /// Tiles along each axis of the grid.
    space: Vec<i64>,
    /// How many of these are handled, of how many.
    handled: [u64; 2],
    blocks: u64,
    /// Of forms for what is gone through at the moment.
    values: Values<'c>,
    /// Turns that may still be gone through.
    left: u64,
    /// Whether something has been left out.
    is_cut: bool,
}

impl Sum<'_> {
    /// The number of turns of a place, or with axes that of the elements that tiles have in all of them.
    fn of(&mut self, place: &Place, axes: &[Axis]) -> u64 {
        let loops = place.loops.iter().map(|number| self.space.len() + number);
        let grid = if place.per_tile { 0..self.space.len() } else { 0..0 };
        let variables: Vec<usize> = grid.chain(loops).collect();
        self.left = MOST_TURNS;
        let sum = self.over(&variables, axes, None).unwrap_or_else(|| {
            self.is_cut = true;
            self.over(&variables, axes, Some(MOST_TURNS)).expect("samples are never too many")
        });
        match self.handled {
            _ if !place.per_tile => sum.saturating_mul(self.blocks),
            [handled, of] if handled < of => {
                (u128::from(sum) * u128::from(handled)).div_ceil(u128::from(of)) as u64
            }
            _ => sum,
        }
    }

    /// The sum where every turn is gone through, if as many are left, or so many of them stand for all.
    fn over(&mut self, variables: &[usize], axes: &[Axis], samples: Option<u64>) -> Option<u64> {
        let is_tangled = |&position: &usize| self.is_tangled(variables[position], variables, axes);
        let mut tangled = (0..variables.len()).filter(is_tangled);
        let Some(position) = tangled.next() else { return Some(self.product(variables, axes)) };
        let others = tangled.count();
        let variable = variables[position];
        let rest = [&variables[..position], &variables[position + 1..]].concat();
        let (start, end) = self.range(variable);
        let turns = end.saturating_sub(start).max(0).unsigned_abs();
        let taken = match samples {
            None => {
                self.left = self.left.checked_sub(turns)?;
                turns
            }
            Some(samples) => taken(turns, samples, others),
        };
        let samples = samples.map(|samples| samples / taken.max(1));
        let sum = (0..taken).try_fold(0u64, |sum, number| {
            // In the middle of each of so many equal parts.
            let part = u128::from(turns) * (2 * u128::from(number) + 1) / (2 * u128::from(taken));
            self.values.set(variable, Some(start + part as i64));
            Some(sum.saturating_add(self.over(&rest, axes, samples)?))
        });
        self.values.set(variable, None);
        let all = u128::from(sum?) * u128::from(turns) / u128::from(taken.max(1));
        Some(u64::try_from(all).unwrap_or(u64::MAX))
    }

    /// Whether where tiles lie goes by a variable: an axis of the grid, or a loop's counter.
    fn depends_on(&self, axes: &[Axis], variable: usize) -> bool {
        axes.iter().any(|axis| self.mentions(axis, variable))
    }

    fn mentions(&self, axis: &Axis, variable: usize) -> bool {
        axis.index.is_some_and(|index| self.counts.forms.mentions(index, variable))
    }

    /// Whether a variable decides how far another goes, or more of a tile's place than to shift it along one axis.
    fn is_tangled(&self, variable: usize, variables: &[usize], axes: &[Axis]) -> bool {
        let forms = &self.counts.forms;
        let decides = |&other: &usize| {
            other.checked_sub(self.space.len()).is_some_and(|number| {
                let Loop { start, end } = self.counts.loops[number];
                forms.mentions(start, variable) || forms.mentions(end, variable)
            })
        };
        let mut mentioned = axes.iter().filter(|axis| self.mentions(axis, variable));
        let alone = |axis: &Axis| {
            let others = variables.iter().any(|&other| other != variable && self.mentions(axis, other));
            !others && axis.index.is_some_and(|index| forms.shifts(index, variable))
        };
        let moves = match (mentioned.next(), mentioned.next()) {
            (None, _) => false,
            (Some(axis), None) => !alone(axis),
            _ => true,
        };
        moves || variables.iter().any(decides)
    }

    /// The sum where variables don't meet.
    fn product(&mut self, variables: &[usize], axes: &[Axis]) -> u64 {
        let mut product = 1u64;
        for axis in axes {
            let variable = variables.iter().find(|&&variable| self.mentions(axis, variable));
            product = product.saturating_mul(match variable {
                Some(&variable) => self.elements(axis, variable),
                None => {
                    let index = self.index(axis);
                    self.clipped(axis, index)
                }
            });
        }
        for &variable in variables {
            if !self.depends_on(axes, variable) {
                let (start, end) = self.range(variable);
                product = product.saturating_mul(end.saturating_sub(start).max(0).unsigned_abs());
            }
        }
        product
    }

    /// From where to before where a variable goes.
    fn range(&mut self, variable: usize) -> (i64, i64) {
        match variable.checked_sub(self.space.len()) {
            None => (0, self.space[variable]),
            Some(number) => {
                let Loop { start, end } = self.counts.loops[number];
                let [start, end] = [start, end].map(|bound| self.values.of(bound));
                match start.zip(end).map(|(start, end)| (start, end.max(start))) {
                    Some((start, end)) if start == end => (0, 0),
                    Some((start, end)) if end <= i128::from(i64::MAX) => (start as i64, end as i64),
                    // One turn, as of loops whose ends are data.
                    _ => {
                        self.is_cut = true;
                        (0, 1)
                    }
                }
            }
        }
    }

    /// Where a tile lies, in steps: below 0 if its index, without a sign, exceeds all tensors. The first place stands for
    /// those that data decides, and for what nobody knows.
    fn index(&mut self, axis: &Axis) -> i64 {
        let Some(index) = axis.index else { return 0 };
        let known = self.values.of(index);
        self.is_cut |= known.is_none();
        known.map_or(0, |index| index as u64 as i64)
    }

    /// Elements that a tile with this index has along an axis.
    fn clipped(&self, axis: &Axis, index: i64) -> u64 {
        let extent = axis.extent.evaluate_signed(self.sizes).unwrap_or(0);
        let start = index.saturating_mul(axis.step);
        if index < 0 { 0 } else { extent.saturating_sub(start).clamp(0, axis.tile).unsigned_abs() }
    }

    /// Elements that all tiles have along an axis whose index is a variable plus a number.
    fn elements(&mut self, axis: &Axis, variable: usize) -> u64 {
        let (start, end) = self.range(variable);
        self.values.set(variable, Some(start));
        let first = self.index(axis);
        self.values.set(variable, None);
        let last = first.saturating_add(end.saturating_sub(start)).max(first);
        let extent = axis.extent.evaluate_signed(self.sizes).unwrap_or(0);
        let first = first.max(0);
        // Tiles before this one lie inside whole, and those from the next on outside.
        let whole = if extent < axis.tile { 0 } else { (extent - axis.tile) / axis.step + 1 }
            .clamp(first, last.max(first));
        let outside = (extent.max(0) as u64).div_ceil(axis.step as u64) as i64;
        let partial: u64 = (whole..last.min(outside.max(whole))).map(|index| self.clipped(axis, index)).sum();
        ((whole - first) as u64).saturating_mul(axis.tile as u64) + partial
    }
}
