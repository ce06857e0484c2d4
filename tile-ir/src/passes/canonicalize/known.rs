//! Rules that use what is known of integers: their ranges and divisors.

use super::{Rewrite, Rule, Site};
use crate::kernel::ValueId;
use crate::ops::{BinaryOp, Literal, Op, Predicate};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "one number possible", rewrite: one_number },
    Rule { name: "min and max of ordered numbers", rewrite: ordered },
    Rule { name: "comparison of ordered numbers", rewrite: compared },
    Rule { name: "division by a larger number", rewrite: by_larger },
    Rule { name: "remainder of a multiple", rewrite: of_multiple },
    Rule { name: "quotient times divisor", rewrite: quotient_times },
];

/// Whether `a <= b` holds of values as stored.
fn is_at_most(site: &Site<'_>, a: ValueId, b: ValueId) -> bool {
    site.analyses.ranges.is_at_most(site.kernel, site.op, a, b)
}

/// Whether `a < b` does.
fn is_less(site: &Site<'_>, a: ValueId, b: ValueId) -> bool {
    site.analyses.ranges.is_less(site.kernel, site.op, a, b)
}

fn one_number(site: &Site<'_>) -> Option<Rewrite> {
    let op = &site.data().op;
    let computes = op.is_leaf() || matches!(op, Op::BlockIndex | Op::BlockId { .. } | Op::BlockCount { .. });
    if !computes || matches!(op, Op::Constant { .. }) {
        return None;
    }
    let (low, high) = site.analyses.ranges.defined_interval(site.kernel, site.result())?;
    (low == high).then_some(Rewrite::Number(Literal::Int(low)))
}

fn ordered(site: &Site<'_>) -> Option<Rewrite> {
    let (op, a, b) = site.binary()?;
    let (low, high) = match op {
        BinaryOp::Min => (a, b),
        BinaryOp::Max => (b, a),
        _ => return None,
    };
    if is_at_most(site, low, high) {
        return Some(Rewrite::Value(a));
    }
    is_at_most(site, high, low).then_some(Rewrite::Value(b))
}

fn compared(site: &Site<'_>) -> Option<Rewrite> {
    let Op::Compare(predicate) = site.data().op else { return None };
    let (a, b) = (site.operand(0), site.operand(1));
    let (holds, fails) = match predicate {
        Predicate::Lt => (is_less(site, a, b), is_at_most(site, b, a)),
        Predicate::Le => (is_at_most(site, a, b), is_less(site, b, a)),
        Predicate::Gt => (is_less(site, b, a), is_at_most(site, a, b)),
        Predicate::Ge => (is_at_most(site, b, a), is_less(site, a, b)),
        Predicate::Eq => (false, is_less(site, a, b) || is_less(site, b, a)),
        Predicate::Ne => (is_less(site, a, b) || is_less(site, b, a), false),
    };
    (holds || fails).then_some(Rewrite::Number(Literal::Int(holds.into())))
}

/// `x / n` is 0 and `x % n` is `x` where `0 <= x < n`.
fn by_larger(site: &Site<'_>) -> Option<Rewrite> {
    let (op, a, b) = site.binary()?;
    let (low, _) = site.analyses.ranges.interval(site.kernel, site.op, a)?;
    if low < 0 || !is_less(site, a, b) {
        return None;
    }
    match op {
        BinaryOp::Div | BinaryOp::DivFloor => Some(Rewrite::Number(Literal::Int(0))),
        BinaryOp::Rem | BinaryOp::RemEuclid => Some(Rewrite::Value(a)),
        _ => None,
    }
}

/// Whether a number divides a value.
fn divides(site: &Site<'_>, number: i128, value: ValueId) -> bool {
    u64::try_from(number).is_ok_and(|number| site.analyses.divisors.divides(number, value))
}

/// `x % d` is 0 where `d` divides `x`.
fn of_multiple(site: &Site<'_>) -> Option<Rewrite> {
    let (BinaryOp::Rem | BinaryOp::RemEuclid, a, b) = site.binary()? else { return None };
    divides(site, site.int(b)?, a).then_some(Rewrite::Number(Literal::Int(0)))
}

/// `x / d * d` is `x` where `d` divides `x`.
fn quotient_times(site: &Site<'_>) -> Option<Rewrite> {
    let (BinaryOp::Mul | BinaryOp::Shl, quotient, factor) = site.binary()? else { return None };
    let data = site.definition(quotient)?;
    let &[dividend, divisor] = data.operands.as_slice() else { return None };
    let (by, amount) = (site.int(divisor)?, site.int(factor)?);
    let undoes = match (site.binary()?.0, &data.op) {
        (BinaryOp::Mul, Op::Binary(BinaryOp::Div | BinaryOp::DivFloor | BinaryOp::DivCeil)) => by == amount,
        (BinaryOp::Mul, Op::Binary(BinaryOp::Shr)) => shifted(by).is_some_and(|by| by == amount),
        (BinaryOp::Shl, Op::Binary(BinaryOp::Shr)) => by == amount,
        _ => false,
    };
    let by = if data.op == Op::Binary(BinaryOp::Shr) { shifted(by)? } else { by };
    (undoes && divides(site, by, dividend)).then_some(Rewrite::Value(dividend))
}

/// What a shift by so many bits multiplies by.
fn shifted(amount: i128) -> Option<i128> {
    (0..63).contains(&amount).then(|| 1 << amount)
}
