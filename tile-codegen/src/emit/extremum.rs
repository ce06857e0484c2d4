//! The largest or smallest of many floats, as integers that are ordered as the floats are.
//!
//! Of two floats the larger takes a chain of comparisons, where NaN and the sign of zero count; of two integers, one
//! instruction. So what is reduced becomes **keys**: the float's bits, but for the sign turned over where it is negative,
//! which orders −0 below +0. NaN has a key of its own, beyond those of all numbers, on the side where the reduction wants
//! it; read back, that key is NaN again.

use super::ir::{Ir, float_bits};
use inkwell::types::FloatType;
use inkwell::values::{FloatValue, IntValue};

/// Which of two numbers is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extremum {
    Smaller,
    Larger,
}

/// What NaN and a number amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NanRule {
    /// The number.
    Ignored,
    /// NaN.
    Kept,
}

/// On which side of all numbers NaN stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NanKey {
    /// Below them.
    Least,
    /// Above them.
    Greatest,
}

impl<'c> Ir<'c> {
    /// The key of a float.
    pub(crate) fn key_of_float(&self, x: FloatValue<'c>, nan: NanKey) -> IntValue<'c> {
        let key = self.turned_over(self.bits(x));
        let least = 1u64 << (float_bits(x.get_type()) - 1);
        let nan = key.get_type().const_int(if nan == NanKey::Least { least } else { least - 1 }, false);
        self.select_int(self.is_nan(x), nan, key)
    }

    /// The float that has a key.
    pub(crate) fn float_of_key(&self, key: IntValue<'c>, ty: FloatType<'c>) -> FloatValue<'c> {
        self.float_of_bits(self.turned_over(key), ty)
    }

    /// All bits but the sign turned over where the sign is set, which undoes itself.
    fn turned_over(&self, bits: IntValue<'c>) -> IntValue<'c> {
        let width = u64::from(bits.get_type().get_bit_width());
        let signs = self.ashr(bits, bits.get_type().const_int(width - 1, false));
        self.xor(bits, self.and(signs, bits.get_type().const_int(!0u64 >> (65 - width), false)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inkwell::context::Context;

    /// Keys of constants are constants: LLVM folds what is emitted.
    #[test]
    fn keys_are_ordered_as_floats_and_read_back() {
        let context = Context::create();
        let ir = Ir::new(&context, "keys", crate::emit::Features::NONE);
        let function = ir.module.add_function("f", context.void_type().fn_type(&[], false), None);
        ir.builder.position_at_end(context.append_basic_block(function, "entry"));
        let infinity = f64::INFINITY;
        let ordered = [-infinity, -1.5, -1e-40, -0.0, 0.0, 1e-40, 1.0, 2.0, infinity];
        for ty in [ir.f32(), ir.f64()] {
            for (nan, place) in [(NanKey::Least, 0), (NanKey::Greatest, ordered.len())] {
                let key = |x: f64| ir.key_of_float(ty.const_float(x), nan);
                let mut expected = ordered.to_vec();
                expected.insert(place, f64::NAN);
                let keys: Vec<i64> = expected
                    .iter()
                    .map(|&x| key(x).get_sign_extended_constant().expect("it is folded"))
                    .collect();
                assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
                for &x in &expected {
                    let back = ir.float_of_key(key(x), ty).get_constant().expect("it is folded").0;
                    let rounded = ty.const_float(x).get_constant().expect("a constant").0;
                    let same = back.to_bits() == rounded.to_bits() || (back.is_nan() && x.is_nan());
                    assert!(same, "{x} became {back}");
                }
            }
        }
    }
}
