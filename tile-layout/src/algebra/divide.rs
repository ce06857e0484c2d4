//! Divides: a layout cut into tiles.
//!
//! `logical_divide(A, B) = A ∘ (B, complement(B, size A))`: the first mode walks inside a tile, the second from
//! tile to tile. The other divides hold the same modes in another nesting:
//!
//! | divide | of `(M,N)` by `(m,n)` |
//! |---|---|
//! | logical | `((m,M/m),(n,N/n))` |
//! | zipped | `((m,n),(M/m,N/n))` |
//! | tiled | `((m,n),M/m,N/n)` |
//! | flat | `(m,n,M/m,N/n)` |
//!
//! A tile that does not divide its mode gets a last tile that hangs over, whose offsets leave the layout: the
//! number of tiles is rounded up, and whoever reads needs a mask ([`crate::View::tile`] has one). An empty layout
//! has no tiles.

use super::compose::{Domain, Pieces, check_size, compose_modes, push_pieces};
use super::tiler::{Cut, Tiler};
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Builder, Layout, Mode, Modes, Part};
use crate::tuple::LEAF_TOKENS;
use alloc::format;
use smallvec::SmallVec;

impl Layout {
    /// Each mode as `(tile, rest)`; see the table above the family in the chapter on layouts.
    ///
    /// # Errors
    /// As [`Layout::compose`] and [`Layout::complement`]: where the tiler and the layout do not fit.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let rows: Layout = "(8,6):(6,1)".parse()?;
    /// assert_eq!(rows.logical_divide([4, 2])?.to_string(), "((4,2),(2,3)):((6,24),(1,2))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn logical_divide(&self, tiler: impl Into<Tiler>) -> Result<Layout> {
        let mut builder = Builder::new();
        logical(&mut builder, self.part(), tiler.into().cut())?;
        builder.finish()
    }

    /// `((tiles),(rests))`: mode 0 walks inside a tile, mode 1 from tile to tile.
    ///
    /// # Errors
    /// As [`Layout::logical_divide`].
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let rows: Layout = "(8,6):(6,1)".parse()?;
    /// assert_eq!(rows.zipped_divide([4, 2])?.to_string(), "((4,2),(2,3)):((6,1),(24,2))");
    /// // 7 columns in tiles of 2: the fourth hangs over.
    /// assert_eq!("(8,7):(7,1)".parse::<Layout>()?.zipped_divide([4, 2])?.to_string(), "((4,2),(2,4)):((7,1),(28,2))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn zipped_divide(&self, tiler: impl Into<Tiler>) -> Result<Layout> {
        let (mut zipped, mut rest) = (Builder::new(), Builder::new());
        zipped.open(2);
        divide(&mut zipped, &mut rest, self.part(), tiler.into().cut())?;
        zipped.push(rest.part());
        zipped.finish()
    }

    /// `((tiles),rest,rest,…)`.
    ///
    /// # Errors
    /// As [`Layout::logical_divide`].
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let rows: Layout = "(8,6):(6,1)".parse()?;
    /// assert_eq!(rows.tiled_divide([4, 2])?.to_string(), "((4,2),2,3):((6,1),24,2)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn tiled_divide(&self, tiler: impl Into<Tiler>) -> Result<Layout> {
        let (mut tile, mut rest) = (Builder::new(), Builder::new());
        divide(&mut tile, &mut rest, self.part(), tiler.into().cut())?;
        let mut tiled = Builder::new();
        tiled.open(1 + rest.part().rank());
        tiled.push(tile.part());
        rest.part().children().for_each(|mode| tiled.push(mode));
        tiled.finish()
    }

    /// `(tile,tile,…,rest,rest,…)`.
    ///
    /// # Errors
    /// As [`Layout::logical_divide`].
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let rows: Layout = "(8,6):(6,1)".parse()?;
    /// assert_eq!(rows.flat_divide([4, 2])?.to_string(), "(4,2,2,3):(6,1,24,2)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn flat_divide(&self, tiler: impl Into<Tiler>) -> Result<Layout> {
        let (mut tile, mut rest) = (Builder::new(), Builder::new());
        divide(&mut tile, &mut rest, self.part(), tiler.into().cut())?;
        let mut flat = Builder::new();
        flat.open(tile.part().rank() + rest.part().rank());
        tile.part().children().chain(rest.part().children()).for_each(|mode| flat.push(mode));
        flat.finish()
    }
}

/// Append to `tile` the walk inside a tile, to `rest` the walk from tile to tile.
fn divide(tile: &mut Builder, rest: &mut Builder, part: Part<'_>, cut: Cut<'_>) -> Result<()> {
    match cut {
        Cut::ByMode(cuts) => {
            let count = cuts.count_within(part.rank())?;
            tile.open(count);
            rest.open(part.rank());
            for (place, (mode, cut)) in part.children().zip(cuts.each()).enumerate() {
                if place < count {
                    divide(tile, rest, mode, cut)?;
                } else {
                    rest.push(mode);
                }
            }
        }
        whole => {
            let walk = Walk::new(part, whole)?;
            walk.push_tile(tile);
            walk.push_rest(rest);
        }
    }
    Ok(())
}

fn logical(builder: &mut Builder, part: Part<'_>, cut: Cut<'_>) -> Result<()> {
    match cut {
        Cut::Keep => builder.push(part),
        Cut::ByMode(cuts) => {
            cuts.count_within(part.rank())?;
            builder.open(part.rank());
            part.children().zip(cuts.each()).try_for_each(|(mode, cut)| logical(builder, mode, cut))?;
        }
        whole => {
            let walk = Walk::new(part, whole)?;
            builder.open(2);
            walk.push_tile(builder);
            walk.push_rest(builder);
        }
    }
    Ok(())
}

/// Both walks through a layout that is cut as a whole.
struct Walk<'a> {
    /// The tile and what it leaves out, composed with the layout.
    pieces: Pieces,
    /// Leaves of the tile.
    tile_leaves: usize,
    tile_tokens: &'a [u32],
    rest_tokens: SmallVec<[u32; 12]>,
}

impl<'a> Walk<'a> {
    fn new(part: Part<'a>, cut: Cut<'a>) -> Result<Walk<'a>> {
        let (tile, tile_tokens): (Modes, &[u32]) = match cut {
            Cut::Run(size) => (Modes::from_slice(&[check_size(size)?]), LEAF_TOKENS),
            Cut::Whole(layout) => (Modes::from_slice(layout.modes), layout.tokens),
            // All of it is one tile.
            Cut::Keep | Cut::ByMode(_) => (Modes::from_slice(&[Mode::new(part.size(), 1)]), LEAF_TOKENS),
        };
        if tile.iter().any(|mode| mode.extent == 0) && part.size() > 0 {
            return Err(LayoutError::new(
                ErrorKind::InvalidExtent,
                format!("{} is cut into tiles without elements", part.to_layout()),
            ));
        }
        let tile_leaves = tile.len();
        let mut walk = tile;
        let size = part.size();
        let rest_tokens = match (&walk[..], size) {
            // No elements make no tiles, whatever the tile.
            (_, 0) => {
                walk.push(Mode::new(0, 0));
                SmallVec::from_slice(LEAF_TOKENS)
            }
            ([Mode { extent: run @ 1.., stride: 1 }], _) => {
                let run = *run;
                walk.push(Mode::new((size - 1) / run + 1, run));
                SmallVec::from_slice(LEAF_TOKENS)
            }
            _ => {
                let tile = Part { modes: &walk[..tile_leaves], tokens: tile_tokens }.to_layout();
                let complement = tile.complement(size)?;
                walk.extend_from_slice(complement.leaves());
                SmallVec::from_slice(complement.part().tokens)
            }
        };
        let mut both = Builder::new();
        both.open(walk.len());
        walk.iter().for_each(|&mode| both.push_leaf(mode));
        let pieces = compose_modes(part, both.finish()?.part(), Domain::Extended)?;
        Ok(Walk { pieces, tile_leaves, tile_tokens, rest_tokens })
    }

    fn push_tile(&self, builder: &mut Builder) {
        let mut pieces = self.pieces.iter();
        push_pieces(builder, self.tile_tokens, &mut pieces);
    }

    fn push_rest(&self, builder: &mut Builder) {
        let mut pieces = self.pieces.iter();
        while pieces.clone().next().is_some_and(|piece| piece.leaf < self.tile_leaves) {
            pieces.next();
        }
        push_pieces(builder, &self.rest_tokens, &mut pieces);
    }
}
