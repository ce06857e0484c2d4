//! Rules about conversions: those that change nothing, and two that are one.

use super::{Rewrite, Rule, Site};
use crate::dtype::DType;
use crate::ops::Op;
use crate::types::Elem;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "cast to the same format", rewrite: same_format },
    Rule { name: "cast of a cast", rewrite: cast_of_cast },
    Rule { name: "bitcast of a bitcast", rewrite: bitcast_of_bitcast },
];

fn target(op: &Op) -> Option<&Elem> {
    match op {
        Op::Cast(elem) | Op::CastWith(elem, _) | Op::Bitcast(elem) => Some(elem),
        _ => None,
    }
}

fn same_format(site: &Site<'_>) -> Option<Rewrite> {
    let to = target(&site.data().op)?.known()?;
    (site.dtype(site.operand(0))? == to).then(|| Rewrite::Value(site.operand(0)))
}

/// Where the first cast loses nothing, the second alone gives the same.
fn cast_of_cast(site: &Site<'_>) -> Option<Rewrite> {
    let Op::Cast(to) = &site.data().op else { return None };
    let inner = site.definition(site.operand(0)).filter(|data| matches!(data.op, Op::Cast(_)))?;
    let source = inner.operands[0];
    let (from, through, to) = (site.dtype(source)?, site.dtype(site.operand(0))?, to.known()?);
    // A float saturates where an integer wraps, so an integer that was a float may differ from one that wasn't.
    let alike = from.is_float() || !through.is_float() || to.is_float() || to.contains_integers_of(from);
    let same = lossless(from, through) && alike;
    same.then(|| Rewrite::Op(Op::Cast(Elem::Known(to)), vec![source.into()]))
}

fn bitcast_of_bitcast(site: &Site<'_>) -> Option<Rewrite> {
    let Op::Bitcast(to) = &site.data().op else { return None };
    let inner = site.definition(site.operand(0)).filter(|data| matches!(data.op, Op::Bitcast(_)))?;
    Some(Rewrite::Op(Op::Bitcast(to.clone()), vec![inner.operands[0].into()]))
}

/// Whether every number of a format is one of the other.
fn lossless(from: DType, to: DType) -> bool {
    match (from.float_format(), to.float_format()) {
        (None, None) => to.contains_integers_of(from),
        (None, Some(format)) => {
            let (low, high) = from.int_range();
            let limit = 1i128 << (format.mantissa_bits + 1);
            format.is_signed && -limit <= low && high <= limit
        }
        (Some(a), Some(b)) => {
            let grows = a.exponent_bits <= b.exponent_bits && a.mantissa_bits <= b.mantissa_bits;
            grows && (b.has_infinity || !a.has_infinity) && (b.is_signed || !a.is_signed)
        }
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Array;
    use crate::ops::Literal;

    /// Every format of 16 bits or less through every format: all numbers come back where the table says so.
    #[test]
    fn lossless_casts_lose_nothing() {
        for &from in DType::ALL.iter().filter(|from| from.bits() <= 16) {
            for &to in DType::ALL {
                let patterns = (0..1i128 << from.bits()).map(|bits| match from.is_float() {
                    true => Array::scalar(
                        if from.bits() == 8 { DType::U8 } else { DType::U16 },
                        Literal::Int(bits),
                    )
                    .bitcast(from),
                    false => Array::scalar(from, Literal::Int(bits)),
                });
                let kept = patterns.clone().all(|number| {
                    let there = number.cast(to);
                    let is_nan = number.get_f64(0).is_nan();
                    is_nan && to.is_float()
                        || !is_nan && there.get_f64(0).to_bits() == number.get_f64(0).to_bits()
                });
                assert!(kept || !lossless(from, to), "{from} to {to}");
            }
        }
        assert!(lossless(DType::F16, DType::F32) && lossless(DType::U8, DType::BF16));
        assert!(!lossless(DType::BF16, DType::F16) && !lossless(DType::I32, DType::F32));
    }
}
