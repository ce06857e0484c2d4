//! What a `for` runs over: ranges of any integer type, forwards, backwards and in steps, and arrays of values.
//!
//! The IR counts from `start` to `end` in `usize`. A range of another kind is counted from 0, and its counter
//! is `first + turn · stride` in its own type.

mod bounded;

use super::counters::{Indexed, indexed_by, says_where};
use super::iterators::{is_counted, unborrowed};
use super::unroll::Unrolled;
use crate::diagnostic::Diagnostic;
use crate::elements::Elements;
use crate::lower::known::known;
use crate::lower::ops::operators::as_dim;
use crate::lower::{Lowered, Lowering, rust_elem};
use crate::rewrite::unwrapped;
use crate::span::{Span, Spanned};
use crate::value::{Int, Val};
use syn::{Expr, ExprForLoop, ExprMethodCall, ExprRange, ExprUnary, Pat, RangeLimits, UnOp};
use tile_ir::array::wrap_int;
use tile_ir::ops::{BinaryOp, Predicate};
use tile_ir::{DType, Dim, Elem, Op, ValueId};

/// The most iterations that a loop is unrolled to.
const MAX_UNROLLED: i128 = 64;

pub(in crate::lower) enum Sequence {
    /// The loop is unrolled to these.
    Unrolled(Vec<Unrolled>),
    Counted(Counting),
}

/// A loop of the IR, and what its counter stands for.
pub(in crate::lower) struct Counting {
    pub(in crate::lower) start: ValueId,
    pub(in crate::lower) end: ValueId,
    /// The counter's format.
    elem: Elem,
    /// First value and stride, where the counter isn't that of the IR.
    affine: Option<(Val, Stride)>,
}

/// How far a counter moves with each turn, and which way. A step is a `usize` whatever the counter's type, which may have
/// neither the distance nor numbers below zero: the distance wraps in it, as does what the counter is made of.
struct Stride {
    size: Val,
    backwards: bool,
}

/// A range with its adapters, innermost first.
struct Range {
    start: Val,
    end: Val,
    inclusive: bool,
    adapters: Vec<Adapter>,
    span: Span,
}

enum Adapter {
    Reversed,
    Step(Val),
}

impl Stride {
    fn of(stride: i128) -> Stride {
        Stride { size: Val::int(stride.abs()), backwards: stride < 0 }
    }
}

/// `first + turn · stride` for `turn` in `0..count`, in literals.
struct Known {
    first: i128,
    stride: i128,
    count: i128,
}

impl Known {
    /// A turn for each number, of this format.
    fn turns(&self, elem: &Elem) -> Vec<Unrolled> {
        let number = |turn| Int::of(self.first + turn * self.stride, elem.clone());
        (0..self.count).map(|turn| Unrolled::always(Val::Int(number(turn)))).collect()
    }
}

impl Lowering {
    /// What a `for` runs over.
    pub(in crate::lower) fn sequence(&mut self, for_loop: &ExprForLoop) -> Lowered<Sequence> {
        let expression = unborrowed(&for_loop.expr);
        if matches!(
            expression,
            Expr::Path(_)
                | Expr::Array(_)
                | Expr::Call(_)
                | Expr::Field(_)
                | Expr::Index(_)
                | Expr::Repeat(_)
                | Expr::MethodCall(_)
                | Expr::Unary(ExprUnary { op: UnOp::Deref(_), .. })
        ) && !is_counted(expression)
        {
            let sequence = self.expression(expression)?;
            self.lend_array(&sequence, expression);
            return match sequence {
                Val::List(values) | Val::Iterator(values) => {
                    let values = self.of_one_type(values, expression.span())?;
                    Ok(Sequence::Unrolled(values.into_iter().map(Unrolled::always).collect()))
                }
                Val::Arguments(values, count) => {
                    let turns = (0i64..)
                        .zip(values)
                        .map(|(at, value)| self.if_counted(value, at, &count, expression.span()));
                    turns.collect::<Lowered<_>>().map(Sequence::Unrolled)
                }
                Val::Poison => Err(crate::lower::Reported),
                Val::Data(tile) if self.shape(tile).is_some() => {
                    let help = "operators, functions and reductions work on all its elements; `x.take(i, axis)` is a slice of it";
                    self.error(expression.span(), "a tile has no iterator", help)
                }
                _ => self.not_a_range(expression),
            };
        }
        let range = self.range(expression)?;
        if let Pat::Ident(counter) = &*for_loop.pat
            && let Some(indexed) = indexed_by(&for_loop.body, &counter.ident)
        {
            return self.listed(&range, &indexed).map(Sequence::Unrolled);
        }
        if let Pat::Ident(counter) = &*for_loop.pat
            && (says_where(&for_loop.body, &counter.ident)
                || self.moves_tensors_by(&for_loop.body, &counter.ident))
        {
            if let Some(known) = range.known().filter(|known| known.count <= MAX_UNROLLED) {
                return Ok(Sequence::Unrolled(known.turns(&self.counter_format(&range)?)));
            }
            if let Some(turns) = self.bounded(&range) {
                return turns.map(Sequence::Unrolled);
            }
        }
        self.counting(&range).map(Sequence::Counted)
    }

    fn not_a_range<T>(&mut self, expression: &Expr) -> Lowered<T> {
        if let Expr::Reference(_) = expression {
            let help = "write `for i in 0..x.len() { x[i] += 1.0; }`: such a loop is unrolled";
            return self.error(expression.span(), "a loop can't change what it runs over", help);
        }
        let help = "write `for p in a..b`, with `.rev()` and `.step_by(n)` if need be, or run over an array of values";
        self.error(expression.span(), "a kernel's `for` runs over a range", help)
    }

    /// The number that a loop over a range begins with, whether or not there is a turn.
    pub(in crate::lower) fn first_of(&mut self, for_loop: &ExprForLoop) -> Option<Val> {
        let expression = unborrowed(&for_loop.expr);
        let range = is_counted(expression).then(|| self.range(expression).ok())??;
        range.known().map(|known| Val::int(known.first))
    }

    fn range(&mut self, expression: &Expr) -> Lowered<Range> {
        match unwrapped(expression) {
            Expr::Range(range) => self.plain_range(range),
            Expr::MethodCall(call) if call.method == "rev" => {
                let mut range = self.range(&call.receiver)?;
                self.arguments("rev", &call.args, 0, "(a..b).rev()", call.span())?;
                range.adapters.push(Adapter::Reversed);
                Ok(range)
            }
            Expr::MethodCall(call) if call.method == "step_by" => self.stepped(call),
            other => self.not_a_range(other),
        }
    }

    /// The numbers of a range with literal ends, as an array.
    pub(in crate::lower) fn listed_range(&mut self, range: &ExprRange) -> Lowered<Val> {
        let range = self.plain_range(range)?;
        let Some(Known { first, count, .. }) = range.known() else {
            let help =
                "write a `for` over it, or literal ends: an iterator is unrolled when the macro expands";
            return self.error(range.span, "the ends of this range aren't literals", help);
        };
        if count > MAX_UNROLLED {
            let message = format!("this iterator of {count} numbers would be unrolled");
            return self.error(range.span, message, "write a `for` over the range");
        }
        let elem = self.counter_format(&range)?;
        let number = |turn| Val::Int(Int::of(first + turn, elem.clone()));
        Ok(Val::List((0..count).map(number).collect()))
    }

    fn plain_range(&mut self, range: &ExprRange) -> Lowered<Range> {
        let (Some(start), Some(end)) = (&range.start, &range.end) else {
            return self.error(range.span(), "the range needs both ends", "write `a..b`");
        };
        let (start, end) = (self.expression(start)?, self.expression(end)?);
        let inclusive = matches!(range.limits, RangeLimits::Closed(_));
        Ok(Range { start, end, inclusive, adapters: Vec::new(), span: range.span() })
    }

    fn stepped(&mut self, call: &ExprMethodCall) -> Lowered<Range> {
        let mut range = self.range(&call.receiver)?;
        let arguments = self.arguments("step_by", &call.args, 1, "(a..b).step_by(n)", call.span())?;
        let step = arguments.values[0].clone();
        self.share(&step, &DType::Index.into(), "a step", arguments.spans[0])?;
        if matches!(known(&step), Some(step) if step <= 0) {
            return self.error(arguments.spans[0], "a step is at least 1", "`.rev()` counts down");
        }
        range.adapters.push(Adapter::Step(step));
        Ok(range)
    }

    /// The turns of a range whose counter indexes an array.
    fn listed(
        &mut self,
        range: &Range,
        Indexed { first: index, by_size }: &Indexed,
    ) -> Lowered<Vec<Unrolled>> {
        if let Some(turns) = self.bounded(range) {
            return turns;
        }
        let of_arguments = self.names_arguments(&index.expr);
        let indexed = self.variable(&index.expr);
        let (index, place) = (index.span(), index.index.span());
        let Some(known) = range.known() else {
            if of_arguments {
                return self.unknown_argument(index);
            }
            // What can't be indexed at all needs no unrolled loop.
            indexed.map_or(Ok(()), |value| self.refuse_index(&value, place))?;
            let message =
                "an array of values is indexed by the counter of this loop, whose ends aren't literals";
            let diagnostic = Diagnostic::new(range.span, message)
                .label(index, "the array is indexed here".to_owned())
                .help("such a loop is unrolled when the macro expands: write its ends as literals, or use a tile");
            return self.report(diagnostic);
        };
        if known.count > MAX_UNROLLED {
            indexed.map_or(Ok(()), |value| self.refuse_index(&value, place))?;
            let count = known.count;
            let message = format!(
                "this loop of {count} iterations would be unrolled, because its counter indexes an array of values"
            );
            let diagnostic = Diagnostic::new(range.span, message)
                .label(index, "the array is indexed here".to_owned())
                .help(format!("at most {MAX_UNROLLED} iterations are unrolled; use one tile with another axis instead of an array"));
            return self.report(diagnostic);
        }
        if !by_size {
            return Ok(known.turns(&self.counter_format(range)?));
        }
        self.share_ends(range, &DType::Index.into())?;
        Ok(known.turns(&DType::Index.into()))
    }

    fn counting(&mut self, range: &Range) -> Lowered<Counting> {
        let elem = self.counter_format(range)?;
        let index = Elem::from(DType::Index);
        let plain = range.adapters.is_empty();
        let is_literal =
            matches!((&range.start, &range.end), (Val::Int(start), Val::Int(_)) if start.value >= 0);
        if plain && (elem == index || is_literal) {
            let start = self.number(&range.start.alone(), &index, "a loop bound", range.span)?;
            let end = match &range.end {
                Val::Int(end) => Val::int((end.value + i128::from(range.inclusive)).max(0)),
                end if range.inclusive => self.calculate(BinaryOp::Add, end, &Val::int(1), range.span)?,
                end => end.clone(),
            };
            let end = self.number(&end, &index, "a loop bound", range.span)?;
            return Ok(Counting { start, end, elem, affine: None });
        }
        let (first, stride, count) = match range.known() {
            Some(Known { first, stride, count }) => (Val::int(first), Stride::of(stride), Val::int(count)),
            None => match range.of_extents() {
                Some((first, stride, count)) => (Val::Dim(first), Stride::of(stride), Val::Dim(count)),
                None => self.measured(range, &elem)?,
            },
        };
        let size = self.size_in(&stride.size, &elem, range.span)?;
        let stride = Stride { size, ..stride };
        let start = self.extent(&Dim::from(0), range.span);
        let end = self.number(&count, &index, "a loop bound", range.span)?;
        Ok(Counting { start, end, elem, affine: Some((first, stride)) })
    }

    /// The counter's type, which the ends have, too.
    fn counter_format(&mut self, range: &Range) -> Lowered<Elem> {
        let elem = match self.format_of_ends(range)? {
            Some(elem) => elem,
            None => {
                let shared = range.start.shared().or_else(|| range.end.shared()).cloned();
                shared.unwrap_or_else(|| self.elements.unknown())
            }
        };
        self.share_ends(range, &elem)?;
        self.counters.push((elem.clone(), range.span));
        Ok(self.elements.resolve(&elem))
    }

    /// Reports counters that came to be of a type parameter: Rust's ranges are of its own integers.
    pub(in crate::lower) fn check_counters(&mut self) {
        for (elem, span) in std::mem::take(&mut self.counters) {
            if let (elem @ Elem::Param(_), true) = (self.elements.resolve(&elem), self.errors.is_empty())
                && !Elements::is_unknown(&elem)
            {
                let name = rust_elem(&elem);
                let message =
                    format!("what counts here stands beside values of {name}, and to Rust it is an integer");
                let help = format!("convert it where it is used: `k as {name}`");
                self.errors.push(Diagnostic::new(span, message).help(help));
            }
        }
    }

    fn share_ends(&mut self, range: &Range, elem: &Elem) -> Lowered<()> {
        self.share(&range.start, elem, "a loop bound", range.span)?;
        self.share(&range.end, elem, "a loop bound", range.span)
    }

    /// The type of the first end that is no literal.
    fn format_of_ends(&mut self, range: &Range) -> Lowered<Option<Elem>> {
        for end in [&range.start, &range.end] {
            match end {
                Val::Int(_) => {}
                Val::Dim(_) => return Ok(Some(DType::Index.into())),
                Val::Data(value) if self.shape(*value).is_none() => {
                    let elem = self.elem(*value);
                    if elem.known().is_none_or(|dtype| dtype.is_int() || dtype == DType::Index) {
                        return Ok(Some(elem));
                    }
                    return self.error(
                        range.span,
                        "a loop counts integers",
                        "write `for p in a..b` of integers",
                    );
                }
                Val::Poison => return Err(crate::lower::Reported),
                Val::Data(tile) if self.shape(*tile).is_some() => {
                    let message =
                        format!("a loop bound must be an integer, not {}", self.display_type(*tile));
                    let help = "count to an extent (`0..x.tiles(1)`, `0..BN`), or take one element: `x.max(0).item()`";
                    return self.error(range.span, message, help);
                }
                other => {
                    let message =
                        format!("a loop bound must be an integer, not {}", crate::lower::kind(other));
                    return self.error(range.span, message, "use a scalar or a literal");
                }
            }
        }
        Ok(None)
    }

    /// First value, stride and number of values of a range whose ends or steps are known only at run time.
    fn measured(&mut self, range: &Range, elem: &Elem) -> Lowered<(Val, Stride, Val)> {
        let span = range.span;
        let start = self.number(&range.start, elem, "a loop bound", span)?;
        let end = self.number(&range.end, elem, "a loop bound", span)?;
        let within = if range.inclusive { Predicate::Le } else { Predicate::Lt };
        let runs = self.emit_one(Op::Compare(within), &[start, end], span, &[])?;
        let (low, high) = (self.widened(start, elem, span)?, self.widened(end, elem, span)?);
        let distance = self.emit_one(Op::Binary(BinaryOp::Sub), &[high, low], span, &[])?;
        let mut count = Val::Data(self.cast_scalar(distance, &DType::Index.into(), span)?);
        if range.inclusive {
            count = self.calculate(BinaryOp::Add, &count, &Val::int(1), span)?;
        }
        let (mut first, mut stride) = (Val::Data(start), Stride::of(1));
        for adapter in &range.adapters {
            let last = self.calculate(BinaryOp::Sub, &count, &Val::int(1), span)?;
            match adapter {
                Adapter::Reversed => {
                    let last = self.data(&last, "a loop bound", span)?;
                    let turns = Val::Data(self.cast_scalar(last, elem, span)?);
                    let size = self.size_in(&stride.size, elem, span)?;
                    first = self.after_turns(&first, &turns, &Stride { size, ..stride }, span)?;
                    stride.backwards = !stride.backwards;
                }
                Adapter::Step(step) => {
                    let steps = self.calculate(BinaryOp::Div, &last, step, span)?;
                    count = self.calculate(BinaryOp::Add, &steps, &Val::int(1), span)?;
                    stride.size = match &stride.size {
                        Val::Int(Int { value: 1, .. }) => step.clone(),
                        size => self.calculate(BinaryOp::Mul, size, step, span)?,
                    };
                }
            }
        }
        let count = self.data(&count, "a loop bound", span)?;
        let none = self.extent(&Dim::from(0), span);
        let count = self.emit_one(Op::Select, &[runs, count, none], span, &[])?;
        Ok((first, stride, Val::Data(count)))
    }

    /// A bound in 64 bits, in which the distance of any two is right.
    fn widened(&mut self, bound: ValueId, elem: &Elem, span: Span) -> Lowered<ValueId> {
        if *elem == Elem::from(DType::Index) {
            return Ok(bound);
        }
        self.cast_scalar(bound, &DType::I64.into(), span)
    }

    fn cast_scalar(&mut self, value: ValueId, elem: &Elem, span: Span) -> Lowered<ValueId> {
        if self.elem(value) == *elem {
            return Ok(value);
        }
        self.emit_one(Op::Cast(elem.clone()), &[value], span, &[])
    }

    fn calculate(&mut self, op: BinaryOp, a: &Val, b: &Val, span: Span) -> Lowered<Val> {
        self.arithmetic(op, a, b, span, [span, span])
    }

    /// What the counter of the source is at a turn of the IR's loop.
    pub(in crate::lower) fn counter(
        &mut self,
        counting: &Counting,
        turn: ValueId,
        span: Span,
    ) -> Lowered<Val> {
        let elem = counting.elem.clone();
        let turn = if elem == Elem::from(DType::Index) {
            turn
        } else {
            self.emit_one(Op::Cast(elem.clone()), &[turn], span, &[])?
        };
        let Some((first, stride)) = &counting.affine else { return Ok(Val::Data(turn)) };
        let first = Val::Data(self.number(first, &elem, "a loop bound", span)?);
        self.after_turns(&first, &Val::Data(turn), stride, span)
    }

    /// What a counter is after some turns, of which the number is one of its type, as is the distance.
    fn after_turns(&mut self, first: &Val, turns: &Val, stride: &Stride, span: Span) -> Lowered<Val> {
        let distance = match &stride.size {
            Val::Int(Int { value: 1, .. }) => turns.clone(),
            size => self.calculate(BinaryOp::Mul, turns, size, span)?,
        };
        let op = if stride.backwards { BinaryOp::Sub } else { BinaryOp::Add };
        self.calculate(op, first, &distance, span)
    }

    /// A distance, which is a `usize`, as a number of the counter's type.
    fn size_in(&mut self, size: &Val, elem: &Elem, span: Span) -> Lowered<Val> {
        match (size, self.elements.resolve(elem).known()) {
            (Val::Int(size), Some(dtype)) => Ok(Val::int(wrap_int(dtype, size.value))),
            (Val::Int(size), None) => Ok(Val::int(size.value)),
            (size, _) => {
                let size = self.number(size, &DType::Index.into(), "a step", span)?;
                self.cast_scalar(size, elem, span).map(Val::Data)
            }
        }
    }
}

impl Range {
    /// The range in literals, where its ends and steps are literals.
    fn known(&self) -> Option<Known> {
        let (first, end) = (known(&self.start)?, known(&self.end)?);
        let count = (end - first + i128::from(self.inclusive)).max(0);
        let mut range = Known { first, stride: 1, count };
        for adapter in &self.adapters {
            match adapter {
                Adapter::Reversed => {
                    range.first += (range.count - 1) * range.stride;
                    range.stride = -range.stride;
                }
                Adapter::Step(step) => {
                    let step = known(step)?;
                    range.stride *= step;
                    range.count = (range.count + step - 1) / step;
                }
            }
        }
        // Nobody gets as far as the second number, which may be none of the counter's type, nor to the first of none.
        Some(match range.count {
            0 => Known { first, stride: 1, count: 0 },
            1 => Known { stride: 1, ..range },
            _ => range,
        })
    }

    /// First value, stride and number of values of a range between extents, which are extents, too: so what is loaded at
    /// its counter is known to lie inside. The number reads as 0 where the range is empty.
    fn of_extents(&self) -> Option<(Dim, i128, Dim)> {
        let (mut first, end) = (as_dim(&self.start)?, as_dim(&self.end)?);
        let mut count = end - first.clone() + Dim::from(i64::from(self.inclusive));
        let mut stride = 1;
        for adapter in &self.adapters {
            match adapter {
                Adapter::Reversed => {
                    let last = count.clone() - Dim::from(1);
                    first = first + last * Dim::from(i64::try_from(stride).ok()?);
                    stride = -stride;
                }
                Adapter::Step(step) => {
                    let step = known(step)?;
                    // Rounded up, what is below 0 may be another number that is.
                    let some = if count.is_natural() { count } else { count.at_least(&Dim::from(0)) };
                    count = some.ceil_div(&Dim::from(i64::try_from(step).ok()?));
                    stride *= step;
                }
            }
        }
        (first.is_readable() && count.is_readable()).then_some((first, stride, count))
    }
}
