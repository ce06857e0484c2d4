//! How the tensors of a random program lie in memory.

use crate::strided::Laid;
use tile_ir::Array;

/// A way in which a tensor may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// Row-major, from the address that kernels are given on.
    Dense,
    /// Row-major, at no multiple of 16 bytes.
    Behind,
    /// With elements between rows, which begin anywhere.
    Apart,
    /// With elements between rows, which begin at multiples of 16 elements.
    Aligned,
    /// Column-major.
    Turned,
    /// Every other element of a larger tensor.
    Stepped,
    /// The last axis backwards.
    Mirrored,
    /// Every axis backwards.
    Backward,
}

impl Placement {
    /// Every way, the most usual one most often.
    pub(super) const USUAL: &[Placement] = &[
        Placement::Dense,
        Placement::Dense,
        Placement::Dense,
        Placement::Behind,
        Placement::Apart,
        Placement::Aligned,
        Placement::Turned,
        Placement::Stepped,
        Placement::Mirrored,
        Placement::Backward,
    ];

    /// The array in memory. One without elements has no place.
    pub(super) fn of(self, array: &Array) -> Laid {
        let extents = array.shape();
        let last = extents.len() - 1;
        let strides = match self {
            _ if array.is_empty() => return Laid::placed(array, None, 0),
            Placement::Dense => return Laid::placed(array, None, 0),
            Placement::Behind => return Laid::placed(array, None, 3),
            Placement::Apart => rows(extents, |row| row + 5),
            Placement::Aligned => rows(extents, |row| row.next_multiple_of(16)),
            Placement::Turned => {
                let turned: Vec<usize> = extents.iter().rev().copied().collect();
                rows(&turned, |row| row.next_multiple_of(8)).into_iter().rev().collect()
            }
            Placement::Stepped => rows(extents, |row| row + 1).into_iter().map(|stride| 2 * stride).collect(),
            Placement::Mirrored => {
                let mut strides = rows(extents, |row| row + 3);
                strides[last] = -1;
                strides
            }
            Placement::Backward => rows(extents, |row| row).into_iter().map(|stride| -stride).collect(),
        };
        Laid::placed(array, Some(&strides), 0)
    }
}

/// Row-major strides of rows that are longer than their elements, as the function says.
fn rows(extents: &[usize], length: impl Fn(usize) -> usize) -> Vec<i64> {
    let mut strides = vec![1; extents.len()];
    for axis in (1..extents.len()).rev() {
        strides[axis - 1] = length(strides[axis] as usize * extents[axis]) as i64;
    }
    strides
}
