//! Extent expressions as i64 values.

use super::ir::Ir;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tile_ir::Dim;
use tile_ir::dim::Atom;
use tile_ir::ops::BinaryOp;

impl<'c> Ir<'c> {
    /// The value of an extent expression as an i64. As in the evaluator, it is 0 where it would be below zero or a
    /// divisor isn't positive, and division rounds down.
    pub(crate) fn dim(&self, dim: &Dim, size: &dyn Fn(&str) -> IntValue<'c>) -> IntValue<'c> {
        let zero = self.i64(0);
        let or_zero =
            |needed, value| self.select_int(self.icmp(IntPredicate::SGT, needed, zero), value, zero);
        let mut value = self.signed_dim(dim, size);
        if !dim.is_natural() {
            value = or_zero(value, value);
        }
        dim.positive_operands()
            .into_iter()
            .fold(value, |value, divisor| or_zero(self.signed_dim(divisor, size), value))
    }

    /// [`Self::dim`] of what may be negative, such as a stride.
    pub(crate) fn signed_dim(&self, dim: &Dim, size: &dyn Fn(&str) -> IntValue<'c>) -> IntValue<'c> {
        let terms = dim.terms().map(|(factors, coefficient)| {
            let constant = (coefficient != 1 || factors.is_empty()).then(|| self.i64(coefficient));
            let factors = factors.iter().map(|atom| self.atom(atom, size));
            let product = constant.into_iter().chain(factors).reduce(|a, b| self.mul(a, b));
            product.expect("a term has a coefficient or a factor")
        });
        terms.reduce(|a, b| self.add(a, b)).unwrap_or_else(|| self.i64(0))
    }

    fn atom(&self, atom: &Atom, size: &dyn Fn(&str) -> IntValue<'c>) -> IntValue<'c> {
        let divide = |a: &Dim, b: &Dim| self.euclid(a, b, size);
        match atom {
            Atom::Size(name) => size(name),
            Atom::Param(name) => unreachable!("an instance binds the parameter {name}"),
            Atom::FloorDiv(a, b) => divide(a, b).0,
            Atom::Rem(a, b) => divide(a, b).1,
            Atom::Min(a, b) => self.extreme(IntPredicate::SLT, a, b, size),
            Atom::Max(a, b) => self.extreme(IntPredicate::SGT, a, b, size),
            // Of a number that isn't positive these are any numbers, too.
            Atom::Ilog2(a) => {
                let zeros = self.count_zeros("llvm.ctlz", self.signed_dim(a, size));
                self.sub(self.i64(i64::from(i64::BITS) - 1), zeros)
            }
            Atom::NextPowerOfTwo(a) => {
                let (number, one) = (self.signed_dim(a, size), self.i64(1));
                let is_more = self.icmp(IntPredicate::SGT, number, one);
                let below = self.select_int(is_more, self.sub(number, one), self.i64(0));
                let bits = self.sub(self.i64(i64::BITS.into()), self.count_zeros("llvm.ctlz", below));
                self.shl(one, bits)
            }
            Atom::CeilDiv(a, b) => {
                let (quotient, rest) = divide(a, b);
                let inexact = self.icmp(IntPredicate::NE, rest, self.i64(0));
                self.add(quotient, self.zext_or_trunc(inexact, 64))
            }
        }
    }

    /// The one of two for which a comparison with the other holds.
    fn extreme(
        &self,
        predicate: IntPredicate,
        a: &Dim,
        b: &Dim,
        size: &dyn Fn(&str) -> IntValue<'c>,
    ) -> IntValue<'c> {
        let (a, b) = (self.signed_dim(a, size), self.signed_dim(b, size));
        self.select_int(self.icmp(predicate, a, b), a, b)
    }

    /// Quotient and remainder by a positive divisor, the remainder not negative. By another they are any numbers.
    fn euclid(&self, a: &Dim, b: &Dim, size: &dyn Fn(&str) -> IntValue<'c>) -> (IntValue<'c>, IntValue<'c>) {
        let signed = !(a.is_natural() && b.is_natural());
        let by_constant = b.as_const().is_some_and(|b| b > 0);
        let (a, b) = (self.signed_dim(a, size), self.signed_dim(b, size));
        if by_constant && !signed {
            return (self.udiv(a, b), self.urem(a, b));
        }
        let quotient = self.int_binary(BinaryOp::Div, signed, a, b);
        let rest = self.sub(a, self.mul(quotient, b));
        if !signed {
            return (quotient, rest);
        }
        let below = self.icmp(IntPredicate::SLT, rest, self.i64(0));
        let (lower, raised) = (self.sub(quotient, self.i64(1)), self.add(rest, b));
        (self.select_int(below, lower, quotient), self.select_int(below, raised, rest))
    }
}
