//! Floats of four bits, two to a byte: what they are as 8-bit floats, and what floats are in four bits. Both are written once
//! more on the kernel's own types (`tile::kernel::four_bits`).

use crate::diagnostic::Diagnostic;
use crate::lower::{Lowered, Lowering};
use crate::span::Spanned;
use crate::value::Val;
use syn::ExprMethodCall;
use tile_ir::ops::infer::display_shape;
use tile_ir::ops::{BinaryOp, Domain, Movement, Predicate, UnaryOp};
use tile_ir::{DType, Dim, Op, ValueId};

/// Halfway between neighbours among the magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6, and whether what lies there becomes the smaller:
/// of two equally near the one whose code is even.
const HALFWAY: [(f64, bool); 7] =
    [(0.25, true), (0.75, false), (1.25, true), (1.75, false), (2.5, true), (3.5, false), (5.0, true)];

impl Lowering {
    /// `x.unpack_f4e2m1()`: two codes to a byte, the lower first. An f8e4m3fn has two mantissa bits more and a bias that is
    /// larger by 6, so a code's magnitude `m` is `4m + 48` there, but for 0, and 1 which is subnormal: `48m`.
    pub(in crate::lower) fn unpack_f4e2m1(&mut self, tile: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let span = call.span();
        self.arguments("unpack_f4e2m1", &call.args, 0, "x.unpack_f4e2m1()", span)?;
        self.require_elem(tile, &DType::U8.into(), "what `unpack_f4e2m1` unpacks", call.receiver.span())?;
        let bytes = Val::Data(tile);
        let low = self.with(BinaryOp::And, &bytes, Val::int(0xf), span)?;
        let high = self.with(BinaryOp::Shr, &bytes, Val::int(4), span)?;
        let halves = [self.data(&low, "a code", span)?, self.data(&high, "a code", span)?];
        let mut shape = self.shape(tile).unwrap_or_default();
        let axis = Val::int(shape.len() as i128);
        let pairs = self.stack(&halves, &[span, span], &axis, span, span)?;
        let pairs = self.data(&pairs, "pairs of codes", span)?;
        if let Some(last) = shape.last_mut() {
            *last = self.facts.joined(&(last.clone() * Dim::from(2)));
        }
        let codes = Val::Data(self.emit_one(Op::Reshape(shape), &[pairs], span, &[span])?);
        let magnitude = self.with(BinaryOp::And, &codes, Val::int(7), span)?;
        let subnormal = self.with(BinaryOp::Mul, &magnitude, Val::int(48), span)?;
        let normal = self.with(BinaryOp::Mul, &magnitude, Val::int(4), span)?;
        let normal = self.with(BinaryOp::Add, &normal, Val::int(48), span)?;
        let [magnitude, two] = self.pair(&magnitude, &Val::int(2), "a code", span, [span, span])?;
        let is_small = self.emit_one(Op::Compare(Predicate::Lt), &[magnitude, two], span, &[span, span])?;
        let choices = [is_small, self.data(&subnormal, "a code", span)?, self.data(&normal, "a code", span)?];
        let bits = self.emit_one(Op::Select, &choices, span, &[span, span, span])?;
        let sign = self.with(BinaryOp::And, &codes, Val::int(8), span)?;
        let sign = self.with(BinaryOp::Mul, &sign, Val::int(16), span)?;
        let signed = self.arithmetic(BinaryOp::Or, &Val::Data(bits), &sign, span, [span, span])?;
        let signed = self.data(&signed, "a code", span)?;
        self.emit_one(Op::Bitcast(DType::F8E4M3FN.into()), &[signed], span, &[span]).map(Val::Data)
    }

    /// `x.pack_f4e2m1()`: a code is the number of neighbours' middles that a magnitude is beyond, all of them for NaN. They are
    /// numbers of every float format.
    pub(in crate::lower) fn pack_f4e2m1(&mut self, tile: ValueId, call: &ExprMethodCall) -> Lowered<Val> {
        let (span, receiver) = (call.span(), call.receiver.span());
        self.arguments("pack_f4e2m1", &call.args, 0, "x.pack_f4e2m1()", span)?;
        if let Some(dtype) = self.elem(tile).known().filter(|&dtype| !Domain::Float.accepts(dtype)) {
            let message = format!("`pack_f4e2m1` packs floats, not {dtype}");
            return self.error(receiver, message, "convert first: `x.cast::<f32>().pack_f4e2m1()`");
        }
        let shape = self.shape(tile).unwrap_or_default();
        let (Some(last), two) = (shape.last().cloned(), Dim::from(2)) else {
            return self.error(receiver, "`pack_f4e2m1` packs pairs, and the tile has no axis", "reshape it");
        };
        if !self.facts.divides(&two, &last) {
            let is = if last.as_const().is_some() { "isn't even" } else { "isn't known to be even" };
            let message = format!("the last axis of a tile of shape {} {is}", display_shape(&shape));
            let help = match last.as_const() {
                Some(_) => "codes are packed in pairs: `pad` the tile to an even extent".to_owned(),
                None => format!("say that it is: `#[tile_kernel(where({:#} == 0))]`", last.rem(&two)),
            };
            let diagnostic = self.with_origin(Diagnostic::new(span, message).help(help), tile);
            return self.report(diagnostic);
        }
        let value = Val::Data(tile);
        let magnitude = self.unary(UnaryOp::Abs, &value, span, receiver)?;
        let mut codes = Val::int(7);
        for (halfway, is_down) in HALFWAY {
            let predicate = if is_down { Predicate::Le } else { Predicate::Lt };
            let below = self.holds(predicate, &magnitude, halfway, call)?;
            codes = self.arithmetic(BinaryOp::Sub, &codes, &below, span, [span, span])?;
        }
        let sign = self.unary(UnaryOp::Signum, &value, span, receiver)?;
        let negative = self.holds(Predicate::Lt, &sign, 0.0, call)?;
        let negative = self.with(BinaryOp::Mul, &negative, Val::int(8), span)?;
        let codes = self.arithmetic(BinaryOp::Add, &codes, &negative, span, [span, span])?;
        let codes = self.data(&codes, "codes", span)?;
        let half = last.floor_div(&two);
        let mut pairs = shape;
        pairs.pop();
        pairs.push(half);
        let bytes = pairs.clone();
        pairs.push(two);
        let paired = self.emit_one(Op::Reshape(pairs.clone()), &[codes], span, &[span])?;
        let mut starts = vec![Dim::from(0); pairs.len()];
        let axis = pairs.len() - 1;
        pairs[axis] = Dim::from(1);
        let [low, high] = [0, 1].map(|i| {
            starts[axis] = Dim::from(i);
            let part = Movement::Extract { starts: starts.clone(), shape: pairs.clone() };
            self.emit_one(Op::Movement(part), &[paired], span, &[span])
        });
        let high = self.with(BinaryOp::Shl, &Val::Data(high?), Val::int(4), span)?;
        let joined = self.arithmetic(BinaryOp::Or, &Val::Data(low?), &high, span, [span, span])?;
        let joined = self.data(&joined, "bytes", span)?;
        self.emit_one(Op::Reshape(bytes), &[joined], span, &[span]).map(Val::Data)
    }

    /// 1 where an element compares so with a number, else 0, as u8.
    fn holds(
        &mut self,
        predicate: Predicate,
        value: &Val,
        number: f64,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let span = call.span();
        let operands = self.pair(value, &Val::float(number), "`pack_f4e2m1`", span, [span, span])?;
        let holds = self.emit_one(Op::Compare(predicate), &operands, span, &[span, span])?;
        self.emit_one(Op::Cast(DType::U8.into()), &[holds], span, &[span]).map(Val::Data)
    }
}
