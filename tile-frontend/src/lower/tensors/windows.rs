//! Windows over a margin: what `unfold` makes of a tensor that `pad` or `shift` has given indices without elements. Their
//! elements are gathered from that tensor, whose indices without elements a gather knows.
//!
//! What has no element for another reason is hidden behind the gather, not in its indices: these stay consecutive where
//! windows are, so that rows are read as rows.

use crate::diagnostic::Diagnostic;
use crate::lower::functions::calls::Arguments;
use crate::lower::known::known;
use crate::lower::{Lowered, Lowering, rust_elem};
use crate::span::{Span, Spanned};
use crate::value::{Val, Windowed};
use std::rc::Rc;
use syn::ExprMethodCall;
use tile_ir::ops::{BinaryOp, Literal, Predicate, TypeError, result_types};
use tile_ir::types::{PartitionType, TensorType};
use tile_ir::view::requirement::Rule;
use tile_ir::view::{Requirement, Strided, TensorMovement, Windows};
use tile_ir::{DType, Dim, Elem, Op, Type, ValueId};

/// How elements of windows are asked for.
const USAGE: &str = "cut them, `let x = x.partition_view([B, 3]);`, and load tiles with a mask, `x.load_masked([i, 0])`; or `gather` elements";

impl Lowering {
    /// The windows that a movement makes, of which a `select` is given an index. What it asks of sizes is asked of the tensor
    /// beneath, so that it holds where elements of these windows are read.
    pub(in crate::lower) fn moved_windows(
        &mut self,
        windowed: &Windowed,
        movement: &TensorMovement,
        arguments: &Arguments,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let readable =
            |moved: (Windows, Vec<Requirement>)| TypeError::refuse_long(moved.0.extents()).map(|()| moved);
        let (windows, requires) = match windowed.windows.moved(movement).and_then(readable) {
            Ok(moved) => moved,
            Err(error) => return self.report(Diagnostic::of_type_error(call.span(), error)),
        };
        let tensor = self.requiring(windowed.tensor, requires, call.span())?;
        let mut selected = windowed.selected.clone();
        if let TensorMovement::Select { .. } = movement {
            let (index, place) = (&arguments.values[1], arguments.spans[1]);
            self.share(index, &DType::Index.into(), "the index", place)?;
            selected.insert(0, self.number(index, &DType::Index.into(), "the index", place)?);
        }
        Ok(Val::Windows(Rc::new(Windowed { tensor, windows, selected })))
    }

    /// The tensor beneath windows, as one that asks this of sizes.
    fn requiring(&mut self, tensor: ValueId, requires: Vec<Requirement>, span: Span) -> Lowered<ValueId> {
        if requires.is_empty() {
            return Ok(tensor);
        }
        self.make_view(Op::View(TensorMovement::Require(requires)), &[tensor], span, &[span])
    }

    pub(in crate::lower) fn windows_method(
        &mut self,
        windowed: &Windowed,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let name = call.method.to_string();
        match name.as_str() {
            "extent" => self.extent_of(windowed.windows.extents(), call),
            "gather" | "gather_or" => self.gather_of_windows(windowed, call),
            "partition_view" | "partition_view_mut" | "strided_view" | "strided_view_mut" => {
                self.cut_windows(windowed, call)
            }
            _ => match self.movement_of_windows(windowed, call)? {
                Some(moved) => Ok(moved),
                None => self.no_method("a tensor of windows over a margin", call, USAGE),
            },
        }
    }

    /// Windows cut into tiles, as any tensor of their extents is.
    fn cut_windows(&mut self, windowed: &Windowed, call: &ExprMethodCall) -> Lowered<Val> {
        let (cut, place) = self.cut(false, call)?;
        let shown = self.of_windows(windowed);
        if let Err(error) = result_types(&Op::Partition(cut.clone()), &[Type::Tensor(shown)]) {
            let diagnostic = self.explain(error, &[], call.span(), &[place]);
            return self.report(diagnostic);
        }
        // A tile that is made has extents of 1 or more in every instance; steps make nothing.
        let steps = cut.steps.iter().flatten().enumerate().filter(|(_, step)| step.as_const().is_none());
        let requires = steps.map(|(axis, step)| Requirement {
            axis,
            rule: Rule::Step,
            left: Dim::from(1),
            right: step.clone(),
        });
        let tensor = self.requiring(windowed.tensor, requires.collect(), call.span())?;
        let steps = cut.steps.unwrap_or_else(|| cut.tile.clone());
        Ok(Val::WindowsView(Rc::new(Windowed { tensor, ..windowed.clone() }), cut.tile, steps))
    }

    /// A tensor of the extents of windows.
    fn of_windows(&self, windowed: &Windowed) -> TensorType {
        TensorType::dense(windowed.windows.extents().to_vec(), self.elem(windowed.tensor), false)
    }

    pub(in crate::lower) fn windows_view_method(
        &mut self,
        windowed: &Windowed,
        [tile, steps]: [&[Dim]; 2],
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let extents = windowed.windows.extents();
        match call.method.to_string().as_str() {
            "extent" => self.extent_of(extents, call),
            "tiles" => {
                let tiles: Vec<Dim> =
                    extents.iter().zip(steps).map(|(extent, step)| extent.ceil_div(step)).collect();
                self.extent_of(&tiles, call)
            }
            "load_masked" | "load_masked_or" => self.load_windows(windowed, [tile, steps], call),
            "prefetch" => {
                let arguments = self.arguments("prefetch", &call.args, 1, "prefetch([i, 0])", call.span())?;
                let tensor = self.of_windows(windowed);
                let (tile, steps) = (tile.to_vec(), steps.to_vec());
                let ty = PartitionType { tensor, tile, steps, spanned: Vec::new() };
                // What is gathered has no one place that could be brought near.
                self.tile_index(&ty, &arguments.values[0], &call.args[0])?;
                Ok(Val::Unit)
            }
            "latency" | "bulk_copy" => {
                self.hints(call)?;
                Ok(Val::WindowsView(Rc::new(windowed.clone()), tile.to_vec(), steps.to_vec()))
            }
            _ => self.no_method("a view of windows over a margin", call, USAGE),
        }
    }

    fn load_windows(
        &mut self,
        windowed: &Windowed,
        [tile, steps]: [&[Dim]; 2],
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let (name, span) = (call.method.to_string(), call.span());
        let padded = name == "load_masked_or";
        let usage = if padded { "load_masked_or(pad, [i, 0])" } else { "load_masked([i, 0])" };
        let arguments = self.arguments(&name, &call.args, 1 + usize::from(padded), usage, span)?;
        let elem = self.elem(windowed.tensor);
        let pad = if padded {
            self.number(&arguments.values[0], &elem, "the pad value", arguments.spans[0])?
        } else {
            self.zero(&elem, span)?
        };
        let place = *arguments.spans.last().expect("arguments were counted");
        let index = match arguments.values.last() {
            Some(Val::List(index)) if index.len() == tile.len() => index.clone(),
            _ => {
                let message = format!("the index of a tile is an array of {} numbers", tile.len());
                return self.error(place, message, &format!("write `{usage}`"));
            }
        };
        let mut places = Places::of(tile);
        for (axis, index) in index.iter().enumerate() {
            let extent = &windowed.windows.extents()[axis];
            self.add_positions(&mut places, axis, index, place, [extent, &steps[axis]], span)?;
        }
        self.gather_places(windowed, pad, places, span).map(Val::Data)
    }

    /// `gather` of windows.
    fn gather_of_windows(&mut self, windowed: &Windowed, call: &ExprMethodCall) -> Lowered<Val> {
        let span = call.span();
        let named = self.named_elements(2, &self.elem(windowed.tensor), call)?;
        let extents = windowed.windows.extents().to_vec();
        if named.indices.len() != extents.len() {
            let message = format!("`gather` of windows of rank {} takes one index per axis", extents.len());
            return self.error(
                named.place,
                message,
                "a tuple mixes tiles and numbers: `x.gather((rows, 0))`",
            );
        }
        let mut places = Places::of(&named.shape);
        let zero = self.integer(0, span)?;
        for ((index, &place), extent) in named.indices.iter().zip(&named.places).zip(&extents) {
            let index = self.index_tile(index, &named.shape, place)?;
            let format = self.elem(index);
            if format.known().is_some_and(|dtype| !dtype.is_int()) {
                let message = format!("`gather` needs an integer, not {}", rust_elem(&format));
                return self.error(place, message, "convert it: `.cast::<i32>()`");
            }
            let position = self.emit_one(Op::Cast(DType::I64.into()), &[index], span, &[])?;
            let end = self.signed(extent, span)?;
            self.compare(&mut places, position, Predicate::Ge, zero, span)?;
            self.compare(&mut places, position, Predicate::Lt, end, span)?;
            places.positions.push(position);
        }
        let is_one = named.is_one;
        let elements = self.gather_places(windowed, named.pad, places, span)?;
        self.gathered(elements, is_one, call)
    }

    /// The elements at these places, and the pad value where there are none.
    fn gather_places(
        &mut self,
        windowed: &Windowed,
        pad: ValueId,
        mut places: Places,
        span: Span,
    ) -> Lowered<ValueId> {
        let Windowed { tensor, windows, selected } = windowed;
        let mut positions = Vec::new();
        for (&index, extent) in selected.iter().zip(windows.selected()) {
            let extent = self.extent(extent, span);
            let exists = self.emit_one(Op::Compare(Predicate::Lt), &[index, extent], span, &[])?;
            let exists = self.splat(exists, places.shape.clone(), span);
            self.require(&mut places, exists, span)?;
            let index = self.emit_one(Op::Cast(DType::I64.into()), &[index], span, &[])?;
            positions.push(self.splat(index, places.shape.clone(), span));
        }
        positions.append(&mut places.positions);
        for range in windows.ranges() {
            let position = self.index_beneath(&range.position(), &positions, &places.shape, span)?;
            for (bound, predicate) in [(&range.begin, Predicate::Ge), (&range.end, Predicate::Lt)] {
                let bound = self.signed(bound, span)?;
                self.compare(&mut places, position, predicate, bound, span)?;
            }
        }
        let mut operands = vec![*tensor, pad];
        for layout in windows.indices() {
            operands.push(self.index_beneath(&layout, &positions, &places.shape, span)?);
        }
        let elements = self.emit_one(Op::GatherLoad, &operands, span, &[])?;
        let Some(exists) = places.exists else { return Ok(elements) };
        let pad = self.splat(pad, places.shape, span);
        self.emit_one(Op::Select, &[exists, elements, pad], span, &[])
    }

    /// Along an axis of a tile, the positions of its elements, and which of them are inside.
    fn add_positions(
        &mut self,
        places: &mut Places,
        axis: usize,
        index: &Val,
        place: Span,
        [extent, step]: [&Dim; 2],
        span: Span,
    ) -> Lowered<()> {
        self.share(index, &DType::Index.into(), "a tile index", place)?;
        let is_first = known(index) == Some(0);
        let index = self.number(index, &DType::Index.into(), "a tile index", place)?;
        let tile = places.shape[axis].clone();
        let long = Elem::from(DType::I64);
        let iota = Op::Iota { shape: places.shape.clone(), axis, elem: long.clone() };
        let mut position = self.emit_one(iota, &[], span, &[])?;
        if !is_first {
            let length = self.extent(step, span);
            let start = self.emit_one(Op::Binary(BinaryOp::Mul), &[index, length], span, &[])?;
            let start = self.emit_one(Op::Cast(long), &[start], span, &[])?;
            let start = self.splat(start, places.shape.clone(), span);
            position = self.emit_one(Op::Binary(BinaryOp::Add), &[position, start], span, &[])?;
        }
        if !is_first || *extent != tile {
            let end = self.signed(extent, span)?;
            self.compare(places, position, Predicate::Lt, end, span)?;
        }
        if !is_first {
            // An index of any size is defined, and its position may not be.
            let tiles = self.extent(&extent.ceil_div(step), span);
            let is_tile = self.emit_one(Op::Compare(Predicate::Lt), &[index, tiles], span, &[])?;
            let is_tile = self.splat(is_tile, places.shape.clone(), span);
            self.require(places, is_tile, span)?;
        }
        places.positions.push(position);
        Ok(())
    }

    /// Elements exist only where their position is on this side of a bound.
    fn compare(
        &mut self,
        places: &mut Places,
        position: ValueId,
        predicate: Predicate,
        bound: ValueId,
        span: Span,
    ) -> Lowered<()> {
        let bound = self.splat(bound, places.shape.clone(), span);
        let holds = self.emit_one(Op::Compare(predicate), &[position, bound], span, &[])?;
        self.require(places, holds, span)
    }

    fn require(&mut self, places: &mut Places, holds: ValueId, span: Span) -> Lowered<()> {
        places.exists = Some(match places.exists {
            None => holds,
            Some(before) => self.emit_one(Op::Binary(BinaryOp::And), &[before, holds], span, &[])?,
        });
        Ok(())
    }

    /// Where elements at these positions lie in a layout: their indices along an axis of the tensor beneath.
    fn index_beneath(
        &mut self,
        layout: &Strided,
        positions: &[ValueId],
        shape: &[Dim],
        span: Span,
    ) -> Lowered<ValueId> {
        let mut sum = None;
        for (&position, stride) in positions.iter().zip(&layout.strides) {
            let term = match stride.as_const() {
                Some(0) => continue,
                Some(1) => position,
                _ => {
                    let stride = self.signed(stride, span)?;
                    let stride = self.splat(stride, shape.to_vec(), span);
                    self.emit_one(Op::Binary(BinaryOp::Mul), &[position, stride], span, &[])?
                }
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => self.emit_one(Op::Binary(BinaryOp::Add), &[sum, term], span, &[])?,
            });
        }
        if let Some(sum) = sum.filter(|_| layout.offset == Dim::from(0)) {
            return Ok(sum);
        }
        let offset = self.signed(&layout.offset, span)?;
        let offset = self.splat(offset, shape.to_vec(), span);
        match sum {
            None => Ok(offset),
            Some(sum) => self.emit_one(Op::Binary(BinaryOp::Add), &[sum, offset], span, &[]),
        }
    }

    /// An extent that may be negative, as a scalar of 64 bits: an extent of the IR is none below zero.
    fn signed(&mut self, dim: &Dim, span: Span) -> Lowered<ValueId> {
        if let Some(value) = dim.as_const() {
            return self.integer(value, span);
        }
        let long = Elem::from(DType::I64);
        let (mut added, mut taken) = (Dim::from(0), Dim::from(0));
        for (factors, coefficient) in dim.terms() {
            let product = factors
                .iter()
                .fold(Dim::from(coefficient.saturating_abs()), |product, atom| product * Dim::of(atom));
            let side = if coefficient < 0 { &mut taken } else { &mut added };
            *side = side.clone() + product;
        }
        let added = self.extent(&added, span);
        let added = self.emit_one(Op::Cast(long.clone()), &[added], span, &[])?;
        if taken == Dim::from(0) {
            return Ok(added);
        }
        let taken = self.extent(&taken, span);
        let taken = self.emit_one(Op::Cast(long), &[taken], span, &[])?;
        self.emit_one(Op::Binary(BinaryOp::Sub), &[added, taken], span, &[])
    }

    fn integer(&mut self, value: i64, span: Span) -> Lowered<ValueId> {
        let value = Literal::Int(i128::from(value));
        self.emit_one(Op::Constant { value, elem: DType::I64.into() }, &[], span, &[])
    }
}

/// Places of windows, in a tile of this shape: a position along each axis, and which of them have an element, where not all
/// do.
struct Places {
    shape: Vec<Dim>,
    positions: Vec<ValueId>,
    exists: Option<ValueId>,
}

impl Places {
    fn of(shape: &[Dim]) -> Places {
        Places { shape: shape.to_vec(), positions: Vec::new(), exists: None }
    }
}
