//! Functions of one, two and three numbers, and conversions.

use super::{
    Allowed, Found, elements, format, found, same, shape, vector, with_element, with_float, with_int,
    with_number,
};
use serde_json::Value;
use tile::ir::DType;
use tile::ir::ops::Leaf;
use tile::kernel::{Bits, eq, ge, gt, le, lt, ne};
use tile::prelude::*;

/// What an op gives that a kernel writes as an operator or calls by another table's name; `None` if it is another one.
macro_rules! written {
    ($op:expr; $($name:literal $apply:expr),*) => {
        match $op {
            $($name => Some(found($apply)),)*
            _ => None,
        }
    };
}

fn elements_written<T: Element>(op: &str, a: Tile<T, 1>, b: Tile<T, 1>) -> Option<Found> {
    written!(op; "eq" eq(a, b), "ne" ne(a, b))
}

fn bits_written<T: Bits>(op: &str, a: Tile<T, 1>, b: Tile<T, 1>) -> Option<Found> {
    written!(op; "and" a & b, "or" a | b, "xor" a ^ b, "not" !a)
}

fn numbers_written<T: Number>(op: &str, a: Tile<T, 1>, b: Tile<T, 1>) -> Option<Found> {
    written!(op; "neg" -a, "add" a + b, "sub" a - b, "mul" a * b, "div" a / b, "rem" a % b,
        "lt" lt(a, b), "le" le(a, b), "gt" gt(a, b), "ge" ge(a, b))
}

fn integers_written<T: Int>(op: &str, a: Tile<T, 1>, b: Tile<T, 1>) -> Option<Found> {
    written!(op; "shl" a << b, "shr" a >> b)
}

fn floats_written<T: Float>(op: &str, a: Tile<T, 1>, b: Tile<T, 1>) -> Option<Found> {
    written!(op; "mul_add" a.mul_add(b, a))
}

/// Returns what the function of a row of an op table gives, if that is asked for and the row is one of this domain.
macro_rules! call_row {
    (Number [] Number $($call:tt)*) => { call_row! { $($call)* } };
    (Number [] SignedNumber $($call:tt)*) => { call_row! { $($call)* } };
    (Int [] Int $($call:tt)*) => { call_row! { $($call)* } };
    (Float [] Float $($call:tt)*) => { call_row! { $($call)* } };
    (F32 [] F32 $($call:tt)*) => { call_row! { $($call)* } };
    (U64 [] U64 $($call:tt)*) => { call_row! { $($call)* } };
    ($asked:ident is $name:ident $operands:tt) => {
        if $asked == stringify!($name) {
            return Some(found($name $operands));
        }
    };
    ($($row_of_another_domain:tt)*) => {};
}

macro_rules! unary_calls {
    ($($op:ident $name:ident $($operator:literal)? of $domain:ident $([$($property:ident)*])?,
        int: $int:expr, float: $float:expr, $doc:literal $($ulps:literal $further:literal)?;)*) => {
        fn unary_of_numbers<T: Number>(op: &str, a: Tile<T, 1>) -> Option<Found> {
            $(call_row! { Number [$($operator)?] $domain op is $name(a) })*
            None
        }

        fn unary_of_integers<T: Int>(op: &str, a: Tile<T, 1>) -> Option<Found> {
            $(call_row! { Int [$($operator)?] $domain op is $name(a) })*
            None
        }

        fn unary_of_floats<T: Float>(op: &str, a: Tile<T, 1>) -> Option<Found> {
            $(call_row! { Float [$($operator)?] $domain op is $name(a) })*
            None
        }

        fn unary_of_f32(op: &str, a: Tile<f32, 1>) -> Option<Found> {
            $(call_row! { F32 [$($operator)?] $domain op is $name(a) })*
            None
        }
    };
}

macro_rules! binary_calls {
    ($($op:ident $name:ident $($operator:literal)? of $domain:ident $([$($property:ident)*])?,
        int: $int:expr, float: $float:expr, $doc:literal $($ulps:literal $further:literal)?;)*) => {
        fn binary_of_numbers<T: Number>(op: &str, a: Tile<T, 1>, b: Tile<T, 1>) -> Option<Found> {
            $(call_row! { Number [$($operator)?] $domain op is $name(a, b) })*
            None
        }

        fn binary_of_integers<T: Int>(op: &str, a: Tile<T, 1>, b: Tile<T, 1>) -> Option<Found> {
            $(call_row! { Int [$($operator)?] $domain op is $name(a, b) })*
            None
        }

        fn binary_of_floats<T: Float>(op: &str, a: Tile<T, 1>, b: Tile<T, 1>) -> Option<Found> {
            $(call_row! { Float [$($operator)?] $domain op is $name(a, b) })*
            None
        }

        fn binary_of_u64(op: &str, a: Tile<u64, 1>, b: Tile<u64, 1>) -> Option<Found> {
            $(call_row! { U64 [$($operator)?] $domain op is $name(a, b) })*
            None
        }
    };
}

macro_rules! classifying_calls {
    ($($classification:ident $name:ident, $float:expr, $doc:literal;)*) => {
        fn classified<T: Float>(op: &str, a: Tile<T, 1>) -> Option<Found> {
            $(call_row! { op is $name(a) })*
            None
        }
    };
}

tile::ir::unary_ops!(unary_calls);
tile::ir::binary_ops!(binary_calls);
tile::ir::classifications!(classifying_calls);

/// A leaf op on elements of a format.
fn leaf(op: &str, dtype: DType, a: &[u64], b: &[u64]) -> Option<Found> {
    let of_elements = || with_element!(dtype, T => elements_written::<T>(op, vector(a), vector(b)));
    let of_numbers = || {
        with_number!(dtype, T => {
            let (a, b) = (vector::<T>(a), vector::<T>(b));
            numbers_written(op, a, b).or_else(|| unary_of_numbers(op, a)).or_else(|| binary_of_numbers(op, a, b))
        })
    };
    let of_integers = || {
        with_int!(dtype, T => {
            let (a, b) = (vector::<T>(a), vector::<T>(b));
            let written = bits_written(op, a, b).or_else(|| integers_written(op, a, b));
            written.or_else(|| unary_of_integers(op, a)).or_else(|| binary_of_integers(op, a, b))
        })
    };
    let of_floats = || {
        with_float!(dtype, T => {
            let (a, b) = (vector::<T>(a), vector::<T>(b));
            let written = floats_written(op, a, b).or_else(|| classified(op, a));
            written.or_else(|| unary_of_floats(op, a)).or_else(|| binary_of_floats(op, a, b))
        })
    };
    of_elements().or_else(|| match dtype {
        DType::Bool => bits_written::<bool>(op, vector(a), vector(b)),
        DType::F32 => of_numbers().or_else(of_floats).or_else(|| unary_of_f32(op, vector(a))),
        DType::U64 => of_numbers().or_else(of_integers).or_else(|| binary_of_u64(op, vector(a), vector(b))),
        _ if dtype.is_float() => of_numbers().or_else(of_floats),
        _ => of_numbers().or_else(of_integers),
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
    if op == "saturating_cast" {
        return with_float!(from, From => {
            let a = vector::<From>(a);
            with_float!(to, To => found(a.saturating_cast::<To>()))
        });
    }
    let direction = op.strip_prefix("cast_with ").and_then(Rounding::from_name).expect("a conversion");
    with_float!(from, From => {
        let a = vector::<From>(a);
        with_number!(to, To => found(a.cast_with::<To>(direction)))
    })
}

/// What the op table allows. A format that is narrower than f32 rounds once more.
fn allowed(op: &str, dtype: DType) -> Allowed {
    match Leaf::from_name(op).and_then(Leaf::ulps) {
        None => Allowed::Nothing,
        Some(units) if dtype.bits() >= 32 => Allowed::Units(units.into()),
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
        leaf(op, from, a, b).unwrap_or_else(|| {
            panic!("nothing is called for {op} of {from}: this file lists what kernels write as an operator")
        })
    };
    let places = if case["at"].is_array() { shape(&case["at"]) } else { (0..a.len()).collect() };
    let what = format!("{op} of {from} to {to}");
    let expected = elements(to, &case["expected"]);
    same(&result.elements, to, &expected, &places, allowed(op, from), &what);
    (op.to_owned(), from)
}
