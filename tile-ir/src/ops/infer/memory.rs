//! Type rules of views, loads and stores.

use super::{Inferred, TypeError, check_domain, count, display_shape, static_shape};
use crate::dim::Dim;
use crate::ops::{Cut, Domain, Op};
use crate::types::{PartitionType, TensorType, Type};
use crate::view::TensorMovement;

pub(super) fn view(op: &Op, movement: &TensorMovement, operands: &[Type]) -> Inferred<Type> {
    let index = matches!(movement, TensorMovement::Select { .. });
    count(op, operands, if index { 2 } else { 1 })?;
    let Type::Tensor(tensor) = &operands[0] else {
        return Err(TypeError::new(format!("`{}` needs a tensor, not {}", op.spelling(), operands[0])).at(0));
    };
    if let Some(found) = operands.get(1).filter(|found| **found != Type::INDEX) {
        return Err(TypeError::new(format!("the index of `select` is `usize`, not {found}")).at(1));
    }
    movement.apply(tensor).map(|(moved, _)| Type::Tensor(moved))
}

pub(super) fn partition(op: &Op, cut: &Cut, operands: &[Type]) -> Inferred<Type> {
    let tile = &cut.tile;
    count(op, operands, 1)?;
    let Type::Tensor(tensor) = &operands[0] else {
        return Err(TypeError::new(format!("a partition view needs a tensor, not {}", operands[0])).at(0));
    };
    static_shape(op, tile)?;
    if tile.len() != tensor.extents.len() {
        return Err(TypeError::new(format!(
            "tile {} has rank {}, but the tensor {} has rank {}",
            display_shape(tile),
            tile.len(),
            display_shape(&tensor.extents),
            tensor.extents.len()
        )));
    }
    cut.hints.check()?;
    let steps = steps(op, cut, tensor.mutable)?;
    spanned(&cut.spanned, tensor)?;
    let (tensor, tile, spanned) = (tensor.clone(), tile.clone(), cut.spanned.clone());
    Ok(Type::Partition(PartitionType { tensor, tile, steps, spanned }))
}

fn spanned(axes: &[usize], tensor: &TensorType) -> Inferred<()> {
    let rank = tensor.extents.len();
    if !axes.is_empty() && !tensor.mutable {
        return Err(TypeError::new("a tensor that is read has no blocks that span axes")
            .help("leave `spanning` out: any block reads any tile"));
    }
    if let Some(axis) = axes.iter().find(|&&axis| axis >= rank) {
        return Err(TypeError::new(format!("axis {axis} is out of range for a view of rank {rank}")));
    }
    if !axes.is_sorted_by(|before, after| before < after) {
        return Err(TypeError::new(format!("the axes {axes:?} that blocks span aren't in ascending order"))
            .help("name each once; `at` takes their indices in the same order"));
    }
    Ok(())
}

fn steps(op: &Op, cut: &Cut, mutable: bool) -> Inferred<Vec<Dim>> {
    let Some(steps) = &cut.steps else { return Ok(cut.tile.clone()) };
    if let Some(step) = steps.iter().find(|step| step.as_const().is_some_and(|step| step <= 0)) {
        return Err(TypeError::new(format!("the step `{step:#}` from one tile to the next is not positive")));
    }
    static_shape(op, steps)?;
    if steps.len() != cut.tile.len() {
        return Err(TypeError::new(format!(
            "tile {} has rank {}, but the steps {} have rank {}",
            display_shape(&cut.tile),
            cut.tile.len(),
            display_shape(steps),
            steps.len()
        )));
    }
    let difference = |(step, tile): (&Dim, &Dim)| (step.clone() - tile.clone()).as_const();
    let overlap =
        steps.iter().zip(&cut.tile).map(difference).position(|apart| apart.is_some_and(|apart| apart < 0));
    match overlap.filter(|_| mutable) {
        Some(axis) => Err(TypeError::new(format!(
            "tiles of {} elements, {} apart, overlap on axis {axis}: two blocks would write one element",
            cut.tile[axis], steps[axis]
        ))
        .help("in a view that is written a step is no smaller than its tile")),
        None => Ok(steps.clone()),
    }
}

pub(super) fn gather_load(op: &Op, operands: &[Type]) -> Inferred<Type> {
    let [tensor, pad, indices @ ..] = operands else {
        return Err(TypeError::new("`gather` takes a tensor, a pad value and index tiles"));
    };
    let Type::Tensor(tensor) = tensor else {
        return Err(TypeError::new(format!("`gather` needs a tensor, not {tensor:#}")).at(0));
    };
    if tensor.mutable {
        return Err(TypeError::new(
            "`gather` reads any element, but of a `&mut` tensor a block sees only its own tile",
        )
        .at(0)
        .help("pass what is gathered as a `&Tensor`"));
    }
    if pad != &Type::Scalar(tensor.elem.clone()) {
        return Err(
            TypeError::new(format!("the pad value is {pad}, but the tensor holds {}", tensor.elem)).at(1)
        );
    }
    if indices.len() != tensor.extents.len() {
        let plural = if indices.len() == 1 { "" } else { "s" };
        return Err(TypeError::new(format!(
            "{} index tile{plural} for the tensor {} of rank {}",
            indices.len(),
            display_shape(&tensor.extents),
            tensor.extents.len()
        ))
        .help("`gather` takes one index tile per axis"));
    }
    let mut shape: Option<&[Dim]> = None;
    for (i, index) in indices.iter().enumerate() {
        let Some(tile) = index.as_tile() else {
            return Err(TypeError::new(format!("an index of `gather` is a tile, not {index:#}")).at(i + 2));
        };
        check_domain(op, Domain::Int, &tile.elem, i + 2)?;
        if shape.is_some_and(|shape| shape != tile.shape) {
            return Err(TypeError::new("the index tiles of `gather` have different shapes").at(i + 2));
        }
        shape = Some(&tile.shape);
    }
    let Some(shape) = shape else {
        return Err(TypeError::new("`gather` needs a tensor that has an axis").at(0));
    };
    Ok(Type::tile(shape.iter().cloned(), tensor.elem.clone()))
}

fn partition_operand<'a>(op: &Op, operand: &'a Type) -> Inferred<&'a PartitionType> {
    operand.as_partition().ok_or_else(|| {
        TypeError::new(format!("`{}` needs a partition view, not {operand:#}", op.name())).at(0)
    })
}

pub(super) fn mutable_partition<'a>(op: &Op, operand: &'a Type) -> Inferred<&'a PartitionType> {
    let view = partition_operand(op, operand)?;
    if !view.tensor.mutable {
        return Err(TypeError::new(format!("`{}` needs a mutable partition view", op.name()))
            .at(0)
            .help("make it with `partition_view_mut` of a `&mut Tensor` argument"));
    }
    Ok(view)
}

pub(super) fn block_index(op: &Op, operands: &[Type]) -> Inferred<Vec<Type>> {
    count(op, operands, 1)?;
    let view = mutable_partition(op, &operands[0])?;
    Ok(vec![Type::INDEX; view.tile.len()])
}

pub(super) fn load(op: &Op, operands: &[Type]) -> Inferred<Type> {
    let (view, pad, indices) = match (op, operands) {
        (Op::LoadMasked, [view, pad, indices @ ..]) => (view, Some(pad), indices),
        (Op::Load { .. }, [view, indices @ ..]) => (view, None, indices),
        _ => {
            return Err(TypeError::new(format!(
                "`{}` takes a view, a pad value if masked, and tile indices",
                op.name()
            )));
        }
    };
    let view = partition_operand(op, view)?;
    if let Some(pad) = pad.filter(|&pad| *pad != Type::Scalar(view.tensor.elem.clone())) {
        return Err(TypeError::new(format!(
            "the pad value is {pad}, but the view holds {}",
            view.tensor.elem
        ))
        .at(1));
    }
    tile_index(view, indices, operands.len() - indices.len())?;
    Ok(Type::Tile(view.tile_type()))
}

/// The index of a tile that is read or written, which begins at operand `first`.
fn tile_index(view: &PartitionType, indices: &[Type], first: usize) -> Inferred<()> {
    let expected = view.indexed_axes().len();
    if indices.len() != expected {
        let view = match view.tensor.mutable {
            true if expected == 0 => "a view of which a block owns one tile".to_owned(),
            true => format!("a view whose axes {:?} blocks span", view.spanned),
            false => format!("a view of rank {}", view.tile.len()),
        };
        let message = format!("{view} is accessed with {expected} tile indices, not {}", indices.len());
        return Err(TypeError::new(message));
    }
    match indices.iter().position(|index| *index != Type::INDEX) {
        Some(i) => Err(TypeError::new(format!("a tile index is `usize`, not {}", indices[i])).at(first + i)),
        None => Ok(()),
    }
}

pub(super) fn prefetch(op: &Op, operands: &[Type]) -> Inferred<()> {
    let Some((view, indices)) = operands.split_first() else {
        return Err(TypeError::new("`prefetch` takes a view and tile indices"));
    };
    tile_index(partition_operand(op, view)?, indices, 1)
}

pub(super) fn store(op: &Op, operands: &[Type]) -> Inferred<()> {
    let [view, tile, indices @ ..] = operands else {
        return Err(TypeError::new(format!("`{}` takes a view, a tile and tile indices", op.name())));
    };
    let view = mutable_partition(op, view)?;
    tile_index(view, indices, 2)?;
    let expected = Type::Tile(view.tile_type());
    if *tile == expected {
        return Ok(());
    }
    let message = match tile {
        Type::Tile(tile) if tile.shape != view.tile => {
            format!(
                "a tile of shape {} is stored to a view of tiles {}",
                display_shape(&tile.shape),
                display_shape(&view.tile)
            )
        }
        Type::Tile(tile) => format!("a tile of {} is stored to a view of {}", tile.elem, view.tensor.elem),
        other => format!("`{}` needs a tile, not {other}", op.name()),
    };
    let help = match tile.as_tile() {
        Some(tile) if tile.shape == view.tile => {
            Some(format!("convert it with `.cast::<{}>()`", view.tensor.elem))
        }
        Some(tile) => by_axes_of_one(&tile.shape, &view.tile),
        None => None,
    };
    let error = TypeError::new(message).at(1);
    Err(help.into_iter().fold(error, TypeError::help))
}

/// How a tile gets another shape that differs in axes of extent 1 alone, such as the one that a reduction leaves.
fn by_axes_of_one(from: &[Dim], to: &[Dim]) -> Option<String> {
    let is_one = |extent: &Dim| extent.as_const() == Some(1);
    let others = |shape: &[Dim]| shape.iter().filter(|extent| !is_one(extent)).cloned().collect::<Vec<_>>();
    if others(from) != others(to) {
        return None;
    }
    // The axis of 1 without which a shape is another.
    let beyond = |longer: &[Dim], shorter: &[Dim]| {
        let without = |axis: usize| longer[..axis].iter().chain(&longer[axis + 1..]).eq(shorter);
        (0..longer.len()).rev().find(|&axis| is_one(&longer[axis]) && without(axis))
    };
    Some(match (beyond(from, to), beyond(to, from)) {
        (Some(axis), _) => format!("write `.squeeze({axis})`, which takes away the axis of extent 1"),
        (_, Some(axis)) => format!("write `.unsqueeze({axis})`, which adds an axis of extent 1"),
        _ => {
            let shape = display_shape(to);
            format!("write `.reshape({shape})`")
        }
    })
}
