//! The part of a tile that one thread holds: a value per slot, or one for all.
//!
//! Everything is unrolled over the slots, whose number [`super::registers`] bounds. A tile whose elements are all
//! equal is one value, whatever its size.

use super::region::Emitter;
use crate::emit::Value;
use inkwell::values::IntValue;
use tile_ir::ValueId;

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

    /// A tile's fragment, slot by slot.
    pub(super) fn map(&self, tile: ValueId, value: impl FnMut(u64) -> Value<'c>) -> Fragment<'c> {
        Fragment::Slots((0..self.slots(tile)).map(value).collect())
    }

    /// A tile's fragment from one of two branches.
    pub(super) fn choose(
        &self,
        tile: ValueId,
        condition: IntValue<'c>,
        then: impl FnOnce() -> Fragment<'c>,
        otherwise: impl FnOnce() -> Fragment<'c>,
    ) -> Fragment<'c> {
        let slots = self.slots(tile);
        let values = self.ir.if_else(condition, || then().values(slots), || otherwise().values(slots));
        Fragment::Slots(values)
    }
}
