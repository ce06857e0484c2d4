//! Loads across the rows of a tensor, as views that are turned have them, become loads along its rows whose tiles are turned: a
//! target that goes over tiles in memory turns blocks of elements in registers, where across rows it would read them one by one.
//!
//! It is done for loads of tensors that the kernel only reads. Products read their factors in either direction.

use super::{dce, turned};
use crate::analysis::uses::Uses;
use crate::cpu::MOST_APART;
use crate::dim::Dim;
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::Op;
use crate::types::PartitionType;
use std::collections::HashMap;

/// The least elements of a row of a turned tile: of fewer no vectors are made.
const LEAST_ELEMENTS: i64 = 8;

/// Turns every such load.
pub(super) fn run(kernel: &mut Kernel) {
    let (uses, definitions) = (Uses::of(kernel), kernel.definitions());
    let mut views = HashMap::new();
    for load in kernel.walk() {
        let Some((cut, axis)) = across(kernel, &uses, &definitions, load) else { continue };
        let rank = kernel.op(load).tile_index().len();
        let order = order_of_rows(rank, axis);
        let view = *views.entry((cut, axis)).or_insert_with(|| turned::view(kernel, cut, &order));
        turn(kernel, load, view, &order);
    }
    dce::run(kernel);
}

/// What cuts the tensor of a load into tiles, and the axis of these that lies along the tensor's rows, where another is last.
fn across(
    kernel: &Kernel,
    uses: &Uses,
    definitions: &HashMap<ValueId, OpId>,
    load: OpId,
) -> Option<(OpId, usize)> {
    let data = kernel.op(load);
    let (cut, view) = turned::read_view(kernel, definitions, data)?;
    let axis = axis_of_rows(view)?;
    let is_read_in_place =
        uses.of_value(data.results[0]).iter().all(|&user| reads_either_way(kernel, uses, user));
    (!is_read_in_place).then_some((cut, axis))
}

/// Whether an op that reads a tile reads it in either direction: products do, also of one of whose axes of one element they are
/// given more or fewer.
fn reads_either_way(kernel: &Kernel, uses: &Uses, user: OpId) -> bool {
    let reads = |user: OpId| matches!(kernel.op(user).op, Op::Mma | Op::Permute(_));
    let data = kernel.op(user);
    match &data.op {
        Op::Reshape(shape) => {
            let from = kernel.ty(data.operands[0]).as_tile().map_or(&[][..], |tile| &tile.shape);
            let longer = |shape: &[Dim]| -> Vec<Dim> {
                shape.iter().filter(|extent| extent.as_const() != Some(1)).cloned().collect()
            };
            longer(shape) == longer(from) && uses.of_value(data.results[0]).iter().all(|&user| reads(user))
        }
        _ => reads(user),
    }
}

/// The order of a view's axes in which that axis is last.
pub(super) fn order_of_rows(rank: usize, axis: usize) -> Vec<usize> {
    (0..rank).filter(|&other| other != axis).chain([axis]).collect()
}

/// The axis of a view's tiles along which elements follow each other in memory, where those of the last don't nearly.
pub(super) fn axis_of_rows(view: &PartitionType) -> Option<usize> {
    let strides = view.tensor.strided().strides;
    let (last, others) = strides.split_last()?;
    let is_near = last.as_const().is_some_and(|stride| stride.abs() <= MOST_APART);
    let extent = |axis: usize| view.tile[axis].as_const();
    let is_long = |axis: usize| extent(axis).is_some_and(|extent| extent >= LEAST_ELEMENTS);
    let is_row = |&axis: &usize| others[axis].as_const() == Some(1) && is_long(axis);
    let has_rows = extent(others.len()).is_some_and(|extent| extent > 1);
    (0..others.len()).find(is_row).filter(|_| !is_near && has_rows)
}

/// Has a load read a tile of a turned view, and turns it back.
fn turn(kernel: &mut Kernel, load: OpId, view: ValueId, order: &[usize]) {
    let data = kernel.op(load).clone();
    let operands = turned::operands(&data, view, order);
    let place_of = |axis| order.iter().position(|&turned| turned == axis).expect("an order has every axis");
    let back = Op::Permute((0..order.len()).map(place_of).collect());
    // Without results nobody needs it.
    let results = std::mem::take(&mut kernel.op_mut(load).results);
    let mut place = Inserter::behind(kernel, load);
    let tile = place.emit_typed(data.op, operands);
    place.insert(OpData { op: back, operands: vec![tile], results, regions: Vec::new(), loc: data.loc });
}

#[cfg(test)]
mod tests {
    use crate::passes::{ACROSS_ROWS, run};
    use crate::{Instance, text};

    /// A transposed matrix, and heads of which each row is a place's; not columns of a narrow tensor, which lie near each other, a
    /// tile of one column, a factor of a product, one of a head that is, nor a tensor that the block writes.
    #[test]
    fn loads_go_along_rows() {
        let source = "\
kernel @k(%x: tensor<n x m x f32>, %q: tensor<n x h x 16 x f32>, %z: tensor<m x 3 x f32>, %y: mut tensor<m x n x f32>) {
  %xt = view %x permute [1, 0] : tensor<m x n x f32, strided [1, m]>
  %vx = partition %xt [16, 32] : partition<m x n x f32, strided [1, m], [16, 32]>
  %vc = partition %xt [16, 1] : partition<m x n x f32, strided [1, m], [16, 1]>
  %qt = view %q permute [1, 2, 0] : tensor<h x 16 x n x f32, strided [16, 1, 16*h]>
  %vq = partition %qt [1, 16, 32] : partition<h x 16 x n x f32, strided [16, 1, 16*h], [1, 16, 32]>
  %zt = view %z permute [1, 0] : tensor<3 x m x f32, strided [1, 3]>
  %vz = partition %zt [3, 16] : partition<3 x m x f32, strided [1, 3], [3, 16]>
  %vy = partition %y [16, 32] : mut partition<m x n x f32, [16, 32]>
  %i, %j = block_index %vy : index, index
  %none = constant 0.0 : f32
  %0 = constant 0 : index
  %t = load_masked %vx[%i, %j] pad %none : tile<16 x 32 x f32>
  %head = load_masked %vq[%0, %0, %j] pad %none : tile<1 x 16 x 32 x f32>
  %matrix = reshape %head : tile<16 x 32 x f32>
  %c = load_masked %vc[%i, %j] pad %none : tile<16 x 1 x f32>
  %cs = broadcast %c : tile<16 x 32 x f32>
  %colours = load_masked %vz[%0, %i] pad %none : tile<3 x 16 x f32>
  %most = reduce max %colours axis 0 : tile<1 x 16 x f32>
  %factor = load_masked %vx[%i, %i] pad %none : tile<16 x 32 x f32>
  %heads = load_masked %vq[%i, %0, %j] pad %none : tile<1 x 16 x 32 x f32>
  %left = reshape %heads : tile<16 x 32 x f32>
  %square = splat %none : tile<32 x 32 x f32>
  %sums = splat %none : tile<16 x 32 x f32>
  %part = mma %left, %square, %sums : tile<16 x 32 x f32>
  %product = mma %factor, %square, %part : tile<16 x 32 x f32>
  %s1 = add %t, %matrix : tile<16 x 32 x f32>
  %s2 = add %s1, %cs : tile<16 x 32 x f32>
  %s3 = add %s2, %product : tile<16 x 32 x f32>
  store_masked %vy, %s3
  print 0 \"{0}\" %most
}
";
        let instance = run(Instance::parse(source, &[]).unwrap(), &ACROSS_ROWS);
        insta::assert_snapshot!(text::print(&instance));
    }
}
