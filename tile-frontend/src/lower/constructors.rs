//! Constructors of `Tile` that are several ops: what they mean is written once more, in the same steps, on the
//! kernel's own types (`tile::kernel::constructors`), and a test of whole kernels compares the two.

use super::calls::Arguments;
use super::{Lowered, Lowering, rust_elem};
use crate::diagnostic::Diagnostic;
use crate::span::{Span, Spanned};
use crate::value::Val;
use std::f32::consts::TAU;
use syn::ExprCall;
use tile_ir::ops::infer::display_shape;
use tile_ir::ops::{BinaryOp, Literal, Predicate, UnaryOp};
use tile_ir::{DType, Dim, Elem, Op, Type};

/// 2⁻²⁴.
const TO_UNIT: f32 = 1.0 / (1u32 << 24) as f32;

/// 2⁻³².
const TO_UNIT_32: f32 = TO_UNIT / 256.0;

impl Lowering {
    pub(super) fn computed(&mut self, name: &str, elem: Elem, call: &ExprCall) -> Lowered<Val> {
        let (count, usage) = match name {
            "arange" => (3, "Tile::arange([N], start, step)".to_owned()),
            "eye" => (1, "Tile::eye([M, N])".to_owned()),
            _ => (3, format!("Tile::{name}([M, N], seed, offset)")),
        };
        let arguments = self.arguments(name, &call.args, count, &usage, call.span())?;
        let shape = self.known_extents(&arguments)?;
        match name {
            "arange" => self.arange(shape, elem, &arguments, call.span()),
            "eye" => self.eye(shape, elem, arguments.spans[0], call.span()),
            _ => self.random(name, shape, &elem, &arguments, call.span()),
        }
    }

    /// The shape that is the first argument.
    fn known_extents(&mut self, arguments: &Arguments) -> Lowered<Vec<Dim>> {
        let shape = self.extents(&arguments.values[0], arguments.spans[0])?;
        match shape.iter().find(|dim| !dim.is_static()) {
            None => Ok(shape),
            Some(dim) => {
                let message = format!("the tile extent `{dim:#}` is known only at run time");
                let help = "tile extents are literals or const parameters; cover a run-time extent with a loop over tiles";
                self.error(arguments.spans[0], message, help)
            }
        }
    }

    fn of_rank(&mut self, name: &str, shape: &[Dim], rank: usize, place: Span) -> Lowered<()> {
        if shape.len() == rank {
            return Ok(());
        }
        let axes = if rank == 1 { "one axis" } else { "two axes" };
        let message = format!("`Tile::{name}` makes tiles of {axes}, not of shape {}", display_shape(shape));
        self.error(place, message, "give it another shape with `.reshape([…])`")
    }

    fn arange(&mut self, shape: Vec<Dim>, elem: Elem, arguments: &Arguments, span: Span) -> Lowered<Val> {
        let place = arguments.spans[0];
        self.of_rank("arange", &shape, 1, place)?;
        let start = self.number(&arguments.values[1], &elem, "the start", arguments.spans[1])?;
        let step = self.number(&arguments.values[2], &elem, "the step", arguments.spans[2])?;
        let elem = self.elements.resolve(&elem);
        let steps = self.emit_one(Op::Iota { shape: shape.clone(), axis: 0, elem }, &[], span, &[place])?;
        let [start, step] = [start, step].map(|scalar| self.splat(scalar, shape.clone(), span));
        let scaled = self.emit_one(Op::Binary(BinaryOp::Mul), &[steps, step], span, &arguments.spans)?;
        self.emit_one(Op::Binary(BinaryOp::Add), &[scaled, start], span, &arguments.spans).map(Val::Data)
    }

    fn eye(&mut self, shape: Vec<Dim>, elem: Elem, place: Span, span: Span) -> Lowered<Val> {
        self.of_rank("eye", &shape, 2, place)?;
        let position = |axis| Op::Iota { shape: shape.clone(), axis, elem: DType::I32.into() };
        let row = self.emit_one(position(0), &[], span, &[place])?;
        let column = self.emit_one(position(1), &[], span, &[place])?;
        let diagonal = self.emit_one(Op::Compare(Predicate::Eq), &[row, column], span, &[])?;
        let [one, zero] = [1, 0].map(|value| {
            let op = Op::Constant { value: Literal::Int(value), elem: elem.clone() };
            let scalar = self.append(op, &[], &[Type::Scalar(elem.clone())], Vec::new(), span)[0];
            self.splat(scalar, shape.clone(), span)
        });
        self.emit_one(Op::Select, &[diagonal, one, zero], span, &[]).map(Val::Data)
    }

    fn random(
        &mut self,
        name: &str,
        shape: Vec<Dim>,
        elem: &Elem,
        arguments: &Arguments,
        span: Span,
    ) -> Lowered<Val> {
        let made: Elem = if name == "random_bits" { DType::U32 } else { DType::F32 }.into();
        if !self.elements.unify(elem, &made) {
            let found = rust_elem(&self.elements.resolve(elem));
            let message = format!("`Tile::{name}` makes tiles of {}, not of {found}", rust_elem(&made));
            return self.report(Diagnostic::new(span, message).help("convert the result with `.cast()`"));
        }
        let words = self.random_words(shape, arguments, span)?;
        match name {
            "random_bits" => self.converted(&words, DType::U32, span),
            "random_uniform" => {
                let bits = self.converted(&words, DType::U32, span)?;
                let bits = self.with(BinaryOp::Shr, &bits, Val::int(8), span)?;
                let number = self.converted(&bits, DType::F32, span)?;
                self.with(BinaryOp::Mul, &number, Val::Float(TO_UNIT.into()), span)
            }
            _ => self.normal(&words, span),
        }
    }

    /// Box and Muller's method on the two words.
    fn normal(&mut self, words: &Val, span: Span) -> Lowered<Val> {
        let low = self.converted(words, DType::U32, span)?;
        let u = self.converted(&low, DType::F32, span)?;
        let u = self.with(BinaryOp::Add, &u, Val::Float(1.0), span)?;
        let u = self.with(BinaryOp::Mul, &u, Val::Float(TO_UNIT_32.into()), span)?;
        let high = self.with(BinaryOp::Shr, words, Val::int(40), span)?;
        let angle = self.converted(&high, DType::F32, span)?;
        let angle = self.with(BinaryOp::Mul, &angle, Val::Float((TAU * TO_UNIT).into()), span)?;
        let log = self.unary(UnaryOp::Log, &u, span, span)?;
        let square = self.with(BinaryOp::Mul, &log, Val::Float(-2.0), span)?;
        let radius = self.unary(UnaryOp::Sqrt, &square, span, span)?;
        let cos = self.unary(UnaryOp::Cos, &angle, span, span)?;
        self.with(BinaryOp::Mul, &radius, cos, span)
    }

    /// `philox(offset + i, seed)` for element `i` in row-major order.
    fn random_words(&mut self, shape: Vec<Dim>, arguments: &Arguments, span: Span) -> Lowered<Val> {
        let elem = Elem::from(DType::U64);
        let seed = self.number(&arguments.values[1], &elem, "the seed", arguments.spans[1])?;
        let offset = self.number(&arguments.values[2], &elem, "the offset", arguments.spans[2])?;
        let count = shape.iter().cloned().fold(Dim::from(1), |product, extent| product * extent);
        let iota = Op::Iota { shape: vec![count], axis: 0, elem };
        let place = self.emit_one(iota, &[], span, &arguments.spans)?;
        let place = self.emit_one(Op::Reshape(shape), &[place], span, &arguments.spans)?;
        let position = self.with(BinaryOp::Add, &Val::Data(place), Val::Data(offset), span)?;
        self.with(BinaryOp::Philox, &position, Val::Data(seed), span)
    }

    fn converted(&mut self, value: &Val, to: DType, span: Span) -> Lowered<Val> {
        let value = self.data(value, "a random number", span)?;
        self.emit_one(Op::Cast(to.into()), &[value], span, &[span]).map(Val::Data)
    }

    /// A leaf op with a tile, a scalar or a literal on its right.
    pub(super) fn with(&mut self, op: BinaryOp, left: &Val, right: Val, span: Span) -> Lowered<Val> {
        self.arithmetic(op, left, &right, span, [span, span])
    }
}
