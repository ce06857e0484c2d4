//! What may stand on the two sides of a function of two values: tile and tile, tile and scalar, scalar and
//! tile, two scalars. Comparisons, which `#[tile_kernel]` also makes out of `<`, `==` and so on.

use super::tile::{scalar, scalar_value};
use super::{Element, Number, Tile};
use tile_ir::Array;
use tile_ir::ops::{BinaryOp, Predicate};
use tile_runtime::element::Scalar;

/// Two values that an elementwise function of two values accepts. Axes of extent 1 and scalars are broadcast.
///
/// The order of the implementations below makes literals work: in `max(x, 0.0)` the literal takes the
/// element type of `x`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{Right}` are not two values of one element type and rank",
    label = "convert one side with `.cast()` or `.reshape()`",
    note = "in a `#[tile_fn]` a literal of `bf16`, `f16` or 8 bits is `bf16::of(2.0)`"
)]
pub trait Pair<Right>: Sized {
    /// The type of `max(left, right)`.
    type Output;
    /// The type of `lt(left, right)`.
    type Mask;

    #[doc(hidden)]
    fn binary(self, op: BinaryOp, right: Right) -> Self::Output;

    #[doc(hidden)]
    fn compare(self, predicate: Predicate, right: Right) -> Self::Mask;
}

#[diagnostic::do_not_recommend]
impl<T: Element, const R: usize> Pair<Tile<T, R>> for Tile<T, R> {
    type Output = Tile<T, R>;
    type Mask = Tile<bool, R>;

    fn binary(self, op: BinaryOp, right: Tile<T, R>) -> Tile<T, R> {
        let [left, right] = together(op.operator().unwrap_or(op.name()), [self, right]);
        Tile::hold(left.binary(op, &right))
    }

    fn compare(self, predicate: Predicate, right: Tile<T, R>) -> Tile<bool, R> {
        let [left, right] = together(predicate.symbol(), [self, right]);
        Tile::hold(left.compare(predicate, &right))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, const R: usize> Pair<T> for Tile<T, R> {
    type Output = Tile<T, R>;
    type Mask = Tile<bool, R>;

    fn binary(self, op: BinaryOp, right: T) -> Tile<T, R> {
        self.binary(op, Tile::full(self.shape(), right))
    }

    fn compare(self, predicate: Predicate, right: T) -> Tile<bool, R> {
        self.compare(predicate, Tile::full(self.shape(), right))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, const R: usize> Pair<Tile<T, R>> for T {
    type Output = Tile<T, R>;
    type Mask = Tile<bool, R>;

    fn binary(self, op: BinaryOp, right: Tile<T, R>) -> Tile<T, R> {
        Tile::full(right.shape(), self).binary(op, right)
    }

    fn compare(self, predicate: Predicate, right: Tile<T, R>) -> Tile<bool, R> {
        Tile::full(right.shape(), self).compare(predicate, right)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Scalar> Pair<T> for T {
    type Output = T;
    type Mask = bool;

    fn binary(self, op: BinaryOp, right: T) -> T {
        scalar_value(&scalar(self).binary(op, &scalar(right)))
    }

    fn compare(self, predicate: Predicate, right: T) -> bool {
        scalar_value(&scalar(self).compare(predicate, &scalar(right)))
    }
}

/// The arrays of tiles, broadcast to their common shape.
///
/// # Panics
/// If there is no common shape.
pub(super) fn together<T: Element, const R: usize, const N: usize>(
    op: &str,
    tiles: [Tile<T, R>; N],
) -> [std::rc::Rc<Array>; N] {
    let shape = common_shape(op, &tiles.map(Tile::shape));
    tiles.map(|tile| if tile.shape() == shape { tile.array() } else { tile.broadcast(shape).array() })
}

/// The shape that these shapes broadcast to.
///
/// # Panics
/// If there is none.
pub(super) fn common_shape<const R: usize>(op: &str, shapes: &[[usize; R]]) -> [usize; R] {
    let mut common = [1; R];
    for shape in shapes {
        for (axis, &extent) in shape.iter().enumerate() {
            assert!(
                extent == common[axis] || extent == 1 || common[axis] == 1,
                "`{op}` mixes shapes {:?} and {shape:?}: along axis {axis} they are neither equal nor 1",
                shapes[0]
            );
            common[axis] = common[axis].max(extent);
        }
    }
    common
}

macro_rules! comparisons {
    ($($predicate:ident $name:ident $bound:ident, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            ///
            /// In a kernel, write the operator: `#[tile_kernel]` replaces it where a side is a tile.
            pub fn $name<Left: Pair<Right>, Right>(left: Left, right: Right) -> Left::Mask {
                left.compare(Predicate::$predicate, right)
            }
        )*

        $(
            impl<T: $bound, const R: usize> Tile<T, R> {
                #[doc = $doc]
                pub fn $name<Right>(self, right: Right) -> Tile<bool, R>
                where
                    Self: Pair<Right, Mask = Tile<bool, R>>,
                {
                    self.compare(Predicate::$predicate, right)
                }
            }
        )*

        #[cfg(test)]
        type Comparison = fn(Tile<f32, 1>, Tile<f32, 1>) -> Tile<bool, 1>;

        #[cfg(test)]
        const COMPARISONS: &[(Predicate, &str, Comparison, Comparison)] = &[$((
            Predicate::$predicate,
            stringify!($name),
            $name,
            |left, right| left.$name(right),
        ),)*];
    };
}

comparisons! {
    Eq eq Element, "Where elements are equal.";
    Ne ne Element, "Where elements are not equal; true on NaN.";
    Lt lt Number, "Where elements are less; false on NaN.";
    Le le Number, "Where elements are less or equal; false on NaN.";
    Gt gt Number, "Where elements are greater; false on NaN.";
    Ge ge Number, "Where elements are greater or equal; false on NaN.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_predicate_has_its_function_and_method() {
        let (a, b) = (Tile::<f32, 1>::iota([3], 0), Tile::full([3], 1.0f32));
        for &predicate in Predicate::ALL {
            let Some(&(_, name, function, method)) = COMPARISONS.iter().find(|row| row.0 == predicate) else {
                panic!("no function for {predicate:?}")
            };
            assert_eq!(name, predicate.name());
            let expected: Vec<bool> = [0.0, 1.0, 2.0].map(|x| predicate.holds(x, 1.0)).into();
            assert_eq!(function(a, b).to_vec(), expected);
            assert_eq!(method(a, b).to_vec(), expected);
        }
    }

    #[test]
    fn literals_take_the_element_type_of_the_tile() {
        let x = Tile::<f32, 1>::iota([2], 0);
        assert_eq!(lt(x, 1.0).to_vec(), [true, false]);
        assert_eq!(lt(0.0, x).to_vec(), [false, true]);
        assert_eq!(x.ge(1.0).to_vec(), [false, true]);
        assert!(lt(1, 2));
    }

    #[test]
    #[should_panic(
        expected = "`<` mixes shapes [2, 4] and [3, 4]: along axis 0 they are neither equal nor 1"
    )]
    fn wrong_shapes_are_named() {
        lt(Tile::<f32, 2>::zeros([2, 4]), Tile::zeros([3, 4]));
    }
}
