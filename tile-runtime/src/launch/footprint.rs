//! The bytes that a tensor's elements take: whether two tensors share one.
//!
//! Parts of one memory may lie between each other, as the columns of a matrix do, and share nothing. Whether they do is a
//! linear equation with an unknown index in a range for each axis of both; it is solved by search, from the largest stride
//! to the smallest, where what the smaller ones can still add bounds every index, and their common divisors rule out what lies
//! between the multiples.

use crate::tensor::{Place, Untyped};
use smallvec::SmallVec;
use std::ops::Range;

/// How many indices are tried before two tensors count as sharing memory. Parts of one matrix need few.
const MOST_STEPS: usize = 1 << 12;

/// Where a tensor's elements lie.
pub(super) struct Footprint<'a> {
    /// From the element that lies first to the end of that which lies last.
    pub(super) bytes: Range<u64>,
    pub(super) shape: &'a [usize],
    pub(super) place: Place<'a>,
    /// Bytes of an element.
    pub(super) element: usize,
}

/// An unknown number from 0 to `most`, times a stride.
#[derive(Clone, Copy)]
struct Term {
    stride: i128,
    most: i128,
}

type Terms = SmallVec<[Term; 16]>;

impl<'a> Footprint<'a> {
    /// That of a tensor with elements of so many bytes, of which there are some.
    pub(super) fn of(tensor: Untyped<'a>, element: usize) -> Footprint<'a> {
        Footprint { bytes: tensor.bytes(element), shape: tensor.shape(), place: tensor.place(), element }
    }

    /// Whether two tensors share a byte; also where that takes long to find out.
    pub(super) fn may_meet(&self, other: &Footprint<'_>) -> bool {
        let ranges_meet = self.bytes.start < other.bytes.end && other.bytes.start < self.bytes.end;
        if !ranges_meet || matches!((self.place, other.place), (Place::Dense, Place::Dense)) {
            return ranges_meet;
        }
        let (Some(mut terms), Some(others)) = (self.terms(), other.terms()) else { return true };
        // start + Σ strides·i + byte = other start + Σ other strides·j + other byte, where counting a range down changes
        // the sign of its stride.
        let turned: i128 = others.iter().map(|term| term.stride * term.most).sum();
        let target = i128::from(other.bytes.start) - i128::from(self.bytes.start) + turned;
        terms.extend(others);
        terms.sort_unstable_by_key(|term| std::cmp::Reverse(term.stride));
        // Two numbers of one stride add up to any number up to the sum of theirs.
        terms.dedup_by(|next, term| {
            let is_same = next.stride == term.stride;
            term.most += if is_same { next.most } else { 0 };
            is_same
        });
        let mut steps = MOST_STEPS;
        can_reach(&terms, target, &mut steps)
    }

    /// Every axis counted upwards, and the bytes of an element; `None` where an axis has no stride.
    fn terms(&self) -> Option<Terms> {
        let bytes = self.element as i128;
        let within = Term { stride: 1, most: bytes - 1 };
        let axis = |(&extent, stride): (&usize, i64)| Term {
            stride: i128::from(stride.unsigned_abs()) * bytes,
            most: extent as i128 - 1,
        };
        let elements: Terms = match self.place {
            Place::Unknown => return None,
            Place::Dense => {
                let count = (self.bytes.end - self.bytes.start) as i128 / bytes;
                [Term { stride: bytes, most: count - 1 }].into_iter().collect()
            }
            Place::Strided(strides) => self.shape.iter().zip(strides.iter().copied()).map(axis).collect(),
        };
        let counts = |term: &Term| term.stride > 0 && term.most > 0;
        Some(elements.into_iter().chain([within]).filter(counts).collect())
    }
}

/// Whether Σ stride·i = target for some numbers in their ranges; also where that takes too many steps. The strides fall.
fn can_reach(terms: &[Term], target: i128, steps: &mut usize) -> bool {
    let Some((first, rest)) = terms.split_first() else { return target == 0 };
    let behind: i128 = rest.iter().map(|term| term.stride * term.most).sum();
    if target < 0 || target > first.stride * first.most + behind || lies_between_multiples(terms, target) {
        return false;
    }
    let least = (target - behind).max(0).div_euclid(first.stride)
        + i128::from((target - behind).max(0) % first.stride != 0);
    let most = first.most.min(target / first.stride);
    let mut index = least;
    while index <= most {
        if *steps == 0 {
            return true;
        }
        *steps -= 1;
        if can_reach(rest, target - first.stride * index, steps) {
            return true;
        }
        index += 1;
    }
    false
}

/// Whether some of the strides have a divisor between whose multiples the target lies, further from the one below than the
/// other terms reach.
fn lies_between_multiples(terms: &[Term], target: i128) -> bool {
    let mut behind: i128 = terms.iter().map(|term| term.stride * term.most).sum();
    let mut divisor = 0;
    terms.iter().any(|term| {
        divisor = gcd(divisor, term.stride);
        behind -= term.stride * term.most;
        target.rem_euclid(divisor) > behind
    })
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The addresses of a tensor of 4-byte elements, one by one.
    fn bytes(start: u64, shape: &[usize], strides: &[i64]) -> BTreeSet<u64> {
        let mut offsets = vec![0i64];
        for (&extent, &stride) in shape.iter().zip(strides) {
            let along = |&offset: &i64| (0..extent as i64).map(move |i| offset + i * stride);
            offsets = offsets.iter().flat_map(along).collect();
        }
        let least = *offsets.iter().min().unwrap();
        offsets
            .iter()
            .flat_map(|offset| (0..4).map(move |byte| start + 4 * (offset - least) as u64 + byte))
            .collect()
    }

    fn footprint<'a>(start: u64, shape: &'a [usize], strides: &'a [i64]) -> Footprint<'a> {
        let own = bytes(start, shape, strides);
        let bytes = *own.first().unwrap()..own.last().unwrap() + 1;
        Footprint { bytes, shape, place: Place::Strided(strides), element: 4 }
    }

    #[test]
    fn parts_between_each_other_share_nothing() {
        // The left and the right half of a matrix of a million rows, and its even and odd columns.
        let rows: &[usize] = &[1_000_000, 4];
        let at = |first: u64, strides| Footprint {
            bytes: 4 * first..4 * (first + 8 * 999_999 + 7),
            shape: rows,
            place: Place::Strided(strides),
            element: 4,
        };
        assert!(!at(0, &[8, 1]).may_meet(&at(4, &[8, 1])));
        assert!(at(0, &[8, 1]).may_meet(&at(3, &[8, 1])));
        assert!(!at(0, &[8, 2]).may_meet(&at(1, &[8, 2])));
        assert!(at(0, &[8, 2]).may_meet(&at(1, &[8, 1])));
        assert!(at(0, &[8, 1]).may_meet(&at(0, &[8, 1])));
    }

    /// However many elements the common divisor of their strides leaves out.
    #[test]
    fn parts_of_unlike_strides_share_nothing() {
        let at = |first: u64, shape: &'static [usize], strides: &'static [i64]| {
            let reach: i64 =
                shape.iter().zip(strides).map(|(&extent, stride)| (extent as i64 - 1) * stride).sum();
            let bytes = 4 * first..4 * (first + reach as u64 + 1);
            Footprint { bytes, shape, place: Place::Strided(strides), element: 4 }
        };
        // Of ten million numbers every second, and every fourth from the second and from the third on.
        let evens = at(0, &[5_000_000], &[2]);
        assert!(!evens.may_meet(&at(1, &[2_500_000], &[4])));
        assert!(evens.may_meet(&at(2, &[2_500_000], &[4])));
        // The same of the rows of a matrix of 30,001 columns, of which only some begin at even places.
        let evens = at(0, &[30_000, 15_001], &[30_001, 2]);
        assert!(!evens.may_meet(&at(1, &[30_000, 7_500], &[30_001, 4])));
        assert!(evens.may_meet(&at(2, &[30_000, 7_500], &[30_001, 4])));
    }

    /// Every answer against the sets of addresses.
    #[test]
    fn small_tensors_against_their_addresses() {
        let strides: [&[i64]; 6] = [&[1, 3], &[5, 1], &[-4, 2], &[3, 3], &[7, -1], &[2, 6]];
        let shapes: [&[usize]; 3] = [&[2, 3], &[3, 1], &[1, 4]];
        let (mut met, mut apart) = (0, 0);
        for first in strides {
            for second in strides {
                for (shape, other) in shapes.iter().flat_map(|a| shapes.iter().map(move |b| (*a, *b))) {
                    for start in 40..64 {
                        let is_shared = !bytes(40, shape, first).is_disjoint(&bytes(start, other, second));
                        let found = footprint(40, shape, first).may_meet(&footprint(start, other, second));
                        assert_eq!(
                            found, is_shared,
                            "{shape:?} {first:?} and {other:?} {second:?} at {start}"
                        );
                        if is_shared { met += 1 } else { apart += 1 }
                    }
                }
            }
        }
        assert!(met > 1000 && apart > 1000, "{met} {apart}");
    }
}
