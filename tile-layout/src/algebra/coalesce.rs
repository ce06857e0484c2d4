//! Fewer modes for the same function: coalesce, by mode, and filter.
//!
//! Two neighbouring modes are one where the second continues the first: `(s₀,s₁):(d, s₀·d)` is `s₀·s₁:d`. The
//! order is colexicographic, so a column-major layout becomes one mode and a row-major one does not.

use crate::error::Result;
use crate::layout::{Builder, Layout, Mode, Modes, Part};
use crate::nested::push_by_profile;
use crate::tuple::IntTuple;
use alloc::string::ToString;

/// The fewest modes with the same function of a linear index, none of extent 1; `0:0` alone where empty.
pub(crate) fn coalesce_modes(modes: &[Mode]) -> Modes {
    let mut merged = Modes::new();
    if modes.iter().any(|mode| mode.extent == 0) {
        merged.push(Mode::new(0, 0));
        return merged;
    }
    modes.iter().filter(|mode| mode.extent != 1).for_each(|&mode| join(&mut merged, mode));
    merged
}

/// As [`coalesce_modes`] for a layout whose last mode goes on without end (CuTe's `coalesce_x`): it stays where it has one
/// element, unless it continues the mode before it.
pub(super) fn coalesce_endless(modes: &[Mode]) -> Modes {
    let mut merged = coalesce_modes(modes);
    if let Some(&last) = modes.last().filter(|last| last.extent == 1)
        && modes.iter().all(|mode| mode.extent != 0)
    {
        join(&mut merged, last);
    }
    merged
}

/// Append a mode, or make the last one longer where it continues that.
fn join(merged: &mut Modes, mode: Mode) {
    match merged.last_mut() {
        // The product stays within the layout's own offsets, or the mode that it would reach is another.
        Some(last) if last.stride.checked_mul(last.extent) == Some(mode.stride) => {
            last.extent *= mode.extent;
        }
        _ => merged.push(mode),
    }
}

/// Append one mode made of the fewest modes.
pub(crate) fn push_coalesced(builder: &mut Builder, modes: &[Mode]) {
    match modes {
        // It has no neighbour to be one with.
        &[mode] if mode.extent > 1 => builder.push_leaf(mode),
        _ => builder.push_mode(&coalesce_modes(modes)),
    }
}

impl Layout {
    /// The fewest modes with the same function of a linear index: no nesting, no mode of extent 1, no two
    /// neighbours that are one. One mode stands without brackets; nothing is left of `1:0` but itself.
    ///
    /// Defining equation: `R.size() == self.size()` and `R.get(i) == self.get(i)` for every `i`.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let coalesced = |text: &str| text.parse::<Layout>().map(|layout| layout.coalesce().to_string());
    /// assert_eq!(coalesced("(2,(1,6)):(1,(6,2))")?, "12:1");
    /// assert_eq!(coalesced("(4,4):(4,1)")?, "(4,4):(4,1)");
    /// assert_eq!(coalesced("(4,2):(0,0)")?, "8:0");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn coalesce(&self) -> Layout {
        let mut builder = Builder::new();
        push_coalesced(&mut builder, self.leaves());
        self.rebuilt(builder)
    }

    /// [`Layout::coalesce`] within each top-level mode, which keeps the rank.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let layout: Layout = "((4,3,1),2):((4,16,96),48)".parse()?;
    /// assert_eq!(layout.coalesce_modes().to_string(), "(12,2):(4,48)");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn coalesce_modes(&self) -> Layout {
        let mut builder = Builder::new();
        if self.is_leaf() {
            push_coalesced(&mut builder, self.leaves());
        } else {
            builder.open(self.rank());
            self.part().children().for_each(|mode| push_coalesced(&mut builder, mode.modes));
        }
        self.rebuilt(builder)
    }

    /// [`Layout::coalesce`] at every leaf of `profile`, whose nesting alone counts; modes beyond the profile stay
    /// as they are.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`](crate::ErrorKind::Rank) where the profile has more modes than the layout.
    ///
    /// ```
    /// use tile_layout::Layout;
    /// let layout: Layout = "((2,3),(2,3),(2,3)):((1,2),(6,12),(36,72))".parse()?;
    /// assert_eq!(layout.coalesce_by(&(0, (0, 0)).into())?.to_string(), "(6,(2,3),(2,3)):(1,(6,12),(36,72))");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn coalesce_by(&self, profile: &IntTuple) -> Result<Layout> {
        let mut builder = Builder::new();
        let join = |builder: &mut Builder, modes: &[Mode]| builder.push_mode(&coalesce_modes(modes));
        let print = |part: Part<'_>| part.to_layout().to_string();
        push_by_profile(&mut builder, self.part(), profile, &join, &print)?;
        builder.finish()
    }

    /// Without the modes that move nothing: those of extent 1 and of stride 0. What is left is coalesced.
    ///
    /// The size shrinks to the number of elements that the strides can tell apart.
    ///
    /// ```
    /// let layout: tile_layout::Layout = "(4,(2,3)):(1,(0,4))".parse()?;
    /// assert_eq!(layout.filter().to_string(), "12:1");
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn filter(&self) -> Layout {
        // A mode without elements moves nothing either, but leaves none.
        let counts = |mode: &Mode| mode.stride != 0 || mode.extent == 0;
        let kept: Modes = self.leaves().iter().copied().filter(counts).collect();
        let mut builder = Builder::new();
        builder.push_mode(&coalesce_modes(&kept));
        self.rebuilt(builder)
    }

    /// A layout built from some of this one's modes, or mergers of them: it reaches no further than this one.
    pub(crate) fn rebuilt(&self, builder: Builder) -> Layout {
        builder.finish().unwrap_or_else(|_| self.clone())
    }
}
