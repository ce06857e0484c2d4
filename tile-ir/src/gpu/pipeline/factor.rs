//! The factors of a loop's products that can lie in a ring: tiles that the loop loads for products alone.
//!
//! Several products may read one tile, and each in its own direction: what one takes along its depth is to another, that
//! takes the tile transposed, across it. But no thread holds what lies in a ring, so all that use it must read it there.

use super::super::products::{self, extents};
use super::super::{Remark, dtype_of, shape_of};
use super::Slice;
use super::shared_tile::{Copyable, Major, Numbers};
use crate::analysis::uses::Uses;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::Op;
use crate::target::TargetDesc;
use crate::view::Source;
use std::collections::HashSet;

/// The most columns of a warpgroup's product (PTX ISA, "wgmma.mma_async").
const MOST_COLUMNS: u64 = 256;

/// Bytes of the elements that a warpgroup takes from columns as from rows.
const TRANSPOSED_BYTES: usize = 2;

/// A factor that a load gives.
pub(super) struct Factor {
    pub(super) product: OpId,
    /// Its number among the product's operands.
    pub(super) operand: usize,
    pub(super) load: OpId,
    pub(super) copyable: Copyable,
    pub(super) major: Major,
    /// What the load gives, and what that is called on the way.
    pub(super) values: Vec<ValueId>,
    /// How many times the product has the rows of an instruction.
    pub(super) blocks: u64,
}

impl Factor {
    fn of(numbers: &Numbers<'_>, (product, operand): (OpId, usize), blocks: u64) -> Option<Factor> {
        let (load, values, axes) = origin(numbers.kernel, (product, operand))?;
        let copyable = numbers.copyable(load)?;
        let depth = axes[if operand == 0 { 1 } else { 0 }];
        let major = if copyable.inner == depth { Major::Depth } else { Major::Other };
        let is_whole = axes.iter().all(|&axis| axis == copyable.inner || axis == copyable.outer);
        is_whole.then_some(Factor { product, operand, load, copyable, major, values, blocks })
    }

    /// Whether its elements follow each other in a direction from which a warpgroup doesn't take them.
    fn lies_across(&self) -> bool {
        self.major == Major::Other && self.copyable.tile.element != TRANSPOSED_BYTES as u64
    }
}

/// Why warpgroups don't do the products of loops that they could do.
pub(super) fn remarks(numbers: &Numbers<'_>, uses: &Uses, target: &TargetDesc) -> Vec<Remark> {
    let kernel = numbers.kernel;
    let across = |product: OpId| {
        let blocks = blocks(kernel, kernel.op(product), target)?;
        let factors = [0, 1].map(|operand| Factor::of(numbers, (product, operand), blocks));
        let across = factors.into_iter().flatten().find(Factor::lies_across)?;
        let data = kernel.op(product);
        let view = kernel.op(across.load).load()?.view;
        let (tensor, dtype) = (kernel.tensor_name(view), dtype_of(kernel, data.operands[across.operand]));
        let message = format!(
            "a product isn't done by warpgroups, which take factors of {dtype} along the depth of the product, and \
             {tensor} has them across it; pass that transposed"
        );
        Some(Remark { loc: data.loc, message })
    };
    let mut remarks: Vec<Remark> = products_of_loops(kernel).filter_map(across).collect();
    remarks.extend(unknown_to_producer(numbers, uses, target));
    remarks
}

/// That a producer can't come to the copies of a factor, or can't know which tiles these are of.
fn unknown_to_producer(numbers: &Numbers<'_>, uses: &Uses, target: &TargetDesc) -> Option<Remark> {
    let kernel = numbers.kernel;
    let loops = kernel.walk().into_iter().filter(|&op| kernel.op(op).op == Op::For);
    let factors = loops.flat_map(|op| of_loop((numbers, uses), op, target));
    let obstacle = |factor: Factor| {
        let op = Slice::of(kernel, vec![factor.load]).err()?;
        Some((factor, kernel.op(op).op.name()))
    };
    let (factor, name) = factors.into_iter().find_map(obstacle)?;
    let tensor = kernel.tensor_name(kernel.op(factor.load).load()?.view);
    let problem = match name {
        "if" => format!("the threads that copy {tensor} take no branch; multiply outside of it"),
        _ => format!(
            "the threads that copy {tensor} don't know which of its tiles, where `{name}` decides that; of tiles they know \
             those of one element of a tensor that isn't written"
        ),
    };
    let message = format!("a product isn't done by warpgroups: {problem}");
    Some(Remark { loc: kernel.op(factor.product).loc, message })
}

/// Whether what a loop's product adds to is nothing but the sums of the turn before, which only it needs.
pub(super) fn carries_sums(kernel: &Kernel, uses: &Uses, (for_op, product): (OpId, OpId)) -> bool {
    let region = kernel.region(kernel.op(for_op).regions[0]);
    let data = kernel.op(product);
    let (before, after) = (data.operands[2], data.results[0]);
    let param = region.params.iter().position(|&param| param == before);
    let (Some(param), Some(&end)) = (param, region.ops.last()) else { return false };
    uses.only(before) == Some(product)
        && uses.only(after) == Some(end)
        && kernel.op(end).operands.get(param - 1) == Some(&after)
}

/// The loads of factors of loops' products whose tensors were selected from others, where warpgroups can do the product.
pub(in super::super) fn selected(kernel: &Kernel, target: &TargetDesc) -> Vec<OpId> {
    let can_be_done = |op: OpId| Some(op).filter(|&op| blocks(kernel, kernel.op(op), target).is_some());
    let products = products_of_loops(kernel).filter_map(can_be_done);
    let factors = products.flat_map(|product| [(product, 0), (product, 1)]);
    let mut loads: Vec<OpId> = factors.filter_map(|factor| Some(origin(kernel, factor)?.0)).collect();
    loads.sort();
    loads.dedup();
    let is_selected = |load: &OpId| {
        let view = kernel.op(*load).load().and_then(|load| kernel.definition(load.view));
        view.is_some_and(|cut| !Source::of(kernel, cut.operands[0]).selections.is_empty())
    };
    loads.retain(is_selected);
    loads
}

/// The products that stand in loops.
fn products_of_loops(kernel: &Kernel) -> impl Iterator<Item = OpId> {
    let loops = kernel.walk().into_iter().filter(|&op| kernel.op(op).op == Op::For);
    let bodies = loops.flat_map(|op| kernel.region(kernel.op(op).regions[0]).ops.clone());
    bodies.filter(|&op| kernel.op(op).op == Op::Mma)
}

/// The factors of a loop's products that can lie in a ring, of products whose right factor does.
pub(super) fn of_loop(
    (numbers, uses): (&Numbers<'_>, &Uses),
    for_op: OpId,
    target: &TargetDesc,
) -> Vec<Factor> {
    let kernel = numbers.kernel;
    let body = &kernel.region(kernel.op(for_op).regions[0]).ops;
    let products = body.iter().filter(|&&op| kernel.op(op).op == Op::Mma);
    let factors = products.flat_map(|&product| {
        let data = kernel.op(product);
        let Some(blocks) = blocks(kernel, data, target) else { return Vec::new() };
        let factor = |operand| {
            let factor = Factor::of(numbers, (product, operand), blocks);
            factor.filter(|factor| body.contains(&factor.load) && !factor.lies_across())
        };
        [factor(0), factor(1)].into_iter().flatten().collect()
    });
    read_there_alone((kernel, uses), factors.collect())
}

/// Those of the factors whose tiles nothing uses but factors, of products whose right factor is among them.
fn read_there_alone((kernel, uses): (&Kernel, &Uses), mut factors: Vec<Factor>) -> Vec<Factor> {
    // One that is none takes others of its product and of its tile with it.
    loop {
        let count = factors.len();
        let found: HashSet<(OpId, usize)> =
            factors.iter().map(|factor| (factor.product, factor.operand)).collect();
        let on_the_way: HashSet<ValueId> =
            factors.iter().flat_map(|factor| &factor.values).copied().collect();
        let leads_to_factors = |value: &ValueId| {
            uses.of_value(*value).iter().all(|&user| {
                let data = kernel.op(user);
                let is_way = data.results.iter().any(|result| on_the_way.contains(result));
                let mut operands = (0..data.operands.len()).filter(|&i| data.operands[i] == *value);
                is_way || operands.all(|operand| found.contains(&(user, operand)))
            })
        };
        factors.retain(|factor| {
            found.contains(&(factor.product, 1)) && factor.values.iter().all(leads_to_factors)
        });
        if factors.len() == count {
            return factors;
        }
    }
}

/// The factors that each load gives, in order.
pub(super) fn by_load(factors: &[Factor]) -> Vec<Vec<&Factor>> {
    let mut loads: Vec<Vec<&Factor>> = Vec::new();
    for factor in factors {
        match loads.iter_mut().find(|known| known[0].load == factor.load) {
            Some(known) => known.push(factor),
            None => loads.push(vec![factor]),
        }
    }
    loads
}

/// How many times a product has the rows of a warpgroup's instruction; `None` where it can't be cut into one.
fn blocks(kernel: &Kernel, data: &OpData, target: &TargetDesc) -> Option<u64> {
    let instruction = products::suited(kernel, data, target.warpgroup_matrix).next()?;
    let extents = extents(kernel, data);
    let rank = shape_of(kernel, data.results[0])?.len();
    let is_exact = instruction.sum == dtype_of(kernel, data.results[0]);
    let fits = is_exact && rank == 2 && extents[1] <= MOST_COLUMNS && products::cuts(instruction, extents);
    fits.then_some(extents[0] / u64::from(instruction.shape.m))
}

/// The load that a factor comes from, by ways that move nothing; with the tiles on the way and, for each of the factor's
/// axes, the loaded tile's.
fn origin(kernel: &Kernel, (product, operand): (OpId, usize)) -> Option<(OpId, Vec<ValueId>, [usize; 2])> {
    let mut value = kernel.op(product).operands[operand];
    let (mut axes, mut values) = ([0, 1], Vec::new());
    loop {
        values.push(value);
        let op = kernel.walk().into_iter().find(|&op| kernel.op(op).results.contains(&value))?;
        let data = kernel.op(op);
        match &data.op {
            Op::Permute(permutation) => axes = axes.map(|axis| permutation[axis]),
            Op::Reshape(_) => {
                let (from, to) = (shape_of(kernel, data.operands[0])?, shape_of(kernel, value)?);
                let long =
                    |shape: &[u64]| (0..shape.len()).filter(|&axis| shape[axis] > 1).collect::<Vec<_>>();
                let (before, after) = (long(&from), long(&to));
                if before.iter().map(|&axis| from[axis]).ne(after.iter().map(|&axis| to[axis])) {
                    return None;
                }
                let place = |axis: usize| Some(before[after.iter().position(|&other| other == axis)?]);
                axes = [place(axes[0])?, place(axes[1])?];
            }
            _ => return data.load().map(|_| (op, values, axes)),
        }
        value = data.operands[0];
    }
}
