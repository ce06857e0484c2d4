//! Layouts whose extents and strides are expressions over run-time symbols.
//!
//! A symbolic layout stands for one static [`Layout`] per binding of its symbols; [`SymbolicLayout::bind`] makes
//! it, and is where extents that turn out negative and offsets that overflow are refused. This file knows no
//! facts: it builds and takes apart, and proves nothing.
//!
//! Invariants: shape and stride nest alike; no extent is a negative constant.

use super::expression::Expr;
use super::symbol::Bindings;
use super::tuple::ExprTuple;
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Builder, Layout, Mode, Part};
use crate::nested::{Nested, NestedBuilder};
use crate::tuple::{IntTuple, Nesting, rank};
use alloc::format;
use alloc::vec::Vec;

/// One leaf of a symbolic layout.
///
/// ```
/// use tile_layout::{Mode, symbolic::{Expr, SymbolicMode}};
/// assert_eq!(SymbolicMode::from(Mode { extent: 4, stride: 8 }).extent, Expr::from(4));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SymbolicMode {
    /// Number of coordinates.
    pub extent: Expr,
    /// Offset between two neighbouring coordinates, in elements.
    pub stride: Expr,
}

impl SymbolicMode {
    pub(super) fn new(extent: impl Into<Expr>, stride: impl Into<Expr>) -> SymbolicMode {
        SymbolicMode { extent: extent.into(), stride: stride.into() }
    }
}

impl From<Mode> for SymbolicMode {
    fn from(mode: Mode) -> SymbolicMode {
        SymbolicMode::new(mode.extent, mode.stride)
    }
}

/// A hierarchical layout with run-time extents and strides.
///
/// ```
/// use tile_layout::symbolic::{Bindings, SymbolicLayout};
/// let rows = SymbolicLayout::row_major(("m", "k"))?;
/// assert_eq!(rows.to_string(), "(m,k):(k,1)");
/// assert_eq!(rows, "(m,k):(k,1)".parse()?);
/// assert_eq!(rows.bind(&Bindings::from([("m", 8), ("k", 3)]))?, "(8,3):(3,1)".parse()?);
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SymbolicLayout {
    modes: Vec<SymbolicMode>,
    nesting: Nesting,
}

/// A borrowed layout or subtree of one.
pub(super) type SymbolicPart<'a> = Nested<'a, SymbolicMode>;

/// A symbolic layout under construction.
pub(super) type SymbolicBuilder = NestedBuilder<SymbolicMode>;

impl SymbolicPart<'_> {
    pub(super) fn to_layout(self) -> SymbolicLayout {
        SymbolicLayout { modes: self.modes.to_vec(), nesting: self.nesting() }
    }

    /// The number of elements.
    pub(super) fn size(self) -> Result<Expr> {
        self.modes.iter().try_fold(Expr::from(1), |size, mode| size.times(&mode.extent))
    }
}

impl SymbolicBuilder {
    /// Append one mode made of `modes`.
    pub(super) fn push_mode(&mut self, modes: &[SymbolicMode]) {
        self.push_joined(modes, SymbolicMode::new(1, 0));
    }

    pub(super) fn finish(self) -> Result<SymbolicLayout> {
        SymbolicLayout { modes: self.modes.into_vec(), nesting: self.nesting }.checked()
    }
}

impl SymbolicLayout {
    /// The layout of a shape and a stride that nest alike.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where they do not nest alike, [`ErrorKind::InvalidExtent`] for an extent that is a
    /// negative constant.
    ///
    /// ```
    /// use tile_layout::symbolic::SymbolicLayout;
    /// assert_eq!(SymbolicLayout::new(("m", "k"), ("lda", 1))?.to_string(), "(m,k):(lda,1)");
    /// assert!(SymbolicLayout::new(("m", "k"), 1).is_err());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn new(shape: impl Into<ExprTuple>, stride: impl Into<ExprTuple>) -> Result<SymbolicLayout> {
        let (shape, stride) = (shape.into(), stride.into());
        if shape.nesting() != stride.nesting() {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("shape {shape} and stride {stride} do not nest alike"),
            ));
        }
        let (extents, nesting) = shape.into_parts();
        let (strides, _) = stride.into_parts();
        let modes = extents.into_iter().zip(strides);
        let modes = modes.map(|(extent, stride)| SymbolicMode { extent, stride }).collect();
        SymbolicLayout { modes, nesting }.checked()
    }

    fn checked(self) -> Result<SymbolicLayout> {
        let negative = |mode: &SymbolicMode| mode.extent.as_constant().is_some_and(|extent| extent < 0);
        match self.modes.iter().position(negative) {
            None => Ok(self),
            Some(leaf) => Err(LayoutError::at(
                ErrorKind::InvalidExtent,
                &[leaf],
                format!("extent {} of mode {leaf} is negative", self.modes[leaf].extent),
            )),
        }
    }

    /// Compact, the first mode contiguous.
    ///
    /// # Errors
    /// As [`SymbolicLayout::new`]; [`ErrorKind::Overflow`] where a stride has coefficients beyond 64 bits.
    ///
    /// ```
    /// use tile_layout::symbolic::SymbolicLayout;
    /// assert_eq!(SymbolicLayout::column_major(("m", (2, "k")))?.to_string(), "(m,(2,k)):(1,(m,2*m))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn column_major(shape: impl Into<ExprTuple>) -> Result<SymbolicLayout> {
        let shape = shape.into();
        let order: Vec<i64> = (0..shape.leaves().len() as i64).collect();
        SymbolicLayout::compact(shape, &order)
    }

    /// Compact, the last mode contiguous.
    ///
    /// # Errors
    /// As [`SymbolicLayout::column_major`].
    ///
    /// ```
    /// use tile_layout::symbolic::SymbolicLayout;
    /// assert_eq!(SymbolicLayout::row_major(("b", "m", "k"))?.to_string(), "(b,m,k):(k*m,k,1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn row_major(shape: impl Into<ExprTuple>) -> Result<SymbolicLayout> {
        let shape = shape.into();
        let order: Vec<i64> = (0..shape.leaves().len() as i64).rev().collect();
        SymbolicLayout::compact(shape, &order)
    }

    /// Compact, the modes contiguous in the order of the numbers in `order`, which nests like the shape; equal
    /// numbers run from left to right.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where order and shape do not nest alike; otherwise as
    /// [`SymbolicLayout::column_major`].
    ///
    /// ```
    /// use tile_layout::symbolic::SymbolicLayout;
    /// assert_eq!(SymbolicLayout::ordered(("a", "b", "c"), (2, 0, 1))?.to_string(), "(a,b,c):(b*c,1,b)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn ordered(shape: impl Into<ExprTuple>, order: impl Into<IntTuple>) -> Result<SymbolicLayout> {
        let (shape, order) = (shape.into(), order.into());
        if *shape.nesting() != order.nesting {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("shape {shape} and order {order} do not nest alike"),
            ));
        }
        SymbolicLayout::compact(shape, order.leaves())
    }

    fn compact(shape: ExprTuple, order: &[i64]) -> Result<SymbolicLayout> {
        let (extents, nesting) = shape.into_parts();
        let mut ranked: Vec<usize> = (0..extents.len()).collect();
        ranked.sort_by_key(|&leaf| order[leaf]);
        let mut modes: Vec<SymbolicMode> =
            extents.into_iter().map(|extent| SymbolicMode::new(extent, 0)).collect();
        let mut stride = Expr::from(1);
        for leaf in ranked {
            modes[leaf].stride = stride.clone();
            stride = stride.times(&modes[leaf].extent)?;
        }
        SymbolicLayout { modes, nesting }.checked()
    }

    pub(super) fn part(&self) -> SymbolicPart<'_> {
        SymbolicPart { modes: &self.modes, tokens: self.nesting.tokens() }
    }

    pub(super) fn nesting(&self) -> &Nesting {
        &self.nesting
    }

    /// The leaves in order, whatever their nesting.
    ///
    /// ```
    /// let layout: tile_layout::symbolic::SymbolicLayout = "(m,(2,k)):(2*k,(k,1))".parse()?;
    /// assert_eq!(layout.leaves()[0].stride.to_string(), "2*k");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn leaves(&self) -> &[SymbolicMode] {
        &self.modes
    }

    /// The extents, nested.
    ///
    /// ```
    /// let layout: tile_layout::symbolic::SymbolicLayout = "(m,(2,k)):(2*k,(k,1))".parse()?;
    /// assert_eq!(layout.shape().to_string(), "(m,(2,k))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn shape(&self) -> ExprTuple {
        let extents = self.modes.iter().map(|mode| mode.extent.clone()).collect();
        ExprTuple::new(extents, self.nesting.clone())
    }

    /// The strides, nested.
    ///
    /// ```
    /// let layout: tile_layout::symbolic::SymbolicLayout = "(m,(2,k)):(2*k,(k,1))".parse()?;
    /// assert_eq!(layout.stride().to_string(), "(2*k,(k,1))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn stride(&self) -> ExprTuple {
        let strides = self.modes.iter().map(|mode| mode.stride.clone()).collect();
        ExprTuple::new(strides, self.nesting.clone())
    }

    /// Number of top-level modes; 1 for a leaf.
    ///
    /// ```
    /// assert_eq!("(m,(2,k)):(2*k,(k,1))".parse::<tile_layout::symbolic::SymbolicLayout>()?.rank(), 2);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn rank(&self) -> usize {
        rank(self.nesting.tokens())
    }

    /// The top-level modes, each as a layout; a leaf is its own only mode.
    ///
    /// ```
    /// let layout: tile_layout::symbolic::SymbolicLayout = "(m,(2,k)):(2*k,(k,1))".parse()?;
    /// assert_eq!(layout.modes().map(|mode| mode.to_string()).collect::<Vec<_>>(), ["m:2*k", "(2,k):(k,1)"]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn modes(&self) -> impl Iterator<Item = SymbolicLayout> {
        self.part().children().map(SymbolicPart::to_layout)
    }

    /// Number of coordinates; 1 for rank 0.
    ///
    /// # Errors
    /// [`ErrorKind::Overflow`] where it has coefficients beyond 64 bits.
    ///
    /// ```
    /// let layout: tile_layout::symbolic::SymbolicLayout = "(m,(2,k)):(2*k,(k,1))".parse()?;
    /// assert_eq!(layout.size()?.to_string(), "2*k*m");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn size(&self) -> Result<Expr> {
        self.part().size()
    }

    /// The static layout for these values of the symbols.
    ///
    /// # Errors
    /// [`ErrorKind::Unbound`], naming the symbol; [`ErrorKind::InvalidExtent`], naming the leaf, where an extent
    /// is negative or a divisor is less than 1; [`ErrorKind::Overflow`] where the size or an offset does not fit
    /// into 64 bits.
    ///
    /// ```
    /// use tile_layout::symbolic::{Bindings, SymbolicLayout};
    /// let rows = SymbolicLayout::row_major(("m", 4))?;
    /// assert_eq!(rows.bind(&Bindings::from([("m", 8)]))?.to_string(), "(8,4):(4,1)");
    /// let error = rows.bind(&Bindings::from([("m", -8)])).unwrap_err();
    /// assert_eq!(error.to_string(), "extent m of mode 0 of (m,4):(4,1) is -8, which is negative");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn bind(&self, bindings: &Bindings) -> Result<Layout> {
        let mut modes = Vec::with_capacity(self.modes.len());
        for (leaf, mode) in self.modes.iter().enumerate() {
            let (extent, stride) = (mode.extent.evaluate(bindings)?, mode.stride.evaluate(bindings)?);
            if extent < 0 {
                return Err(LayoutError::at(
                    ErrorKind::InvalidExtent,
                    &[leaf],
                    format!("extent {} of mode {leaf} of {self} is {extent}, which is negative", mode.extent),
                ));
            }
            modes.push(Mode::new(extent, stride));
        }
        self.with_modes(&modes)
    }

    /// The static layout, where no symbol occurs.
    ///
    /// ```
    /// use tile_layout::symbolic::SymbolicLayout;
    /// let static_one: SymbolicLayout = "(4,8):(8,1)".parse()?;
    /// assert_eq!(static_one.as_static(), Some("(4,8):(8,1)".parse()?));
    /// assert_eq!("(m,8):(8,1)".parse::<SymbolicLayout>()?.as_static(), None);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn as_static(&self) -> Option<Layout> {
        let constants = |mode: &SymbolicMode| {
            mode.extent.as_constant().zip(mode.stride.as_constant()).map(|(s, d)| Mode::new(s, d))
        };
        let modes: Option<Vec<Mode>> = self.modes.iter().map(constants).collect();
        self.with_modes(&modes?).ok()
    }

    fn with_modes(&self, modes: &[Mode]) -> Result<Layout> {
        let mut builder = Builder::new();
        builder.push(Part { modes, tokens: self.nesting.tokens() });
        builder.finish()
    }
}

impl From<&Layout> for SymbolicLayout {
    fn from(layout: &Layout) -> SymbolicLayout {
        let part = layout.part();
        let mut nesting = Nesting::empty();
        nesting.push(part.tokens);
        SymbolicLayout { modes: part.modes.iter().map(|&mode| mode.into()).collect(), nesting }
    }
}

impl From<Layout> for SymbolicLayout {
    fn from(layout: Layout) -> SymbolicLayout {
        SymbolicLayout::from(&layout)
    }
}

impl From<&SymbolicLayout> for SymbolicLayout {
    fn from(layout: &SymbolicLayout) -> SymbolicLayout {
        layout.clone()
    }
}
