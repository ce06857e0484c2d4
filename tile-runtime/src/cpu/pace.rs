//! How long an instance takes for a tile, and thereby who runs a grid: the calling thread alone, or the pool with it.
//!
//! Handing a grid to other threads costs about as long as some dozen small tiles take, or thousands if these threads sleep.
//! The time that an instance took for a tile is kept with it, and a grid that would end before sharing it pays off is run
//! by the thread that launches it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What it costs to hand a grid to other threads, until they have helped, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handover {
    /// To threads that look on: 0.3 µs measured by `cargo xtask bench launch`, and they get in each other's way.
    Awake,
    /// To threads that sleep. Waking one takes the caller and the one that wakes about 5 µs on a machine of one's own, and
    /// 55 µs were measured on a virtual one that was shared.
    Asleep,
}

impl Handover {
    const fn nanoseconds(self) -> f64 {
        match self {
            Handover::Awake => 1_000.0,
            Handover::Asleep => 20_000.0,
        }
    }
}

/// Nanoseconds per tile, as the launches of an instance have shown; 0.0 before the first. The sizes that a tile's time
/// depends on may change from launch to launch, so this is a guess, which only decides who runs the tiles.
pub(crate) struct Pace(AtomicU64);

/// Who runs the tiles of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The thread that launches.
    Alone,
    /// It and those of the pool.
    Shared,
}

impl Pace {
    pub(crate) const fn new() -> Pace {
        Pace(AtomicU64::new(0))
    }

    /// Nanoseconds per tile; `None` before the first launch.
    pub(super) fn known(&self) -> Option<f64> {
        Some(f64::from_bits(self.0.load(Ordering::Relaxed))).filter(|&nanoseconds| nanoseconds > 0.0)
    }

    /// Notes that so many tiles took this time. Launches that note at once may miss each other's, which is no harm.
    pub(super) fn note(&self, tiles: f64, time: Duration) {
        self.0.store(moved(self.known(), of(tiles, time)).to_bits(), Ordering::Relaxed);
    }
}

/// Nanoseconds per tile. A clock that hasn't moved has measured something all the same.
pub(super) fn of(tiles: f64, time: Duration) -> f64 {
    (time.as_nanos() as f64 / tiles.max(1.0)).max(1.0)
}

/// The estimate after a measurement: what was measured, but at most twice the estimate before and at least half of it, so
/// that one launch during which the thread had to wait doesn't decide about many.
fn moved(estimate: Option<f64>, measured: f64) -> f64 {
    estimate.map_or(measured, |estimate| measured.clamp(estimate / 2.0, estimate * 2.0))
}

/// Who runs so many tiles, of which each takes so many nanoseconds: the calling thread, where it alone is done before all
/// threads together would be. Of a grid of which nothing is known all threads take their part.
pub(super) fn way(tiles: f64, threads: usize, nanoseconds: Option<f64>, handover: Handover) -> Way {
    let Some(nanoseconds) = nanoseconds else { return Way::Shared };
    let alone = tiles * nanoseconds;
    let shared = alone / threads as f64 + handover.nanoseconds();
    if alone <= shared { Way::Alone } else { Way::Shared }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_shared_where_that_ends_sooner() {
        for handover in [Handover::Awake, Handover::Asleep] {
            let cost = handover.nanoseconds();
            let way = |tiles, threads, nanoseconds| way(tiles, threads, nanoseconds, handover);
            // Of two threads each saves half of the time.
            assert_eq!(way(1000.0, 2, Some(2.0 * cost / 1000.0)), Way::Alone);
            assert_eq!(way(1001.0, 2, Some(2.0 * cost / 1000.0)), Way::Shared);
            // Of many threads the calling one is left with little: what is saved is nearly everything.
            assert_eq!(way(1000.0, 64, Some(1.1 * cost / 1000.0)), Way::Shared);
            assert_eq!(way(1000.0, 64, Some(0.9 * cost / 1000.0)), Way::Alone);
            // There is nobody to share with.
            assert_eq!(way(1e6, 1, Some(1e6)), Way::Alone);
            assert_eq!(way(2.0, 4, None), Way::Shared);
            assert_eq!(way(0.0, 4, Some(1e9)), Way::Alone);
        }
        // 10 µs of work: worth a word, but nobody is woken for it.
        assert_eq!(way(100.0, 4, Some(100.0), Handover::Awake), Way::Shared);
        assert_eq!(way(100.0, 4, Some(100.0), Handover::Asleep), Way::Alone);
    }

    #[test]
    fn an_estimate_follows_by_a_factor_of_two_at_most() {
        assert_eq!(moved(None, 70.0), 70.0);
        assert_eq!(moved(Some(100.0), 120.0), 120.0);
        assert_eq!(moved(Some(100.0), 1e9), 200.0);
        assert_eq!(moved(Some(100.0), 1.0), 50.0);
        let pace = Pace::new();
        assert_eq!(pace.known(), None);
        pace.note(10.0, Duration::ZERO);
        assert_eq!(pace.known(), Some(1.0));
        let pace = Pace::new();
        pace.note(10.0, Duration::from_micros(1));
        assert_eq!(pace.known(), Some(100.0));
        pace.note(1.0, Duration::from_nanos(150));
        assert_eq!(pace.known(), Some(150.0));
    }
}
