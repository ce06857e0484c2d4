//! Tiles whose last axes are whole in their tensors, as the three colours of pixels are: rows of a few elements each, which lie
//! one behind the other in memory. Loads and stores go over them as over one row, so that those at an edge of the tensor are
//! no slower than others: where the tensor ends, the row does.
//!
//! The index of such a row's element has its place along the last axis, beyond the tile's extent there, and 0 along the axes that
//! are joined with it. As a position, in memory or in a buffer, it is the element's.

use crate::cpu::elements::is_short;
use crate::cpu::region::{Emitter, extents};
use tile_ir::Op;
use tile_ir::kernel::OpData;
use tile_ir::types::PartitionType;
use tile_ir::view::Source;

/// The axis that all behind it are joined with: the last one that tiles may divide.
fn first_joined(ty: &PartitionType) -> Option<usize> {
    let tile = extents(&ty.tile);
    let last = tile.len().checked_sub(1).filter(|&last| last > 0 && is_short(tile[last]))?;
    let is_whole = |axis: usize| ty.tensor.extents[axis].as_const() == Some(tile[axis]);
    let first = (0..last).rev().find(|&axis| !is_whole(axis)).unwrap_or(0);
    (is_whole(last) && ty.steps[first..] == ty.tile[first..]).then_some(first)
}

/// A tile's extents with the axes behind this one joined with it. Positions computed from an index of these are those of the
/// tile.
pub(in crate::cpu) fn joined(shape: &[i64], first: usize) -> Vec<i64> {
    let mut joined = shape.to_vec();
    joined[first..].fill(1);
    if let Some(last) = joined.last_mut() {
        *last = shape[first..].iter().product();
    }
    joined
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// The axis that the axes behind it are joined with in the rows that an access goes over.
    pub(super) fn first_joined_of(&self, access: &OpData) -> Option<usize> {
        let ty = self.instance.ty(access.operands[0]).as_partition()?;
        let is_dense =
            ty.tensor.layout.is_none() && Source::reached_by(self.instance, access)?.selections.is_empty();
        first_joined(ty).filter(|_| is_dense)
    }

    /// Emits loops whose rows are joined from this axis on, if they are from one.
    pub(in crate::cpu) fn with_joined(&mut self, first: Option<usize>, emit: impl FnOnce(&mut Self)) {
        let around = std::mem::replace(&mut self.sources.first_joined, first);
        emit(self);
        self.sources.first_joined = around;
    }

    /// The same for the loop of an op on elements, or of stores, if it reads and stores tiles of one shape alone and computes
    /// element by element.
    pub(in crate::cpu) fn first_joined_in_loop(&self, data: &'a OpData) -> Option<usize> {
        let computed = self.fusion.computed_by(data);
        let is_access = |op: &OpData| op.op.is_load() || op.op.is_store();
        let keeps_places = |op: &OpData| op.op.is_leaf() || matches!(op.op, Op::Splat(_)) || is_access(op);
        let mut accesses = computed.iter().filter(|op| is_access(op));
        let tile = |access: &OpData| self.instance.ty(access.operands[0]).as_partition().map(|ty| &ty.tile);
        let one = accesses.clone().next()?;
        let first = self.first_joined_of(one)?;
        let are_alike =
            accesses.all(|access| self.first_joined_of(access) == Some(first) && tile(access) == tile(one));
        (are_alike && computed.iter().all(|op| keeps_places(op))).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::{first_joined, joined};
    use tile_ir::{Instance, Op};

    /// The axis that others are joined with in tiles of tensors with these extents.
    fn first(extents: &str, tile: &str) -> Option<usize> {
        let source = format!(
            "kernel @k(%x: tensor<{extents} x u8>, %y: mut tensor<{extents} x u8>) {{
  %vx = partition %x [{tile}] : partition<{extents} x u8, [{tile}]>
  %vy = partition %y [{tile}] : mut partition<{extents} x u8, [{tile}]>
}}
"
        );
        let instance = Instance::parse(&source, &[]).unwrap();
        let ops = instance.walk().into_iter().map(|op| instance.op(op));
        let cut = ops.into_iter().find(|data| matches!(data.op, Op::Partition(_))).unwrap();
        first_joined(instance.ty(cut.results[0]).as_partition().unwrap())
    }

    #[test]
    fn short_rows_that_are_whole_are_joined() {
        assert_eq!(first("h x w x 3", "1, 256, 3"), Some(1));
        assert_eq!(first("h x w x 3", "4, 8, 3"), Some(1));
        assert_eq!(first("h x w x 4 x 2", "1, 16, 4, 2"), Some(1));
        assert_eq!(first("8 x 3", "8, 3"), Some(0));
    }

    #[test]
    fn other_rows_are_not() {
        assert_eq!(first("h x w x c", "1, 256, 3"), None, "whose extent isn't known");
        assert_eq!(first("h x w x 4", "1, 256, 2"), None, "that are divided");
        assert_eq!(first("h x w x 64", "1, 8, 64"), None, "that are vectors");
        assert_eq!(first("n", "8"), None);
    }

    #[test]
    fn joined_extents_are_those_of_one_row() {
        assert_eq!(joined(&[4, 8, 3], 1), [4, 1, 24]);
    }
}
