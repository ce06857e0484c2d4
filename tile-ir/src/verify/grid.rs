//! The grid of a kernel: its extents, the axes that ops ask for, and that there is one at all.

use super::Verifier;
use crate::grid::Grid;
use crate::kernel::{OpId, ValueId};
use crate::loc::Loc;

/// The most axes of a grid.
pub const MAX_GRID_AXES: usize = 6;

impl Verifier<'_> {
    pub(super) fn grid(&mut self) {
        let Some(grid) = &self.kernel.grid else { return };
        if let (Grid::Tiles, Some(first)) = (grid, self.tiles.first) {
            self.error_with_help(
                self.kernel.op(first).loc,
                "blocks share the tiles of this loop, but the kernel asks for one block per tile",
                "leave out either `grid = tiles` or the loop over tiles",
            );
        }
        let dims = grid.dims();
        if *grid != Grid::Tiles && (dims.is_empty() || dims.len() > MAX_GRID_AXES) {
            let message = format!("a grid has 1 to {MAX_GRID_AXES} axes, not {}", dims.len());
            self.error_with_help(Loc::UNKNOWN, message, "write `grid = [blocks]`, or more axes");
        }
        for dim in dims {
            self.dim_is_bound(dim, Loc::UNKNOWN);
            if let Some(extent) = dim.as_const().filter(|&extent| extent < 0) {
                let message = format!("the grid extent `{dim:#}` is {extent}");
                self.error_with_help(Loc::UNKNOWN, message, "an extent of a grid is 0 or more");
            }
        }
    }

    /// A block's place in the grid is asked for along an axis that the grid has.
    pub(super) fn grid_axis(&mut self, op: OpId, axis: usize) {
        let data = self.kernel.op(op);
        let rank = match self.tiles.first {
            Some(_) => 1,
            None => self.kernel.grid_space().map_or(0, |space| space.len()),
        };
        if rank > 0 && axis >= rank {
            let message =
                format!("axis {axis} of `{}` is out of range: the grid has rank {rank}", data.op.name());
            self.error_with_help(
                data.loc,
                message,
                match self.tiles.first {
                    Some(_) => "blocks that share tiles have one axis; `tile.index()` is where the tile is",
                    None => "the grid is the outputs' tiles, or what `grid = […]` says",
                },
            );
        }
    }

    /// The tiles of all outputs are one grid, so they lie along as many axes; how many there are, a launch compares.
    pub(super) fn one_grid(&mut self, op: OpId, output: ValueId) {
        let data = self.kernel.op(op);
        let view = data.results.first().and_then(|&view| self.kernel.ty(view).as_partition());
        let Some(axes) = view.map(|view| view.tile.len()) else { return };
        let (first, first_axes) = *self.first_output.get_or_insert((output, axes));
        if axes == first_axes {
            return;
        }
        let name = |argument: ValueId| self.kernel.value(argument).name.as_deref().unwrap_or("an argument");
        let counted = |axes: usize| if axes == 1 { "1 axis".to_owned() } else { format!("{axes} axes") };
        let message = format!(
            "the tiles of all outputs are one grid, but those of `{}` lie along {} and those of `{}` along {}",
            name(first),
            counted(first_axes),
            name(output),
            counted(axes)
        );
        let (fewer, position) = if axes < first_axes { (output, axes) } else { (first, first_axes) };
        let help = format!(
            "give `{0}` an axis of extent 1, and its tiles too: `{0}.unsqueeze({position}).partition_view_mut([…])`; the grids are \
             one where blocks of the other have all tiles along that axis: `.spanning([{position}])`",
            name(fewer)
        );
        self.error_with_help(data.loc, message, &help);
    }

    /// An instance without an output still has a grid, which another output or the attribute says.
    pub(super) fn grid_of_every_instance(&mut self) {
        let is_optional = |argument: &ValueId| self.kernel.optional.contains_key(argument);
        let Some(first) = self.viewed.iter().min().filter(|_| self.viewed.iter().all(is_optional)) else {
            return;
        };
        let name = self.kernel.value(*first).name.as_deref().unwrap_or("an argument");
        let message = format!("`{name}` may be left out, and no other output says what the grid is then");
        let help = "give the kernel an output that is always there, or an atomic view and `#[tile_kernel(grid = [blocks])]`";
        self.error_with_help(Loc::UNKNOWN, message, help);
    }

    pub(super) fn no_output(&mut self) {
        if let Some(&argument) = self.atomic.iter().next() {
            let name = self.kernel.value(argument).name.as_deref().unwrap_or("an argument");
            return self.error_with_help(
                Loc::UNKNOWN,
                format!(
                    "kernel `{}` has no grid: `{name}` is accessed atomically, so it has no tiles that blocks own",
                    self.kernel.name
                ),
                "write `#[tile_kernel(grid = [blocks])]`, with sizes of the signature and const parameters",
            );
        }
        let unused = self.kernel.tensors().find(|(_, tensor)| tensor.mutable);
        let name = unused.and_then(|(argument, _)| self.kernel.value(argument).name.as_deref());
        let reason =
            name.map_or(String::new(), |name| format!(": `{name}` is `&mut`, but nothing is written to it"));
        let help = match name {
            Some(name) => format!(
                "make a view of it, `let mut {name} = {name}.partition_view_mut([…]);`, whose tiles are the grid"
            ),
            None => "make a view of a `&mut Tensor` argument with `partition_view_mut`: it declares the grid"
                .to_owned(),
        };
        let message = format!("kernel `{}` has no output{reason}", self.kernel.name);
        self.error_with_help(Loc::UNKNOWN, message, &help);
    }
}
