//! Reductions as methods of tiles, made of the rows of [`tile_ir::reductions`]; and the table of scans, which keep every
//! partial result.

use super::axes::{Axes, checked};
use super::tile::Tile;
use super::{Float, Int, Number};
use tile_ir::ops::{ReduceOp, ScanMode};

/// The method of a row, by the domain of its elements.
macro_rules! reduction {
    (Number $($row:tt)*) => { reduction! { [T: Number, const R: usize] T $($row)* } };
    (Float $($row:tt)*) => { reduction! { [T: Float, const R: usize] T $($row)* } };
    (Int $($row:tt)*) => { reduction! { [T: Int, const R: usize] T $($row)* } };
    (Bool $($row:tt)*) => { reduction! { [const R: usize] bool $($row)* } };
    ([$($bounds:tt)*] $element:ty, $op:ident $method:ident $doc:literal) => {
        impl<$($bounds)*> Tile<$element, R> {
            #[doc = $doc]
            ///
            /// Along `axis`, or along several, which stay with extent 1.
            ///
            /// # Panics
            /// If the tile has no such axis; in a kernel that is a compile error.
            pub fn $method(self, axis: impl Axes) -> Self {
                self.reduce(ReduceOp::$op, axis)
            }
        }
    };
}

macro_rules! reducing_methods {
    ($($op:ident $name:ident by $method:ident joins $combine:ident of $domain:ident, $doc:literal;)*) => {
        $(reduction! { $domain, $op $method $doc })*
    };
}

tile_ir::reductions!(reducing_methods);

macro_rules! scans {
    ($($op:ident $doc:literal, $start:literal: $inclusive:ident $reverse:ident $exclusive:ident $exclusive_reverse:ident;)*) => {
        impl<T: Number, const R: usize> Tile<T, R> {
            fn scan(self, op: ReduceOp, axis: usize, mode: usize) -> Self {
                checked(axis, R, op.scan_method().unwrap_or("scan"));
                Tile::hold(self.array().scan(op, axis, ScanMode::ALL[mode]))
            }

            $(
                #[doc = concat!("The ", $doc, " so far along `axis`: of the element and those before it.")]
                ///
                /// Integers wrap. f16 and bf16 are joined in f32 and rounded where a result is kept. Here and on CPUs
                /// floats are joined one after the other; on GPUs all threads of a block join parts of lines, in an
                /// order that a tile's extents and the target decide. [`scan()`](super::scan) with a closure has the
                /// same bits everywhere; there a line is one chain, run by one thread.
                ///
                /// # Panics
                /// If the tile has no such axis; in a kernel that is a compile error.
                pub fn $inclusive(self, axis: usize) -> Self {
                    self.scan(ReduceOp::$op, axis, 0)
                }

                #[doc = concat!("The ", $doc, " of the element and those after it along `axis`, from the last on.")]
                #[doc = concat!("Otherwise [`Self::", stringify!($inclusive), "`].")]
                pub fn $reverse(self, axis: usize) -> Self {
                    self.scan(ReduceOp::$op, axis, 1)
                }

                #[doc = concat!("The ", $doc, " of the elements before each along `axis`, from ", $start, " on.")]
                #[doc = concat!("Otherwise [`Self::", stringify!($inclusive), "`].")]
                pub fn $exclusive(self, axis: usize) -> Self {
                    self.scan(ReduceOp::$op, axis, 2)
                }

                #[doc = concat!("The ", $doc, " of the elements after each along `axis`, with ", $start, " as the last.")]
                #[doc = concat!("Otherwise [`Self::", stringify!($inclusive), "`].")]
                pub fn $exclusive_reverse(self, axis: usize) -> Self {
                    self.scan(ReduceOp::$op, axis, 3)
                }
            )*
        }

        #[cfg(test)]
        type Scan = fn(Tile<i32, 1>, usize) -> Tile<i32, 1>;

        #[cfg(test)]
        const SCANS: &[(ReduceOp, [(&str, Scan); 4])] = &[$((
            ReduceOp::$op,
            [
                (stringify!($inclusive), Tile::$inclusive),
                (stringify!($reverse), Tile::$reverse),
                (stringify!($exclusive), Tile::$exclusive),
                (stringify!($exclusive_reverse), Tile::$exclusive_reverse),
            ],
        ),)*];
    };
}

scans! {
    Sum "sum", "0": cumsum cumsum_reverse cumsum_exclusive cumsum_exclusive_reverse;
    Prod "product", "1": cumprod cumprod_reverse cumprod_exclusive cumprod_exclusive_reverse;
    Max "largest element (NaN is ignored where there is a number)", "−∞ or the smallest integer": cummax cummax_reverse cummax_exclusive cummax_exclusive_reverse;
    Min "smallest element (NaN is ignored where there is a number)", "∞ or the largest integer": cummin cummin_reverse cummin_exclusive cummin_exclusive_reverse;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scan_has_its_methods() {
        let x = Tile::<i32, 1>::iota([4], 0) + 1;
        for &op in ReduceOp::ALL.iter().filter(|op| op.scan_method().is_some()) {
            let (_, methods) = SCANS.iter().find(|row| row.0 == op).expect("a row per scan");
            for (&mode, (name, method)) in ScanMode::ALL.iter().zip(methods) {
                assert_eq!(ReduceOp::from_scan_method(name), Some((op, mode)));
                assert_eq!(method(x, 0).to_vec(), Tile::<i32, 1>::hold(x.array().scan(op, 0, mode)).to_vec());
            }
        }
        assert_eq!(x.cumsum_exclusive_reverse(0).to_vec(), [9, 7, 4, 0]);
        assert_eq!(x.cummax_reverse(0).to_vec(), [4; 4]);
    }

    #[test]
    fn reductions_join_along_their_axis() {
        let x = Tile::<f32, 2>::iota([2, 3], 1) + 1.0;
        assert_eq!(x.sum(1).to_vec(), [6.0, 6.0]);
        assert_eq!(x.prod(1).to_vec(), [6.0, 6.0]);
        assert_eq!(x.prod(0).to_vec(), [1.0, 4.0, 9.0]);
        assert_eq!((x.max(1).to_vec(), x.min(1).to_vec()), (vec![3.0, 3.0], vec![1.0, 1.0]));
        let is_two = crate::kernel::eq(x, 2.0);
        assert_eq!(is_two.any(1).to_vec(), [true, true]);
        assert_eq!(is_two.all(0).to_vec(), [false, true, false]);
    }

    #[test]
    fn several_axes_are_one() {
        let x = Tile::<i32, 1>::iota([24], 0).reshape([2, 3, 4]);
        assert_eq!(x.sum([0, 1]).to_vec(), [60, 66, 72, 78]);
        assert_eq!(x.sum([2, 0]).to_vec(), x.sum([0, 2]).to_vec());
        assert_eq!(x.sum([0, 2]).shape(), [1, 3, 1]);
        assert_eq!(x.max([0, 1, 2]).to_vec(), [23]);
        assert_eq!((x.reduce_and([1, 2]).to_vec(), x.reduce_xor(2).to_vec()), (vec![0, 0], vec![0; 6]));
    }

    #[test]
    #[should_panic(expected = "axis 1 of `sum` is named twice")]
    fn an_axis_is_named_once() {
        Tile::<f32, 2>::zeros([2, 3]).sum([1, 1]);
    }
}
