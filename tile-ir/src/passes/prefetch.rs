//! Follows the hint `latency n` of a view: a loop that reads its tiles asks, at the head of each turn, for the tile
//! that it reads `n` turns later.
//!
//! The index of that tile is the load's own, computed with the counter plus `n`, so it must be arithmetic of the
//! counter and of what the loop doesn't change; for any other nothing is done, nor for a load under an `if`. What lies
//! beyond the loop's end is asked for too: a prefetch is defined for any index.

use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::loc::Loc;
use crate::ops::{BinaryOp, Literal, Op};
use crate::types::Type;
use std::collections::{HashMap, HashSet};

/// Adds prefetches to every `for` loop.
pub(super) fn run(kernel: &mut Kernel) {
    for op in kernel.walk() {
        if kernel.op(op).op == Op::For {
            let region = kernel.op(op).regions[0];
            let mut ahead = Ahead::of(kernel, region);
            let loads = kernel.region(region).ops.clone();
            loads.into_iter().for_each(|load| ahead.follow(kernel, load));
            kernel.region_mut(region).ops.splice(0..0, ahead.head);
        }
    }
}

/// What one loop computes ahead of time.
struct Ahead {
    counter: ValueId,
    /// The ops of the loop's region by what they give.
    inside: HashMap<ValueId, OpId>,
    /// What may differ from turn to turn: parameters, what depends on them, and what isn't arithmetic.
    changing: HashSet<ValueId>,
    /// What can be computed for another turn: the counter, and numbers from it and from outside.
    arithmetic: HashSet<ValueId>,
    /// Values of a later turn, by how many turns later.
    later: HashMap<(ValueId, i64), ValueId>,
    /// The view and the indices of what is asked for.
    asked: HashSet<Vec<ValueId>>,
    head: Vec<OpId>,
}

impl Ahead {
    fn of(kernel: &Kernel, region: RegionId) -> Ahead {
        let params = &kernel.region(region).params;
        let counter = *params.first().expect("verified: `for` has a counter");
        let mut ahead = Ahead {
            counter,
            inside: HashMap::new(),
            changing: params.iter().copied().collect(),
            arithmetic: HashSet::from([counter]),
            later: HashMap::new(),
            asked: HashSet::new(),
            head: Vec::new(),
        };
        for &op in &kernel.region(region).ops {
            ahead.note(kernel, op);
        }
        ahead
    }

    fn note(&mut self, kernel: &Kernel, op: OpId) {
        let data = kernel.op(op);
        self.inside.extend(data.results.iter().map(|&result| (result, op)));
        let is_number = |&value: &ValueId| match kernel.ty(value) {
            Type::Scalar(elem) => elem.known().is_some_and(|dtype| !dtype.is_float()),
            _ => false,
        };
        let known = data.op.is_leaf()
            && data.results.iter().chain(&data.operands).all(is_number)
            && data.operands.iter().all(|&operand| self.is_known_ahead(operand));
        if known {
            self.arithmetic.extend(&data.results);
        }
        if !known || data.operands.iter().any(|operand| self.changing.contains(operand)) {
            self.changing.extend(&data.results);
        }
    }

    /// Whether a value can be computed for another turn.
    fn is_known_ahead(&self, value: ValueId) -> bool {
        self.arithmetic.contains(&value) || !self.changing.contains(&value)
    }

    /// Asks for what a load reads later, if its view has the hint.
    fn follow(&mut self, kernel: &mut Kernel, load: OpId) {
        let data = kernel.op(load).clone();
        let Some(load) = data.load() else { return };
        let Some(turns) = latency(kernel, load.view) else { return };
        let moves = load.index.iter().any(|index| self.changing.contains(index));
        if !moves || !load.index.iter().all(|&index| self.is_known_ahead(index)) {
            return;
        }
        let mut operands = vec![load.view];
        operands.extend(load.index.iter().map(|&index| self.at(kernel, index, turns)));
        if self.asked.insert(operands.clone()) {
            self.append(kernel, Op::Prefetch, operands, data.loc);
        }
    }

    /// What a value is some turns later.
    fn at(&mut self, kernel: &mut Kernel, value: ValueId, turns: i64) -> ValueId {
        if let Some(&later) = self.later.get(&(value, turns)) {
            return later;
        }
        let later = match self.inside.get(&value) {
            Some(&op) => {
                let data = kernel.op(op).clone();
                let operands = data.operands.iter().map(|&operand| self.at(kernel, operand, turns)).collect();
                self.append(kernel, data.op, operands, data.loc)[0]
            }
            None if value == self.counter => {
                let turns =
                    Op::Constant { value: Literal::Int(turns.into()), elem: Type::INDEX.elem().clone() };
                let turns = self.append(kernel, turns, Vec::new(), Loc::UNKNOWN)[0];
                self.append(kernel, Op::Binary(BinaryOp::Add), vec![value, turns], Loc::UNKNOWN)[0]
            }
            None => value,
        };
        self.later.insert((value, turns), later);
        later
    }

    fn append(&mut self, kernel: &mut Kernel, op: Op, operands: Vec<ValueId>, loc: Loc) -> Vec<ValueId> {
        let types: Vec<Type> = operands.iter().map(|&value| kernel.ty(value).clone()).collect();
        let types = crate::ops::result_types(&op, &types).expect("the types are those of a verified op");
        let results: Vec<ValueId> = types.into_iter().map(|ty| kernel.new_value(ty, None)).collect();
        let data = OpData { op, operands, results: results.clone(), regions: Vec::new(), loc };
        self.head.push(kernel.new_op(data));
        results
    }
}

/// The latency that a view asks for.
fn latency(kernel: &Kernel, view: ValueId) -> Option<i64> {
    match &kernel.definition(view)?.op {
        Op::Partition(cut) => cut.hints.latency.as_ref()?.as_const(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::passes::{PIPELINE, optimize, run};
    use crate::{Instance, text};

    fn after(latency: &str, body: &str) -> String {
        let source = format!(
            "kernel @k(%x: tensor<n x m x f32>, %s: tensor<1 x i64>, %y: mut tensor<n x f32>) {{
  %vx = partition %x [4, 8]{latency} : partition<n x m x f32, [4, 8]>
  %vs = partition %s [1] : partition<1 x i64, [1]>
  %vy = partition %y [4] : mut partition<n x f32, [4]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
  %zero = constant 0 : index
  %end = extent ceil_div(m, 8) : index
{body}
}}
"
        );
        let pass = PIPELINE.iter().find(|pass| pass.name == "prefetch").unwrap();
        let printed = text::print(&run(Instance::parse(&source, &[]).unwrap(), pass));
        let lines: Vec<&str> = printed.lines().collect();
        lines[1..lines.len() - 1].join("\n")
    }

    const LOOP: &str = "  for %p = %zero to %end {
    %two = constant 2 : index
    %q = mul %p, %two : index
    %a = load_masked %vx[%i, %q] pad %pad : tile<4 x 8 x f32>
    %b = load_masked %vx[%i, %q] pad %pad : tile<4 x 8 x f32>
    %c = load_masked %vx[%p, %q] pad %pad : tile<4 x 8 x f32>
    %d = load_masked %vx[%i, %zero] pad %pad : tile<4 x 8 x f32>
  }";

    #[test]
    fn a_loop_asks_for_what_it_reads_later() {
        insta::assert_snapshot!(after(" latency 3", LOOP));
    }

    #[test]
    fn what_nobody_reads_is_not_asked_for() {
        let source = "kernel @k(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [4] latency 2 : partition<n x f32, [4]>
  %vy = partition %y [4] : mut partition<n x f32, [4]>
  %pad = constant 0.0 : f32
  %zero = constant 0 : index
  %end = extent ceil_div(n, 4) : index
  for %p = %zero to %end {
    %a = load_masked %vx[%p] pad %pad : tile<4 x f32>
  }
  %t = splat %pad : tile<4 x f32>
  store_masked %vy, %t
}
";
        let optimized = text::print(&optimize(Instance::parse(source, &[]).unwrap()));
        assert!(!optimized.contains("prefetch") && !optimized.contains("for"), "{optimized}");
    }

    #[test]
    fn without_the_hint_nothing_is_asked_for() {
        assert!(!after("", LOOP).contains("prefetch"));
        assert!(!after(" bulk_copy true", LOOP).contains("prefetch"));
    }

    /// The index comes from memory, is carried, or is the same in every turn.
    #[test]
    fn an_index_that_is_no_arithmetic_of_the_counter_asks_for_nothing() {
        let body = "  %first = load_masked %vx[%i, %zero] pad %pad : tile<4 x 8 x f32>
  %last = for %p = %zero to %end carry (%q = %zero) : index {
    %one = constant 1 : index
    %t = load_unchecked %vs[%zero] : tile<1 x i64>
    %j = item %t : i64
    %k = cast %j : index
    %l = add %k, %p : index
    %a = load_masked %vx[%i, %l] pad %pad : tile<4 x 8 x f32>
    %b = load_masked %vx[%i, %q] pad %pad : tile<4 x 8 x f32>
    %next = add %q, %one : index
    yield %next
  }";
        assert!(!after(" latency 1", body).contains("prefetch"));
    }

    #[test]
    fn prefetches_stay_and_are_no_values() {
        let body = "  for %p = %zero to %end {
    prefetch %vx[%i, %zero]
    prefetch %vx[%i, %zero]
  }
  prefetch %vy";
        let source = after("", body);
        let whole = format!(
            "kernel @k(%x: tensor<n x m x f32>, %s: tensor<1 x i64>, %y: mut tensor<n x f32>) {{\n{source}\n}}\n"
        );
        let optimized = crate::passes::optimize(Instance::parse(&whole, &[]).unwrap()).to_string();
        let lines: Vec<&str> = optimized.lines().map(str::trim).collect();
        let first = lines.iter().position(|line| line.starts_with("for ")).unwrap();
        let inside = "prefetch %vx[%i, %zero]";
        assert_eq!(lines[first + 1..], [inside, inside, "}", "prefetch %vy", "}"], "{optimized}");
    }
}
