//! The bits of registers, lanes and warps dealt to the axes of a tile. Decides only which axis the next bit goes to.

use alloc::vec;
use alloc::vec::Vec;

use super::Position;

/// Bits of registers, lanes and warps that are dealt to the axes of a tile, the lowest first.
///
/// ```
/// use tile_layout::linear::Deal;
/// let mut deal = Deal::new(&[4, 150]);
/// // Pieces of 64 would leave a fifth of their places empty.
/// let lanes = deal.take(6, &[1, 0]);
/// assert_eq!(lanes, [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0]]);
/// ```
#[derive(Clone, Debug)]
pub struct Deal<'s> {
    shape: &'s [u64],
    taken: Vec<u64>,
}

impl<'s> Deal<'s> {
    /// Nothing is dealt yet.
    ///
    /// ```
    /// assert_eq!(tile_layout::linear::Deal::new(&[4]).take(1, &[0]), [[1]]);
    /// ```
    pub fn new(shape: &'s [u64]) -> Deal<'s> {
        Deal { shape, taken: vec![1; shape.len()] }
    }

    /// So many bits, each for the first of the axes where a longer piece leaves few places empty; or else for the first
    /// that isn't dealt out; or else for none, which makes copies. Axes that the tile hasn't are dealt nothing.
    ///
    /// ```
    /// let mut deal = tile_layout::linear::Deal::new(&[2]);
    /// assert_eq!(deal.take(3, &[0]), [[1], [0], [0]]);
    /// ```
    pub fn take(&mut self, bits: u32, axes: &[usize]) -> Vec<Vec<u64>> {
        (0..bits).map(|_| self.next(axes)).collect()
    }

    fn next(&mut self, axes: &[usize]) -> Position {
        let mut position = vec![0; self.shape.len()];
        let left = |&&axis: &&usize| self.shape.get(axis).is_some_and(|&extent| self.taken[axis] < extent);
        let fits = |&&axis: &&usize| {
            let extent = u128::from(self.shape[axis]);
            let covered = extent.next_multiple_of(2 * u128::from(self.taken[axis]));
            4 * covered <= 5 * extent
        };
        let axis = axes.iter().filter(left).find(fits).or_else(|| axes.iter().find(left));
        if let Some(&axis) = axis {
            position[axis] = self.taken[axis];
            self.taken[axis] = self.taken[axis].saturating_mul(2);
        }
        position
    }
}
