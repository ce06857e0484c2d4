//! Leaving early. The IR has no jumps: `break`, `continue` and `return` clear flags, and what would be skipped
//! runs under `if`. Flags are scalars, so control flow stays the same for all threads of a block.
//!
//! Each frame (the kernel, and every loop) has up to two flags. `live`: the current iteration, or the kernel,
//! goes on; it guards the rest of every block after a statement that may leave. `again`: the loop goes on.
//! An exit clears both flags of every frame that it leaves, and `live` of the loop that it continues.

use super::tiles::TILE_LOOP;
use crate::assigned::{self, Assigned};
use crate::diagnostic::Diagnostic;
use crate::exits::{self, Exit, label_name};
use crate::lower::{Lowered, Lowering};
use crate::scope::{Changes, Variable, VariableId};
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{Block, Expr, ExprBreak, ExprContinue, ExprReturn, Label, Stmt};
use tile_ir::ops::Literal;
use tile_ir::{DType, ValueId};

/// The keyword of a labelled block's frame.
const BLOCK: &str = "block";

/// What an exit can leave.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    label: Option<String>,
    /// `None` for the kernel, and for a function or closure that is called.
    keyword: Option<&'static str>,
    live: Option<Flag>,
    again: Option<Flag>,
    /// What `break` gives, for a `loop`, and `return`, for what is called.
    result: Option<VariableId>,
    /// What the first `break` gave, and where: the others give the same type.
    given: Option<(Val, Span)>,
}

impl Frame {
    /// Where the first exit with a value is.
    pub(in crate::lower) fn first_given(&self) -> Option<Span> {
        self.given.as_ref().map(|(_, place)| *place)
    }
}

#[derive(Clone, Copy, Debug)]
struct Flag {
    variable: VariableId,
    /// Its value where nothing can have cleared it.
    set: ValueId,
}

impl Lowering {
    pub(in crate::lower) fn kernel_body(&mut self, body: &Block) -> Lowered<Val> {
        let live = if exits::of_block(body).is_empty() { None } else { Some(self.flag("live", body.span())) };
        self.frames.push(Frame { label: None, keyword: None, live, again: None, result: None, given: None });
        let value = self.block(body);
        self.frames.pop();
        value
    }

    /// Enters the body of a function or closure that is called.
    pub(in crate::lower) fn enter_call(&mut self, returns: bool, span: Span) {
        let live = returns.then(|| self.flag("live", span));
        let result = Some(self.hidden("value", Val::Unset, span));
        self.frames.push(Frame { label: None, keyword: None, live, again: None, result, given: None });
    }

    /// Whether what was left went on to its end; `None` where it always did.
    pub(in crate::lower) fn goes_on_after(&self, frame: &Frame) -> Option<ValueId> {
        self.cleared(frame.live?)
    }

    /// Enters a loop whose body is `body`: makes the flags that its exits need, here.
    pub(in crate::lower) fn enter_loop(
        &mut self,
        keyword: &'static str,
        label: &Option<Label>,
        body: &Block,
    ) {
        let label = label.as_ref().map(|label| label_name(&label.name));
        let exits = exits::of_block(body);
        let continues = |exit: &Exit| match exit {
            Exit::Continue(to) => to.is_none() || *to == label,
            _ => false,
        };
        let span = body.span();
        let live = if exits.is_empty() { None } else { Some(self.flag("live", span)) };
        let again = if exits.iter().all(continues) { None } else { Some(self.flag("again", span)) };
        let result = (keyword == "loop").then(|| self.hidden("value", Val::Unset, span));
        self.frames.push(Frame { label, keyword: Some(keyword), live, again, result, given: None });
    }

    /// `'a: { … break 'a value; … value }`.
    pub(in crate::lower) fn labelled_block(&mut self, label: &Label, body: &Block) -> Lowered<Val> {
        let span = body.span();
        let name = label_name(&label.name);
        let live = if exits::of_block(body).is_empty() { None } else { Some(self.flag("live", span)) };
        let result = Some(self.hidden("value", Val::Unset, span));
        let frame =
            Frame { label: Some(name.clone()), keyword: Some(BLOCK), live, again: None, result, given: None };
        self.frames.push(frame);
        let value = self.block(body);
        let frame = self.leave_loop();
        let place = body.stmts.last().map_or(span, Spanned::span);
        self.returned(&frame, value?, &format!("'{name}"), place)
    }

    pub(in crate::lower) fn leave_loop(&mut self) -> Frame {
        self.frames.pop().expect("a loop that is left was entered")
    }

    /// Sets `live` of the innermost loop for its next iteration.
    pub(in crate::lower) fn revive(&mut self, span: Span) {
        let Some(flag) = self.frames.last().and_then(|frame| frame.live) else { return };
        let set = self.truth(true, span);
        self.scopes.variables[flag.variable].value = Val::Data(set);
        if let Some(frame) = self.frames.last_mut() {
            frame.live = Some(Flag { set, ..flag });
        }
    }

    fn hidden(&mut self, name: &str, value: Val, span: Span) -> VariableId {
        let (name, changes) = (name.to_owned(), Changes::Allowed);
        self.scopes.hide(Variable { name, value, changes, constant: false, span })
    }

    fn flag(&mut self, name: &str, span: Span) -> Flag {
        let set = self.truth(true, span);
        Flag { variable: self.hidden(name, Val::Data(set), span), set }
    }

    /// A constant condition.
    pub(in crate::lower) fn truth(&mut self, value: bool, span: Span) -> ValueId {
        let op = tile_ir::Op::Constant { value: Literal::Int(i128::from(value)), elem: DType::Bool.into() };
        self.append(op, &[], &[tile_ir::Type::BOOL], Vec::new(), span)[0]
    }

    /// The present value of the innermost loop's `again`; `None` where nothing can have cleared it.
    pub(in crate::lower) fn goes_on(&self) -> Option<ValueId> {
        self.frames.last().and_then(|frame| self.cleared(frame.again?))
    }

    /// Whether the innermost loop may end early.
    pub(in crate::lower) fn may_break(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.again.is_some())
    }

    fn cleared(&self, flag: Flag) -> Option<ValueId> {
        match self.scopes.variables[flag.variable].value {
            Val::Data(value) if value != flag.set => Some(value),
            _ => None,
        }
    }

    /// The frame that an exit goes to; `None` where there is none, which rustc reports too.
    fn target(&self, exit: &Exit) -> Option<usize> {
        let label = match exit {
            Exit::Return => return self.frames.iter().rposition(|frame| frame.keyword.is_none()),
            Exit::Break(label) | Exit::Continue(label) => label,
        };
        let is_end = |frame: &Frame| match (frame.keyword, label) {
            (None, _) => true,
            (Some(keyword), None) => keyword != BLOCK,
            (Some(_), label) => frame.label == *label,
        };
        let found = self.frames.iter().rposition(is_end)?;
        Some(found).filter(|&found| self.frames[found].keyword.is_some())
    }

    /// The flags that exits clear, and the variables for what they give.
    pub(in crate::lower) fn flags_of(&self, exits: &[Exit]) -> Vec<VariableId> {
        let mut found = Vec::new();
        for exit in exits {
            let Some(target) = self.target(exit) else { continue };
            let stays = matches!(exit, Exit::Continue(_));
            for (i, frame) in self.frames.iter().enumerate().skip(target) {
                found.extend(frame.live.map(|flag| flag.variable));
                found.extend(frame.again.filter(|_| i > target || !stays).map(|flag| flag.variable));
            }
            if !stays {
                found.extend(self.frames[target].result);
            }
        }
        found
    }

    /// What `break` gives, which the innermost loop carries out.
    pub(in crate::lower) fn result_of_loop(&self) -> Option<VariableId> {
        self.frames.last().and_then(|frame| frame.result)
    }

    fn leave(&mut self, exit: &Exit, span: Span) -> Lowered<Val> {
        let Some(target) = self.target(exit) else {
            let message = match exit {
                Exit::Break(Some(label)) | Exit::Continue(Some(label)) => {
                    format!("no loop around this place is labelled `'{label}`")
                }
                _ => "there is no loop to leave here".to_owned(),
            };
            return self.error(span, message, "label the loop that is meant; `return` ends the block's work");
        };
        let stays = |i| i == target && matches!(exit, Exit::Continue(_));
        let is_left = |(i, frame): (usize, &Frame)| frame.keyword == Some(TILE_LOOP) && !stays(i);
        if self.frames.iter().enumerate().skip(target).any(is_left) {
            return self.error(
                span,
                "leaving the loop over tiles would leave tiles unwritten, and which ones depends on the number of blocks",
                "`continue` goes on with the block's next tile",
            );
        }
        let no = self.truth(false, span);
        for flag in self.flags_of(std::slice::from_ref(exit)) {
            if Some(flag) != self.frames[target].result {
                self.scopes.variables[flag].value = Val::Data(no);
            }
        }
        Ok(Val::Never)
    }

    pub(in crate::lower) fn break_loop(&mut self, exit: &ExprBreak) -> Lowered<Val> {
        let span = exit.span();
        let to = Exit::Break(exit.label.as_ref().map(label_name));
        if let (Some(value), Some(target)) = (&exit.expr, self.target(&to)) {
            self.break_value(value, target)?;
        }
        self.leave(&to, span)
    }

    fn break_value(&mut self, value: &Expr, target: usize) -> Lowered<()> {
        let Frame { result, keyword, .. } = &self.frames[target];
        let Some(result) = *result else {
            if keyword.is_none() {
                return self.error(value.span(), "a kernel returns nothing", "write `return;`");
            }
            let message = format!("a `{}` has no value", keyword.unwrap_or("loop"));
            return self.error(
                value.span(),
                message,
                "assign to a variable before the `break`, or use `loop`",
            );
        };
        let keyword = *keyword;
        let given = self.expression(value)?;
        let mut given = self.named(given);
        match self.frames[target].given.clone() {
            None => self.frames[target].given = Some((given.clone(), value.span())),
            Some((first, place)) => {
                let what = match (keyword, self.calls.last()) {
                    (None, Some(call)) => format!("the value of `{}`", call.name),
                    (Some(BLOCK), _) => "the value of this block".to_owned(),
                    _ => "the value of this loop".to_owned(),
                };
                given = self.same_type_as(&first, &what, place, given, value.span())?;
            }
        }
        self.scopes.variables[result].value = given;
        Ok(())
    }

    pub(in crate::lower) fn continue_loop(&mut self, exit: &ExprContinue) -> Lowered<Val> {
        self.leave(&Exit::Continue(exit.label.as_ref().map(label_name)), exit.span())
    }

    pub(in crate::lower) fn return_early(&mut self, exit: &ExprReturn) -> Lowered<Val> {
        if let (Some(value), Some(target)) = (&exit.expr, self.target(&Exit::Return)) {
            self.break_value(value, target)?;
        }
        self.leave(&Exit::Return, exit.span())
    }

    /// The value of a `loop` that was left.
    pub(in crate::lower) fn loop_value(&mut self, frame: &Frame) -> Val {
        let value = frame.result.map(|result| self.scopes.variables[result].value.clone());
        match value {
            None | Some(Val::Unset) => Val::Unit,
            Some(value) => value,
        }
    }

    /// Refuses an exit among operands: what was computed of the expression would have to be undone.
    pub(in crate::lower) fn check_exits(&mut self, expression: &Expr) -> Lowered<()> {
        let Some(inside) = exits::in_the_middle(expression) else { return Ok(()) };
        let help = "make it a statement of its own, such as `let x = if … { break } else { … };`";
        let message = "`break`, `continue` and `return` can't stand in the middle of an expression";
        self.report(Diagnostic::new(inside.span(), message).help(help))
    }

    /// The statements after one that may have left: they run if it didn't.
    pub(in crate::lower) fn rest(&mut self, rest: &[Stmt], after: Span) -> Lowered<Val> {
        let live = self.frames.last().and_then(|frame| self.cleared(frame.live?));
        match live {
            None => self.statements(rest),
            Some(live) => self.if_live(live, assigned::by_statements(rest), after, &mut |lowering| {
                lowering.statements(rest)
            }),
        }
    }

    /// Does something if the innermost loop or the kernel goes on.
    pub(in crate::lower) fn guarded(
        &mut self,
        assigned: Assigned,
        span: Span,
        action: &mut dyn FnMut(&mut Self) -> Lowered<Val>,
    ) -> Lowered<Val> {
        match self.frames.last().and_then(|frame| self.cleared(frame.live?)) {
            None => action(self),
            Some(live) => self.if_live(live, assigned, span, action),
        }
    }

    fn if_live(
        &mut self,
        live: ValueId,
        assigned: Assigned,
        span: Span,
        action: &mut dyn FnMut(&mut Self) -> Lowered<Val>,
    ) -> Lowered<Val> {
        self.choose("if", live, &assigned, span, action, &mut |_| Ok(Val::Never))
    }
}
