//! Composition: `R(c) = A(B(c))`, exactly, or a refusal.
//!
//! Composition with a layout reads an index as digits of `A`'s mixed radix and adds up what the digits are worth.
//! A leaf `s:d` of `B` counts `0, d, 2d, …`; its offsets in `A` are even until a step crosses a boundary between
//! digits. Write `P` for the boundaries (the products of the first extents of coalesced `A`). Splitting the leaf
//! into pieces `m:e` so that the pieces of all leaves together never carry,
//!
//! > Σ (m−1)·(e mod P) < P for every boundary P,
//!
//! makes every digit additive, and so the whole function. That condition takes a few divisions and decides all
//! the cases in practice. Where it fails, worth can still cancel between digits: `(2,2,4):(1,3,5) ∘ 3:3` is `3:4`,
//! although 3 + 3 carries twice. Such cases are decided point by point, up to [`POINTWISE`] elements. Beyond they are
//! refused, as impossible where the first element behind a carry shows it, else as not decided.
//!
//! CuTe and its ports accept more and answer with another function, or refuse exact cases; see the tests.

use super::carry::{Carries, even_steps};
use super::coalesce::{coalesce_endless, coalesce_modes};
use super::tiler::{Cut, Tiler};
use crate::error::{ErrorKind, LayoutError, Result};
use crate::evaluate::at_index;
use crate::layout::{Builder, Layout, Mode, Modes, Part};
use crate::tuple::{LEAF_TOKENS, LIMIT};
use alloc::format;
use alloc::string::String;
use smallvec::SmallVec;

/// Elements up to which a composition that carries is decided point by point.
const POINTWISE: i64 = 1 << 16;

impl Layout {
    /// The layout `R` with `R(c) = self(right(c))` and a shape as fine as that of `right`. With a tiler of
    /// several modes, each composes with the mode of `self` in its place; modes without a tiler stay.
    ///
    /// # Errors
    /// [`ErrorKind::NotComposable`], naming the leaf of `right`, where no such layout exists, or where more than 2^16
    /// elements would have to be tried to know; [`ErrorKind::OutOfBounds`] where `right` reaches beyond the size of
    /// `self` (see [`Layout::compose_extended`]) or below 0; [`ErrorKind::Rank`] where a tiler has more modes than `self`.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let layout: Layout = "(6,2):(8,2)".parse()?;
    /// let right: Layout = "(4,3):(3,1)".parse()?;
    /// assert_eq!(layout.compose(&right)?.to_string(), "((2,2),3):((24,2),8)");
    /// assert_eq!(layout.compose([3, 2])?.to_string(), "(3,2):(8,2)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn compose(&self, right: impl Into<Tiler>) -> Result<Layout> {
        self.composed(&right.into(), Domain::Strict)
    }

    /// [`Layout::compose`] where the last mode of `self` goes on without end, also one of one element, so that `right` may
    /// reach further.
    ///
    /// # Errors
    /// As [`Layout::compose`], and [`ErrorKind::Overflow`] where an offset exceeds 2^62.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let layout: Layout = "(4,2):(1,8)".parse()?;
    /// assert!(layout.compose(16).is_err());
    /// assert_eq!(layout.compose_extended(16)?.to_string(), "(4,4):(1,8)");
    /// assert_eq!("(4,1):(1,8)".parse::<Layout>()?.compose_extended(16)?.to_string(), "(4,4):(1,8)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn compose_extended(&self, right: impl Into<Tiler>) -> Result<Layout> {
        self.composed(&right.into(), Domain::Extended)
    }

    fn composed(&self, right: &Tiler, domain: Domain) -> Result<Layout> {
        let mut builder = Builder::new();
        compose_cut(&mut builder, self.part(), right.cut(), domain)?;
        builder.finish()
    }
}

/// How far the right operand may reach.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Domain {
    /// Within the size of the left one.
    Strict,
    /// As far as it likes: the left one's last mode is unbounded.
    Extended,
}

fn compose_cut(builder: &mut Builder, left: Part<'_>, right: Cut<'_>, domain: Domain) -> Result<()> {
    match right {
        Cut::Keep => builder.push(left),
        Cut::Whole(layout) => compose_part(builder, left, layout, domain)?,
        Cut::Run(size) => {
            let run = [check_size(size)?];
            compose_part(builder, left, Part { modes: &run, tokens: LEAF_TOKENS }, domain)?;
        }
        Cut::ByMode(cuts) => {
            cuts.count_within(left.rank())?;
            builder.open(left.rank());
            left.children()
                .zip(cuts.each())
                .try_for_each(|(mode, cut)| compose_cut(builder, mode, cut, domain))?;
        }
    }
    Ok(())
}

/// A contiguous run as a mode.
pub(super) fn check_size(size: i64) -> Result<Mode> {
    match size {
        0..=LIMIT => Ok(Mode::new(size, 1)),
        _ => Err(LayoutError::new(ErrorKind::InvalidExtent, format!("a run of {size} elements"))),
    }
}

fn compose_part(builder: &mut Builder, left: Part<'_>, right: Part<'_>, domain: Domain) -> Result<()> {
    let pieces = compose_modes(left, right, domain)?;
    push_pieces(builder, right.tokens, &mut pieces.iter());
    Ok(())
}

/// The pieces of `left ∘ right`, in the order of the leaves of `right`.
pub(super) fn compose_modes(left: Part<'_>, right: Part<'_>, domain: Domain) -> Result<Pieces> {
    check_domain(left, right, domain)?;
    if right.size() == 0 {
        return Ok(still(right.modes));
    }
    let digits = Digits::new(left.modes);
    let pieces = digits.without_carry(right.modes).or_else(|| digits.pointwise(right));
    pieces.ok_or_else(|| refusal(&digits, left, right))
}

fn check_domain(left: Part<'_>, right: Part<'_>, domain: Domain) -> Result<()> {
    if right.size() == 0 {
        return Ok(());
    }
    if let Some(leaf) = right.modes.iter().position(|mode| mode.stride < 0 && mode.extent > 1) {
        return Err(LayoutError::at(
            ErrorKind::NegativeStride,
            &[leaf],
            format!("mode {leaf} of {} runs below index 0 of {}", right.to_layout(), left.to_layout()),
        ));
    }
    let largest: i64 = right.modes.iter().map(|mode| (mode.extent - 1) * mode.stride).sum();
    let size = left.size();
    if largest >= size && (domain == Domain::Strict || size == 0) {
        return Err(LayoutError::new(
            ErrorKind::OutOfBounds,
            format!(
                "{} reaches index {largest}, beyond the {size} elements of {}",
                right.to_layout(),
                left.to_layout()
            ),
        ));
    }
    Ok(())
}

/// A piece of a leaf of the right operand, with its stride in the result.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) leaf: usize,
    mode: Mode,
}

pub(super) type Pieces = SmallVec<[Piece; crate::tuple::INLINE]>;

/// The leaves of a layout without elements, whose strides no one can see.
fn still(leaves: &[Mode]) -> Pieces {
    leaves.iter().enumerate().map(|(leaf, mode)| Piece { leaf, mode: Mode::new(mode.extent, 0) }).collect()
}

/// A layout read as a positional number system: the first digit changes fastest, the last has no end.
pub(crate) struct Digits {
    modes: Modes,
    /// The index at which each digit but the first begins.
    boundaries: SmallVec<[i64; crate::tuple::INLINE]>,
}

impl Digits {
    pub(crate) fn new(modes: &[Mode]) -> Digits {
        let modes = coalesce_endless(modes);
        let mut boundaries = SmallVec::new();
        let mut boundary = 1i64;
        for mode in modes.iter().take(modes.len().saturating_sub(1)) {
            // Within the size of the layout.
            boundary *= mode.extent;
            boundaries.push(boundary);
        }
        Digits { modes, boundaries }
    }

    /// The indices at which the second and all later digits begin.
    pub(crate) fn boundaries(&self) -> &[i64] {
        &self.boundaries
    }

    /// What an index is worth; `None` where it does not fit into 64 bits.
    pub(crate) fn offset(&self, index: i64) -> Option<i64> {
        let Some((last, first)) = self.modes.split_last() else { return Some(0) };
        let mut rest = index;
        let mut offset = 0i64;
        for mode in first {
            offset += rest % mode.extent * mode.stride;
            rest /= mode.extent;
        }
        offset.checked_add(rest.checked_mul(last.stride)?)
    }

    /// The leaves of a right operand in pieces that never carry; `None` where there are none such.
    fn without_carry(&self, leaves: &[Mode]) -> Option<Pieces> {
        let mut carries = Carries::new(&self.boundaries, 0);
        let mut pieces = Pieces::new();
        for (leaf, &mode) in leaves.iter().enumerate() {
            if mode.extent <= 1 || mode.stride == 0 {
                pieces.push(Piece { leaf, mode: Mode::new(mode.extent, 0) });
                continue;
            }
            let Mode { extent: mut steps, stride: mut step } = mode;
            while steps > 1 {
                let even = carries.count(steps, step)?;
                pieces.push(Piece { leaf, mode: Mode::new(even, self.offset(step)?) });
                steps /= even;
                // Only read while steps are left, and then within the leaf's reach.
                step = step.wrapping_mul(even);
            }
        }
        Some(pieces)
    }

    /// Whether an element behind the first carry shows that no layout holds all elements of the leaves.
    fn is_uneven(&self, leaves: &[Mode]) -> bool {
        // The last element of the pieces so far.
        let mut last = 0i64;
        for &Mode { extent: mut steps, stride: mut step } in leaves.iter().filter(|mode| mode.stride != 0) {
            while steps > 1 {
                let goes_on = |start: i64, count: i64| {
                    let straight = |own: i64| self.offset(start)?.checked_add(own.checked_mul(count)?);
                    self.offset(step).and_then(straight) == self.offset(start + count * step)
                };
                let even = even_steps(&self.boundaries, 0, step).min(steps);
                // A piece may be longer than up to a boundary that doesn't show.
                if even < steps && goes_on(0, even) {
                    return false;
                }
                if steps % even != 0 {
                    return true;
                }
                let together = even_steps(&self.boundaries, last, step);
                if together < even {
                    return !goes_on(last, together);
                }
                last += (even - 1) * step;
                steps /= even;
                // Only read while steps are left, and then within the leaf's reach.
                step = step.wrapping_mul(even);
            }
        }
        false
    }

    /// The pieces found by trying every element, where there are few enough.
    fn pointwise(&self, right: Part<'_>) -> Option<Pieces> {
        if right.size() > POINTWISE {
            return None;
        }
        let mut pieces = Pieces::new();
        for (leaf, &mode) in right.modes.iter().enumerate() {
            let Mode { extent: mut steps, stride: mut step } = mode;
            if steps <= 1 || step == 0 {
                pieces.push(Piece { leaf, mode: Mode::new(steps, 0) });
                continue;
            }
            while steps > 1 {
                let stride = self.offset(step)?;
                let even =
                    (2..steps).find(|&j| self.offset(j * step) != stride.checked_mul(j)).unwrap_or(steps);
                if steps % even != 0 {
                    return None;
                }
                pieces.push(Piece { leaf, mode: Mode::new(even, stride) });
                steps /= even;
                step = step.wrapping_mul(even);
            }
        }
        let mut split = Builder::new();
        split.push_mode(&pieces.iter().map(|piece| piece.mode).collect::<Modes>());
        let split = split.finish().ok()?;
        let agrees = |index| self.offset(at_index(right, index)) == split.get(index);
        (0..right.size()).all(agrees).then_some(pieces)
    }
}

pub(super) fn push_pieces<'a>(
    builder: &mut Builder,
    tokens: &[u32],
    pieces: &mut (impl Iterator<Item = &'a Piece> + Clone),
) {
    if !crate::tuple::is_leaf(tokens) {
        builder.open(crate::tuple::rank(tokens));
        crate::tuple::children(tokens).for_each(|child| push_pieces(builder, child, pieces));
        return;
    }
    let Some(first) = pieces.clone().next() else { return };
    let own = pieces.clone().take_while(|piece| piece.leaf == first.leaf);
    let modes: Modes = own.map(|piece| piece.mode).collect();
    builder.push_mode(&coalesced_leaf(&modes));
    for _ in 0..modes.len() {
        pieces.next();
    }
}

/// The pieces of one leaf, merged where they continue each other; a single piece of extent 1 stays.
fn coalesced_leaf(modes: &[Mode]) -> Modes {
    if modes.len() == 1 { Modes::from_slice(modes) } else { coalesce_modes(modes) }
}

/// Why a composition is refused, naming the leaf that cannot be split.
fn refusal(digits: &Digits, left: Part<'_>, right: Part<'_>) -> LayoutError {
    let largest: i64 = right.modes.iter().map(|mode| (mode.extent - 1).max(0) * mode.stride).sum();
    let (left, right_layout) = (left.to_layout(), right.to_layout());
    if digits.offset(largest).is_none_or(|offset| offset.unsigned_abs() > LIMIT.unsigned_abs()) {
        let message = format!("an offset of {left} composed with {right_layout} exceeds 2^62");
        return LayoutError::new(ErrorKind::Overflow, message);
    }
    let is_stuck = |leaf: &usize| {
        let part = Part { modes: &right.modes[*leaf..=*leaf], tokens: &[] };
        digits.without_carry(part.modes).or_else(|| digits.pointwise(part)).is_none()
    };
    let culprit = (0..right.modes.len()).find(is_stuck);
    let modes = culprit.map_or(right.modes, |leaf| &right.modes[leaf..=leaf]);
    let size: i64 = modes.iter().map(|mode| mode.extent).product();
    let is_decided = size <= POINTWISE || digits.is_uneven(modes);
    let named = match culprit.map(|leaf| (leaf, right.modes[leaf])) {
        Some((leaf, Mode { extent, stride })) => format!("mode {leaf} ({extent}:{stride}) of {right_layout}"),
        None => format!("{right_layout}"),
    };
    let reason = match culprit.map(|leaf| right.modes[leaf]) {
        Some(Mode { extent, stride }) => {
            let even = even_steps(&digits.boundaries, 0, stride);
            if !is_decided {
                format!("it crosses a boundary after {even} steps")
            } else if extent % even != 0 {
                format!(
                    "its first boundary comes after {even} steps, which do not divide its extent {extent}"
                )
            } else {
                format!("past a boundary, which comes after {even} steps, it goes on unevenly")
            }
        }
        None if !is_decided => String::from("its modes carry across a boundary"),
        None => String::from("its modes carry into each other across a boundary"),
    };
    let message = match is_decided {
        true => format!("{named} does not compose with {left}: {reason}"),
        false => format!(
            "{named} may or may not compose with {left}: {reason}, and what that adds may cancel out; only up to \
             {POINTWISE} elements are tried, and it has {size}"
        ),
    };
    LayoutError::at(ErrorKind::NotComposable, culprit.as_slice(), message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn modes() -> impl Strategy<Value = std::vec::Vec<Mode>> {
        let mode = (1i64..6, 0i64..13).prop_map(|(extent, stride)| Mode::new(extent, stride));
        prop::collection::vec(mode, 1..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

        /// What one element shows holds among all.
        #[test]
        fn what_is_uneven_is_no_layout(left in modes(), right in modes()) {
            let digits = Digits::new(&left);
            if digits.is_uneven(&right) {
                prop_assert!(digits.without_carry(&right).is_none());
                let every = Part { modes: &right, tokens: &[] };
                prop_assert!(digits.pointwise(every).is_none());
            }
        }
    }
}
