//! What is computed of literals and extents when the macro expands.

use super::operators::as_dim;
use crate::copies::Occurrence;
use crate::diagnostic::Diagnostic;
use crate::lower::known::{computed, known};
use crate::lower::{Lowered, Lowering};
use crate::span::Span;
use crate::value::{Int, Val, has_a_format};
use tile_ir::array::wrap_int;
use tile_ir::ops::BinaryOp;
use tile_ir::{DType, Dim, Elem};

/// Whether an op is one of those that extents have.
fn is_arithmetic(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem)
}

/// The fewest bits of an integer format that has this number.
fn fewest_bits(value: i128) -> u32 {
    let holds = |&bits: &u32| (-(1i128 << (bits - 1))..1i128 << bits).contains(&value);
    [8, 16, 32].into_iter().find(holds).unwrap_or(64)
}

/// Where the literals are written that two numbers are made of.
fn places(sides: [&Val; 2]) -> Vec<Occurrence> {
    let places = sides.iter().flat_map(|side| match side {
        Val::Int(int) => int.places.as_slice(),
        _ => &[],
    });
    places.copied().collect()
}

/// A literal or an extent shifted by a number that is known, where 32 bits hold the result. `bits` is the width of the literal's
/// format if that is known: a distance counts modulo it.
fn shifted(op: BinaryOp, value: &Val, by: &Val, bits: Option<u32>) -> Option<Val> {
    let places = places([value, by]);
    let by = as_dim(by)?.as_const().filter(|by| (0..31).contains(by))?;
    let power = 1i64 << by;
    let is_shorter = |least: i128| by < bits.unwrap_or_else(|| fewest_bits(least)).into();
    let made = |int: &Int, number| Val::Int(Int { value: number, places, ..int.clone() });
    match (op, value) {
        (BinaryOp::Shl, Val::Int(int)) => {
            let shifted = int.value.checked_mul(power.into())?;
            let fits = i32::try_from(shifted).is_ok() && is_shorter(shifted);
            fits.then(|| made(int, shifted))
        }
        (BinaryOp::Shr, Val::Int(int)) => {
            let shifted = int.value.div_euclid(power.into());
            is_shorter(int.value).then(|| made(int, shifted))
        }
        (BinaryOp::Shl, Val::Dim(value)) => symbolic(value.clone() * Dim::from(power)),
        (BinaryOp::Shr, Val::Dim(value)) => symbolic(value.floor_div(&Dim::from(power))),
        _ => None,
    }
}

/// An extent that was computed, where a kernel may have it. What is longer is computed when the kernel runs.
pub(in crate::lower) fn symbolic(extent: Dim) -> Option<Val> {
    extent.is_readable().then_some(Val::Dim(extent))
}

/// What an operator gave of integers whose type wasn't decided yet.
#[derive(Debug)]
pub(in crate::lower) struct Folded {
    value: i128,
    pub(in crate::lower) elem: Elem,
    op: BinaryOp,
    span: Span,
}

impl Lowering {
    /// What an op gives of literals and extents, which stays symbolic; `None` where it is computed when the kernel runs.
    pub(super) fn fold(&mut self, op: BinaryOp, left: &Val, right: &Val, span: Span) -> Lowered<Option<Val>> {
        if let BinaryOp::Shl | BinaryOp::Shr = op {
            let elem = left.shared().map(|shared| self.elements.resolve(shared));
            let bits = elem.and_then(|elem| elem.known()).map(DType::bits);
            return Ok(match shifted(op, left, right, bits) {
                Some(Val::Int(int)) => self.known_result(int, op, span),
                value => value,
            });
        }
        match (left, right) {
            (&Val::Int(Int { value: a, .. }), &Val::Int(Int { value: b, .. })) => {
                self.fold_integers(op, [left, right], [a, b], span)
            }
            (Val::Dim(_), Val::Dim(_) | Val::Int(_)) | (Val::Int(_), Val::Dim(_)) => {
                self.fold_extents(op, left, right, span)
            }
            _ => Ok(None),
        }
    }

    fn fold_integers(
        &mut self,
        op: BinaryOp,
        sides: [&Val; 2],
        [a, b]: [i128; 2],
        span: Span,
    ) -> Lowered<Option<Val>> {
        if b == 0 && matches!(op, BinaryOp::Div | BinaryOp::Rem) {
            return self.error(span, "division by zero", "divide by something else");
        }
        let elem = sides.iter().find_map(|side| side.shared()).map(|shared| self.elements.resolve(shared));
        let dtype = elem.and_then(|elem| elem.known());
        let value = computed(op, a, b, dtype);
        match value.filter(|&value| has_a_format(value)) {
            Some(value) => {
                let what = format!("`{}`", op.operator().unwrap_or(op.name()));
                let shared = self.share_with(sides[0], sides[1], &what, span)?;
                let mut places = places(sides);
                if let Some(shared) = &shared {
                    self.note_literals(places.drain(..), shared);
                }
                Ok(self.known_result(Int { value, shared, places }, op, span))
            }
            // It wraps.
            None if !is_arithmetic(op) || dtype.is_some_and(DType::is_int) => Ok(None),
            None => self.error(span, "the number is too large", "no format holds it"),
        }
    }

    fn fold_extents(&mut self, op: BinaryOp, left: &Val, right: &Val, span: Span) -> Lowered<Option<Val>> {
        let value = match (known(left), known(right)) {
            (Some(a), Some(b)) if !is_arithmetic(op) => computed(op, a, b, Some(DType::Index)),
            _ => None,
        };
        let value = value.and_then(|value| i64::try_from(value).ok()).map(Dim::from);
        if value.is_none() && !is_arithmetic(op) {
            return Ok(None);
        }
        let what = format!("`{}`", op.operator().unwrap_or(op.name()));
        for side in [left, right] {
            self.share(side, &DType::Index.into(), &what, span)?;
        }
        let (Some(a), Some(b)) = (as_dim(left), as_dim(right)) else {
            return self.error(span, "a usize can't be negative or this large", "use a smaller number");
        };
        Ok(symbolic(match (value, op) {
            (Some(value), _) => value,
            (None, BinaryOp::Add) => a + b,
            (None, BinaryOp::Sub) => a - b,
            (None, BinaryOp::Mul) => a * b,
            (None, BinaryOp::Div) => a.floor_div(&b),
            (None, _) => a.rem(&b),
        }))
    }

    /// What an operator gives of integers that are known; `None` where it is an op, because it wraps: to their type, if other
    /// uses than this one have decided that by now, and otherwise to that of a literal.
    pub(in crate::lower) fn known_result(&mut self, int: Int, op: BinaryOp, span: Span) -> Option<Val> {
        let Some(shared) = &int.shared else { return Some(Val::Int(int)) };
        let elem = self.elements.resolve(shared);
        let wraps = match elem.known() {
            Some(dtype) => dtype.is_int() && wrap_int(dtype, int.value) != int.value,
            None if i32::try_from(int.value).is_err() => true,
            None => {
                self.folded.push(Folded { value: int.value, elem, op, span });
                false
            }
        };
        (!wraps).then_some(Val::Int(int))
    }

    /// Reports what was computed of integers that are known, and is no number of the type that they came to have.
    pub(in crate::lower) fn check_folded(&mut self) {
        for Folded { value, elem, op, span } in std::mem::take(&mut self.folded) {
            let Some(dtype) = self.elements.resolve(&elem).known().filter(|dtype| !dtype.is_float()) else {
                continue;
            };
            let fits = match dtype {
                DType::Index => i64::try_from(value).is_ok_and(|value| value >= 0),
                dtype => wrap_int(dtype, value) == value,
            };
            if fits {
                continue;
            }
            let (name, dtype) = (op.operator().unwrap_or(op.name()), dtype.rust_name());
            let message = format!("`{name}` gives {value} here, which isn't a number of {dtype}");
            let help = format!(
                "convert what it is computed of, `… as i32`; where it is to wrap, give the numbers their type: `let k: {dtype} = 1;`, `[1{dtype}, 2]`"
            );
            self.errors.push(Diagnostic::new(span, message).help(help));
        }
    }
}
