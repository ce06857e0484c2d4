//! Movement operations: everything that rearranges a tensor without touching its values.
//!
//! Each operation is a *map*: a view of the positions of the old tensor, in row-major order, with the new shape
//! (`maps.rs`). Applying one is composing views, which [`View`] and [`crate::ViewProgram`] each do their way: a
//! view refuses what one view cannot hold, a program keeps a list. The operations and their rules are the same.
//!
//! Names, argument forms and error cases follow tinygrad's movement page, checked against NumPy and einops; a
//! note says where another library differs. Axes count from 0, negative ones from the end.

mod arguments;
mod index;
pub(crate) mod maps;
mod meshgrid;
mod rearrange;
mod table;
mod view;

use crate::error::{ErrorKind, LayoutError, Result};
use crate::tuple::{INLINE, Ints};
use crate::view::{Fill, View};
use alloc::format;
use alloc::vec::Vec;
pub use arguments::{Length, Span, Split, flat_padding};
pub(crate) use arguments::{axis, check_grouped_padding, check_parts};
pub use index::Index;
pub use meshgrid::meshgrid;
use smallvec::{SmallVec, smallvec};
pub use table::Table;
pub(crate) use view::check_map;

/// The extents of a new shape, on the stack up to [`INLINE`].
type Lengths = SmallVec<[Length; INLINE]>;

/// Movement operations on anything that has a shape and can be seen through a view of its positions.
///
/// ```
/// use tile_layout::{Movement, View};
/// let image = View::row_major(&[2, 3, 4])?;
/// assert_eq!(image.permute(&[2, 0, 1])?.strides(), Some(vec![1, 12, 4]));
/// assert_eq!(image.rearrange("b h w -> b (w h)", &[])?.shape(), [2, 12]);
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
pub trait Movement: Sized {
    /// The extents.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// fn rank(tensor: &impl Movement) -> usize {
    ///     tensor.shape().len()
    /// }
    /// assert_eq!(rank(&View::row_major(&[2, 3])?), 2);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn shape(&self) -> &[i64];

    /// This tensor through a view of its positions: element `i` of the result is element `map(i)` of this tensor,
    /// counted in row-major order.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`] where the map names positions that are not there; for a [`View`],
    /// [`ErrorKind::Unsupported`] where the result is more than one view.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let every_third = View::strided(&[4], &[3], 0)?;
    /// assert_eq!(View::row_major(&[4, 3])?.through(&every_third)?.strides(), Some(vec![3]));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn through(&self, map: &View) -> Result<Self>;

    /// This tensor's elements picked by a table of positions.
    ///
    /// # Errors
    /// As [`Movement::through`].
    ///
    /// ```
    /// use tile_layout::{Movement, Table, View};
    /// let picked = Table::new(&[3], vec![Some(5), Some(3), Some(1)])?;
    /// assert_eq!(View::row_major(&[6])?.gathered(&picked)?.strides(), Some(vec![-2]));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn gathered(&self, table: &Table) -> Result<Self>;

    /// The same elements in row-major order under another shape. `-1` (or [`Length::Infer`]) stands for what is
    /// left, `None` for the extent at the same place.
    ///
    /// # Errors
    /// [`ErrorKind::SizeMismatch`], [`ErrorKind::AmbiguousExtent`] for two `-1`, [`ErrorKind::InvalidExtent`],
    /// [`ErrorKind::AxisOutOfRange`] for a `None` beyond the rank.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let view = View::row_major(&[4, 6])?;
    /// assert_eq!(view.reshape([-1, 3])?.shape(), [8, 3]);
    /// assert_eq!(view.reshape([None, Some(2), Some(3)])?.shape(), [4, 2, 3]);
    /// assert!(view.reshape([5, 5]).is_err());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn reshape<L: Into<Length>>(&self, lengths: impl IntoIterator<Item = L>) -> Result<Self> {
        let lengths: Lengths = lengths.into_iter().map(Into::into).collect();
        self.through(&maps::reshape(&arguments::resolve_shape(self.shape(), &lengths)?)?)
    }

    /// Axes of extent 1 repeated without copying; further axes may be added in front. `-1` or `None` keeps an
    /// extent.
    ///
    /// # Errors
    /// [`ErrorKind::ShapeMismatch`] where an extent is neither equal nor 1; [`ErrorKind::InvalidExtent`].
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let column = View::row_major(&[3, 1])?;
    /// assert_eq!(column.expand([2, -1, 4])?.strides(), Some(vec![0, 1, 0]));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn expand<L: Into<Length>>(&self, lengths: impl IntoIterator<Item = L>) -> Result<Self> {
        let lengths: Lengths = lengths.into_iter().map(Into::into).collect();
        self.through(&maps::expand(self.shape(), &lengths)?)
    }

    /// The axes in another order.
    ///
    /// # Errors
    /// [`ErrorKind::DuplicateAxis`] where `order` is not a permutation, [`ErrorKind::AxisOutOfRange`].
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// assert_eq!(View::row_major(&[2, 3, 4])?.permute(&[2, 0, -2])?.shape(), [4, 2, 3]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn permute(&self, order: &[i64]) -> Result<Self> {
        self.through(&maps::permute(self.shape(), order)?)
    }

    /// Two axes exchanged.
    ///
    /// # Errors
    /// [`ErrorKind::AxisOutOfRange`].
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// assert_eq!(View::row_major(&[2, 3, 4])?.transpose(0, -1)?.shape(), [4, 3, 2]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn transpose(&self, first: i64, second: i64) -> Result<Self> {
        let rank = self.shape().len();
        let (first, second) = (axis(first, rank)?, axis(second, rank)?);
        let mut order: Ints = (0..rank as i64).collect();
        // A tensor of rank 0 has one axis to name and none to exchange.
        if rank > 0 {
            order.swap(first, second);
        }
        self.permute(&order)
    }

    /// Axes 0 and 1 exchanged: the transpose of a matrix.
    ///
    /// # Errors
    /// [`ErrorKind::AxisOutOfRange`] below rank 2.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// assert_eq!(View::row_major(&[2, 3])?.t()?.shape(), [3, 2]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn t(&self) -> Result<Self> {
        if self.shape().len() < 2 {
            return Err(LayoutError::new(
                ErrorKind::AxisOutOfRange,
                format!("a tensor of {} axes has no two to exchange", self.shape().len()),
            ));
        }
        self.transpose(0, 1)
    }

    /// Axes backwards.
    ///
    /// # Errors
    /// [`ErrorKind::DuplicateAxis`], [`ErrorKind::AxisOutOfRange`].
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let flipped = View::row_major(&[2, 3])?.flip(&[1])?;
    /// assert_eq!((flipped.offset(), flipped.strides()), (2, Some(vec![3, -1])));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn flip(&self, axes: &[i64]) -> Result<Self> {
        self.through(&maps::flip(self.shape(), axes)?)
    }

    /// A range of each axis; `None` keeps all of it. Unlike a Python slice, a range must lie inside.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRange`] unless `0 ≤ begin ≤ end ≤ extent`; [`ErrorKind::Rank`] where ranges and axes
    /// differ in number.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let inner = View::row_major(&[4, 6])?.shrink(&[None, Some((1, 5))])?;
    /// assert_eq!((inner.shape(), inner.offset()), (&[4, 4][..], 1));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn shrink(&self, ranges: &[Span]) -> Result<Self> {
        self.through(&maps::shrink(self.shape(), ranges)?)
    }

    /// Elements of 0 before and after each axis; `None` adds none. Negative counts remove elements, first.
    /// [`flat_padding`] reads the flat form, which runs from the last axis backwards.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`], [`ErrorKind::InvalidPadding`] where more is removed than there is.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let padded = View::row_major(&[3])?.pad(&[Some((1, 2))])?;
    /// assert_eq!(padded.to_string(), "(3):(1) + 0 within (6) at (1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn pad(&self, padding: &[Span]) -> Result<Self> {
        self.pad_with(padding, Fill::ZERO)
    }

    /// [`Movement::pad`] with elements of any value. The value stays with the view through later operations.
    ///
    /// # Errors
    /// As [`Movement::pad`].
    ///
    /// ```
    /// use tile_layout::{Fill, Movement, View};
    /// let padded = View::row_major(&[3])?.pad_with(&[Some((0, 1))], Fill::from(f64::NEG_INFINITY))?;
    /// assert_eq!(padded.flip(&[0])?.fill().to_string(), "-inf");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn pad_with(&self, padding: &[Span], fill: Fill) -> Result<Self> {
        self.through(&maps::pad(self.shape(), padding, fill)?)
    }

    /// Indexing with integers, slices, new axes, an ellipsis and tables of integers, as in NumPy.
    ///
    /// Tables broadcast together; what they pick stands in their place where they are neighbours, else in front.
    /// Negative entries count from the end once; an entry outside reads 0. An integer beside a table only drops
    /// its axis (in NumPy it would count as a table).
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`] for an integer outside its axis, [`ErrorKind::InvalidIndex`] for two ellipses or
    /// a step of 0, [`ErrorKind::Rank`] for too many indices, [`ErrorKind::ShapeMismatch`] for tables that do not
    /// broadcast.
    ///
    /// ```
    /// use tile_layout::{Index, Movement, View};
    /// let view = View::row_major(&[4, 6])?;
    /// let picked = view.index(&[Index::from(-1), Index::slice(None, None, -2)])?;
    /// assert_eq!((picked.shape(), picked.offset(), picked.strides()), (&[3][..], 23, Some(vec![-2])));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn index(&self, indices: &[Index]) -> Result<Self> {
        let lowered = index::lower(self.shape(), indices)?;
        let viewed = self.through(&lowered.map)?;
        match lowered.table(viewed.shape())? {
            Some(table) => viewed.gathered(&table),
            None => Ok(viewed),
        }
    }

    /// Along `dim`, the elements named by a table of the same rank: `out[i][j] = self[table[i][j]][j]` for
    /// `dim = 0`. Axes other than `dim` are as long as the table's. Entries outside the axis, negative ones too,
    /// read 0.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`], [`ErrorKind::AxisOutOfRange`], [`ErrorKind::ShapeMismatch`] where the table is longer
    /// than the tensor on another axis.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let view = View::row_major(&[3, 2])?;
    /// let diagonal = view.gather(0, &[1, 2], &[2, 1])?;
    /// assert_eq!(diagonal.offsets().collect::<Vec<_>>(), [Some(4), Some(3)]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn gather(&self, dim: i64, table_shape: &[i64], table: &[i64]) -> Result<Self> {
        self.gathered(&index::gather(self.shape(), dim, table_shape, table)?)
    }

    /// A new axis of extent 1 at `dim`, which may be the rank.
    ///
    /// # Errors
    /// [`ErrorKind::AxisOutOfRange`].
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// assert_eq!(View::row_major(&[2, 3])?.unsqueeze(-1)?.shape(), [2, 3, 1]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn unsqueeze(&self, dim: i64) -> Result<Self> {
        let place = axis(dim, self.shape().len() + 1)?;
        let mut shape = self.shape().to_vec();
        shape.insert(place, 1);
        self.reshape(shape)
    }

    /// Without axis `dim`, or, for `None`, without all axes of extent 1. An axis of another extent stays.
    ///
    /// # Errors
    /// [`ErrorKind::AxisOutOfRange`].
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let view = View::row_major(&[1, 3, 1])?;
    /// assert_eq!(view.squeeze(None)?.shape(), [3]);
    /// assert_eq!(view.squeeze(Some(0))?.shape(), [3, 1]);
    /// assert_eq!(view.squeeze(Some(1))?.shape(), [1, 3, 1]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn squeeze(&self, dim: Option<i64>) -> Result<Self> {
        let only = dim.map(|dim| axis(dim, self.shape().len())).transpose()?;
        let goes = |place: usize, extent: i64| extent == 1 && only.is_none_or(|only| only == place);
        let kept = self.shape().iter().enumerate().filter(|&(place, &extent)| !goes(place, extent));
        self.reshape(kept.map(|(_, &extent)| extent).collect::<Vec<_>>())
    }

    /// Axes `start` to `end`, both included, as one. A tensor of rank 0 becomes one of one element; a start that is
    /// the axis behind the end inserts an axis of extent 1 before it.
    ///
    /// # Errors
    /// [`ErrorKind::AxisOutOfRange`]; [`ErrorKind::SizeMismatch`] for a start further behind the end, which would repeat
    /// the axes between, unless they are of extent 1.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let view = View::row_major(&[2, 3, 4])?;
    /// assert_eq!(view.flatten(1, -1)?.shape(), [2, 12]);
    /// assert_eq!(view.flatten(2, 1)?.shape(), [2, 3, 1, 4]);
    /// assert!(view.flatten(2, 0).is_err());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn flatten(&self, start: i64, end: i64) -> Result<Self> {
        let shape = self.shape();
        let (start, end) = (axis(start, shape.len())?, axis(end, shape.len())?);
        let after = (end + 1).min(shape.len());
        let joined = shape.get(start..after).unwrap_or(&[]);
        let mut flat = shape[..start].to_vec();
        flat.push(crate::tuple::product(joined)?);
        flat.extend_from_slice(&shape[after..]);
        self.reshape(flat)
    }

    /// Axis `dim` as several; one length may be `-1`.
    ///
    /// # Errors
    /// As [`Movement::reshape`].
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// assert_eq!(View::row_major(&[2, 12])?.unflatten(1, [3, -1])?.shape(), [2, 3, 4]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn unflatten<L: Into<Length>>(&self, dim: i64, lengths: impl IntoIterator<Item = L>) -> Result<Self> {
        let shape = self.shape();
        let place = axis(dim, shape.len())?;
        let before = shape.iter().take(place).map(|&extent| Length::Is(extent));
        let after = shape.iter().skip(place + 1).map(|&extent| Length::Is(extent));
        self.reshape(before.chain(lengths.into_iter().map(Into::into)).chain(after).collect::<Vec<_>>())
    }

    /// The diagonal `offset` above the main one (below, where negative) of axes `first` and `second`, as a new
    /// last axis.
    ///
    /// # Errors
    /// [`ErrorKind::DuplicateAxis`], [`ErrorKind::AxisOutOfRange`], [`ErrorKind::InvalidRange`] where the offset
    /// lies beyond the extent (NumPy answers with an empty tensor).
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let diagonal = View::row_major(&[3, 4])?.diagonal(1, 0, 1)?;
    /// assert_eq!((diagonal.shape(), diagonal.offset(), diagonal.strides()), (&[3][..], 1, Some(vec![5])));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn diagonal(&self, offset: i64, first: i64, second: i64) -> Result<Self> {
        self.through(&maps::diagonal(self.shape(), offset, first, second)?)
    }

    /// The square matrix with this vector on its diagonal and 0 elsewhere. More than one view, unless it has one
    /// element.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] unless the rank is 1.
    ///
    /// ```
    /// use tile_layout::{Movement, ViewProgram};
    /// let matrix = ViewProgram::row_major(0, &[2])?.diag()?;
    /// assert_eq!(matrix.evaluate(&[&[5, 7]], |_| 0)?, [5, 0, 0, 7]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn diag(&self) -> Result<Self> {
        let &[length] = self.shape() else {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("diag makes a matrix of a vector, not of a tensor of {} axes", self.shape().len()),
            ));
        };
        // Each element followed by `length` zeros: cut after length² elements, element k lies at k·(length + 1).
        let spread = self.unsqueeze(1)?.pad(&[None, Some((0, length))])?.flatten(0, 1)?;
        spread.shrink(&[Some((0, length * length))])?.reshape([length, length])
    }

    /// Windows of `size` elements, `step` apart, along `dim`: the axis counts windows, a new last axis the
    /// elements of one.
    ///
    /// # Errors
    /// [`ErrorKind::AxisOutOfRange`], [`ErrorKind::InvalidExtent`] for a negative size, a size beyond the extent
    /// or a step below 1.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let windows = View::row_major(&[8])?.unfold(0, 4, 2)?;
    /// assert_eq!((windows.shape(), windows.strides()), (&[3, 4][..], Some(vec![2, 1])));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn unfold(&self, dim: i64, size: i64, step: i64) -> Result<Self> {
        self.through(&maps::unfold(self.shape(), dim, size, step)?)
    }

    /// Copies side by side, `counts` along each axis; counts beyond the rank add axes in front.
    ///
    /// # Errors
    /// [`ErrorKind::SizeMismatch`] for fewer counts than axes, [`ErrorKind::InvalidExtent`] for a negative count.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let repeated = View::row_major(&[3])?.repeat(&[2])?;
    /// assert_eq!(repeated.to_string(), "((3,2)):((1,0)) + 0");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn repeat(&self, counts: &[i64]) -> Result<Self> {
        self.through(&maps::repeat(self.shape(), counts)?)
    }

    /// Each element `count` times in a row along `dim`; `None` flattens first.
    ///
    /// # Errors
    /// [`ErrorKind::AxisOutOfRange`], [`ErrorKind::InvalidExtent`] for a negative count.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let repeated = View::row_major(&[3])?.repeat_interleave(2, None)?;
    /// assert_eq!(repeated.to_string(), "((2,3)):((0,1)) + 0");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn repeat_interleave(&self, count: i64, dim: Option<i64>) -> Result<Self> {
        match dim {
            Some(dim) => self.through(&maps::repeat_interleave(self.shape(), count, dim)?),
            None => self.flatten(0, -1)?.repeat_interleave(count, Some(0)),
        }
    }

    /// Pieces along `dim`: of a size each, the last one smaller, or of the given sizes, which must add up.
    ///
    /// # Errors
    /// [`ErrorKind::AxisOutOfRange`], [`ErrorKind::InvalidExtent`] for a size below 1, [`ErrorKind::SizeMismatch`].
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let view = View::row_major(&[5])?;
    /// let lengths = |pieces: Vec<View>| pieces.iter().map(|piece| piece.shape()[0]).collect::<Vec<_>>();
    /// assert_eq!(lengths(view.split(2, 0)?), [2, 2, 1]);
    /// assert_eq!(lengths(view.split([1, 4], 0)?), [1, 4]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn split(&self, sizes: impl Into<Split>, dim: i64) -> Result<Vec<Self>> {
        let place = axis(dim, self.shape().len())?;
        let sizes = arguments::split_sizes(self.shape().get(place).copied(), sizes.into())?;
        let mut begin = 0;
        sizes
            .into_iter()
            .map(|size| {
                let mut ranges = alloc::vec![None; self.shape().len()];
                ranges[place] = Some((begin, begin + size));
                begin += size;
                self.shrink(&ranges)
            })
            .collect()
    }

    /// At most `count` pieces along `dim`, all of `⌈extent / count⌉` but the last: there may be fewer. An empty
    /// axis gives `count` empty pieces.
    ///
    /// # Errors
    /// [`ErrorKind::AxisOutOfRange`], [`ErrorKind::InvalidExtent`] for a count below 1.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let pieces = View::row_major(&[5])?.chunk(4, 0)?;
    /// assert_eq!(pieces.iter().map(|piece| piece.shape()[0]).collect::<Vec<_>>(), [2, 2, 1]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn chunk(&self, count: i64, dim: i64) -> Result<Vec<Self>> {
        let place = axis(dim, self.shape().len())?;
        self.split(arguments::chunks(self.shape().get(place).copied(), count)?, dim)
    }

    /// The parts before index `at` of axis `dim` and from it on. Either may be empty.
    ///
    /// # Errors
    /// [`ErrorKind::AxisOutOfRange`], [`ErrorKind::InvalidRange`] unless `0 ≤ at ≤ extent`.
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let (left, right) = View::row_major(&[2, 5])?.split_at(1, 3)?;
    /// assert_eq!((left.shape(), right.shape(), right.offset()), (&[2, 3][..], &[2, 2][..], 3));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn split_at(&self, dim: i64, at: i64) -> Result<(Self, Self)> {
        let place = axis(dim, self.shape().len())?;
        let Some(&extent) = self.shape().get(place) else {
            return Err(LayoutError::new(ErrorKind::AxisOutOfRange, "a tensor without axes cannot be split"));
        };
        if !(0..=extent).contains(&at) {
            return Err(LayoutError::at(
                ErrorKind::InvalidRange,
                &[place],
                format!(
                    "axis {place} of extent {extent} cannot be split at {at}: pass an index in 0..={extent}"
                ),
            ));
        }
        let part = |begin: i64, end: i64| {
            let mut ranges: SmallVec<[Span; INLINE]> = smallvec![None; self.shape().len()];
            ranges[place] = Some((begin, end));
            self.shrink(&ranges)
        };
        Ok((part(0, at)?, part(at, extent)?))
    }

    /// A rearrangement in the notation of einops: axes are named, split and joined by brackets, `...` stands for
    /// the axes without a name, `1` and `()` for an axis of extent 1. `sizes` gives extents that the shape leaves
    /// open.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFormula`] for a formula that is not one; otherwise as [`Movement::reshape`].
    ///
    /// ```
    /// use tile_layout::{Movement, View};
    /// let image = View::row_major(&[2, 12, 3])?;
    /// let patches = image.rearrange("b (h p) c -> b h (p c)", &[("p", 4)])?;
    /// assert_eq!(patches.shape(), [2, 3, 12]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    fn rearrange(&self, formula: &str, sizes: &[(&str, i64)]) -> Result<Self> {
        let plan = rearrange::plan(self.shape(), formula, sizes)?;
        self.reshape(plan.split)?.permute(&plan.order)?.reshape(plan.joined)
    }
}
