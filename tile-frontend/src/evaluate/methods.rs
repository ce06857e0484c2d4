//! Methods of numbers that Rust computes in constants.

use super::numbers::{checked, of_floats, together};
use super::value::HELP_OF_TYPES;
use super::{Computed, Evaluator, Float, Value, error};
use crate::span::Span;
use syn::Ident;
use tile_ir::DType;
use tile_ir::array::wrap_int;

impl Evaluator<'_> {
    pub(super) fn method(
        &self,
        name: &Ident,
        receiver: Value,
        arguments: &[(Value, Span)],
    ) -> Computed<Value> {
        let (span, text) = (name.span().into(), name.to_string());
        let argument = arguments.first().map(|(value, _)| value.clone());
        let found = match receiver {
            Value::List(values) if text == "len" => {
                Some(Value::Int(values.len() as i128, Some(DType::Index)))
            }
            Value::Float(float) => of_float(&text, float, arguments, span)?,
            Value::Int(value, dtype) => of_integer(&text, value, dtype, argument, span)?,
            _ => None,
        };
        match found {
            Some(value) => Ok(value),
            None => error(
                name.span(),
                format!("the macro doesn't compute `{name}` in a `const fn`"),
                "it knows the methods of integers that wrap, saturate, divide and look at bits, `pow`, `abs`, and of floats those that need no library",
            ),
        }
    }
}

/// A method of integers; `None` where it isn't known.
fn of_integer(
    name: &str,
    value: i128,
    dtype: Option<DType>,
    argument: Option<Value>,
    span: Span,
) -> Computed<Option<Value>> {
    let Some(argument) = argument else { return of_one(name, value, dtype, span) };
    // The number of a power, a shift or a rotation is of a type of its own.
    let is_count = matches!(name, "pow" | "wrapping_pow" | "saturating_pow")
        || ["_shl", "_shr", "rotate_left", "rotate_right"].iter().any(|end| name.ends_with(end));
    let (value, dtype, other) = match (is_count, argument) {
        (true, Value::Int(count, _)) => (value, dtype, count),
        (false, argument) => match together(Value::Int(value, dtype), argument, span)? {
            (Value::Int(value, dtype), Value::Int(other, _)) => (value, dtype, other),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let count = u32::try_from(other).ok();
    let exact = match name.trim_start_matches("wrapping_").trim_start_matches("saturating_") {
        "add" => value.checked_add(other),
        "sub" => value.checked_sub(other),
        "mul" if name == "wrapping_mul" => Some(value.wrapping_mul(other)),
        // Of 64 bits the product of two numbers without a sign alone may be beyond those of the computation.
        "mul" if name == "saturating_mul" => Some(value.saturating_mul(other)),
        "mul" => value.checked_mul(other),
        "div" => value.checked_div(other),
        "rem" => value.checked_rem(other),
        "pow" => return power(name, value, dtype, count, span).map(Some),
        "div_ceil" => value.checked_div(other).map(|whole| whole + i128::from(whole * other < value)),
        "div_euclid" => value.checked_div_euclid(other),
        "rem_euclid" => value.checked_rem_euclid(other),
        "abs_diff" => Some((value - other).abs()),
        name => return of_bits_and(name, value, dtype, count, span),
    };
    if name.starts_with("wrapping_") {
        let Some(exact) = exact else { return checked(None, dtype, span).map(Some) };
        let dtype = said(dtype, span)?;
        return Ok(Some(Value::Int(wrap_int(dtype, exact), Some(dtype))));
    }
    if name.starts_with("saturating_") {
        let Some(exact) = exact else { return checked(None, dtype, span).map(Some) };
        let (least, greatest) = said(dtype, span)?.int_range();
        return Ok(Some(Value::Int(exact.clamp(least, greatest), dtype)));
    }
    let dtype = if name == "abs_diff" { dtype.map(unsigned) } else { dtype };
    checked(exact, dtype, span).map(Some)
}

/// `a.pow(n)` and its kin, multiplied out: what saturates stays at the bound that it has reached.
fn power(name: &str, base: i128, dtype: Option<DType>, count: Option<u32>, span: Span) -> Computed<Value> {
    let Some(count) = count.filter(|&count| count < 1 << 16 || (-1..=1).contains(&base)) else {
        return error(span, "this exponent is too large", "use a smaller one");
    };
    let count = if (-1..=1).contains(&base) && count > 2 { 2 - count % 2 } else { count };
    let mut product = 1i128;
    for _ in 0..count {
        let exact = product.checked_mul(base);
        product = match name {
            "wrapping_pow" => {
                let dtype = said(dtype, span)?;
                // Both are below 2⁶⁴.
                wrap_int(dtype, exact.unwrap_or_else(|| product.wrapping_mul(base)))
            }
            "saturating_pow" => {
                let (least, greatest) = said(dtype, span)?.int_range();
                exact.map_or(greatest, |exact| exact.clamp(least, greatest))
            }
            _ => match checked(exact, dtype, span)? {
                Value::Int(product, _) => product,
                other => return Ok(other),
            },
        };
    }
    Ok(Value::Int(product, dtype))
}

/// A method of an integer's bits and a number of them.
fn of_bits_and(
    name: &str,
    value: i128,
    dtype: Option<DType>,
    count: Option<u32>,
    span: Span,
) -> Computed<Option<Value>> {
    if !matches!(name, "shl" | "shr" | "rotate_left" | "rotate_right") {
        return Ok(None);
    }
    let dtype = said(dtype, span)?;
    let width = dtype.bits();
    let Some(count) = count.map(|count| count % width) else { return Ok(None) };
    let bits = bits_of(value, dtype);
    let value = match name {
        "shl" => value << count,
        "shr" => value >> count,
        "rotate_left" => (bits << count) | (bits >> (width - count)),
        _ => (bits >> count) | (bits << (width - count)),
    };
    Ok(Some(Value::Int(wrap_int(dtype, value), Some(dtype))))
}

/// A method of one integer.
fn of_one(name: &str, value: i128, dtype: Option<DType>, span: Span) -> Computed<Option<Value>> {
    let of_its_type = |value: i128| checked(Some(value), dtype, span).map(Some);
    match name {
        "abs" => return of_its_type(value.abs()),
        "signum" => return of_its_type(value.signum()),
        "is_power_of_two" => return Ok(Some(Value::Bool(value.count_ones() == 1))),
        "is_positive" => return Ok(Some(Value::Bool(value > 0))),
        "is_negative" => return Ok(Some(Value::Bool(value < 0))),
        "next_power_of_two" => {
            let power = u64::try_from(value).ok().and_then(u64::checked_next_power_of_two);
            return checked(power.map(i128::from), dtype, span).map(Some);
        }
        "isqrt" => return checked((value >= 0).then(|| value.isqrt()), dtype, span).map(Some),
        "ilog2" => {
            return checked(value.checked_ilog2().map(i128::from), Some(DType::U32), span).map(Some);
        }
        _ => {}
    }
    let of_bits = matches!(
        name,
        "wrapping_neg"
            | "wrapping_abs"
            | "unsigned_abs"
            | "count_ones"
            | "count_zeros"
            | "leading_zeros"
            | "trailing_zeros"
            | "leading_ones"
            | "trailing_ones"
            | "swap_bytes"
            | "reverse_bits"
    );
    if !of_bits {
        return Ok(None);
    }
    let dtype = said(dtype, span)?;
    let (width, bits) = (dtype.bits(), bits_of(value, dtype));
    // At the top of 128 bits.
    let top = bits << (128 - width);
    let counted = |count: u32| Ok(Some(Value::Int(count.into(), Some(DType::U32))));
    let value = match name {
        "count_ones" => return counted(bits.count_ones()),
        "count_zeros" => return counted(width - bits.count_ones()),
        "leading_zeros" => return counted(top.leading_zeros().min(width)),
        "trailing_zeros" => return counted(bits.trailing_zeros().min(width)),
        "leading_ones" => return counted(top.leading_ones()),
        "trailing_ones" => return counted(bits.trailing_ones()),
        "unsigned_abs" => return Ok(Some(Value::Int(value.abs(), Some(unsigned(dtype))))),
        "wrapping_neg" => -value,
        "wrapping_abs" => value.abs(),
        "swap_bytes" => top.swap_bytes(),
        _ => top.reverse_bits(),
    };
    Ok(Some(Value::Int(wrap_int(dtype, value), Some(dtype))))
}

/// A method of floats; `None` where it isn't known.
fn of_float(name: &str, float: Float, arguments: &[(Value, Span)], span: Span) -> Computed<Option<Value>> {
    let mut others = Vec::new();
    let mut float = float;
    for (argument, _) in arguments {
        match together(Value::Float(float), argument.clone(), span)? {
            (Value::Float(receiver), Value::Float(other)) => {
                float = receiver;
                others.push(other);
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(match (name, others.as_slice()) {
        ("abs", []) => of_floats(float, float, |a, _| a.abs(), |a, _| a.abs()),
        ("recip", []) => of_floats(float, float, |a, _| a.recip(), |a, _| a.recip()),
        ("floor", []) => of_floats(float, float, |a, _| a.floor(), |a, _| a.floor()),
        ("ceil", []) => of_floats(float, float, |a, _| a.ceil(), |a, _| a.ceil()),
        ("trunc", []) => of_floats(float, float, |a, _| a.trunc(), |a, _| a.trunc()),
        ("round", []) => of_floats(float, float, |a, _| a.round(), |a, _| a.round()),
        ("min", &[other]) => of_floats(float, other, f64::min, f32::min),
        ("max", &[other]) => of_floats(float, other, f64::max, f32::max),
        ("copysign", &[other]) => of_floats(float, other, f64::copysign, f32::copysign),
        ("clamp", &[low, high]) if low.double <= high.double => {
            let Value::Float(raised) = of_floats(float, low, f64::max, f32::max) else { return Ok(None) };
            of_floats(raised, high, f64::min, f32::min)
        }
        ("is_nan", []) => Value::Bool(float.double.is_nan()),
        ("is_finite", []) => Value::Bool(float.double.is_finite()),
        ("to_bits", []) => match said(float.dtype, span)? {
            DType::F32 => Value::Int(float.single.to_bits().into(), Some(DType::U32)),
            _ => Value::Int(float.double.to_bits().into(), Some(DType::U64)),
        },
        _ => return Ok(None),
    }))
}

/// The type of a number whose bits matter.
fn said(dtype: Option<DType>, span: Span) -> Computed<DType> {
    match dtype {
        Some(dtype) => Ok(dtype),
        None => error(span, "what this gives depends on the number's type", HELP_OF_TYPES),
    }
}

fn unsigned(dtype: DType) -> DType {
    let name = dtype.rust_name().replacen('i', "u", 1);
    DType::from_rust_name(&name).unwrap_or(dtype)
}

fn bits_of(value: i128, dtype: DType) -> i128 {
    value & ((1 << dtype.bits()) - 1)
}
