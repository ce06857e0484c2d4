//! Tiles of short rows that are used turned, so that a longer axis is last, are turned where they are loaded: a load of a view
//! of the tensor. Colours of pixels that become planes are read so, and a column of a matrix that becomes a line.
//!
//! A target that goes over tiles in memory goes along their rows. In rows of three elements it would compute, and store, three
//! at a time, and then gather what it needs of them; along a longer axis it reads elements that lie three places apart.
//!
//! Between the loads and where their elements change places there may be ops on elements. Reductions of short rows are done of
//! several rows at once where these lie.

use super::turned_tiles::{Known, TurnedTiles};
use super::{dce, replace_uses};
use crate::cpu::MOST_APART;
use crate::kernel::{Kernel, OpData, OpId};
use crate::ops::Op;
use std::collections::HashMap;

/// Rows have so many elements at most, which then lie as far apart along a longer axis: those are picked out of vectors.
const MOST_ELEMENTS: i64 = MOST_APART;

/// Turns every such tile.
pub(super) fn run(kernel: &mut Kernel) {
    let mut known = Known::of(kernel);
    for exit in kernel.walk() {
        if turn(kernel, &known, exit).is_some() {
            known = Known::of(kernel);
        }
    }
    dce::run(kernel);
}

/// Gives what an op needs turned to the loads.
fn turn(kernel: &mut Kernel, known: &Known, exit: OpId) -> Option<()> {
    let order = order(kernel, kernel.op(exit))?;
    let together = TurnedTiles::of(kernel, known, kernel.op(exit).operands[0], exit, order)?;
    if together.reduces(kernel) {
        return None;
    }
    let tile = together.turn(kernel);
    let data = kernel.op(exit).clone();
    match data.op {
        Op::Permute(_) => replace_uses(kernel, &HashMap::from([(data.results[0], tile)])),
        _ => kernel.op_mut(exit).operands[0] = tile,
    }
    Some(())
}

/// How an op turns its operand so that a longer axis is last than one of few elements, or than axes of one.
fn order(kernel: &Kernel, data: &OpData) -> Option<Vec<usize>> {
    let shape = &kernel.ty(*data.operands.first()?).as_tile()?.shape;
    let is_longer = |axis: usize| shape[axis].as_const().is_some_and(|extent| extent > MOST_ELEMENTS);
    let order = match &data.op {
        // The elements of the axis before it lie as near to each other as elements of other axes can.
        Op::Permute(order) if order.last()? + 2 == shape.len() => order.clone(),
        Op::Reshape(_) => {
            let units = shape.iter().rev().take_while(|extent| extent.as_const() == Some(1)).count();
            let longer = shape.len() - units;
            (longer..shape.len()).chain(0..longer).collect()
        }
        _ => return None,
    };
    let is_short = shape.last()?.as_const()? <= MOST_ELEMENTS;
    (is_short && is_longer(*order.last()?)).then_some(order)
}

#[cfg(test)]
mod tests {
    use crate::passes::{SHORT_ROWS, run};
    use crate::{Instance, text};

    /// Three colours by a factor for each, with a number for each pixel, to planes; a column to a line; not a tile that something
    /// else needs as well, one of longer rows, nor one that the block writes.
    #[test]
    fn tiles_are_turned_where_they_are_loaded() {
        let source = "\
kernel @k(%x: tensor<n x 3 x f32>, %w: tensor<n x f32>, %y: mut tensor<3 x n x f32>, %z: mut tensor<n x 3 x f32>) {
  %vx = partition %x [64, 3] : partition<n x 3 x f32, [64, 3]>
  %vc = partition %x [64, 1] : partition<n x 3 x f32, [64, 1]>
  %vw = partition %w [64] : partition<n x f32, [64]>
  %vy = partition %y [3, 64] : mut partition<3 x n x f32, [3, 64]>
  %vz = partition %z [64, 3] : mut partition<n x 3 x f32, [64, 3]>
  %o, %i = block_index %vy : index, index
  %none = constant 0.0 : f32
  %t = load_masked %vx[%i, %o] pad %none : tile<64 x 3 x f32>
  %number = iota 0 : tile<3 x f32>
  %row = reshape %number : tile<1 x 3 x f32>
  %factors = broadcast %row : tile<64 x 3 x f32>
  %w1 = load_masked %vw[%i] pad %none : tile<64 x f32>
  %column = reshape %w1 : tile<64 x 1 x f32>
  %ws = broadcast %column : tile<64 x 3 x f32>
  %a = mul %t, %factors : tile<64 x 3 x f32>
  %b = add %a, %ws : tile<64 x 3 x f32>
  %planes = permute %b [1, 0] : tile<3 x 64 x f32>
  %2 = constant 2 : index
  %c = load_masked %vc[%i, %2] pad %none : tile<64 x 1 x f32>
  %line = reshape %c : tile<64 x f32>
  %line1 = reshape %line : tile<1 x 64 x f32>
  %lines = broadcast %line1 : tile<3 x 64 x f32>
  %u = load_masked %vx[%i, %o] pad %none : tile<64 x 3 x f32>
  %turned = permute %u [1, 0] : tile<3 x 64 x f32>
  %own = load_masked %vz pad %none : tile<64 x 3 x f32>
  %own1 = permute %own [1, 0] : tile<3 x 64 x f32>
  %s1 = add %planes, %lines : tile<3 x 64 x f32>
  %s2 = add %s1, %turned : tile<3 x 64 x f32>
  %s3 = add %s2, %own1 : tile<3 x 64 x f32>
  store_masked %vy, %s3
  store_masked %vz, %u
}
";
        let instance = run(Instance::parse(source, &[]).unwrap(), &SHORT_ROWS);
        insta::assert_snapshot!(text::print(&instance));
    }
}
