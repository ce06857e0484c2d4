//! Methods of tiles that are several ops, in the steps in which the front end lowers them.

use super::tile::Tile;
use super::{Element, Float, Number, eq, select};

impl<T: Float, const R: usize> Tile<T, R> {
    /// The mean along `axis`, which stays with extent 1: the sum, rounded, divided by the number of elements.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// assert_eq!(Tile::<f32, 1>::iota([5], 0).mean(0).to_vec(), [2.0]);
    /// ```
    pub fn mean(self, axis: usize) -> Self {
        let count = self.shape().get(axis).copied().unwrap_or(1);
        self.sum(axis) / T::from_int(count as i128)
    }
}

impl<T: Number, const R: usize> Tile<T, R> {
    /// Where along `axis` the largest element is: the first one, NaN ignored; 0 where all are NaN. The axis stays
    /// with extent 1.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 1>::iota([5], 0) % 3;
    /// assert_eq!((x.argmax(0).to_vec(), x.argmin(0).to_vec()), (vec![2], vec![0]));
    /// ```
    pub fn argmax(self, axis: usize) -> Tile<i32, R> {
        position_of(self, self.max(axis), axis)
    }

    /// Where along `axis` the smallest element is: the first one, NaN ignored; 0 where all are NaN. The axis stays
    /// with extent 1.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::full([2], f32::NAN);
    /// assert_eq!(x.argmin(0).to_vec(), [0]);
    /// ```
    pub fn argmin(self, axis: usize) -> Tile<i32, R> {
        position_of(self, self.min(axis), axis)
    }
}

fn position_of<T: Element, const R: usize>(x: Tile<T, R>, extreme: Tile<T, R>, axis: usize) -> Tile<i32, R> {
    let found = eq(x, extreme);
    let beyond = x.shape()[axis] as i32;
    let first = select(found, Tile::iota(x.shape(), axis), beyond).min(axis);
    // Only where all elements are NaN is none of them the extreme one.
    select(eq(first, beyond), 0, first)
}
