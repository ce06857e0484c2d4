//! The scales of a product's factors, as matrix instructions take them: a byte of a word that each lane has.
//!
//! Scales that lie next to each other along the depth are read together, so that such a word has those of successive
//! instructions; others have a word each, which needs no putting together.

use crate::emit::Value;
use crate::gpu::region::Emitter;
use crate::gpu::targets::dialect::Spread;
use inkwell::values::{BasicValue, InstructionOpcode};
use tile_ir::gpu::Product;
use tile_ir::kernel::OpData;
use tile_ir::target::MatrixInstruction;
use tile_layout::linear::Operand;

/// Bytes of a word.
const BYTES: u64 = 4;

/// The scales of a factor that a lane has.
pub(super) struct FactorScales<'c> {
    /// Where each begins, for thread 0, in the order of slots.
    starts: Vec<Vec<u64>>,
    words: Vec<Value<'c>>,
    /// How many scales a word has.
    in_word: u64,
    /// Elements of the factor that one scales, along each of its axes.
    block: [u64; 2],
}

/// What an instruction takes of them: a word, and the number of the byte in it.
#[derive(Clone, Copy)]
pub(super) struct Scale<'c> {
    pub(super) word: Value<'c>,
    pub(super) byte: u64,
}

impl<'c> FactorScales<'c> {
    /// The scale of the part of a factor that begins at a position.
    pub(super) fn of_part(&self, position: &[u64]) -> Scale<'c> {
        let place: Vec<u64> = position.iter().zip(self.block).map(|(at, block)| at / block).collect();
        let slot = self.starts.iter().position(|start| *start == place);
        let slot = slot.expect("scales are cut as their factor is") as u64;
        Scale { word: self.words[(slot / self.in_word) as usize], byte: slot % self.in_word }
    }
}

impl<'c> Emitter<'_, 'c> {
    /// The scales of both factors; `None` of a product that has none.
    pub(super) fn scales(&self, data: &OpData, product: &Product) -> Option<[FactorScales<'c>; 2]> {
        let block = product.instruction.scales?.block.into();
        let of = |operand, tile: usize, block: [u64; 2]| {
            let tile = data.operands[tile];
            let (ir, distribution) = (self.ir, self.scheduled.distribution(tile));
            let depth = if operand == Operand::A { 1 } else { 0 };
            let in_word = distribution.neighbours(depth).min(BYTES);
            let scales = self.tile(tile).values(self.slots(tile));
            let word = |scales: &[Value<'c>]| {
                let packed = ir.words(scales, self.scheduled.dtype(tile))[0];
                ir.resize(packed.into_int_value(), 32, false).into()
            };
            let starts = (0..distribution.slots()).map(|slot| distribution.place(slot, 0)).collect();
            let words = scales.chunks(in_word as usize).map(word).collect();
            FactorScales { starts, words, in_word, block }
        };
        Some([of(Operand::A, 3, [1, block]), of(Operand::B, 4, [block, 1])])
    }

    /// Two scales as the operands of `V_MFMA_SCALE_*`: of each the number of the byte, and the word.
    ///
    /// LLVM takes two words that it knows to be zero for the instruction without scales, whose factors are multiplied by 1 and
    /// not by 2⁻¹²⁷. So it isn't shown a word that may be known.
    pub(super) fn mfma_scales(&self, scales: [Scale<'c>; 2]) -> [Value<'c>; 4] {
        let [mut left, right] = scales;
        if ![left, right].iter().any(|scale| is_of_memory(scale.word)) {
            left.word = self.dialect.opaque(self.ir, left.word.into_int_value(), Spread::Varying).into();
        }
        let byte = |scale: Scale<'c>| Value::from(self.i32(scale.byte));
        [byte(left), left.word, byte(right), right.word]
    }

    /// Two scales as the operands of `mma.sync` with `.block_scale` (PTX ISA): of each the word, the number of the byte, and
    /// that of the lanes of a quad that give it, which are the first ones.
    pub(super) fn mma_sync_scales(&self, scales: [Scale<'c>; 2]) -> [Value<'c>; 6] {
        let half = |number: u64| Value::from(self.ir.context.i16_type().const_int(number, false));
        let [left, right] = scales;
        [left.word, half(left.byte), half(0), right.word, half(right.byte), half(0)]
    }
}

/// The scales in the order in which an instruction is given its factors.
pub(super) fn given<'c>(instruction: &MatrixInstruction, [left, right]: [Scale<'c>; 2]) -> [Scale<'c>; 2] {
    if instruction.exchanged { [right, left] } else { [left, right] }
}

/// Whether a word has bits that memory had, which LLVM doesn't know.
fn is_of_memory(word: Value<'_>) -> bool {
    use InstructionOpcode::{BitCast, ExtractElement, LShr, Load, Trunc, ZExt};
    let Some(made) = word.as_instruction_value() else { return false };
    match made.get_opcode() {
        Load => true,
        BitCast | ExtractElement | LShr | Trunc | ZExt => {
            made.get_operand(0).and_then(|operand| operand.value()).is_some_and(is_of_memory)
        }
        _ => false,
    }
}
