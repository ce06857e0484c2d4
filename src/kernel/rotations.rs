//! What is rotated by what: a tile or an integer by as many bits as an integer or a tile says.

use super::compare::Pair;
use super::either::{Shift, ShiftAmount};
use super::scalar::cast;
use super::{Int, Tile};
use tile_ir::ops::BinaryOp;

/// What `rotate_left(x, by)` takes: a tile by a tile of its type or an integer of any, an integer by one of any or a tile
/// of its type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` isn't rotated by `{By}`",
    label = "needs integers, or tiles of integers of one element type and rank",
    note = "convert one side with `.cast()` or `as`"
)]
pub trait Rotated<By> {
    /// The type of `rotate_left(x, by)`.
    type Output;

    #[doc(hidden)]
    fn rotate(self, op: BinaryOp, by: By) -> Self::Output;
}

#[diagnostic::do_not_recommend]
impl<T: Int, const R: usize, By: ShiftAmount<T, R>> Rotated<By> for Tile<T, R> {
    type Output = Tile<T, R>;

    fn rotate(self, op: BinaryOp, by: By) -> Tile<T, R> {
        by.shift(op, self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Shift, By: Shift> Rotated<By> for T {
    type Output = T;

    fn rotate(self, op: BinaryOp, by: By) -> T {
        self.binary(op, cast(by))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Int, const R: usize> Rotated<Tile<T, R>> for T {
    type Output = Tile<T, R>;

    fn rotate(self, op: BinaryOp, by: Tile<T, R>) -> Tile<T, R> {
        Pair::binary(self, op, by)
    }
}
