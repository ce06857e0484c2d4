//! The part of a tile that one thread holds: a value per slot, or one for all.
//!
//! Everything is unrolled over the slots, whose number [`super::registers`] bounds. A tile whose elements are all
//! equal is one value, whatever its size.

use super::pipeline::roles::Role;
use super::region::Emitter;
use crate::emit::{Ir, Value};
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::{DType, Op, OpId, ValueId};

/// The running thread's part of a tile.
#[derive(Clone, Debug)]
pub(super) enum Fragment<'c> {
    /// Every element is this value.
    Uniform(Value<'c>),
    /// One value per slot.
    Slots(Vec<Value<'c>>),
}

impl<'c> Fragment<'c> {
    /// A slot's value.
    pub(super) fn get(&self, slot: u64) -> Value<'c> {
        match self {
            Fragment::Uniform(value) => *value,
            Fragment::Slots(values) => values[slot as usize],
        }
    }

    /// The one value of all elements, if that is known.
    pub(super) fn uniform(&self) -> Option<Value<'c>> {
        match self {
            Fragment::Uniform(value) => Some(*value),
            Fragment::Slots(_) => None,
        }
    }

    /// Groups of so many of the slots: the first one, and the values.
    pub(super) fn groups(&self, slots: u64, width: u64) -> impl Iterator<Item = (u64, Vec<Value<'c>>)> {
        let group = move |first: u64| (first, (first..first + width).map(|slot| self.get(slot)).collect());
        (0..slots).step_by(width as usize).map(group)
    }

    /// The values of all slots.
    pub(super) fn values(&self, slots: u64) -> Vec<Value<'c>> {
        (0..slots).map(|slot| self.get(slot)).collect()
    }
}

impl<'c> Emitter<'_, 'c> {
    /// How many slots each thread has of a tile.
    pub(super) fn slots(&self, tile: ValueId) -> u64 {
        self.scheduled.distribution(tile).slots()
    }

    /// Sets a tile to sums in their compute type, rounded to its format.
    pub(super) fn set_sums(&mut self, tile: ValueId, sums: Vec<Value<'c>>) {
        let dtype = self.dtype(tile);
        let sums = if dtype.is_float() { self.ir.round_all(&sums, dtype) } else { sums };
        self.set_tile(tile, Fragment::Slots(sums));
    }

    /// Whether an op makes a tile of a narrower format of one of f32.
    pub(super) fn narrows(&self, data: &OpData) -> bool {
        matches!(data.op, Op::Cast(_) | Op::SaturatingCast(_))
            && self.dtype(data.operands[0]) == DType::F32
            && self.dtype(data.results[0]).is_narrow_float()
    }

    /// A tile of f32 as one of a narrower format, by an op that narrows.
    pub(super) fn narrowed(&self, data: &OpData, operand: &Fragment<'c>) -> Fragment<'c> {
        Fragment::Slots(self.narrowed_values(data, &operand.values(self.slots(data.results[0]))))
    }

    fn narrowed_values(&self, data: &OpData, values: &[Value<'c>]) -> Vec<Value<'c>> {
        let dtype = self.dtype(data.results[0]);
        match data.op {
            Op::SaturatingCast(_) => self.ir.saturate_all(values, dtype),
            _ => self.ir.round_all(values, dtype),
        }
    }

    /// Whether the op after an elementwise one narrows what that gives, in threads that hold the sums of a whole product:
    /// then a pair takes one register as soon as it is computed.
    pub(super) fn is_narrowed_by(&self, data: &OpData, next: OpId) -> bool {
        let after = self.instance.op(next);
        self.role == Role::Consumer
            && data.op.is_leaf()
            && after.operands[..] == data.results[..]
            && self.is_tile(data.results[0])
            && !self.scheduled.is_uniform(data.results[0])
            && self.narrows(after)
            && self.does(next, after)
    }

    /// An elementwise op, and the one after it that narrows what it gives, pair by pair.
    pub(super) fn narrowed_elementwise(&mut self, data: &OpData, after: &OpData) {
        if let Some(places) = self.places {
            places.at(self.ir, data.loc);
        }
        let (result, narrow) = (data.results[0], after.results[0]);
        let slots: Vec<u64> = (0..self.slots(result)).collect();
        let operands: Vec<_> = data.operands.iter().map(|&value| self.tile(value)).collect();
        let (mut wide, mut narrowed) = (Vec::new(), Vec::new());
        for pair in slots.chunks(2) {
            let pair: Vec<Value<'c>> =
                pair.iter().map(|&slot| self.leaf_of_slot(data, &operands, slot)).collect();
            narrowed.extend(self.narrowed_values(after, &pair));
            wide.extend(pair);
        }
        self.set_tile(result, Fragment::Slots(wide));
        self.set_tile(narrow, Fragment::Slots(narrowed));
    }

    /// A tile's fragment, slot by slot.
    pub(super) fn map(&self, tile: ValueId, value: impl FnMut(u64) -> Value<'c>) -> Fragment<'c> {
        Fragment::Slots((0..self.slots(tile)).map(value).collect())
    }

    /// A tile's fragment as LLVM values that a phi can join: small elements go in words, which is how they come from
    /// memory, so that one register holds several.
    pub(super) fn flatten(&self, tile: ValueId, fragment: &Fragment<'c>) -> Vec<Value<'c>> {
        let values = fragment.values(self.slots(tile));
        match self.joined_in_words(tile) {
            Some(_) => self.ir.words(&values, self.dtype(tile)),
            None => values,
        }
    }

    /// The fragment that [`Self::flatten`] gave these values for.
    pub(super) fn unflatten(
        &self,
        tile: ValueId,
        flat: &mut impl Iterator<Item = Value<'c>>,
    ) -> Fragment<'c> {
        let slots = self.slots(tile);
        let values = match self.joined_in_words(tile) {
            Some(count) => {
                let words = flat.take((slots / count) as usize);
                words.flat_map(|word| self.ir.unpacked(word, self.dtype(tile), count)).collect()
            }
            None => flat.take(slots as usize).collect(),
        };
        Fragment::Slots(values)
    }

    /// How many slots go in a word, if the format is kept so at no cost.
    fn joined_in_words(&self, tile: ValueId) -> Option<u64> {
        Ir::elements_of_word(self.dtype(tile)).filter(|&count| self.slots(tile).is_multiple_of(count))
    }

    /// A tile's fragment from one of two branches.
    pub(super) fn choose(
        &self,
        tile: ValueId,
        condition: IntValue<'c>,
        then: impl FnOnce() -> Fragment<'c>,
        otherwise: impl FnOnce() -> Fragment<'c>,
    ) -> Fragment<'c> {
        let then = || self.flatten(tile, &then());
        let values = self.ir.if_else(condition, then, || self.flatten(tile, &otherwise()));
        self.unflatten(tile, &mut values.into_iter())
    }
}
