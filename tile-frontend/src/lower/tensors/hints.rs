//! What changes when memory is touched and no result: `prefetch`, and the hints of partition views.

use crate::lower::{Lowered, Lowering};
use crate::span::Spanned;
use crate::value::{Val, ViewTile};
use syn::{Expr, ExprLit, ExprMethodCall, Lit};
use tile_ir::ops::Hints;
use tile_ir::types::PartitionType;
use tile_ir::{Op, ValueId};

impl Lowering {
    /// `x.prefetch([i, j])`, and `y.prefetch()` of the block's own tile.
    pub(in crate::lower) fn prefetch(
        &mut self,
        tile: &ViewTile,
        ty: &PartitionType,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let indexed = !ty.tensor.mutable;
        if !indexed && !call.args.is_empty() {
            let message = "`prefetch` of a `&mut` tensor takes no index: a block reads the tile that it owns";
            return self.error(call.method.span(), message, "write `prefetch()`");
        }
        if !indexed {
            self.names_its_tile(tile, ty, call)?;
        }
        let usage = if indexed { "prefetch([i, j])" } else { "prefetch()" };
        let arguments = self.arguments("prefetch", &call.args, usize::from(indexed), usage, call.span())?;
        let mut operands = [&[tile.view], &tile.index[..]].concat();
        if let (Some(value), Some(index)) = (arguments.values.first(), call.args.first()) {
            operands.extend(self.tile_index(ty, value, index)?.0);
        }
        self.emit(Op::Prefetch, &operands, call.span(), &[])?;
        Ok(Val::Unit)
    }

    /// `x.partition_view([BM, BK]).latency(3)` and `.bulk_copy(true)`: attributes of the view that exists already.
    pub(in crate::lower) fn hint(
        &mut self,
        view: ValueId,
        ty: &PartitionType,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let name = call.method.to_string();
        if ty.tensor.mutable {
            let message = format!("`{name}` is a hint of views that are read at any tile");
            let help =
                "leave it out: of a `&mut` tensor a block has one tile, which `prefetch()` brings near";
            return self.error(call.method.span(), message, help);
        }
        let hints = self.hints(call)?;
        let maker = self.maker_of(view);
        if let Op::Partition(cut) = &mut self.kernel.op_mut(maker).op {
            cut.hints.latency = hints.latency.or(cut.hints.latency.take());
            cut.hints.bulk_copy = hints.bulk_copy.or(cut.hints.bulk_copy);
        }
        Ok(Val::View(view))
    }

    /// What `latency(3)` or `bulk_copy(true)` says.
    pub(in crate::lower) fn hints(&mut self, call: &ExprMethodCall) -> Lowered<Hints> {
        let name = call.method.to_string();
        let usage = if name == "latency" { "latency(3)" } else { "bulk_copy(true)" };
        let arguments = self.arguments(&name, &call.args, 1, usage, call.span())?;
        let place = arguments.spans[0];
        let hints = if name == "latency" {
            let turns = self.static_dim(&arguments.values[0], "a latency", place)?;
            Hints { latency: Some(turns), bulk_copy: None }
        } else {
            let Some(Expr::Lit(ExprLit { lit: Lit::Bool(whole), .. })) = call.args.first() else {
                let message = "`bulk_copy` takes `true` or `false`, written out";
                return self.error(place, message, "code differs by it, so it can't be computed");
            };
            Hints { latency: None, bulk_copy: Some(whole.value) }
        };
        match hints.check() {
            Ok(()) => Ok(hints),
            Err(error) => self.error(place, error.message, error.help.as_deref().unwrap_or("leave it out")),
        }
    }
}
