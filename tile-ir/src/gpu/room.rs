//! How the parts of a schedule share shared memory where they want more than there is.

use super::Scheduled;
use super::pipeline::Spare;
use crate::target::TargetDesc;

/// What a schedule leaves to what it doesn't place first, in bytes of shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Left by tiles that are copied ahead for what threads exchange.
    pub(super) scratch: u64,
    /// The most that a conversion takes at a time.
    pub(super) conversion: u64,
    /// What becomes of shared memory that nothing needs.
    pub(super) spare: Spare,
}

impl Room {
    /// All to whoever asks first.
    pub(super) const ALL: Room = Room { scratch: 0, conversion: u64::MAX, spare: Spare::Left };

    /// What a conversion is given before fewer tiles are copied ahead.
    const CONVERSION_BESIDE_COPIES: u64 = 16 * 1024;

    /// The least bytes that a conversion is given: fewer save nothing that matters.
    const LEAST_CONVERSION: u64 = 4 * 1024;

    /// What to try where a schedule took too much: next to tiles that are copied ahead, large conversions go in rounds;
    /// then such tiles are copied fewer turns ahead, or not at all; then conversions get less and less. `None` where
    /// nothing is left to try.
    pub(super) fn tightened(self, scheduled: &Scheduled, target: &TargetDesc) -> Option<Room> {
        let (needed, copied) = (scheduled.shared_bytes(), scheduled.copied_bytes());
        if copied > 0 && self.conversion > Room::CONVERSION_BESIDE_COPIES {
            return Some(Room { conversion: Room::CONVERSION_BESIDE_COPIES, ..self });
        }
        if copied > 0 {
            return Some(Room { scratch: (needed - copied).max(self.scratch + 1), ..self });
        }
        let most = 1 << target.shared_bytes.ilog2();
        let conversion = if self.conversion > most { most } else { self.conversion / 2 };
        (conversion >= Room::LEAST_CONVERSION).then_some(Room { conversion, ..self })
    }
}
