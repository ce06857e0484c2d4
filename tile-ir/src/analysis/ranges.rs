//! The ranges of a kernel's integer scalars: [`Range`]s where values are defined, and tighter ones inside branches
//! and loops whose condition compares them (`refine`), so that a range belongs to a value and to the op
//! that uses it ([`Ranges::at`]).

use super::facts::Facts;
use super::range::{Range, Span, is_positive};
use super::refine;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::{BinaryOp, Literal, Op, Predicate};
use crate::types::Type;
use std::collections::HashMap;

/// The ranges of a kernel's integer scalars.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    facts: Facts,
    /// Where a value is defined.
    ranges: HashMap<ValueId, Range>,
    /// What conditions add. The first scope is the kernel's body, where nothing is added.
    scopes: Vec<Scope>,
    /// The scope that is being analysed.
    current: usize,
    /// The scope of every op.
    homes: HashMap<OpId, usize>,
}

/// The ranges of values inside a branch or loop whose condition bounds them.
#[derive(Clone, Debug, Default)]
struct Scope {
    parent: Option<usize>,
    ranges: HashMap<ValueId, Range>,
}

impl Ranges {
    /// Analyses a verified kernel, or one that is correct but for the bounds of its loads.
    pub fn of(kernel: &Kernel) -> Ranges {
        Ranges::under(kernel, Facts::default())
    }

    /// The ranges in terms of the unknowns of what is known of the sizes.
    pub fn under(kernel: &Kernel, facts: Facts) -> Ranges {
        let mut ranges = Ranges { facts, scopes: vec![Scope::default()], ..Ranges::default() };
        ranges.region(kernel, kernel.body());
        ranges
    }

    /// What is known of a value where it is defined; the default knows nothing.
    pub fn get(&self, value: ValueId) -> Range {
        self.ranges.get(&value).cloned().unwrap_or_default()
    }

    /// What is known of a value where an op uses it.
    pub fn at(&self, op: OpId, value: ValueId) -> Range {
        let home = self.homes.get(&op).copied().unwrap_or_default();
        self.known(home, value).cloned().unwrap_or_default()
    }

    /// The least and the greatest number that a value is where an op uses it, as stored: an integer that certainly
    /// hasn't wrapped.
    pub fn interval(&self, kernel: &Kernel, op: OpId, value: ValueId) -> Option<(i128, i128)> {
        self.as_stored(kernel, value, &self.at(op, value))
    }

    /// [`Ranges::interval`] where the value is defined.
    pub fn defined_interval(&self, kernel: &Kernel, value: ValueId) -> Option<(i128, i128)> {
        self.as_stored(kernel, value, self.ranges.get(&value)?)
    }

    /// Whether `a <= b` holds of values as stored wherever an op uses them.
    pub fn is_at_most(&self, kernel: &Kernel, op: OpId, a: ValueId, b: ValueId) -> bool {
        self.are_apart(kernel, op, [a, b], 0)
    }

    /// Whether `a < b` does.
    pub fn is_less(&self, kernel: &Kernel, op: OpId, a: ValueId, b: ValueId) -> bool {
        self.are_apart(kernel, op, [a, b], 1)
    }

    /// Whether `a + distance <= b` does.
    fn are_apart(&self, kernel: &Kernel, op: OpId, [a, b]: [ValueId; 2], distance: i64) -> bool {
        let (Some(low), Some(high)) = (self.interval(kernel, op, a), self.interval(kernel, op, b)) else {
            return false;
        };
        let (max, min) = (self.at(op, a).max, self.at(op, b).min);
        let apart = |max: &Dim, min: &Dim| (min.clone() - max.clone() - Dim::from(distance)).is_natural();
        low.1 + i128::from(distance) <= high.0 || max.iter().any(|max| min.iter().any(|min| apart(max, min)))
    }

    fn as_stored(&self, kernel: &Kernel, value: ValueId, range: &Range) -> Option<(i128, i128)> {
        let (least, greatest) = integer(kernel, value)?.int_range();
        if !range.requires.is_empty() {
            return None;
        }
        let intervals = |bounds: &[Dim]| -> Vec<(i128, i128)> {
            bounds.iter().filter_map(|bound| self.facts.interval(bound)).collect()
        };
        let low = intervals(&range.min).into_iter().map(|(low, _)| low).max()?;
        let high = intervals(&range.max).into_iter().map(|(_, high)| high).min()?;
        (least <= low && high <= greatest).then_some((low, high))
    }

    /// [`Ranges::interval`] where the analysis is.
    pub(super) fn operand_interval(&self, kernel: &Kernel, value: ValueId) -> Option<(i128, i128)> {
        self.as_stored(kernel, value, &self.operand(kernel, value))
    }

    /// What is known of the sizes.
    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    fn known(&self, scope: usize, value: ValueId) -> Option<&Range> {
        let mut scope = self.scopes.get(scope);
        while let Some(Scope { parent, ranges }) = scope {
            if let Some(range) = ranges.get(&value) {
                return Some(range);
            }
            scope = parent.and_then(|parent| self.scopes.get(parent));
        }
        self.ranges.get(&value)
    }

    fn region(&mut self, kernel: &Kernel, region: RegionId) {
        for &op in &kernel.region(region).ops {
            self.homes.insert(op, self.current);
            let data = kernel.op(op);
            self.op(kernel, data);
            for (which, &inner) in data.regions.iter().enumerate() {
                if data.op == Op::For {
                    self.counter(kernel, data, inner);
                }
                let comparisons = match data.op {
                    Op::If => refine::implied(kernel, data.operands[0], which == 0),
                    Op::While => refine::repeated(kernel, data),
                    _ => Vec::new(),
                };
                self.inside(kernel, &comparisons, inner);
            }
        }
    }

    /// Analyses a region that runs only where comparisons hold.
    fn inside(&mut self, kernel: &Kernel, comparisons: &[(ValueId, Predicate, ValueId)], region: RegionId) {
        let outer = self.current;
        self.scopes.push(Scope { parent: Some(outer), ..Scope::default() });
        self.current = self.scopes.len() - 1;
        // Once more: what bounds a value may be bounded by another comparison.
        for _ in 0..comparisons.len().min(2) {
            for (value, bounds) in refine::refinements(kernel, self, comparisons) {
                if let Some(range) = self.refined(kernel, value, bounds) {
                    self.scopes[self.current].ranges.insert(value, range);
                }
            }
        }
        self.region(kernel, region);
        self.current = outer;
    }

    fn refined(&self, kernel: &Kernel, value: ValueId, bounds: Range) -> Option<Range> {
        let dtype = integer(kernel, value)?;
        // A condition speaks of the value as it is stored.
        let base = self.stored(kernel, value);
        let (min, max) = ([bounds.min.clone(), base.min.clone()], [bounds.max.clone(), base.max.clone()]);
        let mut range = Range::joined(&base, &bounds, min.concat(), max.concat());
        if !range.is_known() || !fits(dtype, &range) {
            return None;
        }
        let (min, max, requires) = (range.min.clone(), range.max.clone(), range.requires.clone());
        range.loops.push(Span { min, max, requires });
        Some(range)
    }

    fn op(&mut self, kernel: &Kernel, data: &OpData) {
        if data.op == Op::BlockIndex {
            let Some(view) = data.operands.first().and_then(|&view| kernel.ty(view).as_partition()) else {
                return;
            };
            for (&result, tiles) in data.results.iter().zip(view.grid()) {
                // A block exists where the grid isn't empty; a launch of no blocks checks no bounds.
                let last = self.facts.apply(&tiles) - Dim::from(1);
                let range = Range { min: vec![Dim::from(0)], max: vec![last], ..Range::default() };
                self.ranges.insert(result, range);
            }
            return;
        }
        let &[result] = data.results.as_slice() else { return };
        if let Op::BlockId { axis } | Op::BlockCount { axis } = data.op {
            // How many blocks share tiles is the launch's choice.
            if kernel.is_persistent() {
                return;
            }
            let Some(blocks) = kernel.grid_space().and_then(|space| space.get(axis).cloned()) else { return };
            let blocks = self.facts.apply(&blocks);
            let last = blocks.clone() - Dim::from(1);
            let of_block = Range { min: vec![Dim::from(0)], max: vec![last], ..Range::default() };
            let is_index = matches!(data.op, Op::BlockId { .. });
            let range = if is_index { of_block } else { Range::exact(blocks) };
            self.ranges.insert(result, range);
            return;
        }
        let Some(dtype) = integer(kernel, result) else { return };
        let range = self.value(kernel, data);
        if range.is_known() && fits(dtype, &range) {
            self.ranges.insert(result, range);
        }
        if let Some(range) = self.compared(kernel, data) {
            self.ranges.insert(result, range);
        }
    }

    /// What a condition says of the value that an op computes, if it compares the same expression.
    fn compared(&self, kernel: &Kernel, data: &OpData) -> Option<Range> {
        let mut scope = &self.scopes[self.current];
        loop {
            let same = |value: &ValueId| {
                kernel.definition(*value).is_some_and(|other| refine::computes_same(kernel, data, other))
            };
            if let Some((_, range)) = scope.ranges.iter().filter(|(value, _)| same(value)).min_by_key(|e| e.0)
            {
                return Some(range.clone());
            }
            scope = &self.scopes[scope.parent?];
        }
    }

    /// What is known of an operand: an unsigned number of which nothing is known isn't negative.
    pub(super) fn operand(&self, kernel: &Kernel, value: ValueId) -> Range {
        let unsigned = integer(kernel, value).is_some_and(|dtype| !dtype.is_signed());
        let unknown =
            || Range { min: if unsigned { vec![Dim::from(0)] } else { Vec::new() }, ..Range::default() };
        self.known(self.current, value).cloned().unwrap_or_else(unknown)
    }

    /// What is known of an operand as it is stored, which what has wrapped in its format isn't. Of an unsigned number
    /// that may have wrapped the upper bound is left; a signed one relies on bounds that have a value.
    pub(super) fn stored(&self, kernel: &Kernel, value: ValueId) -> Range {
        let range = self.operand(kernel, value);
        let Some(dtype) = integer(kernel, value) else { return range };
        let (least, greatest) = dtype.int_range();
        let intervals = |bounds: &[Dim], fits: &dyn Fn((i128, i128)) -> bool| {
            bounds.iter().filter_map(|bound| self.facts.interval(bound)).any(fits)
        };
        let above = !dtype.is_signed() || intervals(&range.min, &|(low, _)| low >= least);
        if range.max.is_empty() || above && intervals(&range.max, &|(_, high)| high <= greatest) {
            return range;
        }
        let mut range = range.settled();
        if dtype.is_signed() {
            range.requires.extend(range.max.first().cloned());
        } else {
            range.min = vec![Dim::from(0)];
        }
        range
    }

    fn value(&self, kernel: &Kernel, data: &OpData) -> Range {
        let operand = |i: usize| self.operand(kernel, data.operands[i]);
        let stored = |i: usize| self.stored(kernel, data.operands[i]);
        match &data.op {
            Op::Constant { value: Literal::Int(value), .. } => {
                i64::try_from(*value).map(Range::number).unwrap_or_default()
            }
            Op::Extent(dim) => self.extent(dim),
            Op::Binary(BinaryOp::Add) => operand(0).add(&operand(1)),
            Op::Binary(BinaryOp::Sub) => operand(0).sub(&operand(1)),
            Op::Binary(BinaryOp::Mul) => operand(0).mul(operand(1)),
            Op::Binary(BinaryOp::Div) => stored(0).div(stored(1)),
            Op::Binary(BinaryOp::Rem) => stored(0).rem(stored(1)),
            Op::Binary(BinaryOp::Shr) => match power_of_two(&operand(1), kernel, data.results[0]) {
                Some(divisor) => stored(0).div(divisor),
                None => Range::default(),
            },
            Op::Binary(BinaryOp::And) => operand(0).masked(operand(1)),
            Op::Binary(BinaryOp::Min) => stored(0).minimum(stored(1)),
            Op::Binary(BinaryOp::Max) => stored(0).maximum(stored(1)),
            Op::Select => operand(1).either(operand(2)),
            Op::Cast(_) => match integer(kernel, data.operands[0]) {
                // What has wrapped in a narrow format is another number in a wider one.
                Some(from) if from.is_signed() || from.bits() == 64 => operand(0),
                Some(_) if operand(0).min.iter().any(Dim::is_natural) => operand(0),
                _ => Range::default(),
            },
            _ => Range::default(),
        }
    }

    /// An extent, which reads as 0 where it has no value.
    fn extent(&self, dim: &Dim) -> Range {
        let dim = self.facts.apply(dim);
        let is_sure = |operand: &&Dim| {
            is_positive(operand) || self.facts.interval(operand).is_some_and(|(least, _)| least > 0)
        };
        let has_value = dim.positive_operands().iter().all(is_sure);
        let range = Range::exact(dim);
        if has_value { range } else { Range { min: vec![Dim::from(0)], ..range } }
    }

    fn counter(&mut self, kernel: &Kernel, data: &OpData, region: RegionId) {
        let (Some(&counter), [start, end, ..]) =
            (kernel.region(region).params.first(), data.operands.as_slice())
        else {
            return;
        };
        let start = self.stored(kernel, *start).settled();
        let before = |dim: &Dim| dim.clone() - Dim::from(1);
        // An extent that is negative reads as 0, and either way the loop runs over nothing.
        let end = match kernel.definition(*end).map(|data| &data.op) {
            Some(Op::Extent(dim)) => {
                Range { min: vec![Dim::from(0)], max: vec![self.facts.apply(dim)], ..Range::default() }
            }
            _ => self.stored(kernel, *end).settled(),
        };
        let (min, max) = (start.min.clone(), end.max.iter().map(before).collect());
        let mut range = Range::joined(&start, &end, min, max);
        if range.is_known() {
            let (min, max, requires) = (range.min.clone(), range.max.clone(), range.requires.clone());
            range.loops.push(Span { min, max, requires });
            self.ranges.insert(counter, range);
        }
    }
}

/// The format of an integer scalar.
pub(super) fn integer(kernel: &Kernel, value: ValueId) -> Option<DType> {
    match kernel.ty(value) {
        Type::Scalar(elem) => elem.known().filter(|dtype| !dtype.is_float() && *dtype != DType::Bool),
        _ => None,
    }
}

/// Whether arithmetic in a format wraps at 2^64, or the value is known to be far from where it does.
fn fits(dtype: DType, range: &Range) -> bool {
    let Some(limit) = (dtype.bytes() < 8).then(|| 1i64 << (8 * dtype.bytes() - 1)) else { return true };
    let inside = |dim: &Dim| dim.as_const().is_some_and(|value| (-limit..limit).contains(&value));
    range.min.iter().chain(&range.max).all(inside)
}

/// What a shift to the right divides by, where the number isn't negative.
fn power_of_two(amount: &Range, kernel: &Kernel, result: ValueId) -> Option<Range> {
    let bits = integer(kernel, result)?.bits();
    let amount = u32::try_from(amount.constant()?).ok().filter(|&amount| amount < bits.min(63))?;
    Some(Range::exact(Dim::from(1i64 << amount)))
}

/// The kernel's text with the range of every integer scalar in a comment beside its definition.
pub fn print(kernel: &Kernel) -> String {
    let ranges = Ranges::under(kernel, Facts::of(kernel));
    let note = |value: ValueId| ranges.ranges.get(&value).map(Range::to_string);
    crate::text::print_with_notes(kernel, &note)
}

#[cfg(test)]
mod random;

#[cfg(test)]
mod tests;
