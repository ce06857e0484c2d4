//! Elements that aren't contiguous, as rows of bytes at equal distances: what drivers copy and fill in one call.
//!
//! The memories of a copy are looked at together, because their elements have the same indices. An axis along which the
//! elements are contiguous in all memories becomes the bytes of a row. Another axis, with one distance per memory, becomes
//! the rows of a call. Each index of the axes that are left takes a call of its own.

use super::descriptor::{Descriptor, Place};
use crate::gpu::MOST_PITCH;
use smallvec::SmallVec;

/// A call of the driver takes about as long as copying so many bytes to the host and back, which is the alternative.
const BYTES_PER_CALL: usize = 8192;

/// A row of a call takes about as long as copying so many bytes, because it is a memory request of its own.
const BYTES_PER_ROW: usize = 64;

/// So many calls are made even where the elements lie in a range so small that copying it would take less time.
const CALLS: usize = 64;

/// Rows of some memories, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowSet<const MEMORIES: usize> {
    /// Where the first row begins, of each memory.
    pub(super) first: [usize; MEMORIES],
    /// From one row to the next.
    pub(super) pitch: [usize; MEMORIES],
    /// Bytes of a row.
    pub(super) width: usize,
    /// How many rows there are.
    pub(super) height: usize,
}

/// Indices from 0 on, and how far apart they are in each memory, in elements.
#[derive(Clone, Copy)]
struct Axis<const MEMORIES: usize> {
    extent: usize,
    strides: [i64; MEMORIES],
}

type Axes<const MEMORIES: usize> = SmallVec<[Axis<MEMORIES>; 6]>;

/// The elements of memories of one shape as rows; `None` where some memory has no single stride along an axis, and where
/// the calls would take longer than copying to the host and back. Where somebody else's elements lie in the memory that is
/// written, one call is made however long it takes: by way of the host every run would be one.
pub(super) fn rows<const MEMORIES: usize>(
    is_shared: bool,
    memories: [&Descriptor; MEMORIES],
    element: usize,
) -> Option<Vec<RowSet<MEMORIES>>> {
    let mut axes = axes(memories)?;
    if memories[0].len() == 0 {
        return Some(Vec::new());
    }
    let mut first = memories.map(|memory| memory.first() as i64);
    turn_forward(&mut axes, &mut first);
    merge(&mut axes);
    let unit = axes.iter().position(|axis| axis.strides == [1; MEMORIES]);
    let width = element * unit.map_or(1, |unit| axes.remove(unit).extent);
    let rows = take_rows(&mut axes, width, element);
    let (height, pitch) = rows.map_or((1, [width; MEMORIES]), |axis| {
        (axis.extent, axis.strides.map(|stride| stride as usize * element))
    });
    let around: usize = memories.iter().map(|memory| memory.span().len() * element).sum();
    let is_one_call = axes.is_empty();
    if !(is_shared && is_one_call)
        && cost(&axes, height)? > around.max(CALLS * (BYTES_PER_CALL + BYTES_PER_ROW))
    {
        return None;
    }
    let set = |first: [i64; MEMORIES]| RowSet {
        first: first.map(|first| first as usize * element),
        pitch,
        width,
        height,
    };
    Some(places(first, &axes).into_iter().map(set).collect())
}

/// Removes the axis with the most rows of `width` bytes and gives it, if there is one. Drivers copy rows only if they don't
/// overlap and lie at most [`MOST_PITCH`] bytes apart, in the order of their addresses.
fn take_rows<const MEMORIES: usize>(
    axes: &mut Axes<MEMORIES>,
    width: usize,
    element: usize,
) -> Option<Axis<MEMORIES>> {
    let is_pitch = |&stride: &i64| {
        stride > 0 && (width..=MOST_PITCH).contains(&(stride.unsigned_abs() as usize * element))
    };
    let makes_rows = |&axis: &usize| axes[axis].strides.iter().all(is_pitch);
    let longest = (0..axes.len()).filter(makes_rows).max_by_key(|&axis| axes[axis].extent)?;
    Some(axes.remove(longest))
}

/// The cost of one call for each index of these axes, as the number of bytes that can be copied to the host and back
/// meanwhile; `None` if it overflows.
fn cost<const MEMORIES: usize>(axes: &Axes<MEMORIES>, height: usize) -> Option<usize> {
    let calls = axes.iter().try_fold(1_usize, |calls, axis| calls.checked_mul(axis.extent))?;
    calls.checked_mul(BYTES_PER_CALL.checked_add(height.checked_mul(BYTES_PER_ROW)?)?)
}

/// The offsets in each memory of every index of these axes, if those of the first index are `first`.
fn places<const MEMORIES: usize>(first: [i64; MEMORIES], axes: &Axes<MEMORIES>) -> Vec<[i64; MEMORIES]> {
    let mut places = vec![first];
    for axis in axes {
        let along = |first: &[i64; MEMORIES]| {
            let first = *first;
            (0..axis.extent as i64)
                .map(move |index| std::array::from_fn(|memory| first[memory] + index * axis.strides[memory]))
        };
        places = places.iter().flat_map(along).collect();
    }
    places
}

/// The axes with more than one index, outermost first.
fn axes<const MEMORIES: usize>(memories: [&Descriptor; MEMORIES]) -> Option<Axes<MEMORIES>> {
    let shape = memories[0].shape();
    let strides: SmallVec<[SmallVec<[i64; 6]>; MEMORIES]> = memories
        .iter()
        .map(|memory| match memory.place() {
            Place::Dense => {
                let strides = tile_layout::row_major_strides(shape);
                Some(strides.into_iter().map(|stride| stride as i64).collect())
            }
            Place::Strided(strides) => Some(strides.into()),
            Place::Unknown => None,
        })
        .collect::<Option<_>>()?;
    let axis = |number: usize| Axis {
        extent: shape[number],
        strides: std::array::from_fn(|memory| strides[memory][number]),
    };
    Some((0..shape.len()).filter(|&number| shape[number] > 1).map(axis).collect())
}

/// Has axes that run backwards in every memory run forwards.
fn turn_forward<const MEMORIES: usize>(axes: &mut Axes<MEMORIES>, first: &mut [i64; MEMORIES]) {
    for axis in axes.iter_mut().filter(|axis| axis.strides.iter().all(|&stride| stride < 0)) {
        for (first, stride) in first.iter_mut().zip(&mut axis.strides) {
            *first += *stride * (axis.extent as i64 - 1);
            *stride = -*stride;
        }
    }
}

/// Makes one axis of two that are one in every memory. The order of axes doesn't matter: each element has its place.
fn merge<const MEMORIES: usize>(axes: &mut Axes<MEMORIES>) {
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.strides[0].unsigned_abs()));
    axes.dedup_by(|inner, outer| {
        let is_one =
            (0..MEMORIES).all(|memory| outer.strides[memory] == inner.strides[memory] * inner.extent as i64);
        if is_one {
            *outer = Axis { extent: outer.extent * inner.extent, strides: inner.strides };
        }
        is_one
    });
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]
mod tests {
    use super::rows as rows_into;
    use super::{Descriptor, RowSet};
    use crate::tensor::Indices;
    use tile_layout::{Index, Movement};

    fn rows<const MEMORIES: usize>(
        memories: [&Descriptor; MEMORIES],
        element: usize,
    ) -> Option<Vec<RowSet<MEMORIES>>> {
        rows_into(false, memories, element)
    }

    fn part(shape: &[usize], indices: impl Indices) -> Descriptor {
        let whole = Descriptor::dense(shape).unwrap();
        whole.moved(|view| view.index(&indices.list())).unwrap()
    }

    fn set<const MEMORIES: usize>(
        first: [usize; MEMORIES],
        pitch: [usize; MEMORIES],
        width: usize,
        height: usize,
    ) -> Vec<RowSet<MEMORIES>> {
        vec![RowSet { first, pitch, width, height }]
    }

    #[test]
    #[cfg_attr(miri, ignore = "it accesses no memory")]
    fn parts_of_a_matrix_are_rows_of_one_call() {
        let whole = Descriptor::dense(&[1000, 100]).unwrap();
        assert_eq!(rows([&whole], 4), Some(set([0], [400_000], 400_000, 1)));
        assert_eq!(rows([&part(&[1000, 100], (1..3, 10..20))], 4), Some(set([440], [400], 40, 2)));
        // A column, of however many rows, and every third of them from below.
        assert_eq!(rows([&part(&[1000, 100], (.., 3))], 4), Some(set([12], [400], 4, 1000)));
        let third = part(&[1000, 100], (Index::slice(None, None, -3), 3));
        assert_eq!(rows([&third], 4), Some(set([12], [1200], 4, 334)));
        let square = Descriptor::dense(&[4096, 4096]).unwrap();
        let diagonal = square.moved(|view| Movement::diagonal(view, 0, 0, 1)).unwrap();
        assert_eq!(rows([&diagonal], 4), Some(set([0], [4 * 4097], 4, 4096)));
        assert_eq!(rows([&Descriptor::dense(&[0, 3]).unwrap()], 4), Some(vec![]));
        // Rows of planes, whichever axis comes first, are a call for each plane.
        let planes = part(&[3, 50, 8], (.., ..40, 2..4));
        let turned = planes.moved(|view| Movement::permute(view, &[2, 0, 1])).unwrap();
        let expected = [0, 1, 2].map(|plane| set([4 * (400 * plane + 2)], [32], 8, 40)[0]);
        assert_eq!(rows([&planes], 4), Some(expected.to_vec()));
        assert_eq!(rows([&turned], 4), Some(expected.to_vec()));
    }

    #[test]
    #[cfg_attr(miri, ignore = "it accesses no memory")]
    fn two_memories_have_rows_where_both_have() {
        let (target, source) = (Descriptor::dense(&[40, 10]).unwrap(), part(&[50, 80], (..40, 30..40)));
        assert_eq!(rows([&target, &source], 2), Some(set([0, 60], [20, 160], 20, 40)));
        // Both turned are both as they were.
        let turn = |it: &Descriptor| it.moved(Movement::t).unwrap();
        assert_eq!(rows([&turn(&target), &turn(&source)], 2), rows([&target, &source], 2));
        // Every element of a row, for each of few rows.
        let few = Descriptor::dense(&[3, 500]).unwrap();
        let down = turn(&Descriptor::dense(&[500, 3]).unwrap());
        let expected = [0, 1, 2].map(|row| set([2000 * row, 4 * row], [4, 12], 4, 500)[0]);
        assert_eq!(rows([&few, &down], 4), Some(expected.to_vec()));
        // One row again and again has no distance, and takes a call for each.
        let again = part(&[5, 7], (2..3, ..)).moved(|view| Movement::expand(view, [4, 7])).unwrap();
        let repeated = rows([&Descriptor::dense(&[4, 7]).unwrap(), &again], 4).unwrap();
        assert_eq!(repeated.len(), 4);
        assert_eq!(repeated[3], set([84, 56], [28, 28], 28, 1)[0]);
    }

    /// What would take longer than the way by the host, and what no driver takes.
    #[test]
    #[cfg_attr(miri, ignore = "it accesses no memory")]
    fn many_short_rows_and_margins_are_no_rows() {
        let large = Descriptor::dense(&[4096, 4096]).unwrap();
        let turned = large.moved(Movement::t).unwrap();
        assert_eq!(rows([&large, &turned], 4), None);
        let padded = large.moved(|view| view.pad(&[Some((1, 0)), None])).unwrap();
        assert_eq!(rows([&padded], 4), None);
        // Rows farther apart than drivers say.
        let far = Descriptor::strided(&[2, 2], &[1 << 30, 1]).unwrap();
        assert_eq!(rows([&far], 4).map(|rows| rows.len()), Some(2));
        assert_eq!(rows([&far], 1).map(|rows| rows.len()), Some(1));
    }

    /// By way of the host each of the short rows would be a call.
    #[test]
    #[cfg_attr(miri, ignore = "it accesses no memory")]
    fn one_call_is_made_where_somebody_elses_elements_lie_between() {
        let every_second = Descriptor::strided(&[20_000], &[2]).unwrap();
        assert_eq!(rows([&every_second], 4), None);
        assert_eq!(rows_into(true, [&every_second], 4), Some(set([0], [8], 4, 20_000)));
        let turned = Descriptor::strided(&[4096, 4096], &[1, 5000]).unwrap();
        let dense = Descriptor::dense(&[4096, 4096]).unwrap();
        assert_eq!(rows_into(true, [&turned, &dense], 4), None);
    }

    /// Every byte of two memories against the elements one by one.
    #[test]
    #[cfg_attr(miri, ignore = "many elements, and nothing unsafe")]
    fn the_bytes_of_rows_are_those_of_the_elements() {
        let parts: [Descriptor; 4] = [
            Descriptor::dense(&[3, 4, 5]).unwrap(),
            part(&[6, 9, 11], (Index::slice(None, None, 2), 1..5, 3..8)),
            part(&[3, 4, 11], (.., Index::slice(None, None, -1), Index::slice(1, None, 2))),
            part(&[5, 8, 3], (.., ..4, ..)).moved(|view| Movement::permute(view, &[2, 1, 0])).unwrap(),
        ];
        for target in &parts {
            for source in &parts {
                let offsets =
                    |it: &Descriptor| it.view().offsets().map(|offset| offset.unwrap()).collect::<Vec<_>>();
                let mut expected: Vec<[usize; 2]> = offsets(target)
                    .into_iter()
                    .zip(offsets(source))
                    .flat_map(|(to, from)| {
                        (0..2).map(move |byte| [2 * to as usize + byte, 2 * from as usize + byte])
                    })
                    .collect();
                let mut found = Vec::new();
                for rows in rows([target, source], 2).unwrap() {
                    for row in 0..rows.height {
                        let at = |memory: usize, byte| rows.first[memory] + row * rows.pitch[memory] + byte;
                        found.extend((0..rows.width).map(|byte| [at(0, byte), at(1, byte)]));
                    }
                }
                found.sort_unstable();
                expected.sort_unstable();
                assert_eq!(found, expected);
            }
        }
    }
}
