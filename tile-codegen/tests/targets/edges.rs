//! Every leaf op that gives exact results, at the ends of every format and between neighbours of every other, on every
//! processor and GPU, bit by bit against the evaluator. `golden` has NumPy's numbers for the evaluator itself, and `accuracy`
//! the functions whose results aren't exact.
//!
//! All kernels on all targets take long; a run of all tests takes all of them on this machine's processor and some of them
//! on other targets, another each, and one for which there is a deadline ends with it.

use crate::deadline;
use crate::leaf::{edges, elements, pairs, zeros};
use crate::support::{all_cpus, identical, instance, is_emulated, run_native, run_simt_as};
use std::fmt::Write;
use tile_codegen::{Cpu, Options};
use tile_ir::array::{Elements, round_float};
use tile_ir::ops::{BinaryOp, Classification, Domain, Predicate, UnaryOp};
use tile_ir::target::TARGETS;
use tile_ir::{Array, DType, Rounding, TargetDesc, interp};

/// An op with its operands, and the format of its results.
type Line = (String, DType);

/// Results that one kernel has: with many more, what LLVM asks of their addresses takes most of the time.
const RESULTS: usize = 8;

/// Which of the kernels a run of all tests takes to other targets.
const STEP: usize = 4;

/// The environment variable with which a run takes every kernel on every target; `cargo xtask fuzz` sets it.
const EVERY: &str = "TILE_EVERY_EDGE";

fn of_two(dtype: DType) -> Vec<Line> {
    let pairs = BinaryOp::ALL.iter().filter(|op| op.domain().accepts(dtype) && op.ulps().is_none());
    let pairs = pairs.map(|op| (format!("{} %a, %b", op.name()), dtype));
    let questions = Predicate::ALL.iter().filter(|it| it.domain().accepts(dtype));
    let questions = questions.map(|it| (format!("{} %a, %b", it.name()), DType::Bool));
    let fused =
        ["mul_add %a, %b, %a", "mul_add %a, %b, %b"].into_iter().filter(|_| Domain::Float.accepts(dtype));
    pairs.chain(questions).chain(fused.map(|line| (line.to_owned(), dtype))).collect()
}

fn of_one(dtype: DType) -> Vec<Line> {
    let ops = UnaryOp::ALL.iter().filter(|op| op.domain().accepts(dtype) && op.ulps().is_none());
    let mut lines: Vec<Line> = ops.map(|op| (format!("{} %a", op.name()), dtype)).collect();
    let questions = Classification::ALL.iter().filter(|_| Domain::Float.accepts(dtype));
    lines.extend(questions.map(|it| (format!("{} %a", it.name()), DType::Bool)));
    for to in elements().filter(|to| *to != dtype) {
        lines.push(("cast %a".to_owned(), to));
        if to == DType::Bool || dtype == DType::Bool {
            continue;
        }
        // The bits of a NaN are the machine's where something made it, but these are in memory.
        if to.bits() == dtype.bits() {
            lines.push(("bitcast %a".to_owned(), to));
        }
        if Domain::Float.accepts(dtype) && Domain::Float.accepts(to) {
            lines.push(("saturating_cast %a".to_owned(), to));
        }
        let roundings = Rounding::ALL.iter().filter(|_| Domain::Float.accepts(dtype));
        lines.extend(roundings.map(|rounding| (format!("cast_with {} %a", rounding.name()), to)));
    }
    lines
}

/// The ends of a format, and of every format of floats what lies at its ends and between its neighbours.
fn one(dtype: DType) -> Array {
    if !dtype.is_float() {
        return edges(dtype);
    }
    let ends = edges(dtype);
    let mut numbers: Vec<f64> = (0..ends.len()).map(|i| ends.get_f64(i)).collect();
    for format in elements().filter_map(DType::float_format) {
        let least = 2f64.powi(format.min_exponent() - format.mantissa_bits as i32);
        let (unit, greatest) = (format.epsilon(), format.max());
        let ties = [1.0 + unit / 2.0, 1.0 + 1.5 * unit, 1.0 + unit / 2.0 + unit / 64.0];
        let low = [least, least / 2.0, 0.75 * least, 1.5 * least, 2.5 * least];
        let high = [greatest, greatest * (1.0 + unit / 8.0), greatest * (1.0 + unit / 2.0)];
        numbers.extend(ties.into_iter().chain(low).chain(high).flat_map(|x| [x, -x]));
    }
    for bits in [8, 16, 32, 64] {
        let end = 2f64.powi(bits);
        numbers.extend([end - 0.5, end, -end / 2.0 - 0.5, -end / 2.0 - 1.0, end / 2.0 - 0.5, end / 2.0]);
    }
    let rounded: Vec<f64> = numbers.into_iter().map(|number| round_float(dtype, number)).collect();
    Array::new(dtype, vec![rounded.len()], Elements::Float(rounded))
}

/// A kernel that gives the result of every line.
fn kernel(dtype: DType, lines: &[Line]) -> String {
    let results = lines.iter().enumerate();
    let results: String = results.map(|(i, (_, to))| format!(", %y{i}: mut tensor<n x {to}>")).collect();
    let pad = crate::kernels::zero(dtype.name());
    let mut text = format!(
        "kernel @edges(%x: tensor<n x {dtype}>, %w: tensor<n x {dtype}>{results}) {{
  %vx = partition %x [64] : partition<n x {dtype}, [64]>
  %vw = partition %w [64] : partition<n x {dtype}, [64]>
"
    );
    for (i, (_, to)) in lines.iter().enumerate() {
        let _ = writeln!(text, "  %v{i} = partition %y{i} [64] : mut partition<n x {to}, [64]>");
    }
    let _ = write!(
        text,
        "  %i = block_index %v0 : index
  %pad = constant {pad} : {dtype}
  %a = load_masked %vx[%i] pad %pad : tile<64 x {dtype}>
  %b = load_masked %vw[%i] pad %pad : tile<64 x {dtype}>
"
    );
    for (i, (line, to)) in lines.iter().enumerate() {
        let _ = writeln!(text, "  %r{i} = {line} : tile<64 x {to}>\n  store_masked %v{i}, %r{i}");
    }
    text + "}\n"
}

/// A kernel on a processor or a GPU.
struct Case {
    source: String,
    arguments: Vec<Array>,
    expected: Vec<Array>,
}

impl Case {
    fn of(dtype: DType, lines: &[Line], [a, b]: [&Array; 2]) -> Case {
        let results = lines.iter().map(|(_, to)| zeros(*to, a.len()));
        let arguments: Vec<Array> = [a.clone(), b.clone()].into_iter().chain(results).collect();
        let source = kernel(dtype, lines);
        let mut expected = arguments.clone();
        interp::run(&instance(&source, &[]), &mut expected).expect("the shapes fit");
        Case { source, arguments, expected }
    }

    fn same(&self, found: &[Array], target: &str) {
        for (i, (found, expected)) in found.iter().zip(&self.expected).enumerate().skip(2) {
            identical(found, expected, &format!("result {} on {target} of\n{}", i - 2, self.source));
        }
    }

    fn natively(&self, options: &Options) {
        let found = run_native(&instance(&self.source, &[]), &self.arguments, options);
        self.same(&found, options.cpu.name());
    }

    fn on_threads(&self, gpu: &str) {
        self.same(&run_simt_as(gpu, &instance(&self.source, &[]), &self.arguments, Some(32)), gpu);
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in elements() {
        let (left, right) = pairs(dtype);
        for lines in of_two(dtype).chunks(RESULTS) {
            cases.push(Case::of(dtype, lines, [&left, &right]));
        }
        let numbers = one(dtype);
        for lines in of_one(dtype).chunks(RESULTS) {
            cases.push(Case::of(dtype, lines, [&numbers, &numbers]));
        }
    }
    cases
}

#[test]
fn leaf_ops_have_the_same_bits_here_and_on_others_in_turn() {
    let every = std::env::var_os(EVERY).is_some();
    let gpus: Vec<&str> =
        TARGETS.iter().map(|target| target.name).filter(|name| *name != TargetDesc::cpu().name).collect();
    let others: Vec<Cpu> = all_cpus().into_iter().filter(|cpu| *cpu != Cpu::Host).collect();
    for (i, case) in cases().iter().enumerate().take_while(|_| !deadline::is_past()) {
        let takes = |number: usize, targets: usize| every || i % STEP == 0 && i / STEP % targets == number;
        case.natively(&Options::default());
        for (_, &cpu) in others.iter().enumerate().filter(|(number, _)| takes(*number, others.len())) {
            case.natively(&Options { cpu, ..Options::default() });
        }
        if is_emulated() {
            continue;
        }
        for (_, gpu) in gpus.iter().enumerate().filter(|(number, _)| takes(*number, gpus.len())) {
            case.on_threads(gpu);
        }
    }
}
