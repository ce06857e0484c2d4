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

use super::compose::{Domain, compose_parts};
use super::tiler::Tiler;
use crate::error::Result;
use crate::layout::{Builder, Layout, Mode, Part};

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
        logical(&mut builder, self.part(), &tiler.into())?;
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
        let divided = Divided::new(self.part(), &tiler.into())?;
        let mut builder = Builder::new();
        builder.open(2);
        builder.push(divided.tile.part());
        builder.push(divided.rest.part());
        builder.finish()
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
        let divided = Divided::new(self.part(), &tiler.into())?;
        let mut builder = Builder::new();
        builder.open(1 + divided.rest.rank());
        builder.push(divided.tile.part());
        divided.rest.part().children().for_each(|mode| builder.push(mode));
        builder.finish()
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
        let divided = Divided::new(self.part(), &tiler.into())?;
        let mut builder = Builder::new();
        builder.open(divided.tile.rank() + divided.rest.rank());
        divided.tile.part().children().for_each(|mode| builder.push(mode));
        divided.rest.part().children().for_each(|mode| builder.push(mode));
        builder.finish()
    }
}

/// A layout in two: the walk inside a tile and the walk from tile to tile.
struct Divided {
    tile: Layout,
    rest: Layout,
}

impl Divided {
    fn new(part: Part<'_>, tiler: &Tiler) -> Result<Divided> {
        let (mut tile, mut rest) = (Builder::new(), Builder::new());
        divide(&mut tile, &mut rest, part, tiler)?;
        Ok(Divided { tile: tile.finish()?, rest: rest.finish()? })
    }
}

fn divide(tile: &mut Builder, rest: &mut Builder, part: Part<'_>, tiler: &Tiler) -> Result<()> {
    match tiler {
        Tiler::Keep => {
            tile.push(part);
            rest.push(Layout::unit().part());
        }
        Tiler::Layout(layout) => divide_by_layout(tile, rest, part, layout)?,
        Tiler::Sizes(sizes) if sizes.is_leaf() => {
            divide_by_layout(tile, rest, part, &Layout::leaf(sizes.leaves()[0], 1)?)?;
        }
        by_mode => {
            let count = by_mode.modes_within(part)?;
            tile.open(count);
            rest.open(part.rank());
            let mut tilers = by_mode.modes();
            for mode in part.children() {
                match tilers.next() {
                    Some(tiler) => divide(tile, rest, mode, &tiler)?,
                    None => rest.push(mode),
                }
            }
        }
    }
    Ok(())
}

fn divide_by_layout(tile: &mut Builder, rest: &mut Builder, part: Part<'_>, layout: &Layout) -> Result<()> {
    if part.size() == 0 {
        // No elements make no tiles, whatever the tile.
        tile.push(layout.part());
        rest.push_leaf(Mode::new(0, 0));
        return Ok(());
    }
    let walk = Layout::concat(&[layout.clone(), layout.complement(part.size())?])?;
    let mut builder = Builder::new();
    compose_parts(&mut builder, part, walk.part(), Domain::Extended)?;
    let composed = builder.finish()?;
    let mut modes = composed.part().children();
    if let (Some(inside), Some(across)) = (modes.next(), modes.next()) {
        tile.push(inside);
        rest.push(across);
    }
    Ok(())
}

fn logical(builder: &mut Builder, part: Part<'_>, tiler: &Tiler) -> Result<()> {
    match tiler {
        Tiler::Keep => builder.push(part),
        Tiler::Modes(_) => logical_by_mode(builder, part, tiler)?,
        Tiler::Sizes(sizes) if !sizes.is_leaf() => logical_by_mode(builder, part, tiler)?,
        _ => {
            let divided = Divided::new(part, tiler)?;
            builder.open(2);
            builder.push(divided.tile.part());
            builder.push(divided.rest.part());
        }
    }
    Ok(())
}

fn logical_by_mode(builder: &mut Builder, part: Part<'_>, tiler: &Tiler) -> Result<()> {
    tiler.modes_within(part)?;
    builder.open(part.rank());
    let mut tilers = tiler.modes();
    part.children().try_for_each(|mode| logical(builder, mode, &tilers.next().unwrap_or(Tiler::Keep)))
}
