//! Leaf ops by name, as functions, `exp(x)`, and as methods, `x.exp()`: one list for both. Operators are in
//! [`super::operators`].

use crate::lower::functions::calls::Arguments;
use crate::lower::{Lowered, Lowering, rust_elem};
use crate::span::{Span, Spanned};
use crate::value::{Int, Val};
use syn::{ExprCall, ExprMethodCall};
use tile_ir::ops::{BinaryOp, Classification, Leaf, Predicate, ReduceOp, UnaryOp};
use tile_ir::{DType, Op};

/// The leaf op that a method's name means. As methods `min` and `max` reduce an axis.
fn of_method(name: &str) -> Option<Leaf> {
    Leaf::from_name(name)
        .filter(|leaf| leaf.is_function() && ReduceOp::from_method(name).is_none())
        .or_else(|| BinaryOp::wrapping(name).map(Leaf::Binary))
}

impl Lowering {
    /// `exp(x)`, `powf(a, b)`.
    pub(in crate::lower) fn leaf_function(&mut self, leaf: Leaf, call: &ExprCall) -> Lowered<Val> {
        let operands = if leaf.operands() == 1 { "x" } else { "a, b" };
        let usage = format!("{}({operands})", leaf.name());
        let arguments = self.arguments(leaf.name(), &call.args, leaf.operands(), &usage, call.span())?;
        if let (Leaf::Binary(op @ (BinaryOp::Min | BinaryOp::Max)), [Val::Data(tile), Val::Int(axis)]) =
            (leaf, arguments.values.as_slice())
            && self.shape(*tile).is_some()
            && self.elem(*tile).known().is_some_and(DType::is_float)
        {
            let (of_all, of_two) =
                if op == BinaryOp::Min { ("least", "lesser") } else { ("largest", "larger") };
            let (name, axis, elem) = (op.name(), axis.value, rust_elem(&self.elem(*tile)));
            let message = format!("an integer literal where {elem} is needed");
            let help = format!(
                "the {of_all} along axis {axis} is `x.{name}({axis})`, the {of_two} of two numbers `{name}(x, {axis}.0)`"
            );
            return self.error(arguments.spans[1], message, &help);
        }
        self.leaf(leaf, &arguments, call.span())
    }

    /// `x.exp()`, `a.powf(b)`, and what is several leaf ops; `None` where the name is none of these.
    pub(in crate::lower) fn leaf_method(
        &mut self,
        receiver: &Val,
        call: &ExprMethodCall,
    ) -> Lowered<Option<Val>> {
        let (name, span) = (call.method.to_string(), call.span());
        if let Some(leaf) = of_method(&name) {
            let (one, two) = (format!("x.{name}()"), format!("a.{name}(b)"));
            let usage = if leaf.operands() == 1 { one } else { two };
            let mut arguments = self.arguments(&name, &call.args, leaf.operands() - 1, &usage, span)?;
            arguments.values.insert(0, receiver.clone());
            arguments.spans.insert(0, call.receiver.span());
            if let Leaf::Binary(op) = leaf
                && op.moves_bits()
            {
                self.check_distance(&name, &arguments)?;
                if self.is_scalar(receiver) {
                    // Of the type that Rust says, not of the number's.
                    arguments.values[1] = arguments.values[1].alone();
                }
            }
            let result = self.leaf(leaf, &arguments, span)?;
            if let (Val::Dim(_), true) = (&result, name.starts_with("wrapping_")) {
                return self.wrapping_size(call);
            }
            let function = match leaf {
                Leaf::Binary(BinaryOp::Shl) => "wrapping_shl",
                Leaf::Binary(BinaryOp::Shr) => "wrapping_shr",
                leaf => leaf.name(),
            };
            self.note_function(call.method.span().into(), function, &result);
            return match leaf {
                Leaf::Unary(op) => self.counted_as_rust_does(op, result, span).map(Some),
                _ => Ok(Some(result)),
            };
        }
        match name.as_str() {
            "mul_add" => self.mul_add(receiver, call).map(Some),
            "overflowing_add" => self.overflowing(BinaryOp::Add, receiver, call).map(Some),
            "overflowing_sub" => self.overflowing(BinaryOp::Sub, receiver, call).map(Some),
            "overflowing_mul" => self.overflowing(BinaryOp::Mul, receiver, call).map(Some),
            checked if checked.starts_with("checked_") => self.checked(receiver, call),
            "wrapping_neg" => {
                self.arguments(&name, &call.args, 0, "x.wrapping_neg()", span)?;
                self.wrapping_neg(receiver, call).map(Some)
            }
            "wrapping_abs" => {
                self.arguments(&name, &call.args, 0, "x.wrapping_abs()", span)?;
                if let Val::Dim(_) = receiver {
                    return self.wrapping_size(call);
                }
                let absolute = self.unary(UnaryOp::Abs, receiver, span, call.receiver.span())?;
                self.note_function(call.method.span().into(), "abs", &absolute);
                Ok(Some(absolute))
            }
            _ => Ok(None),
        }
    }

    /// `x.wrapping_neg()`: `0 - x`, which integers without a sign have, too.
    fn wrapping_neg(&mut self, receiver: &Val, call: &ExprMethodCall) -> Lowered<Val> {
        if let Val::Dim(_) = receiver {
            return self.wrapping_size(call);
        }
        let (span, place) = (call.span(), call.receiver.span());
        let value = self.data(receiver, "the operand of `wrapping_neg`", place)?;
        if self.elem(value).known().is_some_and(DType::is_float) {
            let message = "`wrapping_neg` of floats, which don't wrap";
            return self.error(call.method.span(), message, "write `-x`");
        }
        let zero = Val::Int(Int { value: 0, shared: None, places: Vec::new() });
        let negated = self.arithmetic(BinaryOp::Sub, &zero, &Val::Data(value), span, [place; 2])?;
        self.note_function(call.method.span().into(), "wrapping_neg", &negated);
        Ok(negated)
    }

    fn wrapping_size<T>(&mut self, call: &ExprMethodCall) -> Lowered<T> {
        let message = format!("`{}` of sizes, which don't wrap", call.method);
        let help = "write `n - 1`, or convert first: `(n as i32).wrapping_sub(1)`";
        self.error(call.method.span(), message, help)
    }

    /// Requires of the distance by which a method moves the bits of a number that it is a `u32`, as Rust's own methods want it.
    fn check_distance(&mut self, name: &str, operands: &Arguments) -> Lowered<()> {
        let ([number, by], &[_, place]) = (&operands.values[..], &operands.spans[..]) else { return Ok(()) };
        if !self.is_scalar(number) || !self.is_scalar(by) {
            return Ok(());
        }
        let (what, elem) = (format!("the distance of `{name}`"), DType::U32.into());
        match by {
            Val::Int(_) => self.share(by, &elem, &what, place),
            by => self.number(by, &elem, &what, place).map(drop),
        }
    }

    /// What a method gives of a number: Rust's own count bits as a `u32`, whatever the number's type.
    fn counted_as_rust_does(&mut self, op: UnaryOp, result: Val, span: Span) -> Lowered<Val> {
        let counts = matches!(op, UnaryOp::CountOnes | UnaryOp::LeadingZeros | UnaryOp::TrailingZeros);
        match result {
            Val::Data(value) if counts && self.is_scalar(&result) => {
                self.emit_one(Op::Cast(DType::U32.into()), &[value], span, &[]).map(Val::Data)
            }
            result => Ok(result),
        }
    }

    fn leaf(&mut self, leaf: Leaf, operands: &Arguments, span: Span) -> Lowered<Val> {
        match (leaf, operands.values.as_slice(), operands.spans.as_slice()) {
            (Leaf::Unary(op), [x], &[place]) => self.unary(op, x, span, place),
            (Leaf::Classify(test), [x], &[place]) => self.classification(test, x, span, place),
            (Leaf::Binary(op), [a, b], &[left, right]) => self.arithmetic(op, a, b, span, [left, right]),
            (Leaf::Compare(predicate), [a, b], places) => self.comparison(predicate, a, b, span, places),
            _ => unreachable!("the arguments were counted"),
        }
    }

    /// An op of one operand, as an operator, a function or a method.
    pub(in crate::lower) fn unary(
        &mut self,
        op: UnaryOp,
        value: &Val,
        span: Span,
        operand: Span,
    ) -> Lowered<Val> {
        let value = self.data(value, &format!("the operand of `{}`", op.name()), operand)?;
        self.emit_one(Op::Unary(op), &[value], span, &[operand]).map(Val::Data)
    }

    fn comparison(
        &mut self,
        predicate: Predicate,
        a: &Val,
        b: &Val,
        span: Span,
        spans: &[Span],
    ) -> Lowered<Val> {
        let operands = self.pair(a, b, &format!("`{}`", predicate.name()), span, [spans[0], spans[1]])?;
        self.emit_one(Op::Compare(predicate), &operands, span, spans).map(Val::Data)
    }

    fn classification(
        &mut self,
        classification: Classification,
        value: &Val,
        span: Span,
        operand: Span,
    ) -> Lowered<Val> {
        let value = self.data(value, &format!("the operand of `{}`", classification.name()), operand)?;
        self.emit_one(Op::Classify(classification), &[value], span, &[operand]).map(Val::Data)
    }
}
