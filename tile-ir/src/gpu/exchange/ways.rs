//! How the elements of a tile get from one distribution to another, for every `convert_layout`.
//!
//! Where each thread has what it wants, slots are renamed. Otherwise elements go through shared memory. What is then a
//! factor of one product in the same region stays there until the product reads it, part by part: registers hold only
//! the parts at hand.

use crate::analysis::uses::Uses;
use crate::gpu::{LaidOut, Pipelines, Product, Swizzled, dtype_of};
use crate::kernel::{Kernel, OpId, ValueId};
use crate::ops::{Op, UnaryOp};
use crate::target::TargetDesc;
use std::collections::HashMap;
use tile_layout::linear::{Conversion, Distribution, Place, Route};

/// How a tile changes its distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// For each slot of the target, the source's slot that every thread has the element in.
    Renamed(Vec<u64>),
    /// Through shared memory, in a layout for this pair of distributions.
    Swizzled(Box<Swizzled>),
    /// Through shared memory, row-major.
    RowMajor,
    /// Through shared memory, row-major, so many bytes at a time.
    InRounds {
        /// A power of two.
        bytes: u64,
    },
}

impl Way {
    fn of(kernel: &Kernel, op: OpId, found: &HashMap<ValueId, Distribution>, target: &TargetDesc) -> Way {
        let data = kernel.op(op);
        let (from, to) = (&found[&data.operands[0]], &found[&data.results[0]]);
        if let Some(slots) = renaming(from, to) {
            return Way::Renamed(slots);
        }
        let dtype = dtype_of(kernel, data.results[0]);
        Swizzled::of(from, to, dtype, target)
            .map_or(Way::RowMajor, |swizzled| Way::Swizzled(Box::new(swizzled)))
    }
}

/// The ways of a kernel's conversions.
pub(in crate::gpu) fn ways(
    kernel: &Kernel,
    found: &HashMap<ValueId, Distribution>,
    target: &TargetDesc,
) -> HashMap<OpId, Way> {
    let ops = kernel.walk().into_iter().filter(|&op| kernel.op(op).op == Op::ConvertLayout);
    ops.map(|op| (op, Way::of(kernel, op, found, target))).collect()
}

/// The conversions whose result stays in shared memory, each with the product that reads it, and rounds it on the way if
/// it is to be TF32. A product of warpgroups takes from shared memory what copies bring, and nothing else.
pub(in crate::gpu) fn staged(
    kernel: &Kernel,
    ways: &HashMap<OpId, Way>,
    products: &HashMap<OpId, Product>,
    pipelines: &Pipelines,
) -> HashMap<OpId, OpId> {
    let uses = Uses::of(kernel);
    let reader = |&op: &OpId| {
        let mut factor = kernel.op(op).results[0];
        let mut user = uses.only(factor)?;
        if kernel.op(user).op == Op::Unary(UnaryOp::RoundTf32) {
            factor = kernel.op(user).results[0];
            user = uses.only(factor)?;
        }
        let [a, b, _, ..] = kernel.op(user).operands[..] else { return None };
        let reads = products.contains_key(&user) && pipelines.factors(user).is_none();
        let is_one_factor = reads && (a == factor) != (b == factor);
        (is_one_factor && kernel.region_of(op) == kernel.region_of(user)).then_some((op, user))
    };
    let swizzled = ways.iter().filter(|(_, way)| matches!(way, Way::Swizzled(_))).map(|(op, _)| op);
    swizzled.filter_map(reader).collect()
}

/// Has conversions of tiles of more bytes than this done in rounds of so many. What a product reads from shared memory
/// must lie there as a whole.
pub(in crate::gpu) fn in_rounds(laid_out: &mut LaidOut, bytes: u64) {
    let is_large = |&(op, way): &(&OpId, &Way)| {
        let result = laid_out.instance.op(*op).results[0];
        let stays = matches!(way, Way::Renamed(_)) || laid_out.staged.contains_key(op);
        !stays && laid_out.bytes(result) > bytes
    };
    let large: Vec<OpId> = laid_out.ways.iter().filter(is_large).map(|(&op, _)| op).collect();
    laid_out.ways.extend(large.into_iter().map(|op| (op, Way::InRounds { bytes })));
}

/// For each slot of the target, the source's slot that every thread has the element in; `None` where threads lack
/// elements, or have them in different slots.
fn renaming(from: &Distribution, to: &Distribution) -> Option<Vec<u64>> {
    if from == to {
        return Some((0..to.slots()).collect());
    }
    let conversion = Conversion::between(&from.linear()?, &to.linear()?).ok()?;
    if !matches!(conversion.route(), Route::Identity | Route::Registers) {
        return None;
    }
    let source = |place: Place| conversion.source_of(place).ok().map(|source| source.register);
    let lanes = (0..to.lane_count().ilog2()).map(|bit| Place { lane: 1 << bit, ..Place::default() });
    let warps = (0..to.warp_count().ilog2()).map(|bit| Place { warp: 1 << bit, ..Place::default() });
    if lanes.chain(warps).any(|place| source(place) != Some(0)) {
        return None;
    }
    (0..to.slots()).map(|register| source(Place { register, ..Place::default() })).collect()
}
