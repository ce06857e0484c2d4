//! `for`, `while` and `loop`. A loop that nothing leaves early is a `for` of the IR; any other is a `while`.

use super::exits::Frame;
use super::ranges::{Counting, Sequence};
use super::tiles::tiles_persistent;
use crate::assigned::{self, Assigned};
use crate::diagnostic::Diagnostic;
use crate::exits;
use crate::lower::{Lowered, Lowering, Reported};
use crate::scope::VariableId;
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{Block, Expr, ExprForLoop, ExprLoop, ExprWhile, Label, Pat, PatIdent};
use tile_ir::ops::{BinaryOp, Predicate};
use tile_ir::tile_order::TileOrder;
use tile_ir::{Dim, Op, Type, ValueId};

/// How often a loop runs.
pub(in crate::lower) enum Times<'e> {
    /// For the counters `start..end`.
    Counted { start: ValueId, end: ValueId },
    /// While a condition holds.
    While(&'e Expr),
    /// Until it is left.
    Forever,
    /// For the tiles of a mutable view that the block handles, in an order.
    Tiles { view: ValueId, order: TileOrder<Dim> },
}

/// The parts of a loop that all kinds have.
pub(in crate::lower) struct Loop<'e> {
    pub(in crate::lower) keyword: &'static str,
    pub(in crate::lower) label: &'e Option<Label>,
    pub(in crate::lower) body: &'e Block,
    pub(in crate::lower) assigned: Assigned,
    pub(in crate::lower) span: Span,
}

/// A carried variable: its value on entry and at the end of an iteration, part by part.
struct Carried {
    variable: VariableId,
    structure: Val,
    initial: Vec<ValueId>,
    params: Vec<ValueId>,
    yielded: Vec<ValueId>,
}

/// What decides whether a `while` of the IR goes on, and its counter.
struct Turn {
    condition: Option<ValueId>,
    next: Option<ValueId>,
}

impl Lowering {
    pub(in crate::lower) fn for_loop(&mut self, for_loop: &ExprForLoop) -> Lowered<Val> {
        let span = for_loop.for_token.span();
        if let Some(tiles) = tiles_persistent(&for_loop.expr) {
            return self.tile_loop(for_loop, tiles);
        }
        let counting = match self.sequence(for_loop)? {
            Sequence::Unrolled(turns) => {
                if turns.is_empty() {
                    self.without_turns(for_loop);
                }
                return self.unroll(for_loop, &turns);
            }
            Sequence::Counted(counting) => counting,
        };
        let counter = match &*for_loop.pat {
            Pat::Ident(pattern) => Some(pattern),
            Pat::Wild(_) => None,
            other => {
                return self.error(other.span(), "a loop counter is a plain name", "write `for p in a..b`");
            }
        };
        let parts = Loop {
            keyword: "for",
            label: &for_loop.label,
            body: &for_loop.body,
            assigned: assigned::by_expression(&Expr::ForLoop(for_loop.clone())),
            span,
        };
        let times = Times::Counted { start: counting.start, end: counting.end };
        self.repeat(&parts, &times, &mut |lowering, turn| {
            lowering.define_counter(counter, &counting, turn, span)?;
            lowering.block(&for_loop.body)
        })
    }

    fn define_counter(
        &mut self,
        pattern: Option<&PatIdent>,
        counting: &Counting,
        turn: Option<ValueId>,
        span: Span,
    ) -> Lowered<()> {
        if let (Some(PatIdent { ident: name, mutability, .. }), Some(turn)) = (pattern, turn) {
            self.kernel.name_value(turn, &name.to_string());
            let value = self.counter(counting, turn, span)?;
            self.define(name, mutability.is_some(), value);
        }
        Ok(())
    }

    pub(in crate::lower) fn while_loop(&mut self, repeated: &ExprWhile) -> Lowered<Val> {
        let parts = Loop {
            keyword: "while",
            label: &repeated.label,
            body: &repeated.body,
            assigned: assigned::by_expression(&Expr::While(repeated.clone())),
            span: repeated.while_token.span(),
        };
        self.repeat(&parts, &Times::While(&repeated.cond), &mut |lowering, _| lowering.block(&repeated.body))
    }

    pub(in crate::lower) fn endless_loop(&mut self, endless: &ExprLoop) -> Lowered<Val> {
        let span = endless.loop_token.span();
        if exits::of_block(&endless.body).is_empty() {
            return self.error(span, "this loop never ends", "leave it with `break` or `return`");
        }
        let parts = Loop {
            keyword: "loop",
            label: &endless.label,
            body: &endless.body,
            assigned: assigned::by_expression(&Expr::Loop(endless.clone())),
            span,
        };
        let value = self.repeat(&parts, &Times::Forever, &mut |lowering, _| lowering.block(&endless.body))?;
        // What a `return` or the `break` of another loop leaves has no value, and stands where any is needed.
        Ok(if exits::is_broken(endless) { value } else { Val::Never })
    }

    /// Lowers a loop; `body` is given the counter.
    pub(in crate::lower) fn repeat(
        &mut self,
        parts: &Loop<'_>,
        times: &Times<'_>,
        body: &mut dyn FnMut(&mut Self, Option<ValueId>) -> Lowered<Val>,
    ) -> Lowered<Val> {
        let variables = self.carried(&parts.assigned, parts.span)?;
        self.enter_loop(parts.keyword, parts.label, parts.body);
        self.nesting += 1;
        let finished = self.iterate(parts, variables, times, body);
        self.nesting -= 1;
        let frame: Frame = self.leave_loop();
        finished?;
        Ok(self.loop_value(&frame))
    }

    fn iterate(
        &mut self,
        parts: &Loop<'_>,
        variables: Vec<VariableId>,
        times: &Times<'_>,
        body: &mut dyn FnMut(&mut Self, Option<ValueId>) -> Lowered<Val>,
    ) -> Lowered<()> {
        let span = parts.span;
        let is_for = matches!(times, Times::Counted { .. }) && !self.may_break();
        // The first condition may assign, so it comes before the values that the loop begins with.
        let has_condition = !is_for && !matches!(times, Times::Tiles { .. });
        let first = if has_condition { Some(self.first_condition(times, span)?) } else { None };
        let mut carried = self.begin(variables, span)?;
        let region = self.kernel.new_region();
        let counter = match times {
            Times::Counted { .. } => Some(self.kernel.new_value(Type::INDEX, None)),
            _ => None,
        };
        let outer = std::mem::replace(&mut self.region, region);
        self.scopes.enter();
        let turn = body(self, counter).and_then(|_| self.turn(times, counter, has_condition, span));
        self.scopes.leave();
        let turn = turn.and_then(|turn| {
            self.end_iteration(&mut carried, outer, span)?;
            Ok(turn)
        });
        self.region = outer;
        let turn = turn?;
        self.check_carried(&carried, span)?;
        let yielded = carried.iter().flat_map(|carried| carried.yielded.clone());
        let yielded: Vec<ValueId> = turn.condition.into_iter().chain(turn.next).chain(yielded).collect();
        self.end_region(region, &yielded, span);
        let params = carried.iter().flat_map(|carried| carried.params.clone());
        self.kernel.region_mut(region).params = counter.into_iter().chain(params).collect();
        let bounds = match (times, first) {
            (Times::Counted { start, end }, None) => vec![*start, *end],
            (Times::Counted { start, .. }, Some(first)) => vec![first, *start],
            (Times::Tiles { view, .. }, _) => vec![*view],
            (_, first) => first.into_iter().collect(),
        };
        let initial = carried.iter().flat_map(|carried| carried.initial.clone());
        let operands: Vec<ValueId> = bounds.into_iter().chain(initial).collect();
        let (op, skipped) = match times {
            Times::Tiles { order, .. } => (Op::Tiles(order.clone()), 1),
            _ if is_for => (Op::For, 2),
            _ => (Op::While, 1),
        };
        let types: Vec<Type> =
            operands[skipped..].iter().map(|&value| self.kernel.ty(value).clone()).collect();
        let results = self.append(op, &operands, &types, vec![region], span);
        let mut results = results.into_iter().skip(usize::from(counter.is_some() && !is_for));
        for Carried { variable, structure, .. } in &carried {
            self.set_value(*variable, structure, &mut results);
        }
        Ok(())
    }

    /// The values that a loop begins with; inside, its variables are parameters of its region.
    fn begin(&mut self, variables: Vec<VariableId>, span: Span) -> Lowered<Vec<Carried>> {
        let mut carried = Vec::new();
        for variable in variables.into_iter().chain(self.result_of_loop()) {
            let structure = self.scopes.variables[variable].value.clone();
            let mut initial = Vec::new();
            if !matches!(structure, Val::Unset) {
                self.flatten(&structure, "a carried value", span, &mut initial)?;
            }
            let params: Vec<ValueId> = initial.iter().map(|&value| self.fresh_like(value)).collect();
            self.set_value(variable, &structure, &mut params.iter().copied());
            carried.push(Carried { variable, structure, initial, params, yielded: Vec::new() });
        }
        Ok(carried)
    }

    /// Takes the carried variables' values at the end of an iteration. What a `break` inside gave for the
    /// first time has no value before; nothing sees the zeros that stand for it.
    fn end_iteration(
        &mut self,
        carried: &mut [Carried],
        outer: tile_ir::RegionId,
        span: Span,
    ) -> Lowered<()> {
        for entry in carried {
            let value = self.scopes.variables[entry.variable].value.clone();
            match value {
                Val::Poison => return Err(Reported),
                Val::Unset => continue,
                value => {
                    let name = self.scopes.variables[entry.variable].name.clone();
                    let what = format!("`{name}`, which is assigned in a loop,");
                    let structure = self.flatten(&value, &what, span, &mut entry.yielded)?;
                    if matches!(entry.structure, Val::Unset) {
                        let inside = std::mem::replace(&mut self.region, outer);
                        entry.initial =
                            entry.yielded.iter().map(|&value| self.zeros_like(value, span)).collect();
                        self.region = inside;
                        entry.params = entry.initial.iter().map(|&value| self.fresh_like(value)).collect();
                        entry.structure = structure;
                    }
                }
            }
        }
        Ok(())
    }

    fn first_condition(&mut self, times: &Times<'_>, span: Span) -> Lowered<ValueId> {
        match times {
            Times::Counted { start, end } => self.is_below(*start, *end, span),
            Times::While(condition) => self.condition(condition, "while"),
            Times::Forever | Times::Tiles { .. } => Ok(self.truth(true, span)),
        }
    }

    fn is_below(&mut self, counter: ValueId, end: ValueId, span: Span) -> Lowered<ValueId> {
        self.emit_one(Op::Compare(Predicate::Lt), &[counter, end], span, &[])
    }

    /// Whether there is another iteration, at the end of one.
    fn turn(
        &mut self,
        times: &Times<'_>,
        counter: Option<ValueId>,
        has_condition: bool,
        span: Span,
    ) -> Lowered<Turn> {
        if !has_condition {
            return Ok(Turn { condition: None, next: None });
        }
        let again = self.goes_on();
        if let (Times::Counted { end, .. }, Some(counter)) = (times, counter) {
            let one = self.extent(&tile_ir::Dim::from(1), span);
            let next = self.emit_one(Op::Binary(BinaryOp::Add), &[counter, one], span, &[])?;
            let mut condition = self.is_below(next, *end, span)?;
            if let Some(again) = again {
                condition = self.emit_one(Op::Binary(BinaryOp::And), &[again, condition], span, &[])?;
            }
            return Ok(Turn { condition: Some(condition), next: Some(next) });
        }
        // The condition is the next iteration's, also where `continue` has ended this one.
        self.revive(span);
        let condition = match (times, again) {
            (Times::While(condition), None) => self.condition(condition, "while")?,
            (Times::While(condition), Some(again)) => self.condition_if(again, condition, span)?,
            (_, Some(again)) => again,
            (_, None) => self.truth(true, span),
        };
        Ok(Turn { condition: Some(condition), next: None })
    }

    /// `again && condition`, where the condition is not evaluated after the loop was left.
    fn condition_if(&mut self, again: ValueId, condition: &Expr, span: Span) -> Lowered<ValueId> {
        let assigned = assigned::by_expression(condition);
        let value = self.choose(
            "while",
            again,
            &assigned,
            span,
            &mut |lowering| lowering.condition(condition, "while").map(Val::Data),
            &mut |lowering| Ok(Val::Data(lowering.truth(false, span))),
        )?;
        self.data(&value, "the condition", condition.span())
    }

    /// What a loop yields must have the types that it carries.
    fn check_carried(&mut self, carried: &[Carried], span: Span) -> Lowered<()> {
        for Carried { variable, params, yielded, .. } in carried {
            let name = self.scopes.variables[*variable].name.clone();
            for (&param, &next) in params.iter().zip(yielded) {
                self.unify(param, next, &format!("carrying `{name}` around the loop"), span)?;
                if self.shape(param) != self.shape(next) {
                    let message = format!(
                        "`{name}` changes from {} to {} in the loop",
                        self.display_type(param),
                        self.display_type(next)
                    );
                    return self.report(Diagnostic::new(span, message).help("a variable keeps its shape"));
                }
            }
        }
        Ok(())
    }
}
