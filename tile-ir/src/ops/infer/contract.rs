//! Type rules of `mma`.

use super::{Inferred, TypeError, count, display_shape, tile_operand};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::ops::Op;
use crate::types::{Elem, TileType, Type};

/// The accumulator formats that `mma` has for operands of these formats.
pub fn mma_accumulators(left: DType, right: DType) -> &'static [DType] {
    use DType::*;
    match (left, right) {
        (F8E4M3FN | F8E5M2, F8E4M3FN | F8E5M2) | (F16, F16) => &[F32, F16],
        (BF16, BF16) | (F32, F32) => &[F32],
        (F64, F64) => &[F64],
        (I8 | U8, I8 | U8) | (I16, I16) | (I32, I32) => &[I32],
        (U32, U32) => &[U32],
        (I64, I64) => &[I64],
        (U64, U64) => &[U64],
        _ => &[],
    }
}

/// The factors and the sums are those of an `mma`; scales are powers of two, as many along K for both factors.
pub(super) fn mma_scaled(op: &Op, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 5)?;
    let result = product(op, &operands[..3])?;
    let tile = |operand| tile_operand(op, operands, operand);
    let scaled = [(0, tile(0)?, tile(3)?, 1), (1, tile(1)?, tile(4)?, 0)];
    for (operand, factor, scales, depth) in scaled {
        let ([_, _], [_, _]) = (factor.shape.as_slice(), scales.shape.as_slice()) else {
            return Err(TypeError::new("`mma_scaled` needs tiles of rank 2").at(operand));
        };
        let blocks = [&factor.shape[depth], &scales.shape[depth]].map(Dim::as_const);
        let are_whole = matches!(blocks, [Some(k), Some(blocks)] if blocks > 0 && k % blocks == 0);
        if !are_whole || factor.shape[1 - depth] != scales.shape[1 - depth] {
            let (scales, factor) = (display_shape(&scales.shape), display_shape(&factor.shape));
            let message = format!("scales of shape {scales} don't fit a factor of shape {factor}");
            return Err(TypeError::new(message).at(operand + 3));
        }
        if !factor.elem.known().is_some_and(DType::is_float8) {
            return Err(TypeError::new("`mma_scaled` multiplies 8-bit floats").at(operand));
        }
        if scales.elem.known() != Some(DType::F8E8M0FNU) {
            return Err(TypeError::new("scales of `mma_scaled` are of f8e8m0fnu").at(operand + 3));
        }
    }
    if scaled[0].2.shape[1] != scaled[1].2.shape[0] {
        return Err(TypeError::new("both factors of `mma_scaled` have as many blocks").at(4));
    }
    Ok(result)
}

pub(super) fn mma(op: &Op, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 3)?;
    product(op, operands)
}

fn product<'t>(op: &Op, operands: &'t [Type]) -> Inferred<Type> {
    let tiles =
        [tile_operand(op, operands, 0)?, tile_operand(op, operands, 1)?, tile_operand(op, operands, 2)?];
    let [a, b, c] = tiles;
    let matrix = |i: usize, tile: &'t TileType| match tile.shape.as_slice() {
        [batch @ .., rows, columns] => Ok((batch, rows, columns)),
        shape => {
            let message = format!("`mma` needs tiles of rank 2 or more, not {}", display_shape(shape));
            Err(TypeError::new(message).at(i).help(
                "a vector is a matrix with an axis of extent 1, `x.unsqueeze(1)` or `x.unsqueeze(0)`; `(a * b).sum(axis)` \
                 multiplies it without `mma`",
            ))
        }
    };
    let (batch_a, m, k) = matrix(0, a)?;
    let (batch_b, l, n) = matrix(1, b)?;
    let (batch, rows, columns) = matrix(2, c)?;
    let shapes =
        || format!("{} · {} + {}", display_shape(&a.shape), display_shape(&b.shape), display_shape(&c.shape));
    if k != l {
        let message = format!("`mma` contracts axes of different extent, {k:#} and {l:#}, in {}", shapes());
        return Err(TypeError::new(message)
            .at(1)
            .help("`mma(a, b, acc)` takes a: [M, K], b: [K, N], acc: [M, N]"));
    }
    if batch_a != batch_b {
        let message = format!("`mma` multiplies different numbers of matrices, in {}", shapes());
        return Err(TypeError::new(message)
            .at(1)
            .help("leading axes count matrices and must be equal; repeat one side with `broadcast`"));
    }
    if (batch, rows, columns) != (batch_a, m, n) {
        let expected = [batch_a, &[m.clone(), n.clone()]].concat();
        let message =
            format!("the accumulator of `mma` should be {}, in {}", display_shape(&expected), shapes());
        return Err(TypeError::new(message).at(2));
    }
    mma_formats(&a.elem, &b.elem, &c.elem)?;
    Ok(operands[2].clone())
}

fn mma_formats(left: &Elem, right: &Elem, accumulator: &Elem) -> Inferred<()> {
    let (Some(a), Some(b)) = (left.known(), right.known()) else {
        // Parameters are bound later; one that is and one that isn't may still fit.
        return Ok(());
    };
    let accumulators = mma_accumulators(a, b);
    if accumulators.is_empty() {
        return Err(if mma_accumulators(a, a).is_empty() {
            TypeError::new(format!("`mma` doesn't multiply {a}"))
                .at(0)
                .help("it takes floats, i8 and u8, and integers of one format from i16 on")
        } else {
            TypeError::new(format!("`mma` doesn't multiply {a} by {b}"))
                .at(1)
                .help("convert one side with `.cast()`")
        });
    }
    match accumulator.known() {
        Some(dtype) if !accumulators.contains(&dtype) => {
            let names: Vec<_> = accumulators.iter().map(|d| d.name()).collect();
            let factors = if a == b { a.to_string() } else { format!("{a} by {b}") };
            Err(TypeError::new(format!(
                "`mma` of {factors} accumulates in {}, not {dtype}",
                names.join(" or ")
            ))
            .at(2)
            .help(format!("add to a tile of {}, and convert the sums: `.cast()`", names[0])))
        }
        _ => Ok(()),
    }
}
