//! How a lane reads the register of the lane whose number differs from its own in one bit, by target.
//!
//! AMD's lanes read others of their row of 16 by the operand of an instruction (DPP), which takes part in whatever
//! instruction uses the value; what lies further away comes by instructions of their own. (CDNA3 ISA, "Data Parallel
//! Processing"; RDNA3 ISA, the same, and `V_PERMLANEX16_B32`; `DS_SWIZZLE_B32` and `DS_BPERMUTE_B32` in both.)

use crate::emit::{Ir, Value};
use inkwell::values::IntValue;

/// The instructions by which lanes give each other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shuffle {
    /// By the bits in which the lanes' numbers differ; the intrinsic takes the mask of the lanes that take part.
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
const ROW_HALF_MIRROR: u64 = 0x141;
const ROW_ROTATE_8: u64 = 0x128;
const ROW_XMASK: u64 = 0x160;

/// `DS_SWIZZLE_B32`: of 32 lanes, those whose number differs in bit 4.
const SWIZZLE_XOR_16: u64 = 16 << 10 | 31;

/// The lanes of a row in order, for `V_PERMLANEX16_B32`: 4 bits each.
const ROW_IN_ORDER: [u64; 2] = [0x7654_3210, 0xfedc_ba98];

impl Shuffle {
    /// A word of the lane whose number differs in the bit of `distance`; `thread` is the running thread's number, an
    /// i32, and every one of the `threads` of the block takes part.
    pub(super) fn word<'c>(
        self,
        ir: &Ir<'c>,
        (threads, thread): (u64, IntValue<'c>),
        word: IntValue<'c>,
        distance: u64,
    ) -> IntValue<'c> {
        let i32 = |value: u64| ir.context.i32_type().const_int(value, false);
        match (self, distance) {
            (Shuffle::Butterfly(intrinsic), _) => {
                let lanes = if threads < 32 { (1 << threads) - 1 } else { u64::from(u32::MAX) };
                given(ir.intrinsic(
                    intrinsic,
                    &[],
                    &[i32(lanes), word, i32(distance), i32(31)].map(Value::from),
                ))
            }
            (_, 1) => dpp(ir, word, QUAD_SWAPPED),
            (_, 2) => dpp(ir, word, QUAD_HALVES_SWAPPED),
            (Shuffle::Rdna, 4 | 8) => dpp(ir, word, ROW_XMASK | distance),
            (Shuffle::Rdna, _) => {
                let [low, high] = ROW_IN_ORDER.map(|lanes| Value::from(i32(lanes)));
                let no = Value::from(ir.bool(false));
                let operands = [word.into(), word.into(), low, high, no, no];
                given(ir.intrinsic("llvm.amdgcn.permlanex16", &[word.get_type().into()], &operands))
            }
            // 7 ^ 3 is 4.
            (Shuffle::Cdna, 4) => dpp(ir, dpp(ir, word, ROW_HALF_MIRROR), QUAD_MIRRORED),
            (Shuffle::Cdna, 8) => dpp(ir, word, ROW_ROTATE_8),
            (Shuffle::Cdna, 16) => {
                let operands = [word, i32(SWIZZLE_XOR_16)].map(Value::from);
                given(ir.intrinsic("llvm.amdgcn.ds.swizzle", &[], &operands))
            }
            (Shuffle::Cdna, _) => {
                let address = ir.shl(ir.xor(thread, i32(distance)), i32(2));
                given(ir.intrinsic("llvm.amdgcn.ds.bpermute", &[], &[address.into(), word.into()]))
            }
        }
    }
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
