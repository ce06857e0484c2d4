//! Random numbers that go by an element's number in its tile: the tile's extents then say which number an element gets.
//!
//! `Tile::random_uniform([2, 4], seed, offset)` numbers its elements in row-major order, so that rows are 4 numbers apart,
//! and in a tile [4, 8] they are 8 apart. Of instances with such tiles each draws other numbers for the elements of a tensor,
//! whatever the offset is.

use crate::kernel::{Kernel, ValueId};
use crate::loc::Loc;
use crate::ops::{BinaryOp, Op};
use std::collections::HashSet;

/// Random numbers for the elements of a tile by their numbers in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Where the elements are numbered.
    pub loc: Loc,
    /// The tile's extents.
    pub shape: Vec<usize>,
}

impl Draw {
    /// Whether the numbers in two tiles continue in the same way along each axis: `[2, 64]` and `[1, 64]`, but not `[2, 64]`
    /// and `[2, 32]`. An axis of which both have one element doesn't count. What lies between tiles, offsets say.
    pub fn is_numbered_as(&self, other: &Draw) -> bool {
        let distance = |shape: &[usize], axis: usize| shape[axis + 1..].iter().product::<usize>();
        let (a, b) = (&self.shape, &other.shape);
        a.len() == b.len()
            && (0..a.len())
                .all(|axis| (a[axis] == 1 && b[axis] == 1) || distance(a, axis) == distance(b, axis))
    }
}

/// The draws of a kernel whose tile extents are numbers, each once.
pub fn draws(kernel: &Kernel) -> Vec<Draw> {
    let mut draws = Vec::new();
    for data in kernel.walk().into_iter().map(|op| kernel.op(op)) {
        if data.op == Op::Binary(BinaryOp::Philox)
            && let Some(draw) = numbered(kernel, data.operands[0])
            && !draws.contains(&draw)
        {
            draws.push(draw);
        }
    }
    draws
}

/// The numbering of a tile's elements that positions are made of.
fn numbered(kernel: &Kernel, positions: ValueId) -> Option<Draw> {
    let mut open = vec![positions];
    let mut seen = HashSet::new();
    while let Some(value) = open.pop() {
        let Some(data) = kernel.definition(value).filter(|_| seen.insert(value)) else { continue };
        match &data.op {
            Op::Reshape(shape) if is_count(kernel, data.operands[0]) => {
                let extents = shape.iter().map(|extent| usize::try_from(extent.as_const()?).ok());
                return Some(Draw { loc: data.loc, shape: extents.collect::<Option<_>>()? });
            }
            Op::Broadcast(_) | Op::Reshape(_) | Op::Permute(_) => open.extend(&data.operands),
            op if op.is_leaf() => open.extend(&data.operands),
            _ => {}
        }
    }
    None
}

/// Whether a value is 0, 1, 2 … along its one axis.
fn is_count(kernel: &Kernel, value: ValueId) -> bool {
    let op = kernel.definition(value).map(|data| &data.op);
    op.is_some_and(|op| matches!(op, Op::Iota { shape, .. } if shape.len() == 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Instance;

    /// The shapes of the draws at the positions that `body` gives as `%at`, in tiles [R, C].
    fn found(body: &str, [rows, columns]: [usize; 2]) -> Vec<Vec<usize>> {
        let text = format!(
            "\
kernel @k<R, C>(%seed: u64, %y: mut tensor<m x n x u64>) {{
  %vy = partition %y [R, C] : mut partition<m x n x u64, [R, C]>
  %seeds = splat %seed : tile<R x C x u64>
{body}  %drawn = philox %at, %seeds : tile<R x C x u64>
  store_masked %vy, %drawn
}}
"
        );
        let instance = Instance::parse(&text, &[("R", rows), ("C", columns)]);
        let instance = instance.unwrap_or_else(|error| panic!("{error}\n{text}"));
        draws(&instance).into_iter().map(|draw| draw.shape).collect()
    }

    #[test]
    fn elements_that_are_numbered_in_row_major_order_are_found() {
        let numbered = "  %count = iota 0 : tile<R*C x u64>
  %place = reshape %count : tile<R x C x u64>
  %at = add %place, %seeds : tile<R x C x u64>
";
        assert_eq!(found(numbered, [2, 4]), [[2, 4]]);
        assert_eq!(found(numbered, [1, 8]), [[1, 8]]);
    }

    #[test]
    fn positions_by_row_and_column_are_not_numbered() {
        let by_axes = "  %rows = iota 0 : tile<R x C x u64>
  %columns = iota 1 : tile<R x C x u64>
  %begin = mul %rows, %seeds : tile<R x C x u64>
  %at = add %begin, %columns : tile<R x C x u64>
";
        assert_eq!(found(by_axes, [2, 4]), [[0; 2]; 0]);
    }

    #[test]
    fn tiles_are_numbered_alike_whose_rows_are_as_far_apart() {
        let alike = |a: &[usize], b: &[usize]| {
            let [a, b] = [a, b].map(|shape| Draw { loc: Loc::UNKNOWN, shape: shape.to_vec() });
            assert_eq!(a.is_numbered_as(&b), b.is_numbered_as(&a));
            a.is_numbered_as(&b)
        };
        assert!(alike(&[4], &[8]) && alike(&[1, 4], &[1, 8]) && alike(&[4, 1], &[8, 1]));
        assert!(alike(&[2, 64], &[4, 64]) && alike(&[1, 64], &[4, 64]) && alike(&[1, 2, 8], &[1, 4, 8]));
        assert!(!alike(&[2, 4], &[2, 8]) && !alike(&[1, 4], &[2, 8]) && !alike(&[2, 1, 4], &[2, 2, 4]));
    }
}
