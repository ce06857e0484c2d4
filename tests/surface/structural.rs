//! Methods of tiles: reductions, products, movement, lines along an axis, choices and new tiles.

use super::{
    Allowed, Found, elements, format, found, numbers, same, shape, vector, with_element, with_float,
    with_int, with_number,
};
use serde_json::Value;
use tile::ir::DType;
use tile::ir::ops::Domain;
use tile::prelude::*;

/// Methods that aren't rows of an op table, with the formats that they accept.
pub(super) const METHODS: &[(&str, Domain)] = &[
    ("mul_add", Domain::Float),
    ("cast", Domain::Any),
    ("bitcast", Domain::Number),
    ("select", Domain::Any),
    ("full", Domain::Any),
    ("iota", Domain::Number),
    ("item", Domain::Any),
    ("broadcast", Domain::Any),
    ("reshape", Domain::Any),
    ("permute", Domain::Any),
    ("extract", Domain::Any),
    ("insert", Domain::Any),
    ("cat", Domain::Any),
    ("pad", Domain::Any),
    ("flip", Domain::Any),
    ("roll", Domain::Any),
    ("shift", Domain::Any),
    ("repeat", Domain::Any),
    ("gather", Domain::Any),
    ("scatter", Domain::Any),
    ("scatter_add", Domain::Number),
    ("reduce", Domain::Any),
    ("scan", Domain::Any),
    ("sort", Domain::Number),
    ("sort_descending", Domain::Number),
    ("top_k", Domain::Number),
    ("histogram", Domain::Int),
];

/// A tile of the format of a generic function.
fn tile<T: Element, const R: usize>(shape: [usize; R], bits: &[u64]) -> Tile<T, R> {
    vector(bits).reshape(shape)
}

fn extents<const R: usize>(list: &[usize]) -> [usize; R] {
    list.try_into().expect("a shape of the rank that the case has")
}

/// The result of the reduction that is called so.
macro_rules! reductions {
    ($op:expr, $a:ident, $axes:expr; $($method:ident)*) => {
        match $op {
            $(stringify!($method) => Some(found($a.$method($axes))),)*
            _ => None,
        }
    };
}

fn reduction<const R: usize>(
    method: &str,
    dtype: DType,
    shape: [usize; R],
    bits: &[u64],
    axes: impl tile::kernel::Axes,
) -> Found {
    let of_numbers = match dtype {
        DType::Bool => None,
        _ => with_number!(dtype, T => {
            let a = tile::<T, R>(shape, bits);
            reductions!(method, a, axes; sum prod max min)
        }),
    };
    let result = of_numbers.or_else(|| match dtype {
        DType::Bool => {
            let a = tile::<bool, R>(shape, bits);
            reductions!(method, a, axes; any all)
        }
        _ if dtype.is_float() => with_float!(dtype, T => {
            let a = tile::<T, R>(shape, bits);
            reductions!(method, a, axes; reduce_maximum reduce_minimum)
        }),
        _ => with_int!(dtype, T => {
            let a = tile::<T, R>(shape, bits);
            reductions!(method, a, axes; reduce_and reduce_or reduce_xor)
        }),
    });
    result.unwrap_or_else(|| panic!("no method is called for {method} of {dtype}"))
}

/// The method of a reduction's name in IR text.
fn method_of(op: &str) -> &'static str {
    tile::ir::ops::ReduceOp::from_name(op).expect("a reduction").method()
}

/// Checks a case of a reduction, and says what was called.
pub(super) fn reduced(case: &Value) -> (String, DType) {
    let method = method_of(case["reduce"].as_str().expect("a name"));
    let (dtype, axis) =
        (format(&case["dtype"]), numbers(&Value::Array(vec![case["axis"].clone()]))[0] as usize);
    let result = reduction::<2>(method, dtype, extents(&shape(&case["shape"])), &numbers(&case["a"]), axis);
    check(&result, dtype, &case["expected"], method);
    (method.to_owned(), dtype)
}

fn check(result: &Found, dtype: DType, bits: &Value, what: &str) {
    let expected = elements(dtype, bits);
    let places: Vec<usize> = (0..result.shape.iter().product()).collect();
    assert_eq!(places.len(), numbers(bits).len(), "{what} of {dtype}");
    same(&result.elements, dtype, &expected, &places, Allowed::SignOfZero, &format!("{what} of {dtype}"));
}

/// Checks a product of matrices, and says what was called.
pub(super) fn multiplied(case: &Value) -> (String, DType) {
    let [left, right, total] = [0, 1, 2].map(|i| format(&case["mma"][i]));
    let [m, k, n] = extents(&shape(&case["shape"]));
    let [a, b, c] = ["a", "b", "c"].map(|name| numbers(&case[name]));
    let result = product(left, right, total, ([m, k], &a), ([k, n], &b), ([m, n], &c));
    check(&result, total, &case["expected"], &format!("mma of {left} and {right}"));
    (String::from("mma"), left)
}

type Bits<'a, const R: usize> = ([usize; R], &'a [u64]);

fn product<const R: usize>(
    left: DType,
    right: DType,
    total: DType,
    a: Bits<R>,
    b: Bits<R>,
    c: Bits<R>,
) -> Found {
    macro_rules! rows {
        ($($left:ident $a:ty, $right:ident $b:ty, $total:ident $c:ty;)*) => {
            match (left, right, total) {
                $((DType::$left, DType::$right, DType::$total) => {
                    found(mma(tile::<$a, R>(a.0, a.1), tile::<$b, R>(b.0, b.1), tile::<$c, R>(c.0, c.1)))
                })*
                _ => panic!("`mma` isn't called for {left}, {right}, {total}"),
            }
        };
    }
    rows! {
        F8E4M3FN f8e4m3fn, F8E4M3FN f8e4m3fn, F32 f32;
        F8E4M3FN f8e4m3fn, F8E4M3FN f8e4m3fn, F16 f16;
        F8E4M3FN f8e4m3fn, F8E5M2 f8e5m2, F32 f32;
        F8E4M3FN f8e4m3fn, F8E5M2 f8e5m2, F16 f16;
        F8E5M2 f8e5m2, F8E4M3FN f8e4m3fn, F32 f32;
        F8E5M2 f8e5m2, F8E4M3FN f8e4m3fn, F16 f16;
        F8E5M2 f8e5m2, F8E5M2 f8e5m2, F32 f32;
        F8E5M2 f8e5m2, F8E5M2 f8e5m2, F16 f16;
        F16 f16, F16 f16, F32 f32;
        F16 f16, F16 f16, F16 f16;
        BF16 bf16, BF16 bf16, F32 f32;
        F32 f32, F32 f32, F32 f32;
        F64 f64, F64 f64, F64 f64;
        I8 i8, I8 i8, I32 i32;
        I8 i8, U8 u8, I32 i32;
        U8 u8, I8 i8, I32 i32;
        U8 u8, U8 u8, I32 i32;
        I16 i16, I16 i16, I32 i32;
        I32 i32, I32 i32, I32 i32;
        U32 u32, U32 u32, U32 u32;
        I64 i64, I64 i64, I64 i64;
        U64 u64, U64 u64, U64 u64;
    }
}

/// The program of a golden case: its last line of text, and the tiles.
struct Program<'a> {
    lines: Vec<&'a str>,
    /// The line that gives the result.
    line: &'a str,
    inputs: Vec<(DType, Vec<usize>, Vec<u64>)>,
    /// The result's extents.
    shape: Vec<usize>,
}

impl<'a> Program<'a> {
    fn of(case: &'a Value) -> Program<'a> {
        let text = |line: &'a Value| line.as_str().expect("a line");
        let lines: Vec<&str> = case["ir"].as_array().expect("lines").iter().map(text).collect();
        let line = lines.iter().find(|line| line.starts_with("%r")).expect("every program gives %r");
        let inputs = case["inputs"].as_array().expect("tiles").iter();
        let inputs =
            inputs.map(|tile| (format(&tile["dtype"]), shape(&tile["shape"]), numbers(&tile["bits"])));
        Program { line, inputs: inputs.collect(), shape: shape(&case["outputs"][0]["shape"]), lines }
    }

    /// The `i`-th list of numbers in brackets.
    fn list(&self, i: usize) -> [usize; 2] {
        let list = self.line.split('[').nth(i + 1).and_then(|rest| rest.split(']').next()).expect("a list");
        let numbers: Vec<usize> = list.split(", ").map(|number| number.parse().expect("a number")).collect();
        extents(&numbers)
    }

    /// The number after a word.
    fn after(&self, word: &str) -> usize {
        let rest = self.line.split(&format!(" {word} ")).nth(1).expect("the word");
        rest.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    }

    fn has(&self, word: &str) -> bool {
        self.line.contains(&format!(" {word}"))
    }

    fn tile<T: Element>(&self, i: usize) -> Tile<T, 2> {
        let (_, shape, bits) = &self.inputs[i];
        tile(extents(shape), bits)
    }
}

/// Checks a program, and says what was called.
pub(super) fn program(case: &Value) -> (String, DType) {
    let program = Program::of(case);
    let dtype = format(&case["outputs"][0]["dtype"]);
    let words: Vec<&str> =
        program.line.split([' ', ',']).filter(|word| word.starts_with(char::is_alphabetic)).collect();
    let (method, results) = match words[0] {
        "mma" => batch_or_tf32(&program, dtype),
        "histogram" => histogram(&program),
        "reshape" if program.lines.len() > 1 => several_axes(&program, dtype),
        "scan" => scanned(&program, words[1], dtype),
        op => with_element!(dtype, T => moved::<T>(&program, op))
            .unwrap_or_else(|| with_number_or_fold(&program, op, dtype)),
    };
    let outputs = case["outputs"].as_array().expect("tiles");
    assert_eq!(results.len(), outputs.len());
    for (result, output) in results.iter().zip(outputs) {
        assert_eq!(result.shape, shape(&output["shape"]), "{}", program.line);
        check(result, format(&output["dtype"]), &output["bits"], program.line);
    }
    let counted = method == "histogram" || method == "mma";
    (method, if counted { program.inputs[0].0 } else { dtype })
}

type Called = (String, Vec<Found>);

fn one<T: Element, const R: usize>(method: &str, tile: Tile<T, R>) -> Called {
    (method.to_owned(), vec![found(tile)])
}

fn moved<T: Element>(program: &Program, op: &str) -> Option<Called> {
    let one_value = T::from_int(1);
    if program.inputs.is_empty() {
        return match op {
            "splat" => Some(one("full", Tile::<T, 2>::full(extents(&program.shape), one_value))),
            _ => None,
        };
    }
    if op == "select" {
        let result = select(program.tile::<bool>(0), program.tile::<T>(1), program.tile::<T>(2));
        return Some(one(op, result));
    }
    let a = program.tile::<T>(0);
    let result = match op {
        "flip" => a.flip(program.after("axis")),
        "roll" => a.roll(program.after("axis"), program.after("by")),
        "shift" => a.shift(program.after("axis"), program.after("by"), one_value),
        "extract" => a.extract(program.list(0), extents(&program.shape)),
        "insert" => a.insert(program.list(0), program.tile(1)),
        "cat" => a.cat(a.flip(0), program.after("axis")),
        "permute" => a.permute(program.list(0)),
        "reshape" => a.reshape(extents(&program.shape)),
        "repeat" => a.repeat(program.list(0)),
        "broadcast" => a.extract([0, 0], [4, 1]).broadcast(extents(&program.shape)),
        "pad" => {
            let (before, after) = (program.list(0), program.list(1));
            a.pad([(before[0], after[0]), (before[1], after[1])], one_value)
        }
        "splat" => return Some(one("item", Tile::full([2], a.extract([1, 2], [1, 1]).item()))),
        "gather" => with_int!(program.inputs[1].0, I => {
            a.gather_or(one_value, program.tile::<I>(1), program.after("axis"))
        }),
        "scatter" => with_int!(program.inputs[1].0, I => {
            a.scatter(program.tile::<I>(1), program.tile(2), program.after("axis"))
        }),
        _ => return None,
    };
    Some(one(op, result))
}

fn with_number_or_fold(program: &Program, op: &str, dtype: DType) -> Called {
    match (op, dtype) {
        ("scan_with", DType::Bool) => one("scan", scan(program.tile::<bool>(0), 1, true, |s, x| !s & x)),
        ("reduce_with", DType::Bool) => {
            one("reduce", reduce(program.tile::<bool>(0), 1, true, |s, x| !s & x))
        }
        _ => with_number!(dtype, T => of_numbers::<T>(program, op)),
    }
}

fn of_numbers<T: Number>(program: &Program, op: &str) -> Called {
    let start = T::from_int(1);
    match op {
        "iota" => {
            let axis = program.line.split("iota ").nth(1).and_then(|rest| rest[..1].parse().ok());
            one(op, Tile::<T, 2>::iota(extents(&program.shape), axis.expect("an axis")))
        }
        "scan_with" => one("scan", scan(program.tile::<T>(0), 1, start, |s, x| s + s - x)),
        "reduce_with" => one("reduce", reduce(program.tile::<T>(0), 1, start, |s, x| s + s - x)),
        "scatter_add" => with_int!(program.inputs[1].0, I => {
            one(op, program.tile::<T>(0).scatter_add(program.tile::<I>(1), program.tile(2), program.after("axis")))
        }),
        "sort" => sorted(program.tile::<T>(0), program),
        other => panic!("no method is called for {other}"),
    }
}

/// `sort`, `argsort` and their descending forms, or `top_k`; the smallest few are those of a sorted tile.
fn sorted<T: Number>(a: Tile<T, 2>, program: &Program) -> Called {
    let kept = program.shape[1];
    if program.has("descending") && kept < 8 {
        let (values, places) = a.top_k(kept, 1);
        return (String::from("top_k"), vec![found(values), found(places)]);
    }
    let (name, values, places) = if program.has("descending") {
        ("sort_descending", a.sort_descending(1), a.argsort_descending(1))
    } else {
        ("sort", a.sort(1), a.argsort(1))
    };
    let (values, places) = (values.extract([0, 0], [3, kept]), places.extract([0, 0], [3, kept]));
    (name.to_owned(), vec![found(values), found(places)])
}

fn histogram(program: &Program) -> Called {
    let bins = program.shape[0];
    with_int!(program.inputs[0].0, T => one("histogram", program.tile::<T>(0).histogram(bins)))
}

fn scanned(program: &Program, op: &str, dtype: DType) -> Called {
    let axis = program.after("axis");
    let name = match (program.has("exclusive"), program.has("reverse")) {
        (false, false) => format!("cum{op}"),
        (false, true) => format!("cum{op}_reverse"),
        (true, false) => format!("cum{op}_exclusive"),
        (true, true) => format!("cum{op}_exclusive_reverse"),
    };
    let result = with_number!(dtype, T => {
        let a = program.tile::<T>(0);
        reductions!(name.as_str(), a, axis;
            cumsum cumsum_reverse cumsum_exclusive cumsum_exclusive_reverse
            cumprod cumprod_reverse cumprod_exclusive cumprod_exclusive_reverse
            cummax cummax_reverse cummax_exclusive cummax_exclusive_reverse
            cummin cummin_reverse cummin_exclusive cummin_exclusive_reverse)
    });
    let result = result.unwrap_or_else(|| panic!("no method is called for {name}"));
    (name, vec![result])
}

/// A reduction over axes 0 and 2 at once.
fn several_axes(program: &Program, dtype: DType) -> Called {
    let (_, shape, bits) = &program.inputs[0];
    let op = program
        .lines
        .iter()
        .find_map(|line| line.split("reduce ").nth(1))
        .and_then(|rest| rest.split(' ').next());
    let method = method_of(op.expect("a reduction"));
    (method.to_owned(), vec![reduction::<3>(method, dtype, extents(shape), bits, [0, 2])])
}

fn batch_or_tf32(program: &Program, dtype: DType) -> Called {
    if program.inputs.len() == 2 {
        let (a, b) = (program.tile::<f32>(0), program.tile::<f32>(1));
        return one("mma", mma_tf32(a, b, Tile::zeros(extents(&program.shape))));
    }
    let [(left, a_shape, a), (right, b_shape, b), (_, c_shape, c)] = &program.inputs[..] else {
        panic!("a product has three operands")
    };
    let [count, columns, rows] = extents(b_shape);
    let turned: Vec<u64> = (0..b.len())
        .map(|i| {
            let (matrix, row, column) = (i / (rows * columns), i / columns % rows, i % columns);
            b[matrix * rows * columns + column * rows + row]
        })
        .collect();
    let b = ([count, rows, columns], &turned[..]);
    let result = product::<3>(*left, *right, dtype, (extents(a_shape), a), b, (extents(c_shape), c));
    (String::from("mma"), vec![result])
}
