//! Methods of tiles that are several ops: what they mean is written once more, in the same steps, on the kernel's
//! own types (`tile::kernel::composite`), and a test of whole kernels compares the two.

use super::{Lowered, Lowering};
use crate::span::Spanned;
use crate::value::Val;
use syn::ExprMethodCall;
use tile_ir::ops::{BinaryOp, Classification, Literal, Predicate, ReduceOp};
use tile_ir::{DType, Dim, Elem, Op, ValueId};

impl Lowering {
    /// The sum divided by the number of elements, in the tile's own format.
    pub(super) fn mean(&mut self, tile: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
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
    pub(super) fn position_of(&mut self, op: ReduceOp, tile: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let (span, receiver) = (call.span(), call.receiver.span());
        let name = call.method.to_string();
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

    /// An extent as a number of a format.
    fn count_of(&mut self, extent: Dim, elem: Elem, call: &ExprMethodCall) -> Lowered<ValueId> {
        let count = self.emit_one(Op::Extent(extent), &[], call.span(), &[])?;
        self.emit_one(Op::Cast(elem), &[count], call.span(), &[call.receiver.span()])
    }
}
