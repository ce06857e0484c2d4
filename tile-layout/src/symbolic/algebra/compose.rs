//! Composition with run-time extents: `R(c) = A(B(c))` for every binding.
//!
//! Coalesced `A = (s₀,s₁,…):(d₀,d₁,…)` is read as digits. A leaf `n` steps of size `e` of `B` is split at the
//! digits it meets, from the first; at a digit of extent `s` with more digits above,
//!
//! 1. `s ∣ e`: the leaf passes over the digit, and counts steps of `e/s` of the next;
//! 2. `(n−1)·e < s`: the leaf ends within the digit, as `n : e·d`;
//! 3. `e ∣ s` and `s/e ∣ n`: the leaf fills the digit, as `s/e : e·d`, and `n·e/s` steps of 1 of the next are left;
//!
//! and the last digit takes all that reaches it. A proved case goes before one that needs a check. Every piece
//! lies in one digit; where several pieces share a digit that is not the last, their reach together must stay
//! below its extent, or they would carry.
//!
//! The rule is narrower than the static one, which also tries every element: what it cannot decide is refused.

use super::coalesce::{coalesce_endless, coalesce_modes};
use crate::algebra::{Cut, Domain, Tiler};
use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::Layout;
use crate::symbolic::checks::Obligations;
use crate::symbolic::condition::Condition;
use crate::symbolic::expression::Expr;
use crate::symbolic::layout::{SymbolicBuilder, SymbolicLayout, SymbolicMode, SymbolicPart};
use crate::symbolic::prove::Proof;
use crate::tuple;
use alloc::format;
use alloc::vec::Vec;

impl SymbolicLayout {
    /// The layout `R` with `R(c) = self(right(c))` and a shape as fine as that of `right`, which is static. With
    /// a tiler of several modes, each composes with the mode of `self` in its place; modes without a tiler stay.
    ///
    /// # Errors
    /// [`ErrorKind::Unproved`] where a condition of the rule is open and the obligations refuse;
    /// [`ErrorKind::NotComposable`] where no case of the rule can hold; [`ErrorKind::OutOfBounds`] where `right`
    /// reaches beyond the size of `self`; [`ErrorKind::NegativeStride`] where it runs below 0;
    /// [`ErrorKind::Rank`] where a tiler has more modes than `self`.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let rows: SymbolicLayout = "(m,k):(k,1)".parse()?;
    /// let facts = Facts::new().at_least("m", 16).at_least("k", 8);
    /// let corner = rows.compose([16, 8], &mut Obligations::refuse(&facts))?;
    /// assert_eq!(corner.to_string(), "(16,8):(k,1)");
    ///
    /// let nothing = Facts::new();
    /// let mut obligations = Obligations::collect(&nothing);
    /// rows.compose([16, 8], &mut obligations)?;
    /// assert_eq!(
    ///     obligations.into_checks().to_string(),
    ///     "m must be at least 16: 16:1 must stay within m:k\nk must be at least 8: 8:1 must stay within k:1"
    /// );
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn compose(
        &self,
        right: impl Into<Tiler>,
        obligations: &mut Obligations<'_>,
    ) -> Result<SymbolicLayout> {
        let mut builder = SymbolicBuilder::new();
        compose_cut(&mut builder, self.part(), right.into().cut(), Domain::Strict, obligations)?;
        builder.finish()
    }

    /// [`SymbolicLayout::compose`] where the last mode of `self` goes on without end, so that `right` may reach
    /// further. Where `right` is not known to stay within `self`, no mode may be empty.
    ///
    /// # Errors
    /// As [`SymbolicLayout::compose`]; [`ErrorKind::OutOfBounds`] where a mode is known to be empty.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let rows: SymbolicLayout = "(m,k):(lda,1)".parse()?;
    /// let facts = Facts::new().at_least("m", 1).at_least("k", 1);
    /// assert!(rows.compose([64, 32], &mut Obligations::refuse(&facts)).is_err());
    /// let corner = rows.compose_extended([64, 32], &mut Obligations::refuse(&facts))?;
    /// assert_eq!(corner.to_string(), "(64,32):(lda,1)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn compose_extended(
        &self,
        right: impl Into<Tiler>,
        obligations: &mut Obligations<'_>,
    ) -> Result<SymbolicLayout> {
        let mut builder = SymbolicBuilder::new();
        compose_cut(&mut builder, self.part(), right.into().cut(), Domain::Extended, obligations)?;
        builder.finish()
    }
}

fn compose_cut(
    builder: &mut SymbolicBuilder,
    left: SymbolicPart<'_>,
    right: Cut<'_>,
    domain: Domain,
    obligations: &mut Obligations<'_>,
) -> Result<()> {
    match right {
        Cut::Keep => builder.push(left),
        Cut::Whole(layout) => compose_within(builder, left, &layout.to_layout(), domain, obligations)?,
        Cut::Run(size) => compose_within(builder, left, &Layout::leaf(size, 1)?, domain, obligations)?,
        Cut::ByMode(cuts) => {
            cuts.count_within(left.rank())?;
            builder.open(left.rank());
            for (mode, cut) in left.children().zip(cuts.each()) {
                compose_cut(builder, mode, cut, domain, obligations)?;
            }
        }
    }
    Ok(())
}

fn compose_within(
    builder: &mut SymbolicBuilder,
    left: SymbolicPart<'_>,
    right: &Layout,
    domain: Domain,
    obligations: &mut Obligations<'_>,
) -> Result<()> {
    if right.size() > 0 {
        if let Some(leaf) = right.leaves().iter().position(|mode| mode.stride < 0 && mode.extent > 1) {
            return Err(LayoutError::at(
                ErrorKind::NegativeStride,
                &[leaf],
                format!("mode {leaf} of {right} runs below index 0 of {}", left.to_layout()),
            ));
        }
        let stays = Condition::at_most(right.cosize(), left.size()?);
        if domain == Domain::Strict {
            obligations.require(stays, format!("{right} must stay within {}", left.to_layout()))?;
        } else if !obligations.facts().proves(&stays) {
            require_to_go_on(left, obligations)?;
        }
    }
    compose_parts(builder, left, SymbolicLayout::from(right).part(), obligations)
}

/// Make sure that `left` has elements beyond which it can go on.
fn require_to_go_on(left: SymbolicPart<'_>, obligations: &mut Obligations<'_>) -> Result<()> {
    for digit in coalesce_endless(left.modes, obligations.facts()) {
        let goes_on = Condition::at_most(1, &digit.extent);
        obligations.require(goes_on, format!("{} must go on beyond its end", left.to_layout()))?;
    }
    Ok(())
}

/// Append `left ∘ right`, nested like `right` and finer. The last digit of `left` has no end.
pub(super) fn compose_parts(
    builder: &mut SymbolicBuilder,
    left: SymbolicPart<'_>,
    right: SymbolicPart<'_>,
    obligations: &mut Obligations<'_>,
) -> Result<()> {
    let mut digits = coalesce_endless(left.modes, obligations.facts());
    let last = digits.pop().unwrap_or_else(|| SymbolicMode::new(1, 0));
    let mut digits = Digits { reaches: digits.iter().map(|_| Vec::new()).collect(), below: digits, last };
    let mut split = Vec::new();
    for (leaf, mode) in right.modes.iter().enumerate() {
        let refused = |error: LayoutError| match error.kind() {
            ErrorKind::Overflow | ErrorKind::Contradiction => error,
            kind => LayoutError::at(
                kind,
                &[leaf],
                format!(
                    "mode {leaf} ({}:{}) of {} does not compose with {}: {error}",
                    mode.extent,
                    mode.stride,
                    right.to_layout(),
                    left.to_layout()
                ),
            ),
        };
        split.push(digits.split(mode, obligations).map_err(refused)?);
    }
    digits.require_no_carry(obligations)?;
    push_split(builder, right.tokens, &mut split.into_iter());
    Ok(())
}

fn push_split(
    builder: &mut SymbolicBuilder,
    tokens: &[u32],
    split: &mut impl Iterator<Item = Vec<SymbolicMode>>,
) {
    if tuple::is_leaf(tokens) {
        builder.push_mode(&split.next().unwrap_or_default());
        return;
    }
    builder.open(tuple::rank(tokens));
    tuple::children(tokens).for_each(|child| push_split(builder, child, split));
}

/// A layout read as a positional number system.
struct Digits {
    /// All digits but the last, the one that changes fastest first.
    below: Vec<SymbolicMode>,
    /// The digit without an end.
    last: SymbolicMode,
    /// How far the pieces reach within each digit of `below`.
    reaches: Vec<Vec<Expr>>,
}

impl Digits {
    /// The pieces of one leaf of the right operand.
    fn split(&mut self, leaf: &SymbolicMode, obligations: &mut Obligations<'_>) -> Result<Vec<SymbolicMode>> {
        let facts = obligations.facts();
        let (mut steps, mut step) = (facts.simplify(&leaf.extent), facts.simplify(&leaf.stride));
        if step.is(0) || steps.is(0) || steps.is(1) {
            return Ok(Vec::from([SymbolicMode::new(steps, 0)]));
        }
        let mut pieces = Vec::new();
        for (digit, reaches) in self.below.iter().zip(&mut self.reaches) {
            match meet(&steps, &step, &digit.extent, obligations)? {
                Meeting::PassesOver { step: next } => step = next,
                Meeting::EndsWithin { reach } => {
                    reaches.push(reach);
                    pieces.push(SymbolicMode::new(steps, step.times(&digit.stride)?));
                    return Ok(merged(&pieces, obligations));
                }
                Meeting::Fills { inside, beyond } => {
                    reaches.push(inside.minus(1)?.times(&step)?);
                    pieces.push(SymbolicMode::new(inside, step.times(&digit.stride)?));
                    (steps, step) = (beyond, Expr::from(1));
                }
            }
        }
        pieces.push(SymbolicMode::new(steps, step.times(&self.last.stride)?));
        Ok(merged(&pieces, obligations))
    }

    /// Make sure that pieces which share a digit do not carry into the next.
    fn require_no_carry(&self, obligations: &mut Obligations<'_>) -> Result<()> {
        for (digit, reaches) in self.below.iter().zip(&self.reaches) {
            if reaches.len() < 2 {
                continue;
            }
            let reach = reaches.iter().try_fold(Expr::from(1), |sum, reach| sum.plus(reach))?;
            let stays = Condition::at_most(reach, &digit.extent);
            let reason = format!("modes must not carry beyond {}:{}", digit.extent, digit.stride);
            obligations.require(stays, reason)?;
        }
        Ok(())
    }
}

/// Pieces of one leaf, those of extent 1 left out and neighbours merged; one piece stays what it is.
fn merged(pieces: &[SymbolicMode], obligations: &Obligations<'_>) -> Vec<SymbolicMode> {
    if pieces.len() == 1 { pieces.to_vec() } else { coalesce_modes(pieces, obligations.facts()) }
}

/// How a leaf meets a digit: the cases of the rule.
enum Meeting {
    PassesOver { step: Expr },
    EndsWithin { reach: Expr },
    Fills { inside: Expr, beyond: Expr },
}

fn meet(steps: &Expr, step: &Expr, extent: &Expr, obligations: &mut Obligations<'_>) -> Result<Meeting> {
    let facts = obligations.facts();
    if let Some(step) = facts.exact_quotient(step, extent) {
        return Ok(Meeting::PassesOver { step });
    }
    let reach = steps.minus(1)?.times(step)?;
    let ends_within = Condition::at_most(reach.plus(1)?, extent);
    if facts.proves(&ends_within) {
        return Ok(Meeting::EndsWithin { reach });
    }
    let inside = facts.exact_quotient(extent, step);
    if let Some(inside) = &inside
        && let Some(beyond) = facts.exact_quotient(steps, inside)
    {
        return Ok(Meeting::Fills { inside: inside.clone(), beyond });
    }
    // Nothing is proved: take the first case that a check can make sure of.
    if facts.prove(&ends_within) == Proof::Unknown {
        obligations.require(ends_within, "its steps must end within the mode that they begin in")?;
        return Ok(Meeting::EndsWithin { reach });
    }
    if let Some(inside) = inside {
        let whole = Condition::divides(&inside, steps);
        obligations.require(whole, "its steps must fill the mode that they begin in")?;
        return Ok(Meeting::Fills { beyond: steps.floor_div(&inside)?, inside });
    }
    if facts.prove(&Condition::divides(extent, step)) == Proof::Unknown {
        obligations.require(Condition::divides(extent, step), "it must step over whole modes")?;
        return Ok(Meeting::PassesOver { step: step.floor_div(extent)? });
    }
    Err(LayoutError::new(
        ErrorKind::NotComposable,
        format!("{steps} steps of {step} neither end within {extent}, nor fill it, nor pass over it"),
    ))
}
