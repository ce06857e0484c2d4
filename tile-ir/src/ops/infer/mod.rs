//! Type rules: the result types of an op from its operand types.
//!
//! The builder, the verifier and the front end all ask this one function. Its messages name values as a
//! user knows them (shapes and element types), because the front end shows them at the user's expression.
//! The rules are in one file per kind of op; what several of them check is here.

mod atomic;
mod contract;
mod control;
mod elementwise;
mod lines;
mod memory;
mod messages;
mod movement;
mod tiles;

pub use contract::mma_accumulators;

use super::{BinaryOp, Domain, Op, ScatterMode};
use crate::analysis::Facts;
use crate::dim::{Dim, DimError};
use crate::dtype::DType;
use crate::types::{Elem, Shape, TileType, Type};

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
    pub(crate) fn new(message: impl Into<String>) -> TypeError {
        TypeError { message: message.into(), operand: None, help: None }
    }

    /// Refuses extents of which one isn't [readable](Dim::is_readable).
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn refuse_long<'d>(extents: impl IntoIterator<Item = &'d Dim>) -> Result<(), TypeError> {
        if extents.into_iter().all(Dim::is_readable) {
            return Ok(());
        }
        Err(TypeError::new(format!("an extent has more than {} terms and factors", Dim::MAX_LENGTH)).help(
            "make a part of it a size of its own: an argument `size: usize`, or an axis of an argument",
        ))
    }

    fn at(mut self, operand: usize) -> TypeError {
        self.operand = Some(operand);
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> TypeError {
        self.help = Some(help.into());
        self
    }
}

type Inferred<T> = Result<T, TypeError>;

/// A shape as a user reads it: `[BM, 64]`.
pub fn display_shape(shape: &[Dim]) -> String {
    format!("{:#}", Shape(shape))
}

/// The result types of `op` on operands of these types.
///
/// `for`, `while`, `if` and `yield` are judged with their regions by [`mod@crate::verify`]; here a loop has the
/// types of its carried operands, and `if` and `yield` none.
///
/// # Errors
/// [`TypeError`] where the number, kind, shape or format of the operands is wrong.
pub fn result_types(op: &Op, operands: &[Type]) -> Inferred<Vec<Type>> {
    result_types_under(op, operands, &Facts::default())
}

/// [`result_types`] in a kernel of whose parameters and sizes this is known: `BK / 8 * 8` is `BK` where 8 divides it.
///
/// # Errors
/// As [`result_types`].
pub fn result_types_under(op: &Op, operands: &[Type], facts: &Facts) -> Inferred<Vec<Type>> {
    match op {
        Op::Constant { value, elem } => elementwise::constant(value, elem, operands),
        Op::Extent(_) | Op::BlockId { .. } | Op::BlockCount { .. } => {
            count(op, operands, 0).map(|()| vec![Type::INDEX])
        }
        Op::Unary(unary) => elementwise::one_type(op, unary.domain(), operands, 1).map(|ty| vec![ty]),
        Op::Binary(binary) => elementwise::one_type(op, binary.domain(), operands, 2).map(|ty| vec![ty]),
        Op::Compare(predicate) => elementwise::one_type(op, predicate.domain(), operands, 2)
            .map(|ty| vec![ty.with_elem(DType::Bool)]),
        Op::Classify(classification) => elementwise::one_type(op, classification.domain(), operands, 1)
            .map(|ty| vec![ty.with_elem(DType::Bool)]),
        Op::Select => elementwise::select(op, operands).map(|ty| vec![ty]),
        Op::Cast(elem) => elementwise::one_type(op, Domain::Any, operands, 1)
            .and_then(|ty| elementwise::of_format(&ty, elem))
            .map(|ty| vec![ty]),
        Op::CastWith(elem, _) => elementwise::cast_with(op, elem, operands).map(|ty| vec![ty]),
        Op::SaturatingCast(elem) => elementwise::saturating_cast(op, elem, operands).map(|ty| vec![ty]),
        Op::Bitcast(elem) => elementwise::bitcast(op, elem, operands).map(|ty| vec![ty]),
        Op::Lookup { table, elem } => elementwise::lookup(op, table, elem, operands).map(|ty| vec![ty]),
        Op::MulAdd => elementwise::one_type(op, Domain::Float, operands, 3).map(|ty| vec![ty]),
        Op::Splat(shape) => tiles::splat(op, shape, operands).map(|ty| vec![ty]),
        Op::Iota { shape, axis, elem } => tiles::iota(op, shape, *axis, elem, operands).map(|ty| vec![ty]),
        Op::Broadcast(shape) => tiles::broadcast(op, shape, operands).map(|ty| vec![ty]),
        Op::Reshape(shape) => tiles::reshape(op, shape, operands, facts).map(|ty| vec![ty]),
        Op::Permute(permutation) => tiles::permute(op, permutation, operands).map(|ty| vec![ty]),
        Op::Movement(kind) => movement::movement(op, kind, operands).map(|ty| vec![ty]),
        Op::Gather { axis } => movement::gather(op, *axis, operands).map(|ty| vec![ty]),
        Op::Scatter { axis, mode } => {
            let domain = if *mode == ScatterMode::Add { Domain::Number } else { Domain::Any };
            movement::scatter(op, *axis, domain, operands).map(|ty| vec![ty])
        }
        Op::Reduce { op: reduction, axis } => {
            tiles::reduce(op, *reduction, *axis, operands).map(|ty| vec![ty])
        }
        Op::Mma => contract::mma(op, operands).map(|ty| vec![ty]),
        Op::View(movement) => memory::view(op, movement, operands).map(|ty| vec![ty]),
        Op::Partition(cut) => memory::partition(op, cut, operands).map(|ty| vec![ty]),
        Op::BlockIndex => memory::block_index(op, operands),
        Op::LoadMasked | Op::Load { .. } => memory::load(op, operands).map(|ty| vec![ty]),
        Op::GatherLoad => memory::gather_load(op, operands).map(|ty| vec![ty]),
        Op::StoreMasked | Op::Store => memory::store(op, operands).map(|()| Vec::new()),
        Op::For => control::for_loop(operands),
        Op::If => control::branch(op, operands).map(|()| Vec::new()),
        Op::Yield => Ok(Vec::new()),
        Op::ReduceWith { axis, .. } => lines::reduce_with(op, *axis, operands),
        Op::ScanWith { axis, .. } => lines::scan_with(op, *axis, operands),
        Op::Scan { op: reduction, axis, .. } => {
            lines::scan(op, *reduction, *axis, operands).map(|ty| vec![ty])
        }
        Op::Sort { axis, count, .. } => lines::sort(op, *axis, count, operands),
        Op::Histogram(bins) => lines::histogram(op, bins, operands).map(|ty| vec![ty]),
        Op::Atomic(kind) => atomic::atomic(op, *kind, operands),
        Op::While => control::while_loop(operands),
        Op::Item => tiles::item(op, operands).map(|ty| vec![ty]),
        Op::Print { message, .. } => messages::print(op, message, operands).map(|()| Vec::new()),
        Op::Assert { message, .. } => messages::assert(op, message, operands).map(|()| Vec::new()),
        Op::Prefetch => memory::prefetch(op, operands).map(|()| Vec::new()),
        Op::Tiles(order) => control::tiles(op, order, operands),
        Op::ConvertLayout => {
            count(op, operands, 1)?;
            tile_operand(op, operands, 0).map(|tile| vec![Type::Tile(tile.clone())])
        }
        Op::MmaScaled => contract::mma_scaled(op, operands).map(|ty| vec![ty]),
    }
}

fn count(op: &Op, operands: &[Type], expected: usize) -> Inferred<()> {
    if operands.len() == expected {
        return Ok(());
    }
    let plural = if expected == 1 { "" } else { "s" };
    Err(TypeError::new(format!("`{}` takes {expected} operand{plural}, not {}", op.name(), operands.len())))
}

fn static_shape(op: &Op, shape: &[Dim]) -> Inferred<()> {
    for dim in shape {
        if !dim.is_static() {
            return Err(TypeError::new(format!(
                "the extent `{dim:#}` of a tile made by `{}` is known only at run time",
                op.name()
            ))
            .help("tile extents are literals or const parameters of the kernel"));
        }
        has_value("a tile extent", dim)?;
        if dim.as_const().is_some_and(|extent| extent <= 0) {
            return Err(TypeError::new(format!("the tile extent `{dim:#}` is not positive")));
        }
    }
    Ok(())
}

/// Refuses what is no number of an instance: a quotient by 0, say. Of one with parameters nothing is known before they are
/// bound.
fn has_value(what: &str, dim: &Dim) -> Inferred<()> {
    match dim.evaluate_signed(&|_| None) {
        Ok(_) | Err(DimError::Unbound(_)) => Ok(()),
        Err(error) => Err(TypeError::new(format!("{what} has no value: {error}"))),
    }
}

fn element(elem: &Elem) -> Inferred<()> {
    match elem.known() {
        Some(dtype) if !dtype.is_element() => Err(TypeError::new("a tile can't hold `usize`")
            .help("cast to a sized integer such as i32 or u64 first")),
        _ => Ok(()),
    }
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

/// Whether an op may be meant of the bits of what it is given.
fn is_of_bits(op: &Op) -> bool {
    matches!(op, Op::Unary(_) | Op::Binary(_) | Op::Reduce { .. })
}

/// What is written where an op doesn't accept a format.
fn help_of_domain(op: &Op, domain: Domain, found: DType) -> String {
    let of_floats = match op {
        Op::Binary(BinaryOp::RemEuclid) => Some("`select(r < 0.0, r + abs(b), r)`, with `let r = a % b;`"),
        Op::Binary(BinaryOp::DivFloor) => Some("`floor(a / b)`"),
        Op::Binary(BinaryOp::DivCeil) => Some("`ceil(a / b)`"),
        Op::Binary(BinaryOp::SaturatingAdd) => Some("`a + b`"),
        Op::Binary(BinaryOp::SaturatingSub) => Some("`a - b`"),
        Op::Binary(BinaryOp::SaturatingMul) => Some("`a * b`"),
        _ => None,
    };
    match (of_floats, domain) {
        (Some(written), _) if found.is_float() => format!("of floats it is {written}"),
        (_, Domain::Int | Domain::IntOrBool) if found.is_float() && is_of_bits(op) => {
            let bits = found.bits();
            format!("convert it: `.cast::<i32>()`, or take its bits: `.bitcast::<u{bits}>()`")
        }
        (_, Domain::Float | Domain::F32) => {
            "convert it: `.cast::<f32>()`, or `as f32` of a scalar".to_owned()
        }
        (_, Domain::U64) => "convert it: `.cast::<u64>()`, or `as u64` of a scalar".to_owned(),
        (_, Domain::Bool) => "compare it: `x != 0`".to_owned(),
        _ => "convert it: `.cast::<i32>()`, or `as i32` of a scalar".to_owned(),
    }
}

fn check_domain(op: &Op, domain: Domain, elem: &Elem, operand: usize) -> Inferred<()> {
    match elem.known() {
        Some(dtype) if !domain.accepts(dtype) => {
            let (needed, found) = (domain.describe(), dtype.rust_name());
            Err(TypeError::new(format!("`{}` needs {needed}, not {found}", op.spelling()))
                .help(help_of_domain(op, domain, dtype))
                .at(operand))
        }
        _ => Ok(()),
    }
}
