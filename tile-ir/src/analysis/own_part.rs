//! Lines of which every block sees its own part alone: softmax of rows that are longer than a tile, of which each piece is
//! then normalised by itself.
//!
//! What is found is certain: a tensor is loaded along an axis only where the block's own tile lies, that tile is reduced,
//! scanned or sorted along the axis, and the result goes, element by element, into what the block stores along the same axis.
//! The kernel then computes something else with tiles of another extent, as long as there is more than one of them. That may
//! be meant (a scale for each block of a row), so it is no mistake of the kernel; but of its instances none is as good as
//! another.

use super::joined::Joined;
use super::reshape;
use super::uses::Uses;
use crate::dim::Dim;
use crate::kernel::{Kernel, OpData, ValueId};
use crate::loc::Loc;
use crate::ops::{Effect, Op};
use crate::types::PartitionType;
use crate::view::Source;
use std::collections::HashSet;

/// What is computed of the block's own part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPart {
    /// The reduction, scan or sort.
    pub loc: Loc,
    /// What a kernel calls it: `sum`.
    pub method: &'static str,
    /// The tensor that the line is of, as a message names it.
    pub tensor: String,
    /// Along which of its axes the line goes.
    pub axis: usize,
    /// How long the line is.
    pub line: Dim,
    /// How much of it a block sees.
    pub part: Dim,
}

/// A load of the block's own tile.
pub(super) struct OwnLoad<'k> {
    pub(super) data: &'k OpData,
    pub(super) view: &'k PartitionType,
    /// The axis of the view that is asked for.
    pub(super) axis: usize,
    /// The axis of the grid along which the block's index is taken there.
    along: usize,
}

impl OwnPart {
    /// Whether it is the same computation, of another instance of the kernel.
    pub fn is_that_of(&self, other: &OwnPart) -> bool {
        let which = |it: &OwnPart| (it.loc, it.method, it.tensor.clone(), it.axis);
        which(self) == which(other)
    }
}

/// What a kernel computes of own parts, each once. Blocks that tell each other something by atomics see more than that.
pub fn own_parts(kernel: &Kernel) -> Vec<OwnPart> {
    let ops: Vec<&OpData> = kernel.walk().into_iter().map(|op| kernel.op(op)).collect();
    let mut parts = Vec::new();
    if ops.iter().any(|data| data.op.effect() == Effect::ReadsAndWrites) {
        return parts;
    }
    let (uses, joined) = (Uses::of(kernel), Joined::of(kernel));
    for data in ops {
        let Some(axis) = axis_of_lines(&data.op) else { continue };
        let Some(load) = data.operands.iter().find_map(|&tile| own_load(kernel, &joined, tile, axis)) else {
            continue;
        };
        let (line, part) = (&load.view.tensor.extents[load.axis], &load.view.tile[load.axis]);
        if !is_stored_along(kernel, &uses, &joined, &data.results, load.along, part) {
            continue;
        }
        let found = OwnPart {
            loc: data.loc,
            method: data.op.spelling(),
            tensor: kernel.tensor_name(load.data.operands[0]),
            axis: load.axis,
            line: line.clone(),
            part: part.clone(),
        };
        if !parts.contains(&found) {
            parts.push(found);
        }
    }
    parts
}

/// The axis along which an op's results depend on all of a line.
fn axis_of_lines(op: &Op) -> Option<usize> {
    match *op {
        Op::Reduce { axis, .. }
        | Op::ReduceWith { axis, .. }
        | Op::Scan { axis, .. }
        | Op::ScanWith { axis, .. }
        | Op::Sort { axis, .. } => Some(axis),
        _ => None,
    }
}

/// The load of the block's own tile that a tile comes from, element by element; `None` where there is none, or its tensor is
/// seen elsewhere, too.
pub(super) fn own_load<'k>(
    kernel: &'k Kernel,
    joined: &Joined,
    tile: ValueId,
    axis: usize,
) -> Option<OwnLoad<'k>> {
    let mut open = vec![(tile, axis)];
    let mut seen = HashSet::new();
    while let Some((value, axis)) = open.pop() {
        if !seen.insert((value, axis)) {
            continue;
        }
        open.extend(joined.from(value).iter().map(|&before| (before, axis)));
        let Some(data) = kernel.definition(value) else { continue };
        if let Some(load) = data.load() {
            let view = kernel.ty(load.view).as_partition()?;
            if let Some(along) = own_axis(kernel, view, load.index, axis)
                && is_seen_there_alone(kernel, load.view, axis)
            {
                return Some(OwnLoad { data, view, axis, along });
            }
            continue;
        }
        let before = |&operand: &ValueId| Some((operand, axis_before(kernel, data, operand, axis)?));
        open.extend(data.operands.iter().filter_map(before));
    }
    None
}

/// Along which axis of the grid a tile's index along an axis is the block's.
fn own_axis(kernel: &Kernel, view: &PartitionType, given: &[ValueId], axis: usize) -> Option<usize> {
    let Some(&index) = view.index_along(axis, given) else { return view.tensor.mutable.then_some(axis) };
    let data = kernel.definition(index)?;
    match data.op {
        Op::BlockIndex => data.results.iter().position(|&result| result == index),
        Op::BlockId { axis } => Some(axis),
        _ => None,
    }
}

/// Whether all that a kernel reads of the tensor of a view are blocks' own tiles along an axis, of the tensor as it is.
fn is_seen_there_alone(kernel: &Kernel, view: ValueId, axis: usize) -> bool {
    let tensor = |value: ValueId| Source::of(kernel, value).argument;
    let own = kernel.definition(view).map(|data| tensor(data.operands[0]));
    let is_own_tile = |data: &OpData| {
        let load = data.load();
        load.and_then(|load| own_axis(kernel, kernel.ty(load.view).as_partition()?, load.index, axis))
            .is_some()
    };
    kernel.walk().into_iter().map(|op| kernel.op(op)).all(|data| {
        let reached = match &data.op {
            Op::View(_) => Some(tensor(data.operands[0])),
            op if op.effect().reads() => Source::reached_by(kernel, data).map(|source| source.argument),
            _ => None,
        };
        reached.is_none() || reached != own || is_own_tile(data)
    })
}

/// The axis of an operand that an axis of the result is, where elements keep their places.
fn axis_before(kernel: &Kernel, data: &OpData, operand: ValueId, axis: usize) -> Option<usize> {
    let before = &kernel.ty(operand).as_tile()?.shape;
    let after = &kernel.ty(*data.results.first()?).as_tile()?.shape;
    match &data.op {
        op if op.is_leaf() => Some(axis),
        Op::Broadcast(_) => (before[axis] == after[axis]).then_some(axis),
        Op::Permute(order) => order.get(axis).copied(),
        Op::Reshape(_) => reshape::axis_before(kernel, data, axis),
        _ => None,
    }
}

/// Whether values go, element by element, to what a block stores at its own index along an axis of the grid, as much of it
/// as it has seen.
fn is_stored_along(
    kernel: &Kernel,
    uses: &Uses,
    joined: &Joined,
    values: &[ValueId],
    along: usize,
    part: &Dim,
) -> bool {
    let mut open = values.to_vec();
    let mut seen = HashSet::new();
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        open.extend(joined.into(value));
        for data in uses.of_value(value).iter().map(|&op| kernel.op(op)) {
            match &data.op {
                Op::Store | Op::StoreMasked => {
                    let view = kernel.ty(data.operands[0]).as_partition();
                    if view.is_some_and(|view| view.tile[along] == *part && !view.spanned.contains(&along)) {
                        return true;
                    }
                }
                Op::Broadcast(_) | Op::Reshape(_) | Op::Permute(_) => open.extend(&data.results),
                op if op.is_leaf() => open.extend(&data.results),
                _ => {}
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VerifiedKernel;

    /// Of a kernel of rows in tiles [1, B], with `%row` the block's own tile of x: reductions, lines and parts.
    fn found(body: &str) -> Vec<String> {
        let text = format!(
            "\
kernel @k<B>(%x: tensor<m x n x f32>, %s: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {{
  %vx = partition %x [1, B] : partition<m x n x f32, [1, B]>
  %vs = partition %s [1, B] : partition<m x n x f32, [1, B]>
  %vy = partition %y [1, B] : mut partition<m x n x f32, [1, B]>
  %i, %j = block_index %vy : index, index
  %zero = constant 0.0 : f32
  %first = extent 0 : index
  %row = load_masked %vx[%i, %j] pad %zero : tile<1 x B x f32>
{body}}}
"
        );
        let kernel = VerifiedKernel::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let said = |it: &OwnPart| {
            format!("{} of {} of {} along {} of {}", it.method, it.part, it.line, it.axis, it.tensor)
        };
        own_parts(&kernel).iter().map(said).collect()
    }

    const NORMALIZED: &str = "  %sum = reduce sum %square axis 1 : tile<1 x 1 x f32>
  %all = broadcast %sum : tile<1 x B x f32>
  %result = div %row, %all : tile<1 x B x f32>
  store_masked %vy, %result
";

    #[test]
    fn a_part_that_is_combined_with_its_sum_is_found() {
        let normalized = format!("  %square = mul %row, %row : tile<1 x B x f32>\n{NORMALIZED}");
        assert_eq!(found(&normalized), ["sum of B of n along 1 of `x`"]);
        // The axis that the block has a whole tile of is another.
        let along_rows = normalized.replace("axis 1 : tile<1 x 1", "axis 0 : tile<1 x B").replace(
            "  %all = broadcast %sum : tile<1 x B x f32>\n",
            "  %all = abs %sum : tile<1 x B x f32>\n",
        );
        assert_eq!(found(&along_rows), ["sum of 1 of m along 0 of `x`"]);
        let squeezed = normalized
            .replace("%square axis 1 : tile<1 x 1 x f32>", "%flat axis 0 : tile<1 x f32>")
            .replace("  %sum =", "  %flat = reshape %square : tile<B x f32>\n  %sum =");
        let squeezed = squeezed.replace("  %all =", "  %one = reshape %sum : tile<1 x 1 x f32>\n  %all =");
        assert_eq!(
            found(&squeezed.replace("broadcast %sum", "broadcast %one")),
            ["sum of B of n along 1 of `x`"]
        );
    }

    #[test]
    fn scans_and_sorts_are_found_as_reductions_are() {
        let scan = "  %result = scan sum %row axis 1 : tile<1 x B x f32>\n  store_masked %vy, %result\n";
        assert_eq!(found(scan), ["cumsum of B of n along 1 of `x`"]);
        let sort = "  %result, %where = sort %row axis 1 : tile<1 x B x f32>, tile<1 x B x i32>
  store_masked %vy, %result
";
        assert_eq!(found(sort), ["sort of B of n along 1 of `x`"]);
    }

    #[test]
    fn what_goes_through_branches_and_loops_is_found() {
        let normalized = format!("  %square = mul %row, %row : tile<1 x B x f32>\n{NORMALIZED}");
        let store = "  store_masked %vy, %result\n";
        let behind = normalized.replace(
            store,
            "  %one = item %sum : f32
  %positive = gt %one, %zero : bool
  %either = if %positive : tile<1 x B x f32> {
    yield %result
  } else {
    yield %row
  }
  store_masked %vy, %either
",
        );
        assert_eq!(found(&behind), ["sum of B of n along 1 of `x`"]);
        let looped = "  %four = extent 4 : index
  %last = for %t = %first to %four carry (%now = %row) : tile<1 x B x f32> {
    %sum = reduce sum %now axis 1 : tile<1 x 1 x f32>
    %all = broadcast %sum : tile<1 x B x f32>
    %next = div %now, %all : tile<1 x B x f32>
    yield %next
  }
  store_masked %vy, %last
";
        assert_eq!(found(looped), ["sum of B of n along 1 of `x`"]);
    }

    #[test]
    fn what_sees_more_than_its_part_is_not_one() {
        // Every tile of the row is read.
        let looped =
            format!("  %square = load_masked %vx[%i, %first] pad %zero : tile<1 x B x f32>\n{NORMALIZED}");
        assert_eq!(found(&looped), [""; 0]);
        let elsewhere = format!(
            "  %other = load_masked %vx[%i, %first] pad %zero : tile<1 x B x f32>
  %square = mul %row, %other : tile<1 x B x f32>\n{NORMALIZED}"
        );
        assert_eq!(found(&elsewhere), [""; 0]);
        // Another tensor may be read as it likes.
        assert_eq!(
            found(&elsewhere.replace("%vx[%i, %first]", "%vs[%i, %first]")),
            ["sum of B of n along 1 of `x`"]
        );
        // A sum that decides which way the block goes is no element of the result.
        let decides = "  %sum = reduce sum %row axis 1 : tile<1 x 1 x f32>
  %one = item %sum : f32
  %positive = gt %one, %zero : bool
  if %positive {
    store_masked %vy, %row
    yield
  } else {
    yield
  }
";
        assert_eq!(found(decides), [""; 0]);
    }
}
