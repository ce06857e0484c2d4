//! Type rules: the result types of an op from its operand types.
//!
//! The builder, the verifier and the front end all ask this one function. Its messages name values as a
//! user knows them (shapes and element types), because the front end shows them at the user's expression.

use super::{BinaryOp, Domain, Literal, Op, ReduceOp};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::types::{Elem, PartitionType, TileType, Type};
use std::fmt::Write;

/// Operands that don't fit an op.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TypeError {
    /// What is wrong, with the shapes or formats involved.
    pub message: String,
    /// The operand to point at, where it is one operand's fault.
    pub operand: Option<usize>,
    /// What to write instead, where that is known.
    pub help: Option<String>,
}

impl TypeError {
    fn new(message: impl Into<String>) -> TypeError {
        TypeError { message: message.into(), operand: None, help: None }
    }

    fn at(mut self, operand: usize) -> TypeError {
        self.operand = Some(operand);
        self
    }

    fn help(mut self, help: impl Into<String>) -> TypeError {
        self.help = Some(help.into());
        self
    }
}

type Inferred<T> = Result<T, TypeError>;

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

/// A shape as a user reads it: `[BM, 64]`.
pub fn display_shape(shape: &[Dim]) -> String {
    let mut text = String::from("[");
    for (i, dim) in shape.iter().enumerate() {
        let _ = write!(text, "{}{dim}", if i == 0 { "" } else { ", " });
    }
    text.push(']');
    text
}

/// The result types of `op` on operands of these types.
///
/// `for`, `if` and `yield` are judged with their regions by [`mod@crate::verify`]; here a `for` has the
/// types of its carried operands, and `if` and `yield` none.
///
/// # Errors
/// [`TypeError`] where the number, kind, shape or format of the operands is wrong.
pub fn result_types(op: &Op, operands: &[Type]) -> Inferred<Vec<Type>> {
    match op {
        Op::Constant { value, elem } => constant(value, elem, operands),
        Op::Extent(_) => count(op, operands, 0).map(|()| vec![Type::INDEX]),
        Op::Unary(unary) => elementwise(op, unary.domain(), operands, 1).map(|ty| vec![ty]),
        Op::Binary(binary) => self::binary(op, *binary, operands).map(|ty| vec![ty]),
        Op::Compare(predicate) => {
            elementwise(op, predicate.domain(), operands, 2).map(|ty| vec![ty.with_elem(DType::Bool)])
        }
        Op::Classify(classification) => {
            elementwise(op, classification.domain(), operands, 1).map(|ty| vec![ty.with_elem(DType::Bool)])
        }
        Op::Select => select(op, operands).map(|ty| vec![ty]),
        Op::Cast(elem) => {
            elementwise(op, Domain::Any, operands, 1).map(|ty| vec![ty.with_elem(elem.clone())])
        }
        Op::Splat(shape) => splat(op, shape, operands).map(|ty| vec![ty]),
        Op::Iota { shape, axis, elem } => iota(op, shape, *axis, elem, operands).map(|ty| vec![ty]),
        Op::Broadcast(shape) => broadcast(op, shape, operands).map(|ty| vec![ty]),
        Op::Reshape(shape) => reshape(op, shape, operands).map(|ty| vec![ty]),
        Op::Permute(permutation) => permute(op, permutation, operands).map(|ty| vec![ty]),
        Op::Reduce { op: reduction, axis } => reduce(op, *reduction, *axis, operands).map(|ty| vec![ty]),
        Op::Mma => mma(op, operands).map(|ty| vec![ty]),
        Op::Partition(tile) => partition(op, tile, operands).map(|ty| vec![ty]),
        Op::BlockIndex => {
            count(op, operands, 1)?;
            let view = mutable_partition(op, &operands[0])?;
            Ok(vec![Type::INDEX; view.tile.len()])
        }
        Op::LoadMasked => load(op, operands).map(|ty| vec![ty]),
        Op::StoreMasked => store(op, operands).map(|()| Vec::new()),
        Op::For => for_loop(op, operands),
        Op::If => {
            count(op, operands, 1)?;
            if operands[0] != Type::BOOL {
                return Err(
                    TypeError::new(format!("the condition of `if` is {}, not a bool", operands[0])).at(0)
                );
            }
            Ok(Vec::new())
        }
        Op::Yield => Ok(Vec::new()),
    }
}

fn count(op: &Op, operands: &[Type], expected: usize) -> Inferred<()> {
    if operands.len() == expected {
        return Ok(());
    }
    let plural = if expected == 1 { "" } else { "s" };
    Err(TypeError::new(format!("`{}` takes {expected} operand{plural}, not {}", op.name(), operands.len())))
}

fn constant(value: &Literal, elem: &Elem, operands: &[Type]) -> Inferred<Vec<Type>> {
    if !operands.is_empty() {
        return Err(TypeError::new("`constant` takes no operands"));
    }
    match (value, elem.known()) {
        (Literal::Float(_), Some(dtype)) if !dtype.is_float() => {
            Err(TypeError::new(format!("a float literal can't be {dtype}")))
        }
        (Literal::Int(value), Some(dtype)) if dtype.is_float() => {
            Err(TypeError::new(format!("the integer literal {value} can't be {dtype}"))
                .help(format!("write `{value}.0`")))
        }
        (Literal::Int(value), Some(dtype)) if !fits(*value, dtype) => {
            Err(TypeError::new(format!("{value} doesn't fit {dtype}")))
        }
        _ => Ok(vec![Type::Scalar(elem.clone())]),
    }
}

fn fits(value: i128, dtype: DType) -> bool {
    let bits = dtype.bits();
    match dtype {
        DType::Bool => (0..=1).contains(&value),
        _ if dtype.is_signed() => (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&value),
        _ => (0..1i128 << bits).contains(&value),
    }
}

/// All operands are data of one type in the domain; gives that type.
fn elementwise(op: &Op, domain: Domain, operands: &[Type], expected: usize) -> Inferred<Type> {
    count(op, operands, expected)?;
    for (i, operand) in operands.iter().enumerate() {
        if !operand.is_data() {
            return Err(
                TypeError::new(format!("`{}` needs a scalar or tile, not {operand}", op.spelling())).at(i)
            );
        }
        check_domain(op, domain, operand.elem(), i)?;
    }
    for operand in &operands[1..] {
        same_type(op, &operands[0], operand)?;
    }
    Ok(operands[0].clone())
}

fn check_domain(op: &Op, domain: Domain, elem: &Elem, operand: usize) -> Inferred<()> {
    match elem.known() {
        Some(dtype) if !domain.accepts(dtype) => {
            Err(TypeError::new(format!("`{}` needs {}, not {dtype}", op.spelling(), domain.describe()))
                .at(operand))
        }
        _ => Ok(()),
    }
}

fn same_type(op: &Op, left: &Type, right: &Type) -> Inferred<()> {
    if left.elem() != right.elem() {
        return Err(TypeError::new(format!(
            "`{}` mixes element types {} and {}",
            op.spelling(),
            left.elem(),
            right.elem()
        ))
        .help("convert one side with `.cast()`"));
    }
    match (left, right) {
        (Type::Tile(a), Type::Tile(b)) if a.shape != b.shape => Err(TypeError::new(format!(
            "`{}` mixes shapes {} and {}",
            op.spelling(),
            display_shape(&a.shape),
            display_shape(&b.shape)
        ))),
        _ if left != right => Err(TypeError::new(format!("`{}` mixes {left} and {right}", op.spelling()))),
        _ => Ok(()),
    }
}

fn binary(op: &Op, binary: BinaryOp, operands: &[Type]) -> Inferred<Type> {
    elementwise(op, binary.domain(), operands, 2)
}

fn select(op: &Op, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 3)?;
    let condition = &operands[0];
    if !condition.is_data() || condition.elem() != &Elem::Known(DType::Bool) {
        return Err(TypeError::new(format!("the condition of `select` is {condition}, not bool")).at(0));
    }
    let value = elementwise(&Op::Select, Domain::Any, &operands[1..], 2)?;
    same_type(op, &condition.with_elem(value.elem().clone()), &value)?;
    Ok(value)
}

fn splat(op: &Op, shape: &[Dim], operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 1)?;
    let Type::Scalar(elem) = &operands[0] else {
        return Err(TypeError::new(format!("`splat` needs a scalar, not {}", operands[0])).at(0));
    };
    static_shape(op, shape)?;
    element(elem)?;
    Ok(Type::tile(shape.iter().cloned(), elem.clone()))
}

fn static_shape(op: &Op, shape: &[Dim]) -> Inferred<()> {
    for dim in shape {
        if !dim.is_static() {
            return Err(TypeError::new(format!(
                "the extent `{dim}` of a tile made by `{}` is known only at run time",
                op.name()
            ))
            .help("tile extents are literals or const parameters of the kernel"));
        }
        if dim.as_const().is_some_and(|extent| extent <= 0) {
            return Err(TypeError::new(format!("the tile extent `{dim}` is not positive")));
        }
    }
    Ok(())
}

fn element(elem: &Elem) -> Inferred<()> {
    match elem.known() {
        Some(dtype) if !dtype.is_element() => Err(TypeError::new("a tile can't hold `usize`")
            .help("cast to a sized integer such as i32 or u64 first")),
        _ => Ok(()),
    }
}

fn iota(op: &Op, shape: &[Dim], axis: usize, elem: &Elem, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 0)?;
    static_shape(op, shape)?;
    element(elem)?;
    check_domain(op, Domain::Number, elem, 0)?;
    check_axis(op, axis, shape.len())?;
    Ok(Type::tile(shape.iter().cloned(), elem.clone()))
}

fn check_axis(op: &Op, axis: usize, rank: usize) -> Inferred<()> {
    if axis < rank {
        return Ok(());
    }
    Err(TypeError::new(format!(
        "axis {axis} of `{}` is out of range: the tile has rank {rank}",
        op.spelling()
    )))
}

fn tile_operand<'a>(op: &Op, operands: &'a [Type], i: usize) -> Inferred<&'a TileType> {
    operands[i]
        .as_tile()
        .ok_or_else(|| TypeError::new(format!("`{}` needs a tile, not {}", op.spelling(), operands[i])).at(i))
}

fn broadcast(op: &Op, shape: &[Dim], operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 1)?;
    let tile = tile_operand(op, operands, 0)?;
    static_shape(op, shape)?;
    let fits = tile.shape.len() == shape.len()
        && tile.shape.iter().zip(shape).all(|(from, to)| from == to || from.as_const() == Some(1));
    if !fits {
        return Err(TypeError::new(format!(
            "shape {} can't be broadcast to {}",
            display_shape(&tile.shape),
            display_shape(shape)
        ))
        .at(0)
        .help("axes must be equal or have extent 1"));
    }
    Ok(Type::tile(shape.iter().cloned(), tile.elem.clone()))
}

fn reshape(op: &Op, shape: &[Dim], operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 1)?;
    let tile = tile_operand(op, operands, 0)?;
    static_shape(op, shape)?;
    let product = |dims: &[Dim]| dims.iter().cloned().fold(Dim::from(1), |a, b| a * b);
    if product(&tile.shape) != product(shape) {
        return Err(TypeError::new(format!(
            "{} has {} elements and can't be reshaped to {}, which has {}",
            display_shape(&tile.shape),
            product(&tile.shape),
            display_shape(shape),
            product(shape)
        ))
        .at(0));
    }
    Ok(Type::tile(shape.iter().cloned(), tile.elem.clone()))
}

fn permute(op: &Op, permutation: &[usize], operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 1)?;
    let tile = tile_operand(op, operands, 0)?;
    let mut sorted = permutation.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..tile.shape.len()) {
        return Err(TypeError::new(format!(
            "{permutation:?} is not a permutation of the axes of {}",
            display_shape(&tile.shape)
        )));
    }
    Ok(Type::tile(permutation.iter().map(|&axis| tile.shape[axis].clone()), tile.elem.clone()))
}

fn reduce(op: &Op, reduction: ReduceOp, axis: usize, operands: &[Type]) -> Inferred<Type> {
    count(op, operands, 1)?;
    let tile = tile_operand(op, operands, 0)?;
    check_domain(op, reduction.domain(), &tile.elem, 0)?;
    check_axis(op, axis, tile.shape.len())?;
    let mut shape = tile.shape.clone();
    shape[axis] = Dim::from(1);
    Ok(Type::tile(shape, tile.elem.clone()))
}

fn mma(op: &Op, operands: &[Type]) -> Inferred<Type> {
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

fn partition(op: &Op, tile: &[Dim], operands: &[Type]) -> Inferred<Type> {
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

fn load(op: &Op, operands: &[Type]) -> Inferred<Type> {
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

fn store(op: &Op, operands: &[Type]) -> Inferred<()> {
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

fn for_loop(_op: &Op, operands: &[Type]) -> Inferred<Vec<Type>> {
    let [start, end, carried @ ..] = operands else {
        return Err(TypeError::new("`for` takes a start, an end and carried values"));
    };
    for (i, bound) in [start, end].into_iter().enumerate() {
        if bound != &Type::INDEX {
            return Err(TypeError::new(format!("a loop bound is `usize`, not {bound}")).at(i));
        }
    }
    for (i, value) in carried.iter().enumerate() {
        if !value.is_data() {
            return Err(TypeError::new(format!("a loop can't carry {value}")).at(i + 2));
        }
    }
    Ok(carried.to_vec())
}
