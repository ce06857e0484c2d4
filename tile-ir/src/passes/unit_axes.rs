//! Axes of one element that a reshape adds to a loaded tile become axes of a view of the tensor, so that weights of rows are
//! read where the rows are, instead of copied for each of them: a target that goes over tiles in memory reads a load where its
//! tile is needed, and what a reshape gives it stores.
//!
//! It is done for loads of tensors that the kernel only reads, whose tile the reshape alone takes, and whose rows stay rows: of
//! what becomes a column each element would be a row.

use super::{dce, turned};
use crate::analysis::uses::Uses;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpId, ValueId};
use crate::ops::{Literal, Op};
use crate::view::TensorMovement;
use std::collections::HashMap;

/// Gives the axes of every such reshape to its load.
pub(super) fn run(kernel: &mut Kernel) {
    let (uses, definitions) = (Uses::of(kernel), kernel.definitions());
    let mut made = HashMap::new();
    for reshape in kernel.walk() {
        let Some(widened) = Widened::of(kernel, &uses, &definitions, reshape) else { continue };
        let Widened { load, cut, axes } = widened;
        let (view, zero) = *made.entry((cut, axes.clone())).or_insert_with(|| view_with(kernel, cut, &axes));
        // Without results nobody needs it.
        let results = std::mem::take(&mut kernel.op_mut(reshape).results);
        let load = kernel.op_mut(load);
        let first = load.operands.len() - load.tile_index().len();
        load.operands[0] = view;
        axes.iter().for_each(|axis| load.operands.insert(first + axis, zero));
        load.results = results;
    }
    dce::run(kernel);
}

/// A load whose tile gets axes.
struct Widened {
    load: OpId,
    /// What cuts the tensor into tiles.
    cut: OpId,
    /// The axes of the result that are new, in ascending order.
    axes: Vec<usize>,
}

impl Widened {
    fn of(
        kernel: &Kernel,
        uses: &Uses,
        definitions: &HashMap<ValueId, OpId>,
        reshape: OpId,
    ) -> Option<Widened> {
        let data = kernel.op(reshape);
        let Op::Reshape(shape) = &data.op else { return None };
        let tile = data.operands[0];
        let load = *definitions.get(&tile).filter(|_| uses.only(tile) == Some(reshape))?;
        let (cut, view) = turned::read_view(kernel, definitions, kernel.op(load))?;
        let keeps_rows = |axes: &Vec<usize>| axes.last().is_some_and(|&last| last + 1 < shape.len());
        let axes = added_axes(&view.tile, shape).filter(keeps_rows)?;
        Some(Widened { load, cut, axes })
    }
}

/// The axes of the second of two shapes, each of one element, without which it is the first.
fn added_axes(before: &[Dim], after: &[Dim]) -> Option<Vec<usize>> {
    let (mut before, mut added) = (before.iter().peekable(), Vec::new());
    for (axis, extent) in after.iter().enumerate() {
        if before.next_if_eq(&extent).is_none() {
            added.push(axis);
        }
    }
    let are_units = added.iter().all(|&axis| after[axis].as_const() == Some(1));
    (before.next().is_none() && are_units).then_some(added)
}

/// The view that an op gives, of a tensor with these axes more, and the index along them.
fn view_with(kernel: &mut Kernel, cut: OpId, axes: &[usize]) -> (ValueId, ValueId) {
    let data = kernel.op(cut).clone();
    let Op::Partition(mut cut_of_more) = data.op else {
        unreachable!("its callers ask of what cuts tensors")
    };
    let mut place = Inserter::behind(kernel, cut);
    let mut tensor = data.operands[0];
    for &axis in axes {
        tensor = place.emit_typed(Op::View(TensorMovement::Unsqueeze(axis)), vec![tensor]);
        let extents = std::iter::once(&mut cut_of_more.tile).chain(&mut cut_of_more.steps);
        extents.for_each(|extents| extents.insert(axis, Dim::from(1)));
    }
    let view = place.emit_typed(Op::Partition(cut_of_more), vec![tensor]);
    let zero = Op::Constant { value: Literal::Int(0), elem: DType::Index.into() };
    (view, place.emit_typed(zero, Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::added_axes;
    use crate::dim::Dim;
    use crate::passes::{UNIT_AXES, run};
    use crate::{Instance, text};

    #[test]
    fn axes_are_found_between_those_that_were_there() {
        let added = |before: &[i64], after: &[i64]| {
            let [before, after] = [before, after].map(|shape| shape.iter().map(|&extent| Dim::from(extent)));
            added_axes(&before.collect::<Vec<_>>(), &after.collect::<Vec<_>>())
        };
        assert_eq!(added(&[8], &[1, 8]), Some(vec![0]));
        assert_eq!(added(&[4, 8], &[4, 1, 8, 1]), Some(vec![1, 3]));
        assert_eq!(added(&[1, 8], &[1, 1, 8]), Some(vec![1]));
        assert_eq!(added(&[4, 8], &[8, 1, 4]), None);
        assert_eq!(added(&[8], &[2, 4]), None);
        assert_eq!(added(&[4, 1], &[4]), None);
    }

    /// A weight for each column, twice; not a number for each row, a tile that something else takes as well, nor one that the
    /// block writes.
    #[test]
    fn loads_have_the_axes_of_their_reshapes() {
        let source = "\
kernel @k(%x: tensor<n x m x f32>, %w: tensor<m x f32>, %b: tensor<n x f32>, %y: mut tensor<n x m x f32>) {
  %vx = partition %x [4, 8] : partition<n x m x f32, [4, 8]>
  %vw = partition %w [8] : partition<m x f32, [8]>
  %vb = partition %b [4] : partition<n x f32, [4]>
  %vy = partition %y [4, 8] : mut partition<n x m x f32, [4, 8]>
  %i, %j = block_index %vy : index, index
  %0 = constant 0.0 : f32
  %t = load_masked %vx[%i, %j] pad %0 : tile<4 x 8 x f32>
  %w1 = load_masked %vw[%j] pad %0 : tile<8 x f32>
  %wide = reshape %w1 : tile<1 x 8 x f32>
  %w2 = load_masked %vw[%i] pad %0 : tile<8 x f32>
  %wide2 = reshape %w2 : tile<1 x 8 x f32>
  %b1 = load_masked %vb[%i] pad %0 : tile<4 x f32>
  %high = reshape %b1 : tile<4 x 1 x f32>
  %both = load_masked %vw[%j] pad %0 : tile<8 x f32>
  %wide3 = reshape %both : tile<1 x 8 x f32>
  %own = load_masked %vy pad %0 : tile<4 x 8 x f32>
  %deep = reshape %own : tile<4 x 1 x 8 x f32>
  %a = broadcast %wide : tile<4 x 8 x f32>
  %c = broadcast %wide2 : tile<4 x 8 x f32>
  %d = broadcast %high : tile<4 x 8 x f32>
  %e = broadcast %wide3 : tile<4 x 8 x f32>
  %f = reduce sum %deep axis 1 : tile<4 x 1 x 8 x f32>
  %own1 = reshape %f : tile<4 x 8 x f32>
  %s1 = add %t, %a : tile<4 x 8 x f32>
  %s2 = add %s1, %c : tile<4 x 8 x f32>
  %s3 = add %s2, %d : tile<4 x 8 x f32>
  %s4 = add %s3, %e : tile<4 x 8 x f32>
  %s5 = add %s4, %own1 : tile<4 x 8 x f32>
  store_masked %vy, %s5
  %g = reduce sum %both axis 0 : tile<1 x f32>
  print 0 \"{0}\" %g
}
";
        let instance = run(Instance::parse(source, &[]).unwrap(), &UNIT_AXES);
        insta::assert_snapshot!(text::print(&instance));
    }
}
