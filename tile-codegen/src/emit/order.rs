//! The order of a sort: by number, −0 equal to +0, NaN above all; equal elements by their place.

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
        (element, other): (Value<'c>, Value<'c>),
        earlier: IntValue<'c>,
    ) -> IntValue<'c> {
        let (low, high) = if descending { (other, element) } else { (element, other) };
        let (above, below) = (self.is_less(dtype, low, high), self.is_less(dtype, high, low));
        self.select_int(earlier, self.xor(below, self.bool(true)), above)
    }

    fn is_less(&self, dtype: DType, a: Value<'c>, b: Value<'c>) -> IntValue<'c> {
        let less = self.compare(Predicate::Lt, dtype, a, b).into_int_value();
        let (Value::FloatValue(a), Value::FloatValue(b)) = (a, b) else { return less };
        let number_below_nan = self.and(self.is_nan(b), self.xor(self.is_nan(a), self.bool(true)));
        self.or(less, number_below_nan)
    }
}
