//! The part of a tile that one thread holds, and the two ways to hold it.
//!
//! A tile of at most [`REGISTER_SLOTS`] slots per thread is one LLVM value per slot, and what is done to it is
//! unrolled over the slots. A larger one is an array in the thread's own memory, and what is done to it is a
//! loop over the slots: the code stays bounded, at the price of memory traffic. Tiles of equal element count
//! are held alike. A tile whose elements are all equal is one value, whatever its size.

use super::distribution::Slot;
use super::region::Emitter;
use crate::emit::{Ir, Value};
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{IntValue, PointerValue};
use tile_ir::DType;

/// The largest number of slots that are LLVM values of their own.
pub(super) const REGISTER_SLOTS: usize = 64;

/// The running thread's part of a tile.
#[derive(Clone, Debug)]
pub(super) enum Fragment<'c> {
    /// Every element is this value.
    Uniform(Value<'c>),
    /// One value per slot.
    Registers(Vec<Value<'c>>),
    /// An array of one compute-type value per slot; not written after it is made, except by a loop that
    /// carries it.
    Local(PointerValue<'c>),
}

impl<'c> Emitter<'_, 'c> {
    /// A slot's value.
    pub(super) fn get(&self, fragment: &Fragment<'c>, dtype: DType, slot: Slot<'c>) -> Value<'c> {
        match (fragment, slot) {
            (Fragment::Uniform(value), _) => *value,
            (Fragment::Registers(values), Slot::Fixed(slot)) => values[slot as usize],
            (Fragment::Registers(_), Slot::Varying(_)) => {
                unreachable!("loops over slots are for tiles in local arrays")
            }
            (Fragment::Local(array), slot) => {
                let ty = self.ir.compute_type(dtype);
                self.ir.load(ty, self.ir.element(ty, *array, self.slot_index(slot)))
            }
        }
    }

    fn slot_index(&self, slot: Slot<'c>) -> IntValue<'c> {
        match slot {
            Slot::Fixed(slot) => self.i32(slot),
            Slot::Varying(slot) => slot,
        }
    }

    /// A fragment of a tile with this many elements, slot by slot.
    pub(super) fn map(
        &self,
        elements: u64,
        dtype: DType,
        mut value: impl FnMut(Slot<'c>) -> Value<'c>,
    ) -> Fragment<'c> {
        let mut fragments = self.map_all(elements, &[dtype], |slot| vec![value(slot)]);
        fragments.pop().expect("one format gives one fragment")
    }

    /// Fragments of tiles with this many elements, one per format, all made slot by slot.
    pub(super) fn map_all(
        &self,
        elements: u64,
        dtypes: &[DType],
        mut values: impl FnMut(Slot<'c>) -> Vec<Value<'c>>,
    ) -> Vec<Fragment<'c>> {
        let slots = self.distribution.slots(elements);
        if slots <= REGISTER_SLOTS {
            let mut registers = vec![Vec::with_capacity(slots); dtypes.len()];
            for slot in 0..slots as u64 {
                registers.iter_mut().zip(values(Slot::Fixed(slot))).for_each(|(all, one)| all.push(one));
            }
            return registers.into_iter().map(Fragment::Registers).collect();
        }
        let types: Vec<_> = dtypes.iter().map(|&dtype| self.ir.compute_type(dtype)).collect();
        let arrays: Vec<_> = types.iter().map(|&ty| local_array(self.ir, ty, slots)).collect();
        self.slot_loop(slots, |slot| {
            for ((&ty, &array), value) in types.iter().zip(&arrays).zip(values(Slot::Varying(slot))) {
                self.ir.store(self.ir.element(ty, array, slot), value);
            }
        });
        arrays.into_iter().map(Fragment::Local).collect()
    }

    /// Does something to every slot of a tile with this many elements.
    pub(super) fn each(&self, elements: u64, mut action: impl FnMut(Slot<'c>)) {
        let slots = self.distribution.slots(elements);
        if slots <= REGISTER_SLOTS {
            (0..slots as u64).for_each(|slot| action(Slot::Fixed(slot)));
        } else {
            self.slot_loop(slots, |slot| action(Slot::Varying(slot)));
        }
    }

    fn slot_loop(&self, slots: usize, body: impl FnOnce(IntValue<'c>)) {
        self.ir.for_loop((self.i32(0), self.i32(slots as u64), self.i32(1)), &[], |slot, _| {
            body(slot);
            Vec::new()
        });
    }

    /// The fragment as LLVM values that a phi can join: one per slot, or an array's address.
    pub(super) fn flatten(&self, fragment: Fragment<'c>, elements: u64, dtype: DType) -> Vec<Value<'c>> {
        match fragment {
            Fragment::Uniform(value) => {
                let fragment = self.map(elements, dtype, |_| value);
                self.flatten(fragment, elements, dtype)
            }
            Fragment::Registers(values) => values,
            Fragment::Local(array) => vec![array.into()],
        }
    }

    /// The fragment that [`Self::flatten`] gave these values for.
    pub(super) fn unflatten(
        &self,
        values: &mut impl Iterator<Item = Value<'c>>,
        elements: u64,
    ) -> Fragment<'c> {
        let slots = self.distribution.slots(elements);
        if slots <= REGISTER_SLOTS {
            return Fragment::Registers(values.take(slots).collect());
        }
        let array = values.next().expect("a fragment is flattened and restored alike");
        Fragment::Local(array.into_pointer_value())
    }

    /// A fragment from one of two branches.
    pub(super) fn choose(
        &self,
        condition: IntValue<'c>,
        (elements, dtype): (u64, DType),
        then: impl FnOnce() -> Fragment<'c>,
        otherwise: impl FnOnce() -> Fragment<'c>,
    ) -> Fragment<'c> {
        let values = self.ir.if_else(
            condition,
            || self.flatten(then(), elements, dtype),
            || self.flatten(otherwise(), elements, dtype),
        );
        self.unflatten(&mut values.into_iter(), elements)
    }

    /// Copies tiles in local arrays to other arrays as if all at once: every slot of every source is read
    /// before that slot of any destination is written. All have `slots` slots.
    pub(super) fn copy_arrays(&self, slots: usize, copies: &[(PointerValue<'c>, PointerValue<'c>, DType)]) {
        if copies.is_empty() {
            return;
        }
        let ir = self.ir;
        self.slot_loop(slots, |slot| {
            let at = |array, dtype| ir.element(ir.compute_type(dtype), array, slot);
            let values: Vec<Value<'c>> = copies
                .iter()
                .map(|&(from, _, dtype)| ir.load(ir.compute_type(dtype), at(from, dtype)))
                .collect();
            for (&(_, to, dtype), value) in copies.iter().zip(values) {
                ir.store(at(to, dtype), value);
            }
        });
    }
}

/// An array in the thread's own memory, made once per call of the kernel.
pub(super) fn local_array<'c>(ir: &Ir<'c>, ty: BasicTypeEnum<'c>, slots: usize) -> PointerValue<'c> {
    let here = ir.builder.get_insert_block().expect("the builder is positioned");
    let entry = ir.function().get_first_basic_block().expect("a function has an entry");
    match entry.get_first_instruction() {
        Some(first) => ir.builder.position_before(&first),
        None => ir.builder.position_at_end(entry),
    }
    let array = ir.builder.build_alloca(ty.array_type(slots as u32), "slots");
    ir.builder.position_at_end(here);
    array.expect("the builder is positioned")
}
