//! Sizes that a launch may make larger without a change of what is computed, so that rows are aligned: the depth of a
//! product, whose tensors are copied with zeros behind each row.
//!
//! A kernel can't tell where every tile that it reads has the same elements. It is so for a size `k` along which tensors are
//! only read, in tiles of `t` elements with zeros outside: where `k` grows to no more than the end of its last tile, what was
//! outside is a zero in memory instead. Of anything else that depends on `k`, as the divisor of a mean, nothing is known, so
//! that `k` may occur as the number of such tiles alone. Indices of tiles don't matter: those behind the last one have zeros
//! before and after.
//!
//! It pays where tensors are read again and again, as the factors of large products are: a [`Variant`] for
//! aligned rows then reads them by tensor maps and in wide pieces, instead of element by element.

use crate::abi::{Argument, Check, KernelAbi, LaunchSizes};
use crate::analysis::uses::Uses;
use crate::dim::Dim;
use crate::kernel::{Kernel, OpData, ValueId};
use crate::ops::Op;
use crate::specialize::Instance;
use crate::types::Type;
use crate::variant::{Variant, alignments};
use std::collections::{BTreeSet, HashMap};

/// How often each element must be read, and how many tiles there must be, for a copy to be worth while: a copy reads and
/// writes every element once, and a launch with fewer tiles than multiprocessors waits for the copy longer than it takes.
const LEAST_READS: usize = 8;
const LEAST_TILES: usize = 128;

/// The sizes of an instance that may grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Padding(Vec<Growing>);

/// A size that may grow to a multiple.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Growing {
    /// Its number in [`KernelAbi::sizes`].
    size: usize,
    /// What rows are aligned by, in elements.
    multiple: u64,
    /// Where it occurs; empty where it may not grow.
    tensors: Vec<Along>,
}

/// A tensor along an axis of which a size lies, and the tiles in which it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Along {
    argument: usize,
    axis: usize,
    tile: Vec<usize>,
}

/// A launch with aligned rows in place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padded {
    /// Its sizes and grid.
    pub bound: LaunchSizes,
    /// The tensors that are copied.
    pub tensors: Vec<PaddedTensor>,
}

/// A tensor that is copied with zeros behind each row: a row is what lies along the axis that grows and those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaddedTensor {
    /// The number of the argument.
    pub argument: usize,
    /// How many rows there are.
    pub rows: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Bytes of a row with zeros behind it.
    pub padded_bytes: usize,
}

impl Padding {
    /// The sizes that an instance with this interface asks to be aligned.
    pub fn of(instance: &Instance, abi: &KernelAbi) -> Padding {
        let makes_products = instance.walk().into_iter().any(|op| instance.op(op).op == Op::Mma);
        if !makes_products || abi.logs {
            return Padding::default();
        }
        let growing = |(name, multiple): (String, u64)| {
            let size = abi.sizes.iter().position(|size| *size == name)?;
            Some(Growing {
                size,
                multiple,
                tensors: growth(instance, abi, &name, multiple).unwrap_or_default(),
            })
        };
        Padding(alignments(Variant::Aligned, abi).into_iter().filter_map(growing).collect())
    }

    /// The launch with aligned rows in place of one of these sizes; `None` where its rows are aligned, where something that
    /// isn't may not grow, and where copies take longer than they save.
    pub fn of_launch(&self, abi: &KernelAbi, bound: &LaunchSizes) -> Option<Padded> {
        let is_ragged = |growing: &&Growing| !bound.sizes[growing.size].is_multiple_of(growing.multiple);
        let ragged: Vec<&Growing> = self.0.iter().filter(is_ragged).collect();
        if ragged.is_empty() || ragged.iter().any(|growing| growing.tensors.is_empty()) {
            return None;
        }
        let mut padded = bound.clone();
        for growing in &ragged {
            padded.sizes[growing.size] =
                bound.sizes[growing.size].checked_next_multiple_of(growing.multiple)?;
        }
        let mut tensors: Vec<PaddedTensor> = Vec::new();
        for along in ragged.iter().flat_map(|growing| &growing.tensors) {
            let tensor = along.padded(abi, bound, &padded)?;
            // One that grows along two axes would be copied in pieces of rows.
            if tensors.iter().any(|other| other.argument == tensor.argument) {
                return None;
            }
            tensors.push(tensor);
        }
        Some(Padded { bound: padded, tensors })
    }
}

impl Along {
    /// The copy of the tensor; `None` where it isn't worth while.
    fn padded(&self, abi: &KernelAbi, bound: &LaunchSizes, padded: &LaunchSizes) -> Option<PaddedTensor> {
        let Argument::Tensor { dtype, extents, .. } = &abi.arguments[self.argument] else { return None };
        let of = |bound: &LaunchSizes| -> Option<Vec<usize>> {
            let size = |name: &str| {
                let slot = abi.sizes.iter().position(|size| size == name)?;
                i64::try_from(bound.sizes[slot]).ok()
            };
            extents.iter().map(|extent| extent.evaluate(&size).ok()).collect()
        };
        let (before, after) = (of(bound)?, of(padded)?);
        let tiles = before.iter().zip(&self.tile).enumerate().filter(|&(axis, _)| axis != self.axis);
        let lines: usize = tiles.map(|(_, (extent, tile))| extent.div_ceil(*tile)).product();
        let is_worth_while = bound.tiles() >= LEAST_TILES && bound.tiles() >= LEAST_READS * lines;
        let bytes = |extents: &[usize]| {
            extents[self.axis..].iter().try_fold(dtype.bytes(), |bytes, &extent| bytes.checked_mul(extent))
        };
        let rows = before[..self.axis].iter().product();
        let (row_bytes, padded_bytes) = (bytes(&before)?, bytes(&after)?);
        let is_some = rows > 0 && row_bytes > 0;
        (is_worth_while && is_some).then_some(PaddedTensor {
            argument: self.argument,
            rows,
            row_bytes,
            padded_bytes,
        })
    }
}

fn mentions(dims: &[Dim], size: &str) -> bool {
    let mut sizes = BTreeSet::new();
    dims.iter().for_each(|dim| dim.collect_names(&mut BTreeSet::new(), &mut sizes));
    sizes.contains(size)
}

/// Where a size occurs, if it may grow to a multiple.
fn growth(kernel: &Kernel, abi: &KernelAbi, size: &str, multiple: u64) -> Option<Vec<Along>> {
    let is_fixed = abi.conditions.iter().any(|condition| condition.names().1.contains(size))
        || abi.grids.iter().any(|(_, grid)| mentions(grid, size))
        || abi.checks.iter().any(|check| match check {
            Check::View { requirement, .. } => {
                mentions(&[requirement.left.clone(), requirement.right.clone()], size)
            }
            // Loads and stores without masks, whose bounds may be anything.
            Check::Access { .. } => true,
        });
    let slot = abi.sizes.iter().position(|name| name == size);
    let is_number = abi.size_arguments.iter().any(|&(_, number)| Some(number) == slot);
    if is_fixed || is_number {
        return None;
    }
    let uses = Uses::of(kernel);
    let mut along: HashMap<usize, Along> = HashMap::new();
    let mut tiles = Vec::new();
    for op in kernel.walk() {
        let data = kernel.op(op);
        for &result in &data.results {
            let Type::Partition(view) = kernel.ty(result) else { continue };
            if !mentions(&view.tensor.extents, size) {
                continue;
            }
            let argument = kernel.params().iter().position(|param| *param == data.operands[0]);
            let argument = argument.filter(|_| matches!(data.op, Op::Partition(_)))?;
            let axis = view.tensor.extents.iter().position(|extent| extent.as_size() == Some(size))?;
            let others = view.tensor.extents.iter().enumerate().filter(|&(other, _)| other != axis);
            let is_alone =
                !others.into_iter().any(|(_, extent)| mentions(std::slice::from_ref(extent), size));
            let tile: Option<Vec<usize>> =
                view.tile.iter().map(|extent| usize::try_from(extent.as_const()?).ok()).collect();
            let tile =
                tile.filter(|tile| (tile[axis] as u64).is_multiple_of(multiple) && view.steps == view.tile)?;
            let is_plain = is_alone && !view.tensor.mutable && view.tensor.layout.is_none();
            if !is_plain || !is_read_with_zeros(kernel, &uses, result) {
                return None;
            }
            tiles.push(Dim::size(size).ceil_div(&view.tile[axis]));
            along.entry(argument).or_insert(Along { argument, axis, tile });
        }
    }
    // No op knows the size but by the number of tiles, which stays.
    let is_counted = |data: &OpData| match &data.op {
        Op::Extent(dim) if tiles.contains(dim) => true,
        op => !mentions(&op.dims(), size),
    };
    let is_cut_alone = |number: usize| {
        let mut users = uses.of_value(kernel.params()[number]).iter();
        along.contains_key(&number) && users.all(|&user| matches!(kernel.op(user).op, Op::Partition(_)))
    };
    // A tensor that no view cuts is a size's source, and nothing else. Whatever else reads one, itself or a view of it, as
    // gathers do, tells elements from what lies behind a row.
    let is_cut = |(number, argument): (usize, &Argument)| match argument {
        Argument::Tensor { extents, .. } => !mentions(extents, size) || is_cut_alone(number),
        Argument::Scalar { .. } => true,
    };
    let all = kernel.walk().into_iter().all(|op| is_counted(kernel.op(op)))
        && abi.arguments.iter().enumerate().all(is_cut);
    let mut along: Vec<Along> = along.into_values().collect();
    along.sort_by_key(|along| along.argument);
    all.then_some(along)
}

/// Whether a view is only read, with zeros outside.
fn is_read_with_zeros(kernel: &Kernel, uses: &Uses, view: ValueId) -> bool {
    let mut uses = uses.of_value(view).iter().map(|&op| kernel.op(op));
    uses.all(|data| data.load().is_some_and(|load| load.pad.is_some_and(|pad| kernel.is_zero(pad))))
}

#[cfg(test)]
mod tests;
