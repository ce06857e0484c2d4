//! How wide memory can be read through a layout with run-time extents, as far as the facts show it.

use super::inverse::Chain;
use crate::algebra::gcd;
use crate::error::Result;
use crate::symbolic::checks::Obligations;
use crate::symbolic::condition::Condition;
use crate::symbolic::expression::Expr;
use crate::symbolic::facts::Facts;
use crate::symbolic::layout::{SymbolicLayout, SymbolicMode};
use alloc::vec::Vec;

impl SymbolicLayout {
    /// The widest vector, in elements and a power of two, that reads this layout from `base_offset` on without
    /// crossing from one vector to the next: a mode of stride 1 is made of whole vectors, and the base offset and
    /// every other stride are multiples of the width. 1 where the facts show no more. The alignment of the memory
    /// itself and the width of an instruction limit it further.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidExtent`] where the facts make an extent negative.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, SymbolicLayout};
    /// let rows: SymbolicLayout = "(m,k):(lda,1)".parse()?;
    /// let facts = Facts::new().multiple_of("k", 32).multiple_of("lda", 8).multiple_of("start", 16);
    /// assert_eq!(rows.max_vector_width("start", &facts)?, 8);
    /// assert_eq!(rows.max_vector_width(2, &facts)?, 2);
    /// assert_eq!(rows.max_vector_width(0, &Facts::new())?, 1);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn max_vector_width(&self, base_offset: impl Into<Expr>, facts: &Facts) -> Result<i64> {
        let simple = self.simplify(facts)?;
        let modes: Vec<&SymbolicMode> = simple.leaves().iter().filter(|mode| !mode.extent.is(1)).collect();
        let Some(contiguous) = modes.iter().position(|mode| mode.stride.is(1)) else { return Ok(1) };
        let base = facts.known_divisor(&base_offset.into());
        let whole = modes.iter().enumerate().fold(base, |whole, (place, mode)| {
            let counted = if place == contiguous { &mode.extent } else { &mode.stride };
            gcd(whole, facts.known_divisor(counted))
        });
        // Only an empty layout at offset 0 leaves the width open.
        Ok(if whole == 0 { 1 } else { 1 << whole.trailing_zeros() })
    }

    /// The largest factor found for which the facts show that [`SymbolicLayout::upcast`] succeeds: all offsets of
    /// whole units are multiples of it. `None` where the layout stays at offset 0, so that every factor does.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Contradiction`] where the facts contradict each other.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, SymbolicLayout};
    /// let rows: SymbolicLayout = "(m,k):(lda,1)".parse()?;
    /// let facts = Facts::new().multiple_of("k", 32).multiple_of("lda", 24);
    /// assert_eq!(rows.max_alignment(&facts)?, Some(8));
    /// assert_eq!("m:0".parse::<SymbolicLayout>()?.max_alignment(&facts)?, None);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn max_alignment(&self, facts: &Facts) -> Result<Option<i64>> {
        let simple = self.simplify(facts)?;
        let moving = |mode: &&SymbolicMode| !mode.extent.is(1) && !mode.stride.is(0);
        let modes: Vec<&SymbolicMode> = simple.leaves().iter().filter(moving).collect();
        if modes.is_empty() {
            return Ok(None);
        }
        if let Some(contradiction) = facts.contradiction() {
            return Err(contradiction.clone());
        }
        // A factor is a multiple of some of the constant strides, each with its extent, and divides all others.
        let mut limits: Vec<i64> = modes.iter().filter_map(|mode| mode.stride.as_constant()).collect();
        limits.push(0);
        let candidate = |&limit: &i64| {
            let spanned = |mode: &&SymbolicMode| match mode.stride.as_constant() {
                Some(stride) if stride.unsigned_abs() <= limit.unsigned_abs() => {
                    stride.saturating_mul(facts.known_divisor(&mode.extent))
                }
                _ => facts.known_divisor(&mode.stride),
            };
            let factor = modes.iter().map(spanned).fold(0, gcd);
            let fits = factor > 0 && simple.upcast(factor, &mut Obligations::refuse(facts)).is_ok();
            fits.then_some(factor)
        };
        Ok(Some(limits.iter().filter_map(candidate).max().unwrap_or(1)))
    }

    /// How many elements are known to lie next to each other in memory in both layouts and to be the same elements:
    /// the widest vector that copies from one to the other, in whole vectors. Both number their elements alike,
    /// by the linear index. Where no two elements of `other` share an offset it divides
    /// [`crate::Layout::max_common_vector`] at every launch, and where no symbol is left it is equal to it; 1 where
    /// the facts show no more. Alignment of the memory and the width of an instruction limit it further.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidExtent`] where the facts make an extent negative, [`crate::ErrorKind::Overflow`]
    /// where a size has coefficients beyond 64 bits.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, SymbolicLayout};
    /// let rows: SymbolicLayout = "(m,k):(k,1)".parse()?;
    /// let padded: SymbolicLayout = "(m,k):(lda,1)".parse()?;
    /// let facts = Facts::new().multiple_of("k", 24);
    /// assert_eq!(rows.max_common_vector(&padded, &facts)?, 24);
    /// assert_eq!(rows.max_common_vector(&padded, &Facts::new())?, 1);
    /// assert_eq!(rows.max_common_vector(&"(m,k):(1,m)".parse()?, &facts)?, 1);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn max_common_vector(&self, other: &SymbolicLayout, facts: &Facts) -> Result<i64> {
        let (own, other) = (self.simplify(facts)?, other.simplify(facts)?);
        if let (Some(own), Some(other)) = (own.as_static(), other.as_static()) {
            return Ok(own.max_common_vector(&other));
        }
        let indices = |layout: &SymbolicLayout| {
            let mut chain = Chain::new(layout);
            chain.extend(facts)?;
            chain.inverse(facts)
        };
        let mut run = Expr::from(1);
        for (a, b) in indices(&own)?.iter().zip(&indices(&other)?) {
            if !facts.proves(&Condition::equal(&a.stride, &b.stride)) {
                break;
            }
            if facts.proves(&Condition::equal(&a.extent, &b.extent)) {
                run = run.times(&a.extent)?;
                continue;
            }
            run = run.times(gcd(facts.known_divisor(&a.extent), facts.known_divisor(&b.extent)))?;
            break;
        }
        // Only where a layout is empty does everything divide.
        Ok(facts.known_divisor(&run).max(1))
    }

    /// Whether the facts show that no offset is passed over and none is shared: the offsets are exactly `0..size`.
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, SymbolicLayout};
    /// let rows: SymbolicLayout = "(m,k):(lda,1)".parse()?;
    /// assert!(!rows.is_compact(&Facts::new()));
    /// assert!(rows.is_compact(&Facts::new().same("lda", "k")));
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn is_compact(&self, facts: &Facts) -> bool {
        let whole = |layout: SymbolicLayout| -> Result<bool> {
            let mut chain = Chain::new(&layout);
            chain.extend(facts)?;
            Ok(chain.is_whole())
        };
        self.simplify(facts).and_then(whole).unwrap_or(false)
    }
}
