//! Each rule where it applies, each where it must not, and all of them on random numbers.

use super::{RULES, canonicalize, run};
use crate::array::{Array, Elements};
use crate::dtype::{Class, DType};
use crate::interp;
use crate::ops::{BinaryOp, Literal, UnaryOp};
use crate::passes::{Pass, dce, run as run_pass};
use crate::specialize::Instance;
use crate::text::print;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Write;

fn instance(lines: &str) -> Instance {
    let source = format!(
        "kernel @k(%s: i32, %z: i32, %u: u8, %f: f32, %g: f32, %c: bool, %d: index, %y: mut tensor<m x n x f32>) \
         where \"m % 8 == 0\": rem(m, 8) eq 0, \"m > 0\": m gt 0 {{
  %v = partition %y [4, 2] : mut partition<m x n x f32, [4, 2]>
  %i, %j = block_index %v : index, index
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %i0 = constant 0 : index
  %i8 = constant 8 : index
  %m = extent m : index
  %true = constant true : bool
  %t = load_masked %v pad %f : tile<4 x 2 x f32>
{lines}
}}
"
    );
    Instance::parse(&source, &[]).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

/// What the rules leave of the lines, and the rules that were applied.
fn after(lines: &str) -> (String, Vec<&'static str>) {
    let mut applied = Vec::new();
    let rewritten = instance(lines).rewrite("canonicalize", |kernel| {
        canonicalize(kernel, &mut |rule| applied.push(rule));
        dce::run(kernel);
    });
    let printed = print(&rewritten);
    let kept: Vec<&str> = printed.lines().map(str::trim).collect();
    (kept[2..kept.len() - 1].join("\n"), applied)
}

/// Rule, lines, and what is left of them.
const CASES: &[(&str, &str, &str)] = &[
    (
        "constant to the right",
        "%r = add %one, %s : i32\n%b = lt %one, %s : bool\nprint 0 \"{0}{1}\" %r, %b",
        "%one = constant 1 : i32\n%r = add %s, %one : i32\n%b = gt %s, %one : bool\nprint 0 \"{0}{1}\" %r, %b",
    ),
    ("neutral operand", "%r = add %s, %zero : i32\nprint 0 \"{0}\" %r", "print 0 \"{0}\" %s"),
    ("neutral operand", "%r = mul %s, %one : i32\nprint 0 \"{0}\" %r", "print 0 \"{0}\" %s"),
    ("neutral operand", "%r = rem %s, %zero : i32\nprint 0 \"{0}\" %r", "print 0 \"{0}\" %s"),
    (
        "neutral operand",
        "%w = constant 32 : i32\n%r = shl %s, %w : i32\nprint 0 \"{0}\" %r",
        "print 0 \"{0}\" %s",
    ),
    (
        "neutral operand",
        "%w = constant -32 : i32\n%r = rotate_left %s, %w : i32\nprint 0 \"{0}\" %r",
        "print 0 \"{0}\" %s",
    ),
    (
        "neutral operand",
        "%w = constant -1 : i32\n%r = and %s, %w : i32\nprint 0 \"{0}\" %r",
        "print 0 \"{0}\" %s",
    ),
    ("neutral operand", "%r = and %c, %true : bool\nprint 0 \"{0}\" %r", "print 0 \"{0}\" %c"),
    (
        "neutral operand",
        "%w = constant -0.0 : f32\n%r = add %f, %w : f32\nprint 0 \"{0}\" %r",
        "print 0 \"{0}\" %f",
    ),
    (
        "neutral operand",
        "%w = constant 1.0 : f32\n%r = mul %f, %w : f32\nprint 0 \"{0}\" %r",
        "print 0 \"{0}\" %f",
    ),
    (
        "neutral operand",
        "%w = constant 1.0 : f32\n%x = splat %w : tile<4 x 2 x f32>\n%r = div %t, %x : tile<4 x 2 x f32>\nstore_masked %v, %r",
        "%i, %j = block_index %v : index, index\n%t = load_masked %v pad %f : tile<4 x 2 x f32>\nstore_masked %v, %t",
    ),
    (
        "absorbing operand",
        "%r = mul %s, %zero : i32\nprint 0 \"{0}\" %r",
        "%r = constant 0 : i32\nprint 0 \"{0}\" %r",
    ),
    (
        "absorbing operand",
        "%r = or %c, %true : bool\nprint 0 \"{0}\" %r",
        "%r = constant true : bool\nprint 0 \"{0}\" %r",
    ),
    (
        "nothing divided",
        "%a = splat %zero : tile<4 x i32>\n%b = splat %s : tile<4 x i32>\n%r = div %a, %b : tile<4 x i32>\nprint 0 \"{0}\" %r",
        "%0 = constant 0 : i32\n%r = splat %0 : tile<4 x i32>\nprint 0 \"{0}\" %r",
    ),
    (
        "nothing divided",
        "%r = rotate_right %zero, %s : i32\nprint 0 \"{0}\" %r",
        "%r = constant 0 : i32\nprint 0 \"{0}\" %r",
    ),
    ("operand twice", "%r = max %f, %f : f32\nprint 0 \"{0}\" %r", "print 0 \"{0}\" %f"),
    (
        "operand twice",
        "%r = sub %s, %s : i32\nprint 0 \"{0}\" %r",
        "%r = constant 0 : i32\nprint 0 \"{0}\" %r",
    ),
    (
        "compare with itself",
        "%r = le %s, %s : bool\nprint 0 \"{0}\" %r",
        "%r = constant true : bool\nprint 0 \"{0}\" %r",
    ),
    (
        "negation of a comparison",
        "%a = lt %s, %z : bool\n%r = not %a : bool\nprint 0 \"{0}\" %r",
        "%r = ge %s, %z : bool\nprint 0 \"{0}\" %r",
    ),
    ("undone", "%a = neg %f : f32\n%r = neg %a : f32\nprint 0 \"{0}\" %r", "print 0 \"{0}\" %f"),
    ("undone", "%a = not %u : u8\n%r = not %a : u8\nprint 0 \"{0}\" %r", "print 0 \"{0}\" %u"),
    (
        "undone",
        "%a = swap_bytes %s : i32\n%r = swap_bytes %a : i32\nprint 0 \"{0}\" %r",
        "print 0 \"{0}\" %s",
    ),
    (
        "magnitude",
        "%a = neg %s : i32\n%r = abs %a : i32\nprint 0 \"{0}\" %r",
        "%r = abs %s : i32\nprint 0 \"{0}\" %r",
    ),
    ("select of one arm", "%r = select %c, %s, %s : i32\nprint 0 \"{0}\" %r", "print 0 \"{0}\" %s"),
    ("select of one arm", "%r = select %true, %s, %z : i32\nprint 0 \"{0}\" %r", "print 0 \"{0}\" %s"),
    (
        "select of truths",
        "%a = constant false : bool\n%r = select %c, %true, %a : bool\nprint 0 \"{0}\" %r",
        "print 0 \"{0}\" %c",
    ),
    (
        "select by a negation",
        "%a = not %c : bool\n%r = select %a, %s, %z : i32\nprint 0 \"{0}\" %r",
        "%r = select %c, %z, %s : i32\nprint 0 \"{0}\" %r",
    ),
    (
        "mul_add by one",
        "%a = constant 1.0 : f32\n%r = mul_add %a, %f, %g : f32\nprint 0 \"{0}\" %r",
        "%r = add %f, %g : f32\nprint 0 \"{0}\" %r",
    ),
    (
        "division by a power of two",
        "%q = div %d, %i8 : index\n%r = rem %d, %i8 : index\nprint 0 \"{0}{1}\" %q, %r",
        "%0 = constant 3 : index\n%q = shr %d, %0 : index\n%1 = constant 7 : index\n%r = and %d, %1 : index\nprint 0 \"{0}{1}\" %q, %r",
    ),
    ("cast to the same format", "%r = cast %s : i32\nprint 0 \"{0}\" %r", "print 0 \"{0}\" %s"),
    (
        "cast of a cast",
        "%a = cast %u : i64\n%r = cast %a : i8\nprint 0 \"{0}\" %r",
        "%r = cast %u : i8\nprint 0 \"{0}\" %r",
    ),
    (
        "bitcast of a bitcast",
        "%a = bitcast %f : u32\n%r = bitcast %a : i32\nprint 0 \"{0}\" %r",
        "%r = bitcast %f : i32\nprint 0 \"{0}\" %r",
    ),
    (
        "movement of one number",
        "%a = splat %s : tile<2 x 4 x i32>\n%b = permute %a [1, 0] : tile<4 x 2 x i32>\n%r = flip %b axis 0 : tile<4 x 2 x i32>\nprint 0 \"{0}\" %r",
        "%r = splat %s : tile<4 x 2 x i32>\nprint 0 \"{0}\" %r",
    ),
    (
        "movement of one number",
        "%a = splat %one : tile<4 x i32>\n%x = constant 1 : i32\n%r = pad %a, %x [1] [2] : tile<7 x i32>\nprint 0 \"{0}\" %r",
        "%one = constant 1 : i32\n%r = splat %one : tile<7 x i32>\nprint 0 \"{0}\" %r",
    ),
    ("movement that moves nothing", "%r = permute %t [0, 1] : tile<4 x 2 x f32>\nprint 0 \"{0}\" %r", LOADED),
    ("movement that moves nothing", "%r = reshape %t : tile<4 x 2 x f32>\nprint 0 \"{0}\" %r", LOADED),
    (
        "movement that moves nothing",
        "%r = pad %t, %g [0, 0] [0, 0] : tile<4 x 2 x f32>\nprint 0 \"{0}\" %r",
        LOADED,
    ),
    (
        "movement that moves nothing",
        "%r = roll %t axis 0 by -4 : tile<4 x 2 x f32>\nprint 0 \"{0}\" %r",
        LOADED,
    ),
    (
        "movement that moves nothing",
        "%r = shift %t, %g axis 1 by 0 : tile<4 x 2 x f32>\nprint 0 \"{0}\" %r",
        LOADED,
    ),
    (
        "movement that moves nothing",
        "%a = exp %t : tile<4 x 2 x f32>\n%r = insert %a, %t [0, 0] : tile<4 x 2 x f32>\nprint 0 \"{0}\" %r",
        LOADED,
    ),
    (
        "permute of a permute",
        "%a = permute %t [1, 0] : tile<2 x 4 x f32>\n%r = permute %a [1, 0] : tile<4 x 2 x f32>\nprint 0 \"{0}\" %r",
        LOADED,
    ),
    (
        "reshape of a reshape",
        "%a = reshape %t : tile<8 x f32>\n%r = reshape %a : tile<4 x 2 x f32>\nprint 0 \"{0}\" %r",
        LOADED,
    ),
    (
        "broadcast of a broadcast",
        "%a = reshape %t : tile<8 x 1 x 1 x f32>\n%b = broadcast %a : tile<8 x 1 x 3 x f32>\n%r = broadcast %b : tile<8 x 2 x 3 x f32>\nprint 0 \"{0}\" %r",
        "%i, %j = block_index %v : index, index\n%t = load_masked %v pad %f : tile<4 x 2 x f32>\n%a = reshape %t : tile<8 x 1 x 1 x f32>\n%r = broadcast %a : tile<8 x 2 x 3 x f32>\nprint 0 \"{0}\" %r",
    ),
    (
        "flip of a flip",
        "%a = flip %t axis 0 : tile<4 x 2 x f32>\n%r = flip %a axis 0 : tile<4 x 2 x f32>\nprint 0 \"{0}\" %r",
        LOADED,
    ),
    (
        "one number possible",
        "%a = rem %m, %i8 : index\n%r = min %a, %i0 : index\nprint 0 \"{0}\" %r",
        "%r = constant 0 : index\nprint 0 \"{0}\" %r",
    ),
    (
        "min and max of ordered numbers",
        "%a = and %d, %i8 : index\n%b = extent m + 8 : index\n%r = min %a, %b : index\nprint 0 \"{0}\" %r",
        "%i8 = constant 8 : index\n%a = and %d, %i8 : index\nprint 0 \"{0}\" %a",
    ),
    (
        "comparison of ordered numbers",
        "%r = ge %m, %i8 : bool\nprint 0 \"{0}\" %r",
        "%r = constant true : bool\nprint 0 \"{0}\" %r",
    ),
    (
        "division by a larger number",
        "%a = constant 7 : index\n%b = and %d, %a : index\n%r = rem %b, %m : index\nprint 0 \"{0}\" %r",
        "%a = constant 7 : index\n%b = and %d, %a : index\nprint 0 \"{0}\" %b",
    ),
    (
        "remainder of a multiple",
        "%r = rem %m, %i8 : index\nprint 0 \"{0}\" %r",
        "%r = constant 0 : index\nprint 0 \"{0}\" %r",
    ),
    (
        "quotient times divisor",
        "%a = div %m, %i8 : index\n%r = mul %a, %i8 : index\nprint 0 \"{0}\" %r",
        "%m = extent m : index\nprint 0 \"{0}\" %m",
    ),
    (
        "loop without turns",
        "%r = for %p = %i8 to %i0 carry (%a = %s) : i32 {\n%b = add %a, %z : i32\nyield %b\n}\nprint 0 \"{0}\" %r",
        "print 0 \"{0}\" %s",
    ),
    (
        "carried value that never changes",
        "%r, %q = for %p = %i0 to %d carry (%a = %s, %b = %z) : i32, i32 {\n%e = add %b, %a : i32\nyield %a, %e\n}\nprint 0 \"{0}{1}\" %r, %q",
        "%i0 = constant 0 : index\n%q = for %p = %i0 to %d carry (%b = %z) : i32 {\n%e = add %b, %s : i32\nyield %e\n}\nprint 0 \"{0}{1}\" %s, %q",
    ),
    (
        "carried value that nobody uses",
        "%r, %q = while %c carry (%a = %s, %b = %z) : i32, i32 {\n%e = add %b, %a : i32\n%h = add %a, %a : i32\n%g2 = lt %h, %z : bool\nyield %g2, %h, %e\n}\nprint 0 \"{0}\" %r",
        "%r = while %c carry (%a = %s) : i32 {\n%h = add %a, %a : i32\n%g2 = lt %h, %z : bool\nyield %g2, %h\n}\nprint 0 \"{0}\" %r",
    ),
    (
        "result that nobody uses",
        "%r, %q = if %c : i32, i32 {\n%a = add %s, %z : i32\n%b = sub %s, %z : i32\nyield %a, %b\n} else {\nyield %s, %z\n}\nprint 0 \"{0}\" %r",
        "%r = if %c : i32 {\n%a = add %s, %z : i32\nyield %a\n} else {\nyield %s\n}\nprint 0 \"{0}\" %r",
    ),
    (
        "branches that give the same",
        "%r, %q = if %c : i32, i32 {\n%a = constant 5 : i32\nyield %a, %s\n} else {\n%b = constant 5 : i32\nyield %b, %s\n}\nprint 0 \"{0}{1}\" %r, %q",
        "%0 = constant 5 : i32\nprint 0 \"{0}{1}\" %0, %s",
    ),
];

const LOADED: &str = "%i, %j = block_index %v : index, index
%t = load_masked %v pad %f : tile<4 x 2 x f32>
print 0 \"{0}\" %t";

#[test]
fn every_rule_applies_where_it_says() {
    let (mut seen, mut wrong) = (BTreeSet::new(), String::new());
    for (rule, lines, expected) in CASES {
        // What is dead is still valid.
        run_pass(instance(lines), &Pass { name: "canonicalize", rewrite: run });
        let (left, applied) = after(lines);
        let expected = expected.replace("%i, %j = block_index %v : index, index\n", "");
        if left != expected || !applied.contains(rule) {
            let _ = writeln!(
                wrong,
                "{rule}, {applied:?}:
{lines}
became
{left}
"
            );
        }
        seen.insert(*rule);
    }
    assert!(wrong.is_empty(), "{wrong}");
    let untested: Vec<_> =
        RULES.iter().copied().flatten().map(|rule| rule.name).filter(|name| !seen.contains(name)).collect();
    assert_eq!(untested, [""; 0]);
}

#[test]
fn what_is_not_exact_is_left_alone() {
    for lines in [
        // −0 + 0 is 0, ∞ * 0 and ∞ − ∞ are NaN, NaN isn't itself, max(NaN, −∞) is −∞.
        "%a = constant 0.0 : f32\n%r = add %f, %a : f32",
        "%a = constant 0.0 : f32\n%r = mul %f, %a : f32",
        "%a = constant -0.0 : f32\n%r = sub %f, %a : f32",
        "%r = sub %f, %f : f32",
        "%r = div %f, %f : f32",
        "%r = eq %f, %f : bool",
        "%a = constant -inf : f32\n%r = max %f, %a : f32",
        "%a = lt %f, %g : bool\n%r = not %a : bool",
        // 0 / 0 is 0.
        "%r = div %s, %s : i32",
        // Rounds toward zero.
        "%a = constant 4 : i32\n%r = div %s, %a : i32",
        // 300 as u8 is 44; as a float it is 255.
        "%a = cast %s : f64\n%r = cast %a : u8",
        "%a = cast %f : f16\n%r = cast %a : f32",
        "%a = cast %s : i8\n%r = cast %a : i32",
        "%r = roll %t axis 0 by 2 : tile<4 x 2 x f32>",
        "%a = flip %t axis 0 : tile<4 x 2 x f32>\n%r = flip %a axis 1 : tile<4 x 2 x f32>",
        "%a = splat %f : tile<4 x f32>\n%r = pad %a, %g [1] [2] : tile<7 x f32>",
        // Any number, which may be larger than another.
        "%r = min %d, %m : index",
        "%r = rem %d, %m : index",
        "%a = div %d, %i8 : index\n%b = constant 9 : index\n%r = mul %a, %b : index",
    ] {
        let lines = format!("{lines}\nprint 0 \"{{0}}\" %r");
        let (left, applied) = after(&lines);
        let applied: Vec<_> =
            applied.into_iter().filter(|rule| *rule != "division by a power of two").collect();
        assert!(applied.is_empty(), "{applied:?}: {lines}\n{left}");
    }
}

/// Numbers on which rules and formats have their edges.
fn edges(dtype: DType) -> Vec<String> {
    match dtype {
        DType::Bool => ["true", "false"].map(str::to_owned).to_vec(),
        dtype if dtype.is_float() => {
            ["0.0", "-0.0", "1.0", "-1.0", "inf", "-inf", "nan", "0.5", "3.0"].map(str::to_owned).to_vec()
        }
        dtype => {
            let (least, greatest) = dtype.int_range();
            let mut numbers = vec![0, 1, 2, 3, 8, 16, least, greatest, greatest / 2 + 1];
            numbers.extend(dtype.is_signed().then_some([-1, -8]).into_iter().flatten());
            numbers.iter().map(i128::to_string).collect()
        }
    }
}

/// A straight program over one format: leaf ops of constants and of unknown numbers, all of which it prints.
fn program(dtype: DType, tape: &[u8]) -> String {
    let mut tape = tape.iter();
    let mut choose = |below: usize| usize::from(tape.next().copied().unwrap_or(0)) % below;
    let (mut text, mut names) = (String::new(), Vec::new());
    for (number, edge) in edges(dtype).into_iter().enumerate() {
        // A branch on an argument hides its number from the rules.
        let _ = writeln!(text, "%k{number} = constant {edge} : {dtype}");
        let _ =
            writeln!(text, "%e{number} = if %c : {dtype} {{\nyield %k{number}\n}} else {{\nyield %k0\n}}");
        names.extend([format!("%k{number}"), format!("%e{number}")]);
    }
    // The sign of a NaN, which rules don't keep, would show through `copysign`.
    let shows = |op: &&BinaryOp| **op == BinaryOp::CopySign;
    let binary = BinaryOp::ALL.iter().filter(|op| op.domain().accepts(dtype) && !shows(op));
    let binary: Vec<&BinaryOp> = binary.collect();
    let unary =
        [UnaryOp::Neg, UnaryOp::Not, UnaryOp::Abs].into_iter().filter(|op| op.domain().accepts(dtype));
    let unary: Vec<UnaryOp> = unary.collect();
    for value in 0..24 {
        let mut pick = || names[names.len() - 1 - choose(names.len().min(40))].clone();
        let (a, b, d) = (pick(), pick(), pick());
        let body = match choose(8) {
            0 if !unary.is_empty() => format!("{} {a}", unary[choose(unary.len())].name()),
            1 => {
                let predicate = ["eq", "ne", "lt", "le"][choose(if dtype == DType::Bool { 2 } else { 4 })];
                let _ = writeln!(
                    text,
                    "%c{value} = {predicate} {a}, {b} : bool\n%n{value} = not %c{value} : bool"
                );
                format!("select %n{value}, {a}, {d}")
            }
            2 => {
                let through = [DType::F32, DType::I8, DType::I64, DType::F64, DType::Bool][choose(5)];
                if through != dtype {
                    let _ = writeln!(text, "%w{value} = cast {a} : {through}");
                    format!("cast %w{value}")
                } else {
                    format!("select %c, {a}, {b}")
                }
            }
            3 if dtype.is_float() => format!("mul_add {a}, {b}, {d}"),
            _ => format!("{} {a}, {b}", binary[choose(binary.len())].name()),
        };
        let _ = writeln!(text, "%v{value} = {body} : {dtype}");
        names.push(format!("%v{value}"));
    }
    for value in 0..24 {
        let _ = writeln!(text, "print {value} \"{{0}}\" %v{value}");
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    /// Random arithmetic on the edges of every format is the same after the rules, bit by bit but for NaN.
    #[test]
    fn random_arithmetic_keeps_its_numbers(which in 0..DType::ALL.len(), tape in proptest::collection::vec(any::<u8>(), 100..200)) {
        let dtype = DType::ALL[which];
        prop_assume!(dtype.is_element() && dtype.class() != Class::Scale);
        let before = instance(&program(dtype, &tape));
        let pass = Pass { name: "canonicalize", rewrite: run };
        let after = run_pass(before.clone(), &pass);
        for c in [0, 1] {
            let values = |instance: &Instance| {
                let scalar = |dtype, number| Array::scalar(dtype, number);
                let (int, float) = (Literal::Int(1), Literal::Float(1.0));
                let mut arguments = [
                    scalar(DType::I32, int),
                    scalar(DType::I32, int),
                    scalar(DType::U8, int),
                    scalar(DType::F32, float),
                    scalar(DType::F32, float),
                    scalar(DType::Bool, Literal::Int(c)),
                    scalar(DType::Index, int),
                    Array::full(DType::F32, &[8, 2], float),
                ];
                let events = interp::run_logged(instance, &mut arguments).unwrap();
                let bits = |array: &Array| match array.elements() {
                    Elements::Int(values) => values.clone(),
                    Elements::Float(values) => {
                        values.iter().map(|x| if x.is_nan() { -1 } else { i128::from(x.to_bits()) }).collect()
                    }
                };
                events.iter().map(|event| bits(&event.values[0])).collect::<Vec<_>>()
            };
            prop_assert_eq!(values(&before), values(&after), "{}\nbecame\n{}", print(&before), print(&after));
        }
    }
}

#[test]
fn what_a_loop_over_tiles_carries_for_nothing_goes() {
    let source = "kernel @k(%s: i32, %y: mut tensor<m x i32>) {
  %v = partition %y [4] : mut partition<m x i32, [4]>
  %zero = constant 0 : i32
  %r = tiles %v row_major carry (%a = %zero) : i32 {
    %b = add %a, %s : i32
    %t = splat %s : tile<4 x i32>
    store_masked %v, %t
    yield %b
  }
}
";
    let instance = Instance::parse(source, &[]).unwrap();
    let rewritten = instance.rewrite("canonicalize", |kernel| {
        canonicalize(kernel, &mut |_| {});
        dce::run(kernel);
    });
    assert!(!print(&rewritten).contains("carry"), "{}", print(&rewritten));
}
