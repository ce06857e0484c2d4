//! Operators of numbers, and what converts them.

use super::value::{HELP_OF_TYPES, is_float};
use super::{Computed, Evaluator, Float, Value, error};
use crate::span::Span;
use crate::value::has_a_format;
use std::cmp::Ordering;
use syn::{BinOp, UnOp};
use tile_ir::DType;
use tile_ir::array::{int_to_float, wrap_int};

/// An exact integer as one of this type: Rust refuses a constant that overflows.
pub(super) fn checked(value: Option<i128>, dtype: Option<DType>, span: Span) -> Computed<Value> {
    let fits = |value: &i128| match dtype {
        Some(dtype) => wrap_int(dtype, *value) == *value,
        None => has_a_format(*value),
    };
    match value.filter(fits) {
        Some(value) => Ok(Value::Int(value, dtype)),
        None => {
            let ty = dtype.map_or("its type", DType::rust_name);
            error(
                span,
                format!("this overflows {ty}, or has no value"),
                "what wraps is `a.wrapping_mul(b)` and its kin",
            )
        }
    }
}

/// An exact integer, wrapped to its type where that is known.
pub(super) fn wrapped(value: i128, dtype: Option<DType>) -> i128 {
    dtype.map_or(value, |dtype| wrap_int(dtype, value))
}

/// Two numbers, each of the type that the other says.
pub(super) fn together(a: Value, b: Value, span: Span) -> Computed<(Value, Value)> {
    let shared = a.dtype().or_else(|| b.dtype());
    let Some(dtype) = shared else { return Ok((a, b)) };
    match (a.of(dtype), b.of(dtype)) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(message), _) | (_, Err(message)) => error(span, message, HELP_OF_TYPES),
    }
}

/// What a function makes of floats, of each in the formats that it may be of.
pub(super) fn of_floats(
    a: Float,
    b: Float,
    double: impl Fn(f64, f64) -> f64,
    single: impl Fn(f32, f32) -> f32,
) -> Value {
    let computed =
        Float { double: double(a.double, b.double), single: single(a.single, b.single), dtype: None };
    Value::Float(a.dtype.map_or(computed, |dtype| computed.of(dtype)))
}

impl Evaluator<'_> {
    pub(super) fn unary(&self, op: &UnOp, value: Value, span: Span) -> Computed<Value> {
        match (op, value) {
            // What a reference is to.
            (UnOp::Deref(_), value) => Ok(value),
            (UnOp::Neg(_), Value::Float(float)) => {
                Ok(Value::Float(Float { double: -float.double, single: -float.single, ..float }))
            }
            (UnOp::Neg(_), Value::Int(value, dtype)) => checked(Some(-value), dtype, span),
            (UnOp::Not(_), Value::Bool(holds)) => Ok(Value::Bool(!holds)),
            (UnOp::Not(_), Value::Int(value, dtype)) => Ok(Value::Int(wrapped(!value, dtype), dtype)),
            (_, other) => {
                error(span, format!("this operator isn't one of {}", other.kind()), "use a number or a bool")
            }
        }
    }

    pub(super) fn binary(&self, op: &BinOp, a: Value, b: Value, span: Span) -> Computed<Value> {
        use BinOp::{Eq, Ge, Gt, Le, Lt, Ne, Shl, ShlAssign, Shr, ShrAssign};
        match op {
            Shl(_) | ShlAssign(_) => return shifted(a, b, true, span),
            Shr(_) | ShrAssign(_) => return shifted(a, b, false, span),
            Eq(_) => return self.are_equal(&a, &b, span).map(Value::Bool),
            Ne(_) => return self.are_equal(&a, &b, span).map(|equal| Value::Bool(!equal)),
            Lt(_) => return self.is_less(&a, &b, span).map(Value::Bool),
            Gt(_) => return self.is_less(&b, &a, span).map(Value::Bool),
            // NaN is neither.
            Le(_) => return order(&a, &b, span).map(|order| Value::Bool(order.is_some_and(Ordering::is_le))),
            Ge(_) => return order(&a, &b, span).map(|order| Value::Bool(order.is_some_and(Ordering::is_ge))),
            _ => {}
        }
        match together(a, b, span)? {
            (Value::Int(a, dtype), Value::Int(b, _)) => checked(of_integers(op, a, b), dtype, span),
            (Value::Float(a), Value::Float(b)) => match op {
                BinOp::Add(_) | BinOp::AddAssign(_) => Ok(of_floats(a, b, |a, b| a + b, |a, b| a + b)),
                BinOp::Sub(_) | BinOp::SubAssign(_) => Ok(of_floats(a, b, |a, b| a - b, |a, b| a - b)),
                BinOp::Mul(_) | BinOp::MulAssign(_) => Ok(of_floats(a, b, |a, b| a * b, |a, b| a * b)),
                BinOp::Div(_) | BinOp::DivAssign(_) => Ok(of_floats(a, b, |a, b| a / b, |a, b| a / b)),
                BinOp::Rem(_) | BinOp::RemAssign(_) => Ok(of_floats(a, b, |a, b| a % b, |a, b| a % b)),
                _ => error(span, "this operator isn't one of floats", "convert them to integers"),
            },
            (Value::Bool(a), Value::Bool(b)) => match op {
                BinOp::BitAnd(_) | BinOp::BitAndAssign(_) => Ok(Value::Bool(a & b)),
                BinOp::BitOr(_) | BinOp::BitOrAssign(_) => Ok(Value::Bool(a | b)),
                BinOp::BitXor(_) | BinOp::BitXorAssign(_) => Ok(Value::Bool(a ^ b)),
                _ => error(span, "this operator isn't one of bools", "use `&&`, `||` and `!`"),
            },
            (a, b) => {
                let message = format!("this operator has {} and {}", a.kind(), b.kind());
                error(span, message, "convert one of them with `as`")
            }
        }
    }

    pub(super) fn are_equal(&self, a: &Value, b: &Value, span: Span) -> Computed<bool> {
        order(a, b, span).map(|order| order == Some(Ordering::Equal))
    }

    pub(super) fn is_less(&self, a: &Value, b: &Value, span: Span) -> Computed<bool> {
        order(a, b, span).map(|order| order == Some(Ordering::Less))
    }

    /// `value as T`.
    pub(super) fn cast(&self, value: Value, to: DType, span: Span) -> Computed<Value> {
        match value {
            Value::Int(value, _) if is_float(to) => {
                let value = int_to_float(to, value);
                Ok(Value::Float(Float { double: value, single: value as f32, dtype: Some(to) }))
            }
            Value::Int(value, _) if to.is_int() => Ok(Value::Int(wrap_int(to, value), Some(to))),
            Value::Bool(holds) if to.is_int() => Ok(Value::Int(holds.into(), Some(to))),
            Value::Bool(_) if to == DType::Bool => Ok(value),
            Value::Float(float @ Float { dtype: None, .. }) if is_float(to) => Ok(Value::Float(float.of(to))),
            Value::Float(Float { double, .. }) if is_float(to) => {
                Ok(Value::Float(Float { double, single: double as f32, dtype: None }.of(to)))
            }
            Value::Float(Float { double, .. }) if to.is_int() => {
                let (least, greatest) = to.int_range();
                Ok(Value::Int((double as i128).clamp(least, greatest), Some(to)))
            }
            other => error(
                span,
                format!("{} isn't converted to {}", other.kind(), to.rust_name()),
                "compare it instead",
            ),
        }
    }

    /// `f32::from_bits(x)`.
    pub(super) fn of_bits(&self, to: DType, bits: Value, span: Span) -> Computed<Value> {
        let single = match bits {
            Value::Int(bits, _) => u32::try_from(bits).ok().map(f32::from_bits),
            _ => None,
        };
        let double = match bits {
            Value::Int(bits, _) => u64::try_from(bits).ok().map(f64::from_bits),
            _ => None,
        };
        let number = match to {
            DType::F32 => single.map(|single| Float { double: single.into(), single, dtype: Some(to) }),
            DType::F64 => double.map(|double| Float { double, single: double as f32, dtype: Some(to) }),
            _ => None,
        };
        match number {
            Some(number) => Ok(Value::Float(number)),
            None => error(
                span,
                format!("these are no bits of a {}", to.rust_name()),
                "the macro knows those of f32 and f64",
            ),
        }
    }
}

fn of_integers(op: &BinOp, a: i128, b: i128) -> Option<i128> {
    match op {
        BinOp::Add(_) | BinOp::AddAssign(_) => a.checked_add(b),
        BinOp::Sub(_) | BinOp::SubAssign(_) => a.checked_sub(b),
        BinOp::Mul(_) | BinOp::MulAssign(_) => a.checked_mul(b),
        BinOp::Div(_) | BinOp::DivAssign(_) => a.checked_div(b),
        BinOp::Rem(_) | BinOp::RemAssign(_) => a.checked_rem(b),
        BinOp::BitAnd(_) | BinOp::BitAndAssign(_) => Some(a & b),
        BinOp::BitOr(_) | BinOp::BitOrAssign(_) => Some(a | b),
        BinOp::BitXor(_) | BinOp::BitXorAssign(_) => Some(a ^ b),
        _ => None,
    }
}

/// `a << b` and `a >> b`: of the left side's type, whose width Rust doesn't let a constant reach.
fn shifted(a: Value, b: Value, left: bool, span: Span) -> Computed<Value> {
    let (Value::Int(value, dtype), Value::Int(by, _)) = (&a, &b) else {
        return error(span, format!("{} isn't shifted by {}", a.kind(), b.kind()), "shift an integer");
    };
    let width = dtype.map_or(u64::BITS, DType::bits);
    let Some(by) = u32::try_from(*by).ok().filter(|by| *by < width) else {
        return error(
            span,
            format!("{by} bits are too many to shift by"),
            "shift by less than the number of bits",
        );
    };
    match (left, dtype) {
        (false, _) => Ok(Value::Int(value >> by, *dtype)),
        // Nothing may be lost of what is of any type yet.
        (true, None) => checked(value.checked_mul(1 << by), None, span),
        (true, Some(_)) => Ok(Value::Int(wrapped(value << by, *dtype), *dtype)),
    }
}

/// Which of two numbers is smaller; `None` of NaN.
fn order(a: &Value, b: &Value, span: Span) -> Computed<Option<Ordering>> {
    match together(a.clone(), b.clone(), span)? {
        (Value::Int(a, _), Value::Int(b, _)) => Ok(Some(a.cmp(&b))),
        (Value::Bool(a), Value::Bool(b)) => Ok(Some(a.cmp(&b))),
        (Value::Float(a), Value::Float(b)) => {
            let order = a.double.partial_cmp(&b.double);
            match a.dtype.is_some() || order == a.single.partial_cmp(&b.single) {
                true => Ok(order),
                false => error(span, "of which format are these?", HELP_OF_TYPES),
            }
        }
        (a, b) => error(span, format!("{} isn't compared with {}", a.kind(), b.kind()), "compare numbers"),
    }
}
