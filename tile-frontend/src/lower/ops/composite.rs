//! Methods of tiles that are several ops: what they mean is written once more, in the same steps, on the kernel's
//! own types (`tile::kernel::composite`), and a test of whole kernels compares the two.

use crate::lower::{Lowered, Lowering};
use crate::span::Spanned;
use crate::value::Val;
use syn::ExprMethodCall;
use tile_ir::ops::{BinaryOp, Classification, Literal, Predicate, ReduceOp, UnaryOp};
use tile_ir::{DType, Dim, Elem, Op, ValueId};

impl Lowering {
    /// The sum divided by the number of elements, in the tile's own format.
    pub(in crate::lower) fn mean(&mut self, tile: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let (span, receiver) = (call.span(), call.receiver.span());
        let merged = self.reduced_axes(tile, call, "x.mean(axis)")?;
        if let Some(dtype) = self.elem(tile).known().filter(|dtype| !dtype.is_float()) {
            let message = format!("`mean` needs a float, not {dtype}");
            return self.error(receiver, message, "convert first: `x.cast::<f32>().mean(axis)`");
        }
        let sum = Op::Reduce { op: ReduceOp::Sum, axis: merged.axis };
        let sum = self.emit_one(sum, &[merged.tile], span, &[receiver])?;
        let sum = self.split(sum, &merged, span)?;
        let count = self.count_of(merged.extent, self.elem(tile), call)?;
        self.arithmetic(BinaryOp::Div, &Val::Data(sum), &Val::Data(count), span, [receiver, receiver])
    }

    /// The first position of the largest or smallest element, as `i32`, row-major among the reduced axes. Where the
    /// reduction ignores NaN, 0 where all are NaN; where it propagates NaN, the first NaN if there is one.
    pub(in crate::lower) fn position_of(
        &mut self,
        op: ReduceOp,
        tile: ValueId,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let (span, receiver) = (call.span(), call.receiver.span());
        let name = call.method.to_string();
        let domain = op.domain();
        if let Some(dtype) = self.elem(tile).known().filter(|&dtype| !domain.accepts(dtype)) {
            let message = format!("`{name}` needs {}, not {dtype}", domain.describe());
            let help = match (dtype, op) {
                (DType::Bool, ReduceOp::Max | ReduceOp::Maximum) => {
                    "where the first `true` is, `x.cast::<i32>().argmax(axis)` says; it is 0 where there is none"
                }
                (DType::Bool, _) => {
                    "where the first `false` is, `x.cast::<i32>().argmin(axis)` says; it is 0 where there is none"
                }
                (_, ReduceOp::Maximum) => "only floats have NaN to propagate: write `x.argmax(axis)`",
                (_, ReduceOp::Minimum) => "only floats have NaN to propagate: write `x.argmin(axis)`",
                _ => "convert it: `.cast::<f32>()`",
            };
            return self.error(receiver, message, help);
        }
        let merged = self.reduced_axes(tile, call, &format!("x.{name}(axis)"))?;
        let (tile, axis) = (merged.tile, merged.axis);
        let shape = self.shape(tile).unwrap_or_default();
        let extreme = self.emit_one(Op::Reduce { op, axis }, &[tile], span, &[receiver])?;
        let extreme = self.repeated(extreme, &shape, span);
        let mut found =
            self.emit_one(Op::Compare(Predicate::Eq), &[tile, extreme], span, &[receiver, receiver])?;
        if matches!(op, ReduceOp::Maximum | ReduceOp::Minimum) {
            let nan = self.emit_one(Op::Classify(Classification::IsNan), &[tile], span, &[receiver])?;
            found = self.emit_one(Op::Binary(BinaryOp::Or), &[found, nan], span, &[receiver, receiver])?;
        }
        let elem = Elem::from(DType::I32);
        let iota = Op::Iota { shape: shape.clone(), axis, elem: elem.clone() };
        let position = self.emit_one(iota, &[], span, &[])?;
        let beyond = self.count_of(merged.extent.clone(), elem.clone(), call)?;
        let nowhere = self.splat(beyond, shape, span);
        let places = [receiver, receiver, receiver];
        let candidates = self.emit_one(Op::Select, &[found, position, nowhere], span, &places)?;
        let least = Op::Reduce { op: ReduceOp::Min, axis };
        let first = self.emit_one(least, &[candidates], span, &[receiver])?;
        // Only where all elements are NaN is none of them the extreme one.
        let reduced = self.shape(first).unwrap_or_default();
        let nowhere = self.splat(beyond, reduced.clone(), span);
        let missing =
            self.emit_one(Op::Compare(Predicate::Eq), &[first, nowhere], span, &[receiver, receiver])?;
        let zero = self.emit_one(Op::Constant { value: Literal::Int(0), elem }, &[], span, &[])?;
        let zero = self.splat(zero, reduced, span);
        let first = self.emit_one(Op::Select, &[missing, zero, first], span, &places)?;
        self.split(first, &merged, span).map(Val::Data)
    }

    /// Elements below one bound or above another become that; NaN stays.
    pub(in crate::lower) fn clamp(&mut self, tile: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let span = call.span();
        let arguments = self.arguments("clamp", &call.args, 2, "x.clamp(low, high)", span)?;
        let bounds = arguments.values.iter().zip(&arguments.spans);
        let mut clamped = tile;
        for ((bound, &place), outside) in bounds.zip([Predicate::Lt, Predicate::Gt]) {
            let places = [call.receiver.span(), place];
            let [x, bound] = self.pair(&Val::Data(clamped), bound, "`clamp`", span, places)?;
            let is_outside = self.emit_one(Op::Compare(outside), &[x, bound], span, &places)?;
            clamped = self.emit_one(Op::Select, &[is_outside, bound, x], span, &[])?;
        }
        Ok(Val::Data(clamped))
    }

    /// A power with an exponent that is written out: products, as few as squaring takes.
    pub(in crate::lower) fn powi(&mut self, tile: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let (span, receiver) = (call.span(), call.receiver.span());
        let arguments = self.arguments("powi", &call.args, 1, "x.powi(3)", span)?;
        let place = arguments.spans[0];
        self.share(&arguments.values[0], &DType::I32.into(), "an exponent", place)?;
        let exponent = match &arguments.values[0] {
            Val::Int(exponent) => i32::try_from(exponent.value).ok(),
            Val::Dim(dim) => dim.as_const().and_then(|exponent| i32::try_from(exponent).ok()),
            _ => None,
        };
        let Some(exponent) = exponent else {
            return self.error(
                place,
                "the exponent of `powi` is a literal",
                "write `x.powi(3)`, or `powf(x, y)`",
            );
        };
        if let Some(dtype) = self.elem(tile).known().filter(|dtype| !dtype.is_float()) {
            let message = format!("`powi` needs a float, not {dtype}");
            return self.error(receiver, message, "write a product of integers, or convert first");
        }
        let size = exponent.unsigned_abs();
        let Some(highest) = size.checked_ilog2() else { return self.ones(tile, call).map(Val::Data) };
        let mut power = tile;
        let product = Op::Binary(BinaryOp::Mul);
        for bit in (0..highest).rev() {
            power = self.emit_one(product.clone(), &[power, power], span, &[receiver, receiver])?;
            if size >> bit & 1 == 1 {
                power = self.emit_one(product.clone(), &[power, tile], span, &[receiver, receiver])?;
            }
        }
        if exponent < 0 {
            return self.unary(UnaryOp::Recip, &Val::Data(power), span, receiver);
        }
        Ok(Val::Data(power))
    }

    /// A tile or scalar like another whose elements are 1.
    fn ones(&mut self, like: ValueId, call: &ExprMethodCall) -> Lowered<ValueId> {
        let one = Op::Constant { value: Literal::Float(1.0), elem: self.elem(like) };
        let one = self.emit_one(one, &[], call.span(), &[])?;
        Ok(match self.shape(like) {
            Some(shape) => self.splat(one, shape, call.span()),
            None => one,
        })
    }

    /// An extent as a number of a format.
    fn count_of(&mut self, extent: Dim, elem: Elem, call: &ExprMethodCall) -> Lowered<ValueId> {
        let count = self.emit_one(Op::Extent(extent), &[], call.span(), &[])?;
        self.emit_one(Op::Cast(elem), &[count], call.span(), &[call.receiver.span()])
    }
}
