//! Global memory: loads and stores of tiles, masked or not.
//!
//! Neighbours in memory that a thread holds in neighbouring slots are moved by one instruction, as many as the
//! schedule found to be aligned. A block's own tile is stored and loaded with one distribution, so each element is
//! written and read back by the same thread: program order is all the synchronisation that needs. Where several threads
//! hold an element, one of them writes it, so that what reads it back waits for the block.

pub(super) mod atomics;
pub(super) mod bounded;
pub(super) mod gathered;
pub(super) mod prefetch;
pub(super) mod scattered;
pub(super) mod window;

use crate::emit::Value;
use crate::gpu::coordinates::{Mapping, both};
use crate::gpu::fragment::Fragment;
use crate::gpu::region::Emitter;
use bounded::{Bounded, Offsets};
use inkwell::values::IntValue;
use tile_ir::kernel::OpData;
use tile_ir::{Op, OpId, ValueId};
use window::{Cursor, Mask, Window};

/// Neighbouring slots that one instruction moves, and how many of them begin at a multiple of their size together.
#[derive(Clone, Copy)]
struct Group {
    width: u64,
    aligned: u64,
}

impl<'c> Emitter<'_, 'c> {
    pub(in crate::gpu) fn load(&mut self, op: OpId, data: &OpData) {
        let load = data.load().expect("a load");
        let (index, tile) = (self.tile_at(data), data.results[0]);
        let window = self.window(load.view, &index, load.pad.is_some());
        let mapping = self.mapping(tile);
        let read = |masked: Option<(&Mask<'c>, Value<'c>)>| {
            let (mut cursor, group) = (Cursor::default(), self.group(op, tile, masked.is_none()));
            let groups = (0..mapping.slots()).step_by(group.width as usize);
            let values =
                groups.flat_map(|slot| self.load_slots(&window, &mapping, &mut cursor, slot, group, masked));
            Fragment::Slots(values.collect())
        };
        let bounded = Bounded::of(self, op, &window);
        let fragment = match (&window.mask, load.pad, &bounded) {
            (Some(mask), Some(pad), Some(bounded)) => {
                let pad = self.scalar(pad);
                let checked = || self.load_bounded(op, bounded, &mapping, tile, pad);
                if self.moves_less(op, tile) {
                    self.choose(tile, mask.whole, || read(None), checked)
                } else {
                    checked()
                }
            }
            (Some(mask), Some(pad), None) => {
                let pad = self.scalar(pad);
                let part = || self.choose(tile, mask.whole, || read(None), || read(Some((mask, pad))));
                self.choose(tile, mask.any, part, || Fragment::Uniform(pad))
            }
            _ => read(None),
        };
        self.set_tile(tile, fragment);
    }

    /// A masked tile, each of whose elements is read where it exists.
    fn load_bounded(
        &self,
        op: OpId,
        bounded: &Bounded<'_, 'c>,
        mapping: &Mapping<'c>,
        tile: ValueId,
        pad: Value<'c>,
    ) -> Fragment<'c> {
        let (mut offsets, width) = (Offsets::default(), self.group(op, tile, false).width);
        let groups = (0..mapping.slots()).step_by(width as usize);
        let load = |slot| bounded.load(self.ir, mapping, &mut offsets, slot, width, pad);
        Fragment::Slots(groups.flat_map(load).collect())
    }

    /// Whether an access moves less at once where some elements don't exist.
    fn moves_less(&self, op: OpId, tile: ValueId) -> bool {
        self.group(op, tile, false).width < self.group(op, tile, true).width
    }

    /// What an access moves at once.
    fn group(&self, op: OpId, tile: ValueId, whole: bool) -> Group {
        let access = self.scheduled.access(op);
        let neighbours = |&axis: &usize| self.scheduled.distribution(tile).neighbours(axis);
        let held = access.order.first().map_or(1, neighbours);
        let width = held.min(if whole { access.whole } else { access.vector });
        Group { width, aligned: width.min(access.vector) }
    }

    /// Loads where the elements exist; elsewhere some that do, and takes the pad. What threads write is loaded behind
    /// a branch instead: those others are another thread's.
    fn load_slots(
        &self,
        window: &Window<'c>,
        mapping: &Mapping<'c>,
        cursor: &mut Cursor<'c>,
        slot: u64,
        group: Group,
        masked: Option<(&Mask<'c>, Value<'c>)>,
    ) -> Vec<Value<'c>> {
        let (ir, dtype) = (self.ir, window.dtype);
        let (pointer, inside) = self.locate(window, mapping, cursor, slot, masked.map(|(mask, _)| mask));
        let pad = masked.map_or_else(|| ir.compute_type(dtype).const_zero(), |(_, pad)| pad);
        let Group { width, aligned } = group;
        let Some(inside) = inside else { return ir.load_group_at(pointer, dtype, width, aligned) };
        let pads = vec![pad; width as usize];
        if window.mutable {
            let load = || ir.load_group_at(pointer, dtype, width, aligned);
            return ir.group_if(inside, load, &pads, dtype);
        }
        let safe = masked.map_or(window.first, |(mask, _)| mask.safe);
        let safe = ir.select(inside, pointer.into(), safe.into()).into_pointer_value();
        ir.select_group(inside, &ir.load_group_at(safe, dtype, width, aligned), &pads, dtype)
    }

    pub(in crate::gpu) fn store(&mut self, op: OpId, data: &OpData) {
        let (ir, tile) = (self.ir, data.operands[1]);
        let window = self.window(data.operands[0], &self.tile_at(data), data.op == Op::StoreMasked);
        let bounded = Bounded::of(self, op, &window);
        let mapping = self.mapping(tile);
        let fragment = self.tile(tile);
        let store = |mask: Option<&Mask<'c>>| {
            let mut cursor = Cursor::default();
            let Group { width, aligned } = self.group(op, tile, mask.is_none());
            for (slot, values) in fragment.groups(mapping.slots(), width) {
                let (pointer, inside) = self.locate(&window, &mapping, &mut cursor, slot, mask);
                let write = || ir.store_group_at(pointer, window.dtype, &values, aligned);
                self.where_it_holds(both(ir, inside, mapping.is_owner()), write);
            }
            Vec::new()
        };
        let checked = |bounded: &Bounded<'_, 'c>| {
            let (mut offsets, width) = (Offsets::default(), self.group(op, tile, false).width);
            for (slot, values) in fragment.groups(mapping.slots(), width) {
                bounded.store(ir, &mapping, &mut offsets, slot, &values);
            }
            Vec::new()
        };
        match (&window.mask, &bounded) {
            (None, _) => drop(store(None)),
            (Some(mask), Some(bounded)) if self.moves_less(op, tile) => {
                ir.if_else(mask.whole, || store(None), || checked(bounded));
            }
            (Some(_), Some(bounded)) => drop(checked(bounded)),
            (Some(mask), None) => {
                ir.if_then(mask.any, || drop(ir.if_else(mask.whole, || store(None), || store(Some(mask)))));
            }
        }
    }

    /// Does something where a condition holds; without one, everywhere.
    pub(in crate::gpu) fn where_it_holds(&self, condition: Option<IntValue<'c>>, action: impl FnOnce()) {
        match condition {
            Some(condition) => self.ir.if_then(condition, action),
            None => action(),
        }
    }
}
