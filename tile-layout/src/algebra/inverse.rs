//! Inverses, what they tell about two layouts, and the nullspace.

use super::compose::Digits;
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Builder, Layout, Mode, Modes};
use crate::tuple::{INLINE, Ints};
use alloc::format;
use smallvec::{SmallVec, smallvec};

/// How many runs that end at a carry are looked at for a common vector.
const MOST_RUNS: usize = 1 << 16;

impl Layout {
    /// The layout `R` with `self(R(i)) = i` of the offsets from 0 up that modes reach without a gap, each of which
    /// begins where those before it end. Where no stride is negative and each element has an offset of its own, there is
    /// no longer one.
    ///
    /// Modes of stride 0 are passed over. A layout that skips offset 1 has the right inverse `1:0`, one without
    /// elements `0:0`.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let rows: Layout = "(8,4):(4,1)".parse()?;
    /// assert_eq!(rows.right_inverse().to_string(), "(4,8):(8,1)");
    /// assert_eq!("(4,2):(2,16)".parse::<Layout>()?.right_inverse().to_string(), "1:0");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn right_inverse(&self) -> Layout {
        let places = self.leaves_with_index_strides();
        let mut inverse = Modes::new();
        if self.size() == 0 {
            // Not even offset 0 is reached.
            inverse.push(Mode::new(0, 0));
        }
        let mut reached = 1i64;
        while let Some(&(mode, index_stride)) =
            places.iter().find(|(mode, _)| mode.extent > 1 && mode.stride == reached)
        {
            inverse.push(Mode::new(mode.extent, index_stride));
            match reached.checked_mul(mode.extent) {
                Some(next) => reached = next,
                None => break,
            }
        }
        let mut builder = Builder::new();
        builder.push_mode(&crate::algebra::coalesce_modes(&inverse));
        builder.finish().unwrap_or_else(|_| Layout::unit())
    }

    /// A layout `R` with `R(self(i)) = i`. Offsets that `self` skips are sent somewhere.
    ///
    /// # Errors
    /// [`ErrorKind::NotInjective`], naming the leaf, where two elements share an offset; [`ErrorKind::NotDivisible`],
    /// naming the leaf, where a stride is not a multiple of the next smaller one, so that no digits of an offset are the
    /// coordinates (another layout may still be an inverse; none is looked for); [`ErrorKind::NegativeStride`];
    /// [`ErrorKind::Overflow`] where the inverse would have more than 2^62 elements.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let gaps: Layout = "(4,2):(2,16)".parse()?;
    /// let inverse = gaps.left_inverse()?;
    /// assert_eq!(inverse.to_string(), "(2,8,2):(0,1,4)");
    /// assert!(gaps.offsets().enumerate().all(|(i, offset)| inverse.get(offset) == Some(i as i64)));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn left_inverse(&self) -> Result<Layout> {
        let not_injective = |leaf: usize, stride: &str| {
            let message = format!("{self} has no left inverse: {stride}");
            Err(LayoutError::at(ErrorKind::NotInjective, &[leaf], message))
        };
        if let Some(leaf) = self.leaves().iter().position(|mode| mode.extent > 1 && mode.stride == 0) {
            return not_injective(leaf, &format!("stride of mode {leaf} is 0"));
        }
        let places = self.leaves_with_index_strides();
        let mut inverse = Modes::new();
        let (mut below, mut reached, mut index_stride) = (1i64, 1i64, 0i64);
        for (leaf, mode) in self.moving_modes_by_stride()? {
            let stride = mode.stride;
            if stride % below != 0 {
                return Err(LayoutError::at(
                    ErrorKind::NotDivisible,
                    &[leaf],
                    format!(
                        "no left inverse of {self} is known: stride {stride} of mode {leaf} is not a multiple of the next \
                         smaller stride {below}"
                    ),
                ));
            }
            if stride < reached {
                let what = format!("stride {stride} of mode {leaf} is an offset of the modes below it");
                return not_injective(leaf, &what);
            }
            inverse.push(Mode::new(mode.stride / below, index_stride));
            below = mode.stride;
            reached = mode.stride.checked_mul(mode.extent).ok_or_else(|| {
                let message = format!("the left inverse of {self} would have more than 2^62 elements");
                LayoutError::new(ErrorKind::Overflow, message)
            })?;
            index_stride = places[leaf].1;
        }
        let last = reached / below;
        inverse.push(Mode::new(last, index_stride));
        let mut builder = Builder::new();
        builder.push_mode(&crate::algebra::coalesce_modes(&inverse));
        builder.finish()
    }

    /// The coordinates that are all sent to offset 0 by strides of 0: `self(R(i)) = 0`, as linear indices.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let broadcast: Layout = "(4,3,2):(1,0,4)".parse()?;
    /// assert_eq!(broadcast.nullspace().to_string(), "3:4");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn nullspace(&self) -> Layout {
        let places =
            if self.size() == 0 { smallvec![(Mode::new(0, 0), 0)] } else { self.leaves_with_index_strides() };
        let still = places.iter().filter(|(mode, _)| mode.stride == 0 && mode.extent != 1);
        let modes: Modes = still.map(|(mode, index_stride)| Mode::new(mode.extent, *index_stride)).collect();
        let mut builder = Builder::new();
        builder.push_mode(&crate::algebra::coalesce_modes(&modes));
        builder.finish().unwrap_or_else(|_| Layout::unit())
    }

    /// The most elements that lie next to each other in memory in both layouts and are the same elements: the
    /// widest vector that copies from one to the other. Alignment of the memory and the width of an instruction
    /// limit it further.
    ///
    /// Of strides that lie evenly even where an index carries from one coordinate to the next, which takes some made for
    /// it, no more than 2^16 such carries are followed.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let rows: Layout = "(8,4):(4,1)".parse()?;
    /// let padded: Layout = "(8,4):(6,1)".parse()?;
    /// assert_eq!(rows.max_common_vector(&padded), 4);
    /// assert_eq!(rows.max_common_vector(&"(8,4):(1,8)".parse()?), 1);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn max_common_vector(&self, other: &Layout) -> i64 {
        let inverse = other.right_inverse();
        let common = match self.compose(&inverse) {
            Ok(common) => common.coalesce(),
            Err(_) => return self.common_vector_by_runs(&inverse),
        };
        match common.leaves() {
            [first, ..] if first.stride == 1 => first.extent,
            _ => 1,
        }
    }

    /// As [`Layout::max_common_vector`] where the composition is no layout: its first run is still even.
    ///
    /// From an element that lies where it should, so do all that follow without a carry between the digits of an index of
    /// `self`. So as many are passed over at once, and only the one behind them is looked at.
    fn common_vector_by_runs(&self, inverse: &Layout) -> i64 {
        let digits = Digits::new(self.leaves());
        let size = self.size();
        let mut common = 1i64;
        for _ in 0..MOST_RUNS {
            if common >= inverse.size() {
                break;
            }
            let index = crate::evaluate::at_index(inverse.part(), common);
            if index >= size || digits.offset(index) != Some(common) {
                break;
            }
            common += run_without_carry(inverse.leaves(), digits.boundaries(), size, index, common);
        }
        common
    }

    /// The leaves, each with the stride of its coordinate in the linear index.
    fn leaves_with_index_strides(&self) -> SmallVec<[(Mode, i64); INLINE]> {
        let mut index_stride = 1i64;
        let place = |&mode: &Mode| {
            let own = index_stride;
            index_stride = index_stride.saturating_mul(mode.extent);
            (mode, own)
        };
        self.leaves().iter().map(place).collect()
    }
}

/// How many elements of the inverse follow from the one at `position` on, that one counted, of which none carries between
/// the digits of an index of a layout of `size` elements; `index` is the first one's.
fn run_without_carry(inverse: &[Mode], boundaries: &[i64], size: i64, index: i64, position: i64) -> i64 {
    // The furthest that the modes below reach, and by how much they fill each digit.
    let mut below = 0i64;
    let mut used: Ints = boundaries.iter().map(|boundary| index % boundary).collect();
    let (mut unit, mut run) = (1i64, 1i64);
    for mode in inverse {
        if position % unit != 0 {
            break;
        }
        let room = |free: i64, step: i64| if step == 0 { i64::MAX } else { free / step + 1 };
        let free = boundaries.iter().zip(&used).map(|(boundary, used)| (boundary - 1 - used, boundary));
        if free.clone().any(|(free, _)| free < 0) || index + below >= size {
            break;
        }
        let within = room(size - 1 - index - below, mode.stride);
        let steps = free.map(|(free, boundary)| room(free, mode.stride % boundary)).fold(within, i64::min);
        let digit = position / unit % mode.extent;
        run = steps.min(mode.extent - digit) * unit;
        for (used, boundary) in used.iter_mut().zip(boundaries) {
            *used += (mode.extent - 1) * (mode.stride % boundary);
        }
        below += (mode.extent - 1) * mode.stride;
        unit *= mode.extent;
        // A mode is a unit of the next one only where it is known to be even as a whole.
        if position < unit {
            break;
        }
    }
    run
}
