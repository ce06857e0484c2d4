//! Methods of scalars that Rust's numbers have and that are several ops here, or an op of another name.

use crate::lower::{Lowered, Lowering, rust_elem};
use crate::span::Spanned;
use crate::value::Val;
use syn::ExprMethodCall;
use tile_ir::ops::{BinaryOp, Predicate, UnaryOp};
use tile_ir::{DType, Elem, Op, ValueId};

impl Lowering {
    /// `x.clamp(low, high)`: of integers and indices by `min` and `max`, of which bounds are known; of floats NaN stays.
    pub(in crate::lower) fn clamp_scalar(&mut self, receiver: &Val, call: &ExprMethodCall) -> Lowered<Val> {
        let span = call.span();
        let arguments = self.arguments("clamp", &call.args, 2, "x.clamp(low, high)", span)?;
        let (bounds, place) = (arguments.values.iter().zip(&arguments.spans), call.receiver.span());
        let is_integer = match receiver {
            Val::Int(_) | Val::Dim(_) => true,
            Val::Data(value) => {
                self.elem(*value).known().is_some_and(|dtype| dtype.is_int() || dtype == DType::Index)
            }
            _ => false,
        };
        let mut clamped = receiver.clone();
        for ((bound, &at), (op, outside)) in
            bounds.zip([(BinaryOp::Max, Predicate::Lt), (BinaryOp::Min, Predicate::Gt)])
        {
            clamped = if is_integer {
                self.arithmetic(op, &clamped, bound, span, [place, at])?
            } else {
                let [x, bound] = self.pair(&clamped, bound, "`clamp`", span, [place, at])?;
                let is_outside = self.emit_one(Op::Compare(outside), &[x, bound], span, &[place, at])?;
                Val::Data(self.emit_one(Op::Select, &[is_outside, bound, x], span, &[])?)
            };
        }
        // Rust's panics where the bounds are the other way round.
        self.note_scalar(call.method.span().into(), "clamp", &clamped);
        Ok(clamped)
    }

    /// `x.powi(3)` of a number whose format is known.
    pub(in crate::lower) fn powi_scalar(&mut self, receiver: &Val, call: &ExprMethodCall) -> Lowered<Val> {
        let value = self.data(receiver, "the operand of `powi`", call.receiver.span())?;
        match self.elem(value) {
            elem @ Elem::Param(_) if self.has_no_literals(&elem) => {
                let message = format!("a scalar of {} has no `powi`", rust_elem(&elem));
                self.error(call.method.span(), message, "write a product, `x * x * x`")
            }
            _ => {
                let power = self.powi(value, call)?;
                // Rust's multiplies in an order that it doesn't say.
                self.note_scalar(call.method.span().into(), "powi", &power);
                Ok(power)
            }
        }
    }

    /// `x.ln()`, which a number of Rust has and a tile hasn't; its `log` takes a base.
    pub(in crate::lower) fn logarithm(&mut self, receiver: &Val, call: &ExprMethodCall) -> Lowered<Val> {
        if call.method == "log" {
            let help = "write `x.ln()`; of another base `x.ln() / base.ln()`, `x.log2()` or `x.log10()`";
            return self.error(call.method.span(), "`log` of a scalar takes a base in Rust", help);
        }
        self.arguments("ln", &call.args, 0, "x.ln()", call.span())?;
        let logarithm = self.unary(UnaryOp::Log, receiver, call.span(), call.receiver.span())?;
        self.note_function(call.method.span().into(), "log", &logarithm);
        Ok(logarithm)
    }

    /// `x.to_bits()`.
    pub(in crate::lower) fn bits_of_float(&mut self, receiver: &Val, call: &ExprMethodCall) -> Lowered<Val> {
        self.arguments("to_bits", &call.args, 0, "x.to_bits()", call.span())?;
        let place = call.receiver.span();
        let value = self.data(receiver, "the operand of `to_bits`", place)?;
        let elem = self.elem(value);
        let Some(bits) = elem.known().and_then(bits_of) else {
            let message = format!("`to_bits` needs a float, not {}", rust_elem(&elem));
            return self.error(place, message, "write its format, as in `let x: f32 = …;`");
        };
        self.emit_one(Op::Bitcast(bits.into()), &[value], call.span(), &[place]).map(Val::Data)
    }

    /// `f32::from_bits(x)`.
    pub(in crate::lower) fn float_of_bits(&mut self, dtype: DType, call: &syn::ExprCall) -> Lowered<Val> {
        let name = dtype.rust_name();
        let usage = format!("{name}::from_bits(x)");
        let arguments = self.arguments("from_bits", &call.args, 1, &usage, call.span())?;
        let Some(bits) = bits_of(dtype) else {
            let message = format!("{name} has no `from_bits`");
            return self.error(call.func.span(), message, "integers are converted with `as`");
        };
        let place = arguments.spans[0];
        let value: ValueId = self.number(&arguments.values[0], &bits.into(), "the bits", place)?;
        self.emit_one(Op::Bitcast(dtype.into()), &[value], call.span(), &[place]).map(Val::Data)
    }
}

/// The integers that have a float's bits.
fn bits_of(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F8E4M3FN | DType::F8E5M2 | DType::F8E8M0FNU => Some(DType::U8),
        DType::F16 | DType::BF16 => Some(DType::U16),
        DType::F32 => Some(DType::U32),
        DType::F64 => Some(DType::U64),
        _ => None,
    }
}
