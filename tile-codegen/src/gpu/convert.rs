//! `convert_layout`: elements that threads hold, given to the threads that want them.
//!
//! Where each thread has what it wants, slots are renamed. Otherwise elements go through shared memory, which the
//! schedule's algebra lays out so that neither the writes nor the reads of a warp meet in a bank, if that can be.

use super::coordinates::{Coordinate, Linear, Mapping};
use super::exchange;
use super::fragment::Fragment;
use super::region::Emitter;
use super::shared::{Buffer, Request};
use super::swizzled::{MatrixLoad, Read, Swizzled};
use crate::emit::Value;
use tile_ir::OpId;
use tile_ir::gpu::Scheduled;
use tile_ir::kernel::OpData;
use tile_layout::linear::{Conversion, Distribution, Place, Route};

/// The shared memory that the op needs.
pub(super) fn requests(scheduled: &Scheduled, data: &OpData) -> Vec<Request> {
    let (from, to) = ends(scheduled, data);
    if renaming(from, to).is_some() { Vec::new() } else { vec![exchange::request(scheduled, data.results[0])] }
}

fn ends<'s>(scheduled: &'s Scheduled, data: &OpData) -> (&'s Distribution, &'s Distribution) {
    (scheduled.distribution(data.operands[0]), scheduled.distribution(data.results[0]))
}

/// For each slot of the target, the source's slot that every thread has the element in; `None` where threads lack
/// elements, or have them in different slots.
fn renaming(from: &Distribution, to: &Distribution) -> Option<Vec<u64>> {
    if from == to {
        return Some((0..to.slots()).collect());
    }
    let conversion = Conversion::between(&from.linear()?, &to.linear()?).ok()?;
    if !matches!(conversion.route(), Route::Identity | Route::Registers) {
        return None;
    }
    let source = |place: Place| conversion.source_of(place).ok().map(|source| source.register);
    let lanes = (0..to.lane_count().ilog2()).map(|bit| Place { lane: 1 << bit, ..Place::default() });
    let warps = (0..to.warp_count().ilog2()).map(|bit| Place { warp: 1 << bit, ..Place::default() });
    if lanes.chain(warps).any(|place| source(place) != Some(0)) {
        return None;
    }
    (0..to.slots()).map(|register| source(Place { register, ..Place::default() })).collect()
}

impl<'c> Emitter<'_, 'c> {
    pub(super) fn convert_layout(&mut self, op: OpId, data: &OpData) {
        let (operand, result) = (data.operands[0], data.results[0]);
        let (from, to) = ends(self.scheduled, data);
        let source = self.tile(operand).clone();
        let fragment = match (source.uniform(), renaming(from, to)) {
            (Some(_), _) => source,
            (None, Some(slots)) => Fragment::Slots(slots.into_iter().map(|slot| source.get(slot)).collect()),
            (None, None) => self.exchanged(op, data, &source),
        };
        self.set_tile(result, fragment);
    }

    fn exchanged(&mut self, op: OpId, data: &OpData, source: &Fragment<'c>) -> Fragment<'c> {
        let (operand, result) = (data.operands[0], data.results[0]);
        let (from, to) = ends(self.scheduled, data);
        let buffer = self.plan.buffers(op)[0];
        let swizzled = Swizzled::of((from, to), buffer.dtype, self.target);
        self.reserve(&[buffer]);
        let mapping = self.mapping(operand);
        match &swizzled {
            Some(swizzled) => self.scatter_swizzled(buffer, source, &mapping, swizzled),
            None => self.share(buffer, source, &mapping),
        }
        self.sync();
        self.pending.read(buffer);
        match &swizzled {
            Some(swizzled) => self.gather_swizzled(buffer, to, swizzled),
            None => self.take(buffer, result),
        }
    }

    /// The places of groups of `width` slots in a swizzled buffer.
    fn swizzled_places(
        &self,
        distribution: &Distribution,
        swizzled: &Swizzled,
        width: u64,
    ) -> Vec<(u64, Coordinate<'c>)> {
        let offsets: Vec<u64> = distribution.thread_bits().map(|position| swizzled.offset(position)).collect();
        let own = Linear::of(self.ir, self.running_thread(), &offsets);
        let place = |slot| {
            let (_, within) = distribution.slot(slot);
            (slot, own.at(self.ir, swizzled.offset(&within), 0))
        };
        (0..distribution.slots()).step_by(width as usize).map(place).collect()
    }

    fn scatter_swizzled(
        &self,
        buffer: Buffer,
        source: &Fragment<'c>,
        mapping: &Mapping<'c>,
        swizzled: &Swizzled,
    ) {
        let write = || {
            for (slot, place) in self.swizzled_places(mapping.distribution(), swizzled, swizzled.write) {
                let values: Vec<Value<'c>> =
                    (slot..slot + swizzled.write).map(|slot| source.get(slot)).collect();
                self.ir.store_group(self.shared_place(buffer, place), buffer.dtype, &values);
            }
        };
        self.where_it_holds(mapping.is_owner(), write);
    }

    fn gather_swizzled(&self, buffer: Buffer, to: &Distribution, swizzled: &Swizzled) -> Fragment<'c> {
        let values: Vec<Value<'c>> = match &swizzled.read {
            &Read::Slots(width) => {
                let places = self.swizzled_places(to, swizzled, width).into_iter();
                let load = |(_, place)| self.ir.load_group(self.shared_place(buffer, place), buffer.dtype, width);
                places.flat_map(load).collect()
            }
            Read::Matrices(load) => self.load_matrices(buffer, swizzled, load),
        };
        Fragment::Slots(values)
    }

    /// Each instruction's slots follow those of the one before.
    fn load_matrices(&self, buffer: Buffer, swizzled: &Swizzled, load: &MatrixLoad) -> Vec<Value<'c>> {
        let row = 16 / buffer.dtype.bytes() as u64;
        let places = self.swizzled_places(load.rows(), swizzled, row).into_iter();
        let words = places.flat_map(|(_, place)| {
            let address = self.shared_place(buffer, place);
            self.dialect.load_matrices(self.ir, address, load.matrices, load.transposed)
        });
        words.flat_map(|word| self.ir.unpacked(word, buffer.dtype, load.word)).collect()
    }
}
