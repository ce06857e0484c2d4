//! Loops over rows of a few elements, such as a pixel's colours: of each run of rows, along the axis before the last, first those
//! that exist whole in all tensors that are read and written, without masks, so that LLVM makes vectors of several; then the
//! others.
//!
//! So an image whose width is no multiple of a tile's is read as fast as another.

use super::parts::Bounds;
use super::views::Window;
use crate::cpu::elements::hint_around;
use crate::cpu::fuse::Fusion;
use crate::cpu::region::{Emitter, extents};
use crate::emit::LoopHint;
use inkwell::IntPredicate;
use inkwell::values::IntValue;
use std::collections::HashSet;
use tile_ir::kernel::OpData;
use tile_ir::{Op, ValueId};

/// What a loop over rows is given: a row, and whether all that is read and written of it exists.
type RowBody<'b, 'a, 'c> = dyn FnMut(&mut Emitter<'a, 'c>, &[IntValue<'c>], bool) + 'b;

/// Rows of a tile that an op goes along.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct ShortRows<'r, 'c> {
    /// The tiles that the loop computes, of this shape.
    pub(in crate::cpu) tiles: &'r [ValueId],
    pub(in crate::cpu) shape: &'r [i64],
    /// Where such tiles are stored.
    pub(in crate::cpu) stored: &'r [Window<'c>],
    /// Whether all is known to exist.
    pub(in crate::cpu) whole: bool,
}

/// The axis of a loop that each axis of a tile is, `None` where all its turns are at the first place.
type Axes = Vec<Option<usize>>;

/// A tensor's tile that a loop reads or writes.
struct Reached<'a, 'c> {
    load: Option<&'a OpData>,
    window: Window<'c>,
    axes: Axes,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Emits the loops. Streams of what is read are open, with masks unless all is known to exist, and are so again behind them.
    pub(in crate::cpu) fn each_short_row(&mut self, rows: ShortRows<'_, 'c>, body: &mut RowBody<'_, 'a, 'c>) {
        let (&width, outer) = rows.shape.split_last().expect("verified: a tile has rank 1 or more");
        let reached = if rows.whole { None } else { self.reached(rows) };
        let (Some(reached), Some((&run, outer))) = (reached, outer.split_last()) else {
            return self.each_row_of(width, outer, &mut |emitter, row| body(emitter, row, rows.whole));
        };
        self.each_row(outer, &mut |emitter, outer| {
            let ir = emitter.ir;
            let whole = reached.iter().map(|tile| emitter.whole_rows(tile, outer, run));
            let whole = whole.fold(ir.i64(run), |a, b| ir.lesser(a, b));
            for (bounds, from, to, hint) in [
                (Bounds::Unchecked, ir.i64(0), whole, hint_around(width)),
                (Bounds::Checked, whole, ir.i64(run), LoopHint::Rolled),
            ] {
                for tile in &reached {
                    tile.load.iter().for_each(|load| emitter.open_stream(load, &tile.window, bounds));
                }
                ir.each((from, to, ir.i64(1)), hint, |i| {
                    body(emitter, &[outer, &[i]].concat(), bounds == Bounds::Unchecked);
                });
            }
        });
    }

    /// Where in their tensors the tiles lie that a loop reads and writes; `None` where its rows aren't rows of one of them.
    fn reached(&self, rows: ShortRows<'_, 'c>) -> Option<Vec<Reached<'a, 'c>>> {
        let own: Axes = (0..rows.shape.len()).map(Some).collect();
        let stored =
            rows.stored.iter().cloned().map(|window| Reached { load: None, window, axes: own.clone() });
        let mut reached: Vec<_> = stored.collect();
        for (load, axes) in self.fusion.axes_of_loads(rows.tiles, &own)? {
            reached.push(Reached { load: Some(load), window: self.window_of(load), axes });
        }
        Some(reached)
    }

    /// How many rows of a run exist whole, from its first on.
    fn whole_rows(&self, tile: &Reached<'_, 'c>, outer: &[IntValue<'c>], run: i64) -> IntValue<'c> {
        let (ir, window) = (self.ir, &tile.window);
        let (all, none) = (ir.i64(run), ir.i64(0));
        if window.is_known_whole() {
            return all;
        }
        let Some(valid) = window.valid() else {
            return ir.select_int(self.is_whole(window), all, none);
        };
        let mut rows = all;
        let mut exists = ir.bool(true);
        for ((axis, &valid), &extent) in tile.axes.iter().zip(valid).zip(window.shape()) {
            let exists_along = match *axis {
                None => ir.icmp(IntPredicate::NE, valid, none),
                Some(axis) if axis == outer.len() => {
                    rows = ir.lesser(rows, valid);
                    continue;
                }
                Some(axis) if axis < outer.len() => ir.icmp(IntPredicate::ULT, outer[axis], valid),
                Some(_) => ir.icmp(IntPredicate::EQ, valid, ir.i64(extent)),
            };
            exists = ir.and(exists, exists_along);
        }
        ir.select_int(exists, rows, none)
    }
}

impl<'a> Fusion<'a> {
    /// The loads that a loop reads which computes tiles whose axes are these, with the axes of theirs; `None` where a load's
    /// aren't the loop's in order.
    fn axes_of_loads(&self, tiles: &[ValueId], own: &Axes) -> Option<Vec<(&'a OpData, Axes)>> {
        let is_computed = |tile: &&ValueId| !self.is_stored(**tile);
        let computed = tiles.iter().filter(is_computed);
        let mut next: Vec<(ValueId, Axes)> = computed.map(|&tile| (tile, own.clone())).collect();
        let (mut met, mut loads): (_, Vec<(&OpData, Axes)>) = (HashSet::new(), Vec::new());
        while let Some((tile, axes)) = next.pop() {
            if !met.insert((tile, axes.clone())) {
                continue;
            }
            let data = self.definition(tile)?;
            if data.op.is_load() {
                match loads.iter().find(|(load, _)| std::ptr::eq(*load, data)) {
                    Some((_, before)) if *before != axes => return None,
                    Some(_) => {}
                    None => loads.push((data, axes)),
                }
                continue;
            }
            for &operand in data.operands.iter().filter(is_computed) {
                let Some(shape) = self.shape_of(operand).map(extents) else { continue };
                let axes = match &data.op {
                    op if op.is_leaf() => axes.clone(),
                    Op::Broadcast(_) => without_repeated(&axes, &shape),
                    Op::Reshape(result) => without_units(&axes, &extents(result), &shape)?,
                    _ => return None,
                };
                next.push((operand, axes));
            }
        }
        Some(loads)
    }
}

/// The axes of what is repeated along those where it has one element.
fn without_repeated(axes: &Axes, shape: &[i64]) -> Axes {
    axes.iter().zip(shape).map(|(&axis, &extent)| axis.filter(|_| extent != 1)).collect()
}

/// The axes of what a reshape takes axes of one element of, or gives them.
fn without_units(axes: &Axes, result: &[i64], source: &[i64]) -> Option<Axes> {
    let mut longer = axes.iter().zip(result).filter(|(_, extent)| **extent != 1).peekable();
    let axis_of = |&extent: &i64| match extent {
        1 => Some(None),
        _ => longer.next_if(|(_, own)| **own == extent).map(|(&axis, _)| axis),
    };
    let found: Option<Axes> = source.iter().map(axis_of).collect();
    found.filter(|_| longer.peek().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_followed_through_repeats_and_axes_of_one_element() {
        let axes = [0, 1, 2].map(Some).to_vec();
        assert_eq!(without_repeated(&axes, &[4, 8, 1]), [Some(0), Some(1), None]);
        assert_eq!(without_units(&axes, &[4, 8, 1], &[4, 8]), Some(vec![Some(0), Some(1)]));
        assert_eq!(without_units(&axes, &[4, 1, 3], &[1, 4, 3]), Some(vec![None, Some(0), Some(2)]));
        assert_eq!(without_units(&axes, &[4, 8, 1], &[32]), None);
        assert_eq!(without_units(&axes, &[4, 8, 3], &[4, 8]), None);
    }
}
