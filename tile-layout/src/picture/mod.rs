//! Decides what a picture is: panels of labelled, painted cells with row and column headers, a title and a legend.
//!
//! Layouts are easiest to judge by eye. The constructors turn anything that places elements into a [`Picture`]:
//! offsets ([`Picture::layout`], [`Picture::swizzled`], [`Picture::view`], [`Picture::program`]), owners
//! ([`Picture::threads`], [`Picture::thread_value`], [`Picture::distributed`]) and banks of shared memory
//! ([`Picture::banks`]). Two renderers turn a picture into text: [`Picture::to_svg`] and
//! [`Picture::to_terminal`].
//!
//! The constructors must not know how a picture is rendered, the renderers not what it shows, and no part of the
//! module touches files. Invariants: a panel has one cell for each pair of its headers; a picture has at most
//! [`MAX_CELLS`] cells, and at most [`MAX_EXTENT`] rows, columns and panels; the same input gives the same text.

mod banks;
mod colour;
mod gallery;
mod grid;
mod memory;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;
mod threads;

use alloc::string::String;
use alloc::vec::Vec;

pub use banks::{BankAccess, Banks, SharedTile};
pub use colour::{Paint, Rgb};
pub use gallery::{Exhibit, gallery};
pub use terminal::Colour;

/// The most rows, columns and panels that a picture has.
///
/// ```
/// use tile_layout::Layout;
/// use tile_layout::picture::{MAX_EXTENT, Picture};
/// assert!(Picture::layout(&Layout::leaf(MAX_EXTENT, 1)?).is_ok());
/// assert!(Picture::layout(&Layout::leaf(MAX_EXTENT + 1, 1)?).is_err());
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
pub const MAX_EXTENT: i64 = 128;

/// The most cells that a picture has, those of all its panels together.
///
/// ```
/// use tile_layout::Layout;
/// use tile_layout::picture::{MAX_CELLS, Picture};
/// let rows = MAX_CELLS / 128;
/// assert!(Picture::layout(&Layout::row_major([rows, 128])?).is_ok());
/// assert!(Picture::layout(&Layout::row_major([rows, 128, 2])?).is_err());
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
pub const MAX_CELLS: i64 = MAX_EXTENT * MAX_EXTENT;

/// A drawing of where elements lie or who holds them.
///
/// ```
/// use tile_layout::picture::{Colour, Picture};
/// let picture = Picture::layout(&"(2,(2,2)):(1,(4,2))".parse()?)?;
/// assert_eq!(picture.to_terminal(Colour::Off), "\
/// (2,(2,2)):(1,(4,2))
/// ┌───┬──────────────┬──────────────┐
/// │   │ (0,0)  (1,0) │ (0,1)  (1,1) │
/// ├───┼──────────────┼──────────────┤
/// │ 0 │     0      4 │     2      6 │
/// │ 1 │     1      5 │     3      7 │
/// └───┴──────────────┴──────────────┘
/// cell: offset; colour: offset mod 8
/// ");
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    title: String,
    panels: Vec<Panel>,
    legend: Vec<Note>,
}

/// A grid of a [`Picture`].
///
/// ```
/// use tile_layout::picture::Picture;
/// let picture = Picture::layout(&"(2,3,4):(1,2,6)".parse()?)?;
/// assert_eq!(picture.panels().len(), 4);
/// assert_eq!(picture.panels()[3].title(), "(_,_,3)");
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    title: String,
    rows: Vec<Header>,
    columns: Vec<Header>,
    /// One for each row and column, row by row.
    cells: Vec<Cell>,
}

/// The name of a row or a column.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Header {
    label: String,
    /// How heavy the line before it is: the number of nested modes that begin anew there.
    level: usize,
}

/// One element of a [`Panel`].
///
/// ```
/// use tile_layout::picture::{Paint, Picture};
/// let picture = Picture::layout(&"(2,3):(3,1)".parse()?)?;
/// let cell = picture.panels()[0].cell(1, 2).unwrap();
/// assert_eq!(cell.labels(), ["5"]);
/// assert!(matches!(cell.paint(), Paint::Colour(_)) && !cell.is_outlined());
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    labels: Vec<String>,
    paint: Paint,
    outlined: bool,
}

/// A line of the legend, with the paint that it explains.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    paint: Option<Paint>,
    text: String,
}

impl Picture {
    /// The line above the panels.
    ///
    /// ```
    /// use tile_layout::picture::Picture;
    /// assert_eq!(Picture::layout(&"(2,3):(3,1)".parse()?)?.title(), "(2,3):(3,1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The same picture with another title.
    ///
    /// ```
    /// use tile_layout::picture::Picture;
    /// let picture = Picture::layout(&"(2,3):(3,1)".parse()?)?.with_title("rows < columns");
    /// assert!(picture.to_svg().contains("rows &lt; columns"));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Picture {
        self.title = title.into();
        self
    }

    /// The panels from left to right; none where there are no elements.
    ///
    /// ```
    /// use tile_layout::picture::Picture;
    /// assert!(Picture::layout(&"(0,3):(3,1)".parse()?)?.panels().is_empty());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn panels(&self) -> &[Panel] {
        &self.panels
    }

    /// The lines below the panels.
    ///
    /// ```
    /// use tile_layout::picture::Picture;
    /// let picture = Picture::layout(&"(2,3):(3,1)".parse()?)?;
    /// assert_eq!(picture.legend().collect::<Vec<_>>(), ["cell: offset; colour: offset mod 8"]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn legend(&self) -> impl Iterator<Item = &str> {
        self.legend.iter().map(|note| note.text.as_str())
    }
}

impl Panel {
    /// Which part of the whole this is; empty where it is all of it.
    ///
    /// ```
    /// use tile_layout::picture::Picture;
    /// assert_eq!(Picture::layout(&"(2,3):(3,1)".parse()?)?.panels()[0].title(), "");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The names of the rows.
    ///
    /// ```
    /// use tile_layout::picture::Picture;
    /// let picture = Picture::layout(&"((2,2),3):((1,6),2)".parse()?)?;
    /// let rows: Vec<&str> = picture.panels()[0].rows().collect();
    /// assert_eq!(rows, ["(0,0)", "(1,0)", "(0,1)", "(1,1)"]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rows.iter().map(|header| header.label.as_str())
    }

    /// The names of the columns.
    ///
    /// ```
    /// use tile_layout::picture::Picture;
    /// let picture = Picture::layout(&"(2,3):(3,1)".parse()?)?;
    /// assert_eq!(picture.panels()[0].columns().collect::<Vec<_>>(), ["0", "1", "2"]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn columns(&self) -> impl ExactSizeIterator<Item = &str> {
        self.columns.iter().map(|header| header.label.as_str())
    }

    /// The cell in a row and a column; `None` outside the panel.
    ///
    /// ```
    /// use tile_layout::picture::Picture;
    /// let picture = Picture::layout(&"(2,3):(3,1)".parse()?)?;
    /// assert!(picture.panels()[0].cell(1, 2).is_some() && picture.panels()[0].cell(1, 3).is_none());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn cell(&self, row: usize, column: usize) -> Option<&Cell> {
        let width = self.columns.len();
        if column < width { self.cells.get(row.checked_mul(width)? + column) } else { None }
    }

    /// The headers of the rows with their cells.
    fn lines(&self) -> impl Iterator<Item = (&Header, &[Cell])> {
        self.rows.iter().zip(self.cells.chunks(self.columns.len().max(1)))
    }
}

impl Cell {
    /// What stands in it: one text, or one for each of several holders.
    ///
    /// ```
    /// use tile_layout::{linear, picture::Picture};
    /// let a = linear::wmma(linear::WmmaGeneration::Gfx11, 16, linear::Operand::A).unwrap();
    /// let picture = Picture::threads(&a)?;
    /// assert_eq!(picture.panels()[0].cell(3, 1).unwrap().labels(), ["T3 V1", "T19 V1"]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// What it is painted with.
    ///
    /// ```
    /// use tile_layout::{Movement, View, picture::{Paint, Picture}};
    /// let picture = Picture::view(&View::row_major(&[2])?.pad(&[Some((0, 1))])?)?;
    /// assert_eq!(picture.panels()[0].cell(0, 2).unwrap().paint(), Paint::Hatched);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn paint(&self) -> Paint {
        self.paint
    }

    /// Whether it is among the highlighted ones.
    ///
    /// ```
    /// use tile_layout::{Layout, picture::{BankAccess, Banks, Picture}};
    /// let read = BankAccess { lanes: vec![(1, 0)], width: 4 };
    /// let picture = Picture::banks(&Layout::row_major([2, 4])?, &Banks::new(4).accessed(read))?;
    /// let panel = &picture.panels()[0];
    /// assert!(panel.cell(1, 0).unwrap().is_outlined() && !panel.cell(0, 0).unwrap().is_outlined());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn is_outlined(&self) -> bool {
        self.outlined
    }

    fn new(label: impl Into<String>, paint: Paint) -> Cell {
        Cell { labels: alloc::vec![label.into()], paint, outlined: false }
    }

    /// A place where nothing is.
    fn blank() -> Cell {
        Cell { labels: Vec::new(), paint: Paint::Blank, outlined: false }
    }
}

impl Note {
    fn text(text: impl Into<String>) -> Note {
        Note { paint: None, text: text.into() }
    }

    fn painted(paint: Paint, text: impl Into<String>) -> Note {
        Note { paint: Some(paint), text: text.into() }
    }
}

/// Text without control characters, which neither XML nor a terminal takes as text.
fn printable(text: &str) -> impl Iterator<Item = char> {
    let shown = |character: char| !character.is_control() && !matches!(character, '\u{fffe}' | '\u{ffff}');
    text.chars().map(move |character| if shown(character) { character } else { char::REPLACEMENT_CHARACTER })
}
