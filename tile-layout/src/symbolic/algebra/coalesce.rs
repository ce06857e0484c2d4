//! Fewer modes for the same function, where the facts show that it is the same; and the reach of a layout.
//!
//! A mode that may have the extent 1 or the stride 0 but need not is kept: neither is so by form or by the facts.

use crate::error::Result;
use crate::nested::push_by_profile;
use crate::symbolic::checks::Obligations;
use crate::symbolic::condition::Condition;
use crate::symbolic::expression::Expr;
use crate::symbolic::facts::Facts;
use crate::symbolic::layout::{SymbolicBuilder, SymbolicLayout, SymbolicMode, SymbolicPart};
use crate::tuple::IntTuple;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

/// The modes merged where the facts show that one continues the other, none of extent 1 by the facts; `0:0` alone
/// where one is known to be empty. Extents and strides are simplified.
pub(super) fn coalesce_modes(modes: &[SymbolicMode], facts: &Facts) -> Vec<SymbolicMode> {
    merged(modes, facts, |_, mode| !mode.extent.is(1))
}

/// As [`coalesce_modes`] for a layout whose last mode goes on without end: it stays where it is known to have one element,
/// unless it continues the mode before it.
pub(super) fn coalesce_endless(modes: &[SymbolicMode], facts: &Facts) -> Vec<SymbolicMode> {
    merged(modes, facts, |place, mode| place + 1 == modes.len() || !mode.extent.is(1))
}

/// The modes that `kept` names by place and simplified mode, merged; `0:0` alone where one is known to be empty.
fn merged(
    modes: &[SymbolicMode],
    facts: &Facts,
    kept: impl Fn(usize, &SymbolicMode) -> bool,
) -> Vec<SymbolicMode> {
    let mut merged: Vec<SymbolicMode> = Vec::new();
    for (place, mode) in modes.iter().enumerate() {
        let mode = SymbolicMode::new(facts.simplify(&mode.extent), facts.simplify(&mode.stride));
        if mode.extent.is(0) {
            return Vec::from([SymbolicMode::new(0, 0)]);
        }
        if !kept(place, &mode) {
            continue;
        }
        match merged.last_mut().and_then(|last| Some((continued(last, &mode, facts)?, last))) {
            Some((extent, last)) => last.extent = extent,
            None => merged.push(mode),
        }
    }
    merged
}

/// The extent of both modes as one, where the second goes on where the first ends.
fn continued(first: &SymbolicMode, second: &SymbolicMode, facts: &Facts) -> Option<Expr> {
    let end = first.extent.times(&first.stride).ok()?;
    if !facts.proves(&Condition::equal(end, &second.stride)) {
        return None;
    }
    first.extent.times(&second.extent).ok().map(|extent| facts.simplify(&extent))
}

impl SymbolicLayout {
    /// The fewest modes with the same function of a linear index, as far as the facts show it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidExtent`] where the facts make an extent negative.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, SymbolicLayout};
    /// let columns: SymbolicLayout = "(m,(1,k)):(1,(7,m))".parse()?;
    /// assert_eq!(columns.coalesce(&Facts::new())?.to_string(), "k*m:1");
    /// let padded: SymbolicLayout = "(m,k):(1,lda)".parse()?;
    /// assert_eq!(padded.coalesce(&Facts::new())?.to_string(), "(m,k):(1,lda)");
    /// assert_eq!(padded.coalesce(&Facts::new().same("m", "lda"))?.to_string(), "k*m:1");
    /// assert_eq!(padded.coalesce(&Facts::new().equal_to("k", 1))?.to_string(), "m:1");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn coalesce(&self, facts: &Facts) -> Result<SymbolicLayout> {
        let mut builder = SymbolicBuilder::new();
        builder.push_mode(&coalesce_modes(self.leaves(), facts));
        builder.finish()
    }

    /// [`SymbolicLayout::coalesce`] within each top-level mode, which keeps the rank.
    ///
    /// # Errors
    /// As [`SymbolicLayout::coalesce`].
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, SymbolicLayout};
    /// let layout: SymbolicLayout = "((4,m),n):((1,4),lda)".parse()?;
    /// assert_eq!(layout.coalesce_modes(&Facts::new())?.to_string(), "(4*m,n):(1,lda)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn coalesce_modes(&self, facts: &Facts) -> Result<SymbolicLayout> {
        let part = self.part();
        if part.is_leaf() {
            return self.coalesce(facts);
        }
        let mut builder = SymbolicBuilder::new();
        builder.open(part.rank());
        part.children().for_each(|mode| builder.push_mode(&coalesce_modes(mode.modes, facts)));
        builder.finish()
    }

    /// [`SymbolicLayout::coalesce`] at every leaf of `profile`, whose nesting alone counts; modes beyond the
    /// profile stay as they are.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`](crate::ErrorKind::Rank) where the profile has more modes than the layout; otherwise as
    /// [`SymbolicLayout::coalesce`].
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, SymbolicLayout};
    /// let layout: SymbolicLayout = "((4,m),(2,k),(1,n)):((1,4),(lda,2*lda),(0,ldb))".parse()?;
    /// let coalesced = layout.coalesce_by(&(0, (0, 0)).into(), &Facts::new())?;
    /// assert_eq!(coalesced.to_string(), "(4*m,(2,k),(1,n)):(1,(lda,2*lda),(0,ldb))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn coalesce_by(&self, profile: &IntTuple, facts: &Facts) -> Result<SymbolicLayout> {
        let mut builder = SymbolicBuilder::new();
        let join = |builder: &mut SymbolicBuilder, modes: &[SymbolicMode]| {
            builder.push_mode(&coalesce_modes(modes, facts));
        };
        let print = |part: SymbolicPart<'_>| part.to_layout().to_string();
        push_by_profile(&mut builder, self.part(), profile, &join, &print)?;
        builder.finish()
    }

    /// Without the modes that are known to move nothing: those of extent 1 and of stride 0. What is left is
    /// coalesced. A stride that may be 0 but need not stays, and then its mode still repeats elements at a launch
    /// that makes it 0.
    ///
    /// That a mode left out has elements is an obligation: without them the layout had none.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unproved`], naming the leaf, where that is open and the obligations refuse; otherwise as
    /// [`SymbolicLayout::coalesce`].
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let broadcast: SymbolicLayout = "(4,(n,k),b):(1,(0,4),ldb)".parse()?;
    /// let facts = Facts::new().at_least("n", 1);
    /// assert_eq!(broadcast.filter(&mut Obligations::refuse(&facts))?.to_string(), "(4*k,b):(1,ldb)");
    /// let facts = Facts::new().equal_to("ldb", 0);
    /// let mut obligations = Obligations::collect(&facts);
    /// assert_eq!(broadcast.filter(&mut obligations)?.to_string(), "4*k:1");
    /// assert_eq!(
    ///     obligations.into_checks().to_string(),
    ///     "n must be at least 1: extent of mode 1\nb must be at least 1: extent of mode 3"
    /// );
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn filter(&self, obligations: &mut Obligations<'_>) -> Result<SymbolicLayout> {
        let facts = obligations.facts();
        let simple = self.simplify(facts)?;
        let moving = simple.without_empty(obligations, |mode| !mode.stride.is(0))?;
        let moving: Vec<SymbolicMode> =
            moving.into_iter().map(|leaf| simple.leaves()[leaf].clone()).collect();
        let mut builder = SymbolicBuilder::new();
        builder.push_mode(&coalesce_modes(&moving, facts));
        builder.finish()
    }

    /// The leaves that `kept` names, where the others are made sure to have elements; where a leaf is known to have
    /// none, that one alone.
    pub(super) fn without_empty(
        &self,
        obligations: &mut Obligations<'_>,
        kept: impl Fn(&SymbolicMode) -> bool,
    ) -> Result<Vec<usize>> {
        if let Some(empty) = self.leaves().iter().position(|mode| mode.extent.is(0)) {
            return Ok(Vec::from([empty]));
        }
        let (kept, left_out): (Vec<usize>, Vec<usize>) =
            (0..self.leaves().len()).partition(|&leaf| kept(&self.leaves()[leaf]));
        for leaf in left_out {
            let extent = Condition::at_most(1, &self.leaves()[leaf].extent);
            obligations.require_at(extent, &[leaf], format!("extent of mode {leaf}"))?;
        }
        Ok(kept)
    }

    /// Extents and strides in their simplest form under the facts ([`Facts::simplify`]); no mode is merged.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidExtent`] where the facts make an extent negative.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, SymbolicLayout};
    /// let tiles: SymbolicLayout = "(ceil_div(m, 64),b):(64,m)".parse()?;
    /// let facts = Facts::new().multiple_of("m", 64).equal_to("b", 1);
    /// assert_eq!(tiles.simplify(&facts)?.to_string(), "(floor_div(m, 64),1):(64,m)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn simplify(&self, facts: &Facts) -> Result<SymbolicLayout> {
        self.map_leaves(|_, mode| {
            Ok(SymbolicMode::new(facts.simplify(&mode.extent), facts.simplify(&mode.stride)))
        })
    }

    /// One more than the largest offset, 0 where the layout is empty: the elements that memory from offset 0 must
    /// have. What the facts leave open, the sign of a stride or whether an extent is 0, the expression decides.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Overflow`] where it has coefficients beyond 64 bits.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, SymbolicLayout};
    /// let rows: SymbolicLayout = "(m,k):(lda,1)".parse()?;
    /// let sized = Facts::new().at_least("m", 1).at_least("k", 1).sizes(["lda"]);
    /// assert_eq!(rows.cosize(&sized)?.to_string(), "k - lda + lda*m");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn cosize(&self, facts: &Facts) -> Result<Expr> {
        let mut largest = Expr::from(0);
        for SymbolicMode { extent, stride } in self.leaves() {
            let upward = match facts.proves(&Condition::non_negative(stride)) {
                true => stride.clone(),
                false if facts.proves(&Condition::at_most(stride, 0)) => continue,
                false => stride.maximum(0)?,
            };
            largest = largest.plus(extent.minus(1)?.times(upward)?)?;
        }
        let reached = largest.plus(1)?;
        let filled = |mode: &SymbolicMode| facts.proves(&Condition::at_most(1, &mode.extent));
        let elements = match self.leaves().iter().all(filled) {
            true => reached,
            false => self.size()?.minimum(1)?.times(reached)?,
        };
        Ok(facts.simplify(&elements))
    }
}
