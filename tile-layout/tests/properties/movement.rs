//! Movement operations against arrays that are really moved, by chains of random operations.

use super::*;
use tile_layout::{
    ErrorKind, Fill, Index, Layout, Length, Movement, PadMode, Span, Swizzle, Threads, View, ViewProgram,
};

/// A tensor with its values: what the operations mean.
#[derive(Clone, Debug, PartialEq)]
struct Array {
    shape: Vec<i64>,
    values: Vec<i64>,
}

impl Array {
    fn counting(shape: &[i64]) -> Array {
        Array { shape: shape.to_vec(), values: (1..=shape.iter().product()).collect() }
    }

    fn at(&self, index: &[i64]) -> i64 {
        let position = index.iter().zip(&self.shape).fold(0, |position, (at, extent)| position * extent + at);
        self.values[position as usize]
    }

    /// A tensor of `shape` whose elements come from where `source` says; `Err` is a fill.
    fn moved(&self, shape: &[i64], source: impl Fn(&[i64]) -> Result<Vec<i64>, i64>) -> Array {
        let size: i64 = shape.iter().product();
        let value = |position: i64| {
            let mut rest = position;
            let mut index: Vec<i64> = shape
                .iter()
                .rev()
                .map(|&extent| {
                    let at = rest % extent;
                    rest /= extent;
                    at
                })
                .collect();
            index.reverse();
            source(&index).map_or_else(|fill| fill, |index| self.at(&index))
        };
        Array { shape: shape.to_vec(), values: (0..size).map(value).collect() }
    }
}

/// One operation, with numbers that are reduced to what the shape at hand allows.
#[derive(Clone, Debug)]
enum Step {
    Permute(u64),
    Flip(u64),
    Shrink(u64),
    Pad(u64, i64),
    PadMode(u64, bool),
    Expand(u64),
    Split(u64),
    Join(u64),
    Unfold(u64),
    Diagonal(u64),
    Repeat(u64),
    Interleave(u64),
    Roll(u64),
    Pick(u64),
    At(u64),
    Cat(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let seed = any::<u64>;
    let step = prop_oneof![
        seed().prop_map(Step::Permute),
        seed().prop_map(Step::Flip),
        seed().prop_map(Step::Shrink),
        (seed(), prop::sample::select(vec![0, 0, 7])).prop_map(|(seed, fill)| Step::Pad(seed, fill)),
        (seed(), any::<bool>()).prop_map(|(seed, reflect)| Step::PadMode(seed, reflect)),
        seed().prop_map(Step::Expand),
        seed().prop_map(Step::Split),
        seed().prop_map(Step::Join),
        seed().prop_map(Step::Unfold),
        seed().prop_map(Step::Diagonal),
        seed().prop_map(Step::Repeat),
        seed().prop_map(Step::Interleave),
        seed().prop_map(Step::Roll),
        seed().prop_map(Step::Pick),
        seed().prop_map(Step::At),
        seed().prop_map(Step::Cat),
    ];
    prop::collection::vec(step, 1..6)
}

/// Numbers out of a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % bound.max(1) as u64) as i64
    }
}

/// The step on both sides; `None` where it does not apply.
fn take(step: &Step, program: &ViewProgram, array: &Array) -> Option<(ViewProgram, Array)> {
    let shape = array.shape.clone();
    let rank = shape.len();
    let axis_of = |numbers: &mut Numbers| (rank > 0).then(|| numbers.below(rank as i64) as usize);
    match *step {
        Step::Permute(seed) => {
            let mut numbers = Numbers(seed);
            let mut order: Vec<usize> = (0..rank).collect();
            for place in (1..rank).rev() {
                order.swap(place, numbers.below(place as i64 + 1) as usize);
            }
            let new: Vec<i64> = order.iter().map(|&axis| shape[axis]).collect();
            let dims: Vec<i64> = order.iter().map(|&axis| axis as i64).collect();
            let moved = array.moved(&new, |index| {
                let mut source = vec![0; rank];
                order.iter().zip(index).for_each(|(&axis, &at)| source[axis] = at);
                Ok(source)
            });
            Some((program.permute(&dims).unwrap(), moved))
        }
        Step::Flip(seed) => {
            let axis = axis_of(&mut Numbers(seed))?;
            let moved = array.moved(&shape, |index| {
                let mut source = index.to_vec();
                source[axis] = shape[axis] - 1 - index[axis];
                Ok(source)
            });
            Some((program.flip(&[axis as i64]).unwrap(), moved))
        }
        Step::Shrink(seed) => {
            let mut numbers = Numbers(seed);
            let ranges: Vec<(i64, i64)> = shape
                .iter()
                .map(|&extent| {
                    let begin = numbers.below(extent / 2 + 1);
                    (begin, (begin + 1 + numbers.below(extent - begin)).min(extent))
                })
                .collect();
            let new: Vec<i64> = ranges.iter().map(|range| range.1 - range.0).collect();
            let spans: Vec<Span> = ranges.iter().copied().map(Some).collect();
            let moved = array
                .moved(&new, |index| Ok(index.iter().zip(&ranges).map(|(at, range)| at + range.0).collect()));
            Some((program.shrink(&spans).unwrap(), moved))
        }
        Step::Pad(seed, fill) => {
            let mut numbers = Numbers(seed);
            let pairs: Vec<(i64, i64)> = shape.iter().map(|_| (numbers.below(3), numbers.below(3))).collect();
            let new: Vec<i64> =
                shape.iter().zip(&pairs).map(|(extent, pair)| extent + pair.0 + pair.1).collect();
            let spans: Vec<Span> = pairs.iter().copied().map(Some).collect();
            let moved = array.moved(&new, |index| {
                let source: Vec<i64> = index.iter().zip(&pairs).map(|(at, pair)| at - pair.0).collect();
                let inside = source.iter().zip(&shape).all(|(at, extent)| (0..*extent).contains(at));
                if inside { Ok(source) } else { Err(fill) }
            });
            Some((program.pad_with(&spans, Fill::from(fill)).unwrap(), moved))
        }
        Step::PadMode(seed, reflect) => {
            let axis = axis_of(&mut Numbers(seed))?;
            let extent = shape[axis];
            let most = if reflect { extent - 1 } else { extent };
            let mut numbers = Numbers(seed ^ 1);
            let (before, after) = (numbers.below(most.min(3) + 1), numbers.below(most.min(3) + 1));
            let mut spans: Vec<Span> = vec![None; rank];
            spans[axis] = Some((before, after));
            let mut new = shape.clone();
            new[axis] += before + after;
            let moved = array.moved(&new, |index| {
                let mut source = index.to_vec();
                let at = index[axis] - before;
                source[axis] = match reflect {
                    false => at.rem_euclid(extent),
                    true if at < 0 => -at,
                    true if at >= extent => 2 * (extent - 1) - at,
                    true => at,
                };
                Ok(source)
            });
            let mode = if reflect { PadMode::Reflect } else { PadMode::Circular };
            Some((program.pad_mode(&spans, mode).unwrap(), moved))
        }
        Step::Expand(seed) => {
            let mut numbers = Numbers(seed);
            let new: Vec<i64> =
                shape.iter().map(|&extent| if extent == 1 { 1 + numbers.below(3) } else { extent }).collect();
            let moved = array.moved(&new, |index| {
                Ok(index.iter().zip(&shape).map(|(&at, &extent)| if extent == 1 { 0 } else { at }).collect())
            });
            Some((program.expand(new.clone()).unwrap(), moved))
        }
        Step::Split(seed) => {
            let axis = axis_of(&mut Numbers(seed))?;
            let factor = (2..=shape[axis]).find(|factor| shape[axis] % factor == 0)?;
            let mut new = shape.clone();
            new.splice(axis..=axis, [shape[axis] / factor, factor]);
            Some((program.reshape(new.clone()).unwrap(), Array { shape: new, values: array.values.clone() }))
        }
        Step::Join(seed) => {
            let axis = axis_of(&mut Numbers(seed)).filter(|axis| axis + 1 < rank)?;
            let mut new = shape.clone();
            new.splice(axis..axis + 2, [shape[axis] * shape[axis + 1]]);
            Some((program.reshape(new.clone()).unwrap(), Array { shape: new, values: array.values.clone() }))
        }
        Step::Unfold(seed) => {
            let mut numbers = Numbers(seed);
            let axis = axis_of(&mut numbers)?;
            let (size, step) = (1 + numbers.below(shape[axis]), 1 + numbers.below(3));
            let mut new = shape.clone();
            new[axis] = (shape[axis] - size) / step + 1;
            new.push(size);
            let moved = array.moved(&new, |index| {
                let mut source = index[..rank].to_vec();
                source[axis] = index[axis] * step + index[rank];
                Ok(source)
            });
            Some((program.unfold(axis as i64, size, step).unwrap(), moved))
        }
        Step::Diagonal(seed) => {
            let mut numbers = Numbers(seed);
            let first = axis_of(&mut numbers)?;
            let second = (first + 1) % rank;
            if first == second {
                return None;
            }
            let offset = numbers.below(shape[first] + shape[second]) - shape[first] + 1;
            let (row, column) = ((-offset).max(0), offset.max(0));
            let length = (shape[first] - row).min(shape[second] - column);
            if length < 1 {
                return None;
            }
            let kept: Vec<usize> = (0..rank).filter(|&axis| axis != first && axis != second).collect();
            let mut new: Vec<i64> = kept.iter().map(|&axis| shape[axis]).collect();
            new.push(length);
            let moved = array.moved(&new, |index| {
                let mut source = vec![0; rank];
                kept.iter().zip(index).for_each(|(&axis, &at)| source[axis] = at);
                (source[first], source[second]) = (row + index[kept.len()], column + index[kept.len()]);
                Ok(source)
            });
            Some((program.diagonal(offset, first as i64, second as i64).unwrap(), moved))
        }
        Step::Repeat(seed) => {
            let mut numbers = Numbers(seed);
            let counts: Vec<i64> = shape.iter().map(|_| 1 + numbers.below(2)).collect();
            let new: Vec<i64> = shape.iter().zip(&counts).map(|(extent, count)| extent * count).collect();
            let moved = array
                .moved(&new, |index| Ok(index.iter().zip(&shape).map(|(at, extent)| at % extent).collect()));
            Some((program.repeat(&counts).unwrap(), moved))
        }
        Step::Interleave(seed) => {
            let axis = axis_of(&mut Numbers(seed))?;
            let mut new = shape.clone();
            new[axis] *= 2;
            let moved = array.moved(&new, |index| {
                let mut source = index.to_vec();
                source[axis] /= 2;
                Ok(source)
            });
            Some((program.repeat_interleave(2, Some(axis as i64)).unwrap(), moved))
        }
        Step::Roll(seed) => {
            let mut numbers = Numbers(seed);
            let axis = axis_of(&mut numbers)?;
            let shift = numbers.below(9) - 4;
            let moved = array.moved(&shape, |index| {
                let mut source = index.to_vec();
                source[axis] = (index[axis] - shift).rem_euclid(shape[axis]);
                Ok(source)
            });
            Some((program.roll(&[shift], &[axis as i64]).unwrap(), moved))
        }
        Step::Pick(seed) => {
            let mut numbers = Numbers(seed);
            let axis = axis_of(&mut numbers)?;
            let picked: Vec<i64> = (0..1 + numbers.below(4)).map(|_| numbers.below(shape[axis])).collect();
            let mut new = shape.clone();
            new[axis] = picked.len() as i64;
            let moved = array.moved(&new, |index| {
                let mut source = index.to_vec();
                source[axis] = picked[index[axis] as usize];
                Ok(source)
            });
            let mut indices = vec![Index::from(..); axis];
            indices.push(Index::list(&picked));
            Some((program.index(&indices).unwrap(), moved))
        }
        Step::At(seed) => {
            let mut numbers = Numbers(seed);
            let axis = axis_of(&mut numbers)?;
            let at = numbers.below(shape[axis]);
            let mut new = shape.clone();
            new.remove(axis);
            let moved = array.moved(&new, |index| {
                let mut source = index.to_vec();
                source.insert(axis, at);
                Ok(source)
            });
            let mut indices = vec![Index::from(..); axis];
            indices.push(Index::At(at));
            Some((program.index(&indices).unwrap(), moved))
        }
        Step::Cat(seed) => {
            let axis = axis_of(&mut Numbers(seed))?;
            let flipped = program.flip(&[axis as i64]).unwrap();
            let mut new = shape.clone();
            new[axis] *= 2;
            let moved = array.moved(&new, |index| {
                let mut source = index.to_vec();
                let extent = shape[axis];
                source[axis] = if index[axis] < extent { index[axis] } else { 2 * extent - 1 - index[axis] };
                Ok(source)
            });
            Some((ViewProgram::cat(&[program.clone(), flipped], axis as i64).unwrap(), moved))
        }
    }
}

fn values(program: &ViewProgram, memory: &[i64]) -> Vec<i64> {
    let integer = |fill| match fill {
        Fill::Integer(value) => value,
        Fill::Real(value) => panic!("{value} was never a fill"),
    };
    program.evaluate(&[memory], integer).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn chains_of_movements_move_the_values(shape in prop::collection::vec(1..5i64, 1..4), steps in steps()) {
        let mut array = Array::counting(&shape);
        let memory = array.values.clone();
        let mut program = ViewProgram::row_major(0, &shape).unwrap();
        for step in &steps {
            let Some((moved_program, moved)) = take(step, &program, &array) else { continue };
            if moved.values.len() > 20_000 {
                break;
            }
            (program, array) = (moved_program, moved);
            prop_assert_eq!(program.shape(), &array.shape[..], "after {:?}", step);
            prop_assert_eq!(values(&program, &memory), array.values.clone(), "after {:?} of {:?}", step, steps);
        }
    }

    /// Where a program is one view, the same operations on views give that view; where views refuse, the program
    /// is more than one view.
    #[test]
    fn views_and_programs_agree(shape in prop::collection::vec(1..5i64, 1..4), seed: u64) {
        let mut numbers = Numbers(seed);
        let mut view = View::row_major(&shape).unwrap();
        let mut program = ViewProgram::row_major(0, &shape).unwrap();
        for _ in 0..4 {
            let rank = view.rank() as i64;
            let axis = numbers.below(rank);
            let pads: Vec<Span> = (0..rank).map(|_| Some((numbers.below(2), numbers.below(2)))).collect();
            let (next, next_program) = match numbers.below(4) {
                0 => (view.transpose(0, axis), program.transpose(0, axis)),
                1 => (view.pad(&pads), program.pad(&pads)),
                2 => (view.flatten(0, axis), program.flatten(0, axis)),
                _ => (view.flip(&[axis]), program.flip(&[axis])),
            };
            program = next_program.unwrap();
            match next {
                Ok(next) => {
                    prop_assert_eq!(next.to_string().parse::<View>(), Ok(next.clone()));
                    prop_assert_eq!(program.as_view(), Some((0, &next)));
                    view = next;
                }
                Err(_) => {
                    prop_assert!(program.as_view().is_none());
                    break;
                }
            }
        }
    }

    /// A view of any layout, in rows: the offsets of a tile are those that its indices have in the whole.
    #[test]
    fn tiles_and_shares_cover_the_tensor(layout in regular(), size in 1..4i64, threads in 1..5i64) {
        let view = View::from_layout(&layout, 3).unwrap();
        let all: std::collections::BTreeSet<i64> = view.offsets().flatten().collect();
        let rank = view.rank();
        let mut found = Vec::new();
        let tiles: Vec<i64> = view.shape().iter().map(|extent| (extent + size - 1) / size).collect();
        for number in 0..tiles.iter().product() {
            let coordinate = IntTuple::flat(&tiles).coordinate(number).unwrap();
            found.extend(view.tile(&vec![size; rank], coordinate.leaves()).unwrap().offsets().flatten());
        }
        found.sort_unstable();
        prop_assert!(found.iter().copied().eq(all.iter().copied()), "tiles of {}", view);
        let shares = Threads::new(Layout::column_major(IntTuple::flat(&vec![threads; rank])).unwrap());
        let mut found: Vec<i64> = (0..shares.layout().size())
            .flat_map(|thread| view.distribute(&shares, thread).unwrap().offsets().flatten().collect::<Vec<_>>())
            .collect();
        found.sort_unstable();
        prop_assert!(found.iter().copied().eq(all), "shares of {}", view);
    }

    /// Threads in any injective layout: each has the elements at its own coordinate and every so many further, and who isn't
    /// there has none.
    #[test]
    fn threads_own_what_lies_at_their_coordinate(layout in upward(), extent in 1..7i64) {
        if !layout.is_injective() || layout.size() > 64 {
            return Ok(());
        }
        let modes: Vec<Layout> = layout.modes().collect();
        let view = View::row_major(&vec![extent; modes.len()]).unwrap();
        let shares = Threads::new(layout.clone());
        for thread in 0..layout.cosize() {
            let own = view.distribute(&shares, thread);
            let Some(place) = layout.offsets().position(|offset| offset == thread) else {
                prop_assert!(own.is_err(), "thread {} of {}", thread, layout);
                continue;
            };
            let sizes: Vec<i64> = modes.iter().map(Layout::size).collect();
            let coordinate = IntTuple::flat(&sizes).coordinate(place as i64).unwrap();
            let is_own = |position: &i64| {
                let index = IntTuple::flat(&vec![extent; modes.len()]).coordinate(*position).unwrap();
                let axes = index.leaves().iter().rev().zip(&sizes).zip(coordinate.leaves());
                axes.into_iter().all(|((index, count), own)| index % count == *own)
            };
            let expected: Vec<i64> = (0..view.size()).filter(is_own).collect();
            let found: Vec<i64> = own.unwrap().offsets().flatten().collect();
            prop_assert_eq!(found, expected, "thread {} of {}", thread, layout);
        }
    }
}

/// What each operation that takes a tensor without axes makes of one.
fn made_of_scalar<M: Movement>(scalar: &M) -> [(&'static str, M); 6] {
    [
        ("reshape", scalar.reshape([1]).unwrap()),
        ("reshape to 0 axes", scalar.reshape([0i64; 0]).unwrap()),
        ("expand", scalar.expand([3]).unwrap()),
        ("unsqueeze", scalar.unsqueeze(0).unwrap()),
        ("permute", scalar.permute(&[]).unwrap()),
        ("index", scalar.index(&[]).unwrap()),
    ]
}

/// Without axes there is no window that could be empty: what is filled must stay so through each operation.
#[test]
fn a_filled_scalar_stays_filled() {
    let padded = [Some((1, 0))];
    let scalar = View::row_major(&[4]).unwrap().pad_with(&padded, Fill::from(7)).unwrap();
    let scalar = scalar.index(&[Index::At(0)]).unwrap();
    assert_eq!((scalar.rank(), scalar.get(&[]), scalar.fill()), (0, Ok(None), Fill::from(7)));
    for (name, view) in made_of_scalar(&scalar) {
        assert!(view.offsets().all(|offset| offset.is_none()), "{name}: {view}");
        assert_eq!(view.fill(), Fill::from(7), "{name}");
    }
    for (name, program) in made_of_scalar(&ViewProgram::new(0, scalar.clone())) {
        assert!(values(&program, &[1, 2, 3, 4]).iter().all(|&value| value == 7), "{name}: {program:?}");
    }
    // A map with a fill of its own, which one view can't hold beside the other fill.
    let twice = scalar.reshape([1]).unwrap().pad_with(&padded, Fill::from(8));
    assert_eq!(twice.unwrap_err().kind(), ErrorKind::Unsupported);
    let twice = ViewProgram::new(0, scalar).reshape([1]).unwrap().pad_with(&padded, Fill::from(8)).unwrap();
    assert_eq!(values(&twice, &[1, 2, 3, 4]), [8, 7]);
}

/// A view without elements has no strides to tell; its shape is what the same operation makes of rows.
#[test]
fn operations_on_empty_views_keep_the_shape() {
    let empty = |shape: &[i64]| View::row_major(shape).unwrap();
    let shape = |view: tile_layout::Result<View>| view.map(|view| view.shape().to_vec());
    assert_eq!(shape(empty(&[4, 0]).vectorize(&[2, 1])), Ok(vec![2, 0]));
    assert_eq!(shape(empty(&[0, 8]).vectorize(&[1, 4])), Ok(vec![0, 2]));
    assert_eq!(shape(empty(&[0, 6]).vectorize(&[3, 2])), Ok(vec![0, 3]));
    assert_eq!(empty(&[0, 8]).vectorize(&[1, 4]).unwrap().element().size(), 4);
    assert_eq!(shape(empty(&[0, 4]).recast(8, 32)), Ok(vec![0, 1]));
    assert_eq!(shape(empty(&[4, 0]).recast(8, 32)), Ok(vec![4, 0]));
    assert_eq!(shape(empty(&[4, 0]).recast(16, 8)), Ok(vec![4, 0]));
    assert_eq!(shape(empty(&[0, 4]).recast(16, 8)), Ok(vec![0, 8]));
    assert_eq!(shape(empty(&[3, 0, 4]).recast(16, 32)), Ok(vec![3, 0, 2]));
    assert_eq!(empty(&[0, 6]).recast(8, 32).unwrap_err().kind(), ErrorKind::NotDivisible);
    assert_eq!(shape(empty(&[4, 0]).composition([2, 0])), Ok(vec![2, 0]));
    assert_eq!(shape(empty(&[0, 4]).composition([0, 2])), Ok(vec![0, 2]));
}

/// A swizzle of no bits is none, whatever its base and its shift.
#[test]
fn a_view_through_a_swizzle_of_no_bits_is_recast() {
    let view: View = "(4,8):(8,1) + 0 through Sw<0,0,3>".parse().unwrap();
    assert_eq!(view, View::row_major(&[4, 8]).unwrap());
    assert_eq!(view.recast(8, 16).map(|view| view.to_string()), Ok("(4,4):(4,1) + 0".to_owned()));
}

/// What a swizzled view becomes must not lie below the memory's begin, where no text could give it back.
#[test]
fn a_swizzled_view_is_not_moved_below_0() {
    let text = "(8):(1) + 4 through Sw<1,0,1>";
    let view: View = text.parse().unwrap();
    let down = |text: &str| view.reinterpret(&text.parse().unwrap());
    assert_eq!(down("8:-1").unwrap_err().kind(), ErrorKind::OutOfBounds);
    let down = down("(4,2):(-1,4)").unwrap();
    assert_eq!(down.to_string().parse(), Ok(down));
    // A swizzle of threads may begin a share of a reversed view further down.
    let reversed = View::row_major(&[4]).unwrap().flip(&[0]).unwrap();
    let reversed = reversed.with_swizzle(Swizzle::new(1, 0, 1).unwrap()).unwrap();
    let threads = Threads::new(Layout::column_major([2]).unwrap()).swizzled(Swizzle::new(1, 0, 1).unwrap());
    for thread in 0..2 {
        match reversed.distribute(&threads, thread) {
            Ok(own) => assert_eq!(own.to_string().parse(), Ok(own)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::OutOfBounds, "{error}"),
        }
    }
}

/// A refusal says what a number stands for, and `-1` only where that has a meaning.
#[test]
fn negative_extents_and_counts_are_called_what_they_are() {
    let view = View::row_major(&[2, 3]).unwrap();
    let message = |result: tile_layout::Result<View>| result.unwrap_err().to_string();
    assert_eq!(message(view.repeat(&[1, -1])), "count -1 of axis 1 is negative; pass 0 or more");
    assert_eq!(
        message(view.repeat_interleave(-1, Some(0))),
        "count -1 of axis 0 is negative; pass 0 or more"
    );
    assert_eq!(
        message(view.reshape([Length::Is(-1)])),
        "extent -1 at place 0 is negative; what -1 stands for is Length::Infer"
    );
    assert_eq!(message(view.reshape([6, -2])), "extent -2 at place 1 is negative; only -1 has a meaning");
    assert_eq!(message(view.expand([4, -2, 3])), "extent -2 at place 1 is negative; only -1 has a meaning");
}
