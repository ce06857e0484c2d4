//! Inverses with run-time extents, and the nullspace.
//!
//! An inverse walks the modes of a layout from the smallest stride up. Which mode comes next must follow from the
//! facts, as the modes of the result depend on it; that it fits to the one before may be a check.

use super::coalesce::coalesce_modes;
use super::complement::Ascending;
use crate::error::{ErrorKind, LayoutError, Result};
use crate::symbolic::checks::Obligations;
use crate::symbolic::condition::Condition;
use crate::symbolic::expression::Expr;
use crate::symbolic::facts::Facts;
use crate::symbolic::layout::{SymbolicBuilder, SymbolicLayout, SymbolicMode};
use crate::symbolic::prove::Proof;
use alloc::format;
use alloc::vec::Vec;

impl SymbolicLayout {
    /// The largest layout `R` with `self(R(i)) = i`, where offsets from 0 up are reached without a gap. Where
    /// elements share an offset there may be several, of which this is one. Nothing is said of a layout that turns
    /// out empty.
    ///
    /// Where the facts leave open whether one last mode goes on where the others end, that it does is an
    /// obligation.
    ///
    /// # Errors
    /// [`ErrorKind::Unproved`], naming the leaves, where the facts leave open which of several modes goes on, or
    /// where an obligation is open and refused.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let rows: SymbolicLayout = "(m,k):(k,1)".parse()?;
    /// let inverse = rows.right_inverse(&mut Obligations::refuse(&Facts::new()))?;
    /// assert_eq!(inverse.to_string(), "(k,m):(m,1)");
    ///
    /// let padded: SymbolicLayout = "(m,k):(lda,1)".parse()?;
    /// let error = padded.right_inverse(&mut Obligations::refuse(&Facts::new())).unwrap_err();
    /// assert_eq!(error.modes(), [0]);
    /// let wide = Facts::new().at_most("k", 64).at_least("lda", 65);
    /// assert_eq!(padded.right_inverse(&mut Obligations::refuse(&wide))?.to_string(), "k:m");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn right_inverse(&self, obligations: &mut Obligations<'_>) -> Result<SymbolicLayout> {
        let facts = obligations.facts();
        let simple = self.simplify(facts)?;
        let mut chain = Chain::new(&simple);
        loop {
            chain.extend(facts)?;
            match chain.open(facts)[..] {
                [] => break,
                [place] => {
                    let (leaf, mode) = chain.remaining[place];
                    let goes_on = Condition::equal(&mode.stride, &chain.reached);
                    let reason = format!("stride of mode {leaf}, which goes on where the modes below it end");
                    obligations.require_at(goes_on, &[leaf], reason)?;
                    chain.take(place)?;
                }
                ref several => {
                    let leaves: Vec<usize> = several.iter().map(|&place| chain.remaining[place].0).collect();
                    return Err(LayoutError::at(
                        ErrorKind::Unproved,
                        &leaves,
                        format!(
                            "which of the modes {leaves:?} of {self} goes on at {} follows from no fact: {facts}",
                            chain.reached
                        ),
                    ));
                }
            }
        }
        let mut builder = SymbolicBuilder::new();
        builder.push_mode(&chain.inverse(facts)?);
        builder.finish()
    }

    /// A layout `R` with `R(self(i)) = i`. Offsets that `self` skips are sent somewhere. Every stride must be a
    /// multiple of the one below it, and no smaller than what the modes below it span; a mode that may have extent
    /// 1 but need not counts.
    ///
    /// # Errors
    /// [`ErrorKind::NotInjective`], naming the leaf, where two elements share an offset; [`ErrorKind::Unproved`]
    /// where the facts do not order the strides, or another condition is open and the obligations refuse;
    /// [`ErrorKind::NotDivisible`] and [`ErrorKind::OutOfBounds`], naming the leaf, where one does not hold.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let padded: SymbolicLayout = "(m,k):(lda,1)".parse()?;
    /// let facts = Facts::new().at_least("lda", 1);
    /// let mut obligations = Obligations::collect(&facts);
    /// assert_eq!(padded.left_inverse(&mut obligations)?.to_string(), "(lda,m):(m,1)");
    /// assert_eq!(
    ///     obligations.into_checks().to_string(),
    ///     "k must be at most lda: stride of mode 0, which the modes below it must not reach"
    /// );
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn left_inverse(&self, obligations: &mut Obligations<'_>) -> Result<SymbolicLayout> {
        let facts = obligations.facts();
        let simple = self.simplify(facts)?;
        if let Some(leaf) = simple.leaves().iter().position(|mode| mode.stride.is(0) && !mode.extent.is(1)) {
            return Err(LayoutError::at(
                ErrorKind::NotInjective,
                &[leaf],
                format!("{self} has no left inverse: stride of mode {leaf} is 0"),
            ));
        }
        let index_strides = simple.index_strides(facts)?;
        let mut remaining = Ascending::new(&simple, |mode| !mode.extent.is(1));
        remaining.require_strides(obligations)?;
        let mut inverse = Vec::new();
        // The last mode so far: its stride, its extent and the stride of its coordinate in the linear index.
        let (mut below, mut extent, mut index_stride) = (Expr::from(1), Expr::from(1), Expr::from(0));
        while let Some((leaf, mode)) = remaining.next(obligations)? {
            let whole = Condition::divides(&below, &mode.stride);
            obligations.require_at(whole, &[leaf], format!("stride of mode {leaf} over the one below it"))?;
            let apart = Condition::at_most(below.times(&extent)?, &mode.stride);
            let reason = format!("stride of mode {leaf}, which the modes below it must not reach");
            obligations.require_at(apart, &[leaf], reason)?;
            let steps = match facts.exact_quotient(&mode.stride, &below) {
                Some(steps) => steps,
                None => mode.stride.floor_div(&below)?,
            };
            inverse.push(SymbolicMode::new(steps, index_stride));
            (below, extent) = (mode.stride.clone(), mode.extent.clone());
            index_stride = index_strides[leaf].clone();
        }
        inverse.push(SymbolicMode::new(extent, index_stride));
        let mut builder = SymbolicBuilder::new();
        builder.push_mode(&coalesce_modes(&inverse, facts));
        builder.finish()
    }

    /// The coordinates that are all sent to offset 0 by strides known to be 0: `self(R(i)) = 0`, as linear indices.
    ///
    /// That the other modes have elements is an obligation: without them the layout sends nothing to offset 0.
    ///
    /// # Errors
    /// [`ErrorKind::Unproved`], naming the leaf, where that is open and the obligations refuse;
    /// [`ErrorKind::InvalidExtent`] where the facts make an extent negative; [`ErrorKind::Overflow`] where an index
    /// has coefficients beyond 64 bits.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let broadcast: SymbolicLayout = "(m,n,k):(1,0,m)".parse()?;
    /// let facts = Facts::new().at_least("m", 1).at_least("k", 1);
    /// assert_eq!(broadcast.nullspace(&mut Obligations::refuse(&facts))?.to_string(), "n:m");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn nullspace(&self, obligations: &mut Obligations<'_>) -> Result<SymbolicLayout> {
        let facts = obligations.facts();
        let simple = self.simplify(facts)?;
        let index_strides = simple.index_strides(facts)?;
        let still = simple.without_empty(obligations, |mode| mode.stride.is(0) && !mode.extent.is(1))?;
        let mode = |leaf: usize| SymbolicMode::new(&simple.leaves()[leaf].extent, &index_strides[leaf]);
        let modes: Vec<SymbolicMode> = still.into_iter().map(mode).collect();
        let mut builder = SymbolicBuilder::new();
        builder.push_mode(&coalesce_modes(&modes, facts));
        builder.finish()
    }

    /// For each leaf the stride of its coordinate in the linear index.
    fn index_strides(&self, facts: &Facts) -> Result<Vec<Expr>> {
        let mut strides = Vec::with_capacity(self.leaves().len());
        let mut index_stride = Expr::from(1);
        for mode in self.leaves() {
            let next = facts.simplify(&index_stride.times(&mode.extent)?);
            strides.push(core::mem::replace(&mut index_stride, next));
        }
        Ok(strides)
    }
}

/// Modes of a layout of which each goes on where the ones before it end, from offset 0 up.
pub(super) struct Chain<'a> {
    layout: &'a SymbolicLayout,
    /// The leaves of the chain.
    leaves: Vec<usize>,
    /// The other leaves that may have more than one element.
    remaining: Vec<(usize, &'a SymbolicMode)>,
    /// Where the chain ends.
    reached: Expr,
}

impl<'a> Chain<'a> {
    /// Nothing yet, in a layout that is simplified.
    pub(super) fn new(layout: &'a SymbolicLayout) -> Chain<'a> {
        let remaining = layout.leaves().iter().enumerate().filter(|(_, mode)| !mode.extent.is(1)).collect();
        Chain { layout, leaves: Vec::new(), remaining, reached: Expr::from(1) }
    }

    /// Take in all modes that are known to go on.
    pub(super) fn extend(&mut self, facts: &Facts) -> Result<()> {
        let goes_on = |chain: &Self| {
            let at_end = |(_, mode): &(usize, &SymbolicMode)| {
                facts.proves(&Condition::equal(&mode.stride, &chain.reached))
            };
            chain.remaining.iter().position(at_end)
        };
        while let Some(place) = goes_on(self) {
            self.take(place)?;
        }
        Ok(())
    }

    /// The places among the remaining modes of those that may go on.
    fn open(&self, facts: &Facts) -> Vec<usize> {
        let may_go_on = |&place: &usize| {
            let stride = &self.remaining[place].1.stride;
            !stride.is(0) && facts.prove(&Condition::equal(stride, &self.reached)) != Proof::Refuted
        };
        (0..self.remaining.len()).filter(may_go_on).collect()
    }

    fn take(&mut self, place: usize) -> Result<()> {
        let (leaf, mode) = self.remaining.remove(place);
        self.leaves.push(leaf);
        self.reached = self.reached.times(&mode.extent)?;
        Ok(())
    }

    /// Whether no mode is left.
    pub(super) fn is_whole(&self) -> bool {
        self.remaining.is_empty()
    }

    /// The linear index of each offset that the chain reaches.
    pub(super) fn inverse(&self, facts: &Facts) -> Result<Vec<SymbolicMode>> {
        let index_strides = self.layout.index_strides(facts)?;
        let mode =
            |&leaf: &usize| SymbolicMode::new(&self.layout.leaves()[leaf].extent, &index_strides[leaf]);
        Ok(coalesce_modes(&self.leaves.iter().map(mode).collect::<Vec<_>>(), facts))
    }
}
