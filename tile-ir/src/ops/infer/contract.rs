//! Type rules of `mma`.

use super::{Inferred, TypeError, count, display_shape, tile_operand};
use crate::dtype::DType;
use crate::ops::Op;
use crate::types::{Elem, Type};

/// The accumulator formats that `mma` has for operands of this format.
pub fn mma_accumulators(operand: DType) -> &'static [DType] {
    match operand {
        DType::F16 => &[DType::F32, DType::F16],
        DType::BF16 | DType::F32 => &[DType::F32],
        DType::F64 => &[DType::F64],
        DType::I8 | DType::U8 => &[DType::I32],
        _ => &[],
    }
}

pub(super) fn mma(op: &Op, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 3)?;
    let tiles =
        [tile_operand(op, operands, 0)?, tile_operand(op, operands, 1)?, tile_operand(op, operands, 2)?];
    for (i, tile) in tiles.iter().enumerate() {
        if tile.shape.len() != 2 {
            return Err(TypeError::new(format!(
                "`mma` needs tiles of rank 2, not {}",
                display_shape(&tile.shape)
            ))
            .at(i));
        }
    }
    let [a, b, c] = tiles;
    let shapes =
        || format!("{} · {} + {}", display_shape(&a.shape), display_shape(&b.shape), display_shape(&c.shape));
    if a.shape[1] != b.shape[0] {
        return Err(TypeError::new(format!(
            "`mma` contracts axes of different extent, {} and {}, in {}",
            a.shape[1],
            b.shape[0],
            shapes()
        ))
        .at(1)
        .help("`mma(a, b, acc)` takes a: [M, K], b: [K, N], acc: [M, N]"));
    }
    if c.shape[0] != a.shape[0] || c.shape[1] != b.shape[1] {
        return Err(TypeError::new(format!(
            "the accumulator of `mma` should be {}, in {}",
            display_shape(&[a.shape[0].clone(), b.shape[1].clone()]),
            shapes()
        ))
        .at(2));
    }
    if a.elem != b.elem {
        return Err(TypeError::new(format!("`mma` multiplies {} by {}", a.elem, b.elem))
            .at(1)
            .help("convert one side with `.cast()`"));
    }
    mma_formats(&a.elem, &c.elem)?;
    Ok(operands[2].clone())
}

fn mma_formats(operand: &Elem, accumulator: &Elem) -> Inferred<()> {
    let Some(operand) = operand.known() else { return Ok(()) };
    let accumulators = mma_accumulators(operand);
    if accumulators.is_empty() {
        return Err(TypeError::new(format!("`mma` doesn't multiply {operand}"))
            .at(0)
            .help("it takes f16, bf16, f32, f64, i8 and u8"));
    }
    match accumulator.known() {
        Some(dtype) if !accumulators.contains(&dtype) => {
            let names: Vec<_> = accumulators.iter().map(|d| d.name()).collect();
            Err(TypeError::new(format!(
                "`mma` of {operand} accumulates in {}, not {dtype}",
                names.join(" or ")
            ))
            .at(2))
        }
        _ => Ok(()),
    }
}
