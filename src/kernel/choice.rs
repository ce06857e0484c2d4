//! [`select()`]: one of two values, by a condition.

use super::compare::common_shape;
use super::{Element, Tile};
use tile_runtime::element::Scalar;

/// A condition of [`select()`] with these two choices. Each of the three is a tile or a scalar; axes of extent 1 and
/// scalars are broadcast.
#[diagnostic::on_unimplemented(
    message = "`select` doesn't choose between `{A}` and `{B}` by `{Self}`",
    label = "needs a `bool` or a tile of `bool`, and two values of one element type and rank",
    note = "convert one side: a number with `as`, a tile with `.cast()` or `.reshape()`"
)]
pub trait Condition<A, B> {
    /// The type of `select(condition, a, b)`.
    type Output;

    #[doc(hidden)]
    fn choose(self, a: A, b: B) -> Self::Output;
}

#[diagnostic::do_not_recommend]
impl<T: Scalar> Condition<T, T> for bool {
    type Output = T;

    fn choose(self, a: T, b: T) -> T {
        if self { a } else { b }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, const R: usize> Condition<T, T> for Tile<bool, R> {
    type Output = Tile<T, R>;

    fn choose(self, a: T, b: T) -> Tile<T, R> {
        self.choose(Tile::full(self.shape(), a), Tile::full(self.shape(), b))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, const R: usize> Condition<Tile<T, R>, Tile<T, R>> for Tile<bool, R> {
    type Output = Tile<T, R>;

    fn choose(self, a: Tile<T, R>, b: Tile<T, R>) -> Tile<T, R> {
        let shape = common_shape("select", &[self.shape(), a.shape(), b.shape()]);
        let (a, b) = (a.broadcast(shape).array(), b.broadcast(shape).array());
        Tile::hold(tile_ir::Array::select(&self.broadcast(shape).array(), &a, &b))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, const R: usize> Condition<Tile<T, R>, Tile<T, R>> for bool {
    type Output = Tile<T, R>;

    fn choose(self, a: Tile<T, R>, b: Tile<T, R>) -> Tile<T, R> {
        Tile::full([1; R], self).choose(a, b)
    }
}

macro_rules! conditions_of_tile_and_scalar {
    ($($condition:ty, [$($parameters:tt)*];)*) => { $(
        #[diagnostic::do_not_recommend]
        impl<T: Element, $($parameters)*> Condition<Tile<T, R>, T> for $condition {
            type Output = Tile<T, R>;

            fn choose(self, a: Tile<T, R>, b: T) -> Tile<T, R> {
                self.choose(a, Tile::full([1; R], b))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Element, $($parameters)*> Condition<T, Tile<T, R>> for $condition {
            type Output = Tile<T, R>;

            fn choose(self, a: T, b: Tile<T, R>) -> Tile<T, R> {
                self.choose(Tile::full([1; R], a), b)
            }
        }
    )* };
}

conditions_of_tile_and_scalar! {
    bool, [const R: usize];
    Tile<bool, R>, [const R: usize];
}

/// `a` where the condition holds, else `b`, elementwise. Each of the three is a tile or a scalar; axes of extent 1
/// and scalars are broadcast. Of three scalars it is a scalar.
///
/// ```
/// use tile::prelude::*;
///
/// let x = Tile::<f32, 1>::iota([3], 0) - 1.0;
/// assert_eq!(select(x.lt(0.0), 0.0, x).to_vec(), [0.0, 0.0, 1.0]);
/// assert_eq!(select(2 > 1, x, 0.0).to_vec(), x.to_vec());
/// assert_eq!(select(2 > 1, 5, 6), 5);
/// ```
///
/// # Panics
/// If the shapes can't be broadcast together; in a kernel that is a compile error.
pub fn select<Mask: Condition<A, B>, A, B>(condition: Mask, a: A, b: B) -> Mask::Output {
    condition.choose(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn select_broadcasts_and_types_its_literals() {
        let x = Tile::<f32, 2>::iota([2, 2], 1);
        let rows = Tile::<i32, 2>::iota([2, 1], 0).eq(0);
        assert_eq!(select(rows, x, -1.0).to_vec(), [0.0, 1.0, -1.0, -1.0]);
        let literals: Tile<f32, 2> = select(rows, 1.0, 0.0);
        assert_eq!(literals.to_vec(), [1.0, 0.0]);
    }
}
