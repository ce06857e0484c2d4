//! Every op that has numbers, on every format that it accepts, against NumPy's numbers: evaluator, native code, and
//! simulated threads. `tests/golden/ops.py` wrote them; [`coverage`] says what must be there.

mod coverage;

use crate::accuracy::{BOUNDS, PAIR_BOUNDS};
use crate::kernels::{elementwise, reduction};
use crate::support::{instance, run_native, run_simt};
use coverage::{Covered, covered_by};
use serde_json::Value;
use tile_codegen::Options;
use tile_ir::ops::{BinaryOp, Literal, Predicate, ReduceOp};
use tile_ir::{Array, DType, Instance, interp};

const CASES: &str = include_str!("../../../../tests/golden/ops_golden.jsonl");

fn format(value: &Value) -> DType {
    DType::from_name(value.as_str().unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|bits| bits.as_u64().unwrap()).collect()
}

fn array(dtype: DType, shape: &[usize], bits: &Value) -> Array {
    let bytes: Vec<u8> =
        numbers(bits).iter().flat_map(|bits| bits.to_le_bytes()[..dtype.bytes()].to_vec()).collect();
    Array::from_bytes(dtype, shape, &bytes)
}

/// What the evaluator, the native code and simulated threads make of the arguments.
fn runs(instance: &Instance, arguments: &[Array]) -> [Vec<Array>; 3] {
    let mut evaluated = arguments.to_vec();
    interp::run(instance, &mut evaluated).unwrap();
    let native = run_native(instance, arguments, &Options::default());
    [evaluated, native, run_simt(instance, arguments, Some(4))]
}

/// What they make of the last argument.
fn results(instance: &Instance, arguments: &[Array]) -> [Array; 3] {
    runs(instance, arguments).map(|mut arguments| arguments.pop().expect("the result is an argument"))
}

/// The distance of neighbours at a number of a format.
fn unit(dtype: DType, value: f64) -> f64 {
    let format = dtype.float_format().unwrap();
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    2f64.powi(exponent.max(format.min_exponent()) - format.mantissa_bits as i32)
}

/// Asserts equality within `units` of the last place; signs of zeros count where the result is exact.
fn same(found: &Array, expected: &Array, places: &[usize], units: f64, what: &str) {
    for (i, &place) in places.iter().enumerate() {
        let (f, e) = (found.get_f64(place), expected.get_f64(i));
        let equal = match units {
            0.0 if found.dtype().is_float() => f.to_bits() == e.to_bits() || f.is_nan() && e.is_nan(),
            0.0 => found.get(place) == expected.get(i),
            _ => f == e || f.is_nan() && e.is_nan() || (f - e).abs() <= units * unit(found.dtype(), e),
        };
        assert!(equal, "{what}: element {place} is {f:?}, not {e:?}");
    }
}

/// The bound of an op in units of the last place; a narrow format is rounded from f32.
fn bound(op: &str, dtype: DType) -> f64 {
    let unary = BOUNDS.iter().map(|&(op, f32, f64)| (op.name(), f32, f64));
    let binary = PAIR_BOUNDS.iter().map(|&(op, f32, f64)| (op.name(), f32, f64));
    let row = unary.chain(binary).find(|(name, ..)| *name == op);
    row.map_or(0.0, |(_, f32, f64)| match dtype {
        DType::F32 => f32,
        DType::F64 => f64,
        _ => 1.0,
    })
}

fn leaf(case: &Value, a: &Array, b: &Array) -> (String, DType) {
    let (op, dtype, result) = (case["op"].as_str().unwrap(), format(&case["dtype"]), format(&case["result"]));
    let pair = BinaryOp::from_name(op).is_some() || Predicate::from_name(op).is_some();
    let operands = if op == "mul_add" {
        "%a, %b, %a"
    } else if pair {
        "%a, %b"
    } else {
        "%a"
    };
    let source = elementwise(dtype.name(), result.name(), &format!("{op} {operands}"));
    let instance = instance(&source, &[("B", 64)]);
    let zeros = Array::full(result, &[a.len()], Literal::Int(0));
    let expected = array(result, &[case["expected"].as_array().unwrap().len()], &case["expected"]);
    let places: Vec<usize> = match &case["at"] {
        Value::Null => (0..a.len()).collect(),
        at => numbers(at).iter().map(|&place| place as usize).collect(),
    };
    let what = format!("{op} of {dtype} to {result}");
    for found in results(&instance, &[a.clone(), b.clone(), zeros]) {
        same(&found, &expected, &places, bound(op, dtype), &what);
    }
    let converts = op.contains("cast");
    (if converts { format!("{op} to {result}") } else { op.to_owned() }, dtype)
}

fn reduced(case: &Value) {
    let (op, dtype) =
        (ReduceOp::from_name(case["reduce"].as_str().unwrap()).unwrap(), format(&case["dtype"]));
    let shape: Vec<usize> = numbers(&case["shape"]).iter().map(|&extent| extent as usize).collect();
    let axis = case["axis"].as_u64().unwrap() as usize;
    let mut result = shape.clone();
    result[axis] = 1;
    let instance = instance(&reduction(dtype, op, &shape, axis), &[]);
    let arguments = [array(dtype, &shape, &case["a"]), Array::full(dtype, &result, Literal::Int(0))];
    let expected = array(dtype, &result, &case["expected"]);
    let places: Vec<usize> = (0..expected.len()).collect();
    for found in results(&instance, &arguments) {
        // −0 and 0 are sums of the same numbers in different orders.
        let units = if dtype.is_float() { f64::MIN_POSITIVE } else { 0.0 };
        same(&found, &expected, &places, units, &format!("{} of {dtype} along {axis}", op.name()));
    }
}

fn multiplied(case: &Value) {
    let [left, right, total] = [0, 1, 2].map(|i| format(&case["mma"][i]));
    let [m, k, n] = [0, 1, 2].map(|i| case["shape"][i].as_u64().unwrap() as usize);
    let (a, b, c) = (
        array(left, &[m, k], &case["a"]),
        array(right, &[k, n], &case["b"]),
        array(total, &[m, n], &case["c"]),
    );
    let zero = |dtype: DType| if dtype.is_float() { "0.0" } else { "0" };
    let source = format!(
        "kernel @product(%a: tensor<{m} x {k} x {left}>, %b: tensor<{k} x {n} x {right}>, %c: mut tensor<{m} x {n} x {total}>) {{
  %va = partition %a [{m}, {k}] : partition<{m} x {k} x {left}, [{m}, {k}]>
  %vb = partition %b [{k}, {n}] : partition<{k} x {n} x {right}, [{k}, {n}]>
  %vc = partition %c [{m}, {n}] : mut partition<{m} x {n} x {total}, [{m}, {n}]>
  %i, %j = block_index %vc : index, index
  %za = constant {} : {left}
  %zb = constant {} : {right}
  %zc = constant {} : {total}
  %ta = load_masked %va[%i, %j] pad %za : tile<{m} x {k} x {left}>
  %tb = load_masked %vb[%i, %j] pad %zb : tile<{k} x {n} x {right}>
  %tc = load_masked %vc pad %zc : tile<{m} x {n} x {total}>
  %r = mma %ta, %tb, %tc : tile<{m} x {n} x {total}>
  store_masked %vc, %r
}}
",
        zero(left),
        zero(right),
        zero(total),
    );
    let expected = array(total, &[m, n], &case["expected"]);
    let places: Vec<usize> = (0..expected.len()).collect();
    for found in results(&instance(&source, &[]), &[a, b, c]) {
        let units = if total.is_float() { f64::MIN_POSITIVE } else { 0.0 };
        same(&found, &expected, &places, units, &format!("{left} · {right} + {total}"));
    }
}

/// A whole tile of each input, some ops, and the tiles `%r`, `%s` stored. Gives the ops.
fn program(case: &Value) -> Covered {
    let tiles = |key: &str| -> Vec<Array> {
        let list = case[key].as_array().unwrap().iter();
        list.map(|tile| {
            let shape: Vec<usize> = numbers(&tile["shape"]).iter().map(|&extent| extent as usize).collect();
            array(format(&tile["dtype"]), &shape, &tile["bits"])
        })
        .collect()
    };
    let (inputs, outputs) = (tiles("inputs"), tiles("outputs"));
    let mut source = String::from("kernel @program(");
    let all = inputs.iter().zip(["", "", ""]).chain(outputs.iter().zip(["mut ", "mut "])).enumerate();
    let parameters: Vec<String> = all
        .map(|(i, (array, mutable))| format!("%t{i}: {mutable}tensor<{}{}>", extents(array), array.dtype()))
        .collect();
    source += &format!("{}) {{\n  %zero = constant 0 : index\n", parameters.join(", "));
    for (i, (input, name)) in inputs.iter().zip(["a", "b", "c"]).enumerate() {
        let (shape, ty) = (input.shape(), format!("{}{}", extents(input), input.dtype()));
        let pad = if input.dtype().is_float() { "0.0" } else { "0" };
        let pad = if input.dtype() == DType::Bool { "false" } else { pad };
        let index = vec!["%zero"; shape.len()].join(", ");
        source += &format!("  %v{i} = partition %t{i} {shape:?} : partition<{ty}, {shape:?}>\n");
        source += &format!("  %p{i} = constant {pad} : {}\n", input.dtype());
        source += &format!("  %{name} = load_masked %v{i}[{index}] pad %p{i} : tile<{ty}>\n");
    }
    for line in case["ir"].as_array().unwrap() {
        source += &format!("  {}\n", line.as_str().unwrap());
    }
    for (i, (output, name)) in outputs.iter().zip(["r", "s"]).enumerate() {
        let (i, shape) = (inputs.len() + i, output.shape());
        let ty = format!("{}{}", extents(output), output.dtype());
        source += &format!("  %v{i} = partition %t{i} {shape:?} : mut partition<{ty}, {shape:?}>\n");
        source += &format!("  store_masked %v{i}, %{name}\n");
    }
    source += "}\n";
    let instance = instance(&source, &[]);
    let blank = outputs.iter().map(|like| Array::full(like.dtype(), like.shape(), Literal::Int(0)));
    let arguments: Vec<Array> = inputs.iter().cloned().chain(blank).collect();
    for found in runs(&instance, &arguments) {
        for (found, expected) in found[inputs.len()..].iter().zip(&outputs) {
            let places: Vec<usize> = (0..expected.len()).collect();
            // −0 and 0 are equal elements of a sort and equal sums.
            let units = if found.dtype().is_float() { f64::MIN_POSITIVE } else { 0.0 };
            same(found, expected, &places, units, &source);
        }
    }
    covered_by(&instance)
}

fn extents(array: &Array) -> String {
    array.shape().iter().map(|extent| format!("{extent} x ")).collect()
}

/// Every case checked, and what they cover.
fn check(cases: impl Iterator<Item = Value>) -> Covered {
    let mut inputs: Vec<(DType, Array, Array)> = Vec::new();
    let mut covered = Covered::new();
    for case in cases {
        if let Value::String(_) = case["inputs"] {
            let dtype = format(&case["inputs"]);
            let shape = [case["a"].as_array().unwrap().len()];
            inputs.push((dtype, array(dtype, &shape, &case["a"]), array(dtype, &shape, &case["b"])));
        } else if let Value::String(op) = &case["reduce"] {
            reduced(&case);
            covered.insert((format!("reduce {op}"), format(&case["dtype"])));
        } else if case["ir"].is_array() {
            covered.extend(program(&case));
        } else if case["mma"].is_array() {
            multiplied(&case);
            let [left, right, total] = [0, 1, 2].map(|i| format(&case["mma"][i]));
            covered.insert((format!("mma {right} {total}"), left));
        } else {
            let dtype = format(&case["dtype"]);
            let (_, a, b) = inputs.iter().find(|(of, ..)| *of == dtype).expect("inputs come first");
            covered.insert(leaf(&case, a, b));
        }
    }
    covered
}

#[test]
fn every_op_agrees_with_numpy() {
    let cases: Vec<Value> = CASES.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (programs, others) = cases.into_iter().partition::<Vec<_>, _>(|case| case["ir"].is_array());
    let covered = std::thread::scope(|scope| {
        let programs = scope.spawn(|| check(programs.into_iter()));
        let mut covered = check(others.into_iter());
        covered.extend(programs.join().unwrap());
        covered
    });
    let missing: Vec<_> = coverage::required().difference(&covered).cloned().collect();
    assert_eq!(missing, [], "no golden case");
}
