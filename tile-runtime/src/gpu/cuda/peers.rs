//! Other GPUs that this one copies from: their contexts, and the ways past the host that the machine has.

use super::{Cuda, done, failure};
use crate::gpu::driver::Failure;
use cudarc::driver::{CudaContext, result, sys};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The primary contexts of other GPUs, by their numbers.
#[derive(Default)]
pub(super) struct Peers(Mutex<HashMap<usize, Arc<CudaContext>>>);

impl Cuda {
    /// The primary context of another GPU. When it is first asked for, this one is let at the other's memory: without
    /// that the driver copies by way of the host, with the same result (CUDA C++ Programming Guide, "Peer-to-Peer Memory
    /// Copy"), so that nothing is made of what it refuses.
    pub(super) fn peer(&self, ordinal: usize) -> Result<sys::CUcontext, Failure> {
        let mut known = self.peers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(peer) = known.get(&ordinal) {
            return Ok(peer.cu_ctx());
        }
        let peer = CudaContext::new(ordinal).map_err(failure)?;
        let _ = self.open_way(&peer);
        let handle = peer.cu_ctx();
        known.insert(ordinal, peer);
        Ok(handle)
    }

    /// Lets this GPU at the memory of another, where there is a way: at that of its pool by the pool's own list, and at
    /// other memory by the contexts' (CUDA Driver API, `cuMemPoolSetAccess` and `cuCtxEnablePeerAccess`).
    fn open_way(&self, peer: &CudaContext) -> Result<(), Failure> {
        self.bind()?;
        let (own, other) = (self.context.cu_device(), peer.cu_device());
        let mut is_near = 0;
        // SAFETY: both devices are there, and the number is written to a local.
        done(unsafe { sys::cuDeviceCanAccessPeer(&raw mut is_near, own, other) })?;
        if is_near == 0 {
            return Ok(());
        }
        // SAFETY: this device's context is bound, and the other is there as long as this one keeps it.
        let by_context = done(unsafe { sys::cuCtxEnablePeerAccess(peer.cu_ctx(), 0) });
        if !self.has_pools() {
            return by_context;
        }
        let location =
            sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: own };
        let flags = sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        let access = sys::CUmemAccessDesc { location, flags };
        // SAFETY: the device is there.
        let pool = unsafe { result::device::get_default_mem_pool(other) }.map_err(failure)?;
        // SAFETY: the pool is the other device's own, and the list has one entry.
        done(unsafe { sys::cuMemPoolSetAccess(pool, &raw const access, 1) })?;
        by_context
    }
}
