//! Ranges that end at const parameters, of which the kernel's conditions say how large they may be: unrolled to as many
//! turns as there may be, each in a branch that an instance takes or not.

use super::{Adapter, MAX_UNROLLED, Range};
use crate::lower::control::unroll::Unrolled;
use crate::lower::known::known;
use crate::lower::ops::operators::as_dim;
use crate::lower::{Lowered, Lowering};
use crate::span::Span;
use crate::value::{Int, Val};
use tile_ir::ops::Predicate;
use tile_ir::{DType, Dim, Op, ValueId};

impl Lowering {
    /// The turns of such a range; `None` of others. Their numbers are known.
    pub(super) fn bounded(&mut self, range: &Range) -> Option<Lowered<Vec<Unrolled>>> {
        let first = i64::try_from(known(&range.start)?).ok().filter(|&first| first >= 0)?;
        let end = as_dim(&range.end)?;
        let held = if range.inclusive { None } else { self.most_arguments(&end) };
        let end = end + Dim::from(i64::from(range.inclusive));
        if !end.is_static() || end.as_const().is_some() {
            return None;
        }
        let (least, most) = self.facts.interval(&self.facts.apply(&end))?;
        let most = held.map_or(most, |held| most.min(held.into()));
        let (step, is_reversed) = range.steps_from_start()?;
        let last = i64::try_from(most).ok()? - 1;
        let mut numbers: Vec<i64> = (first..=last).step_by(step).take(MAX_UNROLLED as usize + 1).collect();
        if numbers.len() > MAX_UNROLLED as usize {
            return None;
        }
        if is_reversed {
            numbers.reverse();
        }
        let turn = |lowering: &mut Self, number: i64| {
            let value = Val::Int(Int::of(number.into(), DType::Index.into()));
            let is_always_there = i128::from(number) < least;
            let exists =
                (!is_always_there).then(|| lowering.exceeds(&end, number, range.span)).transpose()?;
            Ok(Unrolled { value, exists })
        };
        Some(
            self.share_ends(range, &DType::Index.into())
                .and_then(|()| numbers.into_iter().map(|number| turn(self, number)).collect()),
        )
    }

    /// Whether an instance has a turn, where an extent is larger than a number.
    pub(in crate::lower) fn exceeds(&mut self, extent: &Dim, number: i64, span: Span) -> Lowered<ValueId> {
        let extent = self.extent(extent, span);
        let number = self.number(&Val::int(number.into()), &DType::Index.into(), "a loop bound", span)?;
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
