//! Where a block is in its grid: `block_id(axis)` and `block_count(axis)`.

use super::{Lowered, Lowering};
use crate::span::Spanned;
use crate::value::Val;
use syn::ExprCall;
use tile_ir::Op;
use tile_ir::verify::MAX_GRID_AXES;

impl Lowering {
    pub(super) fn place_in_grid(&mut self, name: &str, call: &ExprCall) -> Lowered<Val> {
        let span = call.span();
        let arguments = self.arguments(name, &call.args, 1, &format!("{name}(0)"), span)?;
        // Which axes there are is known once all views are: the verifier has the last word.
        let axis = self.axis(&arguments.values[0], MAX_GRID_AXES, arguments.spans[0])?;
        let op = if name == "block_id" { Op::BlockId { axis } } else { Op::BlockCount { axis } };
        self.emit_one(op, &[], span, &[]).map(Val::Data)
    }
}
