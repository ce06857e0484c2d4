//! Loads of tiles whose axes have another order than those of a view: from a view of the tensor that is turned as well.

use crate::dim::Dim;
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::{Cut, Op};
use crate::view::TensorMovement;

/// The view that an op gives, of a tensor whose axis `i` is axis `order[i]`.
///
/// # Panics
/// If the op cuts no tensor into tiles.
pub(super) fn view(kernel: &mut Kernel, cut: OpId, order: &[usize]) -> ValueId {
    let data = kernel.op(cut).clone();
    let Op::Partition(cut_of) = data.op else { unreachable!("its callers ask of what cuts tensors") };
    let turned = |extents: &[Dim]| axes(extents, order);
    let cut_of = Cut { tile: turned(&cut_of.tile), steps: cut_of.steps.as_deref().map(turned), ..cut_of };
    let mut place = Inserter::behind(kernel, cut);
    let movement = Op::View(TensorMovement::Permute(order.to_vec()));
    let tensor = place.emit_typed(movement, vec![data.operands[0]]);
    place.emit_typed(Op::Partition(cut_of), vec![tensor])
}

/// The operands of a load that reads the same tile of that view.
pub(super) fn operands(load: &OpData, view: ValueId, order: &[usize]) -> Vec<ValueId> {
    let index = load.tile_index();
    let mut operands = load.operands[..load.operands.len() - index.len()].to_vec();
    operands[0] = view;
    operands.extend(axes(index, order));
    operands
}

/// What is said of each axis, in their order.
pub(super) fn axes<T: Clone>(said: &[T], order: &[usize]) -> Vec<T> {
    order.iter().map(|&axis| said[axis].clone()).collect()
}
