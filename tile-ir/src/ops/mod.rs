//! What an op is. Leaf ops are rows of the [`elementwise`] and [`mod@compare`] tables, reductions of their own,
//! [`reduction`]; structural ops are variants here, and their type rules are in [`infer`].

pub mod compare;
pub mod elementwise;
pub mod infer;
pub mod reduction;
mod special;

pub use compare::{Classification, Predicate};
pub use elementwise::{BinaryOp, Domain, UnaryOp};
pub use infer::{TypeError, result_types};
pub use reduction::ReduceOp;

use crate::dim::Dim;
use crate::types::Elem;

/// A compile-time number.
#[derive(Clone, Copy, Debug)]
pub enum Literal {
    /// An integer, or `bool` as 0 and 1.
    Int(i128),
    /// A float; compared by bits, so that −0 and NaN are literals like any other.
    Float(f64),
}

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        match (self, other) {
            (Literal::Int(a), Literal::Int(b)) => a == b,
            (Literal::Float(a), Literal::Float(b)) => a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

impl Eq for Literal {}

/// An op: its kind and attributes. Operands, results and regions are in [`crate::kernel::OpData`].
///
/// In the notes, `a, b → c` are operand and result types, `tile` is any tile and `data` a scalar or tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// `→ scalar`. A number of the given format.
    Constant {
        /// The number; it must be representable class-wise (no float literal of an integer format).
        value: Literal,
        /// Its format.
        elem: Elem,
    },
    /// `→ index`. The value of an extent expression.
    Extent(Dim),
    /// `data → data`.
    Unary(UnaryOp),
    /// `data, data → data`, operands of one type.
    Binary(BinaryOp),
    /// `data, data → data of bool`, operands of one type.
    Compare(Predicate),
    /// `data → data of bool`.
    Classify(Classification),
    /// `data of bool, data, data → data`: the second where the first holds, else the third. All of one shape.
    Select,
    /// `data → data` of another format: rounds to nearest even; float to integer truncates and saturates,
    /// NaN gives 0 (Rust's `as`); integers wrap; to `bool` is `!= 0`.
    Cast(Elem),
    /// `scalar → tile` with every element equal.
    Splat(Vec<Dim>),
    /// `→ tile` whose element is its position along `axis`.
    Iota {
        /// Extents of the tile.
        shape: Vec<Dim>,
        /// The axis that is counted.
        axis: usize,
        /// An integer or float format.
        elem: Elem,
    },
    /// `tile → tile` of the same rank; axes of extent 1 are repeated.
    Broadcast(Vec<Dim>),
    /// `tile → tile` with the same elements in row-major order.
    Reshape(Vec<Dim>),
    /// `tile → tile`; axis `i` of the result is axis `permutation[i]` of the operand.
    Permute(Vec<usize>),
    /// `tile → tile`; the reduced axis stays with extent 1.
    Reduce {
        /// What joins the elements.
        op: ReduceOp,
        /// The axis that is reduced.
        axis: usize,
    },
    /// `tile [M, K], tile [K, N], tile [M, N] → tile [M, N]`: `a·b + c` in the format of `c`, products exact,
    /// sum in any order. `a` and `b` have one format; see [`infer::mma_accumulators`] for the pairs.
    Mma,
    /// `tensor → partition`, cut into tiles of these extents.
    Partition(Vec<Dim>),
    /// `mut partition → index…`, one per axis: the tile that this block owns.
    BlockIndex,
    /// `partition, pad scalar, index… → tile`. A mutable partition takes no index: a block reads its own tile.
    LoadMasked,
    /// `mut partition, tile →`. Writes the block's own tile, where it lies inside the tensor.
    StoreMasked,
    /// `start index, end index, initial data… → data…`. One region with parameters: the counter, then the
    /// carried values; it runs for `start <= counter < end` and yields the next carried values.
    For,
    /// `bool → data…`. Two regions without parameters; the one chosen yields the results.
    If,
    /// `data… →`. Ends a region of `for`, `while` or `if`.
    Yield,
    /// `bool, initial data… → data…`. One region, whose parameters are the carried values. It runs as long as
    /// the condition holds: the operand decides the first time, then the first value that the region yields.
    /// The others that it yields are the next carried values; the results are the last ones.
    ///
    /// ```text
    /// %x = while %go carry (%a = %start) : f32 {
    ///   %b = mul %a, %a : f32
    ///   %again = lt %b, %limit : bool
    ///   yield %again, %b
    /// }
    /// ```
    While,
    /// `tile → scalar`. The element of a tile that has exactly one.
    Item,
}

impl Op {
    /// The name in IR text (a reduction prints as `reduce sum`, so its name here is `reduce`).
    pub fn name(&self) -> &'static str {
        match self {
            Op::Constant { .. } => "constant",
            Op::Extent(_) => "extent",
            Op::Unary(op) => op.name(),
            Op::Binary(op) => op.name(),
            Op::Compare(predicate) => predicate.name(),
            Op::Classify(classification) => classification.name(),
            Op::Select => "select",
            Op::Cast(_) => "cast",
            Op::Splat(_) => "splat",
            Op::Iota { .. } => "iota",
            Op::Broadcast(_) => "broadcast",
            Op::Reshape(_) => "reshape",
            Op::Permute(_) => "permute",
            Op::Reduce { .. } => "reduce",
            Op::Mma => "mma",
            Op::Partition(_) => "partition",
            Op::BlockIndex => "block_index",
            Op::LoadMasked => "load_masked",
            Op::StoreMasked => "store_masked",
            Op::For => "for",
            Op::If => "if",
            Op::Yield => "yield",
            Op::While => "while",
            Op::Item => "item",
        }
    }

    /// What a kernel's source calls the op: an operator or a function.
    pub fn spelling(&self) -> &'static str {
        match self {
            Op::Unary(op) => op.operator().unwrap_or(op.name()),
            Op::Binary(op) => op.operator().unwrap_or(op.name()),
            Op::Compare(predicate) => predicate.symbol(),
            Op::Reduce { op, .. } => op.name(),
            op => op.name(),
        }
    }

    /// Whether the op does something besides giving results, so that it must stay where it is.
    pub fn has_effect(&self) -> bool {
        matches!(self, Op::StoreMasked | Op::Yield)
    }
}
