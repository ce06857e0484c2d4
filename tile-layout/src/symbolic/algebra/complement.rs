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
        let simple = self.simplify(facts)?;
        let moves = |(_, mode): &(usize, &SymbolicMode)| !mode.extent.is(1) && !mode.stride.is(0);
        let mut remaining: Vec<(usize, &SymbolicMode)> =
            simple.leaves().iter().enumerate().filter(moves).collect();
        for (leaf, mode) in &remaining {
            let extent = Condition::at_most(1, &mode.extent);
            obligations.require_at(extent, &[*leaf], format!("extent of mode {leaf}"))?;
            let stride = Condition::at_most(1, &mode.stride);
            obligations.require_at(stride, &[*leaf], format!("stride of mode {leaf}"))?;
        }
        let mut skipped = Vec::new();
        let mut reached = Expr::from(1);
        while !remaining.is_empty() {
            let Some(place) = self.smallest(&remaining, obligations) else {
                return Err(LayoutError::new(
                    ErrorKind::Unproved,
                    format!("{self} has no complement that is known: no fact orders its strides: {facts}"),
                ));
            };
            let (leaf, mode) = remaining.remove(place);
            let whole = Condition::divides(&reached, &mode.stride);
            let reason = format!("stride of mode {leaf} over what the modes below it span");
            obligations.require_at(whole, &[leaf], reason)?;
            let steps = match facts.exact_quotient(&mode.stride, &reached) {
                Some(steps) => steps,
                None => mode.stride.floor_div(&reached)?,
            };
            skipped.push(SymbolicMode::new(steps, reached));
            reached = mode.stride.times(&mode.extent)?;
        }
        let count = match facts.exact_quotient(&cotarget, &reached) {
            Some(count) => count,
            None => cotarget.ceil_div(&reached)?,
        };
        skipped.push(SymbolicMode::new(count, reached));
        let mut builder = SymbolicBuilder::new();
        builder.push_mode(&coalesce_modes(&skipped, facts));
        builder.finish()
    }

    /// The place of the mode whose stride is known not to be larger than any other.
    fn smallest(&self, remaining: &[(usize, &SymbolicMode)], obligations: &Obligations<'_>) -> Option<usize> {
        let facts = obligations.facts();
        let below = |a: &SymbolicMode, b: &SymbolicMode| {
            facts.proves(&Condition::at_most(&a.stride, &b.stride))
                && (!facts.proves(&Condition::equal(&a.stride, &b.stride))
                    || facts.proves(&Condition::at_most(&a.extent, &b.extent)))
        };
        (0..remaining.len()).find(|&place| {
            let mut others = remaining.iter().enumerate().filter(|(other, _)| *other != place);
            others.all(|(_, (_, other))| below(remaining[place].1, other))
        })
    }
}
