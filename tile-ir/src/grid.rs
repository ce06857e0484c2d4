//! The blocks of a launch: how many along each axis, as extents.
//!
//! A kernel has one grid. Without a word about it that is the index space of its outputs, with one place along axes that
//! blocks span: one block per tile, or fewer that go on to further tiles, where a target gains by it and nobody sees it. A
//! grid of its own has extents that the launch computes, and then no block owns a tile of a partition view. A persistent
//! kernel, one with a loop over tiles, has as many blocks along one axis as the launch says, which share that space.

use crate::dim::Dim;
use crate::kernel::Kernel;
use crate::ops::Op;
use crate::types::Shape;
use std::fmt;

/// What a kernel's author says of its grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grid {
    /// A block for each tile of the outputs on every target.
    Tiles,
    /// Blocks along each axis.
    Extents(Vec<Dim>),
}

impl Grid {
    /// Every extent that the grid names.
    pub fn dims(&self) -> &[Dim] {
        match self {
            Grid::Tiles => &[],
            Grid::Extents(extents) => extents,
        }
    }

    /// The grid with its extents replaced.
    pub(crate) fn map(&self, change: &dyn Fn(&Dim) -> Dim) -> Grid {
        match self {
            Grid::Tiles => Grid::Tiles,
            Grid::Extents(extents) => Grid::Extents(extents.iter().map(change).collect()),
        }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grid::Tiles => f.write_str("tiles"),
            Grid::Extents(extents) => Shape(extents).fmt(f),
        }
    }
}

impl Kernel {
    /// Whether the grid has extents of its own, so that no block owns a tile.
    pub fn has_own_grid(&self) -> bool {
        matches!(self.grid, Some(Grid::Extents(_)))
    }

    /// Whether blocks share tiles: whether the kernel has a loop over them.
    pub fn is_persistent(&self) -> bool {
        self.walk().into_iter().any(|op| matches!(self.op(op).op, Op::Tiles(_)))
    }

    /// The blocks along each axis of the grid, and of a persistent kernel the tiles that they share; `None` for a
    /// kernel that has neither a grid nor an output.
    pub fn grid_space(&self) -> Option<Vec<Dim>> {
        match &self.grid {
            Some(Grid::Extents(extents)) => Some(extents.clone()),
            None | Some(Grid::Tiles) => self.walk().into_iter().map(|op| self.op(op)).find_map(|data| {
                // The verifier asks this of ops that it refuses, which may lack their result.
                let view = data.results.first().filter(|_| matches!(data.op, Op::Partition(_)));
                let view = view.and_then(|&view| self.ty(view).as_partition());
                view.filter(|view| view.tensor.mutable).map(|view| view.grid())
            }),
        }
    }
}
