//! `reduce(x, axis, start, |a, b| …)` and `scan(…)`: the closure becomes the region of a fold.
//!
//! In the closure everything is a scalar and every expression a leaf op, so that each thread can run it on
//! elements of its own: an `if` computes both branches and selects.

use crate::diagnostic::Diagnostic;
use crate::exits;
use crate::lower::functions::calls::Arguments;
use crate::lower::functions::closures::as_block;
use crate::lower::{Lowered, Lowering, kind};
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{Expr, ExprCall, ExprClosure, Pat};
use tile_ir::ops::ScanMode;
use tile_ir::{Op, RegionId, Type, ValueId};

/// The closure that is being lowered.
#[derive(Clone, Debug)]
pub(in crate::lower) struct Closure {
    /// `reduce` or `scan`.
    pub(in crate::lower) function: &'static str,
    /// Variables below this number are defined outside.
    pub(in crate::lower) own_variables: usize,
}

/// What a function folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fold {
    /// Which partial results it keeps; none, where it is a reduction.
    mode: Option<ScanMode>,
    /// Whether parts of lines may be joined.
    associative: bool,
}

impl Fold {
    /// The fold that a function of the language does: `reduce`, `scan`, `scan_reverse`, …, and each as `associative_…`.
    pub(crate) fn of_function(name: &str) -> Option<Fold> {
        let (name, associative) = match name.strip_prefix(ASSOCIATIVE) {
            Some(name) => (name, true),
            None => (name, false),
        };
        let mode = if name == "reduce" { None } else { Some(ScanMode::of_name(name, "scan")?) };
        Some(Fold { mode, associative })
    }

    /// The names of all of them.
    pub(in crate::lower) fn functions() -> impl Iterator<Item = String> {
        let scans = ScanMode::ALL.iter().map(|mode| format!("scan{}", mode.suffix()));
        let names: Vec<String> = std::iter::once("reduce".to_owned()).chain(scans).collect();
        let associative: Vec<String> = names.iter().map(|name| format!("{ASSOCIATIVE}{name}")).collect();
        names.into_iter().chain(associative)
    }
}

/// What the names of folds begin with whose parts may be joined.
const ASSOCIATIVE: &str = "associative_";

/// The most tiles that are folded together.
const MAX_OPERANDS: usize = 8;

impl Lowering {
    /// `reduce(…)`, `scan(…)`, and their associative forms.
    pub(in crate::lower) fn fold_call(&mut self, name: &str, fold: Fold, call: &ExprCall) -> Lowered<Val> {
        let usage = format!("{name}(x, axis, start, |a, b| a + b)");
        let closure = match call.args.last() {
            Some(Expr::Closure(closure)) if call.args.len() == 4 => closure,
            Some(other) if call.args.len() == 4 => {
                let message = format!("the last argument of `{name}` is a closure");
                return self.error(other.span(), message, &format!("write `{usage}`"));
            }
            _ => {
                let message = format!("`{name}` takes 4 arguments, not {}", call.args.len());
                return self.error(call.span(), message, &format!("write `{usage}`"));
            }
        };
        let values: Vec<_> = call.args.iter().take(3).map(|argument| self.expression(argument)).collect();
        let values = values.into_iter().collect::<Lowered<Vec<Val>>>()?;
        let spans = call.args.iter().map(Spanned::span).collect();
        let arguments = Arguments { values, spans };
        let tiles = self.fold_tiles(name, &arguments)?;
        let starts = self.fold_starts(name, &tiles, &arguments)?;
        let Fold { mode, associative } = fold;
        match mode {
            None => self.reduce_with(associative, &tiles, &starts, &arguments, closure, call),
            Some(mode) => {
                let (axis, place) = (&arguments.values[1], arguments.spans[1]);
                let axis = self.one_axis(name, tiles[0], axis, place)?;
                let op = Op::ScanWith { axis, mode, associative };
                let results = self.fold_with(op, &tiles, &starts, &arguments, closure, call.span())?;
                Ok(joined(results))
            }
        }
    }

    fn reduce_with(
        &mut self,
        associative: bool,
        tiles: &[ValueId],
        starts: &[ValueId],
        arguments: &Arguments,
        closure: &ExprClosure,
        call: &ExprCall,
    ) -> Lowered<Val> {
        let rank = self.shape(tiles[0]).map_or(0, |shape| shape.len());
        let axes = self.axes(&arguments.values[1], rank, arguments.spans[1])?;
        let merged = tiles.iter().map(|&tile| self.merge(tile, &axes, arguments.spans[0]));
        let merged = merged.collect::<Lowered<Vec<_>>>()?;
        let tiles: Vec<ValueId> = merged.iter().map(|merged| merged.tile).collect();
        let op = Op::ReduceWith { axis: merged[0].axis, associative };
        let results = self.fold_with(op, &tiles, starts, arguments, closure, call.span())?;
        let split = results.into_iter().zip(&merged);
        let split = split.map(|(result, merged)| self.split(result, merged, call.span()));
        Ok(joined(split.collect::<Lowered<Vec<_>>>()?))
    }

    /// The tiles that are folded: one, or a tuple of tiles of one shape.
    fn fold_tiles(&mut self, name: &str, arguments: &Arguments) -> Lowered<Vec<ValueId>> {
        let (value, span) = (&arguments.values[0], arguments.spans[0]);
        let values = match value {
            Val::List(values) => values.clone(),
            value => vec![value.clone()],
        };
        let is_tuple = matches!(value, Val::List(_));
        if is_tuple && !(2..=MAX_OPERANDS).contains(&values.len()) {
            let message = format!("`{name}` folds a tile or a tuple of 2 to {MAX_OPERANDS} tiles");
            return self.error(span, message, "pack fewer numbers, or fold them one after the other");
        }
        let what = format!("what `{name}` folds");
        let tiles = values.iter().map(|value| self.tile(value, &what, span));
        let tiles = tiles.collect::<Lowered<Vec<ValueId>>>()?;
        let shapes: Vec<_> = tiles.iter().map(|&tile| self.shape(tile)).collect();
        if let Some(i) = (1..tiles.len()).find(|&i| shapes[i] != shapes[0]) {
            let message = format!(
                "`{name}` folds tiles of one shape, not {} and {}",
                self.display_type(tiles[0]),
                self.display_type(tiles[i])
            );
            let diagnostic =
                Diagnostic::new(span, message).help("make them one shape with `.broadcast([…])`");
            let diagnostic = self.with_origin(diagnostic, tiles[0]);
            let diagnostic = self.with_origin(diagnostic, tiles[i]);
            return self.report(diagnostic);
        }
        Ok(tiles)
    }

    /// What the fold starts from: a scalar of each tile's format.
    fn fold_starts(&mut self, name: &str, tiles: &[ValueId], arguments: &Arguments) -> Lowered<Vec<ValueId>> {
        let (value, span) = (&arguments.values[2], arguments.spans[2]);
        let what = format!("what `{name}` starts from");
        self.numbers_of(value, tiles, &what, span)
    }

    /// One number per tile, of its format.
    fn numbers_of(
        &mut self,
        value: &Val,
        tiles: &[ValueId],
        what: &str,
        span: Span,
    ) -> Lowered<Vec<ValueId>> {
        let values = match value {
            Val::Poison => return Err(crate::lower::Reported),
            Val::List(values) if values.len() == tiles.len() && tiles.len() > 1 => values.clone(),
            Val::List(_) | Val::Unit => {
                let message = format!("{what} must be {}, not {}", scalars(tiles.len()), kind(value));
                return self.error(span, message, "give one scalar per tile");
            }
            value if tiles.len() == 1 => vec![value.clone()],
            value => {
                let message = format!("{what} must be {}, not {}", scalars(tiles.len()), kind(value));
                return self.error(span, message, "give one scalar per tile, as a tuple");
            }
        };
        let numbers = values.iter().zip(tiles);
        numbers
            .map(|(value, &tile)| {
                let elem = self.elem(tile);
                let number = self.number(value, &elem, what, span)?;
                if self.shape(number).is_none() {
                    return Ok(number);
                }
                let message = format!("{what} must be a scalar, not {}", self.display_type(number));
                let diagnostic = self.with_origin(Diagnostic::new(span, message), number);
                self.report(diagnostic.help("use scalars and literals"))
            })
            .collect()
    }

    /// Appends the op with the closure as its region.
    fn fold_with(
        &mut self,
        op: Op,
        tiles: &[ValueId],
        starts: &[ValueId],
        arguments: &Arguments,
        closure: &ExprClosure,
        span: Span,
    ) -> Lowered<Vec<ValueId>> {
        let operands = [tiles, starts].concat();
        let types: Vec<Type> = operands.iter().map(|&value| self.ty(value)).collect();
        let results = match tile_ir::ops::result_types(&op, &types) {
            Ok(results) => results,
            Err(error) => {
                let spans = [vec![arguments.spans[0]; tiles.len()], vec![arguments.spans[2]; starts.len()]];
                let diagnostic = self.explain(error, &operands, span, &spans.concat());
                return self.report(diagnostic);
            }
        };
        let region = self.fold_closure(op.spelling(), tiles, closure)?;
        Ok(self.append(op, &operands, &results, vec![region], span))
    }

    /// A closure of two elements as a region.
    fn fold_closure(
        &mut self,
        function: &'static str,
        tiles: &[ValueId],
        closure: &ExprClosure,
    ) -> Lowered<RegionId> {
        if let Some(outer) = &self.closure {
            let message = format!("`{function}` stands in a closure of `{}`", outer.function);
            return self.error(closure.span(), message, "a closure computes with scalars; fold before it");
        }
        if closure.inputs.len() != 2 {
            let message = format!(
                "a closure of `{function}` takes what was folded and an element, not {} parameters",
                closure.inputs.len()
            );
            return self.error(closure.span(), message, "write `|a, b| a + b`");
        }
        let region = self.kernel.new_region();
        let scalars: Vec<Type> = tiles.iter().map(|&tile| Type::Scalar(self.elem(tile))).collect();
        let params: Vec<ValueId> =
            scalars.iter().chain(&scalars).map(|ty| self.kernel.new_value(ty.clone(), None)).collect();
        self.kernel.region_mut(region).params = params.clone();
        let own_variables = self.scopes.variables.len();
        self.closure = Some(Closure { function, own_variables });
        let outer = std::mem::replace(&mut self.region, region);
        self.scopes.enter();
        let yielded = self.closure_body(function, tiles, &params, closure);
        self.scopes.leave();
        if let Ok(yielded) = &yielded {
            self.append(Op::Yield, yielded, &[], Vec::new(), closure.span());
        }
        self.region = outer;
        self.closure = None;
        yielded.map(|_| region)
    }

    fn closure_body(
        &mut self,
        function: &str,
        tiles: &[ValueId],
        params: &[ValueId],
        closure: &ExprClosure,
    ) -> Lowered<Vec<ValueId>> {
        for (pattern, scalars) in closure.inputs.iter().zip(params.chunks(tiles.len())) {
            let value = joined(scalars.to_vec());
            if let (Pat::Type(typed), Val::Data(scalar)) = (pattern, &value)
                && let Some(elem) = self.element(&typed.ty)
            {
                self.require_elem(*scalar, &elem, "an element", typed.ty.span())?;
            }
            self.bind(pattern, value)?;
        }
        let (what, span) = (format!("what a closure of `{function}` gives"), closure.body.span());
        let body = as_block(&closure.body);
        self.enter_call(!exits::of_block(&body).is_empty(), span);
        let value = self.block(&body);
        let frame = self.leave_loop();
        let value = self.returned(&frame, value?, &format!("a closure of {function}"), span)?;
        self.numbers_of(&value, tiles, &what, span)
    }

    /// Refuses what a closure can't do: anything but leaf ops of scalars.
    pub(in crate::lower) fn check_in_closure(
        &mut self,
        op: &Op,
        operands: &[ValueId],
        span: Span,
    ) -> Lowered<()> {
        let Some(Closure { function, .. }) = self.closure.clone() else { return Ok(()) };
        if let Some(&tile) = operands.iter().find(|&&value| self.shape(value).is_some()) {
            let tile = self.source_of_splat(tile, operands);
            let message = format!(
                "a closure of `{function}` computes with scalars, not with {}",
                self.display_type(tile)
            );
            let diagnostic = self.with_origin(Diagnostic::new(span, message), tile);
            return self
                .report(diagnostic.help(format!(
                    "fold several tiles at once: `{function}((x, y), …, |(a, c), (b, d)| …)`"
                )));
        }
        if op.is_leaf() {
            return Ok(());
        }
        let message = format!("`{}` can't stand in a closure of `{function}`", op.spelling());
        self.error(span, message, "a closure computes with scalars; take this out of it")
    }

    /// The first operand that wasn't made by repeating a scalar.
    fn source_of_splat(&self, tile: ValueId, operands: &[ValueId]) -> ValueId {
        let is_splat = |value: ValueId| {
            let maker =
                self.kernel.op_ids().map(|op| self.kernel.op(op)).find(|op| op.results.contains(&value));
            maker.is_some_and(|maker| matches!(maker.op, Op::Splat(_)))
        };
        let tiles = operands.iter().copied().filter(|&value| self.shape(value).is_some());
        tiles.into_iter().find(|&value| !is_splat(value)).unwrap_or(tile)
    }

    /// Refuses an expression that would be control flow.
    pub(in crate::lower) fn straight(&mut self, what: &str, span: Span) -> Lowered<()> {
        match self.closure.clone() {
            Some(Closure { function, .. }) => {
                let message = format!("{what} can't stand in a closure of `{function}`");
                self.error(span, message, "a closure has expressions, `let` and `if` only")
            }
            None => Ok(()),
        }
    }
}

/// One value, or a tuple of several.
fn joined(values: Vec<ValueId>) -> Val {
    match values[..] {
        [value] => Val::Data(value),
        _ => Val::List(values.into_iter().map(Val::Data).collect()),
    }
}

fn scalars(count: usize) -> String {
    if count == 1 { "a scalar".to_owned() } else { format!("a tuple of {count} scalars") }
}
