//! How a load, store, gather or scatter of a tile reaches memory best: along which axes neighbours lie next to each other,
//! and how many of them one instruction may move.
//!
//! The address of an argument is a multiple of 16 bytes ([`TENSOR_ALIGNMENT`]), which the runtime keeps. So a run of
//! elements along the axis of stride 1 is as aligned as what is added to that: the tensor's offset, the tile's first
//! position, and steps along the other axes.

mod rows;

pub(super) use rows::is_used;

use super::{dtype_of, numbers::Numbers};
use crate::analysis::Lines;
use crate::analysis::divisibility::form_divisor;
use crate::analysis::facts::Facts;
use crate::condition::{Comparison, Condition};
use crate::dim::Dim;
use crate::kernel::{Kernel, OpId, ValueId};
use crate::ops::{Op, Predicate};
use crate::target::TargetDesc;
use crate::types::PartitionType;
use crate::view::{Source, Strided};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Alignment of an argument's address that kernels rely on, in bytes (device allocators give 256); the widest access
/// of a thread is as long.
pub const TENSOR_ALIGNMENT: u64 = 16;

/// How a tile lies in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The axes, that whose neighbours lie next to each other first.
    pub order: Vec<usize>,
    /// How many neighbours along the first axis begin at a multiple of their size together, and all exist or none
    /// does: a power of two.
    pub vector: u64,
    /// How many neighbours one instruction may move where the whole tile exists: more on targets that don't ask for
    /// alignment.
    pub whole: u64,
    /// Whether every element of the tile is known to lie less than [`NEAR_BYTES`] behind the first one, and none
    /// before it, with as many positions along each axis as a distribution may count.
    pub near: bool,
    /// The feature by which LLVM's PTX has the instruction, where that isn't one of the target's.
    pub feature: &'static str,
}

/// Tiles whose elements lie nearer to each other than so many bytes are [`Access::near`]: offsets in them are numbers of
/// 31 bits, so that bit 31 is free to say that an element doesn't exist.
pub const NEAR_BYTES: u64 = 1 << 31;

impl Access {
    /// The access of a load or store of a verified instance.
    pub(super) fn of(numbers: &Numbers<'_>, op: OpId) -> Access {
        let kernel = numbers.kernel;
        let data = kernel.op(op);
        let (view, index) = (data.operands[0], data.tile_index());
        let masked = matches!(data.op, Op::LoadMasked | Op::StoreMasked);
        let ty = kernel.ty(view).as_partition().expect("verified: a view");
        let strided = ty.tensor.strided();
        let order = order(&strided, ty);
        let alignment = Alignment { numbers, view, ty, strided: &strided };
        let vector = alignment.vector(order.first().copied(), index, masked);
        let whole = order.first().map_or(1, |&axis| alignment.run(axis)).max(vector);
        let near = is_near(kernel, &numbers.facts, ty, dtype_of(kernel, view).bytes());
        Access { order, vector, whole, near, feature: "" }
    }

    /// The access as a target does it.
    pub(super) fn on(self, target: &TargetDesc) -> Access {
        let whole = if target.unaligned_accesses { self.whole } else { self.vector };
        Access { whole, ..self }
    }
}

/// The accesses of all loads, stores, gathers and scatters of a verified instance that do several elements by one
/// instruction, and of all loads and stores of views.
pub(super) fn accesses(kernel: &Kernel, target: &TargetDesc) -> HashMap<OpId, Access> {
    let numbers = Numbers::of(kernel);
    let mut lines = Lines::of(kernel, &numbers.divisors);
    let access = |op: OpId| {
        let access = match &kernel.op(op).op {
            Op::GatherLoad => Access::of_gather(&numbers, &mut lines, op)?,
            Op::Atomic(_) => Access::of_scatter(&numbers, &mut lines, op, target)?,
            kind if kind.is_load() || kind.is_store() => Access::of(&numbers, op),
            _ => return None,
        };
        Some((op, access.on(target)))
    };
    kernel.walk().into_iter().filter_map(access).collect()
}

/// The gathers that load no neighbours together.
pub(super) fn gathered_by_element(kernel: &Kernel, target: &TargetDesc) -> Vec<OpId> {
    let ops = kernel.walk().into_iter();
    let gathers: Vec<OpId> = ops.filter(|&op| kernel.op(op).op == Op::GatherLoad).collect();
    if gathers.is_empty() {
        return gathers;
    }
    let accesses = accesses(kernel, target);
    let by_element = |op: &OpId| accesses.get(op).is_none_or(|access| access.vector == 1);
    gathers.into_iter().filter(by_element).collect()
}

/// The bytes that a view's tiles reach over at most, with every axis filled up to a power of two, as distributions do;
/// `None` where elements may lie before the first one.
pub(crate) fn reach(ty: &PartitionType, bytes: usize) -> Option<Dim> {
    let strides = ty.tensor.strided().strides;
    let term = |(stride, tile): (&Dim, &Dim)| {
        let positions = tile.as_const()?.unsigned_abs().next_power_of_two() as i64;
        stride.is_natural().then(|| stride.clone() * Dim::from(positions * bytes as i64))
    };
    strides.iter().zip(&ty.tile).try_fold(Dim::from(0), |sum, axis| Some(sum + term(axis)?))
}

/// Whether sizes alone say that tiles are [`Access::near`], or a condition of the kernel in just these words.
fn is_near(kernel: &Kernel, facts: &Facts, ty: &PartitionType, bytes: usize) -> bool {
    let Some(reach) = reach(ty, bytes) else { return false };
    let limit = Dim::from(NEAR_BYTES as i64);
    let near = Comparison { left: reach.clone(), predicate: Predicate::Lt, right: limit };
    let is_known = |condition: &Condition| condition.formula.assured().contains(&&near);
    let known = facts.apply(&reach).as_const().is_some_and(|reach| (reach as u64) < NEAR_BYTES);
    known || kernel.conditions.iter().any(is_known)
}

/// Axes of known small strides first, then of those that are products of fewer sizes; of equal ones the last. What
/// has one element in the tile, or repeats one, comes at the end.
fn order(strided: &Strided, ty: &PartitionType) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ty.tile.len()).collect();
    let rank = |&axis: &usize| {
        let stride = &strided.strides[axis];
        let idle = ty.tile[axis].as_const() == Some(1) || stride.as_const() == Some(0);
        let degree = stride.terms().map(|(factors, _)| factors.len()).max().unwrap_or(0);
        (idle, degree, stride.as_const().map_or(0, i64::unsigned_abs), Reverse(axis))
    };
    order.sort_by_key(rank);
    order
}

/// What the alignment of tiles of a view follows from.
struct Alignment<'a> {
    numbers: &'a Numbers<'a>,
    view: ValueId,
    ty: &'a PartitionType,
    strided: &'a Strided,
}

impl Alignment<'_> {
    /// How many neighbours along an axis lie next to each other and fill the widest access.
    fn run(&self, axis: usize) -> u64 {
        if self.strided.strides[axis].as_const() != Some(1) {
            return 1;
        }
        let bytes = dtype_of(self.numbers.kernel, self.view).bytes() as u64;
        let tile = self.ty.tile[axis].as_const().expect("an instance's tile extents are numbers") as u64;
        common(TENSOR_ALIGNMENT / bytes, tile)
    }

    /// How many neighbours along an axis begin at a multiple of their size together in the tile at an index, and, where not
    /// all of it need exist, exist together.
    fn vector(&self, axis: Option<usize>, index: &[ValueId], masked: bool) -> u64 {
        let Some(axis) = axis.filter(|&axis| self.strided.strides[axis].as_const() == Some(1)) else {
            return 1;
        };
        let bytes = dtype_of(self.numbers.kernel, self.view).bytes() as u64;
        let tile = self.ty.tile[axis].as_const().expect("an instance's tile extents are numbers") as u64;
        let mut all = common(TENSOR_ALIGNMENT / bytes, tile);
        if masked {
            if !self.strided.windows[axis].is_empty() {
                return 1;
            }
            all = common(all, self.divisor(&self.ty.tensor.extents[axis]));
        }
        all = common(all, self.divisor(&self.strided.offset));
        for i in 0..self.ty.tile.len() {
            let stride = self.divisor(&self.strided.strides[i]);
            let index =
                self.ty.index_along(i, index).map_or(1, |&index| self.numbers.divisors.divisor(index));
            all = common(all, product(product(stride, self.divisor(&self.ty.steps[i])), index));
            if i != axis && self.ty.tile[i].as_const() != Some(1) {
                all = common(all, stride);
            }
        }
        let tensor = self.numbers.kernel.definition(self.view).map(|cut| cut.operands[0]);
        let tensor = tensor.expect("verified: a view is made by `partition`");
        selections(self.numbers, tensor).fold(all, common)
    }

    fn divisor(&self, dim: &Dim) -> u64 {
        divisor(&self.numbers.facts, dim)
    }
}

/// What divides the displacements of a tensor by axes that were selected at run time.
fn selections(numbers: &Numbers<'_>, tensor: ValueId) -> impl Iterator<Item = u64> {
    Source::of(numbers.kernel, tensor).selections.into_iter().map(|selection| {
        let stride = divisor(&numbers.facts, &selection.from.strided().strides[selection.axis]);
        product(stride, numbers.divisors.divisor(selection.index))
    })
}

fn divisor(facts: &Facts, dim: &Dim) -> u64 {
    form_divisor(&facts.apply(dim))
}

/// The largest power of two that divides `a`, itself one, and `b`.
fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { a.min(1 << b.trailing_zeros()) }
}

/// A divisor of a product; what is too large is divided by its power of two.
fn product(a: u64, b: u64) -> u64 {
    a.checked_mul(b).unwrap_or(1 << (a.trailing_zeros() + b.trailing_zeros()).min(63))
}
