//! Methods and functions that move the elements of tiles.

use crate::diagnostic::Diagnostic;
use crate::lower::{Lowered, Lowering, Reported, kind};
use crate::span::{Span, Spanned};
use crate::value::{Int, Val};
use proc_macro2::Literal;
use std::borrow::Cow;
use syn::{Expr, ExprCall, ExprLit, ExprMethodCall, GenericArgument, Lit, Pat, parse_quote};
use tile_ir::ops::infer::display_shape;
use tile_ir::ops::{Movement, ScatterMode};
use tile_ir::{DType, Dim, Op, ValueId};

/// `let [a, b] = x.split_even(axis);`, whose pattern says the number of parts.
pub(in crate::lower) fn with_parts<'e>(pattern: &Pat, value: &'e Expr) -> Cow<'e, Expr> {
    let (Pat::Slice(parts), Expr::MethodCall(call)) = (pattern, value) else { return Cow::Borrowed(value) };
    let are_all = parts.elems.iter().all(|part| {
        matches!(part, Pat::Ident(name) if name.subpat.is_none()) || matches!(part, Pat::Wild(_))
    });
    if call.method != "split_even" || call.turbofish.is_some() || !are_all {
        return Cow::Borrowed(value);
    }
    let number = Literal::usize_unsuffixed(parts.elems.len());
    let turbofish = Some(parse_quote!(::<#number>));
    Cow::Owned(Expr::MethodCall(ExprMethodCall { turbofish, ..call.clone() }))
}

/// Every method here, with how it is called.
const METHODS: &[(&str, usize, &str)] = &[
    ("extract", 2, "x.extract([start, …], [extent, …])"),
    ("insert", 2, "x.insert([start, …], part)"),
    ("split_even", 1, "x.split_even::<2>(axis)"),
    ("cat", 2, "a.cat(b, axis)"),
    ("pad", 2, "x.pad([(before, after), …], value)"),
    ("flip", 1, "x.flip(axis)"),
    ("roll", 2, "x.roll(axis, by)"),
    ("shift", 3, "x.shift(axis, by, fill)"),
    ("repeat", 1, "x.repeat([count, …])"),
    ("squeeze", 1, "x.squeeze(axis)"),
    ("unsqueeze", 1, "x.unsqueeze(axis)"),
    ("gather", 2, "x.gather(indices, axis)"),
    ("gather_or", 3, "x.gather_or(fill, indices, axis)"),
    ("scatter", 3, "x.scatter(indices, values, axis)"),
    ("scatter_add", 3, "x.scatter_add(indices, values, axis)"),
    ("take", 2, "x.take(index, axis)"),
];

/// Whether a method of tiles is one of this file.
pub(in crate::lower) fn is_movement(name: &str) -> bool {
    METHODS.iter().any(|(method, ..)| *method == name)
}

/// The names of these methods.
pub(in crate::lower) fn method_names() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|(name, ..)| *name)
}

/// A call of one of the methods: its tile, its arguments and where they stand.
struct Call<'c> {
    tile: ValueId,
    values: Vec<Val>,
    spans: Vec<Span>,
    span: Span,
    receiver: Span,
    usage: &'static str,
    syntax: &'c ExprMethodCall,
}

impl Lowering {
    pub(in crate::lower) fn movement_method(
        &mut self,
        tile: ValueId,
        syntax: &ExprMethodCall,
    ) -> Lowered<Val> {
        let name = syntax.method.to_string();
        let &(_, count, usage) =
            METHODS.iter().find(|(method, ..)| *method == name).expect("verified: a method of this file");
        let arguments = self.arguments(&name, &syntax.args, count, usage, syntax.span())?;
        let (values, spans) = (arguments.values, arguments.spans);
        let (span, receiver) = (syntax.span(), syntax.receiver.span());
        let call = Call { tile, values, spans, span, receiver, usage, syntax };
        match name.as_str() {
            "extract" => {
                let (starts, shape) = (self.starts(&call)?, self.entries(&call, 1, "an extent")?);
                let shape = shape.iter().map(|extent| self.facts.joined(extent)).collect();
                self.moved(&call, Movement::Extract { starts, shape }, &[], &[])
            }
            "insert" => self.insert(&call),
            "split_even" => self.split_even(&call),
            "cat" => {
                let other = self.tile(&call.values[0], "the operand of `cat`", call.spans[0])?;
                self.cat(&[tile, other], &[receiver, call.spans[0]], &call.values[1], call.spans[1], span)
            }
            "pad" => self.pad(&call),
            "flip" => {
                let axis = self.axis_of(&call, 0)?;
                self.moved(&call, Movement::Flip { axis }, &[], &[])
            }
            "roll" => {
                let (by, axis) = (self.distance(&call)?, self.axis_of(&call, 0)?);
                self.moved(&call, Movement::Roll { axis, by }, &[], &[])
            }
            "shift" => {
                let (by, axis) = (self.distance(&call)?, self.axis_of(&call, 0)?);
                let elem = self.elem(tile);
                let fill = self.number(&call.values[2], &elem, "what `shift` fills with", call.spans[2])?;
                self.moved(&call, Movement::Shift { axis, by }, &[fill], &[call.spans[2]])
            }
            "repeat" => {
                let counts = self.entries(&call, 0, "a count")?;
                self.moved(&call, Movement::Repeat { counts }, &[], &[])
            }
            "squeeze" => self.squeeze(&call),
            "unsqueeze" => {
                let shape = self.shape(tile).unwrap_or_default();
                let axis = self.new_axis(&call.values[0], shape.len(), call.spans[0])?;
                self.unsqueezed(tile, axis, span, receiver).map(Val::Data)
            }
            "take" => self.take(&call),
            "gather" => {
                let fill = self.zero(&self.elem(tile), span)?;
                self.gather(&call, fill, 0)
            }
            "gather_or" => {
                let elem = self.elem(tile);
                let fill =
                    self.number(&call.values[0], &elem, "what `gather_or` fills with", call.spans[0])?;
                self.gather(&call, fill, 1)
            }
            "scatter" => self.scatter(&call, ScatterMode::Write),
            _ => self.scatter(&call, ScatterMode::Add),
        }
    }

    /// A movement of the call's tile and further operands.
    fn moved(
        &mut self,
        call: &Call<'_>,
        movement: Movement,
        operands: &[ValueId],
        spans: &[Span],
    ) -> Lowered<Val> {
        let operands = [&[call.tile], operands].concat();
        let spans = [&[call.receiver], spans].concat();
        let moved = self.emit_one(Op::Movement(movement), &operands, call.span, &spans)?;
        self.with_joined_extents(moved, call.span).map(Val::Data)
    }

    /// A tile whose parts, of an extent that divides, are that extent again.
    fn with_joined_extents(&mut self, tile: ValueId, span: Span) -> Lowered<ValueId> {
        let shape = self.shape(tile).unwrap_or_default();
        let joined: Vec<Dim> = shape.iter().map(|extent| self.facts.joined(extent)).collect();
        if joined == shape {
            return Ok(tile);
        }
        self.emit_one(Op::Reshape(joined), &[tile], span, &[span])
    }

    /// An argument that is an array with a known number per axis.
    fn entries(&mut self, call: &Call<'_>, argument: usize, what: &str) -> Lowered<Vec<Dim>> {
        let span = call.spans[argument];
        match &call.values[argument] {
            Val::List(values) => values.iter().map(|value| self.static_dim(value, what, span)).collect(),
            Val::Poison => Err(Reported),
            other => {
                let message = format!("{what} is given for each axis, in an array, not {}", kind(other));
                self.error(span, message, &format!("write `{}`", call.usage))
            }
        }
    }

    /// Where a part begins along each axis.
    fn starts(&mut self, call: &Call<'_>) -> Lowered<Vec<Dim>> {
        let Val::List(starts) = &call.values[0] else { return self.entries(call, 0, "a start") };
        let help = "use literals and const parameters; at an index that is computed, `x.take(i, axis)` is the slice there, \
                    and `x.gather(indices, axis)` looks up several";
        let start = |start: &Val| self.static_dim_or(start, "a start", help, call.spans[0]);
        starts.iter().map(start).collect()
    }

    fn axis_of(&mut self, call: &Call<'_>, argument: usize) -> Lowered<usize> {
        let rank = self.shape(call.tile).map_or(0, |shape| shape.len());
        self.axis(&call.values[argument], rank, call.spans[argument])
    }

    /// By how much elements move: the argument after the axis, which may be negative. PyTorch's `roll` has it before the axis,
    /// which would be taken for the other silently; a counter or a parameter may well be 0.
    fn distance(&mut self, call: &Call<'_>) -> Lowered<Dim> {
        if let Expr::Lit(ExprLit { lit: Lit::Int(by), .. }) = &call.syntax.args[1]
            && by.base10_digits() == "0"
        {
            let message = format!("`{}` by 0 moves nothing", call.syntax.method);
            return self.error(call.spans[1], message, &format!("the axis comes first: `{}`", call.usage));
        }
        match &call.values[1] {
            Val::Int(Int { value: by, .. }) => match i64::try_from(*by) {
                Ok(by) => Ok(Dim::from(by)),
                Err(_) => self.error(call.spans[1], "the number is too large", "move by less"),
            },
            Val::Data(by) => match self.static_number(*by) {
                Some(distance) => {
                    if self.elem(*by) != DType::Index.into() {
                        self.require_elem(*by, &DType::I32.into(), "how far elements move", call.spans[1])?;
                    }
                    Ok(distance)
                }
                None => self.error(
                    call.spans[1],
                    "how far elements move is computed at run time",
                    "use a literal or a const parameter, `-(R as i32)` of one; `gather` takes positions that are computed",
                ),
            },
            by => {
                let by = self.static_dim(by, "how far elements move", call.spans[1])?;
                // A usize that is below zero is 0 everywhere but on the reference device, where it is an error.
                Ok(if by.is_natural() { by } else { by.at_least(&Dim::from(0)) })
            }
        }
    }

    fn insert(&mut self, call: &Call<'_>) -> Lowered<Val> {
        let starts = self.entries(call, 0, "a start")?;
        let part = self.tile(&call.values[1], "what is inserted", call.spans[1])?;
        self.unify(call.tile, part, "`insert`", call.spans[1])?;
        self.moved(call, Movement::Insert { starts }, &[part], &[call.spans[1]])
    }

    fn pad(&mut self, call: &Call<'_>) -> Lowered<Val> {
        let span = call.spans[0];
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let Val::List(pairs) = &call.values[0] else {
            let message = "padding is given for each axis, in an array";
            return self.error(span, message, &format!("write `{}`", call.usage));
        };
        for pair in pairs {
            let Val::List(pair) = pair else {
                let help = "write `[(1, 0), (2, 2)]`: elements before and after the tile along each axis";
                return self.error(span, "the padding of an axis is a pair", help);
            };
            let [first, last] = pair.as_slice() else {
                let message = format!("the padding of an axis is a pair, not {} numbers", pair.len());
                return self.error(span, message, "write `(before, after)`");
            };
            before.push(self.static_dim(first, "a padding", span)?);
            after.push(self.static_dim(last, "a padding", span)?);
        }
        let elem = self.elem(call.tile);
        let value = self.number(&call.values[1], &elem, "the padding value", call.spans[1])?;
        self.moved(call, Movement::Pad { before, after }, &[value], &[call.spans[1]])
    }

    fn split_even(&mut self, call: &Call<'_>) -> Lowered<Val> {
        let axis = self.axis_of(call, 0)?;
        let parts = self.parts(call)?;
        let shape = self.shape(call.tile).unwrap_or_default();
        let (extent, count) = (shape[axis].clone(), Dim::from(parts));
        let part = extent.floor_div(&count);
        if !self.facts.divides(&count, &extent) {
            let help = match extent.as_const() {
                Some(_) => "choose a number of parts that divides the extent".to_owned(),
                None => format!(
                    "say that it does, `#[tile_kernel(where({:#} == 0))]`, or make the part the parameter: `const PART: usize` and `{parts} * PART`",
                    extent.rem(&count)
                ),
            };
            let message = format!(
                "axis {axis} of a tile of shape {} isn't known to divide into {parts} equal parts",
                display_shape(&shape)
            );
            let diagnostic = Diagnostic::new(call.span, message).help(help);
            let diagnostic = self.with_origin(diagnostic, call.tile);
            return self.report(diagnostic);
        }
        let mut window = shape;
        window[axis] = part.clone();
        let mut starts = vec![Dim::from(0); window.len()];
        let parts = (0..parts).map(|i| {
            starts[axis] = part.clone() * Dim::from(i);
            let movement = Movement::Extract { starts: starts.clone(), shape: window.clone() };
            self.moved(call, movement, &[], &[])
        });
        parts.collect::<Lowered<_>>().map(Val::List)
    }

    /// The number in `split_even::<2>`, which a pattern may have said.
    fn parts(&mut self, call: &Call<'_>) -> Lowered<i64> {
        let argument = call.syntax.turbofish.as_ref().and_then(|turbofish| turbofish.args.first());
        let number = match argument {
            Some(GenericArgument::Const(Expr::Lit(literal))) => match &literal.lit {
                Lit::Int(int) => int.base10_parse::<i64>().ok().filter(|&parts| (1..=64).contains(&parts)),
                _ => None,
            },
            _ => None,
        };
        match number {
            Some(number) => Ok(number),
            None => {
                let span = argument.map_or_else(|| call.syntax.method.span().into(), Spanned::span);
                let message = "`split_even` needs the number of parts, 1 to 64";
                self.error(span, message, "write it as a literal: `let [a, b] = x.split_even::<2>(axis);`")
            }
        }
    }

    fn squeeze(&mut self, call: &Call<'_>) -> Lowered<Val> {
        let axis = self.axis_of(call, 0)?;
        let mut shape = self.shape(call.tile).unwrap_or_default();
        let whole = display_shape(&shape);
        let extent = shape.remove(axis);
        let message = match extent.as_const() {
            Some(1) if !shape.is_empty() => {
                return self
                    .emit_one(Op::Reshape(shape), &[call.tile], call.span, &[call.receiver])
                    .map(Val::Data);
            }
            Some(1) => format!("a tile of shape {whole} would have no axis left"),
            _ => format!(
                "axis {axis} of a tile of shape {whole} has extent {extent:#}, not 1, and can't be squeezed"
            ),
        };
        let help = "only axes of extent 1 go away; `reshape` joins axes, a reduction makes an axis 1";
        let diagnostic = Diagnostic::new(call.span, message).help(help);
        let diagnostic = self.with_origin(diagnostic, call.tile);
        self.report(diagnostic)
    }

    /// The number of an axis that a tile of this rank will have.
    pub(in crate::lower) fn new_axis(&mut self, value: &Val, rank: usize, span: Span) -> Lowered<usize> {
        self.not_from_the_end(value, rank + 1, span)?;
        let dim = self.static_dim(value, "an axis", span)?;
        match dim.as_const().and_then(|axis| usize::try_from(axis).ok()) {
            Some(axis) if axis <= rank => Ok(axis),
            Some(axis) => {
                let message = format!("the new axis can't be axis {axis}: the result has rank {}", rank + 1);
                self.error(span, message, &format!("axes of the result are numbered from 0 to {rank}"))
            }
            None => self.error(span, "an axis is a literal", "write 0, 1, …"),
        }
    }

    fn unsqueezed(&mut self, tile: ValueId, axis: usize, span: Span, place: Span) -> Lowered<ValueId> {
        let mut shape = self.shape(tile).unwrap_or_default();
        shape.insert(axis, Dim::from(1));
        self.emit_one(Op::Reshape(shape), &[tile], span, &[place])
    }

    /// The slice at a run-time position: a gather with one index everywhere.
    fn take(&mut self, call: &Call<'_>) -> Lowered<Val> {
        let axis = self.axis_of(call, 1)?;
        let (given, place) = (&call.values[0], call.spans[0]);
        if matches!(given, Val::Data(tile) if self.shape(*tile).is_some()) {
            let help = "`gather` takes a tile of indices";
            return self.error(place, "the index of `take` is a tile", help);
        }
        let index = self.any_integer(given, DType::I64, "the index of `take`", place)?;
        let mut shape = self.shape(call.tile).unwrap_or_default();
        shape[axis] = Dim::from(1);
        let indices = self.splat(index, shape, call.span);
        let fill = self.zero(&self.elem(call.tile), call.span)?;
        let spans = [call.receiver, call.spans[0]];
        self.emit_one(Op::Gather { axis }, &[call.tile, indices, fill], call.span, &spans).map(Val::Data)
    }

    /// A gather whose indices are this argument, followed by the axis.
    fn gather(&mut self, call: &Call<'_>, fill: ValueId, argument: usize) -> Lowered<Val> {
        let place = call.spans[argument];
        let indices = self.tile(&call.values[argument], "what `gather` looks up", place)?;
        let axis = self.axis_of(call, argument + 1)?;
        let spans = [call.receiver, place, call.spans[0]];
        self.emit_one(Op::Gather { axis }, &[call.tile, indices, fill], call.span, &spans).map(Val::Data)
    }

    fn scatter(&mut self, call: &Call<'_>, mode: ScatterMode) -> Lowered<Val> {
        let axis = self.axis_of(call, 2)?;
        let indices = self.tile(&call.values[0], "where `scatter` writes", call.spans[0])?;
        let values = self.tile(&call.values[1], "what `scatter` writes", call.spans[1])?;
        self.unify(call.tile, values, "`scatter`", call.spans[1])?;
        let spans = [call.receiver, call.spans[0], call.spans[1]];
        let operands = [call.tile, indices, values];
        self.emit_one(Op::Scatter { axis, mode }, &operands, call.span, &spans).map(Val::Data)
    }

    /// `cat([a, b], axis)` and `stack([a, b], axis)`.
    pub(in crate::lower) fn joined(&mut self, name: &str, call: &ExprCall) -> Lowered<Val> {
        let usage = format!("{name}([a, b], axis)");
        let arguments = self.arguments(name, &call.args, 2, &usage, call.span())?;
        let place = arguments.spans[0];
        let Val::List(values) = &arguments.values[0] else {
            return self.error(
                place,
                format!("`{name}` takes an array of tiles"),
                &format!("write `{usage}`"),
            );
        };
        if values.is_empty() {
            return self.error(place, format!("`{name}` of no tiles"), &format!("write `{usage}`"));
        }
        let spans: Vec<Span> = match &call.args[0] {
            Expr::Array(array) => array.elems.iter().map(Spanned::span).collect(),
            _ => vec![place; values.len()],
        };
        let mut tiles = Vec::new();
        for (value, &span) in values.iter().zip(&spans) {
            let tile = self.tile(value, &format!("an element of `{name}`"), span)?;
            self.unify(tiles.first().copied().unwrap_or(tile), tile, &format!("`{name}`"), span)?;
            tiles.push(tile);
        }
        let (axis, place) = (&arguments.values[1], arguments.spans[1]);
        if name == "cat" {
            self.cat(&tiles, &spans, axis, place, call.span())
        } else {
            self.stack(&tiles, &spans, axis, place, call.span())
        }
    }

    fn cat(
        &mut self,
        tiles: &[ValueId],
        spans: &[Span],
        axis: &Val,
        place: Span,
        span: Span,
    ) -> Lowered<Val> {
        for (&tile, &span) in tiles.iter().zip(spans) {
            self.unify(tiles[0], tile, "`cat`", span)?;
        }
        let rank = self.shape(tiles[0]).map_or(0, |shape| shape.len());
        let axis = self.axis(axis, rank, place)?;
        let joined = self.emit_one(Op::Movement(Movement::Cat { axis }), tiles, span, spans)?;
        self.with_joined_extents(joined, span).map(Val::Data)
    }

    pub(in crate::lower) fn stack(
        &mut self,
        tiles: &[ValueId],
        spans: &[Span],
        axis: &Val,
        place: Span,
        span: Span,
    ) -> Lowered<Val> {
        let shape = self.shape(tiles[0]).unwrap_or_default();
        let axis = self.new_axis(axis, shape.len(), place)?;
        let mut parts = Vec::new();
        for (&tile, &place) in tiles.iter().zip(spans) {
            let other = self.shape(tile).unwrap_or_default();
            if other != shape {
                let message =
                    format!("`stack` mixes shapes {} and {}", display_shape(&shape), display_shape(&other));
                let diagnostic = Diagnostic::new(place, message)
                    .help("stacked tiles have one shape; `cat` joins along an axis that they have");
                let diagnostic = self.with_origin(diagnostic, tiles[0]);
                let diagnostic = self.with_origin(diagnostic, tile);
                return self.report(diagnostic);
            }
            parts.push(self.unsqueezed(tile, axis, span, place)?);
        }
        self.emit_one(Op::Movement(Movement::Cat { axis }), &parts, span, spans).map(Val::Data)
    }
}
