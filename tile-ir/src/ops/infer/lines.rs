//! Type rules of ops along the lines of an axis: folds with a region, scans, sorting; and of histograms.

use super::{
    Inferred, TypeError, check_axis, check_domain, count, display_shape, static_shape, tile_operand,
};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::ops::{Domain, Op, ReduceOp};
use crate::types::{TileType, Type};

/// The operand tiles of `reduce_with` and `scan_with`, each with a start of its format.
fn folded<'t>(op: &Op, axis: usize, operands: &'t [Type]) -> Inferred<Vec<&'t TileType>> {
    let half = operands.len() / 2;
    if operands.len() != 2 * half || half == 0 {
        return Err(TypeError::new(format!("`{}` takes tiles and as many starts", op.spelling())));
    }
    let tiles = (0..half).map(|i| tile_operand(op, operands, i)).collect::<Inferred<Vec<_>>>()?;
    for (i, tile) in tiles.iter().enumerate() {
        if tile.shape != tiles[0].shape {
            let message = format!(
                "`{}` takes tiles of one shape, not {} and {}",
                op.spelling(),
                display_shape(&tiles[0].shape),
                display_shape(&tile.shape)
            );
            return Err(TypeError::new(message).at(i).help("make them one shape with `.broadcast([…])`"));
        }
        if operands[half + i] != Type::Scalar(tile.elem.clone()) {
            let message =
                format!("`{}` of a tile of {} starts from {}", op.spelling(), tile.elem, operands[half + i]);
            return Err(TypeError::new(message)
                .at(half + i)
                .help("start from a scalar of the tile's format"));
        }
    }
    check_axis(op, axis, tiles[0].shape.len())?;
    Ok(tiles)
}

pub(super) fn reduce_with(op: &Op, axis: usize, operands: &[Type]) -> Inferred<Vec<Type>> {
    let tiles = folded(op, axis, operands)?;
    let reduced = tiles.into_iter().map(|tile| {
        let mut shape = tile.shape.clone();
        shape[axis] = Dim::from(1);
        Type::tile(shape, tile.elem.clone())
    });
    Ok(reduced.collect())
}

pub(super) fn scan_with(op: &Op, axis: usize, operands: &[Type]) -> Inferred<Vec<Type>> {
    Ok(folded(op, axis, operands)?.into_iter().map(|tile| Type::Tile(tile.clone())).collect())
}

pub(super) fn scan(op: &Op, reduction: ReduceOp, axis: usize, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 1)?;
    if reduction.scan_method().is_none() {
        return Err(TypeError::new(format!("`{}` has no scan", reduction.method())));
    }
    let tile = tile_operand(op, operands, 0)?;
    check_domain(op, reduction.domain(), &tile.elem, 0)?;
    check_axis(op, axis, tile.shape.len())?;
    Ok(operands[0].clone())
}

pub(super) fn sort(op: &Op, axis: usize, kept: &Dim, operands: &[Type]) -> Inferred<Vec<Type>> {
    count(op, operands, 1)?;
    let tile = tile_operand(op, operands, 0)?;
    check_domain(op, Domain::Number, &tile.elem, 0)?;
    check_axis(op, axis, tile.shape.len())?;
    static_shape(op, std::slice::from_ref(kept))?;
    if let (Some(kept), Some(extent)) = (kept.as_const(), tile.shape[axis].as_const())
        && kept > extent
    {
        let message = format!(
            "the first {kept} elements are taken along axis {axis} of {}, which has {extent}",
            display_shape(&tile.shape)
        );
        return Err(TypeError::new(message).help(format!("take at most {extent}")));
    }
    let mut shape = tile.shape.clone();
    shape[axis] = kept.clone();
    Ok(vec![Type::tile(shape.clone(), tile.elem.clone()), Type::tile(shape, DType::I32)])
}

pub(super) fn histogram(op: &Op, bins: &Dim, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 1)?;
    let tile = tile_operand(op, operands, 0)?;
    check_domain(op, Domain::Int, &tile.elem, 0)
        .map_err(|error| error.help("count integers, such as `x.floor().cast::<i32>()`"))?;
    static_shape(op, std::slice::from_ref(bins))?;
    Ok(Type::tile([bins.clone()], DType::I32))
}
