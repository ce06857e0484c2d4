//! Products: a layout repeated, both of them with run-time extents.
//!
//! `(A, complement(A) ∘ B)`: mode 0 is `A`, mode 1 walks over copies of it in the order of `B`. The walk begins at
//! the offsets that `A` skips and goes on beyond its end without limit, so it needs to know how far `B` reaches
//! only where `A` has gaps. An atom without gaps is repeated as often as a launch asks for, without any check.

use super::coalesce::coalesce_modes;
use super::complement::Skipped;
use super::compose::compose_parts;
use crate::error::{ErrorKind, LayoutError, Result};
use crate::symbolic::checks::Obligations;
use crate::symbolic::condition::Condition;
use crate::symbolic::layout::{SymbolicBuilder, SymbolicLayout, SymbolicMode, SymbolicPart};
use crate::symbolic::tuple::ExprTuple;
use crate::tuple::{IntTuple, Nesting};
use alloc::format;
use alloc::vec::Vec;

impl SymbolicLayout {
    /// `(self, copies)`: one copy of `self` for each element of `copies`, in its order.
    ///
    /// # Errors
    /// As [`SymbolicLayout::complement`] of `self`; [`ErrorKind::OutOfBounds`], naming the leaf, where a stride of
    /// `copies` is negative; [`ErrorKind::NotComposable`] where `self` has gaps that the copies neither fill nor
    /// stay within; [`ErrorKind::Unproved`] where one of this is open and the obligations refuse.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// use tile_layout::symbolic::{Expr, Facts, Obligations, SymbolicLayout};
    /// let atom: Layout = "(8,4):(4,1)".parse()?;
    /// let tiles = [Expr::from("m").ceil_div(8)?, Expr::from("n")];
    /// let facts = Facts::new().sizes(["m", "n"]);
    /// let mut refuse = Obligations::refuse(&facts);
    /// let columns = SymbolicLayout::column_major(tiles.clone())?;
    /// let repeated = SymbolicLayout::from(&atom).logical_product(columns, &mut refuse)?;
    /// assert_eq!(repeated.to_string(), "((8,4),(ceil_div(m, 8),n)):((4,1),(32,32*ceil_div(m, 8)))");
    /// let rows = SymbolicLayout::row_major(tiles)?;
    /// let repeated = SymbolicLayout::from(&atom).logical_product(rows, &mut refuse)?;
    /// assert_eq!(repeated.to_string(), "((8,4),(ceil_div(m, 8),n)):((4,1),(32*n,32))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn logical_product(
        &self,
        copies: impl Into<SymbolicLayout>,
        obligations: &mut Obligations<'_>,
    ) -> Result<SymbolicLayout> {
        let walk = self.repeated(&copies.into(), obligations)?;
        let mut builder = SymbolicBuilder::new();
        builder.open(2);
        builder.push(self.part());
        builder.push(walk.part());
        builder.finish()
    }

    /// The walk from copy to copy.
    fn repeated(&self, copies: &SymbolicLayout, obligations: &mut Obligations<'_>) -> Result<SymbolicLayout> {
        let facts = obligations.facts();
        for (leaf, mode) in copies.leaves().iter().enumerate() {
            if !facts.proves(&Condition::at_most(&mode.extent, 1)) {
                let upward = Condition::non_negative(&mode.stride);
                obligations.require_at(upward, &[leaf], format!("stride of mode {leaf} of the copies"))?;
            }
        }
        // How many places there are beyond the end of `self` does not matter: composition takes the last mode
        // for one without an end.
        let Skipped { mut modes, reached } = self.skipped(obligations)?;
        modes.push(SymbolicMode::new(copies.size()?, reached));
        let mut places = SymbolicBuilder::new();
        places.push_mode(&coalesce_modes(&modes, facts));
        let mut walk = SymbolicBuilder::new();
        compose_parts(&mut walk, places.finish()?.part(), copies.part(), obligations)?;
        walk.finish()
    }

    /// Copies of `self` in blocks: mode `k` is `(self_k, copies_k)`. The smaller rank is filled with `1:0`.
    ///
    /// # Errors
    /// As [`SymbolicLayout::logical_product`].
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let tile: SymbolicLayout = "(8,4):(4,1)".parse()?;
    /// let copies = SymbolicLayout::row_major(("m", "n"))?;
    /// let facts = Facts::new().sizes(["m", "n"]);
    /// let blocks = tile.blocked_product(&copies, &mut Obligations::refuse(&facts))?;
    /// assert_eq!(blocks.to_string(), "((8,m),(4,n)):((4,32*n),(1,32))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn blocked_product(
        &self,
        copies: impl Into<SymbolicLayout>,
        obligations: &mut Obligations<'_>,
    ) -> Result<SymbolicLayout> {
        self.zip_product(&copies.into(), obligations, |own, copy| [own, copy])
    }

    /// Copies of `self` interleaved: mode `k` is `(copies_k, self_k)`. The smaller rank is filled with `1:0`.
    ///
    /// # Errors
    /// As [`SymbolicLayout::logical_product`].
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let tile: SymbolicLayout = "(8,4):(4,1)".parse()?;
    /// let copies = SymbolicLayout::column_major(("m", "n"))?;
    /// let facts = Facts::new().sizes(["m", "n"]);
    /// let rakes = tile.raked_product(&copies, &mut Obligations::refuse(&facts))?;
    /// assert_eq!(rakes.to_string(), "((m,8),(n,4)):((32,4),(32*m,1))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn raked_product(
        &self,
        copies: impl Into<SymbolicLayout>,
        obligations: &mut Obligations<'_>,
    ) -> Result<SymbolicLayout> {
        self.zip_product(&copies.into(), obligations, |own, copy| [copy, own])
    }

    fn zip_product(
        &self,
        copies: &SymbolicLayout,
        obligations: &mut Obligations<'_>,
        join: impl for<'a> Fn(&'a SymbolicLayout, &'a SymbolicLayout) -> [&'a SymbolicLayout; 2],
    ) -> Result<SymbolicLayout> {
        let rank = self.rank().max(copies.rank());
        let (own, copies) = (self.filled(rank)?, copies.filled(rank)?);
        let walk = own.repeated(&copies, obligations)?;
        let mut builder = SymbolicBuilder::new();
        builder.open(rank);
        for (own, copy) in own.modes().zip(walk.modes()) {
            let [first, second] = join(&own, &copy).map(SymbolicLayout::leaves);
            builder.push_mode(&coalesce_modes(&[first, second].concat(), obligations.facts()));
        }
        builder.finish()
    }

    /// A tuple of `rank` modes: those of `self`, then `1:0`.
    fn filled(&self, rank: usize) -> Result<SymbolicLayout> {
        let mut builder = SymbolicBuilder::new();
        builder.open(rank);
        self.part().children().for_each(|mode| builder.push(mode));
        (self.rank()..rank).for_each(|_| builder.push_mode(&[]));
        builder.finish()
    }

    /// `self` repeated until it fills `shape`, one extent for each mode, the copies in the order of the numbers in
    /// `order` (as in [`SymbolicLayout::ordered`]). Each mode of `self` must divide its extent.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`] where shape, order and `self` have different numbers of modes;
    /// [`ErrorKind::NotDivisible`], naming the mode, where a mode of `self` does not divide its extent;
    /// otherwise as [`SymbolicLayout::logical_product`].
    ///
    /// ```
    /// use tile_layout::symbolic::{Facts, Obligations, SymbolicLayout};
    /// let atom: SymbolicLayout = "(8,8):(8,1)".parse()?;
    /// let facts = Facts::new().sizes(["m", "k"]).multiple_of("m", 8);
    /// let mut obligations = Obligations::collect(&facts);
    /// let shared = atom.tile_to_shape(("m", "k"), &[0, 1], &mut obligations)?;
    /// assert_eq!(shared.to_string(), "(m,(8,floor_div(k, 8))):(8,(1,8*m))");
    /// assert_eq!(
    ///     obligations.into_checks().to_string(),
    ///     "k must be a multiple of 8: extent of mode 1, which (8,8):(8,1) fills"
    /// );
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn tile_to_shape(
        &self,
        shape: impl Into<ExprTuple>,
        order: &[i64],
        obligations: &mut Obligations<'_>,
    ) -> Result<SymbolicLayout> {
        let (shape, rank) = (shape.into(), self.rank());
        let flat = shape.nesting().is_leaf() || *shape.nesting() == Nesting::flat(shape.leaves().len());
        if !flat || shape.leaves().len() != rank || order.len() != rank {
            return Err(LayoutError::new(
                ErrorKind::Rank,
                format!("{self} has {rank} modes, shape {shape} and order {order:?} differ"),
            ));
        }
        let facts = obligations.facts();
        let mut copies = Vec::with_capacity(rank);
        let tiles = self.part().children().map(SymbolicPart::size);
        for (mode, (tile, whole)) in tiles.zip(shape.leaves()).enumerate() {
            let tile = tile?;
            let fills = Condition::divides(&tile, whole);
            let reason = format!("extent of mode {mode}, which {self} fills");
            obligations.require_at(fills, &[mode], reason)?;
            copies.push(match facts.exact_quotient(whole, &tile) {
                Some(count) => count,
                None => whole.floor_div(&tile)?,
            });
        }
        let copies = ExprTuple::new(copies, Nesting::flat(rank));
        self.blocked_product(SymbolicLayout::ordered(copies, IntTuple::flat(order))?, obligations)
    }
}
