//! Elements that threads of a block give each other, a file for each kind of op; here, through shared memory: written
//! row-major, and read after a barrier.

pub(super) mod convert;
pub(super) mod gather;
pub(super) mod histogram;
pub(super) mod item;
pub(super) mod lanes;
pub(super) mod lines;
pub(super) mod movement;
pub(super) mod network;
pub(super) mod reduce;
pub(super) mod rounds;
pub(super) mod scan;
pub(super) mod sort;

use crate::emit::Value;
use crate::gpu::coordinates::{Coordinate, Mapping};
use crate::gpu::fragment::Fragment;
use crate::gpu::pipeline::cluster;
use crate::gpu::pipeline::named_barriers::CONSUMERS;
use crate::gpu::pipeline::roles::Role;
use crate::gpu::region::Emitter;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::gpu::{Buffer, WIDEST};
use tile_ir::{DType, OpId, ValueId};

/// How many neighbours along the last axis go to or come from a row-major buffer at once.
pub(in crate::gpu) fn row_width(mapping: &Mapping<'_>, dtype: DType) -> u64 {
    let distribution = mapping.distribution();
    let Some(last) = distribution.shape().len().checked_sub(1) else { return 1 };
    let extent = distribution.shape()[last];
    let most = (WIDEST / dtype.bytes() as u64).min(1 << extent.trailing_zeros());
    distribution.neighbours(last).min(most)
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Waits for the threads that hold tiles, as the op that is emitted needs it.
    pub(in crate::gpu) fn sync(&self) {
        match self.role {
            _ if self.scheduled.blocks_per_tile() > 1 => cluster::meet(self.ir),
            Role::Consumer => self.dialect.barrier_of(self.ir, self.i32(CONSUMERS), self.thread_count()),
            Role::All | Role::Producer | Role::Multiplier => self.dialect.barrier(self.ir, self.orders),
        }
    }

    /// Waits for the threads of the block that hold tiles.
    pub(in crate::gpu) fn sync_block(&self) {
        match self.scheduled.blocks_per_tile() {
            1 => self.sync(),
            _ => self.dialect.barrier(self.ir, self.orders),
        }
    }

    /// Writes a tile's fragment to a buffer, row-major.
    pub(in crate::gpu) fn share(&self, buffer: Buffer, fragment: &Fragment<'c>, mapping: &Mapping<'c>) {
        let ir = self.ir;
        let width = row_width(mapping, buffer.dtype);
        for slot in (0..mapping.slots()).step_by(width as usize) {
            let values: Vec<Value<'c>> = (slot..slot + width).map(|slot| fragment.get(slot)).collect();
            let address = self.shared_place(buffer, mapping.element(ir, slot));
            let write = || ir.store_group(address, buffer.dtype, &values);
            self.where_it_holds(mapping.answers(ir, slot), write);
        }
    }

    /// Puts an op's tiles into its buffers, where all threads can read them.
    pub(in crate::gpu) fn share_all(&self, op: OpId, tiles: &[ValueId]) -> &'a [Buffer] {
        let buffers = self.scheduled.buffers(op);
        for (&tile, &buffer) in tiles.iter().zip(buffers) {
            self.share(buffer, self.tile(tile), &self.mapping(tile));
        }
        self.sync();
        buffers
    }

    /// Reads a tile from where it lies row-major.
    pub(in crate::gpu) fn take(&self, buffer: Buffer, tile: ValueId) -> Fragment<'c> {
        let (ir, mapping) = (self.ir, self.mapping(tile));
        let width = row_width(&mapping, buffer.dtype);
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

    /// The address of an element of a buffer.
    pub(in crate::gpu) fn shared_place(&self, buffer: Buffer, element: Coordinate<'c>) -> PointerValue<'c> {
        self.place_from(self.shared_base(buffer), buffer.dtype, element)
    }

    /// The address of a byte from another on.
    pub(in crate::gpu) fn byte_from(&self, base: PointerValue<'c>, byte: Coordinate<'c>) -> PointerValue<'c> {
        self.place_from(base, DType::U8, byte)
    }

    /// The address of an element of a buffer that begins at an address.
    pub(in crate::gpu) fn place_from(
        &self,
        base: PointerValue<'c>,
        dtype: DType,
        element: Coordinate<'c>,
    ) -> PointerValue<'c> {
        let (ir, storage) = (self.ir, self.ir.storage_type(dtype));
        let own = element.varying.map_or(base, |varying| ir.element(storage, base, varying));
        if element.fixed == 0 { own } else { ir.element(storage, own, self.i32(element.fixed)) }
    }

    pub(in crate::gpu) fn shared_base(&self, buffer: Buffer) -> PointerValue<'c> {
        let ir = self.ir;
        ir.element(ir.int_type(8).into(), self.shared, ir.i64(buffer.offset as i64))
    }

    /// The address so many bytes from where a buffer begins, an i32.
    pub(in crate::gpu) fn shared_base_at(&self, buffer: Buffer, bytes: IntValue<'c>) -> PointerValue<'c> {
        self.ir.element(self.ir.int_type(8).into(), self.shared_base(buffer), bytes)
    }

    /// The address of an element of a buffer; `index` is an i32.
    pub(in crate::gpu) fn shared_pointer(&self, buffer: Buffer, index: IntValue<'c>) -> PointerValue<'c> {
        self.ir.element(self.ir.storage_type(buffer.dtype), self.shared_base(buffer), index)
    }

    pub(in crate::gpu) fn write_shared(&self, buffer: Buffer, index: IntValue<'c>, value: Value<'c>) {
        let stored = self.ir.value_to_storage(value, buffer.dtype);
        self.ir.store(self.shared_pointer(buffer, index), stored);
    }

    pub(in crate::gpu) fn read_shared(&self, buffer: Buffer, index: IntValue<'c>) -> Value<'c> {
        self.ir.load_value(self.shared_pointer(buffer, index), buffer.dtype)
    }
}
