//! The tile IR: what a tile kernel means, independent of Rust syntax and of any target.
//!
//! # Semantics
//!
//! A [`Kernel`] runs once per **block** of a grid. The grid is the index space of the kernel's mutable
//! partition views, so each block owns exactly one tile of every output. Blocks are independent: no order
//! between them is defined and none is observable, because a block can store only to the tiles it owns.
//!
//! **Values** are immutable (SSA): scalars, tiles (dense arrays with compile-time extents), tensors (the
//! arguments, in memory, with run-time extents) and partition views of tensors. **Regions** are structured:
//! `for` and `if` own their bodies, pass values in as operands and hand values out through `yield`.
//! There is no other control flow.
//!
//! **Integers** behave as Rust's wrapping integers: overflow wraps, `/` truncates, `%` has the sign of the
//! dividend, shift amounts are taken modulo the width. Division by zero is defined: `x / 0 = 0` and
//! `x % 0 = x`, as on AArch64, so that `x == (x / 0) * 0 + x % 0`.
//!
//! **Floats** are IEEE 754 binary formats, rounded to nearest even after every operation in the operand's
//! own format. [`ops::Op::Mma`] and [`ops::Op::Reduce`] may round once, at the end, and may sum in any
//! order; transcendental functions have the error bound of their table entry.
//!
//! **Memory.** `load_masked` yields the pad value for elements outside the tensor; `store_masked` writes
//! nothing outside it. `load` and `store` have no such elements: [`analysis`] proves it, or says what a launch
//! must check ([`abi::KernelAbi::checks`]). Loads of a tensor see its contents before the launch, unless the same block has
//! stored to that element.
//!
//! # Rooms
//!
//! | room | decides |
//! |---|---|
//! | [`dtype`], [`mod@round`], [`dim`], [`types`] | what a value can be |
//! | [`mod@view`] | where the elements of a moved tensor lie |
//! | [`ops`] | the op table, and the one function that infers result types |
//! | [`grid`], [`tile_order`] | which blocks there are, and which tiles they take when they share them |
//! | [`kernel`], [`builder`] | how ops are stored and made |
//! | [`text`] | the `.tir` text form: printer and parser, an exact round trip |
//! | [`mod@verify`] | the invariants, and [`VerifiedKernel`] which proves that they hold |
//! | [`mod@specialize`] | generic kernel → [`Instance`] with every compile-time parameter bound |
//! | [`analysis`] | ranges of indices, and which loads and stores they prove to lie inside |
//! | [`passes`] | target-free rewrites of an [`Instance`] |
//! | [`mod@array`], [`interp`] | the reference evaluator, the oracle of every target |
//! | [`mod@message`], [`log`] | what kernels print and assert, and how it reaches the host |
//! | [`mod@counts`], [`cost`] | how much a kernel does, and how long that takes a processor |
//! | [`mod@error`] | everything that is refused, in one type |
//! | [`abi`], [`tensor_map`], [`target`] | what code generation promises and the runtime relies on |
//!
//! This crate never sees Rust syntax, LLVM or a device.

/// The version of this crate, on which the code that becomes of a kernel depends as on the compiler's.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub mod abi;
pub mod analysis;
pub mod array;
pub mod builder;
pub mod chunks;
pub mod condition;
pub mod cost;
pub mod counts;
pub mod cpu;
pub mod dim;
pub mod dtype;
pub mod error;
pub mod gpu;
pub mod grid;
mod insert;
pub mod interp;
pub mod kernel;
pub mod loc;
pub mod log;
pub mod message;
#[cfg(test)]
mod mutilated;
pub mod ops;
pub mod padding;
pub mod pages;
pub mod passes;
pub mod round;
pub mod schedule_hints;
pub mod specialize;
pub mod target;
pub mod tensor_map;
pub mod text;
pub mod tile_order;
pub mod types;
pub mod variant;
pub mod verify;
pub mod view;

pub use array::Array;
pub use builder::Builder;
pub use condition::Condition;
pub use dim::Dim;
pub use dtype::DType;
pub use error::Error;
pub use grid::Grid;
pub use kernel::{FastAccumulation, Kernel, OpId, Presence, RegionId, ValueId};
pub use loc::Loc;
pub use ops::Op;
pub use round::Rounding;
pub use schedule_hints::{ScheduleHint, ScheduleHints};
pub use specialize::{Binding, Bindings, Instance, specialize};
pub use target::TargetDesc;
pub use types::{Elem, Type};
pub use variant::{Variant, Variants};
pub use verify::{VerifiedKernel, verify};
