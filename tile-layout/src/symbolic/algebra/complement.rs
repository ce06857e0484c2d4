//! The complement of a layout with run-time extents: what counts through the offsets that it leaves out.

use super::coalesce::coalesce_modes;
use crate::error::{ErrorKind, LayoutError, Result};
use crate::symbolic::checks::Obligations;
use crate::symbolic::condition::Condition;
use crate::symbolic::expression::Expr;
use crate::symbolic::layout::{SymbolicBuilder, SymbolicLayout, SymbolicMode};
use alloc::format;
use alloc::vec::Vec;

impl SymbolicLayout {
    /// The layout `R` of the offsets that `self` skips, so that `(self, R)` together reach at least `cotarget`
    /// elements, each once: `R` is ordered, shares with `self` only offset 0, and `self(i) + R(j)` are all
    /// different. A mode that may have extent 1 but need not counts as one that moves.
    ///
    /// # Errors
    /// [`ErrorKind::Unproved`] where the facts do not order the strides, or another condition is open and the
    /// obligations refuse; [`ErrorKind::NotDivisible`], naming the leaf, where a stride is not a multiple of what
    /// lies below it; [`ErrorKind::OutOfBounds`] where an extent or a stride is less than 1.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let facts = Facts::new().at_least("m", 1);
    /// let rows: SymbolicLayout = "(m,2):(1,3*m)".parse()?;
    /// let rest = rows.complement("12*m".parse::<tile_layout::symbolic::Expr>()?, &mut Obligations::refuse(&facts))?;
    /// assert_eq!(rest.to_string(), "(3,2):(m,6*m)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn complement(
        &self,
        cotarget: impl Into<Expr>,
        obligations: &mut Obligations<'_>,
    ) -> Result<SymbolicLayout> {
        let cotarget = cotarget.into();
        let facts = obligations.facts();
        obligations.require(Condition::at_most(1, &cotarget), "elements that the complement must reach")?;
        // Modes that only repeat elements skip nothing; but one that has none leaves nothing of the others to count on.
        for (leaf, mode) in self.simplify(facts)?.leaves().iter().enumerate() {
            if mode.stride.is(0) && !mode.extent.is(1) {
                let extent = Condition::at_most(1, &mode.extent);
                obligations.require_at(extent, &[leaf], format!("extent of mode {leaf}"))?;
            }
        }
        let Skipped { mut modes, reached } = self.skipped(obligations)?;
        let count = match facts.exact_quotient(&cotarget, &reached) {
            Some(count) => count,
            None => cotarget.ceil_div(&reached)?,
        };
        modes.push(SymbolicMode::new(count, reached));
        let mut builder = SymbolicBuilder::new();
        builder.push_mode(&coalesce_modes(&modes, facts));
        builder.finish()
    }

    /// What counts through the offsets that `self` skips below its end.
    pub(super) fn skipped(&self, obligations: &mut Obligations<'_>) -> Result<Skipped> {
        let facts = obligations.facts();
        let simple = self.simplify(facts)?;
        let mut remaining = Ascending::new(&simple, |mode| !mode.extent.is(1) && !mode.stride.is(0));
        for (leaf, mode) in &remaining.modes {
            let extent = Condition::at_most(1, &mode.extent);
            obligations.require_at(extent, &[*leaf], format!("extent of mode {leaf}"))?;
        }
        remaining.require_strides(obligations)?;
        let (mut modes, mut reached) = (Vec::new(), Expr::from(1));
        while let Some((leaf, mode)) = remaining.next(obligations)? {
            let whole = Condition::divides(&reached, &mode.stride);
            let reason = format!("stride of mode {leaf} over what the modes below it span");
            obligations.require_at(whole, &[leaf], reason)?;
            let steps = match facts.exact_quotient(&mode.stride, &reached) {
                Some(steps) => steps,
                None => mode.stride.floor_div(&reached)?,
            };
            modes.push(SymbolicMode::new(steps, reached));
            reached = mode.stride.times(&mode.extent)?;
        }
        Ok(Skipped { modes, reached })
    }
}

/// The offsets that a layout skips, and where the first offset beyond it lies.
pub(super) struct Skipped {
    pub(super) modes: Vec<SymbolicMode>,
    pub(super) reached: Expr,
}

/// Some leaves of a layout, taken one by one, the smallest stride first.
pub(super) struct Ascending<'a> {
    layout: &'a SymbolicLayout,
    modes: Vec<(usize, &'a SymbolicMode)>,
}

impl<'a> Ascending<'a> {
    pub(super) fn new(layout: &'a SymbolicLayout, kept: impl Fn(&SymbolicMode) -> bool) -> Ascending<'a> {
        let modes = layout.leaves().iter().enumerate().filter(|(_, mode)| kept(mode)).collect();
        Ascending { layout, modes }
    }

    /// Make sure that all strides are 1 or more.
    pub(super) fn require_strides(&self, obligations: &mut Obligations<'_>) -> Result<()> {
        self.modes.iter().try_for_each(|(leaf, mode)| {
            let upward = Condition::at_most(1, &mode.stride);
            obligations.require_at(upward, &[*leaf], format!("stride of mode {leaf}"))
        })
    }

    /// The mode whose stride is known not to be larger than any other that is left, where all are 1 or more.
    pub(super) fn next(
        &mut self,
        obligations: &Obligations<'_>,
    ) -> Result<Option<(usize, &'a SymbolicMode)>> {
        if self.modes.is_empty() {
            return Ok(None);
        }
        let facts = obligations.facts();
        // Of numbers of 1 or more, what divides another is not larger.
        let at_most = |a: &Expr, b: &Expr| {
            b.exact_quotient(a).is_some()
                || facts.exact_quotient(b, a).is_some()
                || facts.proves(&Condition::at_most(a, b))
        };
        let below = |a: &SymbolicMode, b: &SymbolicMode| {
            at_most(&a.stride, &b.stride)
                && (!facts.proves(&Condition::equal(&a.stride, &b.stride))
                    || facts.proves(&Condition::at_most(&a.extent, &b.extent)))
        };
        let smallest = (0..self.modes.len()).find(|&place| {
            let mut others = self.modes.iter().enumerate().filter(|(other, _)| *other != place);
            others.all(|(_, (_, other))| below(self.modes[place].1, other))
        });
        match smallest {
            Some(place) => Ok(Some(self.modes.remove(place))),
            None => Err(LayoutError::at(
                ErrorKind::Unproved,
                &self.modes.iter().map(|(leaf, _)| *leaf).collect::<Vec<_>>(),
                format!("no fact orders the strides of {}: {facts}", self.layout),
            )),
        }
    }
}
