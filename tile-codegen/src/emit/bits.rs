//! Leaf ops that move the bits of integers: rotations, and bits and bytes in the opposite order.
//!
//! LLVM has an op for each, of every width, which on GPUs becomes shifts, masks and ors unless the integer is a word.

use super::ir::{Ir, Value};
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::ops::BinaryOp;

/// Bits of a word.
const WORD: u32 = 32;

impl<'c> Ir<'c> {
    /// Op `rotate_left` or `rotate_right`. LLVM takes the amount modulo the width, as the op does.
    pub(super) fn rotation(&self, op: BinaryOp, x: IntValue<'c>, by: IntValue<'c>) -> IntValue<'c> {
        let intrinsic = if op == BinaryOp::RotateLeft { "llvm.fshl" } else { "llvm.fshr" };
        match x.get_type().get_bit_width() {
            width if width < WORD && self.features.word_permutations => {
                // Copies of a narrow integer fill a word, which goes round as each of them does.
                let word = self.copies(x, WORD / width);
                let rotated = self.int_intrinsic(intrinsic, &[word, word, self.zext_or_trunc(by, WORD)]);
                self.zext_or_trunc(rotated, width)
            }
            width if width > WORD && self.rotates_pairs(by) => {
                let by = self.zext_or_trunc(by, WORD);
                let right =
                    if op == BinaryOp::RotateRight { by } else { self.sub(by.get_type().const_zero(), by) };
                self.rotated_pair(x, right)
            }
            _ => self.int_intrinsic(intrinsic, &[x, x, by]),
        }
    }

    fn rotates_pairs(&self, by: IntValue<'c>) -> bool {
        self.features.pair_rotations || self.features.word_permutations && by.is_const()
    }

    /// Two words rotated to the right. They change places where the amount has a whole word in it; then the lower bits of
    /// one follow the upper bits of the other.
    fn rotated_pair(&self, x: IntValue<'c>, by: IntValue<'c>) -> IntValue<'c> {
        let (low, high) = (self.zext_or_trunc(x, WORD), self.lshr(x, self.i64(WORD.into())));
        let high = self.zext_or_trunc(high, WORD);
        let whole_word = self.and(by, by.get_type().const_int(WORD.into(), false));
        let stay = self.icmp(IntPredicate::EQ, whole_word, by.get_type().const_zero());
        let (low, high) = (self.select_int(stay, low, high), self.select_int(stay, high, low));
        let [low, high] = [[high, low], [low, high]].map(|[upper, lower]| {
            let rotated = self.int_intrinsic("llvm.fshr", &[upper, lower, by]);
            self.zext_or_trunc(rotated, 2 * WORD)
        });
        self.or(low, self.shl(high, self.i64(WORD.into())))
    }

    /// Op `reverse_bits`.
    pub(super) fn reverse_bits(&self, x: IntValue<'c>) -> IntValue<'c> {
        let width = x.get_type().get_bit_width();
        if width >= WORD || !self.features.word_permutations {
            return self.int_intrinsic("llvm.bitreverse", &[x]);
        }
        let reversed = self.int_intrinsic("llvm.bitreverse", &[self.zext_or_trunc(x, WORD)]);
        let unused = reversed.get_type().const_int((WORD - width).into(), false);
        self.zext_or_trunc(self.lshr(reversed, unused), width)
    }

    /// Op `swap_bytes`. Of one byte LLVM has none.
    pub(super) fn swap_bytes(&self, x: IntValue<'c>) -> IntValue<'c> {
        if x.get_type().get_bit_width() == 8 { x } else { self.int_intrinsic("llvm.bswap", &[x]) }
    }

    /// A word of this many copies of an integer: as a vector, of which LLVM makes one permutation of bytes.
    fn copies(&self, x: IntValue<'c>, count: u32) -> IntValue<'c> {
        let copies = vec![Value::from(x); count as usize];
        let vector = self.vector(&copies, x.get_type().into());
        let word = self.builder.build_bit_cast(vector, self.int_type(WORD), "");
        word.expect("the builder is positioned").into_int_value()
    }
}
