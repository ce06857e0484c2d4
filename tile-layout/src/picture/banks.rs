//! Decides how the banks of shared memory are drawn: which banks the elements of a tile lie in, and which of them
//! one access of a warp touches. Knows nothing of who asks for the access or of renderers. Invariant: the bank of
//! a cell is `address / 4 mod banks`, as [`crate::linear::wavefronts`] counts, which also gives the passes.

use super::grid::{Extents, counted};
use super::threads::signature;
use super::{Cell, Note, Picture, colour};
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::Layout;
use crate::linear::{Dim, LinearLayout, MOST_BANKS, WORD_BYTES, wavefronts};
use crate::swizzle::SwizzledLayout;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A tile in shared memory: what gives row and column their offset, in elements.
///
/// ```
/// use tile_layout::{Layout, picture::SharedTile};
/// let rows = Layout::row_major([8, 8])?;
/// assert!(matches!(SharedTile::from(&rows), SharedTile::Layout(_)));
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SharedTile<'a> {
    /// Its first mode counts the rows, its second the columns; one mode is one row.
    Layout(&'a Layout),
    /// As a layout.
    Swizzled(&'a SwizzledLayout),
    /// From `Axis(0)`, the row, and `Axis(1)`, the column, to `Offset`.
    Linear(&'a LinearLayout),
}

impl<'a> From<&'a Layout> for SharedTile<'a> {
    fn from(layout: &'a Layout) -> SharedTile<'a> {
        SharedTile::Layout(layout)
    }
}

impl<'a> From<&'a SwizzledLayout> for SharedTile<'a> {
    fn from(layout: &'a SwizzledLayout) -> SharedTile<'a> {
        SharedTile::Swizzled(layout)
    }
}

impl<'a> From<&'a LinearLayout> for SharedTile<'a> {
    fn from(layout: &'a LinearLayout) -> SharedTile<'a> {
        SharedTile::Linear(layout)
    }
}

/// One access of a warp: lane `i` moves `width` bytes from the element at row and column `lanes[i]` on.
///
/// ```
/// use tile_layout::picture::BankAccess;
/// let column = BankAccess { lanes: (0..32).map(|row| (row, 0)).collect(), width: 4 };
/// assert_eq!(column.lanes.len(), 32);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BankAccess {
    /// Row and column of each lane's first element.
    pub lanes: Vec<(i64, i64)>,
    /// Bytes that a lane moves: 1, 2, 4, 8 or 16.
    pub width: u32,
}

/// Shared memory, and how much of it [`Picture::banks`] puts into a cell.
///
/// ```
/// use tile_layout::picture::Banks;
/// let halves = Banks::new(2).columns_per_cell(8);
/// assert_eq!((halves.banks, halves.columns), (32, 8));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Banks {
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Banks of 4 bytes: 32 on NVIDIA and most AMD GPUs, 64 on gfx950.
    pub banks: u32,
    /// Neighbouring columns that one cell shows; they must be neighbours in memory too.
    pub columns: u32,
    /// The access that is highlighted.
    pub access: Option<BankAccess>,
}

impl Banks {
    /// 32 banks, one element a cell, nothing highlighted.
    ///
    /// ```
    /// assert_eq!(tile_layout::picture::Banks::new(2).banks, 32);
    /// ```
    pub fn new(element_bytes: u32) -> Banks {
        Banks { element_bytes, banks: 32, columns: 1, access: None }
    }

    /// The same with so many columns a cell.
    ///
    /// ```
    /// assert_eq!(tile_layout::picture::Banks::new(2).columns_per_cell(8).columns, 8);
    /// ```
    #[must_use]
    pub fn columns_per_cell(mut self, columns: u32) -> Banks {
        self.columns = columns;
        self
    }

    /// The same with an access highlighted.
    ///
    /// ```
    /// use tile_layout::picture::{BankAccess, Banks};
    /// let access = BankAccess { lanes: vec![(0, 0)], width: 16 };
    /// assert_eq!(Banks::new(2).accessed(access.clone()).access, Some(access));
    /// ```
    #[must_use]
    pub fn accessed(mut self, access: BankAccess) -> Banks {
        self.access = Some(access);
        self
    }

    fn check(&self, title: &str, columns: i64) -> Result<()> {
        let shapes = self.columns > 0 && columns % i64::from(self.columns) == 0;
        let counts = (1..=MOST_BANKS).contains(&self.banks) && self.element_bytes > 0;
        if shapes && counts {
            return Ok(());
        }
        Err(LayoutError::new(
            if shapes { ErrorKind::InvalidExtent } else { ErrorKind::NotDivisible },
            format!(
                "{title} with elements of {} bytes, {} of its {columns} columns a cell and {} banks: use sizes of 1 or \
                 more, cells that divide the columns and at most {MOST_BANKS} banks",
                self.element_bytes, self.columns, self.banks
            ),
        ))
    }
}

/// The byte addresses of a tile's elements.
struct Addresses<'a> {
    tile: SharedTile<'a>,
    title: String,
    rows: i64,
    columns: i64,
    element_bytes: u64,
}

impl<'a> Addresses<'a> {
    fn new(tile: SharedTile<'a>, element_bytes: u32) -> Result<Addresses<'a>> {
        let (title, rows, columns) = match tile {
            SharedTile::Layout(layout) => of_modes(layout.to_string(), layout)?,
            SharedTile::Swizzled(swizzled) => of_modes(swizzled.to_string(), swizzled.layout())?,
            SharedTile::Linear(linear) => of_groups(linear)?,
        };
        Ok(Addresses { tile, title, rows, columns, element_bytes: element_bytes.into() })
    }

    /// The first byte of an element.
    fn at(&self, row: i64, column: i64) -> Result<u64> {
        let outside = || {
            LayoutError::new(
                ErrorKind::OutOfBounds,
                format!(
                    "({row},{column}) of {} lies outside its {} rows and {} columns, or below address 0",
                    self.title, self.rows, self.columns
                ),
            )
        };
        if !(0..self.rows).contains(&row) || !(0..self.columns).contains(&column) {
            return Err(outside());
        }
        let index = row + self.rows * column;
        let offset = match self.tile {
            SharedTile::Layout(layout) => layout.get(index),
            SharedTile::Swizzled(swizzled) => swizzled.get(index),
            SharedTile::Linear(linear) => {
                let named = [(Dim::Axis(0), row), (Dim::Axis(1), column)];
                let has = |dim: Dim| linear.inputs().iter().any(|group| group.dim == dim);
                let indices: Vec<(Dim, u64)> = named
                    .iter()
                    .filter(|(dim, _)| has(*dim))
                    .map(|&(dim, index)| (dim, index.unsigned_abs()))
                    .collect();
                let offset = linear.flat_input(&indices).and_then(|flat| linear.apply_flat(flat));
                i64::try_from(offset?).ok()
            }
        };
        let offset = offset.and_then(|offset| u64::try_from(offset).ok()).ok_or_else(outside)?;
        offset.checked_mul(self.element_bytes).ok_or_else(|| {
            LayoutError::new(
                ErrorKind::Overflow,
                format!("offset {offset} in bytes does not fit into 64 bits"),
            )
        })
    }
}

/// Title, rows and columns of a layout.
fn of_modes(title: String, layout: &Layout) -> Result<(String, i64, i64)> {
    let sizes: Vec<i64> = layout.modes().map(|mode| mode.size()).collect();
    match sizes.as_slice() {
        [] => Ok((title, 1, 1)),
        [columns] => Ok((title, 1, *columns)),
        [rows, columns] => Ok((title, *rows, *columns)),
        more => Err(LayoutError::new(
            ErrorKind::Rank,
            format!("{layout} has {} modes; a tile has rows and columns", more.len()),
        )),
    }
}

/// Title, rows and columns of a linear layout.
fn of_groups(linear: &LinearLayout) -> Result<(String, i64, i64)> {
    let extent = |axis: u8| 1i64.checked_shl(linear.input_bits(Dim::Axis(axis))).filter(|extent| *extent > 0);
    let axes = linear.inputs().iter().all(|group| matches!(group.dim, Dim::Axis(0 | 1)));
    let offset = linear.outputs().iter().all(|group| group.dim == Dim::Offset);
    match (extent(0), extent(1)) {
        (Some(rows), Some(columns)) if axes && offset => {
            Ok((format!("linear layout of {rows} × {columns} elements"), rows, columns))
        }
        _ => Err(LayoutError::new(
            ErrorKind::Unsupported,
            format!(
                "a tile in shared memory goes from axes 0 and 1 to offsets, unlike {}",
                signature(linear)
            ),
        )),
    }
}

impl Picture {
    /// The banks of shared memory that a tile's elements lie in. A cell shows its bank, or its first and last;
    /// colours go once round the hues, so equal colours in what a warp touches at once are conflicts. Where an
    /// access is given, its cells are outlined and name their lanes, the others are paler, and the legend has its
    /// passes.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for more cells than a picture has, for columns of a cell that are no neighbours
    /// in memory and for an access that memory cannot serve; [`ErrorKind::OutOfBounds`] for an access or an
    /// address outside the tile; [`ErrorKind::Rank`], [`ErrorKind::NotDivisible`] and
    /// [`ErrorKind::InvalidExtent`] for tiles and cells that do not fit together.
    ///
    /// ```
    /// use tile_layout::{Layout, picture::{BankAccess, Banks, Picture}};
    /// let rows = Layout::row_major([32, 32])?;
    /// let column = BankAccess { lanes: (0..32).map(|row| (row, 0)).collect(), width: 4 };
    /// let picture = Picture::banks(&rows, &Banks::new(4).accessed(column))?;
    /// assert!(picture.legend().any(|line| line.contains("wavefronts: 32, without conflicts 1")));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn banks<'a>(tile: impl Into<SharedTile<'a>>, banks: &Banks) -> Result<Picture> {
        let addresses = Addresses::new(tile.into(), banks.element_bytes)?;
        banks.check(&addresses.title, addresses.columns)?;
        let columns = i64::from(banks.columns);
        let extents = Extents::new(&addresses.title, addresses.rows, addresses.columns / columns, 1)?;
        let mut legend = alloc::vec![Note::text(format!(
            "cell: bank of {}, {} × {} bytes; colour: bank",
            banks.banks, banks.columns, banks.element_bytes
        ))];
        let ranges = match &banks.access {
            None => Vec::new(),
            Some(access) => {
                let starts: Result<Vec<u64>> =
                    access.lanes.iter().map(|&(row, column)| addresses.at(row, column)).collect();
                let starts = starts?;
                let passes = wavefronts(&starts, access.width, banks.banks)?;
                legend.push(Note::text(format!(
                    "outlined: one access of {} bytes a lane; wavefronts: {}, without conflicts {}",
                    access.width, passes.count, passes.minimum
                )));
                starts
            }
        };
        let width = banks.access.as_ref().map_or(0, |access| u64::from(access.width));
        let cell = |_, row: i64, column: i64| {
            let first = run_start(&addresses, row, column * columns, columns)?;
            let last = first.saturating_add(u64::from(banks.columns) * addresses.element_bytes - 1);
            let touches = |&(_, &start): &(usize, &u64)| start <= last && first - first.min(start) < width;
            let lanes: Vec<usize> = ranges.iter().enumerate().filter(touches).map(|(lane, _)| lane).collect();
            Ok(bank_cell(first, last, u64::from(banks.banks), &lanes, banks.access.is_some()))
        };
        let headers = || {
            let mut headers = counted(extents.columns);
            for (header, column) in headers.iter_mut().zip((0..).step_by(banks.columns as usize)) {
                header.label = i64::to_string(&column);
            }
            Ok((counted(extents.rows), headers))
        };
        extents.draw(addresses.title.clone(), headers, |_| Ok(String::new()), cell, legend)
    }
}

/// The first address of some columns, where they follow each other in memory.
fn run_start(addresses: &Addresses<'_>, row: i64, column: i64, columns: i64) -> Result<u64> {
    let first = addresses.at(row, column)?;
    for (next, expected) in (column + 1..column + columns).zip(1u64..) {
        let own = addresses.at(row, next)?;
        if own.checked_sub(first) != Some(expected * addresses.element_bytes) {
            return Err(LayoutError::new(
                ErrorKind::Unsupported,
                format!(
                    "columns {column} to {} of row {row} of {} are no neighbours in memory: draw fewer a cell",
                    column + columns - 1,
                    addresses.title
                ),
            ));
        }
    }
    Ok(first)
}

/// The cell of the bytes from `first` to `last`.
fn bank_cell(first: u64, last: u64, banks: u64, lanes: &[usize], has_access: bool) -> Cell {
    let [low, high] = [first, last].map(|address| address / u64::from(WORD_BYTES));
    let bank = |word: u64| word % banks;
    let label = match high - low {
        0 => bank(low).to_string(),
        words if words + 1 >= banks => String::from("all"),
        _ => format!("{}–{}", bank(low), bank(high)),
    };
    let paint = colour::bank(bank(low), banks);
    match lanes {
        [] => Cell::new(label, if has_access { colour::muted(paint) } else { paint }),
        [lane, others @ ..] => {
            let more = if others.is_empty() { String::new() } else { format!("+{}", others.len()) };
            Cell { outlined: true, ..Cell::new(format!("{label} T{lane}{more}"), paint) }
        }
    }
}
