//! Outputs of which a block has several tiles: `y.partition_view_mut([R, C]).spanning([1])`, whose tiles are named,
//! `y.at([j])`, before they are loaded or stored.

use crate::lower::{Lowered, Lowering, names};
use crate::span::{Span, Spanned};
use crate::value::{Val, ViewTile};
use syn::ExprMethodCall;
use tile_ir::types::PartitionType;
use tile_ir::{Op, Type, ValueId};

impl Lowering {
    /// `.spanning([1])`, of the view that exists already.
    pub(in crate::lower) fn spanning(
        &mut self,
        view: ValueId,
        ty: &PartitionType,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let arguments = self.arguments("spanning", &call.args, 1, "spanning([1])", call.span())?;
        let place = arguments.spans[0];
        let Val::List(named) = &arguments.values[0] else {
            return self.error(place, "the axes that blocks span are an array", "write `spanning([1])`");
        };
        let rank = ty.tile.len();
        let spanned =
            named.iter().map(|axis| self.axis(axis, rank, place)).collect::<Lowered<Vec<usize>>>()?;
        let maker = self.maker_of(view);
        let mut op = self.kernel.op(maker).op.clone();
        if let Op::Partition(cut) = &mut op {
            cut.spanned = spanned;
        }
        let tensor = self.ty(self.kernel.op(maker).operands[0]);
        match tile_ir::ops::result_types(&op, &[tensor]) {
            Ok(types) => {
                self.kernel.op_mut(maker).op = op;
                types.into_iter().for_each(|ty| self.kernel.set_type(view, ty));
                Ok(Val::View(view))
            }
            Err(error) => {
                let diagnostic = self.explain(error, &[], place, &[]);
                self.report(diagnostic)
            }
        }
    }

    /// `y.at([j])`.
    pub(in crate::lower) fn at(
        &mut self,
        view: ValueId,
        ty: &PartitionType,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        if ty.spanned.is_empty() {
            let message = "a block owns one tile of this view, so there are no others to name";
            let help = "leave `.at(…)` out, or let blocks span an axis: `y.partition_view_mut([R, C]).spanning([1])`";
            return self.error(call.method.span(), message, help);
        }
        let arguments = self.arguments("at", &call.args, 1, "at([j])", call.span())?;
        let (index, _) = self.tile_index(ty, &arguments.values[0], &call.args[0])?;
        Ok(Val::ViewTile(ViewTile { view, index }))
    }

    pub(in crate::lower) fn view_tile_method(
        &mut self,
        tile: &ViewTile,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let ty = self.view_type(tile.view);
        match call.method.to_string().as_str() {
            "index" => self.index_of(tile, &ty, call),
            "load" | "load_masked" | "load_masked_or" => self.load(tile, &ty, call),
            "store" | "store_masked" => self.store(tile, &ty, call),
            "prefetch" => self.prefetch(tile, &ty, call),
            name => self.no_method("a tile of a view", call, &names::help_of_view_tile(name)),
        }
    }

    /// The index of a tile that the block owns, along every axis.
    pub(in crate::lower) fn index_of(
        &mut self,
        tile: &ViewTile,
        ty: &PartitionType,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        self.arguments("index", &call.args, 0, "index()", call.span())?;
        let own = self.emit(Op::BlockIndex, &[tile.view], call.span(), &[])?;
        let index = ty.tile_index(&own, &tile.index);
        Ok(Val::List(index.into_iter().map(Val::Data).collect()))
    }

    /// Refuses an access of a view whose blocks span axes that doesn't say which tile it means.
    pub(in crate::lower) fn names_its_tile(
        &mut self,
        tile: &ViewTile,
        ty: &PartitionType,
        call: &ExprMethodCall,
    ) -> Lowered<()> {
        if tile.index.len() == ty.spanned.len() {
            return Ok(());
        }
        let (name, axes) = (&call.method, &ty.spanned);
        let several =
            if let [axis] = axes[..] { format!("axis {axis}") } else { format!("the axes {axes:?}") };
        let message = format!("`{name}` doesn't say which tile: each block spans {several} of this view");
        let indices = ["j", "k", "l"].iter().cycle().take(axes.len()).copied().collect::<Vec<_>>().join(", ");
        self.error(call.method.span(), message, &format!("write `.at([{indices}]).{name}(…)`"))
    }

    /// Keeps the places of an access's operands, for errors that are found when the kernel is whole.
    pub(in crate::lower) fn keep_places(&mut self, span: Span, places: Vec<Span>) {
        let loc = self.loc(span);
        self.operand_spans.insert(loc, places);
    }

    pub(in crate::lower) fn view_type(&self, view: ValueId) -> PartitionType {
        let Type::Partition(ty) = self.kernel.ty(view) else { unreachable!("views have partition types") };
        ty.clone()
    }
}
