//! Decides how offsets in memory are drawn: layouts by their first two modes, tensors by their last two axes.
//! Knows nothing of threads, banks or renderers. Invariant: a cell's label is what the layout, view or program
//! answers for its index.

use super::grid::{Extents, nested, plain};
use super::{Cell, Note, Paint, Picture, colour};
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::Layout;
use crate::movement::Movement;
use crate::program::{Element, ViewProgram};
use crate::swizzle::{Swizzle, SwizzledLayout};
use crate::tuple::IntTuple;
use crate::view::{View, unravel};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

const OFFSETS: &str = "cell: offset; colour: offset mod 8";

impl Picture {
    /// The offsets of a layout: its first mode down, its second to the right, the others as panels. One mode is
    /// one row. A tuple of modes is counted through, its first mode fastest, with its coordinates as headers and
    /// heavier lines where an inner mode begins anew.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for more cells than a picture has.
    ///
    /// ```
    /// use tile_layout::{Layout, picture::Picture};
    /// let layout: Layout = "(4,(2,2)):(1,(4,8))".parse()?;
    /// let picture = Picture::layout(&layout)?;
    /// let cell = picture.panels()[0].cell(3, 1).unwrap();
    /// assert_eq!(cell.labels(), [layout.offset(&(3, (1, 0)).into())?.to_string()]);
    /// assert!(Picture::layout(&Layout::row_major([1000, 1000])?).is_err());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn layout(layout: &Layout) -> Result<Picture> {
        indexed(layout.to_string(), layout, |index| layout.get(index))
    }

    /// The swizzled offsets of a layout, arranged as by [`Picture::layout`].
    ///
    /// # Errors
    /// As [`Picture::layout`].
    ///
    /// ```
    /// use tile_layout::picture::Picture;
    /// let picture = Picture::swizzled(&"Sw<3,0,3> o 0 o (8,8):(8,1)".parse()?)?;
    /// assert_eq!(picture.panels()[0].cell(1, 0).unwrap().labels(), ["9"]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn swizzled(layout: &SwizzledLayout) -> Result<Picture> {
        indexed(layout.to_string(), layout.layout(), |index| layout.get(index))
    }

    /// The offsets of a tensor: its last two axes down and to the right, the others as panels. Elements outside
    /// the window are hatched and show the fill value.
    ///
    /// # Errors
    /// As [`Picture::layout`].
    ///
    /// ```
    /// use tile_layout::{Fill, Movement, View, picture::Picture};
    /// let padded = View::row_major(&[2, 2])?.pad_with(&[Some((1, 0)), None], Fill::from(7))?;
    /// let picture = Picture::view(&padded)?;
    /// assert_eq!(picture.panels()[0].cell(0, 0).unwrap().labels(), ["7"]);
    /// assert_eq!(picture.panels()[0].cell(2, 1).unwrap().labels(), ["3"]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn view(view: &View) -> Result<Picture> {
        let cell = |index: &[i64]| {
            Ok(match view.get(index)? {
                Some(offset) => Cell::new(offset.to_string(), colour::cycle(offset)),
                None => Cell::new(view.fill().to_string(), Paint::Hatched),
            })
        };
        let mut legend = alloc::vec![Note::text(OFFSETS)];
        if view.is_masked() {
            legend.push(Note::painted(Paint::Hatched, format!("outside the window: {}", view.fill())));
        }
        if view.swizzle() != Swizzle::IDENTITY {
            legend.push(Note::text(format!("offsets pass through {}", view.swizzle())));
        }
        tensor(view.to_string(), view.shape(), cell, legend)
    }

    /// The elements of a program, arranged as by [`Picture::view`]. Of one source they are drawn like those of a
    /// view; of several, a cell shows `source:offset` and the colour is the source's.
    ///
    /// # Errors
    /// As [`Picture::layout`].
    ///
    /// ```
    /// use tile_layout::{Movement, ViewProgram, picture::Picture};
    /// let rolled = ViewProgram::row_major(0, &[4])?.roll(&[1], &[0])?;
    /// let picture = Picture::program(&rolled)?;
    /// assert_eq!(picture.panels()[0].cell(0, 0).unwrap().labels(), ["3"]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn program(program: &ViewProgram) -> Result<Picture> {
        let shape = program.shape();
        let title = match program.as_view() {
            Some((_, view)) => view.to_string(),
            None => format!("{} from {} views", IntTuple::flat(shape), program.view_count()),
        };
        let extents = trailing(&title, shape)?;
        let (mut sources, mut filled) = (Vec::new(), false);
        for position in 0..extents.cells() {
            match program.get(&unravel(shape, position))? {
                Element::Memory { source, .. } => sources.push(source),
                Element::Fill(_) => filled = true,
            }
        }
        sources.sort_unstable();
        sources.dedup();
        let of_source = |source: usize| {
            // Far apart among the hues where there are few sources.
            let place = sources.binary_search(&source).unwrap_or(0) as i64;
            colour::cycle(5 + 3 * place)
        };
        let several = sources.len() > 1;
        let cell = |index: &[i64]| {
            Ok(match program.get(index)? {
                Element::Memory { source, offset } if several => {
                    Cell::new(format!("{source}:{offset}"), of_source(source))
                }
                Element::Memory { offset, .. } => Cell::new(offset.to_string(), colour::cycle(offset)),
                Element::Fill(value) => Cell::new(value.to_string(), Paint::Hatched),
            })
        };
        let mut legend = Vec::new();
        if several {
            legend.push(Note::text("cell: source:offset; colour: source"));
            legend.extend(
                sources.iter().map(|&source| Note::painted(of_source(source), format!("source {source}"))),
            );
        } else {
            legend.push(Note::text(OFFSETS));
        }
        if filled {
            legend.push(Note::painted(Paint::Hatched, "filled, from no source"));
        }
        tensor(title, shape, cell, legend)
    }
}

/// A picture of what `get` answers for the linear indices of a layout.
fn indexed(title: String, layout: &Layout, get: impl Fn(i64) -> Option<i64>) -> Result<Picture> {
    let modes: Vec<Layout> = layout.modes().collect();
    let sizes: Vec<i64> = modes.iter().map(Layout::size).collect();
    let extents = Extents::leading(&title, &sizes)?;
    let headers = || match modes.as_slice() {
        [] => Ok((plain(1), plain(1))),
        [columns] => Ok((plain(1), nested(columns)?)),
        [rows, columns, ..] => Ok((nested(rows)?, nested(columns)?)),
    };
    let others = IntTuple::tuple(&modes.iter().skip(2).map(Layout::shape).collect::<Vec<_>>());
    let panel = |place: i64| {
        let coordinate = others.coordinate(place)?;
        let indices: Vec<String> = coordinate.modes().map(|mode| mode.to_string()).collect();
        Ok(format!("(_,_,{})", indices.join(",")))
    };
    let cell = |place: i64, row: i64, column: i64| {
        let index = row + extents.rows * (column + extents.columns * place);
        let offset = get(index).ok_or_else(|| {
            LayoutError::new(ErrorKind::OutOfBounds, format!("index {index} lies outside {layout}"))
        })?;
        Ok(Cell::new(offset.to_string(), colour::cycle(offset)))
    };
    extents.draw(title.clone(), headers, panel, cell, alloc::vec![Note::text(OFFSETS)])
}

/// The last two extents as rows and columns, the others as panels.
pub(super) fn trailing(title: &str, shape: &[i64]) -> Result<Extents> {
    let (leading, last) = shape.split_at(shape.len().saturating_sub(2));
    let panels = leading.iter().fold(1, |size: i64, extent| size.saturating_mul(*extent));
    match last {
        [rows, columns] => Extents::new(title, *rows, *columns, panels),
        [columns] => Extents::new(title, 1, *columns, panels),
        _ => Extents::new(title, 1, 1, panels),
    }
}

/// The index of a panel on the axes before the last two, as in `[1, ..]`.
pub(super) fn panel_title(shape: &[i64], place: i64) -> String {
    let leading = &shape[..shape.len().saturating_sub(2)];
    let index: Vec<String> = unravel(leading, place).iter().map(i64::to_string).collect();
    format!("[{}, ..]", index.join(", "))
}

/// A picture of a tensor, `cell` drawing the element at an index.
fn tensor(
    title: String,
    shape: &[i64],
    cell: impl Fn(&[i64]) -> Result<Cell>,
    legend: Vec<Note>,
) -> Result<Picture> {
    let extents = trailing(&title, shape)?;
    let headers = || Ok((plain(extents.rows), plain(extents.columns)));
    let panel = |place: i64| Ok(panel_title(shape, place));
    let at = |place: i64, row: i64, column: i64| {
        let position = (place * extents.rows + row) * extents.columns + column;
        cell(&unravel(shape, position))
    };
    extents.draw(title.clone(), headers, panel, at, legend)
}
