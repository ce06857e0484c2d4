//! Elements that threads of a block give each other through shared memory: written row-major, and read after a
//! barrier.

use super::coordinates::{Coordinate, Mapping, both};
use super::fragment::Fragment;
use super::region::Emitter;
use super::roles::Role;
use crate::emit::Value;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::gpu::{Buffer, WIDEST};
use tile_ir::{DType, OpId, ValueId};

/// Elements of a tile, by their row-major numbers, that lie in a buffer at a time.
#[derive(Clone, Copy)]
struct Round {
    buffer: Buffer,
    first: u64,
    /// A power of two.
    room: u64,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Waits for the threads that hold tiles.
    pub(super) fn sync(&self) {
        match self.role {
            Role::Consumer => self.dialect.part_barrier(self.ir, self.thread_count()),
            Role::All | Role::Producer => self.dialect.barrier(self.ir),
        }
    }

    /// How many neighbours along the last axis go to or come from a row-major buffer at once.
    fn row_width(mapping: &Mapping<'c>, dtype: DType) -> u64 {
        let distribution = mapping.distribution();
        let Some(last) = distribution.shape().len().checked_sub(1) else { return 1 };
        let extent = distribution.shape()[last];
        let most = (WIDEST / dtype.bytes() as u64).min(1 << extent.trailing_zeros());
        distribution.neighbours(last).min(most)
    }

    /// Writes a tile's fragment to a buffer, row-major.
    pub(super) fn share(&self, buffer: Buffer, fragment: &Fragment<'c>, mapping: &Mapping<'c>) {
        let ir = self.ir;
        let width = Self::row_width(mapping, buffer.dtype);
        for slot in (0..mapping.slots()).step_by(width as usize) {
            let values: Vec<Value<'c>> = (slot..slot + width).map(|slot| fragment.get(slot)).collect();
            let address = self.shared_place(buffer, mapping.element(ir, slot));
            let write = || ir.store_group(address, buffer.dtype, &values);
            self.where_it_holds(mapping.answers(ir, slot), write);
        }
    }

    /// Puts an op's tiles into its buffers, where all threads can read them.
    pub(super) fn share_all(&self, op: OpId, tiles: &[ValueId]) -> &'a [Buffer] {
        let buffers = self.scheduled.buffers(op);
        for (&tile, &buffer) in tiles.iter().zip(buffers) {
            self.share(buffer, self.tile(tile), &self.mapping(tile));
        }
        self.sync();
        buffers
    }

    /// Reads a tile from where it lies row-major.
    pub(super) fn take(&self, buffer: Buffer, tile: ValueId) -> Fragment<'c> {
        let (ir, mapping) = (self.ir, self.mapping(tile));
        let width = Self::row_width(&mapping, buffer.dtype);
        let groups = (0..mapping.slots()).step_by(width as usize);
        let values = groups.flat_map(|slot| {
            let element = mapping.element(ir, slot);
            let address = match mapping.is_element(ir, slot) {
                None => self.shared_place(buffer, element),
                Some(_) => self.shared_pointer(buffer, mapping.or_zero(ir, slot, element.value(ir))),
            };
            ir.load_group(address, buffer.dtype, width)
        });
        Fragment::Slots(values.collect())
    }

    /// Puts a tile's elements where another distribution wants them, of each round as many as the op's buffer has room
    /// for.
    pub(super) fn exchanged_in_rounds(&self, op: OpId, (from, to): (ValueId, ValueId)) -> Fragment<'c> {
        let buffer = self.scheduled.buffers(op)[0];
        let room = buffer.bytes / buffer.dtype.bytes() as u64;
        let rounds = (0..self.elements(to)).step_by(room as usize).map(|first| Round { buffer, first, room });
        let zero = Fragment::Uniform(self.ir.compute_type(buffer.dtype).const_zero());
        let (giving, taking) = (self.mapping(from), self.mapping(to));
        rounds.fold(zero, |before, round| {
            if round.first != 0 {
                self.sync();
            }
            self.share_round(round, self.tile(from), &giving);
            self.sync();
            self.take_round(round, &before, &taking)
        })
    }

    fn share_round(&self, round: Round, fragment: &Fragment<'c>, mapping: &Mapping<'c>) {
        let ir = self.ir;
        let width = Self::row_width(mapping, round.buffer.dtype);
        for slot in (0..mapping.slots()).step_by(width as usize) {
            let (place, inside) = self.place_in_round(round, mapping, slot);
            let values: Vec<Value<'c>> = (slot..slot + width).map(|slot| fragment.get(slot)).collect();
            let address = self.shared_pointer(round.buffer, place);
            let write = || ir.store_group(address, round.buffer.dtype, &values);
            self.where_it_holds(both(ir, Some(inside), mapping.answers(ir, slot)), write);
        }
    }

    fn take_round(&self, round: Round, before: &Fragment<'c>, mapping: &Mapping<'c>) -> Fragment<'c> {
        let ir = self.ir;
        let width = Self::row_width(mapping, round.buffer.dtype);
        let groups = (0..mapping.slots()).step_by(width as usize);
        let values = groups.flat_map(|slot| {
            let (place, inside) = self.place_in_round(round, mapping, slot);
            let safe = ir.select_int(inside, place, self.i32(0));
            let group = ir.load_group(self.shared_pointer(round.buffer, safe), round.buffer.dtype, width);
            let before: Vec<Value<'c>> = (slot..slot + width).map(|slot| before.get(slot)).collect();
            ir.select_group(inside, &group, &before, round.buffer.dtype)
        });
        Fragment::Slots(values.collect())
    }

    /// The place of a slot's group in the buffer, and whether it is in this round.
    fn place_in_round(&self, round: Round, mapping: &Mapping<'c>, slot: u64) -> (IntValue<'c>, IntValue<'c>) {
        let ir = self.ir;
        let place = ir.sub(mapping.element(ir, slot).value(ir), self.i32(round.first));
        let inside = ir.icmp(IntPredicate::ULT, place, self.i32(round.room));
        let inside = both(ir, Some(inside), mapping.is_element(ir, slot));
        (place, inside.expect("one of the conditions is there"))
    }

    /// The address of an element of a buffer.
    pub(super) fn shared_place(&self, buffer: Buffer, element: Coordinate<'c>) -> PointerValue<'c> {
        self.place_from(self.shared_base(buffer), buffer.dtype, element)
    }

    /// The address of a byte from another on.
    pub(super) fn byte_from(&self, base: PointerValue<'c>, byte: Coordinate<'c>) -> PointerValue<'c> {
        self.place_from(base, DType::U8, byte)
    }

    /// The address of an element of a buffer that begins at an address.
    pub(super) fn place_from(
        &self,
        base: PointerValue<'c>,
        dtype: DType,
        element: Coordinate<'c>,
    ) -> PointerValue<'c> {
        let (ir, storage) = (self.ir, self.ir.storage_type(dtype));
        let own = element.varying.map_or(base, |varying| ir.element(storage, base, varying));
        if element.fixed == 0 { own } else { ir.element(storage, own, self.i32(element.fixed)) }
    }

    pub(super) fn shared_base(&self, buffer: Buffer) -> PointerValue<'c> {
        let ir = self.ir;
        ir.element(ir.int_type(8).into(), self.shared, ir.i64(buffer.offset as i64))
    }

    /// The address so many bytes from where a buffer begins, an i32.
    pub(super) fn shared_base_at(&self, buffer: Buffer, bytes: IntValue<'c>) -> PointerValue<'c> {
        self.ir.element(self.ir.int_type(8).into(), self.shared_base(buffer), bytes)
    }

    /// The address of an element of a buffer; `index` is an i32.
    pub(super) fn shared_pointer(&self, buffer: Buffer, index: IntValue<'c>) -> PointerValue<'c> {
        self.ir.element(self.ir.storage_type(buffer.dtype), self.shared_base(buffer), index)
    }

    pub(super) fn write_shared(&self, buffer: Buffer, index: IntValue<'c>, value: Value<'c>) {
        let stored = self.ir.value_to_storage(value, buffer.dtype);
        self.ir.store(self.shared_pointer(buffer, index), stored);
    }

    pub(super) fn read_shared(&self, buffer: Buffer, index: IntValue<'c>) -> Value<'c> {
        self.ir.load_value(self.shared_pointer(buffer, index), buffer.dtype)
    }
}
