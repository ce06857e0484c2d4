//! Op `philox`, with the constants of its definition in `tile_ir::ops::philox`.

use super::ir::Ir;
use inkwell::values::IntValue;
use tile_ir::ops::philox::{MULTIPLIERS, ROUNDS, WEYL};

/// Words 0 and 1 at the counter `(position, 0, 0)` under the key `seed`; all are i64.
pub(super) fn philox<'c>(ir: &Ir<'c>, position: IntValue<'c>, seed: IntValue<'c>) -> IntValue<'c> {
    let zero = word(ir, 0);
    let ((mut a, mut b), (mut k, mut l)) = (halves(ir, position), halves(ir, seed));
    let (mut c, mut d) = (zero, zero);
    for _ in 0..ROUNDS {
        let (low, high) = product(ir, a, MULTIPLIERS[0]);
        let (other_low, other_high) = product(ir, c, MULTIPLIERS[1]);
        let mixed = |high, word, key| ir.xor(ir.xor(high, word), key);
        (a, b, c, d) = (mixed(other_high, b, k), other_low, mixed(high, d, l), low);
        (k, l) = (ir.add(k, word(ir, WEYL[0])), ir.add(l, word(ir, WEYL[1])));
    }
    let second = ir.shl(ir.zext_or_trunc(b, 64), ir.i64(32));
    ir.or(ir.zext_or_trunc(a, 64), second)
}

fn word<'c>(ir: &Ir<'c>, value: u32) -> IntValue<'c> {
    ir.int_type(32).const_int(u64::from(value), false)
}

/// The low and the high word of a product.
///
/// As a product of 64 bits its upper half is a chain through all rounds of what LLVM looks for known bits in, which takes
/// most of the time that random numbers take to compile; where an instruction has that half, LLVM doesn't look through it.
fn product<'c>(ir: &Ir<'c>, a: IntValue<'c>, b: u32) -> (IntValue<'c>, IntValue<'c>) {
    match ir.features.upper_product {
        Some(instruction) if !a.is_const() => {
            let b = word(ir, b);
            let high = ir.intrinsic(instruction, &[], &[a.into(), b.into()]);
            (ir.mul(a, b), high.expect("a product has a value").into_int_value())
        }
        _ => halves(ir, ir.mul(ir.zext_or_trunc(a, 64), ir.i64(i64::from(b)))),
    }
}

/// The low and the high word of an i64.
fn halves<'c>(ir: &Ir<'c>, value: IntValue<'c>) -> (IntValue<'c>, IntValue<'c>) {
    let high = ir.lshr(value, ir.i64(32));
    (ir.zext_or_trunc(value, 32), ir.zext_or_trunc(high, 32))
}
