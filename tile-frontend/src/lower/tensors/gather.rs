//! `gather`: elements of a tensor at the places that tiles of indices name.

use crate::diagnostic::Diagnostic;
use crate::lower::ops::operators::{common_shape, shape_help};
use crate::lower::{Lowered, Lowering};
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{Expr, ExprMethodCall};
use tile_ir::ops::infer::display_shape;
use tile_ir::types::TensorType;
use tile_ir::{DType, Dim, Elem, Op, ValueId};

/// An operand and where it stands.
pub(in crate::lower) type Placed = (Val, Span);

/// Elements that a `gather` names.
pub(in crate::lower) struct NamedElements {
    /// What is where there is none.
    pub(in crate::lower) pad: ValueId,
    /// One for each axis.
    pub(in crate::lower) indices: Vec<Val>,
    /// The shape that the indices broadcast to; one element where all are numbers.
    pub(in crate::lower) shape: Vec<Dim>,
    /// Whether all are numbers, so that the element is one, too.
    pub(in crate::lower) is_one: bool,
    /// Where the indices are written, together and each.
    pub(in crate::lower) place: Span,
    pub(in crate::lower) places: Vec<Span>,
}

impl Lowering {
    pub(in crate::lower) fn gather_load(
        &mut self,
        tensor: ValueId,
        ty: &TensorType,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let span = call.span();
        let named = self.named_elements(ty.extents.len(), &ty.elem, call)?;
        let mut operands = vec![tensor, named.pad];
        for (index, &place) in named.indices.iter().zip(&named.places) {
            operands.push(self.index_tile(index, &named.shape, place)?);
        }
        let is_one = named.is_one;
        let places = [vec![call.receiver.span(), named.place], named.places].concat();
        let elements = self.emit_one(Op::GatherLoad, &operands, span, &places)?;
        self.gathered(elements, is_one, call)
    }

    /// What a `gather` gives: a tile, or a number where its indices are numbers.
    pub(in crate::lower) fn gathered(
        &mut self,
        elements: ValueId,
        is_one: bool,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        if !is_one {
            return Ok(Val::Data(elements));
        }
        self.is_of_one_element(call, true);
        self.emit_one(Op::Item, &[elements], call.span(), &[]).map(Val::Data)
    }

    /// Notes that a call's indices are numbers, of which Rust can't tell a rank of tiles.
    pub(in crate::lower) fn is_of_one_element(&mut self, call: &ExprMethodCall, has_result: bool) {
        if self.in_own_text() {
            self.rewrites.single_elements.insert(self.occurrence(call.method.span()), has_result);
        }
    }

    /// The arguments of a call of `gather` or `gather_or`, of a tensor of so many axes.
    pub(in crate::lower) fn named_elements(
        &mut self,
        rank: usize,
        elem: &Elem,
        call: &ExprMethodCall,
    ) -> Lowered<NamedElements> {
        let (name, span) = (call.method.to_string(), call.span());
        let padded = name == "gather_or";
        let indices = ["[indices]", "[rows, columns]"].get(rank.wrapping_sub(1)).unwrap_or(&"[i, j, …]");
        let usage = if padded { format!("gather_or(pad, {indices})") } else { format!("gather({indices})") };
        let arguments = self.arguments(&name, &call.args, 1 + usize::from(padded), &usage, span)?;
        let pad = if padded {
            self.number(&arguments.values[0], elem, "the pad value", arguments.spans[0])?
        } else {
            self.zero(elem, span)?
        };
        let place = *arguments.spans.last().expect("arguments were counted");
        let Some(Val::List(indices)) = arguments.values.last() else {
            return self.error(
                place,
                "the indices of `gather` are an array or a tuple",
                &format!("write `{usage}`"),
            );
        };
        let written = call.args.last().expect("arguments were counted");
        let places = self.places_of_indices(written, indices)?;
        let placed: Vec<Placed> = indices.iter().cloned().zip(places.iter().copied()).collect();
        let shape = self.common_shape_of("`gather` mixes index tiles", &placed)?;
        let is_one = shape.is_none();
        let shape = shape.unwrap_or_else(|| vec![Dim::from(1)]);
        Ok(NamedElements { pad, indices: indices.clone(), shape, is_one, place, places })
    }

    /// Where each of these indices is written.
    ///
    /// An array in Rust has elements of one type, so tiles and scalars are mixed in a tuple: rustc's message would
    /// speak of types that nobody wrote.
    pub(in crate::lower) fn places_of_indices(
        &mut self,
        written: &Expr,
        indices: &[Val],
    ) -> Lowered<Vec<Span>> {
        let array = match written {
            Expr::Array(array) => array,
            Expr::Tuple(tuple) => return Ok(tuple.elems.iter().map(Spanned::span).collect()),
            _ => return Ok(vec![written.span(); indices.len()]),
        };
        let is_tile = |index: &Val| matches!(index, Val::Data(value) if self.shape(*value).is_some());
        let tiles = indices.iter().filter(|index| is_tile(index)).count();
        if tiles == 0 || tiles == indices.len() {
            let places: Vec<Span> = array.elems.iter().map(Spanned::span).collect();
            for (pair, &place) in indices.windows(2).zip(places.iter().skip(1)) {
                if let [Val::Data(before), Val::Data(index)] = *pair {
                    self.unify(before, index, "an array of indices", place)?;
                }
            }
            return Ok(places);
        }
        self.error(
            array.span(),
            "these indices are tiles and numbers, which one array can't hold",
            "write a tuple, with round brackets: `(i, columns)`",
        )
    }

    /// The shape that all tiles among these broadcast to; `None` where there are none. `mixed` is how a message begins that they
    /// don't.
    pub(in crate::lower) fn common_shape_of(
        &mut self,
        mixed: &str,
        given: &[Placed],
    ) -> Lowered<Option<Vec<Dim>>> {
        let mut common: Option<(Vec<Dim>, ValueId)> = None;
        for (value, place) in given {
            let Val::Data(value) = *value else { continue };
            let Some(shape) = self.shape(value) else { continue };
            common = Some(match common {
                None => (shape, value),
                Some((before, first)) => match common_shape(&before, &shape) {
                    Some(joined) => (joined, first),
                    None => {
                        let (a, b) = (display_shape(&before), display_shape(&shape));
                        let diagnostic = Diagnostic::new(*place, format!("{mixed} of shapes {a} and {b}"))
                            .help(shape_help(&before, &shape));
                        let diagnostic = self.with_origin(diagnostic, first);
                        let diagnostic = self.with_origin(diagnostic, value);
                        return self.report(diagnostic);
                    }
                },
            });
        }
        Ok(common.map(|(shape, _)| shape))
    }

    /// An index as a tile of this shape; scalars are the same for every element.
    pub(in crate::lower) fn index_tile(
        &mut self,
        index: &Val,
        shape: &[Dim],
        span: Span,
    ) -> Lowered<ValueId> {
        if let Val::Data(value) = *index
            && self.shape(value).is_some()
        {
            return Ok(self.repeated(value, shape, span));
        }
        let scalar = match *index {
            // What it must be, its op says: atomic operations broadcast values, too.
            Val::Data(value) if self.elem(value).known().is_some_and(DType::is_element) => value,
            _ => self.any_integer(index, DType::I64, "an index", span)?,
        };
        Ok(self.splat(scalar, shape.to_vec(), span))
    }
}
