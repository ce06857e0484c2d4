//! Layouts of wider and narrower elements with run-time extents: the same bytes counted in other units.

use crate::algebra::check_factor;
use crate::error::{ErrorKind, LayoutError, Result};
use crate::symbolic::checks::Obligations;
use crate::symbolic::condition::Condition;
use crate::symbolic::expression::Expr;
use crate::symbolic::layout::{SymbolicBuilder, SymbolicLayout, SymbolicMode, SymbolicPart};
use crate::symbolic::prove::Proof;
use alloc::format;

impl SymbolicLayout {
    /// The layout in units of `factor` elements: strides are divided, and a mode that steps through the inside of
    /// a unit shrinks. A stride that is not a constant must be a multiple of the factor; a constant one may also
    /// divide it, and then its mode must fill whole units, alone or with the modes that continue it.
    ///
    /// # Errors
    /// [`ErrorKind::Unproved`] where a divisibility is open and the obligations refuse;
    /// [`ErrorKind::NotDivisible`] where it does not hold; [`ErrorKind::InvalidExtent`] for a factor below 1.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let rows: SymbolicLayout = "(m,k):(k,1)".parse()?;
    /// let facts = Facts::new().multiple_of("k", 8);
    /// let vectors = rows.upcast(8, &mut Obligations::refuse(&facts))?;
    /// assert_eq!(vectors.to_string(), "(m,floor_div(k, 8)):(floor_div(k, 8),1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn upcast(&self, factor: i64, obligations: &mut Obligations<'_>) -> Result<SymbolicLayout> {
        check_factor(factor)?;
        let simple = self.simplify(obligations.facts())?;
        let units = Units { layout: &simple, factor };
        if units.carry() {
            return Err(LayoutError::new(
                ErrorKind::NotDivisible,
                format!("modes of {self} may add up across a boundary between units of {factor}"),
            ));
        }
        simple.map_leaves(|leaf, mode| units.upcast(leaf, mode, obligations))
    }

    /// The layout in units of which `factor` make an element: a mode of stride 1 grows, other strides are
    /// multiplied. A stride that may be 1 but need not is an obligation to be more. Of several modes of stride 1 the
    /// first that has more than one element grows, which is another obligation where it isn't known.
    ///
    /// # Errors
    /// [`ErrorKind::NoUnitStride`] where no mode is known to have stride 1, [`ErrorKind::Unproved`] where a stride
    /// may be 1 and the obligations refuse, [`ErrorKind::InvalidExtent`] for a factor below 1,
    /// [`ErrorKind::Overflow`].
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let rows: SymbolicLayout = "(m,k):(k,1)".parse()?;
    /// let facts = Facts::new().at_least("k", 2);
    /// let halves = rows.downcast(2, &mut Obligations::refuse(&facts))?;
    /// assert_eq!(halves.to_string(), "(m,2*k):(2*k,1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn downcast(&self, factor: i64, obligations: &mut Obligations<'_>) -> Result<SymbolicLayout> {
        check_factor(factor)?;
        if factor == 1 {
            return Ok(self.clone());
        }
        let facts = obligations.facts();
        let unit = |mode: &SymbolicMode| facts.prove(&Condition::equal(&mode.stride, 1));
        let units = self.leaves().iter().enumerate().filter(|(_, mode)| unit(mode) == Proof::Proved);
        let still = |mode: &SymbolicMode| facts.proves(&Condition::equal(&mode.extent, 1));
        let mut moving = units.clone().filter(|(_, mode)| !still(mode));
        let first_moving = moving.next();
        let Some((grown, first)) = first_moving.or_else(|| units.clone().next()) else {
            return Err(LayoutError::new(
                ErrorKind::NoUnitStride,
                format!(
                    "no mode of {self} is known to have stride 1, to hold {factor} parts of each element"
                ),
            ));
        };
        // With one element it would leave its place to a later one, or to the first of all.
        let is_first = units.clone().next().is_some_and(|(leaf, _)| leaf == grown);
        if first_moving.is_some() && (moving.next().is_some() || !is_first) {
            let reason = format!("extent of mode {grown}, the first of several of stride 1");
            obligations.require_at(Condition::at_most(2, &first.extent), &[grown], reason)?;
        }
        self.map_leaves(|leaf, mode| {
            match unit(mode) {
                Proof::Proved if leaf == grown => {
                    return Ok(SymbolicMode::new(mode.extent.times(factor)?, 1));
                }
                Proof::Proved | Proof::Refuted => {}
                Proof::Unknown => {
                    let reason = format!("stride of mode {leaf}, which is multiplied by {factor}");
                    obligations.require_at(Condition::at_most(2, &mode.stride), &[leaf], reason)?;
                }
            }
            Ok(SymbolicMode::new(&mode.extent, mode.stride.times(factor)?))
        })
    }

    /// The layout of the same memory with elements of `new_bits` instead of `old_bits`.
    ///
    /// # Errors
    /// [`ErrorKind::NotDivisible`] where neither width is a multiple of the other; otherwise as
    /// [`SymbolicLayout::upcast`] and [`SymbolicLayout::downcast`].
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let halves: SymbolicLayout = "(m,64):(lda,1)".parse()?;
    /// let facts = Facts::new().multiple_of("lda", 8);
    /// let words = halves.recast(16, 32, &mut Obligations::refuse(&facts))?;
    /// assert_eq!(words.to_string(), "(m,32):(floor_div(lda, 2),1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn recast(
        &self,
        old_bits: i64,
        new_bits: i64,
        obligations: &mut Obligations<'_>,
    ) -> Result<SymbolicLayout> {
        check_factor(old_bits)?;
        check_factor(new_bits)?;
        if new_bits % old_bits == 0 {
            self.upcast(new_bits / old_bits, obligations)
        } else if old_bits % new_bits == 0 {
            self.downcast(old_bits / new_bits, obligations)
        } else {
            Err(LayoutError::new(
                ErrorKind::NotDivisible,
                format!(
                    "elements of {old_bits} bits are not made of elements of {new_bits} bits, nor the reverse"
                ),
            ))
        }
    }

    /// Nested alike, with other leaves.
    pub(super) fn map_leaves(
        &self,
        mut map: impl FnMut(usize, &SymbolicMode) -> Result<SymbolicMode>,
    ) -> Result<SymbolicLayout> {
        let mut modes = alloc::vec::Vec::with_capacity(self.leaves().len());
        for (leaf, mode) in self.leaves().iter().enumerate() {
            modes.push(map(leaf, mode)?);
        }
        let mut builder = SymbolicBuilder::new();
        builder.push(SymbolicPart { modes: &modes, tokens: self.part().tokens });
        builder.finish()
    }
}

/// The elements of a layout sorted into units of `factor` neighbours.
struct Units<'a> {
    layout: &'a SymbolicLayout,
    factor: i64,
}

impl Units<'_> {
    /// The mode counted in units.
    fn upcast(
        &self,
        leaf: usize,
        mode: &SymbolicMode,
        obligations: &mut Obligations<'_>,
    ) -> Result<SymbolicMode> {
        let SymbolicMode { extent, stride } = mode;
        if let Some(stride) = obligations.facts().exact_quotient(stride, &Expr::from(self.factor)) {
            return Ok(SymbolicMode::new(extent, stride));
        }
        if extent.is(1) {
            return Ok(SymbolicMode::new(1, 0));
        }
        let Some(steps) = self.steps_inside(mode) else {
            let whole = Condition::divides(self.factor, stride);
            obligations.require_at(whole, &[leaf], format!("stride of mode {leaf}"))?;
            return Ok(SymbolicMode::new(extent, stride.floor_div(self.factor)?));
        };
        if let Some(constant) = extent.as_constant()
            && let Some(unit) = stride.as_constant()
            && (1..steps).contains(&constant)
            && steps % constant == 0
            && self.is_continued(constant.saturating_mul(unit))
        {
            return Ok(SymbolicMode::new(1, 1));
        }
        let whole = Condition::divides(steps, extent);
        let reason = format!("extent of mode {leaf}, of which {steps} fill a unit of {}", self.factor);
        obligations.require_at(whole, &[leaf], reason)?;
        let units = obligations.facts().exact_quotient(extent, &Expr::from(steps));
        Ok(SymbolicMode::new(units.map_or_else(|| extent.floor_div(steps), Ok)?, 1))
    }

    /// Steps of the mode from one unit to the next, where its stride is a constant that divides a unit.
    fn steps_inside(&self, mode: &SymbolicMode) -> Option<i64> {
        let stride = mode.stride.as_constant()?;
        (stride > 0 && self.factor % stride == 0).then(|| self.factor / stride)
    }

    /// Whether other modes go on from `reached` to the end of the unit without a gap.
    fn is_continued(&self, mut reached: i64) -> bool {
        while reached < self.factor {
            let next = self.layout.leaves().iter().find(|mode| mode.stride.is(reached) && !mode.extent.is(1));
            match next.map(|mode| mode.extent.as_constant()) {
                Some(Some(extent)) if extent > 1 => reached = reached.saturating_mul(extent),
                // Its own obligation makes it fill the unit.
                Some(None) => return true,
                _ => return false,
            }
        }
        true
    }

    /// Whether the parts of the modes inside a unit add up to more than a unit.
    fn carry(&self) -> bool {
        let inside = |mode: &SymbolicMode| match (self.steps_inside(mode), mode.stride.as_constant()) {
            (Some(steps), Some(stride)) => {
                let most = mode.extent.as_constant().map_or(steps, |extent| steps.min(extent));
                (most - 1).max(0) * stride
            }
            _ => 0,
        };
        let sum = self.layout.leaves().iter().fold(0i64, |sum, mode| sum.saturating_add(inside(mode)));
        sum >= self.factor
    }
}
