//! How much of a GPU's memory the process may use, and keep.

use crate::environment;

/// Names the most bytes of a GPU that are in use.
const IN_USE_VARIABLE: &str = "TILE_MEMORY_IN_USE";
/// Names the most bytes of a GPU that are held.
const HELD_VARIABLE: &str = "TILE_MEMORY_HELD";

const EXPECTED: &str = "a number of bytes such as 512M or 8G";

/// How much of a GPU's memory this process may use and keep, for [`crate::Device::limit_memory`]: everything, unless it is
/// said here or in the environment.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::MemoryLimits;
/// let limits = MemoryLimits { in_use: 2 << 30, ..MemoryLimits::default() };
/// assert_eq!(limits.held, u64::MAX);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// The most bytes that tensors and logs have at once: what would be more is
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory). `TILE_MEMORY_IN_USE`, as in `8G`.
    pub in_use: u64,
    /// The most bytes that are held, those in use and those kept for later tensors: of what isn't in use, the rest goes
    /// back to the device, where the driver has a pool when somebody next waits for the device, else when a tensor is
    /// dropped. 0 keeps nothing. `TILE_MEMORY_HELD`.
    pub held: u64,
}

impl Default for MemoryLimits {
    fn default() -> MemoryLimits {
        MemoryLimits { in_use: u64::MAX, held: u64::MAX }
    }
}

impl MemoryLimits {
    /// What the environment says.
    pub(super) fn of_environment() -> MemoryLimits {
        let said = |variable| environment::said(variable, EXPECTED, environment::bytes).unwrap_or(u64::MAX);
        MemoryLimits { in_use: said(IN_USE_VARIABLE), held: said(HELD_VARIABLE) }
    }
}
