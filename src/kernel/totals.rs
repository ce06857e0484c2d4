//! What iterators over arrays of values come to: their sum, product, largest and smallest. `#[tile_kernel]` and `#[tile_fn]`
//! put these in place of the iterators' own methods, whose integers don't wrap and which know neither tiles nor the order of
//! floats.
//!
//! ```
//! use tile::kernel::{Tile, totals};
//!
//! assert_eq!(totals::sum([i32::MAX, 1]), i32::MIN);
//! assert_eq!(totals::max([1.0, f32::NAN, 2.0]), Some(2.0));
//! let tiles = [Tile::full([2], 3.0f32), Tile::<f32, 1>::arange([2], 2.0, 2.0)];
//! assert_eq!(totals::max(tiles).unwrap().to_vec(), [3.0, 4.0]);
//! assert_eq!(totals::product(tiles).to_vec(), [6.0, 12.0]);
//! ```

use super::compare::Pair;
use super::{Element, Tile};
use tile_ir::ops::BinaryOp;
use tile_runtime::element::Arithmetic;

/// What is added, multiplied and compared: tiles of one shape, or numbers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a tile nor a number, so an iterator of it has no sum, product, largest or smallest",
    label = "take one part of each: `.map(|(a, _)| a)`"
)]
pub trait Total: Copy {
    #[doc(hidden)]
    fn with(self, op: BinaryOp, other: Self) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Arithmetic> Total for T {
    fn with(self, op: BinaryOp, other: Self) -> Self {
        self.binary(op, other)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, const R: usize> Total for Tile<T, R> {
    fn with(self, op: BinaryOp, other: Self) -> Self {
        Pair::binary(self, op, other)
    }
}

/// The sum of an iterator's values, the first to the last.
///
/// # Panics
/// If there is none; in a kernel that is a compile error.
pub fn sum<V: Total>(values: impl IntoIterator<Item = V>) -> V {
    folded(BinaryOp::Add, values).expect("the sum of no value has no shape")
}

/// The product of an iterator's values, the first to the last.
///
/// # Panics
/// If there is none; in a kernel that is a compile error.
pub fn product<V: Total>(values: impl IntoIterator<Item = V>) -> V {
    folded(BinaryOp::Mul, values).expect("the product of no value has no shape")
}

/// The largest of an iterator's values, of tiles element by element; NaN is ignored.
pub fn max<V: Total>(values: impl IntoIterator<Item = V>) -> Option<V> {
    folded(BinaryOp::Max, values)
}

/// The smallest of an iterator's values, of tiles element by element; NaN is ignored.
pub fn min<V: Total>(values: impl IntoIterator<Item = V>) -> Option<V> {
    folded(BinaryOp::Min, values)
}

fn folded<V: Total>(op: BinaryOp, values: impl IntoIterator<Item = V>) -> Option<V> {
    values.into_iter().reduce(|a, b| a.with(op, b))
}
