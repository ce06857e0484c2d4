//! Every op that has numbers, on every format that it accepts, against NumPy's numbers: evaluator, native code, and
//! simulated threads. `tests/golden/ops.py` wrote them; [`coverage`] says what must be there. Cases of a kind are compiled
//! together.

pub(crate) mod coverage;

use crate::accuracy;
use crate::kernels::zero;
use crate::several::{self, Part, tile};
use crate::support::{instance, is_emulated, run_native, run_simt_as};
use coverage::{Covered, covered_by};
use serde_json::Value;
use tile_codegen::Options;
use tile_ir::ops::{self, Literal};
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

fn evaluate(instance: &Instance, arguments: &[Array]) -> Vec<Array> {
    let mut evaluated = arguments.to_vec();
    interp::run(instance, &mut evaluated).unwrap();
    evaluated
}

fn native(instance: &Instance, arguments: &[Array]) -> Vec<Array> {
    run_native(instance, arguments, &Options::default())
}

/// What a way of running leaves of the arguments, with its name.
type Found = (&'static str, Vec<Array>);

/// The evaluator's and native code's.
fn alone(instance: &Instance, arguments: &[Array]) -> Vec<Found> {
    vec![("the evaluator", evaluate(instance, arguments)), ("the CPU", native(instance, arguments))]
}

/// That of so many simulated threads, which tell nothing of an architecture that is emulated.
fn threads(target: &'static str, count: u32, instance: &Instance, arguments: &[Array]) -> Option<Found> {
    (!is_emulated()).then(|| (target, run_simt_as(target, instance, arguments, Some(count))))
}

/// The distance of neighbours at a number of a format.
fn unit(dtype: DType, value: f64) -> f64 {
    let format = dtype.float_format().unwrap();
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    2f64.powi(exponent.max(format.min_exponent()) - format.mantissa_bits as i32)
}

/// Asserts equality within `units` of the last place, of the expected elements and the places that they are found at; signs of
/// zeros count where the result is exact.
fn same(
    found: &Array,
    expected: &Array,
    places: impl Iterator<Item = (usize, usize)>,
    units: f64,
    what: &str,
) {
    for (i, place) in places {
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
    match ops::Leaf::from_name(op).and_then(ops::Leaf::ulps) {
        Some(ulps) if matches!(dtype, DType::F32 | DType::F64) => accuracy::bound(ulps, dtype),
        Some(_) => 1.0,
        None => 0.0,
    }
}

/// A leaf op on the inputs of its format, and what it must give.
struct Leaf {
    op: String,
    result: DType,
    expected: Array,
    /// The elements whose results are expected.
    places: Vec<usize>,
}

impl Leaf {
    fn of(case: &Value, inputs: usize) -> Leaf {
        let result = format(&case["result"]);
        let expected = array(result, &[case["expected"].as_array().unwrap().len()], &case["expected"]);
        let places = match &case["at"] {
            Value::Null => (0..inputs).collect(),
            at => numbers(at).iter().map(|&place| place as usize).collect(),
        };
        Leaf { op: case["op"].as_str().unwrap().to_owned(), result, expected, places }
    }

    fn operands(&self) -> &'static str {
        match self.op.as_str() {
            "mul_add" => "%a, %b, %a",
            op if ops::Leaf::from_name(op).map(ops::Leaf::operands) == Some(2) => "%a, %b",
            _ => "%a",
        }
    }

    fn covers(&self, dtype: DType) -> (String, DType) {
        let converts = self.op.contains("cast");
        (if converts { format!("{} to {}", self.op, self.result) } else { self.op.clone() }, dtype)
    }
}

/// One kernel of ops on the same two tensors. The elements per block are a parameter.
fn leaves_kernel(dtype: DType, leaves: &[Leaf]) -> String {
    let mut parameters = format!("%x: tensor<n x {dtype}>, %w: tensor<n x {dtype}>");
    let mut body = String::new();
    for (i, leaf) in leaves.iter().enumerate() {
        let (op, operands, result) = (&leaf.op, leaf.operands(), leaf.result);
        parameters += &format!(", %y{i}: mut tensor<n x {result}>");
        body += &format!(
            "  %v{i} = partition %y{i} [B] : mut partition<n x {result}, [B]>
  %r{i} = {op} {operands} : tile<B x {result}>
  store_masked %v{i}, %r{i}
"
        );
    }
    format!(
        "kernel @leaves<B>({parameters}) {{
  %vx = partition %x [B] : partition<n x {dtype}, [B]>
  %vw = partition %w [B] : partition<n x {dtype}, [B]>
  %i = block_id axis 0 : index
  %pad = constant {pad} : {dtype}
  %a = load_masked %vx[%i] pad %pad : tile<B x {dtype}>
  %b = load_masked %vw[%i] pad %pad : tile<B x {dtype}>
{body}}}
",
        pad = zero(dtype.name()),
    )
}

/// Leaf ops in one kernel: 64 elements per block on a CPU, where loops have full vectors and a rest, and for a warp; eight for
/// four simulated threads. So each thread has two.
fn check_leaves(dtype: DType, a: &Array, b: &Array, leaves: &[Leaf]) {
    let source = leaves_kernel(dtype, leaves);
    let results = leaves.iter().map(|leaf| Array::full(leaf.result, &[a.len()], Literal::Int(0)));
    let arguments: Vec<Array> = [a.clone(), b.clone()].into_iter().chain(results).collect();
    let [wide, narrow] = [64, 8].map(|elements| instance(&source, &[("B", elements)]));
    let mut ways = alone(&wide, &arguments);
    ways.extend(threads("sm_90a", 32, &wide, &arguments));
    ways.extend(threads("gfx942", 4, &narrow, &arguments));
    for (target, found) in ways {
        for (leaf, found) in leaves.iter().zip(&found[2..]) {
            let what = format!("{} of {dtype} to {} on {target}", leaf.op, leaf.result);
            // NVIDIA's conversions make one NaN of all 8-bit ones, which these ops see.
            let seen = match leaf.op.as_str() {
                "bitcast" => Some(a),
                "copysign" => Some(b),
                _ => None,
            };
            let seen = seen.filter(|_| target == "sm_90a" && dtype.is_float() && dtype.bytes() == 1);
            let is_lost = |place: usize| seen.is_some_and(|seen| seen.get_f64(place).is_nan());
            let places = leaf.places.iter().copied().enumerate().filter(|&(_, place)| !is_lost(place));
            same(found, &leaf.expected, places, bound(&leaf.op, dtype), &what);
        }
    }
}

/// Ops on whole tiles, and the results.
struct Program {
    part: Part,
    inputs: Vec<Array>,
    outputs: Vec<Array>,
    what: String,
}

impl Program {
    fn new(inputs: Vec<Array>, lines: Vec<String>, outputs: Vec<Array>) -> Program {
        let whole = |array: &Array| (array.dtype(), array.shape().to_vec());
        let what = format!("{lines:?} of {:?}", inputs.iter().map(whole).collect::<Vec<_>>());
        let part = Part {
            inputs: inputs.iter().map(whole).collect(),
            lines,
            outputs: outputs.iter().map(whole).collect(),
        };
        Program { part, inputs, outputs, what }
    }

    fn reduction(case: &Value) -> Program {
        let (op, dtype) = (case["reduce"].as_str().unwrap(), format(&case["dtype"]));
        let shape: Vec<usize> = numbers(&case["shape"]).iter().map(|&extent| extent as usize).collect();
        let axis = case["axis"].as_u64().unwrap() as usize;
        let mut result = shape.clone();
        result[axis] = 1;
        let line = format!("%r = reduce {op} %a axis {axis} : {}", tile(dtype, &result));
        let (input, output) = (array(dtype, &shape, &case["a"]), array(dtype, &result, &case["expected"]));
        Program::new(vec![input], vec![line], vec![output])
    }

    fn product(case: &Value) -> Program {
        let [left, right, total] = [0, 1, 2].map(|i| format(&case["mma"][i]));
        let [m, k, n] = [0, 1, 2].map(|i| case["shape"][i].as_u64().unwrap() as usize);
        let inputs = vec![
            array(left, &[m, k], &case["a"]),
            array(right, &[k, n], &case["b"]),
            array(total, &[m, n], &case["c"]),
        ];
        let line = format!("%r = mma %a, %b, %c : {}", tile(total, &[m, n]));
        Program::new(inputs, vec![line], vec![array(total, &[m, n], &case["expected"])])
    }

    fn lines(case: &Value) -> Program {
        let tiles = |key: &str| -> Vec<Array> {
            let list = case[key].as_array().unwrap().iter();
            list.map(|tile| {
                let shape = numbers(&tile["shape"]).iter().map(|&extent| extent as usize).collect::<Vec<_>>();
                array(format(&tile["dtype"]), &shape, &tile["bits"])
            })
            .collect()
        };
        let lines = case["ir"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned());
        Program::new(tiles("inputs"), lines.collect(), tiles("outputs"))
    }

    /// The ops, each with the formats that make a difference.
    fn covers(&self) -> Covered {
        let mut covered = covered_by(&instance(&several::kernel(std::slice::from_ref(&self.part)), &[]));
        if let ([(left, _), (right, _), (total, _)], true) =
            (&self.part.inputs[..], self.part.lines[0].starts_with("%r = mma "))
        {
            covered.insert((format!("mma {right} {total}"), *left));
        }
        covered
    }

    /// The axes of its outputs, which the grid has too.
    fn axes(&self) -> usize {
        self.outputs[0].shape().len()
    }
}

/// Programs in one kernel.
fn check_programs(programs: &[Program]) {
    let parts: Vec<Part> = programs.iter().map(|program| program.part.clone()).collect();
    let instance = instance(&several::kernel(&parts), &[]);
    let blank = |like: &Array| Array::full(like.dtype(), like.shape(), Literal::Int(0));
    let tensors =
        |program: &Program| program.inputs.iter().cloned().chain(program.outputs.iter().map(blank)).collect();
    let arguments: Vec<Array> = programs.iter().flat_map::<Vec<Array>, _>(tensors).collect();
    let mut ways = alone(&instance, &arguments);
    ways.extend(threads("gfx942", 4, &instance, &arguments));
    for (target, found) in ways {
        let mut found = found.iter();
        for program in programs {
            let found: Vec<&Array> = found.by_ref().take(program.part.tensors()).collect();
            for (found, expected) in found[program.inputs.len()..].iter().zip(&program.outputs) {
                // −0 and 0 are equal elements of a sort, and sums of the same numbers in different orders.
                let units = if found.dtype().is_float() { f64::MIN_POSITIVE } else { 0.0 };
                let places = (0..expected.len()).map(|i| (i, i));
                same(found, expected, places, units, &format!("{} on {target}", program.what));
            }
        }
    }
}

/// Leaf ops in one kernel.
const LEAVES: usize = 12;

/// Programs in one kernel.
const PROGRAMS: usize = 8;

/// The ops on numbers of one format, and their operands.
struct Leaves {
    dtype: DType,
    a: Array,
    b: Array,
    ops: Vec<Leaf>,
}

fn all_leaves(cases: &[Value]) -> Vec<Leaves> {
    let of_format = |inputs: &Value| {
        let dtype = format(&inputs["inputs"]);
        let shape = [inputs["a"].as_array().unwrap().len()];
        let [a, b] = ["a", "b"].map(|operand| array(dtype, &shape, &inputs[operand]));
        let ops = cases.iter().filter(|case| case["op"].is_string() && format(&case["dtype"]) == dtype);
        Leaves { dtype, a, b, ops: ops.map(|case| Leaf::of(case, shape[0])).collect() }
    };
    cases.iter().filter(|case| case["inputs"].is_string()).map(of_format).collect()
}

fn all_programs(cases: &[Value]) -> Vec<Program> {
    let programs = cases.iter().filter_map(|case| match case {
        case if case["ir"].is_array() => Some(Program::lines(case)),
        case if case["reduce"].is_string() => Some(Program::reduction(case)),
        case if case["mma"].is_array() => Some(Program::product(case)),
        _ => None,
    });
    programs.collect()
}

fn cases() -> Vec<Value> {
    CASES.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn leaf_ops_agree_with_numpy() {
    for Leaves { dtype, a, b, ops } in all_leaves(&cases()) {
        ops.chunks(LEAVES).for_each(|leaves| check_leaves(dtype, &a, &b, leaves));
    }
}

#[test]
fn programs_agree_with_numpy() {
    let mut programs = all_programs(&cases());
    programs.sort_by_key(Program::axes);
    for alike in programs.chunk_by(|a, b| a.axes() == b.axes()) {
        alike.chunks(PROGRAMS).for_each(check_programs);
    }
}

#[test]
fn every_op_has_a_case() {
    let cases = cases();
    let (leaves, programs) = (all_leaves(&cases), all_programs(&cases));
    let ops: usize = leaves.iter().map(|of_format| of_format.ops.len()).sum();
    assert_eq!(leaves.len() + ops + programs.len(), cases.len(), "a case of another kind");
    let leaves =
        leaves.iter().flat_map(|of_format| of_format.ops.iter().map(|op| op.covers(of_format.dtype)));
    let covered: Covered = leaves.chain(programs.iter().flat_map(Program::covers)).collect();
    let missing: Vec<_> = coverage::required().difference(&covered).cloned().collect();
    assert!(
        missing.is_empty(),
        "no golden case of {missing:?}: say in tests/golden/ops.py what NumPy gives, and run it as its first lines say"
    );
}
