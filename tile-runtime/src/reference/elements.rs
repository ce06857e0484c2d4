//! The elements of a tensor argument, each by its position in memory. Where a tensor isn't dense others may own what lies
//! between its elements, so no slice is made of the memory, and a position that isn't the tensor's is refused.

use std::cell::Cell;
use std::marker::PhantomData;
use tile_ir::view::GivenTensor;

/// The most axes that a tensor of a kernel has.
const MOST_AXES: usize = 6;

/// The elements of a tensor that is read.
#[derive(Clone, Copy, Debug)]
pub struct ReadElements<'a, T> {
    first: *const T,
    positions: Positions,
    borrowed: PhantomData<&'a T>,
}

impl<'a, T: Copy> ReadElements<'a, T> {
    /// The elements of a slice.
    pub fn of(elements: &'a [T]) -> ReadElements<'a, T> {
        let positions = Positions::dense(elements.len());
        ReadElements { first: elements.as_ptr(), positions, borrowed: PhantomData }
    }

    /// Those of a tensor whose element that lies first is at this address.
    ///
    /// # Safety
    /// The tensor's elements are there, all valid, and for so long nobody writes them.
    pub(super) unsafe fn at_address(address: u64, given: &GivenTensor<'_>) -> ReadElements<'a, T> {
        let positions = Positions::of(given.extents, given.strides);
        ReadElements { first: address as *const T, positions, borrowed: PhantomData }
    }

    /// The element at a position, counted from the one that lies first.
    ///
    /// # Panics
    /// Where the tensor has none.
    pub fn at(&self, position: usize) -> T {
        self.positions.check(position);
        // SAFETY: the position is one of the tensor's, whose elements nobody writes.
        unsafe { self.first.add(position).read() }
    }
}

/// The elements of a tensor that is written, as cells are.
#[derive(Debug)]
pub struct WrittenElements<'a, T> {
    first: *mut T,
    positions: Positions,
    borrowed: PhantomData<&'a Cell<T>>,
}

impl<T> Clone for WrittenElements<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for WrittenElements<'_, T> {}

impl<'a, T: Copy> WrittenElements<'a, T> {
    /// The elements of a slice.
    pub fn of(elements: &'a [Cell<T>]) -> WrittenElements<'a, T> {
        let positions = Positions::dense(elements.len());
        WrittenElements { first: elements.as_ptr().cast_mut().cast(), positions, borrowed: PhantomData }
    }

    /// Those of a tensor whose element that lies first is at this address.
    ///
    /// # Safety
    /// The tensor's elements are there, all valid, and for so long nobody uses them but by such values on this thread.
    pub(super) unsafe fn at_address(address: u64, given: &GivenTensor<'_>) -> WrittenElements<'a, T> {
        let positions = Positions::of(given.extents, given.strides);
        WrittenElements { first: address as *mut T, positions, borrowed: PhantomData }
    }

    /// The element at a position, counted from the one that lies first.
    ///
    /// # Panics
    /// Where the tensor has none.
    pub fn get(&self, position: usize) -> T {
        self.positions.check(position);
        // SAFETY: the position is one of the tensor's, which are used on this thread only, one after the other.
        unsafe { self.first.add(position).read() }
    }

    /// Writes the element at a position, counted likewise.
    ///
    /// # Panics
    /// Where the tensor has none.
    pub fn set(&self, position: usize, value: T) {
        self.positions.check(position);
        // SAFETY: as for `get`.
        unsafe { self.first.add(position).write(value) }
    }
}

/// Where the elements of a tensor lie, from the one that lies first on.
#[derive(Clone, Copy, Debug)]
struct Positions {
    /// How many elements lie from the first to the last, with those between them that are others'.
    count: usize,
    /// The axes along which the next element isn't the next in memory, those of the largest strides first; none of a dense
    /// tensor.
    axes: [Axis; MOST_AXES],
    rank: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Axis {
    stride: usize,
    extent: usize,
    /// How far the axes behind this one reach together.
    behind: usize,
}

impl Positions {
    fn dense(count: usize) -> Positions {
        Positions { count, axes: [Axis::default(); MOST_AXES], rank: 0 }
    }

    fn of(extents: &[usize], strides: Option<&[i64]>) -> Positions {
        let count = extents.iter().product();
        let Some(strides) = strides.filter(|_| count > 0) else { return Positions::dense(count) };
        let mut axes = [Axis::default(); MOST_AXES];
        let mut rank = 0;
        for (&extent, stride) in extents.iter().zip(strides) {
            // From the first in memory on, an axis that goes backwards goes forwards.
            let stride = usize::try_from(stride.unsigned_abs()).expect("a stride in memory is a size");
            if extent > 1 && stride > 0 {
                assert!(rank < MOST_AXES, "a tensor of the reference device has at most {MOST_AXES} axes");
                axes[rank] = Axis { stride, extent, behind: 0 };
                rank += 1;
            }
        }
        axes[..rank].sort_unstable_by_key(|axis| axis.stride);
        // Two axes that are one.
        let mut kept = 0;
        for next in 1..rank {
            let (last, axis) = (axes[kept], axes[next]);
            if axis.stride == last.stride * last.extent {
                axes[kept].extent *= axis.extent;
            } else {
                kept += 1;
                axes[kept] = axis;
            }
        }
        rank = rank.min(kept + 1);
        let mut reach = 0;
        for axis in &mut axes[..rank] {
            axis.behind = reach;
            reach += axis.stride * (axis.extent - 1);
        }
        axes[..rank].reverse();
        match &axes[..rank] {
            [] => Positions::dense(1),
            [axis] if axis.stride == 1 => Positions::dense(axis.extent),
            _ => Positions { count: reach + 1, axes, rank },
        }
    }

    #[track_caller]
    fn check(&self, position: usize) {
        assert!(position < self.count, "element {position} of {} is outside", self.count);
        assert!(
            self.rank == 0 || is_reached(&self.axes[..self.rank], position),
            "element {position} lies between those of the tensor, and is another's"
        );
    }
}

/// Whether some indices along the axes lead to a position. Of most tensors an axis leaves one to try.
fn is_reached(axes: &[Axis], position: usize) -> bool {
    let Some((axis, behind)) = axes.split_first() else { return position == 0 };
    let least = position.saturating_sub(axis.behind).div_ceil(axis.stride);
    let most = (position / axis.stride).min(axis.extent - 1);
    (least..=most).any(|index| is_reached(behind, position - index * axis.stride))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tile_layout::multi_index;

    /// Positions by going through all indices.
    fn reached(extents: &[usize], strides: &[i64]) -> BTreeSet<i64> {
        let of = |number| {
            let index = multi_index(number, extents);
            index.iter().zip(strides).map(|(&index, stride)| index as i64 * stride).sum()
        };
        let positions: Vec<i64> = (0..extents.iter().product()).map(of).collect();
        let first = positions.iter().min().copied().unwrap_or(0);
        positions.into_iter().map(|position| position - first).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes long, and touches no memory that isn't its own")]
    fn positions_are_those_of_all_indices() {
        let choices = [-6, -2, 0, 1, 2, 3, 5, 12];
        for extents in [[2, 3, 4], [4, 1, 2], [5, 2, 3], [3, 0, 1]] {
            for number in 0..choices.len().pow(3) {
                let strides: Vec<i64> =
                    multi_index(number, &[choices.len(); 3]).into_iter().map(|i| choices[i]).collect();
                let (positions, expected) =
                    (Positions::of(&extents, Some(&strides)), reached(&extents, &strides));
                let last = expected.last().map_or(0, |last| last + 1);
                assert_eq!(positions.count as i64, last, "{extents:?} {strides:?}");
                for position in 0..last {
                    let is_own = positions.rank == 0
                        || is_reached(&positions.axes[..positions.rank], position as usize);
                    assert_eq!(is_own, expected.contains(&position), "{position} of {extents:?} {strides:?}");
                }
            }
        }
    }

    #[test]
    fn dense_tensors_have_one_axis_or_none() {
        for (extents, strides) in [([2, 3, 4], [12, 4, 1]), ([2, 3, 4], [-1, 2, 6]), ([1, 1, 1], [5, 6, 7])] {
            assert_eq!(Positions::of(&extents, Some(&strides)).rank, 0, "{extents:?} {strides:?}");
        }
        assert_eq!(Positions::of(&[4, 6], Some(&[12, 2])).rank, 1);
    }
}
