//! Divides: a layout with run-time extents cut into static tiles.
//!
//! The number of tiles is exact where the facts show that the tile divides its mode. Otherwise it is rounded up,
//! the last tile may hang over, and the result names the mode, so that whoever reads through it masks. That is no
//! obligation: an overhang needs a mask, not a check. Where a tile meets several modes, composition may ask for
//! more (see `compose.rs`).

use super::compose::compose_parts;
use crate::algebra::{Cut, Tiler};
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::Layout;
use crate::symbolic::checks::Obligations;
use crate::symbolic::expression::Expr;
use crate::symbolic::layout::{SymbolicBuilder, SymbolicLayout, SymbolicMode, SymbolicPart};
use alloc::format;
use alloc::vec::Vec;

/// A layout cut into tiles, and which modes the last tile may leave.
///
/// ```
/// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
/// let rows: SymbolicLayout = "(m,k):(k,1)".parse()?;
/// let facts = Facts::new().multiple_of("m", 64);
/// let tiles = rows.zipped_divide([64, 32], &mut Obligations::refuse(&facts))?;
/// assert_eq!(tiles.layout.to_string(), "((64,32),(floor_div(m, 64),ceil_div(k, 32))):((k,1),(64*k,32))");
/// assert_eq!(tiles.overhang, [1]);
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divided {
    /// The tiles, nested as the divide says.
    pub layout: SymbolicLayout,
    /// The top-level modes of the layout that was cut, in order, of which the last tile is not known to lie
    /// within: offsets beyond their extent need a mask. A tile of the whole layout leaves its last mode.
    pub overhang: Vec<usize>,
}

impl SymbolicLayout {
    /// Each mode as `(tile, rest)`.
    ///
    /// # Errors
    /// As [`SymbolicLayout::compose`], and as [`Layout::complement`] of the tiler;
    /// [`ErrorKind::InvalidExtent`] for an empty tile.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let rows: SymbolicLayout = "(m,k):(k,1)".parse()?;
    /// let facts = Facts::new();
    /// let tiles = rows.logical_divide([64], &mut Obligations::refuse(&facts))?;
    /// assert_eq!(tiles.layout.to_string(), "((64,ceil_div(m, 64)),k):((k,64*k),1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn logical_divide(
        &self,
        tiler: impl Into<Tiler>,
        obligations: &mut Obligations<'_>,
    ) -> Result<Divided> {
        let mut cutter = Cutter::new(self, obligations);
        let mut builder = SymbolicBuilder::new();
        cutter.logical(&mut builder, self.part(), tiler.into().cut(), Depth::Top)?;
        Ok(Divided { layout: builder.finish()?, overhang: cutter.overhang })
    }

    /// `((tiles),(rests))`: mode 0 walks inside a tile, mode 1 from tile to tile.
    ///
    /// # Errors
    /// As [`SymbolicLayout::logical_divide`].
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let rows: SymbolicLayout = "(m,k):(k,1)".parse()?;
    /// let facts = Facts::new();
    /// let tiles = rows.zipped_divide([64, 32], &mut Obligations::refuse(&facts))?;
    /// assert_eq!(tiles.overhang, [0, 1]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn zipped_divide(
        &self,
        tiler: impl Into<Tiler>,
        obligations: &mut Obligations<'_>,
    ) -> Result<Divided> {
        self.divided(&tiler.into(), obligations, |builder, tile, rest| {
            builder.open(2);
            builder.push(tile);
            builder.push(rest);
        })
    }

    /// `((tiles),rest,rest,…)`.
    ///
    /// # Errors
    /// As [`SymbolicLayout::logical_divide`].
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let rows: SymbolicLayout = "(m,k):(k,1)".parse()?;
    /// let facts = Facts::new().multiple_of("m", 64);
    /// let tiles = rows.tiled_divide([64], &mut Obligations::refuse(&facts))?;
    /// assert_eq!(tiles.layout.to_string(), "((64),floor_div(m, 64),k):((k),64*k,1)");
    /// assert!(tiles.overhang.is_empty());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn tiled_divide(
        &self,
        tiler: impl Into<Tiler>,
        obligations: &mut Obligations<'_>,
    ) -> Result<Divided> {
        self.divided(&tiler.into(), obligations, |builder, tile, rest| {
            builder.open(1 + rest.rank());
            builder.push(tile);
            rest.children().for_each(|mode| builder.push(mode));
        })
    }

    /// `(tile,tile,…,rest,rest,…)`.
    ///
    /// # Errors
    /// As [`SymbolicLayout::logical_divide`].
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let rows: SymbolicLayout = "(128,k):(k,1)".parse()?;
    /// let facts = Facts::new().multiple_of("k", 32);
    /// let tiles = rows.flat_divide([64, 32], &mut Obligations::refuse(&facts))?;
    /// assert_eq!(tiles.layout.to_string(), "(64,32,2,floor_div(k, 32)):(k,1,64*k,32)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn flat_divide(&self, tiler: impl Into<Tiler>, obligations: &mut Obligations<'_>) -> Result<Divided> {
        self.divided(&tiler.into(), obligations, |builder, tile, rest| {
            builder.open(tile.rank() + rest.rank());
            tile.children().chain(rest.children()).for_each(|mode| builder.push(mode));
        })
    }

    /// The tiles and the rests, nested by `arrange`.
    fn divided(
        &self,
        tiler: &Tiler,
        obligations: &mut Obligations<'_>,
        arrange: impl Fn(&mut SymbolicBuilder, SymbolicPart<'_>, SymbolicPart<'_>),
    ) -> Result<Divided> {
        let mut cutter = Cutter::new(self, obligations);
        let (tile, rest) = cutter.cut(self.part(), tiler.cut(), Depth::Top)?;
        let mut builder = SymbolicBuilder::new();
        arrange(&mut builder, tile.part(), rest.part());
        Ok(Divided { layout: builder.finish()?, overhang: cutter.overhang })
    }
}

/// Whether the modes at hand are the top-level ones, which overhangs are counted in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Top,
    Inside,
}

struct Cutter<'o, 'f> {
    obligations: &'o mut Obligations<'f>,
    overhang: Vec<usize>,
    /// The top-level mode that is being cut.
    mode: usize,
}

impl<'o, 'f> Cutter<'o, 'f> {
    fn new(layout: &SymbolicLayout, obligations: &'o mut Obligations<'f>) -> Cutter<'o, 'f> {
        Cutter { obligations, overhang: Vec::new(), mode: layout.rank().saturating_sub(1) }
    }

    /// What walks inside a tile, and what walks from tile to tile.
    fn cut(
        &mut self,
        part: SymbolicPart<'_>,
        cut: Cut<'_>,
        depth: Depth,
    ) -> Result<(SymbolicLayout, SymbolicLayout)> {
        let cuts = match cut {
            Cut::Keep => return Ok((part.to_layout(), Layout::unit().into())),
            Cut::Whole(layout) => return self.cut_by_layout(part, &layout.to_layout()),
            Cut::Run(size) => return self.cut_by_layout(part, &Layout::leaf(size, 1)?),
            Cut::ByMode(cuts) => cuts,
        };
        let count = cuts.count_within(part.rank())?;
        let (mut tile, mut rest) = (SymbolicBuilder::new(), SymbolicBuilder::new());
        tile.open(count);
        rest.open(part.rank());
        for (position, (mode, cut)) in part.children().zip(cuts.each()).enumerate() {
            if depth == Depth::Top {
                self.mode = position;
            }
            if position < count {
                let (inside, across) = self.cut(mode, cut, Depth::Inside)?;
                tile.push(inside.part());
                rest.push(across.part());
            } else {
                rest.push(mode);
            }
        }
        Ok((tile.finish()?, rest.finish()?))
    }

    fn cut_by_layout(
        &mut self,
        part: SymbolicPart<'_>,
        tile: &Layout,
    ) -> Result<(SymbolicLayout, SymbolicLayout)> {
        if tile.size() == 0 {
            return Err(LayoutError::new(
                ErrorKind::InvalidExtent,
                format!("{} is cut into empty tiles {tile}", part.to_layout()),
            ));
        }
        // What the tile skips, then one step per tile: the complement of the tile in the size of the part.
        let mut across: Vec<SymbolicMode> = tile
            .complement(1)?
            .leaves()
            .iter()
            .filter(|mode| mode.extent != 1)
            .map(|&mode| mode.into())
            .collect();
        let ends = tile.moving_modes_by_stride()?;
        let spanned = ends.last().map_or(1, |(_, mode)| mode.stride.saturating_mul(mode.extent));
        across.push(SymbolicMode::new(self.count_tiles(&part.size()?, spanned)?, spanned));
        // In one composition, so that pieces of both which share a mode are seen not to carry.
        let mut walk = SymbolicBuilder::new();
        walk.open(2);
        walk.push(SymbolicLayout::from(tile).part());
        walk.push_mode(&across);
        let mut composed = SymbolicBuilder::new();
        compose_parts(&mut composed, part, walk.finish()?.part(), self.obligations)?;
        let composed = composed.finish()?;
        let mut modes = composed.modes();
        let unit = || SymbolicLayout::from(Layout::unit());
        Ok((modes.next().unwrap_or_else(unit), modes.next().unwrap_or_else(unit)))
    }

    /// The number of tiles that cover `size` elements.
    fn count_tiles(&mut self, size: &Expr, tile: i64) -> Result<Expr> {
        let facts = self.obligations.facts();
        match facts.exact_quotient(size, &Expr::from(tile)) {
            Some(count) => Ok(count),
            None => {
                if !self.overhang.contains(&self.mode) {
                    self.overhang.push(self.mode);
                }
                facts.simplify(size).ceil_div(tile)
            }
        }
    }

    fn logical(
        &mut self,
        builder: &mut SymbolicBuilder,
        part: SymbolicPart<'_>,
        cut: Cut<'_>,
        depth: Depth,
    ) -> Result<()> {
        let cuts = match cut {
            Cut::Keep => {
                builder.push(part);
                return Ok(());
            }
            Cut::ByMode(cuts) => cuts,
            whole => {
                let (tile, rest) = self.cut(part, whole, depth)?;
                builder.open(2);
                builder.push(tile.part());
                builder.push(rest.part());
                return Ok(());
            }
        };
        cuts.count_within(part.rank())?;
        builder.open(part.rank());
        for (position, (mode, cut)) in part.children().zip(cuts.each()).enumerate() {
            if depth == Depth::Top {
                self.mode = position;
            }
            self.logical(builder, mode, cut, Depth::Inside)?;
        }
        Ok(())
    }
}
