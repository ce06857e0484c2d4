//! Other GPUs that this one copies from, and the ways past the host that the machine has.

use super::Hip;
use super::library::MemoryAccess;
use crate::gpu::driver::Failure;
use std::collections::HashSet;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// Of `hipMemLocationType` and `hipMemAccessFlags`.
const LOCATION_DEVICE: c_int = 1;
const ACCESS_READ_WRITE: c_int = 3;

/// The numbers of GPUs to which a way was looked for.
#[derive(Default)]
pub(super) struct Peers(Mutex<HashSet<c_int>>);

impl Hip {
    /// Lets this GPU at the memory of another, where there is a way, when that is first asked for. Nothing is made of what
    /// is refused: copies are the same without it.
    pub(super) fn open_way(&self, peer: c_int) {
        let mut known = self.peers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.insert(peer) {
            let _ = self.open_now(peer);
        }
    }

    /// By the devices (`hipDeviceEnablePeerAccess`), and where memory comes from pools by the other's own list
    /// (`hipMemPoolSetAccess`).
    fn open_now(&self, peer: c_int) -> Result<(), Failure> {
        self.set()?;
        let mut is_near = 0;
        // SAFETY: the number is written to a local.
        self.done(unsafe { (self.hip.hipDeviceCanAccessPeer)(&raw mut is_near, self.ordinal, peer) })?;
        if is_near == 0 {
            return Ok(());
        }
        // SAFETY: says that this device may use the other's memory.
        let by_device = self.done(unsafe { (self.hip.hipDeviceEnablePeerAccess)(peer, 0) });
        if self.has_pools() {
            let mut pool = null_mut();
            // SAFETY: the pool is written to a local.
            self.done(unsafe { (self.hip.hipDeviceGetDefaultMemPool)(&raw mut pool, peer) })?;
            let access =
                MemoryAccess { kind: LOCATION_DEVICE, device: self.ordinal, flags: ACCESS_READ_WRITE };
            // SAFETY: the pool is the other device's own, and the list has one entry.
            self.done(unsafe { (self.hip.hipMemPoolSetAccess)(pool, &raw const access, 1) })?;
        }
        by_device
    }
}
