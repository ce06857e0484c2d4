//! Iterators over values that are known when the macro expands: those of arrays, and ranges with literal ends, through
//! adapters of Rust's library. An iterator is the array of what it gives.

use crate::lower::known::known;
use crate::lower::{Lowered, Lowering};
use crate::rewrite::unwrapped;
use crate::span::{Span, Spanned};
use crate::totals;
use crate::value::{Closure, Int, Val};
use std::rc::Rc;
use syn::{Expr, ExprMethodCall, ExprRange, RangeLimits};
use tile_ir::ops::{BinaryOp, Predicate};
use tile_ir::{DType, Op, ValueId};

/// The methods of arrays and iterators that kernels know.
const KNOWN: &str = "arrays have `len` and `map`, and `iter` and `into_iter` with `enumerate`, `zip`, `rev`, `skip`, `take`, `step_by`, \
                     `chain`, `map`, `fold`, `sum`, `product`, `max`, `min` and `reduce`";

impl Lowering {
    /// A method of an array, or of an iterator over one.
    pub(in crate::lower) fn list_method(
        &mut self,
        values: Vec<Val>,
        of_iterator: bool,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let name = call.method.to_string();
        let mut values = self.of_one_type(values, call.receiver.span())?;
        match name.as_str() {
            "iter" | "into_iter" | "copied" | "cloned" => {
                self.arguments(&name, &call.args, 0, &format!("x.{name}()"), call.span())?;
            }
            "rev" => {
                self.arguments("rev", &call.args, 0, "x.rev()", call.span())?;
                values.reverse();
            }
            "enumerate" => {
                self.arguments("enumerate", &call.args, 0, "x.enumerate()", call.span())?;
                let counted = (0..)
                    .zip(values)
                    .map(|(at, value)| Val::List(vec![Val::Int(Int::of(at, DType::Index.into())), value]));
                values = counted.collect();
            }
            "skip" => drop(values.drain(..self.amount(call)?.min(values.len()))),
            "take" => values.truncate(self.amount(call)?),
            "step_by" => {
                let step = self.amount(call)?;
                if step == 0 {
                    return self.error(call.args.span(), "a step is at least 1", "`.rev()` counts down");
                }
                values = values.into_iter().step_by(step).collect();
            }
            "zip" => {
                let others = self.other_values(call)?;
                values = values.into_iter().zip(others).map(|(a, b)| Val::List(vec![a, b])).collect();
            }
            "chain" => values.extend(self.other_values(call)?),
            "map" => {
                let so_far = self.ops_so_far();
                let closure = self.closure_given(call, 0)?;
                let given = values.into_iter().map(|value| self.applied(&closure, vec![value], call));
                // Each is lowered, so that each mistake is reported.
                let given = given.collect::<Vec<Lowered<Val>>>().into_iter().collect::<Lowered<_>>()?;
                values = self.of_one_type(given, call.span())?;
                if !of_iterator {
                    return Ok(Val::List(values));
                }
                self.note_effect(so_far, call);
            }
            "fold" => return self.folded(values, call),
            "sum" | "product" if call.args.is_empty() => return self.total(values, call),
            "max" | "min" | "reduce" => return self.perhaps_nothing(call),
            _ => return self.no_list_method(&name, call),
        }
        Ok(Val::Iterator(values))
    }

    fn folded(&mut self, values: Vec<Val>, call: &ExprMethodCall) -> Lowered<Val> {
        let Some(start) = call.args.first().filter(|_| call.args.len() == 2) else {
            let help = "write `x.fold(start, |a, b| a + b)`";
            return self.error(call.span(), "`fold` takes a start and a closure", help);
        };
        let so_far = self.ops_so_far();
        let start = self.expression(start)?;
        let mut folded = self.named(start);
        let closure = self.closure_given(call, 1)?;
        for value in values {
            let next = self.applied(&closure, vec![folded.clone(), value], call)?;
            let before = self.formats_of(&folded);
            folded = self.of_type_with(next, [before]);
        }
        self.takes_all(&call.receiver, so_far);
        Ok(folded)
    }

    /// `x.iter().sum()`, or what else [`totals`] has.
    fn total(&mut self, values: Vec<Val>, call: &ExprMethodCall) -> Lowered<Val> {
        let name = call.method.to_string();
        if !totals::is_iterator(&call.receiver) {
            let message = format!("an array has no method `{name}` in Rust, but its iterators have");
            return self.error(call.method.span(), message, &format!("write `x.iter().{name}()`"));
        }
        let op = totals::op(call).expect("it is one of these methods");
        self.takes_all(&call.receiver, self.ops_so_far());
        let mut total = None;
        for value in values {
            total = Some(match total {
                None => value,
                Some(total) => {
                    let places: [Span; 2] = [call.receiver.span(); 2];
                    self.arithmetic(op, &total, &value, call.span(), places)?
                }
            });
        }
        let Some(total) = total else {
            let message = format!("this iterator gives nothing, and `{name}` of nothing has no shape");
            return self.error(call.span(), message, "write the value");
        };
        match totals::written_type(call) {
            Some(ty) => self.conform(total, ty, &format!("what `{name}` gives"), call.span()),
            None => Ok(total),
        }
    }

    /// `x.iter().reduce(|a, b| max(a, b))`, which gives nothing of nothing.
    fn reduced(&mut self, values: Vec<Val>, call: &ExprMethodCall) -> Lowered<Val> {
        let mut values = self.of_one_type(values, call.receiver.span())?.into_iter();
        let Some(mut reduced) = values.next() else {
            return self.error(call.span(), "this iterator gives nothing", "write the value");
        };
        let so_far = self.ops_so_far();
        let closure = self.closure_given(call, 0)?;
        for value in values {
            let next = self.applied(&closure, vec![reduced.clone(), value], call)?;
            let before = self.formats_of(&reduced);
            reduced = self.of_type_with(next, [before]);
        }
        self.takes_all(&call.receiver, so_far);
        Ok(reduced)
    }

    /// `x.iter().max().unwrap()`, or `expect("…")`; `None` where it isn't the last of what an iterator gives.
    pub(in crate::lower) fn certain(&mut self, call: &ExprMethodCall) -> Lowered<Option<Val>> {
        let Expr::MethodCall(perhaps) = unwrapped(&call.receiver) else { return Ok(None) };
        let name = perhaps.method.to_string();
        let is_certain = match name.as_str() {
            "max" | "min" => perhaps.args.is_empty(),
            "reduce" => totals::is_iterator(&perhaps.receiver),
            _ => false,
        };
        let is_taken = match call.method.to_string().as_str() {
            "unwrap" => call.args.is_empty(),
            "expect" => call.args.len() == 1,
            _ => false,
        };
        if !is_taken || !is_certain {
            return Ok(None);
        }
        let values = match unwrapped(&perhaps.receiver) {
            Expr::Range(range) => self.listed_range(range)?,
            receiver => self.expression(receiver)?,
        };
        match values {
            Val::List(values) | Val::Iterator(values) if name == "reduce" => {
                self.reduced(values, perhaps).map(Some)
            }
            Val::List(values) | Val::Iterator(values) => {
                let values = self.of_one_type(values, perhaps.receiver.span())?;
                self.total(values, perhaps).map(Some)
            }
            Val::Poison => Err(crate::lower::Reported),
            other => {
                let message =
                    format!("`{name}` takes an axis, and {} has no iterator", crate::lower::kind(&other));
                self.error(perhaps.span(), message, &format!("write `x.{name}(axis)` of a tile"))
            }
        }
    }

    /// `x.iter().max()`, whose value Rust doesn't take to be there.
    fn perhaps_nothing(&mut self, call: &ExprMethodCall) -> Lowered<Val> {
        let name = &call.method;
        let message = format!("`{name}` of an iterator is an `Option`, which kernels have none of");
        let help = match name.to_string().as_str() {
            "reduce" => "the array has an element: write `.reduce(|a, b| max(a, b)).unwrap()`".to_owned(),
            name => format!("the array has an element: write `x.iter().{name}().unwrap()`"),
        };
        self.error(name.span(), message, &help)
    }

    fn no_list_method(&mut self, name: &str, call: &ExprMethodCall) -> Lowered<Val> {
        let help = match name {
            "iter_mut" => "write `for i in 0..x.len() { x[i] += 1.0; }`: such a loop is unrolled",
            "any" => "write `.fold(false, |any, value| any | (value > 0))`",
            "all" => "write `.fold(true, |all, value| all & (value > 0))`",
            "for_each" => "write a `for`",
            "collect" => "leave it out: an array has `.map(|x| …)`",
            "first" => "write `x[0]`",
            "last" => "write `x[x.len() - 1]`",
            "swap" => "write `(x[0], x[1]) = (x[1], x[0])`",
            "contains" => "compare each: `x[0] == y || x[1] == y`",
            "clone" | "to_vec" | "to_owned" => "values of kernels are `Copy`; leave the call out",
            _ => KNOWN,
        };
        self.no_method("an array", call, help)
    }

    /// The number that an adapter is given.
    fn amount(&mut self, call: &ExprMethodCall) -> Lowered<usize> {
        let name = call.method.to_string();
        let arguments = self.arguments(&name, &call.args, 1, &format!("x.{name}(2)"), call.span())?;
        self.share(&arguments.values[0], &DType::Index.into(), "a number of elements", arguments.spans[0])?;
        match known(&arguments.values[0]).and_then(|amount| usize::try_from(amount).ok()) {
            Some(amount) => Ok(amount),
            None => {
                let message = format!("`{name}` needs a number that is known when the macro expands");
                self.error(arguments.spans[0], message, "write it, or a `const` inside the kernel")
            }
        }
    }

    /// The values of the iterator that an adapter is given.
    fn other_values(&mut self, call: &ExprMethodCall) -> Lowered<Vec<Val>> {
        let name = call.method.to_string();
        let Some(other) = call.args.first().filter(|_| call.args.len() == 1) else {
            let help = format!("write `x.{name}(y)`");
            return self.error(call.span(), format!("`{name}` takes one argument"), &help);
        };
        let other = unborrowed(other);
        let value = match unwrapped(other) {
            Expr::Range(range) => self.listed_range(range)?,
            other => self.expression(other)?,
        };
        match value {
            Val::List(values) | Val::Iterator(values) => self.of_one_type(values, other.span()),
            Val::Poison => Err(crate::lower::Reported),
            other_value => {
                let message = format!("`{name}` takes an array, not {}", crate::lower::kind(&other_value));
                self.error(other.span(), message, "a kernel iterates over arrays of values")
            }
        }
    }

    /// The closure among a method's arguments, and its place. It is computed once, whatever it is given then.
    fn closure_given(&mut self, call: &ExprMethodCall, at: usize) -> Lowered<(Rc<Closure>, Span)> {
        let name = call.method.to_string();
        let Some(argument) = call.args.get(at).filter(|_| call.args.len() == at + 1) else {
            let message = format!("`{name}` takes a closure");
            return self.error(call.span(), message, "write `x.map(|value| value * 2.0)`");
        };
        match self.expression(argument)? {
            Val::Closure(closure) => Ok((closure, argument.span())),
            Val::Poison => Err(crate::lower::Reported),
            other => {
                let message = format!("`{name}` takes a closure, not {}", crate::lower::kind(&other));
                self.error(argument.span(), message, "write `|value| value * 2.0`")
            }
        }
    }

    /// What such a closure gives.
    fn applied(
        &mut self,
        (closure, place): &(Rc<Closure>, Span),
        values: Vec<Val>,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let arguments = values.into_iter().map(|value| (value, *place)).collect();
        self.apply_closure("the closure", closure, arguments, [*place, call.span()])
    }

    /// A method of a range outside of a `for`.
    pub(in crate::lower) fn range_method(
        &mut self,
        range: &ExprRange,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        if call.method == "contains" {
            return self.range_contains(range, call);
        }
        match self.listed_range(range)? {
            Val::List(values) => self.list_method(values, true, call),
            _ => Err(crate::lower::Reported),
        }
    }

    /// `(a..b).contains(&x)`.
    fn range_contains(&mut self, range: &ExprRange, call: &ExprMethodCall) -> Lowered<Val> {
        let Some(Expr::Reference(number)) = call.args.first().filter(|_| call.args.len() == 1) else {
            let help = "write `(a..b).contains(&x)`";
            return self.error(call.span(), "`contains` takes a reference to a number", help);
        };
        let mut ends = Vec::new();
        for end in [&range.start, &range.end] {
            ends.push(end.as_deref().map(|end| Ok((self.expression(end)?, end.span()))).transpose()?);
        }
        let (value, place) = (self.expression(&number.expr)?, number.expr.span());
        if matches!(value, Val::Data(tile) if self.shape(tile).is_some()) {
            let help = "write `(x >= a) & (x < b)`, which compares element by element";
            return self.error(place, "`contains` compares one number, and this is a tile", help);
        }
        let upper =
            if matches!(range.limits, RangeLimits::Closed(_)) { Predicate::Le } else { Predicate::Lt };
        let mut inside: Option<ValueId> = None;
        for (end, predicate) in ends.into_iter().zip([Predicate::Ge, upper]) {
            let Some((bound, at)) = end else { continue };
            let spans = [place, at];
            let operands = self.pair(&value, &bound, "`contains`", call.span(), spans)?;
            let holds = self.emit_one(Op::Compare(predicate), &operands, call.span(), &spans)?;
            inside = Some(match inside {
                None => holds,
                Some(before) => {
                    self.emit_one(Op::Binary(BinaryOp::And), &[before, holds], call.span(), &[])?
                }
            });
        }
        match inside {
            Some(inside) => Ok(Val::Data(inside)),
            None => self.error(range.span(), "this range contains everything", "write an end, as in `a..`"),
        }
    }
}

/// Whether a `for` counts: a range, with `.rev()` and `.step_by(n)` alone.
pub(crate) fn is_counted(expression: &Expr) -> bool {
    match unwrapped(expression) {
        Expr::Range(_) => true,
        Expr::MethodCall(call) if call.method == "rev" || call.method == "step_by" => {
            is_counted(&call.receiver)
        }
        _ => false,
    }
}

/// `x` of `&x`, whose elements a loop only reads.
pub(in crate::lower) fn unborrowed(expression: &Expr) -> &Expr {
    match unwrapped(expression) {
        Expr::Reference(reference) if reference.mutability.is_none() => unborrowed(&reference.expr),
        other => other,
    }
}
