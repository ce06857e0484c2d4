//! Type rule of atomic operations.

use super::{Domain, Inferred, Op, TypeError, check_domain, display_shape};
use crate::dtype::DType;
use crate::ops::atomic::{Atomic, AtomicKind};
use crate::types::{Elem, TensorType, TileType, Type};

pub(super) fn atomic(op: &Op, atomic: Atomic, operands: &[Type]) -> Inferred<Vec<Type>> {
    let name = op.spelling();
    let Some(Type::Tensor(tensor)) = operands.first() else {
        return Err(TypeError::new(format!("`{name}` needs a tensor")).at(0));
    };
    order(atomic)?;
    element(atomic, tensor)?;
    let rank = tensor.extents.len();
    let expected = 1 + rank + atomic.kind.values() + usize::from(atomic.masked);
    if operands.len() != expected {
        let plural = if rank == 1 { "" } else { "es" };
        return Err(TypeError::new(format!(
            "`{name}` of a tensor {} takes {rank} index{plural}, not {}",
            display_shape(&tensor.extents),
            (operands.len() + rank).saturating_sub(expected)
        ))
        .help("give one index per axis"));
    }
    let mut common: Option<&TileType> = None;
    for (i, operand) in operands.iter().enumerate().skip(1) {
        let Some(tile) = operand.as_tile() else {
            return Err(TypeError::new(format!("`{name}` takes tiles, not {operand:#}")).at(i));
        };
        if let Some(common) = common.filter(|common| common.shape != tile.shape) {
            let (first, second) = (display_shape(&common.shape), display_shape(&tile.shape));
            return Err(TypeError::new(format!("`{name}` mixes tiles of shapes {first} and {second}")).at(i));
        }
        common = Some(tile);
        let is_mask = atomic.masked && i + 1 == expected;
        if i <= rank {
            check_domain(op, Domain::Int, &tile.elem, i)?;
        } else if is_mask && tile.elem.known() != Some(DType::Bool) {
            let message = format!("the mask of `{name}` is a tile of {}, not of bool", tile.elem);
            return Err(TypeError::new(message).at(i));
        } else if !is_mask && tile.elem != tensor.elem {
            let message =
                format!("a value of `{name}` is {}, but the tensor holds {}", tile.elem, tensor.elem);
            return Err(TypeError::new(message)
                .at(i)
                .help(format!("convert it with `.cast::<{}>()`", tensor.elem)));
        }
    }
    let Some(common) = common else {
        return Err(TypeError::new(format!("`{name}` needs a tensor that has an axis")).at(0));
    };
    let result = Type::tile(common.shape.iter().cloned(), tensor.elem.clone());
    Ok(if atomic.kind.has_result() { vec![result] } else { Vec::new() })
}

fn order(atomic: Atomic) -> Inferred<()> {
    if atomic.kind.accepts(atomic.order) {
        return Ok(());
    }
    let (name, order) = (atomic.kind.rust_name(), atomic.order.rust_name());
    let (reason, instead) = match name {
        "load" => ("writes nothing, so it can't release", "Acquire"),
        _ => ("reads nothing, so it can't acquire", "Release"),
    };
    Err(TypeError::new(format!("an atomic `{name}` {reason}: {order} isn't an order of it"))
        .help(format!("use Relaxed or {instead}")))
}

fn element(atomic: Atomic, tensor: &TensorType) -> Inferred<()> {
    if !tensor.mutable {
        return Err(TypeError::new("the tensor is `&`, so it can't be changed")
            .at(0)
            .help("declare the argument as `&mut Tensor<…>`"));
    }
    let name = atomic.kind.rust_name();
    match tensor.elem {
        // A parameter is checked when it is bound.
        Elem::Param(_) => Ok(()),
        Elem::Known(dtype) if atomic.kind.supports(dtype) => Ok(()),
        Elem::Known(dtype) => {
            let message = if dtype.is_float() && !atomic.kind.supports(DType::F32) {
                format!("`{name}` needs a tensor of integers, not of {dtype}")
            } else {
                format!("a tensor of {dtype} has no atomic `{name}`")
            };
            Err(TypeError::new(message).at(0).help(AtomicKind::summary(dtype)))
        }
    }
}
