//! Tiles of a tensor that was selected from a stack become tiles of the stack: of extent 1 along the axis of the selection,
//! at the index of that.
//!
//! A view from which an axis is dropped at a number of the kernel's ([`TensorMovement::Select`]) is no property of the
//! kernel: a tensor map can't be made of it at a launch, and in a block that goes on to further tiles it would be another
//! view for each. The whole stack is both, and an index that it doesn't have gives a tile without elements, as the
//! selection did. So loads of factors that warpgroups may take from a ring are loads of the stack, where that makes a
//! copy of one. The selected axes come first, so that every movement on the way is the same behind them.

use crate::dim::Dim;
use crate::gpu::Pipelines;
use crate::gpu::pipeline::selected_factors;
use crate::insert::Inserter;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::ops::{Cut, Op};
use crate::passes;
use crate::target::TargetDesc;
use crate::types::{PartitionType, TensorType, Type};
use crate::view::TensorMovement;
use std::borrow::Cow;

/// The kernel whose loads are of stacks, where `pipelines` of that has copies of them; otherwise itself.
pub(in crate::gpu) fn copied<'k>(
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
pub(in crate::gpu) fn all<'k>(kernel: &'k Kernel, target: &TargetDesc) -> Cow<'k, Kernel> {
    let factors = selected_factors(kernel, target);
    if factors.is_empty() {
        return Cow::Borrowed(kernel);
    }
    let mut stacked = kernel.clone();
    factors.into_iter().for_each(|load| load_of_stack(&mut stacked, load));
    // A view that depends on the block would keep it from going on to further tiles.
    passes::remove_unused(&mut stacked);
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
    let Op::Partition(Cut { tile, steps, hints, .. }) = cut.op else {
        unreachable!("verified: tiles are of views")
    };
    let mut place = Inserter::new(kernel, body, at);
    let Some(Stack { tensor: stack, indices }) = place.stack(cut.operands[0]) else { return };
    let behind = |dims: Vec<Dim>| indices.iter().map(|_| Dim::from(1)).chain(dims).collect::<Vec<Dim>>();
    let (tile, steps) = (behind(tile), steps.map(behind));
    let tensor = tensor_of(place.kernel, stack).clone();
    let ty = Type::tile(tile.clone(), tensor.elem.clone());
    let spanned = Vec::new();
    let cut =
        Op::Partition(Cut { tile: tile.clone(), steps: steps.clone(), spanned: spanned.clone(), hints });
    let steps = steps.unwrap_or_else(|| tile.clone());
    let view = place.emit(cut, vec![stack], Type::Partition(PartitionType { tensor, tile, steps, spanned }));
    take_from(kernel, load, view, &indices, ty);
}

/// Gives a load another view, whose index begins with these, and its users the tile without the axes of that.
fn take_from(kernel: &mut Kernel, load: OpId, view: ValueId, first: &[ValueId], ty: Type) {
    let loaded = kernel.new_value(ty, None);
    let data = kernel.op_mut(load);
    let loc = data.loc;
    data.operands[0] = view;
    let at = data.operands.len() - data.load().expect("a load").index.len();
    data.operands.splice(at..at, first.iter().copied());
    let result = std::mem::replace(&mut data.results[0], loaded);
    let shape = kernel.ty(result).as_tile().expect("a load gives a tile").shape.clone();
    let (operands, results, regions) = (vec![loaded], vec![result], Vec::new());
    let reshaped = OpData { op: Op::Reshape(shape), operands, results, regions, loc };
    let mut place = Inserter::before(kernel, load);
    place.at += 1;
    place.insert(reshaped);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, Elements};
    use crate::dtype::DType;
    use crate::ops::Literal;
    use crate::{Instance, interp, text};

    /// `c = a·m`, where `%m` is what these movements make of `%b`, with `%s` as the index of each that selects.
    fn product_of(movements: &[TensorMovement]) -> Instance {
        let extents = ["e", "k", "n"].map(Dim::size);
        let mut tensor = TensorType::dense(extents.to_vec(), DType::BF16, false);
        let mut views = String::new();
        for (i, movement) in movements.iter().enumerate() {
            (tensor, _) = movement.apply(&tensor).unwrap();
            let from = if i == 0 { "b".to_owned() } else { format!("v{i}") };
            let to = if i + 1 == movements.len() { "m".to_owned() } else { format!("v{}", i + 1) };
            let at = if matches!(movement, TensorMovement::Select { .. }) { " at %s" } else { "" };
            views += &format!("  %{to} = view %{from} {movement}{at} : {}\n", Type::Tensor(tensor.clone()));
        }
        let cut = vec![Dim::from(64); 2];
        let ty =
            Type::Partition(PartitionType { tensor, tile: cut.clone(), steps: cut, spanned: Vec::new() });
        let source = format!(
            "kernel @product(%b: tensor<e x k x n x bf16>, %a: tensor<l x h x bf16>, %s: index, %c: mut tensor<l x w x f32>) {{
{views}  %va = partition %a [64, 64] : partition<l x h x bf16, [64, 64]>
  %vm = partition %m [64, 64] : {ty}
  %vc = partition %c [64, 64] : mut partition<l x w x f32, [64, 64]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<64 x 64 x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(h, 64) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<64 x 64 x f32> {{
    %ta = load_masked %va[%i, %p] pad %pad : tile<64 x 64 x bf16>
    %tm = load_masked %vm[%p, %j] pad %pad : tile<64 x 64 x bf16>
    %next = mma %ta, %tm, %acc : tile<64 x 64 x f32>
    yield %next
  }}
  store_masked %vc, %sum
}}
"
        );
        Instance::parse(&source, &[]).unwrap_or_else(|error| panic!("{error}\n{source}"))
    }

    fn array(dtype: DType, shape: &[usize], seed: usize) -> Array {
        let number = |i: usize| ((i * 7 + seed * 5) % 11) as f64 - 5.0;
        let values = (0..shape.iter().product()).map(number).collect();
        Array::new(dtype, shape.to_vec(), Elements::Float(values))
    }

    /// The sums for indices from before the first one along any axis to behind the last.
    fn sums(instance: &Instance) -> Vec<Array> {
        let at = |index: i128| {
            let mut arguments = vec![
                array(DType::BF16, &[3, 70, 6], 1),
                array(DType::BF16, &[5, 72], 2),
                Array::scalar(DType::Index, Literal::Int(index)),
                array(DType::F32, &[5, 9], 3),
            ];
            interp::run(instance, &mut arguments).unwrap();
            arguments.pop().unwrap()
        };
        [-1i128, 0, 2, 3, 6, 70].map(|index| at(index.rem_euclid(1 << 64))).to_vec()
    }

    fn stacked(instance: &Instance) -> Instance {
        let target = TargetDesc::named("sm_90a").unwrap();
        let stacked = all(instance, target).into_owned();
        instance.clone().rewrite("stacks", |kernel| *kernel = stacked)
    }

    #[test]
    fn tiles_of_a_stack_are_those_of_the_selected_tensor() {
        use TensorMovement::*;
        let [k, n] = ["k", "n"].map(Dim::size);
        let number = |number: i64| Dim::from(number);
        let pair = |a: i64, b: i64| (number(a), number(b));
        let select = |axis| Select { axis };
        let chains = [
            vec![select(0)],
            vec![select(1)],
            vec![select(2)],
            vec![select(0), Permute(vec![1, 0])],
            vec![Permute(vec![2, 0, 1]), select(1), Flip(vec![1])],
            vec![select(0), Shrink(vec![(number(3), k.clone()), (number(1), n.clone())])],
            vec![select(1), Pad(vec![pair(2, 1), pair(0, 3)])],
            vec![Pad(vec![pair(1, 0), pair(0, 0), pair(0, 0)]), select(0)],
            vec![select(0), Shift { axis: 1, by: number(2) }, Step { axis: 0, step: number(3) }],
            vec![select(0), Unsqueeze(1), Squeeze(1)],
            vec![select(0), Unsqueeze(0), select(0)],
            vec![select(0), Unflatten { axis: 0, extents: vec![number(7), number(10)] }, select(1)],
            vec![select(0), Unsqueeze(1), Flatten { start: 0, end: 1 }],
            vec![select(2), select(0), Unfold { axis: 0, size: number(9), step: number(2) }],
        ];
        for chain in chains {
            let instance = product_of(&chain);
            let stacked = stacked(&instance);
            let text = text::print(&stacked);
            assert!(!text.contains(" select "), "{text}");
            assert_eq!(sums(&stacked), sums(&instance), "{text}");
        }
    }

    /// Axes that are added in front stand before those of a stack, too.
    #[test]
    fn repeated_tensors_stay_as_they_are() {
        let chain = [
            TensorMovement::Select { axis: 0 },
            TensorMovement::Select { axis: 0 },
            TensorMovement::Expand(vec![Dim::from(9), Dim::size("n")]),
        ];
        let instance = product_of(&chain);
        let stacked = stacked(&instance);
        assert_eq!(text::print(&stacked), text::print(&instance));
        assert_eq!(sums(&stacked), sums(&instance));
    }
}
