//! Constructors of `Tile`. What those mean that are several ops is written once more, in the same steps, on the kernel's
//! own types (`tile::kernel::constructors`), and a test of whole kernels compares the two.

use crate::diagnostic::Diagnostic;
use crate::lower::functions::calls::Arguments;
use crate::lower::{Lowered, Lowering, rust_elem};
use crate::span::{Span, Spanned};
use crate::value::Val;
use std::f32::consts::TAU;
use std::f64;
use syn::{ExprCall, Path, PathArguments};
use tile_ir::ops::infer::display_shape;
use tile_ir::ops::{BinaryOp, Literal, Predicate, UnaryOp};
use tile_ir::{DType, Dim, Elem, Op, Type, ValueId};

/// 2⁻²⁴.
const TO_UNIT: f32 = 1.0 / (1u32 << 24) as f32;

/// 2⁻³².
const TO_UNIT_32: f32 = TO_UNIT / 256.0;

/// 2⁻⁵³.
const TO_UNIT_53: f64 = 1.0 / (1u64 << 53) as f64;

/// A tile of numbers, whose format later code may decide.
#[derive(Debug)]
pub(in crate::lower) struct OfNumbers {
    elem: Elem,
    span: Span,
    /// What is written of bools.
    instead: String,
}

/// Where random numbers are drawn.
struct Drawn {
    positions: Val,
    seed: ValueId,
    /// Of both in the source.
    places: [Span; 2],
}

impl Lowering {
    /// `Tile::zeros([…])` and its kin.
    pub(in crate::lower) fn constructor(&mut self, name: &str, path: &Path, call: &ExprCall) -> Lowered<Val> {
        let (count, usage) = match name {
            "zeros" | "ones" | "eye" => (1, format!("Tile::{name}([M, N])")),
            "full" => (2, "Tile::full([M, N], value)".to_owned()),
            "iota" => (2, "Tile::iota([M, N], axis)".to_owned()),
            "arange" => (3, "Tile::arange([N], start, step)".to_owned()),
            "from_array" => (1, "Tile::from_array(TABLE)".to_owned()),
            "random_bits" | "random_uniform" | "random_normal" => {
                (3, format!("Tile::{name}([M, N], seed, offset)"))
            }
            "random_bits_at" | "random_uniform_at" | "random_normal_at" => {
                (2, format!("Tile::{name}(positions, seed)"))
            }
            _ => {
                let help = "tiles are made by `Tile::zeros`, `ones`, `full`, `iota`, `arange`, `eye`, `from_array`, `random_bits`, `random_uniform`, `random_normal` and, at given positions, `random_bits_at`, `random_uniform_at` and `random_normal_at`";
                return self.error(call.func.span(), format!("`Tile::{name}` doesn't exist"), help);
            }
        };
        let elem = match self.turbofish(path)? {
            Some(elem) => elem,
            None => self.elements.unknown(),
        };
        let span = call.span();
        let arguments = self.arguments(name, &call.args, count, &usage, span)?;
        if name == "from_array" {
            return self.tile_of_array(&arguments, &elem, span);
        }
        if let Some(drawn) = name.strip_suffix("_at") {
            let drawn_at = self.given_positions(&arguments)?;
            return self.random(drawn, name, drawn_at, &elem, span);
        }
        let (shape, place) = (self.known_extents(&arguments)?, arguments.spans[0]);
        if let "zeros" | "ones" = name {
            let instead = format!("Tile::full({}, {})", display_shape(&shape), name == "ones");
            self.of_numbers.push(OfNumbers { elem: elem.clone(), span: call.func.span(), instead });
        }
        match name {
            "zeros" => self.filled(0, shape, elem, place, span),
            "ones" => self.filled(1, shape, elem, place, span),
            "eye" => self.eye(shape, elem, place, span),
            "full" => self.full(shape, &elem, &arguments, span),
            "iota" => {
                let axis = self.axis(&arguments.values[1], shape.len(), arguments.spans[1])?;
                self.emit_one(Op::Iota { shape, axis, elem }, &[], span, &[place]).map(Val::Data)
            }
            "arange" => self.arange(shape, elem, &arguments, span),
            _ => {
                let drawn_at = self.positions(shape, &arguments, span)?;
                self.random(name, name, drawn_at, &elem, span)
            }
        }
    }

    /// Reports tiles of zeros or ones that came to be of bools: those are no numbers.
    pub(in crate::lower) fn check_bools(&mut self) {
        for OfNumbers { elem, span, instead } in std::mem::take(&mut self.of_numbers) {
            if self.elements.resolve(&elem) == DType::Bool.into() {
                let diagnostic =
                    Diagnostic::new(span, "this tile is one of bools, which have no zero and no one");
                self.errors.push(diagnostic.help(format!("write `{instead}`")));
            }
        }
    }

    /// `f32` of `Tile::<f32, 2>::zeros`.
    fn turbofish(&mut self, path: &Path) -> Lowered<Option<Elem>> {
        let tile = path.segments.iter().find(|segment| segment.ident == "Tile");
        let Some(PathArguments::AngleBracketed(arguments)) = tile.map(|segment| &segment.arguments) else {
            return Ok(None);
        };
        match arguments.args.first() {
            Some(syn::GenericArgument::Type(syn::Type::Infer(_))) | None => Ok(None),
            Some(syn::GenericArgument::Type(ty)) => match self.element(ty) {
                Some(elem) => Ok(Some(elem)),
                None => self.error(
                    ty.span(),
                    "this isn't an element type",
                    "use f32, i32, bf16, … or a type parameter",
                ),
            },
            Some(other) => self.error(
                other.span(),
                "this isn't an element type",
                "write `Tile::<f32, 2>::zeros([M, N])`",
            ),
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

    /// A tile of one integer.
    fn filled(&mut self, value: i128, shape: Vec<Dim>, elem: Elem, place: Span, span: Span) -> Lowered<Val> {
        let scalar = self.constant_of(value, &elem, span);
        self.emit_one(Op::Splat(shape), &[scalar], span, &[place]).map(Val::Data)
    }

    /// An integer in a format that later code may decide.
    fn constant_of(&mut self, value: i128, elem: &Elem, span: Span) -> ValueId {
        let op = Op::Constant { value: Literal::Int(value), elem: elem.clone() };
        self.append(op, &[], &[Type::Scalar(elem.clone())], Vec::new(), span)[0]
    }

    fn full(&mut self, shape: Vec<Dim>, elem: &Elem, arguments: &Arguments, span: Span) -> Lowered<Val> {
        let scalar = match &arguments.values[1] {
            Val::Data(tile) if self.shape(*tile).is_some() => {
                let help = "pass a scalar, or use `.broadcast([…])` on the tile";
                return self.error(arguments.spans[1], "`Tile::full` takes a scalar", help);
            }
            value => self.number(value, elem, "the value", arguments.spans[1])?,
        };
        self.emit_one(Op::Splat(shape), &[scalar], span, &[arguments.spans[0]]).map(Val::Data)
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
            let scalar = self.constant_of(value, &elem, span);
            self.splat(scalar, shape.clone(), span)
        });
        self.emit_one(Op::Select, &[diagonal, one, zero], span, &[]).map(Val::Data)
    }

    /// What is `drawn` by the constructor of a name: of f64 where that is written.
    fn random(&mut self, drawn: &str, name: &str, at: Drawn, elem: &Elem, span: Span) -> Lowered<Val> {
        let is_bits = drawn == "random_bits";
        if !is_bits && self.elements.resolve(elem) == DType::F64.into() {
            return self.random_doubles(drawn, at, span);
        }
        let made: Elem = if is_bits { DType::U32 } else { DType::F32 }.into();
        if !self.elements.unify(elem, &made) {
            let found = rust_elem(&self.elements.resolve(elem));
            let or_f64 = if is_bits { "" } else { " or f64" };
            let message =
                format!("`Tile::{name}` makes tiles of {}{or_f64}, not of {found}", rust_elem(&made));
            return self.report(Diagnostic::new(span, message).help("convert the result with `.cast()`"));
        }
        let words = &self.words(&at, at.seed, span)?;
        match drawn {
            "random_bits" => self.converted(words, DType::U32, span),
            "random_uniform" => {
                let bits = self.converted(words, DType::U32, span)?;
                let bits = self.with(BinaryOp::Shr, &bits, Val::int(8), span)?;
                let number = self.converted(&bits, DType::F32, span)?;
                self.with(BinaryOp::Mul, &number, Val::float(TO_UNIT.into()), span)
            }
            _ => self.normal(words, span),
        }
    }

    /// Box and Muller's method on the two words.
    fn normal(&mut self, words: &Val, span: Span) -> Lowered<Val> {
        let low = self.converted(words, DType::U32, span)?;
        let u = self.converted(&low, DType::F32, span)?;
        let u = self.with(BinaryOp::Add, &u, Val::float(1.0), span)?;
        let u = self.with(BinaryOp::Mul, &u, Val::float(TO_UNIT_32.into()), span)?;
        let high = self.with(BinaryOp::Shr, words, Val::int(40), span)?;
        let angle = self.converted(&high, DType::F32, span)?;
        let angle = self.with(BinaryOp::Mul, &angle, Val::float((TAU * TO_UNIT).into()), span)?;
        self.radius_and_angle(&u, &angle, span)
    }

    /// `√(−2 ln u)·cos angle`.
    fn radius_and_angle(&mut self, u: &Val, angle: &Val, span: Span) -> Lowered<Val> {
        let log = self.unary(UnaryOp::Log, u, span, span)?;
        let square = self.with(BinaryOp::Mul, &log, Val::float(-2.0), span)?;
        let radius = self.unary(UnaryOp::Sqrt, &square, span, span)?;
        let cos = self.unary(UnaryOp::Cos, angle, span, span)?;
        self.with(BinaryOp::Mul, &radius, cos, span)
    }

    /// Numbers of 53 bits, in the steps of `tile::kernel::random_doubles`.
    fn random_doubles(&mut self, drawn: &str, at: Drawn, span: Span) -> Lowered<Val> {
        let first = self.upper_bits(&at, at.seed, span)?;
        if drawn == "random_uniform" {
            return self.with(BinaryOp::Mul, &first, Val::float(TO_UNIT_53), span);
        }
        let other = self.emit_one(Op::Unary(UnaryOp::Not), &[at.seed], span, &[span])?;
        let second = self.upper_bits(&at, other, span)?;
        let u = self.with(BinaryOp::Add, &first, Val::float(1.0), span)?;
        let u = self.with(BinaryOp::Mul, &u, Val::float(TO_UNIT_53), span)?;
        let angle = self.with(BinaryOp::Mul, &second, Val::float(f64::consts::TAU * TO_UNIT_53), span)?;
        self.radius_and_angle(&u, &angle, span)
    }

    /// The upper 53 bits at each position, as f64.
    fn upper_bits(&mut self, at: &Drawn, seed: ValueId, span: Span) -> Lowered<Val> {
        let words = self.words(at, seed, span)?;
        let upper = self.with(BinaryOp::Shr, &words, Val::int(11), span)?;
        self.converted(&upper, DType::F64, span)
    }

    /// `philox` of the positions.
    fn words(&mut self, at: &Drawn, seed: ValueId, span: Span) -> Lowered<Val> {
        self.arithmetic(BinaryOp::Philox, &at.positions, &Val::Data(seed), span, at.places)
    }

    /// `offset + i` for element `i` in row-major order.
    fn positions(&mut self, shape: Vec<Dim>, arguments: &Arguments, span: Span) -> Lowered<Drawn> {
        let elem = Elem::from(DType::U64);
        let seed = self.number(&arguments.values[1], &elem, "the seed", arguments.spans[1])?;
        let offset = self.offset(&arguments.values[2], arguments.spans[2])?;
        let count = shape.iter().cloned().fold(Dim::from(1), |product, extent| product * extent);
        let iota = Op::Iota { shape: vec![count], axis: 0, elem };
        let place = self.emit_one(iota, &[], span, &arguments.spans)?;
        let place = self.emit_one(Op::Reshape(shape), &[place], span, &arguments.spans)?;
        let positions = self.with(BinaryOp::Add, &Val::Data(place), Val::Data(offset), span)?;
        Ok(Drawn { positions, seed, places: [span, span] })
    }

    /// A tile of positions that is an argument.
    fn given_positions(&mut self, arguments: &Arguments) -> Lowered<Drawn> {
        let elem = Elem::from(DType::U64);
        let seed = self.number(&arguments.values[1], &elem, "the seed", arguments.spans[1])?;
        let place = arguments.spans[0];
        let positions = match arguments.values[0] {
            Val::Data(tile) if self.shape(tile).is_some() => tile,
            _ => {
                let help = "write `philox(position, seed)` for one number, or make a tile of positions: `Tile::<u64, 2>::iota([M, N], 1) + first`";
                return self.error(place, "positions are a tile of u64", help);
            }
        };
        let found = self.elem(positions);
        if !self.elements.unify(&found, &elem) {
            let message = format!("positions are a tile of u64, not of {}", rust_elem(&found));
            return self.error(place, message, "convert it with `.cast::<u64>()`");
        }
        let places = [place, arguments.spans[1]];
        Ok(Drawn { positions: arguments.values[0].clone(), seed, places })
    }

    /// Where a sequence of random numbers begins: an integer of any type, as one of u64.
    fn offset(&mut self, value: &Val, span: Span) -> Lowered<ValueId> {
        if let Val::Data(tile) = *value
            && self.shape(tile).is_some()
        {
            return self.error(
                span,
                "the offset is a tile",
                "positions of a tile are `Tile::random_bits_at(positions, seed)`",
            );
        }
        // A number below zero is one of u64 as `as u64` makes it.
        let wide = if matches!(value, Val::Int(int) if int.value < 0) { DType::I64 } else { DType::U64 };
        let offset = self.any_integer(value, wide, "the offset", span)?;
        if self.elem(offset).known() == Some(DType::U64) {
            return Ok(offset);
        }
        self.emit_one(Op::Cast(DType::U64.into()), &[offset], span, &[span])
    }

    fn converted(&mut self, value: &Val, to: DType, span: Span) -> Lowered<Val> {
        let value = self.data(value, "a random number", span)?;
        self.emit_one(Op::Cast(to.into()), &[value], span, &[span]).map(Val::Data)
    }

    /// A leaf op with a tile, a scalar or a literal on its right.
    pub(in crate::lower) fn with(
        &mut self,
        op: BinaryOp,
        left: &Val,
        right: Val,
        span: Span,
    ) -> Lowered<Val> {
        self.arithmetic(op, left, &right, span, [span, span])
    }
}
