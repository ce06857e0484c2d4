//! Conversions of tiles, and arithmetic whose point is how it rounds or wraps.

use crate::lower::{Lowered, Lowering};
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{Expr, ExprMethodCall, GenericArgument};
use tile_ir::ops::{BinaryOp, Predicate};
use tile_ir::{Elem, Op, Rounding, ValueId};

impl Lowering {
    /// `x.cast::<f32>()`, `x.cast_with::<f16>(Rounding::Up)`, `x.saturating_cast::<f16>()` and `x.bitcast::<u32>()`.
    pub(in crate::lower) fn cast_method(&mut self, tile: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let name = call.method.to_string();
        let rounding = match name.as_str() {
            "cast_with" => Some(self.rounding(call)?),
            _ => {
                self.arguments(&name, &call.args, 0, &format!("x.{name}::<f32>()"), call.span())?;
                None
            }
        };
        let elem = self.target_format(call)?;
        let op = match (rounding, name.as_str()) {
            (Some(rounding), _) => Op::CastWith(elem, rounding),
            (None, "saturating_cast") => Op::SaturatingCast(elem),
            (None, "bitcast") => Op::Bitcast(elem),
            (None, _) => Op::Cast(elem),
        };
        self.emit_one(op, &[tile], call.span(), &[call.receiver.span()]).map(Val::Data)
    }

    /// The element type in a method's turbofish; `_` and none are inferred.
    fn target_format(&mut self, call: &ExprMethodCall) -> Lowered<Elem> {
        let to = call.turbofish.as_ref().and_then(|turbofish| turbofish.args.first());
        let elem = match to {
            Some(GenericArgument::Type(syn::Type::Infer(_))) | None => Some(self.elements.unknown()),
            Some(GenericArgument::Type(ty)) => self.element(ty),
            Some(_) => None,
        };
        match elem {
            Some(elem) => Ok(elem),
            None => {
                let span: Span = to.map_or_else(|| call.method.span().into(), Spanned::span);
                self.error(span, "this isn't an element type", &format!("write `x.{}::<f32>()`", call.method))
            }
        }
    }

    fn rounding(&mut self, call: &ExprMethodCall) -> Lowered<Rounding> {
        let named = match call.args.first() {
            Some(Expr::Path(path)) if call.args.len() == 1 => path.path.segments.last(),
            _ => None,
        };
        let found = named.and_then(|segment| {
            Rounding::ALL.iter().copied().find(|rounding| segment.ident == rounding.variant())
        });
        match found {
            Some(rounding) => Ok(rounding),
            None => {
                let names: Vec<String> = Rounding::ALL
                    .iter()
                    .map(|rounding| format!("`Rounding::{}`", rounding.variant()))
                    .collect();
                let span: Span = call.args.first().map_or_else(|| call.method.span().into(), Spanned::span);
                let help = format!("write one of {}", names.join(", "));
                self.error(span, "`cast_with` takes a rounding direction, written out", &help)
            }
        }
    }

    /// `x.mul_add(factor, term)`.
    pub(in crate::lower) fn mul_add(&mut self, receiver: &Val, call: &ExprMethodCall) -> Lowered<Val> {
        let (span, place) = (call.span(), call.receiver.span());
        let arguments = self.arguments("mul_add", &call.args, 2, "x.mul_add(factor, term)", span)?;
        let [factor, term] = &arguments.values[..] else { unreachable!("two arguments were checked") };
        let spans = [place, arguments.spans[0], arguments.spans[1]];
        let what = "`mul_add`";
        let [x, factor] = self.pair(receiver, factor, what, span, [spans[0], spans[1]])?;
        let [x, term] = self.pair(&Val::Data(x), term, what, span, [spans[0], spans[2]])?;
        let [factor, x] = self.broadcast_pair(factor, x, what, span)?;
        let value = self.emit_one(Op::MulAdd, &[x, factor, term], span, &spans).map(Val::Data)?;
        if self.is_scalar(&value) {
            self.note_scalar(call.method.span().into(), "mul_add", &value);
        }
        Ok(value)
    }

    /// The wrapped result, and where it wrapped: a sum or difference that isn't the saturated one, a product whose high
    /// half isn't the sign of its low half.
    pub(in crate::lower) fn overflowing(
        &mut self,
        op: BinaryOp,
        receiver: &Val,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let name = call.method.to_string();
        let span = call.span();
        let arguments = self.arguments(&name, &call.args, 1, &format!("a.{name}(b)"), span)?;
        let spans = [call.receiver.span(), arguments.spans[0]];
        let [a, b] = self.pair(receiver, &arguments.values[0], &format!("`{name}`"), span, spans)?;
        if let Some(dtype) = self.elem(a).known().filter(|dtype| !dtype.is_int()) {
            let message = format!("`{name}` needs an integer, not {}", dtype.rust_name());
            return self.error(spans[0], message, "floats don't wrap: they become infinite");
        }
        let wrapped = self.emit_one(Op::Binary(op), &[a, b], span, &spans)?;
        let other = match op {
            BinaryOp::Add => BinaryOp::SaturatingAdd,
            BinaryOp::Sub => BinaryOp::SaturatingSub,
            _ => BinaryOp::MulHi,
        };
        let found = self.emit_one(Op::Binary(other), &[a, b], span, &spans)?;
        let expected = if op == BinaryOp::Mul { self.sign(wrapped, span)? } else { wrapped };
        let overflow = self.emit_one(Op::Compare(Predicate::Ne), &[expected, found], span, &spans)?;
        let function = match op {
            BinaryOp::Add => "overflowing_add",
            BinaryOp::Sub => "overflowing_sub",
            _ => "overflowing_mul",
        };
        self.note_function(call.method.span().into(), function, &Val::Data(wrapped));
        Ok(Val::List(vec![Val::Data(wrapped), Val::Data(overflow)]))
    }

    /// All bits set where integers are negative, of any format: shifts are taken modulo the width.
    fn sign(&mut self, value: ValueId, span: Span) -> Lowered<ValueId> {
        let negative = self.with(BinaryOp::Min, &Val::Data(value), Val::int(0), span)?;
        let sign = self.with(BinaryOp::Shr, &negative, Val::int(63), span)?;
        self.data(&sign, "a sign", span)
    }

    /// `x.checked_add(y)`, which std has and tiles can't.
    pub(in crate::lower) fn checked<T>(&mut self, receiver: &Val, call: &ExprMethodCall) -> Lowered<T> {
        let name = call.method.to_string();
        let message = format!("`{name}` would give an `Option`, and there is no tile of those");
        let help = match (receiver, name.strip_prefix("checked_")) {
            (Val::Dim(_), Some("sub")) => "ask first: `if b <= a { … a - b … }`".to_owned(),
            (_, Some(op @ ("add" | "sub" | "mul"))) => format!(
                "write `let (wrapped, overflow) = a.overflowing_{op}(b);`, and `select(overflow, instead, wrapped)`"
            ),
            _ => "every operation is defined: integers wrap, `x / 0` is 0 and `x % 0` is x; compare and `select`"
                .to_owned(),
        };
        self.error(call.method.span(), message, &help)
    }
}
