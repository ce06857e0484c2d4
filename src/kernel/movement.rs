//! Methods and functions that move the elements of tiles: windows, joins, pads, turns, changes of rank, gather and
//! scatter. No element is changed; every one of a result is one of an operand, or a value that fills.
//!
//! Shapes are checked by the type rules of the IR, which the front end asks too, so the messages are the same.

use super::gather::GatherIndex;
use super::tile::scalar;
use super::{Element, Int, Number, Tile};
use tile_ir::ops::{Movement, ScatterMode, result_types};
use tile_ir::{Array, Dim, Op, Type};

/// How far [`Tile::roll`] and [`Tile::shift`] move: a literal, negative to move to lower positions, or a const
/// parameter.
#[diagnostic::on_unimplemented(
    message = "elements move by a literal or a `usize`, not by `{Self}`",
    label = "write a literal such as `-1`, or a const parameter"
)]
pub trait Distance {
    #[doc(hidden)]
    fn distance(self) -> i64;
}

impl Distance for i32 {
    fn distance(self) -> i64 {
        self.into()
    }
}

impl Distance for usize {
    fn distance(self) -> i64 {
        i64::try_from(self).unwrap_or(i64::MAX)
    }
}

fn dims(numbers: impl IntoIterator<Item = usize>) -> Vec<Dim> {
    numbers.into_iter().map(|number| Dim::from(number.distance())).collect()
}

fn type_of(array: &Array) -> Type {
    match array.shape() {
        [] => Type::scalar(array.dtype()),
        shape => Type::tile(dims(shape.iter().copied()), array.dtype()),
    }
}

/// The result of an op that moves elements.
///
/// # Panics
/// If the operands don't fit it.
fn moved<T: Element, const R: usize>(op: &Op, operands: &[&Array]) -> Tile<T, R> {
    let types: Vec<Type> = operands.iter().map(|operand| type_of(operand)).collect();
    let results = result_types(op, &types).unwrap_or_else(|error| panic!("{error}"));
    let result = results[0].as_tile().expect("verified: a moved tile is a tile");
    let shape: Vec<usize> = result
        .shape
        .iter()
        .map(|dim| dim.as_const().expect("verified: extents of a tile are numbers") as usize)
        .collect();
    Tile::hold(match op {
        Op::Gather { axis } => operands[0].gather(operands[1], operands[2], *axis),
        Op::Scatter { axis, mode } => operands[0].scatter(*mode, operands[1], operands[2], *axis),
        op => Array::moved(op, operands, &shape),
    })
}

impl<T: Element, const R: usize> Tile<T, R> {
    /// The window of this shape that starts at these positions, which need not be multiples of anything.
    ///
    /// # Panics
    /// If the window reaches beyond the tile; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 1>::iota([16], 0).reshape([4, 4]);
    /// assert_eq!(x.extract([0, 2], [2, 2]).to_vec(), [2, 3, 6, 7]);
    /// ```
    pub fn extract(self, starts: [usize; R], shape: [usize; R]) -> Self {
        let op = Movement::Extract { starts: dims(starts), shape: dims(shape) };
        moved(&Op::Movement(op), &[&self.array()])
    }

    /// The tile with `part` written over it from these positions on.
    ///
    /// # Panics
    /// If the part reaches beyond the tile; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 2>::zeros([2, 3]).insert([1, 1], Tile::ones([1, 2]));
    /// assert_eq!(x.to_vec(), [0, 0, 0, 0, 1, 1]);
    /// ```
    pub fn insert(self, starts: [usize; R], part: Tile<T, R>) -> Self {
        moved(&Op::Movement(Movement::Insert { starts: dims(starts) }), &[&self.array(), &part.array()])
    }

    /// The tile in `PARTS` equal parts along `axis`, in order.
    ///
    /// # Panics
    /// If the extent isn't a multiple of the number of parts; in a kernel that is a compile error, also where a
    /// const parameter might not be one: ask for it by `#[tile_kernel(where(D % 2 == 0))]`.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let [left, right] = Tile::<i32, 2>::iota([2, 4], 1).split_even::<2>(1);
    /// assert_eq!((left.to_vec(), right.to_vec()), (vec![0, 1, 0, 1], vec![2, 3, 2, 3]));
    /// ```
    pub fn split_even<const PARTS: usize>(self, axis: usize) -> [Tile<T, R>; PARTS] {
        check_axis("split_even", axis, R);
        let (mut starts, mut shape) = ([0; R], self.shape());
        assert!(
            PARTS > 0 && shape[axis].is_multiple_of(PARTS),
            "axis {axis} of a tile of shape {shape:?} doesn't divide into {PARTS} equal parts"
        );
        shape[axis] /= PARTS;
        std::array::from_fn(|part| {
            starts[axis] = part * shape[axis];
            self.extract(starts, shape)
        })
    }

    /// This tile and then another along `axis`: [`cat`] of the two.
    ///
    /// # Panics
    /// If another axis differs; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 1>::iota([2], 0);
    /// assert_eq!(x.cat(x + 5, 0).to_vec(), [0, 1, 5, 6]);
    /// ```
    pub fn cat(self, other: Tile<T, R>, axis: usize) -> Self {
        cat([self, other], axis)
    }

    /// The tile with so many elements `value` before and after it along each axis.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 2>::ones([1, 2]).pad([(0, 1), (1, 0)], 7);
    /// assert_eq!(x.to_vec(), [7, 1, 1, 7, 7, 7]);
    /// ```
    pub fn pad(self, padding: [(usize, usize); R], value: T) -> Self {
        let (before, after) = (dims(padding.map(|pair| pair.0)), dims(padding.map(|pair| pair.1)));
        moved(&Op::Movement(Movement::Pad { before, after }), &[&self.array(), &scalar(value)])
    }

    /// The tile with `axis` backwards.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// assert_eq!(Tile::<i32, 1>::iota([3], 0).flip(0).to_vec(), [2, 1, 0]);
    /// ```
    pub fn flip(self, axis: usize) -> Self {
        moved(&Op::Movement(Movement::Flip { axis }), &[&self.array()])
    }

    /// The tile with elements moved along `axis`, to higher positions where `by` is positive; those that leave at
    /// one end come back at the other.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 1>::iota([4], 0);
    /// assert_eq!((x.roll(0, 1).to_vec(), x.roll(0, -1).to_vec()), (vec![3, 0, 1, 2], vec![1, 2, 3, 0]));
    /// ```
    pub fn roll(self, axis: usize, by: impl Distance) -> Self {
        let by = Dim::from(by.distance());
        moved(&Op::Movement(Movement::Roll { axis, by }), &[&self.array()])
    }

    /// The tile with elements moved along `axis` as by [`Tile::roll`], but with `fill` where they came from.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 1>::iota([4], 0);
    /// assert_eq!((x.shift(0, 1, -1).to_vec(), x.shift(0, -3, 0).to_vec()), (vec![-1, 0, 1, 2], vec![3, 0, 0, 0]));
    /// ```
    pub fn shift(self, axis: usize, by: impl Distance, fill: T) -> Self {
        let by = Dim::from(by.distance());
        moved(&Op::Movement(Movement::Shift { axis, by }), &[&self.array(), &scalar(fill)])
    }

    /// The tile so many times along each axis: NumPy's `tile`.
    ///
    /// # Panics
    /// If a count is 0; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 2>::iota([1, 2], 1).repeat([2, 2]);
    /// assert_eq!(x.to_vec(), [0, 1, 0, 1, 0, 1, 0, 1]);
    /// ```
    pub fn repeat(self, counts: [usize; R]) -> Self {
        moved(&Op::Movement(Movement::Repeat { counts: dims(counts) }), &[&self.array()])
    }

    /// The elements at `indices` along `axis`: for axis 0 of a matrix, `result[i, j] = self[indices[i, j], j]`
    /// (`gather` of PyTorch, `take_along_axis` of NumPy). The result has the shape of the indices, which is the
    /// tile's but along `axis`. An index outside the tile, also a negative one, gives 0.
    ///
    /// # Panics
    /// If the indices don't fit the tile; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 1>::iota([4], 0) + 10;
    /// let indices = Tile::<i32, 1>::iota([3], 0) * 2 - 1;
    /// assert_eq!(x.gather(indices, 0).to_vec(), [0, 11, 13]);
    /// ```
    pub fn gather<I: Int>(self, indices: Tile<I, R>, axis: usize) -> Self {
        self.gather_or(T::default(), indices, axis)
    }

    /// [`Tile::gather`] with `fill` where an index is outside the tile.
    ///
    /// # Panics
    /// If the indices don't fit the tile; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 1>::iota([4], 0) + 10;
    /// let indices = Tile::<i32, 1>::iota([4], 0) - 1;
    /// assert_eq!(x.gather_or(7, indices, 0).to_vec(), [7, 10, 11, 12]);
    /// ```
    pub fn gather_or<I: Int>(self, fill: T, indices: Tile<I, R>, axis: usize) -> Self {
        moved(&Op::Gather { axis }, &[&self.array(), &indices.array(), &scalar(fill)])
    }

    /// The tile with `values` written at `indices` along `axis`: for axis 0 of a matrix,
    /// `self[indices[i, j], j] = values[i, j]`. Of several values for one place the last one stays; an index
    /// outside the tile writes nothing. Indices have the tile's shape but along `axis`, values that of the indices.
    ///
    /// On GPUs every element looks through the indices along its line, so the cost grows with their number there.
    ///
    /// # Panics
    /// If indices or values don't fit; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let indices = Tile::<i32, 1>::iota([4], 0) / 2;
    /// let x = Tile::<i32, 1>::zeros([3]).scatter(indices, Tile::iota([4], 0), 0);
    /// assert_eq!(x.to_vec(), [1, 3, 0]);
    /// ```
    pub fn scatter<I: Int>(self, indices: Tile<I, R>, values: Tile<T, R>, axis: usize) -> Self {
        let op = Op::Scatter { axis, mode: ScatterMode::Write };
        moved(&op, &[&self.array(), &indices.array(), &values.array()])
    }

    /// The slice at a run-time position along `axis`, which stays with extent 1; all 0 where the position, an integer of
    /// any type, is outside the tile.
    ///
    /// # Panics
    /// If the tile has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let x = Tile::<i32, 1>::iota([6], 0).reshape([2, 3]);
    /// assert_eq!(x.take(1, 0).to_vec(), [3, 4, 5]);
    /// assert_eq!(x.take(x.argmax(1).max(0).item(), 1).to_vec(), [2, 5]);
    /// assert_eq!((x.take(3usize, 1).to_vec(), x.take(-1, 1).to_vec()), (vec![0, 0], vec![0, 0]));
    /// ```
    pub fn take(self, index: impl GatherIndex<0>, axis: usize) -> Self {
        check_axis("take", axis, R);
        let mut shape = self.shape();
        shape[axis] = 1;
        let index = index.numbers().first().and_then(|&index| i64::try_from(index).ok()).unwrap_or(-1);
        self.gather(Tile::full(shape, index), axis)
    }
}

impl<T: Number, const R: usize> Tile<T, R> {
    /// The tile with `values` added at `indices` along `axis`, as by [`Tile::scatter`]. Several values for one place
    /// are added one after the other, in row-major order, each sum rounded: the result is the same on every device.
    ///
    /// # Panics
    /// If indices or values don't fit; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// let indices = Tile::<i32, 1>::iota([4], 0) / 2;
    /// let x = Tile::<i32, 1>::ones([3]).scatter_add(indices, Tile::iota([4], 0), 0);
    /// assert_eq!(x.to_vec(), [2, 6, 1]);
    /// ```
    pub fn scatter_add<I: Int>(self, indices: Tile<I, R>, values: Tile<T, R>, axis: usize) -> Self {
        let op = Op::Scatter { axis, mode: ScatterMode::Add };
        moved(&op, &[&self.array(), &indices.array(), &values.array()])
    }
}

/// Tiles one after the other along `axis`.
///
/// # Panics
/// If another axis differs, or there is no tile; in a kernel that is a compile error.
///
/// ```
/// use tile::prelude::*;
/// let x = Tile::<i32, 2>::iota([2, 1], 0);
/// assert_eq!(cat([x, x, x + 7], 1).to_vec(), [0, 0, 7, 1, 1, 8]);
/// ```
pub fn cat<T: Element, const R: usize, const N: usize>(tiles: [Tile<T, R>; N], axis: usize) -> Tile<T, R> {
    let arrays = tiles.map(Tile::array);
    let operands: Vec<&Array> = arrays.iter().map(|array| &**array).collect();
    moved(&Op::Movement(Movement::Cat { axis }), &operands)
}

/// Tiles of one shape side by side along a new axis, which is `axis` of the result.
///
/// # Panics
/// If the shapes differ, or there is no tile; in a kernel that is a compile error.
///
/// ```
/// use tile::prelude::*;
/// let x = Tile::<i32, 1>::iota([2], 0);
/// assert_eq!(stack([x, x + 7], 0).to_vec(), [0, 1, 7, 8]);
/// assert_eq!(stack([x, x + 7], 1).to_vec(), [0, 7, 1, 8]);
/// ```
pub fn stack<T: Element, const R: usize, const N: usize>(
    tiles: [Tile<T, R>; N],
    axis: usize,
) -> <Tile<T, R> as Unsqueeze>::Output
where
    Tile<T, R>: Unsqueeze,
{
    if let Some(other) = tiles.iter().find(|tile| tile.shape() != tiles[0].shape()) {
        panic!("`stack` mixes shapes {:?} and {:?}", tiles[0].shape(), other.shape());
    }
    check_axis("stack", axis, R + 1);
    Unsqueeze::stacked(tiles, axis)
}

/// A tile that can take another axis: tiles of rank 1 to 5.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't take another axis: tiles have at most 6",
    label = "a tile of at most 5 axes is needed"
)]
pub trait Unsqueeze: Copy {
    /// The tile of one more axis.
    type Output;

    #[doc(hidden)]
    fn unsqueezed(self, axis: usize) -> Self::Output;

    #[doc(hidden)]
    fn stacked<const N: usize>(tiles: [Self; N], axis: usize) -> Self::Output;
}

/// A tile that can lose an axis: tiles of rank 2 to 6.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't lose an axis",
    label = "a tile of 2 to 6 axes is needed"
)]
pub trait Squeeze: Copy {
    /// The tile of one axis less.
    type Output;

    #[doc(hidden)]
    fn squeezed(self, axis: usize) -> Self::Output;
}

macro_rules! ranks {
    ($($low:literal $high:literal;)*) => { $(
        impl<T: Element> Unsqueeze for Tile<T, $low> {
            type Output = Tile<T, $high>;

            fn unsqueezed(self, axis: usize) -> Tile<T, $high> {
                let mut shape = self.shape().to_vec();
                shape.insert(axis, 1);
                self.reshape::<$high>(shape.try_into().expect("verified: one axis more"))
            }

            fn stacked<const N: usize>(tiles: [Self; N], axis: usize) -> Tile<T, $high> {
                cat(tiles.map(|tile| tile.unsqueezed(axis)), axis)
            }
        }

        impl<T: Element> Squeeze for Tile<T, $high> {
            type Output = Tile<T, $low>;

            fn squeezed(self, axis: usize) -> Tile<T, $low> {
                let mut shape = self.shape().to_vec();
                shape.remove(axis);
                self.reshape::<$low>(shape.try_into().expect("verified: one axis less"))
            }
        }
    )* };
}

ranks! { 1 2; 2 3; 3 4; 4 5; 5 6; }

impl<T: Element, const R: usize> Tile<T, R> {
    /// The tile with a new axis of extent 1, which is `axis` of the result.
    ///
    /// # Panics
    /// If the result has no such axis; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// assert_eq!(Tile::<f32, 2>::zeros([4, 5]).unsqueeze(1).shape(), [4, 1, 5]);
    /// ```
    pub fn unsqueeze(self, axis: usize) -> <Self as Unsqueeze>::Output
    where
        Self: Unsqueeze,
    {
        check_axis("unsqueeze", axis, R + 1);
        self.unsqueezed(axis)
    }

    /// The tile without an axis of extent 1, such as a reduction leaves.
    ///
    /// # Panics
    /// If the axis has another extent; in a kernel that is a compile error.
    ///
    /// ```
    /// use tile::prelude::*;
    /// assert_eq!(Tile::<f32, 2>::ones([4, 5]).sum(1).squeeze(1).to_vec(), [5.0; 4]);
    /// ```
    pub fn squeeze(self, axis: usize) -> <Self as Squeeze>::Output
    where
        Self: Squeeze,
    {
        check_axis("squeeze", axis, R);
        let shape = self.shape();
        assert!(
            shape[axis] == 1,
            "axis {axis} of a tile of shape {shape:?} has extent {}, not 1, and can't be squeezed",
            shape[axis]
        );
        self.squeezed(axis)
    }
}

fn check_axis(name: &str, axis: usize, rank: usize) {
    assert!(axis < rank, "axis {axis} of `{name}` is out of range: there are {rank} axes");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(
        expected = "`extract` reaches to 5 along axis 1 of a tile of shape [2, 4]: 3 elements from 2 on"
    )]
    fn a_window_outside_is_refused() {
        Tile::<f32, 2>::zeros([2, 4]).extract([0, 2], [1, 3]);
    }

    #[test]
    #[should_panic(expected = "`cat` along axis 0 mixes shapes [2, 4] and [2, 3]")]
    fn joined_tiles_agree_in_their_other_axes() {
        let [x, y] = [4, 3].map(|n| Tile::<f32, 2>::zeros([2, n]));
        x.cat(y, 0);
    }

    #[test]
    #[should_panic(expected = "axis 0 of a tile of shape [5] doesn't divide into 2 equal parts")]
    fn parts_are_equal() {
        let [_, _] = Tile::<f32, 1>::zeros([5]).split_even::<2>(0);
    }

    #[test]
    fn parts_make_the_whole_and_a_window_goes_back_to_its_place() {
        let x = Tile::<i32, 1>::iota([24], 0).reshape([4, 6]);
        assert_eq!(cat(x.split_even::<3>(1), 1).to_vec(), x.to_vec());
        let hole = x.insert([1, 2], Tile::zeros([2, 3]));
        assert_eq!(hole.insert([1, 2], x.extract([1, 2], [2, 3])).to_vec(), x.to_vec());
        assert_eq!(x.unsqueeze(0).squeeze(0).to_vec(), x.to_vec());
    }
}
