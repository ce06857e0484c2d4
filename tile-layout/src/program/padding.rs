//! Padding that repeats elements of the tensor: reflected, replicated, circular.

use super::ViewProgram;
use super::join::joined;
use crate::error::{ErrorKind, LayoutError, Result};
use crate::movement::{Movement, Span, check_grouped_padding};
use crate::view::Fill;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::str::FromStr;

/// What the elements beyond the edge of a tensor are.
///
/// ```
/// use tile_layout::PadMode;
/// assert_eq!("reflect".parse(), Ok(PadMode::Reflect));
/// assert!("edge".parse::<PadMode>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadMode {
    /// One value. Negative counts remove elements first.
    Constant(Fill),
    /// Mirrored, the edge itself not repeated. Negative counts remove elements last.
    Reflect,
    /// The edge. Negative counts remove elements last.
    Replicate,
    /// The other end. Negative counts remove elements first.
    Circular,
}

impl FromStr for PadMode {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<PadMode> {
        match text {
            "constant" => Ok(PadMode::Constant(Fill::ZERO)),
            "reflect" => Ok(PadMode::Reflect),
            "replicate" => Ok(PadMode::Replicate),
            "circular" => Ok(PadMode::Circular),
            _ => Err(LayoutError::new(
                ErrorKind::Unsupported,
                format!("`{text}` is no padding mode: there are constant, reflect, replicate and circular"),
            )),
        }
    }
}

impl ViewProgram {
    /// Elements before and after each axis, made by a mode; `None` adds none, negative counts remove.
    ///
    /// # Errors
    /// [`ErrorKind::Rank`]; [`ErrorKind::InvalidPadding`] where more is removed than there is, where a reflection
    /// is not shorter than the axis, or where a circular padding goes around more than once.
    ///
    /// ```
    /// use tile_layout::{PadMode, ViewProgram};
    /// let row = ViewProgram::row_major(0, &[3])?;
    /// let padded = |mode| row.pad_mode(&[Some((2, 1))], mode)?.evaluate(&[&[1, 2, 3]], |_| 0);
    /// assert_eq!(padded(PadMode::Reflect)?, [3, 2, 1, 2, 3, 2]);
    /// assert_eq!(padded(PadMode::Replicate)?, [1, 1, 1, 2, 3, 3]);
    /// assert_eq!(padded(PadMode::Circular)?, [2, 3, 1, 2, 3, 1]);
    /// # Ok::<(), tile_layout::LayoutError>(())
    /// ```
    pub fn pad_mode(&self, padding: &[Span], mode: PadMode) -> Result<ViewProgram> {
        let pairs = check_grouped_padding(self.shape(), padding)?;
        match mode {
            PadMode::Constant(fill) => self.pad_with(padding, fill),
            PadMode::Circular => {
                let removed = pairs.iter().map(|&(before, after)| Some((before.min(0), after.min(0))));
                let cropped = self.pad(&removed.collect::<Vec<_>>())?;
                extended(&cropped, &pairs, mode)
            }
            PadMode::Reflect | PadMode::Replicate => {
                let grown = extended(self, &pairs, mode)?;
                let removed = pairs.iter().map(|&(before, after)| Some((before.min(0), after.min(0))));
                grown.pad(&removed.collect::<Vec<_>>())
            }
        }
    }

    /// `begin..end` along an axis.
    fn range(&self, place: usize, begin: i64, end: i64) -> Result<ViewProgram> {
        let mut ranges = vec![None; self.shape().len()];
        ranges[place] = Some((begin, end));
        self.shrink(&ranges)
    }
}

/// The positive counts of a padding added, axis by axis.
fn extended(tensor: &ViewProgram, pairs: &[(i64, i64)], mode: PadMode) -> Result<ViewProgram> {
    let mut grown = tensor.clone();
    for (place, &(before, after)) in pairs.iter().enumerate() {
        let (before, after) = (before.max(0), after.max(0));
        let extent = tensor.shape()[place];
        check_reach(place, extent, before, after, mode)?;
        if (before, after) == (0, 0) {
            continue;
        }
        let edge = |at: i64, count: i64| {
            let mut lengths = grown.shape().to_vec();
            lengths[place] = count;
            grown.range(place, at, at + 1)?.expand(lengths)
        };
        let (front, back) = match mode {
            PadMode::Reflect => {
                let back = grown.range(place, extent - 1 - after, extent - 1)?.flip(&[place as i64])?;
                (grown.range(place, 1, before + 1)?.flip(&[place as i64])?, back)
            }
            PadMode::Replicate => (edge(0, before)?, edge(extent - 1, after)?),
            PadMode::Circular => {
                (grown.range(place, extent - before, extent)?, grown.range(place, 0, after)?)
            }
            PadMode::Constant(_) => continue,
        };
        grown = joined(place, &[front, grown, back])?;
    }
    Ok(grown)
}

fn check_reach(place: usize, extent: i64, before: i64, after: i64, mode: PadMode) -> Result<()> {
    let longest = before.max(after);
    let why = match mode {
        PadMode::Reflect if longest >= extent && longest > 0 => "a reflection must be shorter than the axis",
        PadMode::Circular if longest > extent => "a circular padding goes around once at most",
        PadMode::Replicate if extent == 0 && longest > 0 => "an empty axis has no edge",
        _ => return Ok(()),
    };
    Err(LayoutError::at(
        ErrorKind::InvalidPadding,
        &[place],
        format!("padding ({before},{after}) of axis {place} of extent {extent}: {why}"),
    ))
}
