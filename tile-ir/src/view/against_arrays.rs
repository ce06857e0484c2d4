//! Views of tensors against arrays: each movement once more, as plain loops over an array that holds, for every index, the
//! position of its element. Nothing here knows of strides, so an error of the rules on them can't be in both.

use super::{Placement, Requirement, TensorMovement};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::types::TensorType;
use proptest::prelude::*;
use tile_layout::multi_index;

/// What stands at every index of an axis order, row by row: the position of an element, if there is one.
#[derive(Clone, Debug)]
struct Positions {
    extents: Vec<usize>,
    of: Vec<Option<usize>>,
}

impl Positions {
    fn dense(extents: &[usize]) -> Positions {
        let count: usize = extents.iter().product();
        Positions { extents: extents.to_vec(), of: (0..count).map(Some).collect() }
    }

    fn at(&self, index: &[usize]) -> Option<usize> {
        let place = index.iter().zip(&self.extents).fold(0, |place, (i, extent)| place * extent + i);
        self.of[place]
    }

    /// An array of other extents, whose element at an index is what stands at another index of this one.
    fn gathered(&self, extents: Vec<usize>, from: impl Fn(&[usize]) -> Option<Vec<usize>>) -> Positions {
        let of = indices(&extents).map(|index| from(&index).and_then(|index| self.at(&index))).collect();
        Positions { extents, of }
    }

    /// The same elements in the same order.
    fn reshaped(&self, extents: Vec<usize>) -> Positions {
        Positions { extents, of: self.of.clone() }
    }

    fn along(&self, axis: usize, extent: usize, from: impl Fn(usize) -> Option<usize>) -> Positions {
        let mut extents = self.extents.clone();
        extents[axis] = extent;
        self.gathered(extents, |index| {
            let mut index = index.to_vec();
            index[axis] = from(index[axis])?;
            Some(index)
        })
    }

    fn moved(&self, step: &Step) -> Positions {
        let mut extents = self.extents.clone();
        match *step {
            Step::Permute(ref order) => {
                let extents = order.iter().map(|&axis| self.extents[axis]).collect();
                self.gathered(extents, |index| {
                    let mut from = vec![0; index.len()];
                    order.iter().zip(index).for_each(|(&axis, &i)| from[axis] = i);
                    Some(from)
                })
            }
            Step::Flip(axis) => {
                let extent = extents[axis];
                self.along(axis, extent, |i| Some(extent - 1 - i))
            }
            Step::Shrink(axis, begin, end) => self.along(axis, end - begin, |i| Some(i + begin)),
            Step::Pad(axis, before, after) => {
                let extent = extents[axis];
                let inside = |i: usize| i.checked_sub(before).filter(|&i| i < extent);
                self.along(axis, before + extent + after, inside)
            }
            Step::Shift(axis, by) => {
                let extent = extents[axis];
                self.along(axis, extent, |i| i.checked_add_signed(-by).filter(|&i| i < extent))
            }
            Step::Every(axis, by) => self.along(axis, extents[axis].div_ceil(by), |i| Some(i * by)),
            Step::Repeat(axis, times) => self.along(axis, times, |_| Some(0)),
            Step::Unsqueeze(axis) => {
                extents.insert(axis, 1);
                self.reshaped(extents)
            }
            Step::Squeeze(axis) => {
                extents.remove(axis);
                self.reshaped(extents)
            }
            Step::Unflatten(axis, inner) => {
                extents.splice(axis..=axis, [self.extents[axis] / inner, inner]);
                self.reshaped(extents)
            }
            Step::Flatten(start, end) => {
                let merged = self.extents[start..=end].iter().product();
                extents.splice(start..=end, [merged]);
                self.reshaped(extents)
            }
            Step::Unfold(axis, size, by) => {
                extents[axis] = (self.extents[axis] - size) / by + 1;
                extents.push(size);
                self.gathered(extents, |index| {
                    let (&within, window) = index.split_last().expect("the last axis was added");
                    let mut from = window.to_vec();
                    from[axis] = from[axis] * by + within;
                    Some(from)
                })
            }
        }
    }

    /// Whether the elements of an axis lie one step apart, whatever the other indices are.
    fn is_even(&self, axis: usize) -> bool {
        let step_at = |index: &[usize]| {
            let mut next = index.to_vec();
            next[axis] += 1;
            let [here, next] =
                [self.at(index), self.at(&next)].map(|place| place.map(|place| place as isize));
            Some(next? - here?)
        };
        let mut steps = indices(&self.extents).filter(|index| index[axis] + 1 < self.extents[axis]);
        let first = steps.next().map(|index| step_at(&index));
        steps.all(|index| Some(step_at(&index)) == first)
    }
}

/// All indices, the last axis fastest.
fn indices(extents: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let extents = extents.to_vec();
    (0..extents.iter().product()).map(move |place| multi_index(place, &extents))
}

/// A movement in numbers.
#[derive(Clone, Debug)]
enum Step {
    Permute(Vec<usize>),
    Flip(usize),
    Shrink(usize, usize, usize),
    Pad(usize, usize, usize),
    Shift(usize, isize),
    Every(usize, usize),
    Repeat(usize, usize),
    Unsqueeze(usize),
    Squeeze(usize),
    Unflatten(usize, usize),
    Flatten(usize, usize),
    Unfold(usize, usize, usize),
}

impl Step {
    /// One that fits the extents, by five numbers; `None` where the kind that they choose has none.
    fn of(extents: &[usize], [kind, axis, a, b, c]: [usize; 5]) -> Option<Step> {
        let rank = extents.len();
        let axis = axis % rank;
        let extent = extents[axis];
        Some(match kind % 12 {
            0 => {
                let mut order: Vec<usize> = (0..rank).collect();
                order.rotate_left(a % rank);
                order.swap(axis, b % rank);
                Step::Permute(order)
            }
            1 => Step::Flip(axis),
            2 => {
                let begin = a % (extent + 1);
                Step::Shrink(axis, begin, begin + b % (extent - begin + 1))
            }
            3 => Step::Pad(axis, a % 3, b % 3),
            4 => Step::Shift(axis, (a % 5) as isize - 2),
            5 => Step::Every(axis, 1 + a % 3),
            6 if extent == 1 => Step::Repeat(axis, a % 4),
            7 if rank < 5 => Step::Unsqueeze(a % (rank + 1)),
            8 if rank > 1 && extent == 1 => Step::Squeeze(axis),
            9 if rank < 5 => {
                let divisors: Vec<usize> =
                    (1..=extent).filter(|&inner| extent.is_multiple_of(inner)).collect();
                Step::Unflatten(axis, *divisors.get(a % divisors.len().max(1))?)
            }
            10 => Step::Flatten(axis, axis + a % (rank - axis)),
            11 if extent > 0 && rank < 5 => Step::Unfold(axis, 1 + a % extent, 1 + b % (c % 3 + 1)),
            _ => return None,
        })
    }

    fn movement(&self, tensor: &TensorType) -> TensorMovement {
        let number = |number: usize| Dim::from(number as i64);
        let whole = |extent: &Dim| (Dim::from(0), extent.clone());
        match *self {
            Step::Permute(ref order) => TensorMovement::Permute(order.clone()),
            Step::Flip(axis) => TensorMovement::Flip(vec![axis]),
            Step::Shrink(axis, begin, end) => {
                let mut ranges: Vec<_> = tensor.extents.iter().map(whole).collect();
                ranges[axis] = (number(begin), number(end));
                TensorMovement::Shrink(ranges)
            }
            Step::Pad(axis, before, after) => {
                let mut padding = vec![(Dim::from(0), Dim::from(0)); tensor.extents.len()];
                padding[axis] = (number(before), number(after));
                TensorMovement::Pad(padding)
            }
            Step::Shift(axis, by) => TensorMovement::Shift { axis, by: Dim::from(by as i64) },
            Step::Every(axis, step) => TensorMovement::Step { axis, step: number(step) },
            Step::Repeat(axis, times) => {
                let mut extents = tensor.extents.clone();
                extents[axis] = number(times);
                TensorMovement::Expand(extents)
            }
            Step::Unsqueeze(axis) => TensorMovement::Unsqueeze(axis),
            Step::Squeeze(axis) => TensorMovement::Squeeze(axis),
            Step::Unflatten(axis, inner) => {
                let outer = tensor.extents[axis].clone().floor_div(&number(inner));
                TensorMovement::Unflatten { axis, extents: vec![outer, number(inner)] }
            }
            Step::Flatten(start, end) => TensorMovement::Flatten { start, end },
            Step::Unfold(axis, size, step) => {
                TensorMovement::Unfold { axis, size: number(size), step: number(step) }
            }
        }
    }
}

/// The sizes that tensors have by name.
const SIZES: [(&str, usize); 3] = [("k", 1), ("m", 3), ("n", 4)];

fn size(name: &str) -> Option<i64> {
    SIZES.iter().find(|(known, _)| *known == name).map(|&(_, size)| size as i64)
}

/// An axis of a tensor: a number, or a size with its value.
fn extents() -> impl Strategy<Value = Vec<(Dim, usize)>> {
    let number = prop::sample::select(&[0usize, 1, 1, 2, 3, 4, 6][..])
        .prop_map(|extent| (Dim::from(extent as i64), extent));
    let named = prop::sample::select(&SIZES[..]).prop_map(|(name, extent)| (Dim::size(name), extent));
    prop::collection::vec(prop_oneof![3 => number, 2 => named], 1..5)
}

/// A moved tensor and array, after both have been compared; `None` where the movement is refused, and may be.
fn followed(
    tensor: &TensorType,
    positions: &Positions,
    step: &Step,
) -> Result<Option<(TensorType, Positions)>, TestCaseError> {
    let after = positions.moved(step);
    let Ok((moved, required)) = step.movement(tensor).apply(tensor) else {
        if let Step::Flatten(start, _) = *step {
            // An axis that `pad` or `shift` may have given indices without elements isn't joined, though it has none.
            let place = tensor.strided();
            let are_whole = place.windows.iter().all(Vec::is_empty);
            let are_numbers = tensor.extents.iter().chain(&place.strides).all(|dim| dim.as_const().is_some());
            let is_one_axis = !positions.of.is_empty() && after.is_even(start);
            prop_assert!(!(are_whole && are_numbers && is_one_axis), "{step:?} of {tensor} is refused");
        }
        return Ok(None);
    };
    let violation = |requirement: &Requirement| requirement.violation("x", &size).unwrap();
    prop_assert_eq!(required.iter().find_map(violation), None, "{:?} of {}", step, tensor);
    let placement = Placement::of(&moved, &size).unwrap();
    prop_assert_eq!(
        &placement.extents,
        &after.extents.iter().map(|&extent| extent as i64).collect::<Vec<_>>()
    );
    for index in indices(&after.extents) {
        let place: Vec<i64> = index.iter().map(|&i| i as i64).collect();
        let found = placement.position(&place);
        prop_assert_eq!(found, after.at(&index), "{:?} of {} at {:?}", step, tensor, index);
    }
    Ok(Some((moved, after)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// A view has the element at each index that the same movements of an array put there, and axes become one if and only
    /// if their elements lie one step apart.
    #[test]
    fn views_have_the_elements_of_moved_arrays(
        extents in extents(),
        steps in prop::collection::vec(prop::array::uniform5(0..60usize), 0..7),
    ) {
        let (dims, extents): (Vec<Dim>, Vec<usize>) = extents.into_iter().unzip();
        let mut tensor = TensorType::dense(dims, DType::F32, false);
        let mut positions = Positions::dense(&extents);
        for numbers in steps {
            let Some(step) = Step::of(&positions.extents, numbers) else { continue };
            if let Some(both) = followed(&tensor, &positions, &step)? {
                (tensor, positions) = both;
            }
        }
        let rank = positions.extents.len();
        for (start, end) in (0..rank).flat_map(|start| (start..rank).map(move |end| (start, end))) {
            followed(&tensor, &positions, &Step::Flatten(start, end))?;
        }
    }
}
