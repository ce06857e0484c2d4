//! Layouts of wider and narrower elements: the same bytes counted in other units.

use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Builder, Layout, Mode};
use alloc::format;
use smallvec::SmallVec;

/// `a / b` where `b` divides `a`, else the sign of `a·b`: how many whole steps of `b` a mode of `a` has, at least
/// one (Mojo's `shape_div`).
///
/// # Errors
/// [`ErrorKind::InvalidExtent`] where `b` is 0, [`ErrorKind::Overflow`] for `i64::MIN / -1`.
///
/// ```
/// use tile_layout::shape_div;
/// assert_eq!((shape_div(8, 2)?, shape_div(2, 8)?, shape_div(7, -2)?), (4, 1, -1));
/// assert!(shape_div(1, 0).is_err());
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
pub fn shape_div(a: i64, b: i64) -> Result<i64> {
    match (a.checked_rem(b), a.checked_div(b)) {
        (Some(0), Some(quotient)) => Ok(quotient),
        (Some(_), _) => Ok(a.signum() * b.signum()),
        _ if b == 0 => Err(LayoutError::new(ErrorKind::InvalidExtent, format!("{a} is divided by 0"))),
        _ => Err(LayoutError::new(ErrorKind::Overflow, format!("{a} / {b} does not fit into 64 bits"))),
    }
}

impl Layout {
    /// The layout in units of `factor` elements: strides are divided, and a mode that steps through the inside of
    /// a unit shrinks. Modes of stride 0 stay. The unit of an element is `self(c) / factor`, rounded down.
    ///
    /// # Errors
    /// [`ErrorKind::NotDivisible`], naming the leaf, where a mode neither steps in whole units nor fills them:
    /// its stride `d` must be a multiple of the factor, or divide it with an extent that is a multiple of
    /// `factor / d`, alone or together with the modes that continue it. CuTe rounds such modes up and Mojo
    /// truncates them, which both lose elements. [`ErrorKind::InvalidExtent`] for a factor below 1.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let halves: Layout = "(4,8):(8,1)".parse()?;
    /// assert_eq!(halves.upcast(2)?.to_string(), "(4,4):(4,1)");
    /// assert_eq!("(4,2,2):(4,2,1)".parse::<Layout>()?.upcast(4)?.to_string(), "(4,1,1):(1,1,1)");
    /// assert_eq!("(4,7):(7,1)".parse::<Layout>()?.upcast(2).unwrap_err().modes(), [0]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn upcast(&self, factor: i64) -> Result<Layout> {
        check_factor(factor)?;
        let units = Units { modes: self.leaves(), factor };
        if units.carry() {
            return Err(LayoutError::new(
                ErrorKind::NotDivisible,
                format!("modes of {self} add up across a boundary between units of {factor}"),
            ));
        }
        self.map_leaves(|leaf, mode| units.upcast(mode).ok_or_else(|| self.not_divisible(leaf, mode, factor)))
    }

    /// The layout in units of which `factor` make an element: a mode of stride 1 grows, other strides are
    /// multiplied. Of several modes of stride 1 the first that has more than one element grows: a mode of one element,
    /// as in `(1,4):(1,1)`, steps nowhere. The units of an element are `factor·self(c) + 0 … factor − 1`.
    ///
    /// # Errors
    /// [`ErrorKind::NoUnitStride`] where no mode has stride 1, [`ErrorKind::InvalidExtent`] for a factor below
    /// 1, [`ErrorKind::Overflow`].
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let words: Layout = "(4,4):(4,1)".parse()?;
    /// assert_eq!(words.downcast(2)?.to_string(), "(4,8):(8,1)");
    /// assert_eq!("(1,4):(1,1)".parse::<Layout>()?.downcast(2)?.to_string(), "(1,8):(2,1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn downcast(&self, factor: i64) -> Result<Layout> {
        check_factor(factor)?;
        let unit = |longer_than: i64| {
            self.leaves().iter().position(|mode| mode.stride == 1 && mode.extent > longer_than)
        };
        // One alone grows, or each element's parts would be there as often as there are such modes.
        let grown = unit(1).or_else(|| unit(-1));
        if factor > 1 && grown.is_none() {
            return Err(LayoutError::new(
                ErrorKind::NoUnitStride,
                format!("{self} has no mode of stride 1 that could hold {factor} parts of each element"),
            ));
        }
        let overflow =
            || LayoutError::new(ErrorKind::Overflow, format!("{self} in parts of 1/{factor} overflows"));
        self.map_leaves(|leaf, mode| {
            let Mode { extent, stride } = mode;
            match grown {
                Some(grown) if grown == leaf => extent.checked_mul(factor).map(|extent| Mode::new(extent, 1)),
                _ => stride.checked_mul(factor).map(|stride| Mode::new(extent, stride)),
            }
            .ok_or_else(overflow)
        })
    }

    /// The layout of the same memory with elements of `new_bits` instead of `old_bits`.
    ///
    /// # Errors
    /// [`ErrorKind::NotDivisible`] where neither width is a multiple of the other; otherwise as
    /// [`Layout::upcast`] and [`Layout::downcast`].
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let halves: Layout = "(4,8):(8,1)".parse()?;
    /// assert_eq!(halves.recast(16, 32)?.to_string(), "(4,4):(4,1)");
    /// assert_eq!(halves.recast(16, 8)?.to_string(), "(4,16):(16,1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn recast(&self, old_bits: i64, new_bits: i64) -> Result<Layout> {
        check_factor(old_bits)?;
        check_factor(new_bits)?;
        if new_bits % old_bits == 0 {
            self.upcast(new_bits / old_bits)
        } else if old_bits % new_bits == 0 {
            self.downcast(old_bits / new_bits)
        } else {
            Err(LayoutError::new(
                ErrorKind::NotDivisible,
                format!(
                    "elements of {old_bits} bits are not made of elements of {new_bits} bits, nor the reverse"
                ),
            ))
        }
    }

    /// The largest factor by which [`Layout::upcast`] succeeds: all offsets of whole units are multiples of it.
    /// `None` where nothing limits it: the layout stays at offset 0, so that every factor does, or has no elements.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// assert_eq!("(4,8):(8,1)".parse::<Layout>()?.max_alignment(), Some(32));
    /// assert_eq!("(4,6):(8,1)".parse::<Layout>()?.max_alignment(), Some(2));
    /// assert_eq!("4:0".parse::<Layout>()?.max_alignment(), None);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn max_alignment(&self) -> Option<i64> {
        if self.size() == 0 {
            return None;
        }
        let mut modes: SmallVec<[Mode; crate::tuple::INLINE]> =
            self.leaves().iter().copied().filter(|mode| mode.extent != 1 && mode.stride != 0).collect();
        modes.sort_by_key(|mode| mode.stride.unsigned_abs());
        // The smallest strides lie inside a unit, filling it together with what continues them; the next ones
        // leave it after filling it; the largest step in whole units.
        let candidate = |(inside, larger): (usize, usize)| {
            let leaving = modes[inside..larger].iter().map(|mode| mode.stride.saturating_mul(mode.extent));
            let whole = leaving.chain(modes[larger..].iter().map(|mode| mode.stride)).fold(0, gcd);
            let units = Units { modes: &modes, factor: whole };
            let fits = whole > 0 && !units.carry() && modes.iter().all(|&mode| units.upcast(mode).is_some());
            fits.then_some(whole)
        };
        let bounds = (0..=modes.len()).flat_map(|larger| (0..=larger).map(move |inside| (inside, larger)));
        bounds.filter_map(candidate).max()
    }

    fn map_leaves(&self, map: impl Fn(usize, Mode) -> Result<Mode>) -> Result<Layout> {
        let mut builder = Builder::new();
        push_mapped(&mut builder, self.part(), &mut 0, &map)?;
        builder.finish()
    }

    fn not_divisible(&self, leaf: usize, mode: Mode, factor: i64) -> LayoutError {
        let Mode { extent, stride } = mode;
        LayoutError::at(
            ErrorKind::NotDivisible,
            &[leaf],
            format!(
                "mode {leaf} ({extent}:{stride}) of {self} is not made of units of {factor}: its stride must be a \
                 multiple of {factor}, or divide it and fill whole units"
            ),
        )
    }
}

fn push_mapped(
    builder: &mut Builder,
    part: crate::layout::Part<'_>,
    leaf: &mut usize,
    map: &impl Fn(usize, Mode) -> Result<Mode>,
) -> Result<()> {
    if part.is_leaf() {
        builder.push_leaf(map(*leaf, part.modes[0])?);
        *leaf += 1;
        return Ok(());
    }
    builder.open(part.rank());
    part.children().try_for_each(|mode| push_mapped(builder, mode, leaf, map))
}

pub(crate) fn check_factor(factor: i64) -> Result<()> {
    if factor >= 1 {
        return Ok(());
    }
    Err(LayoutError::new(
        ErrorKind::InvalidExtent,
        format!("a factor or a width must be 1 or more, not {factor}"),
    ))
}

/// The elements of a layout sorted into units of `factor` neighbours.
struct Units<'a> {
    modes: &'a [Mode],
    factor: i64,
}

impl Units<'_> {
    /// The mode counted in units; `None` where it leaves units half full.
    fn upcast(&self, mode: Mode) -> Option<Mode> {
        let Mode { extent, stride } = mode;
        if stride % self.factor == 0 {
            return Some(Mode::new(extent, stride / self.factor));
        }
        if extent == 1 {
            return Some(Mode::new(1, 0));
        }
        let steps = self.steps_inside(mode)?;
        if extent % steps == 0 {
            return Some(Mode::new(extent / steps, 1));
        }
        (steps % extent == 0 && self.is_continued(extent * stride)).then_some(Mode::new(1, 1))
    }

    /// Steps of the mode from one unit to the next, where its stride divides a unit.
    fn steps_inside(&self, mode: Mode) -> Option<i64> {
        let divides = mode.stride > 0 && self.factor % mode.stride == 0;
        divides.then(|| self.factor / mode.stride)
    }

    /// Whether other modes go on from `reached` to the end of the unit without a gap.
    fn is_continued(&self, mut reached: i64) -> bool {
        while reached < self.factor {
            match self.modes.iter().find(|mode| mode.stride == reached && mode.extent > 1) {
                Some(mode) => reached *= mode.extent,
                None => return false,
            }
        }
        true
    }

    /// Whether the parts of the modes inside a unit add up to more than a unit.
    fn carry(&self) -> bool {
        let inside = |mode: &Mode| match self.steps_inside(*mode) {
            Some(steps) => (steps.min(mode.extent) - 1).max(0) * mode.stride,
            None => 0,
        };
        self.modes.iter().fold(0i64, |sum, mode| sum.saturating_add(inside(mode))) >= self.factor
    }
}

/// The greatest common divisor; 0 only of two zeros.
pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    // Only 2^63 does not fit, and 1 divides as well.
    i64::try_from(a).unwrap_or(1)
}
