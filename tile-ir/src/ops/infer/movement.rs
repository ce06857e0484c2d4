//! Type rules of ops that move elements: the pieces fit, and what they make.
//!
//! What extents alone decide is decided here: that a window lies inside, for example, is known at once for numbers
//! and for extents whose difference is a number, and for others when the kernel is specialised.

use super::{
    Inferred, TypeError, check_axis, check_domain, count, display_shape, element, has_value, static_shape,
    tile_operand,
};
use crate::dim::Dim;
use crate::ops::{Domain, Movement, Op};
use crate::types::{TileType, Type};

pub(super) fn movement(op: &Op, movement: &Movement, operands: &[Type]) -> Inferred<Type> {
    for dim in &op.dims() {
        if !dim.is_static() {
            let message = format!("`{dim:#}` in `{}` is known only at run time", op.name());
            return Err(TypeError::new(message).help("positions in a tile are literals and const parameters"));
        }
        has_value("a position in a tile", dim)?;
    }
    let operand_count = match movement {
        Movement::Insert { .. } | Movement::Pad { .. } | Movement::Shift { .. } => 2,
        Movement::Cat { .. } => operands.len().max(1),
        _ => 1,
    };
    count(op, operands, operand_count)?;
    let tile = tile_operand(op, operands, 0)?;
    element(&tile.elem)?;
    let shape = match movement {
        Movement::Extract { starts, shape } => extract(op, tile, starts, shape)?,
        Movement::Insert { starts } => insert(op, tile, tile_operand(op, operands, 1)?, starts)?,
        Movement::Cat { axis } => cat(op, operands, *axis)?,
        Movement::Pad { before, after } => {
            fills(op, tile, &operands[1])?;
            pad(op, tile, before, after)?
        }
        Movement::Flip { axis } | Movement::Roll { axis, .. } => {
            check_axis(op, *axis, tile.shape.len())?;
            tile.shape.clone()
        }
        Movement::Shift { axis, .. } => {
            fills(op, tile, &operands[1])?;
            check_axis(op, *axis, tile.shape.len())?;
            tile.shape.clone()
        }
        Movement::Repeat { counts } => repeat(op, tile, counts)?,
    };
    Ok(Type::tile(shape, tile.elem.clone()))
}

/// One entry of an attribute for each axis.
fn per_axis(op: &Op, what: &str, entries: &[Dim], tile: &TileType) -> Inferred<()> {
    if entries.len() == tile.shape.len() {
        return Ok(());
    }
    Err(TypeError::new(format!(
        "`{}` is given {what} {} for a tile of shape {}",
        op.name(),
        display_shape(entries),
        display_shape(&tile.shape)
    ))
    .help(format!("give one for each axis: {} of them", tile.shape.len())))
}

fn not_negative(op: &Op, what: &str, entries: &[Dim]) -> Inferred<()> {
    match entries.iter().find(|entry| entry.as_const().is_some_and(|entry| entry < 0)) {
        Some(entry) => Err(TypeError::new(format!("{what} of `{}` is negative: {entry}", op.name()))),
        None => Ok(()),
    }
}

/// That a window lies inside a shape, as far as that is known.
fn inside(op: &Op, starts: &[Dim], window: &[Dim], shape: &[Dim]) -> Inferred<()> {
    for (axis, ((start, extent), whole)) in starts.iter().zip(window).zip(shape).enumerate() {
        let end = start.clone() + extent.clone();
        if (whole.clone() - end.clone()).as_const().is_none_or(|rest| rest >= 0) {
            continue;
        }
        let error = TypeError::new(format!(
            "`{}` reaches to {end:#} along axis {axis} of a tile of shape {}: {:#} elements from {start:#} on",
            op.name(),
            display_shape(shape),
            extent
        ));
        let latest = whole.clone() - extent.clone();
        return Err(if latest.as_const().is_some_and(|latest| latest < 0) {
            error.help(format!("at most {whole:#} elements fit along that axis"))
        } else {
            error.help(format!("start at {latest:#} at most, or move fewer elements"))
        });
    }
    Ok(())
}

fn extract(op: &Op, tile: &TileType, starts: &[Dim], shape: &[Dim]) -> Inferred<Vec<Dim>> {
    per_axis(op, "starts", starts, tile)?;
    per_axis(op, "extents", shape, tile)?;
    static_shape(op, shape)?;
    not_negative(op, "a start", starts)?;
    inside(op, starts, shape, &tile.shape)?;
    Ok(shape.to_vec())
}

fn insert(op: &Op, tile: &TileType, part: &TileType, starts: &[Dim]) -> Inferred<Vec<Dim>> {
    per_axis(op, "starts", starts, tile)?;
    not_negative(op, "a start", starts)?;
    if part.elem != tile.elem {
        let message = format!("a tile of {} is inserted into one of {}", part.elem, tile.elem);
        return Err(TypeError::new(message).at(1).help("convert it with `.cast()`"));
    }
    if part.shape.len() != tile.shape.len() {
        let message = format!(
            "a tile of shape {} can't be inserted into one of shape {}: the ranks differ",
            display_shape(&part.shape),
            display_shape(&tile.shape)
        );
        return Err(TypeError::new(message).at(1).help("add axes of extent 1 with `unsqueeze(axis)`"));
    }
    inside(op, starts, &part.shape, &tile.shape)?;
    Ok(tile.shape.clone())
}

fn cat(op: &Op, operands: &[Type], axis: usize) -> Inferred<Vec<Dim>> {
    let first = tile_operand(op, operands, 0)?;
    check_axis(op, axis, first.shape.len())?;
    let mut shape = first.shape.clone();
    for i in 1..operands.len() {
        let other = tile_operand(op, operands, i)?;
        if other.elem != first.elem {
            let message = format!("`cat` mixes element types {} and {}", first.elem, other.elem);
            return Err(TypeError::new(message).at(i).help("convert one with `.cast()`"));
        }
        let alike = other.shape.len() == first.shape.len()
            && (0..shape.len()).all(|a| a == axis || other.shape[a] == first.shape[a]);
        if !alike {
            return Err(TypeError::new(format!(
                "`cat` along axis {axis} mixes shapes {} and {}",
                display_shape(&first.shape),
                display_shape(&other.shape)
            ))
            .at(i)
            .help("all axes but the one along which tiles are joined must be equal"));
        }
        shape[axis] = shape[axis].clone() + other.shape[axis].clone();
    }
    Ok(shape)
}

/// That the second operand is a scalar of the tile's format.
fn fills(op: &Op, tile: &TileType, fill: &Type) -> Inferred<()> {
    match fill {
        Type::Scalar(elem) if *elem == tile.elem => Ok(()),
        Type::Scalar(elem) => {
            let message = format!("`{}` fills a tile of {} with {elem}", op.name(), tile.elem);
            Err(TypeError::new(message).at(1).help("convert the value with `as`"))
        }
        other => {
            let message = format!("`{}` fills with a scalar, not {other}", op.name());
            Err(TypeError::new(message).at(1).help("to put a tile into another, use `insert` or `cat`"))
        }
    }
}

fn pad(op: &Op, tile: &TileType, before: &[Dim], after: &[Dim]) -> Inferred<Vec<Dim>> {
    per_axis(op, "padding", before, tile)?;
    per_axis(op, "padding", after, tile)?;
    not_negative(op, "a count", before)?;
    not_negative(op, "a count", after)?;
    let axes = tile.shape.iter().zip(before).zip(after);
    Ok(axes.map(|((extent, before), after)| before.clone() + extent.clone() + after.clone()).collect())
}

fn repeat(op: &Op, tile: &TileType, counts: &[Dim]) -> Inferred<Vec<Dim>> {
    per_axis(op, "counts", counts, tile)?;
    if let Some(none) = counts.iter().find(|count| count.as_const().is_some_and(|count| count < 1)) {
        let message = format!("a count of `repeat` is {none}: the tile would be empty");
        return Err(TypeError::new(message).help("1 keeps an axis"));
    }
    let shape: Vec<Dim> =
        tile.shape.iter().zip(counts).map(|(extent, count)| extent.clone() * count.clone()).collect();
    static_shape(op, &shape)?;
    Ok(shape)
}

/// `tile, indices, fill scalar → tile` of the indices' shape.
pub(super) fn gather(op: &Op, axis: usize, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 3)?;
    let tile = tile_operand(op, operands, 0)?;
    element(&tile.elem)?;
    let indices = indices(op, tile, tile_operand(op, operands, 1)?, axis)?;
    match &operands[2] {
        Type::Scalar(elem) if *elem == tile.elem => {}
        other => {
            let message = format!("`gather` of a tile of {} fills with {other}", tile.elem);
            return Err(TypeError::new(message).at(2).help("the value is a scalar of the tile's format"));
        }
    }
    Ok(Type::tile(indices.shape.iter().cloned(), tile.elem.clone()))
}

/// `tile, indices, values → tile` like the first; values have the indices' shape and the tile's format.
pub(super) fn scatter(op: &Op, axis: usize, domain: Domain, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 3)?;
    let tile = tile_operand(op, operands, 0)?;
    check_domain(op, domain, &tile.elem, 0)?;
    let indices = indices(op, tile, tile_operand(op, operands, 1)?, axis)?;
    let values = tile_operand(op, operands, 2)?;
    if values.shape != indices.shape {
        return Err(TypeError::new(format!(
            "`{}` has values of shape {} for indices of shape {}",
            op.name(),
            display_shape(&values.shape),
            display_shape(&indices.shape)
        ))
        .at(2)
        .help("there is one value per index; `.broadcast([…])` repeats"));
    }
    if values.elem != tile.elem {
        let message = format!("`{}` writes values of {} to a tile of {}", op.name(), values.elem, tile.elem);
        return Err(TypeError::new(message).at(2).help("convert the values with `.cast()`"));
    }
    Ok(operands[0].clone())
}

/// That a tile of indices fits a tile along an axis.
fn indices<'a>(op: &Op, tile: &TileType, indices: &'a TileType, axis: usize) -> Inferred<&'a TileType> {
    check_axis(op, axis, tile.shape.len())?;
    if indices.elem.known().is_some_and(|dtype| !Domain::Int.accepts(dtype)) {
        let message = format!("the indices of `{}` are {}, not integers", op.name(), indices.elem);
        return Err(TypeError::new(message).at(1).help("convert them: `.cast::<i32>()`"));
    }
    let alike = indices.shape.len() == tile.shape.len()
        && (0..tile.shape.len()).all(|a| a == axis || indices.shape[a] == tile.shape[a]);
    if alike {
        return Ok(indices);
    }
    Err(TypeError::new(format!(
        "`{}` along axis {axis} of a tile of shape {} has indices of shape {}",
        op.name(),
        display_shape(&tile.shape),
        display_shape(&indices.shape)
    ))
    .at(1)
    .help(format!("the indices have the tile's extents but along axis {axis}; `.broadcast([…])` repeats axes of extent 1")))
}
