//! What a kernel prints and asserts: the first thread reserves a record of the log, and every thread writes
//! the elements that it holds.
//!
//! Whether an assertion fails is the same in all threads, so that they all go to the barriers of its record.

use super::fragment::Fragment;
use super::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::gpu::Buffer;
use tile_ir::kernel::OpData;
use tile_ir::log::Site;
use tile_ir::{OpId, ValueId};

impl<'c> Emitter<'_, 'c> {
    pub(super) fn say(&self, op: OpId, data: &OpData) {
        let ir = self.ir;
        let site = Site::of(self.instance, data).expect("the op says something");
        if site.condition.is_none() {
            return self.record(op, &site, &data.operands, None);
        }
        let (condition, values) =
            data.operands.split_first().expect("verified: an assertion has a condition");
        let (fails, position) = self.first_false(op, *condition);
        ir.if_then(fails, || self.record(op, &site, values, Some(position)));
    }

    /// Whether an element of a condition is false, and the position of the first.
    fn first_false(&self, op: OpId, condition: ValueId) -> (IntValue<'c>, IntValue<'c>) {
        let ir = self.ir;
        let fragment = match self.is_tile(condition) {
            true => self.tile(condition).clone(),
            false => Fragment::Uniform(self.scalar(condition)),
        };
        if let Fragment::Uniform(holds) = fragment {
            return (ir.xor(holds.into_int_value(), ir.bool(true)), ir.i64(0));
        }
        let none = self.i32(self.elements(condition));
        let own = self.own_first_false(condition, &fragment);
        let buffer = self.scheduled.buffers(op)[1];
        let first = self.least(buffer, own, none);
        (ir.icmp(IntPredicate::NE, first, none), ir.resize(first, 64, false))
    }

    /// The first position that is false among the running thread's elements; the number of elements where none is.
    fn own_first_false(&self, condition: ValueId, fragment: &Fragment<'c>) -> IntValue<'c> {
        let (ir, mapping) = (self.ir, self.mapping(condition));
        (0..mapping.slots()).fold(self.i32(self.elements(condition)), |before, slot| {
            let fails = ir.xor(fragment.get(slot).into_int_value(), ir.bool(true));
            let fails = mapping.is_element(ir, slot).map_or(fails, |inside| ir.and(inside, fails));
            let here = mapping.element(ir, slot).value(ir);
            let earlier = ir.and(fails, ir.icmp(IntPredicate::ULT, here, before));
            ir.select_int(earlier, here, before)
        })
    }

    /// The least of one number per thread, in every thread.
    fn least(&self, buffer: Buffer, own: IntValue<'c>, most: IntValue<'c>) -> IntValue<'c> {
        let ir = self.ir;
        self.write_shared(buffer, self.thread, own.into());
        self.sync();
        let range = (self.i32(0), self.i32(self.thread_count()), self.i32(1));
        let least = ir.for_loop(range, &[most.into()], |thread, least| {
            let (other, least) = (self.read_shared(buffer, thread), least[0]);
            let smaller = ir.icmp(IntPredicate::ULT, other.into_int_value(), least.into_int_value());
            vec![ir.select(smaller, other, least)]
        });
        self.dialect.uniform(ir, least[0]).into_int_value()
    }

    fn record(&self, op: OpId, site: &Site, values: &[ValueId], position: Option<IntValue<'c>>) {
        let (ir, log) = (self.ir, self.log.expect("a kernel that says something has a log"));
        let buffer = self.scheduled.buffers(op)[0];
        let placed = places(self, site, values);
        let has_tiles = values.iter().any(|&value| self.is_tile(value));
        let is_first = ir.icmp(IntPredicate::EQ, self.thread, self.i32(0));
        ir.if_then(is_first, || {
            if position.is_some() {
                log.count_failure(ir);
            }
            let record = log.reserve(ir, site);
            if has_tiles {
                self.write_shared(buffer, self.i32(0), record.into());
            }
            ir.if_then(log.fits(ir, record, site), || {
                log.write_head(ir, record, site, position);
                for &(value, at) in placed.iter().filter(|&&(value, _)| !self.is_tile(value)) {
                    log.write(ir, record, ir.i64(at), self.scalar(value), self.dtype(value));
                }
            });
        });
        if has_tiles {
            self.sync();
            let record = self.read_shared(buffer, self.i32(0)).into_int_value();
            ir.if_then(log.fits(ir, record, site), || {
                for &(tile, at) in placed.iter().filter(|&&(value, _)| self.is_tile(value)) {
                    self.write_tile(record, tile, at);
                }
            });
        }
    }

    /// Writes the running thread's elements of a tile that begins at word `first` of a record.
    fn write_tile(&self, record: IntValue<'c>, tile: ValueId, first: i64) {
        let (ir, log) = (self.ir, self.log.expect("a kernel that says something has a log"));
        let (mapping, fragment) = (self.mapping(tile), self.tile(tile));
        let dtype = self.dtype(tile);
        for slot in 0..mapping.slots() {
            let write = || {
                let element = mapping.element(ir, slot).value(ir);
                let at = ir.add(ir.i64(first), ir.resize(element, 64, false));
                log.write(ir, record, at, fragment.get(slot), dtype);
            };
            self.where_it_holds(mapping.answers(ir, slot), write);
        }
    }
}

/// Values with the words of a record at which they begin.
fn places(emitter: &Emitter<'_, '_>, site: &Site, values: &[ValueId]) -> Vec<(ValueId, i64)> {
    let mut next = site.head_words() as i64;
    let place = |&value: &ValueId| {
        let at = next;
        next += if emitter.is_tile(value) { emitter.elements(value) as i64 } else { 1 };
        (value, at)
    };
    values.iter().map(place).collect()
}
