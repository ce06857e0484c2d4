//! The types that a kernel's body is written against: tiles, tensor and partition views, and the functions
//! on them.
//!
//! They evaluate eagerly on [`tile_ir::Array`], so that a kernel is an ordinary Rust function: on
//! [`Device::reference()`](crate::Device::reference) its body runs as it stands, with breakpoints and
//! `dbg!`. That is also the meaning of a kernel; every compiled target is tested against it.
//!
//! | file | decides |
//! |---|---|
//! | `arena` | how long a value lives |
//! | `tile` | [`Tile`]: making, reshaping, reducing and printing |
//! | `operators` | `+ - * / % & \| ^ << >>`, `-`, `!` and their assigning forms |
//! | `compare` | what may stand on the two sides of a function of two values; comparisons |
//! | `composite` | `mean`, `argmax`, `argmin`: methods that are several ops |
//! | [`either`] | operators of values that may be tiles or scalars, in a `#[tile_fn]` |
//! | `functions` | `exp`, `max`, `select`, `mma` and the other free functions |
//! | [`scalar`] | arithmetic of integer scalars, which wraps as that of tiles does |
//! | `value` | [`TileValue`], what variables and the fields of a [`TileStruct`](crate::TileStruct) hold |
//! | `views` | [`TensorView`], [`PartitionView`] and their mutable forms |
//!
//! Shapes are checked by the front end when the macro expands. The checks here are for code that the front
//! end hasn't seen, such as a unit test that makes tiles by hand; they panic and name the shapes.

mod arena;
mod compare;
mod composite;
pub mod either;
mod functions;
mod operators;
pub mod scalar;
mod tile;
mod value;
mod views;

pub use arena::in_block;
pub use compare::{Pair, eq, ge, gt, le, lt, ne};
pub use functions::{
    FloatValue, MmaOperand, Operand, SignedValue, abs, acos, asin, atan, atan2, cbrt, ceil, copysign, cos,
    cosh, erf, exp, exp_m1, exp2, exp10, floor, gelu, is_finite, is_infinite, is_nan, ln_1p, log, log2,
    log10, max, maximum, min, minimum, mma, powf, recip, round, round_ties_even, rsqrt, saturating_add,
    saturating_sub, select, sigmoid, signum, silu, sin, sinh, sqrt, tan, tanh, trunc,
};
pub use tile::Tile;
pub use tile_runtime::element::{Bits, Element, Float, Int, Number};
pub use value::TileValue;
pub use views::{PartitionView, PartitionViewMut, TensorView, TensorViewMut};
