//! What an op is. Leaf ops are rows of the [`elementwise`] and [`mod@compare`] tables, reductions of their own,
//! [`reduction`]; structural ops are variants here, and their type rules are in [`infer`]. [`documented`] keeps what
//! is said of each here as data, for `docs/ir.md`.

pub mod atomic;
mod attributes;
mod carried;
pub mod compare;
pub mod documented;
mod effect;
mod element;
pub mod elementwise;
pub(crate) mod fused;
pub mod hints;
pub mod infer;
mod leaf;
pub mod movement;
pub mod philox;
pub mod reduction;
pub mod scan;
mod special;

pub use atomic::{Atomic, AtomicKind, Order, Scope};
pub use compare::{Classification, Predicate};
pub use effect::Effect;
pub use elementwise::{BinaryOp, Domain, UnaryOp};
pub use hints::Hints;
pub use infer::{TypeError, result_types, result_types_under};
pub use leaf::Leaf;
pub use movement::Movement;
pub use reduction::ReduceOp;
pub use scan::ScanMode;

pub(crate) use carried::Carried;
pub(crate) use documented::documented;

use crate::array::int_to_float;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::message::Message;
use crate::round::Rounding;
use crate::tile_order::TileOrder;
use crate::types::Elem;
use crate::view::TensorMovement;

/// How a tensor is cut into tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Extents of a tile.
    pub tile: Vec<Dim>,
    /// From one tile to the next, where tiles don't stand side by side.
    pub steps: Option<Vec<Dim>>,
    /// Axes along which a block has all tiles, in ascending order.
    pub spanned: Vec<usize>,
    /// What is said of how the tiles are read.
    pub hints: Hints,
}

/// A compile-time number.
#[derive(Clone, Copy, Debug)]
pub enum Literal {
    /// An integer, or `bool` as 0 and 1.
    Int(i128),
    /// A float; compared by bits, so that −0 and NaN are literals like any other.
    Float(f64),
}

impl Literal {
    /// The number as it is written of a format of either class: an integer of floats is the nearest float, and a float of
    /// integers the integer that it is. One with a fraction is none, and stays a float.
    ///
    /// ```
    /// use tile_ir::{DType, ops::Literal};
    /// assert_eq!(Literal::Int(257).in_format(DType::BF16), Literal::Float(256.0));
    /// assert_eq!(Literal::Float(2.0).in_format(DType::I32), Literal::Int(2));
    /// assert_eq!(Literal::Float(2.5).in_format(DType::I32), Literal::Float(2.5));
    /// ```
    pub fn in_format(self, dtype: DType) -> Literal {
        match self {
            Literal::Int(value) if dtype.is_float() => Literal::Float(int_to_float(dtype, value)),
            Literal::Float(value) if !dtype.is_float() && value.fract() == 0.0 => Literal::Int(value as i128),
            literal => literal,
        }
    }

    /// The integer that it is; `None` for a float.
    pub fn as_int(self) -> Option<i128> {
        match self {
            Literal::Int(value) => Some(value),
            Literal::Float(_) => None,
        }
    }

    /// Whether all its bits are zero in every format: −0 isn't such a number.
    pub fn is_zero(self) -> bool {
        [Literal::Int(0), Literal::Float(0.0)].contains(&self)
    }
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

documented! {
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
    } = "constant",
    /// `→ index`. The value of an extent expression.
    Extent(Dim) = "extent",
    /// `data → data`.
    Unary(UnaryOp) = "unary",
    /// `data, data → data`, operands of one type.
    Binary(BinaryOp) = "binary",
    /// `data, data → data of bool`, operands of one type.
    Compare(Predicate) = "compare",
    /// `data → data of bool`.
    Classify(Classification) = "classify",
    /// `data of bool, data, data → data`: the second where the first holds, else the third. All of one shape.
    Select = "select",
    /// `data → data` of another format: rounds to nearest even; float to integer truncates and saturates,
    /// NaN gives 0 (Rust's `as`); integers wrap; to `bool` is `!= 0`. What is too large for a float format becomes
    /// infinite, and NaN in f8e4m3fn, which has no infinity.
    Cast(Elem) = "cast",
    /// `data → data` of another format, float operands: rounded in the given direction. A float to an integer is
    /// rounded to an integer and then saturates, NaN gives 0. What is too large for a float format becomes infinite, and NaN
    /// in f8e4m3fn, or the largest number where the direction points toward zero.
    CastWith(Elem, Rounding) = "cast_with",
    /// `data → data` of another float format, float operands: rounds to nearest even; what is too large, infinities too,
    /// becomes the largest finite number or that with a minus sign; NaN stays.
    SaturatingCast(Elem) = "saturating_cast",
    /// `data → data` of another format of the same width: the same bits. Not to or from `bool`.
    Bitcast(Elem) = "bitcast",
    /// `data → data` of another format, an integer operand: the number of a table at each of them, 0 where there is none.
    Lookup {
        /// Numbers as those of [`Op::Constant`], at least one.
        table: Vec<Literal>,
        /// Their format.
        elem: Elem,
    } = "lookup",
    /// `data, data, data → data`, float operands of one type: `a·b + c`, rounded once.
    MulAdd = "mul_add",
    /// `scalar → tile` with every element equal.
    Splat(Vec<Dim>) = "splat",
    /// `→ tile` whose element is its position along `axis`.
    Iota {
        /// Extents of the tile.
        shape: Vec<Dim>,
        /// The axis that is counted.
        axis: usize,
        /// An integer or float format.
        elem: Elem,
    } = "iota",
    /// `tile → tile` of the same rank; axes of extent 1 are repeated.
    Broadcast(Vec<Dim>) = "broadcast",
    /// `tile → tile` with the same elements in row-major order.
    Reshape(Vec<Dim>) = "reshape",
    /// `tile → tile`; axis `i` of the result is axis `permutation[i]` of the operand.
    Permute(Vec<usize>) = "permute",
    /// Windows, joins, pads and turns: every element of the result is one of an operand, at a place that is known.
    Movement(Movement) = "movement",
    /// `tile, indices, fill scalar → tile` of the indices' shape: the tile's elements at the indices along `axis`,
    /// the scalar where an index is outside. Indices are integers and have the tile's extents but along `axis`.
    Gather {
        /// The axis along which indices count.
        axis: usize,
    } = "gather",
    /// `tile, indices, values → tile`: the tile with values put at the indices along `axis`, one after the other in
    /// row-major order; what has an index outside goes nowhere.
    Scatter {
        /// The axis along which indices count.
        axis: usize,
        /// Whether values replace or are added.
        mode: ScatterMode,
    } = "scatter",
    /// `tile → tile`; the reduced axis stays with extent 1.
    Reduce {
        /// What joins the elements.
        op: ReduceOp,
        /// The axis that is reduced.
        axis: usize,
    } = "reduce",
    /// `tile […, M, K], tile […, K, N], tile […, M, N] → tile […, M, N]`: `a·b + c` in the format of `c`, products
    /// exact but without FMA (x86-64-v2), sum in any order, of 8-bit floats on Hopper and Ada with about 14 bits within a
    /// turn of a loop, subnormal numbers of bf16, and on gfx90a of f16, and sums of such as zeros or as they are; leading
    /// axes count matrices. See [`infer::mma_accumulators`] for the formats.
    Mma = "mma",
    /// `tensor → tensor`, moved; the index of a `select` is a second operand.
    View(TensorMovement) = "view",
    /// `tensor → partition`, cut into tiles. Of a tensor that is written a block owns one tile, or with `spanning` all
    /// tiles along these axes. `latency n` asks that loops bring tiles near n turns ahead, `bulk_copy`
    /// that they are brought in copies of whole rows.
    Partition(Cut) = "partition",
    /// `mut partition → index…`, one per axis: the tile that this block owns; along an axis that is spanned 0.
    BlockIndex = "block_index",
    /// `partition, pad scalar, index… → tile`. A mutable partition takes an index along axes that are spanned only: a
    /// block reads its own tiles.
    LoadMasked = "load_masked",
    /// `mut partition, tile, index… →`. Writes the block's own tile, where it lies inside the tensor; an index for each
    /// axis that is spanned says which.
    StoreMasked = "store_masked",
    /// `partition, index… → tile`, all of whose elements exist: see [`mod@crate::analysis`]. A mutable partition
    /// takes an index along axes that are spanned only.
    Load {
        /// Whether that is proved or checked at the launch; otherwise the kernel's author vouches for it.
        checked: bool,
    } = "load",
    /// `mut partition, tile, index… →`. As `store_masked`, of a tile all of whose elements exist.
    Store = "store",
    /// `tensor, pad scalar, integer tile… → tile`, one index tile per axis, all of the result's shape. Element
    /// `k` is the one at `[i₀[k], i₁[k], …]`, or the pad value where there is none; negative indices have none.
    GatherLoad = "gather_load",
    /// `start index, end index, initial data… → data…`. One region with parameters: the counter, then the
    /// carried values; it runs for `start <= counter < end` and yields the next carried values.
    For = "for",
    /// `bool → data…`. Two regions without parameters; the one chosen yields the results.
    If = "if",
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
    While = "while",
    /// `tile → scalar`. The element of a tile that has exactly one.
    Item = "item",
    /// `data… →`. Ends a region.
    Yield = "yield",
    /// `tile… (n), scalar… (n) → tile… (n)`, tiles of one shape: every line along the axis folded from its first
    /// element to its last, starting from the scalars; the axis stays with extent 1. One region: its parameters
    /// are n scalars for what was folded and n for an element, it yields n scalars and has leaf ops of scalars
    /// only, so that targets may run it in threads that are on different elements. Of an associative one the author says
    /// that the region joins any two neighbouring parts of a line alike, and that the scalars change nothing: targets may
    /// join parts in any order that keeps them neighbours.
    ReduceWith {
        /// The axis that is folded.
        axis: usize,
        /// Whether parts may be joined.
        associative: bool,
    } = "reduce_with",
    /// `tile… (n), scalar… (n) → tile… (n)`: as [`Op::ReduceWith`], but every partial result is kept.
    ScanWith {
        /// The axis along which partial results are kept.
        axis: usize,
        /// Which way, and which results.
        mode: ScanMode,
        /// Whether parts may be joined.
        associative: bool,
    } = "scan_with",
    /// `tile → tile`: partial results of a reduction, from [`ReduceOp::scan_start`] on. They are kept in
    /// [`ReduceOp::partial`], and rounded once more to the element format; floats may be joined in any order.
    Scan {
        /// What joins the elements.
        op: ReduceOp,
        /// The axis along which partial results are kept.
        axis: usize,
        /// Which way, and which results.
        mode: ScanMode,
    } = "scan",
    /// `tile → tile, tile of i32`: the first `count` elements of every line in order, and where they were.
    /// The order is that of numbers with −0 = +0, NaN above all; equal elements keep their order.
    Sort {
        /// The axis that is sorted.
        axis: usize,
        /// Whether the largest comes first.
        descending: bool,
        /// How many elements are kept: the extent of the results' axis.
        count: Dim,
    } = "sort",
    /// `tile of integers → tile [bins] of i32`: how many elements are 0, 1, …; others are not counted.
    Histogram(Dim) = "histogram",
    /// `data… →`. Says the message, whose arguments are the operands; see [`mod@crate::log`].
    Print {
        /// The number of the op among those that print or assert; no two have one.
        site: u32,
        /// What is said.
        message: Message,
    } = "print",
    /// `condition, data… →`. Where the condition, a `bool` or a tile of them, doesn't hold, or not everywhere, says
    /// so with the message, whose arguments are the operands after it; the launch fails.
    Assert {
        /// As for [`Op::Print`].
        site: u32,
        /// What is said.
        message: Message,
    } = "assert",
    /// `→ index`. The block's index along an axis of the grid.
    BlockId {
        /// The axis.
        axis: usize,
    } = "block_id",
    /// `mut tensor, integer tile…, value tile…, mask → tile`, all tiles of one shape: one index tile per axis, then
    /// [`AtomicKind::values`] values, then a tile of bool where it is masked. Element `k` of the result is what was at
    /// `[i₀[k], i₁[k], …]` before; where there is no such element, or the mask is false, nothing happens and it is
    /// 0. A store has no result. Elements of one op follow each other in row-major order, but on GPUs in any order.
    Atomic(Atomic) = "atomic",
    /// `→ index`. The number of blocks along an axis of the grid.
    BlockCount {
        /// The axis.
        axis: usize,
    } = "block_count",
    /// `partition, index… →`. Begins to bring a tile near, where it lies inside the tensor; any index is defined, and
    /// nothing is read. A mutable partition takes an index along axes that are spanned only. Targets without an
    /// instruction for it do nothing.
    Prefetch = "prefetch",
    /// `mut partition, initial data… → data…`. The tiles of the kernel's outputs, which its blocks share in this
    /// order: see [`mod@crate::tile_order`]. One region, whose parameters are the carried values, runs for each of the
    /// block's tiles and yields the next carried values. In it, and nowhere else in the kernel, the block owns a
    /// tile. A kernel has at most one, at the top level.
    ///
    /// ```text
    /// tiles %c grouped(8) {
    ///   %i, %j = block_index %c : index, index
    ///   …
    ///   store_masked %c, %acc
    /// }
    /// ```
    Tiles(TileOrder<Dim>) = "tiles",
    /// `tile → tile` with the same elements, in other threads of a block. Schedules for GPUs add it; kernels have none.
    ConvertLayout = "convert_layout",
    /// `tile [M, K], tile [K, N], tile [M, N], scales [M, G], scales [G, N] → tile [M, N]`: `mma` of factors of 8-bit floats
    /// whose elements are each times the power of two, an `f8e8m0fnu`, of their block of `K / G` along K: `(a·s)·(b·t) + c`,
    /// where nothing is rounded but the sum. Schedules for GPUs add it; kernels have none.
    MmaScaled = "mma_scaled",
}
}

impl Op {
    /// The name in IR text (a reduction prints as `reduce sum`, so its name here is `reduce`).
    pub fn name(&self) -> &'static str {
        match self {
            Op::Unary(op) => op.name(),
            Op::Binary(op) => op.name(),
            Op::Compare(predicate) => predicate.name(),
            Op::Classify(classification) => classification.name(),
            Op::Movement(movement) => movement.kind(),
            Op::Scatter { mode: ScatterMode::Add, .. } => "scatter_add",
            Op::Load { checked: false } => "load_unchecked",
            op => op.kind(),
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
            Op::ReduceWith { associative: false, .. } => "reduce",
            Op::ReduceWith { associative: true, .. } => "associative_reduce",
            Op::ScanWith { associative: false, .. } => "scan",
            Op::ScanWith { associative: true, .. } => "associative_scan",
            Op::View(movement) => movement.kind(),
            Op::GatherLoad => "gather",
            Op::Print { .. } => "tile_println!",
            Op::Assert { .. } => "tile_assert!",
            Op::Atomic(atomic) => atomic.kind.rust_name(),
            Op::Tiles(_) => "tiles_persistent",
            op => op.name(),
        }
    }

    /// Whether the op's region joins two elements: it has scalars as parameters and results, and leaf ops only.
    pub fn is_fold(&self) -> bool {
        matches!(self, Op::ReduceWith { .. } | Op::ScanWith { .. })
    }

    /// Whether the op folds lines with a region that goes along them element by element.
    pub fn is_fold_in_order(&self) -> bool {
        matches!(self, Op::ReduceWith { associative: false, .. } | Op::ScanWith { associative: false, .. })
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
                | Op::CastWith(..)
                | Op::SaturatingCast(_)
                | Op::Bitcast(_)
                | Op::Lookup { .. }
                | Op::MulAdd
        )
    }

    /// Whether the op may be done again, or elsewhere, wherever its operands are known: it has no effect, gives the same
    /// wherever it stands, and costs little.
    pub fn is_repeatable(&self) -> bool {
        let is_of_places = matches!(self, Op::Broadcast(_) | Op::Permute(_) | Op::Reshape(_));
        self.is_leaf() || is_of_places || matches!(self, Op::Splat(_) | Op::Iota { .. })
    }

    /// Whether the op multiplies matrices: its first operands are the factors and what is added.
    pub fn is_product(&self) -> bool {
        matches!(self, Op::Mma | Op::MmaScaled)
    }

    /// Whether the op says something to the host.
    pub fn is_message(&self) -> bool {
        self.effect() == Effect::Says
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
