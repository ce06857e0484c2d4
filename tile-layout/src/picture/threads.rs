//! Decides how owners of elements are drawn: which thread holds an element, and in which of its registers.
//! Knows nothing of memory or of renderers. Invariants: every holder of an element is counted in its cell; a
//! place that nobody holds is blank.

use super::grid::{Extents, counted};
use super::memory::{panel_title, trailing};
use super::{Cell, Note, Paint, Picture, colour};
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::Layout;
use crate::linear::{Dim, Group, LinearLayout};
use crate::tuple::IntTuple;
use crate::view::{Threads, View};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// The most holders that a picture counts.
const MAX_HOLDERS: u32 = 1 << 20;
/// The most holders that a cell names.
const NAMED: usize = 4;
/// Lanes that share a shade where threads are counted without warps.
const LANES: u64 = 32;

/// One place of an element; what a layout does not have is `None`.
#[derive(Clone, Copy, Default)]
struct Holder {
    block: Option<u64>,
    warp: Option<u64>,
    thread: Option<u64>,
    value: Option<u64>,
}

impl Holder {
    /// From the outside in, as in `W2 T3 V1`.
    fn label(self) -> String {
        let parts = [("B", self.block), ("W", self.warp), ("T", self.thread), ("V", self.value)];
        let named: Vec<String> =
            parts.iter().filter_map(|(name, index)| index.map(|index| format!("{name}{index}"))).collect();
        named.join(" ")
    }
}

/// The cells of a tile while holders are entered.
struct Tile {
    extents: Extents,
    cells: Vec<Owned>,
}

#[derive(Clone, Default)]
struct Owned {
    named: Vec<Holder>,
    count: usize,
}

impl Tile {
    fn new(extents: Extents) -> Tile {
        Tile { extents, cells: vec![Owned::default(); usize::try_from(extents.cells()).unwrap_or(0)] }
    }

    fn position(&self, panel: i64, row: i64, column: i64) -> usize {
        usize::try_from((panel * self.extents.rows + row) * self.extents.columns + column)
            .unwrap_or(usize::MAX)
    }

    fn enter(&mut self, position: usize, holder: Holder) {
        if let Some(owned) = self.cells.get_mut(position) {
            owned.count += 1;
            if owned.named.len() < NAMED {
                owned.named.push(holder);
            }
        }
    }

    fn draw(
        self,
        title: String,
        panel: impl Fn(i64) -> String,
        paint: impl Fn(Holder) -> Paint,
    ) -> Result<Picture> {
        let headers = || Ok((counted(self.extents.rows), counted(self.extents.columns)));
        let most = self.cells.iter().map(|owned| owned.count).max().unwrap_or(0);
        let least = self.cells.iter().map(|owned| owned.count).min().unwrap_or(0);
        let shaded = self.cells.iter().flat_map(|owned| &owned.named).any(|holder| holder.warp.is_some());
        let warps = if shaded { ("W warp, ", ", shade: warp mod 4") } else { ("", "") };
        let mut legend =
            vec![Note::text(format!("cell: {}T thread, V value; colour: thread mod 8{}", warps.0, warps.1))];
        if most > 1 {
            legend.push(Note::text(format!("up to {most} places hold the same element")));
        }
        if least == 0 {
            legend.push(Note::painted(Paint::Blank, "nobody holds the element"));
        }
        let cell = |place: i64, row: i64, column: i64| {
            let owned = self.cells.get(self.position(place, row, column));
            Ok(owned.map_or_else(Cell::blank, |owned| owned.cell(&paint)))
        };
        self.extents.draw(title, headers, |place| Ok(panel(place)), cell, legend)
    }
}

impl Owned {
    fn cell(&self, paint: impl Fn(Holder) -> Paint) -> Cell {
        let Some(&first) = self.named.first() else { return Cell::blank() };
        let mut labels: Vec<String> = self.named.iter().map(|holder| holder.label()).collect();
        if self.count > self.named.len() {
            labels.push(format!("+{}", self.count - self.named.len()));
        }
        Cell { labels, paint: paint(first), outlined: false }
    }
}

impl Picture {
    /// Who holds which element of a tile, as a linear layout from `Register`, `Lane`, `Warp` and `Block` to
    /// `Axis(0)`, the rows, and `Axis(1)`, the columns; further axes are panels. A cell reads `W2 T3 V1`: warp,
    /// thread (the lane) and value (the register).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for other dimensions, or for more cells than a picture has.
    ///
    /// ```
    /// use tile_layout::{linear, picture::Picture};
    /// let shape = linear::MatrixShape { m: 16, n: 8, k: 16 };
    /// let a = linear::mma_sync(shape, 16, linear::Operand::A).unwrap();
    /// let picture = Picture::threads(&a)?;
    /// assert_eq!(picture.panels()[0].cell(10, 3).unwrap().labels(), ["T9 V3"]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn threads(layout: &LinearLayout) -> Result<Picture> {
        let title = signature(layout);
        let foreign = |dim: Dim, of_tile: bool| matches!(dim, Dim::Axis(_)) != of_tile || dim == Dim::Offset;
        let wrong = layout.inputs().iter().find(|group| foreign(group.dim, false));
        if let Some(group) = wrong.or(layout.outputs().iter().find(|group| foreign(group.dim, true))) {
            return Err(LayoutError::new(
                ErrorKind::Unsupported,
                format!("{title} has `{}` where threads hold elements of a tile", group.dim),
            ));
        }
        let bits: u32 = layout.inputs().iter().map(|group| group.bits).sum();
        if bits > MAX_HOLDERS.ilog2() {
            return Err(LayoutError::new(
                ErrorKind::Unsupported,
                format!("{title} has 2^{bits} holders; a picture counts at most {MAX_HOLDERS}"),
            ));
        }
        let mut axes: Vec<_> = layout.outputs().to_vec();
        axes.sort_by_key(|group| group.dim);
        let lengths: Vec<i64> =
            axes.iter().map(|group| i64::try_from(group.extent()).unwrap_or(i64::MAX)).collect();
        let extents = Extents::leading(&title, &lengths)?;
        let mut tile = Tile::new(extents);
        let index = |holder: &[(Dim, u64)], dim: Dim| {
            holder.iter().find(|(own, _)| *own == dim).map(|&(_, index)| index)
        };
        for flat in 0..1u64 << bits {
            let (mut rest, mut holder) = (flat, Vec::new());
            for group in layout.inputs() {
                holder.push((group.dim, rest & (group.extent() - 1)));
                rest >>= group.bits;
            }
            let output = layout.apply_flat(flat)?;
            let coordinate: Vec<i64> =
                axes.iter().map(|group| layout.output_coordinate(output, group.dim) as i64).collect();
            let (row, column, others) = match coordinate.as_slice() {
                [] => (0, 0, &[][..]),
                [column] => (0, *column, &[][..]),
                [row, column, others @ ..] => (*row, *column, others),
            };
            let panel = others
                .iter()
                .zip(lengths.iter().skip(2))
                .rev()
                .fold(0, |at, (index, length)| at * length + index);
            let holder = Holder {
                block: index(&holder, Dim::Block),
                warp: index(&holder, Dim::Warp),
                thread: index(&holder, Dim::Lane),
                value: index(&holder, Dim::Register),
            };
            tile.enter(tile.position(panel, row, column), holder);
        }
        let panel = |mut place: i64| {
            let names = axes.iter().zip(&lengths).skip(2).map(|(group, length)| {
                let name = format!("{}={}", group.dim, place % length);
                place /= length;
                name
            });
            names.collect::<Vec<_>>().join(", ")
        };
        tile.draw(title, panel, |holder| colour::thread(holder.thread.unwrap_or(0), holder.warp.unwrap_or(0)))
    }

    /// Who holds which element of a tile of `rows × columns`, as a layout `(threads,values)` whose result counts
    /// through the tile, rows fastest (CuTe's thread-value layout). Threads of one warp of 32 share a shade.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where the layout has not two modes, [`ErrorKind::OutOfBounds`] where it leaves the
    /// tile, [`ErrorKind::Unsupported`] for more cells or holders than a picture has.
    ///
    /// ```
    /// use tile_layout::picture::Picture;
    /// // The accumulator of an 8 × 8 matrix instruction: two neighbouring columns a thread.
    /// let picture = Picture::thread_value(&"((4,8),2):((16,1),8)".parse()?, 8, 8)?;
    /// assert_eq!(picture.panels()[0].cell(1, 3).unwrap().labels(), ["T5 V1"]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn thread_value(layout: &Layout, rows: i64, columns: i64) -> Result<Picture> {
        let title = format!("{layout} on ({rows},{columns})");
        let modes: Vec<Layout> = layout.modes().collect();
        let [threads, _] = modes.as_slice() else {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("{layout} has {} modes; threads and values are two", modes.len()),
            ));
        };
        if let Some(extent) = [rows, columns].into_iter().find(|&extent| extent < 0) {
            return Err(LayoutError::new(
                ErrorKind::InvalidExtent,
                format!("extent {extent} of a tile is negative"),
            ));
        }
        let extents = Extents::new(&title, rows, columns, 1)?;
        if layout.size() > 0 && (layout.min_offset() < 0 || layout.max_offset() >= extents.cells()) {
            return Err(LayoutError::new(
                ErrorKind::OutOfBounds,
                format!(
                    "{layout} reaches from {} to {}, outside a tile of {} elements",
                    layout.min_offset(),
                    layout.max_offset(),
                    extents.cells()
                ),
            ));
        }
        check_holders(&title, layout.size())?;
        let mut tile = Tile::new(extents);
        for (index, place) in (0..).zip(layout.offsets()) {
            let holder = counted_holder(index % threads.size(), index / threads.size());
            tile.enter(tile.position(0, place % rows, place / rows), holder);
        }
        tile.draw(title, |_| String::new(), counted_paint)
    }

    /// Which thread owns which element of a tensor of these extents that is dealt out by
    /// [`View::distribute`], and as which of its elements.
    ///
    /// # Errors
    /// As [`View::distribute`]; [`ErrorKind::Unsupported`] for more cells or holders than a picture has,
    /// [`ErrorKind::OutOfBounds`] where swizzled threads begin outside the tensor.
    ///
    /// ```
    /// use tile_layout::{Layout, Threads, picture::Picture};
    /// let picture = Picture::distributed(&[4, 4], &Threads::new(Layout::row_major([2, 2])?))?;
    /// assert_eq!(picture.panels()[0].cell(2, 1).unwrap().labels(), ["T1 V2"]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn distributed(shape: &[i64], threads: &Threads) -> Result<Picture> {
        let tensor = View::row_major(shape)?;
        let title = format!("{} over threads {}", IntTuple::flat(shape), threads.layout());
        let extents = trailing(&title, shape)?;
        check_holders(&title, threads.layout().size())?;
        let mut tile = Tile::new(extents);
        let owners: BTreeSet<i64> = threads.layout().offsets().collect();
        let mut holders = 0;
        for thread in owners {
            let own = tensor.distribute(threads, thread)?;
            holders += own.size();
            check_holders(&title, holders)?;
            for (value, position) in own.offsets().enumerate() {
                let Some(position) = position else { continue };
                let place = usize::try_from(position).ok().filter(|&place| place < tile.cells.len());
                let place = place.ok_or_else(|| {
                    LayoutError::new(
                        ErrorKind::OutOfBounds,
                        format!("thread {thread} owns position {position} of a tensor of {}", tensor.size()),
                    )
                })?;
                tile.enter(place, counted_holder(thread, value as i64));
            }
        }
        tile.draw(title, |place| panel_title(shape, place), counted_paint)
    }
}

/// The dimensions of a layout without its bits, as in `(lane 32) -> (axis0 32)`.
pub(super) fn signature(layout: &LinearLayout) -> String {
    let side = |groups: &[Group]| {
        let sizes: Vec<String> =
            groups.iter().map(|group| format!("{} {}", group.dim, group.extent())).collect();
        sizes.join(", ")
    };
    format!("({}) -> ({})", side(layout.inputs()), side(layout.outputs()))
}

/// Threads counted without warps.
fn counted_holder(thread: i64, value: i64) -> Holder {
    let index = |index: i64| u64::try_from(index).ok();
    Holder { thread: index(thread), value: index(value), ..Holder::default() }
}

fn counted_paint(holder: Holder) -> Paint {
    let thread = holder.thread.unwrap_or(0);
    colour::thread(thread, thread / LANES)
}

fn check_holders(title: &str, holders: i64) -> Result<()> {
    if holders <= i64::from(MAX_HOLDERS) {
        return Ok(());
    }
    Err(LayoutError::new(
        ErrorKind::Unsupported,
        format!("{title} has {holders} holders; a picture counts at most {MAX_HOLDERS}"),
    ))
}
