//! Sums that are stored from registers to the tensor.
//!
//! If a product's sums are only stored, the last multiplication stores them itself, without the way through scratch memory.
//! It does so for tiles that lie inside their tensor, which need no masks; and for outputs that are streamed past the
//! caches only where register blocks have whole lines of them.

use super::super::LINE_BYTES;
use super::super::region::Emitter;
use super::accumulate::Accumulation;
use super::plan::Plan;
use crate::emit::Ir;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use std::collections::HashMap;
use tile_ir::kernel::OpData;
use tile_ir::view::Source;
use tile_ir::{Instance, ValueId};

/// Where register blocks store their sums.
#[derive(Clone)]
pub(super) struct Direct<'c> {
    /// Whether they do, in this tile's last multiplication.
    pub(super) is_direct: IntValue<'c>,
    /// Whether they go past the caches, if they may.
    pub(super) streams: Option<IntValue<'c>>,
    pub(super) tensor: ValueId,
    pub(super) first: PointerValue<'c>,
    /// Elements from a row to the next.
    pub(super) stride: IntValue<'c>,
}

impl<'c> Direct<'c> {
    /// The same, but never where a condition holds.
    pub(super) fn unless(&self, ir: &Ir<'c>, condition: IntValue<'c>) -> Direct<'c> {
        Direct { is_direct: ir.select_int(condition, ir.bool(false), self.is_direct), ..self.clone() }
    }
}

/// Tiles whose store has been done, by the tile: under which condition.
pub(in super::super) type Written<'c> = HashMap<ValueId, IntValue<'c>>;

/// The store of a loop's sums that may be done before its turn: nothing else becomes of them, and nothing else reaches the
/// tensor.
fn only_store<'a>(instance: &Instance, accumulation: &Accumulation<'a>, sum: ValueId) -> Option<&'a OpData> {
    let &[store] = accumulation.stores.as_slice() else { return None };
    let target = Source::reached_by(instance, store)?;
    let all = instance.walk().into_iter().filter_map(|op| Source::reached_by(instance, instance.op(op)));
    let is_alone = all.filter(|source| source.argument == target.argument).count() == 1;
    (store.operands[1] == sum && target.selections.is_empty() && is_alone).then_some(store)
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Where a loop's register blocks store its sums in the last multiplication, if they may.
    pub(super) fn direct(
        &self,
        accumulation: &Accumulation<'a>,
        plan: &Plan,
        sum: ValueId,
    ) -> Option<Direct<'c>> {
        let (ir, store) = (self.ir, only_store(self.instance, accumulation, sum)?);
        let window = self.window_if_known(store)?;
        let dtype = window.dtype();
        if !window.is_dense() || dtype.is_narrow_float() {
            return None;
        }
        let is_whole = self.is_whole(&window);
        let (first, stride) = (self.first_address(&window), self.stride(&window, 0));
        let (line, bytes) = (i64::from(LINE_BYTES), dtype.bytes() as i64);
        let (is_direct, streams) = match self.entry.streamed.get(&window.tensor()) {
            None => (is_whole, None),
            Some(&streams) if plan.block.width() * bytes % line != 0 => {
                (ir.select_int(streams, ir.bool(false), is_whole), None)
            }
            Some(&streams) => {
                let places = ir.or(ir.address(first), ir.mul(stride, ir.i64(bytes)));
                let are_lines = ir.icmp(IntPredicate::EQ, ir.urem(places, ir.i64(line)), ir.i64(0));
                (ir.and(is_whole, ir.select_int(streams, are_lines, ir.bool(true))), Some(streams))
            }
        };
        Some(Direct { is_direct, streams, tensor: window.tensor(), first, stride })
    }
}
