//! What a condition that holds says of the integers that it compares.
//!
//! A comparison speaks of values as they are, wrapped; a [`Range`] speaks of the integer before wrapping. So:
//!
//! * An upper bound `v <= w` is one of the integer, and then it isn't negative either, if `w` is no number that has
//!   wrapped: a negative `v` would be larger than every bound.
//! * A lower bound `v >= w` is one of the integer if `v` isn't negative: by its form, because nothing else is known
//!   of it, or because an upper bound says so.
//! * What relies on `w` not being negative is asked of the launch only where `v` would have no range at all: a
//!   launch is never refused for a bound that isn't needed.

use super::range::Range;
use super::ranges::{Ranges, integer};
use crate::dim::Dim;
use crate::kernel::{Kernel, OpData, ValueId};
use crate::ops::{BinaryOp, Literal, Op, Predicate, UnaryOp};
use std::collections::{BTreeMap, BTreeSet};

/// How deep expressions are compared.
const DEPTH: usize = 8;

type Comparison = (ValueId, Predicate, ValueId);

/// The comparisons that hold where a condition does, or where it doesn't.
pub(super) fn implied(kernel: &Kernel, condition: ValueId, holds: bool) -> Vec<Comparison> {
    let (mut comparisons, mut seen) = (Vec::new(), BTreeSet::new());
    let mut open = vec![(condition, holds)];
    while let Some((condition, holds)) = open.pop() {
        // One condition may be part of another in many ways.
        let Some(data) = kernel.definition(condition).filter(|_| seen.insert((condition, holds))) else {
            continue;
        };
        match &data.op {
            Op::Compare(predicate) if integer(kernel, data.operands[0]).is_some() => {
                let predicate = if holds { *predicate } else { predicate.negated() };
                comparisons.push((data.operands[0], predicate, data.operands[1]));
            }
            Op::Binary(BinaryOp::And) if holds => {
                open.extend(data.operands.iter().rev().map(|&side| (side, true)))
            }
            Op::Binary(BinaryOp::Or) if !holds => {
                open.extend(data.operands.iter().rev().map(|&side| (side, false)))
            }
            Op::Unary(UnaryOp::Not) => open.push((data.operands[0], !holds)),
            _ => {}
        }
    }
    comparisons
}

/// The comparisons that hold at the beginning of every turn of a `while`: the first condition says them of the
/// values that the loop starts with, the later ones of the values that it goes on with.
pub(super) fn repeated(kernel: &Kernel, data: &OpData) -> Vec<Comparison> {
    let region = kernel.region(data.regions[0]);
    let Some(last) = region.ops.last().map(|&op| kernel.op(op)).filter(|last| last.op == Op::Yield) else {
        return Vec::new();
    };
    let (Some((&first, starts)), Some((&again, nexts))) =
        (data.operands.split_first(), last.operands.split_first())
    else {
        return Vec::new();
    };
    let value = |start: ValueId, next: ValueId| {
        let mut carried = starts.iter().zip(nexts).zip(&region.params);
        match carried.find(|&((&from, &to), _)| (from, to) == (start, next)) {
            Some((_, &param)) => Some(param),
            None => same(kernel, start, next, DEPTH).then_some(start),
        }
    };
    let later = implied(kernel, again, true);
    let pairs = implied(kernel, first, true);
    let both = pairs.into_iter().flat_map(|(a, predicate, b)| {
        let matching = later.iter().filter(move |(_, other, _)| *other == predicate);
        matching.filter_map(move |&(x, _, y)| Some((value(a, x)?, predicate, value(b, y)?)))
    });
    both.collect()
}

/// Whether two ops compute the same of the same.
pub(super) fn computes_same(kernel: &Kernel, a: &OpData, b: &OpData) -> bool {
    equal(kernel, a, b, DEPTH)
}

fn equal(kernel: &Kernel, a: &OpData, b: &OpData, depth: usize) -> bool {
    let operands = || a.operands.iter().zip(&b.operands);
    a.op.is_leaf()
        && a.op == b.op
        && a.operands.len() == b.operands.len()
        && operands().all(|(&a, &b)| same(kernel, a, b, depth))
}

fn same(kernel: &Kernel, a: ValueId, b: ValueId, depth: usize) -> bool {
    a == b
        || depth > 0
            && match (kernel.definition(a), kernel.definition(b)) {
                (Some(a), Some(b)) => equal(kernel, a, b, depth - 1),
                _ => false,
            }
}

/// What comparisons that hold say of each value that they compare, and of what those are sums of.
pub(super) fn refinements(
    kernel: &Kernel,
    ranges: &Ranges,
    comparisons: &[Comparison],
) -> BTreeMap<ValueId, Range> {
    let mut sides: BTreeMap<ValueId, Vec<(Predicate, ValueId)>> = BTreeMap::new();
    for &(a, predicate, b) in comparisons {
        sides.entry(a).or_default().push((predicate, b));
        sides.entry(b).or_default().push((predicate.swapped(), a));
    }
    let mut refinements: BTreeMap<ValueId, Range> = BTreeMap::new();
    for (value, sides) in sides {
        let bounds = compared(kernel, ranges, value, &sides);
        if let Some((term, moved)) = term(kernel, ranges, value, &bounds) {
            add(refinements.entry(term).or_default(), moved);
        }
        add(refinements.entry(value).or_default(), bounds);
    }
    refinements.retain(|_, found| !found.min.is_empty() || !found.max.is_empty());
    refinements
}

fn add(bounds: &mut Range, more: Range) {
    bounds.min.extend(more.min);
    bounds.max.extend(more.max);
    bounds.loops.extend(more.loops);
    bounds.requires.extend(more.requires);
}

fn compared(kernel: &Kernel, ranges: &Ranges, value: ValueId, sides: &[(Predicate, ValueId)]) -> Range {
    let Some(dtype) = integer(kernel, value) else { return Range::default() };
    let own = ranges.operand(kernel, value);
    let mut found = Range::default();
    for &(predicate, other) in sides {
        if matches!(predicate, Predicate::Lt | Predicate::Le | Predicate::Eq) {
            let less = Dim::from(i64::from(predicate == Predicate::Lt));
            let mut above = ceiling(kernel, ranges, predicate, other, own.is_known());
            above.max.iter_mut().for_each(|max| *max = max.clone() - less.clone());
            above.min.clear();
            add(&mut found, above);
        }
    }
    if !dtype.is_signed() && !found.max.is_empty() {
        found.min.push(Dim::from(0));
    }
    let settled = dtype.is_signed() || !found.max.is_empty() || own.min.iter().any(Dim::is_natural);
    for &(predicate, other) in sides.iter().filter(|_| settled) {
        let is_zero = ranges.operand(kernel, other).is_zero();
        let more = match predicate {
            Predicate::Gt => 1,
            Predicate::Ge | Predicate::Eq => 0,
            Predicate::Ne if is_zero && !dtype.is_signed() => 1,
            _ => continue,
        };
        let mut below = ranges.stored(kernel, other);
        if own.is_known() && !below.requires.is_empty() {
            continue;
        }
        below.min.iter_mut().for_each(|min| *min = min.clone() + Dim::from(more));
        below.max.clear();
        add(&mut found, below);
    }
    found
}

/// Upper bounds of the other side of a comparison, as it is compared.
fn ceiling(kernel: &Kernel, ranges: &Ranges, predicate: Predicate, other: ValueId, needless: bool) -> Range {
    match kernel.definition(other).map(|data| &data.op) {
        // An extent that is negative reads as 0, which no unsigned number is below.
        Some(Op::Extent(dim)) if predicate == Predicate::Lt => {
            return Range { max: vec![ranges.facts().apply(dim)], ..Range::default() };
        }
        _ => {}
    }
    let signed = integer(kernel, other).is_some_and(|dtype| dtype.is_signed());
    let mut range = ranges.stored(kernel, other);
    let natural = range.min.iter().any(Dim::is_natural);
    if range.max.is_empty() || needless && (!range.requires.is_empty() || !signed && !natural) {
        return Range::default();
    }
    if !signed && !natural {
        range.requires.extend(range.min.first().cloned());
    }
    range
}

/// What bounds of a sum of a value and a number say of the value: `i + 1 < n` makes `i < n - 1`.
fn term(kernel: &Kernel, ranges: &Ranges, sum: ValueId, bounds: &Range) -> Option<(ValueId, Range)> {
    let data = kernel.definition(sum)?;
    let &[term, number] = data.operands.as_slice() else { return None };
    let number = match &kernel.definition(number)?.op {
        Op::Constant { value: Literal::Int(number), .. } => i64::try_from(*number).ok()?,
        Op::Extent(dim) => dim.as_const()?,
        _ => return None,
    };
    let number = match data.op {
        Op::Binary(BinaryOp::Add) if number >= 0 => number,
        Op::Binary(BinaryOp::Sub) if number >= 0 && !bounds.max.is_empty() => -number,
        _ => return None,
    };
    let is_natural = ranges.operand(kernel, term).min.iter().any(Dim::is_natural);
    if !is_natural || !is_whole(kernel, ranges, term, number) || !bounds.requires.is_empty() {
        return None;
    }
    let moved = |bounds: &[Dim]| bounds.iter().map(|bound| bound.clone() - Dim::from(number)).collect();
    Some((term, Range { min: moved(&bounds.min), max: moved(&bounds.max), ..bounds.clone() }))
}

/// Whether a comparison of the sum of a value and a number speaks of the integer that the sum is.
fn is_whole(kernel: &Kernel, ranges: &Ranges, term: ValueId, number: i64) -> bool {
    let (Some(dtype), Some((low, high))) = (integer(kernel, term), ranges.operand_interval(kernel, term))
    else {
        return false;
    };
    let (least, greatest) = dtype.int_range();
    // A difference of unsigned numbers that has wrapped is above every bound.
    let least = if dtype.is_signed() { least } else { -(greatest / 2) };
    least <= low + i128::from(number) && high + i128::from(number) <= greatest
}

#[cfg(test)]
mod tests {
    use crate::abi::{BindError, KernelAbi};
    use crate::array::Array;
    use crate::dtype::DType;
    use crate::ops::Literal;
    use crate::{Instance, interp, text};

    /// A kernel whose line `use %e` reads tile `e` of `x`, or prints it.
    fn kernel(lines: &str, reads: bool) -> String {
        let mut ops = Vec::new();
        for (number, line) in lines.lines().enumerate() {
            ops.push(match line.trim().strip_prefix("use ") {
                Some(index) if reads => format!("%t{number} = load %v[{index}] : tile<4 x f32>"),
                Some(index) => format!("print {number} \"{{0}}\" {index}"),
                None => line.to_owned(),
            });
        }
        format!(
            "kernel @k(%x: tensor<m x f32>, %s: index, %z: i64, %y: mut tensor<n x f32>) {{
  %v = partition %x [4] : partition<m x f32, [4]>
  %w = partition %y [8] : mut partition<n x f32, [8]>
  %i = block_index %w : index
  %zero = constant 0 : index
  %one = constant 1 : index
  %tiles = extent floor_div(m, 4) : index
  %less = extent floor_div(m, 4) - 1 : index
{}
}}
",
            ops.join("\n")
        )
    }

    /// How often a launch is accepted, of those that read inside; every accepted one does.
    fn accepted(lines: &str) -> (usize, usize) {
        let instance = |reads| {
            let source = kernel(lines, reads);
            Instance::parse(&source, &[]).unwrap_or_else(|error| panic!("{error}\n{source}"))
        };
        let (reading, printing) = (instance(true), instance(false));
        let abi = KernelAbi::of(&reading);
        let (mut count, mut inside) = (0, 0);
        for (m, n) in [0, 3, 4, 9, 16, 23].into_iter().flat_map(|m| [0, 1, 8, 17, 40].map(|n| (m, n))) {
            let (mut all_inside, full) =
                (true, |extent| Array::full(DType::F32, &[extent], Literal::Float(0.0)));
            for (s, z) in [(0, 0), (1, -1), (2, 1), (5, i64::MIN), (u64::MAX, 3), (u64::MAX - 1, i64::MAX)] {
                let scalar = |dtype, value: i128| Array::scalar(dtype, Literal::Int(value));
                let (s, z) = (scalar(DType::Index, s.into()), scalar(DType::I64, z.into()));
                let events = interp::run_logged(&printing, &mut [full(m), s, z, full(n)]).unwrap();
                let read = events.iter().map(|event| event.values[0].get_int(0));
                all_inside &= read.into_iter().all(|tile| tile >= 0 && tile * 4 + 4 <= m as i128);
            }
            let bound = abi.bind(&[&[m], &[n]]);
            assert!(all_inside || bound.is_err(), "m = {m}, n = {n}: {lines}");
            assert!(matches!(bound, Ok(_) | Err(BindError::Check { .. })), "{bound:?}");
            count += usize::from(bound.is_ok());
            inside += usize::from(all_inside);
        }
        (count, inside)
    }

    /// Bodies whose guards keep every read inside, and what a launch that reads nothing outside may be refused for.
    #[test]
    fn guarded_reads_are_accepted_exactly_where_they_are_inside() {
        let mut wrong = Vec::new();
        for lines in [
            "%c = lt %i, %tiles : bool\nif %c {\nuse %i\n}",
            "%c = gt %tiles, %i : bool\nif %c {\nuse %i\n}",
            "%c = ge %i, %tiles : bool\nif %c {\n} else {\nuse %i\n}",
            "%c = ge %i, %tiles : bool\n%d = not %c : bool\nif %d {\nuse %i\n}",
            // Data, of which nothing else is known.
            "%c = lt %s, %tiles : bool\nif %c {\nuse %s\n}",
            "%c = lt %s, %less : bool\nif %c {\nuse %s\n}",
            "%c = eq %s, %i : bool\n%d = lt %i, %tiles : bool\n%e = and %c, %d : bool\nif %e {\nuse %s\n}",
            "%c = lt %s, %tiles : bool\n%d = lt %i, %s : bool\n%e = and %c, %d : bool\nif %e {\nuse %s\n}",
            "%c = ge %s, %tiles : bool\n%d = eq %s, %one : bool\n%e = or %c, %d : bool\nif %e {\n} else {\nuse %s\n}",
            // The same expression, computed again.
            "%a = add %s, %one : index\n%c = lt %a, %tiles : bool\nif %c {\n%b = add %s, %one : index\nuse %b\n}",
            // A term of the sum that is compared.
            "%a = add %i, %one : index\n%c = lt %a, %tiles : bool\nif %c {\nuse %i\nuse %a\n}",
            "%a = sub %i, %one : index\n%c = lt %a, %less : bool\nif %c {\nuse %i\nuse %a\n}",
            "%c = gt %i, %zero : bool\n%d = lt %i, %tiles : bool\n%e = and %c, %d : bool\nif %e {\n%b = sub %i, %one : index\nuse %b\n}",
            "%c = ne %i, %zero : bool\n%d = le %i, %tiles : bool\n%e = and %c, %d : bool\nif %e {\n%b = sub %i, %one : index\nuse %b\n}",
            // A difference that wraps is above the bound.
            "%a = sub %i, %one : index\n%c = lt %a, %tiles : bool\nif %c {\nuse %a\n}",
            // Guards inside guards, and in loops.
            "%c = lt %s, %tiles : bool\nif %c {\n%d = lt %i, %s : bool\nif %d {\nuse %i\n}\n}",
            "for %p = %zero to %tiles {\n%q = add %p, %one : index\n%c = lt %q, %tiles : bool\nif %c {\nuse %q\n}\n}",
            // Signed numbers need both sides.
            "%t64 = cast %tiles : i64\n%z64 = cast %zero : i64\n%c = lt %z, %t64 : bool\n%d = ge %z, %z64 : bool\n%e = and %c, %d : bool\nif %e {\n%u = cast %z : index\nuse %u\n}",
            // A loop's own condition, of what it carries.
            "%c = lt %zero, %tiles : bool\n%r = while %c carry (%a = %zero) : index {\nuse %a\n%b = add %a, %one : index\n%d = lt %b, %tiles : bool\nyield %d, %b\n}",
            "%c = lt %s, %tiles : bool\n%r = while %c carry (%a = %s) : index {\nuse %a\n%b = add %a, %one : index\n%u = lt %b, %tiles : bool\n%q = lt %s, %tiles : bool\n%d = and %u, %q : bool\nyield %d, %b\n}",
        ] {
            let (count, inside) = accepted(lines);
            if (count, inside) != (30, 30) {
                wrong.push((count, inside, lines));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// The parts of a condition are looked at once each, however often they meet.
    #[test]
    fn a_condition_of_a_condition_twice_is_no_more_work() {
        for (op, branches) in [("and", "{\nuse %s\n}"), ("or", "{\n} else {\nuse %s\n}")] {
            let compare = if op == "and" { "lt" } else { "ge" };
            let first = format!("%c0 = {compare} %s, %tiles : bool\n");
            let chain = (0..64).map(|i| format!("%c{} = {op} %c{i}, %c{i} : bool\n", i + 1));
            let lines = format!("{first}{}if %c64 {branches}", chain.collect::<String>());
            assert_eq!(accepted(&lines), (30, 30), "{op}");
        }
    }

    /// `i + C` that wraps below 0 says nothing of `i`.
    #[test]
    fn sums_that_wrap_say_nothing_of_their_terms() {
        for (dtype, number) in [("i32", 2147483640i64), ("i64", i64::MAX - 2)] {
            let source = format!(
                "kernel @k(%y: mut tensor<n x f32>) {{
  %v = partition %y [4] : mut partition<n x f32, [4]>
  %zero = constant 0 : index
  %ten = constant 10 : index
  %z = constant 0 : {dtype}
  %big = constant {number} : {dtype}
  for %p = %zero to %ten {{
    %j = cast %p : {dtype}
    %s = add %j, %big : {dtype}
    %c = lt %s, %z : bool
    if %c {{
      %d = lt %j, %z : bool
      print 0 \"{{0}}\" %d
    }}
  }}
}}
"
            );
            let instance = Instance::parse(&source, &[]).unwrap();
            let optimized = text::print(&crate::passes::optimize(instance));
            assert!(!optimized.contains("constant true"), "{optimized}");
        }
    }

    /// Guards that don't keep reads inside: launches that would read outside are refused.
    #[test]
    fn guards_that_do_not_bound_are_not_believed() {
        for (lines, expected) in [
            // An extent below zero reads as 0, and 0 is at most 0.
            ("%c = le %i, %less : bool\nif %c {\nuse %i\n}", None),
            ("%c = lt %i, %tiles : bool\nif %c {\n} else {\nuse %i\n}", None),
            (
                "%c = lt %i, %tiles : bool\n%d = lt %s, %one : bool\n%e = or %c, %d : bool\nif %e {\nuse %i\n}",
                None,
            ),
            // `tiles - 1` wraps where there are none.
            ("%l = sub %tiles, %one : index\n%c = lt %s, %l : bool\nif %c {\nuse %s\n}", Some(20)),
            ("%l = sub %i, %one : index\n%c = lt %l, %tiles : bool\nif %c {\n} else {\nuse %i\n}", None),
            ("%c = gt %i, %one : bool\nif %c {\n%b = sub %i, %one : index\nuse %b\n}", None),
        ] {
            let (count, _) = accepted(lines);
            assert!(count < 30, "{lines}");
            assert!(expected.is_none_or(|expected| count >= expected), "{count}: {lines}");
        }
    }
}
