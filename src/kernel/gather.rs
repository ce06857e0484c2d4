//! `gather`: elements of a tensor at the places that tiles of indices name.

use super::together::{Numbers, at, together};
use super::views::TensorView;
use super::{Element, Int, Tile};
use tile_layout::multi_index;

/// An index along one axis: a tile of integers of rank `S`, or one integer for every element.
pub trait GatherIndex<const S: usize> {
    #[doc(hidden)]
    fn extents(&self) -> [usize; S];
    #[doc(hidden)]
    fn numbers(self) -> Vec<i128>;
}

impl<I: Int, const S: usize> GatherIndex<S> for Tile<I, S> {
    fn extents(&self) -> [usize; S] {
        self.shape()
    }

    fn numbers(self) -> Vec<i128> {
        self.to_vec().into_iter().map(I::to_int).collect()
    }
}

macro_rules! scalars {
    ($($ty:ident)*) => { $(
        impl<const S: usize> GatherIndex<S> for $ty {
            fn extents(&self) -> [usize; S] {
                [1; S]
            }

            fn numbers(self) -> Vec<i128> {
                vec![self as i128]
            }
        }
    )* };
}

scalars!(i8 i16 i32 i64 u8 u16 u32 u64 usize);

/// One index per axis of a tensor of rank `R`: an array, or a tuple where some are tiles and some are numbers.
pub trait GatherIndices<const R: usize, const S: usize> {
    #[doc(hidden)]
    fn axes(self) -> Vec<Numbers<i128, S>>;
}

impl<I: GatherIndex<S>, const R: usize, const S: usize> GatherIndices<R, S> for [I; R] {
    fn axes(self) -> Vec<Numbers<i128, S>> {
        self.into_iter().map(|index| (index.extents(), index.numbers())).collect()
    }
}

macro_rules! tuples {
    ($($rank:literal: $($name:ident)*;)*) => { $(
        impl<const S: usize, $($name: GatherIndex<S>),*> GatherIndices<$rank, S> for ($($name,)*) {
            #[allow(non_snake_case)]
            fn axes(self) -> Vec<Numbers<i128, S>> {
                let ($($name,)*) = self;
                vec![$(($name.extents(), $name.numbers())),*]
            }
        }
    )* };
}

// As many as a tensor has axes.
tuples! {
    1: A;
    2: A B;
    3: A B C;
    4: A B C D;
    5: A B C D E;
    6: A B C D E F;
}

impl<T: Element, const R: usize> TensorView<'_, T, R> {
    /// The elements at `[i₀[k], i₁[k], …]` for every `k` of the index tiles, and `pad` where there is none:
    /// outside the tensor, which negative indices are. Index tiles of one rank, and numbers, are broadcast to
    /// one shape, the result's. Where all are numbers, a kernel's call gives the element, which is a number, too.
    ///
    /// ```
    /// use tile::prelude::*;
    ///
    /// /// y[i] = x[rows[i], 1], and −1 where there is no such row.
    /// #[tile_kernel]
    /// fn pick<const B: usize>(x: &Tensor<f32, m, k>, rows: &Tensor<i32, n>, y: &mut Tensor<f32, n>) {
    ///     let rows = rows.partition_view([B]);
    ///     let mut y = y.partition_view_mut([B]);
    ///     let rows = rows.load_masked(y.index());
    ///     y.store_masked(x.gather_or(-1.0, (rows, 1)));
    /// }
    ///
    /// # fn main() -> tile::Result<()> {
    /// let device = Device::reference();
    /// let x = Tensor::from_slice(&device, &[0.0, 1.0, 10.0, 11.0, 20.0, 21.0], [3, 2])?;
    /// let rows = Tensor::from_slice(&device, &[2, 0, -1, 3], [4])?;
    /// let mut y = Tensor::zeros(&device, [4])?;
    /// pick::<4>(&x, &rows, &mut y).launch()?;
    /// assert_eq!(y.to_vec()?, [21.0, 1.0, -1.0, -1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the index tiles can't be broadcast together; in a kernel that is a compile error.
    pub fn gather_or<const S: usize>(&self, pad: T, indices: impl GatherIndices<R, S>) -> Tile<T, S> {
        let axes = indices.axes();
        let shape = together(axes.iter().map(|(shape, _)| shape), "gather");
        let places = self.seen().places();
        let elements = (0..shape.iter().product()).map(|i| {
            let place = multi_index(i, &shape);
            let index = axes.iter().map(|numbers| i64::try_from(at(numbers, &place)).ok());
            let position = index.collect::<Option<Vec<i64>>>().and_then(|index| places.position(&index));
            position.map_or(pad, |position| self.element(position))
        });
        Tile::of_values(shape, &elements.collect::<Vec<_>>())
    }
}

impl<T: Element, const R: usize> TensorView<'_, T, R> {
    /// [`TensorView::gather_or`] with zeros, or `false`, where there is no element.
    pub fn gather<const S: usize>(&self, indices: impl GatherIndices<R, S>) -> Tile<T, S> {
        self.gather_or(T::default(), indices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_broadcast() {
        let data: Vec<i32> = (0..12).collect();
        let x = TensorView::<i32, 2>::over(&data, [3, 4]);
        let rows = Tile::<i32, 2>::iota([4, 1], 0) - 1;
        let columns = Tile::<u8, 2>::iota([1, 2], 1) * 3;
        assert_eq!(x.gather_or(-7, (rows, columns)).to_vec(), [-7, -7, 0, 3, 4, 7, 8, 11]);
        assert_eq!(x.t().gather((columns, 1)).to_vec(), [4, 7]);
        assert_eq!(x.gather([rows, rows]).to_vec(), [0, 0, 5, 10]);
    }
}
