//! Tiles of a tensor that was selected from a stack become tiles of the stack: of extent 1 along the axis of the selection,
//! at the index of that.
//!
//! A view from which an axis is dropped at a number of the kernel's ([`TensorMovement::Select`]) is no property of the
//! kernel: a tensor map can't be made of it at a launch, and in a block that goes on to further tiles it would be another
//! view for each. The whole stack is both, and an index that it doesn't have gives a tile without elements, as the
//! selection did. So loads of factors that warpgroups may take from a ring are loads of the stack, where that makes a
//! copy of one. The selected axes come first, so that every movement on the way is the same behind them.

use super::Pipelines;
use super::insert::Inserter;
use super::pipeline::selected_factors;
use crate::dim::Dim;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::{Cut, Op};
use crate::passes;
use crate::target::TargetDesc;
use crate::types::{PartitionType, TensorType, Type};
use crate::view::TensorMovement;
use std::borrow::Cow;

/// The kernel whose loads are of stacks, where `pipelines` of that has copies of them; otherwise itself.
pub(super) fn copied<'k>(
    kernel: &'k Kernel,
    target: &TargetDesc,
    pipelines: impl Fn(&Kernel) -> Pipelines,
) -> Cow<'k, Kernel> {
    let stacked = all(kernel, target);
    let is_copied = |found: Pipelines| {
        selected_factors(kernel, target).into_iter().any(|load| found.copy(load).is_some())
    };
    match &stacked {
        Cow::Owned(other) if !is_copied(pipelines(other)) => Cow::Borrowed(kernel),
        _ => stacked,
    }
}

/// The kernel whose loads of factors are of stacks.
pub(super) fn all<'k>(kernel: &'k Kernel, target: &TargetDesc) -> Cow<'k, Kernel> {
    let factors = selected_factors(kernel, target);
    if factors.is_empty() {
        return Cow::Borrowed(kernel);
    }
    let mut stacked = kernel.clone();
    factors.into_iter().for_each(|load| load_of_stack(&mut stacked, load));
    // A view that depends on the block would keep it from going on to further tiles.
    passes::remove_dead(&mut stacked);
    Cow::Owned(stacked)
}

/// A view of a stack, and the indices of the axes that were selected, which are its first ones.
struct Stack {
    tensor: ValueId,
    indices: Vec<ValueId>,
}

/// Makes a load of a selected tensor one of the stack, unless a movement on the way isn't the same behind other axes.
fn load_of_stack(kernel: &mut Kernel, load: OpId) {
    let view = kernel.op(load).load().expect("a load").view;
    let body = kernel.body();
    let is_cut = |&op: &OpId| kernel.op(op).results.contains(&view);
    let at = kernel.region(body).ops.iter().position(is_cut).expect("verified: views stand in the body");
    let cut = kernel.op(kernel.region(body).ops[at]).clone();
    let Op::Partition(Cut { tile, steps, hints }) = cut.op else {
        unreachable!("verified: tiles are of views")
    };
    let mut place = Inserter::new(kernel, body, at);
    let Some(Stack { tensor: stack, indices }) = place.stack(cut.operands[0]) else { return };
    let behind = |dims: Vec<Dim>| indices.iter().map(|_| Dim::from(1)).chain(dims).collect::<Vec<Dim>>();
    let (tile, steps) = (behind(tile), steps.map(behind));
    let tensor = tensor_of(place.kernel, stack).clone();
    let ty = Type::tile(tile.clone(), tensor.elem.clone());
    let cut = Op::Partition(Cut { tile: tile.clone(), steps: steps.clone(), hints });
    let steps = steps.unwrap_or_else(|| tile.clone());
    let view = place.emit(cut, vec![stack], Type::Partition(PartitionType { tensor, tile, steps }));
    take_from(kernel, load, (view, &indices), ty);
}

/// Gives a load another view, whose index begins with these, and its users the tile without the axes of that.
fn take_from(kernel: &mut Kernel, load: OpId, (view, first): (ValueId, &[ValueId]), ty: Type) {
    let loaded = kernel.new_value(ty, None);
    let data = kernel.op_mut(load);
    let loc = data.loc;
    data.operands[0] = view;
    let at = data.operands.len() - data.load().expect("a load").index.len();
    data.operands.splice(at..at, first.iter().copied());
    let result = std::mem::replace(&mut data.results[0], loaded);
    let shape = kernel.ty(result).as_tile().expect("a load gives a tile").shape.clone();
    let region = kernel.region_of(load).expect("an op stands in a region");
    let at =
        kernel.region(region).ops.iter().position(|&op| op == load).expect("the op stands in its region");
    let (operands, results, regions) = (vec![loaded], vec![result], Vec::new());
    let reshaped = OpData { op: Op::Reshape(shape), operands, results, regions, loc };
    Inserter::new(kernel, region, at + 1).insert(reshaped);
}

fn tensor_of(kernel: &Kernel, tensor: ValueId) -> &TensorType {
    let Type::Tensor(tensor) = kernel.ty(tensor) else { unreachable!("verified: a view is of a tensor") };
    tensor
}

impl Inserter<'_> {
    /// The stack that a tensor was selected from, moved as that was.
    fn stack(&mut self, tensor: ValueId) -> Option<Stack> {
        let Some(data) = self.kernel.definition(tensor).cloned() else {
            return Some(Stack { tensor, indices: Vec::new() });
        };
        let Op::View(movement) = data.op else { return None };
        let Stack { tensor, mut indices } = self.stack(data.operands[0])?;
        let extents = &tensor_of(self.kernel, tensor).extents;
        let selected = indices.len();
        let movement = match movement {
            TensorMovement::Select { axis } => {
                indices.push(data.operands[1]);
                let axis = axis + selected;
                let others = (selected..extents.len()).filter(|&other| other != axis);
                TensorMovement::Permute((0..selected).chain([axis]).chain(others).collect())
            }
            other => other.behind(&extents[..selected])?,
        };
        Some(Stack { tensor: self.moved(tensor, movement)?, indices })
    }

    fn moved(&mut self, tensor: ValueId, movement: TensorMovement) -> Option<ValueId> {
        let (moved, _) = movement.apply(tensor_of(self.kernel, tensor)).ok()?;
        if moved == *tensor_of(self.kernel, tensor) {
            return Some(tensor);
        }
        Some(self.emit(Op::View(movement), vec![tensor], Type::Tensor(moved)))
    }
}
