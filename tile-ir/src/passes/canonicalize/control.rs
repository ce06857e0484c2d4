//! Rules about loops and branches: loops without turns, and values that go through them for nothing.
//!
//! A loop's **slot** is what it carries under one number: a start, a parameter, what a turn gives, a result. A
//! branch's slot is what both sides yield and a result.

use crate::analysis::{Facts, Ranges};
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::{Carried, Op};
use crate::passes::{dce, replace_uses};
use std::collections::{HashMap, HashSet};

/// Applies the rules once, inner loops and branches first; says whether something changed.
pub(super) fn run(kernel: &mut Kernel, applied: &mut dyn FnMut(&'static str)) -> bool {
    let ranges = Ranges::under(kernel, Facts::of(kernel));
    let mut control = Control { ranges, applied, changed: false };
    let body = kernel.body();
    control.region(kernel, body);
    control.changed
}

struct Control<'a> {
    ranges: Ranges,
    applied: &'a mut dyn FnMut(&'static str),
    changed: bool,
}

impl Control<'_> {
    fn applied(&mut self, rule: &'static str) {
        (self.applied)(rule);
        self.changed = true;
    }

    fn region(&mut self, kernel: &mut Kernel, region: RegionId) {
        let mut kept = Vec::new();
        for op in kernel.region(region).ops.clone() {
            for inner in kernel.op(op).regions.clone() {
                self.region(kernel, inner);
            }
            match kernel.op(op).op {
                Op::For if self.never_runs(kernel, op) => {
                    self.applied("loop without turns");
                    let slots = Slots::of_loop(kernel, op, Carried::FOR);
                    let starts: Vec<_> = (0..slots.count()).map(|slot| slots.start(kernel, slot)).collect();
                    let results = kernel.op(op).results.iter().copied().zip(starts).collect();
                    replace_uses(kernel, &results);
                    continue;
                }
                Op::If => self.branches(kernel, op, &mut kept),
                _ => self.looping(kernel, op),
            }
            kept.push(op);
        }
        kernel.region_mut(region).ops = kept;
    }

    fn never_runs(&self, kernel: &Kernel, op: OpId) -> bool {
        let data = kernel.op(op);
        let (start, end) = (data.operands[0], data.operands[1]);
        start == end || self.ranges.is_at_most(kernel, op, end, start)
    }

    /// Takes what a loop needn't carry from it; of other ops nothing.
    fn looping(&mut self, kernel: &mut Kernel, op: OpId) {
        let Some(at) = Carried::of(&kernel.op(op).op) else { return };
        let slots = Slots::of_loop(kernel, op, at);
        for slot in (0..slots.count()).rev() {
            let (start, param) = (slots.start(kernel, slot), slots.param(kernel, slot));
            let next = slots.yielded(kernel, slot)[0];
            if next == param || next == start {
                self.applied("carried value that never changes");
                let result = kernel.op(op).results[slot];
                replace_uses(kernel, &HashMap::from([(param, start), (result, start)]));
                slots.remove(kernel, slot);
            }
        }
        let live = live(kernel, op, &slots);
        for slot in (0..live.len()).rev().filter(|&slot| !live[slot]) {
            self.applied("carried value that nobody uses");
            // What still computes with it is dead too, and must have an operand until it is removed.
            let (param, start) = (slots.param(kernel, slot), slots.start(kernel, slot));
            replace_uses(kernel, &HashMap::from([(param, start)]));
            slots.remove(kernel, slot);
        }
    }

    fn branches(&mut self, kernel: &mut Kernel, op: OpId, before: &mut Vec<OpId>) {
        let slots = Slots::of_branch(kernel, op);
        // What is done to one result doesn't use another.
        let used = used(kernel);
        for slot in (0..kernel.op(op).results.len()).rev() {
            let result = kernel.op(op).results[slot];
            if !used.contains(&result) {
                self.applied("result that nobody uses");
                slots.remove(kernel, slot);
            } else if let Some(value) = same(kernel, &slots.yielded(kernel, slot), before) {
                self.applied("branches that give the same");
                replace_uses(kernel, &HashMap::from([(result, value)]));
                slots.remove(kernel, slot);
            }
        }
    }
}

/// The value that both branches yield: one from outside, or equal constants, of which one is made outside.
fn same(kernel: &mut Kernel, yielded: &[ValueId], before: &mut Vec<OpId>) -> Option<ValueId> {
    let &[a, b] = yielded else { return None };
    if a == b {
        return Some(a);
    }
    let constant = |value: ValueId| kernel.definition(value).filter(|data| data.constant().is_some());
    let (first, second) = (constant(a)?, constant(b)?);
    if first.op != second.op {
        return None;
    }
    let outside = first.clone();
    let result = kernel.new_value(kernel.ty(a).clone(), None);
    before.push(kernel.new_op(OpData { results: vec![result], ..outside }));
    Some(result)
}

/// Where the slots of a loop or branch stand.
struct Slots {
    op: OpId,
    at: Carried,
    is_loop: bool,
    count: usize,
}

impl Slots {
    fn of_loop(kernel: &Kernel, op: OpId, at: Carried) -> Slots {
        Slots { op, at, is_loop: true, count: kernel.op(op).results.len() }
    }

    /// Of a branch, which has neither starts nor parameters.
    fn of_branch(kernel: &Kernel, op: OpId) -> Slots {
        let at = Carried { initial: 0, param: 0, yielded: 0 };
        Slots { op, at, is_loop: false, count: kernel.op(op).results.len() }
    }

    /// How many there were at first.
    fn count(&self) -> usize {
        self.count
    }

    fn start(&self, kernel: &Kernel, slot: usize) -> ValueId {
        kernel.op(self.op).operands[self.at.initial + slot]
    }

    fn param(&self, kernel: &Kernel, slot: usize) -> ValueId {
        kernel.region(kernel.op(self.op).regions[0]).params[self.at.param + slot]
    }

    /// What each region gives for a slot.
    fn yielded(&self, kernel: &Kernel, slot: usize) -> Vec<ValueId> {
        let regions = &kernel.op(self.op).regions;
        regions
            .iter()
            .map(|&region| kernel.op(last(kernel, region)).operands[self.at.yielded + slot])
            .collect()
    }

    fn remove(&self, kernel: &mut Kernel, slot: usize) {
        for region in kernel.op(self.op).regions.clone() {
            let end = last(kernel, region);
            kernel.op_mut(end).operands.remove(self.at.yielded + slot);
            if self.is_loop {
                kernel.region_mut(region).params.remove(self.at.param + slot);
            }
        }
        let data = kernel.op_mut(self.op);
        data.results.remove(slot);
        if self.is_loop {
            data.operands.remove(self.at.initial + slot);
        }
    }
}

fn last(kernel: &Kernel, region: RegionId) -> OpId {
    *kernel.region(region).ops.last().expect("verified: a loop's or branch's region ends with `yield`")
}

/// Every value that an op of the kernel uses.
fn used(kernel: &Kernel) -> HashSet<ValueId> {
    kernel.walk().into_iter().flat_map(|op| kernel.op(op).operands.clone()).collect()
}

/// Which slots of a loop have an effect or a result that is used, in this turn or a later one.
fn live(kernel: &Kernel, op: OpId, slots: &Slots) -> Vec<bool> {
    let (data, used) = (kernel.op(op), used(kernel));
    let mut live: Vec<bool> = data.results.iter().map(|result| used.contains(result)).collect();
    loop {
        let given = (0..live.len()).filter(|&slot| live[slot]).map(|slot| slots.yielded(kernel, slot)[0]);
        let mut needed: HashSet<ValueId> = given.collect();
        let end = kernel.op(last(kernel, data.regions[0]));
        needed.extend(&end.operands[..slots.at.yielded]);
        need(kernel, data.regions[0], &mut needed);
        let now: Vec<bool> =
            (0..live.len()).map(|slot| live[slot] || needed.contains(&slots.param(kernel, slot))).collect();
        if now == live {
            return live;
        }
        live = now;
    }
}

/// Adds what is used on the way to what is needed, and to effects.
fn need(kernel: &Kernel, region: RegionId, needed: &mut HashSet<ValueId>) {
    for &op in kernel.region(region).ops.iter().rev() {
        let data = kernel.op(op);
        let acts = dce::acts(&data.op) || data.regions.iter().any(|&inner| dce::acts_inside(kernel, inner));
        if acts || data.results.iter().any(|result| needed.contains(result)) {
            needed.extend(&data.operands);
            let inside = data.regions.iter().flat_map(|&inner| kernel.walk_in(inner));
            needed.extend(inside.flat_map(|inner| kernel.op(inner).operands.clone()));
        }
    }
}
