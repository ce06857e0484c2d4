//! Loads that passes may change, and what becomes of one whose tile's axes get another order: one of a view of the tensor that is
//! turned as well.

use crate::dim::Dim;
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::{Cut, Op};
use crate::types::PartitionType;
use crate::view::TensorMovement;
use std::collections::HashMap;

/// The view that an op reads a tile of, with what cuts the tensor into such tiles, if it is a load of a tensor that the kernel
/// only reads.
pub(super) fn read_view<'k>(
    kernel: &'k Kernel,
    definitions: &HashMap<ValueId, OpId>,
    data: &OpData,
) -> Option<(OpId, &'k PartitionType)> {
    let view = data.load()?.view;
    let ty = kernel.ty(view).as_partition().filter(|view| !view.tensor.mutable)?;
    let cut = *definitions.get(&view)?;
    matches!(kernel.op(cut).op, Op::Partition(_)).then_some((cut, ty))
}

/// The view that an op gives, of a tensor whose axis `i` is axis `order[i]`. Of one that is written, accesses say the index of
/// their tile along every axis: the tiles that blocks own are those of the view that isn't turned.
///
/// # Panics
/// If the op cuts no tensor into tiles.
pub(super) fn view(kernel: &mut Kernel, cut: OpId, order: &[usize]) -> ValueId {
    let data = kernel.op(cut).clone();
    let Op::Partition(cut_of) = data.op else { unreachable!("its callers ask of what cuts tensors") };
    let turned = |extents: &[Dim]| axes(extents, order);
    let is_written = kernel.ty(data.results[0]).as_partition().is_some_and(|view| view.tensor.mutable);
    let cut_of = Cut {
        tile: turned(&cut_of.tile),
        steps: cut_of.steps.as_deref().map(turned),
        spanned: if is_written { (0..order.len()).collect() } else { Vec::new() },
        ..cut_of
    };
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
