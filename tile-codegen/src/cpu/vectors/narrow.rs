//! Which kernels have narrow tiles, whose rows are no longer than a vector or two.
//!
//! Their loops along rows become straight-line code, which LLVM's SLP vectoriser combines to vectors again, and the code
//! around these loops takes as long as they do, so all of `-O3` pays off. In other kernels loops along rows are vectorised
//! as loops, and all that the SLP vectoriser finds are pairs of sizes and addresses, which it makes slower.

use crate::cpu::elements::is_short;
use crate::cpu::region::extents;
use tile_ir::{Instance, Type, ValueId};

/// Of tiles with elements along rows, a kernel's largest one may have so many times as many as a narrow one that counts.
const MOST_LARGER: i64 = 16;

/// Whether a good part of a kernel's work is on narrow tiles.
pub(in crate::cpu) fn has_narrow_tiles(instance: &Instance) -> bool {
    let values = instance.walk().into_iter().flat_map(|op| &instance.op(op).results);
    let shapes: Vec<Vec<i64>> = values.filter_map(|&value| shape(instance, value)).collect();
    let elements = |shape: &[i64]| shape.iter().product::<i64>();
    let largest = shapes.iter().map(|shape| elements(shape)).max().unwrap_or(0);
    shapes.iter().any(|shape| is_narrow(shape) && elements(shape) * MOST_LARGER >= largest)
}

fn shape(instance: &Instance, value: ValueId) -> Option<Vec<i64>> {
    match instance.ty(value) {
        Type::Tile(ty) => Some(extents(&ty.shape)),
        _ => None,
    }
}

/// Whether the innermost loop over a shape has few turns.
fn is_narrow(shape: &[i64]) -> bool {
    shape.iter().rfind(|&&extent| extent > 1).is_some_and(|&extent| is_short(extent))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums of rows of a tile.
    fn sums(rows: usize, columns: usize) -> Instance {
        let source = "kernel @sums<R, C>(%x: tensor<m x n x f32>, %y: mut tensor<m x 1 x f32>) {
            %vx = partition %x [R, C] : partition<m x n x f32, [R, C]>
            %vy = partition %y [R, 1] : mut partition<m x 1 x f32, [R, 1]>
            %i, %j = block_index %vy : index, index
            %pad = constant 0.0 : f32
            %t = load_masked %vx[%i, %j] pad %pad : tile<R x C x f32>
            %s = reduce sum %t axis 1 : tile<R x 1 x f32>
            store_masked %vy, %s
        }";
        Instance::parse(source, &[("R", rows), ("C", columns)]).unwrap()
    }

    /// A few sums beside rows of a thousand elements don't make a kernel narrow.
    #[test]
    fn narrow_tiles_count_beside_others_of_their_size() {
        assert!(has_narrow_tiles(&sums(64, 8)) && has_narrow_tiles(&sums(1, 8)));
        assert!(has_narrow_tiles(&sums(8, 16)) && !has_narrow_tiles(&sums(8, 64)));
        assert!(!has_narrow_tiles(&sums(4, 1024)) && !has_narrow_tiles(&sums(16, 16)));
        assert!(!has_narrow_tiles(&sums(1, 1024)));
    }
}
