//! Two f32 rounded by one instruction of AMD's. LLVM has no intrinsic for it: it selects the instruction where a pair is
//! truncated, which the host that runs the same code has no instruction for. So the emitter calls a declaration, which
//! the executor binds and the first step towards the back end replaces: calls of unknown functions would have LLVM keep
//! registers for these.
//!
//! `tile.round.bf16x2`, `tile.round.f16x2`: (f32, f32) → i32, the first in the upper half, to nearest even (CDNA4 ISA,
//! `V_CVT_PK_BF16_F32`, `V_CVT_PK_F16_F32`).

use super::declared::{replace_calls, replace_uses};
use crate::emit::Ir;
use inkwell::types::VectorType;
use inkwell::values::{BasicValueEnum, InstructionValue};

pub(in crate::gpu) const BF16: &str = "tile.round.bf16x2";
pub(in crate::gpu) const F16: &str = "tile.round.f16x2";

/// Puts the truncation of a pair in place of every call of a declaration above.
pub(in crate::gpu) fn expand(ir: &Ir<'_>) {
    let formats = [(BF16, ir.context.bf16_type().vec_type(2)), (F16, ir.context.f16_type().vec_type(2))];
    let known = |name: &str| formats.iter().find(|(format, _)| *format == name).map(|&(_, pair)| pair);
    replace_calls(ir, known, |call, &pair| truncate(ir, call, pair));
}

fn truncate<'c>(ir: &Ir<'c>, call: InstructionValue<'c>, pair: VectorType<'c>) {
    let operand = |i: u32| -> BasicValueEnum<'c> {
        call.get_operand(i).expect("the declaration has two parameters").expect_value("a number")
    };
    let wide = ir.pair_of_floats(operand(1).into_float_value(), operand(0).into_float_value());
    let narrow = ir.builder.build_float_trunc(wide, pair, "").expect("the builder is positioned");
    let word = ir.builder.build_bit_cast(narrow, ir.context.i32_type(), "");
    replace_uses(call, word.expect("a pair has 32 bits"));
}
