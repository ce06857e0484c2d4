//! Elements that change threads through a buffer with room for some of them: in rounds, each of as many as it has room
//! for, by their row-major numbers.
//!
//! Where the extents behind the first are powers of two, the bits of a number are exclusive ors of bits of the thread's
//! number and of the slot's. The upper ones are the round, which threads then ask for once for all slots that are alike in
//! them, and the lower ones the place in the buffer, which is one whatever the round is.

use super::row_width;
use crate::emit::Value;
use crate::gpu::coordinates::{Coordinate, Linear, Mapping, both, i32_const};
use crate::gpu::fragment::Fragment;
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use std::collections::HashMap;
use tile_ir::gpu::Buffer;
use tile_ir::{OpId, ValueId};

/// Whether a slot's element is in a round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside<'c> {
    Never,
    Always,
    If(IntValue<'c>),
}

/// Where the slots of a mapping lie in a buffer that elements go through in rounds.
struct Rounds<'m, 'c> {
    buffer: Buffer,
    /// The elements of a round: a power of two.
    room: u64,
    mapping: &'m Mapping<'c>,
    /// How many slots are neighbours in the buffer.
    width: u64,
    bits: Option<Bits<'c>>,
}

/// The bits that the thread adds to its elements' numbers.
struct Bits<'c> {
    /// Those that are the round.
    upper: Linear<'c>,
    /// Those that are the place in it.
    lower: Linear<'c>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Puts a tile's elements where another distribution wants them, of each round as many as the op's buffer has room
    /// for.
    pub(in crate::gpu) fn exchanged_in_rounds(&self, op: OpId, from: ValueId, to: ValueId) -> Fragment<'c> {
        let buffer = self.scheduled.buffers(op)[0];
        let (giving, taking) = (self.mapping(from), self.mapping(to));
        let [giving, taking] = [&giving, &taking].map(|mapping| self.rounds(buffer, mapping));
        let firsts = (0..self.elements(to)).step_by(giving.room as usize);
        let zero = Fragment::Uniform(self.ir.compute_type(buffer.dtype).const_zero());
        firsts.fold(zero, |before, first| {
            if first != 0 {
                self.sync();
            }
            self.share_round(&giving, first, self.tile(from));
            self.sync();
            self.take_round(&taking, first, &before)
        })
    }

    fn rounds<'m>(&self, buffer: Buffer, mapping: &'m Mapping<'c>) -> Rounds<'m, 'c> {
        let room = buffer.bytes / buffer.dtype.bytes() as u64;
        let width = row_width(mapping, buffer.dtype);
        Rounds { buffer, room, mapping, width, bits: self.bits_of_numbers(mapping, room) }
    }

    /// `None` where numbers aren't made of bits.
    fn bits_of_numbers(&self, mapping: &Mapping<'c>, room: u64) -> Option<Bits<'c>> {
        let distribution = mapping.distribution();
        let is_made_of_bits = distribution.shape().iter().skip(1).all(|extent| extent.is_power_of_two());
        if !is_made_of_bits || (0..mapping.slots()).any(|slot| mapping.may_be_padding(slot)) {
            return None;
        }
        let numbers: Vec<u64> = distribution.thread_bits().map(|bit| mapping.number(bit)).collect();
        let part = |mask: u64| {
            let numbers: Vec<u64> = numbers.iter().map(|number| number & mask).collect();
            Linear::of(self.ir, self.running_thread(), &numbers)
        };
        Some(Bits { upper: part(!(room - 1)), lower: part(room - 1) })
    }

    fn share_round(&self, rounds: &Rounds<'_, 'c>, first: u64, fragment: &Fragment<'c>) {
        let (ir, dtype, width) = (self.ir, rounds.buffer.dtype, rounds.width);
        let places = self.places_in_round(rounds, first);
        for alike in places.chunk_by(|(_, _, a), (_, _, b)| a == b) {
            let write = || {
                for &(slot, address, _) in alike {
                    let values: Vec<Value<'c>> =
                        (slot..slot + width).map(|slot| fragment.get(slot)).collect();
                    ir.store_group(address, dtype, &values);
                }
            };
            let owner = rounds.mapping.is_owner();
            match alike[0].2 {
                Inside::Never => {}
                Inside::Always => self.where_it_holds(owner, write),
                Inside::If(inside) => self.where_it_holds(both(ir, Some(inside), owner), write),
            }
        }
    }

    fn take_round(&self, rounds: &Rounds<'_, 'c>, first: u64, before: &Fragment<'c>) -> Fragment<'c> {
        let (ir, dtype, width) = (self.ir, rounds.buffer.dtype, rounds.width);
        let places = self.places_in_round(rounds, first).into_iter();
        let values = places.flat_map(|(slot, address, inside)| {
            let before = || (slot..slot + width).map(|slot| before.get(slot)).collect::<Vec<_>>();
            let group = || ir.load_group(address, dtype, width);
            match inside {
                Inside::Never => before(),
                Inside::Always => group(),
                Inside::If(inside) => ir.select_group(inside, &group(), &before(), dtype),
            }
        });
        Fragment::Slots(values.collect())
    }

    /// The first slots of groups with addresses in the buffer, and whether they are in the round of the elements from
    /// `first` on.
    fn places_in_round(
        &self,
        rounds: &Rounds<'_, 'c>,
        first: u64,
    ) -> Vec<(u64, PointerValue<'c>, Inside<'c>)> {
        let base = self.shared_base(rounds.buffer);
        let mut asked = HashMap::new();
        let slots = (0..rounds.mapping.slots()).step_by(rounds.width as usize);
        let place = |slot| {
            let (place, inside) = match &rounds.bits {
                Some(bits) => self.by_bits(rounds, bits, slot, first, &mut asked),
                None => self.by_sums(rounds, slot, first),
            };
            (slot, self.place_from(base, rounds.buffer.dtype, place), inside)
        };
        slots.map(place).collect()
    }

    /// What upper bits were `asked` for is asked once.
    fn by_bits(
        &self,
        rounds: &Rounds<'_, 'c>,
        bits: &Bits<'c>,
        slot: u64,
        first: u64,
        asked: &mut HashMap<u64, Inside<'c>>,
    ) -> (Coordinate<'c>, Inside<'c>) {
        let (start, within) = rounds.mapping.distribution().slot(slot);
        let number = rounds.mapping.number(&start) ^ rounds.mapping.number(&within);
        let wanted = (number ^ first) & !(rounds.room - 1);
        let inside = *asked.entry(wanted).or_insert_with(|| match bits.upper.is(self.ir, wanted) {
            Ok(true) => Inside::Always,
            Ok(false) => Inside::Never,
            Err(inside) => Inside::If(inside),
        });
        (bits.lower.at(self.ir, number & (rounds.room - 1), 0), inside)
    }

    fn by_sums(&self, rounds: &Rounds<'_, 'c>, slot: u64, first: u64) -> (Coordinate<'c>, Inside<'c>) {
        let (ir, mapping) = (self.ir, rounds.mapping);
        let place = ir.sub(mapping.element(ir, slot).value(ir), i32_const(ir, first));
        let inside = ir.icmp(IntPredicate::ULT, place, i32_const(ir, rounds.room));
        let inside =
            both(ir, Some(inside), mapping.is_element(ir, slot)).expect("one of the conditions is there");
        let place = ir.select_int(inside, place, i32_const(ir, 0));
        (Coordinate { varying: Some(place), fixed: 0 }, Inside::If(inside))
    }
}
