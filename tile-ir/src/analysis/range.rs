//! Ranges of index values: lower and upper bounds as extents.
//!
//! A range speaks of the integer that an expression has without wrapping. Sums, differences and products keep
//! to it modulo 2^64, so a result that is in bounds is the value itself; what doesn't keep to it (quotients,
//! minima, comparisons) asks by [`Range::requires`] that its operands aren't negative. Evaluation of extents
//! refuses overflow, and bounds that overflow are refused with it.
//!
//! Where a condition holds, the values that it compares have tighter ranges ([`super::refine`]): a range belongs to
//! a value and to the op that uses it ([`Ranges::at`]).

use super::facts::Facts;
use super::refine::{self, Refinement};
use crate::dim::{Dim, DimError};
use crate::dtype::DType;
use crate::kernel::{Kernel, OpData, OpId, RegionId, ValueId};
use crate::ops::{BinaryOp, Literal, Op, Predicate};
use crate::types::Type;
use std::collections::HashMap;
use std::fmt;

/// How many alternatives of a bound are kept.
const MAX_ALTERNATIVES: usize = 4;

/// Bounds of an index value. A list that is empty bounds nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Range {
    /// Each is a lower bound.
    pub min: Vec<Dim>,
    /// Each is an upper bound, included.
    pub max: Vec<Dim>,
    /// The loop counters that the value depends on: where one has no value, neither has this.
    pub loops: Vec<Span>,
    /// Extents that the bounds rely on not being negative.
    pub requires: Vec<Dim>,
}

/// The bounds of a loop counter, or of a value that a condition compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Each is a lower bound.
    pub min: Vec<Dim>,
    /// Each is an upper bound, included.
    pub max: Vec<Dim>,
    /// Extents that the bounds rely on not being negative.
    pub requires: Vec<Dim>,
}

impl Span {
    /// The tightest bounds for given sizes.
    ///
    /// # Errors
    /// [`DimError`] where a bound has no value.
    pub fn evaluate(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<(i64, i64), DimError> {
        let values =
            |dims: &[Dim]| dims.iter().map(|dim| dim.evaluate_signed(lookup)).collect::<Result<Vec<_>, _>>();
        let min = values(&self.min)?.into_iter().max().unwrap_or(i64::MIN);
        let max = values(&self.max)?.into_iter().min().unwrap_or(i64::MAX);
        Ok((min, max))
    }

    /// Whether nothing lies between the bounds, so that no code runs that depends on them.
    ///
    /// # Errors
    /// [`DimError`] where a bound has no value.
    pub fn is_empty(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<bool, DimError> {
        let (min, max) = self.evaluate(lookup)?;
        let mut reliable = true;
        for required in &self.requires {
            reliable &= required.evaluate_signed(lookup)? >= 0;
        }
        Ok(reliable && max < min)
    }
}

impl Range {
    fn exact(dim: Dim) -> Range {
        let requires = if dim.is_natural() { Vec::new() } else { vec![dim.clone()] };
        Range { min: vec![dim.clone()], max: vec![dim], requires, loops: Vec::new() }
    }

    /// Whether both sides are bounded.
    pub fn is_known(&self) -> bool {
        !self.min.is_empty() && !self.max.is_empty()
    }

    /// The value, where the bounds are one.
    fn as_exact(&self) -> Option<&Dim> {
        match (self.min.as_slice(), self.max.as_slice()) {
            ([min], [max]) if min == max => Some(min),
            _ => None,
        }
    }

    /// The range of a value that isn't negative, or unknown.
    fn settled(mut self) -> Range {
        match self.min.first() {
            None => Range::default(),
            Some(first) => {
                if !self.min.iter().any(Dim::is_natural) {
                    self.requires.push(first.clone());
                }
                self
            }
        }
    }

    /// A range with the conditions of both operands.
    fn joined(a: &Range, b: &Range, min: Vec<Dim>, max: Vec<Dim>) -> Range {
        let mut joined = Range { min, max, loops: a.loops.clone(), requires: a.requires.clone() };
        joined.loops.extend(b.loops.iter().filter(|span| !a.loops.contains(span)).cloned());
        joined.requires.extend(b.requires.iter().filter(|dim| !a.requires.contains(dim)).cloned());
        for bounds in [&mut joined.min, &mut joined.max] {
            // Arithmetic on extents saturates; what has is no bound.
            bounds.retain(|bound| {
                bound.terms().all(|(_, coefficient)| coefficient.unsigned_abs() < i64::MAX as u64)
            });
            bounds.sort();
            bounds.dedup();
            bounds.truncate(MAX_ALTERNATIVES);
        }
        joined
    }

    fn add(&self, other: &Range) -> Range {
        let sum = |a: &Dim, b: &Dim| a.clone() + b.clone();
        Range::joined(self, other, pairs(&self.min, &other.min, sum), pairs(&self.max, &other.max, sum))
    }

    fn sub(&self, other: &Range) -> Range {
        let difference = |a: &Dim, b: &Dim| a.clone() - b.clone();
        let (min, max) = (pairs(&self.min, &other.max, difference), pairs(&self.max, &other.min, difference));
        Range::joined(self, other, min, max)
    }

    fn mul(self, other: Range) -> Range {
        let (a, b) = (self.settled(), other.settled());
        let product = |a: &Dim, b: &Dim| a.clone() * b.clone();
        Range::joined(&a, &b, pairs(&a.min, &b.min, product), pairs(&a.max, &b.max, product))
    }

    fn div(self, other: Range) -> Range {
        let (a, b) = (self.settled(), other.settled());
        match b.as_exact().filter(|divisor| is_positive(divisor)) {
            Some(divisor) => {
                let quotient = |bounds: &[Dim]| bounds.iter().map(|bound| bound.floor_div(divisor)).collect();
                let (min, max) = (quotient(&a.min), quotient(&a.max));
                Range::joined(&a, &b, min, max)
            }
            None => Range::joined(&a, &b, zero(&a), a.max.clone()),
        }
    }

    fn rem(self, other: Range) -> Range {
        let (a, b) = (self.settled(), other.settled());
        let mut max = a.max.clone();
        if let Some(divisor) = b.as_exact().filter(|divisor| is_positive(divisor)) {
            max.push(divisor.clone() - Dim::from(1));
        }
        Range::joined(&a, &b, zero(&a), max)
    }

    /// The bits that a mask, a number that isn't negative, leaves.
    fn masked(self, other: Range) -> Range {
        let (a, b) = if other.constant().is_some() { (self, other) } else { (other, self) };
        let (Some(mask @ 0..), false) = (b.constant(), a.min.is_empty()) else { return Range::default() };
        let max = [a.max.as_slice(), &[Dim::from(mask)]].concat();
        // Of a number that is negative or has wrapped, only the mask bounds what is left.
        match a.min.iter().any(Dim::is_natural) {
            true => Range::joined(&a, &b, vec![Dim::from(0)], max),
            false => Range::exact(Dim::from(0)).either(Range::exact(Dim::from(mask))),
        }
    }

    /// Whether the value is 0.
    pub(super) fn is_zero(&self) -> bool {
        self.constant() == Some(0)
    }

    fn constant(&self) -> Option<i64> {
        self.as_exact().and_then(Dim::as_const)
    }

    fn minimum(self, other: Range) -> Range {
        let (a, b) = (self.settled(), other.settled());
        if a.min.is_empty() || b.min.is_empty() {
            return Range::default();
        }
        // Without an upper bound an operand may have wrapped, which only its lower bound doesn't show.
        let bounded = a.is_known() && b.is_known();
        let min = if bounded && a.min == b.min { a.min.clone() } else { vec![Dim::from(0)] };
        Range::joined(&a, &b, min, [a.max.clone(), b.max.clone()].concat())
    }

    fn maximum(self, other: Range) -> Range {
        let (a, b) = (self.settled(), other.settled());
        if a.min.is_empty() || b.min.is_empty() {
            return Range::default();
        }
        Range::joined(&a, &b, [a.min.clone(), b.min.clone()].concat(), larger(&a.max, &b.max))
    }

    /// One of two values.
    fn either(self, other: Range) -> Range {
        let (a, b) = (self.settled(), other.settled());
        if a.min.is_empty() || b.min.is_empty() {
            return Range::default();
        }
        let min = if a.min == b.min { a.min.clone() } else { vec![Dim::from(0)] };
        let max = larger(&a.max, &b.max);
        // Only what both depend on certainly has a value.
        let mut either = Range::joined(&a, &b, min, max);
        either.loops = a.loops.into_iter().filter(|span| b.loops.contains(span)).collect();
        either
    }
}

/// What a shift to the right divides by, where the number isn't negative.
fn power_of_two(amount: &Range, kernel: &Kernel, result: ValueId) -> Option<Range> {
    let bits = integer(kernel, result)?.bits();
    let amount = u32::try_from(amount.constant()?).ok().filter(|&amount| amount < bits.min(63))?;
    Some(Range::exact(Dim::from(1i64 << amount)))
}

fn zero(a: &Range) -> Vec<Dim> {
    if a.min.is_empty() { Vec::new() } else { vec![Dim::from(0)] }
}

fn pairs(a: &[Dim], b: &[Dim], join: impl Fn(&Dim, &Dim) -> Dim) -> Vec<Dim> {
    a.iter().flat_map(|a| b.iter().map(|b| join(a, b)).collect::<Vec<_>>()).collect()
}

/// Bounds of the larger of two values: those of one that are no less than one of the other.
fn larger(a: &[Dim], b: &[Dim]) -> Vec<Dim> {
    let dominant = |x: &Dim, y: &Dim| match () {
        () if (x.clone() - y.clone()).is_natural() => Some(x.clone()),
        () if (y.clone() - x.clone()).is_natural() => Some(y.clone()),
        () => None,
    };
    a.iter().flat_map(|x| b.iter().filter_map(|y| dominant(x, y)).collect::<Vec<_>>()).collect()
}

/// Whether an extent is 1 or more. Parameters are taken for positive; an instance has numbers in their place
/// and is judged anew.
fn is_positive(dim: &Dim) -> bool {
    let raised = dim.substitute(&|atom| match atom {
        crate::dim::Atom::Param(name) => Some(Dim::param(name.clone()) + Dim::from(1)),
        _ => None,
    });
    (raised - Dim::from(1)).is_natural()
}

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
    fn inside(
        &mut self,
        kernel: &Kernel,
        comparisons: &[(ValueId, Predicate, ValueId)],
        region: RegionId,
    ) {
        let outer = self.current;
        self.scopes.push(Scope { parent: Some(outer), ..Scope::default() });
        self.current = self.scopes.len() - 1;
        for (value, refinement) in refine::refinements(kernel, self, comparisons) {
            if let Some(range) = self.refined(kernel, value, refinement) {
                self.scopes[self.current].ranges.insert(value, range);
            }
        }
        self.region(kernel, region);
        self.current = outer;
    }

    fn refined(&self, kernel: &Kernel, value: ValueId, refinement: Refinement) -> Option<Range> {
        let dtype = integer(kernel, value)?;
        let base = self.operand(kernel, value);
        let Refinement { bounds, .. } = refinement;
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
            for (&result, tiles) in data.results.iter().zip(view.index_space()) {
                // A block exists where the grid isn't empty; a launch of no blocks checks no bounds.
                let last = self.facts.apply(&tiles) - Dim::from(1);
                let range = Range { min: vec![Dim::from(0)], max: vec![last], ..Range::default() };
                self.ranges.insert(result, range);
            }
            return;
        }
        let &[result] = data.results.as_slice() else { return };
        if let Op::BlockId { axis } | Op::BlockCount { axis } = data.op {
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
            if let Some((_, range)) = scope.ranges.iter().filter(|(value, _)| same(value)).min_by_key(|e| e.0) {
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

    fn value(&self, kernel: &Kernel, data: &OpData) -> Range {
        let operand = |i: usize| self.operand(kernel, data.operands[i]);
        match &data.op {
            Op::Constant { value: Literal::Int(value), .. } => i64::try_from(*value)
                .map_or_else(|_| Range::default(), |value| Range::exact(Dim::from(value))),
            Op::Extent(dim) => Range::exact(self.facts.apply(dim)),
            Op::Binary(BinaryOp::Add) => operand(0).add(&operand(1)),
            Op::Binary(BinaryOp::Sub) => operand(0).sub(&operand(1)),
            Op::Binary(BinaryOp::Mul) => operand(0).mul(operand(1)),
            Op::Binary(BinaryOp::Div) => operand(0).div(operand(1)),
            Op::Binary(BinaryOp::Rem) => operand(0).rem(operand(1)),
            Op::Binary(BinaryOp::Shr) => match power_of_two(&operand(1), kernel, data.results[0]) {
                Some(divisor) => operand(0).div(divisor),
                None => Range::default(),
            },
            Op::Binary(BinaryOp::And) => operand(0).masked(operand(1)),
            Op::Binary(BinaryOp::Min) => operand(0).minimum(operand(1)),
            Op::Binary(BinaryOp::Max) => operand(0).maximum(operand(1)),
            Op::Select => operand(1).either(operand(2)),
            Op::Cast(_) if data.operands.iter().all(|&value| integer(kernel, value).is_some()) => operand(0),
            _ => Range::default(),
        }
    }

    fn counter(&mut self, kernel: &Kernel, data: &OpData, region: RegionId) {
        let (Some(&counter), [start, end, ..]) =
            (kernel.region(region).params.first(), data.operands.as_slice())
        else {
            return;
        };
        let start = self.operand(kernel, *start).settled();
        let before = |dim: &Dim| dim.clone() - Dim::from(1);
        // An extent that is negative reads as 0, and either way the loop runs over nothing.
        let end = match kernel.definition(*end).map(|data| &data.op) {
            Some(Op::Extent(dim)) => {
                Range { min: vec![Dim::from(0)], max: vec![self.facts.apply(dim)], ..Range::default() }
            }
            _ => self.operand(kernel, *end).settled(),
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

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |bounds: &[Dim], name: &str| match bounds {
            [] => String::from("?"),
            [bound] => bound.to_string(),
            bounds => {
                let bounds: Vec<String> = bounds.iter().map(Dim::to_string).collect();
                format!("{name}({})", bounds.join(", "))
            }
        };
        match self.as_exact() {
            Some(value) => write!(f, "= {value}"),
            None => write!(f, "in {} to {}", side(&self.min, "max"), side(&self.max, "min")),
        }
    }
}

/// The kernel's text with the range of every integer scalar in a comment beside its definition.
pub fn print(kernel: &Kernel) -> String {
    let ranges = Ranges::of(kernel);
    let note = |value: ValueId| ranges.ranges.get(&value).map(Range::to_string);
    crate::text::print_with_notes(kernel, &note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;
    use crate::verify::verify;

    fn kernel(body: &str) -> Kernel {
        let source = format!(
            "kernel @k<B>(%x: tensor<m x n x f32>, %count: index, %y: mut tensor<m x n x f32>) {{
  %v = partition %y [B, 8] : mut partition<m x n x f32, [B, 8]>
  %i, %j = block_index %v : index, index
{body}
}}
"
        );
        verify(parse(&source).unwrap()).unwrap_or_else(|errors| panic!("{errors:?}")).into_inner()
    }

    #[test]
    fn ranges_are_printed_beside_definitions() {
        let body = "  %two = constant 2 : index
  %m = extent m : index
  %sum = add %i, %two : index
  %difference = sub %j, %two : index
  %scaled = mul %i, %two : index
  %half = div %scaled, %two : index
  %by_size = div %i, %m : index
  %odd = rem %count, %two : index
  %kept = rem %j, %two : index
  %by_zero = rem %i, %m : index
  %clamped = min %i, %m : index
  %raised = max %i, %two : index
  %wide = cast %i : i64
  %narrow = cast %i : i32
  %back = cast %wide : index
  %unknown = add %i, %count : index
  %end = extent ceil_div(n, 8) - 1 : index
  for %p = %two to %end {
    %before = sub %p, %two : index
    for %q = %p to %m {
      %product = mul %p, %q : index
    }
  }";
        insta::assert_snapshot!(print(&kernel(body)));
    }

    /// Every printed range holds for every index and size of a small box, where nothing wraps.
    #[test]
    fn ranges_hold_for_every_value() {
        let span = |low: i64, high: i64| Range {
            min: vec![Dim::from(low)],
            max: vec![Dim::from(high)],
            ..Range::default()
        };
        type Case = (fn(Range, Range) -> Range, fn(i64, i64) -> i64);
        let cases: [Case; 7] = [
            (|a, b| a.add(&b), |a, b| a + b),
            (|a, b| a.sub(&b), |a, b| a - b),
            (Range::mul, |a, b| a * b),
            (Range::div, |a, b| if b == 0 { 0 } else { a / b }),
            (Range::rem, |a, b| if b == 0 { a } else { a % b }),
            (Range::minimum, i64::min),
            (Range::maximum, i64::max),
        ];
        for (which, (rule, meaning)) in cases.into_iter().enumerate() {
            for (a, b, c, d) in [(0, 5, 0, 3), (2, 7, 3, 3), (1, 1, 1, 4), (0, 0, 2, 2), (4, 9, 0, 0)] {
                let range = rule(span(a, b), span(c, d));
                for x in a..=b {
                    for y in c..=d {
                        let value = meaning(x, y);
                        let within = |bound: &Dim| bound.as_const().unwrap();
                        assert!(range.min.iter().all(|m| within(m) <= value), "{which}: {x} {y} {range}");
                        assert!(range.max.iter().all(|m| value <= within(m)), "{which}: {x} {y} {range}");
                    }
                }
            }
        }
    }
}
