//! Decides how axes become rows, columns and panels, and which are too many. Knows nothing of what the cells
//! show. Invariant: no cell is made before the number of all cells was checked.

use super::{Cell, Header, MAX_CELLS, MAX_EXTENT, Note, Panel, Picture};
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::Layout;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// After how many rows or columns of a tile a heavier line helps the eye.
const MARKED: usize = 8;

/// Extents that were checked, and the way in which cells are numbered.
#[derive(Clone, Copy)]
pub(super) struct Extents {
    pub(super) rows: i64,
    pub(super) columns: i64,
    pub(super) panels: i64,
}

impl Extents {
    /// Rows, columns and panels, where they can be drawn.
    pub(super) fn new(what: &str, rows: i64, columns: i64, panels: i64) -> Result<Extents> {
        // With an empty axis the others may be of any extent, and their product may even saturate.
        let empty = [rows, columns, panels].contains(&0);
        let cells = if empty { 0 } else { rows.saturating_mul(columns).saturating_mul(panels) };
        let largest = rows.max(columns).max(panels);
        if cells > 0 && (largest > MAX_EXTENT || cells > MAX_CELLS) {
            return Err(LayoutError::new(
                ErrorKind::Unsupported,
                format!(
                    "{what} has {rows} rows × {columns} columns × {panels} panels; a picture has at most \
                     {MAX_EXTENT} of each and {MAX_CELLS} cells: draw a part of it"
                ),
            ));
        }
        Ok(if empty { Extents { rows: 0, columns: 0, panels: 0 } } else { Extents { rows, columns, panels } })
    }

    /// Rows and columns from the first two of some extents, panels from the others; one extent is one row.
    pub(super) fn leading(what: &str, extents: &[i64]) -> Result<Extents> {
        let product =
            |extents: &[i64]| extents.iter().fold(1, |size: i64, extent| size.saturating_mul(*extent));
        match extents {
            [] => Extents::new(what, 1, 1, 1),
            [columns] => Extents::new(what, 1, *columns, 1),
            [rows, columns, others @ ..] => Extents::new(what, *rows, *columns, product(others)),
        }
    }

    /// The number of cells, at most [`MAX_CELLS`].
    pub(super) fn cells(self) -> i64 {
        self.rows * self.columns * self.panels
    }

    /// A picture of these extents; `headers` gives rows and columns, `panel` the title of each panel and `cell`
    /// the cell at a panel, a row and a column.
    pub(super) fn draw(
        self,
        title: String,
        headers: impl Fn() -> Result<(Vec<Header>, Vec<Header>)>,
        panel: impl Fn(i64) -> Result<String>,
        mut cell: impl FnMut(i64, i64, i64) -> Result<Cell>,
        legend: Vec<Note>,
    ) -> Result<Picture> {
        if self.cells() == 0 {
            return Ok(Picture { title, panels: Vec::new(), legend: alloc::vec![Note::text("no elements")] });
        }
        let mut panels = Vec::new();
        for place in 0..self.panels {
            let (rows, columns) = headers()?;
            let mut cells = Vec::new();
            for row in 0..self.rows {
                for column in 0..self.columns {
                    cells.push(cell(place, row, column)?);
                }
            }
            let title = if self.panels == 1 { String::new() } else { panel(place)? };
            panels.push(Panel { title, rows, columns, cells });
        }
        Ok(Picture { title, panels, legend })
    }
}

/// Headers that count, with a heavier line after every eighth.
pub(super) fn counted(extent: i64) -> Vec<Header> {
    let header = |index: i64| Header {
        label: index.to_string(),
        level: usize::from(index > 0 && index.unsigned_abs().is_multiple_of(MARKED as u64)),
    };
    (0..extent).map(header).collect()
}

/// Headers that count and have no heavier lines.
pub(super) fn plain(extent: i64) -> Vec<Header> {
    (0..extent).map(|index| Header { label: index.to_string(), level: 0 }).collect()
}

/// The coordinates of a mode: a heavier line wherever one of its inner modes begins anew.
pub(super) fn nested(mode: &Layout) -> Result<Vec<Header>> {
    let shape = mode.shape();
    let extents: Vec<i64> = shape.leaves().iter().copied().filter(|&extent| extent > 1).collect();
    let header = |index: i64| {
        let mut block = 1;
        let mut level = 0;
        for extent in extents.iter().take(extents.len().saturating_sub(1)) {
            block *= extent;
            level += usize::from(index > 0 && index % block == 0);
        }
        Ok(Header { label: shape.coordinate(index)?.to_string(), level })
    };
    (0..mode.size()).map(header).collect()
}
