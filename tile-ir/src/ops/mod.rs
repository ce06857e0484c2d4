//! What an op is. Leaf ops are rows of the [`elementwise`] and [`mod@compare`] tables, reductions of their own,
//! [`reduction`]; structural ops are variants here, and their type rules are in [`infer`].

pub mod atomic;
pub mod compare;
pub mod elementwise;
pub(crate) mod fused;
pub mod infer;
pub mod movement;
pub mod philox;
pub mod reduction;
pub mod scan;
mod special;

pub use atomic::{Atomic, AtomicKind, Order, Scope};
pub use compare::{Classification, Predicate};
pub use elementwise::{BinaryOp, Domain, UnaryOp};
pub use infer::{TypeError, result_types};
pub use movement::Movement;
pub use reduction::ReduceOp;
pub use scan::ScanMode;

use crate::dim::Dim;
use crate::round::Rounding;
use crate::types::Elem;
use crate::view::TensorMovement;

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

/// What a scatter does with a value where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScatterMode {
    /// It replaces the element.
    Write,
    /// It is added to the element.
    Add,
}

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
    /// `data → data` of another format, float operands: rounded in the given direction. A float to an integer is
    /// rounded to an integer and then saturates, NaN gives 0.
    CastWith(Elem, Rounding),
    /// `data → data` of another format of the same width: the same bits. Not to or from `bool`.
    Bitcast(Elem),
    /// `data, data, data → data`, float operands of one type: `a·b + c`, rounded once.
    MulAdd,
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
    /// Windows, joins, pads and turns: every element of the result is one of an operand, at a place that is known.
    Movement(Movement),
    /// `tile, indices, fill scalar → tile` of the indices' shape: the tile's elements at the indices along `axis`,
    /// the scalar where an index is outside. Indices are integers and have the tile's extents but along `axis`.
    Gather {
        /// The axis along which indices count.
        axis: usize,
    },
    /// `tile, indices, values → tile`: the tile with values put at the indices along `axis`, one after the other in
    /// row-major order; what has an index outside goes nowhere.
    Scatter {
        /// The axis along which indices count.
        axis: usize,
        /// Whether values replace or are added.
        mode: ScatterMode,
    },
    /// `tile → tile`; the reduced axis stays with extent 1.
    Reduce {
        /// What joins the elements.
        op: ReduceOp,
        /// The axis that is reduced.
        axis: usize,
    },
    /// `tile […, M, K], tile […, K, N], tile […, M, N] → tile […, M, N]`: `a·b + c` in the format of `c`, products
    /// exact, sum in any order; leading axes count matrices. See [`infer::mma_accumulators`] for the formats.
    Mma,
    /// `tensor → tensor`, moved; the index of a `select` is a second operand.
    View(TensorMovement),
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
    /// `data… →`. Ends a region.
    Yield,
    /// `tile… (n), scalar… (n) → tile… (n)`, tiles of one shape: every line along the axis folded from its first
    /// element to its last, starting from the scalars; the axis stays with extent 1. One region: its parameters
    /// are n scalars for what was folded and n for an element, it yields n scalars and has leaf ops of scalars
    /// only, so that targets may run it in threads that are on different elements.
    ReduceWith {
        /// The axis that is folded.
        axis: usize,
    },
    /// `tile… (n), scalar… (n) → tile… (n)`: as [`Op::ReduceWith`], but every partial result is kept.
    ScanWith {
        /// The axis along which partial results are kept.
        axis: usize,
        /// Which way, and which results.
        mode: ScanMode,
    },
    /// `tile → tile`: partial results of a reduction, in order, from [`ReduceOp::scan_start`]. They are kept in
    /// [`ReduceOp::partial`], rounded at every step and once more to the element format.
    Scan {
        /// What joins the elements.
        op: ReduceOp,
        /// The axis along which partial results are kept.
        axis: usize,
        /// Which way, and which results.
        mode: ScanMode,
    },
    /// `tile → tile, tile of i32`: the first `count` elements of every line in order, and where they were.
    /// The order is that of numbers with −0 = +0, NaN above all; equal elements keep their order.
    Sort {
        /// The axis that is sorted.
        axis: usize,
        /// Whether the largest comes first.
        descending: bool,
        /// How many elements are kept: the extent of the results' axis.
        count: Dim,
    },
    /// `tile of integers → tile [bins] of i32`: how many elements are 0, 1, …; others are not counted.
    Histogram(Dim),
    /// `→ index`. The block's index along an axis of the grid.
    BlockId {
        /// The axis.
        axis: usize,
    },
    /// `mut tensor, integer tile…, value tile…, mask → tile`, all tiles of one shape: one index tile per axis, then
    /// [`AtomicKind::values`] values, then a tile of bool where it is masked. Element `k` of the result is what was at
    /// `[i₀[k], i₁[k], …]` before; where there is no such element, or the mask is false, nothing happens and it is
    /// 0. A store has no result. Elements of one op follow each other in row-major order, but on GPUs in any order.
    Atomic(Atomic),
    /// `→ index`. The number of blocks along an axis of the grid.
    BlockCount {
        /// The axis.
        axis: usize,
    },
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
            Op::CastWith(..) => "cast_with",
            Op::Bitcast(_) => "bitcast",
            Op::MulAdd => "mul_add",
            Op::Splat(_) => "splat",
            Op::Iota { .. } => "iota",
            Op::Broadcast(_) => "broadcast",
            Op::Reshape(_) => "reshape",
            Op::Permute(_) => "permute",
            Op::Movement(movement) => movement.name(),
            Op::Gather { .. } => "gather",
            Op::Scatter { mode: ScatterMode::Write, .. } => "scatter",
            Op::Scatter { mode: ScatterMode::Add, .. } => "scatter_add",
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
            Op::ReduceWith { .. } => "reduce_with",
            Op::ScanWith { .. } => "scan_with",
            Op::Scan { .. } => "scan",
            Op::Sort { .. } => "sort",
            Op::Histogram(_) => "histogram",
            Op::While => "while",
            Op::Item => "item",
            Op::Atomic(_) => "atomic",
            Op::BlockId { .. } => "block_id",
            Op::BlockCount { .. } => "block_count",
        }
    }

    /// What a kernel's source calls the op: an operator or a function.
    pub fn spelling(&self) -> &'static str {
        match self {
            Op::Unary(op) => op.operator().unwrap_or(op.name()),
            Op::Binary(op) => op.operator().unwrap_or(op.name()),
            Op::Compare(predicate) => predicate.symbol(),
            Op::Reduce { op, .. } => op.method(),
            Op::Scan { op, .. } => op.scan_method().unwrap_or("scan"),
            Op::ReduceWith { .. } => "reduce",
            Op::ScanWith { .. } => "scan",
            Op::View(movement) => movement.name(),
            Op::Atomic(atomic) => atomic.kind.rust_name(),
            op => op.name(),
        }
    }

    /// Whether the op's region joins two elements: it has scalars as parameters and results, and leaf ops only.
    pub fn is_fold(&self) -> bool {
        matches!(self, Op::ReduceWith { .. } | Op::ScanWith { .. })
    }

    /// Whether the op's results at a place depend on its operands there alone: what works on scalars too.
    pub fn is_leaf(&self) -> bool {
        matches!(
            self,
            Op::Constant { .. }
                | Op::Extent(_)
                | Op::Unary(_)
                | Op::Binary(_)
                | Op::Compare(_)
                | Op::Classify(_)
                | Op::Select
                | Op::Cast(_)
        )
    }

    /// Whether the op does something besides giving results, so that it must stay where it is.
    pub fn has_effect(&self) -> bool {
        self.is_store() || matches!(self, Op::Yield | Op::Atomic(_))
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
