//! `convert_layout`: elements that threads hold, given to the threads that want them.
//!
//! How is the schedule's to say ([`Way`]). What goes through shared memory is written in groups of neighbours, and read
//! in groups after a barrier: at once, or part by part by the product that it is staged for.

use crate::emit::Value;
use crate::gpu::coordinates::{Coordinate, Linear};
use crate::gpu::fragment::Fragment;
use crate::gpu::region::Emitter;
use inkwell::values::{IntValue, PointerValue};
use std::collections::HashMap;
use tile_ir::gpu::{Buffer, Read, Swizzled, WIDEST, Way};
use tile_ir::kernel::OpData;
use tile_ir::ops::UnaryOp;
use tile_ir::{DType, OpId, ValueId};
use tile_layout::linear::Distribution;

/// A tile that products read from shared memory.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct InShared<'a, 'c> {
    buffer: Buffer,
    swizzled: &'a Swizzled,
    /// How many bytes after the buffer's first it begins, an i32, where it is in a ring.
    stage: Option<IntValue<'c>>,
    /// Whether the product has its elements rounded to TF32 numbers.
    in_tf32: bool,
}

/// A tile in shared memory, of which groups of slots are read as they are needed.
pub(in crate::gpu) struct Staged<'a, 'c> {
    base: PointerValue<'c>,
    dtype: DType,
    in_tf32: bool,
    swizzled: &'a Swizzled,
    /// The places of all groups.
    places: Vec<Coordinate<'c>>,
    groups: HashMap<u64, Vec<Value<'c>>>,
}

impl<'a, 'c> Staged<'a, 'c> {
    /// A tile that lies in shared memory.
    fn of(emitter: &Emitter<'a, 'c>, tile: InShared<'a, 'c>, to: &Distribution) -> Self {
        let InShared { buffer, swizzled, stage, in_tf32 } = tile;
        let base = match stage {
            Some(stage) => emitter.shared_base_at(buffer, stage),
            None => emitter.shared_base(buffer),
        };
        let row = WIDEST / buffer.dtype.bytes() as u64;
        let places = match &swizzled.read {
            &Read::Slots(width) => emitter.swizzled_places(to, width, swizzled, buffer.dtype),
            Read::Matrices(load) => emitter.swizzled_places(load.rows(), row, swizzled, buffer.dtype),
        };
        let places = places.into_iter().map(|(_, place)| place).collect();
        Staged { base, dtype: buffer.dtype, in_tf32, swizzled, places, groups: HashMap::new() }
    }

    /// How many groups were read.
    pub(in crate::gpu) fn reads(&self) -> usize {
        self.groups.len()
    }

    /// A slot's value, read with its group if no other slot of that was asked for before.
    pub(in crate::gpu) fn get(&mut self, emitter: &Emitter<'a, 'c>, slot: u64) -> Value<'c> {
        let width = self.swizzled.read_width();
        let (read, place) = (&self.swizzled.read, self.places[(slot / width) as usize]);
        let (base, dtype, in_tf32) = (self.base, self.dtype, self.in_tf32);
        let read = || {
            let group = emitter.read_group(emitter.byte_from(base, place), dtype, read);
            let rounded = |value| emitter.ir.unary(UnaryOp::RoundTf32, dtype, value);
            if in_tf32 { group.into_iter().map(rounded).collect() } else { group }
        };
        let group = self.groups.entry(slot / width).or_insert_with(read);
        group[(slot % width) as usize]
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    pub(in crate::gpu) fn convert_layout(&mut self, op: OpId, data: &OpData) {
        let (operand, result) = (data.operands[0], data.results[0]);
        let (source, scheduled) = (self.tile(operand).clone(), self.scheduled);
        let fragment = match scheduled.way(op) {
            _ if source.uniform().is_some() => source,
            Way::Renamed(slots) => Fragment::Slots(slots.iter().map(|&slot| source.get(slot)).collect()),
            Way::RowMajor => {
                let buffer = self.share_all(op, &[operand])[0];
                self.take(buffer, result)
            }
            Way::InRounds { .. } => self.exchanged_in_rounds(op, operand, result),
            Way::Swizzled(swizzled) => {
                let buffer = self.share_swizzled(op, operand, &source, swizzled);
                if scheduled.staged_for(op).is_some() {
                    // The product waits, once for both of its factors.
                    self.staged.insert(result, InShared { buffer, swizzled, stage: None, in_tf32: false });
                    return;
                }
                self.sync();
                let tile = InShared { buffer, swizzled, stage: None, in_tf32: false };
                let mut staged = Staged::of(self, tile, scheduled.distribution(result));
                Fragment::Slots((0..self.slots(result)).map(|slot| staged.get(self, slot)).collect())
            }
        };
        self.set_tile(result, fragment);
    }

    /// What is staged for a product, to be read now.
    pub(in crate::gpu) fn staged(&self, tile: ValueId) -> Option<Staged<'a, 'c>> {
        let place = *self.staged.get(&tile)?;
        Some(Staged::of(self, place, self.scheduled.distribution(tile)))
    }

    /// Rounds a tile that a product reads from shared memory when it is read. `false` if the tile is held.
    pub(in crate::gpu) fn round_when_read(&mut self, data: &OpData) -> bool {
        let staged = self.staged.get(&data.operands[0]).copied();
        let rounded = staged.map(|staged| InShared { in_tf32: true, ..staged });
        self.staged.extend(rounded.map(|rounded| (data.results[0], rounded)));
        rounded.is_some()
    }

    /// Notes that a tile that products read was copied to a buffer's stage.
    pub(in crate::gpu) fn stage_copied(
        &mut self,
        tile: ValueId,
        buffer: Buffer,
        swizzled: &'a Swizzled,
        stage: IntValue<'c>,
    ) {
        self.staged.insert(tile, InShared { buffer, swizzled, stage: Some(stage), in_tf32: false });
    }

    /// The bytes of a swizzled buffer at which groups of so many slots begin.
    pub(in crate::gpu) fn swizzled_places(
        &self,
        distribution: &Distribution,
        width: u64,
        swizzled: &Swizzled,
        dtype: DType,
    ) -> Vec<(u64, Coordinate<'c>)> {
        let byte = |position: &[u64]| swizzled.offset(position) * dtype.bytes() as u64;
        let bytes: Vec<u64> = distribution.thread_bits().map(byte).collect();
        let own = Linear::of(self.ir, self.running_thread(), &bytes);
        let place = |slot| {
            let (_, within) = distribution.slot(slot);
            (slot, own.at(self.ir, byte(&within), 0))
        };
        (0..distribution.slots()).step_by(width as usize).map(place).collect()
    }

    /// Writes a tile to its buffer, which nobody may read before the next barrier.
    fn share_swizzled(&self, op: OpId, tile: ValueId, source: &Fragment<'c>, swizzled: &Swizzled) -> Buffer {
        let (buffer, mapping) = (self.scheduled.buffers(op)[0], self.mapping(tile));
        self.where_it_holds(mapping.is_owner(), || self.write_swizzled(buffer, source, swizzled));
        buffer
    }

    fn write_swizzled(&self, buffer: Buffer, source: &Fragment<'c>, swizzled: &Swizzled) {
        for (slot, place) in self.swizzled_places(swizzled.written(), swizzled.write, swizzled, buffer.dtype)
        {
            let slots = (slot..slot + swizzled.write).map(|slot| swizzled.source_slot(slot));
            let values: Vec<Value<'c>> = slots.map(|slot| source.get(slot)).collect();
            let address = self.byte_from(self.shared_base(buffer), place);
            self.ir.store_group(address, buffer.dtype, &values);
        }
    }

    fn read_group(&self, address: PointerValue<'c>, dtype: DType, read: &Read) -> Vec<Value<'c>> {
        let ir = self.ir;
        match read {
            &Read::Slots(width) => ir.load_group(address, dtype, width),
            Read::Matrices(load) => {
                let words = self.dialect.load_matrices(ir, address, load.matrices, load.transposed);
                words.into_iter().flat_map(|word| ir.unpacked(word, dtype, load.word)).collect()
            }
        }
    }
}
