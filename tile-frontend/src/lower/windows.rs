//! Windows over a margin: what `unfold` makes of a tensor that `pad` or `shift` has given indices without elements. Their
//! tiles are gathered from that tensor, whose indices without elements a gather knows.

use super::{Lowered, Lowering};
use crate::diagnostic::Diagnostic;
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::ExprMethodCall;
use tile_ir::ops::{BinaryOp, Literal, Predicate};
use tile_ir::view::{Requirement, Strided, TensorMovement, Windows};
use tile_ir::{Condition, DType, Dim, Elem, Op, ValueId};

/// How tiles of windows are asked for.
const USAGE: &str =
    "cut them, `let x = x.partition_view([B, 3]);`, and load tiles with a mask, `x.load_masked([i, 0])`";

impl Lowering {
    /// The windows that a movement makes. What it asks of sizes is a condition of the kernel.
    pub(super) fn moved_windows(
        &mut self,
        tensor: ValueId,
        windows: &Windows,
        movement: &TensorMovement,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        match windows.moved(movement) {
            Ok((moved, requires)) => {
                let loc = self.loc(call.span());
                for Requirement { left, right, rule, .. } in requires {
                    let (predicate, sign) =
                        if rule.is_equality() { (Predicate::Eq, "==") } else { (Predicate::Le, "<=") };
                    let source = format!("{left:#} {sign} {right:#}");
                    let condition = Condition { left, predicate, right, source, loc };
                    // The text of an unrolled loop is lowered again each turn.
                    if !self.kernel.conditions.contains(&condition) {
                        self.kernel.conditions.push(condition);
                    }
                }
                Ok(Val::Windows(tensor, moved))
            }
            Err(error) => {
                let mut diagnostic = Diagnostic::new(call.span(), error.message);
                diagnostic.help = error.help;
                self.report(diagnostic)
            }
        }
    }

    pub(super) fn windows_method(
        &mut self,
        tensor: ValueId,
        windows: &Windows,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let name = call.method.to_string();
        match name.as_str() {
            "extent" => self.extent_of(windows.extents(), call),
            "partition_view" => {
                let usage = "partition_view([B, 3])";
                let arguments = self.arguments(&name, &call.args, 1, usage, call.span())?;
                let tile = self.extents(&arguments.values[0], arguments.spans[0])?;
                let rank = windows.extents().len();
                if tile.len() != rank {
                    let message = format!("a tile of rank {} of windows of rank {rank}", tile.len());
                    return self.error(arguments.spans[0], message, "give one extent per axis");
                }
                Ok(Val::WindowsView(tensor, windows.clone(), tile))
            }
            _ => match self.movement_of_windows(tensor, windows, call)? {
                Some(moved) => Ok(moved),
                None => self.no_method("a tensor of windows over a margin", call, USAGE),
            },
        }
    }

    pub(super) fn windows_view_method(
        &mut self,
        tensor: ValueId,
        windows: &Windows,
        tile: &[Dim],
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let name = call.method.to_string();
        match name.as_str() {
            "extent" => self.extent_of(windows.extents(), call),
            "tiles" => {
                let tiles: Vec<Dim> =
                    windows.extents().iter().zip(tile).map(|(extent, tile)| extent.ceil_div(tile)).collect();
                self.extent_of(&tiles, call)
            }
            "load_masked" | "load_masked_or" => self.gather_windows(tensor, windows, tile, call),
            _ => self.no_method("a view of windows over a margin", call, USAGE),
        }
    }

    fn gather_windows(
        &mut self,
        tensor: ValueId,
        windows: &Windows,
        tile: &[Dim],
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let (name, span) = (call.method.to_string(), call.span());
        let padded = name == "load_masked_or";
        let usage = if padded { "load_masked_or(pad, [i, 0])" } else { "load_masked([i, 0])" };
        let arguments = self.arguments(&name, &call.args, 1 + usize::from(padded), usage, span)?;
        let elem = self.elem(tensor);
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
        let (mut positions, mut exists) = (Vec::new(), None);
        for (axis, index) in index.iter().enumerate() {
            let index = self.number(index, &DType::Index.into(), "a tile index", place)?;
            let extent = &windows.extents()[axis];
            let (position, here) = self.positions(tile, axis, index, extent, span)?;
            exists = Some(match exists {
                None => here,
                Some(before) => self.emit_one(Op::Binary(BinaryOp::And), &[before, here], span, &[])?,
            });
            positions.push(position);
        }
        let mut operands = vec![tensor, pad];
        for layout in windows.indices() {
            operands.push(self.index_beneath(&layout, &positions, tile, span)?);
        }
        // Beyond the windows there is no element, whatever lies there beneath.
        if let (Some(exists), Some(first)) = (exists, operands.get_mut(2)) {
            let nowhere = self.integer(-1, span)?;
            let nowhere = self.splat(nowhere, tile.to_vec(), span);
            *first = self.emit_one(Op::Select, &[exists, *first, nowhere], span, &[])?;
        }
        self.emit_one(Op::GatherLoad, &operands, span, &[]).map(Val::Data)
    }

    /// Along an axis of a tile, the positions of its elements, and which of them are inside; both in the tile's shape.
    fn positions(
        &mut self,
        tile: &[Dim],
        axis: usize,
        index: ValueId,
        extent: &Dim,
        span: Span,
    ) -> Lowered<(ValueId, ValueId)> {
        let long = Elem::from(DType::I64);
        let iota = Op::Iota { shape: tile.to_vec(), axis, elem: long.clone() };
        let iota = self.emit_one(iota, &[], span, &[])?;
        let length = self.extent(&tile[axis], span);
        let start = self.emit_one(Op::Binary(BinaryOp::Mul), &[index, length], span, &[])?;
        let start = self.emit_one(Op::Cast(long), &[start], span, &[])?;
        let start = self.splat(start, tile.to_vec(), span);
        let position = self.emit_one(Op::Binary(BinaryOp::Add), &[iota, start], span, &[])?;
        let end = self.signed(extent, span)?;
        let end = self.splat(end, tile.to_vec(), span);
        let inside = self.emit_one(Op::Compare(Predicate::Lt), &[position, end], span, &[])?;
        // An index of any size is defined, and its position may not be.
        let tiles = self.extent(&extent.ceil_div(&tile[axis]), span);
        let is_tile = self.emit_one(Op::Compare(Predicate::Lt), &[index, tiles], span, &[])?;
        let is_tile = self.splat(is_tile, tile.to_vec(), span);
        let inside = self.emit_one(Op::Binary(BinaryOp::And), &[inside, is_tile], span, &[])?;
        Ok((position, inside))
    }

    /// The indices along an axis of the tensor beneath, of the elements at these positions.
    fn index_beneath(
        &mut self,
        layout: &Strided,
        positions: &[ValueId],
        tile: &[Dim],
        span: Span,
    ) -> Lowered<ValueId> {
        let mut sum = None;
        for (&position, stride) in positions.iter().zip(&layout.strides) {
            let term = match stride.as_const() {
                Some(0) => continue,
                Some(1) => position,
                _ => {
                    let stride = self.signed(stride, span)?;
                    let stride = self.splat(stride, tile.to_vec(), span);
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
        let offset = self.splat(offset, tile.to_vec(), span);
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
