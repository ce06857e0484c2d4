//! `convert_layout`: elements that threads hold, given to the threads that want them.
//!
//! Where each thread has what it wants, slots are renamed. Otherwise elements go through shared memory, which the
//! schedule's algebra lays out so that neither the writes nor the reads of a warp meet in a bank, if that can be.

use super::coordinates::{Coordinate, Linear, Mapping};
use super::exchange;
use super::fragment::Fragment;
use super::region::Emitter;
use super::shared::{Buffer, Request};
use crate::emit::Value;
use tile_ir::gpu::Scheduled;
use tile_ir::kernel::OpData;
use tile_ir::{DType, OpId};
use tile_layout::linear::{
    Access, Conversion, Dim, Distribution, LinearLayout, Place, Route, SharedMemory, optimal_layout,
};

/// Banks of 4 bytes that shared memory has, on every target.
const BANKS: u32 = 32;

/// The widest access of a thread, in bytes.
const WIDEST: u64 = 16;

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

/// Where a tile's elements go in shared memory, and how many neighbours of a thread stay neighbours there.
struct Swizzled {
    layout: LinearLayout,
    width: u64,
}

impl Swizzled {
    fn of(from: &Distribution, to: &Distribution, dtype: DType) -> Option<Swizzled> {
        let bytes = dtype.bytes() as u64;
        let common = from.registers().iter().zip(to.registers()).take_while(|(a, b)| a == b).count() as u32;
        let (source, target) = (from.linear()?, to.linear()?);
        let shared = SharedMemory { element_bytes: bytes as u32, banks: BANKS };
        // Neighbours that both have in the same order may move together, if the algebra can keep them together.
        let widths = (0..=common.min((WIDEST / bytes).ilog2())).rev().map(|bits| 1 << bits);
        widths.into_iter().find_map(|width: u64| {
            let access = |layout| Access { layout, width: (width * bytes) as u32 };
            let chosen = optimal_layout(shared, access(&source), access(&target)).ok()?;
            Some(Swizzled { layout: chosen.layout, width })
        })
    }

    /// The offset of a position, in elements.
    fn offset(&self, position: &[u64]) -> u64 {
        let axes: Vec<(Dim, u64)> =
            position.iter().enumerate().map(|(axis, &place)| (Dim::Axis(axis as u8), place)).collect();
        let flat = self.layout.flat_input(&axes).expect("a position of the tile");
        self.layout.apply_flat(flat).expect("a position of the tile")
    }
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
        let swizzled = Swizzled::of(from, to, buffer.dtype);
        self.reserve(&[buffer]);
        let mapping = self.mapping(operand);
        match &swizzled {
            Some(swizzled) => self.scatter_swizzled(buffer, source, &mapping, swizzled),
            None => self.share(buffer, source, &mapping),
        }
        self.sync();
        self.pending.read(buffer);
        match &swizzled {
            Some(swizzled) => self.gather_swizzled(buffer, &self.mapping(result), swizzled),
            None => self.take(buffer, result),
        }
    }

    /// The places of all groups of slots in a swizzled buffer.
    fn swizzled_places(&self, mapping: &Mapping<'c>, swizzled: &Swizzled) -> Vec<(u64, Coordinate<'c>)> {
        let distribution = mapping.distribution();
        let offsets: Vec<u64> = distribution.thread_bits().map(|position| swizzled.offset(position)).collect();
        let own = Linear::of(self.ir, self.running_thread(), &offsets);
        let place = |slot| {
            let (_, within) = distribution.slot(slot);
            (slot, own.at(self.ir, swizzled.offset(&within), 0))
        };
        (0..mapping.slots()).step_by(swizzled.width as usize).map(place).collect()
    }

    fn scatter_swizzled(
        &self,
        buffer: Buffer,
        source: &Fragment<'c>,
        mapping: &Mapping<'c>,
        swizzled: &Swizzled,
    ) {
        let write = || {
            for (slot, place) in self.swizzled_places(mapping, swizzled) {
                let values: Vec<Value<'c>> =
                    (slot..slot + swizzled.width).map(|slot| source.get(slot)).collect();
                self.ir.store_group(self.shared_place(buffer, place), buffer.dtype, &values);
            }
        };
        self.where_it_holds(mapping.is_owner(), write);
    }

    fn gather_swizzled(&self, buffer: Buffer, mapping: &Mapping<'c>, swizzled: &Swizzled) -> Fragment<'c> {
        let places = self.swizzled_places(mapping, swizzled).into_iter();
        let values = places.flat_map(|(_, place)| {
            self.ir.load_group(self.shared_place(buffer, place), buffer.dtype, swizzled.width)
        });
        Fragment::Slots(values.collect())
    }
}
