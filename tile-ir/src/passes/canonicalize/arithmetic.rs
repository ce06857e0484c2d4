//! Rules about leaf ops.

use super::{Operand, Rewrite, Rule, Site};
use crate::dtype::{Class, DType};
use crate::kernel::ValueId;
use crate::ops::{BinaryOp, Literal, Op, Predicate, UnaryOp};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "constant to the right", rewrite: constant_right },
    Rule { name: "neutral operand", rewrite: neutral },
    Rule { name: "absorbing operand", rewrite: absorbing },
    Rule { name: "nothing divided", rewrite: nothing_divided },
    Rule { name: "operand twice", rewrite: twice },
    Rule { name: "compare with itself", rewrite: compare_itself },
    Rule { name: "negation of a comparison", rewrite: negated_comparison },
    Rule { name: "undone", rewrite: undone },
    Rule { name: "magnitude", rewrite: magnitude },
    Rule { name: "select of one arm", rewrite: select_arm },
    Rule { name: "select of truths", rewrite: select_truths },
    Rule { name: "select by a negation", rewrite: select_negated },
    Rule { name: "mul_add by one", rewrite: mul_add_one },
    Rule { name: "division by a power of two", rewrite: power_of_two },
];

/// `5 + x` is `x + 5`, `5 < x` is `x > 5`.
fn constant_right(site: &Site<'_>) -> Option<Rewrite> {
    let &[a, b] = site.data().operands.as_slice() else { return None };
    let op = match site.data().op {
        Op::Binary(op) if op.is_commutative() => Op::Binary(op),
        Op::Compare(predicate) => Op::Compare(predicate.swapped()),
        _ => return None,
    };
    let swaps = site.number(a).is_some() && site.number(b).is_none();
    swaps.then(|| Rewrite::Op(op, vec![b.into(), a.into()]))
}

/// `x + 0` of integers, `x + −0` and `x − 0` of floats, `x * 1` and their kin are `x`.
fn neutral(site: &Site<'_>) -> Option<Rewrite> {
    use BinaryOp::*;
    let (op, a, b) = site.binary()?;
    let dtype = site.dtype(b)?;
    let is_neutral = match site.number(b)? {
        Literal::Int(number) => match op {
            Add | Sub | Or | Xor | SaturatingAdd | SaturatingSub => number == 0,
            Mul | Div | DivFloor | DivCeil | SaturatingMul => number == 1,
            Rem | RemEuclid => number == 0,
            Shl | Shr | RotateLeft | RotateRight => number.rem_euclid(dtype.bits().into()) == 0,
            And => number == ones(dtype),
            Min => number == dtype.int_range().1,
            Max => number == dtype.int_range().0,
            _ => false,
        },
        Literal::Float(number) => match op {
            // `+0` isn't neutral: `−0 + 0` is `0`.
            Add => number == 0.0 && number.is_sign_negative(),
            Sub => number == 0.0 && number.is_sign_positive(),
            Mul | Div => number == 1.0,
            // `max` ignores NaN, so that −∞ is its neutral number for numbers only.
            Minimum => number == f64::INFINITY,
            Maximum => number == f64::NEG_INFINITY,
            _ => false,
        },
    };
    is_neutral.then_some(Rewrite::Value(a))
}

/// Every bit set.
fn ones(dtype: DType) -> i128 {
    match dtype.class() {
        Class::Signed => -1,
        _ => dtype.int_range().1,
    }
}

/// `x * 0`, `x & 0`, `x | !0`, `x % 1` and their kin, of integers, are a number.
fn absorbing(site: &Site<'_>) -> Option<Rewrite> {
    use BinaryOp::*;
    let (op, _, b) = site.binary()?;
    let (number, dtype) = (site.int(b)?, site.dtype(b)?);
    let (least, greatest) = dtype.int_range();
    let result = match (op, number) {
        (Mul | And | SaturatingMul | MulHi | Div | DivFloor | DivCeil, 0) => 0,
        (Rem | RemEuclid, 1) => 0,
        (Or, number) if number == ones(dtype) => number,
        (Min, number) if number == least => number,
        (Max, number) if number == greatest => number,
        _ => return None,
    };
    Some(Rewrite::Number(Literal::Int(result)))
}

/// `0 / x`, `0 % x`, and 0 shifted or rotated by `x`, of integers, are 0, whatever `x` is.
fn nothing_divided(site: &Site<'_>) -> Option<Rewrite> {
    use BinaryOp::{Div, DivCeil, DivFloor, Rem, RemEuclid};
    let (op, a, _) = site.binary()?;
    let applies = op.moves_bits() || matches!(op, Div | DivFloor | DivCeil | Rem | RemEuclid);
    (applies && site.int(a)? == 0).then_some(Rewrite::Number(Literal::Int(0)))
}

/// `x & x` and its kin are `x`; `x - x` and `x ^ x` of integers are 0. Of floats `x - x` isn't: `∞ - ∞`.
fn twice(site: &Site<'_>) -> Option<Rewrite> {
    use BinaryOp::{And, Max, Maximum, Min, Minimum, Or, Rem, SaturatingSub, Sub, Xor};
    let (op, a, b) = site.binary()?;
    let is_float = site.dtype(a)?.is_float();
    match op {
        _ if a != b => None,
        And | Or | Min | Max | Minimum | Maximum => Some(Rewrite::Value(a)),
        Sub | Xor | Rem | SaturatingSub if !is_float => Some(Rewrite::Number(Literal::Int(0))),
        _ => None,
    }
}

/// `x == x`, `x < x` of integers. Of floats a NaN isn't equal to itself.
fn compare_itself(site: &Site<'_>) -> Option<Rewrite> {
    let Op::Compare(predicate) = site.data().op else { return None };
    let (a, b) = (site.operand(0), site.operand(1));
    let holds = matches!(predicate, Predicate::Eq | Predicate::Le | Predicate::Ge);
    (a == b && !site.dtype(a)?.is_float()).then_some(Rewrite::Number(Literal::Int(holds.into())))
}

/// `!(a < b)` of integers is `a >= b`.
fn negated_comparison(site: &Site<'_>) -> Option<Rewrite> {
    let inner = operand_of(site, UnaryOp::Not)?;
    let data = site.definition(inner)?;
    let Op::Compare(predicate) = data.op else { return None };
    let (a, b) = (data.operands[0], data.operands[1]);
    let is_float = site.dtype(a)?.is_float();
    (!is_float).then(|| Rewrite::Op(Op::Compare(predicate.negated()), vec![a.into(), b.into()]))
}

/// The operand of an op, if it is this one.
fn operand_of(site: &Site<'_>, op: UnaryOp) -> Option<ValueId> {
    (site.data().op == Op::Unary(op)).then(|| site.operand(0))
}

/// The operand of the op that gives a value, if it is this one.
fn inner(site: &Site<'_>, value: ValueId, op: UnaryOp) -> Option<ValueId> {
    site.definition(value).filter(|data| data.op == Op::Unary(op)).map(|data| data.operands[0])
}

/// `-(-x)`, `!!x`, and bytes or bits reversed twice, are `x`.
fn undone(site: &Site<'_>) -> Option<Rewrite> {
    use UnaryOp::{Neg, Not, ReverseBits, SwapBytes};
    let Op::Unary(op @ (Neg | Not | SwapBytes | ReverseBits)) = site.data().op else { return None };
    inner(site, site.operand(0), op).map(Rewrite::Value)
}

/// `|-x|` and `||x||` are `|x|`.
fn magnitude(site: &Site<'_>) -> Option<Rewrite> {
    let operand = operand_of(site, UnaryOp::Abs)?;
    if inner(site, operand, UnaryOp::Abs).is_some() {
        return Some(Rewrite::Value(operand));
    }
    let negated = inner(site, operand, UnaryOp::Neg)?;
    Some(Rewrite::Op(Op::Unary(UnaryOp::Abs), vec![negated.into()]))
}

/// The condition and arms of a `select`.
fn select(site: &Site<'_>) -> Option<(ValueId, ValueId, ValueId)> {
    match (&site.data().op, site.data().operands.as_slice()) {
        (Op::Select, &[condition, a, b]) => Some((condition, a, b)),
        _ => None,
    }
}

/// Arms that are equal, or a condition that is known.
fn select_arm(site: &Site<'_>) -> Option<Rewrite> {
    let (condition, a, b) = select(site)?;
    if a == b {
        return Some(Rewrite::Value(a));
    }
    let holds = site.int(condition)? != 0;
    Some(Rewrite::Value(if holds { a } else { b }))
}

/// `select(c, true, false)` is `c`, `select(c, false, true)` is `!c`.
fn select_truths(site: &Site<'_>) -> Option<Rewrite> {
    let (condition, a, b) = select(site)?;
    if site.dtype(a)? != DType::Bool {
        return None;
    }
    match (site.int(a)?, site.int(b)?) {
        (1, 0) => Some(Rewrite::Value(condition)),
        (0, 1) => Some(Rewrite::Op(Op::Unary(UnaryOp::Not), vec![condition.into()])),
        _ => None,
    }
}

/// `select(!c, a, b)` is `select(c, b, a)`.
fn select_negated(site: &Site<'_>) -> Option<Rewrite> {
    let (condition, a, b) = select(site)?;
    let negated = inner(site, condition, UnaryOp::Not)?;
    Some(Rewrite::Op(Op::Select, vec![negated.into(), b.into(), a.into()]))
}

/// `1 * b + c`, rounded once, is `b + c`.
fn mul_add_one(site: &Site<'_>) -> Option<Rewrite> {
    let (Op::MulAdd, &[a, b, c]) = (&site.data().op, site.data().operands.as_slice()) else { return None };
    let is_one = |value| site.number(value) == Some(Literal::Float(1.0));
    let other = if is_one(a) { b } else { a };
    (is_one(a) || is_one(b)).then(|| Rewrite::Op(Op::Binary(BinaryOp::Add), vec![other.into(), c.into()]))
}

/// Quotient and remainder by a power of two, of a number that isn't negative, are a shift and a mask.
fn power_of_two(site: &Site<'_>) -> Option<Rewrite> {
    use BinaryOp::{And, Div, DivFloor, Rem, RemEuclid, Shr};
    let (op, a, b) = site.binary()?;
    let divisor = site.int(b).filter(|&number| number > 1 && number.count_ones() == 1)?;
    let natural = !site.dtype(a)?.is_signed()
        || site.analyses.ranges.interval(site.kernel, site.op, a).is_some_and(|(low, _)| low >= 0);
    let (op, number) = match op {
        Div | DivFloor => (Shr, i128::from(divisor.trailing_zeros())),
        Rem | RemEuclid => (And, divisor - 1),
        _ => return None,
    };
    natural.then(|| Rewrite::Op(Op::Binary(op), vec![a.into(), Operand::Number(Literal::Int(number))]))
}
