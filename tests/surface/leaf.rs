//! Functions of one, two and three numbers, and conversions.

use super::{
    Allowed, Found, elements, format, found, same, shape, vector, with_element, with_float, with_int,
    with_number,
};
use serde_json::Value;
use tile::ir::DType;
use tile::ir::ops::{BinaryOp, UnaryOp};
use tile::kernel::{Bits, eq, ge, gt, le, lt, ne};
use tile::prelude::*;

/// What a function of this name gives; `None` if there is none.
macro_rules! call {
    ($op:expr, $a:ident, $b:ident: $($unary:ident)*; $($binary:ident)*; $($operator:literal $apply:expr),*) => {
        match $op {
            $(stringify!($unary) => Some(found($unary($a))),)*
            $(stringify!($binary) => Some(found($binary($a, $b))),)*
            $($operator => Some(found($apply)),)*
            _ => None,
        }
    };
}

fn of_elements<T: Element>(op: &str, a: Tile<T, 1>, b: Tile<T, 1>) -> Option<Found> {
    call!(op, a, b: ; eq ne; )
}

fn of_bits<T: Bits>(op: &str, a: Tile<T, 1>, b: Tile<T, 1>) -> Option<Found> {
    call!(op, a, b: ; ; "and" a & b, "or" a | b, "xor" a ^ b, "not" !a)
}

fn of_numbers<T: Number>(op: &str, a: Tile<T, 1>, b: Tile<T, 1>) -> Option<Found> {
    call!(op, a, b: abs signum; lt le gt ge min max;
        "neg" -a, "add" a + b, "sub" a - b, "mul" a * b, "div" a / b, "rem" a % b)
}

fn of_integers<T: Int>(op: &str, a: Tile<T, 1>, b: Tile<T, 1>) -> Option<Found> {
    call!(op, a, b: count_ones leading_zeros trailing_zeros swap_bytes reverse_bits;
        mul_hi saturating_add saturating_sub saturating_mul div_floor div_ceil rem_euclid rotate_left rotate_right;
        "shl" a << b, "shr" a >> b)
}

fn of_floats<T: Float>(op: &str, a: Tile<T, 1>, b: Tile<T, 1>) -> Option<Found> {
    call!(op, a, b:
        exp exp2 exp10 exp_m1 log log2 log10 ln_1p sqrt rsqrt cbrt recip sin cos tan asin acos atan sinh cosh tanh erf
        sigmoid silu gelu floor ceil trunc round round_ties_even is_nan is_infinite is_finite;
        minimum maximum copysign powf atan2 hypot;
        "mul_add" a.mul_add(b, a))
}

fn function(op: &str, dtype: DType, a: &[u64], b: &[u64]) -> Option<Found> {
    match (op, dtype) {
        ("round_tf32", DType::F32) => return Some(found(round_tf32(vector::<f32>(a)))),
        ("philox", DType::U64) => return Some(found(philox(vector::<u64>(a), vector::<u64>(b)))),
        _ => {}
    }
    with_element!(dtype, T => of_elements::<T>(op, vector(a), vector(b)))
        .or_else(|| match dtype {
            DType::Bool => of_bits::<bool>(op, vector(a), vector(b)),
            _ => with_number!(dtype, T => of_numbers::<T>(op, vector(a), vector(b))),
        })
        .or_else(|| match dtype {
            DType::Bool => None,
            _ if dtype.is_float() => with_float!(dtype, T => of_floats::<T>(op, vector(a), vector(b))),
            _ => with_int!(dtype, T => {
                let (a, b) = (vector::<T>(a), vector::<T>(b));
                of_bits(op, a, b).or_else(|| of_integers(op, a, b))
            }),
        })
}

fn conversion(op: &str, from: DType, to: DType, a: &[u64]) -> Found {
    if op == "cast" {
        return with_element!(from, From => {
            let a = vector::<From>(a);
            with_element!(to, To => found(a.cast::<To>()))
        });
    }
    if op == "bitcast" {
        return with_number!(from, From => {
            let a = vector::<From>(a);
            with_number!(to, To => found(a.bitcast::<To>()))
        });
    }
    let direction = op.strip_prefix("cast_with ").and_then(Rounding::from_name).expect("a conversion");
    with_float!(from, From => {
        let a = vector::<From>(a);
        with_number!(to, To => found(a.cast_with::<To>(direction)))
    })
}

/// What the op table's documentation allows: "within 2 ulp". A format that is narrower than f32 rounds once more.
fn allowed(op: &str, dtype: DType) -> Allowed {
    let doc = UnaryOp::from_name(op).map(UnaryOp::doc).or(BinaryOp::from_name(op).map(BinaryOp::doc));
    let bound = doc.and_then(|doc| doc.split("within ").nth(1)?.split(" ulp").next()?.parse::<f64>().ok());
    match bound {
        None => Allowed::Nothing,
        Some(units) if dtype.bits() >= 32 => Allowed::Units(units),
        Some(_) => Allowed::Units(1.0),
    }
}

/// Checks a case of a leaf op, and says what was called.
pub(super) fn check(case: &Value, a: &[u64], b: &[u64]) -> (String, DType) {
    let (from, to) = (format(&case["dtype"]), format(&case["result"]));
    let op = case["op"].as_str().expect("a name");
    let result = if op.contains("cast") {
        conversion(op, from, to, a)
    } else {
        function(op, from, a, b).unwrap_or_else(|| {
            panic!("no function is called for {op} of {from}: add it to the lists of this file")
        })
    };
    let places = if case["at"].is_array() { shape(&case["at"]) } else { (0..a.len()).collect() };
    let what = format!("{op} of {from} to {to}");
    let expected = elements(to, &case["expected"]);
    same(&result.elements, to, &expected, &places, allowed(op, from), &what);
    (op.to_owned(), from)
}
