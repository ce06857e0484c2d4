//! Lists of indices as Rust writes them: tuples of numbers and ranges.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use tile_layout::Index;

/// What names a part of a tensor: a number, a range, a [`tile_layout::Index`], or a tuple, array or slice of these, one per
/// axis. A number drops its axis; negative ones count from the end; ranges are clipped as in Python.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::layout::Index;
/// use tile::{Device, Tensor};
/// let x = Tensor::from_vec(&Device::cpu(), (0..24).collect(), [2, 3, 4])?;
/// assert_eq!(x.slice(1)?.shape(), [3, 4]);
/// assert_eq!(x.slice((.., 1..3, -1))?.to_vec()?, [7, 11, 19, 23]);
/// assert_eq!(x.slice((..=0, 1..=-1, 3))?.to_vec()?, [7, 11]);
/// assert_eq!(x.slice((Index::Ellipsis, Index::slice(None, None, -2)))?.shape(), [2, 3, 2]);
/// # Ok::<(), tile::Error>(())
/// ```
pub trait Indices {
    /// One entry per axis.
    fn list(self) -> Vec<Index>;
}

macro_rules! single {
    ($($entry:ty),*) => { $(
        impl Indices for $entry {
            fn list(self) -> Vec<Index> {
                vec![self.into()]
            }
        }
    )* };
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(
            single!($number, Range<$number>, RangeFrom<$number>, RangeTo<$number>);
            single!(RangeInclusive<$number>, RangeToInclusive<$number>);
        )*
    };
}

numbers!(i32, i64, usize);
single!(RangeFull, Index);

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<$($name: Into<Index>),*> Indices for ($($name,)*) {
            fn list(self) -> Vec<Index> {
                #[allow(non_snake_case, reason = "a value per type")]
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        }
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);

impl<const N: usize> Indices for [Index; N] {
    fn list(self) -> Vec<Index> {
        self.into()
    }
}

impl Indices for &[Index] {
    fn list(self) -> Vec<Index> {
        self.to_vec()
    }
}
