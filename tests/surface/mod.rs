//! The functions and methods of tiles as plain Rust, which is what the reference device runs, on every format against
//! NumPy's numbers: the cases that evaluator, native code and simulated threads are checked against too. Every
//! function that the op tables name is called, on every format that it accepts.

mod leaf;
mod structural;

use serde_json::Value;
use std::collections::BTreeSet;
use tile::ir::array::Elements;
use tile::ir::dtype::{Class, DType};
use tile::ir::ops::infer::mma_accumulators;
use tile::ir::ops::{Domain, Leaf, ReduceOp, ScanMode};
use tile::ir::round::{Rounding, decode};
use tile::kernel::Element;
use tile::prelude::*;

const CASES: &str = include_str!("../golden/ops_golden.jsonl");

/// Does something with the type of a format.
macro_rules! with_format {
    ($dtype:expr, $T:ident => $body:expr; $($variant:ident $ty:ty),*) => {
        match $dtype {
            $(tile::ir::DType::$variant => {
                type $T = $ty;
                $body
            })*
            other => panic!("{other} has no such case"),
        }
    };
}

/// The same, of floats, of integers, and of all elements.
macro_rules! with_float {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::surface::with_format!($dtype, $T => $body;
            F8E4M3FN f8e4m3fn, F8E5M2 f8e5m2, F16 f16, BF16 bf16, F32 f32, F64 f64)
    };
}
macro_rules! with_int {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::surface::with_format!($dtype, $T => $body;
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
}
macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::surface::with_format!($dtype, $T => $body;
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F8E4M3FN f8e4m3fn, F8E5M2 f8e5m2, F16 f16, BF16 bf16, F32 f32, F64 f64)
    };
}
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::surface::with_format!($dtype, $T => $body;
            Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F8E4M3FN f8e4m3fn, F8E5M2 f8e5m2, F16 f16, BF16 bf16, F32 f32, F64 f64)
    };
}
pub(crate) use {with_element, with_float, with_format, with_int, with_number};

/// A tile of any format and rank.
struct Found {
    shape: Vec<usize>,
    elements: Elements,
}

fn found<T: Element, const R: usize>(tile: Tile<T, R>) -> Found {
    let values = tile.to_vec();
    let elements = if T::DTYPE.is_float() {
        Elements::Float(values.iter().map(|value| value.to_float()).collect())
    } else {
        Elements::Int(values.iter().map(|value| value.to_int()).collect())
    };
    Found { shape: tile.shape().to_vec(), elements }
}

fn format(value: &Value) -> DType {
    value.as_str().and_then(DType::from_name).expect("a format")
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().expect("a list").iter().map(|bits| bits.as_u64().expect("bits")).collect()
}

fn shape(value: &Value) -> Vec<usize> {
    numbers(value).iter().map(|&extent| extent as usize).collect()
}

fn elements(dtype: DType, bits: &Value) -> Elements {
    let words = numbers(bits).into_iter();
    if dtype.is_float() {
        Elements::Float(words.map(|word| decode(dtype, word)).collect())
    } else {
        Elements::Int(words.map(|word| tile::ir::array::wrap_int(dtype, i128::from(word))).collect())
    }
}

/// A tile of these bits: joined from its halves, as tiles are made of tiles.
fn vector<T: Element>(bits: &[u64]) -> Tile<T, 1> {
    if let [word] = *bits {
        let float = T::DTYPE.is_float();
        let value = if float { T::from_float(decode(T::DTYPE, word)) } else { T::from_int(i128::from(word)) };
        return Tile::full([1], value);
    }
    let (left, right) = bits.split_at(bits.len() / 2);
    vector(left).cat(vector(right), 0)
}

/// The distance of neighbours at a number of a format.
fn unit(dtype: DType, value: f64) -> f64 {
    let format = dtype.float_format().expect("a float");
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    2f64.powi(exponent.max(format.min_exponent()) - format.mantissa_bits as i32)
}

/// How a result may differ.
#[derive(Clone, Copy, PartialEq)]
enum Allowed {
    Nothing,
    SignOfZero,
    Units(f64),
}

fn same(found: &Elements, dtype: DType, expected: &Elements, places: &[usize], allowed: Allowed, what: &str) {
    match (found, expected) {
        (Elements::Int(found), Elements::Int(expected)) => {
            for (expected, &place) in expected.iter().zip(places) {
                assert_eq!(found[place], *expected, "{what}: element {place}");
            }
        }
        (Elements::Float(found), Elements::Float(expected)) => {
            for (&e, &place) in expected.iter().zip(places) {
                let f = found[place];
                let close = match allowed {
                    Allowed::Nothing => f.to_bits() == e.to_bits(),
                    Allowed::SignOfZero => f == e,
                    Allowed::Units(units) => f == e || (f - e).abs() <= units * unit(dtype, e),
                };
                assert!(close || f.is_nan() && e.is_nan(), "{what}: element {place} is {f:?}, not {e:?}");
            }
        }
        _ => panic!("{what}: integers are compared with floats"),
    }
}

/// What was called on which format.
type Called = BTreeSet<(String, DType)>;

#[test]
fn every_function_agrees_with_numpy() {
    let mut inputs: Vec<(DType, Vec<u64>, Vec<u64>)> = Vec::new();
    let mut called = Called::new();
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        if let Value::String(_) = case["inputs"] {
            inputs.push((format(&case["inputs"]), numbers(&case["a"]), numbers(&case["b"])));
            continue;
        }
        // Tiles outside a kernel live as long as their thread.
        let checked = std::thread::scope(|scope| scope.spawn(|| check(&case, &inputs)).join());
        called.insert(checked.expect("the case holds"));
    }
    let missing: Vec<_> = required().difference(&called).cloned().collect();
    assert_eq!(missing, [], "never called");
}

fn check(case: &Value, inputs: &[(DType, Vec<u64>, Vec<u64>)]) -> (String, DType) {
    if case["op"].is_string() {
        let of = format(&case["dtype"]);
        let (_, a, b) = inputs.iter().find(|(dtype, ..)| *dtype == of).expect("inputs come first");
        leaf::check(case, a, b)
    } else if case["reduce"].is_string() {
        structural::reduced(case)
    } else if case["mma"].is_array() {
        structural::multiplied(case)
    } else {
        structural::program(case)
    }
}

/// Not of powers of two, which NumPy hasn't: `tile_ir::round` has their table.
fn required() -> Called {
    let leaves = Leaf::all().map(|leaf| (leaf.name().to_owned(), leaf.domain()));
    let reduce = ReduceOp::ALL.iter().map(|op| (op.method().to_owned(), op.domain()));
    let scans = ReduceOp::ALL.iter().flat_map(|op| {
        let modes = ScanMode::ALL.iter().filter_map(|mode| Some((op.scan_method()?, mode.suffix())));
        modes.map(|(method, suffix)| (format!("{method}{suffix}"), op.domain()))
    });
    let rounded =
        Rounding::ALL.iter().map(|rounding| (format!("cast_with {}", rounding.name()), Domain::Float));
    let others = structural::METHODS.iter().map(|&(name, domain)| (name.to_owned(), domain));
    let rows = leaves.chain(reduce).chain(scans);
    let rows: Vec<(String, Domain)> = rows.chain(rounded).chain(others).collect();
    let mut required = Called::new();
    let is_known = |dtype: &DType| dtype.is_element() && dtype.class() != Class::Scale;
    for dtype in DType::ALL.iter().copied().filter(is_known) {
        let accepted = rows.iter().filter(|(_, domain)| domain.accepts(dtype));
        required.extend(accepted.map(|(name, _)| (name.clone(), dtype)));
        if DType::ALL.iter().any(|&right| !mma_accumulators(dtype, right).is_empty()) {
            required.insert((String::from("mma"), dtype));
        }
    }
    required
}
