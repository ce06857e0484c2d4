//! What a person should know of a schedule: which of its products aren't done as fast as the target could, what became of
//! them, and why.
//!
//! The reasons are of those that decide: [`Obstacle`] of the pipelines, and [`products::remark`] of matrix instructions.

use super::pipeline::{FactorId, Obstacle};
use super::rewrites::stacks;
use super::{Copies, LaidOut, Pipelines, Product, products};
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, OpId, ValueId};
use crate::loc::Loc;
use crate::ops::Op;
use crate::specialize::Instance;
use crate::target::TargetDesc;
use crate::variant::Variant;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// What a person should know of a schedule: why it isn't what they may expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What it is about.
    pub kind: RemarkKind,
    /// The op.
    pub loc: Loc,
    /// The reason, and what to do about it.
    pub message: String,
    /// Of a product for whose formats there is no instruction: those for which there are.
    pub multiplied: Vec<Multiplied>,
}

/// What remarks are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemarkKind {
    /// A product that the target could do faster.
    SlowProduct,
    /// A [`ScheduleHint`](crate::ScheduleHint) that the schedule doesn't follow.
    Hint,
}

/// Formats of factors, as messages name them, and that in which a matrix instruction sums their products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multiplied {
    /// The factors.
    pub factors: String,
    /// Their sums.
    pub sum: DType,
}

impl Remark {
    /// Why a kernel's hint isn't followed.
    pub(super) fn of_hint(message: String) -> Remark {
        Remark { kind: RemarkKind::Hint, loc: Loc::UNKNOWN, message, multiplied: Vec::new() }
    }

    /// Why a product is slower than the target could do it.
    pub(super) fn of_product(data: &OpData, message: String, multiplied: Vec<Multiplied>) -> Remark {
        Remark { kind: RemarkKind::SlowProduct, loc: data.loc, message, multiplied }
    }

    /// The message with the formats that are multiplied: `…; there are for f16, bf16 summed in f32; i8 summed in i32`.
    pub fn told(&self) -> String {
        let mut by_sum: Vec<(DType, Vec<&str>)> = Vec::new();
        for Multiplied { factors, sum } in &self.multiplied {
            match by_sum.iter_mut().find(|(known, _)| known == sum) {
                Some((_, known)) => known.push(factors),
                None => by_sum.push((*sum, vec![factors])),
            }
        }
        let summed = by_sum.iter().map(|(sum, known)| format!("{} summed in {sum}", known.join(", ")));
        let summed = summed.collect::<Vec<_>>().join("; ");
        if summed.is_empty() {
            self.message.clone()
        } else {
            format!("{}; there are for {summed}", self.message)
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.loc.is_known() {
            write!(f, "line {}: ", self.loc.line)?;
        }
        f.write_str(&self.told())
    }
}

/// Those of a schedule whose products have these [`obstacles`], in the order of the products.
pub(super) fn remarks(
    laid_out: &LaidOut,
    target: &TargetDesc,
    copies: &Copies,
    obstacles: &HashMap<FactorId, Obstacle>,
) -> Vec<Remark> {
    let kernel: &Kernel = &laid_out.instance;
    let products = kernel.walk().into_iter().filter(|&op| kernel.op(op).op.is_product());
    let remark = |op: OpId| {
        let data = kernel.op(op);
        let Some(product) = laid_out.products.get(&op) else {
            return (!target.matrix.is_empty()).then(|| products::remark(kernel, data, target));
        };
        let message = match FactorId::both(op).map(|factor| obstacles.get(&factor)) {
            [_, Some(obstacle)] => {
                let done = by_warps(kernel, data, product, copies);
                let missed = match target.has_tensor_memory() {
                    true => "in tensor memory (`tcgen05.mma`)",
                    false => "by warpgroups (`wgmma`)",
                };
                format!("a product isn't done {missed} but {done}: {obstacle}")
            }
            [Some(obstacle), None] => format!(
                "warpgroups take the left factor of a product from registers, with no tiles copied ahead: {obstacle}"
            ),
            [None, None] => return None,
        };
        Some(Remark::of_product(data, message, Vec::new()))
    };
    products.filter_map(remark).collect()
}

/// How warps do a product, and which of its factors' tiles are copied ahead.
fn by_warps(kernel: &Kernel, data: &OpData, product: &Product, copies: &Copies) -> String {
    let definitions = kernel.definitions();
    let is_copied = |operand: usize| {
        let definition = |value: ValueId| definitions.get(&value).copied();
        let moved = |&op: &OpId| {
            let data = kernel.op(op);
            let is_moved = matches!(data.op, Op::ConvertLayout | Op::Permute(_) | Op::Reshape(_));
            is_moved.then(|| definition(data.operands[0])).flatten()
        };
        let mut way = std::iter::successors(definition(data.operands[operand]), moved);
        way.any(|op| copies.loop_of(op).is_some())
    };
    let copied = match [0, 1].map(is_copied) {
        [true, true] => "tiles copied ahead by all threads",
        [true, false] => "tiles of the left factor alone copied ahead by all threads",
        [false, true] => "tiles of the right factor alone copied ahead by all threads",
        [false, false] => "no tiles copied ahead",
    };
    format!("by `mma.sync` {}, with {copied}", product.instruction.shape)
}

/// Why factors of products lie in no ring, of an instance with these
/// pipelines; `found` gives those of another kernel.
pub(super) fn obstacles(
    instance: &Instance,
    target: &TargetDesc,
    pipelines: &Pipelines,
    found: impl Fn(&Kernel) -> Pipelines,
) -> HashMap<FactorId, Obstacle> {
    // What is in the way of a matrix of a stack is what is in the way of the stack.
    let pipelines = match stacks::all(instance, target) {
        Cow::Owned(stacked) => Cow::Owned(found(&stacked)),
        Cow::Borrowed(_) => Cow::Borrowed(pipelines),
    };
    let products = instance.walk().into_iter().filter(|&op| instance.op(op).op.is_product());
    let factors = products.flat_map(FactorId::both);
    let mut obstacles: HashMap<FactorId, Obstacle> =
        factors.filter_map(|factor| Some((factor, pipelines.obstacle(factor)?.clone()))).collect();
    if obstacles.values().any(Obstacle::is_of_sizes) {
        // Where a launch may have sizes without these, it has code that relies on them, of which what is left is told.
        let variants = Variant::of_target(target).iter().copied();
        let more = found(&Variant::first_of(variants, instance).1);
        let stays = |factor| more.obstacle(factor).is_some_and(Obstacle::is_of_sizes);
        obstacles.retain(|&factor, obstacle| !obstacle.is_of_sizes() || stays(factor));
    }
    obstacles
}

#[cfg(test)]
mod tests;
