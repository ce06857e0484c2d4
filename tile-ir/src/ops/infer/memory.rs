//! Type rules of views, loads and stores.

use super::{Inferred, TypeError, count, display_shape, static_shape};
use crate::dim::Dim;
use crate::ops::Op;
use crate::types::{PartitionType, Type};

pub(super) fn partition(op: &Op, tile: &[Dim], operands: &[Type]) -> Inferred<Type> {
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
    Ok(Type::Partition(PartitionType { tensor: tensor.clone(), tile: tile.to_vec() }))
}

fn partition_operand<'a>(op: &Op, operand: &'a Type) -> Inferred<&'a PartitionType> {
    operand
        .as_partition()
        .ok_or_else(|| TypeError::new(format!("`{}` needs a partition view, not {operand}", op.name())).at(0))
}

fn mutable_partition<'a>(op: &Op, operand: &'a Type) -> Inferred<&'a PartitionType> {
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
    let [view, pad, indices @ ..] = operands else {
        return Err(TypeError::new("`load_masked` takes a view, a pad value and tile indices"));
    };
    let view = partition_operand(op, view)?;
    if pad != &Type::Scalar(view.tensor.elem.clone()) {
        return Err(TypeError::new(format!(
            "the pad value is {pad}, but the view holds {}",
            view.tensor.elem
        ))
        .at(1));
    }
    let expected = if view.tensor.mutable { 0 } else { view.tile.len() };
    if indices.len() != expected {
        return Err(TypeError::new(format!(
            "a view of rank {} is loaded with {expected} tile indices, not {}",
            view.tile.len(),
            indices.len()
        )));
    }
    for (i, index) in indices.iter().enumerate() {
        if index != &Type::INDEX {
            return Err(TypeError::new(format!("a tile index is `usize`, not {index}")).at(i + 2));
        }
    }
    Ok(Type::Tile(view.tile_type()))
}

pub(super) fn store(op: &Op, operands: &[Type]) -> Inferred<()> {
    count(op, operands, 2)?;
    let view = mutable_partition(op, &operands[0])?;
    let expected = Type::Tile(view.tile_type());
    if operands[1] == expected {
        return Ok(());
    }
    let message = match &operands[1] {
        Type::Tile(tile) if tile.shape != view.tile => {
            format!(
                "a tile of shape {} is stored to a view of tiles {}",
                display_shape(&tile.shape),
                display_shape(&view.tile)
            )
        }
        Type::Tile(tile) => format!("a tile of {} is stored to a view of {}", tile.elem, view.tensor.elem),
        other => format!("`store_masked` needs a tile, not {other}"),
    };
    let error = TypeError::new(message).at(1);
    Err(if operands[1].as_tile().is_some_and(|tile| tile.shape == view.tile) {
        error.help(format!("convert it with `.cast::<{}>()`", view.tensor.elem))
    } else {
        error
    })
}
