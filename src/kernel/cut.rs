//! Where the elements of a tile lie in a tensor that is cut into tiles.

use super::view_movement::{Places, Seen};
use super::{Element, Tile};
use tile_ir::view::Placement;
use tile_layout::{linear_index, multi_index};

/// How a tensor is cut.
#[derive(Clone)]
pub(super) struct Cut<const R: usize> {
    places: Places,
    pub(super) extents: [usize; R],
    pub(super) tile: [usize; R],
    steps: [usize; R],
}

impl<const R: usize> Cut<R> {
    pub(super) fn new(seen: &Seen, tile: [usize; R], steps: [usize; R]) -> Self {
        assert!(
            tile.iter().all(|&extent| extent > 0),
            "a partition view needs positive tile extents, not {tile:?}"
        );
        assert!(steps.iter().all(|&step| step > 0), "tiles begin positive steps apart, not {steps:?}");
        Cut { places: seen.places(), extents: seen.extents(), tile, steps }
    }

    pub(super) fn tiles(&self, axis: usize) -> usize {
        self.extents[axis].div_ceil(self.steps[axis])
    }

    /// Per axis, where a tile of a view begins and the places in it that exist; `None` where none do.
    fn window(&self, placement: &Placement, index: [usize; R]) -> Option<[(i64, usize, usize); R]> {
        let mut window = [(0, 0, 0); R];
        for axis in 0..R {
            let start =
                index[axis].checked_mul(self.steps[axis]).filter(|&start| start < self.extents[axis])?;
            let (start, tile) = (start as i64, self.tile[axis] as i64);
            let (begin, end) = placement.windows[axis];
            let (begin, end) = ((begin - start).clamp(0, tile), (end - start).clamp(0, tile));
            if begin >= end {
                return None;
            }
            window[axis] = (start, begin as usize, end as usize);
        }
        Some(window)
    }

    pub(super) fn assert_whole(&self, method: &str, masked: &str, index: [usize; R]) {
        let mut found = 0;
        self.for_each_run(index, |_, _, length| found += length);
        assert!(
            found == self.tile.iter().product::<usize>(),
            "`{method}`: tile {index:?} isn't all inside; use `{masked}`"
        );
    }

    /// Calls `run` with (position in the tile, place → position in the tensor, length) for every row of the
    /// elements of a tile that exist.
    pub(super) fn for_each_run(
        &self,
        index: [usize; R],
        run: impl FnMut(usize, &dyn Fn(usize) -> usize, usize),
    ) {
        match &self.places {
            Places::View(placement) => self.for_each_row(placement, index, run),
            windows @ Places::Windows(..) => self.for_each_gathered(windows, index, run),
        }
    }

    fn for_each_row(
        &self,
        placement: &Placement,
        index: [usize; R],
        mut run: impl FnMut(usize, &dyn Fn(usize) -> usize, usize),
    ) {
        let Some(window) = self.window(placement, index) else { return };
        let counts: Vec<usize> = window.iter().map(|(_, begin, end)| end - begin).collect();
        let (length, rows) = counts.split_last().map_or((1, &[][..]), |(&length, rows)| (length, rows));
        let stride = placement.strides.last().copied().unwrap_or(0);
        for row in 0..rows.iter().product() {
            let mut place = multi_index(row, rows);
            place.resize(R, 0);
            let mut first = placement.offset;
            for (axis, &(start, begin, _)) in window.iter().enumerate() {
                place[axis] += begin;
                first += (start + place[axis] as i64) * placement.strides[axis];
            }
            run(linear_index(&place, &self.tile), &|i| (first + i as i64 * stride) as usize, length);
        }
    }

    /// The same for windows over a margin, of which an element alone is known to lie in the tensor beneath.
    fn for_each_gathered(
        &self,
        windows: &Places,
        index: [usize; R],
        mut run: impl FnMut(usize, &dyn Fn(usize) -> usize, usize),
    ) {
        for in_tile in 0..self.tile.iter().product() {
            let place = multi_index(in_tile, &self.tile);
            let along = |axis: usize| {
                let start = index[axis].checked_mul(self.steps[axis])?;
                start
                    .checked_add(place[axis])
                    .filter(|&at| start < self.extents[axis] && at < self.extents[axis])
            };
            let Some(at) = (0..R).map(|axis| along(axis).map(|at| at as i64)).collect::<Option<Vec<_>>>()
            else {
                continue;
            };
            if let Some(position) = windows.position(&at) {
                run(in_tile, &|_| position, 1);
            }
        }
    }

    pub(super) fn load<T: Element>(
        &self,
        index: [usize; R],
        pad: T,
        element: impl Fn(usize) -> T,
    ) -> Tile<T, R> {
        let mut values = vec![pad; self.tile.iter().product()];
        self.for_each_run(index, |in_tile, in_tensor, length| {
            for i in 0..length {
                values[in_tile + i] = element(in_tensor(i));
            }
        });
        Tile::of_values(self.tile, &values)
    }
}
