//! Ranges whose ends are made of const parameters, of which the kernel's conditions say how large they may be: unrolled to as
//! many turns as there may be, each in a branch that an instance takes or not.

use super::{Adapter, MAX_UNROLLED, Range};
use crate::lower::control::unroll::Unrolled;
use crate::lower::known::known;
use crate::lower::ops::operators::as_dim;
use crate::lower::{Lowered, Lowering};
use crate::span::Span;
use crate::value::{Int, Val};
use tile_ir::ops::{BinaryOp, Predicate};
use tile_ir::{DType, Dim, Elem, Op, ValueId};

impl Lowering {
    /// The turns of such a range; `None` of others. Their numbers are known.
    pub(super) fn bounded(&mut self, range: &Range) -> Option<Lowered<Vec<Unrolled>>> {
        let start = self.exact(&range.start)?;
        let end = as_dim(&range.end).or_else(|| self.exact(&range.end))?;
        let held = if range.inclusive { None } else { self.most_arguments(&end) };
        let last = i64::from(range.inclusive);
        let is_known = |end: &Dim| end.as_const().is_some();
        if !start.is_static() || !end.is_static() || is_known(&start) && is_known(&end) {
            return None;
        }
        let (least_start, most_start) = self.facts.interval(&self.facts.apply(&start))?;
        let behind = end.clone() + Dim::from(last);
        let (least_end, most_end) = self.facts.interval(&self.facts.apply(&behind))?;
        // A start is compared as a part of a larger extent, and so is an end that is added to.
        let has_end = self.has_its_logarithms(&end);
        if !(self.has_its_logarithms(&start) && (has_end || least_start >= 0)) {
            return None;
        }
        let (end, last) = if has_end { (behind, 0) } else { (end, last) };
        let most_end = held.map_or(most_end, |held| most_end.min(held.into()));
        let (step, is_reversed) = range.steps_from_start()?;
        if step != 1 && !is_known(&start) || least_start < 0 && !self.counts_below_zero(range) {
            return None;
        }
        let (first, most_end) = (i64::try_from(least_start).ok()?, i64::try_from(most_end).ok()?);
        let mut numbers: Vec<i64> = (first..most_end).step_by(step).take(MAX_UNROLLED as usize + 1).collect();
        if numbers.len() > MAX_UNROLLED as usize {
            return None;
        }
        if is_reversed {
            numbers.reverse();
        }
        let turn = |lowering: &mut Self, number: i64, elem: &Elem| {
            let value = Val::Int(Int::of(number.into(), elem.clone()));
            let ends_later = (i128::from(number) >= least_end)
                .then(|| lowering.exceeds(&end, number - last, range.span))
                .transpose()?;
            let starts_by_then = (i128::from(number) < most_start)
                .then(|| lowering.exceeds(&-start.clone(), -number - 1, range.span))
                .transpose()?;
            let exists = match (starts_by_then, ends_later) {
                (Some(starts), Some(ends)) => {
                    Some(lowering.emit_one(Op::Binary(BinaryOp::And), &[starts, ends], range.span, &[])?)
                }
                (either, other) => either.or(other),
            };
            Ok(Unrolled { value, exists })
        };
        Some(
            self.counter_format(range)
                .and_then(|elem| numbers.into_iter().map(|number| turn(self, number, &elem)).collect()),
        )
    }

    fn counts_below_zero(&self, range: &Range) -> bool {
        let ends = [&range.start, &range.end].into_iter();
        let mut formats = ends.filter_map(|end| match end {
            Val::Data(value) => self.elem(*value).known(),
            _ => None,
        });
        formats.next().is_some_and(|dtype| dtype.is_signed())
    }

    /// Whether an instance has a turn, where an extent is larger than a number. Both may be below zero.
    pub(in crate::lower) fn exceeds(&mut self, extent: &Dim, number: i64, span: Span) -> Lowered<ValueId> {
        // Extents below zero read as 0: the number is counted from 0 at least, and the extent with it.
        let raised = (-number).max(0);
        let extent = self.extent(&(extent.clone() + Dim::from(raised)), span);
        let number = Val::int((number + raised).into());
        let number = self.number(&number, &DType::Index.into(), "a loop bound", span)?;
        self.emit_one(Op::Compare(Predicate::Gt), &[extent, number], span, &[])
    }
}

impl Range {
    /// The distance of its numbers and whether they are gone through backwards, where they are counted from the start, so
    /// that which they are doesn't depend on the end.
    fn steps_from_start(&self) -> Option<(usize, bool)> {
        self.adapters.iter().try_fold((1usize, false), |(step, is_reversed), adapter| match adapter {
            Adapter::Reversed => Some((step, !is_reversed)),
            Adapter::Step(_) if is_reversed => None,
            Adapter::Step(by) => Some((step.checked_mul(usize::try_from(known(by)?).ok()?)?, false)),
        })
    }
}
