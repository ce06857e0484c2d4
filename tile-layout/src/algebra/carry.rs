//! Counting without carries: when an index is read as digits, which steps keep every digit additive.
//!
//! A step of size `e` taken `0 … m−1` times adds at most `(m−1)·(e mod P)` below the boundary `P` between two
//! digits. As long as all steps together stay below every boundary, no digit ever carries into the next, and each
//! digit is the sum of what the steps add to it. This is the one fact behind [`crate::Layout::compose`] and
//! behind the composition of views.

use crate::tuple::Ints;

/// The boundaries between digits and how much is used below each.
pub(crate) struct Carries<'a> {
    boundaries: &'a [i64],
    used: Ints,
}

impl Carries<'_> {
    /// Counting from `start`.
    pub(crate) fn new(boundaries: &[i64], start: i64) -> Carries<'_> {
        Carries { boundaries, used: boundaries.iter().map(|boundary| start % boundary).collect() }
    }

    /// The number of steps of size `step`, of `extent` altogether, up to the first boundary. `None` where they do
    /// not divide the extent, or carry together with what was counted before.
    pub(crate) fn count(&mut self, extent: i64, step: i64) -> Option<i64> {
        let even = even_steps(self.boundaries, 0, step).min(extent);
        if extent % even != 0 {
            return None;
        }
        for (used, &boundary) in self.used.iter_mut().zip(self.boundaries) {
            *used = used.saturating_add((even - 1) * (step % boundary));
            if *used >= boundary {
                return None;
            }
        }
        Some(even)
    }
}

/// After how many steps of size `step` from `start` a boundary is crossed; large where none ever is.
pub(crate) fn even_steps(boundaries: &[i64], start: i64, step: i64) -> i64 {
    let crossing = |&boundary: &i64| match step % boundary {
        0 => i64::MAX,
        rest => (boundary - 1 - start % boundary) / rest + 1,
    };
    boundaries.iter().map(crossing).min().unwrap_or(i64::MAX)
}
