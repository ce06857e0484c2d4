//! Layouts: functions from coordinates to offsets, written as a shape and a stride for each of its modes.
//!
//! A layout `(4,(2,2)):(1,(4,8))` sends the coordinate `(i,(j,k))` to `i·1 + j·4 + k·8`. A mode is an integer or
//! a tuple of modes. Wherever modes are counted through with one number the order is *colexicographic*: the
//! first mode runs fastest.
//!
//! Invariants: extents are not negative; shape and stride nest alike; the size and every offset of the layout
//! and of each part of it stay within 2^62, so evaluation needs no checks. Strides may be zero (broadcast) or
//! negative.

use crate::error::{ErrorKind, LayoutError, Result};
use crate::nested::{Nested, NestedBuilder};
use crate::tuple::{INLINE, IntTuple, Ints, LIMIT, Nesting, depth, product, product_of, rank};
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use smallvec::{SmallVec, smallvec};

/// One leaf of a layout.
///
/// ```
/// use tile_layout::{Layout, Mode};
/// assert_eq!("(4,8):(8,1)".parse::<Layout>()?.leaves()[0], Mode { extent: 4, stride: 8 });
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mode {
    /// Number of coordinates.
    pub extent: i64,
    /// Offset between two neighbouring coordinates, in elements.
    pub stride: i64,
}

impl Mode {
    pub(crate) const fn new(extent: i64, stride: i64) -> Mode {
        Mode { extent, stride }
    }
}

/// Modes, on the stack up to [`INLINE`].
pub(crate) type Modes = SmallVec<[Mode; INLINE]>;

/// A hierarchical layout.
///
/// ```
/// use tile_layout::Layout;
/// let layout = Layout::new((4, (2, 2)), (1, (4, 8)))?;
/// assert_eq!(layout, "(4,(2,2)):(1,(4,8))".parse()?);
/// assert_eq!((layout.size(), layout.cosize()), (16, 16));
/// assert_eq!(layout.offset(&(3, (1, 0)).into())?, 7);
/// assert_eq!(layout.offset(&(3, 1).into())?, 7);
/// assert_eq!(layout.get(7), Some(7));
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(PartialEq, Eq, Hash)]
pub struct Layout {
    modes: Modes,
    nesting: Nesting,
}

impl Clone for Layout {
    /// Modes are copied at once, where the list's own `clone` goes from one to the next.
    fn clone(&self) -> Layout {
        Layout { modes: Modes::from_slice(&self.modes), nesting: self.nesting.clone() }
    }
}

/// A borrowed layout or subtree of one.
pub(crate) type Part<'a> = Nested<'a, Mode>;

/// A layout under construction.
pub(crate) type Builder = NestedBuilder<Mode>;

impl Part<'_> {
    pub(crate) fn to_layout(self) -> Layout {
        Layout { modes: Modes::from_slice(self.modes), nesting: self.nesting() }
    }

    /// The number of elements.
    pub(crate) fn size(self) -> i64 {
        self.modes.iter().map(|mode| mode.extent).product()
    }
}

impl Builder {
    /// Append one mode made of `modes`.
    pub(crate) fn push_mode(&mut self, modes: &[Mode]) {
        self.push_joined(modes, Mode::new(1, 0));
    }

    pub(crate) fn finish(self) -> Result<Layout> {
        let layout = Layout { modes: self.modes, nesting: self.nesting };
        layout.check()?;
        Ok(layout)
    }
}

impl Layout {
    /// The layout of a shape and a stride that nest alike.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where they do not nest alike, [`ErrorKind::InvalidExtent`] for a negative extent,
    /// [`ErrorKind::Overflow`] where the size or an offset exceeds 2^62.
    ///
    /// ```
    /// use tile_layout::{ErrorKind, Layout};
    /// assert_eq!(Layout::new((4, 8), (8, 1))?.to_string(), "(4,8):(8,1)");
    /// assert_eq!(Layout::new((4, 8), 1).unwrap_err().kind(), ErrorKind::Rank);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn new(shape: impl Into<IntTuple>, stride: impl Into<IntTuple>) -> Result<Layout> {
        let (shape, stride) = (shape.into(), stride.into());
        if !shape.is_congruent(&stride) {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("shape {shape} and stride {stride} do not nest alike"),
            ));
        }
        let modes = shape.leaves.iter().zip(&stride.leaves).map(|(&extent, &stride)| Mode { extent, stride });
        Layout { modes: modes.collect(), nesting: shape.nesting }.checked()
    }

    /// One mode without brackets.
    ///
    /// # Errors
    /// As [`Layout::new`].
    ///
    /// ```
    /// assert_eq!(tile_layout::Layout::leaf(4, 2)?.to_string(), "4:2");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn leaf(extent: i64, stride: i64) -> Result<Layout> {
        Layout { modes: smallvec![Mode { extent, stride }], nesting: Nesting::leaf() }.checked()
    }

    /// The layout of a single element, `1:0`.
    ///
    /// ```
    /// assert_eq!(tile_layout::Layout::unit().to_string(), "1:0");
    /// ```
    pub fn unit() -> Layout {
        Layout { modes: smallvec![Mode::new(1, 0)], nesting: Nesting::leaf() }
    }

    /// The tuple of some layouts, each of which becomes a mode (CuTe's `make_layout`).
    ///
    /// # Errors
    /// [`ErrorKind::Overflow`] where size or offsets exceed 2^62.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let parts = [Layout::leaf(4, 1)?, Layout::new((2, 2), (4, 8))?];
    /// assert_eq!(Layout::concat(&parts)?.to_string(), "(4,(2,2)):(1,(4,8))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn concat(parts: &[Layout]) -> Result<Layout> {
        let mut builder = Builder::new();
        builder.open(parts.len());
        parts.iter().for_each(|part| builder.push(part.part()));
        builder.finish()
    }

    /// Compact, the first mode contiguous.
    ///
    /// # Errors
    /// As [`Layout::new`].
    ///
    /// ```
    /// assert_eq!(tile_layout::Layout::column_major((4, (2, 3)))?.to_string(), "(4,(2,3)):(1,(4,8))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn column_major(shape: impl Into<IntTuple>) -> Result<Layout> {
        let shape = shape.into();
        let order: Ints = (0..shape.leaves.len() as i64).collect();
        Layout::compact(shape, &order)
    }

    /// Compact, the last mode contiguous.
    ///
    /// # Errors
    /// As [`Layout::new`].
    ///
    /// ```
    /// assert_eq!(tile_layout::Layout::row_major((4, (2, 3)))?.to_string(), "(4,(2,3)):(6,(3,1))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn row_major(shape: impl Into<IntTuple>) -> Result<Layout> {
        let shape = shape.into();
        let order: Ints = (0..shape.leaves.len() as i64).rev().collect();
        Layout::compact(shape, &order)
    }

    /// Compact, the modes contiguous in the order of the numbers in `order`, which nests like the shape; equal
    /// numbers run from left to right.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where order and shape do not nest alike; otherwise as [`Layout::new`].
    ///
    /// ```
    /// use tile_layout::Layout;
    /// assert_eq!(Layout::ordered((2, 3, 4), (2, 0, 1))?.to_string(), "(2,3,4):(12,1,3)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn ordered(shape: impl Into<IntTuple>, order: impl Into<IntTuple>) -> Result<Layout> {
        let (shape, order) = (shape.into(), order.into());
        if !shape.is_congruent(&order) {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("shape {shape} and order {order} do not nest alike"),
            ));
        }
        Layout::compact(shape, &order.leaves)
    }

    fn compact(shape: IntTuple, order: &[i64]) -> Result<Layout> {
        product(&shape.leaves)?;
        let mut ranked: SmallVec<[usize; INLINE]> = (0..order.len()).collect();
        ranked.sort_by_key(|&leaf| order[leaf]);
        let mut modes: Modes = shape.leaves.iter().map(|&extent| Mode::new(extent, 0)).collect();
        let mut stride = 1i64;
        for leaf in ranked {
            modes[leaf].stride = stride;
            // Beside an empty mode the strides do not matter, but must not overflow.
            stride = stride.saturating_mul(modes[leaf].extent.max(1));
        }
        Layout { modes, nesting: shape.nesting }.checked()
    }

    /// `self`, if it keeps the invariants of the type.
    fn checked(self) -> Result<Layout> {
        self.check().map(|()| self)
    }

    fn check(&self) -> Result<()> {
        if let Some(leaf) = self.modes.iter().position(|mode| mode.extent < 0) {
            return Err(LayoutError::at(
                ErrorKind::InvalidExtent,
                &[leaf],
                format!("extent {} of mode {leaf} is negative", self.modes[leaf].extent),
            ));
        }
        product_of(self.modes.iter().map(|mode| mode.extent))?;
        let reach = self.modes.iter().try_fold(0i64, |reach, mode| {
            let steps = (mode.extent - 1).max(0);
            reach.checked_add(steps.checked_mul(mode.stride.checked_abs()?)?)
        });
        match reach {
            Some(reach) if reach <= LIMIT => Ok(()),
            _ => Err(LayoutError::new(ErrorKind::Overflow, format!("an offset of {self} exceeds 2^62"))),
        }
    }

    pub(crate) fn part(&self) -> Part<'_> {
        Part { modes: &self.modes, tokens: self.nesting.tokens() }
    }

    /// The leaves in order, whatever their nesting.
    ///
    /// ```
    /// use tile_layout::{Layout, Mode};
    /// let layout: Layout = "(4,(2,2)):(1,(4,8))".parse()?;
    /// assert_eq!(layout.leaves()[2], Mode { extent: 2, stride: 8 });
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn leaves(&self) -> &[Mode] {
        &self.modes
    }

    /// The extents, nested.
    ///
    /// ```
    /// let layout: tile_layout::Layout = "(4,(2,2)):(1,(4,8))".parse()?;
    /// assert_eq!(layout.shape().to_string(), "(4,(2,2))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn shape(&self) -> IntTuple {
        self.tuple_of(|mode| mode.extent)
    }

    /// The strides, nested.
    ///
    /// ```
    /// let layout: tile_layout::Layout = "(4,(2,2)):(1,(4,8))".parse()?;
    /// assert_eq!(layout.stride().to_string(), "(1,(4,8))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn stride(&self) -> IntTuple {
        self.tuple_of(|mode| mode.stride)
    }

    fn tuple_of(&self, value: impl Fn(&Mode) -> i64) -> IntTuple {
        IntTuple { leaves: self.modes.iter().map(value).collect(), nesting: self.nesting.clone() }
    }

    /// Whether this is one mode without brackets.
    ///
    /// ```
    /// assert!("4:1".parse::<tile_layout::Layout>()?.is_leaf());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn is_leaf(&self) -> bool {
        self.nesting.is_leaf()
    }

    /// Number of top-level modes; 1 for a leaf.
    ///
    /// ```
    /// assert_eq!("(4,(2,2)):(1,(4,8))".parse::<tile_layout::Layout>()?.rank(), 2);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn rank(&self) -> usize {
        rank(self.nesting.tokens())
    }

    /// Levels of nesting; 0 for a leaf.
    ///
    /// ```
    /// assert_eq!("(4,(2,2)):(1,(4,8))".parse::<tile_layout::Layout>()?.depth(), 2);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn depth(&self) -> usize {
        depth(self.nesting.tokens())
    }

    /// The top-level modes, each as a layout; a leaf is its own only mode.
    ///
    /// ```
    /// let layout: tile_layout::Layout = "(4,(2,2)):(1,(4,8))".parse()?;
    /// let modes: Vec<String> = layout.modes().map(|mode| mode.to_string()).collect();
    /// assert_eq!(modes, ["4:1", "(2,2):(4,8)"]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn modes(&self) -> impl Iterator<Item = Layout> {
        self.part().children().map(Part::to_layout)
    }

    /// Top-level mode `index`, counted from 0.
    ///
    /// ```
    /// let layout: tile_layout::Layout = "(4,(2,2)):(1,(4,8))".parse()?;
    /// assert_eq!(layout.mode(1).map(|mode| mode.to_string()), Some("(2,2):(4,8)".to_owned()));
    /// assert_eq!(layout.mode(2), None);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn mode(&self, index: usize) -> Option<Layout> {
        self.part().children().nth(index).map(Part::to_layout)
    }

    /// Number of coordinates; 1 for rank 0.
    ///
    /// ```
    /// assert_eq!("(4,(2,2)):(1,(4,8))".parse::<tile_layout::Layout>()?.size(), 16);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn size(&self) -> i64 {
        self.part().size()
    }

    /// The smallest offset; 0 unless a stride is negative.
    ///
    /// ```
    /// assert_eq!("(4,3):(-1,4)".parse::<tile_layout::Layout>()?.min_offset(), -3);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn min_offset(&self) -> i64 {
        self.extreme(|stride| stride < 0)
    }

    /// The largest offset; 0 for an empty layout.
    ///
    /// ```
    /// assert_eq!("(4,3):(-1,4)".parse::<tile_layout::Layout>()?.max_offset(), 8);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn max_offset(&self) -> i64 {
        self.extreme(|stride| stride > 0)
    }

    fn extreme(&self, counts: impl Fn(i64) -> bool) -> i64 {
        if self.size() == 0 {
            return 0;
        }
        let counted = self.modes.iter().filter(|mode| counts(mode.stride));
        counted.map(|mode| (mode.extent - 1) * mode.stride).sum()
    }

    /// One more than the largest offset: the elements that memory from offset 0 must have. 0 where the layout is
    /// empty.
    ///
    /// CuTe and its ports evaluate the last coordinate instead, which is wrong for negative strides.
    ///
    /// ```
    /// assert_eq!("(4,3):(-1,4)".parse::<tile_layout::Layout>()?.cosize(), 9);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn cosize(&self) -> i64 {
        if self.size() == 0 { 0 } else { self.max_offset() + 1 }
    }

    /// The distance from the smallest to the largest offset, both counted. 0 where the layout is empty.
    ///
    /// ```
    /// assert_eq!("(4,3):(-1,4)".parse::<tile_layout::Layout>()?.span(), 12);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn span(&self) -> i64 {
        if self.size() == 0 { 0 } else { self.max_offset() - self.min_offset() + 1 }
    }

    /// The same layout with no nesting inside its modes.
    ///
    /// ```
    /// let layout: tile_layout::Layout = "(4,(2,2)):(1,(4,8))".parse()?;
    /// assert_eq!(layout.flatten().to_string(), "(4,2,2):(1,4,8)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn flatten(&self) -> Layout {
        let nesting = if self.is_leaf() { Nesting::leaf() } else { Nesting::flat(self.modes.len()) };
        Layout { modes: self.modes.clone(), nesting }
    }

    /// Its top-level modes in another order; an order may repeat no mode and leave none out.
    ///
    /// # Errors
    /// [`ErrorKind::DuplicateAxis`] where `order` is not a permutation of the modes.
    ///
    /// ```
    /// let layout: tile_layout::Layout = "(4,(2,2)):(1,(4,8))".parse()?;
    /// assert_eq!(layout.permute(&[1, 0])?.to_string(), "((2,2),4):((4,8),1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn permute(&self, order: &[usize]) -> Result<Layout> {
        let modes: Vec<Layout> = self.modes().collect();
        let mut seen: SmallVec<[bool; INLINE]> = smallvec![false; modes.len()];
        let fresh =
            order.iter().all(|&mode| mode < modes.len() && !core::mem::replace(&mut seen[mode], true));
        if !fresh || order.len() != modes.len() {
            return Err(LayoutError::at(
                ErrorKind::DuplicateAxis,
                order,
                format!("{order:?} does not name each of the {} modes of {self} once", modes.len()),
            ));
        }
        let mut builder = Builder::new();
        builder.open(order.len());
        order.iter().for_each(|&mode| builder.push(modes[mode].part()));
        builder.finish()
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
