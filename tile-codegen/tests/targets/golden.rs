//! Every leaf op, cast, reduction and product on every format against NumPy's numbers: evaluator and native code.
//! `tests/golden/ops.py` wrote them.

use crate::accuracy::BOUNDS;
use crate::kernels::{elementwise, reduction};
use crate::support::{from_bytes, instance, run_native};
use serde_json::Value;
use tile_codegen::Options;
use tile_ir::ops::{BinaryOp, Classification, Literal, Predicate, ReduceOp, UnaryOp};
use tile_ir::{Array, DType, Instance, interp};

const CASES: &str = include_str!("../../../tests/golden/ops_golden.jsonl");

fn format(value: &Value) -> DType {
    DType::from_name(value.as_str().unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|bits| bits.as_u64().unwrap()).collect()
}

fn array(dtype: DType, shape: &[usize], bits: &Value) -> Array {
    let bytes: Vec<u8> =
        numbers(bits).iter().flat_map(|bits| bits.to_le_bytes()[..dtype.bytes()].to_vec()).collect();
    from_bytes(dtype, shape, &bytes)
}

/// What the evaluator and the native code make of the last argument.
fn results(instance: &Instance, arguments: &[Array]) -> [Array; 2] {
    let mut evaluated = arguments.to_vec();
    interp::run(instance, &mut evaluated).unwrap();
    let mut native = run_native(instance, arguments, &Options::default());
    [evaluated.pop().unwrap(), native.pop().unwrap()]
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
    let row = BOUNDS.iter().find(|(unary, ..)| unary.name() == op);
    row.map_or(0.0, |&(_, f32, f64)| match dtype {
        DType::F32 => f32,
        DType::F64 => f64,
        _ => 1.0,
    })
}

fn leaf(case: &Value, a: &Array, b: &Array) -> (String, DType) {
    let (op, dtype, result) = (case["op"].as_str().unwrap(), format(&case["dtype"]), format(&case["result"]));
    let operands =
        if BinaryOp::from_name(op).is_some() || Predicate::from_name(op).is_some() { "%a, %b" } else { "%a" };
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
    (op.to_owned(), dtype)
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

/// A whole tile of each input, some ops, and the tiles `%r`, `%s` stored.
fn program(case: &Value) {
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
    let mut evaluated = arguments.clone();
    interp::run(&instance, &mut evaluated).unwrap();
    for found in [evaluated, run_native(&instance, &arguments, &Options::default())] {
        for (found, expected) in found[inputs.len()..].iter().zip(&outputs) {
            let places: Vec<usize> = (0..expected.len()).collect();
            // −0 and 0 are equal elements of a sort and equal sums.
            let units = if found.dtype().is_float() { f64::MIN_POSITIVE } else { 0.0 };
            same(found, expected, &places, units, &source);
        }
    }
}

fn extents(array: &Array) -> String {
    array.shape().iter().map(|extent| format!("{extent} x ")).collect()
}

#[test]
fn programs_agree_with_numpy() {
    let cases = CASES.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let programs: Vec<Value> = cases.filter(|case| case["ir"].is_array()).collect();
    assert!(programs.len() > 500, "{} programs", programs.len());
    programs.iter().for_each(program);
}

#[test]
fn every_op_agrees_with_numpy() {
    let mut inputs: Vec<(DType, Array, Array)> = Vec::new();
    let mut seen: Vec<(String, DType)> = Vec::new();
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        if let Value::String(_) = case["inputs"] {
            let dtype = format(&case["inputs"]);
            let shape = [case["a"].as_array().unwrap().len()];
            inputs.push((dtype, array(dtype, &shape, &case["a"]), array(dtype, &shape, &case["b"])));
        } else if case["reduce"].is_string() {
            reduced(&case);
            seen.push((case["reduce"].as_str().unwrap().to_owned(), format(&case["dtype"])));
        } else if case["ir"].is_array() {
            continue;
        } else if case["mma"].is_array() {
            multiplied(&case);
        } else {
            let dtype = format(&case["dtype"]);
            let (_, a, b) = inputs.iter().find(|(of, ..)| *of == dtype).expect("inputs come first");
            seen.push(leaf(&case, a, b));
        }
    }
    for dtype in DType::ALL.iter().copied().filter(|dtype| dtype.is_element()) {
        let unary = UnaryOp::ALL.iter().map(|op| (op.name(), op.domain()));
        let binary = BinaryOp::ALL.iter().map(|op| (op.name(), op.domain()));
        let compare = Predicate::ALL.iter().map(|op| (op.name(), op.domain()));
        let classify = Classification::ALL.iter().map(|op| (op.name(), op.domain()));
        let reduce = ReduceOp::ALL.iter().map(|op| (op.name(), op.domain()));
        for (name, domain) in unary.chain(binary).chain(compare).chain(classify).chain(reduce) {
            let covered = seen.iter().any(|(op, of)| op == name && *of == dtype);
            assert!(
                covered || !domain.accepts(dtype) || ELSEWHERE.contains(&name),
                "no case for {name} of {dtype}"
            );
        }
    }
}

/// Ops whose numbers are checked by [`crate::accuracy`] and [`crate::leaf`] alone: NumPy has no reference with
/// the edges that they define.
const ELSEWHERE: &[&str] = &["powf", "atan2", "round_tf32", "philox"];
