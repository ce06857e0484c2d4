//! The types of results: those that the ops' rules infer, and tiles of a size that can be compiled.

use super::{Verifier, list};
use crate::dim::Dim;
use crate::kernel::OpId;
use crate::loc::Loc;
use crate::ops::{Op, result_types_under};
use crate::types::Type;

/// The largest tile, in elements.
pub const MAX_TILE_ELEMENTS: i64 = 1 << 24;

impl Verifier<'_> {
    pub(super) fn result_types(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        let operands: Vec<Type> = data.operands.iter().map(|&value| self.kernel.ty(value).clone()).collect();
        let results: Vec<&Type> = data.results.iter().map(|&value| self.kernel.ty(value)).collect();
        match result_types_under(&data.op, &operands, &self.facts) {
            Err(error) => self.type_error(data.loc, error),
            Ok(_) if data.op == Op::If => {
                if let Some(result) = results.iter().find(|ty| !ty.is_data()) {
                    self.error(data.loc, format!("`if` can't give {result}"));
                }
            }
            Ok(inferred) if inferred.iter().ne(results.iter().copied()) => {
                let inferred: Vec<&Type> = inferred.iter().collect();
                let message =
                    format!("`{}` gives ({}), not ({})", data.op.name(), list(&inferred), list(&results));
                self.error(data.loc, message);
            }
            Ok(_) => {}
        }
        for result in results {
            self.tile_size(result, data.loc);
        }
    }

    fn tile_size(&mut self, ty: &Type, loc: Loc) {
        let Some(tile) = ty.as_tile() else { return };
        let extents = tile.shape.iter().map(Dim::as_const).collect::<Option<Vec<_>>>();
        let count = extents.map(|extents| extents.iter().try_fold(1i64, |a, &b| a.checked_mul(b)));
        if count.is_some_and(|count| count.is_none_or(|count| count > MAX_TILE_ELEMENTS)) {
            self.error_with_help(
                loc,
                format!("{tile} has more than {MAX_TILE_ELEMENTS} elements"),
                "use a smaller tile and a loop",
            );
        }
    }
}
