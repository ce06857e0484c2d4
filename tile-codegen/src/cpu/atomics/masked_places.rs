//! Loops over the places of a tile that a mask has. Places along a row become the bits of a word, and counting zeros finds the
//! next one that is set: places that the mask hasn't take no turn, and a branch that depends on data, which processors guess
//! wrongly, stands at the end of a word instead of at each place.

use crate::cpu::region::Emitter;
use crate::emit::LoopHint;
use inkwell::IntPredicate;
use inkwell::types::VectorType;
use inkwell::values::IntValue;
use tile_ir::ValueId;

/// Places of a word.
const MOST: i64 = 64;

/// Of rows that aren't made of words with so many places each place is tested.
const FEWEST: i64 = 16;

/// How many places of such a row become a word, if they do.
fn places_of_a_word(width: i64) -> Option<i64> {
    let places = 1 << width.trailing_zeros();
    (places >= FEWEST).then_some(places.min(MOST))
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Emits what is done at each place that a mask has, or at every place without one, in row-major order.
    pub(in crate::cpu) fn each_place(
        &mut self,
        mask: Option<ValueId>,
        shape: &[i64],
        body: &mut dyn FnMut(&mut Self, &[IntValue<'c>]),
    ) {
        let Some(mask) = mask else { return self.nest(shape, body) };
        let width = shape.last().copied().unwrap_or(1);
        let Some(places) = places_of_a_word(width) else {
            return self.nest(shape, &mut |emitter, index| {
                let is_set = emitter.element(mask, index).into_int_value();
                emitter.ir.if_then(is_set, || body(emitter, index));
            });
        };
        let (ir, rows) = (self.ir, &shape[..shape.len() - 1]);
        self.each_row(rows, &mut |emitter, row| {
            ir.each((ir.i64(0), ir.i64(width), ir.i64(places)), LoopHint::AsItIs, |first| {
                let word = emitter.mask_bits(mask, row, first, places);
                emitter.each_bit(word, |emitter, bit| {
                    body(emitter, &[row, &[ir.add(first, bit)]].concat());
                });
            });
        });
    }

    /// Whether a mask has places of a row from `first` on: a bit each, the lowest for the first.
    fn mask_bits(
        &mut self,
        mask: ValueId,
        row: &[IntValue<'c>],
        first: IntValue<'c>,
        places: i64,
    ) -> IntValue<'c> {
        let (ir, byte) = (self.ir, self.ir.int_type(8));
        let lanes = self.lane_array(byte.into(), places);
        self.each_lane(places, |emitter, lane| {
            let is_set = emitter.element(mask, &[row, &[ir.add(first, lane)]].concat()).into_int_value();
            ir.store(ir.element(byte.into(), lanes, lane), ir.zext_or_trunc(is_set, 8).into());
        });
        let ty: VectorType<'c> = byte.vec_type(places as u32);
        let bytes = ir.load(ty.into(), lanes).into_vector_value();
        ir.zext_or_trunc(ir.bits_of_lanes(bytes), 64)
    }

    /// Emits what is done for each bit of a word that is set, from the lowest on.
    fn each_bit(&mut self, word: IntValue<'c>, body: impl FnOnce(&mut Self, IntValue<'c>)) {
        let ir = self.ir;
        let is_any = |word| ir.icmp(IntPredicate::NE, word, ir.i64(0));
        ir.hinted_while(is_any(word), LoopHint::AsItIs, &[word.into()], |words| {
            let word = words[0].into_int_value();
            body(self, ir.lowest_bit(word));
            let rest = ir.and(word, ir.sub(word, ir.i64(1)));
            (is_any(rest), vec![rest.into()])
        });
    }
}

#[cfg(test)]
mod tests {
    use super::places_of_a_word;

    #[test]
    fn words_divide_rows() {
        assert_eq!(
            [64, 1024, 96, 48, 16].map(places_of_a_word),
            [Some(64), Some(64), Some(32), Some(16), Some(16)]
        );
        assert_eq!([1, 8, 100, 1000].map(places_of_a_word), [None; 4]);
    }
}
