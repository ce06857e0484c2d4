//! The loop over the tiles of a persistent kernel: `for mut tile in c.tiles_persistent(Grouped(8))`. The loop's tile
//! is the view itself, whose ops mean the block's own tile; where the loop may stand is the verifier's to say.

use super::loops::{Loop, Times};
use crate::assigned;
use crate::lower::{Lowered, Lowering, kind};
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{Expr, ExprForLoop, ExprMethodCall, Pat};
use tile_ir::ops::result_types;
use tile_ir::tile_order::TileOrder;
use tile_ir::{Dim, Op, ValueId};

/// What messages call the loop.
pub(in crate::lower) const TILE_LOOP: &str = "for … in c.tiles_persistent(…)";

const ORDERS: &str = "orders are `RowMajor`, `Grouped(rows)`, `Hilbert` and `Falling(axis)`";

/// The call of `tiles_persistent` that a loop goes through.
pub(crate) fn tiles_persistent(sequence: &Expr) -> Option<&ExprMethodCall> {
    match sequence {
        Expr::Paren(inner) => tiles_persistent(&inner.expr),
        Expr::Group(inner) => tiles_persistent(&inner.expr),
        Expr::MethodCall(call) if call.method == "tiles_persistent" => Some(call),
        _ => None,
    }
}

impl Lowering {
    pub(in crate::lower) fn tile_loop(
        &mut self,
        for_loop: &ExprForLoop,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let view = self.shared_view(call)?;
        let order = self.tile_order(view, call)?;
        let name = match &*for_loop.pat {
            Pat::Ident(ident) if ident.by_ref.is_none() && ident.subpat.is_none() => Some(ident),
            Pat::Wild(_) => None,
            other => {
                let message = "the tile of a loop over tiles is a plain name";
                return self.error(
                    other.span(),
                    message,
                    "write `for mut tile in …`, and `tile.index()` inside",
                );
            }
        };
        let parts = Loop {
            keyword: TILE_LOOP,
            label: &for_loop.label,
            body: &for_loop.body,
            assigned: assigned::by_expression(&Expr::ForLoop(for_loop.clone())),
            span: for_loop.for_token.span(),
        };
        self.repeat(&parts, &Times::Tiles { view, order }, &mut |lowering, _| {
            if let Some(name) = name {
                lowering.define(&name.ident, name.mutability.is_some(), Val::View(view));
            }
            lowering.block(&for_loop.body)
        })
    }

    /// The view whose tiles blocks share.
    fn shared_view(&mut self, call: &ExprMethodCall) -> Lowered<ValueId> {
        match self.expression(&call.receiver)? {
            Val::View(view) if self.kernel.ty(view).as_partition().is_some_and(|ty| ty.tensor.mutable) => {
                Ok(view)
            }
            Val::View(_) => self.error(
                call.method.span(),
                "blocks share the tiles of an output, and this view is only read",
                "go through the tiles of a `partition_view_mut`, and read this view at `tile.index()`",
            ),
            Val::Tensor(_) => self.error(
                call.method.span(),
                "a tensor has no tiles before it is cut",
                "make a view first: `let mut c = c.partition_view_mut([BM, BN]);`",
            ),
            Val::Poison => Err(crate::lower::Reported),
            other => {
                let message = format!("{} has no tiles", kind(&other));
                self.error(call.method.span(), message, "go through the tiles of a `partition_view_mut`")
            }
        }
    }

    fn tile_order(&mut self, view: ValueId, call: &ExprMethodCall) -> Lowered<TileOrder<Dim>> {
        let [order] = call.args.iter().collect::<Vec<_>>()[..] else {
            let message =
                format!("`tiles_persistent` takes the order of the tiles, not {} arguments", call.args.len());
            let help = format!("write `tiles_persistent(Grouped(8))`; {ORDERS}");
            return self.error(call.method.span(), message, &help);
        };
        let order_span = order.span();
        let rank = self.ty(view).as_partition().map_or(0, |view| view.grid().len());
        let order = self.named_order(order, rank, order_span)?;
        if let Err(error) = result_types(&Op::Tiles(order.clone()), &[self.ty(view)]) {
            let diagnostic = self.explain(error, &[], order_span, &[]);
            return self.report(diagnostic);
        }
        Ok(order)
    }

    fn named_order(&mut self, order: &Expr, rank: usize, span: Span) -> Lowered<TileOrder<Dim>> {
        let (path, arguments) = match order {
            Expr::Paren(inner) => return self.named_order(&inner.expr, rank, span),
            Expr::Group(inner) => return self.named_order(&inner.expr, rank, span),
            Expr::Call(call) => (&*call.func, call.args.iter().collect()),
            path => (path, Vec::new()),
        };
        let name = match path {
            Expr::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
            _ => None,
        };
        match (name.as_deref(), arguments.as_slice()) {
            (Some("RowMajor"), []) => Ok(TileOrder::RowMajor),
            (Some("Hilbert"), []) => Ok(TileOrder::Hilbert),
            (Some("Grouped"), [rows]) => {
                let value = self.expression(rows)?;
                let rows = self.static_dim(&value, "the height of a group", rows.span())?;
                Ok(TileOrder::Grouped(rows))
            }
            (Some("Grouped"), _) => {
                self.error(span, "`Grouped` takes the height of a group, in tiles", "write `Grouped(8)`")
            }
            (Some("Falling"), [axis]) => {
                let value = self.expression(axis)?;
                Ok(TileOrder::Falling(self.axis(&value, rank, axis.span())?))
            }
            (Some("Falling"), _) => self.error(
                span,
                "`Falling` takes the axis along which tiles have more and more to do",
                "write `Falling(0)`",
            ),
            _ => self.error(
                span,
                "this isn't an order of tiles",
                &format!("{ORDERS}, written where they are used"),
            ),
        }
    }
}
