//! Sorting along an axis, the largest elements, and histograms.

use super::axes::checked;
use super::tile::Tile;
use super::{Int, Number};

impl<T: Number, const R: usize> Tile<T, R> {
    /// Values and positions in order.
    fn sorted(self, axis: usize, descending: bool, count: usize, op: &str) -> (Self, Tile<i32, R>) {
        checked(axis, R, op);
        let extent = self.shape()[axis];
        assert!(
            (1..=extent).contains(&count),
            "`{op}` takes {count} elements along axis {axis} of {:?}, which has {extent}",
            self.shape()
        );
        let [values, positions] = self.array().sort(axis, descending, count);
        (Tile::hold(values), Tile::hold(positions))
    }

    /// Every line along `axis` in ascending order. −0 and +0 are equal, NaN comes last, and equal elements keep
    /// their order, so every target gives the same bits.
    ///
    /// A line of N elements takes about N·log²N comparisons, by a network; of 64-bit elements N² on the CPU.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 1>::iota([5], 0) * 3 % 5;
    /// assert_eq!(x.to_vec(), [0, 3, 1, 4, 2]);
    /// assert_eq!(x.sort(0).to_vec(), [0, 1, 2, 3, 4]);
    /// ```
    pub fn sort(self, axis: usize) -> Self {
        self.whole_line(axis, false, "sort").0
    }

    /// Every line along `axis` in descending order: NaN comes first, and equal elements keep their order. Cost and
    /// order are those of [`Self::sort`].
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// assert_eq!(Tile::<i32, 1>::iota([3], 0).sort_descending(0).to_vec(), [2, 1, 0]);
    /// ```
    pub fn sort_descending(self, axis: usize) -> Self {
        self.whole_line(axis, true, "sort_descending").0
    }

    /// Where along `axis` the elements of [`Self::sort`] come from.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 1>::iota([4], 0) % 2;
    /// assert_eq!(x.argsort(0).to_vec(), [0, 2, 1, 3]);
    /// ```
    pub fn argsort(self, axis: usize) -> Tile<i32, R> {
        self.whole_line(axis, false, "argsort").1
    }

    /// Where along `axis` the elements of [`Self::sort_descending`] come from.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 1>::iota([4], 0) % 2;
    /// assert_eq!(x.argsort_descending(0).to_vec(), [1, 3, 0, 2]);
    /// ```
    pub fn argsort_descending(self, axis: usize) -> Tile<i32, R> {
        self.whole_line(axis, true, "argsort_descending").1
    }

    fn whole_line(self, axis: usize, descending: bool, op: &str) -> (Self, Tile<i32, R>) {
        checked(axis, R, op);
        self.sorted(axis, descending, self.shape()[axis], op)
    }

    /// The `count` largest elements of every line along `axis`, the largest first, and where they are. NaN counts
    /// as the largest; of equal elements the first comes first. Costs what [`Self::sort`] costs, and less where
    /// `count` is small, but for elements of 64 bits on CPUs.
    ///
    /// In a kernel `count` is a literal or a const parameter, because it is an extent.
    ///
    /// # Panics
    /// If the tile has no such axis, or fewer elements along it; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<f32, 1>::iota([5], 0) * 3.0 % 5.0;
    /// let (values, positions) = x.top_k(2, 0);
    /// assert_eq!((values.to_vec(), positions.to_vec()), (vec![4.0, 3.0], vec![3, 1]));
    /// ```
    pub fn top_k(self, count: usize, axis: usize) -> (Self, Tile<i32, R>) {
        self.sorted(axis, true, count, "top_k")
    }
}

impl<T: Int, const R: usize> Tile<T, R> {
    /// How many elements are 0, 1, … `bins − 1`. Other elements are not counted.
    ///
    /// In a kernel `bins` is a literal or a const parameter, because it is an extent. On GPUs a thread counts for
    /// its bins by reading the whole tile.
    ///
    /// # Panics
    /// If `bins` is 0; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 1>::iota([6], 0) % 4 - 1;
    /// assert_eq!(x.histogram(2).to_vec(), [2, 1]);
    /// ```
    pub fn histogram(self, bins: usize) -> Tile<i32, 1> {
        assert!(bins > 0, "a histogram needs a bin");
        Tile::hold(self.array().histogram(bins))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "`top_k` takes 4 elements along axis 1 of [2, 3], which has 3")]
    fn too_many_elements_are_named() {
        Tile::<f32, 2>::zeros([2, 3]).top_k(4, 1);
    }

    #[test]
    fn lines_are_sorted_on_their_own() {
        let x = Tile::<i32, 2>::iota([2, 3], 1) * 2 - Tile::<i32, 2>::iota([2, 1], 0) * 10;
        assert_eq!(x.sort_descending(1).to_vec(), [4, 2, 0, -6, -8, -10]);
        assert_eq!(x.sort(0).to_vec(), [-10, -8, -6, 0, 2, 4]);
        assert_eq!(x.argsort(0).to_vec(), [1, 1, 1, 0, 0, 0]);
    }
}
