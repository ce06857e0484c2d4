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
use crate::view::Movement;

/// How a tensor is cut into tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Extents of a tile.
    pub tile: Vec<Dim>,
    /// From one tile to the next, where tiles don't stand side by side.
    pub steps: Option<Vec<Dim>>,
}

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
    /// `tensor → tensor`, moved; the index of a `select` is a second operand.
    View(Movement),
    /// `tensor → partition`, cut into tiles.
    Partition(Cut),
    /// `mut partition → index…`, one per axis: the tile that this block owns.
    BlockIndex,
    /// `partition, pad scalar, index… → tile`. A mutable partition takes no index: a block reads its own tile.
    LoadMasked,
    /// `mut partition, tile →`. Writes the block's own tile, where it lies inside the tensor.
    StoreMasked,
    /// `partition, index… → tile`, all of whose elements exist: see [`mod@crate::analysis`]. A mutable partition
    /// takes no index.
    Load {
        /// Whether that is proved or checked at the launch; otherwise the kernel's author vouches for it.
        checked: bool,
    },
    /// `mut partition, tile →`. Writes the block's own tile, all of whose elements exist.
    Store,
    /// `tensor, pad scalar, integer tile… → tile`, one index tile per axis, all of the result's shape. Element
    /// `k` is the one at `[i₀[k], i₁[k], …]`, or the pad value where there is none; negative indices have none.
    GatherLoad,
    /// `start index, end index, initial data… → data…`. One region with parameters: the counter, then the
    /// carried values; it runs for `start <= counter < end` and yields the next carried values.
    For,
    /// `bool → data…`. Two regions without parameters; the one chosen yields the results.
    If,
    /// `data… →`. Ends a region of `for` or `if`.
    Yield,
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
            Op::View(_) => "view",
            Op::Partition(_) => "partition",
            Op::BlockIndex => "block_index",
            Op::LoadMasked => "load_masked",
            Op::StoreMasked => "store_masked",
            Op::Load { checked: true } => "load",
            Op::Load { checked: false } => "load_unchecked",
            Op::Store => "store",
            Op::GatherLoad => "gather_load",
            Op::For => "for",
            Op::If => "if",
            Op::Yield => "yield",
        }
    }

    /// What a kernel's source calls the op: an operator or a function.
    pub fn spelling(&self) -> &'static str {
        match self {
            Op::Unary(op) => op.operator().unwrap_or(op.name()),
            Op::Binary(op) => op.operator().unwrap_or(op.name()),
            Op::Compare(predicate) => predicate.symbol(),
            Op::Reduce { op, .. } => op.name(),
            Op::View(movement) => movement.name(),
            op => op.name(),
        }
    }

    /// Whether the op does something besides giving results, so that it must stay where it is.
    pub fn has_effect(&self) -> bool {
        self.is_store() || matches!(self, Op::Yield)
    }

    /// Whether the op writes memory.
    pub fn is_store(&self) -> bool {
        matches!(self, Op::StoreMasked | Op::Store)
    }

    /// Whether the op reads a tile of a partition view.
    pub fn is_load(&self) -> bool {
        matches!(self, Op::LoadMasked | Op::Load { .. })
    }
}
