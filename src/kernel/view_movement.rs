//! Views of tensor arguments: methods that move the index space and no element.
//!
//! The rules are `tile_ir::view`'s, applied here to numbers: what the front end lowers and what runs as Rust
//! mean the same. A movement that doesn't fit panics here; in a kernel it is a compile error, or the launch's.

use super::Element;
use super::views::{TensorView, TensorViewMut};
use tile_ir::types::TensorType;
use tile_ir::view::{GivenTensor, PlacedWindows, Placement, TensorMovement, Windows};
use tile_ir::{DType, Dim};

/// How the elements of an argument are seen.
#[derive(Clone)]
pub(super) struct Seen {
    /// A tensor whose extents are numbers.
    tensor: TensorType,
    /// Whether an axis was selected at an index without elements, so that no index of what is left has one.
    is_missing: bool,
    /// What is gathered from it, where it is windows over a margin.
    windows: Option<Windowed>,
}

/// Windows over a margin, and at which indices axes of theirs were selected, the last of them first.
#[derive(Clone)]
struct Windowed {
    windows: Windows,
    selected: Vec<usize>,
}

/// Where the elements of what is seen lie in the argument.
#[derive(Clone)]
pub(super) enum Places {
    View(Placement),
    Windows(PlacedWindows, Vec<i64>),
}

impl Places {
    /// The position of an index; `None` where it has no element.
    pub(super) fn position(&self, index: &[i64]) -> Option<usize> {
        match self {
            Places::View(placement) => placement.position(index),
            Places::Windows(windows, selected) => windows.position(&[selected, index].concat()),
        }
    }
}

impl Seen {
    /// An argument of rank `R`, which a launch has checked.
    pub(super) fn of<const R: usize>(given: &GivenTensor<'_>, dtype: DType, mutable: bool) -> Seen {
        assert_eq!(given.extents.len(), R, "verified: a launch binds tensors of declared rank");
        Seen { tensor: given.ty(dtype, mutable), is_missing: false, windows: None }
    }

    pub(super) fn extent(&self, axis: usize) -> usize {
        let extents = self.windows.as_ref().map_or(&self.tensor.extents[..], |it| it.windows.extents());
        number(&extents[axis])
    }

    pub(super) fn extents<const R: usize>(&self) -> [usize; R] {
        std::array::from_fn(|axis| self.extent(axis))
    }

    pub(super) fn placement(&self) -> Placement {
        let mut placement = Placement::of(&self.tensor, &|_| None).expect("verified: extents are numbers");
        if self.is_missing {
            placement.windows.fill((0, 0));
        }
        placement
    }

    pub(super) fn places(&self) -> Places {
        let Some(Windowed { windows, selected }) = &self.windows else {
            return Places::View(self.placement());
        };
        let placed = windows.placed(self.placement(), &|_| None).expect("verified: extents are numbers");
        // An index beyond 63 bits is beyond any axis.
        let selected = selected.iter().map(|&index| i64::try_from(index).unwrap_or(i64::MAX)).collect();
        Places::Windows(placed, selected)
    }

    fn moved<const R: usize>(&self, movement: &TensorMovement) -> Seen {
        let windows = match &self.windows {
            None if Windows::are_made_by(movement, &self.tensor) => {
                Some(Windowed { windows: Windows::of(&self.tensor), selected: Vec::new() })
            }
            windows => windows.clone(),
        };
        if let Some(Windowed { windows, selected }) = windows {
            let (moved, _) = windows.moved(movement).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(moved.extents().len(), R, "`{}` gives a tensor of another rank", movement.kind());
            return Seen {
                tensor: self.tensor.clone(),
                is_missing: self.is_missing,
                windows: Some(Windowed { windows: moved, selected }),
            };
        }
        let (tensor, open) = movement.apply(&self.tensor).unwrap_or_else(|error| panic!("{error}"));
        assert!(open.is_empty(), "a condition on numbers is decided");
        assert!(
            tensor.extents.len() == R,
            "`{}` gives a tensor of rank {}, not {R}",
            movement.kind(),
            tensor.extents.len()
        );
        Seen { tensor, is_missing: self.is_missing, windows: None }
    }

    fn selected<const R: usize>(&self, axis: usize, index: usize) -> Seen {
        let mut seen = self.moved::<R>(&TensorMovement::Select { axis });
        if let Some(windowed) = &mut seen.windows {
            windowed.selected.insert(0, index);
            return seen;
        }
        // The windows of the other axes stay as they are: one that isn't padded is whole, also where nothing exists.
        let at = seen.placement().at([(self.placement(), axis, index as u64)]);
        seen.is_missing = at.windows.iter().any(|(begin, end)| begin >= end);
        let mut strided = seen.tensor.strided();
        strided.offset = Dim::from(at.offset);
        seen.tensor.layout = Some(Box::new(strided));
        seen
    }
}

fn dim(extent: usize) -> Dim {
    Dim::from(i64::try_from(extent).expect("an extent fits 63 bits"))
}

fn dims(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|&extent| dim(extent)).collect()
}

fn pairs(pairs: &[(usize, usize)]) -> Vec<(Dim, Dim)> {
    pairs.iter().map(|&(a, b)| (dim(a), dim(b))).collect()
}

fn number(extent: &Dim) -> usize {
    extent.evaluate(&|_| None).expect("verified: extents are numbers")
}

/// The movements that keep elements distinct, which tensors that are written have too.
macro_rules! movements {
    ($view:ident) => {
        impl<'a, T: Element, const R: usize> $view<'a, T, R> {
            /// The axes in another order: axis `i` of the result is axis `order[i]`.
            ///
            /// # Panics
            /// If `order` is not a permutation; in a kernel that is a compile error.
            pub fn permute(&self, order: [usize; R]) -> $view<'a, T, R> {
                self.moved(&TensorMovement::Permute(order.to_vec()))
            }

            /// Two axes exchanged.
            ///
            /// # Panics
            /// If an axis is out of range; in a kernel that is a compile error.
            pub fn transpose(&self, first: usize, second: usize) -> $view<'a, T, R> {
                let mut order: Vec<usize> = (0..R).collect();
                order.swap(first, second);
                self.moved(&TensorMovement::Permute(order))
            }

            /// Axes backwards.
            ///
            /// # Panics
            /// If an axis is out of range or named twice; in a kernel that is a compile error.
            pub fn flip<const K: usize>(&self, axes: [usize; K]) -> $view<'a, T, R> {
                self.moved(&TensorMovement::Flip(axes.to_vec()))
            }

            /// A range `(begin, end)` of each axis.
            ///
            /// # Panics
            /// If a range doesn't lie inside; in a kernel that is an error of compilation or of the launch.
            pub fn shrink(&self, ranges: [(usize, usize); R]) -> $view<'a, T, R> {
                self.moved(&TensorMovement::Shrink(pairs(&ranges)))
            }

            /// Indices without elements, `(before, after)` each axis. Masked loads give the pad value there.
            pub fn pad(&self, padding: [(usize, usize); R]) -> $view<'a, T, R> {
                self.moved(&TensorMovement::Pad(pairs(&padding)))
            }

            /// Element `i` of an axis is element `i - by`; the extent stays. What is shifted out is lost, and
            /// what comes in has no element.
            ///
            /// # Panics
            /// If the axis is out of range; in a kernel that is a compile error.
            pub fn shift(&self, axis: usize, by: i32) -> $view<'a, T, R> {
                self.moved(&TensorMovement::Shift { axis, by: Dim::from(i64::from(by)) })
            }

            /// Every `distance`-th index of an axis, from 0.
            ///
            /// # Panics
            /// If `distance` is 0; in a kernel that is an error of compilation or of the launch.
            pub fn step(&self, axis: usize, distance: usize) -> $view<'a, T, R> {
                self.moved(&TensorMovement::Step { axis, step: dim(distance) })
            }

            /// Axes `first` to `last`, both included, as one. The rank that is left, `S`, is inferred from what
            /// the view is used for, or written: `x.flatten::<1>(0, 1)`.
            ///
            /// # Panics
            /// If they don't follow each other in memory; in a kernel that is a compile error.
            pub fn flatten<const S: usize>(&self, first: usize, last: usize) -> $view<'a, T, S> {
                self.moved(&TensorMovement::Flatten { start: first, end: last })
            }

            fn moved<const S: usize>(&self, movement: &TensorMovement) -> $view<'a, T, S> {
                self.with(self.seen().moved::<S>(movement))
            }
        }

        impl<'a, T: Element> $view<'a, T, 2> {
            /// The transpose of a matrix.
            pub fn t(&self) -> $view<'a, T, 2> {
                self.moved(&TensorMovement::Permute(vec![1, 0]))
            }
        }
    };
}

movements!(TensorView);
movements!(TensorViewMut);

/// The movements that add an axis, from one rank to the next. Stable Rust can't say `R + 1`.
macro_rules! adding {
    ($view:ident, $($from:literal $to:literal)*) => { $(
        impl<'a, T: Element> $view<'a, T, $from> {
            /// A new axis of extent 1.
            ///
            /// # Panics
            /// If the axis is out of range; in a kernel that is a compile error.
            pub fn unsqueeze(&self, axis: usize) -> $view<'a, T, $to> {
                self.moved(&TensorMovement::Unsqueeze(axis))
            }

            /// An axis as two, row-major.
            ///
            /// # Panics
            /// If these don't have as many elements; in a kernel that is an error of compilation or of the
            /// launch.
            pub fn unflatten(&self, axis: usize, extents: [usize; 2]) -> $view<'a, T, $to> {
                self.moved(&TensorMovement::Unflatten { axis, extents: dims(&extents) })
            }
        }
    )* };
}

/// The movements that drop an axis.
macro_rules! dropping {
    ($view:ident, $($from:literal $to:literal)*) => { $(
        impl<'a, T: Element> $view<'a, T, $from> {
            /// Without an axis, which must have extent 1.
            ///
            /// # Panics
            /// If it has another; in a kernel that is an error of compilation or of the launch.
            pub fn squeeze(&self, axis: usize) -> $view<'a, T, $to> {
                self.moved(&TensorMovement::Squeeze(axis))
            }

            /// Without an axis, at an index of it. At an index outside, nothing has an element.
            ///
            /// # Panics
            /// If the axis is out of range; in a kernel that is a compile error.
            pub fn select(&self, axis: usize, index: usize) -> $view<'a, T, $to> {
                self.with(self.seen().selected::<$to>(axis, index))
            }
        }
    )* };
}

adding!(TensorView, 1 2 2 3 3 4 4 5 5 6);
adding!(TensorViewMut, 1 2 2 3 3 4 4 5 5 6);
dropping!(TensorView, 2 1 3 2 4 3 5 4 6 5);
dropping!(TensorViewMut, 2 1 3 2 4 3 5 4 6 5);

macro_rules! unfolding {
    ($($from:literal $to:literal)*) => { $(
        impl<'a, T: Element> TensorView<'a, T, $from> {
            /// Windows of `size` elements, `step` apart, along an axis: the axis counts windows, a new last axis
            /// the elements of one. Only of tensors that are read.
            ///
            /// # Panics
            /// If no window fits, or `step` is 0; in a kernel that is an error of compilation or of the launch.
            pub fn unfold(&self, axis: usize, size: usize, step: usize) -> TensorView<'a, T, $to> {
                self.moved(&TensorMovement::Unfold { axis, size: dim(size), step: dim(step) })
            }
        }
    )* };
}

unfolding!(1 2 2 3 3 4 4 5 5 6);

impl<'a, T: Element, const R: usize> TensorView<'a, T, R> {
    /// Axes of extent 1 repeated; further axes may be added in front. Only of tensors that are read.
    ///
    /// # Panics
    /// If an extent is neither equal nor 1; in a kernel that is a compile error.
    pub fn expand<const S: usize>(&self, extents: [usize; S]) -> TensorView<'a, T, S> {
        self.moved(&TensorMovement::Expand(dims(&extents)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(view: &TensorView<'_, i32, 2>) -> Vec<Vec<i32>> {
        let tile = view.partition_view([view.extent(0), view.extent(1)]).load_masked_or(-1, [0, 0]).to_vec();
        tile.chunks(view.extent(1)).map(<[i32]>::to_vec).collect()
    }

    #[test]
    fn every_movement_moves_as_its_name_says() {
        let data: Vec<i32> = (0..6).collect();
        let x = TensorView::<i32, 2>::over(&data, [2, 3]);
        assert_eq!(rows(&x.t()), [[0, 3], [1, 4], [2, 5]]);
        assert_eq!(rows(&x.transpose(1, 0)), rows(&x.permute([1, 0])));
        assert_eq!(rows(&x.flip([0])), [[3, 4, 5], [0, 1, 2]]);
        assert_eq!(rows(&x.flip([1, 0])), [[5, 4, 3], [2, 1, 0]]);
        assert_eq!(rows(&x.shrink([(1, 2), (0, 2)])), [[3, 4]]);
        assert_eq!(rows(&x.pad([(0, 1), (1, 0)])), [[-1, 0, 1, 2], [-1, 3, 4, 5], [-1, -1, -1, -1]]);
        assert_eq!(rows(&x.shift(1, 1)), [[-1, 0, 1], [-1, 3, 4]]);
        assert_eq!(rows(&x.shift(1, -2)), [[2, -1, -1], [5, -1, -1]]);
        assert_eq!(rows(&x.shift(1, 1).shift(1, -1)), [[0, 1, -1], [3, 4, -1]]);
        assert_eq!(rows(&x.step(1, 2)), [[0, 2], [3, 5]]);
        assert_eq!(rows(&x.shift(1, 1).step(1, 2)), [[-1, 1], [-1, 4]]);
        assert_eq!(rows(&x.pad([(0, 0), (1, 1)]).flip([1]).step(1, 2)), [[-1, 1, -1], [-1, 4, -1]]);
        assert_eq!(rows(&x.shrink([(1, 2), (0, 3)]).expand([2, 3])), [[3, 4, 5], [3, 4, 5]]);
        assert_eq!(rows(&x.select(0, 1).expand([2, 3])), [[3, 4, 5], [3, 4, 5]]);
        assert_eq!(rows(&x.select(0, 2).expand([1, 3])), [[-1, -1, -1]]);
        assert_eq!(rows(&x.shift(0, 1).select(0, 0).expand([1, 3])), [[-1, -1, -1]]);
        assert_eq!(rows(&x.flatten::<1>(0, 1).unfold(0, 3, 2)), [[0, 1, 2], [2, 3, 4]]);
        assert_eq!(rows(&x.flatten::<1>(0, 1).unflatten(0, [3, 2])), [[0, 1], [2, 3], [4, 5]]);
        let windows = x.flatten::<1>(0, 1).pad([(1, 2)]).unfold(0, 3, 2);
        assert_eq!(rows(&windows), [[-1, 0, 1], [1, 2, 3], [3, 4, 5], [5, -1, -1]]);
        assert_eq!(rows(&windows.flip([1]).t().step(1, 3)), [[1, -1], [0, -1], [-1, 5]]);
        assert_eq!(rows(&x.unsqueeze(1).squeeze(1)), rows(&x));
        assert_eq!(rows(&x.unflatten(1, [3, 1]).select(0, 1)), [[3], [4], [5]]);
    }

    /// Axes that are left by a selection have no margin, whether the selected index has elements or not.
    #[test]
    fn what_is_left_by_a_selection_moves_as_any_tensor() {
        let data: Vec<i32> = (0..12).collect();
        let x = TensorView::<i32, 3>::over(&data, [2, 2, 3]);
        let windows = |index| x.select(0, index).flatten::<1>(0, 1).unfold(0, 3, 2);
        assert_eq!(rows(&windows(1)), [[6, 7, 8], [8, 9, 10]]);
        assert_eq!(rows(&windows(2)), [[-1; 3]; 2]);
        let shifted = |index| x.shift(0, 1).select(0, index).unflatten(1, [3, 1]).select(0, 1);
        assert_eq!(rows(&shifted(1)), [[3], [4], [5]]);
        assert_eq!(rows(&shifted(0)), [[-1]; 3]);
        assert_eq!(rows(&x.select(0, 2).pad([(0, 0), (1, 0)])), [[-1; 4]; 2]);
        let over_a_margin = |index| x.select(0, index).select(0, 1).pad([(1, 0)]).unfold(0, 3, 1);
        assert_eq!(rows(&over_a_margin(1)), [[-1, 9, 10], [9, 10, 11]]);
        assert_eq!(rows(&over_a_margin(2)), [[-1; 3]; 2]);
    }

    #[test]
    fn tiles_of_windows_are_whole_where_all_of_their_elements_exist() {
        let data: Vec<i32> = (0..6).collect();
        let x = TensorView::<i32, 1>::over(&data, [6]);
        let windows = x.pad([(1, 1)]).unfold(0, 3, 1).partition_view([2, 3]);
        assert_eq!(windows.load([1, 0]).to_vec(), [1, 2, 3, 2, 3, 4]);
        assert!(std::panic::catch_unwind(|| windows.load([0, 0])).is_err());
    }

    #[test]
    #[should_panic(expected = "tiles begin positive steps apart, not [1, 0]")]
    fn steps_are_positive() {
        let data = [0; 6];
        TensorView::<i32, 2>::over(&data, [2, 3]).strided_view([1, 2], [1, 0]);
    }

    #[test]
    #[should_panic(
        expected = "`shrink` of axis 1 of the tensor: the range ends at 4, but the axis has 3 elements"
    )]
    fn ranges_lie_inside() {
        let data = [0; 6];
        TensorView::<i32, 2>::over(&data, [2, 3]).shrink([(0, 2), (0, 4)]);
    }
}
