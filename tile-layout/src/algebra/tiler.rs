//! What a layout is composed with or divided by: one layout for all of it, or something for each mode.

use crate::error::{ErrorKind, LayoutError, Result};
use crate::layout::{Layout, Part};
use crate::tuple::{IntTuple, children, is_leaf, leaf_count, rank};
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

/// The right operand of [`Layout::compose`] and of the divides.
///
/// Made from a layout, an integer (`n` is the layout `n:1`), an array or a tuple (one entry per mode), or parts
/// of both kinds.
///
/// ```
/// use tile_layout::{Layout, Tiler};
/// let layout: Layout = "(8,6):(6,1)".parse()?;
/// let evens = Layout::leaf(4, 2)?;
/// assert_eq!(layout.compose(&evens)?.to_string(), "4:12");
/// assert_eq!(layout.compose((evens, Tiler::Keep))?.to_string(), "(4,6):(12,1)");
/// assert_eq!(layout.compose([2, 3])?.to_string(), "(2,3):(6,1)");
/// # Ok::<(), tile_layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub enum Tiler {
    /// One layout for the whole left operand.
    Layout(Layout),
    /// Contiguous runs: an integer for the whole left operand, or a tuple of them, one per mode.
    Sizes(IntTuple),
    /// One tiler per mode; modes beyond the last are kept.
    Modes(Vec<Tiler>),
    /// The mode as it is.
    Keep,
}

/// A tiler or a part of one, borrowed, by what is done with it.
#[derive(Clone, Copy)]
pub(crate) enum Cut<'a> {
    /// One layout for all of the left operand.
    Whole(Part<'a>),
    /// The layout `n:1` for all of it.
    Run(i64),
    /// The left operand as it is.
    Keep,
    /// One cut for each of its first modes.
    ByMode(Cuts<'a>),
}

/// The cuts of several modes.
#[derive(Clone, Copy)]
pub(crate) enum Cuts<'a> {
    Sizes { leaves: &'a [i64], tokens: &'a [u32] },
    Tilers(&'a [Tiler]),
}

impl Tiler {
    pub(crate) fn cut(&self) -> Cut<'_> {
        match self {
            Tiler::Layout(layout) => Cut::Whole(layout.part()),
            Tiler::Sizes(sizes) => Cut::of_sizes(&sizes.leaves, sizes.nesting.tokens()),
            Tiler::Modes(tilers) => Cut::ByMode(Cuts::Tilers(tilers)),
            Tiler::Keep => Cut::Keep,
        }
    }
}

impl<'a> Cut<'a> {
    fn of_sizes(leaves: &'a [i64], tokens: &'a [u32]) -> Cut<'a> {
        match leaves {
            [size] if is_leaf(tokens) => Cut::Run(*size),
            _ => Cut::ByMode(Cuts::Sizes { leaves, tokens }),
        }
    }
}

impl<'a> Cuts<'a> {
    /// How many modes are cut, if the left operand has as many.
    pub(crate) fn count_within(self, left_rank: usize) -> Result<usize> {
        let count = match self {
            Cuts::Sizes { tokens, .. } => rank(tokens),
            Cuts::Tilers(tilers) => tilers.len(),
        };
        if count <= left_rank {
            return Ok(count);
        }
        Err(LayoutError::new(
            ErrorKind::Rank,
            format!("a tiler of {count} modes is too long for a layout of {left_rank}"),
        ))
    }

    /// One cut for each mode of the left operand; modes beyond the last are kept.
    pub(crate) fn each(self) -> impl Iterator<Item = Cut<'a>> {
        let (sizes, tilers) = match self {
            Cuts::Sizes { leaves, tokens } => (Some((leaves, tokens)), &[][..]),
            Cuts::Tilers(tilers) => (None, tilers),
        };
        let sizes = sizes.into_iter().flat_map(|(mut leaves, tokens)| {
            children(tokens).map(move |child| {
                let (own, rest) = leaves.split_at(leaf_count(child));
                leaves = rest;
                Cut::of_sizes(own, child)
            })
        });
        sizes.chain(tilers.iter().map(Tiler::cut)).chain(core::iter::repeat(Cut::Keep))
    }
}

impl fmt::Display for Tiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tiler::Layout(layout) => layout.fmt(f),
            Tiler::Sizes(sizes) => sizes.fmt(f),
            Tiler::Keep => f.write_str("_"),
            Tiler::Modes(tilers) => {
                f.write_str("<")?;
                for (position, tiler) in tilers.iter().enumerate() {
                    write!(f, "{}{tiler}", if position > 0 { "," } else { "" })?;
                }
                f.write_str(">")
            }
        }
    }
}

impl fmt::Debug for Tiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Layout> for Tiler {
    fn from(layout: Layout) -> Tiler {
        Tiler::Layout(layout)
    }
}

impl From<&Layout> for Tiler {
    fn from(layout: &Layout) -> Tiler {
        Tiler::Layout(layout.clone())
    }
}

impl From<IntTuple> for Tiler {
    fn from(sizes: IntTuple) -> Tiler {
        Tiler::Sizes(sizes)
    }
}

impl From<i64> for Tiler {
    fn from(size: i64) -> Tiler {
        Tiler::Sizes(size.into())
    }
}

impl From<i32> for Tiler {
    fn from(size: i32) -> Tiler {
        Tiler::Sizes(size.into())
    }
}

impl<const N: usize> From<[i64; N]> for Tiler {
    fn from(sizes: [i64; N]) -> Tiler {
        Tiler::Sizes(IntTuple::flat(&sizes))
    }
}

impl<const N: usize> From<[i32; N]> for Tiler {
    fn from(sizes: [i32; N]) -> Tiler {
        Tiler::Sizes(IntTuple::flat(&sizes.map(i64::from)))
    }
}

impl<const N: usize> From<[Tiler; N]> for Tiler {
    fn from(tilers: [Tiler; N]) -> Tiler {
        Tiler::Modes(tilers.into())
    }
}

impl From<Vec<Tiler>> for Tiler {
    fn from(tilers: Vec<Tiler>) -> Tiler {
        Tiler::Modes(tilers)
    }
}

macro_rules! from_rust_tuples {
    ($(($($name:ident),+))+) => {$(
        impl<$($name: Into<Tiler>),+> From<($($name,)+)> for Tiler {
            #[allow(non_snake_case, reason = "type parameters double as the names of the parts")]
            fn from(($($name,)+): ($($name,)+)) -> Tiler {
                Tiler::Modes(alloc::vec![$($name.into()),+])
            }
        }
    )+};
}
from_rust_tuples! { (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) }
