//! How a lane reads the register of the lane whose number differs from its own in some bits, by target.
//!
//! AMD's lanes read others of their row of 16 by the operand of an instruction (DPP), which takes part in whatever
//! instruction uses the value; what lies further away comes by instructions of their own. (CDNA3 ISA, "Data Parallel
//! Processing"; RDNA3 ISA, the same, and `V_PERMLANEX16_B32`; `DS_SWIZZLE_B32` and `DS_BPERMUTE_B32` in both.)

use crate::emit::{Ir, Value};
use inkwell::values::IntValue;

/// The instructions by which lanes give each other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) enum Shuffle {
    /// By the bits in which the lanes' numbers differ, known or not; the intrinsic takes the mask of the lanes that take
    /// part.
    Butterfly(&'static str),
    /// DPP of CDNA, whose waves have 64 lanes.
    Cdna,
    /// DPP of RDNA, in waves of 32 lanes.
    Rdna,
}

/// Controls of DPP: lanes of a quad in another order, two bits each; half rows and rows mirrored; rows rotated by 8;
/// lanes whose number differs in these bits.
const QUAD_SWAPPED: u64 = 0b10_11_00_01;
const QUAD_HALVES_SWAPPED: u64 = 0b01_00_11_10;
const QUAD_MIRRORED: u64 = 0b00_01_10_11;
const ROW_MIRROR: u64 = 0x140;
const ROW_HALF_MIRROR: u64 = 0x141;
const ROW_ROTATE_8: u64 = 0x128;
const ROW_XMASK: u64 = 0x160;

/// `DS_SWIZZLE_B32`: of 32 lanes, those whose number differs in these bits.
const fn swizzle_xor(bits: u64) -> u64 {
    bits << 10 | 31
}

/// The lanes of a row in order and backwards, for `V_PERMLANEX16_B32`: 4 bits each.
const ROW_IN_ORDER: [u64; 2] = [0x7654_3210, 0xfedc_ba98];
const ROW_BACKWARDS: [u64; 2] = [0x89ab_cdef, 0x0123_4567];

impl Shuffle {
    /// A word of the lane whose number differs in these bits, the same for all lanes: by an instruction for these bits
    /// where they are known and there is one. `thread` is the running thread's number, an i32, and every one of the
    /// `threads` of the block takes part.
    pub(in crate::gpu) fn word<'c>(
        self,
        ir: &Ir<'c>,
        threads: u64,
        thread: IntValue<'c>,
        word: IntValue<'c>,
        bits: IntValue<'c>,
    ) -> IntValue<'c> {
        let i32 = |value: u64| ir.context.i32_type().const_int(value, false);
        if let Shuffle::Butterfly(intrinsic) = self {
            let lanes = if threads < 32 { (1 << threads) - 1 } else { u64::from(u32::MAX) };
            return given(ir.intrinsic(intrinsic, &[], &[i32(lanes), word, bits, i32(31)].map(Value::from)));
        }
        match (bits.get_zero_extended_constant(), self) {
            (Some(1), _) => dpp(ir, word, QUAD_SWAPPED),
            (Some(2), _) => dpp(ir, word, QUAD_HALVES_SWAPPED),
            (Some(3), _) => dpp(ir, word, QUAD_MIRRORED),
            (Some(7), _) => dpp(ir, word, ROW_HALF_MIRROR),
            (Some(15), _) => dpp(ir, word, ROW_MIRROR),
            (Some(known @ 4..=14), Shuffle::Rdna) => dpp(ir, word, ROW_XMASK | known),
            (Some(16), Shuffle::Rdna) => other_row(ir, word, ROW_IN_ORDER),
            (Some(31), Shuffle::Rdna) => other_row(ir, word, ROW_BACKWARDS),
            // 7 ^ 3 is 4.
            (Some(4), _) => dpp(ir, dpp(ir, word, ROW_HALF_MIRROR), QUAD_MIRRORED),
            (Some(8), _) => dpp(ir, word, ROW_ROTATE_8),
            (Some(known @ 16..=31), Shuffle::Cdna) => {
                let operands = [word, i32(swizzle_xor(known))].map(Value::from);
                given(ir.intrinsic("llvm.amdgcn.ds.swizzle", &[], &operands))
            }
            _ => {
                let address = ir.shl(ir.xor(thread, bits), i32(2));
                given(ir.intrinsic("llvm.amdgcn.ds.bpermute", &[], &[address.into(), word.into()]))
            }
        }
    }
}

/// A word of the other one of two rows, from the lanes that are named.
fn other_row<'c>(ir: &Ir<'c>, word: IntValue<'c>, lanes: [u64; 2]) -> IntValue<'c> {
    let [low, high] = lanes.map(|lanes| Value::from(ir.context.i32_type().const_int(lanes, false)));
    let no = Value::from(ir.bool(false));
    let operands = [word.into(), word.into(), low, high, no, no];
    given(ir.intrinsic("llvm.amdgcn.permlanex16", &[word.get_type().into()], &operands))
}

/// A word of another lane of the row, all of whose lanes take part.
fn dpp<'c>(ir: &Ir<'c>, word: IntValue<'c>, control: u64) -> IntValue<'c> {
    let i32 = |value: u64| Value::from(ir.context.i32_type().const_int(value, false));
    let (every_row, every_bank) = (i32(0xf), i32(0xf));
    let operands = [i32(0), word.into(), i32(control), every_row, every_bank, ir.bool(true).into()];
    given(ir.intrinsic("llvm.amdgcn.update.dpp", &[word.get_type().into()], &operands))
}

fn given(word: Option<Value<'_>>) -> IntValue<'_> {
    word.expect("an exchange has a result").into_int_value()
}
