//! `grid = [m.div_ceil(BM), 4]` of `#[tile_kernel(…)]`, extents of names that the signature binds, and `grid = tiles`. A
//! number among the arguments that a grid names, `blocks: usize`, is one of its sizes.

use crate::attribute::GridOption;
use crate::diagnostic::Diagnostics;
use crate::extent::{self, Kind, Names};
use tile_ir::Grid;

/// What an expression of a grid is.
const EXTENT: Kind = Kind {
    name: "an extent of a grid",
    examples: "an extent is a run-time size of the signature such as `m`, an argument `blocks: usize`, a const parameter, a \
               number",
    names: "name an axis of an argument, as `n` in `&Tensor<f32, n>`, an argument `blocks: usize`, or a const parameter of \
            the kernel",
};

/// The grid that the attribute asks for.
pub(crate) fn lower(grid: &GridOption, names: &Names) -> Result<Grid, Diagnostics> {
    let GridOption::Extents(grid) = grid else { return Ok(Grid::Tiles) };
    let (mut extents, mut errors) = (Vec::new(), Vec::new());
    for expression in &grid.elems {
        match extent::lower(expression, names, &EXTENT) {
            Ok(extent) => extents.push(extent),
            Err(error) => errors.push(*error),
        }
    }
    if errors.is_empty() { Ok(Grid::Extents(extents)) } else { Err(Diagnostics::new(errors)) }
}
