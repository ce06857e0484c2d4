//! Layouts as functions: coordinates to offsets, indices to coordinates, and what can be said of all offsets.

use crate::algebra::gcd;
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Layout, Mode, Modes, Part};
use crate::tuple::{IntTuple, Ints, children, is_leaf, leaf_count};
use alloc::format;

impl Layout {
    /// The offset at a coordinate. A coordinate may be as fine as the shape or coarser: an integer in the place
    /// of a tuple of modes counts through them, the first mode fastest (CuTe's `crd2idx`).
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where the coordinate nests differently, [`ErrorKind::OutOfBounds`] where one of its
    /// integers lies outside its extent.
    ///
    /// ```
    /// let layout: tile_layout::Layout = "(4,(2,3)):(1,(4,8))".parse()?;
    /// assert_eq!(layout.offset(&(3, (1, 2)).into())?, 23);
    /// assert_eq!(layout.offset(&(3, 5).into())?, 23);
    /// assert_eq!(layout.offset(&23.into())?, 23);
    /// assert!(layout.offset(&(4, 0).into()).is_err());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn offset(&self, coordinate: &IntTuple) -> Result<i64> {
        offset_in(self.part(), coordinate.nesting.tokens(), &coordinate.leaves)
            .map_err(|reason| reason.error(self, coordinate))
    }

    /// The offset at a linear index, the first mode fastest; `None` outside `0..size`.
    ///
    /// ```
    /// let rows: tile_layout::Layout = "(2,3):(3,1)".parse()?;
    /// assert_eq!((rows.get(1), rows.get(2), rows.get(6)), (Some(3), Some(1), None));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn get(&self, index: i64) -> Option<i64> {
        (0..self.size()).contains(&index).then(|| at_index(self.part(), index))
    }

    /// All offsets in linear order, the first mode fastest.
    ///
    /// ```
    /// let rows: tile_layout::Layout = "(2,3):(3,1)".parse()?;
    /// assert_eq!(rows.offsets().collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn offsets(&self) -> impl Iterator<Item = i64> {
        (0..self.size()).map(|index| at_index(self.part(), index))
    }

    /// Whether no two coordinates share an offset.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// assert!("(4,2):(1,4)".parse::<Layout>()?.is_injective());
    /// assert!(!"(4,2):(1,2)".parse::<Layout>()?.is_injective());
    /// assert!(!"(4,2):(1,0)".parse::<Layout>()?.is_injective());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn is_injective(&self) -> bool {
        if self.size() == 0 {
            return true;
        }
        let mut modes: Modes = self.leaves().iter().copied().filter(|mode| mode.extent > 1).collect();
        if modes.iter().any(|mode| mode.stride == 0) || self.span() < self.size() {
            return false;
        }
        modes.iter_mut().for_each(|mode| mode.stride = mode.stride.abs());
        modes.sort_by_key(|mode| mode.stride);
        !difference_vanishes(&mut modes, 0, true)
    }

    /// Whether the offsets are exactly `0..size`, each once.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// assert!("(4,2):(2,1)".parse::<Layout>()?.is_compact());
    /// assert!(!"(4,2):(1,8)".parse::<Layout>()?.is_compact());
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn is_compact(&self) -> bool {
        self.min_offset() == 0 && self.cosize() == self.size() && self.is_injective()
    }

    /// Whether two layouts have the same size and the same offset at every linear index.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let split: Layout = "(2,2,3):(1,2,4)".parse()?;
    /// assert!(split.is_same_function(&"12:1".parse()?));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn is_same_function(&self, other: &Layout) -> bool {
        // Coalescing is canonical for the function of a linear index.
        self.size() == other.size()
            && (self.size() == 0 || self.coalesce().leaves() == other.coalesce().leaves())
    }
}

impl IntTuple {
    /// The coordinate of a linear index in this shape, the first mode fastest (CuTe's `idx2crd`).
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`] where the index lies outside the shape.
    ///
    /// ```
    /// use tile_layout::IntTuple;
    /// assert_eq!(IntTuple::from((4, (2, 3))).coordinate(23)?.to_string(), "(3,(1,2))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn coordinate(&self, index: i64) -> Result<IntTuple> {
        let size = self.product()?;
        if self.leaves.iter().any(|&extent| extent < 0) || !(0..size).contains(&index) {
            return Err(LayoutError::new(
                ErrorKind::OutOfBounds,
                format!("index {index} lies outside shape {self} of {size} elements"),
            ));
        }
        let mut rest = index;
        let digit = |&extent: &i64| {
            let digit = rest % extent;
            rest /= extent;
            digit
        };
        let leaves: Ints = self.leaves.iter().map(digit).collect();
        Ok(IntTuple { leaves, nesting: self.nesting.clone() })
    }
}

/// The offset at a linear index inside the layout.
pub(crate) fn at_index(part: Part<'_>, index: i64) -> i64 {
    let mut rest = index;
    let mut offset = 0;
    for mode in part.modes {
        offset += rest % mode.extent * mode.stride;
        rest /= mode.extent;
    }
    offset
}

/// What is wrong with a coordinate.
enum Mismatch {
    Nesting,
    Bounds { coordinate: i64, extent: i64 },
}

impl Mismatch {
    fn error(self, layout: &Layout, coordinate: &IntTuple) -> LayoutError {
        let shape = layout.shape();
        match self {
            Mismatch::Nesting => LayoutError::new(
                ErrorKind::Rank,
                format!("coordinate {coordinate} does not nest like shape {shape}, nor more coarsely"),
            ),
            Mismatch::Bounds { coordinate: part, extent } => LayoutError::new(
                ErrorKind::OutOfBounds,
                format!(
                    "{part} in coordinate {coordinate} lies outside its extent {extent} in shape {shape}"
                ),
            ),
        }
    }
}

fn offset_in(part: Part<'_>, tokens: &[u32], leaves: &[i64]) -> core::result::Result<i64, Mismatch> {
    if is_leaf(tokens) {
        let extent = part.size();
        let coordinate = leaves[0];
        return match (0..extent).contains(&coordinate) {
            true => Ok(at_index(part, coordinate)),
            false => Err(Mismatch::Bounds { coordinate, extent }),
        };
    }
    if part.is_leaf() || part.rank() != crate::tuple::rank(tokens) {
        return Err(Mismatch::Nesting);
    }
    let mut rest = leaves;
    part.children().zip(children(tokens)).try_fold(0, |offset, (mode, tokens)| {
        let (own, after) = rest.split_at(leaf_count(tokens));
        rest = after;
        Ok(offset + offset_in(mode, tokens, own)?)
    })
}

/// Whether some difference of two coordinates, not zero in every mode, adds up to `-sum`. All strides are positive.
///
/// The search goes on with the mode of which the fewest multiples can still be cancelled by the others, those that are in
/// reach and differ from `-sum` by a multiple of what the others share. Of two modes that is one at most for each `sum`, so
/// the search is quick for every layout that is not built to resist it.
fn difference_vanishes(modes: &mut [Mode], sum: i128, all_zero: bool) -> bool {
    let Some(last) = modes.len().checked_sub(1) else { return sum == 0 && !all_zero };
    let (mut place, mut steps) = (last, Steps::of(modes, last, sum, all_zero));
    for other in (0..last).rev() {
        // In most layouts nothing but 0 is left of the largest stride, which comes first.
        if steps.count() <= 1 {
            break;
        }
        let those = Steps::of(modes, other, sum, all_zero);
        if those.count() < steps.count() {
            (place, steps) = (other, those);
        }
    }
    modes.swap(place, last);
    let Some((chosen, others)) = modes.split_last_mut() else { return false };
    let stride = i128::from(chosen.stride);
    (0..steps.count()).any(|number| {
        let own = steps.first + number * steps.apart;
        difference_vanishes(others, sum + own * stride, all_zero && own == 0)
    })
}

/// Differences in one mode that the other modes may cancel: from the first to the last, some apart.
struct Steps {
    first: i128,
    last: i128,
    apart: i128,
}

impl Steps {
    fn of(modes: &[Mode], place: usize, sum: i128, all_zero: bool) -> Steps {
        let others = || modes.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, mode)| mode);
        let reach: i128 = others().map(|mode| i128::from(mode.extent - 1) * i128::from(mode.stride)).sum();
        let (stride, limit) = (i128::from(modes[place].stride), i128::from(modes[place].extent - 1));
        let from = (-reach - sum).div_euclid(stride) + i128::from((-reach - sum).rem_euclid(stride) != 0);
        let last = (reach - sum).div_euclid(stride).min(limit);
        // Differences come in pairs of opposite sign: while all that were chosen are zero, half of them are enough.
        let first = if all_zero { from.max(0) } else { from.max(-limit) };
        if first >= last {
            return Steps { first, last, apart: 1 };
        }
        let shared = others().fold(0, |shared, mode| gcd(shared, mode.stride));
        let common = i128::from(gcd(shared, modes[place].stride));
        if sum % common != 0 {
            return Steps { first: 0, last: -1, apart: 1 };
        }
        let apart = i128::from(shared) / common;
        let solution = -sum / common % apart * inverse_modulo(stride / common, apart) % apart;
        Steps { first: first + (solution - first).rem_euclid(apart), last, apart }
    }

    fn count(&self) -> i128 {
        if self.first > self.last { 0 } else { (self.last - self.first) / self.apart + 1 }
    }
}

/// The number whose product with `value` is 1 modulo `modulus`, with which it shares no divisor (Euclid's algorithm).
fn inverse_modulo(value: i128, modulus: i128) -> i128 {
    let (mut before, mut rest) = (modulus, value % modulus);
    let (mut coefficient_before, mut coefficient) = (0, 1);
    while rest != 0 {
        let quotient = before / rest;
        (before, rest) = (rest, before % rest);
        (coefficient_before, coefficient) = (coefficient, coefficient_before - quotient * coefficient);
    }
    coefficient_before.rem_euclid(modulus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn injectivity_agrees_with_a_table() {
        for a in 0..5 {
            for b in -7..8 {
                for c in 0..9 {
                    let layout = Layout::new((3, 2, 4), (a, b, c)).unwrap();
                    let distinct: BTreeSet<i64> = layout.offsets().collect();
                    assert_eq!(layout.is_injective(), distinct.len() == 24, "{layout}");
                }
            }
        }
        let large = Layout::new((1 << 20, 1 << 20), (1 << 20, 1)).unwrap();
        assert!(large.is_injective() && large.is_compact());
        assert!(!Layout::new((1 << 20, 1 << 20), (1 << 19, 1)).unwrap().is_injective());
    }

    /// Of strides that share little, few multiples of one are sums of the others: only these are tried.
    #[test]
    fn injectivity_of_long_modes_is_decided_at_once() {
        let long = 1i64 << 30;
        for (text, injective) in [
            ("(1073741824,1073741824):(1073741824,1073741825)", true),
            ("(1073741824,1073741824):(1073741823,1073741825)", true),
            ("(1073741825,1073741824):(1073741823,1073741825)", true),
            // As many steps of one stride as the other one is long are as many of the other one as this one is long.
            ("(1073741826,1073741824):(1073741823,1073741825)", false),
            ("(536870912,2,536870912):(2147483648,1,2147483651)", true),
            ("(536870912,4,536870912):(2147483648,1,2147483651)", false),
            ("(268435456,2,2,268435456):(-2147483648,1,3,2147483655)", true),
            ("(268435456,2,2,268435456):(-2147483648,1,6,2147483655)", false),
        ] {
            assert_eq!(text.parse::<Layout>().unwrap().is_injective(), injective, "{text}");
        }
        let far = Layout::new((long, long), (2 * long, 2 * long + 2)).unwrap();
        assert!(far.is_injective());
    }

    #[test]
    fn an_empty_layout_has_no_elements_and_no_offsets() {
        let empty = Layout::new((4, 0), (1, 4)).unwrap();
        assert_eq!((empty.size(), empty.cosize(), empty.span(), empty.get(0)), (0, 0, 0, None));
        assert!(empty.is_injective() && empty.offsets().next().is_none());
    }
}
