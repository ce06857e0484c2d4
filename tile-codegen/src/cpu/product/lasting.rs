//! Factors that are the same in all iterations of a loop, such as the queries in attention, are packed in the first
//! iteration.
//!
//! Such a factor is a tile in scratch memory that is complete before the loop begins. Its packed form has memory of its
//! own.

use super::super::fuse::Fusion;
use super::super::region::Emitter;
use crate::emit::Ir;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::{Instance, Op, ValueId};

/// What a product's loop doesn't change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lasting {
    counter: ValueId,
    begin: ValueId,
    /// Which factors.
    pub(super) factors: [bool; 2],
}

impl Lasting {
    /// Of a product of one matrix in the body of the op around it; `None` where nothing lasts, and in no loop that counts.
    pub(super) fn of(
        instance: &Instance,
        fusion: &Fusion<'_>,
        around: Option<&OpData>,
        product: &OpData,
    ) -> Option<Lasting> {
        let looped = around.filter(|op| op.op == Op::For)?;
        let body = looped.regions[0];
        let factors = [0, 1].map(|i| fusion.home(product.operands[i]) != Some(body));
        let counter = *instance.region(body).params.first()?;
        factors.contains(&true).then_some(Lasting { counter, begin: looped.operands[0], factors })
    }
}

impl<'c> Emitter<'_, 'c> {
    /// Whether each of a product's factors has been packed by an earlier turn; `None` of one that every turn packs.
    pub(super) fn are_packed_before(&self, lasting: Option<&Lasting>) -> [Option<IntValue<'c>>; 2] {
        let Some(lasting) = lasting else { return [None; 2] };
        let [turn, begin] = [lasting.counter, lasting.begin].map(|value| self.index(value));
        let is_later = self.ir.icmp(IntPredicate::NE, turn, begin);
        lasting.factors.map(|lasts| lasts.then_some(is_later))
    }
}

/// Whether nothing needs to be packed, for either of two reasons.
pub(super) fn is_there_by_either<'c>(
    ir: &Ir<'c>,
    a: Option<IntValue<'c>>,
    b: Option<IntValue<'c>>,
) -> Option<IntValue<'c>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(ir.or(a, b)),
        (one, other) => one.or(other),
    }
}
