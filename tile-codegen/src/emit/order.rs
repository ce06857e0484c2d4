//! The order of a sort: by number, −0 equal to +0, NaN above all; equal elements by their place.

use super::extremum::NanKey;
use super::ir::{Ir, Value};
use inkwell::values::IntValue;
use tile_ir::DType;
use tile_ir::ops::Predicate;

impl<'c> Ir<'c> {
    /// Whether an element stands before another of its line once they are sorted; `earlier` says whether it did so
    /// before. Never true of an element and itself.
    pub(crate) fn stands_before(
        &self,
        dtype: DType,
        descending: bool,
        element: Value<'c>,
        other: Value<'c>,
        earlier: IntValue<'c>,
    ) -> IntValue<'c> {
        let (low, high) = if descending { (other, element) } else { (element, other) };
        let (above, below) = (self.is_less(dtype, low, high), self.is_less(dtype, high, low));
        self.select_int(earlier, self.xor(below, self.bool(true)), above)
    }

    /// A signed integer that has the order of an element, apart from its place: of 64 bits for elements of 64, otherwise of
    /// 32, whose upper bits alone tell narrower elements apart (`tile_ir::gpu::Sorting` says how many).
    pub(crate) fn order_of(&self, dtype: DType, descending: bool, element: Value<'c>) -> IntValue<'c> {
        let ascending = match element {
            // −0 + 0 is +0.
            Value::FloatValue(x) => {
                self.key_of_float(self.fadd(x, x.get_type().const_zero()), NanKey::Greatest)
            }
            element => self.order_of_integer(dtype, element.into_int_value()),
        };
        if descending { self.xor(ascending, ascending.get_type().const_all_ones()) } else { ascending }
    }

    /// The number in the upper bits; without a sign it is less by half of all numbers.
    fn order_of_integer(&self, dtype: DType, element: IntValue<'c>) -> IntValue<'c> {
        let width = dtype.bits().max(32);
        let constant = |value: u64| self.int_type(width).const_int(value, false);
        let upper = self.shl(self.zext_or_trunc(element, width), constant((width - dtype.bits()).into()));
        let half = if dtype.is_signed() { 0 } else { 1 << (width - 1) };
        self.xor(upper, constant(half))
    }

    fn is_less(&self, dtype: DType, a: Value<'c>, b: Value<'c>) -> IntValue<'c> {
        let less = self.compare(Predicate::Lt, dtype, a, b).into_int_value();
        let (Value::FloatValue(a), Value::FloatValue(b)) = (a, b) else { return less };
        let number_below_nan = self.and(self.is_nan(b), self.xor(self.is_nan(a), self.bool(true)));
        self.or(less, number_below_nan)
    }
}
